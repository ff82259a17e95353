# pass: postopt
# Half precision worked in float: one cast where a value comes in and one where it leaves; a table
# stays in half precision, and what moves a value that comes in; casts of the model go where they
# meet one.
pir 1 ir_version=8 opset=17
graph g (x: f16["N",4], i: i64["N"]) -> (y, z, u) {
  t = Gather(table: f16[3,4] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0}, i) {axis=0}
  s = Add(x, t)
  p = MatMul(s, w: f16[4,2] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0})
  q = Transpose(p) {perm=[1, 0]}
  y = Sigmoid(q)
  f = Cast(p) {to=1}
  z = Exp(f)
  h = Cast(f) {to=10}
  u = Tanh(h)
}
