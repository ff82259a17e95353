/* DenseNet-121 of Huang et al. 2017 (arXiv 1608.06993), as torchvision's is exported. */
#include "net.h"

enum { GROWTH = 32, NARROW = 4 * GROWTH, BLOCKS = 4, MOST_LAYERS = 24 };

static po_val normed(net *n, po_val x, const char *name, int64_t channels) {
    return net_op1(n, "Relu", net_batch_norm(n, x, name, channels, 1e-5f));
}

/* What the layer adds to the maps so far. */
static po_val layer(net *n, po_val x, const char *layer_name, int64_t in) {
    name_buffer name;
    window one = square(1, 1, 0), three = square(3, 1, 1);
    x = normed(n, x, name_of(&name, "%s.norm1", layer_name), in);
    x = net_conv(n, x, name_of(&name, "%s.conv1", layer_name), in, NARROW, &one, false);
    x = normed(n, x, name_of(&name, "%s.norm2", layer_name), NARROW);
    return net_conv(n, x, name_of(&name, "%s.conv2", layer_name), NARROW, GROWTH, &three, false);
}

void build_densenet121(net *n) {
    static const int layers[BLOCKS] = {6, 12, 24, 16};
    name_buffer block, name;
    window stem = square(7, 2, 3), pool = square(3, 2, 1), one = square(1, 1, 0),
           half = square(2, 2, 0);
    po_val x = po_build_input(n->b, "input", "f32[1,3,224,224]");
    int64_t channels = 64;
    x = net_conv_bn_relu(n, x, "conv0", "norm0", 3, channels, &stem, 1e-5f);
    x = net_max_pool(n, x, &pool);
    for (int b = 0; b < BLOCKS; b++) {
        po_val parts[MOST_LAYERS + 1] = {x};
        for (int i = 0; i < layers[b]; i++) {
            name_of(&block, "denseblock%d.denselayer%d", b + 1, i + 1);
            po_val joined = i ? net_concat(n, (size_t)i + 1, parts, 1) : x;
            parts[i + 1] = layer(n, joined, block.text, channels);
            channels += GROWTH;
        }
        x = net_concat(n, (size_t)layers[b] + 1, parts, 1);
        x = normed(n, x, name_of(&name, "norm%d", b + 1), channels);
        if (b + 1 == BLOCKS)
            break;
        name_of(&name, "transition%d.conv", b + 1);
        x = net_conv(n, x, name.text, channels, channels / 2, &one, false);
        channels /= 2;
        x = net_average_pool(n, x, &half);
    }
    po_build_output(n->b, net_classifier(n, x, "classifier", channels, 1000), "output");
}
