/* The ONNX node tests as the oracle of the registry: every model whose operators have references
 * is evaluated on the tests' own inputs and compared with their outputs; inferred types and
 * contents are compared with the outputs too, once with the inputs' types alone and once with
 * integer inputs known. */
#include "onnx_load.h"
#include "test_paths.h"
#include "unit.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAST_PASSED = 1700, LEAST_SHAPES = 1700, MAX_IO = 32 };

typedef struct tally {
    char name[64];
    int passed, unsupported, failed;
    int exact, open, wrong; /* inferred types: complete, partly open, contradicting */
} tally;

typedef struct totals {
    tally rows[512];
    size_t n;
    char missing[160]; /* the reference's last message */
} totals;

static tally *tally_of(totals *all, const char *name) {
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->rows[i].name, name) == 0)
            return &all->rows[i];
    assert_true(all->n < sizeof all->rows / sizeof *all->rows);
    snprintf(all->rows[all->n].name, sizeof all->rows->name, "%s", name);
    return &all->rows[all->n++];
}

static void keep_message(void *user, const char *line) {
    totals *all = user;
    snprintf(all->missing, sizeof all->missing, "%s", line);
}

static double tolerance(po_dtype dtype) {
    switch (dtype) {
    case PO_F64:
        return 1e-7;
    case PO_F32:
        return 1e-3;
    case PO_F16:
        return 4e-3;
    case PO_BF16:
        return 2e-2;
    default:
        return 0;
    }
}

/* NULL where the two agree, else what differs. */
static const char *difference(po_arena *arena, const po_array *found, const po_array *want) {
    if (found->dtype != want->dtype)
        return po_arena_printf(arena, "dtype %s instead of %s", po_dtype_name(found->dtype),
                               po_dtype_name(want->dtype));
    if (found->rank != want->rank ||
        memcmp(found->dims, want->dims, want->rank * sizeof *want->dims) != 0)
        return "other dims";
    for (int64_t k = 0; k < want->count; k++) {
        if (want->s && (found->s[k].size != want->s[k].size ||
                        memcmp(found->s[k].data, want->s[k].data, want->s[k].size) != 0))
            return po_arena_printf(arena, "string %lld", (long long)k);
        if (want->i && found->i[k] != want->i[k])
            return po_arena_printf(arena, "element %lld is %lld instead of %lld", (long long)k,
                                   (long long)found->i[k], (long long)want->i[k]);
        if (!want->f)
            continue;
        double a = found->f[k], b = want->f[k];
        if (isnan(a) && isnan(b))
            continue;
        if (a != b && !(fabs(a - b) <= 1e-6 + tolerance(want->dtype) * fabs(b)))
            return po_arena_printf(arena, "element %lld is %.9g instead of %.9g", (long long)k, a,
                                   b);
    }
    return NULL;
}

typedef struct sample {
    const po_array *in[MAX_IO];
    const po_tensor *in_tensor[MAX_IO];
    const po_array *out[MAX_IO];
} sample;

static const po_tensor *load_one(po_ctx *ctx, po_arena *arena, const char *dir, const char *what,
                                 uint32_t k) {
    return test_tensor_load(ctx, arena,
                            po_arena_printf(arena, "%s/test_data_set_0/%s_%u.pb", dir, what, k));
}

static bool load_sample(po_ctx *ctx, po_arena *arena, const char *dir, const po_graph *g,
                        sample *s) {
    po_array *a;
    if (g->n_inputs > MAX_IO || g->n_outputs > MAX_IO)
        return false;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        if (g->values[g->inputs[k]].type.kind != PO_TYPE_TENSOR)
            return false;
        if (!(s->in_tensor[k] = load_one(ctx, arena, dir, "input", k)))
            continue;
        if (po_array_from_tensor(ctx, arena, s->in_tensor[k], &a) != PO_OK)
            return false;
        s->in[k] = a;
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const po_tensor *t = g->values[g->outputs[k]].type.kind == PO_TYPE_TENSOR
                                 ? load_one(ctx, arena, dir, "output", k)
                                 : NULL;
        if (!t || po_array_from_tensor(ctx, arena, t, &a) != PO_OK)
            return false;
        s->out[k] = a;
    }
    return true;
}

