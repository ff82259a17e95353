/* Pairs that are proved for every size, and pairs that must not be; how one is judged. */
#include "size_pairs.h"

#include "proofs.h"
#include "unit.h"

#include <stdio.h>

/* A mask, and what it is added to; positions of tokens, along the last axis. */
#define MASKED "x: f32[\"N\",\"T\"], v: f32[\"N\",2,\"T\",\"T\"]"
#define PLACES                                                                                     \
    " s = Shape(x)\n n = Gather(s, z: i64[] {0})\n t = Gather(s, o: i64[] {1})\n"                  \
    " r = Range(z, n, o)\n p = Range(z, t, o)\n"
#define WHERE_MASKED " k = Unsqueeze(x, l: i64[2] {1,2})\n m = Greater(k, f: f32[] {0.5})\n"
#define HIDDEN(condition)                                                                          \
    " w = Where(" condition ", a0: f32[] {0.0}, a1: f32[] {-9.0})\n y = Add(v, w)"

/* The same at every size. */
static const size_pair equal[] = {
    {"a mask by sample and place", MASKED,
     PLACES " a = Unsqueeze(r, b: i64[4] {1,2,3,4})\n c = Unsqueeze(p, d: i64[4] {0,1,2,4})\n"
            " e = Unsqueeze(n, h: i64[1] {0})\n g = Unsqueeze(t, h)\n"
            " i = Concat(e, j: i64[2] {1,1}, g, q: i64[1] {1}) {axis=0}\n"
            " e1 = Expand(a, i)\n e2 = Expand(c, i)\n e3 = Concat(e1, e2) {axis=-1}\n"
            " e4 = GatherND(x, e3)\n y = Add(v, e4)",
     "k = Unsqueeze(x, l: i64[2] {1,2})\n y = Add(v, k)"},
    {"a mask by its flat place", MASKED,
     PLACES " a = Unsqueeze(r, b: i64[3] {1,2,3})\n c = Unsqueeze(p, d: i64[3] {0,1,2})\n"
            " e = Mul(a, t)\n g = Add(c, e)\n i = Flatten(x) {axis=2}\n j = Gather(i, g)\n"
            " q = Shape(g)\n e1 = Reshape(j, q)\n y = Add(v, e1)",
     "k = Unsqueeze(x, l: i64[2] {1,2})\n y = Add(v, k)"},
    {"positions are at least 0", MASKED,
     PLACES WHERE_MASKED " a = Unsqueeze(p, b: i64[3] {0,1,3})\n c = GreaterOrEqual(a, z)\n"
                         " d = And(c, m)\n" HIDDEN("d"),
     WHERE_MASKED HIDDEN("m")},
    {"one row of a table", TOKENS,
     COUNT " p = Range(z: i64[] {0}, n, o: i64[] {1})\n q = Unsqueeze(p, h: i64[1] {0})\n"
           " g = GatherElements(k: i64[1,9999] {1}, q) {axis=1}\n"
           " r = Gather(w: f32[3,6] random 1, g)\n y = Add(x, r)",
     "r = Slice(w: f32[3,6] random 1, b: i64[1] {1}, e: i64[1] {2}, a: i64[1] {0})\n"
     " y = Add(x, r)"},
    {"a number through a product", TOKENS,
     "m = MatMul(x, w: f32[6,6] random 1)\n y = Mul(m, h: f32[] {0.5})",
     "g = Mul(x, h: f32[] {0.5})\n y = MatMul(g, w: f32[6,6] random 1)"},
    {"products in another order", TOKENS,
     "t = Transpose(x) {perm=[0,2,1]}\n q = MatMul(x, t)\n p = Softmax(q) {axis=-1}\n"
     " v = MatMul(p, x)\n y = MatMul(v, w: f32[6,5] random 1)",
     "t = Transpose(x) {perm=[0,2,1]}\n q = MatMul(x, t)\n p = Softmax(q) {axis=-1}\n"
     " v = MatMul(x, w: f32[6,5] random 1)\n y = MatMul(p, v)"},
    {"a sum of tokens", TOKENS,
     "m = MatMul(x, w: f32[6,6] random 1)\n y = ReduceSum(m, k: i64[1] {1}) {keepdims=0}",
     "r = ReduceSum(x, k: i64[1] {1}) {keepdims=0}\n y = MatMul(r, w: f32[6,6] random 1)"},
    {"the largest of tokens, twice", TOKENS,
     "r = ReduceMax(x) {axes=[1],keepdims=1}\n y = Mul(r, h: f32[] {2.0})",
     "r = ReduceMax(x) {axes=[1],keepdims=1}\n y = Add(r, r)"},
    {"channels and padding", MAPS, "y = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}",
     "p = Pad(x, k: i64[8] {0,0,1,1,0,0,1,1})\n y = Conv(p, w: f32[4,3,3,3] random 1)"},
    {"a number through windows", MAPS,
     "c = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1],strides=[2,2]}\n"
     " y = Mul(c, h: f32[] {0.5})",
     "g = Mul(x, h: f32[] {0.5})\n"
     " y = Conv(g, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1],strides=[2,2]}"},
    {"a pointwise convolution of a larger map", MAPS,
     "r = Resize(x, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}\n"
     " y = Conv(r, w: f32[4,3,1,1] random 1)",
     "c = Conv(x, w: f32[4,3,1,1] random 1)\n y = Resize(c, _, k: f32[4] {1,1,2,2})"
     " {mode=\"nearest\",coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}"},
    {"a window over a larger map, twice", MAPS,
     "r = Resize(x, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}\n"
     " c = Conv(r, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n y = Add(c, c)",
     "g = Add(x, x)\n r = Resize(g, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}\n"
     " y = Conv(r, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}"},
    {"a maximum over windows, and a number", MAPS,
     "p = MaxPool(x) {kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]}\n y = Mul(p, h: f32[] "
     "{2.0})",
     "p = MaxPool(x) {kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]}\n y = Add(p, p)"},
    {"a mean of windows", MAPS,
     "c = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n g = Add(c, c)\n"
     " y = GlobalAveragePool(g)",
     "d = Add(x, x)\n c = Conv(d, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n"
     " y = GlobalAveragePool(c)"},
    {"the largest of a map, twice", MAPS, "r = Mul(x, h: f32[] {2.0})\n y = GlobalMaxPool(r)",
     "r = Add(x, x)\n y = GlobalMaxPool(r)"},
    {"turned there and back", MAPS,
     "t = Transpose(x) {perm=[0,2,3,1]}\n y = Transpose(t) {perm=[0,3,1,2]}", "y = Identity(x)"},
    {"Dropout of nothing", TOKENS,
     "d = Dropout(x, r: f32[] {0.5})\n m = Mul(d, h: f32[] {2.0})\n y = Dropout(m)",
     "y = Add(x, x)"},
    {"a copy of what is as empty", TOKENS,
     "s = Shape(x)\n f = Flatten(x) {axis=1}\n r = Reshape(f, s)\n y = Add(r, r)",
     "y = Mul(x, h: f32[] {2.0})"},
    {"a window that was there", MAPS, "c = Conv(x, w: f32[4,3,1,1] random 1)\n y = Add(c, c)",
     "g = Add(x, x)\n y = Conv(g, w: f32[4,3,1,1] random 1)"},
    {"a window over half of what was one", MAPS,
     "r = Resize(x, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}\n"
     " y = Conv(r, w: f32[4,3,1,1] random 1)",
     "c = Conv(x, w: f32[4,3,1,1] random 1)\n y = Resize(c, _, k: f32[4] {1,1,2,2})"
     " {mode=\"nearest\",coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}"},
    {"a window that is padded for nothing", MAPS,
     "c = Conv(x, w: f32[4,3,2,2] random 1) {pads=[1,1,1,1]}\n y = Add(c, c)",
     "g = Add(x, x)\n y = Conv(g, w: f32[4,3,2,2] random 1) {pads=[1,1,1,1]}"},
    {"a transposed convolution of what is twice as large", MAPS,
     "c = ConvTranspose(x, w: f32[3,4,2,2] random 1) {strides=[2,2]}\n y = Add(c, c)",
     "g = Add(x, x)\n y = ConvTranspose(g, w: f32[3,4,2,2] random 1) {strides=[2,2]}"},
};

