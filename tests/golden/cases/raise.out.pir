pir 1 ir_version=4 opset=18
graph g (x: f32[1,2,4,4], b: bool[]) -> (y, z) {
  s = f32[2] {0.5, 0.25}
  petopt_0 = f32[2,1,1] {0.5, 0.25}
  petopt_1 = i64[2] {1}
  petopt_2 = i64[2] {5}
  petopt_3 = i64[2] {2, 3}
  petopt_4 = f32[] {0.0}
  petopt_5 = f32[] {6.0}
  petopt_6 = i64[8] {0, 0, 1, 1, 0, 0, 1, 1}
  petopt_8 = i64[4] {1, 2, 4, 4}
  a = Add(x, petopt_0: f32[2,1,1]) : f32[1,2,4,4]
  c = Clip(a, petopt_4: f32[], petopt_5: f32[]) : f32[1,2,4,4]
  d = Pad(c, petopt_6: i64[8]) : f32[1,2,6,6]
  e = Slice(d, petopt_1: i64[2], petopt_2: i64[2], petopt_3: i64[2]) : f32[1,2,4,4]
  petopt_7 = Flatten(e) {axis=1} : f32[*] @ petopt_7
  petopt_9 = Softmax(petopt_7) {axis=1} : f32[*]
  y = Reshape(petopt_9, petopt_8: i64[4]) : f32[1,2,4,4] @ petopt_9
  z = If(b) {then_branch=graph then () -> (t) {
      petopt_11 = i64[1] {1}
      t = ReduceMean(e, petopt_11: i64[1]) {keepdims=0} : f32[1,4,4]
    }, else_branch=graph other () -> (u) {
      petopt_10 = i64[1] {1}
      v, w = Split(e) {axis=1, num_outputs=2} : f32[1,1,4,4], f32[1,1,4,4]
      u = Squeeze(v, petopt_10: i64[1]) : f32[1,4,4]
    }} : f32[1,4,4]
}
