/* Random nodes of tokens [N, T, C]. */
#include "making.h"

#include <string.h>

static void matmul(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 2),
              to = (int)sizes_below(m, 2) ? c : 2 + 2 * (int)sizes_below(m, 3);
    if (sizes_below(m, 4) == 0)
        sizes_line(m, "v%u = Einsum(v%u, c%u: f32[%d,%d] random %u) {equation=\"btc,cd->btd\"}",
                   m->n, v, m->constants, c, to, m->constants);
    else
        sizes_line(m, "v%u = MatMul(v%u, c%u: f32[%d,%d] random %u)", m->n, v, m->constants, c, to,
                   m->constants);
    m->constants++;
    const uint32_t out = sizes_value(m, sizes_dim(m->value[v], 2, "%d", to));
    if (sizes_below(m, 2) == 0)
        return;
    sizes_line(m, "v%u = Add(v%u, c%u: f32[%d] random %u)", m->n, out, m->constants, to,
               m->constants);
    m->constants++;
    sizes_value(m, m->value[out]);
}

static void row(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 2);
    if (sizes_below(m, 3) == 0)
        sizes_line(m, "v%u = LayerNormalization(v%u, c%u: f32[%d] random %u)", m->n, v,
                   m->constants, c, m->constants);
    else
        sizes_line(m, "v%u = %s(v%u, c%u: f32[%d] random %u)", m->n, ONE_OF(m, "Mul", "Add"), v,
                   m->constants, c, m->constants);
    m->constants++;
    sizes_value(m, m->value[v]);
}

static void softmax(making *m, uint32_t v) {
    sizes_line(m, "v%u = Softmax(v%u) {axis=%d}", m->n, v, sizes_below(m, 4) == 0 ? 1 : -1);
    sizes_value(m, m->value[v]);
}

/* Queries of one value, keys and values of another of as many channels. */
static void attention(making *m, uint32_t v) {
    const uint32_t w = sizes_partner(m, v, sizes_below(m, 2) ? 1 : 4);
    const uint32_t t = m->n;
    shape s = m->value[w];
    memcpy(s.dim[1], m->value[w].dim[2], DIM);
    memcpy(s.dim[2], m->value[w].dim[1], DIM);
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,2,1]}", t, w);
    sizes_value(m, s);
    shape q = m->value[v];
    memcpy(q.dim[2], m->value[w].dim[1], DIM);
    sizes_line(m, "v%u = MatMul(v%u, v%u)", t + 1, v, t);
    sizes_value(m, q);
    sizes_line(m, "v%u = Softmax(v%u) {axis=-1}", t + 2, t + 1);
    sizes_value(m, q);
    sizes_line(m, "v%u = MatMul(v%u, v%u)", t + 3, t + 2, w);
    sizes_value(m, m->value[v]);
}

static void heads(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 2);
    const uint32_t t = m->n, k = m->constants;
    if (c % 2 != 0 || c == 0)
        return;
    m->constants += 2;
    shape four = {.rank = 4};
    memcpy(four.dim[0], m->value[v].dim[0], DIM);
    memcpy(four.dim[2], m->value[v].dim[1], DIM);
    four = sizes_dim(sizes_dim(four, 1, "2"), 3, "%d", c / 2);
    /* Of maps there are none, so that four axes are heads. */
    sizes_line(m, "v%u = Reshape(v%u, c%u: i64[4] {0,0,2,%d})", t, v, k, c / 2);
    shape apart = four;
    memcpy(apart.dim[1], four.dim[2], DIM);
    apart = sizes_dim(apart, 2, "2");
    sizes_value(m, apart);
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,2,1,3]}", t + 1, t);
    sizes_value(m, four);
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,1,3,2]}", t + 2, t + 1);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = MatMul(v%u, v%u)", t + 3, t + 1, t + 2);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = Softmax(v%u) {axis=-1}", t + 4, t + 3);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = MatMul(v%u, v%u)", t + 5, t + 4, t + 1);
    sizes_value(m, four);
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,2,1,3]}", t + 6, t + 5);
    sizes_value(m, apart);
    sizes_line(m, "v%u = Reshape(v%u, c%u: i64[3] {0,0,%d})", t + 7, t + 6, k + 1, c);
    sizes_value(m, m->value[v]);
}

