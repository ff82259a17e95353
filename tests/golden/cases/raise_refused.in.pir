# pass: raise 18
pir 1 ir_version=8 opset=12
graph g (x: f32[*]) -> (y) {
  y = Softmax(x) @ "attention/softmax"
}
