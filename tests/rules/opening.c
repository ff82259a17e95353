/* Graphs whose inputs have open dims: names for lengths, and lengths for names again.
 *
 * Dims of several inputs that stand in one place have one name where they are as long, or a whole
 * multiple of it where they are maps. A dim may be open if the graph runs at another length. */
#include "rules.h"

#include "cost/roofline.h"
#include "ir/size.h"

#include <stdlib.h>

enum { MOST_DIMS = 32, MOST_TIMES = 8 };
/* Larger ones are not run: what inference says must do. */
static const double most_flops = 3e7;

typedef struct named_dim {
    uint32_t input, axis, rank;
    int64_t length;
    uint32_t name;
    int64_t times; /* the name's length */
} named_dim;

struct opening {
    po_ctx *ctx;
    po_arena *arena;
    named_dim dims[MOST_DIMS];
    uint32_t n;
    bool evaluated; /* by the reference; else what inference says must do */
    uint32_t n_names;
    int64_t base[MOST_DIMS]; /* by name: as long as it was */
};

/* --- names --- */

static void collect(opening *o, const po_graph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_value *v = &g->values[g->inputs[i]];
        const po_type *t = &v->type;
        if (v->constant || t->kind != PO_TYPE_TENSOR || !t->has_rank)
            continue;
        for (uint32_t k = 0; k < t->rank && o->n < MOST_DIMS; k++)
            if (t->dims[k].value > 0)
                o->dims[o->n++] = (named_dim){i, k, t->rank, t->dims[k].value, PO_NONE, 1};
    }
}

/* One place of two inputs: the same axis, counted from the end where ranks differ. */
static bool one_place(const named_dim *a, const named_dim *b) {
    return a->input != b->input &&
           (a->rank == b->rank ? a->axis == b->axis : a->rank - a->axis == b->rank - b->axis);
}

static bool is_multiple(const named_dim *of, const named_dim *d) {
    return of->length > 1 && d->length % of->length == 0 && d->length / of->length <= MOST_TIMES &&
           d->axis >= 2 && d->rank == of->rank;
}

/* The shortest first: longer ones may be multiples of them. */
static void name_dims(opening *o) {
    for (int64_t length = 1, seen = 0; seen < o->n; length++)
        for (uint32_t i = 0; i < o->n; i++) {
            named_dim *d = &o->dims[i];
            if (d->length != length)
                continue;
            seen++;
            for (uint32_t k = 0; k < o->n && d->name == PO_NONE; k++) {
                const named_dim *of = &o->dims[k];
                if (of->name == PO_NONE || !one_place(of, d) ||
                    !(of->length == d->length || is_multiple(of, d)))
                    continue;
                d->name = of->name;
                d->times = of->times * (d->length / of->length);
            }
            if (d->name == PO_NONE) {
                d->name = o->n_names++;
                o->base[d->name] = d->length;
            }
        }
}

/* --- graphs --- */

/* Bodies that take an input have its type as well. */
static po_status tell_body(po_ctx *ctx, po_graph *body, void *user) {
    (void)ctx;
    const po_value_id *input = user;
    for (po_value_id v = 0; body->parent == body->root && body != body->root && v < body->n_values;
         v++)
        if (body->values[v].outer == *input)
            body->values[v].type = body->root->values[*input].type;
    return PO_OK;
}

static void set_dim(const opening *o, po_graph *g, const named_dim *d, po_dim dim) {
    po_value_id input = g->inputs[d->input];
    po_value *v = &g->values[input];
    po_dim *dims = po_arena_memdup(g->arena, v->type.dims, v->type.rank * sizeof *dims);
    dims[d->axis] = dim;
    v->type.dims = dims;
    po_graph_walk(o->ctx, g, tell_body, &input);
}

/* Channels are tried at few lengths where they are called so; the axes of maps at long ones. */
static po_dim symbol_of(const opening *o, po_arena *arena, uint32_t name) {
    bool channels = false;
    for (uint32_t i = 0; i < o->n; i++)
        channels |= o->dims[i].name == name && o->dims[i].axis == 1 && o->dims[i].rank > 3;
    return (po_dim){-1, po_arena_printf(arena, "%s%u", channels ? "length" : "open", name)};
}

/* Types of a graph of numbers alone are not inferred. */
po_graph *opening_graph(const opening *o, const po_graph *graph, uint32_t names) {
    po_graph *g = po_graph_clone(o->ctx, graph);
    for (uint32_t i = 0; i < o->n; i++) {
        const named_dim *d = &o->dims[i];
        if (!(names >> d->name & 1))
            continue;
        set_dim(o, g, d, po_size_times(g->arena, symbol_of(o, g->arena, d->name), d->times));
    }
    if (po_infer_graph(o->ctx, g, false) == PO_OK)
        return g;
    po_ctx_clear(o->ctx);
    po_graph_free(g);
    return NULL;
}

po_graph *opening_at(const opening *o, const po_graph *graph, uint32_t names,
                     const int64_t *lengths) {
    po_graph *g = po_graph_clone(o->ctx, graph);
    for (uint32_t i = 0; i < o->n; i++)
        if (names >> o->dims[i].name & 1)
            set_dim(o, g, &o->dims[i], PO_DIM(lengths[o->dims[i].name] * o->dims[i].times));
    return g;
}

/* --- which of them may be open --- */

static bool runs_at(const opening *o, const po_graph *graph, uint32_t names,
                    const int64_t *lengths) {
    po_graph *g = opening_at(o, graph, names, lengths);
    po_estimate work;
    bool does = po_infer_graph(o->ctx, g, false) == PO_OK;
    if (does && o->evaluated) {
        po_roofline_graph(g, &(po_rates){.flops = 1, .bytes = 1}, 1, &work);
        does = work.flops > most_flops || original_runs(o->ctx, g);
    }
    po_ctx_clear(o->ctx);
    po_graph_free(g);
    return does;
}

/* A multiple of what they were, and others. */
static bool runs(const opening *o, const po_graph *graph, uint32_t names) {
    int64_t twice[MOST_DIMS], other[MOST_DIMS];
    for (uint32_t k = 0; k < o->n_names; k++) {
        twice[k] = 2 * o->base[k];
        other[k] = o->base[k] + 7 + k % 3;
    }
    return runs_at(o, graph, names, twice) && runs_at(o, graph, names, other);
}

uint32_t opening_most(const opening *o, const po_graph *graph) {
    uint32_t names = 0;
    for (uint32_t k = 0; k < o->n_names && k < 31; k++) {
        const uint32_t more = names | 1u << k;
        po_graph *g = runs(o, graph, more) ? opening_graph(o, graph, more) : NULL;
        if (g)
            names = more;
        po_graph_free(g);
    }
    return names;
}

po_ctx *opening_ctx(const opening *o) {
    return o->ctx;
}

uint32_t opening_names(const opening *o) {
    return o->n_names;
}

const opening *opening_of(po_ctx *ctx, po_arena *arena, const po_graph *graph) {
    opening *o = PO_NEW(arena, opening);
    o->ctx = ctx;
    o->arena = arena;
    collect(o, graph);
    name_dims(o);
    o->evaluated = runs_at(o, graph, 0, NULL) && original_runs(ctx, graph);
    return o;
}
