/* Networks over one axis: bytes of files, sequences, frames of speech. Their convolutions are
 * one-dimensional, as exporters write them. */
#include "net.h"

/* --- a classifier of files by their bytes --- */

enum { BYTES = 2048, SYMBOLS = 257, EMBEDDED = 64, FOLD = 4, CLASSES = 200 };

/* One-hot bytes (256 marks the end), embedded by a dense layer, four positions to a row, one wide
 * convolution, the largest over all rows. */
void build_bytes(net *n) {
    int64_t depth = SYMBOLS, width = (int64_t)FOLD * EMBEDDED, wide = 512;
    po_val x = po_build_input(n->b, "bytes", "i64[1,2048]");
    po_val in[3] = {x, po_build_data(n->b, NULL, "i64", 0, NULL, &depth),
                    po_build_data(n->b, NULL, "f32", 1, (int64_t[]){2}, (const float[]){0, 1})};
    x = po_build_node(n->b, NULL, "OneHot", NULL, 3, in);
    po_build_attr_int(n->b, x, "axis", -1);
    x = net_gelu(n, net_linear(n, x, "embed", SYMBOLS, EMBEDDED));
    x = net_op2(n, "Reshape", x, po_build_i64(n->b, 3, (int64_t[]){1, BYTES / FOLD, width}));
    x = net_layer_norm(n, x, "norm_in", width, 1e-6f);
    x = net_transpose(n, x, 3, (int64_t[]){0, 2, 1});
    window w = row(5, 1, 0);
    x = net_gelu(n, net_conv(n, x, "conv", width, wide, &w, true));
    x = net_op1(n, "GlobalMaxPool", x);
    x = net_op2(n, "Reshape", x, po_build_i64(n->b, 2, (int64_t[]){1, wide}));
    x = net_layer_norm(n, x, "norm_out", wide, 1e-6f);
    x = net_op1(n, "Softmax", net_linear(n, x, "head", wide, CLASSES));
    po_build_attr_int(n->b, x, "axis", -1);
    po_build_output(n->b, x, "classes");
}

/* --- a temporal convolutional network (Bai et al. 2018, arXiv 1803.01271) --- */

enum { LEVELS = 8, TCN_WIDTH = 64 };

static po_val causal(net *n, po_val x, const char *name, int64_t in, int64_t dilation) {
    po_val pads = po_build_i64(n->b, 6, (int64_t[]){0, 0, 2 * dilation, 0, 0, 0});
    window w = row(3, 1, 0);
    w.dilation[0] = dilation;
    return net_op1(n, "Relu",
                   net_conv(n, net_op2(n, "Pad", x, pads), name, in, TCN_WIDTH, &w, true));
}

void build_tcn(net *n) {
    name_buffer name;
    window one = row(1, 1, 0);
    po_val x = po_build_input(n->b, "x", "f32[1,16,1000]");
    for (int i = 0; i < LEVELS; i++) {
        int64_t in = i ? TCN_WIDTH : 16, dilation = (int64_t)1 << i;
        po_val y = causal(n, x, name_of(&name, "level%d.conv1", i), in, dilation);
        y = causal(n, y, name_of(&name, "level%d.conv2", i), TCN_WIDTH, dilation);
        if (in != TCN_WIDTH)
            x = net_conv(n, x, name_of(&name, "level%d.skip", i), in, TCN_WIDTH, &one, true);
        x = net_op1(n, "Relu", net_op2(n, "Add", y, x));
    }
    po_build_output(n->b, net_conv(n, x, "head", TCN_WIDTH, 10, &one, true), "y");
}

/* --- convolution modules of a Conformer (Gulati et al. 2020, arXiv 2005.08100), medium size --- */

enum { MODULES = 6, FRAME = 256, TAPS = 31 };

void build_conformer(net *n) {
    static const int64_t turn[3] = {0, 2, 1};
    name_buffer name;
    window one = row(1, 1, 0), deep = row(TAPS, 1, TAPS / 2);
    po_val x = po_build_input(n->b, "frames", "f32[1,250,256]");
    for (int i = 0; i < MODULES; i++) {
        po_val y = net_layer_norm(n, x, name_of(&name, "module%d.norm", i), FRAME, 1e-5f), gate;
        y = net_transpose(n, y, 3, turn);
        y = net_conv(n, y, name_of(&name, "module%d.pointwise1", i), FRAME, INT64_C(2) * FRAME,
                     &one, true);
        y = net_split2(n, y, 1, FRAME, &gate);
        y = net_op2(n, "Mul", y, net_op1(n, "Sigmoid", gate));
        y = net_conv_group(n, y, name_of(&name, "module%d.depthwise", i), FRAME, FRAME, FRAME,
                           &deep, true);
        y = net_batch_norm(n, y, name_of(&name, "module%d.batch_norm", i), FRAME, 1e-5f);
        y = net_conv(n, net_silu(n, y), name_of(&name, "module%d.pointwise2", i), FRAME, FRAME,
                     &one, true);
        x = net_op2(n, "Add", x, net_transpose(n, y, 3, turn));
    }
    po_build_output(n->b, x, "y");
}

/* --- the front end of wav2vec 2.0 (Baevski et al. 2020, arXiv 2006.11477), a second of speech ---
 */

enum { LAYERS = 7, CHANNELS = 512 };

/* One mean and variance for each channel: a group norm with as many groups as channels. */
static po_val channel_norm(net *n, po_val x) {
    po_val in[3] = {x, net_vector(n, "norm.weight", CHANNELS, 0.8, 1.2),
                    net_vector(n, "norm.bias", CHANNELS, -0.1, 0.1)};
    po_val y = po_build_node(n->b, NULL, "InstanceNormalization", NULL, 3, in);
    po_build_attr_float(n->b, y, "epsilon", 1e-5f);
    return y;
}

void build_wav2vec(net *n) {
    static const int64_t kernel[LAYERS] = {10, 3, 3, 3, 3, 2, 2};
    name_buffer name;
    po_val x = po_build_input(n->b, "samples", "f32[1,1,16000]");
    for (int i = 0; i < LAYERS; i++) {
        window w = row(kernel[i], i ? 2 : 5, 0);
        x = net_conv(n, x, name_of(&name, "conv%d", i), i ? CHANNELS : 1, CHANNELS, &w, false);
        x = net_gelu(n, i ? x : channel_norm(n, x));
    }
    po_build_output(n->b, net_transpose(n, x, 3, (int64_t[]){0, 2, 1}), "features");
}
