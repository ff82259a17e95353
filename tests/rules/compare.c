/* A graph before a rewrite and after it, by the float64 reference on inputs of several kinds. */
#include "rules.h"

#include "base/hash.h"
#include "ops/recipe/recipe.h"
#include "ops/ref.h"
#include "ops/rewrite.h"

#include <math.h>
#include <stdlib.h>

/* Inputs: as networks have them; what branches and clips tell apart; large; what no arithmetic
 * makes, for rewrites that keep every bit. */
typedef enum inputs_kind { KIND_NORMAL, KIND_EDGES, KIND_LARGE, KIND_SPECIAL, KINDS } inputs_kind;
static const char *const kind_names[KINDS] = {"normal", "edges", "large", "special"};

/* Relative to the largest magnitude of the output. Over the reals both sides are float64, and the
 * longest sums of Toom-Cook lose three digits; a form's attributes are float32, and constants are
 * recognised to six digits. */
static const double tolerances[] = {
    [PROMISE_BITS] = 0, [PROMISE_REAL] = 1e-9, [PROMISE_FORM] = 2e-5};

/* And relative to the largest input: a form that adds 1 to a number loses that much of it in
 * float64, and another form has it still. So does a graph that adds numbers itself: relative to 1,
 * whatever the promise. */
static const double lost = 0x1p-52;

struct original {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    const po_array **in[KINDS];
    po_array **out[2][KINDS]; /* [rounded]; NULL: the reference does not take it */
};

/* --- inputs --- */

enum { MOST_MARKS = 64 };

/* Numbers at which the graph may tell values apart: its small constants. */
static uint32_t marks_of(const po_graph *graph, double *marks) {
    uint32_t n = 0;
    for (po_value_id v = 0; v < graph->n_values && n < MOST_MARKS; v++) {
        const po_tensor *t = graph->values[v].constant;
        if (t && t->count == 1 && po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT &&
            isfinite(po_tensor_f64(t, 0)))
            marks[n++] = po_tensor_f64(t, 0);
    }
    return n;
}

static double number(inputs_kind kind, const double *marks, uint32_t n_marks, uint64_t seed,
                     uint64_t stream, uint64_t i) {
    static const double edges[] = {0, -0.0, 1, -1, 0.5, -3, 3, 6, 1e-30, -1e3};
    static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-42, -3e38, 0, 1};
    double normal = po_random_normal(seed, stream, i);
    uint64_t draw = po_random_u64(seed, stream + 1000, i);
    switch (kind) {
    case KIND_LARGE:
        return 1e4 * normal;
    case KIND_EDGES:
        if (draw % 3 == 0)
            return edges[draw / 3 % (sizeof edges / sizeof *edges)];
        return draw % 3 == 1 && n_marks ? marks[draw / 3 % n_marks] : normal;
    case KIND_SPECIAL:
        return draw % 2 ? normal : special[draw / 2 % (sizeof special / sizeof *special)];
    default:
        return normal;
    }
}

/* Before IR version 4 initialisers had to be inputs too, and were constants all the same. */
static bool first_ir(const po_graph *graph) {
    return graph->model && graph->model->ir_version < 4;
}

/* A symbol that ends with a length stands for that (rules.c); any other for 5. */
static int64_t length_of(const po_dim *d) {
    const char *last = d->symbol ? strrchr(d->symbol, '_') : NULL;
    return d->value >= 0 ? d->value : last ? strtoll(last + 1, NULL, 10) : 5;
}

