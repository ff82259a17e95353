# pass: activations
# A growing exponential, 2 for 1, a sum over another axis, a sum that is read elsewhere, integers
# left alone.
pir 1 ir_version=8 opset=13
graph g (x: f32[2,8]) -> (a, b, c, d, d2) {
  a2 = Exp(x)
  a3 = Add(a2, one: f32[] {1.0})
  a = Div(x, a3)
  b1 = Neg(x)
  b2 = Exp(b1)
  b3 = Add(b2, two: f32[] {2.0})
  b = Div(x, b3)
  c1 = Exp(x)
  c2 = ReduceSum(c1, first: i64[1] {0})
  c = Div(c1, c2)
  d1 = Exp(x)
  d2 = ReduceSum(d1, last: i64[1] {-1})
  d = Div(d1, d2)
}
