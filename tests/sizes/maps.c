/* Random nodes of maps [N, C, H, W]. */
#include "making.h"

#include <stdio.h>
#include <string.h>

/* Heights and widths behind windows; the same where nothing changes. */
static shape behind(shape s, uint32_t kernel, uint32_t stride, uint32_t pads, char mark) {
    for (uint32_t x = 2; x < 4; x++) {
        const int n = sizes_number(&s, x);
        char was[DIM];
        memcpy(was, s.dim[x], DIM);
        if (stride == 1 && pads == kernel - 1)
            continue;
        s = n ? sizes_dim(s, x, "%d", (n + (int)pads - (int)kernel) / (int)stride + 1)
              : sizes_dim(s, x, "%c%u_%u_%u(%.40s)", mark, kernel, stride, pads, was);
    }
    return s;
}

static void conv(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 1);
    const bool own = sizes_below(m, 4) == 0;
    const int to = own ? c : 2 + 2 * (int)sizes_below(m, 2);
    const uint32_t k = sizes_below(m, 4) == 0   ? 1
                       : sizes_below(m, 4) == 0 ? 2
                                                : 3,
                   stride = 1 + (sizes_below(m, 3) == 0), dilation = 1 + (sizes_below(m, 5) == 0),
                   wide = (k - 1) * dilation + 1, a = sizes_below(m, 4) ? wide / 2 : 0,
                   b = k == 2 && sizes_below(m, 2) ? 0 : a;
    char bias[48] = "";
    if (sizes_below(m, 2))
        snprintf(bias, sizeof bias, ", b%u: f32[%d] random %u", m->constants, to, m->constants + 5);
    sizes_line(m,
               "v%u = Conv(v%u, c%u: f32[%d,%d,%u,%u] random %u%s) "
               "{pads=[%u,%u,%u,%u],strides=[%u,%u],dilations=[%u,%u],group=%d}",
               m->n, v, m->constants, to, own ? 1 : c, k, k, m->constants, bias, a, a, b, b, stride,
               stride, dilation, dilation, own ? c : 1);
    m->constants++;
    sizes_value(m, behind(sizes_dim(m->value[v], 1, "%d", to), wide, stride, a + b, 'w'));
}

static void transposed(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 1);
    const uint32_t k = 2 + 2 * sizes_below(m, 2);
    sizes_line(m, "v%u = ConvTranspose(v%u, c%u: f32[%d,2,%u,%u] random %u) {strides=[2,2]}", m->n,
               v, m->constants, c, k, k, m->constants);
    m->constants++;
    shape s = sizes_dim(m->value[v], 1, "2");
    for (uint32_t x = 2; x < 4; x++)
        s = sizes_number(&s, x) ? sizes_dim(s, x, "%d", 2 * sizes_number(&s, x) + (int)k - 2)
                                : sizes_dim(s, x, "t%u(%.50s)", k, m->value[v].dim[x]);
    sizes_value(m, s);
}

static void pool(making *m, uint32_t v) {
    const uint32_t k = 2 + sizes_below(m, 2), stride = sizes_below(m, 3) ? 2 : 1,
                   pad = k == 3 && sizes_below(m, 2);
    const bool mean = sizes_below(m, 3) == 0;
    sizes_line(m, "v%u = %s(v%u) {kernel_shape=[%u,%u],strides=[%u,%u],pads=[%u,%u,%u,%u]%s}", m->n,
               mean ? "AveragePool" : "MaxPool", v, k, k, stride, stride, pad, pad, pad, pad,
               mean && sizes_below(m, 2) ? ",count_include_pad=1" : "");
    sizes_value(m, behind(m->value[v], k, stride, 2 * pad, 'p'));
}

static void resize(making *m, uint32_t v) {
    const bool linear = sizes_below(m, 4) == 0;
    sizes_line(m, "v%u = Resize(v%u, _, c%u: f32[4] {1,1,2,2}) {mode=\"%s\",%s}", m->n, v,
               m->constants++, linear ? "linear" : "nearest",
               linear ? "coordinate_transformation_mode=\"half_pixel\""
                      : "coordinate_transformation_mode=\"asymmetric\",nearest_mode=\"floor\"");
    shape s = m->value[v];
    for (uint32_t x = 2; x < 4; x++)
        s = sizes_number(&s, x) ? sizes_dim(s, x, "%d", 2 * sizes_number(&s, x))
                                : sizes_dim(s, x, "2(%.50s)", m->value[v].dim[x]);
    sizes_value(m, s);
}

