pir 1 ir_version=8 opset=13
graph g (x: f32[1,16,4,4], n: i32[4]) -> (a, b, c, d, e, f, h, i, j) {
  six = f32[] {6.0}
  m = f32[1] {-1.0}
  zi = i32[] {0}
  si = i32[] {6}
  petopt_3 = f32[] {0.0}
  petopt_4 = f32[] {6.0}
  petopt_6 = f32[] {-1.0}
  petopt_7 = f32[] {6.0}
  petopt_9 = f32[] {0.0}
  petopt_10 = f32[] {6.0}
  petopt_12 = f32[] {0.0}
  petopt_13 = f32[] {6.0}
  a = Clip(x, petopt_12: f32[], petopt_13: f32[]) : f32[1,16,4,4] @ petopt_14
  b = Clip(x, petopt_9: f32[], petopt_10: f32[]) : f32[1,16,4,4] @ petopt_11
  c = Clip(x, petopt_6: f32[], petopt_7: f32[]) : f32[1,16,4,4] @ petopt_8
  d = Clip(x, petopt_3: f32[], petopt_4: f32[]) : f32[1,16,4,4] @ petopt_5
  e = Relu(x) : f32[1,16,4,4] @ petopt_2
  f = LeakyRelu(x) {alpha=0.125} : f32[1,16,4,4] @ petopt_1
  h = LeakyRelu(x) {alpha=0.25} : f32[1,16,4,4] @ petopt_0
  i1 = Max(x, six: f32[]) : f32[1,16,4,4]
  i = Min(i1, m: f32[1]) : f32[1,16,4,4]
  j1 = Max(n, zi: i32[]) : i32[4]
  j = Min(j1, si: i32[]) : i32[4]
}
