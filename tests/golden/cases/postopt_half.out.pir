pir 1 ir_version=8 opset=17
graph g (x: f16["N",4], i: i64["N"]) -> (y, z, u) {
  table = f16[3,4] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e+01, 11.0, 12.0}
  petopt_3 = f32[4,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}
  t = Gather(table: f16[3,4], i) {axis=0} : f16["N",4]
  petopt_0 = Cast(x) {to=1} : f32["N",4] @ petopt_0
  petopt_1 = Cast(t) {to=1} : f32["N",4] @ petopt_1
  petopt_2 = Add(petopt_0, petopt_1) : f32["N",4]
  petopt_4 = MatMul(petopt_2, petopt_3: f32[4,2]) : f32["N",2]
  petopt_5 = Transpose(petopt_4) {perm=[1, 0]} : f32[2,"N"]
  petopt_6 = Sigmoid(petopt_5) : f32[2,"N"]
  y = Cast(petopt_6) {to=10} : f16[2,"N"] @ petopt_9
  z = Exp(petopt_4) : f32["N",2]
  petopt_7 = Tanh(petopt_4) : f32["N",2]
  u = Cast(petopt_7) {to=10} : f16["N",2] @ petopt_8
}
