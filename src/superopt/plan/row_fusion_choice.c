/* Which steps are worked in bands: candidates by what passes between them, chosen by readings. */
#include "superopt/plan/internal.h"
#include "superopt/schedule/internal.h"
#include "superopt/search/search.h"

#include <math.h>

/* Errors that are let pass, in units of the last place of the sum of absolute values: what sums in
 * another order make, and what Toom-Cook's transforms make of it (measured: 4, 9). */
static const double exact_error = 16, fast_error = 64;

po_mu *po_plan_standalone_band(po_arena *arena, const band *b, po_standalone_step *lone) {
    return b->window ? po_plan_window_standalone(arena, &b->b, b->window, lone)
                     : po_plan_standalone_row_fusion(arena, &b->b, lone);
}

void po_plan_apply_band(po_schedule *to, const band *b) {
    if (b->window)
        po_plan_window_apply(to, &b->b, b->window);
    else
        po_row_fusion_apply(to, &b->b);
}

/* Steps that read one part of a tensor and write another: a muGraph in which the last writes to a
 * tensor of its own, so that what it is to leave alone can be told from what it reads. */
static const po_mu *written_apart(po_arena *arena, const po_row_fusion *b) {
    po_naive_step last;
    bool read = false;
    if (!po_naive_step_of(b->naive, b->node[b->n - 1], &last))
        return b->naive;
    const uint32_t out = last.out->tensor;
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t n = b->naive->nodes[b->node[i]].first; n != PO_NONE;
             n = b->naive->nodes[n].next)
            for (uint32_t k = 0; k < b->naive->nodes[n].statement.n_in; k++)
                read |= b->naive->nodes[n].statement.in[k].tensor == out;
    if (!read)
        return b->naive;
    po_mu *mu = po_mu_copy(arena, b->naive);
    const po_mu_tensor like = mu->tensors[out];
    const uint32_t own = po_mu_add_tensor(mu, like.name, PO_MU_DEVICE, like.rank, like.dims);
    mu->tensors[own].type = like.type;
    mu->nodes[last.fused != PO_NONE ? last.fused : last.main].statement.out.tensor = own;
    return mu;
}

po_mu *po_plan_end_standalone(po_schedule *s, const po_row_fusion *b, bool exact, double k,
                              po_standalone_step *lone) {
    po_schedule_finish(s);
    po_mu_unname(s->mu);
    *lone = (po_standalone_step){.naive = s->naive,
                                 .original = b->naive,
                                 .step = b->node[0],
                                 .n_steps = b->n,
                                 .tensor = s->tensor,
                                 .packed = s->packed,
                                 .n_packed = s->n_packed,
                                 .exact = exact,
                                 .k = k,
                                 .last = PO_NEW(s->arena, po_step_values *)};
    return s->mu;
}

po_mu *po_plan_standalone_row_fusion(po_arena *arena, const po_row_fusion *b,
                                     po_standalone_step *lone) {
    po_schedule s;
    bool exact = true;
    po_row_fusion apart = *b;
    apart.naive = written_apart(arena, b);
    po_schedule_start(&s, arena, apart.naive, true);
    po_row_fusion_apply(&s, &apart);
    for (uint32_t i = 0; i < b->n; i++)
        exact &= b->choice[i]->how->rounding != PO_ROUNDS;
    return po_plan_end_standalone(&s, b, exact, b->n * (exact ? exact_error : fast_error), lone);
}

/* --- candidates --- */

enum {
    MOST_JOINS = 28, /* of a region */
    WORTH = 1 << 19, /* bytes that pass between steps: less stays in the second cache */
    ROOM = 640 << 10 /* of it for what a band holds */
};
static const double most_again = 1.5; /* rows computed for each that is needed */
static const int64_t least_bands =
    4; /* for threads; twice as many where no row is computed twice */
