# pass: postopt
# Products of tokens, a norm, a residual sum; a matrix that is used twice is stored once.
pir 1 ir_version=8 opset=17
graph g (x: f32[1,3,16]) -> (y, z) {
  n = LayerNormalization(x, s: f32[16] random 1, b: f32[16] random 2) {axis=-1}
  m = MatMul(n, v: f32[16,32] random 3)
  a = Add(m, p: f32[32] random 4)
  r = Relu(a)
  o = MatMul(r, w: f32[32,16] random 5)
  y = Add(x, o)
  z = MatMul(x, v)
}
