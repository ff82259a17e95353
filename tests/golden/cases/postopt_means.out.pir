pir 1 ir_version=8 opset=13
graph g (x: f32[1,4,6,6]) -> (y, z) {
  petopt_4 = f32[16,4,3,3] hash 4f2c0706127ec90ef04b2a1228860a73
  petopt_5 = f32[2,16,1,1] {0.7880655, 1.434155, 1.4574859, -1.0303968, 1.2682765, -1.2191019, -0.8328434, 0.45125335, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -0.66576785, -0.090005435, -2.053116, -1.3415748, 0.8579271, -0.7723922, 0.34302858, 2.6069064, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}
  petopt_6 = f32[2] {-8.9874244e-05, 1.4117138}
  petopt_7 = i64[1] {0}
  petopt_8 = i64[1] {8}
  petopt_9 = i64[1] {1}
  a = Conv(x, petopt_4: f32[16,4,3,3]) : f32[1,16,4,4]
  b = Relu(a) : f32[1,16,4,4]
  petopt_0 = AveragePool(b) {kernel_shape=[2, 2], strides=[2, 2]} : f32[1,16,2,2] @ petopt_0
  y = Conv(petopt_0, petopt_5: f32[2,16,1,1], petopt_6: f32[2]) {kernel_shape=[1, 1]} : f32[1,2,2,2] @ petopt_1
  petopt_2 = GlobalAveragePool(b) : f32[1,16,1,1] @ petopt_2
  petopt_10 = Slice(petopt_2, petopt_7: i64[1], petopt_8: i64[1], petopt_9: i64[1]) : f32[1,8,1,1] @ petopt_10
  z = Flatten(petopt_10) : f32[1,8] @ petopt_3
}
