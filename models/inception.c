/* Inception-v3 of Szegedy et al. 2016 (arXiv 1512.00567) at 299x299, without the auxiliary
 * classifier that only training uses. */
#include "net.h"

#include <stdio.h>

/* A convolution with its batch normalisation and Relu, named below its module. */
static po_val conv(net *n, po_val x, const char *module, const char *branch, int64_t in,
                   int64_t out, window w) {
    name_buffer c, b;
    const char *dot = *branch ? "." : "";
    return net_conv_bn_relu(n, x, name_of(&c, "%s%s%s.conv", module, dot, branch),
                            name_of(&b, "%s%s%s.bn", module, dot, branch), in, out, &w, 1e-3f);
}

static po_val pooled(net *n, po_val x, const char *module, int64_t in, int64_t out) {
    window w = square(3, 1, 1);
    return conv(n, net_average_pool(n, x, &w), module, "branch_pool", in, out, square(1, 1, 0));
}

static po_val halved(net *n, po_val x) {
    window w = square(3, 2, 0);
    return net_max_pool(n, x, &w);
}

static po_val module_a(net *n, po_val x, const char *m, int64_t in, int64_t pool) {
    po_val out[4];
    window one = square(1, 1, 0), three = square(3, 1, 1);
    out[0] = conv(n, x, m, "branch1x1", in, 64, one);
    out[1] = conv(n, x, m, "branch5x5_1", in, 48, one);
    out[1] = conv(n, out[1], m, "branch5x5_2", 48, 64, square(5, 1, 2));
    out[2] = conv(n, x, m, "branch3x3dbl_1", in, 64, one);
    out[2] = conv(n, out[2], m, "branch3x3dbl_2", 64, 96, three);
    out[2] = conv(n, out[2], m, "branch3x3dbl_3", 96, 96, three);
    out[3] = pooled(n, x, m, in, pool);
    return net_concat(n, 4, out, 1);
}

static po_val module_b(net *n, po_val x, const char *m) {
    po_val out[3];
    out[0] = conv(n, x, m, "branch3x3", 288, 384, square(3, 2, 0));
    out[1] = conv(n, x, m, "branch3x3dbl_1", 288, 64, square(1, 1, 0));
    out[1] = conv(n, out[1], m, "branch3x3dbl_2", 64, 96, square(3, 1, 1));
    out[1] = conv(n, out[1], m, "branch3x3dbl_3", 96, 96, square(3, 2, 0));
    out[2] = halved(n, x);
    return net_concat(n, 3, out, 1);
}

static po_val module_c(net *n, po_val x, const char *m, int64_t c) {
    po_val out[4];
    window one = square(1, 1, 0), row = oblong(1, 7), column = oblong(7, 1);
    out[0] = conv(n, x, m, "branch1x1", 768, 192, one);
    out[1] = conv(n, x, m, "branch7x7_1", 768, c, one);
    out[1] = conv(n, out[1], m, "branch7x7_2", c, c, row);
    out[1] = conv(n, out[1], m, "branch7x7_3", c, 192, column);
    out[2] = conv(n, x, m, "branch7x7dbl_1", 768, c, one);
    out[2] = conv(n, out[2], m, "branch7x7dbl_2", c, c, column);
    out[2] = conv(n, out[2], m, "branch7x7dbl_3", c, c, row);
    out[2] = conv(n, out[2], m, "branch7x7dbl_4", c, c, column);
    out[2] = conv(n, out[2], m, "branch7x7dbl_5", c, 192, row);
    out[3] = pooled(n, x, m, 768, 192);
    return net_concat(n, 4, out, 1);
}

static po_val module_d(net *n, po_val x, const char *m) {
    po_val out[3];
    window one = square(1, 1, 0), half = square(3, 2, 0);
    out[0] = conv(n, x, m, "branch3x3_1", 768, 192, one);
    out[0] = conv(n, out[0], m, "branch3x3_2", 192, 320, half);
    out[1] = conv(n, x, m, "branch7x7x3_1", 768, 192, one);
    out[1] = conv(n, out[1], m, "branch7x7x3_2", 192, 192, oblong(1, 7));
    out[1] = conv(n, out[1], m, "branch7x7x3_3", 192, 192, oblong(7, 1));
    out[1] = conv(n, out[1], m, "branch7x7x3_4", 192, 192, half);
    out[2] = halved(n, x);
    return net_concat(n, 3, out, 1);
}

static po_val module_e(net *n, po_val x, const char *m, int64_t in) {
    po_val out[4], pair[2], y;
    window one = square(1, 1, 0), row = oblong(1, 3), column = oblong(3, 1);
    out[0] = conv(n, x, m, "branch1x1", in, 320, one);
    y = conv(n, x, m, "branch3x3_1", in, 384, one);
    pair[0] = conv(n, y, m, "branch3x3_2a", 384, 384, row);
    pair[1] = conv(n, y, m, "branch3x3_2b", 384, 384, column);
    out[1] = net_concat(n, 2, pair, 1);
    y = conv(n, x, m, "branch3x3dbl_1", in, 448, one);
    y = conv(n, y, m, "branch3x3dbl_2", 448, 384, square(3, 1, 1));
    pair[0] = conv(n, y, m, "branch3x3dbl_3a", 384, 384, row);
    pair[1] = conv(n, y, m, "branch3x3dbl_3b", 384, 384, column);
    out[2] = net_concat(n, 2, pair, 1);
    out[3] = pooled(n, x, m, in, 192);
    return net_concat(n, 4, out, 1);
}

void build_inception_v3(net *n) {
    po_val x = net_input(n, "input", 4, (int64_t[]){net_batch(n, 1), 3, 299, 299});
    x = conv(n, x, "Conv2d_1a_3x3", "", 3, 32, square(3, 2, 0));
    x = conv(n, x, "Conv2d_2a_3x3", "", 32, 32, square(3, 1, 0));
    x = conv(n, x, "Conv2d_2b_3x3", "", 32, 64, square(3, 1, 1));
    x = conv(n, halved(n, x), "Conv2d_3b_1x1", "", 64, 80, square(1, 1, 0));
    x = conv(n, x, "Conv2d_4a_3x3", "", 80, 192, square(3, 1, 0));
    x = module_a(n, halved(n, x), "Mixed_5b", 192, 32);
    x = module_a(n, x, "Mixed_5c", 256, 64);
    x = module_a(n, x, "Mixed_5d", 288, 64);
    x = module_b(n, x, "Mixed_6a");
    x = module_c(n, x, "Mixed_6b", 128);
    x = module_c(n, x, "Mixed_6c", 160);
    x = module_c(n, x, "Mixed_6d", 160);
    x = module_c(n, x, "Mixed_6e", 192);
    x = module_d(n, x, "Mixed_7a");
    x = module_e(n, x, "Mixed_7b", 1280);
    x = module_e(n, x, "Mixed_7c", 2048);
    po_build_output(n->b, net_classifier(n, x, "fc", 2048, 1000), "output");
}
