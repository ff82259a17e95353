/* Networks that label every pixel, whose decoders convolve maps that linear interpolation made
 * larger: U2-Net of Qin et al. 2020 (arXiv 2005.09007), UPerNet of Xiao et al. 2018 (arXiv
 * 1807.10221) and DeepLabv3+ of Chen et al. 2018 (arXiv 1802.02611), the last two behind ResNet-18;
 * and two heads alone, that of HRNet-W18 with OCR (Yuan et al. 2020, arXiv 1909.11065) at 512 x 512
 * and that of MiDaS v2.1 (Ranftl et al. 2020, arXiv 1907.01341) at 384 x 384. All as PyTorch is
 * exported: Resize by pytorch_half_pixel. */
#include "net.h"

/* By constant scales. */
static po_val larger(net *n, po_val x, int64_t factor) {
    const float by[4] = {1, 1, (float)factor, (float)factor};
    po_val scales = po_build_data(n->b, NULL, "f32", 1, (int64_t[]){4}, by);
    po_val y = po_build_node(n->b, NULL, "Resize", NULL, 3, (po_val[]){x, PO_OMITTED, scales});
    po_build_attr_string(n->b, y, "coordinate_transformation_mode", "pytorch_half_pixel");
    po_build_attr_string(n->b, y, "mode", "linear");
    return y;
}

static po_val joined(net *n, po_val a, po_val b) {
    return net_concat(n, 2, (po_val[]){a, b}, 1);
}

static po_val layer(net *n, po_val x, const char *name, int64_t in, int64_t out, int64_t kernel,
                    int64_t dilation) {
    name_buffer norm;
    window w = square(kernel, 1, kernel / 2 * dilation);
    w.dilation[0] = w.dilation[1] = dilation;
    return net_conv_bn_relu(n, x, name, name_of(&norm, "%s.bn", name), in, out, &w, 1e-5f);
}

/* --- U2-Net --- */

enum { MOST_DEPTH = 7 };

/* A U of `depth` levels inside: down by pools, up by interpolation; flat: by dilation instead. */
static po_val u_block(net *n, po_val x, const char *block, int depth, bool flat, int64_t in,
                      int64_t mid, int64_t out) {
    name_buffer name;
    window pool = square(2, 2, 0);
    po_val level[MOST_DEPTH], whole = layer(n, x, name_of(&name, "%s.in", block), in, out, 3, 1);
    x = whole;
    for (int i = 0; i < depth - 1; i++) {
        x = layer(n, x, name_of(&name, "%s.down%d", block, i), i ? mid : out, mid, 3,
                  flat ? (int64_t)1 << i : 1);
        level[i] = x;
        if (!flat && i < depth - 2)
            x = net_max_pool(n, x, &pool);
    }
    x = layer(n, x, name_of(&name, "%s.bottom", block), mid, mid, 3,
              flat ? (int64_t)1 << (depth - 1) : 2);
    for (int i = depth - 2; i >= 0; i--) {
        x = layer(n, joined(n, x, level[i]), name_of(&name, "%s.up%d", block, i), 2 * mid,
                  i ? mid : out, 3, flat ? (int64_t)1 << i : 1);
        if (!flat && i > 0)
            x = larger(n, x, 2);
    }
    return net_op2(n, "Add", x, whole);
}

void build_u2net(net *n) {
    static const struct {
        int depth;
        bool flat;
        int64_t in, mid, out;
    } down[6] = {{7, false, 3, 32, 64},     {6, false, 64, 32, 128},  {5, false, 128, 64, 256},
                 {4, false, 256, 128, 512}, {4, true, 512, 256, 512}, {4, true, 512, 256, 512}},
      up[5] = {{7, false, 128, 16, 64},
               {6, false, 256, 32, 64},
               {5, false, 512, 64, 128},
               {4, false, 1024, 128, 256},
               {4, true, 1024, 256, 512}};
    name_buffer name;
    window pool = square(2, 2, 0), three = square(3, 1, 1), one = square(1, 1, 0);
    po_val x = po_build_input(n->b, "image", "f32[1,3,320,320]"), level[6], side[6];
    for (int i = 0; i < 6; i++) {
        x = u_block(n, x, name_of(&name, "stage%d", i + 1), down[i].depth, down[i].flat, down[i].in,
                    down[i].mid, down[i].out);
        level[i] = x;
        x = i < 5 ? net_max_pool(n, x, &pool) : x;
    }
    side[5] = net_conv(n, x, "side6", 512, 1, &three, true);
    for (int i = 4; i >= 0; i--) {
        x = u_block(n, joined(n, larger(n, x, 2), level[i]), name_of(&name, "stage%dd", i + 1),
                    up[i].depth, up[i].flat, up[i].in, up[i].mid, up[i].out);
        side[i] = net_conv(n, x, name_of(&name, "side%d", i + 1), up[i].out, 1, &three, true);
    }
    for (int i = 1; i < 6; i++)
        side[i] = larger(n, side[i], (int64_t)1 << i);
    x = net_conv(n, net_concat(n, 6, side, 1), "outconv", 6, 1, &one, true);
    po_build_output(n->b, net_op1(n, "Sigmoid", x), "mask");
}

