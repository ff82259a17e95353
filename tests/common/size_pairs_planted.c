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
/* The same of rows: e is the least of rows and a million, w of rows and columns, b all whole
 * eights. */
#define CUTS                                                                                       \
    ROWS " z = Identity(zl: i64[1] {0})\n two = Identity(tl: i64[1] {2})\n"                        \
         " v = Unsqueeze(n, z)\n e = Min(v, k: i64[1] {1000000})\n"                                \
         " d8 = Div(v, eight: i64[1] {8})\n b = Mul(d8, eight)\n"
/* m: 1 from 64 tokens on, below it 0. */
#define BEYOND                                                                                     \
    COUNT " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n o = Identity(ol: i64[1] {1})\n"   \
          " m0 = Div(v, k0: i64[1] {64})\n m = Min(m0, o)\n"
/* h: the first token where there are more than 63, none else. */
#define HIDDEN BEYOND " h = Slice(x, z, m, o)\n"
#define BOTH   "x: f32[1,\"T\",6], p: f32[1,\"P\",6]"
#define ROW    "x: f32[1,\"T\",6]"

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
    {"the same of a sum over a mean", ROW, "y = Identity(x)",
     "a = ReduceSum(x, k: i64[1] {1})\n b = ReduceMean(x) {axes=[1]}\n n = Div(a, b)\n"
     " p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of what is repeated", ROW, "y = Identity(x)",
     "s = Shape(x)\n h = Gather(x, k: i64[1] {0}) {axis=1}\n u = Expand(h, s)\n"
     " a = ReduceSumSquare(u) {axes=[1]}\n b = Mul(h, h)\n n = Div(a, b)\n"
     " p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of what is repeated, added up", ROW, "y = Identity(x)",
     "s = Shape(x)\n h = Gather(x, k: i64[1] {0}) {axis=1}\n u = Expand(h, s)\n"
     " a = ReduceSum(u, o: i64[1] {1})\n n = Div(a, h)\n"
     " p = Sub(n, e: f32[] {8.0})\n q = Sub(n, f: f32[] {17.0})\n"
     " r = Sub(n, g: f32[] {33.0})\n pq = Mul(p, q)\n pqr = Mul(pq, r)\n y = Add(x, pqr)"},
    {"the same of what is repeated, in a softmax", ROW, "y = Identity(x)",
     "s = Shape(x)\n h = Gather(x, k: i64[1] {0}) {axis=1}\n u = Expand(h, s)\n"
     " a = Softmax(u) {axis=1}\n n = Div(o: f32[] {1.0}, a)\n"
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
    {"a triangle that is a square from five tokens on", "x: f32[6,6], t: f32[1,\"T\",6]",
     "m = ReduceMax(t) {axes=[1]}\n y = Add(x, m)",
     " s = Shape(t)\n n = Gather(s, one: i64[] {1}) {axis=0}\n r = Trilu(x, n) {upper=0}\n"
     " m = ReduceMax(t) {axes=[1]}\n y = Add(r, m)"},
    {"a channel by the length", ROW, "y = Gather(x, z: i64[1] {0}) {axis=2}",
     BEYOND " y = Gather(x, m) {axis=2}"},
    {"two channels, the second by the length", ROW, "y = Gather(x, z: i64[2] {0,1}) {axis=2}",
     BEYOND " r = Add(m, o)\n i = Concat(z, r) {axis=0}\n y = Gather(x, i) {axis=2}"},
    {"three channels, the last by the length", ROW, "y = Gather(x, z: i64[3] {0,2,1}) {axis=2}",
     BEYOND " r = Add(m, o)\n i = Concat(z, t: i64[1] {2}, r) {axis=0}\n"
            " y = Gather(x, i) {axis=2}"},
    {"two channels from one by the length", ROW,
     "y = Slice(x, a: i64[1] {0}, b: i64[1] {2}, c: i64[1] {2})",
     BEYOND " e = Add(m, t: i64[1] {2})\n y = Slice(x, m, e, t)"},
    {"a filter by the length", "x: f32[1,3,\"H\",8]", "y = Conv(x, w: f32[4,3,1,1] random 1)",
     ROWS " m0 = Div(n, k0: i64[] {4096})\n m = Min(m0, o: i64[] {1})\n"
          " t = Gather(v: f32[2,4,3,1,1] random 1, m) {axis=0}\n y = Conv(x, t)"},
    {"a triangle behind the millionth token", ROW,
     "t = Transpose(x) {perm=[0,2,1]}\n y = MatMul(x, t)",
     "t = Transpose(x) {perm=[0,2,1]}\n q = MatMul(x, t)\n y = Trilu(q, k: i64[] {1000000}) "
     "{upper=0}"},
    {"a sum so far of the first million", ROW,
     "c = CumSum(x, a: i64[] {1})\n y = ReduceMax(c) {axes=[1]}",
     MILLION " c = CumSum(q, a: i64[] {1})\n y = ReduceMax(c) {axes=[1]}"},
    {"a cache of the first million", BOTH,
     "c = Concat(p, x) {axis=1}\n t = Transpose(c) {perm=[0,2,1]}\n a = MatMul(x, t)\n"
     " r = Softmax(a) {axis=-1}\n y = MatMul(r, c)",
     MILLION " c = Concat(p, q) {axis=1}\n t = Transpose(c) {perm=[0,2,1]}\n a = MatMul(x, t)\n"
             " r = Softmax(a) {axis=-1}\n y = MatMul(r, c)"},
    {"a cache behind what it is put before", BOTH,
     "c = Concat(p, x) {axis=1}\n y = ReduceMax(c) {axes=[1]}",
     MILLION " g = Slice(x, e, k9: i64[1] {9223372036854775807}, o)\n"
             " c = Concat(g, p, q) {axis=1}\n y = ReduceMax(q) {axes=[1]}"},
    {"no more tokens than in a cache", BOTH, "y = ReduceMax(x) {axes=[1]}",
     COUNT " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n u = Shape(p)\n"
           " o = Identity(ol: i64[1] {1})\n m = Gather(u, o) {axis=0}\n e = Min(v, m)\n"
           " q = Slice(x, z, e, o)\n y = ReduceMax(q) {axes=[1]}"},
    {"heads of the first million", ROW,
     "h = Reshape(x, s: i64[4] {0,0,2,3})\n a = Transpose(h) {perm=[0,2,1,3]}\n"
     " t = Transpose(h) {perm=[0,2,3,1]}\n c = MatMul(t, a)\n y = Softmax(c) {axis=-1}",
     MILLION " h = Reshape(q, s2: i64[4] {0,0,2,3})\n a = Transpose(h) {perm=[0,2,1,3]}\n"
             " t = Transpose(h) {perm=[0,2,3,1]}\n c = MatMul(t, a)\n y = Softmax(c) {axis=-1}"},
    {"the norm of the first million", ROW, "y = ReduceL2(x) {axes=[1]}",
     MILLION " y = ReduceL2(q) {axes=[1]}"},
    {"the least of the first million", ROW, "y = ReduceMin(x) {axes=[1]}",
     MILLION " y = ReduceMin(q) {axes=[1]}"},
    {"the first million in another order", ROW, "y = ReduceMax(x) {axes=[1]}",
     MILLION " r = Slice(x, e, k9: i64[1] {9223372036854775807}, o)\n"
             " c = Concat(r, q) {axis=1}\n h = Slice(c, z, e, o)\n y = ReduceMax(h) {axes=[1]}"},
    {"the first million backwards", ROW, "y = ReduceMax(x) {axes=[1]}",
     MILLION " r = Slice(q, j: i64[1] {-1}, l: i64[1] {-9223372036854775807}, o,"
             " st: i64[1] {-1})\n y = ReduceMax(r) {axes=[1]}"},
    {"what a token is made larger to, at most a million", ROW,
     "c = Gather(x, o: i64[1] {0}) {axis=1}\n s = Shape(x)\n r = Expand(c, s)\n"
     " m = Mul(r, r)\n y = ReduceSum(m, k: i64[1] {1})",
     COUNT " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n o = Identity(ol: i64[1] {1})\n"
           " e = Min(v, k: i64[1] {1000000})\n h = Concat(o, e, six: i64[1] {6}) {axis=0}\n"
           " c = Gather(x, z) {axis=1}\n r = Expand(c, h)\n m = Mul(r, r)\n y = ReduceSum(m, o)"},
    {"the first million rows", MAPS, "y = GlobalMaxPool(x)",
     CUTS " q = Slice(x, z, e, two)\n y = GlobalMaxPool(q)"},
    {"a mean of the first million rows", MAPS, "y = ReduceMean(x) {axes=[2,3]}",
     CUTS " q = Slice(x, z, e, two)\n y = ReduceMean(q) {axes=[2,3]}"},
    {"a sum of the first million rows", MAPS, "y = ReduceSum(x, k: i64[2] {2,3})",
     CUTS " q = Slice(x, z, e, two)\n y = ReduceSum(q, k2: i64[2] {2,3})"},
    {"a softmax of the first million rows", MAPS,
     "r = Softmax(x) {axis=2}\n y = ReduceMax(r) {axes=[2,3]}",
     CUTS " q = Slice(x, z, e, two)\n r = Softmax(q) {axis=2}\n y = ReduceMax(r) {axes=[2,3]}"},
    {"windows of the first million rows", MAPS,
     "c = Conv(x, f: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n y = ReduceMax(c) {axes=[2,3]}",
     CUTS " q = Slice(x, z, e, two)\n c = Conv(q, f: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n"
          " y = ReduceMax(c) {axes=[2,3]}"},
    {"windows over windows of the first million rows", MAPS,
     "c = MaxPool(x) {kernel_shape=[3,3],pads=[1,1,1,1]}\n"
     " d = MaxPool(c) {kernel_shape=[3,3],pads=[1,1,1,1]}\n y = ReduceMax(d) {axes=[2,3]}",
     CUTS " q = Slice(x, z, e, two)\n c = MaxPool(q) {kernel_shape=[3,3],pads=[1,1,1,1]}\n"
          " d = MaxPool(c) {kernel_shape=[3,3],pads=[1,1,1,1]}\n y = ReduceMax(d) {axes=[2,3]}"},
    {"a product of the first million rows", MAPS,
     "t = Transpose(x) {perm=[0,1,3,2]}\n y = MatMul(t, x)",
     CUTS " q = Slice(x, z, e, two)\n t = Transpose(q) {perm=[0,1,3,2]}\n y = MatMul(t, q)"},
    {"no more samples than tokens", TOKENS, "y = ReduceMax(x) {axes=[0]}",
     COUNT " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n b = Gather(s, z) {axis=0}\n"
           " w = Min(b, v)\n q = Slice(x, z, w, z)\n y = ReduceMax(q) {axes=[0]}"},
    {"rows in eights", MAPS, "y = GlobalMaxPool(x)",
     CUTS " q = Slice(x, z, b, two)\n y = GlobalMaxPool(q)"},
    {"even rows, dilated", MAPS,
     "y = Conv(x, f: f32[4,3,3,3] random 1) {pads=[2,2,2,2],strides=[2,2],dilations=[2,2]}",
     "y = Conv(x, f: f32[4,3,3,3] random 1) {pads=[2,2,1,1],strides=[2,2],dilations=[2,2]}"},
    {"even rows, by groups", MAPS,
     "y = Conv(x, f: f32[3,1,3,3] random 1) {pads=[1,1,1,1],strides=[2,2],group=3}",
     "y = Conv(x, f: f32[3,1,3,3] random 1) {pads=[1,1,0,0],strides=[2,2],group=3}"},
    {"even rows of a maximum", MAPS,
     "y = MaxPool(x) {kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]}",
     "y = MaxPool(x) {kernel_shape=[3,3],strides=[2,2],pads=[1,1,0,0]}"},
    {"thirds of rows", "x: f32[1,3,\"H\",12]",
     "y = Conv(x, f: f32[4,3,3,3] random 1) {strides=[3,3]}",
     "y = Conv(x, f: f32[4,3,3,3] random 1) {pads=[0,0,1,0],strides=[3,3]}"},
    {"sixteenths of rows", MAPS, "y = Conv(x, f: f32[4,3,16,16] random 1) {strides=[16,16]}",
     "y = Conv(x, f: f32[4,3,16,16] random 1) {pads=[0,0,15,15],strides=[16,16]}"},
    {"half of what is twice as large", MAPS, "y = Identity(x)",
     "d = MaxPool(x) {kernel_shape=[2,2],strides=[2,2]}\n m = Sub(d, d)\n"
     " r = Resize(m, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}\n y = Add(x, r)"},
    {"a map that is larger by two from five rows on", "x: f32[1,3,\"H\",8]",
     ROWS " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n d = Add(v, v)\n"
          " a = Add(v, k5: i64[1] {99999995})\n q = Div(a, k: i64[1] {100000000})\n"
          " e = Add(d, q)\n g = Concat(o: i64[1] {1}, t: i64[1] {3}, e, l: i64[1] {16}) {axis=0}\n"
          " y = Resize(x, _, _, g) {mode=\"nearest\",coordinate_transformation_mode=\"asymmetric\","
          "nearest_mode=\"floor\"}",
     ROWS " z = Identity(zl: i64[1] {0})\n v = Unsqueeze(n, z)\n d = Add(v, v)\n"
          " a = Add(v, k4: i64[1] {99999995})\n q = Div(a, k: i64[1] {100000000})\n"
          " e = Add(d, q)\n g = Concat(o: i64[1] {1}, t: i64[1] {3}, e, l: i64[1] {16}) {axis=0}\n"
          " r = Resize(x, _, _, g) {mode=\"nearest\",coordinate_transformation_mode=\"asymmetric\","
          "nearest_mode=\"ceil\"}\n y = Identity(r)"},
    {"one more than a hundred thousand tokens", ROW, "y = Identity(x)",
     COUNT " g = Greater(n, k: i64[] {200000})\n f = Cast(g) {to=1}\n y = Add(x, f)"},
    {"the mean of what is 0 behind a million", ROW, "y = ReduceMean(x) {axes=[1]}",
     MILLION " g = Sub(v, e)\n c = Concat(z, z, z, z, g, z) {axis=0}\n p = Pad(q, c)\n"
             " y = ReduceMean(p) {axes=[1]}"},
    {"lots drawn twice", ROW, "r = RandomNormalLike(x)\n y = Sub(r, r)",
     "r = RandomNormalLike(x)\n q = RandomNormalLike(x)\n y = Sub(r, q)"},
    {"another input", "x: f32[1,\"T\",6], p: f32[1,\"T\",6]", "y = Relu(x)", "y = Relu(p)"},
    {"a constant beside it", ROW, "y = Add(x, c: f32[6] random 1)",
     "y = Add(x, c: f32[6] random 2)"},
    {"another attribute", ROW, "y = LeakyRelu(x) {alpha=0.25}", "y = LeakyRelu(x) {alpha=0.5}"},
    {"another constant behind 63 tokens", ROW,
     BEYOND " g = Slice(t: f32[1,2,6] random 1, z, m, o)\n y = Concat(x, g) {axis=1}",
     BEYOND " g = Slice(t: f32[1,2,6] random 2, z, m, o)\n y = Concat(x, g) {axis=1}"},
    {"another attribute behind 63 tokens", ROW,
     HIDDEN " g = LeakyRelu(h) {alpha=0.25}\n y = Concat(x, g) {axis=1}",
     HIDDEN " g = LeakyRelu(h) {alpha=0.5}\n y = Concat(x, g) {axis=1}"},
    {"another input behind 63 tokens", "x: f32[1,\"T\",6], p: f32[1,\"T\",6]",
     BEYOND " g = Slice(x, z, m, o)\n y = Concat(x, g, p) {axis=1}",
     BEYOND " g = Slice(p, z, m, o)\n y = Concat(x, g, p) {axis=1}"},
    {"other lots behind 63 tokens", ROW,
     HIDDEN " r = RandomNormalLike(h)\n g = Sub(r, r)\n y = Concat(x, g) {axis=1}",
     HIDDEN " r = RandomNormalLike(h)\n q = RandomNormalLike(h)\n g = Sub(r, q)\n"
            " y = Concat(x, g) {axis=1}"},
    {"another shape behind 63 tokens", ROW,
     HIDDEN " g = Reshape(h, q: i64[4] {0,0,2,3})\n r = Softmax(g) {axis=-1}\n"
            " l = Reshape(r, q2: i64[3] {0,0,6})\n y = Concat(x, l) {axis=1}",
     HIDDEN " g = Reshape(h, q: i64[4] {0,0,3,2})\n r = Softmax(g) {axis=-1}\n"
            " l = Reshape(r, q2: i64[3] {0,0,6})\n y = Concat(x, l) {axis=1}"},
    {"made larger otherwise behind 63 tokens", ROW,
     HIDDEN " q = Concat(t: i64[1] {2}, o, o) {axis=0}\n g = Expand(h, q)\n r = ReduceSum(g, z)\n"
            " y = Concat(x, r) {axis=1}",
     HIDDEN " q = Concat(t: i64[1] {3}, o, o) {axis=0}\n g = Expand(h, q)\n r = ReduceSum(g, z)\n"
            " y = Concat(x, r) {axis=1}"},
    {"made larger or not behind 63 tokens", ROW,
     HIDDEN " q = Concat(t: i64[1] {2}, o, o) {axis=0}\n g = Expand(h, q)\n r = ReduceSum(g, z)\n"
            " y = Concat(x, r) {axis=1}",
     HIDDEN " r = ReduceSum(h, z)\n y = Concat(x, r) {axis=1}"},
    {"a sum behind 63 tokens", ROW,
     HIDDEN " a = ReduceSum(x, o)\n g = Mul(h, c: f32[] {2.0})\n b = ReduceSum(g, o)\n"
            " y = Add(a, b)",
     HIDDEN " a = ReduceSum(x, o)\n g = Mul(h, c: f32[] {3.0})\n b = ReduceSum(g, o)\n"
            " y = Add(a, b)"},
    {"a product behind 63 tokens", ROW,
     HIDDEN " t = Transpose(h) {perm=[0,2,1]}\n a = MatMul(t, h)\n b = ReduceSum(x, o)\n"
            " y = Add(a, b)",
     HIDDEN " t = Transpose(h) {perm=[0,2,1]}\n g = Add(h, h)\n a = MatMul(t, g)\n"
            " b = ReduceSum(x, o)\n y = Add(a, b)"},
    {"a largest behind 63 tokens", ROW,
     HIDDEN " g = Concat(x, h) {axis=1}\n y = ReduceMax(g) {axes=[1]}",
     HIDDEN
     " d = Mul(h, c: f32[] {3.0})\n g = Concat(x, d) {axis=1}\n y = ReduceMax(g) {axes=[1]}"},
    {"tokens in the other order behind 63", ROW, HIDDEN " y = Concat(x, h) {axis=1}",
     HIDDEN " y = Concat(h, x) {axis=1}"},
};
const uint32_t n_size_planted = sizeof size_planted / sizeof *size_planted;
