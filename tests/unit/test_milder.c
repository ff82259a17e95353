/* Error as a cost: what each law states of its rounding, and what becomes of a variant that is
 * beyond the limit. */
#include "ops/sum/bilinear.h"
#include "pipeline/variants.h"
#include "rewriting.h"
#include "run_fixture.h"
#include "unit.h"

#include <math.h>

/* A convolution in time that pays in tiles of eight; its error there is 1e-5, in tiles of four
 * 1e-6. */
static const char frames[] = "graph g (x: f32[1,16,16,8,8]) -> (y) {\n"
                             " y = Conv(x, w: f32[16,16,3,3,3] random 1) {pads=[1,1,1,1,1,1]}\n}";
/* Two convolutions that pay by rows. */
static const char rows[] =
    "graph g (x: f32[1,96,36,36]) -> (y) {\n"
    " a = Conv(x, w: f32[96,96,3,3] random 1, b: f32[96] random 2) {pads=[1,1,1,1]}\n"
    " r = Relu(a)\n"
    " y = Conv(r, v: f32[96,96,3,3] random 3) {pads=[1,1,1,1]}\n}";

static void run(run_fixture *f) {
    run_fixture_postopt(f);
    run_fixture_select(f);
}

static bool told(const run_fixture *f, const char *what) {
    for (uint32_t i = 0; i < f->run.record->n_notes; i++)
        if (strstr(f->run.record->notes[i], what))
            return true;
    return false;
}

static void winner_is(const run_fixture *f, const char *name) {
    if (strcmp(f->run.record->summary.winner, name) != 0)
        fail_msg("'%s' won in place of '%s'", f->run.record->summary.winner, name);
}

/* Not the original: the same in smaller tiles. */
static void beyond_the_limit(void **unused) {
    (void)unused;
    run_fixture f;
    run_fixture_start(&f, frames);
    run(&f);
    winner_is(&f, "folded");
    run_fixture_end(&f);
    run_fixture_start(&f, frames);
    f.options.tolerance = 3e-6;
    run(&f);
    winner_is(&f, "3-D convolutions by smaller tiles");
    assert_true(told(&f, "3-D convolutions by smaller tiles: beyond 3e-06 otherwise"));
    assert_true(f.run.record->summary.error <= 3e-6);
    run_fixture_end(&f);
}

/* The same where the runtime is timed: it competes with the others, and is more than twice as fast
 * as the original. */
static void in_the_protocol(void **unused) {
    (void)unused;
    run_fixture f;
    run_fixture_start(&f, frames);
    f.options.tolerance = 3e-6;
    f.options.model_cost = false;
    f.options.threads = f.ctx.threads = 1;
    run(&f);
    winner_is(&f, "3-D convolutions by smaller tiles");
    assert_true(f.run.record->summary.ratio > 1.2);
    run_fixture_end(&f);
}

/* --- what is stated --- */

static po_variant_made form(run_fixture *f, po_choices choices) {
    po_variant_made made;
    const po_variant_plan plan = {"", f->imported.original, choices};
    assert_int_equal(po_variant_make(&f->run, &f->variants, &plan, &made), PO_OK);
    return made;
}

/* Down to what has no tiles, each step stating less, in so many steps. */
static void climbs_down(const char *model, uint32_t algebra, po_tile_family which,
                        uint32_t most_steps) {
    run_fixture f;
    run_fixture_start(&f, model);
    po_choices choices = 0;
    uint32_t steps = 0;
    const uint32_t bit = (uint32_t)__builtin_ctz(algebra);
    po_variant_made now = form(&f, choices);
    assert_true(now.counts.used & algebra && now.counts.tile[which] > 2);
    while (now.counts.used & algebra) {
        po_variant_made before = now;
        assert_true(before.counts.magnifies[bit] > 1);
        assert_true(po_variant_milder(&before.counts, &choices));
        now = form(&f, choices);
        assert_true(now.counts.tile[which] < before.counts.tile[which]);
        assert_true(now.counts.magnifies[bit] < before.counts.magnifies[bit]);
        assert_true(++steps <= most_steps);
    }
    assert_true(steps > 1);
    assert_false(po_variant_milder(&now.counts, &choices));
    run_fixture_end(&f);
}

