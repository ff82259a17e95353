/* The plan of a region: the ways of working each of its steps are listed, timed and chosen. */
#include "superopt/plan/internal.h"
#include "superopt/plan/worth.h"
#include "superopt/schedule/internal.h"

#include <math.h>

/* --- steps and their choices --- */

/* What a step would cost where nothing is measured: multiply-adds at half of the peak, bytes as
 * from the second cache. */
double po_plan_estimated(const po_mu *mu) {
    po_mu_cost cost;
    po_mu_cost_of(mu, &cost);
    return cost.flops / 1e11 + cost.bytes / 5e10;
}

double po_plan_estimated_small(const po_mu *mu) {
    po_mu_cost cost;
    po_mu_cost_of(mu, &cost);
    return cost.flops / 1e11 + (cost.bytes + cost.weights) / 5e10;
}

po_mu *po_plan_standalone(po_arena *arena, const po_mu *naive, uint32_t node,
                          const po_choice *choice, po_standalone_step *lone) {
    const po_row_fusion one = {.naive = naive, .n = 1, .node = {node}, .choice = {choice}};
    return po_plan_standalone_row_fusion(arena, &one, lone);
}

uint32_t po_plan_add_variant(planning *p, const po_mu *mu, const po_standalone_step *lone,
                             int64_t spread) {
    po_hash key = spread ? po_hash_u64(po_mu_hash(mu), (uint64_t)spread) : po_mu_hash(mu);
    uint32_t i = po_hash_map_get(p->known, key);
    if (i != PO_NONE)
        return i;
    po_timed_kernel form = {.mu = mu, .spread = spread};
    if (lone) {
        form.check = po_check_step;
        form.user = po_arena_memdup(p->scratch, lone, sizeof *lone);
    }
    po_hash_map_put(p->known, key, p->n_forms);
    const po_hash none = {0, 0};
    uint32_t n = p->n_forms, m = p->n_forms, k = p->n_forms;
    PO_PUSH(p->scratch, p->seconds, n, p->cap_seconds, 0.0);
    PO_PUSH(p->scratch, p->keys, m, p->cap_keys, key);
    PO_PUSH(p->scratch, p->wide, k, p->cap_wide, none);
    PO_PUSH(p->scratch, p->forms, p->n_forms, p->cap_forms, form);
    return p->n_forms - 1;
}

/* Leaves out what has no program for all sizes; where nothing is left the first stands, for the
 * region's kernel to be refused by. */
static po_status keep_open(const planning *p, const po_mu *naive, uint32_t node, step *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        po_arena *scratch = po_arena_child(p->scratch);
        bool is;
        po_hash wide = {0, 0};
        po_standalone_step lone;
        po_mu *mu = po_plan_standalone(scratch, naive, node, &s->choices[i], &lone);
        po_status status =
            po_plan_is_open(p, scratch, mu, &lone, naive->nodes[node].name, &is, &wide);
        po_arena_free(scratch);
        PO_TRY(status);
        if (is) {
            s->wide[kept] = wide;
            s->choices[kept++] = s->choices[i];
        }
    }
    s->n = kept ? kept : s->n;
    return PO_OK;
}

