# pass: raise 18
# One version at a time, bodies too: what a later version changes again is changed again.
pir 1 ir_version=3 opset=6
graph g (x: f32[1,2,4,4], s: f32[2] = f32[2] {0.5, 0.25}, b: bool[]) -> (y, z) {
  a = Add(x, s) {broadcast=1, axis=1}
  c = Clip(a) {min=0.0, max=6.0}
  d = Pad(c) {pads=[0, 0, 1, 1, 0, 0, 1, 1]}
  e = Slice(d) {starts=[1, 1], ends=[5, 5], axes=[2, 3]}
  y = Softmax(e)
  z = If(b) {
    then_branch=graph then () -> (t) { t = ReduceMean(e) {axes=[1], keepdims=0} },
    else_branch=graph other () -> (u) { v, w = Split(e) {axis=1}
      u = Squeeze(v) {axes=[1]} }
  }
}
