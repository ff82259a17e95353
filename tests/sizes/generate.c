/* Random graphs with open dims: tokens [N, T, C] and maps [N, C, H, W], a dozen nodes each. A value
 * is told by its dims, numbers or words that tell how they were made; equal words are equal
 * lengths, so that values of one shape can be added. */
#include "generate.h"

#include "base/hash.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 72, VALUES = 80 };

typedef struct shape {
    char dim[4][DIM];
    uint32_t rank;
} shape;

typedef struct making {
    generated *g;
    lots lots;
    uint32_t n, constants;
    shape value[VALUES]; /* v0, v1, .. */
    bool maps;
} making;

uint32_t lots_below(lots *l, uint32_t n) {
    return (uint32_t)(po_random_u64(l->seed, l->stream, l->drawn++) % n);
}

bool lots_one_in(lots *l, uint32_t n) {
    return lots_below(l, n) == 0;
}

static uint32_t below(making *m, uint32_t n) {
    return lots_below(&m->lots, n);
}

__attribute__((format(printf, 2, 3))) static void add_line(making *m, const char *format, ...) {
    va_list args;
    if (m->g->n == GENERATED_LINES)
        return;
    va_start(args, format);
    vsnprintf(m->g->line[m->g->n++], GENERATED_LINE, format, args);
    va_end(args);
}

/* The number of the value that the next line makes. */
static uint32_t new_value(making *m, shape s) {
    m->value[m->n] = s;
    return m->n++;
}

__attribute__((format(printf, 3, 4))) static shape with_dim(shape s, uint32_t axis,
                                                            const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(s.dim[axis], DIM, format, args);
    va_end(args);
    return s;
}

static int number_of(const shape *s, uint32_t axis) {
    return atoi(s->dim[axis]); /* 0: open */
}

static bool same_shape(const shape *a, const shape *b) {
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = strcmp(a->dim[i], b->dim[i]) == 0;
    return same;
}

/* A value that has the shape of v but for one axis (4: none); v itself where there is none. */
static uint32_t partner(making *m, uint32_t v, uint32_t axis) {
    const uint32_t from = below(m, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t w = (from + i) % m->n;
        shape s = m->value[w];
        if (axis < 4)
            memcpy(s.dim[axis], m->value[v].dim[axis], DIM);
        if (w != v && s.rank == m->value[v].rank && same_shape(&s, &m->value[v]))
            return w;
    }
    return v;
}

static const char *one_of(making *m, const char *const *list, uint32_t n) {
    return list[below(m, n)];
}
#define ONE_OF(m, ...)                                                                             \
    one_of(m, (const char *const[]){__VA_ARGS__},                                                  \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* --- of any shape --- */

static void unary(making *m, uint32_t v) {
    const char *op = ONE_OF(m, "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Neg", "Abs", "LeakyRelu",
                            "Identity", "HardSwish", "Softplus", "Sqrt");
    add_line(m, "v%u = %s(v%u)", m->n, op, v);
    new_value(m, m->value[v]);
}

static void scalar(making *m, uint32_t v) {
    const char *op = ONE_OF(m, "Mul", "Add", "Div", "Sub");
    const char *number = ONE_OF(m, "0.5", "2.0", "1.0", "3.0", "0.125");
    add_line(m, "v%u = %s(v%u, c%u: f32[] {%s})", m->n, op, v, m->constants++, number);
    new_value(m, m->value[v]);
}

static void combine(making *m, uint32_t v) {
    const uint32_t w = partner(m, v, 4);
    add_line(m, "v%u = %s(v%u, v%u)", m->n, ONE_OF(m, "Add", "Mul", "Sub", "Max"), v, w);
    new_value(m, m->value[v]);
}

static void slice(making *m, uint32_t v, uint32_t axis) {
    const int c = number_of(&m->value[v], axis);
    if (c > 0 && c < 3)
        return;
    const int from = c > 2 ? (int)below(m, (uint32_t)c / 2) : (int)below(m, 3);
    const bool ends = c == 0 && below(m, 3) == 0;
    const int to = c > 2  ? c - (int)below(m, (uint32_t)c / 2)
                   : ends ? -1 - (int)below(m, 2)
                          : INT32_MAX;
    const int k = (int)m->constants;
    add_line(m, "v%u = Slice(v%u, c%d: i64[1] {%d}, c%d: i64[1] {%d}, c%d: i64[1] {%u})", m->n, v,
             k, from, k + 1, to, k + 2, axis);
    m->constants += 3;
    if (c > 0)
        new_value(m, with_dim(m->value[v], axis, "%d", to > from ? to - from : 1));
    else
        new_value(m,
                  with_dim(m->value[v], axis, "cut%d_%d(%.40s)", from, to, m->value[v].dim[axis]));
}

static void concat(making *m, uint32_t v, uint32_t axis) {
    const uint32_t w = partner(m, v, axis);
    const int a = number_of(&m->value[v], axis), b = number_of(&m->value[w], axis);
    add_line(m, "v%u = Concat(v%u, v%u) {axis=%u}", m->n, v, w, axis);
    if (a && b)
        new_value(m, with_dim(m->value[v], axis, "%d", a + b));
    else
        new_value(m, with_dim(m->value[v], axis, "%.30s+%.30s", m->value[v].dim[axis],
                              m->value[w].dim[axis]));
}

/* --- tokens --- */

static void matmul(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 2), to = (int)below(m, 2) ? c : 2 + 2 * (int)below(m, 3);
    if (below(m, 4) == 0)
        add_line(m, "v%u = Einsum(v%u, c%u: f32[%d,%d] random %u) {equation=\"btc,cd->btd\"}", m->n,
                 v, m->constants, c, to, m->constants);
    else
        add_line(m, "v%u = MatMul(v%u, c%u: f32[%d,%d] random %u)", m->n, v, m->constants, c, to,
                 m->constants);
    m->constants++;
    const uint32_t out = new_value(m, with_dim(m->value[v], 2, "%d", to));
    if (below(m, 2) == 0)
        return;
    add_line(m, "v%u = Add(v%u, c%u: f32[%d] random %u)", m->n, out, m->constants, to,
             m->constants);
    m->constants++;
    new_value(m, m->value[out]);
}

