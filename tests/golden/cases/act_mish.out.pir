pir 1 ir_version=8 opset=13
graph g (x: f32[2,8]) -> (a, b, c, d) {
  petopt_2 = f32[] {2e+01}
  petopt_5 = f32[] {2.0}
  petopt_8 = f32[] {2.0}
  petopt_12 = f32[] {2e+01}
  petopt_15 = f32[] {2.0}
  petopt_18 = f32[] {2.0}
  petopt_3 = Clip(x, _, petopt_2: f32[]) : f32[2,8] @ petopt_3
  petopt_4 = Exp(petopt_3) : f32[2,8] @ petopt_4
  petopt_6 = Add(petopt_4, petopt_5: f32[]) : f32[2,8] @ petopt_6
  petopt_7 = Mul(petopt_4, petopt_6) : f32[2,8] @ petopt_7
  petopt_9 = Add(petopt_7, petopt_8: f32[]) : f32[2,8] @ petopt_9
  petopt_10 = Div(petopt_7, petopt_9) : f32[2,8] @ petopt_10
  a = Mul(x, petopt_10) : f32[2,8] @ petopt_11
  petopt_13 = Clip(x, _, petopt_12: f32[]) : f32[2,8] @ petopt_13
  petopt_14 = Exp(petopt_13) : f32[2,8] @ petopt_14
  petopt_16 = Add(petopt_14, petopt_15: f32[]) : f32[2,8] @ petopt_16
  petopt_17 = Mul(petopt_14, petopt_16) : f32[2,8] @ petopt_17
  petopt_19 = Add(petopt_17, petopt_18: f32[]) : f32[2,8] @ petopt_19
  petopt_20 = Div(petopt_17, petopt_19) : f32[2,8] @ petopt_20
  b = Mul(x, petopt_20) : f32[2,8] @ petopt_21
  c = Softplus(x) : f32[2,8]
  d1 = Softplus(c) : f32[2,8]
  d2 = Tanh(d1) : f32[2,8]
  d = Mul(x, d2) : f32[2,8]
}
