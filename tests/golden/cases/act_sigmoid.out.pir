pir 1 ir_version=8 opset=13
graph g (x: f32[2,8]) -> (a, b, c, d, e, f, h) {
  petopt_2 = f32[] {1.7021277}
  petopt_6 = f32[] {1.702}
  a = Sigmoid(x) : f32[2,8] @ petopt_13
  petopt_12 = Sigmoid(x) : f32[2,8] @ petopt_12
  b = Mul(x, petopt_12) : f32[2,8]
  petopt_10 = Sigmoid(x) : f32[2,8] @ petopt_10
  c = Mul(x, petopt_10) : f32[2,8] @ petopt_11
  petopt_7 = Mul(x, petopt_6: f32[]) : f32[2,8] @ petopt_7
  petopt_8 = Sigmoid(petopt_7) : f32[2,8] @ petopt_8
  d = Mul(x, petopt_8) : f32[2,8] @ petopt_9
  petopt_3 = Mul(x, petopt_2: f32[]) : f32[2,8] @ petopt_3
  petopt_4 = Sigmoid(petopt_3) : f32[2,8] @ petopt_4
  e = Mul(x, petopt_4) : f32[2,8] @ petopt_5
  f = Softmax(x) {axis=-1} : f32[2,8] @ petopt_1
  h = Softmax(x) {axis=-1} : f32[2,8] @ petopt_0
}
