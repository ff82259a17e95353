# pass: postopt
# Nothing here works on numbers of half precision: moves alone, and a cast to what is not float.
pir 1 ir_version=8 opset=17
graph g (x: f16["N",4]) -> (y, z) {
  y = Transpose(x) {perm=[1, 0]}
  z = Cast(x) {to=7}
}
