/* Networks over images of other kinds than the classifiers of the papers: large depthwise kernels
 * with layer norms, a detector with split and joined branches, an encoder and decoder, a generator,
 * a small one with gates. */
#include "net.h"

/* --- ConvNeXt (Liu et al. 2022, arXiv 2201.03545), the "pico" size of its small variants --- */

static const int64_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};

static po_val norm_channels(net *n, po_val x, const char *name, int64_t channels) {
    po_val y = net_layer_norm(n, net_transpose(n, x, 4, to_last), name, channels, 1e-6f);
    return net_transpose(n, y, 4, to_first);
}

static po_val next_block(net *n, po_val x, const char *block, int64_t c) {
    name_buffer name;
    window w = square(7, 1, 3);
    po_val y = net_conv_group(n, x, name_of(&name, "%s.depthwise", block), c, c, c, &w, true);
    y = net_transpose(n, y, 4, to_last);
    y = net_layer_norm(n, y, name_of(&name, "%s.norm", block), c, 1e-6f);
    y = net_gelu(n, net_linear(n, y, name_of(&name, "%s.widen", block), c, 4 * c));
    y = net_linear(n, y, name_of(&name, "%s.narrow", block), 4 * c, c);
    y = net_op2(n, "Mul", net_vector(n, name_of(&name, "%s.scale", block), c, 0.2, 0.5), y);
    return net_op2(n, "Add", x, net_transpose(n, y, 4, to_first));
}

void build_convnext(net *n) {
    static const int depth[4] = {2, 2, 6, 2};
    name_buffer name;
    int64_t c = 64;
    window stem = square(4, 4, 0), halve = square(2, 2, 0);
    po_val x = po_build_input(n->b, "image", "f32[1,3,224,224]");
    x = norm_channels(n, net_conv(n, x, "stem", 3, c, &stem, true), "stem.norm", c);
    for (int stage = 0; stage < 4; stage++) {
        if (stage) {
            x = norm_channels(n, x, name_of(&name, "down%d.norm", stage), c);
            x = net_conv(n, x, name_of(&name, "down%d", stage), c, 2 * c, &halve, true);
            c *= 2;
        }
        for (int i = 0; i < depth[stage]; i++)
            x = next_block(n, x, name_of(&name, "stage%d.%d", stage, i), c);
    }
    x = net_op1(n, "ReduceMean", x);
    po_build_attr_ints(n->b, x, "axes", 2, (int64_t[]){2, 3});
    po_build_attr_int(n->b, x, "keepdims", 0);
    x = net_layer_norm(n, x, "norm", c, 1e-6f);
    po_build_output(n->b, net_linear(n, x, "head", c, 1000), "classes");
}

/* --- a detector of YOLO's kind: cross-stage blocks, two ways through a pyramid, three heads --- */

static po_val unit(net *n, po_val x, const char *name, int64_t in, int64_t out, int64_t kernel,
                   int64_t stride) {
    name_buffer norm;
    window w = square(kernel, stride, kernel / 2);
    po_val y = net_conv(n, x, name, in, out, &w, false);
    return net_silu(n, net_batch_norm(n, y, name_of(&norm, "%s.bn", name), out, 1e-3f));
}

/* Half of the channels go through `count` pairs of 3x3 convolutions; every stage is kept. */
static po_val cross_stage(net *n, po_val x, const char *block, int64_t in, int64_t out, int count,
                          bool residual) {
    enum { MOST = 4 };
    name_buffer name;
    int64_t half = out / 2;
    po_val parts[2 + MOST];
    parts[0] = net_split2(n, unit(n, x, name_of(&name, "%s.cv1", block), in, out, 1, 1), 1, half,
                          &parts[1]);
    for (int i = 0; i < count; i++) {
        po_val y = unit(n, parts[1 + i], name_of(&name, "%s.m%d.cv1", block, i), half, half, 3, 1);
        y = unit(n, y, name_of(&name, "%s.m%d.cv2", block, i), half, half, 3, 1);
        parts[2 + i] = residual ? net_op2(n, "Add", parts[1 + i], y) : y;
    }
    po_val joined = net_concat(n, 2 + (size_t)count, parts, 1);
    return unit(n, joined, name_of(&name, "%s.cv2", block), (2 + count) * half, out, 1, 1);
}

