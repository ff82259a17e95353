/* Facts that rooms take from the registry and the indexed sums, against what they were taken from
 * before and against brute force, on the nodes of the ONNX node tests and of random programs: work
 * and shape of products, which elements of an operand show, what the flags say. */
#include "onnx_load.h"
#include "ops/sem/sem.h"
#include "ops/work.h"
#include "random_linear.h"
#include "rewriting.h"
#include "test_paths.h"
#include "unit.h"
#include "verify/proof/observability.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_IO = 32, MOST_ELEMENTS = 400, PROGRAMS = 400 / TEST_SHARE };

typedef struct tally {
    int wrong;
    int works, shapes;             /* nodes compared */
    int64_t claimed, seen, missed; /* elements */
    bool product[PO_OP_COUNT], copy[PO_OP_COUNT], has_sum[PO_OP_COUNT], no_copy[PO_OP_COUNT];
} tally;

/* --- every node --- */

typedef void (*node_fn)(po_ctx *ctx, po_arena *arena, po_graph *g, const po_node *node, tally *t);

static void each_node(po_ctx *ctx, po_graph *g, node_fn fn, tally *t) {
    for (po_node_id i = 0; i < g->n_nodes; i++) {
        po_node node = g->nodes[i];
        if (node.removed || node.n_in > MAX_IO || node.n_out > MAX_IO || !po_op_row_of(node.op))
            continue;
        po_arena *arena = po_arena_create(ctx);
        fn(ctx, arena, g, &node, t);
        po_arena_free(arena);
    }
}

/* Inputs that are no floats become the constants that the test gives. */
static po_model *load(po_ctx *ctx, po_arena *arena, const char *dir) {
    po_model *model = test_model_load(ctx, po_arena_printf(arena, "%s/model.onnx", dir));
    po_graph *g = model ? model->graph : NULL;
    for (uint32_t i = 0; g && i < g->n_inputs; i++) {
        po_value *v = &g->values[g->inputs[i]];
        if (v->type.kind != PO_TYPE_TENSOR || po_dtype_class_of(v->type.dtype) == PO_CLASS_FLOAT)
            continue;
        v->constant = test_tensor_load(
            ctx, arena, po_arena_printf(arena, "%s/test_data_set_0/input_%u.pb", dir, i));
        v->is_input = v->is_input && !v->constant;
    }
    if (g && po_infer_graph(ctx, g, true) != PO_OK)
        po_ctx_clear(ctx);
    return model;
}

static void folder(const char *rel, node_fn fn, tally *t) {
    char path[512], dir[1024];
    struct dirent **names;
    int n = scandir(test_deps_path(path, sizeof path, rel), &names, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        snprintf(dir, sizeof dir, "%s/%s", path, names[i]->d_name);
        po_model *model = names[i]->d_name[0] == '.' ? NULL : load(&ctx, arena, dir);
        if (model)
            each_node(&ctx, model->graph, fn, t);
        test_model_free(model);
        po_arena_free(arena);
        free(names[i]);
    }
    free(names);
}

static void everywhere(node_fn fn, tally *t) {
    folder("onnx/test-data/node", fn, t);
    folder("onnx/test-data/pytorch-operator", fn, t);
    folder("onnx/test-data/pytorch-converted", fn, t);
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_random_linear(&ctx, seed);
        if (g) {
            each_node(&ctx, g, fn, t);
            po_graph_free(g);
        }
    }
}

/* --- work --- */

static double count_of(const po_graph *g, po_value_id v) {
    return (double)po_type_count(&g->values[v].type);
}

static double dim(const po_graph *g, po_value_id v, uint32_t axis) {
    return (double)g->values[v].type.dims[axis].value;
}

typedef struct figures {
    double flops, times, rows, columns, depth;
} figures;

