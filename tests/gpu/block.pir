graph block (x: f16[4,64], z: f16[4,32]) -> (o) {
  g = f16[64] random 1
  w = f16[64,32] random 2
  e = f16[] {0.001}
  ax = i64[1] {-1}
  q = Mul(x, x)
  m = ReduceMean(q, ax)
  n = Add(m, e)
  s = Sqrt(n)
  h = Div(x, s)
  k = Mul(h, g)
  y = MatMul(k, w)
  o = Add(y, z)
}