static po_val pyramid_pool(net *n, po_val x, int64_t c) {
    window w = square(5, 1, 2);
    po_val parts[4] = {unit(n, x, "sppf.cv1", c, c / 2, 1, 1)};
    for (int i = 0; i < 3; i++)
        parts[i + 1] = net_max_pool(n, parts[i], &w);
    return unit(n, net_concat(n, 4, parts, 1), "sppf.cv2", 2 * c, c, 1, 1);
}

static po_val doubled(net *n, po_val x) {
    po_val in[3] = {
        x, PO_OMITTED,
        po_build_data(n->b, NULL, "f32", 1, (int64_t[]){4}, (const float[]){1, 1, 2, 2})};
    po_val y = po_build_node(n->b, NULL, "Resize", NULL, 3, in);
    po_build_attr_string(n->b, y, "coordinate_transformation_mode", "asymmetric");
    po_build_attr_string(n->b, y, "mode", "nearest");
    po_build_attr_string(n->b, y, "nearest_mode", "floor");
    return y;
}

static po_val joined(net *n, po_val x, po_val y) {
    return net_concat(n, 2, (po_val[]){x, y}, 1);
}

enum { BINS = 16, KINDS = 80, PLACES = 2100 };

/* Distances to the four sides as distributions, and the kinds' scores: [1, 144, places]. */
static po_val head(net *n, po_val x, int scale, int64_t c) {
    name_buffer name;
    window one = square(1, 1, 0);
    po_val box = unit(n, x, name_of(&name, "head%d.box1", scale), c, 64, 3, 1);
    box = unit(n, box, name_of(&name, "head%d.box2", scale), 64, 64, 3, 1);
    box = net_conv(n, box, name_of(&name, "head%d.box3", scale), 64, INT64_C(4) * BINS, &one, true);
    po_val kind = unit(n, x, name_of(&name, "head%d.kind1", scale), c, KINDS, 3, 1);
    kind = unit(n, kind, name_of(&name, "head%d.kind2", scale), KINDS, KINDS, 3, 1);
    kind = net_conv(n, kind, name_of(&name, "head%d.kind3", scale), KINDS, KINDS, &one, true);
    return net_op2(n, "Reshape", joined(n, box, kind),
                   po_build_i64(n->b, 3, (int64_t[]){1, 4 * BINS + KINDS, -1}));
}

/* The mean of each distribution. */
static po_val distances(net *n, po_val box) {
    float bins[BINS];
    for (int i = 0; i < BINS; i++)
        bins[i] = (float)i;
    po_val y = net_op2(n, "Reshape", box, po_build_i64(n->b, 4, (int64_t[]){1, 4, BINS, PLACES}));
    y = net_op1(n, "Softmax", net_transpose(n, y, 4, (int64_t[]){0, 2, 1, 3}));
    po_build_attr_int(n->b, y, "axis", 1);
    y = net_op2(n, "Conv", y,
                po_build_data(n->b, "dfl.weight", "f32", 4, (int64_t[]){1, BINS, 1, 1}, bins));
    return net_op2(n, "Reshape", y, po_build_i64(n->b, 3, (int64_t[]){1, 4, PLACES}));
}