static po_status add_steps(planning *p, uint32_t plan) {
    const po_mu *naive = p->plans[plan].lowered.mu;
    const uint32_t isa = po_isa_of_machine();
    for (uint32_t node = naive->first; node != PO_NONE; node = naive->nodes[node].next) {
        step s = {.plan = plan, .node = node, .band = PO_NONE};
        s.n = po_choices_of(naive, node, &po_isas[isa < PO_ISAS ? isa : 0],
                            p->options->exact ? 1 : p->options->magnifies, s.choices);
        if (p->options->open)
            PO_TRY(keep_open(p, naive, node, &s));
        if (p->options->like)
            po_plan_keep_alike(p, &s);
        uint32_t n = 0;
        for (uint32_t i = 0; i < s.n; i++) {
            po_standalone_step lone;
            const po_mu *mu = po_plan_standalone(p->scratch, naive, node, &s.choices[i], &lone);
            po_mu_cost cost;
            po_mu_cost_of(mu, &cost);
            /* What holds more than a block may would take its region with it. */
            if (cost.shared > PO_SHARED_BYTES && n + s.n - i > 1)
                continue;
            lone.last = p->last;
            s.form[n] = po_plan_add_variant(p, mu, &lone, 0);
            s.choices[n] = s.choices[i];
            s.wide[n] = s.wide[i];
            p->wide[s.form[n]] = s.wide[n];
            n++;
        }
        s.n = n;
        PO_PUSH(p->scratch, p->steps, p->n_steps, p->cap_steps, s);
    }
    return PO_OK;
}

/* --- measuring --- */

/* By first form: what all steps that have it are estimated to take of the whole. */
static const double *parts_of(const planning *p) {
    double *parts = PO_NEW_N(p->scratch, double, p->n_forms), sum = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *s = &p->steps[i];
        double least = po_plan_estimated(p->forms[s->form[0]].mu);
        for (uint32_t k = 1; k < s->n; k++) {
            double seconds = po_plan_estimated(p->forms[s->form[k]].mu);
            least = seconds < least ? seconds : least;
        }
        parts[s->form[0]] += least;
        sum += least;
    }
    for (uint32_t i = 0; i < p->n_forms && sum > 0; i++)
        parts[i] /= sum;
    return parts;
}

/* Forms that are to be read in a round, and were not: `wanted` by form. */
static void want(const planning *p, uint32_t round, const double *parts, bool *wanted) {
    double estimates[PO_CHOICES_MAX], seconds[PO_CHOICES_MAX];
    bool read[PO_CHOICES_MAX];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *s = &p->steps[i];
        for (uint32_t k = 0; k < s->n; k++) {
            estimates[k] = po_plan_estimated(p->forms[s->form[k]].mu);
            seconds[k] = p->seconds[s->form[k]];
        }
        po_worth_step worth = {s->n, s->choices, estimates, seconds, parts[s->form[0]]};
        (round == 0 ? po_worth_first : po_worth_then)(&worth, read);
        for (uint32_t k = 0; k < s->n; k++)
            wanted[s->form[k]] |= read[k] && seconds[k] == 0;
    }
}

/* Times some forms, as long as there is time for readings. */
static po_status read_some(planning *p, const uint32_t *which, uint32_t n, uint32_t isa) {
    po_timed_kernel *batch = PO_NEW_N(p->scratch, po_timed_kernel, n);
    for (uint32_t i = 0; i < n; i++)
        batch[i] = p->forms[which[i]];
    const double start = po_now();
    po_limit limit = po_limit_begin(p->ctx, p->until);
    po_status status = po_ctx_poll(p->ctx);
    if (status == PO_OK)
        status = po_time_kernels(p->ctx, p->options->cc, isa, batch, n);
    bool cut = po_limit_end(p->ctx, &limit, &status);
    PO_TRY(status);
    p->cut |= cut;
    if (!cut)
        p->a_form = (po_now() - start) / n;
    for (uint32_t i = 0; i < n; i++) {
        p->seconds[which[i]] = batch[i].seconds;
        if (p->options->cache && batch[i].seconds != 0 && !cut)
            po_cache_put(p->options->cache, "kernel", po_plan_reading_key(p, which[i], isa),
                         &batch[i].seconds, sizeof batch[i].seconds);
    }
    return PO_OK;
}

/* Forms that are compiled, compared and timed together: where time ends before all of them are, few
 * have been lost. A reading is so many runs. As many as will be done in time, where that is a few:
 * what is compiled and not timed is lost; 0: none. */
