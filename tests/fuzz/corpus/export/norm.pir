# pass: norms
# Over the channels of a map (ConvNeXt) through transposes; group norms as InstanceNormalization.
pir 1 ir_version=8 opset=18
graph g (x: f32[1,32,4,5]) -> (a, b) {
  am = ReduceMean(x, one: i64[1] {1})
  ad = Sub(x, am)
  as = Pow(ad, two: f32[] {2.0})
  av = ReduceMean(as, one)
  ae = Add(av, eps: f32[] {1e-6})
  ar = Sqrt(ae)
  an = Div(ad, ar)
  ag = Mul(gain: f32[32,1,1] random 1, an)
  a = Add(ag, shift: f32[1,32,1,1] random 2)
  bx = Reshape(x, to: i64[3] {1, 8, -1})
  bm = ReduceMean(bx, last: i64[1] {-1})
  bd = Sub(bx, bm)
  bs = Pow(bd, two)
  bv = ReduceMean(bs, last)
  be = Add(bv, eps)
  br = Sqrt(be)
  bn = Div(bd, br)
  by = Reshape(bn, back: i64[4] {1, 32, 4, 5})
  bg = Mul(by, gain)
  b = Add(bg, shift)
}