static void row(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 2);
    if (below(m, 3) == 0)
        add_line(m, "v%u = LayerNormalization(v%u, c%u: f32[%d] random %u)", m->n, v, m->constants,
                 c, m->constants);
    else
        add_line(m, "v%u = %s(v%u, c%u: f32[%d] random %u)", m->n, ONE_OF(m, "Mul", "Add"), v,
                 m->constants, c, m->constants);
    m->constants++;
    new_value(m, m->value[v]);
}

static void softmax(making *m, uint32_t v) {
    add_line(m, "v%u = Softmax(v%u) {axis=%d}", m->n, v, below(m, 4) == 0 ? 1 : -1);
    new_value(m, m->value[v]);
}

/* Queries of one value, keys and values of another of as many channels. */
static void attention(making *m, uint32_t v) {
    const uint32_t w = partner(m, v, below(m, 2) ? 1 : 4);
    const uint32_t t = m->n;
    shape s = m->value[w];
    memcpy(s.dim[1], m->value[w].dim[2], DIM);
    memcpy(s.dim[2], m->value[w].dim[1], DIM);
    add_line(m, "v%u = Transpose(v%u) {perm=[0,2,1]}", t, w);
    new_value(m, s);
    shape q = m->value[v];
    memcpy(q.dim[2], m->value[w].dim[1], DIM);
    add_line(m, "v%u = MatMul(v%u, v%u)", t + 1, v, t);
    new_value(m, q);
    add_line(m, "v%u = Softmax(v%u) {axis=-1}", t + 2, t + 1);
    new_value(m, q);
    add_line(m, "v%u = MatMul(v%u, v%u)", t + 3, t + 2, w);
    new_value(m, m->value[v]);
}

static void heads(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 2);
    const uint32_t t = m->n, k = m->constants;
    if (c % 2 != 0 || c == 0)
        return;
    m->constants += 2;
    shape four = {.rank = 4};
    memcpy(four.dim[0], m->value[v].dim[0], DIM);
    memcpy(four.dim[2], m->value[v].dim[1], DIM);
    four = with_dim(with_dim(four, 1, "2"), 3, "%d", c / 2);
    /* Of maps there are none, so that four axes are heads. */
    add_line(m, "v%u = Reshape(v%u, c%u: i64[4] {0,0,2,%d})", t, v, k, c / 2);
    shape apart = four;
    memcpy(apart.dim[1], four.dim[2], DIM);
    apart = with_dim(apart, 2, "2");
    new_value(m, apart);
    add_line(m, "v%u = Transpose(v%u) {perm=[0,2,1,3]}", t + 1, t);
    new_value(m, four);
    add_line(m, "v%u = Transpose(v%u) {perm=[0,1,3,2]}", t + 2, t + 1);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = MatMul(v%u, v%u)", t + 3, t + 1, t + 2);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = Softmax(v%u) {axis=-1}", t + 4, t + 3);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = MatMul(v%u, v%u)", t + 5, t + 4, t + 1);
    new_value(m, four);
    add_line(m, "v%u = Transpose(v%u) {perm=[0,2,1,3]}", t + 6, t + 5);
    new_value(m, apart);
    add_line(m, "v%u = Reshape(v%u, c%u: i64[3] {0,0,%d})", t + 7, t + 6, k + 1, c);
    new_value(m, m->value[v]);
}

