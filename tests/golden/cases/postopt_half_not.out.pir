pir 1 ir_version=8 opset=17
graph g (x: f16["N",4]) -> (y, z) {
  y = Transpose(x) {perm=[1, 0]} : f16[4,"N"]
  z = Cast(x) {to=7} : i64["N",4]
}
