/* The trials: each takes a prime and inputs, evaluates both models and compares what comes out, and
 * what integers pick and choose. There are as many as make the chance of a missed difference less
 * than 2^-20. */
#include "verify/proof/internal.h"
#include "verify/sizes/sizes.h"

#include <math.h>
#include <stdio.h>

enum { DEFAULT_TRIALS = 2, MOST_SIZES = 3 };
/* Seconds for float64 where residues differ. */
static const double seconds_in_floats = 5;
/* log2 of the chance of a missed difference that counts as a proof; trials with other primes may
 * give a little less than the first. */
static const double LEAST_BOUND = -20, OF_TRIALS = 0.5;

typedef struct proof {
    po_ctx *ctx;
    const po_graph *original, *candidate, *recipes;
    const po_proof_options *options;
    po_inputs *plan;
    double cpu_start;
    bool late;       /* the last trial had not enough of it */
    po_sizes *every; /* shown for every size from this trial on; NULL: it is not asked for */
    po_proof_report *report;
} proof;

__attribute__((format(printf, 2, 3))) static void say(proof *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(p->report->why, sizeof p->report->why, format, args);
    va_end(args);
}

/* --- inputs --- */

static po_status make_input(po_prun *run, const char *name, const po_datum *datum,
                            po_ptensor **out) {
    const po_tensor *t = datum->tensor;
    if (datum->kind != PO_TYPE_TENSOR || !t)
        return po_pfail(run, "input '%.100s' is not a tensor", name);
    if (po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT) {
        *out = po_pt_residues(run, t->dtype, t->rank, t->dims);
        uint64_t key = po_pf_key(run, name) ^ 0x696e707574;
        for (int64_t i = 0; i < t->count; i++)
            (*out)->mod[i] = po_pf(run->field, key, (uint64_t)i);
        (*out)->bound = po_pb_symbol(run);
        return PO_OK;
    }
    po_array *a;
    po_status status = po_array_from_tensor(run->ctx, run->arena, t, &a);
    if (status == PO_UNSUPPORTED)
        return po_pfail(run, "input '%.100s' has an element type that is not modelled", name);
    PO_TRY(status);
    *out = po_pt_known(run, a);
    (*out)->drawn = true;
    if (!a->i)
        return PO_OK;
    uint64_t key = po_pf_key(run, name) ^ 0x64726177;
    (*out)->mod = PO_NEW_N((*out)->arena, uint32_t, a->count);
    for (int64_t i = 0; i < a->count; i++)
        (*out)->mod[i] = po_pf(run->field, key, (uint64_t)i);
    (*out)->bound = po_pb_symbol(run);
    return PO_OK;
}

static po_status make_inputs(proof *p, po_prun *run, uint32_t size, po_pnamed **in,
                             uint32_t *n_in) {
    po_feed feed;
    po_status status =
        po_inputs_make(p->ctx, run->arena, p->plan, size, PO_INPUTS_NORMAL, run->seed, &feed);
    if (status == PO_UNSUPPORTED) {
        po_pfail(run, "no inputs could be made: %.300s", p->ctx->error.message);
        po_ctx_clear(p->ctx);
    }
    PO_TRY(status);
    *in = PO_NEW_N(run->arena, po_pnamed, feed.n);
    for (uint32_t k = 0; k < feed.n; k++) {
        (*in)[k].name = feed.names[k];
        PO_TRY(make_input(run, feed.names[k], &feed.data[k], &(*in)[k].tensor));
        *n_in = k + 1;
    }
    return PO_OK;
}

/* --- recipes --- */

typedef struct constants {
    po_map *at;
    const po_tensor **tensors;
    uint32_t n, cap;
    po_arena *arena;
} constants;

static po_status add_constants(po_ctx *ctx, po_graph *graph, void *user) {
    constants *c = user;
    (void)ctx;
    for (po_value_id v = 0; v < graph->n_values; v++) {
        if (!graph->values[v].constant)
            continue;
        po_map_put(c->at, graph->values[v].name, c->n);
        PO_PUSH(c->arena, c->tensors, c->n, c->cap, graph->values[v].constant);
    }
    return PO_OK;
}

static po_status constants_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, constants *c) {
    *c = (constants){.at = po_map_create(arena), .arena = arena};
    return po_graph_walk(ctx, (po_graph *)(uintptr_t)graph, add_constants, c);
}

