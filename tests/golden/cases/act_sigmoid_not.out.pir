pir 1 ir_version=8 opset=13
graph g (x: f32[2,8]) -> (a, b, c, d, d2) {
  one = f32[] {1.0}
  two = f32[] {2.0}
  first = i64[1] {0}
  last = i64[1] {-1}
  a2 = Exp(x) : f32[2,8]
  a3 = Add(a2, one: f32[]) : f32[2,8]
  a = Div(x, a3) : f32[2,8]
  b1 = Neg(x) : f32[2,8]
  b2 = Exp(b1) : f32[2,8]
  b3 = Add(b2, two: f32[]) : f32[2,8]
  b = Div(x, b3) : f32[2,8]
  c1 = Exp(x) : f32[2,8]
  c2 = ReduceSum(c1, first: i64[1]) : f32[1,8]
  c = Div(c1, c2) : f32[2,8]
  d1 = Exp(x) : f32[2,8]
  d2 = ReduceSum(d1, last: i64[1]) : f32[2,1]
  d = Div(d1, d2) : f32[2,8]
}
