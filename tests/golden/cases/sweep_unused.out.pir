pir 1 ir_version=10 opset=20
graph g (x: f32[4], unused: f32[4]) -> (y) {
  y = Relu(x)
}