/* What the roofline had for each of them, formula by formula. */
static bool by_formula(const po_graph *g, const po_node *n, figures *f) {
    if ((n->op != PO_OP_Conv && n->op != PO_OP_ConvTranspose && n->op != PO_OP_MatMul &&
         n->op != PO_OP_Gemm) ||
        n->n_in < 2 || n->in[0] == PO_NONE || n->in[1] == PO_NONE)
        return false;
    double x = count_of(g, n->in[0]), w = count_of(g, n->in[1]), y = count_of(g, n->out[0]);
    double group = (double)po_node_int(n, "group", 1);
    const po_type *a = &g->values[n->in[0]].type, *b = &g->values[n->in[1]].type;
    if (x < 1 || w < 1 || y < 1)
        return false;
    if (n->op == PO_OP_Conv) {
        double out = dim(g, n->in[1], 0);
        *f = (figures){2 * y * w / out, group, y / out, out / group, w / out};
    } else if (n->op == PO_OP_ConvTranspose) {
        double in = dim(g, n->in[1], 0);
        /* Groups are products of their own; they were taken for a longer sum. */
        *f = (figures){2 * x * w / in, group, x / in, w / in, in / group};
    } else {
        bool first = n->op == PO_OP_Gemm && po_node_int(n, "transA", 0);
        bool turned = n->op == PO_OP_Gemm && po_node_int(n, "transB", 0);
        f->depth = dim(g, n->in[0], first ? 0 : a->rank - 1);
        f->flops = 2 * y * f->depth;
        f->columns = b->rank < 2 ? 1 : dim(g, n->in[1], turned ? 0 : b->rank - 1);
        f->times = 1;
        for (uint32_t i = 0; i + 2 < b->rank; i++)
            f->times *= dim(g, n->in[1], i);
        f->rows = y / (f->columns * f->times);
    }
    return true;
}

static bool same(double a, double b) {
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* A batch of the second operand that the first has not makes columns, not products. */
static bool is_broadcast(const po_graph *g, const po_node *n) {
    const po_type *a = &g->values[n->in[0]].type, *b = &g->values[n->in[1]].type;
    if (n->op != PO_OP_MatMul || b->rank < 3)
        return false;
    for (uint32_t i = 0; i + 2 < b->rank; i++)
        if (a->rank < b->rank || a->dims[a->rank - b->rank + i].value != b->dims[i].value)
            return true;
    return false;
}

static void compare_work(po_ctx *ctx, po_arena *arena, po_graph *g, const po_node *n, tally *t) {
    (void)ctx;
    (void)arena;
    figures old;
    po_work work;
    if (!by_formula(g, n, &old))
        return;
    t->works++;
    bool known = po_work_of(g, n, &work);
    const po_sum_shape *s = &work.shape;
    bool good = known && same(work.flops, old.flops);
    if (good && work.product && !is_broadcast(g, n)) {
        t->shapes++;
        good = same(s->rows, old.rows) && same(s->columns, old.columns) &&
               same(s->times, old.times) && same(s->depth, old.depth);
    }
    if (!good) {
        printf("%s '%s': %g flops (%g), %g x %g x %g, sums of %g (%g x %g x %g, %g)\n", n->op_type,
               g->name, work.flops, old.flops, s->times, s->rows, s->columns, s->depth, old.times,
               old.rows, old.columns, old.depth);
        t->wrong++;
    }
}

static void test_work(void **state) {
    (void)state;
    static tally t;
    everywhere(compare_work, &t);
    printf("%d products compared, %d shapes, %d wrong\n", t.works, t.shapes, t.wrong);
    assert_int_equal(t.wrong, 0);
    assert_true(t.works > 150 && t.shapes > 150);
}

/* --- influence --- */

static uint64_t name_seed(const po_graph *g, const po_node *n) {
    return po_hash_bytes(g->name, strlen(g->name), (po_hash){n->op, (uint64_t)(n->out[0])}).lo;
}

/* Of the element types that the reference tells apart by a change of an element. */
static bool is_plain(po_dtype dtype) {
    return dtype == PO_F32 || dtype == PO_F64;
}

typedef struct node_case {
    po_ctx *ctx;
    po_arena *arena;
    po_graph *g;
    const po_node *n;
    po_array *in[MAX_IO];
    bool varies[MAX_IO];
} node_case;

static bool array_of_type(node_case *c, uint32_t k, uint64_t seed) {
    const po_type *type = &c->g->values[c->n->in[k]].type;
    int64_t dims[PO_MAX_RANK], count = type->kind == PO_TYPE_TENSOR ? po_type_count(type) : -1;
    if (count < 1 || count > MOST_ELEMENTS || !is_plain(type->dtype))
        return false;
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    if (po_array_create(c->ctx, c->arena, type->dtype, type->rank, dims, &c->in[k]) != PO_OK)
        return false;
    for (int64_t i = 0; i < count; i++)
        c->in[k]->f[i] = 0.5 + 1.5 * po_random_unit(seed, k, (uint64_t)i);
    return true;
}

/* Inputs: the node's constants, drawn numbers for the others. `fix`: one of these becomes a
 * constant of which a third are zeros; PO_NONE: none. */
static bool prepare(node_case *c, uint32_t fix, uint64_t seed) {
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        po_value_id v = c->n->in[k];
        if (v == PO_NONE)
            continue;
        const po_tensor *t = po_graph_constant(c->g, v);
        if (t && po_array_from_tensor(c->ctx, c->arena, t, &c->in[k]) != PO_OK)
            return false;
        if (t)
            continue;
        if (!array_of_type(c, k, seed))
            return false;
        c->varies[k] = k != fix;
        if (k != fix)
            continue;
        for (int64_t i = 0; i < c->in[k]->count; i++)
            if (po_random_u64(seed, 99, (uint64_t)i) % 3 == 0)
                c->in[k]->f[i] = 0;
        po_tensor *fixed;
        if (c->g->values[v].n_uses != 1 ||
            po_array_to_tensor(c->ctx, c->arena, c->in[k], &fixed) != PO_OK)
            return false;
        c->g->values[v].constant = fixed;
        c->g->values[v].is_input = false;
    }
    return true;
}

