pir 1 ir_version=8 opset=17
graph g (x: f32[1,9,2], r: f32[1,2048], n: i64[]) -> (y, z, u) {
  s = i64[] {3}
  k = i64[] {4}
  m = i64[] {1024}
  y = STFT(x, s: i64[], _, k: i64[]) : f32[1,2,3,2]
  z = STFT(r, s: i64[], _, n) : f32[1,?,?,2]
  u = STFT(r, s: i64[], _, m: i64[]) : f32[1,342,513,2]
}
