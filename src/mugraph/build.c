/* Makes muGraphs part by part: labels and tensors under names that are new, layouts with their
 * rings, the tree, accesses, expressions. Sizes that overflow stay at the greatest number, which
 * po_mu_check refuses. */
#include "mugraph/parts.h"

#include <stdio.h>

po_mu *po_mu_create(po_arena *arena, const char *name) {
    po_mu *mu = PO_NEW(arena, po_mu);
    mu->arena = arena;
    mu->name = po_arena_strdup(arena, name);
    mu->first = PO_NONE;
    return mu;
}

po_mu *po_mu_copy(po_arena *arena, const po_mu *from) {
    po_mu *mu = po_arena_memdup(arena, from, sizeof *from);
    mu->arena = arena;
    mu->labels = po_arena_memdup(arena, from->labels, from->n_labels * sizeof *mu->labels);
    mu->tensors = po_arena_memdup(arena, from->tensors, from->n_tensors * sizeof *mu->tensors);
    mu->nodes = po_arena_memdup(arena, from->nodes, from->n_nodes * sizeof *mu->nodes);
    mu->cap_labels = mu->n_labels;
    mu->cap_tensors = mu->n_tensors;
    mu->cap_nodes = mu->n_nodes;
    return mu;
}

void po_mu_unname(po_mu *mu) {
    mu->name = "step";
    for (uint32_t i = mu->first; i != PO_NONE; i = mu->nodes[i].next)
        mu->nodes[i].name = "step";
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        mu->tensors[i].name = po_arena_printf(mu->arena, "t%u", i);
    for (uint32_t i = 0; i < mu->n_labels; i++)
        mu->labels[i].name = po_arena_printf(mu->arena, "l%u", i);
}

/* --- types --- */

const char *const po_mu_type_names[3] = {
    [PO_MU_F32] = "f32", [PO_MU_F16] = "f16", [PO_MU_BF16] = "bf16"};

int64_t po_mu_bytes(po_mu_type type) {
    return type == PO_MU_F32 ? 4 : 2;
}

/* --- names --- */

