pir 1 ir_version=8 opset=13
graph g (x: f32[1,16,4,4]) -> (a, b, c) {
  petopt_10 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_10
  a = Mul(x, petopt_10) : f32[1,16,4,4]
  petopt_16 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_16
  b = Mul(petopt_16, x) : f32[1,16,4,4]
  petopt_7 = HardSigmoid(x) {alpha=0.16666667, beta=0.5} : f32[1,16,4,4] @ petopt_7
  c = Mul(x, petopt_7) : f32[1,16,4,4]
}