static uint32_t so_many_at_a_time(const planning *p, const uint32_t *which, uint32_t n,
                                  uint32_t steps) {
    enum { MOST = 32, RUNS = 20, FEW = 3 };
    static const double longest = 4;
    double seconds = 0;
    if (p->until > 0 && p->a_form > 0) {
        const double in_time = (p->until - po_now()) / (p->a_form * steps);
        if (in_time < n && in_time < MOST)
            n = in_time < FEW ? 0 : (uint32_t)in_time;
    }
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        seconds += RUNS * po_plan_estimated(p->forms[which[i]].mu);
        if (i > 0 && seconds > longest)
            return i;
    }
    return n < MOST ? n : MOST;
}

/* Times the forms that are wanted, each of so many steps, those first whose steps take most of the
 * whole (`weight`, by form; NULL: all alike): the time may end before all are read. */
static po_status read_forms(planning *p, const bool *wanted, const double *weight, uint32_t steps,
                            uint32_t isa) {
    uint32_t n = 0, *which = PO_NEW_N(p->scratch, uint32_t, p->n_forms);
    for (uint32_t i = 0; i < p->n_forms; i++) {
        if (!wanted[i])
            continue;
        uint32_t k = n++;
        for (; weight && k > 0 && weight[which[k - 1]] < weight[i]; k--)
            which[k] = which[k - 1];
        which[k] = i;
    }
    if (n > 0 && !p->cut)
        po_log(p->ctx, "timing %u of %u schedules of %u steps", n, p->n_forms, p->n_steps);
    for (uint32_t at = 0, some; at < n && !p->cut; at += some, steps = 1) {
        some = so_many_at_a_time(p, which + at, n - at, steps);
        p->cut |= some == 0;
        if (some > 0)
            PO_TRY(read_some(p, which + at, some, isa));
    }
    return PO_OK;
}

/* By form: what the steps that may have it take of the whole. */
static const double *weights_of(const planning *p, const double *parts) {
    double *weight = PO_NEW_N(p->scratch, double, p->n_forms);
    for (uint32_t i = 0; i < p->n_steps; i++)
        for (uint32_t k = 0; k < p->steps[i].n; k++)
            weight[p->steps[i].form[k]] =
                fmax(weight[p->steps[i].form[k]], parts[p->steps[i].form[0]]);
    return weight;
}

static po_status read_round(planning *p, uint32_t round, const double *parts, uint32_t isa) {
    bool *wanted = PO_NEW_N(p->scratch, bool, p->n_forms);
    want(p, round, parts, wanted);
    return read_forms(p, wanted, weights_of(p, parts), 1, isa);
}

po_status po_plan_read(planning *p, bool *wanted, const double *weight, uint32_t steps) {
    uint32_t isa = po_isa_of_machine();
    for (uint32_t i = 0; i < p->n_forms; i++)
        wanted[i] = wanted[i] && p->seconds[i] == 0 && !po_plan_recall(p, i, isa, &p->seconds[i]);
    PO_TRY(read_forms(p, wanted, weight, steps, isa));
    po_plan_remember(p, isa);
    return PO_OK;
}

/* What is not known yet, and worth it, is timed until then. */
static po_status measure(planning *p, double until) {
    enum { ROUNDS = 2 };
    uint32_t isa = po_isa_of_machine();
    for (uint32_t i = 0; i < p->n_forms; i++)
        if (!po_plan_recall(p, i, isa, &p->seconds[i]))
            p->seconds[i] = 0;
    const double *parts = parts_of(p);
    p->until = until;
    for (uint32_t round = 0; round < ROUNDS; round++)
        PO_TRY(read_round(p, round, parts, isa));
    p->unread = p->cut;
    p->until = p->options->until;
    po_plan_remember(p, isa);
    return PO_OK;
}

/* Steps have so much of the time that there is: bands of them have more to gain than the smallest
 * steps, which come last. What they leave is for these. */
static double until_bands(const planning *p) {
    static const double of_steps = 0.6;
    const double until = p->options->until, now = po_now();
    return until > now ? now + of_steps * (until - now) : until;
}

