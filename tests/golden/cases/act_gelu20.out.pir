pir 1 ir_version=9 opset=20
graph g (x: f32[2,8]) -> (a, h) {
  a = Gelu(x) : f32[2,8] @ petopt_1
  h = Gelu(x) {approximate="tanh"} : f32[2,8] @ petopt_0
}
