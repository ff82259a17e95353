# pass: postopt
# Below opset 17 a norm over an inner axis stays in place; only its square is written as a product.
pir 1 ir_version=7 opset=13
graph g (x: f32[1,32,4,5]) -> (a, b) {
  am = ReduceMean(x) {axes=[1]}
  ad = Sub(x, am)
  as = Pow(ad, two: f32[] {2.0})
  av = ReduceMean(as) {axes=[1]}
  ae = Add(av, eps: f32[] {1e-6})
  ar = Sqrt(ae)
  an = Div(ad, ar)
  ag = Mul(gain: f32[32,1,1] random 1, an)
  a = Add(ag, shift: f32[1,32,1,1] random 2)
  bs = Mul(x, x)
  bv = ReduceMean(bs) {axes=[1]}
  be = Add(bv, eps)
  br = Sqrt(be)
  b = Div(x, br)
}