static void reduce(making *m, uint32_t v) {
    const uint32_t t = m->n;
    const char *op = ONE_OF(m, "ReduceMean", "ReduceMax", "ReduceL2", "ReduceMin", "ReduceMean");
    if (sizes_below(m, 4) == 0) {
        sizes_line(m, "v%u = ReduceSum(v%u, c%u: i64[1] {1})", t, v, m->constants++);
    } else {
        sizes_line(m, "v%u = %s(v%u) {axes=[1]}", t, op, v);
    }
    sizes_value(m, sizes_dim(m->value[v], 1, "1"));
    if (sizes_below(m, 2) == 0)
        return;
    sizes_line(m, "v%u = %s(v%u, v%u)", t + 1, ONE_OF(m, "Sub", "Mul", "Add"), v, t);
    sizes_value(m, m->value[v]);
}

static void token(making *m, uint32_t v) {
    const char *at = ONE_OF(m, "0", "-1", "1");
    const uint32_t t = m->n;
    sizes_line(m, "v%u = Gather(v%u, c%u: i64[1] {%s}) {axis=1}", t, v, m->constants++, at);
    sizes_value(m, sizes_dim(m->value[v], 1, "1"));
    if (sizes_below(m, 3) != 0)
        return;
    sizes_line(m, "s%u = Shape(v%u)", t, v);
    sizes_line(m, "v%u = Expand(v%u, s%u)", t + 1, t, t);
    sizes_value(m, m->value[v]);
}

static void pad_tokens(making *m, uint32_t v) {
    const uint32_t a = sizes_below(m, 3), b = sizes_below(m, 3);
    sizes_line(m, "v%u = Pad(v%u, c%u: i64[6] {0,%u,0,0,%u,0})", m->n, v, m->constants++, a, b);
    sizes_value(m, a + b == 0 || sizes_number(&m->value[v], 1)
                       ? sizes_dim(m->value[v], 1, "%.60s", m->value[v].dim[1])
                       : sizes_dim(m->value[v], 1, "pad%u(%.50s)", a + b, m->value[v].dim[1]));
    if (sizes_number(&m->value[v], 1) && a + b)
        m->value[m->n - 1] =
            sizes_dim(m->value[v], 1, "%u", (uint32_t)sizes_number(&m->value[v], 1) + a + b);
}

static void side_by_side(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 2);
    const uint32_t t = m->n;
    sizes_line(m, "v%u = Reshape(v%u, c%u: i64[2] {-1,%d})", t, v, m->constants, c);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = MatMul(v%u, c%u: f32[%d,%d] random %u)", t + 1, t, m->constants + 1, c, c,
               m->constants);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "s%u = Shape(v%u)", t, v);
    sizes_line(m, "v%u = Reshape(v%u, s%u)", t + 2, t + 1, t);
    sizes_value(m, m->value[v]);
    m->constants += 2;
}

static void places(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 2);
    const uint32_t t = m->n, k = m->constants;
    sizes_line(m, "s%u = Shape(v%u)", t, v);
    sizes_line(m, "n%u = Slice(s%u, c%u: i64[1] {1}, c%u: i64[1] {2}, c%u: i64[1] {0})", t, t, k,
               k + 1, k + 2);
    sizes_line(m, "v%u = Slice(c%u: f32[512,%d] random 7, c%u, n%u, c%u)", t, k + 3, c, k + 2, t,
               k + 2);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = Add(v%u, v%u)", t + 1, v, t);
    sizes_value(m, m->value[v]);
    m->constants += 4;
}

/* A convolution along the tokens, between two transposes. */
static void along_tokens(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 2);
    const uint32_t t = m->n, k = 1 + 2 * sizes_below(m, 2), stride = 1 + (sizes_below(m, 3) == 0),
                   pad = sizes_below(m, 3) ? k / 2 : 0;
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,2,1]}", t, v);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = Conv(v%u, c%u: f32[%d,%d,%u] random %u) {pads=[%u,%u],strides=[%u]}",
               t + 1, t, m->constants, c, c, k, m->constants, pad, pad, stride);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,2,1]}", t + 2, t + 1);
    m->constants++;
    sizes_value(m, stride == 1 && 2 * pad == k - 1 ? m->value[v]
                                                   : sizes_dim(m->value[v], 1, "w%u_%u_%u(%.40s)",
                                                               k, stride, pad, m->value[v].dim[1]));
}

void sizes_token_node(making *m, uint32_t v) {
    switch (sizes_below(m, 20)) {
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
        sizes_slice(m, v, 1 + sizes_below(m, 2));
        break;
    case 16:
        sizes_concat(m, v, 1 + sizes_below(m, 2));
        break;
    case 17:
        sizes_scalar(m, v);
        break;
    case 18:
        sizes_unary(m, v);
        break;
    default:
        sizes_combine(m, v);
    }
}
