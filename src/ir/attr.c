/* Attributes of nodes: read by name and kind, with a default where there is none of that kind; set,
 * and removed. */
#include "ir/graph.h"

const po_attr *po_node_attr(const po_node *node, const char *name) {
    for (uint32_t i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i].name, name) == 0)
            return &node->attr[i];
    return NULL;
}

/* The attribute where it is there, of this kind, and no function parameter. */
static const po_attr *find(const po_node *node, const char *name, po_attr_kind kind) {
    const po_attr *a = po_node_attr(node, name);
    return a && a->kind == kind && !a->reference ? a : NULL;
}

int64_t po_node_int(const po_node *node, const char *name, int64_t otherwise) {
    const po_attr *a = find(node, name, PO_ATTR_INT);
    return a ? a->u.i : otherwise;
}

float po_node_float(const po_node *node, const char *name, float otherwise) {
    const po_attr *a = find(node, name, PO_ATTR_FLOAT);
    return a ? a->u.f : otherwise;
}

const int64_t *po_node_ints(const po_node *node, const char *name, uint32_t *n) {
    const po_attr *a = find(node, name, PO_ATTR_INTS);
    *n = a ? a->n : 0;
    return a ? a->u.ints : NULL;
}

const float *po_node_floats(const po_node *node, const char *name, uint32_t *n) {
    const po_attr *a = find(node, name, PO_ATTR_FLOATS);
    *n = a ? a->n : 0;
    return a ? a->u.floats : NULL;
}

bool po_node_string_is(const po_node *node, const char *name, const char *text,
                       const char *otherwise) {
    const po_attr *a = find(node, name, PO_ATTR_STRING);
    if (!a)
        return otherwise && strcmp(text, otherwise) == 0;
    return a->u.s.size == strlen(text) && memcmp(a->u.s.data, text, a->u.s.size) == 0;
}

static po_attr *set(po_graph *graph, po_node_id node, const char *name, po_attr_kind kind) {
    po_node *n = &graph->nodes[node];
    po_attr *a = NULL;
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) == 0)
            a = &n->attr[i];
    if (!a) {
        po_attr *grown = PO_NEW_N(graph->arena, po_attr, n->n_attr + 1);
        if (n->n_attr)
            memcpy(grown, n->attr, n->n_attr * sizeof *grown);
        n->attr = grown;
        a = &grown[n->n_attr++];
        a->name = po_arena_strdup(graph->arena, name);
    }
    *a = (po_attr){.name = a->name, .kind = kind, .n = 1};
    return a;
}

void po_node_set_int(po_graph *graph, po_node_id node, const char *name, int64_t value) {
    set(graph, node, name, PO_ATTR_INT)->u.i = value;
}

void po_node_set_float(po_graph *graph, po_node_id node, const char *name, float value) {
    set(graph, node, name, PO_ATTR_FLOAT)->u.f = value;
}

void po_node_set_ints(po_graph *graph, po_node_id node, const char *name, uint32_t n,
                      const int64_t *values) {
    const int64_t *copy = po_arena_memdup(graph->arena, values, n * sizeof *values);
    po_attr *a = set(graph, node, name, PO_ATTR_INTS);
    a->n = n;
    a->u.ints = copy;
}

void po_node_set_string(po_graph *graph, po_node_id node, const char *name, const char *value) {
    po_bytes copy = {po_arena_strdup(graph->arena, value), strlen(value)};
    set(graph, node, name, PO_ATTR_STRING)->u.s = copy;
}

void po_node_remove_attr(po_graph *graph, po_node_id node, const char *name) {
    po_node *n = &graph->nodes[node];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) != 0)
            n->attr[kept++] = n->attr[i];
    n->n_attr = kept;
}
