/* Nodes of the root graph in an order in which every tensor is made before it is used. ONNX wants
 * that of the file, runtimes sort the root graph themselves; in bodies and functions they do not.
 */
#include "import/parts.h"

typedef struct sorter {
    po_importer *im;
    const Onnx__GraphProto *graph;
    po_map *makers; /* name to index of the node that makes it */
    uint32_t *state;
    uint32_t *after, n_after, cap_after; /* nodes that the one in hand must come after */
} sorter;

enum { NOT_SEEN, OPEN, PLACED };

/* The names that a body makes itself, and those of the bodies around it. */
typedef struct names {
    const struct names *outer;
    po_map *own;
    int depth;
} names;

static void need(sorter *s, const names *body, const char *name) {
    if (!name || !*name)
        return;
    for (const names *n = body; n; n = n->outer)
        if (po_map_get(n->own, name) != PO_NONE)
            return;
    uint32_t maker = po_map_get(s->makers, name);
    if (maker != PO_NONE)
        PO_PUSH(s->im->scratch, s->after, s->n_after, s->cap_after, maker);
}

static void need_body(sorter *s, const names *outer, const Onnx__GraphProto *body);

static void need_inputs(sorter *s, const names *around, const Onnx__NodeProto *node) {
    for (size_t i = 0; i < node->n_input; i++)
        need(s, around, node->input[i]);
    for (size_t k = 0; k < node->n_attribute; k++) {
        const Onnx__AttributeProto *a = node->attribute[k];
        if (a->g)
            need_body(s, around, a->g);
        for (size_t b = 0; b < a->n_graphs; b++)
            need_body(s, around, a->graphs[b]);
    }
}

static void own(names *body, const char *name) {
    if (name)
        po_map_put(body->own, name, 0);
}

static void need_body(sorter *s, const names *outer, const Onnx__GraphProto *body) {
    names mine = {outer, po_map_create(s->im->scratch), outer ? outer->depth + 1 : 1};
    if (mine.depth > PO_DEEPEST_BODY)
        return; /* refused when it is built */
    for (size_t i = 0; i < body->n_input; i++)
        own(&mine, body->input[i]->name);
    for (size_t i = 0; i < body->n_initializer; i++)
        own(&mine, body->initializer[i]->name);
    for (size_t i = 0; i < body->n_node; i++) {
        need_inputs(s, &mine, body->node[i]);
        for (size_t k = 0; k < body->node[i]->n_output; k++)
            own(&mine, body->node[i]->output[k]);
    }
    for (size_t i = 0; i < body->n_output; i++)
        need(s, &mine, body->output[i]->name);
}

/* A node whose needs are being placed: those are s->after[first .. next) still to come. */
typedef struct frame {
    uint32_t node, first, next;
} frame;

static void open_node(sorter *s, frame *f, uint32_t node) {
    f->node = node;
    f->first = s->n_after;
    need_inputs(s, NULL, s->graph->node[node]);
    f->next = f->first;
    s->state[node] = OPEN;
}

/* Depth first from each node in the file's order, so that what is sorted stays as it is. */
static bool order_nodes(sorter *s, Onnx__NodeProto **order) {
    uint32_t n = (uint32_t)s->graph->n_node, n_placed = 0;
    frame *stack = PO_NEW_N(s->im->scratch, frame, n);
    for (uint32_t root = 0; root < n; root++) {
        uint32_t depth = 0;
        if (s->state[root] == NOT_SEEN)
            open_node(s, &stack[depth++], root);
        while (depth > 0) {
            frame *f = &stack[depth - 1];
            uint32_t end = s->n_after;
            while (f->next < end && s->state[s->after[f->next]] == PLACED)
                f->next++;
            if (f->next < end) {
                if (s->state[s->after[f->next]] == OPEN)
                    return false;
                open_node(s, &stack[depth], s->after[f->next]);
                depth++;
                continue;
            }
            s->state[f->node] = PLACED;
            order[n_placed++] = s->graph->node[f->node];
            s->n_after = f->first;
            depth--;
        }
    }
    return true;
}

bool po_sort_nodes(po_importer *im) {
    Onnx__GraphProto *g = im->proto->graph;
    sorter s = {.im = im, .graph = g, .makers = po_map_create(im->scratch)};
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (*g->node[i]->output[k])
                po_map_put(s.makers, g->node[i]->output[k], (uint32_t)i);
    s.state = PO_NEW_N(im->scratch, uint32_t, g->n_node);
    Onnx__NodeProto **order = PO_NEW_N(im->arena, Onnx__NodeProto *, g->n_node);
    if (!order_nodes(&s, order))
        return false;
    g->node = order;
    return true;
}
