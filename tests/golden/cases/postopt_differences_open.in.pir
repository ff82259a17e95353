# pass: postopt
# A convolution over nearest upsampling by four, of any size: what puts the products in place reads the size of the map.
pir 1 ir_version=8 opset=12
graph g (x: f32[N,32,H,W]) -> (y) {
  u = Resize(x, r: f32[0] {}, s: f32[4] {1.0, 1.0, 4.0, 4.0}) {mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"}
  y = Conv(u, w: f32[2,32,3,3] random 1, b: f32[2] random 2) {pads=[1,1,1,1]}
}
