/* Loops that several blocks share, written by hand-made plans; and errors planted in them: none may
 * pass for the same program. */
#include "superopt/gpu/internal.h"

#include "search_blocks.h"
#include "unit.h"

typedef struct planted {
    po_ctx ctx;
    po_arena *arena;
    po_mu *naive;
    const char *text; /* of the plan */
} planted;

/* The first program of a block whose layout has a loop over `loop`, in parts, as text. */
static void plan_of(planted *p, const char *block, uint32_t n_grid, const char *const *grid,
                    const int64_t *chunk, const char *loop, int64_t step, int64_t parts) {
    po_ctx_init(&p->ctx);
    p->arena = po_arena_create(&p->ctx);
    if (po_mu_parse(&p->ctx, p->arena, search_block_of(block), &p->naive) != PO_OK)
        fail_msg("%s", p->ctx.error.message);
    for (uint32_t i = 0; i < p->naive->n_tensors; i++)
        p->naive->tensors[i].type = PO_MU_F16;
    enum { SKELETONS = 12 };
    search_problem problem;
    po_search_options options = po_search_for_gpu(po_gpu_named("H100"), p->naive, false);
    po_search_counts counts = {0};
    search_skeleton *s = PO_NEW_N(p->arena, search_skeleton, SKELETONS);
    assert_int_equal(search_problem_of(&p->ctx, p->arena, p->naive, true, &problem), PO_OK);
    problem.gpu = options.gpu;
    problem.math = options.math;
    problem.half = PO_MU_F16;
    uint32_t n = search_algebra(&problem, &options, &counts, s, SKELETONS);
    bool made[SEARCH_NODES] = {false};
    for (uint32_t i = 0; i < n; i++) {
        search_kernel k = {.root = s[i].n - 1, .n_grid = n_grid, .step = step, .parts = parts};
        for (uint32_t c = 0; c < problem.n_classes; c++) {
            for (uint32_t g = 0; g < n_grid; g++)
                if (strcmp(problem.name[c], grid[g]) == 0) {
                    k.grid[g] = c;
                    k.chunk[g] = chunk[g];
                }
            if (strcmp(problem.name[c], loop) == 0)
                k.loop = c;
        }
        search_layout l;
        if (!gpu_lay(&problem, &s[i], &k, made, &l) || !gpu_fits_blocks(&problem, &s[i], &k, &l) ||
            !gpu_estimate(&problem, &s[i], &k, &l))
            continue;
        search_plan plan = {.skeleton = &s[i], .n = 1, .kernel = {k}};
        po_schedule to;
        po_schedule_start(&to, p->arena, p->naive, false);
        gpu_emit(&problem, &plan, &to);
        if (po_search_same(&p->ctx, p->naive, to.mu, NULL, 0, GPU_SHARED) != PO_OK)
            fail_msg("%s: %s", block, p->ctx.error.message);
        po_text text;
        po_text_init(&text, p->arena);
        po_mu_print(&text, to.mu);
        p->text = text.data;
        return;
    }
    fail_msg("%s: no program has such a loop", block);
}

/* Whether the changed text is refused. */
static bool refused(planted *p, const char *text) {
    po_mu *mu;
    po_status status = po_mu_parse(&p->ctx, p->arena, text, &mu);
    if (status == PO_OK)
        status = po_search_same(&p->ctx, p->naive, mu, NULL, 0, GPU_SHARED);
    po_ctx_clear(&p->ctx);
    return status != PO_OK;
}

/* Each statement taken away. */
static uint32_t without_each(planted *p) {
    uint32_t n = 0;
    for (const char *line = p->text; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        const char *equals = strstr(line, "= ");
        if (!equals || equals > end)
            continue;
        const char *text =
            po_arena_printf(p->arena, "%.*s%s", (int)(line - p->text), p->text, end + 1);
        if (!refused(p, text))
            fail_msg("passes without '%.*s'", (int)(end - line), line);
        n++;
    }
    return n;
}

/* Every place where `what` stands, one after the other, gets `to`. */
static uint32_t with_each(planted *p, const char *what, const char *to) {
    uint32_t n = 0;
    for (const char *at = strstr(p->text, what); at; at = strstr(at + 1, what), n++)
        if (!refused(p, po_arena_printf(p->arena, "%.*s%s%s", (int)(at - p->text), p->text, to,
                                        at + strlen(what))))
            fail_msg("passes with '%s' for '%s' at '%.60s'", to, what, at);
    return n;
}

static void attention(void **state) {
    (void)state;
    planted p;
    plan_of(&p, "gqa", 2, (const char *const[]){"b", "i"}, (const int64_t[]){1, 8}, "j", 16, 2);
    /* copies, starts, scores, maximum, factor, rescaling, exp, sums; parts; and what adds them up
     */
    assert_true(without_each(&p) >= 18);
    assert_true(with_each(&p, "32*jpart", "31*jpart") > 0);     /* a wrong split */
    assert_true(with_each(&p, "32*jpart+j", "jpart+2*j") > 0);  /* keys in another order */
    assert_true(with_each(&p, "exp(old", "exp(2 * old") > 0);   /* a wrong rescale */
    assert_true(with_each(&p, "exp(part", "exp(0 * part") > 0); /* parts weighed by their own */
    assert_true(with_each(&p, "max= part", "+= part") > 0);     /* the sum of maxima */
    assert_true(with_each(&p, "jpart2 2", "jpart2 1") > 0);     /* one part only is added up */
    assert_true(with_each(&p, " fresh", "") > 0);               /* sums that go on */
    po_arena_free(p.arena);
}

static void product(void **state) {
    (void)state;
    planted p;
    plan_of(&p, "gated_mlp", 1, (const char *const[]){"j"}, (const int64_t[]){32}, "k", 16, 2);
    assert_true(without_each(&p) >= 10);
    assert_true(with_each(&p, "32*kpart", "16*kpart") > 0);
    assert_true(with_each(&p, "kpart2 2", "kpart2 1") > 0);
    assert_true(with_each(&p, " fresh", "") > 0);
    po_arena_free(p.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),
        cmocka_unit_test(product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
