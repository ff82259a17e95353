pir 1 ir_version=8 opset=13
graph g (z: f32[2,8]) -> (a, b, c, d, e, f, h, i, j, k, l) {
  small = f32[] {0.01}
  p2 = f32[] {2.0}
  p3 = f32[] {3.0}
  t = f32[] {0.044715}
  odd = f32[] {2.5}
  wide = f32[1,1,1] {2.0}
  x0 = Abs(z) : f32[2,8]
  x = Add(x0, small: f32[]) : f32[2,8]
  a = Mul(x, x) : f32[2,8] @ petopt_0
  petopt_1 = Mul(x, x) : f32[2,8] @ petopt_1
  b = Mul(petopt_1, x) : f32[2,8] @ petopt_2
  c = Sqrt(x) : f32[2,8] @ petopt_3
  d = Reciprocal(x) : f32[2,8] @ petopt_4
  petopt_5 = Sqrt(x) : f32[2,8] @ petopt_5
  e = Reciprocal(petopt_5) : f32[2,8] @ petopt_6
  petopt_7 = Mul(x, x) : f32[2,8] @ petopt_7
  f = Mul(petopt_7, petopt_7) : f32[2,8] @ petopt_8
  h = Mul(x, x) : f32[2,8] @ petopt_9
  i1 = Pow(x, p2: f32[]) : f32[2,8]
  i = ReduceMean(i1) {axes=[-1]} : f32[2,1]
  j1 = Pow(x, p3: f32[]) : f32[2,8]
  j = Mul(j1, t: f32[]) : f32[2,8]
  k = Pow(x, odd: f32[]) : f32[2,8]
  l = Pow(x, wide: f32[1,1,1]) : f32[1,2,8]
}