static bool evaluate(node_case *c, po_array **out) {
    memset(out, 0, MAX_IO * sizeof *out);
    const po_array *in[MAX_IO];
    for (uint32_t k = 0; k < MAX_IO; k++)
        in[k] = c->in[k];
    if (po_ref_node(c->ctx, c->arena, c->g, c->n, in, out) != PO_OK) {
        po_ctx_clear(c->ctx);
        return false;
    }
    /* Outputs may lie in an input's memory. */
    for (uint32_t o = 0; o < c->n->n_out; o++)
        if (out[o] && out[o]->f)
            out[o]->f =
                po_arena_memdup(c->arena, out[o]->f, (size_t)out[o]->count * sizeof *out[o]->f);
    return true;
}

/* Whether the element changes what shows. */
static bool changes(node_case *c, uint32_t k, int64_t i, po_array *const *before,
                    bool *const *mask) {
    po_array *after[MAX_IO];
    double keep = c->in[k]->f[i];
    c->in[k]->f[i] += 1;
    bool any = false, done = evaluate(c, after);
    c->in[k]->f[i] = keep;
    assert_true(done);
    for (uint32_t o = 0; o < c->n->n_out; o++)
        for (int64_t e = 0; before[o] && before[o]->f && e < before[o]->count && !any; e++) {
            double a = before[o]->f[e], b = after[o]->f[e];
            any = mask[c->n->out[o]][e] && (a < b || a > b);
        }
    return any;
}

/* The output's mask: all, most, few. */
static bool draw_masks(node_case *c, po_array *const *out, po_observable *s, uint64_t seed,
                       int kind) {
    for (uint32_t o = 0; o < c->n->n_out; o++) {
        if (c->n->out[o] == PO_NONE)
            continue;
        const po_type *type = &c->g->values[c->n->out[o]].type;
        if (!out[o] || !is_plain(type->dtype) || out[o]->count > 4 * MOST_ELEMENTS ||
            po_type_count(type) != out[o]->count)
            return false;
        bool *mask = po_observable_mask(s, c->n->out[o]);
        for (int64_t e = 0; mask && e < out[o]->count; e++)
            mask[e] = !kind || (int)(po_random_u64(seed, 50 + o, (uint64_t)e) % 4) >= kind;
        if (!mask)
            return false;
    }
    return true;
}