static const int64_t many_bands = 16; /* from so many on an odd number is dealt out well enough */
static const double bytes_a_second = 3e10; /* that leave the second cache and come back */
static const double rarely_best = 0.1;     /* bands of half as many rows are: these are read last */

static po_status is_for_all(const planning *p, const po_row_fusion *b, bool *is) {
    *is = p->options->open == NULL;
    if (*is)
        return PO_OK;
    po_arena *scratch = po_arena_child(p->scratch);
    po_standalone_step lone;
    po_hash wide;
    po_mu *mu = po_plan_standalone_row_fusion(scratch, b, &lone);
    po_status status =
        po_plan_is_open(p, scratch, mu, NULL, b->naive->nodes[b->node[0]].name, is, &wide);
    po_arena_free(scratch);
    return status;
}

uint32_t po_plan_add_band(planning *p, uint32_t first, const po_row_fusion *b,
                          const po_plan_window *w, int64_t spread, uint32_t apart, double gain) {
    po_standalone_step lone;
    band one = {.b = *b,
                .window = w,
                .plan = p->steps[first].plan,
                .first = first,
                .apart = apart == PO_NONE ? p->n_bands : apart,
                .gain = gain};
    const po_mu *mu = po_plan_standalone_band(p->scratch, &one, &lone);
    lone.last = p->last;
    one.form = po_plan_add_variant(p, mu, &lone, spread);
    PO_PUSH(p->scratch, p->bands, p->n_bands, p->cap_bands, one);
    return p->n_bands - 1;
}

/* Steps that may be joined, bands of the most rows that fit and of half as much (0: none). */
typedef struct join {
    uint32_t first, n;
    int64_t rows[2];
    double gain; /* seconds, by what passes between the steps */
} join;

po_row_fusion po_plan_steps_of(const planning *p, uint32_t first, uint32_t n) {
    const step *s = &p->steps[first];
    po_row_fusion b = {.naive = p->plans[s->plan].lowered.mu, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        b.node[i] = s[i].node;
        b.choice[i] = &s[i].choices[s[i].best];
    }
    return b;
}

/* Of an open length, which no number of rows divides, a band is a row. */
static bool is_open(const planning *p, int64_t height) {
    bool is = false;
    for (uint32_t i = 0; p->options->open && i < p->options->open->naming.n_known; i++)
        is |= p->options->open->naming.known[i].number == height;
    return is;
}

static join join_of(const planning *p, uint32_t first, uint32_t n) {
    const step *s = &p->steps[first];
    join found = {.first = first, .n = n};
    po_row_fusion b = po_plan_steps_of(p, first, n);
    po_row_fusion_cost cost = {0};
    po_arena *scratch = po_arena_child(p->scratch);
    int64_t height = 0;
    /* Some heights are of no label's steps: the whole is of all. */
    for (uint32_t x = 0; x < PO_MU_MAX_RANK && height <= 1; x++) {
        po_naive_step last;
        if (!po_naive_step_of(b.naive, b.node[n - 1], &last))
            break;
        const po_mu_tensor *t = &b.naive->tensors[last.out->tensor];
        height = x < t->rank ? t->dims[x] : height;
    }
    b.rows = height;
    bool fits = height > 1 && po_row_fusion_fits(scratch, &b, &cost) && cost.whole >= WORTH;
    const int64_t most = is_open(p, height) ? 1 : height - 1;
    for (b.rows = 1; fits && b.rows <= most; b.rows++) {
        int64_t bands = height / b.rows;
        if (height % b.rows != 0 || (bands % 2 != 0 && bands < many_bands) ||
            !po_row_fusion_fits(scratch, &b, &cost) || cost.most_again > most_again ||
            bands < (cost.most_again > 1 ? least_bands : 2 * least_bands))
            continue;
        for (int k = 0; k < 2; k++)
            if (cost.held <= ROOM >> k)
                found.rows[k] = b.rows;
        if (cost.held > ROOM)
            continue;
        found.gain = 2 * (double)cost.whole / bytes_a_second;
        for (uint32_t i = 0; i < n - 1; i++)
            found.gain -= (cost.again[i] - 1) * p->seconds[s[i].form[s[i].best]];
    }
    if (found.rows[1] == found.rows[0])
        found.rows[1] = 0;
    po_arena_free(scratch);
    return found;
}