/* Integers are small: they may be indices. From the end, too, among the edges. */
static po_status make_input(original *o, inputs_kind kind, uint32_t input, const double *marks,
                            uint32_t n_marks, uint64_t seed, po_array **out) {
    const po_value *value = &o->graph->values[o->graph->inputs[input]];
    const po_type *type = &value->type;
    if (value->constant && first_ir(o->graph))
        return po_array_from_tensor(o->ctx, o->arena, value->constant, out);
    int64_t dims[PO_MAX_RANK];
    if (type->kind != PO_TYPE_TENSOR || !type->has_rank || type->rank > PO_MAX_RANK)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = length_of(&type->dims[i]);
    PO_TRY(po_array_create(o->ctx, o->arena, type->dtype, type->rank, dims, out));
    po_array *a = *out;
    if (a->s)
        return PO_UNSUPPORTED;
    for (int64_t i = 0; i < a->count; i++) {
        uint64_t draw = po_random_u64(seed, input + 2000, (uint64_t)i);
        if (a->f)
            a->f[i] = number(kind, marks, n_marks, seed + (uint64_t)kind, input, (uint64_t)i);
        else
            a->i[i] = type->dtype == PO_BOOL ? (int64_t)(draw % 2)
                      : kind == KIND_NORMAL  ? (int64_t)(draw % 3)
                                             : (int64_t)(draw % 6) - 3;
    }
    po_array_round(a);
    return PO_OK;
}

/* --- evaluating --- */

typedef struct unrounding {
    po_arena *arena;
    const po_recipe **from, **to; /* what was done already: recipes share their parts */
    uint32_t n, cap_from, cap_to;
} unrounding;

/* A recipe without its roundings to a narrower type: weights that were derived from stored ones are
 * derived from what those were before. */
static const po_recipe *unrounded(unrounding *u, const po_recipe *r) {
    if (!r || r->kind != PO_RECIPE_OP)
        return r;
    if (r->op == PO_OP_Cast && r->dtype == PO_F32 && r->in[0] && r->in[0]->dtype == PO_F64)
        return unrounded(u, r->in[0]);
    for (uint32_t i = 0; i < u->n; i++)
        if (u->from[i] == r)
            return u->to[i];
    po_recipe *copy = po_arena_memdup(u->arena, r, sizeof *r);
    const po_recipe **in = PO_NEW_N(u->arena, const po_recipe *, r->n_in);
    bool changed = false;
    for (uint32_t i = 0; i < r->n_in; i++) {
        in[i] = unrounded(u, r->in[i]);
        changed |= in[i] && in[i]->dtype != r->in[i]->dtype;
    }
    copy->in = in;
    copy->tensor = NULL; /* what is stored was rounded, or is not what the recipe says */
    if (changed)
        copy->dtype = r->dtype == PO_F32 ? PO_F64 : r->dtype;
    uint32_t n = u->n;
    PO_PUSH(u->arena, u->from, n, u->cap_from, r);
    PO_PUSH(u->arena, u->to, u->n, u->cap_to, copy);
    return copy;
}

/* A graph whose derived weights are given as if they were inputs (an input may be any array), as
 * the algebra made them, before they were rounded. Constants of bodies stay as they are stored. */
typedef struct derived {
    po_graph view;
    const po_array **given; /* room for the inputs, then the weights */
} derived;

static po_status derive(original *o, po_arena *arena, const po_graph *graph, bool round,
                        derived *d) {
    uint32_t n = graph->n_inputs;
    d->view = *graph;
    d->given = PO_NEW_N(arena, const po_array *, n + graph->n_values);
    d->view.inputs = PO_NEW_N(arena, po_value_id, n + graph->n_values);
    memcpy(d->view.inputs, graph->inputs, n * sizeof *graph->inputs);
    for (po_value_id v = 0; !round && v < graph->n_values; v++) {
        const po_value *value = &graph->values[v];
        if (!value->constant || !value->recipe || value->is_input ||
            po_dtype_class_of(value->constant->dtype) != PO_CLASS_FLOAT)
            continue;
        po_array *array = NULL;
        po_arena *scratch = po_arena_child(arena);
        unrounding u = {.arena = scratch};
        const po_recipe *recipe = unrounded(&u, po_recipe_doubles(graph, scratch, v));
        po_status status = po_recipe_eval(o->ctx, arena, graph->model, recipe, &array);
        if (status != PO_OK) /* stored ones beside derived ones */
            status = po_recipe_eval(o->ctx, arena, graph->model,
                                    po_recipe_doubles(graph, scratch, v), &array);
        po_arena_free(scratch);
        PO_TRY(status);
        array->dtype = value->constant->dtype;
        d->view.inputs[d->view.n_inputs] = v;
        d->given[d->view.n_inputs++] = array;
    }
    return PO_OK;
}