static void compare_influence(node_case *c, uint64_t seed, int kind, tally *t) {
    po_array *out[MAX_IO];
    po_observable s = {c->ctx, c->arena, c->g, PO_NEW_N(c->arena, bool *, c->g->n_values)};
    if (!evaluate(c, out) || !draw_masks(c, out, &s, seed, kind) ||
        po_observable_by_sum(&s, c->n) != PO_OK)
        return;
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        bool twice = false; /* the same value as another input: its mask is of both */
        for (uint32_t j = 0; j < c->n->n_in; j++)
            twice |= j != k && c->n->in[j] == c->n->in[k];
        const bool *mask = c->varies[k] && !twice ? s.mask[c->n->in[k]] : NULL;
        for (int64_t i = 0; c->varies[k] && !twice && i < c->in[k]->count; i++) {
            bool claimed = mask && mask[i], seen = changes(c, k, i, out, s.mask);
            t->claimed += claimed;
            t->seen += seen;
            t->missed += seen && !claimed;
            if (claimed && !seen) {
                if (!t->wrong)
                    printf("%s '%s': element %lld of input %u does not show\n", c->n->op_type,
                           c->g->name, (long long)i, k);
                t->wrong++;
            }
        }
    }
}

static void influence(po_ctx *ctx, po_arena *arena, po_graph *g, const po_node *n, tally *t) {
    const uint64_t seed = name_seed(g, n);
    if (!po_op_row_of(n->op)->sem || po_op_has(n->op, PO_OPF_CONTROL | PO_OPF_RANDOM))
        return;
    for (int kind = 0; kind < 3; kind++) {
        node_case c = {.ctx = ctx, .arena = arena, .g = g, .n = n};
        if (prepare(&c, PO_NONE, seed))
            compare_influence(&c, seed, kind, t);
    }
    uint32_t fix = seed % 3 == 0 ? 0 : 1; /* then with a constant that has zeros */
    if (n->n_in < 2 || n->in[fix] == PO_NONE || po_graph_constant(g, n->in[fix]))
        return;
    po_value kept = g->values[n->in[fix]];
    node_case c = {.ctx = ctx, .arena = arena, .g = g, .n = n};
    if (prepare(&c, fix, seed))
        for (int kind = 0; kind < 2; kind++)
            compare_influence(&c, seed, kind, t);
    g->values[n->in[fix]] = kept;
}

static void test_influence(void **state) {
    (void)state;
    static tally t;
    everywhere(influence, &t);
    printf("%lld elements show, %lld of them said to, %lld more wrongly\n", (long long)t.seen,
           (long long)t.claimed, (long long)t.wrong);
    assert_int_equal(t.wrong, 0);
    assert_true(t.seen > 20000);
    /* What shows in some of the elements that it is part of is not said to, but seldom else. */
    assert_true(t.missed * 3 < t.seen);
}

/* Constants that are zero by turns, or add up to nothing: x does not show, however many of them
 * are not zero. */
