# pass: postopt
# Cubic interpolation as a product by a table along each axis.
pir 1 ir_version=8 opset=13
graph g (x: f32[1,2,3,4]) -> (y) {
  y = Resize(x, _, s: f32[4] {1.0, 1.0, 2.0, 3.0}) {mode="cubic", coordinate_transformation_mode="half_pixel"}
}
