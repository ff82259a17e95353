# pass: postopt
# Tokens as a map, made larger, joined with two others, mixed: products over the channels of the
# small map, the mixes before it is made larger, composed.
pir 1 ir_version=8 opset=17
graph g (x: f32[1,6,40], a: f32[1,3,8,12], b: f32[1,36,4,6]) -> (y) {
  m = MatMul(x, w: f32[40,48] random 1)
  d = Add(m, c: f32[48] random 2)
  t = Transpose(d) {perm=[0,2,1]}
  r = Reshape(t, s: i64[4] {1, 48, 2, 3})
  u = Resize(r, _, _, q: i64[4] {1, 48, 8, 12}) {mode="linear", coordinate_transformation_mode="pytorch_half_pixel"}
  v = Resize(b, _, _, p: i64[4] {1, 36, 8, 12}) {mode="linear", coordinate_transformation_mode="align_corners"}
  k = Concat(u, a, v) {axis=1}
  y = Conv(k, e: f32[4,87,1,1] random 3, f: f32[4] random 4)
}