/* Bytes that a call of the whole runs through, rounded up to a power of two: what a map finds in
 * cache of the last call hangs on it. */
static int64_t spread_of(planning *p, const po_mu *mu) {
    enum { LEAST = 1 << 20, MOST = 48 << 20 };
    uint32_t isa = po_isa_of_machine();
    int64_t bytes = 0, spread = LEAST;
    po_arena *arena = po_arena_child(p->scratch);
    int64_t *places = PO_NEW_N(arena, int64_t, mu->n_tensors + 1);
    if (isa < PO_ISAS && po_codegen_places(p->ctx, mu, &po_isas[isa], places) != PO_OK)
        po_ctx_clear(p->ctx);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_DEVICE && bytes < 4 * (places[i] + mu->tensors[i].floats))
            bytes = 4 * (places[i] + mu->tensors[i].floats);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        bytes += mu->tensors[i].place == PO_MU_WEIGHT ? 4 * mu->tensors[i].floats : 0;
    po_arena_free(arena);
    while (spread < bytes && spread < MOST)
        spread *= 2;
    return spread < MOST ? spread : MOST;
}

po_status po_plan_candidates(planning *p, uint32_t plan) {
    int64_t spread = spread_of(p, p->plans[plan].mu);
    join *joins = NULL;
    uint32_t n_joins = 0, cap = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t n = 2; n <= PO_BANDS_MOST && i + n <= p->n_steps; n++) {
            if (p->steps[i].plan != plan || p->steps[i + n - 1].plan != plan)
                break;
            join one = join_of(p, i, n);
            if (one.rows[0] && one.gain > 0)
                PO_PUSH(p->scratch, joins, n_joins, cap, one);
        }
    PO_TRY(po_plan_windows(p, plan, spread));
    for (uint32_t i = 0; i < n_joins; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < n_joins; k++)
            before += joins[k].gain > joins[i].gain || (joins[k].gain == joins[i].gain && k < i);
        po_row_fusion b = po_plan_steps_of(p, joins[i].first, joins[i].n);
        if (before >= MOST_JOINS)
            continue;
        const po_row_fusion one_by_one = b;
        uint32_t apart = PO_NONE;
        for (int k = 0; k < 2; k++) {
            bool is = false;
            b.rows = joins[i].rows[k];
            if (b.rows)
                PO_TRY(is_for_all(p, &b, &is));
            if (!is)
                continue;
            if (apart == PO_NONE)
                apart = po_plan_add_band(p, joins[i].first, &one_by_one, NULL, spread, PO_NONE,
                                         joins[i].gain);
            po_plan_add_band(p, joins[i].first, &b, NULL, spread, apart,
                             k == 0 ? joins[i].gain : rarely_best * joins[i].gain);
        }
    }
    return PO_OK;
}

/* --- choice --- */

static const double least_gain = 0.02;

/* Seconds that a band saves; 0: none. */
static double gain_of(const planning *p, const band *b) {
    double apart = p->seconds[p->bands[b->apart].form], own = p->seconds[b->form];
    return own > 0 && apart > 0 && own < (1 - least_gain) * apart ? apart - own : 0;
}