/* A derived constant: residues by its recipe, contents as they are stored. */
static po_status derived(po_prun *run, const constants *stored, const char *name, po_ptensor *made,
                         po_ptensor **out) {
    enum { MOST_KNOWN = 1 << 16 };
    uint32_t k = po_map_get(stored->at, name);
    const po_tensor *t = k == PO_NONE ? NULL : stored->tensors[k];
    bool fits = t && po_pt_mod(made) && t->rank == made->rank;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = t->dims[i] == made->dims[i];
    if (!fits)
        return po_pfail(run, "the recipe of '%.100s' does not fit a constant of the model", name);
    *out = po_pt_view(run, made, t->dtype, t->rank, t->dims);
    (*out)->bound.size.degree = fmax(1, made->bound.size.degree);
    (*out)->constant = true;
    if (t->count > MOST_KNOWN)
        return PO_OK;
    po_array *a;
    PO_TRY(po_array_from_tensor(run->ctx, (*out)->arena, t, &a));
    (*out)->known = a;
    return PO_OK;
}

static po_status run_recipes(proof *p, po_prun *run, po_pgraph_spec *spec, po_pnamed *made) {
    const po_graph *g = p->recipes;
    constants sources, stored;
    PO_TRY(constants_of(p->ctx, run->arena, p->original, &sources));
    PO_TRY(constants_of(p->ctx, run->arena, p->candidate, &stored));
    po_pnamed *in = PO_NEW_N(run->arena, po_pnamed, g->n_inputs);
    po_ptensor **out = PO_NEW_N(run->arena, po_ptensor *, g->n_outputs);
    po_status status = PO_OK;
    for (uint32_t k = 0; k < g->n_inputs && status == PO_OK; k++) {
        in[k].name = g->values[g->inputs[k]].name;
        uint32_t i = po_map_get(sources.at, in[k].name);
        status = i == PO_NONE
                     ? po_pfail(run, "a recipe takes '%.100s', which is no constant", in[k].name)
                     : po_pt_constant(run, sources.tensors[i], &in[k].tensor);
    }
    run->recipes = true;
    if (status == PO_OK)
        status =
            po_prun_graph(run, &(po_pgraph_spec){.graph = g, .in = in, .n_in = g->n_inputs}, out);
    run->recipes = false;
    po_map *at = po_map_create(run->arena);
    for (uint32_t k = 0; k < g->n_outputs && status == PO_OK; k++) {
        made[k].name = g->values[g->outputs[k]].name;
        status = derived(run, &stored, made[k].name, out[k], &made[k].tensor);
        po_map_put(at, made[k].name, k);
    }
    for (uint32_t k = 0; k < g->n_inputs; k++)
        po_pt_drop(in[k].tensor);
    for (uint32_t k = 0; k < g->n_outputs; k++)
        po_pt_drop(out[k]);
    spec->constant_at = at;
    spec->constants = made;
    return status;
}

/* --- a trial --- */

static bool same_strings(po_ptensor *a, po_ptensor *b) {
    if (!po_hash_equal(po_pt_print(a), po_pt_print(b)) || !a->known || !b->known || !a->known->s ||
        !b->known->s)
        return false;
    for (int64_t i = 0; i < a->count; i++) {
        po_bytes x = a->known->s[i], y = b->known->s[i];
        if (x.size != y.size || memcmp(x.data, y.data, x.size) != 0)
            return false;
    }
    return true;
}

/* A function that stands in one model only, and that the proof knows no laws of, explains a
 * difference: NULL, or its name. */
static const char *one_sided(const po_prun *run) {
    for (uint32_t i = 0; i < run->n_opaque; i++)
        if (!run->opaque[i].n[0] != !run->opaque[i].n[1])
            return run->opaque[i].op_type;
    return NULL;
}

static bool same_output(proof *p, const po_prun *run, const char *name, const char *set,
                        po_ptensor *a, po_ptensor *b) {
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    p->report->differ = PO_DIFFER_CERTAIN;
    if (!same) {
        say(p, "output '%.80s' has another type or shape (%.80s)", name, set);
        return false;
    }
    const uint32_t *x = po_pt_mod(a), *y = po_pt_mod(b);
    int64_t i = 0;
    while (x && y && i < a->count && x[i] == y[i])
        i++;
    if (x && y ? i < a->count : !same_strings(a, b)) {
        const char *op = one_sided(run);
        p->report->differ = x && y ? PO_DIFFER_UNEXPLAINED : PO_DIFFER_NOT;
        if (op)
            say(p, "%.40s stands in one model only, and the proof does not look into it", op);
        else
            say(p, "output '%.80s'[%lld] differs modulo p (%.80s)", name, (long long)i, set);
        return false;
    }
    p->report->differ = PO_DIFFER_NOT;
    p->report->elements += a->count;
    return true;
}

