# pass: postopt
# The scale of a norm and the half of a GELU stay where the runtime wants them, though the weights
# behind could take them.
pir 1 ir_version=7 opset=12
graph g (x: f32[2,5,8]) -> (y) {
  am = ReduceMean(x) {axes=[-1]}
  ad = Sub(x, am)
  as = Pow(ad, two: f32[] {2.0})
  av = ReduceMean(as) {axes=[-1]}
  ae = Add(av, eps: f32[] {1e-5})
  ar = Sqrt(ae)
  an = Div(ad, ar)
  ag = Mul(an, gain: f32[8] random 1)
  a = Add(ag, shift: f32[8] random 2)
  h = MatMul(a, w: f32[8,16] random 3)
  u = Div(h, s: f32[] {1.4142135381698608})
  e = Erf(u)
  k = Add(e, one: f32[] {1.0})
  p = Mul(h, k)
  q = Mul(p, half: f32[] {0.5})
  y = MatMul(q, v: f32[16,8] random 4)
}