/* Of bands that share steps the set that saves most. */
static void choose(planning *p) {
    double *saved = PO_NEW_N(p->scratch, double, p->n_steps + 1);
    uint32_t *taken = PO_NEW_N(p->scratch, uint32_t, p->n_steps + 1);
    for (uint32_t end = 1; end <= p->n_steps; end++) {
        saved[end] = saved[end - 1];
        taken[end] = PO_NONE;
        for (uint32_t i = 0; i < p->n_bands; i++) {
            const band *b = &p->bands[i];
            double with = b->first + b->b.n == end ? saved[b->first] + gain_of(p, b) : 0;
            if (with > saved[end]) {
                saved[end] = with;
                taken[end] = i;
            }
        }
    }
    for (uint32_t end = p->n_steps; end > 0;) {
        if (taken[end] == PO_NONE) {
            end--;
            continue;
        }
        uint32_t i = taken[end];
        end = p->bands[i].first;
        p->steps[end].band = i;
    }
}

po_status po_plan_row_fusions(planning *p) {
    enum { STEPS = 3 /* of most bands, for what one takes to compile */ };
    if (p->n_bands == 0)
        return PO_OK;
    bool *wanted = PO_NEW_N(p->scratch, bool, p->n_forms + 1);
    double *gain = PO_NEW_N(p->scratch, double, p->n_forms + 1);
    for (uint32_t i = 0; i < p->n_bands; i++) {
        const band *b = &p->bands[i];
        wanted[b->form] = true;
        gain[b->form] = fmax(gain[b->form], b->gain);
    }
    PO_TRY(po_plan_read(p, wanted, gain, STEPS));
    choose(p);
    for (uint32_t i = 0; i < p->n_bands; i++) {
        const band *b = &p->bands[i];
        const po_mu *mu = b->b.naive;
        if (b->apart != i)
            po_log(p->ctx, "%s: %.3f ms, %.3f one after the other%s: %s .. %s%s%s",
                   b->window
                       ? po_arena_printf(p->scratch, "window, estimate %.3f",
                                         1e3 * b->window->found->estimate)
                       : po_arena_printf(p->scratch, "bands of %lld rows", (long long)b->b.rows),
                   1e3 * p->seconds[b->form], 1e3 * p->seconds[p->bands[b->apart].form],
                   p->steps[b->first].band == i ? ", taken" : "", mu->nodes[b->b.node[0]].name,
                   mu->nodes[b->b.node[b->b.n - 1]].name, b->window ? ": " : "",
                   b->window ? po_arena_printf(p->scratch, "%s; %s", b->window->found->algebra,
                                               b->window->found->schedule)
                             : "");
    }
    return PO_OK;
}

void po_plan_part_row_fusions(planning *p, uint32_t plan) {
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].plan == plan)
            p->steps[i].band = PO_NONE;
}

po_plan_step po_plan_row_fusion_row(const planning *p, po_arena *arena, const band *b) {
    const po_mu *mu = b->b.naive;
    po_text name, schedule;
    po_text_init(&name, arena);
    po_text_init(&schedule, arena);
    po_plan_step row = {.seconds = p->seconds[b->form]};
    if (b->window)
        po_text_printf(&schedule, "found: %s; %s", b->window->found->algebra,
                       b->window->found->schedule);
    else
        po_text_printf(&schedule, "bands of %lld rows: ", (long long)b->b.rows);
    row.magnifies = b->window ? po_found_magnifies : 0;
    for (uint32_t i = 0; i < b->b.n; i++) {
        po_text_printf(&name, "%s%s", i ? "; " : "", mu->nodes[b->b.node[i]].name);
        if (b->window)
            continue;
        po_text_puts(&schedule, i ? "; " : "");
        b->b.choice[i]->how->tell(b->b.choice[i], &schedule);
        row.magnifies = fmax(row.magnifies, po_choice_magnifies(b->b.choice[i]));
    }
    row.name = name.data;
    row.schedule = schedule.data;
    row.bytes = po_plan_traffic_of(p->scratch, mu, b->b.node, b->b.n);
    for (uint32_t i = 0; i < p->n_bands; i++)
        row.tried += p->bands[i].first == b->first && p->bands[i].b.n == b->b.n;
    return row;
}
