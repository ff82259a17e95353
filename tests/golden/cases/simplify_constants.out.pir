pir 1 ir_version=8 opset=17
graph g (x: f32[2], w: f32[2] = f32[2] {1.0, 2.0}) -> (y) {
  half = f32[] {0.5}
  scaled = Mul(w, half: f32[]) : f32[2]
  y = Add(x, scaled) : f32[2]
}