static po_status run_trial(proof *p, po_prun *run, uint32_t size, bool *equal, bool *refused) {
    const po_graph *a = p->original, *b = p->candidate;
    uint32_t n_made = p->recipes ? p->recipes->n_outputs : 0, n_in = 0;
    po_pnamed *in = NULL, *made = PO_NEW_N(run->arena, po_pnamed, n_made);
    po_ptensor **x = PO_NEW_N(run->arena, po_ptensor *, a->n_outputs);
    po_ptensor **y = PO_NEW_N(run->arena, po_ptensor *, b->n_outputs);
    po_status status = make_inputs(p, run, size, &in, &n_in);
    po_pgraph_spec spec = {.graph = a, .in = in, .n_in = n_in};
    if (p->every)
        po_sizes_record(p->every, 0, &spec);
    if (status == PO_OK)
        status = po_prun_graph(run, &spec, x);
    *refused = status == PO_UNSUPPORTED && run->refused; /* by the original */
    po_hash tables = run->table_sum, choices = run->choice_sum;
    run->tables = po_hash_map_create(run->arena);
    run->choices = po_hash_map_create(run->arena);
    run->table_sum = run->choice_sum = (po_hash){0, 0};
    run->randoms = 0;
    spec.graph = b;
    if (p->every)
        po_sizes_record(p->every, 1, &spec);
    run->side = 1;
    if (status == PO_OK && p->recipes)
        status = run_recipes(p, run, &spec, made);
    if (status == PO_OK)
        status = po_prun_graph(run, &spec, y);
    const char *set = po_inputs_describe(run->arena, p->plan, size, PO_INPUTS_NORMAL);
    *equal = status == PO_OK;
    for (uint32_t k = 0; k < a->n_outputs && *equal; k++)
        *equal = same_output(p, run, a->values[a->outputs[k]].name, set, x[k], y[k]);
    bool certain = false;
    if (status == PO_OK && p->report->differ == PO_DIFFER_UNEXPLAINED)
        status = po_proof_certain(run, a, b, p->recipes, &certain);
    if (certain)
        p->report->differ = PO_DIFFER_CERTAIN;
    if (*equal && !po_hash_equal(tables, run->table_sum)) {
        *equal = false;
        say(p, "a table that integer inputs pick rows of is not the same");
    }
    if (*equal && !po_hash_equal(choices, run->choice_sum)) {
        *equal = false;
        say(p, "what integer inputs or lengths choose is not the same: only drawn ones were tried");
    }
    if (*equal && status == PO_OK && p->every)
        status = po_sizes_find(p->every, run, &spec);
    for (uint32_t k = 0; k < a->n_outputs; k++) {
        po_pt_drop(x[k]);
        po_pt_drop(y[k]);
    }
    for (uint32_t k = 0; k < n_made; k++)
        po_pt_drop(made[k].tensor);
    for (uint32_t k = 0; k < n_in; k++)
        po_pt_drop(in[k].tensor);
    return status;
}

/* Once parts of both models are found that show every size, they alone are evaluated. */
static po_status run_parts(proof *p, po_prun *run, bool *equal) {
    const uint32_t n_made = p->recipes ? p->recipes->n_outputs : 0;
    po_pnamed *made = PO_NEW_N(run->arena, po_pnamed, n_made);
    po_pgraph_spec spec = {.graph = p->candidate};
    po_status status = PO_OK;
    run->side = 1;
    if (p->recipes)
        status = run_recipes(p, run, &spec, made);
    if (status == PO_OK)
        status = po_sizes_again(p->every, run, &spec);
    *equal = status == PO_OK;
    for (uint32_t k = 0; k < n_made; k++)
        po_pt_drop(made[k].tensor);
    return status;
}

/* A difference survives a trial only where, at one of the functions or outputs, two different
 * quotients agree at the random point, or the random function gives two arguments one value; or
 * where the prime divides all by which two quotients over the fractions differ. */
static double log2_missed(const po_prun *run) {
    double points = run->chances / run->field.p;
    double bound = log2(points + run->factors * exp2(-PO_FIELD_LOG2_PRIMES));
    return bound < 0 ? bound : 0;
}

