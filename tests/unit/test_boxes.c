/* Boxes against brute force: within a box every position must sum the same number of iterations,
 * and from one position to the next every index that they read moves by the same amount and stays
 * in one box of its tensor. */
#include "boxes/boxes.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_CONTRIBUTIONS = 4096, MOST_NUMBERS = 12 };

/* One iteration that reaches a position: its term, then every index that its factors read. */
typedef struct contribution {
    int64_t n, number[MOST_NUMBERS];
} contribution;

typedef struct position {
    uint32_t n;
    contribution *item;
} position;

typedef struct probe {
    po_arena *arena;
    const po_sum *sum;
    const po_cuts *const *input; /* cuts of the operands' tensors; may be NULL */
    position *positions;         /* by output element */
    bool good;
    int64_t boxes, steps;
} probe;

static int compare(const void *a, const void *b) {
    const contribution *x = a, *y = b;
    for (int i = 0; i < MOST_NUMBERS; i++)
        if (x->number[i] != y->number[i])
            return x->number[i] < y->number[i] ? -1 : 1;
    return 0;
}

static int64_t index_at(const po_term *t, const po_index *index, uint32_t x, const int64_t *at) {
    int64_t i = index->base[x];
    for (uint32_t v = 0; v < t->n_vars; v++)
        i += po_index_coef(t, index, x, v) * at[v];
    return i;
}

static void collect(probe *p, uint32_t term, uint32_t level, int64_t *at) {
    const po_term *t = &p->sum->terms[term];
    if (level < t->n_vars) {
        for (at[level] = 0; at[level] < t->extent[level]; at[level]++)
            collect(p, term, level + 1, at);
        return;
    }
    int64_t to = 0;
    for (uint32_t x = 0; x < p->sum->rank; x++) {
        int64_t i = index_at(t, &t->out, x, at);
        if (i < 0 || i >= p->sum->dims[x])
            return;
        to = to * p->sum->dims[x] + i;
    }
    contribution c = {.number = {term}};
    c.n = 1;
    for (uint32_t k = 0; k < t->n_factors; k++) {
        const po_operand *op = &p->sum->operands[t->factor[k].operand];
        for (uint32_t y = 0; y < op->rank; y++) {
            int64_t i = index_at(t, &t->factor[k].at, y, at);
            if (i < 0 || i >= op->dims[y])
                return;
            assert_true(c.n < MOST_NUMBERS);
            c.number[c.n++] = i;
        }
    }
    position *q = &p->positions[to];
    assert_true(q->n < MOST_CONTRIBUTIONS);
    if ((q->n & (q->n - 1)) == 0) {
        contribution *grown = PO_NEW_N(p->arena, contribution, q->n ? 2 * (size_t)q->n : 1);
        if (q->n)
            memcpy(grown, q->item, q->n * sizeof *grown);
        q->item = grown;
    }
    q->item[q->n++] = c;
}

static bool same_box(const po_axis_cuts *a, int64_t i, int64_t k) {
    if ((i - k) % a->step)
        return false;
    for (uint32_t c = 0; c < a->n; c++)
        if ((i < a->at[c]) != (k < a->at[c]))
            return false;
    return true;
}

/* Whether the contributions of `b` are those of `a`, each moved as all of its term are; the moves
 * must be `move` where that is set, and are stored there. Tables must not move at all. */
static bool shifted(const probe *p, const position *a, const position *b,
                    int64_t (*move)[MOST_NUMBERS], bool set) {
    bool seen[8] = {false};
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        int64_t term = a->item[i].number[0];
        const po_term *t = &p->sum->terms[term];
        if (b->item[i].number[0] != term)
            return false;
        for (int64_t k = 1, f = 0, y = 0; k < a->item[i].n; k++, y++) {
            while (y == p->sum->operands[t->factor[f].operand].rank) {
                f++;
                y = 0;
            }
            const po_operand *op = &p->sum->operands[t->factor[f].operand];
            int64_t x = a->item[i].number[k], z = b->item[i].number[k];
            if ((set || seen[term]) && z - x != move[term][k])
                return false;
            move[term][k] = z - x;
            if (op->kind == PO_OPERAND_TABLE && x != z)
                return false;
            const po_cuts *cuts =
                op->kind == PO_OPERAND_TABLE || !p->input ? NULL : p->input[op->input];
            if (cuts && !same_box(&cuts->axis[y], x, z))
                return false;
        }
        seen[term] = true;
    }
    return true;
}