static po_status evaluate(original *o, po_arena *arena, derived *d, uint32_t n_in,
                          const po_array *const *in, bool round, po_array **out) {
    memcpy(d->given, in, n_in * sizeof *in);
    po_status status = po_ref_graph(o->ctx, arena, &d->view, d->given, out, round);
    po_ctx_clear(o->ctx);
    return status;
}

bool original_runs(po_ctx *ctx, const po_graph *graph) {
    po_arena *arena = po_arena_create(ctx);
    original o = {.ctx = ctx, .arena = arena, .graph = graph};
    derived whole;
    bool made = derive(&o, arena, graph, true, &whole) == PO_OK;
    po_array **in = PO_NEW_N(arena, po_array *, graph->n_inputs + 1);
    po_array **out = PO_NEW_N(arena, po_array *, graph->n_outputs);
    for (uint32_t i = 0; i < graph->n_inputs && made; i++)
        made = make_input(&o, KIND_NORMAL, i, NULL, 0, 1, &in[i]) == PO_OK;
    made = made && evaluate(&o, arena, &whole, graph->n_inputs, (const po_array *const *)in, true,
                            out) == PO_OK;
    po_ctx_clear(ctx);
    po_arena_free(arena);
    return made;
}

original *original_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint64_t seed) {
    original *o = PO_NEW(arena, original);
    *o = (original){.ctx = ctx, .arena = arena, .graph = graph};
    double marks[MOST_MARKS];
    uint32_t n_marks = marks_of(graph, marks);
    bool any = false;
    derived whole[2];
    for (int round = 0; round < 2; round++)
        if (derive(o, arena, graph, round, &whole[round]) != PO_OK) {
            po_ctx_clear(ctx);
            return NULL;
        }
    for (inputs_kind k = 0; k < KINDS; k++) {
        o->in[k] = PO_NEW_N(arena, const po_array *, graph->n_inputs);
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
            po_array *a;
            if (make_input(o, k, i, marks, n_marks, seed, &a) != PO_OK) {
                po_ctx_clear(ctx);
                return NULL;
            }
            o->in[k][i] = a;
        }
        for (int round = 0; round < 2; round++) {
            o->out[round][k] = PO_NEW_N(arena, po_array *, graph->n_outputs);
            if (evaluate(o, arena, &whole[round], graph->n_inputs, o->in[k], round,
                         o->out[round][k]) != PO_OK)
                o->out[round][k] = NULL;
            else
                any = true;
        }
    }
    return any ? o : NULL;
}

/* --- comparing --- */

static bool same_bits(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

/* Where the original itself, with every value kept in its type, is no number (a constant beyond a
 * float): what is made of it is none either. */
static bool is_lost(const po_array *rounded, int64_t i) {
    return rounded && rounded->f && i < rounded->count && !isfinite(rounded->f[i]);
}

/* -1: equal; else the first element that is not, or -2 for another shape or type. `rounded`: a with
 * every value kept in its type; may be NULL. */
static int64_t difference(const po_array *a, const po_array *rounded, const po_array *b,
                          rules_promise promise, double least) {
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank)
        return -2;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return -2;
    double largest = 0;
    bool beyond = false;
    for (int64_t i = 0; a->f && i < a->count; i++) {
        beyond |= !isfinite(a->f[i]);
        if (isfinite(a->f[i]))
            largest = fmax(largest, fabs(a->f[i]));
    }
    for (int64_t i = 0; i < a->count; i++) {
        bool same = true;
        if (a->i)
            same = a->i[i] == b->i[i];
        else if (a->s)
            same = a->s[i].size == b->s[i].size &&
                   memcmp(a->s[i].data, b->s[i].data, a->s[i].size) == 0;
        else if (promise == PROMISE_BITS)
            same = same_bits(a->f[i], b->f[i]);
        else if (isfinite(a->f[i]) && !(beyond && a->f[i] == 0) && !is_lost(rounded, i))
            /* What is beyond float64 is not what algebra is about, nor 0 as a part of it. */
            same = fabs(a->f[i] - b->f[i]) <= fmax(tolerances[promise] * largest, least);
        if (!same)
            return i;
    }
    return -1;
}

