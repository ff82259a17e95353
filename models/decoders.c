/* Networks whose ends make maps larger: SegFormer-B0 of Xie et al. 2021 (arXiv 2105.15203), which
 * mixes the channels of four joined sizes, as Transformers' port is exported; and a small network
 * for four times the resolution that adds to a bicubic interpolation. */
#include "net.h"

enum { SIDE = 512, STAGES = 4, HEAD = 256, CLASSES = 150 };

static const struct stage {
    int64_t kernel, stride, width, heads, reduction;
} stages[STAGES] = {{7, 4, 32, 1, 8}, {3, 2, 64, 2, 4}, {3, 2, 160, 5, 2}, {3, 2, 256, 8, 1}};

static po_val reshaped(net *n, po_val x, size_t rank, const int64_t *dims) {
    return net_op2(n, "Reshape", x, po_build_i64(n->b, rank, dims));
}

/* [1, C, side, side] to [1, side * side, C] and back. */
static po_val tokens_of(net *n, po_val x, int64_t c) {
    x = reshaped(n, x, 3, (int64_t[]){1, c, -1});
    return net_transpose(n, x, 3, (int64_t[]){0, 2, 1});
}

static po_val map_of(net *n, po_val x, int64_t side) {
    x = net_transpose(n, x, 3, (int64_t[]){0, 2, 1});
    return reshaped(n, x, 4, (int64_t[]){1, -1, side, side});
}

static po_val heads_of(net *n, po_val x, const struct stage *s) {
    x = reshaped(n, x, 4, (int64_t[]){1, -1, s->heads, s->width / s->heads});
    return net_transpose(n, x, 4, (int64_t[]){0, 2, 1, 3});
}

static po_val attention(net *n, po_val x, const char *block, const struct stage *s, int64_t side) {
    name_buffer name;
    const int64_t c = s->width;
    po_val q = heads_of(n, net_linear(n, x, name_of(&name, "%s.query", block), c, c), s);
    if (s->reduction > 1) {
        window w = square(s->reduction, s->reduction, 0);
        x = net_conv(n, map_of(n, x, side), name_of(&name, "%s.sr", block), c, c, &w, true);
        x = net_layer_norm(n, tokens_of(n, x, c), name_of(&name, "%s.layer_norm", block), c, 1e-5f);
    }
    po_val k = heads_of(n, net_linear(n, x, name_of(&name, "%s.key", block), c, c), s);
    po_val v = heads_of(n, net_linear(n, x, name_of(&name, "%s.value", block), c, c), s);
    po_val scores = net_op2(n, "MatMul", q, net_transpose(n, k, 4, (int64_t[]){0, 1, 3, 2}));
    po_val root = po_build_f32(n->b, 5.65685425f); /* of the 32 channels of each head */
    po_val weights = net_op1(n, "Softmax", net_op2(n, "Div", scores, root));
    po_build_attr_int(n->b, weights, "axis", -1);
    po_val mixed = net_transpose(n, net_op2(n, "MatMul", weights, v), 4, (int64_t[]){0, 2, 1, 3});
    mixed = reshaped(n, mixed, 3, (int64_t[]){1, -1, c});
    return net_linear(n, mixed, name_of(&name, "%s.dense", block), c, c);
}

/* Two products and a depthwise convolution of the map between them. */
static po_val mixer(net *n, po_val x, const char *block, int64_t c, int64_t side) {
    name_buffer name;
    window w = square(3, 1, 1);
    x = net_linear(n, x, name_of(&name, "%s.dense1", block), c, 4 * c);
    x = net_conv_group(n, map_of(n, x, side), name_of(&name, "%s.dwconv", block), 4 * c, 4 * c,
                       4 * c, &w, true);
    x = net_gelu(n, tokens_of(n, x, 4 * c));
    return net_linear(n, x, name_of(&name, "%s.dense2", block), 4 * c, c);
}

