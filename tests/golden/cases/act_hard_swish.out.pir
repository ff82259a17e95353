pir 1 ir_version=8 opset=13
graph g (in: f32[1,16,4,4]) -> (y, b, c) {
  w = f32[16,16,1,1] {0.0625}
  v = f32[16,16,1,1] {0.125}
  x = Conv(in, w: f32[16,16,1,1]) : f32[1,16,4,4]
  petopt_7 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_7
  petopt_10 = Mul(x, petopt_7) : f32[1,16,4,4]
  y = Conv(petopt_10, v: f32[16,16,1,1]) : f32[1,16,4,4]
  petopt_13 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_13
  b = Mul(petopt_13, x) : f32[1,16,4,4]
  petopt_16 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_16
  c = Mul(x, petopt_16) : f32[1,16,4,4]
}