static void reduce(making *m, uint32_t v) {
    const uint32_t t = m->n;
    const char *op = ONE_OF(m, "ReduceMean", "ReduceMax", "ReduceL2", "ReduceMin", "ReduceMean");
    if (below(m, 4) == 0) {
        add_line(m, "v%u = ReduceSum(v%u, c%u: i64[1] {1})", t, v, m->constants++);
    } else {
        add_line(m, "v%u = %s(v%u) {axes=[1]}", t, op, v);
    }
    new_value(m, with_dim(m->value[v], 1, "1"));
    if (below(m, 2) == 0)
        return;
    add_line(m, "v%u = %s(v%u, v%u)", t + 1, ONE_OF(m, "Sub", "Mul", "Add"), v, t);
    new_value(m, m->value[v]);
}

static void token(making *m, uint32_t v) {
    const char *at = ONE_OF(m, "0", "-1", "1");
    const uint32_t t = m->n;
    add_line(m, "v%u = Gather(v%u, c%u: i64[1] {%s}) {axis=1}", t, v, m->constants++, at);
    new_value(m, with_dim(m->value[v], 1, "1"));
    if (below(m, 3) != 0)
        return;
    add_line(m, "s%u = Shape(v%u)", t, v);
    add_line(m, "v%u = Expand(v%u, s%u)", t + 1, t, t);
    new_value(m, m->value[v]);
}

static void pad_tokens(making *m, uint32_t v) {
    const uint32_t a = below(m, 3), b = below(m, 3);
    add_line(m, "v%u = Pad(v%u, c%u: i64[6] {0,%u,0,0,%u,0})", m->n, v, m->constants++, a, b);
    new_value(m, a + b == 0 || number_of(&m->value[v], 1)
                     ? with_dim(m->value[v], 1, "%.60s", m->value[v].dim[1])
                     : with_dim(m->value[v], 1, "pad%u(%.50s)", a + b, m->value[v].dim[1]));
    if (number_of(&m->value[v], 1) && a + b)
        m->value[m->n - 1] =
            with_dim(m->value[v], 1, "%u", (uint32_t)number_of(&m->value[v], 1) + a + b);
}

static void side_by_side(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 2);
    const uint32_t t = m->n;
    add_line(m, "v%u = Reshape(v%u, c%u: i64[2] {-1,%d})", t, v, m->constants, c);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = MatMul(v%u, c%u: f32[%d,%d] random %u)", t + 1, t, m->constants + 1, c, c,
             m->constants);
    new_value(m, (shape){.rank = 0});
    add_line(m, "s%u = Shape(v%u)", t, v);
    add_line(m, "v%u = Reshape(v%u, s%u)", t + 2, t + 1, t);
    new_value(m, m->value[v]);
    m->constants += 2;
}

static void places(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 2);
    const uint32_t t = m->n, k = m->constants;
    add_line(m, "s%u = Shape(v%u)", t, v);
    add_line(m, "n%u = Slice(s%u, c%u: i64[1] {1}, c%u: i64[1] {2}, c%u: i64[1] {0})", t, t, k,
             k + 1, k + 2);
    add_line(m, "v%u = Slice(c%u: f32[512,%d] random 7, c%u, n%u, c%u)", t, k + 3, c, k + 2, t,
             k + 2);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = Add(v%u, v%u)", t + 1, v, t);
    new_value(m, m->value[v]);
    m->constants += 4;
}

