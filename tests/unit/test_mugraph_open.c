/* muGraphs for all sizes: which numbers are lengths, what is refused, and rings. */
#include "unit.h"

#include <stdio.h>

#include "mugraph/eval.h"
#include "mugraph/open.h"

#include <math.h>

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_mu *mu;
    const po_mu_open *open;
} fixture;

static po_status begin_by(fixture *f, const char *text, const po_mu_naming *naming) {
    memset(f, 0, sizeof *f);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
    assert_int_equal(po_mu_parse(&f->ctx, f->arena, text, &f->mu), PO_OK);
    assert_int_equal(po_mu_check(&f->ctx, f->mu, 1 << 20), PO_OK);
    /* These stay with what was opened. */
    po_mu_naming own = *naming;
    own.lengths =
        po_arena_memdup(f->arena, naming->lengths, naming->n_names * sizeof *naming->lengths);
    own.known = po_arena_memdup(f->arena, naming->known, naming->n_known * sizeof *naming->known);
    return po_mu_open_by(&f->ctx, f->arena, f->mu, &own, &f->open);
}

static const char *const names[] = {"p0"};

/* Opens the number as p0. */
static po_status begin(fixture *f, const char *text, int64_t number) {
    const po_mu_number known[] = {{number, {-1, "p0"}},
                                  {(number - 1) / 2 + 1, {-1, "(floor((p0 + 1)/2))"}},
                                  {number + 14, {-1, "(p0 + 14)"}}}; /* what 36 tiles are at 22 */
    return begin_by(f, text, &(po_mu_naming){1, names, &number, known, 3});
}

static const char *length(const fixture *f, po_dim d) {
    return d.symbol ? d.symbol : po_arena_printf(f->arena, "%lld", (long long)d.value);
}

static uint32_t tensor(const fixture *f, const char *name) {
    for (uint32_t i = 0; i < f->mu->n_tensors; i++)
        if (strcmp(f->mu->tensors[i].name, name) == 0)
            return i;
    fail_msg("no tensor '%s'", name);
    return 0;
}

static const char window[] =
    "mugraph m {\n"
    "  label y 22 label x 11 label r 3 label k 24 label c 16\n"
    "  tensor X input 0 [22, 16]\n"
    "  tensor W weight 0 [3, 16, 24]\n"
    "  tensor A device [22, 16] before [1, 0]\n"
    "  tensor Y output 0 [11, 24]\n"
    "  step \"in\" { grid y by 4 { A[y, c] = X[y, c] } }\n"
    "  step \"conv\" { grid x by 1 {\n"
    "    Y[x, k] += A[2*x+r-1, c] * W[r, c, k] fresh tile k*1 order x r c\n"
    "  } }\n}\n";

/* 22 rows are a length, 24 outputs are not; at an odd length one row more is read. */
static void lengths(void **state) {
    (void)state;
    fixture f;
    assert_int_equal(begin(&f, window, 22), PO_OK);
    assert_string_equal(length(&f, f.open->dim[tensor(&f, "X")][0]), "p0");
    assert_string_equal(length(&f, f.open->dim[tensor(&f, "Y")][0]), "(floor((p0 + 1)/2))");
    assert_string_equal(length(&f, f.open->dim[tensor(&f, "Y")][1]), "24");
    assert_int_equal(f.mu->tensors[tensor(&f, "A")].after[0], 1);
    for (int64_t n = 1; n < 40; n++) {
        po_mu *at = po_mu_open_at(f.arena, f.open, &n);
        assert_non_null(at);
        assert_int_equal(po_mu_check(&f.ctx, at, 1 << 20), PO_OK);
        assert_int_equal(at->tensors[tensor(&f, "Y")].dims[0], (n + 1) / 2);
        /* every window adds up 16 ones for each row that there is */
        double *x = PO_NEW_N(f.arena, double, 16 * n), *w = PO_NEW_N(f.arena, double, 3 * 16 * 24);
        double *y = PO_NEW_N(f.arena, double, (n + 1) / 2 * 24);
        for (int64_t i = 0; i < 16 * n; i++)
            x[i] = 1;
        for (int64_t i = 0; i < 3 * 16 * 24; i++)
            w[i] = 1;
        const double *in[] = {x}, *weight[] = {w};
        assert_int_equal(po_mu_eval(&f.ctx, at, in, weight, &y, NULL), PO_OK);
        for (int64_t i = 0; i < (n + 1) / 2; i++) {
            const int64_t rows = 3 - (i == 0) - (2 * i + 1 >= n);
            assert_true(y[i * 24] == (double)(16 * rows));
        }
    }
    po_arena_free(f.arena);
}