static po_status one_trial(proof *p, uint32_t trial, uint32_t size, bool *equal, bool *refused,
                           double *missed) {
    po_arena *arena = po_arena_create(p->ctx);
    uint32_t *powers = PO_NEW_N(arena, uint32_t, PO_PF_POWERS);
    po_field field = po_field_of(p->report->primes[trial]);
    po_pf_powers(field, powers);
    po_prun run = {.ctx = p->ctx,
                   .arena = arena,
                   .field = field,
                   .fractions = po_pc_fractions(field),
                   .seed = po_random_u64(p->report->seed, 0x70726f6f66, trial * 64 + size),
                   .reuse = po_hash_map_create(arena),
                   .tables = po_hash_map_create(arena),
                   .choices = po_hash_map_create(arena),
                   .open = po_inputs_sizes(p->plan) > 1,
                   .poles = po_hash_map_create(arena),
                   .powers = powers,
                   .degree = 1};
    if (p->options->cpu_seconds > 0)
        run.cpu_end = p->cpu_start + p->options->cpu_seconds;
    po_status status = p->every && po_sizes_found(p->every)
                           ? run_parts(p, &run, equal)
                           : run_trial(p, &run, size, equal, refused);
    po_prun_forget(&run);
    p->late = run.late;
    p->report->degree = fmax(p->report->degree, run.degree);
    p->report->nodes += run.nodes;
    p->report->reused += run.reused;
    *missed = log2_missed(&run);
    if (status == PO_UNSUPPORTED) {
        po_ctx_clear(p->ctx);
        say(p, "%s", run.why[0] ? run.why : "a part of the model cannot be evaluated modulo p");
        status = PO_OK;
    }
    po_arena_free(arena);
    return status;
}

static bool same_interface(proof *p) {
    const po_graph *a = p->original, *b = p->candidate;
    bool same = a->n_outputs == b->n_outputs;
    for (uint32_t k = 0; same && k < a->n_outputs; k++)
        same = strcmp(a->values[a->outputs[k]].name, b->values[b->outputs[k]].name) == 0;
    p->report->differ = same ? PO_DIFFER_NOT : PO_DIFFER_CERTAIN;
    if (!same)
        say(p, "the models' outputs are not the same");
    return same;
}

po_status po_proof_draw(po_ctx *ctx, const po_proof_options *options, po_proof_report *r) {
    r->seed = options->seed;
    if (r->seed == 0)
        return po_field_draw(ctx, PO_PROOF_TRIALS, r->primes, &r->seed);
    for (uint32_t i = 0, at = 0; i < PO_PROOF_TRIALS; at++) {
        r->primes[i] = 1u << 30 | (uint32_t)(po_random_u64(r->seed, 0x7072696d65, at) >> 34) | 1;
        i += po_field_is_prime(r->primes[i]);
    }
    return PO_OK;
}

/* With one sample in each batch assignments may be alike. */
static bool was_tried(const po_inputs *plan, uint32_t size) {
    for (uint32_t i = 0; i < size; i++)
        if (po_inputs_alike(plan, i | PO_ONE_SAMPLE, size | PO_ONE_SAMPLE))
            return true;
    return false;
}

/* Trials more, until a missed difference is as unlikely, in which parts of both models are
 * evaluated besides. *done: the original takes the lengths. */
static po_status every_at(proof *p, po_arena *arena, uint32_t size, bool *done) {
    bool equal = true, refused = false, hold = true;
    double sum = 0;
    po_spacing spacing = {1, false};
    po_status status = PO_OK;
    uint32_t trial = 0;
    p->every = po_sizes_create(p->ctx, arena, p->plan, size, p->original, p->candidate);
    for (; trial < PO_PROOF_TRIALS && hold && status == PO_OK; trial++) {
        double missed = 0;
        if (trial > 1 && sum < LEAST_BOUND)
            break;
        status = one_trial(p, trial, size, &equal, &refused, &missed);
        sum += missed;
        hold = equal && po_sizes_hold(p->every, &spacing);
    }
    *done = !refused;
    if (status == PO_OK && hold && sum < LEAST_BOUND) {
        p->report->every_size = true;
        p->report->spaced = (int32_t)spacing.spaced;
        p->report->positive = spacing.positive;
        p->report->log2_bound = sum;
        p->report->trials = trial;
    }
    po_sizes_free(p->every);
    p->every = NULL;
    return status;
}

/* Once it is proved at a first size: where every size is shown no other is tried. At the largest of
 * those that there are to try and that the original takes; one_sample: what differs in its batches
 * alone is none of its own. What is known without it stays. */
