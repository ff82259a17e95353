/* A program computed at regions of its output, against the same elements of the whole output in
 * float64: operators one by one, and random programs of linear ones. */
#include "correct/ways.h"
#include "random_linear.h"
#include "rewriting.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

enum { PROGRAMS = 500 / TEST_SHARE, REGIONS = 8, MOST_IO = 32 };

typedef struct tally {
    int asked, made, wrong;
} tally;

static uint64_t draw(uint64_t seed, uint64_t i, uint64_t n) {
    return po_random_u64(seed, 3, i) % n;
}

static bool evaluate(po_ctx *ctx, po_arena *arena, const po_graph *g, po_array **out) {
    const po_array *in[MOST_IO];
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_type *t = &g->values[g->inputs[i]].type;
        int64_t dims[PO_MAX_RANK];
        po_array *a;
        for (uint32_t x = 0; x < t->rank; x++)
            dims[x] = t->dims[x].value;
        assert_int_equal(po_array_create(ctx, arena, t->dtype, t->rank, dims, &a), PO_OK);
        for (int64_t e = 0; e < a->count; e++)
            a->f[e] = 0.5 + po_random_unit(11, i, (uint64_t)e);
        in[i] = a;
    }
    if (po_ref_graph(ctx, arena, g, in, out, false) == PO_OK)
        return true;
    printf("%s\n", ctx->error.message);
    po_ctx_clear(ctx);
    return false;
}

/* Element of the whole output that stands at place e of the k-th region. */
static int64_t element_of(const po_stepped *r, const po_array *whole, int64_t e) {
    int64_t at = 0, stride = 1;
    for (uint32_t x = r->rank; x-- > 0; stride *= whole->dims[x]) {
        at += (r->first[x] + e % r->count[x] * r->step[x]) * stride;
        e /= r->count[x];
    }
    return at;
}

static bool agrees(const po_array *whole, const po_array *part, uint32_t n, const po_stepped *r) {
    int64_t size = (int64_t)po_stepped_size(&r[0]);
    if (part->count != size * n)
        return false;
    for (uint32_t k = 0; k < n; k++)
        for (int64_t e = 0; e < size; e++) {
            double a = whole->f[element_of(&r[k], whole, e)], b = part->f[k * size + e];
            if (!(fabs(a - b) <= 1e-9 * (1 + fabs(a))))
                return false;
        }
    return true;
}

/* n regions, alike but for where they begin. */
static void draw_regions(const po_type *type, uint64_t seed, uint32_t n, po_stepped *r) {
    for (uint32_t k = 0; k < n; k++)
        r[k].rank = type->rank;
    for (uint32_t x = 0; x < type->rank; x++) {
        int64_t dim = type->dims[x].value, step = 1 + (int64_t)draw(seed, 10 + x, 4) / 3;
        int64_t most = (dim - 1) / step + 1,
                count = 1 + (int64_t)draw(seed, 20 + x, (uint64_t)most);
        count = draw(seed, 30 + x, 3) ? count : most;
        for (uint32_t k = 0; k < n; k++) {
            int64_t room = dim - 1 - (count - 1) * step;
            r[k].step[x] = step;
            r[k].count[x] = count;
            r[k].first[x] = (int64_t)draw(seed, 40 + 10 * k + x, (uint64_t)room + 1);
        }
    }
}

static void one_region(po_ctx *ctx, const po_graph *g, uint64_t seed, tally *t) {
    po_arena *arena = po_arena_create(ctx);
    const po_type *type = &g->values[g->outputs[0]].type;
    po_graph *to = po_graph_clone(ctx, g);
    po_restrictor r = {ctx, arena, g, po_weights_of(g, arena, 1), to, to->inputs, 0, NULL};
    po_stepped regions[2];
    uint32_t n = 1 + (uint32_t)draw(seed, 0, 3) / 2;
    po_value_id y;
    n = r.weight[g->outputs[0]] ? 1 : n;
    draw_regions(type, seed, n, regions);
    t->asked++;
    assert_int_equal(po_restrict(&r, g->outputs[0], n, regions, &y), PO_OK);
    if (y != PO_NONE) {
        po_array *out[MOST_IO];
        t->made++;
        po_graph_add_output(to, y);
        bool good = po_infer_graph(ctx, to, false) == PO_OK && evaluate(ctx, arena, to, out) &&
                    agrees(out[0], out[to->n_outputs - 1], n, regions);
        if (!good) {
            printf("%s, seed %llu, %u regions: %s\n", g->name, (unsigned long long)seed, n,
                   ctx->error.message);
            po_ctx_clear(ctx);
            t->wrong++;
        }
    }
    po_graph_free(to);
    po_arena_free(arena);
}