static double held_by(const po_mu *mu) {
    po_mu_cost cost;
    po_mu_cost_of(mu, &cost);
    return (double)cost.device + (double)cost.shared;
}

/* The fastest choice of a step, by readings or by estimates; seconds, 0: there is none. What was
 * read and found wrong is none. */
static double least_of(const planning *p, step *s, bool read, bool measured) {
    double seconds[PO_CHOICES_MAX], held[PO_CHOICES_MAX];
    const bool open = read && p->options->open;
    for (uint32_t k = 0; k < s->n; k++) {
        double known = p->seconds[s->form[k]];
        seconds[k] = read                    ? known
                     : measured && known < 0 ? 0
                                             : po_plan_estimated(p->forms[s->form[k]].mu);
        held[k] = open ? held_by(p->forms[s->form[k]].mu) : 0;
    }
    uint32_t taken = po_worth_taken(seconds, open ? held : NULL, s->n);
    if (taken == PO_NONE)
        return 0;
    s->best = taken;
    return seconds[taken];
}

/* A step for which nothing was found to be right takes its region with it. */
static void choose(planning *p, uint32_t n_plans, bool measured) {
    for (uint32_t i = 0; i < n_plans; i++)
        p->plans[i].unread = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        step *s = &p->steps[i];
        double best = least_of(p, s, measured, measured);
        if (best == 0 && measured && p->unread) { /* not one was read in time */
            best = least_of(p, s, false, true);
            p->plans[s->plan].unread += best > 0;
        }
        if (best == 0)
            p->plans[s->plan].failed =
                po_arena_printf(p->arena, "step '%s' has no schedule that works",
                                p->plans[s->plan].lowered.mu->nodes[s->node].name);
    }
}

/* --- the whole --- */

static double flops_of(po_arena *arena, const po_mu *mu, uint32_t node) {
    double flops = 0;
    for (uint32_t i = mu->nodes[node].first; i != PO_NONE; i = mu->nodes[i].next) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        uint32_t n_kept, n_reduced, *kept, *reduced;
        po_mu_labels_of(mu, s, arena, &n_kept, &kept, &n_reduced, &reduced);
        double times = s->combine == PO_MU_ADD ? (double)s->n_in : 1;
        for (uint32_t k = 0; k < n_kept; k++)
            times *= (double)mu->labels[kept[k]].extent;
        for (uint32_t k = 0; k < n_reduced; k++)
            times *= (double)mu->labels[reduced[k]].extent;
        flops += times;
    }
    return flops;
}

/* The model's value that a step writes. */
static po_value_id made_by(const po_lowered *lowered, uint32_t node) {
    po_naive_step n;
    return po_naive_step_of(lowered->mu, node, &n) ? lowered->value[n.out->tensor] : PO_NONE;
}

void po_plan_schedule(const planning *p, po_arena *arena, uint32_t plan, const uint32_t *choice,
                      const uint32_t *bands, po_schedule *to) {
    po_schedule_start(to, arena, p->plans[plan].lowered.mu, false);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *s = &p->steps[i];
        if (s->plan != plan)
            continue;
        const uint32_t taken = bands ? bands[i] : s->band;
        if (taken == PO_NONE) {
            po_schedule_step(to, s->node, &s->choices[choice ? choice[i] : s->best]);
            continue;
        }
        po_plan_apply_band(to, &p->bands[taken]);
        i += p->bands[taken].b.n - 1;
    }
    po_schedule_finish(to);
}