static po_status prove_every(proof *p, uint32_t first, bool one_sample) {
    const uint32_t sizes = po_inputs_sizes(p->plan);
    const uint32_t end = first >= MOST_SIZES ? first + 1 : sizes < MOST_SIZES ? sizes : MOST_SIZES;
    po_proof_report kept = *p->report;
    po_arena *arena = po_arena_create(p->ctx);
    po_status status = PO_OK;
    bool done = false;
    for (uint32_t i = end; i-- > first && !done && status == PO_OK;)
        if ((!one_sample || !was_tried(p->plan, i)) &&
            po_inputs_fit(p->ctx, p->plan, p->original, i))
            status = every_at(p, arena, i, &done);
    po_arena_free(arena);
    if (p->report->every_size) {
        kept.every_size = true;
        kept.spaced = p->report->spaced;
        kept.positive = p->report->positive;
        kept.log2_bound = fmax(kept.log2_bound, p->report->log2_bound);
        kept.trials = kept.trials > p->report->trials ? kept.trials : p->report->trials;
        kept.elements = p->report->elements;
    }
    kept.degree = p->report->degree;
    kept.nodes = p->report->nodes;
    kept.reused = p->report->reused;
    *p->report = kept;
    return status;
}

/* What was proved at some sizes stands where there was no time for more of them. */
static bool is_over(const proof *p) {
    return p->report->sizes > 0 && p->late;
}

static po_status prove(proof *p) {
    po_proof_report *r = p->report;
    po_arena *arena = po_arena_create(p->ctx);
    PO_TRY(po_inputs_plan(p->ctx, arena, p->original, p->candidate, &p->plan));
    r->trials = p->options->trials ? p->options->trials : DEFAULT_TRIALS;
    bool equal = same_interface(p);
    double worst = -INFINITY;
    bool all = equal;
    uint32_t sizes = po_inputs_sizes(p->plan);
    for (uint32_t size = 0; size < sizes && equal && (size < MOST_SIZES || r->sizes == 0); size++) {
        bool any = false;
        if (sizes > 1 && !po_inputs_fit(p->ctx, p->plan, p->original, size))
            continue;
        if (all)
            PO_TRY(po_proof_any_batch(p->ctx, p->plan, size, p->original, p->candidate, &any));
        const uint32_t tried = any ? size | PO_ONE_SAMPLE : size;
        if (any && was_tried(p->plan, size))
            continue;
        double sum = 0, missed = 0;
        bool refused = false;
        for (uint32_t trial = 0; trial < r->trials && equal; trial++) {
            PO_TRY(one_trial(p, trial, tried, &equal, &refused, &missed));
            sum += missed;
            if (trial > 0 || !equal)
                continue;
            if (missed * PO_PROOF_TRIALS > LEAST_BOUND)
                break; /* more trials would not do; a difference would have shown by now */
            if (!p->options->trials)
                while (missed * r->trials > LEAST_BOUND - OF_TRIALS && r->trials < PO_PROOF_TRIALS)
                    r->trials++;
        }
        /* Lengths that the original itself does not take say nothing of the candidate. */
        equal = equal || refused;
        if (!equal && is_over(p)) {
            equal = true;
            break;
        }
        if (refused)
            continue;
        worst = fmax(worst, sum);
        all = all && any;
        r->log2_bound = worst;
        if (r->sizes++ == 0 && sizes > 1 && worst < LEAST_BOUND)
            PO_TRY(prove_every(p, size, any));
        worst = r->log2_bound;
        if (r->every_size)
            break;
    }
    if (r->differ == PO_DIFFER_UNEXPLAINED)
        PO_TRY(po_disprove(p->ctx, p->plan, p->original, p->candidate, seconds_in_floats, r));
    equal = equal && r->sizes > 0;
    r->log2_bound = equal ? worst : 0;
    r->proved = equal && worst < LEAST_BOUND;
    r->any_batch = r->proved && (all || r->every_size);
    if (r->proved)
        r->why[0] = '\0';
    if (equal && !r->proved)
        say(p, "the bound on a missed difference is no better than 2^%.0f", worst);
    po_arena_free(arena);
    return PO_OK;
}

po_status po_proof_of(po_ctx *ctx, const po_graph *original, const po_graph *candidate,
                      const po_graph *recipes, const po_proof_options *options, double cpu_start,
                      po_proof_report *report) {
    proof p = {.ctx = ctx,
               .original = original,
               .candidate = candidate,
               .recipes = recipes,
               .options = options,
               .cpu_start = cpu_start,
               .report = report};
    return prove(&p);
}
