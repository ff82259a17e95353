# pass: activations
# Powers as products and roots; a square that a mean reads and a cube that a product reads stay,
# for the runtime's patterns; so do other exponents.
pir 1 ir_version=8 opset=13
graph g (z: f32[2,8]) -> (a, b, c, d, e, f, h, i, j, k, l) {
  x0 = Abs(z)
  x = Add(x0, small: f32[] {0.01})
  a = Pow(x, p2: f32[] {2.0})
  b = Pow(x, p3: f32[] {3.0})
  c = Pow(x, ph: f32[] {0.5})
  d = Pow(x, m1: f32[1] {-1.0})
  e = Pow(x, mh: f32[] {-0.5})
  f = Pow(x, p4: f32[] {4.0})
  h = Pow(x, i2: i64[] {2})
  i1 = Pow(x, p2)
  i = ReduceMean(i1) {axes=[-1]}
  j1 = Pow(x, p3)
  j = Mul(j1, t: f32[] {0.044715})
  k = Pow(x, odd: f32[] {2.5})
  l = Pow(x, wide: f32[1,1,1] {2.0})
}
