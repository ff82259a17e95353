# pass: activations
# Before opset 11 the bounds are attributes.
pir 1 ir_version=5 opset=10
graph g (x: f32[1,16,4,4]) -> (a, b) {
  a1 = Max(x, zero: f32[] {0.0})
  a = Min(a1, six: f32[] {6.0})
  b1 = Mul(x, t: f32[] {1.5})
  b = Max(x, b1)
}