static const char *check_type(po_arena *arena, const po_value *v, const po_array *want,
                              bool *open) {
    const po_type *t = &v->type;
    *open = t->kind != PO_TYPE_TENSOR || t->dtype == PO_DT_NONE || !t->has_rank;
    if (t->kind == PO_TYPE_UNKNOWN)
        return NULL;
    if (t->kind != PO_TYPE_TENSOR || (t->dtype != PO_DT_NONE && t->dtype != want->dtype))
        return po_arena_printf(arena, "type of '%s'", v->name);
    if (t->has_rank && t->rank != want->rank)
        return po_arena_printf(arena, "rank of '%s': %u instead of %u", v->name, t->rank,
                               want->rank);
    for (uint32_t i = 0; t->has_rank && i < t->rank; i++) {
        if (t->dims[i].value < 0)
            *open = true;
        else if (t->dims[i].value != want->dims[i])
            return po_arena_printf(arena, "dim %u of '%s': %lld instead of %lld", i, v->name,
                                   (long long)t->dims[i].value, (long long)want->dims[i]);
    }
    if (v->partial && v->partial->n != (uint64_t)want->count)
        return po_arena_printf(arena, "contents of '%s' have the wrong length", v->name);
    for (uint32_t i = 0; v->partial && i < v->partial->n; i++)
        if (v->partial->items[i].value >= 0 && v->partial->items[i].value != want->i[i])
            return po_arena_printf(arena, "contents of '%s' differ", v->name);
    return NULL;
}

/* Infers from the inputs alone and compares. */
static const char *check_shapes(po_ctx *ctx, po_arena *arena, po_graph *g, const sample *s,
                                bool *open) {
    const char *wrong = NULL;
    *open = false;
    for (po_value_id v = 0; v < g->n_values; v++)
        if (g->values[v].producer != PO_NONE)
            g->values[v].type = (po_type){0};
    if (po_infer_graph(ctx, g, false) != PO_OK)
        return po_arena_printf(arena, "%s", ctx->error.message);
    for (uint32_t k = 0; k < g->n_outputs && !wrong; k++) {
        bool o;
        wrong = check_type(arena, &g->values[g->outputs[k]], s->out[k], &o);
        *open |= o;
    }
    return wrong;
}

/* Integer inputs become constants: shapes that they give must then be known. */
static void fix_integers(po_graph *g, const sample *s) {
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        po_value *v = &g->values[g->inputs[k]];
        if (s->in[k] && s->in[k]->i) {
            v->constant = s->in_tensor[k];
            v->is_input = false;
        }
    }
}

static void one_model(totals *all, const char *dir, const char *name) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    ctx.log = keep_message;
    ctx.log_user = all;
    all->missing[0] = '\0';
    po_arena *arena = po_arena_create(&ctx);
    po_model *model = test_model_load(&ctx, po_arena_printf(arena, "%s/model.onnx", dir));
    sample s = {0};
    if (!model || !load_sample(&ctx, arena, dir, model->graph, &s)) {
        tally_of(all, "(not loaded)")->unsupported++;
    } else {
        po_graph *g = model->graph;
        tally *t = tally_of(all, g->n_live == 1 ? g->nodes[0].op_type : "(graph)");
        po_array *out[MAX_IO] = {0};
        po_status status = po_ref_graph(&ctx, arena, g, s.in, out, true);
        const char *wrong = NULL;
        if (status == PO_UNSUPPORTED) {
            t->unsupported++;
            printf("unsupported %s: %s\n", name, all->missing);
        } else if (status != PO_OK) {
            wrong = ctx.error.message;
        }
        for (uint32_t k = 0; status == PO_OK && k < g->n_outputs && !wrong; k++)
            wrong = difference(arena, out[k], s.out[k]);
        if (wrong)
            printf("FAILED %s: %s\n", name, wrong);
        t->failed += wrong != NULL;
        t->passed += status == PO_OK && !wrong;
        for (int known = 0; known < 2; known++) {
            bool open;
            if (known)
                fix_integers(g, &s);
            po_ctx_clear(&ctx);
            wrong = check_shapes(&ctx, arena, g, &s, &open);
            if (wrong)
                printf("WRONG SHAPE %s: %s\n", name, wrong);
            t->wrong += wrong != NULL;
            if (known && !wrong && open)
                printf("open shape %s\n", name);
            if (known) {
                t->exact += !wrong && !open;
                t->open += !wrong && open;
            }
        }
    }
    test_model_free(model);
    po_arena_free(arena);
}

