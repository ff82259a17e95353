/* ResNet-18 of He et al. 2016 (arXiv 1512.03385), and its 3-D form for video of Tran et al. 2018
 * (arXiv 1711.11248): four stages of two blocks; the later stages halve every axis. */
#include "net.h"

#include <stdio.h>

/* Two convolutions and the block's input, which a strided 1x1 convolution fits where it must. */
static po_val block(net *n, po_val x, const char *name, int rank, int64_t in, int64_t out,
                    int64_t stride) {
    name_buffer conv, norm;
    window first = rank == 3 ? cube(3, stride, 1) : square(3, stride, 1);
    window second = rank == 3 ? cube(3, 1, 1) : square(3, 1, 1);
    po_val y = net_conv_bn_relu(n, x, name_of(&conv, "%s.conv1", name),
                                name_of(&norm, "%s.bn1", name), in, out, &first, 1e-5f);
    y = net_conv(n, y, name_of(&conv, "%s.conv2", name), out, out, &second, false);
    y = net_batch_norm(n, y, name_of(&norm, "%s.bn2", name), out, 1e-5f);
    if (stride != 1 || in != out) {
        window fit = rank == 3 ? cube(1, stride, 0) : square(1, stride, 0);
        x = net_conv(n, x, name_of(&conv, "%s.downsample.0", name), in, out, &fit, false);
        x = net_batch_norm(n, x, name_of(&norm, "%s.downsample.1", name), out, 1e-5f);
    }
    return net_op1(n, "Relu", net_op2(n, "Add", y, x));
}

/* What each stage makes, in `level` where it is not NULL. */
static po_val stages(net *n, po_val x, int rank, po_val *level) {
    name_buffer name;
    int64_t in = 64;
    for (int stage = 0; stage < 4; stage++) {
        int64_t out = (int64_t)64 << stage;
        for (int i = 0; i < 2; i++) {
            x = block(n, x, name_of(&name, "layer%d.%d", stage + 1, i), rank, in, out,
                      stage > 0 && i == 0 ? 2 : 1);
            in = out;
        }
        if (level)
            level[stage] = x;
    }
    return x;
}

static po_val stem_of(net *n, po_val x) {
    window stem = square(7, 2, 3), pool = square(3, 2, 1);
    x = net_conv_bn_relu(n, x, "conv1", "bn1", 3, 64, &stem, 1e-5f);
    return net_max_pool(n, x, &pool);
}

void net_resnet18_levels(net *n, po_val image, po_val level[4]) {
    stages(n, stem_of(n, image), 2, level);
}

void build_resnet18(net *n) {
    po_val x = net_input(n, "input", 4, (int64_t[]){net_batch(n, 1), 3, 224, 224});
    x = stages(n, stem_of(n, x), 2, NULL);
    po_build_output(n->b, net_classifier(n, x, "fc", 512, 1000), "output");
}

static void build_video(net *n, int frames) {
    po_val x = net_input(n, "input", 5, (int64_t[]){net_batch(n, 1), 3, frames, 112, 112});
    window stem = {3, {3, 7, 7}, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}};
    x = net_conv_bn_relu(n, x, "stem.0", "stem.1", 3, 64, &stem, 1e-5f);
    x = stages(n, x, 3, NULL);
    po_build_output(n->b, net_classifier(n, x, "fc", 512, 400), "output");
}

void build_resnet3d18(net *n) {
    build_video(n, 16);
}

void build_resnet3d18_8(net *n) {
    build_video(n, 8);
}
