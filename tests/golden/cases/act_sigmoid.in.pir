# pass: activations
# Sigmoid, SiLU and quick GELU by exponentials and quotients; Softmax by its parts.
pir 1 ir_version=8 opset=13
graph g (x: f32[2,8]) -> (a, b, c, d, e, f, h) {
  a1 = Neg(x)
  a2 = Exp(a1)
  a3 = Add(a2, one: f32[] {1.0})
  a = Div(one, a3)
  b1 = Neg(x)
  b2 = Exp(b1)
  b3 = Add(one, b2)
  b4 = Reciprocal(b3)
  b = Mul(x, b4)
  c1 = Mul(x, m: f32[] {-1.0})
  c2 = Exp(c1)
  c3 = Add(c2, one)
  c = Div(x, c3)
  d1 = Mul(x, q: f32[] {-1.702})
  d2 = Exp(d1)
  d3 = Add(d2, one)
  d = Div(x, d3)
  e1 = Div(x, i: f32[] {0.5875})
  e2 = Sigmoid(e1)
  e = Mul(x, e2)
  f1 = ReduceMax(x) {axes=[-1]}
  f2 = Sub(x, f1)
  f3 = Exp(f2)
  f4 = ReduceSum(f3, last: i64[1] {-1})
  f = Div(f3, f4)
  h1 = Exp(x)
  h2 = ReduceSum(h1, last)
  h = Div(h1, h2)
}
