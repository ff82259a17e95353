pir 1 ir_version=8 opset=17
graph g (x: f32[2,5,8]) -> (a, b, c, d, e, f) {
  gain = f32[8] {0.81367606, -0.77443665, -1.3993616, 1.0826283, -0.39422473, -0.16226733, -0.2361222, 1.1527083}
  shift = f32[8] {0.7880655, 1.434155, 1.4574859, -1.0303968, 1.2682765, -1.2191019, -0.8328434, 0.45125335}
  petopt_1 = f32[8] {-8.9874244e-05, 1.4117138, 0.2549794, 0.7781736, -0.35564622, -0.6506525, 0.87534666, 1.1220396}
  petopt_2 = f32[8] {0.0}
  petopt_4 = f32[8] {1.0}
  petopt_5 = f32[8] {0.0}
  petopt_9 = f32[8] {1.0}
  petopt_11 = f32[] {2.0}
  petopt_14 = f32[] {1e-05}
  petopt_19 = f32[] {2.0}
  petopt_22 = f32[] {1e-05}
  a = LayerNormalization(x, gain: f32[8], shift: f32[8]) {axis=-1, epsilon=1e-05} : f32[2,5,8] @ petopt_0
  b = LayerNormalization(x, petopt_1: f32[8], petopt_2: f32[8]) {axis=-1, epsilon=1e-05} : f32[2,5,8] @ petopt_3
  c = LayerNormalization(x, petopt_4: f32[8], petopt_5: f32[8]) {axis=-1, epsilon=1e-05} : f32[2,5,8] @ petopt_6
  d = LayerNormalization(x, gain: f32[8], shift: f32[8]) {axis=-1, epsilon=1e-05} : f32[2,5,8] @ petopt_7
  petopt_12 = Pow(x, petopt_11: f32[]) : f32[2,5,8] @ petopt_12
  petopt_13 = ReduceMean(petopt_12) {axes=[2], keepdims=1} : f32[*] @ petopt_13
  petopt_15 = Add(petopt_13, petopt_14: f32[]) : f32[*] @ petopt_15
  petopt_16 = Sqrt(petopt_15) : f32[*] @ petopt_16
  petopt_17 = Div(x, petopt_16) : f32[2,5,8] @ petopt_17
  e = Mul(petopt_17, gain: f32[8]) : f32[2,5,8] @ petopt_18
  petopt_20 = Pow(x, petopt_19: f32[]) : f32[2,5,8] @ petopt_20
  petopt_21 = ReduceMean(petopt_20) {axes=[2], keepdims=1} : f32[*] @ petopt_21
  petopt_23 = Add(petopt_21, petopt_22: f32[]) : f32[*] @ petopt_23
  petopt_24 = Sqrt(petopt_23) : f32[*] @ petopt_24
  petopt_25 = Div(x, petopt_24) : f32[2,5,8] @ petopt_25
  f = Mul(petopt_25, petopt_9: f32[8]) : f32[2,5,8] @ petopt_26
}
