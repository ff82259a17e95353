#include "net.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

window square(int64_t kernel, int64_t stride, int64_t pad) {
    return (window){2, {kernel, kernel, 1}, {stride, stride, 1}, {pad, pad, 0}, {1, 1, 1}};
}

window cube(int64_t kernel, int64_t stride, int64_t pad) {
    return (window){
        3, {kernel, kernel, kernel}, {stride, stride, stride}, {pad, pad, pad}, {1, 1, 1}};
}

window row(int64_t kernel, int64_t stride, int64_t pad) {
    return (window){1, {kernel, 1, 1}, {stride, 1, 1}, {pad, 0, 0}, {1, 1, 1}};
}

window oblong(int64_t height, int64_t width) {
    return (window){2, {height, width, 1}, {1, 1, 1}, {height / 2, width / 2, 0}, {1, 1, 1}};
}

const char *name_of(name_buffer *buffer, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(buffer->text, sizeof buffer->text, format, args);
    va_end(args);
    return buffer->text;
}

po_val net_weight(net *n, const char *name, size_t rank, const int64_t *dims, int64_t fan_in) {
    double bound = sqrt(6.0 / (double)fan_in);
    return net_random(n, name, rank, dims, -bound, bound);
}

po_val net_vector(net *n, const char *name, int64_t size, double low, double high) {
    return net_random(n, name, 1, &size, low, high);
}

po_val net_op1(net *n, const char *op, po_val x) {
    return po_build_node(n->b, NULL, op, NULL, 1, &x);
}

po_val net_op2(net *n, const char *op, po_val x, po_val y) {
    po_val in[2] = {x, y};
    return po_build_node(n->b, NULL, op, NULL, 2, in);
}

/* ONNX wants the pads of all axes at their beginnings, then those at their ends. */
static void set_window(net *n, po_val value, const window *w, bool dilated) {
    int64_t pads[6];
    for (int i = 0; i < w->rank; i++)
        pads[i] = pads[i + w->rank] = w->pad[i];
    size_t rank = (size_t)w->rank;
    if (dilated)
        po_build_attr_ints(n->b, value, "dilations", rank, w->dilation);
    po_build_attr_ints(n->b, value, "kernel_shape", rank, w->kernel);
    po_build_attr_ints(n->b, value, "pads", 2 * rank, pads);
    po_build_attr_ints(n->b, value, "strides", rank, w->stride);
}

po_val net_conv(net *n, po_val x, const char *name, int64_t in, int64_t out, const window *w,
                bool bias) {
    return net_conv_group(n, x, name, in, out, 1, w, bias);
}

po_val net_conv_group(net *n, po_val x, const char *name, int64_t in, int64_t out, int64_t group,
                      const window *w, bool bias) {
    name_buffer buffer;
    int64_t dims[5] = {out, in / group}, fan_in = in / group;
    for (int i = 0; i < w->rank; i++) {
        dims[i + 2] = w->kernel[i];
        fan_in *= w->kernel[i];
    }
    po_val args[3] = {x};
    args[1] = net_weight(n, name_of(&buffer, "%s.weight", name), (size_t)w->rank + 2, dims, fan_in);
    if (bias)
        args[2] = net_vector(n, name_of(&buffer, "%s.bias", name), out, -0.05, 0.05);
    po_val y = po_build_node(n->b, NULL, "Conv", name, bias ? 3 : 2, args);
    set_window(n, y, w, true);
    po_build_attr_int(n->b, y, "group", group);
    return y;
}

po_val net_batch_norm(net *n, po_val x, const char *name, int64_t channels, float epsilon) {
    name_buffer buffer;
    po_val in[5] = {x};
    in[1] = net_vector(n, name_of(&buffer, "%s.weight", name), channels, 0.7, 1.0);
    in[2] = net_vector(n, name_of(&buffer, "%s.bias", name), channels, -0.1, 0.1);
    in[3] = net_vector(n, name_of(&buffer, "%s.running_mean", name), channels, -0.1, 0.1);
    in[4] = net_vector(n, name_of(&buffer, "%s.running_var", name), channels, 0.8, 1.2);
    po_val y = po_build_node(n->b, NULL, "BatchNormalization", name, 5, in);
    po_build_attr_float(n->b, y, "epsilon", epsilon);
    po_build_attr_float(n->b, y, "momentum", 0.9f);
    return y;
}

po_val net_conv_bn_relu(net *n, po_val x, const char *conv, const char *norm, int64_t in,
                        int64_t out, const window *w, float epsilon) {
    po_val y = net_conv(n, x, conv, in, out, w, false);
    return net_op1(n, "Relu", net_batch_norm(n, y, norm, out, epsilon));
}

po_val net_conv_transpose(net *n, po_val x, const char *name, int64_t in, int64_t out,
                          const window *w) {
    name_buffer buffer;
    int64_t dims[5] = {in, out}, fan_in = in;
    for (int i = 0; i < w->rank; i++) {
        dims[i + 2] = w->kernel[i];
        fan_in *= w->kernel[i] / w->stride[i];
    }
    po_val args[3] = {x};
    args[1] = net_weight(n, name_of(&buffer, "%s.weight", name), (size_t)w->rank + 2, dims, fan_in);
    args[2] = net_vector(n, name_of(&buffer, "%s.bias", name), out, -0.05, 0.05);
    po_val y = po_build_node(n->b, NULL, "ConvTranspose", name, 3, args);
    set_window(n, y, w, true);
    return y;
}

