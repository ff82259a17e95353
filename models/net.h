/* The pieces that networks are made of, written as exporters write them: weights by name, batch
 * normalisation left as a node, layer normalisation and GELU in their single operations. */
#ifndef MODELS_NET_H
#define MODELS_NET_H

#include "petopt.h"

#include <stdbool.h>

typedef struct net {
    po_builder *b;
    uint64_t seed; /* of the next weight */
    bool half;     /* blocks: f16 instead of f32 */
    int64_t batch; /* 0: that of the paper's table */
} net;

/* A window over up to three spatial axes. */
typedef struct window {
    int rank;
    int64_t kernel[3], stride[3], pad[3], dilation[3];
} window;

/* The same kernel, stride, padding and dilation along two, resp. three axes. */
window square(int64_t kernel, int64_t stride, int64_t pad);
window cube(int64_t kernel, int64_t stride, int64_t pad);
/* One axis. */
window row(int64_t kernel, int64_t stride, int64_t pad);
/* Two axes with kernels of their own, stride 1, padded so that the size stays. */
window oblong(int64_t height, int64_t width);

/* A name made of two parts; lives until the next call on the same buffer. */
typedef struct name_buffer {
    char text[160];
} name_buffer;
__attribute__((format(printf, 2, 3))) const char *name_of(name_buffer *buffer, const char *format,
                                                          ...);

/* The batch that was asked for, or this one. */
int64_t net_batch(const net *n, int64_t otherwise);
/* An input of the network's type; a number of it; a value in f32 and back in the network's type. */
po_val net_input(net *n, const char *name, size_t rank, const int64_t *dims);
po_val net_number(net *n, float value);
po_val net_wide(net *n, po_val x);
po_val net_narrow(net *n, po_val x);

/* Uniform in [low, high). */
po_val net_random(net *n, const char *name, size_t rank, const int64_t *dims, double low,
                  double high);
/* Uniform weights whose variance is 2 / fan_in. */
po_val net_weight(net *n, const char *name, size_t rank, const int64_t *dims, int64_t fan_in);
/* Vector, uniform in [low, high). */
po_val net_vector(net *n, const char *name, int64_t size, double low, double high);

po_val net_op1(net *n, const char *op, po_val x);
po_val net_op2(net *n, const char *op, po_val x, po_val y);

/* Weights "<name>.weight", and "<name>.bias" where asked for. */
po_val net_conv(net *n, po_val x, const char *name, int64_t in, int64_t out, const window *w,
                bool bias);
po_val net_conv_group(net *n, po_val x, const char *name, int64_t in, int64_t out, int64_t group,
                      const window *w, bool bias);
po_val net_conv_transpose(net *n, po_val x, const char *name, int64_t in, int64_t out,
                          const window *w); /* with bias */
/* BatchNormalization with "<name>.weight", .bias, .running_mean and .running_var. */
po_val net_batch_norm(net *n, po_val x, const char *name, int64_t channels, float epsilon);
/* Convolution, batch normalisation, Relu. */
po_val net_conv_bn_relu(net *n, po_val x, const char *conv, const char *norm, int64_t in,
                        int64_t out, const window *w, float epsilon);
po_val net_max_pool(net *n, po_val x, const window *w);
po_val net_average_pool(net *n, po_val x, const window *w); /* padding counts */
po_val net_concat(net *n, size_t count, const po_val *parts, int64_t axis);
/* Global average, Flatten, Gemm. */
po_val net_classifier(net *n, po_val x, const char *name, int64_t in, int64_t classes);
/* The last axis of x times a matrix, plus a bias. */
po_val net_linear(net *n, po_val x, const char *name, int64_t in, int64_t out);
/* Over the last axis. */
po_val net_layer_norm(net *n, po_val x, const char *name, int64_t size, float epsilon);
po_val net_gelu(net *n, po_val x);
po_val net_silu(net *n, po_val x);
/* Halves along the axis; the first is returned. */
po_val net_split2(net *n, po_val x, int64_t axis, int64_t each, po_val *second);
po_val net_transpose(net *n, po_val x, size_t rank, const int64_t *perm);
/* x / sqrt(mean(x^2, axis) + epsilon); of f16 in f32. */
po_val net_rms(net *n, po_val x, int64_t axis, float epsilon);

/* What the four stages of ResNet-18 make of an image: 64 to 512 channels, a 4th to a 32nd of it. */
void net_resnet18_levels(net *n, po_val image, po_val level[4]);

/* --- the networks: each fills a graph whose outputs are set --- */

void build_resnet18(net *n);
void build_inception_v3(net *n);
void build_csrnet(net *n);
void build_bert_base(net *n);
void build_resnet3d18(net *n);   /* 16 frames */
void build_resnet3d18_8(net *n); /* 8 frames */
void build_gqa(net *n);
void build_qknorm(net *n);
void build_rmsnorm_linear(net *n);
void build_lora(net *n);
void build_gated_mlp(net *n);
void build_ntrans(net *n);
/* The six blocks of the Trinity paper. */
void build_vanilla(net *n);
void build_prenorm(net *n);
void build_qknorm_block(net *n);
void build_keyformer(net *n);
void build_roco(net *n);
void build_swiglu(net *n);
void build_bytes(net *n);
void build_tcn(net *n);
void build_conformer(net *n);
void build_wav2vec(net *n);
void build_convnext(net *n);
void build_yolo(net *n);
void build_unet(net *n);
void build_line(net *n);
void build_mobilenet_v2(net *n);
void build_resnext50(net *n);
void build_dcgan(net *n);
void build_segformer(net *n);
void build_upscale(net *n);
void build_densenet121(net *n);
void build_u2net(net *n);
void build_upernet(net *n);
void build_deeplab(net *n);
void build_hrnet_head(net *n);
void build_midas_head(net *n);

#endif