static void tiles(void **unused) {
    (void)unused;
    climbs_down(frames, PO_ALGEBRA_FRAMES, PO_TILED_FRAMES, 3);
    climbs_down(rows, PO_ALGEBRA_TILES, PO_TILED_MAPS, 3);
}

/* What states most is made milder, and what states half of that; the rest stays as it is. */
static void largest_first(void **unused) {
    (void)unused;
    po_postopt_counts counts = {.used = PO_ALGEBRA_COMPOSE | PO_ALGEBRA_TILES | PO_ALGEBRA_FRAMES,
                                .tile = {[PO_TILED_MAPS] = 4, [PO_TILED_FRAMES] = 8}};
    po_choices choices = 0;
    counts.magnifies[0] = 1;
    counts.magnifies[6] = 25;
    counts.magnifies[4] = 700;
    assert_true(po_variant_milder(&counts, &choices));
    po_arena *arena;
    po_ctx ctx;
    po_ctx_init(&ctx);
    arena = po_arena_create(&ctx);
    assert_string_equal(po_variant_name(arena, &(po_variant_plan){"", NULL, choices}),
                        "3-D convolutions by smaller tiles");
    counts.magnifies[4] = 40;
    choices = 0;
    assert_true(po_variant_milder(&counts, &choices));
    assert_string_equal(
        po_variant_name(arena, &(po_variant_plan){"", NULL, choices}),
        "3-D convolutions by smaller tiles and 2-D convolutions by the smallest tiles");
    /* What is made smaller once is not made so twice: the choice before goes. */
    counts.tile[PO_TILED_MAPS] = 2;
    counts.magnifies[6] = 3;
    counts.used &= ~(uint32_t)PO_ALGEBRA_FRAMES;
    assert_true(po_variant_milder(&counts, &choices));
    assert_string_equal(po_variant_name(arena, &(po_variant_plan){"", NULL, choices}),
                        "3-D convolutions by smaller tiles and 2-D convolutions kept");
    po_arena_free(arena);
    assert_false(po_variant_milder(&(po_postopt_counts){.used = 0}, &choices));
}

/* What the tables of an algorithm say. */
static double by_tables(const po_bilinear *t) {
    double most = 0;
    for (uint32_t i = 0; i < t->m; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < t->n; k++) {
            double inputs = 0, taps = 0;
            for (uint32_t j = 0; j < t->n; j++)
                inputs += fabs(t->b[k * t->n + j]);
            for (uint32_t j = 0; j < t->r; j++)
                taps += fabs(t->powers[k * t->r + j] / t->scale[k]);
            sum += fabs(t->a[i * t->n + k]) * inputs * taps;
        }
        most = fmax(most, sum / t->r);
    }
    return most;
}

/* Stated is what the tables make; more outputs to a tile round worse, and one is the plain way. */
static void algorithms(void **unused) {
    (void)unused;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    uint32_t seen = 0;
    for (int points = 0; points < 2; points++)
        for (uint32_t r = 2; r <= 7; r++)
            for (uint32_t stride = 1; stride <= 3; stride++)
                for (uint32_t m = 2; m <= 8; m++) {
                    po_bilinear alg;
                    if (!po_bilinear_make(arena, (po_points)points, m, r, stride, &alg))
                        continue;
                    double stated = po_bilinear_magnifies((po_points)points, m, r, stride);
                    assert_true(fabs(stated - by_tables(&alg)) < 1e-9 * stated);
                    seen++;
                }
    assert_true(seen > 60);
    double before = po_bilinear_magnifies(PO_POINTS_DYADIC, 1, 3, 1);
    assert_true(before == 1 && po_bilinear_magnifies(PO_POINTS_STEADY, 4, 1, 1) == 1);
    for (uint32_t m = 2; m <= 8; m += 2) {
        double now = po_bilinear_magnifies(PO_POINTS_DYADIC, m, 3, 1);
        assert_true(now > 2 * before);
        before = now;
    }
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_the_limit),
        cmocka_unit_test(in_the_protocol),
        cmocka_unit_test(tiles),
        cmocka_unit_test(largest_first),
        cmocka_unit_test(algorithms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
