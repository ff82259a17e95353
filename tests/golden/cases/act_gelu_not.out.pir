pir 1 ir_version=8 opset=13
graph g (x: f32[2,8], z: f32[2,8], w: f16[2,8]) -> (a, b, c, c3, d) {
  r = f32[] {0.7071}
  one = f32[] {1.0}
  half = f32[] {0.5}
  s = f32[] {1.4142135}
  sh = f16[] {1.4140625}
  oneh = f16[] {1.0}
  halfh = f16[] {0.5}
  a1 = Mul(x, r: f32[]) : f32[2,8]
  a2 = Erf(a1) : f32[2,8]
  a3 = Add(a2, one: f32[]) : f32[2,8]
  a4 = Mul(x, a3) : f32[2,8]
  a = Mul(a4, half: f32[]) : f32[2,8]
  b1 = Div(x, s: f32[]) : f32[2,8]
  b2 = Erf(b1) : f32[2,8]
  b3 = Add(b2, one: f32[]) : f32[2,8]
  b4 = Mul(z, b3) : f32[2,8]
  b = Mul(b4, half: f32[]) : f32[2,8]
  c1 = Div(x, s: f32[]) : f32[2,8]
  c2 = Erf(c1) : f32[2,8]
  c3 = Add(c2, one: f32[]) : f32[2,8]
  c4 = Mul(x, c3) : f32[2,8]
  c = Mul(c4, half: f32[]) : f32[2,8]
  d1 = Div(w, sh: f16[]) : f16[2,8]
  d2 = Erf(d1) : f16[2,8]
  d3 = Add(d2, oneh: f16[]) : f16[2,8]
  d4 = Mul(w, d3) : f16[2,8]
  d = Mul(d4, halfh: f16[]) : f16[2,8]
}
