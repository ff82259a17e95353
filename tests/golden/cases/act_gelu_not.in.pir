# pass: activations
# What only looks like GELU stays: another constant, another x, an inner value read elsewhere, half
# precision.
pir 1 ir_version=8 opset=13
graph g (x: f32[2,8], z: f32[2,8], w: f16[2,8]) -> (a, b, c, c3, d) {
  a1 = Mul(x, r: f32[] {0.7071})
  a2 = Erf(a1)
  a3 = Add(a2, one: f32[] {1.0})
  a4 = Mul(x, a3)
  a = Mul(a4, half: f32[] {0.5})
  b1 = Div(x, s: f32[] {1.4142135381698608})
  b2 = Erf(b1)
  b3 = Add(b2, one)
  b4 = Mul(z, b3)
  b = Mul(b4, half)
  c1 = Div(x, s)
  c2 = Erf(c1)
  c3 = Add(c2, one)
  c4 = Mul(x, c3)
  c = Mul(c4, half)
  d1 = Div(w, sh: f16[] {1.4142})
  d2 = Erf(d1)
  d3 = Add(d2, oneh: f16[] {1.0})
  d4 = Mul(w, d3)
  d = Mul(d4, halfh: f16[] {0.5})
}