/* --- behind ResNet-18 --- */

void build_upernet(net *n) {
    enum { WIDTH = 256, LEVELS = 4 };
    name_buffer name;
    po_val x = po_build_input(n->b, "image", "f32[1,3,256,256]"), level[LEVELS];
    net_resnet18_levels(n, x, level);
    for (int i = LEVELS - 1; i >= 0; i--) {
        level[i] =
            layer(n, level[i], name_of(&name, "lateral%d", i), (int64_t)64 << i, WIDTH, 1, 1);
        if (i < LEVELS - 1)
            level[i] = net_op2(n, "Add", level[i], larger(n, level[i + 1], 2));
    }
    for (int i = 0; i < LEVELS; i++) {
        level[i] = layer(n, level[i], name_of(&name, "fpn%d", i), WIDTH, WIDTH, 3, 1);
        if (i > 0)
            level[i] = larger(n, level[i], (int64_t)1 << i);
    }
    x = layer(n, net_concat(n, LEVELS, level, 1), "bottleneck", LEVELS * WIDTH, WIDTH, 3, 1);
    window one = square(1, 1, 0);
    po_build_output(n->b, net_conv(n, x, "classes", WIDTH, 150, &one, true), "labels");
}

void build_deeplab(net *n) {
    enum { WIDTH = 256, LOW = 48, RATES = 4 };
    name_buffer name;
    po_val x = po_build_input(n->b, "image", "f32[1,3,256,256]"), level[4], part[RATES];
    net_resnet18_levels(n, x, level);
    for (int64_t i = 0; i < RATES; i++)
        part[i] = layer(n, level[2], name_of(&name, "aspp%d", (int)i), WIDTH, WIDTH, i ? 3 : 1,
                        i ? 6 * i : 1);
    x = layer(n, net_concat(n, RATES, part, 1), "project", RATES * WIDTH, WIDTH, 1, 1);
    x = joined(n, larger(n, x, 4), layer(n, level[0], "low", 64, LOW, 1, 1));
    x = layer(n, x, "refine1", WIDTH + LOW, WIDTH, 3, 1);
    x = layer(n, x, "refine2", WIDTH, WIDTH, 3, 1);
    window one = square(1, 1, 0);
    x = net_conv(n, x, "classes", WIDTH, 21, &one, true);
    po_build_output(n->b, larger(n, x, 4), "labels");
}

/* --- heads alone --- */

void build_hrnet_head(net *n) {
    enum { LEVELS = 4, SIDE = 128, JOINED = 18 * 15, WIDTH = 512 };
    name_buffer name;
    po_val level[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        const int64_t side = SIDE >> i, dims[4] = {1, (int64_t)18 << i, side, side};
        level[i] = net_input(n, name_of(&name, "level%d", i), 4, dims);
        if (i > 0)
            level[i] = larger(n, level[i], (int64_t)1 << i);
    }
    po_val x = layer(n, net_concat(n, LEVELS, level, 1), "pixels", JOINED, WIDTH, 3, 1);
    window one = square(1, 1, 0);
    po_build_output(n->b, net_conv(n, x, "classes", WIDTH, 19, &one, true), "labels");
}

void build_midas_head(net *n) {
    window three = square(3, 1, 1), one = square(1, 1, 0);
    po_val x = net_input(n, "features", 4, (int64_t[]){1, 256, 192, 192});
    x = larger(n, net_conv(n, x, "conv1", 256, 128, &three, true), 2);
    x = net_op1(n, "Relu", net_conv(n, x, "conv2", 128, 32, &three, true));
    x = net_op1(n, "Relu", net_conv(n, x, "conv3", 32, 1, &one, true));
    po_build_output(n->b, x, "depth");
}
