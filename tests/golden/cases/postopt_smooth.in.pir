# pass: postopt
# A convolution of a map that was interpolated by eight: of the small map and its differences, then
# smoothed; the lines at the edges as they were made.
pir 1 ir_version=8 opset=17
graph g (x: f32[1,64,40,44]) -> (y) {
  u = Resize(x, _, s: f32[4] {1.0, 1.0, 8.0, 8.0}) {mode="linear", coordinate_transformation_mode="pytorch_half_pixel"}
  y = Conv(u, w: f32[1,64,3,3] random 1, b: f32[1] {0.5}) {pads=[1,1,1,1]}
}
