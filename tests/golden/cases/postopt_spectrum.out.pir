pir 1 ir_version=8 opset=17
graph g (x: f32["N","L"]) -> (y) {
  petopt_0 = f32[6,1,4] {1.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -2.0, 0.0, 0.0, -2.0, 0.0, 1.0, 1.0, -2.0, 2.0, -1.0, 0.0, 0.0, 0.0, 0.0}
  petopt_1 = i64[1] {1}
  petopt_5 = i64[4] {0, 0, 3, 2}
  petopt_2 = Unsqueeze(x, petopt_1: i64[1]) : f32["N",1,"L"] @ petopt_2
  petopt_3 = Conv(petopt_2, petopt_0: f32[6,1,4]) {kernel_shape=[4], strides=[3]} : f32["N",6,"(floor((L + 2)/3) - 1)"] @ petopt_3
  petopt_4 = Transpose(petopt_3) {perm=[0, 2, 1]} : f32["N","(floor((L + 2)/3) - 1)",6] @ petopt_4
  y = Reshape(petopt_4, petopt_5: i64[4]) : f32["N","(floor((L + 2)/3) - 1)",3,2] @ petopt_6
}