void build_yolo(net *n) {
    po_val x = po_build_input(n->b, "images", "f32[1,3,320,320]");
    x = unit(n, unit(n, x, "stem0", 3, 16, 3, 2), "stem1", 16, 32, 3, 2);
    x = unit(n, cross_stage(n, x, "c1", 32, 32, 1, true), "down1", 32, 64, 3, 2);
    po_val p3 = cross_stage(n, x, "c2", 64, 64, 2, true);
    po_val p4 = cross_stage(n, unit(n, p3, "down2", 64, 128, 3, 2), "c3", 128, 128, 2, true);
    x = cross_stage(n, unit(n, p4, "down3", 128, 256, 3, 2), "c4", 256, 256, 1, true);
    po_val p5 = pyramid_pool(n, x, 256);
    p4 = cross_stage(n, joined(n, doubled(n, p5), p4), "up1", 384, 128, 1, false);
    p3 = cross_stage(n, joined(n, doubled(n, p4), p3), "up2", 192, 64, 1, false);
    p4 = joined(n, unit(n, p3, "back1", 64, 64, 3, 2), p4);
    p4 = cross_stage(n, p4, "down4", 192, 128, 1, false);
    p5 = joined(n, unit(n, p4, "back2", 128, 128, 3, 2), p5);
    p5 = cross_stage(n, p5, "down5", 384, 256, 1, false);
    po_val all[3] = {head(n, p3, 0, 64), head(n, p4, 1, 128), head(n, p5, 2, 256)};
    x = net_op2(n, "Split", net_concat(n, 3, all, 2),
                po_build_i64(n->b, 2, (int64_t[]){INT64_C(4) * BINS, KINDS}));
    po_build_attr_int(n->b, x, "axis", 1);
    po_val kinds = po_build_output_of(n->b, x, 1);
    x = joined(n, distances(n, x), net_op1(n, "Sigmoid", kinds));
    po_build_output(n->b, x, "boxes");
}

/* --- U-Net (Ronneberger et al. 2015, arXiv 1505.04597), 32 channels at 128x128 --- */

static po_val twice(net *n, po_val x, const char *block, int64_t in, int64_t out) {
    name_buffer conv, norm;
    window w = square(3, 1, 1);
    x = net_conv_bn_relu(n, x, name_of(&conv, "%s.conv1", block), name_of(&norm, "%s.bn1", block),
                         in, out, &w, 1e-5f);
    return net_conv_bn_relu(n, x, name_of(&conv, "%s.conv2", block),
                            name_of(&norm, "%s.bn2", block), out, out, &w, 1e-5f);
}

void build_unet(net *n) {
    enum { STEPS = 4 };
    name_buffer name;
    window half = square(2, 2, 0), one = square(1, 1, 0);
    po_val skip[STEPS], x = po_build_input(n->b, "image", "f32[1,1,128,128]");
    int64_t c = 1, next = 32;
    for (int i = 0; i < STEPS; i++, c = next, next *= 2) {
        skip[i] = twice(n, x, name_of(&name, "down%d", i), c, next);
        x = net_max_pool(n, skip[i], &half);
    }
    x = twice(n, x, "middle", c, next);
    for (int i = STEPS - 1; i >= 0; i--, next = c, c /= 2) {
        x = net_conv_transpose(n, x, name_of(&name, "up%d.widen", i), next, c, &half);
        x = twice(n, joined(n, skip[i], x), name_of(&name, "up%d", i), 2 * c, c);
    }
    x = net_conv(n, x, "head", next, 2, &one, true);
    po_build_output(n->b, net_op1(n, "Sigmoid", x), "mask");
}

/* --- DCGAN's generator (Radford et al. 2016, arXiv 1511.06434), 64x64 --- */

void build_dcgan(net *n) {
    name_buffer name, norm;
    window first = square(4, 1, 0), twofold = square(4, 2, 1);
    po_val x = po_build_input(n->b, "noise", "f32[1,100,1,1]");
    int64_t in = 100;
    for (int64_t c = 512, i = 0; c >= 64; in = c, c /= 2, i++) {
        x = net_conv_transpose(n, x, name_of(&name, "up%d", (int)i), in, c, i ? &twofold : &first);
        x = net_op1(n, "Relu", net_batch_norm(n, x, name_of(&norm, "up%d.bn", (int)i), c, 1e-5f));
    }
    x = net_conv_transpose(n, x, "last", in, 3, &twofold);
    po_build_output(n->b, net_op1(n, "Tanh", x), "image");
}

