pir 1 ir_version=10 opset=20
graph g (x: f32["N",8,4,4]) -> (y, z) {
  i = i64[] {0}
  axes = i64[1] {0}
  rest = i64[1] {-1}
  s = Shape(x) : i64[4]
  n = Gather(s, i: i64[]) : i64[]
  n1 = Unsqueeze(n, axes: i64[1]) : i64[1]
  target = Concat(n1, rest: i64[1]) {axis=0} : i64[2]
  y = Reshape(x, target) : f32["N",128]
  a = Relu(x) : f32["N",8,4,4]
  z = Add(a, a) : f32["N",8,4,4]
}
