# pass: sweep
graph g (x: f32[4], unused: f32[4]) -> (y) {
  w = f32[4] {1.0, 2.0, 3.0, 4.0}
  dead = Mul(x, w)
  dead2 = Relu(dead)
  y = Relu(x)
}
