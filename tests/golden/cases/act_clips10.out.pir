pir 1 ir_version=5 opset=10
graph g (x: f32[1,16,4,4]) -> (a, b) {
  t = f32[] {1.5}
  a = Clip(x) {min=0.0, max=6.0} : f32[1,16,4,4] @ petopt_0
  b1 = Mul(x, t: f32[]) : f32[1,16,4,4]
  b = Max(x, b1) : f32[1,16,4,4]
}
