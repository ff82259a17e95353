# pass: activations
# A slope for each channel behind a convolution stays in the blocked layout; elsewhere the operator
# stays.
pir 1 ir_version=8 opset=13
graph g (x: f32[1,4,6,6]) -> (y, z, v) {
  c = Conv(x, w: f32[16,4,1,1] random 1)
  y = PRelu(c, slope: f32[16,1,1] random 2)
  z = PRelu(x, other: f32[4,1,1] {0.1, 0.2, 0.3, 0.4})
  d = Conv(x, w)
  v = PRelu(d, good: f32[16,1,1] {0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4, 0.1, 0.2, 0.3, 0.4})
}
