# pass: postopt
# A complex signal, a frame of which the length is not known, and a long one of a power of two.
pir 1 ir_version=8 opset=17
graph g (x: f32[1,9,2], r: f32[1,2048], n: i64[]) -> (y, z, u) {
  y = STFT(x, s: i64[] {3}, _, k: i64[] {4})
  z = STFT(r, s, _, n)
  u = STFT(r, s, _, m: i64[] {1024})
}
