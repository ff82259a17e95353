/* Hostile numbers against the registry: the ONNX node tests with attributes, integer inputs and
 * shapes replaced by numbers that break arithmetic. Whatever the rules answer, they must come back,
 * and what they accept must hold together. Meant for a build with sanitizers as well. */
#include "onnx_load.h"
#include "test_paths.h"
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_IO = 32, ROUNDS = 6 };

/* No middle sizes: they only cost time and memory. */
static const int64_t numbers[] = {0,
                                  -1,
                                  1,
                                  2,
                                  3,
                                  -2,
                                  5,
                                  17,
                                  -7,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT64_MIN + 1,
                                  INT64_MAX - 1,
                                  INT64_C(1) << 62,
                                  INT64_C(1) << 31,
                                  INT32_MIN,
                                  (INT64_C(1) << 32) + 1};
static const float fractions[] = {0.0f, -1.0f, 1.0f, 1e30f, -1e30f, 0.3f, 1e-30f};

typedef struct dice {
    uint64_t seed, index;
} dice;

static uint64_t roll(dice *d, uint64_t n) {
    return po_random_u64(d->seed, 77, d->index++) % n;
}

static int64_t number(dice *d) {
    return numbers[roll(d, sizeof numbers / sizeof *numbers)];
}

static float fraction(dice *d) {
    return fractions[roll(d, sizeof fractions / sizeof *fractions)];
}

/* One change to one node's attributes; sets an absent list where it fits the operator. */
static void damage_attribute(po_graph *g, po_node_id id, dice *d) {
    po_node *n = &g->nodes[id];
    const po_op_row *row = po_op_row_of(n->op);
    uint32_t rows = 0;
    if (!row || !row->attrs)
        return;
    while (row->attrs[rows].name)
        rows++;
    const po_attr_def *def = &row->attrs[roll(d, rows)];
    int64_t version = po_op_version(g, n);
    if (version < def->since || (def->until && version > def->until))
        return;
    int64_t values[6];
    uint32_t count = (uint32_t)roll(d, 7);
    const int64_t *old = po_node_ints(n, def->name, &count);
    if (old && count <= 6 && roll(d, 4))
        memcpy(values, old, count * sizeof *old);
    else
        for (uint32_t i = 0; i < 6; i++)
            values[i] = number(d);
    count = count > 6 ? 6 : count;
    if (count)
        values[roll(d, count)] = number(d);
    if (def->kind == PO_ATTR_INT)
        po_node_set_int(g, id, def->name, number(d));
    else if (def->kind == PO_ATTR_FLOAT)
        po_node_set_float(g, id, def->name, fraction(d));
    else if (def->kind == PO_ATTR_INTS)
        po_node_set_ints(g, id, def->name, count, values);
    else if (def->kind == PO_ATTR_STRING)
        po_node_set_string(g, id, def->name, roll(d, 2) ? "" : "nearest");
}

/* A copy of an input with some numbers replaced; sometimes with other dims. */
static po_array *damaged(po_ctx *ctx, po_arena *arena, const po_array *a, dice *d) {
    int64_t dims[8], count = 1;
    uint32_t rank = a->rank > 8 ? 8 : a->rank;
    memcpy(dims, a->dims, rank * sizeof *dims);
    if (roll(d, 3) == 0)
        rank = rank > 0 && roll(d, 2) ? rank - 1 : rank < 8 ? rank + 1 : rank;
    if (rank > a->rank)
        dims[rank - 1] = 1;
    if (rank && roll(d, 3) == 0)
        dims[roll(d, rank)] = (int64_t)roll(d, 4);
    for (uint32_t k = 0; k < rank; k++)
        count *= dims[k];
    po_array *b;
    if (count > 100000 || po_array_create(ctx, arena, a->dtype, rank, dims, &b) != PO_OK)
        return NULL;
    for (int64_t i = 0; i < b->count; i++) {
        bool hit = roll(d, 4) == 0;
        if (b->i)
            b->i[i] = hit || !a->count ? number(d) : a->i[i % a->count];
        if (b->f)
            b->f[i] = hit || !a->count ? (double)fraction(d) : a->f[i % a->count];
        if (b->s)
            b->s[i] = a->count ? a->s[i % a->count] : (po_bytes){"", 0};
    }
    po_array_round(b);
    return b;
}

typedef struct totals {
    int runs, refused, unsupported, accepted;
} totals;