/* A convolution along the tokens, between two transposes. */
static void along_tokens(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 2);
    const uint32_t t = m->n, k = 1 + 2 * below(m, 2), stride = 1 + (below(m, 3) == 0),
                   pad = below(m, 3) ? k / 2 : 0;
    add_line(m, "v%u = Transpose(v%u) {perm=[0,2,1]}", t, v);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = Conv(v%u, c%u: f32[%d,%d,%u] random %u) {pads=[%u,%u],strides=[%u]}", t + 1,
             t, m->constants, c, c, k, m->constants, pad, pad, stride);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = Transpose(v%u) {perm=[0,2,1]}", t + 2, t + 1);
    m->constants++;
    new_value(m, stride == 1 && 2 * pad == k - 1 ? m->value[v]
                                                 : with_dim(m->value[v], 1, "w%u_%u_%u(%.40s)", k,
                                                            stride, pad, m->value[v].dim[1]));
}

static void token_node(making *m, uint32_t v) {
    switch (below(m, 20)) {
    case 0:
    case 1:
    case 2:
        matmul(m, v);
        break;
    case 3:
    case 4:
        row(m, v);
        break;
    case 5:
        softmax(m, v);
        break;
    case 6:
    case 7:
        attention(m, v);
        break;
    case 8:
        heads(m, v);
        break;
    case 9:
        reduce(m, v);
        break;
    case 10:
        token(m, v);
        break;
    case 11:
        pad_tokens(m, v);
        break;
    case 12:
        side_by_side(m, v);
        break;
    case 13:
        places(m, v);
        break;
    case 14:
        along_tokens(m, v);
        break;
    case 15:
        slice(m, v, 1 + below(m, 2));
        break;
    case 16:
        concat(m, v, 1 + below(m, 2));
        break;
    case 17:
        scalar(m, v);
        break;
    case 18:
        unary(m, v);
        break;
    default:
        combine(m, v);
    }
}

/* --- maps --- */

/* Heights and widths behind windows; the same where nothing changes. */
static shape behind(shape s, uint32_t kernel, uint32_t stride, uint32_t pads, char mark) {
    for (uint32_t x = 2; x < 4; x++) {
        const int n = number_of(&s, x);
        char was[DIM];
        memcpy(was, s.dim[x], DIM);
        if (stride == 1 && pads == kernel - 1)
            continue;
        s = n ? with_dim(s, x, "%d", (n + (int)pads - (int)kernel) / (int)stride + 1)
              : with_dim(s, x, "%c%u_%u_%u(%.40s)", mark, kernel, stride, pads, was);
    }
    return s;
}

static void conv(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 1);
    const bool own = below(m, 4) == 0;
    const int to = own ? c : 2 + 2 * (int)below(m, 2);
    const uint32_t k = below(m, 4) == 0   ? 1
                       : below(m, 4) == 0 ? 2
                                          : 3,
                   stride = 1 + (below(m, 3) == 0), dilation = 1 + (below(m, 5) == 0),
                   wide = (k - 1) * dilation + 1, a = below(m, 4) ? wide / 2 : 0,
                   b = k == 2 && below(m, 2) ? 0 : a;
    char bias[48] = "";
    if (below(m, 2))
        snprintf(bias, sizeof bias, ", b%u: f32[%d] random %u", m->constants, to, m->constants + 5);
    add_line(m,
             "v%u = Conv(v%u, c%u: f32[%d,%d,%u,%u] random %u%s) "
             "{pads=[%u,%u,%u,%u],strides=[%u,%u],dilations=[%u,%u],group=%d}",
             m->n, v, m->constants, to, own ? 1 : c, k, k, m->constants, bias, a, a, b, b, stride,
             stride, dilation, dilation, own ? c : 1);
    m->constants++;
    new_value(m, behind(with_dim(m->value[v], 1, "%d", to), wide, stride, a + b, 'w'));
}

static void transposed(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 1);
    const uint32_t k = 2 + 2 * below(m, 2);
    add_line(m, "v%u = ConvTranspose(v%u, c%u: f32[%d,2,%u,%u] random %u) {strides=[2,2]}", m->n, v,
             m->constants, c, k, k, m->constants);
    m->constants++;
    shape s = with_dim(m->value[v], 1, "2");
    for (uint32_t x = 2; x < 4; x++)
        s = number_of(&s, x) ? with_dim(s, x, "%d", 2 * number_of(&s, x) + (int)k - 2)
                             : with_dim(s, x, "t%u(%.50s)", k, m->value[v].dim[x]);
    new_value(m, s);
}

