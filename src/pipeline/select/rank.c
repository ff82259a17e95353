/* First readings: all variants beside one another and the original, then neighbours of the best
 * forms: what the chooser among forms has their costs by. */
#include "select/rank.h"
#include "codegen/delivery/library.h"
#include "import/import.h"
#include "pipeline/budget.h"
#include "pipeline/select/selecting.h"
#include "pipeline/variants.h"

enum { RANK_LAYOUT = 6 };

/* --- files --- */

po_status po_selecting_write(selecting *s, uint32_t from) {
    for (uint32_t i = from; i < s->list.n; i++) {
        po_candidate_report *row = po_selecting_row(s, i);
        po_status status =
            po_candidate_write(s->ctx, &s->store, s->list.variants[i].graph, &s->written[i]);
        if (status == PO_UNSUPPORTED || status == PO_IO) {
            po_selecting_decide(s, row, "could not be written for the runtime: %s",
                                s->ctx->error.message);
            po_record_note(s->run->record, "'%s' was dropped: %s", row->name,
                           s->ctx->error.message);
            po_ctx_clear(s->ctx);
            s->written[i].path = NULL;
            continue;
        }
        PO_TRY(status);
    }
    s->files = po_candidate_files(&s->store);
    return PO_OK;
}

/* --- ranking --- */

/* Variants that compete with one another in one reading. */
typedef struct ranking {
    selecting *s;
    uint32_t which[PO_MAX_VARIANTS], n;
    uint32_t steps; /* as po_rank_spec.steps */
    const char *refused[PO_MAX_VARIANTS];
} ranking;

/* What is kept of it: by the place in `which`. */
typedef struct ranks {
    po_timing timing[PO_MAX_VARIANTS];
    bool full[PO_MAX_VARIANTS];
} ranks;

static po_hash rank_key(const ranking *r) {
    const selecting *s = r->s;
    po_hash key = po_hash_u64(po_cost_key(s->cost), RANK_LAYOUT);
    key = po_hash_u64(po_hash_u64(key, s->original_hash.lo), s->original_hash.hi);
    key = po_hash_u64(po_hash_u64(key, s->ctx->threads), s->size);
    key = po_pins_hash(key, s->run->options->sizes, s->run->options->n_sizes);
    for (uint32_t k = 0; k < r->n; k++) {
        po_hash hash = s->written[r->which[k]].hash;
        key = po_hash_u64(po_hash_u64(key, hash.lo), hash.hi);
    }
    if (s->list.library)
        key = po_hash_u64(po_hash_u64(key, s->list.library->hash.lo), s->list.library->hash.hi);
    return key;
}

static po_status measure_ranks(void *user) {
    ranking *r = user;
    selecting *s = r->s;
    po_inputs *plan;
    po_feed feed;
    po_import_rest(s->imported->original->model);
    PO_TRY(po_run_inputs(s->run, s->arena, s->original, s->original, &plan));
    PO_TRY(po_inputs_make(s->ctx, s->arena, plan, s->size, PO_INPUTS_NORMAL, 1, &feed));
    const char *paths[PO_MAX_VARIANTS], *kernels = NULL;
    po_timing timing[PO_MAX_VARIANTS];
    bool read[PO_MAX_VARIANTS];
    for (uint32_t k = 0; k < r->n; k++) {
        const char *own = po_selecting_kernels(s, r->which[k]);
        kernels = own ? own : kernels;
        paths[k] = s->written[r->which[k]].path;
    }
    po_rank_spec spec = {.timing = {.library = s->cost->library,
                                    .kernels = kernels,
                                    .files = &s->files,
                                    .threads = s->ctx->threads,
                                    .room = po_run_room(s->imported->original),
                                    .feed = &feed},
                         .original = s->original_path,
                         .n = r->n,
                         .candidates = paths,
                         .heavy = s->heavy,
                         .steps = r->steps,
                         .until = po_budget_end(s->run, PO_PART_RANKS)};
    po_status status = po_rank(s->ctx, s->arena, &spec, timing, read, r->refused);
    /* What was read before the time was up counts: else the first in the list would be tried. */
    for (uint32_t k = 0; k < r->n && (status == PO_OK || status == PO_TIME_LIMIT); k++) {
        s->rank[r->which[k]] = timing[k];
        s->full[r->which[k]] = s->read[r->which[k]] = read[k];
    }
    return status;
}

/* A short reading may be far too high: what was read for longer goes first. */
static bool goes_before(const selecting *s, uint32_t a, uint32_t b) {
    if (s->full[a] != s->full[b])
        return s->full[a];
    if (!(s->score[a] > 0) || !(s->score[b] > 0))
        return s->score[a] > s->score[b];
    return s->score[a] < s->score[b];
}

/* What weights that are there twice must gain beside what holds them once. */
static const double worth_twice = 1.05;

static double worth(const selecting *s, uint32_t i) {
    return s->list.variants[i].twice ? worth_twice : 1;
}

