# pass: activations
# Bounds as Clip, Relu and LeakyRelu.
pir 1 ir_version=8 opset=13
graph g (x: f32[1,16,4,4], n: i32[4]) -> (a, b, c, d, e, f, h, i, j) {
  a1 = Max(x, zero: f32[] {0.0})
  a = Min(a1, six: f32[] {6.0})
  b1 = Relu(x)
  b = Min(six, b1)
  c1 = Min(x, six)
  c = Max(c1, m: f32[1] {-1.0})
  d1 = Min(x, six)
  d = Relu(d1)
  e = Max(x, zero)
  f1 = Mul(x, t: f32[] {0.125})
  f = Max(f1, x)
  h = PRelu(x, slope: f32[16,1,1] {0.25})
  # none of these: bounds the wrong way round, another type, a slope above 1
  i1 = Max(x, six)
  i = Min(i1, m)
  j1 = Max(n, zi: i32[] {0})
  j = Min(j1, si: i32[] {6})
}