static void channels(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 1);
    const uint32_t k = m->constants;
    m->constants += 4;
    if (sizes_below(m, 3) == 0)
        sizes_line(m,
                   "v%u = BatchNormalization(v%u, c%u: f32[%d] random %u, c%u: f32[%d] random %u, "
                   "c%u: f32[%d] random %u, c%u: f32[%d] {1.5})",
                   m->n, v, k, c, k, k + 1, c, k + 1, k + 2, c, k + 2, k + 3, c);
    else
        sizes_line(m, "v%u = %s(v%u, c%u: f32[%d,1,1] random %u)", m->n, ONE_OF(m, "Mul", "Add"), v,
                   k, c, k);
    sizes_value(m, m->value[v]);
}

/* Means of channels and a gate by them. */
static void gate(making *m, uint32_t v) {
    const uint32_t t = m->n;
    shape s = sizes_dim(sizes_dim(m->value[v], 2, "1"), 3, "1");
    if (sizes_below(m, 2))
        sizes_line(m, "v%u = %s(v%u)", t, ONE_OF(m, "GlobalAveragePool", "GlobalMaxPool"), v);
    else
        sizes_line(m, "v%u = ReduceMean(v%u) {axes=[2,3]}", t, v);
    sizes_value(m, s);
    const int c = sizes_number(&s, 1);
    sizes_line(m, "v%u = Conv(v%u, c%u: f32[%d,%d,1,1] random %u)", t + 1, t, m->constants, c, c,
               m->constants);
    m->constants++;
    sizes_value(m, s);
    sizes_line(m, "v%u = Sigmoid(v%u)", t + 2, t + 1);
    sizes_value(m, s);
    sizes_line(m, "v%u = Mul(v%u, v%u)", t + 3, v, t + 2);
    sizes_value(m, m->value[v]);
}

static void pad_map(making *m, uint32_t v) {
    const uint32_t a = sizes_below(m, 2), b = sizes_below(m, 3);
    sizes_line(m, "v%u = Pad(v%u, c%u: i64[8] {0,0,%u,%u,0,0,%u,%u})", m->n, v, m->constants++, a,
               a, b, b);
    sizes_value(m, behind(m->value[v], 1, 1, a + b, 'a'));
}

/* Channels last, a product, and back. */
static void channels_last(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 1);
    const uint32_t t = m->n;
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,2,3,1]}", t, v);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = MatMul(v%u, c%u: f32[%d,%d] random %u)", t + 1, t, m->constants, c, c,
               m->constants);
    m->constants++;
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = Transpose(v%u) {perm=[0,3,1,2]}", t + 2, t + 1);
    sizes_value(m, m->value[v]);
}

/* All pixels in a row, and back. */
static void in_a_row(making *m, uint32_t v) {
    const uint32_t t = m->n;
    sizes_line(m, "s%u = Shape(v%u)", t, v);
    sizes_line(m, "v%u = Reshape(v%u, c%u: i64[3] {0,0,-1})", t, v, m->constants++);
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = %s(v%u)%s", t + 1, sizes_below(m, 2) ? "Softmax" : "Relu", t, "");
    sizes_value(m, (shape){.rank = 0});
    sizes_line(m, "v%u = Reshape(v%u, s%u)", t + 2, t + 1, t);
    sizes_value(m, m->value[v]);
}

static void blocks(making *m, uint32_t v) {
    const int c = sizes_number(&m->value[v], 1);
    shape s = m->value[v];
    if (c % 4 != 0 || c == 0)
        return;
    s = sizes_dim(s, 1, "%d", c / 4);
    for (uint32_t x = 2; x < 4; x++)
        s = sizes_number(&s, x) ? sizes_dim(s, x, "%d", 2 * sizes_number(&s, x))
                                : sizes_dim(s, x, "2(%.50s)", m->value[v].dim[x]);
    sizes_line(m, "v%u = DepthToSpace(v%u) {blocksize=2,mode=\"%s\"}", m->n, v,
               sizes_below(m, 2) ? "DCR" : "CRD");
    sizes_value(m, s);
}

void sizes_map_node(making *m, uint32_t v) {
    switch (sizes_below(m, 20)) {
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
        sizes_concat(m, v, 1);
        break;
    case 17:
        sizes_slice(m, v, 1 + sizes_below(m, 3));
        break;
    case 18:
        sizes_unary(m, v);
        break;
    default:
        if (sizes_below(m, 2))
            sizes_combine(m, v);
        else
            sizes_scalar(m, v);
    }
}
