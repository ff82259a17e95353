# pass: simplify
# A constant expression folds, an initialiser that callers may override does not; x * 1 goes.
pir 1 ir_version=8 opset=17
graph g (x: f32[2], w: f32[2] = f32[2] {1.0, 2.0}) -> (y) {
  two = Constant() {value_float=2.0}
  half = Div(two, four: f32[] {4.0})
  scaled = Mul(w, half)
  same = Mul(x, one: f32[] {1.0})
  y = Add(same, scaled)
}