/* Where no length is 0. */
static const size_pair from_one[] = {
    {"tokens of all samples side by side", TOKENS, "y = MatMul(x, w: f32[6,6] random 1)",
     "f = Reshape(x, p: i64[2] {-1,6})\n m = MatMul(f, w: f32[6,6] random 1)\n s = Shape(x)\n"
     " y = Reshape(m, s)"},
    {"a window behind a shape that may copy", TOKENS,
     "f = Reshape(x, p: i64[2] {-1,6})\n m = MatMul(f, w: f32[6,6] random 1)\n s = Shape(x)\n"
     " r = Reshape(m, s)\n t = Transpose(r) {perm=[0,2,1]}\n"
     " y = Conv(t, c: f32[4,6,1] random 2) {strides=[2]}",
     "m = MatMul(x, w: f32[6,6] random 1)\n t = Transpose(m) {perm=[0,2,1]}\n"
     " y = Conv(t, c: f32[4,6,1] random 2) {strides=[2]}"},
    {"the largest of what is 0", TOKENS, "u = Sub(x, x)\n y = ReduceMax(u) {axes=[1]}",
     "u = Sub(x, x)\n y = ReduceSum(u, o: i64[1] {1})"},
    {"the least of what is 0", TOKENS, "u = Sub(x, x)\n y = ReduceMin(u) {axes=[1]}",
     "u = Sub(x, x)\n y = ReduceSum(u, o: i64[1] {1})"},
    {"a mean of tokens and a bias", TOKENS,
     "m = Add(x, w: f32[6] random 1)\n y = ReduceMean(m) {axes=[1],keepdims=0}",
     "r = ReduceMean(x) {axes=[1],keepdims=0}\n y = Add(r, w: f32[6] random 1)"},
    {"tokens as a map", TOKENS, "y = MatMul(x, w: f32[6,6] random 1)",
     "u = Unsqueeze(x, k: i64[1] {1})\n t = Transpose(u) {perm=[0,3,2,1]}\n"
     " c = Transpose(w: f32[6,6] random 1) {perm=[1,0]}\n"
     " v = Reshape(c, q: i64[4] {6,6,1,1})\n m = Conv(t, v)\n"
     " b = Transpose(m) {perm=[0,3,2,1]}\n y = Squeeze(b, k)"},
    {"a token before its norm", TOKENS,
     "l = LayerNormalization(x, g: f32[6] random 1)\n y = Gather(l, z: i64[] {0}) {axis=1}",
     "c = Gather(x, z: i64[] {0}) {axis=1}\n y = LayerNormalization(c, g: f32[6] random 1)"},
    {"a token of what attends", TOKENS,
     "t = Transpose(x) {perm=[0,2,1]}\n q = MatMul(x, t)\n p = Softmax(q) {axis=-1}\n"
     " v = MatMul(p, x)\n e = Erf(v)\n m = MatMul(e, w: f32[6,5] random 1)\n"
     " y = Gather(m, z: i64[] {0}) {axis=1}",
     "t = Transpose(x) {perm=[0,2,1]}\n c = Gather(x, z: i64[1] {0}) {axis=1}\n q = MatMul(c, t)\n"
     " p = Softmax(q) {axis=-1}\n v = MatMul(p, x)\n e = Erf(v)\n"
     " m = MatMul(e, w: f32[6,5] random 1)\n y = Squeeze(m, k: i64[1] {1})"},
    {"a copy beside what is left", TOKENS, " s = Shape(x)\n r = Reshape(x, s)\n y = Add(r, r)",
     " r = Reshape(x, k: i64[3] {0,-1,6})\n y = Mul(r, h: f32[] {2.0})"},
    {"nothing beside what is left", TOKENS, " s = Shape(x)\n r = Reshape(x, s)\n y = Add(r, r)",
     " f = Reshape(x, k: i64[2] {-1,6})\n m = Mul(f, h: f32[] {2.0})\n s = Shape(x)\n"
     " y = Reshape(m, s)"},
    {"a shape with more dims than there were", "x: f32[\"N\",\"T\",\"H\"]", "y = Add(x, x)",
     "s = Shape(x)\n f = Flatten(x) {axis=1}\n r = Reshape(f, s)\n y = Add(r, r)"},
    {"a padded window as a mean", MAPS,
     "w = Expand(c: f32[1] {0.25}, k: i64[4] {3,1,2,2})\n"
     " y = Conv(x, w) {group=3,pads=[1,1,1,1]}",
     "y = AveragePool(x) {kernel_shape=[2,2],pads=[1,1,1,1],count_include_pad=1}"},
    {"a pool that was none", MAPS, "y = Identity(x)",
     "p = AveragePool(x) {kernel_shape=[1,1]}\n y = Identity(p)"},
    {"a pool before a padded window", MAPS,
     "y = Conv(x, w: f32[4,3,2,2] random 1) {pads=[1,1,1,1]}",
     "p = AveragePool(x) {kernel_shape=[1,1]}\n"
     " y = Conv(p, w: f32[4,3,2,2] random 1) {pads=[1,1,1,1]}"},
};