/* --- a classifier of text lines: MobileNet-v3's blocks (Howard et al. 2019, arXiv 1905.02244) with
 * 0.35 of the channels --- */

static po_val hard(net *n, po_val x, bool swish) {
    if (!swish)
        return net_op1(n, "Relu", x);
    po_val in[3] = {net_op2(n, "Add", x, po_build_f32(n->b, 3)), po_build_f32(n->b, 0),
                    po_build_f32(n->b, 6)};
    po_val clipped = po_build_node(n->b, NULL, "Clip", NULL, 3, in);
    return net_op2(n, "Div", net_op2(n, "Mul", x, clipped), po_build_f32(n->b, 6));
}

static po_val gated(net *n, po_val x, const char *block, int64_t c) {
    name_buffer name;
    window one = square(1, 1, 0);
    po_val g = net_op1(n, "GlobalAveragePool", x);
    g = net_conv(n, g, name_of(&name, "%s.squeeze", block), c, c / 4, &one, true);
    g = net_conv(n, net_op1(n, "Relu", g), name_of(&name, "%s.excite", block), c / 4, c, &one,
                 true);
    g = net_op1(n, "HardSigmoid", g);
    return net_op2(n, "Mul", x, g);
}

typedef struct line_block {
    int64_t kernel, wide, out, stride_high;
    bool gate, swish;
} line_block;

static po_val line_step(net *n, po_val x, const char *block, int64_t in, const line_block *b) {
    name_buffer conv, norm;
    window one = square(1, 1, 0), w = square(b->kernel, 1, b->kernel / 2);
    w.stride[0] = b->stride_high;
    po_val y = net_conv(n, x, name_of(&conv, "%s.expand", block), in, b->wide, &one, false);
    y = net_batch_norm(n, y, name_of(&norm, "%s.expand.bn", block), b->wide, 1e-5f);
    y = hard(n, y, b->swish);
    y = net_conv_group(n, y, name_of(&conv, "%s.deep", block), b->wide, b->wide, b->wide, &w,
                       false);
    y = net_batch_norm(n, y, name_of(&norm, "%s.deep.bn", block), b->wide, 1e-5f);
    y = hard(n, y, b->swish);
    if (b->gate)
        y = gated(n, y, block, b->wide);
    y = net_conv(n, y, name_of(&conv, "%s.project", block), b->wide, b->out, &one, false);
    y = net_batch_norm(n, y, name_of(&norm, "%s.project.bn", block), b->out, 1e-5f);
    return in == b->out && b->stride_high == 1 ? net_op2(n, "Add", x, y) : y;
}

void build_line(net *n) {
    static const line_block blocks[] = {
        {3, 8, 8, 2, true, false},   {3, 24, 8, 2, false, false}, {3, 32, 8, 1, false, false},
        {5, 32, 16, 2, true, true},  {5, 88, 16, 1, true, true},  {5, 88, 16, 1, true, true},
        {5, 40, 16, 1, true, true},  {5, 48, 16, 1, true, true},  {5, 104, 32, 2, true, true},
        {5, 200, 32, 1, true, true}, {5, 200, 32, 1, true, true},
    };
    name_buffer name;
    window stem = square(3, 2, 1), one = square(1, 1, 0), half = square(2, 2, 0);
    po_val x = po_build_input(n->b, "line", "f32[1,3,48,192]");
    x = net_conv(n, x, "stem", 3, 8, &stem, false);
    x = hard(n, net_batch_norm(n, x, "stem.bn", 8, 1e-5f), true);
    int64_t c = 8;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        x = line_step(n, x, name_of(&name, "block%zu", i), c, &blocks[i]);
        c = blocks[i].out;
    }
    x = net_conv(n, x, "last", c, 200, &one, false);
    x = hard(n, net_batch_norm(n, x, "last.bn", 200, 1e-5f), true);
    x = net_classifier(n, net_max_pool(n, x, &half), "head", 200, 2);
    x = net_op1(n, "Softmax", x);
    po_build_attr_int(n->b, x, "axis", -1);
    po_build_output(n->b, x, "turned");
}
