/* Pairs that differ at few sizes only, each at what one obligation of the proof for every size
 * looks at: lengths beyond those that are tried, lengths below them, remainders. */
#include "size_pairs.h"

/* 1 from five tokens on, and from four on; both taken off their number. */
#define ONES                                                                                       \
    COUNT " o = Identity(ol: i64[1] {1})\n z = Identity(zl: i64[1] {0})\n"                         \
          " big = Identity(bl: i64[1] {9223372036854775807})\n v = Unsqueeze(n, z)\n"              \
          " a5 = Add(v, k5: i64[1] {99999995})\n q5 = Div(a5, k: i64[1] {100000000})\n"            \
          " a4 = Add(v, k4: i64[1] {99999996})\n q4 = Div(a4, k)\n"                                \
          " t5 = Sub(v, q5)\n t = Sub(t5, q4)\n"
/* q: the first million of tokens, by the least of two numbers. */
#define MILLION                                                                                    \
    COUNT " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n"                                  \
          " e = Min(v, k: i64[1] {1000000})\n q = Slice(x, z, e, o: i64[1] {1})\n"
#define ROW "x: f32[1,\"T\",6]"

const size_pair size_planted[] = {
    {"a polynomial of the length that is 0 at 8, 17 and 33", ROW, "y = Identity(x)",
     "u = Add(x, o: f32[] {1.0})\n a = ReduceSum(u, k: i64[1] {1})\n b = ReduceSum(x, k)\n"
     " n = Sub(a, b)\n p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of quotients", ROW, "y = Identity(x)",
     "v = Div(o: f32[] {1.0}, x)\n u = Mul(x, v)\n n = ReduceSum(u, k: i64[1] {1})\n"
     " p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of squares", ROW, "y = Identity(x)",
     "u = Add(x, o: f32[] {1.0})\n a = ReduceSumSquare(u) {axes=[1]}\n"
     " b = ReduceSumSquare(x) {axes=[1]}\n c = ReduceSum(x, k: i64[1] {1})\n d = Sub(a, b)\n"
     " c2 = Add(c, c)\n n = Sub(d, c2)\n p = Sub(n, e: f32[] {8.0})\n"
     " q = Sub(n, f: f32[] {17.0})\n r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n"
     " pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of a softmax of nothing", ROW, "y = Identity(x)",
     "u = Sub(x, x)\n a = Softmax(u) {axis=1}\n n = Div(o: f32[] {1.0}, a)\n"
     " p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of a sum of exponentials", ROW, "y = Identity(x)",
     "u = Sub(x, x)\n h = Exp(u)\n n = ReduceL1(h) {axes=[1]}\n"
     " p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"as many tokens as are tried", ROW, "y = ReduceSum(x, k: i64[1] {1})",
     "m = ReduceMean(x) {axes=[1]}\n y = Mul(m, h: f32[] {33.0})"},
    {"a beginning that is another for four tokens", ROW,
     ONES " p = Slice(x, q5, big, o)\n y = Slice(p, z, t, o)",
     ONES " p = Slice(x, q4, big, o)\n y = Slice(p, z, t, o)"},
    {"a sum of the first million", TOKENS, "y = ReduceSum(x, k: i64[1] {1})",
     MILLION " y = ReduceSum(q, o)"},
    {"a mean of the first million", TOKENS, "y = ReduceMean(x) {axes=[1]}",
     MILLION " y = ReduceMean(q) {axes=[1]}"},
    {"the largest of the first million", TOKENS, "y = ReduceMax(x) {axes=[1]}",
     MILLION " y = ReduceMax(q) {axes=[1]}"},
    {"a token that attends to the first million", TOKENS,
     "t = Transpose(x) {perm=[0,2,1]}\n c = Gather(x, z: i64[1] {0}) {axis=1}\n"
     " q = MatMul(c, t)\n y = MatMul(q, x)",
     MILLION " t = Transpose(q) {perm=[0,2,1]}\n c = Gather(x, z) {axis=1}\n"
             " r = MatMul(c, t)\n y = MatMul(r, q)"},
    {"a softmax of the first million", TOKENS,
     "p = Softmax(x) {axis=1}\n m = Mul(p, x)\n y = ReduceMax(m) {axes=[1]}",
     MILLION " p = Softmax(q) {axis=1}\n m = Mul(p, q)\n y = ReduceMax(m) {axes=[1]}"},
};
const uint32_t n_size_planted = sizeof size_planted / sizeof *size_planted;