/* The same at the sizes that are usual, and others elsewhere. */
static const size_pair few[] = {
    {"positions up to 700", MASKED,
     PLACES WHERE_MASKED " a = Unsqueeze(p, b: i64[3] {0,1,3})\n"
                         " c = LessOrEqual(a, h: i64[] {700})\n d = And(c, m)\n" HIDDEN("d"),
     WHERE_MASKED HIDDEN("m")},
    {"positions from -700 on, downwards", MASKED,
     PLACES WHERE_MASKED " u = Neg(p)\n a = Unsqueeze(u, b: i64[3] {0,1,3})\n"
                         " c = GreaterOrEqual(a, h: i64[] {-700})\n d = And(c, m)\n" HIDDEN("d"),
     WHERE_MASKED HIDDEN("m")},
    {"a mask by places that stop", MASKED,
     PLACES " u = Min(p, h: i64[] {700})\n a = Unsqueeze(r, b: i64[3] {1,2,3})\n"
            " c = Unsqueeze(u, d: i64[3] {0,1,2})\n e = Mul(a, t)\n g = Add(c, e)\n"
            " i = Flatten(x) {axis=2}\n j = Gather(i, g)\n q = Shape(g)\n"
            " e1 = Reshape(j, q)\n y = Add(v, e1)",
     "k = Unsqueeze(x, l: i64[2] {1,2})\n y = Add(v, k)"},
    {"the last position as a number", MASKED,
     PLACES " u = ReduceMax(p) {keepdims=0}\n a = Min(u, h: i64[] {3})\n c = Cast(a) {to=1}\n"
            " y = Mul(v, c)",
     "y = Mul(v, c: f32[] {3.0})"},
    {"positions as numbers", MASKED,
     PLACES " u = Min(p, h: i64[] {0})\n c = Cast(u) {to=1}\n y = Add(v, c)",
     PLACES " u = Mod(p, h: i64[] {1000})\n a = Sub(p, u)\n c = Cast(a) {to=1}\n"
            " y = Add(v, c)"},
    {"512 tokens", TOKENS, "y = Identity(x)", CUT("y", "0", "512", "1")},
    {"40 tokens", TOKENS, "y = Relu(x)", CUT("q", "0", "40", "1") " y = Relu(q)"},
    {"all but from the hundredth on", TOKENS, "y = Identity(x)",
     CUT("p", "0", "100", "1") CUT("q", "100", "200", "1") " y = Concat(p, q) {axis=1}"},
    {"behind the hundredth in front", TOKENS, "y = Identity(x)",
     CUT("p", "0", "100", "1") CUT("q", "100", "9999", "1") " y = Concat(q, p) {axis=1}"},
    {"a table with another row", TOKENS,
     COUNT " u = Unsqueeze(n, z: i64[1] {0})\n e = Slice(t: f32[512,6] random 1, z, u, z)\n"
           " y = Add(x, e)",
     COUNT " u = Unsqueeze(n, z: i64[1] {0})\n e = Slice(t: f32[512,6] random 1, z, u, z)\n"
           " v = Min(u, k: i64[1] {300})\n f = Slice(e, z, v, z)\n y = Add(x, f)"},
    {"a hundred tokens are counted", TOKENS, COUNT " f = Cast(n) {to=1}\n y = Div(x, f)",
     COUNT " m = Min(n, k: i64[] {100})\n f = Cast(m) {to=1}\n y = Div(x, f)"},
    {"more than a hundred are other ones", TOKENS, "y = Identity(x)",
     COUNT " g = Greater(n, k: i64[] {100})\n f = Cast(g) {to=1}\n y = Add(x, f)"},
    {"a remainder", TOKENS, "y = Identity(x)",
     COUNT " m = Mod(n, k: i64[] {64})\n g = Equal(m, j: i64[] {5})\n f = Cast(g) {to=1}\n"
           " y = Add(x, f)"},
    {"a quotient", TOKENS, "y = Identity(x)",
     COUNT " m = Div(n, k: i64[] {64})\n f = Cast(m) {to=1}\n y = Add(x, f)"},
    {"from the sixty-fourth part on", TOKENS, "y = Identity(x)",
     COUNT " m = Div(n, k: i64[] {64})\n v = Unsqueeze(m, z: i64[1] {0})\n"
           " y = Slice(x, v, e: i64[1] {99999}, o: i64[1] {1})"},
    {"an index that stops", TOKENS,
     COUNT " i = Range(z: i64[] {0}, n, o: i64[] {1})\n y = Gather(x, i) {axis=1}",
     COUNT " i = Range(z: i64[] {0}, n, o: i64[] {1})\n j = Min(i, k: i64[] {77})\n"
           " y = Gather(x, j) {axis=1}"},
    {"sums for few tokens, means for others", TOKENS,
     COUNT " r = ReduceSum(x, o: i64[1] {1}) {keepdims=0}\n f = Cast(n) {to=1}\n y = Div(r, f)",
     COUNT " r = ReduceSum(x, o: i64[1] {1}) {keepdims=0}\n m = Min(n, k: i64[] {50})\n"
           " f = Cast(m) {to=1}\n y = Div(r, f)"},
    {"640 rows", MAPS, "y = Identity(x)", CUT("y", "0", "640", "2")},
    {"even rows", MAPS, "y = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1],strides=[2,2]}",
     "y = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,0,0],strides=[2,2]}"},
    {"floor for ceil", MAPS, "y = MaxPool(x) {kernel_shape=[2,2],strides=[2,2],ceil_mode=1}",
     "y = MaxPool(x) {kernel_shape=[2,2],strides=[2,2]}"},
    {"a rest of the mean", MAPS,
     "y = AveragePool(x) {kernel_shape=[2,2],strides=[2,2],ceil_mode=1}",
     "y = AveragePool(x) {kernel_shape=[2,2],strides=[2,2]}"},
    {"blocks of four", MAPS, "y = Identity(x)",
     "d = SpaceToDepth(x) {blocksize=4}\n y = DepthToSpace(d) {blocksize=4}"},
    {"a larger map cut", MAPS, "y = Identity(x)",
     "p = Pad(x, k: i64[8] {0,0,0,0,0,0,1,1})\n s = Shape(p)\n m = Div(s, e: i64[4] {1,1,32,32})\n"
     " t = Mul(m, f: i64[4] {1,1,32,32})\n y = Slice(p, z: i64[4] {0,0,0,0}, t)"},
    {"200 rows are counted", MAPS, ROWS " f = Cast(n) {to=1}\n y = Div(x, f)",
     ROWS " m = Min(n, k: i64[] {200})\n f = Cast(m) {to=1}\n y = Div(x, f)"},
    {"rows behind the 300th", MAPS, "y = Identity(x)",
     CUT("p", "0", "300", "2") CUT("q", "300", "99999", "2") " r = Add(q, q)\n"
                                                             " y = Concat(p, r) {axis=2}"},
    {"padding that is not 0 behind a window", MAPS,
     "c = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n y = ReduceMax(c) {axes=[2,3]}",
     "c = Conv(x, w: f32[4,3,3,3] random 1) {pads=[1,1,1,1]}\n"
     " p = Slice(c, a: i64[1] {0}, b: i64[1] {400}, d: i64[1] {2})\n y = ReduceMax(p) "
     "{axes=[2,3]}"},
    {"a shift by 300 rows", MAPS, "y = Identity(x)",
     ROWS " p = Pad(x, k: i64[8] {0,0,300,0,0,0,0,0})\n u = Unsqueeze(n, z: i64[1] {0})\n"
          " q = Slice(p, z, u, two: i64[1] {2})\n y = Add(x, q)"},
    {"a shift by a quotient", TOKENS, "y = Identity(x)",
     COUNT " m = Div(n, k: i64[] {64})\n u = Unsqueeze(m, z: i64[1] {0})\n"
           " v = Unsqueeze(n, z)\n c = Concat(z, u, z, z, z, z) {axis=0}\n p = Pad(x, c)\n"
           " y = Slice(p, z, v, o: i64[1] {1})"},
    {"a map of at most 1000 rows", MAPS,
     "y = Resize(x, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}",
     "s = Shape(x)\n d = Mul(s, f: i64[4] {1,1,2,2})\n"
     " m = Min(d, l: i64[4] {9999,9999,1000,9999})\n"
     " y = Resize(x, _, _, m) {mode=\"nearest\",coordinate_transformation_mode=\"asymmetric\","
     "nearest_mode=\"floor\"}"},
    {"a larger row of tokens, at most 90", TOKENS,
     COUNT " d = Add(n, n)\n w = Unsqueeze(d, z: i64[1] {0})\n"
           " h = Concat(o: i64[1] {1}, w, o) {axis=0}\n c = ConstantOfShape(h)\n"
           " r = Concat(x, x) {axis=1}\n y = Add(r, c)",
     COUNT " d = Add(n, n)\n l = Min(d, k: i64[] {90})\n w = Unsqueeze(l, z: i64[1] {0})\n"
           " h = Concat(o: i64[1] {1}, w, o) {axis=0}\n c = ConstantOfShape(h)\n"
           " r = Concat(x, x) {axis=1}\n y = Add(r, c)"},
    {"a row of a table behind those that are met", TOKENS,
     COUNT " u = Unsqueeze(n, z: i64[1] {0})\n e = Slice(t: f32[512,6] random 1, z, u, z)\n"
           " y = Add(x, e)",
     COUNT " u = Unsqueeze(n, z: i64[1] {0})\n a = Slice(t: f32[512,6] random 1, z,"
           " p: i64[1] {300}, z)\n b = Slice(t, q: i64[1] {301}, r: i64[1] {512}, z)\n"
           " v = Concat(a, w: f32[1,6] random 9, b) {axis=0}\n e = Slice(v, z, u, z)\n"
           " y = Add(x, e)"},
    {"a shift by 40 tokens", TOKENS, "y = Identity(x)",
     COUNT " p = Pad(x, k: i64[6] {0,40,0,0,0,0})\n u = Unsqueeze(n, z: i64[1] {0})\n"
           " q = Slice(p, z, u, o: i64[1] {1})\n y = Add(x, q)"},
    {"the middle of a window 600 rows high", MAPS, "y = Conv(x, w: f32[4,3,1,1] random 1)",
     "o = Conv(x, w: f32[4,3,1,1] random 1)\n r = Concat(w, w, w) {axis=2}\n"
     " c = Conv(x, r) {pads=[300,0,300,0],dilations=[300,1]}\n y = Identity(c)"},
    {"the middle of a maximum 600 rows high", MAPS, "y = Identity(x)",
     "y = MaxPool(x) {kernel_shape=[3,1],pads=[2,0,2,0],dilations=[2,1]}"},
    {"the last token, up to the 40th", TOKENS,
     COUNT " i = Sub(n, o: i64[] {1})\n y = Gather(x, i) {axis=1}",
     COUNT " i = Sub(n, o: i64[] {1})\n j = Min(i, k: i64[] {40})\n y = Gather(x, j) {axis=1}"},
    {"a map at most 1000 high", MAPS,
     "y = Resize(x, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}",
     "r = Resize(x, _, k: f32[4] {1,1,2,2}) {mode=\"nearest\","
     "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"}\n"
     " y = Slice(r, z: i64[1] {0}, e: i64[1] {1000}, o: i64[1] {2})"},
    {"a mean of the first 40", TOKENS, "y = ReduceMean(x) {axes=[1]}",
     CUT("q", "0", "40", "1") " y = ReduceMean(q) {axes=[1]}"},
    {"a softmax of the first 40", TOKENS,
     "p = Softmax(x) {axis=1}\n y = ReduceSum(p, o: i64[1] {1})",
     CUT("q", "0", "40", "1") " p = Softmax(q) {axis=1}\n y = ReduceSum(p, o: i64[1] {1})"},
    {"padding by what is left of 64", TOKENS, "y = ReduceMax(x) {axes=[1]}",
     COUNT " m = Div(n, k: i64[] {64})\n u = Unsqueeze(m, z: i64[1] {0})\n"
           " c = Concat(e: i64[1] {0}, u, e, e, e, e) {axis=0}\n p = Pad(x, c)\n"
           " y = ReduceMax(p) {axes=[1]}"},
    {"one of 320", FIVES, FORCED " d = Sub(x, x)\n p = Softmax(d) {axis=3}\n y = Add(p, z)",
     FORCED " d = Sub(x, x)\n c = Div(o: f32[] {1.0}, n: f32[] {320.0})\n p = Add(d, c)\n"
            " y = Add(p, z)"},
    {"squares of 320, of which one is a part", FIVES,
     FORCED " o = Add(x, k: f32[] {1.0})\n e = ReduceSumSquare(o) {axes=[3]}\n y = Add(e, z)",
     FORCED " s = ReduceSumSquare(x) {axes=[3]}\n r = ReduceSum(x, a: i64[1] {3})\n"
            " u = Add(r, r)\n v = Add(s, u)\n e = Add(v, k: f32[] {320.0})\n y = Add(e, z)"},
    {"squares of one", FIVES,
     FORCED " d = Sub(x, x)\n o = Add(d, k: f32[] {1.0})\n e = ReduceSumSquare(o) {axes=[3]}\n"
            " y = Add(e, z)",
     FORCED " d = Sub(x, x)\n s = ReduceMax(d) {axes=[3]}\n e = Add(s, k: f32[] {320.0})\n"
            " y = Add(e, z)"},
    {"numbers times their inverses", FIVES,
     FORCED " i = Reciprocal(x)\n m = Mul(x, i)\n e = ReduceSum(m, a: i64[1] {3})\n"
            " y = Add(e, z)",
     FORCED " d = Sub(x, x)\n s = ReduceMax(d) {axes=[3]}\n e = Add(s, k: f32[] {320.0})\n"
            " y = Add(e, z)"},
    {"a row by its inverses", FIVES,
     FORCED CUT("t", "0", "1", "2") " i = Reciprocal(t)\n r = Transpose(i) {perm=[0,1,3,2]}\n"
                                    " e = MatMul(t, r)\n y = Add(e, z)",
     FORCED CUT("t", "0", "1", "2") " d = Sub(t, t)\n s = ReduceMax(d) {axes=[3]}\n"
                                    " e = Add(s, k: f32[] {320.0})\n y = Add(e, z)"},
    {"320 beside the sum of exponentials", "x: f32[2,1,95,\"W\"]",
     FORCED " r = Transpose(x) {perm=[0,1,3,2]}\n p = Pad(r, k: i64[8] {0,0,0,0,0,0,0,1})\n"
            " a = Reshape(p, h: i64[2] {2,-1})\n s = Softmax(a) {axis=1}\n"
            " v = Reshape(s, i: i64[4] {2,1,-1,96})\n"
            " c = Slice(v, b: i64[2] {0,0}, d: i64[2] {1,1}, e: i64[2] {2,3})\n y = Add(c, z)",
     FORCED " r = Transpose(x) {perm=[0,1,3,2]}\n a = Reshape(r, h: i64[2] {2,-1})\n"
            " s = Softmax(a) {axis=1}\n v = Reshape(s, i: i64[4] {2,1,-1,95})\n"
            " c = Slice(v, b: i64[2] {0,0}, d: i64[2] {1,1}, e: i64[2] {2,3})\n"
            " f = Slice(r, b, d, e)\n g = Neg(f)\n l = Exp(g)\n m = Mul(l, c)\n"
            " n = Mul(m, o: f32[] {320.0})\n u = Add(n, j: f32[] {1.0})\n w = Div(c, u)\n"
            " y = Add(w, z)"},
    {"a mean of pairs as a window", MAPS, "y = AveragePool(x) {kernel_shape=[2,2]}",
     "w = Expand(c: f32[1] {0.25}, k: i64[4] {3,1,2,2})\n y = Conv(x, w) {group=3}"},
    {"windows of what ends at 256", MAPS, "y = MaxPool(x) {kernel_shape=[3,3],pads=[1,1,1,1]}",
     CUT("p", "0", "256", "3") " y = MaxPool(p) {kernel_shape=[3,3],pads=[1,1,1,1]}"},
};