static void test_cancelled(void **state) {
    static const struct {
        const char *node;
        bool shows;
    } samples[] = {
        {"Einsum(x, k: f32[2] {1,-1}) {equation=\"i,k->i\"} : f32[3]", false},
        {"Einsum(x, k: f32[2] {1,-1}) {equation=\"i,k->ik\"} : f32[3,2]", true},
        {"Einsum(x, k: f32[2] {0,0}) {equation=\"i,k->ik\"} : f32[3,2]", false},
        {"Einsum(x, a: f32[2] {1,0}, b: f32[2] {0,1}) {equation=\"i,k,k->ik\"} : f32[3,2]", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char text[400];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        snprintf(text, sizeof text, "graph g (x: f32[3]) -> (y) {\n  y = %s\n}\n", samples[i].node);
        po_graph *g = test_graph(&ctx, text);
        const po_node *n = &g->nodes[0];
        po_observable s = {&ctx, arena, g, PO_NEW_N(arena, bool *, g->n_values)};
        memset(po_observable_mask(&s, n->out[0]), true, (size_t)po_observable_count(&s, n->out[0]));
        assert_int_equal(po_observable_by_sum(&s, n), PO_OK);
        assert_int_equal(po_observable_all(&s, n->in[0]), samples[i].shows);
        po_arena_free(arena);
        po_graph_free(g);
    }
}

/* --- flags --- */

/* Of an element, or a number; picked by a table of ones and zeros perhaps. */
static bool is_copy(const po_sum *sum, const po_term *term) {
    uint32_t operands = 0;
    for (uint32_t k = 0; k < term->n_factors; k++) {
        const po_operand *op = &sum->operands[term->factor[k].operand];
        operands += op->kind != PO_OPERAND_TABLE;
        for (int64_t i = 0; op->kind == PO_OPERAND_TABLE && i < op->count; i++)
            if (op->table[i].den != 1 || op->table[i].num * op->table[i].num != op->table[i].num)
                return false;
    }
    return operands == 0 || (operands == 1 && po_rational_equal(term->scale, PO_RATIONAL(1)));
}

/* Of two inputs and of nothing else: a spectrum is one of a signal, a window and a table. */
static bool has_table(const po_sum *sum) {
    for (uint32_t i = 0; i < sum->n_operands; i++)
        if (sum->operands[i].kind == PO_OPERAND_TABLE)
            return true;
    return false;
}

static void note_sums(po_ctx *ctx, po_arena *arena, po_graph *g, const po_node *n, tally *t) {
    po_sum *sums[MAX_IO] = {0};
    if (!po_op_row_of(n->op)->sem || po_sem_of(ctx, arena, g, n, sums) != PO_OK)
        return;
    for (uint32_t o = 0; o < n->n_out; o++) {
        po_sum_shape shape;
        if (!sums[o] || sums[o]->count < 2)
            continue;
        t->has_sum[n->op] = true;
        bool product = po_sum_product_shape(sums[o], &shape);
        t->product[n->op] |= product && shape.depth > 1 && !has_table(sums[o]);
        for (uint32_t i = 0; i < sums[o]->n_terms; i++) {
            t->no_copy[n->op] |= !is_copy(sums[o], &sums[o]->terms[i]);
        }
    }
}

static bool has_attr(const po_op_row *row, const char *name) {
    for (const po_attr_def *a = row->attrs; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return true;
    return false;
}

static void test_flags(void **state) {
    (void)state;
    static tally t;
    everywhere(note_sums, &t);
    int products = 0, windows = 0, sums = 0;
    for (po_op_id op = 1; op < PO_OP_COUNT; op++) {
        const po_op_row *row = po_op_row_of(op);
        bool window = has_attr(row, "kernel_shape") && has_attr(row, "strides");
        if (po_op_has(op, PO_OPF_WINDOW) != window)
            fail_msg("%s: a window or none", row->name);
        windows += window;
        sums += t.has_sum[op];
        if (t.has_sum[op] && po_op_is_product(op) != t.product[op])
            fail_msg("%s: a product or none", row->name);
        products += t.product[op];
        if (t.has_sum[op] && po_op_has(op, PO_OPF_MOVES_DATA) && t.no_copy[op])
            fail_msg("%s moves more than data", row->name);
    }
    printf("%d operators with sums, %d products, %d windows\n", sums, products, windows);
    assert_true(products == 5 && windows == 9 && sums > 30);
}

/* Every output that the node tests expect of an operator that is said to be bounded. */
static void within_bounds(po_ctx *ctx, po_arena *arena, po_graph *g, const po_node *n, tally *t) {
    node_case c = {.ctx = ctx, .arena = arena, .g = g, .n = n};
    po_array *out[MAX_IO];
    if (!po_op_has(n->op, PO_OPF_BOUNDED) || !prepare(&c, PO_NONE, name_seed(g, n)))
        return;
    for (double by = -40; by < 41; by += 8) {
        for (int64_t i = 0; i < c.in[0]->count; i++)
            c.in[0]->f[i] *= by;
        if (!evaluate(&c, out))
            return;
        t->works++;
        for (int64_t i = 0; i < out[0]->count; i++)
            t->wrong += !(out[0]->f[i] >= -1 && out[0]->f[i] <= 1);
    }
}

static void test_bounded(void **state) {
    (void)state;
    static tally t;
    everywhere(within_bounds, &t);
    assert_int_equal(t.wrong, 0);
    assert_true(t.works > 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work),      cmocka_unit_test(test_influence),
        cmocka_unit_test(test_cancelled), cmocka_unit_test(test_flags),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