static double largest_input(const original *o, inputs_kind kind) {
    double largest = 0;
    for (uint32_t k = 0; k < o->graph->n_inputs; k++) {
        const po_array *a = o->in[kind][k];
        for (int64_t i = 0; a->f && i < a->count; i++)
            if (isfinite(a->f[i]))
                largest = fmax(largest, fabs(a->f[i]));
    }
    return largest;
}

static bool adds_numbers(const po_graph *graph) {
    bool adds = false;
    for (po_node_id i = 0; i < graph->n_nodes && !adds; i++) {
        const po_node *node = &graph->nodes[i];
        double number;
        for (uint32_t k = 0; k < node->n_in; k++)
            adds |= !node->removed && (node->op == PO_OP_Add || node->op == PO_OP_Sub) &&
                    po_scalar_constant(graph, node->in[k], &number);
    }
    return adds;
}

/* Where the inputs are among the original's, by name; constants that were inputs may be gone, and
 * must be where callers could give others for them now. */
static bool same_inputs(const po_graph *before, const po_graph *after, uint32_t *from) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < before->n_inputs; i++) {
        const po_value *v = &before->values[before->inputs[i]];
        if (n < after->n_inputs && strcmp(v->name, after->values[after->inputs[n]].name) == 0 &&
            !(v->constant && first_ir(before) && !first_ir(after)))
            from[n++] = i;
        else if (!v->constant)
            return false;
    }
    return n == after->n_inputs;
}

static judged judge(original *o, po_arena *scratch, const po_graph *after, rules_promise promise,
                    const char **why) {
    const bool numbers = adds_numbers(o->graph);
    bool round = promise == PROMISE_BITS, any = false;
    uint32_t *from = PO_NEW_N(scratch, uint32_t, after->n_inputs + 1);
    derived whole;
    if (after->n_outputs != o->graph->n_outputs || !same_inputs(o->graph, after, from)) {
        *why = "it has other inputs or outputs";
        return JUDGED_DIFFERENT;
    }
    if (derive(o, scratch, after, round, &whole) != PO_OK) {
        po_ctx_clear(o->ctx);
        *why = "its weights cannot be made";
        return JUDGED_DIFFERENT;
    }
    for (inputs_kind k = 0; k < KINDS; k++) {
        po_array **want = o->out[round][k];
        if (!want || (k == KIND_SPECIAL && !round))
            continue;
        po_array **got = PO_NEW_N(scratch, po_array *, after->n_outputs);
        const po_array **in = PO_NEW_N(scratch, const po_array *, after->n_inputs);
        for (uint32_t i = 0; i < after->n_inputs; i++)
            in[i] = o->in[k][from[i]];
        if (evaluate(o, scratch, &whole, after->n_inputs, in, round, got) != PO_OK) {
            *why = po_arena_printf(o->arena, "the reference takes it no more (%s inputs)",
                                   kind_names[k]);
            return JUDGED_DIFFERENT;
        }
        any = true;
        const double beside = promise == PROMISE_FORM ? largest_input(o, k) : 0;
        const double least = lost * fmax(beside, numbers ? 1 : 0);
        for (uint32_t i = 0; i < after->n_outputs; i++) {
            const po_array *rounded = o->out[true][k] ? o->out[true][k][i] : NULL;
            int64_t at = difference(want[i], rounded, got[i], promise, least);
            if (at == -1)
                continue;
            const char *name = o->graph->values[o->graph->outputs[i]].name;
            if (at >= 0 && want[i]->f)
                *why = po_arena_printf(o->arena, "'%s' at %lld is %.17g and was %.17g (%s inputs)",
                                       name, (long long)at, got[i]->f[at], want[i]->f[at],
                                       kind_names[k]);
            else
                *why = po_arena_printf(o->arena, "'%s' is %s (%s inputs)", name,
                                       at >= 0 ? "another" : "of another shape", kind_names[k]);
            return JUDGED_DIFFERENT;
        }
    }
    return any ? JUDGED_EQUAL : JUDGED_UNSUPPORTED;
}

judged original_judge(original *o, const po_graph *after, rules_promise promise, const char **why) {
    po_arena *scratch = po_arena_child(o->arena);
    judged result = judge(o, scratch, after, promise, why);
    po_arena_free(scratch);
    return result;
}