static bool check_box(void *user, const po_box *box) {
    probe *p = user;
    p->boxes++;
    int64_t at[4] = {0}, count = 1;
    for (uint32_t x = 0; x < box->rank; x++)
        count *= box->count[x];
    /* Each position against its neighbour along each axis. */
    for (uint32_t x = 0; x < box->rank && p->good; x++) {
        int64_t move[8][MOST_NUMBERS];
        bool set = false;
        for (int64_t i = 0; i < count && p->good; i++) {
            int64_t rest = i, from = 0, to = 0;
            for (uint32_t y = box->rank; y-- > 0; rest /= box->count[y])
                at[y] = rest % box->count[y];
            if (at[x] + 1 == box->count[x])
                continue;
            for (uint32_t y = 0; y < box->rank; y++) {
                from = from * p->sum->dims[y] + box->first[y] + at[y] * box->step[y];
                to = to * p->sum->dims[y] + box->first[y] + (at[y] + (y == x)) * box->step[y];
            }
            p->good = shifted(p, &p->positions[from], &p->positions[to], move, set);
            set = true;
            p->steps++;
        }
    }
    return p->good;
}

static probe run_probe(po_arena *arena, const po_sum *sum, const po_cuts *cuts,
                       const po_cuts *const *input) {
    probe p = {.arena = arena, .sum = sum, .input = input, .good = true};
    int64_t at[16];
    p.positions = PO_NEW_N(arena, position, sum->count);
    for (uint32_t i = 0; i < sum->n_terms; i++)
        collect(&p, i, 0, at);
    for (int64_t i = 0; i < sum->count; i++)
        if (p.positions[i].n)
            qsort(p.positions[i].item, p.positions[i].n, sizeof(contribution), compare);
    po_boxes_each(arena, cuts, check_box, &p);
    return p;
}

static po_sum *parse(po_ctx *ctx, po_arena *arena, const char *text) {
    po_scan scan;
    po_sum *s;
    po_scan_init(&scan, ctx, arena, text);
    if (po_sum_parse(&scan, &s) != PO_OK)
        fail_msg("%s\n%s", ctx->error.message, text);
    assert_int_equal(po_sum_normalize(s), PO_OK);
    return s;
}

/* --- by hand --- */

static const struct {
    const char *text;
    double boxes;
} known[] = {
    /* 3x3, zero padding: the nine boxes of the paper's figure 4 */
    {"sum (in0: [1,2,8,8], in1: [3,2,3,3]) -> [1,3,8,8] { out[0, k, y, x] += "
     "in0[0, c, y+r-1, x+s-1] * in1[k, c, r, s] k<3 y<8 x<8 c<2 r<3 s<3 }",
     9},
    {"sum (in0: [1,2,8,8], in1: [3,2,3,3]) -> [1,3,6,6] { out[0, k, y, x] += "
     "in0[0, c, y+r, x+s] * in1[k, c, r, s] k<3 y<6 x<6 c<2 r<3 s<3 }",
     1},
    /* groups: a seam between them */
    {"sum (in0: [1,4,4], in1: [4,2,1]) -> [1,4,4] { out[0, 2*g+k, x] += in0[0, 2*g+c, x] * "
     "in1[2*g+k, c, 0] g<2 k<2 x<4 c<2 }",
     2},
    /* a transposed convolution of stride 2: residue classes, and both ends */
    {"sum (in0: [1,6], in1: [1,3]) -> [1,11] { out[0, 2*x+s-1] += in0[0, x] * in1[0, s] x<6 s<3 }",
     2},
    {"sum (in0: [2,6]) -> [12] { out[6*a+b] += in0[a, b] a<2 b<6 }", 2},
    {"sum (in0: [12]) -> [12] { out[6*a+b] += in0[6*a+b] a<2 b<6 }", 1},
    {"sum (in0: [4], tab1: [4] {1, 2, 3, 4}) -> [4] { out[x] += in0[x] * tab1[x] x<4 }", 4},
    {"sum (in0: [9]) -> [4] { out[x] += in0[8-2*x] x<4 }", 1},
};

