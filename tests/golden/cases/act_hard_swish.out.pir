pir 1 ir_version=8 opset=13
graph g (in: f32[1,16,4,4]) -> (y, b, c) {
  w = f32[16,16,1,1] {0.0625}
  v = f32[16,16,1,1] {0.125}
  x = Conv(in, w: f32[16,16,1,1]) : f32[1,16,4,4]
  petopt_6 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_6
  petopt_9 = Mul(x, petopt_6) : f32[1,16,4,4]
  y = Conv(petopt_9, v: f32[16,16,1,1]) : f32[1,16,4,4]
  petopt_12 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_12
  b = Mul(petopt_12, x) : f32[1,16,4,4]
  petopt_15 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_15
  c = Mul(x, petopt_15) : f32[1,16,4,4]
}
