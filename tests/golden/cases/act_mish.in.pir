# pass: activations
# Mish is written without the logarithm; a lone Softplus stays.
pir 1 ir_version=8 opset=13
graph g (x: f32[2,8]) -> (a, b, c, d) {
  a1 = Softplus(x)
  a2 = Tanh(a1)
  a = Mul(x, a2)
  b1 = Exp(x)
  b2 = Add(b1, one: f32[] {1.0})
  b3 = Log(b2)
  b4 = Tanh(b3)
  b = Mul(b4, x)
  c = Softplus(x)
  d1 = Softplus(c)
  d2 = Tanh(d1)
  d = Mul(x, d2)
}