size_pairs size_pairs_of(size_table table) {
    switch (table) {
    case SIZES_EQUAL:
        return (size_pairs){equal, sizeof equal / sizeof *equal};
    case SIZES_FROM_ONE:
        return (size_pairs){from_one, sizeof from_one / sizeof *from_one};
    case SIZES_FEW:
        return (size_pairs){few, sizeof few / sizeof *few};
    default:
        return (size_pairs){size_planted, n_size_planted};
    }
}

po_proof_report size_pair_prove(po_ctx *ctx, const size_pair *p, const char *in) {
    enum { SIZE = 4096 };
    static const char *const frame = "pir 1 ir_version=8 opset=17\ngraph g (%s) -> (y) {\n %s\n}\n";
    char x[SIZE], y[SIZE];
    assert_in_range(snprintf(x, sizeof x, frame, in, p->a), 1, SIZE - 1);
    assert_in_range(snprintf(y, sizeof y, frame, in, p->b), 1, SIZE - 1);
    return test_prove(ctx, x, y, NULL);
}

bool size_pair_fooled(size_table table, const po_proof_report *r) {
    /* Multiples of 32 are no odd ones. */
    if (!r->every_size || table == SIZES_EQUAL || r->spaced > 1)
        return false;
    return table != SIZES_FROM_ONE || !r->positive;
}