static bool is_small(const po_graph *g) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (po_type_count(&g->values[g->inputs[i]].type) < 1 ||
            po_dtype_class_of(g->values[g->inputs[i]].type.dtype) != PO_CLASS_FLOAT)
            return false;
    const po_type *y = &g->values[g->outputs[0]].type;
    return g->n_inputs > 0 && g->n_inputs < MOST_IO && g->n_outputs < MOST_IO &&
           po_type_count(y) > 0 && y->rank <= PO_RT_MAX_RANK;
}

static void test_programs(void **state) {
    (void)state;
    tally t = {0, 0, 0};
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_graph *g = test_random_linear(&ctx, seed);
        for (uint64_t i = 0; g && is_small(g) && i < REGIONS; i++)
            one_region(&ctx, g, seed * REGIONS + i, &t);
        if (g)
            po_graph_free(g);
    }
    printf("%d regions, %d made, %d wrong\n", t.asked, t.made, t.wrong);
    assert_int_equal(t.wrong, 0);
    assert_true(t.made * 5 > t.asked * 4);
}

/* Operators that are run on slices: the work is that of the region. */
static void test_operators(void **state) {
    static const struct {
        const char *node; /* x: f32[2,6,8,9], w: f32[4,3,3,3] */
        bool sliced;
    } samples[] = {
        {"Conv(x, w) {group=2, pads=[1,1,1,1]}", true},
        {"Conv(x, w) {group=2, strides=[2,1], dilations=[1,2]}", true},
        {"AveragePool(x) {kernel_shape=[3,3], pads=[1,1,1,1]}", true},
        {"GlobalAveragePool(x)", true},
        {"MatMul(x, m: f32[9,5] random 1)", true},
        {"Einsum(x, m: f32[9,5] random 1) {equation=\"abij,jk->bakj\"}", true},
        {"Mul(x, c: f32[6,1,1] random 1)", true},
        {"Mean(x, c: f32[6,1,1] random 1)", true},
        {"Sum(x, c: f32[6,1,1] random 1, x)", true},
        {"ReduceSum(x, axes: i64[1] {2})", true},
        {"ReduceMean(x) {axes=[2,3]}", true},
        {"Concat(x, c: f32[2,3,8,9] random 1, x) {axis=1}", true},
        {"ConvTranspose(x, v: f32[6,2,3,3] random 1) {strides=[2,2]}", false},
        {"CumSum(x, a: i64[1] {2})", false},
        {"Trilu(x)", false},
        {"Where(b: bool[9] {1,0,0,1,1,0,1,0,1}, x, c: f32[6,1,1] random 1)", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        char text[400];
        tally t = {0, 0, 0};
        po_ctx ctx;
        po_ctx_init(&ctx);
        snprintf(text, sizeof text,
                 "graph g (x: f32[2,6,8,9], w: f32[4,3,3,3]) -> (y) {\n  y = %s\n}\n",
                 samples[i].node);
        po_graph *g = test_graph(&ctx, text);
        for (uint64_t seed = 0; seed < 40; seed++)
            one_region(&ctx, g, 1000 * i + seed, &t);
        /* A small corner of it. */
        po_arena *arena = po_arena_create(&ctx);
        po_graph *to = po_graph_clone(&ctx, g);
        po_restrictor r = {&ctx, arena, g, po_weights_of(g, arena, 1), to, to->inputs, 0, NULL};
        po_restrictor all = r;
        po_stepped corner = {.rank = 0}, whole = {.rank = 0};
        const po_type *type = &g->values[g->outputs[0]].type;
        corner.rank = whole.rank = type->rank;
        for (uint32_t x = 0; x < type->rank; x++) {
            corner.step[x] = whole.step[x] = 1;
            corner.count[x] = 1;
            whole.count[x] = type->dims[x].value;
        }
        po_value_id y, z;
        assert_int_equal(po_restrict(&r, g->outputs[0], 1, &corner, &y), PO_OK);
        assert_int_equal(po_restrict(&all, g->outputs[0], 1, &whole, &z), PO_OK);
        bool sliced = y != PO_NONE && z != PO_NONE && (r.flops < all.flops || all.flops == 0);
        printf("%s: %d of %d made, %g of %g\n", samples[i].node, t.made, t.asked, r.flops,
               all.flops);
        if (t.wrong || sliced != samples[i].sliced)
            fail_msg("%s: %d wrong, %s", samples[i].node, t.wrong, sliced ? "sliced" : "whole");
        po_graph_free(to);
        po_arena_free(arena);
        po_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