static void test_known_boxes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_sum *s = parse(&ctx, arena, known[i].text);
        const po_cuts *cuts = po_cuts_of(arena, s, NULL);
        probe p = run_probe(arena, s, cuts, NULL);
        if (!p.good || po_boxes_count(cuts) != known[i].boxes || (double)p.boxes != known[i].boxes)
            fail_msg("%s\n%g boxes, %s", known[i].text, po_boxes_count(cuts),
                     p.good ? "right" : "wrong");
        po_arena_free(arena);
    }
}

/* --- random --- */

typedef struct maker {
    uint64_t seed, next;
} maker;

static int64_t draw(maker *m, int64_t from, int64_t to) {
    return from + (int64_t)(po_random_u64(m->seed, 2, m->next++) % (uint64_t)(to - from + 1));
}

/* Axes as operators have them: strides, digits, scatters, borders, reversed and shared variables.
 */
static po_sum *random_sum(maker *m, po_arena *arena) {
    int64_t dims[2], in_dims[2];
    uint32_t rank = (uint32_t)draw(m, 1, 2);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw(m, 1, 14);
    po_sum *s = po_sum_create(arena, rank, dims);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < 2; i++)
            in_dims[i] = draw(m, 1, 12);
        if (k == 1 && draw(m, 0, 5) == 0) {
            po_rational *table = PO_NEW_N(arena, po_rational, 144);
            for (int i = 0; i < 144; i++)
                table[i] = PO_RATIONAL(i);
            po_sum_table(s, 2, in_dims, table);
        } else {
            po_sum_input(s, k, 2, in_dims);
        }
    }
    for (int64_t i = draw(m, 1, 2); i > 0; i--) {
        po_term *t = po_sum_term(s, 8);
        uint32_t var[2][2];
        for (uint32_t x = 0; x < rank; x++) {
            t->out.base[x] = draw(m, 0, 2) ? 0 : draw(m, -2, 3);
            int64_t low = draw(m, 1, 5);
            var[x][1] = po_term_var(t, NULL, low);
            var[x][0] = po_term_var(t, NULL, draw(m, 1, 6));
            int64_t sign = draw(m, 0, 7) ? 1 : -1;
            po_index_add(t, &t->out, x, sign * draw(m, 1, 2), var[x][1]);
            po_index_add(t, &t->out, x, draw(m, 0, 1) ? low : draw(m, 0, 3), var[x][0]);
        }
        if (draw(m, 0, 9) == 0)
            po_index_add(t, &t->out, 0, 1, var[rank - 1][0]);
        uint32_t r = po_term_var(t, NULL, draw(m, 1, 3));
        for (uint32_t k = 0; k < 2; k++) {
            po_index *at = po_term_factor(s, t, k);
            for (uint32_t y = 0; y < 2; y++) {
                uint32_t x = (uint32_t)draw(m, 0, rank - 1);
                at->base[y] = draw(m, -2, 2);
                if (draw(m, 0, 3))
                    po_index_add(t, at, y, draw(m, -1, 2), var[x][0]);
                if (draw(m, 0, 2))
                    po_index_add(t, at, y, draw(m, 0, 2), var[x][1]);
                if (draw(m, 0, 1))
                    po_index_add(t, at, y, draw(m, 1, 2), r);
            }
        }
    }
    return s;
}

