# pass: copy
# Every kind of attribute, type and tensor, as one may write them by hand.
pir 1 ir_version=8 opset=17 opset(com.microsoft)=1
graph all (x: f32[1,3,H,?], w: f32[2] = f32[2] {0.5, -0.0}, s: seq(f32[*]), m: map(i64, str[])) -> (y, x) {
  b = f32[4] {nan(0x7fc00001), inf, -inf, 0.1}
  splat = f16[2,3] {1.0}
  data = u8[3] random 5
  bits = c64[1] raw 0000803f 00000040
  t = Conv(x, _, b) {a=1.0, i=2, l=[1, -2], f=[0.5, 1e-3], none=floats [], s="a \"b\"\n"} : f32[1,4,H,?] @ "node 1"
  y, _ = com.microsoft::Odd:v2(t, data, flags: bool[3] {0, 1, 0}) {
    then_branch=graph then () -> (r) { r = Reshape(t, shape: i64[2] {1, -1}) },
    t=i4[3] {-8, 7, 0}, ts=[f32[] {1.0}, str[2] {"a", "b"}], p=param(1, alpha)
  }
  () = Sink(bits, splat, w, s, m)
}