static void folder(totals *all, const char *rel) {
    char path[512], dir[1024];
    struct dirent **names;
    int n = scandir(test_deps_path(path, sizeof path, rel), &names, NULL, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        snprintf(dir, sizeof dir, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            one_model(all, dir, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const tally *)a)->name, ((const tally *)b)->name);
}

static void test_backend_models(void **state) {
    static totals all;
    tally sum = {0};
    (void)state;
    folder(&all, "onnx/test-data/node");
    folder(&all, "onnx/test-data/simple");
    folder(&all, "onnx/test-data/pytorch-operator");
    folder(&all, "onnx/test-data/pytorch-converted");
    qsort(all.rows, all.n, sizeof all.rows[0], by_name);
    printf("%-28s %6s %6s %6s   shapes: %6s %6s %6s\n", "operator", "passed", "unsup.", "failed",
           "exact", "open", "wrong");
    for (size_t i = 0; i < all.n; i++) {
        const tally *t = &all.rows[i];
        printf("%-28s %6d %6d %6d           %6d %6d %6d\n", t->name, t->passed, t->unsupported,
               t->failed, t->exact, t->open, t->wrong);
        sum.passed += t->passed;
        sum.unsupported += t->unsupported;
        sum.failed += t->failed;
        sum.exact += t->exact;
        sum.open += t->open;
        sum.wrong += t->wrong;
    }
    printf("%-28s %6d %6d %6d           %6d %6d %6d\n", "in all", sum.passed, sum.unsupported,
           sum.failed, sum.exact, sum.open, sum.wrong);
    assert_int_equal(sum.failed, 0);
    assert_int_equal(sum.wrong, 0);
    assert_true(sum.passed >= LEAST_PASSED);
    assert_true(sum.exact >= LEAST_SHAPES);
}

/* A wrong element, dtype or dim must be seen. */
static void test_sabotage(void **state) {
    po_ctx ctx;
    (void)state;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_array *a, *b;
    assert_int_equal(po_array_create(&ctx, arena, PO_F32, 1, (int64_t[]){3}, &a), PO_OK);
    assert_int_equal(po_array_create(&ctx, arena, PO_F32, 1, (int64_t[]){3}, &b), PO_OK);
    assert_null(difference(arena, a, b));
    a->f[2] = 0.01;
    assert_non_null(difference(arena, a, b));
    a->f[2] = NAN;
    assert_non_null(difference(arena, a, b));
    a->f[2] = 0;
    a->dtype = PO_F64;
    assert_non_null(difference(arena, a, b));
    po_type t = po_type_tensor_i64(arena, PO_F32, 1, (int64_t[]){2});
    po_value v = {.name = "v", .type = t};
    bool open;
    assert_non_null(check_type(arena, &v, b, &open));
    v.type = po_type_tensor_i64(arena, PO_F32, 1, (int64_t[]){3});
    assert_null(check_type(arena, &v, b, &open));
    assert_false(open);
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sabotage),
        cmocka_unit_test(test_backend_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
