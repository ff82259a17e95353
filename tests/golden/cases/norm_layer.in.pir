# pass: norms
# Layer norms in exporter spellings, below opset 17: all in the one spelling that is fused.
pir 1 ir_version=7 opset=12
graph g (x: f32[2,5,8]) -> (a, b, c, d, e, f) {
  am = ReduceMean(x) {axes=[-1]}
  ad = Sub(x, am)
  as = Mul(ad, ad)
  av = ReduceMean(as) {axes=[-1]}
  ae = Add(av, eps: f32[] {1e-5})
  ar = Sqrt(ae)
  an = Div(ad, ar)
  ag = Mul(an, gain: f32[8] random 1)
  a = Add(ag, shift: f32[8] random 2)
  # reciprocal, operands swapped, scale of another shape, no shift
  bm = ReduceMean(x) {axes=[2]}
  bd = Sub(x, bm)
  bs = Pow(bd, two: f32[] {2.0})
  bv = ReduceMean(bs) {axes=[2]}
  be = Add(eps, bv)
  br = Sqrt(be)
  bi = Reciprocal(br)
  bn = Mul(bi, bd)
  b = Mul(gain3: f32[1,1,8] random 3, bn)
  # the difference twice, a power for the root, no scale
  cm = ReduceMean(x) {axes=[-1]}
  cd = Sub(x, cm)
  cd2 = Sub(x, cm)
  cs = Pow(cd2, two)
  cv = ReduceMean(cs) {axes=[-1]}
  ce = Add(cv, eps)
  cr = Pow(ce, half: f32[] {0.5})
  c = Div(cd, cr)
  # TensorFlow's
  dm = ReduceMean(x) {axes=[-1]}
  dd = Sub(x, dm)
  ds = Mul(dd, dd)
  dv = ReduceMean(ds) {axes=[-1]}
  de = Add(dv, eps)
  dr = Sqrt(de)
  di = Reciprocal(dr)
  dk = Mul(di, gain)
  dx = Mul(x, dk)
  do = Mul(dm, dk)
  dt = Sub(shift, do)
  d = Add(dx, dt)
  # root mean square, reciprocal
  es = Mul(x, x)
  ev = ReduceMean(es) {axes=[-1]}
  ee = Add(ev, eps)
  er = Sqrt(ee)
  ei = Div(one: f32[] {1.0}, er)
  en = Mul(x, ei)
  e = Mul(gain, en)
  # the same by a power
  fs = Pow(x, two)
  fv = ReduceMean(fs) {axes=[-1]}
  fe = Add(fv, eps)
  fi = Pow(fe, mh: f32[] {-0.5})
  f = Mul(x, fi)
}
