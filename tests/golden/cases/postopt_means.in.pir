# pass: postopt
# Means and pools before pointwise convolutions, ReduceMean as a pool.
pir 1 ir_version=8 opset=13
graph g (x: f32[1,4,6,6]) -> (y, z) {
  a = Conv(x, w: f32[8,4,3,3] random 1)
  b = Relu(a)
  c = Conv(b, v: f32[2,8,1,1] random 2, t: f32[2] random 3)
  y = AveragePool(c) {kernel_shape=[2,2], strides=[2,2]}
  z = ReduceMean(b) {axes=[2,3], keepdims=0}
}