bool po_mu_is_reserved(const char *name) {
    static const char *const words[] = {"fresh", "tile",  "order",  "fused",    "by",     "grid",
                                        "for",   "lanes", "shared", "register", "step",   "before",
                                        "after", "fill",  "stride", "inf",      "tensor", "label",
                                        "ahead", "f16",   "bf16"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

static bool label_taken(const po_mu *mu, const char *name) {
    for (uint32_t i = 0; i < mu->n_labels; i++)
        if (strcmp(mu->labels[i].name, name) == 0)
            return true;
    return po_mu_is_reserved(name);
}

static bool tensor_taken(const po_mu *mu, const char *name) {
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (strcmp(mu->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* The name, or the name with the first number from 2 on that makes it new. */
static const char *new_name(const po_mu *mu, const char *name,
                            bool (*taken)(const po_mu *, const char *)) {
    if (!taken(mu, name))
        return po_arena_strdup(mu->arena, name);
    size_t size = strlen(name) + 12;
    char *text = po_arena_alloc(mu->arena, size);
    for (uint32_t i = 2;; i++) {
        snprintf(text, size, "%s%u", name, i);
        if (!taken(mu, text))
            return text;
    }
}

uint32_t po_mu_add_label(po_mu *mu, const char *name, int64_t extent) {
    /* Lower-case letters and digits, a letter first. */
    char *plain = po_arena_alloc(mu->arena, strlen(name) + 2);
    size_t n = 0;
    for (const char *p = name; *p; p++) {
        char c = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9' && n))
            plain[n++] = c;
    }
    if (n == 0)
        plain[n++] = 'l';
    plain[n] = '\0';
    po_mu_label label = {new_name(mu, plain, label_taken), extent};
    PO_PUSH(mu->arena, mu->labels, mu->n_labels, mu->cap_labels, label);
    return mu->n_labels - 1;
}

/* --- tensors --- */

uint32_t po_mu_add_tensor(po_mu *mu, const char *name, po_mu_place place, uint32_t rank,
                          const int64_t *dims) {
    po_mu_tensor t = {.name = new_name(mu, *name ? name : "t", tensor_taken),
                      .place = place,
                      .rank = rank,
                      .scope = PO_NONE};
    for (uint32_t x = 0; x < rank && x < PO_MU_MAX_RANK; x++)
        t.dims[x] = dims[x];
    PO_PUSH(mu->arena, mu->tensors, mu->n_tensors, mu->cap_tensors, t);
    po_mu_layout(mu, mu->n_tensors - 1, 1, 0);
    return mu->n_tensors - 1;
}

/* Sizes come from callers that po_mu_check has not seen yet: what does not fit sticks at the
 * greatest number, which po_mu_check refuses. */
static int64_t times(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t plus(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t with_ring(const po_mu *mu, uint32_t tensor, uint32_t axis) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    int64_t least, count;
    po_mu_held(mu, tensor, axis, &least, &count);
    return plus(plus(t->before[axis], count), t->after[axis]);
}

void po_mu_layout(po_mu *mu, uint32_t tensor, int64_t align, int64_t gap) {
    po_mu_tensor *t = &mu->tensors[tensor];
    int64_t stride = 1;
    for (uint32_t x = t->rank; x-- > 0;) {
        t->stride[x] = stride;
        stride = times(stride, with_ring(mu, tensor, x));
        if (x + 1 == t->rank && t->rank > 1) {
            if (align > 1 && stride < INT64_MAX - align)
                stride = (stride + align - 1) / align * align;
            stride = plus(stride, gap);
        }
    }
    po_mu_measure(mu, tensor);
}

void po_mu_measure(po_mu *mu, uint32_t tensor) {
    po_mu_tensor *t = &mu->tensors[tensor];
    t->floats = 1;
    t->origin = 0;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t extent = with_ring(mu, tensor, x);
        if (extent <= 0) {
            t->floats = 0;
            t->origin = 0;
            return;
        }
        t->floats = plus(t->floats, times(extent - 1, t->stride[x]));
        t->origin = plus(t->origin, times(t->before[x], t->stride[x]));
    }
}

/* --- the tree --- */

static uint32_t add_node(po_mu *mu, uint32_t parent, po_mu_node node) {
    node.parent = parent;
    node.first = node.next = PO_NONE;
    PO_PUSH(mu->arena, mu->nodes, mu->n_nodes, mu->cap_nodes, node);
    uint32_t id = mu->n_nodes - 1;
    uint32_t *at = parent == PO_NONE ? &mu->first : &mu->nodes[parent].first;
    while (*at != PO_NONE)
        at = &mu->nodes[*at].next;
    *at = id;
    return id;
}

uint32_t po_mu_add_step(po_mu *mu, const char *name) {
    return add_node(mu, PO_NONE,
                    (po_mu_node){.kind = PO_MU_STEP,
                                 .name = po_arena_strdup(mu->arena, name),
                                 .label = PO_NONE});
}

uint32_t po_mu_add_loop(po_mu *mu, uint32_t parent, po_mu_loop_kind kind, uint32_t label,
                        int64_t chunk) {
    return add_node(mu, parent,
                    (po_mu_node){.kind = PO_MU_LOOP,
                                 .loop = kind,
                                 .label = label,
                                 .chunk = kind == PO_MU_LANES ? 0 : chunk});
}

uint32_t po_mu_add_statement(po_mu *mu, uint32_t parent, po_mu_combine combine) {
    po_mu_node node = {.kind = PO_MU_STATEMENT, .label = PO_NONE};
    node.statement = (po_mu_statement){
        .out = {PO_NONE, NULL}, .combine = combine, .lane = PO_NONE, .row = PO_NONE};
    return add_node(mu, parent, node);
}

/* --- accesses --- */

po_mu_access po_mu_access_of(po_mu *mu, uint32_t tensor) {
    uint32_t rank = mu->tensors[tensor].rank;
    return (po_mu_access){tensor, PO_NEW_N(mu->arena, po_mu_index, rank ? rank : 1)};
}

void po_mu_at(po_mu *mu, po_mu_access *access, uint32_t axis, int64_t coef, uint32_t label) {
    /* The axes are this module's own memory (po_mu_access_of). */
    po_mu_index *index = (po_mu_index *)(uintptr_t)&access->axes[axis];
    if (label == PO_NONE) {
        index->offset += coef;
        return;
    }
    po_mu_term *terms = PO_NEW_N(mu->arena, po_mu_term, index->n + 1);
    uint32_t n = 0;
    bool placed = false;
    for (uint32_t i = 0; i < index->n; i++) {
        po_mu_term term = index->terms[i];
        if (!placed && term.label >= label) {
            placed = true;
            if (term.label == label)
                term.coef += coef;
            else if (coef)
                terms[n++] = (po_mu_term){label, coef};
        }
        if (term.coef)
            terms[n++] = term;
    }
    if (!placed && coef)
        terms[n++] = (po_mu_term){label, coef};
    index->terms = terms;
    index->n = n;
}

po_mu_access po_mu_access_by(po_mu *mu, uint32_t tensor, const uint32_t *labels) {
    po_mu_access access = po_mu_access_of(mu, tensor);
    for (uint32_t x = 0; x < mu->tensors[tensor].rank; x++)
        po_mu_at(mu, &access, x, 1, labels[x]);
    return access;
}

/* --- expressions --- */

uint32_t po_mu_operand(po_mu *mu, uint32_t statement, po_mu_access access) {
    po_mu_statement *s = &mu->nodes[statement].statement;
    if (s->n_in == PO_MU_MAX_INPUTS)
        return PO_NONE; /* po_mu_check refuses the item that uses it */
    s->in[s->n_in] = access;
    return s->n_in++;
}

static uint32_t add_item(po_mu *mu, uint32_t statement, po_mu_item item) {
    po_mu_statement *s = &mu->nodes[statement].statement;
    uint32_t n = s->n_items;
    if (n == 0 || (n >= 4 && (n & (n - 1)) == 0)) { /* room for 4, 8, 16, ... */
        po_mu_item *items = PO_NEW_N(mu->arena, po_mu_item, n ? 2 * (size_t)n : 4);
        if (n)
            memcpy(items, s->items, n * sizeof *items);
        s->items = items;
    }
    ((po_mu_item *)(uintptr_t)s->items)[n] = item;
    return s->n_items++;
}

uint32_t po_mu_item_of(po_mu *mu, uint32_t statement, po_mu_function function, uint32_t a,
                       uint32_t b, uint32_t c) {
    return add_item(mu, statement, (po_mu_item){function, a, b, c, 0});
}

uint32_t po_mu_constant(po_mu *mu, uint32_t statement, double value) {
    return add_item(mu, statement, (po_mu_item){.function = PO_MU_CONST, .value = value});
}

void po_mu_copy_items(po_mu *mu, uint32_t statement, const po_mu_statement *from) {
    for (uint32_t i = 0; i < from->n_items; i++)
        add_item(mu, statement, from->items[i]);
}