static void build(planning *p, po_arena *arena, uint32_t plan, bool measured) {
    po_plan *to = &p->plans[plan];
    to->n_steps = 0;
    po_schedule s;
    po_plan_step *rows = NULL;
    uint32_t cap = 0;
    po_plan_schedule(p, arena, plan, NULL, NULL, &s);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const step *st = &p->steps[i];
        po_standalone_step lone;
        if (st->plan != plan)
            continue;
        if (st->band != PO_NONE) {
            const band *b = &p->bands[st->band];
            po_plan_step row = po_plan_row_fusion_row(p, arena, b);
            for (uint32_t k = 0; k < b->b.n; k++)
                row.flops += flops_of(p->scratch, to->lowered.mu, b->b.node[k]);
            row.made = made_by(&to->lowered, b->b.node[b->b.n - 1]);
            row.alone = measured ? po_plan_standalone_band(arena, b, &lone) : NULL;
            row.spread = p->forms[b->form].spread;
            row.estimated = po_plan_estimated_small(p->forms[b->form].mu);
            PO_PUSH(arena, rows, to->n_steps, cap, row);
            i += b->b.n - 1;
            continue;
        }
        const po_choice *choice = &st->choices[st->best];
        po_text text;
        po_text_init(&text, arena);
        choice->how->tell(choice, &text);
        po_plan_step row = {
            .name = to->lowered.mu->nodes[st->node].name,
            .schedule = text.data,
            .flops = flops_of(p->scratch, to->lowered.mu, st->node),
            .bytes = po_plan_traffic(p->scratch, to->lowered.mu, st->node),
            .seconds = measured ? p->seconds[st->form[st->best]] : 0,
            .estimated = po_plan_estimated_small(p->forms[st->form[st->best]].mu),
            .magnifies = po_choice_magnifies(choice),
            .made = made_by(&to->lowered, st->node),
            .alone = measured ? po_plan_standalone(arena, to->lowered.mu, st->node, choice, &lone)
                              : NULL};
        for (uint32_t k = 0; k < st->n && measured; k++)
            row.tried += p->seconds[st->form[k]] > 0;
        PO_PUSH(arena, rows, to->n_steps, cap, row);
    }
    to->mu = s.mu;
    to->packed = s.packed;
    to->n_packed = s.n_packed;
    to->steps = rows;
}

/* Bands that are not what a muGraph can be are no bands. */
static po_status build_checked(planning *p, uint32_t plan, bool measured) {
    build(p, p->arena, plan, measured);
    bool any = false;
    for (uint32_t i = 0; i < p->n_steps; i++)
        any |= p->steps[i].plan == plan && p->steps[i].band != PO_NONE;
    if (!any)
        return PO_OK;
    po_status status = po_mu_check(p->ctx, p->plans[plan].mu, PO_SHARED_BYTES);
    if (status != PO_BAD_INPUT)
        return status;
    po_log(p->ctx, "no bands: %s", p->ctx->error.message);
    po_ctx_clear(p->ctx);
    po_plan_part_row_fusions(p, plan);
    build(p, p->arena, plan, measured);
    return PO_OK;
}

/* Lowers all regions and lists their steps. */
static po_status lower_all(planning *p, const po_graph *graph, const po_regions *regions) {
    for (uint32_t i = 0; i < regions->n; i++) {
        po_plan *plan = &p->plans[i];
        *plan = (po_plan){.region = &regions->regions[i]};
        PO_TRY(po_ctx_poll(p->ctx));
        po_status status =
            po_lower_region(p->ctx, p->arena, graph, &regions->regions[i],
                            po_arena_printf(p->arena, "region%u", i), &plan->lowered);
        if (status == PO_UNSUPPORTED) {
            plan->failed = po_arena_strdup(p->arena, p->ctx->error.message);
            po_ctx_clear(p->ctx);
            continue;
        }
        PO_TRY(status);
        PO_TRY(add_steps(p, i));
    }
    return PO_OK;
}

static planning planning_of(po_ctx *ctx, po_arena *arena, const po_plan_options *options,
                            po_plan *plans) {
    po_arena *scratch = po_arena_child(arena);
    po_arena_own(arena, scratch);
    return (planning){.ctx = ctx,
                      .arena = arena,
                      .scratch = scratch,
                      .options = options,
                      .plans = plans,
                      .last = PO_NEW(scratch, po_step_values *),
                      .known = po_hash_map_create(scratch)};
}