static po_val interpolated(net *n, po_val x, const char *mode, size_t count, po_val by) {
    po_val in[4] = {x, PO_OMITTED, count == 3 ? by : PO_OMITTED, by};
    po_val y = po_build_node(n->b, NULL, "Resize", NULL, count, in);
    po_build_attr_string(n->b, y, "coordinate_transformation_mode", "pytorch_half_pixel");
    po_build_attr_string(n->b, y, "mode", mode);
    return y;
}

void build_segformer(net *n) {
    name_buffer block, name;
    po_val x = po_build_input(n->b, "pixel_values", "f32[1,3,512,512]"), parts[STAGES];
    int64_t side = SIDE, in = 3;
    for (int i = 0; i < STAGES; i++) {
        const struct stage *s = &stages[i];
        const int64_t c = s->width;
        window w = square(s->kernel, s->stride, s->kernel / 2);
        name_of(&block, "patch_embeddings.%d", i);
        x = net_conv(n, x, name_of(&name, "%s.proj", block.text), in, c, &w, true);
        side /= s->stride;
        x = net_layer_norm(n, tokens_of(n, x, c), name_of(&name, "%s.norm", block.text), c, 1e-5f);
        for (int k = 0; k < 2; k++) {
            name_of(&block, "block.%d.%d", i, k);
            po_val y = net_layer_norm(n, x, name_of(&name, "%s.norm1", block.text), c, 1e-5f);
            x = net_op2(n, "Add", attention(n, y, block.text, s, side), x);
            y = net_layer_norm(n, x, name_of(&name, "%s.norm2", block.text), c, 1e-5f);
            x = net_op2(n, "Add", mixer(n, y, block.text, c, side), x);
        }
        x = net_layer_norm(n, x, name_of(&name, "norm.%d", i), c, 1e-5f);
        x = map_of(n, x, side);
        po_val y = net_linear(n, tokens_of(n, x, c), name_of(&name, "linear_c.%d", i), c, HEAD);
        y = map_of(n, y, side);
        if (i > 0)
            y = interpolated(n, y, "linear", 4,
                             po_build_i64(n->b, 4, (int64_t[]){1, HEAD, SIDE / 4, SIDE / 4}));
        parts[STAGES - 1 - i] = y;
        in = c;
    }
    window one = square(1, 1, 0);
    x = net_concat(n, STAGES, parts, 1);
    x = net_conv_bn_relu(n, x, "linear_fuse", "batch_norm", STAGES * HEAD, HEAD, &one, 1e-5f);
    po_build_output(n->b, net_conv(n, x, "classifier", HEAD, CLASSES, &one, true), "logits");
}

void build_upscale(net *n) {
    enum { WIDTH = 48, FACTOR = 4 };
    window w = square(3, 1, 1);
    po_val image = po_build_input(n->b, "image", "f32[1,3,96,128]");
    po_val x = net_op1(n, "Relu", net_conv(n, image, "head", 3, WIDTH, &w, true));
    name_buffer name;
    for (int i = 0; i < 3; i++)
        x = net_op1(n, "Relu",
                    net_conv(n, x, name_of(&name, "body.%d", i), WIDTH, WIDTH, &w, true));
    x = net_conv(n, x, "tail", WIDTH, 3 * FACTOR * FACTOR, &w, true);
    x = net_op1(n, "DepthToSpace", x);
    po_build_attr_int(n->b, x, "blocksize", FACTOR);
    po_build_attr_string(n->b, x, "mode", "CRD");
    po_val scales =
        po_build_data(n->b, NULL, "f32", 1, (int64_t[]){4}, (const float[]){1, 1, FACTOR, FACTOR});
    po_val base = interpolated(n, image, "cubic", 3, scales);
    po_build_attr_float(n->b, base, "cubic_coeff_a", -0.75f);
    po_build_output(n->b, net_op2(n, "Add", x, base), "larger");
}