static const po_cuts *random_cuts(maker *m, po_arena *arena, const po_operand *op) {
    po_cuts *cuts = PO_NEW(arena, po_cuts);
    po_axis_cuts *axes = PO_NEW_N(arena, po_axis_cuts, op->rank);
    for (uint32_t y = 0; y < op->rank; y++) {
        int64_t *at = PO_NEW_N(arena, int64_t, 3);
        bool cut = op->dims[y] > 1 && draw(m, 0, 1);
        at[1] = cut ? draw(m, 1, op->dims[y] - 1) : op->dims[y];
        at[2] = op->dims[y];
        axes[y] = (po_axis_cuts){op->dims[y], draw(m, 1, 3), cut ? 2 : 1, at};
    }
    *cuts = (po_cuts){op->rank, axes};
    return cuts;
}

static void test_random_sums(void **state) {
    (void)state;
    int64_t boxes = 0, steps = 0, elements = 0;
    for (uint64_t seed = 0; seed < 6000; seed++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        maker m = {.seed = seed};
        po_sum *s = random_sum(&m, arena);
        assert_true(po_sum_check(s));
        if (draw(&m, 0, 1))
            assert_int_equal(po_sum_normalize(s), PO_OK);
        const po_cuts *input[2] = {NULL, NULL}, *const *cuts_of = draw(&m, 0, 1) ? input : NULL;
        for (uint32_t k = 0; k < 2; k++)
            if (draw(&m, 0, 1))
                input[k] = random_cuts(&m, arena, &s->operands[k]);
        const po_cuts *cuts = po_cuts_of(arena, s, cuts_of);
        probe p = run_probe(arena, s, cuts, cuts_of);
        if (!p.good || (double)p.boxes != po_boxes_count(cuts)) {
            po_text text;
            po_text_init(&text, arena);
            po_sum_print(&text, s);
            fail_msg("seed %d: a box does different things\n%s", (int)seed, text.data);
        }
        /* What both respect is respected by what they have in common. */
        const po_cuts *other =
            random_cuts(&m, arena, &(po_operand){.rank = s->rank, .dims = s->dims});
        assert_true(run_probe(arena, s, po_cuts_meet(arena, cuts, other), cuts_of).good);
        boxes += p.boxes;
        steps += p.steps;
        elements += s->count;
        po_arena_free(arena);
    }
    printf("%d boxes of %d elements, %d neighbours compared\n", (int)boxes, (int)elements,
           (int)steps);
    assert_true(steps > 20000);
}

/* A cut that is left out must be found out, in nearly all cases: some cuts are finer than needed.
 */
static void test_missing_cut_is_noticed(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (size_t i = 0; i < 5; i++) {
        po_sum *s = parse(&ctx, arena, known[i].text);
        const po_cuts *cuts = po_cuts_of(arena, s, NULL);
        for (uint32_t x = 0; x < s->rank; x++) {
            po_axis_cuts *axes = po_arena_memdup(arena, cuts->axis, s->rank * sizeof *axes);
            const po_cuts less = {s->rank, axes};
            if (cuts->axis[x].step > 1) {
                axes[x].step = 1;
                assert_false(run_probe(arena, s, &less, NULL).good);
                axes[x].step = cuts->axis[x].step;
            }
            for (uint32_t k = 1; k < cuts->axis[x].n; k++) {
                int64_t *at =
                    po_arena_memdup(arena, cuts->axis[x].at, (cuts->axis[x].n + 1) * sizeof *at);
                memmove(&at[k], &at[k + 1], (cuts->axis[x].n - k) * sizeof *at);
                axes[x].at = at;
                axes[x].n = cuts->axis[x].n - 1;
                assert_false(run_probe(arena, s, &less, NULL).good);
            }
        }
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_boxes),
        cmocka_unit_test(test_random_sums),
        cmocka_unit_test(test_missing_cut_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
