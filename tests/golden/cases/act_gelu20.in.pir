# pass: activations
# From opset 20 on the operator is there.
pir 1 ir_version=9 opset=20
graph g (x: f32[2,8]) -> (a, h) {
  a1 = Mul(x, r: f32[] {0.7071067690849304})
  a2 = Erf(a1)
  a3 = Add(a2, one: f32[] {1.0})
  a4 = Mul(x, a3)
  a = Mul(a4, half: f32[] {0.5})
  h1 = Mul(x, x)
  h2 = Mul(h1, k: f32[] {0.035677406936883926})
  h3 = Add(h2, slope: f32[] {0.7978845834732056})
  h4 = Mul(h3, x)
  h5 = Tanh(h4)
  h6 = Add(h5, one)
  h7 = Mul(h6, half)
  h = Mul(x, h7)
}