/* Time over the original's. Readings of different rounds differ by what the machine did meanwhile:
 * what is read beside one that had a cost before has its by that. */
static void set_costs(const ranking *r) {
    selecting *s = r->s;
    double known = s->score[r->which[0]], scale = 1;
    if (known > 0 && s->rank[r->which[0]].seconds > 0)
        scale = known / worth(s, r->which[0]) * s->rank[r->which[0]].gain;
    for (uint32_t k = 0; k < r->n; k++) {
        const po_timing *t = &s->rank[r->which[k]];
        if (!(s->score[r->which[k]] > 0) && t->seconds > 0 && t->gain > 0)
            s->score[r->which[k]] = worth(s, r->which[k]) * scale / t->gain;
    }
}

/* What the runtime does not take leaves the order; whether there was any. */
static bool drop_refused(const ranking *r) {
    selecting *s = r->s;
    bool any = false;
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t i = r->which[k], kept = 0;
        if (!r->refused[k])
            continue;
        any = true;
        for (uint32_t o = 0; o < s->n_order; o++)
            if (s->order[o] != i)
                s->order[kept++] = s->order[o];
        s->n_order = kept;
        po_candidate_report *row = po_selecting_row(s, i);
        po_selecting_fault(s, row, r->refused[k], true);
        po_selecting_decide(s, row, "the runtime refuses it: %s", r->refused[k]);
    }
    return any;
}

/* Whether other programs had a part in the order. */
static bool ranked_in_noise(const selecting *s) {
    for (uint32_t i = 0; i < s->n_order; i++)
        if (po_timing_disturbed(s->rank[s->order[i]].waited))
            return true;
    return false;
}

static void sort_order(selecting *s) {
    for (uint32_t i = 1; i < s->n_order; i++)
        for (uint32_t k = i; k > 0 && goes_before(s, s->order[k], s->order[k - 1]); k--) {
            uint32_t swap = s->order[k];
            s->order[k] = s->order[k - 1];
            s->order[k - 1] = swap;
        }
}

static void tell_rank(selecting *s, uint32_t i) {
    const po_timing *t = &s->rank[i];
    if (!(t->seconds > 0))
        return;
    po_candidate_report *row = po_selecting_row(s, i);
    row->measured = true;
    row->ms = 1000 * t->seconds;
    row->ratio = t->gain;
    row->low = t->low;
    row->high = t->high;
    char clock[PO_TIMING_CLOCK];
    bool by_one = t->threads < s->ctx->threads;
    const char *by = by_one ? po_timing_clock(s->ctx->threads, t->threads, clock) : "";
    po_selecting_decide(s, row, "not the fastest in the first reading%s%s", by_one ? "; " : "", by);
    po_log(s->ctx, "%s: %.3f ms, %.3fx (%.3f to %.3f%s%s)", row->name, row->ms, t->gain, t->low,
           t->high, by_one ? "; " : "", by);
}

/* Seconds that models which take long to load need for a first reading that says anything. */
static const double least_to_load = 10;

static bool has_time(const selecting *s) {
    const double end = po_budget_end(s->run, PO_PART_RANKS);
    return !s->run->budget->loads || end <= 0 || end - po_now() > least_to_load;
}

/* Reads those in r->which beside one another, and sorts the order anew. Where all of the comparison
 * fails, the original included, po_select finds out why: without ranks all are tried in the order
 * that they were made in. *right: there are ranks, and the whole of them. */
static po_status read_ranks(ranking *r, bool *right) {
    selecting *s = r->s;
    ranks kept;
    memset(&kept, 0, sizeof kept);
    po_hash key = rank_key(r);
    *right = true;
    if (po_cache_get_fixed(s->cost->cache, "rank", key, &kept, sizeof kept)) {
        for (uint32_t k = 0; k < r->n; k++) {
            s->rank[r->which[k]] = kept.timing[k];
            s->full[r->which[k]] = kept.full[k];
        }
    } else if (!has_time(s)) {
        s->out->undecided = true;
        *right = false;
        return PO_OK;
    } else {
        bool cut;
        po_status status = po_budget_call(s->run, PO_PART_RANKS, "first readings were cut short",
                                          measure_ranks, r, &cut);
        if (status == PO_CANCELLED || status == PO_TIME_LIMIT || status == PO_NO_MEMORY)
            return status;
        if (status != PO_OK) {
            po_log(s->ctx, "ranking failed: %s", s->ctx->error.message);
            po_ctx_clear(s->ctx);
            *right = false;
            return PO_OK;
        }
        s->out->undecided |= cut;
        for (uint32_t k = 0; k < r->n; k++) {
            kept.timing[k] = s->rank[r->which[k]];
            kept.full[k] = s->full[r->which[k]];
        }
        *right = !drop_refused(r) && !cut && !ranked_in_noise(s);
        if (*right)
            po_cache_put(s->cost->cache, "rank", key, &kept, sizeof kept);
    }
    set_costs(r);
    sort_order(s);
    for (uint32_t k = 0; k < r->n; k++)
        tell_rank(s, r->which[k]);
    return PO_OK;
}

