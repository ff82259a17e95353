/* Networks of grouped convolutions: MobileNet-v2 (Sandler et al. 2018, arXiv 1801.04381), depthwise
 * ones between narrow maps, and ResNeXt-50 32x4d (Xie et al. 2017, arXiv 1611.05431). */
#include "net.h"

static po_val relu6(net *n, po_val x) {
    return po_build_node(n->b, NULL, "Clip", NULL, 3,
                         (po_val[]){x, po_build_f32(n->b, 0), po_build_f32(n->b, 6)});
}

static po_val norm_relu6(net *n, po_val x, const char *name, int64_t c) {
    name_buffer norm;
    return relu6(n, net_batch_norm(n, x, name_of(&norm, "%s.bn", name), c, 1e-5f));
}

static po_val inverted(net *n, po_val x, const char *block, int64_t in, int64_t out, int64_t widen,
                       int64_t stride) {
    name_buffer name, norm;
    window one = square(1, 1, 0), deep = square(3, stride, 1);
    int64_t c = in * widen;
    po_val y = x;
    if (widen != 1) {
        y = net_conv(n, y, name_of(&name, "%s.widen", block), in, c, &one, false);
        y = norm_relu6(n, y, name.text, c);
    }
    y = net_conv_group(n, y, name_of(&name, "%s.deep", block), c, c, c, &deep, false);
    y = norm_relu6(n, y, name.text, c);
    y = net_conv(n, y, name_of(&name, "%s.narrow", block), c, out, &one, false);
    y = net_batch_norm(n, y, name_of(&norm, "%s.narrow.bn", block), out, 1e-5f);
    return stride == 1 && in == out ? net_op2(n, "Add", x, y) : y;
}

void build_mobilenet_v2(net *n) {
    static const struct {
        int64_t widen, out, count, stride;
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    name_buffer name;
    window stem = square(3, 2, 1), one = square(1, 1, 0);
    po_val x = po_build_input(n->b, "image", "f32[1,3,224,224]");
    x = norm_relu6(n, net_conv(n, x, "stem", 3, 32, &stem, false), "stem", 32);
    int64_t c = 32;
    int block = 0;
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++)
        for (int64_t i = 0; i < stages[s].count; i++) {
            x = inverted(n, x, name_of(&name, "block%d", block++), c, stages[s].out,
                         stages[s].widen, i ? 1 : stages[s].stride);
            c = stages[s].out;
        }
    x = norm_relu6(n, net_conv(n, x, "last", c, 1280, &one, false), "last", 1280);
    po_build_output(n->b, net_classifier(n, x, "head", 1280, 1000), "classes");
}

static po_val grouped(net *n, po_val x, const char *block, int64_t in, int64_t wide, int64_t out,
                      int64_t stride) {
    enum { GROUPS = 32 };
    name_buffer conv, norm;
    window one = square(1, 1, 0), three = square(3, stride, 1), fit = square(1, stride, 0);
    po_val y = net_conv_bn_relu(n, x, name_of(&conv, "%s.conv1", block),
                                name_of(&norm, "%s.bn1", block), in, wide, &one, 1e-5f);
    y = net_conv_group(n, y, name_of(&conv, "%s.conv2", block), wide, wide, GROUPS, &three, false);
    y = net_op1(n, "Relu", net_batch_norm(n, y, name_of(&norm, "%s.bn2", block), wide, 1e-5f));
    y = net_conv(n, y, name_of(&conv, "%s.conv3", block), wide, out, &one, false);
    y = net_batch_norm(n, y, name_of(&norm, "%s.bn3", block), out, 1e-5f);
    if (in != out) {
        x = net_conv(n, x, name_of(&conv, "%s.fit", block), in, out, &fit, false);
        x = net_batch_norm(n, x, name_of(&norm, "%s.fit.bn", block), out, 1e-5f);
    }
    return net_op1(n, "Relu", net_op2(n, "Add", y, x));
}

void build_resnext50(net *n) {
    static const int depth[4] = {3, 4, 6, 3};
    name_buffer name;
    window stem = square(7, 2, 3), pool = square(3, 2, 1);
    po_val x = po_build_input(n->b, "image", "f32[1,3,224,224]");
    x = net_max_pool(n, net_conv_bn_relu(n, x, "stem", "stem.bn", 3, 64, &stem, 1e-5f), &pool);
    int64_t c = 64;
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < depth[stage]; i++) {
            int64_t wide = (int64_t)128 << stage;
            x = grouped(n, x, name_of(&name, "stage%d.%d", stage, i), c, wide, 2 * wide,
                        stage && i == 0 ? 2 : 1);
            c = 2 * wide;
        }
    po_build_output(n->b, net_classifier(n, x, "head", c, 1000), "classes");
}
