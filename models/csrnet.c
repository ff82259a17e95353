/* CSRNet of Li et al. 2018 (arXiv 1802.10062): the first ten convolutions of VGG-16, six dilated
 * ones, and a 1x1 that gives the density map. */
#include "net.h"

void build_csrnet(net *n) {
    static const struct {
        int64_t channels, dilation; /* channels 0: max pooling */
        int index;                  /* in the exporter's sequence, for the names */
    } layers[] = {{64, 1, 0},   {64, 1, 2},   {0, 0, 0},    {128, 1, 5},  {128, 1, 7},
                  {0, 0, 0},    {256, 1, 10}, {256, 1, 12}, {256, 1, 14}, {0, 0, 0},
                  {512, 1, 17}, {512, 1, 19}, {512, 1, 21}, {512, 2, 0},  {512, 2, 2},
                  {512, 2, 4},  {256, 2, 6},  {128, 2, 8},  {64, 2, 10}};
    name_buffer name;
    int64_t in = 3;
    po_val x = net_input(n, "input", 4, (int64_t[]){net_batch(n, 1), 3, 224, 224});
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        if (layers[i].channels == 0) {
            window pool = square(2, 2, 0);
            x = net_max_pool(n, x, &pool);
            continue;
        }
        int64_t d = layers[i].dilation;
        window w = square(3, 1, d);
        w.dilation[0] = w.dilation[1] = d;
        x = net_conv(n, x,
                     name_of(&name, "%s.%d", d == 1 ? "frontend" : "backend", layers[i].index), in,
                     layers[i].channels, &w, true);
        x = net_op1(n, "Relu", x);
        in = layers[i].channels;
    }
    window one = square(1, 1, 0);
    po_build_output(n->b, net_conv(n, x, "output_layer", in, 1, &one, true), "output");
}