/* --- choosing forms --- */

enum {
    BEAM = 2,
    AT_A_TIME = 3,          /* neighbours that are read beside the best form so far */
    EXPLORED = 8,           /* in all */
    EXPLORING_STEPS = 2,    /* their readings are shorter: most are no better */
    KEPT_FREE = MOST_MILDER /* variants that may have to be made yet (milder.c) */
};
static const double reads_better = 1.01; /* less is noise */
/* What is sure to read no better is not read: a neighbour that promises just as much may be. */
static const double promises = 1.0;
static const double far_ahead = 1.1;

static void add_to_ranking(ranking *r, uint32_t i) {
    selecting *s = r->s;
    if (!s->written[i].path)
        return;
    s->order[s->n_order++] = i;
    r->which[r->n++] = i;
}

/* Makes and writes what the batch stands for and is not there yet. */
static po_status make_batch(selecting *s, po_combination *const *batch, uint32_t n) {
    uint32_t before = s->list.n;
    for (uint32_t i = 0; i < n && s->list.n + KEPT_FREE < PO_MAX_VARIANTS; i++) {
        PO_TRY(po_ctx_poll(s->ctx));
        PO_TRY(po_variant_list_make(s->run, &s->list, batch[i], NULL));
    }
    s->forms->over |= s->list.n + KEPT_FREE >= PO_MAX_VARIANTS;
    return po_selecting_write(s, before);
}

static void tell_costs(const selecting *s, po_combination *const *batch, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (batch[i]->number != PO_NONE)
            batch[i]->cost = s->score[batch[i]->number];
}

/* All that there is, beside one another: what is no form (kernels, the model as simplified), too.
 */
static po_status price_first(selecting *s, po_combination *const *batch, uint32_t n) {
    ranking r = {.s = s};
    bool right;
    for (uint32_t i = 0; i < s->list.n; i++)
        add_to_ranking(&r, i);
    if (s->n_order < 2) {
        s->forms->over = true;
        return PO_OK;
    }
    PO_TRY(read_ranks(&r, &right));
    s->forms->over |= !right;
    tell_costs(s, batch, n);
    return PO_OK;
}

/* Whether a reading of some beside the best would be done in time, and leads anywhere: kernels may
 * be far ahead of all forms. */
static bool worth_reading(const selecting *s) {
    const po_combination *form = po_chooser_best(s->forms, 0);
    double end = po_budget_end(s->run, PO_PART_RANKS), cost = s->score[s->order[0]];
    bool in_time = end <= 0 || po_now() + 2 * (AT_A_TIME + 1) < end;
    return in_time && form && cost * far_ahead > form->cost;
}

/* Neighbours of the best forms, beside the best of all. */
static po_status price_next(selecting *s, po_combination *const *batch, uint32_t n) {
    uint32_t before = s->list.n;
    ranking r = {.s = s, .which = {s->order[0]}, .n = 1, .steps = EXPLORING_STEPS};
    bool right;
    if (!worth_reading(s)) {
        s->forms->over = true;
        return PO_OK;
    }
    PO_TRY(make_batch(s, batch, n));
    for (uint32_t i = before; i < s->list.n; i++)
        add_to_ranking(&r, i);
    if (r.n > 1) {
        PO_TRY(read_ranks(&r, &right));
        s->forms->over |= !right;
    }
    tell_costs(s, batch, n);
    return PO_OK;
}

static po_status price(void *user, po_combination *const *batch, uint32_t n) {
    selecting *s = user;
    return s->n_order == 0 ? price_first(s, batch, n) : price_next(s, batch, n);
}

/* Beside the best that has had no turn yet, if there is one. */
po_status po_selecting_read(selecting *s, uint32_t i) {
    ranking r = {.s = s, .steps = EXPLORING_STEPS};
    bool right;
    for (uint32_t k = 0; k < s->n_order && r.n == 0; k++)
        if (!s->done[s->order[k]])
            r.which[r.n++] = s->order[k];
    add_to_ranking(&r, i);
    return read_ranks(&r, &right);
}

po_status po_selecting_rank(selecting *s) {
    const po_chooser_rules none = {.bases = 0};
    po_chooser *forms = s->list.chooser;
    po_chooser *c = forms ? forms : po_chooser_create(s->ctx, s->arena, &none);
    s->forms = c;
    if (c->n == 0)
        return price_first(s, NULL, 0);
    c->rules.beam = BEAM;
    c->rules.at_a_time = AT_A_TIME;
    c->rules.most = c->n + EXPLORED;
    c->rules.gain = reads_better;
    c->rules.hopeless = promises;
    c->rules.price = price;
    c->rules.user = s;
    c->over = po_run_skips(s->run, "combined");
    return po_chooser_run(c);
}