/* The array is whole, and what was inferred of it is true. */
static void check_result(const po_array *a, const po_type *t) {
    int64_t count = 1;
    assert_true(t->dtype == PO_DT_NONE || t->dtype == a->dtype);
    assert_true(!t->has_rank || t->rank == a->rank);
    for (uint32_t k = 0; k < a->rank; k++) {
        assert_true(a->dims[k] >= 0);
        assert_true(!t->has_rank || t->dims[k].value < 0 || t->dims[k].value == a->dims[k]);
        count *= a->dims[k];
    }
    assert_int_equal(count, a->count);
    assert_true((a->f != NULL) + (a->i != NULL) + (a->s != NULL) == 1);
}

static void one_round(const char *dir, po_graph *g, dice *d, totals *all) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const po_array *in[MAX_IO] = {NULL};
    po_array *out[MAX_IO] = {NULL}, *a;
    uint32_t victim = (uint32_t)roll(d, g->n_inputs + 1);
    bool whole = g->n_inputs <= MAX_IO && g->n_outputs <= MAX_IO;
    for (uint32_t k = 0; k < g->n_inputs && whole; k++) {
        if (g->values[g->inputs[k]].type.kind != PO_TYPE_TENSOR) {
            whole = false;
            break;
        }
        po_tensor *t = test_tensor_load(
            &ctx, arena, po_arena_printf(arena, "%s/test_data_set_0/input_%u.pb", dir, k));
        whole = t && t->count <= 100000 && po_array_from_tensor(&ctx, arena, t, &a) == PO_OK;
        in[k] = whole && k == victim ? damaged(&ctx, arena, a, d) : whole ? a : NULL;
        if (in[k])
            g->values[g->inputs[k]].type =
                po_type_tensor_i64(g->arena, in[k]->dtype, in[k]->rank, in[k]->dims);
        whole = whole && in[k];
    }
    po_status infer = po_infer_graph(&ctx, g, false);
    assert_true(infer == PO_OK || infer == PO_BAD_INPUT || infer == PO_UNSUPPORTED);
    if (infer == PO_BAD_INPUT)
        assert_true(ctx.error.message[0] != '\0');
    char why[PO_MESSAGE_MAX + 512];
    snprintf(why, sizeof why, "%.500s: %s", dir, ctx.error.message);
    po_ctx_clear(&ctx);
    po_status status = whole ? po_ref_graph(&ctx, arena, g, in, out, true) : PO_UNSUPPORTED;
    assert_true(status == PO_OK || status == PO_UNSUPPORTED);
    for (uint32_t k = 0; infer == PO_OK && status == PO_OK && k < g->n_outputs; k++)
        check_result(out[k], &g->values[g->outputs[k]].type);
    /* What the shape rule refuses is not computed. */
    if (infer == PO_BAD_INPUT && status == PO_OK)
        fail_msg("refused and computed: %s", why);
    all->runs++;
    all->refused += infer == PO_BAD_INPUT;
    all->unsupported += infer != PO_BAD_INPUT && status == PO_UNSUPPORTED;
    all->accepted += status == PO_OK;
    po_arena_free(arena);
}

static void one_model(const char *dir, uint64_t seed, totals *all) {
    char path[1200];
    snprintf(path, sizeof path, "%s/model.onnx", dir);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_model *model = test_model_load(&ctx, path);
        if (!model)
            return;
        dice d = {.seed = seed * ROUNDS + round};
        po_graph *g = model->graph;
        if (g->n_live == 1 && !po_op_has(g->nodes[0].op, PO_OPF_CONTROL)) {
            if (roll(&d, 3))
                damage_attribute(g, 0, &d);
            for (po_value_id v = 0; v < g->n_values; v++)
                if (g->values[v].producer != PO_NONE)
                    g->values[v].type = (po_type){0};
            one_round(dir, g, &d, all);
        }
        test_model_free(model);
    }
}

static void test_hostile_numbers(void **state) {
    char path[512], dir[1024];
    struct dirent **names;
    totals all = {0};
    (void)state;
    int n =
        scandir(test_deps_path(path, sizeof path, "onnx/test-data/node"), &names, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        snprintf(dir, sizeof dir, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            one_model(dir, (uint64_t)i, &all);
        free(names[i]);
    }
    free(names);
    printf("%d runs: %d accepted, %d refused, %d unsupported\n", all.runs, all.accepted,
           all.refused, all.unsupported);
    assert_true(all.refused > 100);
    assert_true(all.accepted > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
