# pass: norms
# No norms: two axes in one, dims dropped, another difference, eps missing, a variance that is read
# elsewhere, a short inner axis, half precision.
pir 1 ir_version=8 opset=17
graph g (x: f32[2,5,8], z: f32[2,5,8], w: f16[2,8]) -> (a, b, c, cv, d, e, f) {
  am = ReduceMean(x) {axes=[-1]}
  ad = Sub(x, am)
  as = Mul(ad, ad)
  av = ReduceMean(as) {axes=[1]}
  ae = Add(av, eps: f32[] {1e-5})
  ar = Sqrt(ae)
  a = Div(ad, ar)
  bm = ReduceMean(z) {axes=[-1]}
  bd = Sub(x, bm)
  bs = Mul(bd, bd)
  bv = ReduceMean(bs) {axes=[-1]}
  be = Add(bv, eps)
  br = Sqrt(be)
  b = Div(x, br)
  cm = ReduceMean(x) {axes=[-1]}
  cd = Sub(x, cm)
  cs = Mul(cd, cd)
  cv = ReduceMean(cs) {axes=[-1]}
  ce = Add(cv, eps)
  cr = Sqrt(ce)
  c = Div(cd, cr)
  dm = ReduceMean(x) {axes=[1]}
  dd = Sub(x, dm)
  ds = Mul(dd, dd)
  dv = ReduceMean(ds) {axes=[1]}
  de = Add(dv, eps)
  dr = Sqrt(de)
  d = Div(dd, dr)
  em = ReduceMean(w) {axes=[-1]}
  ed = Sub(w, em)
  es = Mul(ed, ed)
  ev = ReduceMean(es) {axes=[-1]}
  ee = Add(ev, epsh: f16[] {1e-3})
  er = Sqrt(ee)
  e = Div(ed, er)
  fs = Mul(x, x)
  fv = ReduceMean(fs) {axes=[-2, -1]}
  fe = Add(fv, eps)
  fr = Sqrt(fe)
  f = Div(x, fr)
}