static void pool(making *m, uint32_t v) {
    const uint32_t k = 2 + below(m, 2), stride = below(m, 3) ? 2 : 1, pad = k == 3 && below(m, 2);
    const bool mean = below(m, 3) == 0;
    add_line(m, "v%u = %s(v%u) {kernel_shape=[%u,%u],strides=[%u,%u],pads=[%u,%u,%u,%u]%s}", m->n,
             mean ? "AveragePool" : "MaxPool", v, k, k, stride, stride, pad, pad, pad, pad,
             mean && below(m, 2) ? ",count_include_pad=1" : "");
    new_value(m, behind(m->value[v], k, stride, 2 * pad, 'p'));
}

static void resize(making *m, uint32_t v) {
    const bool linear = below(m, 4) == 0;
    add_line(m, "v%u = Resize(v%u, _, c%u: f32[4] {1,1,2,2}) {mode=\"%s\",%s}", m->n, v,
             m->constants++, linear ? "linear" : "nearest",
             linear ? "coordinate_transformation_mode=\"half_pixel\""
                    : "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"");
    shape s = m->value[v];
    for (uint32_t x = 2; x < 4; x++)
        s = number_of(&s, x) ? with_dim(s, x, "%d", 2 * number_of(&s, x))
                             : with_dim(s, x, "2(%.50s)", m->value[v].dim[x]);
    new_value(m, s);
}

static void channels(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 1);
    const uint32_t k = m->constants;
    m->constants += 4;
    if (below(m, 3) == 0)
        add_line(m,
                 "v%u = BatchNormalization(v%u, c%u: f32[%d] random %u, c%u: f32[%d] random %u, "
                 "c%u: f32[%d] random %u, c%u: f32[%d] {1.5})",
                 m->n, v, k, c, k, k + 1, c, k + 1, k + 2, c, k + 2, k + 3, c);
    else
        add_line(m, "v%u = %s(v%u, c%u: f32[%d,1,1] random %u)", m->n, ONE_OF(m, "Mul", "Add"), v,
                 k, c, k);
    new_value(m, m->value[v]);
}

/* Means of channels and a gate by them. */
static void gate(making *m, uint32_t v) {
    const uint32_t t = m->n;
    shape s = with_dim(with_dim(m->value[v], 2, "1"), 3, "1");
    if (below(m, 2))
        add_line(m, "v%u = %s(v%u)", t, ONE_OF(m, "GlobalAveragePool", "GlobalMaxPool"), v);
    else
        add_line(m, "v%u = ReduceMean(v%u) {axes=[2,3]}", t, v);
    new_value(m, s);
    const int c = number_of(&s, 1);
    add_line(m, "v%u = Conv(v%u, c%u: f32[%d,%d,1,1] random %u)", t + 1, t, m->constants, c, c,
             m->constants);
    m->constants++;
    new_value(m, s);
    add_line(m, "v%u = Sigmoid(v%u)", t + 2, t + 1);
    new_value(m, s);
    add_line(m, "v%u = Mul(v%u, v%u)", t + 3, v, t + 2);
    new_value(m, m->value[v]);
}

static void pad_map(making *m, uint32_t v) {
    const uint32_t a = below(m, 2), b = below(m, 3);
    add_line(m, "v%u = Pad(v%u, c%u: i64[8] {0,0,%u,%u,0,0,%u,%u})", m->n, v, m->constants++, a, a,
             b, b);
    new_value(m, behind(m->value[v], 1, 1, a + b, 'a'));
}

/* Channels last, a product, and back. */
static void channels_last(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 1);
    const uint32_t t = m->n;
    add_line(m, "v%u = Transpose(v%u) {perm=[0,2,3,1]}", t, v);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = MatMul(v%u, c%u: f32[%d,%d] random %u)", t + 1, t, m->constants, c, c,
             m->constants);
    m->constants++;
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = Transpose(v%u) {perm=[0,3,1,2]}", t + 2, t + 1);
    new_value(m, m->value[v]);
}

/* All pixels in a row, and back. */
static void in_a_row(making *m, uint32_t v) {
    const uint32_t t = m->n;
    add_line(m, "s%u = Shape(v%u)", t, v);
    add_line(m, "v%u = Reshape(v%u, c%u: i64[3] {0,0,-1})", t, v, m->constants++);
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = %s(v%u)%s", t + 1, below(m, 2) ? "Softmax" : "Relu", t, "");
    new_value(m, (shape){.rank = 0});
    add_line(m, "v%u = Reshape(v%u, s%u)", t + 2, t + 1, t);
    new_value(m, m->value[v]);
}