/* Seconds of a choice without timing it. */
static double guess(const planning *p, uint32_t form, const po_scheduler *how, uint32_t isa,
                    bool *unread) {
    double seconds = 0;
    *unread = !p->options->measure || isa >= PO_ISAS || !po_plan_recall(p, form, isa, &seconds);
    return *unread ? po_plan_scaled(p, form, how) : seconds;
}

po_status po_plan_estimate(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                           const po_regions *regions, const po_plan_options *options,
                           po_plan_guess *out) {
    po_plan *plans = PO_NEW_N(arena, po_plan, regions->n);
    planning p = planning_of(ctx, arena, options, plans);
    uint32_t isa = po_isa_of_machine();
    *out = (po_plan_guess){0};
    PO_TRY(lower_all(&p, graph, regions));
    for (uint32_t i = 0; i < regions->n; i++)
        out->n_nodes += plans[i].failed ? regions->regions[i].n_nodes : 0;
    bool *seen = PO_NEW_N(p.scratch, bool, p.n_forms);
    for (uint32_t i = 0; i < p.n_steps; i++) {
        double best = 0;
        for (uint32_t k = 0; k < p.steps[i].n; k++) {
            uint32_t form = p.steps[i].form[k];
            bool unread;
            double seconds = guess(&p, form, p.steps[i].choices[k].how, isa, &unread);
            best = seconds > 0 && (best == 0 || seconds < best) ? seconds : best;
            out->unread += unread && !seen[form];
            seen[form] = true;
        }
        out->seconds += best;
    }
    po_arena_free(p.scratch);
    return PO_OK;
}

/* The search for fused programs has the same time as the readings. */
static po_status search_region(planning *p, po_plan *plan) {
    po_limit limit = po_limit_begin(p->ctx, p->options->until);
    po_status status = po_ctx_poll(p->ctx);
    if (status == PO_OK)
        status = po_search_region(p->ctx, p->arena, p->options, plan);
    p->cut |= po_limit_end(p->ctx, &limit, &status);
    return status;
}

po_status po_plan_regions(po_ctx *ctx, po_arena *arena, const po_graph *graph,
                          const po_regions *regions, const po_plan_options *options,
                          po_plan *plans) {
    planning p = planning_of(ctx, arena, options, plans);
    PO_TRY(lower_all(&p, graph, regions));
    bool measured = options->measure;
    if (measured) {
        po_status status = measure(&p, until_bands(&p));
        p.cut = false;
        if (status == PO_UNSUPPORTED || status == PO_RUNTIME) {
            po_log(ctx, "schedules are estimated: %s", ctx->error.message);
            po_ctx_clear(ctx);
            measured = false;
        } else {
            PO_TRY(status);
        }
    }
    choose(&p, regions->n, measured);
    for (uint32_t i = 0; i < regions->n && measured; i++)
        if (!plans[i].failed) {
            build(&p, p.scratch, i, true);
            PO_TRY(po_plan_candidates(&p, i));
        }
    if (measured)
        PO_TRY(po_plan_row_fusions(&p));
    if (measured && p.unread && !p.cut) {
        PO_TRY(measure(&p, options->until));
        choose(&p, regions->n, measured);
    }
    for (uint32_t i = 0; i < regions->n; i++)
        if (plans[i].lowered.mu) {
            if (!plans[i].failed)
                PO_TRY(build_checked(&p, i, measured));
            if (!plans[i].failed && options->beside && measured && !p.cut)
                PO_TRY(po_plan_read_beside(&p, i));
            if (options->like)
                continue;
            if (!plans[i].failed && options->open) {
                po_plan_add_small(&p, i);
                if (!p.cut)
                    PO_TRY(po_plan_add_wide(&p, i, measured));
            }
            if (!p.cut)
                PO_TRY(search_region(&p, &plans[i]));
        }
    po_arena_free(p.scratch);
    return PO_OK;
}