/* 64 places as 4 blocks of 16 are 5 blocks of 16 for 65; a sum of 4 blocks is no program for 65. */
static void cuts(void **state) {
    (void)state;
    static const char *const copy = "mugraph m {\n"
                                    "  label b 4 label k 16\n"
                                    "  tensor X input 0 [64]\n  tensor Y output 0 [64]\n"
                                    "  step \"s\" { grid b by 1 { Y[16*b+k] = X[16*b+k] } }\n}\n";
    static const char *const sum = "mugraph m {\n"
                                   "  label b 4 label k 16\n"
                                   "  tensor X input 0 [64]\n  tensor Y output 0 [16]\n"
                                   "  step \"s\" { Y[k] += X[16*b+k] fresh }\n}\n";
    fixture f;
    assert_int_equal(begin(&f, copy, 64), PO_OK);
    assert_string_equal(length(&f, f.open->extent[0]), "(floor((p0 + 15)/16))");
    po_arena_free(f.arena);
    assert_int_equal(begin(&f, sum, 64), PO_UNSUPPORTED);
    assert_non_null(strstr(f.ctx.error.message, "worked in parts"));
    po_arena_free(f.arena);
}

/* Halves that are as long as a length: their base is that length, too. A step between parts that
 * is no part's length has no form. */
static void halves(void **state) {
    (void)state;
    static const char *const text = "mugraph m {\n"
                                    "  label h 2 label i 32\n"
                                    "  tensor X input 0 [%d, 2]\n  tensor Y output 0 [63]\n"
                                    "  tensor D table [2, 2] {1, -2, 0, 1}\n  label u 2\n"
                                    "  step \"s\" { Y[32*h+i] += D[h, u] * X[%d*h+i, u] fresh }\n"
                                    "}\n";
    char program[500];
    fixture f;
    snprintf(program, sizeof program, text, 63, 32);
    assert_int_equal(begin(&f, program, 63), PO_OK);
    for (int64_t n = 1; n < 70; n++) {
        po_mu *at = po_mu_open_at(f.arena, f.open, &n);
        assert_non_null(at);
        assert_int_equal(po_mu_check(&f.ctx, at, 1 << 20), PO_OK);
        double *x = PO_NEW_N(f.arena, double, 2 * n), *y = PO_NEW_N(f.arena, double, n);
        for (int64_t i = 0; i < 2 * n; i++)
            x[i] = (double)(i + 1);
        const double *in[] = {x};
        assert_int_equal(po_mu_eval(&f.ctx, at, in, NULL, &y, NULL), PO_OK);
        for (int64_t i = 0; i < n; i++)
            assert_true(y[i] == (i < (n + 1) / 2 ? x[2 * i] - 2 * x[2 * i + 1] : x[2 * i + 1]));
    }
    po_arena_free(f.arena);
    snprintf(program, sizeof program, text, 65, 33);
    assert_int_equal(begin(&f, program, 63), PO_UNSUPPORTED);
    assert_non_null(strstr(f.ctx.error.message, "parts of parts"));
    po_arena_free(f.arena);
}

static const char tiles[] =
    "mugraph m {\n"
    "  label ty 6 label tx 6 label i 4 label j 4 label t 36\n"
    "  tensor X input 0 [22, 22]\n  tensor Y output 0 [22, 22]\n"
    "  tensor V device [36, 4, 4]\n  tensor U device [36, 4, 4]\n"
    "  tensor D table [4] {1, 1, 1, 1}\n"
    "  step \"in\" { grid ty by 1 { V[6*ty+tx, i, j] += X[4*ty+i, 4*tx+j] fresh } }\n"
    "  step \"all\" { U[t, i, j] = V[t, i, j] * 2 }\n"
    "  step \"out\" { grid ty by 1 { Y[4*ty+i, 4*tx+j] = U[6*ty+tx, i, j] * D[i] * D[j] } "
    "}\n}\n";

