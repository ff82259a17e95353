/* Random graphs with open dims: tokens [N, T, C] and maps [N, C, H, W], a dozen nodes each. */
#include "making.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static shape input_shape(making *m) {
    shape s = {.rank = m->maps ? 4 : 3};
    const char *n = ONE_OF(m, "N", "1", "2", "N");
    s = sizes_dim(s, 0, "%s", n);
    if (m->maps) {
        const uint32_t which = sizes_below(m, 5); /* both, one, the same */
        s = sizes_dim(s, 1, "%s", ONE_OF(m, "2", "3", "4"));
        s = sizes_dim(s, 2, "%s", which == 0 ? "12" : "H");
        return sizes_dim(s, 3, "%s", which == 1 ? "12" : which == 2 ? "H" : "W");
    }
    s = sizes_dim(s, 1, "T");
    return sizes_dim(s, 2, "%s", ONE_OF(m, "4", "6"));
}

static void add_input(making *m, shape s) {
    char dims[160] = "", *inputs = m->g->inputs;
    for (uint32_t i = 0; i < s.rank; i++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims),
                 sizes_number(&s, i) ? "%s%s" : "%s\"%s\"", i ? "," : "", s.dim[i]);
    const size_t at = strlen(inputs);
    snprintf(inputs + at, sizeof m->g->inputs - at, "%sv%u: f32[%s]", at ? ", " : "", m->n, dims);
    sizes_value(m, s);
}

void generate_graph(generated *g, uint64_t seed) {
    making m = {.g = g, .lots = {.seed = seed, .stream = 61}};
    *g = (generated){.n = 0};
    m.maps = sizes_below(&m, 2) != 0;
    const shape s = input_shape(&m);
    add_input(&m, s);
    if (sizes_below(&m, 3) == 0)
        add_input(&m, m.maps ? s : sizes_dim(s, 1, "%s", ONE_OF(&m, "T", "S", "S")));
    const uint32_t nodes = 3 + sizes_below(&m, 7);
    for (uint32_t i = 0; i < nodes && m.n + 10 < VALUES; i++) {
        /* Mostly the last. */
        uint32_t v = sizes_below(&m, 4) ? m.n - 1 : sizes_below(&m, m.n);
        while (m.value[v].rank != s.rank)
            v = v ? v - 1 : m.n - 1;
        if (m.maps)
            sizes_map_node(&m, v);
        else
            sizes_token_node(&m, v);
    }
    snprintf(g->outputs, sizeof g->outputs, "y");
    if (sizes_below(&m, 4) == 0 && m.n > 3 && m.value[m.n - 2].rank) {
        sizes_line(&m, "z = Identity(v%u)", m.n - 2);
        snprintf(g->outputs, sizeof g->outputs, "y, z");
    }
    sizes_line(&m, "y = Identity(v%u)", m.n - 1);
}

const char *generated_text(const generated *g, po_arena *arena) {
    po_text text;
    po_text_init(&text, arena);
    po_text_printf(&text, "pir 1 ir_version=8 opset=17\ngraph g (%s) -> (%s) {\n", g->inputs,
                   g->outputs);
    for (uint32_t i = 0; i < g->n; i++)
        po_text_printf(&text, " %s\n", g->line[i]);
    po_text_printf(&text, "}\n");
    return text.data;
}