po_val net_max_pool(net *n, po_val x, const window *w) {
    po_val y = net_op1(n, "MaxPool", x);
    set_window(n, y, w, false);
    return y;
}

po_val net_average_pool(net *n, po_val x, const window *w) {
    po_val y = net_op1(n, "AveragePool", x);
    set_window(n, y, w, false);
    po_build_attr_int(n->b, y, "count_include_pad", 1);
    return y;
}

po_val net_concat(net *n, size_t count, const po_val *parts, int64_t axis) {
    po_val y = po_build_node(n->b, NULL, "Concat", NULL, count, parts);
    po_build_attr_int(n->b, y, "axis", axis);
    return y;
}

po_val net_classifier(net *n, po_val x, const char *name, int64_t in, int64_t classes) {
    name_buffer buffer;
    po_val args[3];
    args[0] = net_op1(n, "Flatten", net_op1(n, "GlobalAveragePool", x));
    po_build_attr_int(n->b, args[0], "axis", 1);
    args[1] = net_weight(n, name_of(&buffer, "%s.weight", name), 2, (int64_t[]){classes, in}, in);
    args[2] = net_vector(n, name_of(&buffer, "%s.bias", name), classes, -0.05, 0.05);
    po_val y = po_build_node(n->b, NULL, "Gemm", name, 3, args);
    po_build_attr_float(n->b, y, "alpha", 1);
    po_build_attr_float(n->b, y, "beta", 1);
    po_build_attr_int(n->b, y, "transB", 1);
    return y;
}

po_val net_linear(net *n, po_val x, const char *name, int64_t in, int64_t out) {
    name_buffer buffer;
    /* Three times the fan-in: a transformer's residual sums stay near one. */
    po_val w = net_weight(n, name_of(&buffer, "%s.weight", name), 2, (int64_t[]){in, out}, 3 * in);
    po_val bias = net_vector(n, name_of(&buffer, "%s.bias", name), out, -0.05, 0.05);
    return net_op2(n, "Add", bias, net_op2(n, "MatMul", x, w));
}

static po_val mean(net *n, po_val x, int64_t axis) {
    po_val y = net_op1(n, "ReduceMean", x);
    po_build_attr_ints(n->b, y, "axes", 1, &axis);
    po_build_attr_int(n->b, y, "keepdims", 1);
    return y;
}

po_val net_layer_norm(net *n, po_val x, const char *name, int64_t size, float epsilon) {
    name_buffer buffer;
    po_val centred = net_op2(n, "Sub", x, mean(n, x, -1));
    po_val squares = net_op2(n, "Pow", centred, po_build_f32(n->b, 2));
    po_val variance = net_op2(n, "Add", mean(n, squares, -1), po_build_f32(n->b, epsilon));
    po_val normal = net_op2(n, "Div", centred, net_op1(n, "Sqrt", variance));
    po_val gain = net_vector(n, name_of(&buffer, "%s.weight", name), size, 0.8, 1.2);
    po_val bias = net_vector(n, name_of(&buffer, "%s.bias", name), size, -0.1, 0.1);
    return net_op2(n, "Add", net_op2(n, "Mul", normal, gain), bias);
}

po_val net_gelu(net *n, po_val x) {
    po_val erf = net_op1(n, "Erf", net_op2(n, "Div", x, po_build_f32(n->b, 1.41421354f)));
    po_val sum = net_op2(n, "Add", erf, po_build_f32(n->b, 1));
    return net_op2(n, "Mul", net_op2(n, "Mul", x, sum), po_build_f32(n->b, 0.5f));
}

po_val net_silu(net *n, po_val x) {
    return net_op2(n, "Mul", x, net_op1(n, "Sigmoid", x));
}

po_val net_split2(net *n, po_val x, int64_t axis, int64_t each, po_val *second) {
    po_val y = net_op2(n, "Split", x, po_build_i64(n->b, 2, (int64_t[]){each, each}));
    po_build_attr_int(n->b, y, "axis", axis);
    *second = po_build_output_of(n->b, y, 1);
    return y;
}

po_val net_transpose(net *n, po_val x, size_t rank, const int64_t *perm) {
    po_val y = net_op1(n, "Transpose", x);
    po_build_attr_ints(n->b, y, "perm", rank, perm);
    return y;
}

po_val net_rms(net *n, po_val x, int64_t axis, float epsilon) {
    x = net_wide(n, x);
    po_val squares = net_op2(n, "Pow", x, po_build_f32(n->b, 2));
    po_val sum = net_op2(n, "Add", mean(n, squares, axis), po_build_f32(n->b, epsilon));
    po_val scale = net_op1(n, "Reciprocal", net_op1(n, "Sqrt", sum));
    return net_narrow(n, net_op2(n, "Mul", x, scale));
}