/* A map's tiles one behind the other: how many, the base of their rows, and all of them follow. */
static void digits(void **state) {
    (void)state;
    fixture f;
    assert_int_equal(begin(&f, tiles, 22), PO_OK);
    const po_mu_index *index =
        &f.mu->nodes[po_mu_next(f.mu, po_mu_next(f.mu, f.mu->first))].statement.out.axes[0];
    assert_int_equal(index->n, 2);
    assert_string_equal(length(&f, po_mu_open_coef(f.open, index, 0)), "(floor((p0 + 3)/4))");
    assert_string_equal(length(&f, po_mu_open_coef(f.open, index, 1)), "1");
    assert_string_equal(length(&f, f.open->dim[tensor(&f, "V")][0]),
                        "(floor((p0 + 3)/4)*floor((p0 + 3)/4))");
    for (int64_t n = 1; n < 40; n++) {
        po_mu *at = po_mu_open_at(f.arena, f.open, &n);
        assert_non_null(at);
        assert_int_equal(po_mu_check(&f.ctx, at, 1 << 20), PO_OK);
        double *x = PO_NEW_N(f.arena, double, n *n), *y = PO_NEW_N(f.arena, double, n *n);
        for (int64_t i = 0; i < n * n; i++)
            x[i] = (double)i;
        const double *in[] = {x};
        assert_int_equal(po_mu_eval(&f.ctx, at, in, NULL, &y, NULL), PO_OK);
        for (int64_t i = 0; i < n * n; i++)
            assert_true(y[i] == 2.0 * (double)i);
    }
    po_arena_free(f.arena);
}

/* A number of parts that is another length's number as well is what covers the axis. */
static void two_lengths(void **state) {
    (void)state;
    fixture f;
    static const char *const text = "mugraph m {\n"
                                    "  label b 3 label k 2\n"
                                    "  tensor X input 0 [5]\n  tensor Y output 0 [5]\n"
                                    "  step \"s\" { grid b by 1 { Y[2*b+k] = X[2*b+k] } }\n}\n";
    /* At 5 the parts are 3, as (p0 - 1) / 2 + 1 is: the same length. */
    assert_int_equal(begin(&f, text, 5), PO_OK);
    po_arena_free(f.arena);
    static const char *const other = "mugraph m {\n"
                                     "  label b 4 label k 2\n"
                                     "  tensor X input 0 [7]\n  tensor Y output 0 [7]\n"
                                     "  step \"s\" { grid b by 1 { Y[2*b+k] = X[2*b+k] } }\n}\n";
    const int64_t here = 7;
    const po_mu_number known[] = {{7, {-1, "p0"}}, {4, {-1, "(floor((p0 + 2)/2))"}}};
    const po_mu_naming naming = {1, names, &here, known, 2};
    assert_int_equal(begin_by(&f, other, &naming), PO_OK);
    assert_string_equal(length(&f, f.open->extent[0]), "(floor((p0 + 1)/2))");
    po_arena_free(f.arena);
}

/* A mean over what is open divides by what there is; by nothing it is 0. */
static void parts(void **state) {
    (void)state;
    static const char *const text = "mugraph m {\n"
                                    "  label i 20 label c 8\n"
                                    "  tensor X input 0 [20, 8]\n  tensor Y output 0 [8]\n"
                                    "  step \"s\" { Y[c] += X[i, c] * 0.05 fresh }\n}\n";
    fixture f;
    assert_int_equal(begin(&f, text, 20), PO_OK);
    const int64_t sizes[] = {20, 7, 1};
    for (uint32_t k = 0; k < 3; k++) {
        po_mu *at = po_mu_open_at(f.arena, f.open, &sizes[k]);
        double x[160], y[8], *out = y;
        const double *in[] = {x};
        for (uint32_t i = 0; i < 160; i++)
            x[i] = 3;
        assert_int_equal(po_mu_eval(&f.ctx, at, in, NULL, &out, NULL), PO_OK);
        assert_true(fabs(y[0] - 3) < 1e-12);
    }
    po_arena_free(f.arena);
}

/* Closed, everything is the number that it is, and the same questions have the same answers. */
static void closed(void **state) {
    (void)state;
    fixture f;
    memset(&f, 0, sizeof f);
    po_ctx_init(&f.ctx);
    f.arena = po_arena_create(&f.ctx);
    assert_int_equal(po_mu_parse(&f.ctx, f.arena, window, &f.mu), PO_OK);
    const po_mu_open *open = po_mu_closed(f.arena, f.mu);
    for (uint32_t n = f.mu->first; n != PO_NONE; n = po_mu_next(f.mu, n)) {
        const po_mu_statement *s = &f.mu->nodes[n].statement;
        if (f.mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k < s->n_in; k++)
            assert_int_equal(po_mu_open_edge(open, n, k), po_mu_edge_of(f.mu, n, k));
    }
    for (uint32_t i = 0; i < f.mu->n_tensors; i++)
        assert_int_equal(open->floats[i].value, f.mu->tensors[i].floats);
    po_arena_free(f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lengths),     cmocka_unit_test(cuts),
                                       cmocka_unit_test(halves),      cmocka_unit_test(digits),
                                       cmocka_unit_test(two_lengths), cmocka_unit_test(parts),
                                       cmocka_unit_test(closed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
