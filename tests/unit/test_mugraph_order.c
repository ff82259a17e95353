/* What po_mu_check takes gives the same in any order of parallel chunks: the cases, bent at random,
 * once as they are and once with plain loops for grids and lanes. */
#include "mu_cases.h"
#include "mugraph/eval.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

typedef struct maker {
    uint64_t seed, next;
} maker;

static uint32_t draw(maker *m, uint32_t n) {
    return (uint32_t)(po_random_u64(m->seed, 3, m->next++) % n);
}

/* The n-th node of a kind, counted round; PO_NONE where there is none. */
static uint32_t any_node(maker *m, const po_mu *mu, po_mu_kind kind) {
    uint32_t count = 0, found = PO_NONE;
    for (uint32_t i = 0; i < mu->n_nodes; i++)
        if (mu->nodes[i].kind == kind && draw(m, ++count) == 0)
            found = i;
    return found;
}

static void bend_access(maker *m, po_mu *mu, po_mu_access *access) {
    uint32_t rank = mu->tensors[access->tensor].rank;
    if (!rank)
        return;
    uint32_t axis = draw(m, rank), label = draw(m, mu->n_labels);
    const po_mu_index *index = &access->axes[axis];
    int64_t coef = (int64_t)draw(m, 3) - 1;
    switch (draw(m, 4)) {
    case 0: /* moved */
        po_mu_at(mu, access, axis, coef, PO_NONE);
        break;
    case 1: /* a label more, or less */
        po_mu_at(mu, access, axis, coef ? coef : 2, label);
        break;
    case 2: /* another label in its place */
        if (index->n) {
            po_mu_term t = index->terms[draw(m, index->n)];
            po_mu_at(mu, access, axis, -t.coef, t.label);
            po_mu_at(mu, access, axis, t.coef, label);
        }
        break;
    default: /* another pace */
        if (index->n)
            po_mu_at(mu, access, axis, 1, index->terms[draw(m, index->n)].label);
    }
}

static void bend(maker *m, po_mu *mu) {
    uint32_t loop = any_node(m, mu, PO_MU_LOOP), at = any_node(m, mu, PO_MU_STATEMENT);
    po_mu_statement *s = &mu->nodes[at].statement;
    switch (draw(m, 5)) {
    case 0:
        if (loop != PO_NONE) {
            mu->nodes[loop].loop = (po_mu_loop_kind)draw(m, 3);
            mu->nodes[loop].chunk =
                mu->nodes[loop].loop == PO_MU_LANES ? 0 : (int64_t)draw(m, 4) + 1;
        }
        break;
    case 1:
        if (loop != PO_NONE)
            mu->nodes[loop].label = draw(m, mu->n_labels);
        break;
    case 2:
        s->fresh = s->combine != PO_MU_SET && !s->fresh;
        break;
    default:
        bend_access(m, mu, draw(m, 2) || !s->n_in ? &s->out : &s->in[draw(m, s->n_in)]);
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        po_mu_layout(mu, i, 1, 0);
}

/* Plain loops in place of grids and lanes; false where a start hangs on what kind a loop is. */
static bool make_plain(po_mu *mu) {
    bool changed = false;
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        po_mu_node *n = &mu->nodes[i];
        for (uint32_t at = n->parent; n->kind == PO_MU_STATEMENT && at != PO_NONE;
             at = mu->nodes[at].parent) {
            const po_mu_node *loop = &mu->nodes[at];
            bool kept = false;
            for (uint32_t x = 0; x < mu->tensors[n->statement.out.tensor].rank; x++)
                kept |= po_mu_coef(&n->statement.out.axes[x], loop->label) != 0;
            if (loop->kind == PO_MU_LOOP && loop->loop != PO_MU_FOR && !kept && n->statement.fresh)
                return false;
        }
    }
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        po_mu_node *n = &mu->nodes[i];
        if (n->kind != PO_MU_LOOP || n->loop == PO_MU_FOR)
            continue;
        n->chunk = n->loop == PO_MU_LANES ? 1 : n->chunk;
        n->loop = PO_MU_FOR;
        changed = true;
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        po_mu_layout(mu, i, 1, 0);
    return changed;
}

static po_status outputs_of(po_ctx *ctx, po_arena *arena, const po_mu *mu, double **out) {
    *out = PO_NEW_N(arena, double, test_mu_count(mu, PO_MU_OUTPUT, 0));
    return po_mu_eval(ctx, mu, test_mu_values(mu, arena, PO_MU_INPUT, 1, 1),
                      test_mu_values(mu, arena, PO_MU_WEIGHT, 1, 1), out, NULL);
}

static void any_order(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    uint32_t taken = 0, ran = 0;
    for (uint64_t seed = 0; seed < 12000; seed++) {
        po_arena *arena = po_arena_create(&ctx);
        const test_mu_case *c = &test_mu_cases[seed % n_test_mu_cases];
        maker m = {.seed = seed};
        po_mu *mu;
        assert_int_equal(po_mu_parse(&ctx, arena, c->text, &mu), PO_OK);
        for (uint32_t k = 0; k <= seed % 3; k++)
            bend(&m, mu);
        if (po_mu_check(&ctx, mu, 1 << 20) == PO_OK) {
            double *a, *b;
            po_text text;
            po_text_init(&text, arena);
            po_mu_print(&text, mu);
            po_status first = outputs_of(&ctx, arena, mu, &a);
            taken++;
            po_ctx_clear(&ctx);
            if (make_plain(mu)) {
                po_status second = outputs_of(&ctx, arena, mu, &b);
                ran += first == PO_OK;
                if (first != second)
                    fail_msg("seed %d: one order fails: %s\n%s", (int)seed, ctx.error.message,
                             text.data);
                for (int64_t i = 0; i < test_mu_count(mu, PO_MU_OUTPUT, 0) && first == PO_OK; i++)
                    if (!(fabs(a[i] - b[i]) <= 1e-9 * (1 + fabs(b[i]))) && a[i] == a[i] &&
                        isfinite(b[i]))
                        fail_msg("seed %d, element %d: %.17g and %.17g\n%s", (int)seed, (int)i,
                                 a[i], b[i], text.data);
            }
        }
        po_ctx_clear(&ctx);
        po_arena_free(arena);
    }
    print_message("%u taken, %u ran\n", taken, ran);
    assert_true(ran > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