static void blocks(making *m, uint32_t v) {
    const int c = number_of(&m->value[v], 1);
    shape s = m->value[v];
    if (c % 4 != 0 || c == 0)
        return;
    s = with_dim(s, 1, "%d", c / 4);
    for (uint32_t x = 2; x < 4; x++)
        s = number_of(&s, x) ? with_dim(s, x, "%d", 2 * number_of(&s, x))
                             : with_dim(s, x, "2(%.50s)", m->value[v].dim[x]);
    add_line(m, "v%u = DepthToSpace(v%u) {blocksize=2,mode=\"%s\"}", m->n, v,
             below(m, 2) ? "DCR" : "CRD");
    new_value(m, s);
}

static void map_node(making *m, uint32_t v) {
    switch (below(m, 20)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        conv(m, v);
        break;
    case 5:
        transposed(m, v);
        break;
    case 6:
    case 7:
        pool(m, v);
        break;
    case 8:
        resize(m, v);
        break;
    case 9:
    case 10:
        channels(m, v);
        break;
    case 11:
        gate(m, v);
        break;
    case 12:
        pad_map(m, v);
        break;
    case 13:
        channels_last(m, v);
        break;
    case 14:
        in_a_row(m, v);
        break;
    case 15:
        blocks(m, v);
        break;
    case 16:
        concat(m, v, 1);
        break;
    case 17:
        slice(m, v, 1 + below(m, 3));
        break;
    case 18:
        unary(m, v);
        break;
    default:
        if (below(m, 2))
            combine(m, v);
        else
            scalar(m, v);
    }
}

/* --- a graph --- */

static shape input_shape(making *m) {
    shape s = {.rank = m->maps ? 4 : 3};
    const char *n = ONE_OF(m, "N", "1", "2", "N");
    s = with_dim(s, 0, "%s", n);
    if (m->maps) {
        const uint32_t which = below(m, 5); /* both, one, the same */
        s = with_dim(s, 1, "%s", ONE_OF(m, "2", "3", "4"));
        s = with_dim(s, 2, "%s", which == 0 ? "12" : "H");
        return with_dim(s, 3, "%s", which == 1 ? "12" : which == 2 ? "H" : "W");
    }
    s = with_dim(s, 1, "T");
    return with_dim(s, 2, "%s", ONE_OF(m, "4", "6"));
}

static void add_input(making *m, shape s) {
    char dims[160] = "", *inputs = m->g->inputs;
    for (uint32_t i = 0; i < s.rank; i++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims),
                 number_of(&s, i) ? "%s%s" : "%s\"%s\"", i ? "," : "", s.dim[i]);
    const size_t at = strlen(inputs);
    snprintf(inputs + at, sizeof m->g->inputs - at, "%sv%u: f32[%s]", at ? ", " : "", m->n, dims);
    new_value(m, s);
}

void generate_graph(generated *g, uint64_t seed) {
    making m = {.g = g, .lots = {.seed = seed, .stream = 61}};
    *g = (generated){.n = 0};
    m.maps = below(&m, 2) != 0;
    const shape s = input_shape(&m);
    add_input(&m, s);
    if (below(&m, 3) == 0)
        add_input(&m, m.maps ? s : with_dim(s, 1, "%s", ONE_OF(&m, "T", "S", "S")));
    const uint32_t nodes = 3 + below(&m, 7);
    for (uint32_t i = 0; i < nodes && m.n + 10 < VALUES; i++) {
        /* Mostly the last. */
        uint32_t v = below(&m, 4) ? m.n - 1 : below(&m, m.n);
        while (m.value[v].rank != s.rank)
            v = v ? v - 1 : m.n - 1;
        if (m.maps)
            map_node(&m, v);
        else
            token_node(&m, v);
    }
    snprintf(g->outputs, sizeof g->outputs, "y");
    if (below(&m, 4) == 0 && m.n > 3 && m.value[m.n - 2].rank) {
        add_line(&m, "z = Identity(v%u)", m.n - 2);
        snprintf(g->outputs, sizeof g->outputs, "y, z");
    }
    add_line(&m, "y = Identity(v%u)", m.n - 1);
}

const char *generated_text(const generated *g, po_arena *arena) {
    po_text text;
    po_text_init(&text, arena);
    po_text_printf(&text, "pir 1 ir_version=8 opset=17\ngraph g (%s) -> (%s) {\n", g->inputs,
                   g->outputs);
    for (uint32_t i = 0; i < g->n; i++)
        po_text_printf(&text, " %s\n", g->line[i]);
    po_text_printf(&text, "}\n");
    return text.data;
}
