# pass: postopt
# Hard-swish by Min and Max, by Relu, and divided first: all become the gate.
pir 1 ir_version=8 opset=13
graph g (in: f32[1,16,4,4]) -> (y, b, c) {
  x = Conv(in, w: f32[16,16,1,1] {0.0625})
  a1 = Add(x, three: f32[] {3.0})
  a2 = Max(a1, zero: f32[] {0.0})
  a3 = Min(a2, six: f32[] {6.0})
  a4 = Mul(x, a3)
  a = Div(a4, six)
  y = Conv(a, v: f32[16,16,1,1] {0.125})
  b1 = Add(x, three)
  b2 = Relu(b1)
  b3 = Min(b2, six)
  b4 = Div(b3, six)
  b = Mul(b4, x)
  c1 = Add(three, x)
  c2 = Clip(c1, zero, six)
  c3 = Mul(c2, i: f32[] {0.16666667})
  c = Mul(x, c3)
}
