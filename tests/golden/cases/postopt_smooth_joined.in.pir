# pass: postopt
# A part of joined maps was interpolated: a convolution of its own, smoothed behind, beside that of
# the rest.
pir 1 ir_version=8 opset=17
graph g (x: f32[1,64,40,44], z: f32[1,2,320,352]) -> (y) {
  u = Resize(x, _, s: f32[4] {1.0, 1.0, 8.0, 8.0}) {mode="linear", coordinate_transformation_mode="half_pixel"}
  k = Concat(u, z) {axis=1}
  y = Conv(k, w: f32[1,66,3,3] random 1, b: f32[1] {0.5}) {pads=[1,1,1,1]}
}
