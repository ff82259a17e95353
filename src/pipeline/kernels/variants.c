/* Forms of the model for kernels: combinations of families of identities, of which the chooser
 * knows the costs by estimates; the best are planned. */
#include "pipeline/kernels/variants.h"

#include "cost/kernels.h"
#include "cost/roofline.h"
#include "ops/samples.h"
#include "pipeline/choose/chooser.h"
#include "pipeline/kernels/one_sample.h"
#include "pipeline/kernels/open_regions.h"
#include "pipeline/kernels/stage.h"
#include "pipeline/open_batch.h"
#include "postopt/postopt.h"

#include <math.h>

/* Estimates are off by this much either way: what promises less is not read. */
static const double worth_reading = 0.98, as_good = 1.05, a_gain = 1.005, a_lead = 0.995;

/* A family of identities that loses by estimate may gain beside another: all are looked at. */
static const double any = 1e9;

enum { MOST_ESTIMATES = 34, WITH_MUTANTS = 40, BEAM = 2, MOST_READ = 2 };

/* What forms are made of. */
enum { MODEL, MUTATED, BASES };

/* As in po_kernel_variant. */
typedef struct kernel_form {
    const po_graph *graph;
    po_graph *made; /* what postopt made: the same, or with its batch open */
    const int8_t *axis;
    po_open_sizes *sizes;
    const po_delivered *delivered; /* in whose regions' places it is, for one sample; NULL */
} kernel_form;

/* A form that was estimated. */
typedef struct guessed {
    uint32_t algebra;
    bool mutants;
    bool outside;     /* it leaves more to the runtime than the plain form does */
    kernel_form form; /* graph NULL: one that was there already, or cannot be lowered as far */
    double seconds, magnifies;
    uint32_t unread;
} guessed;

typedef struct choosing {
    const po_run *run;
    po_search *search; /* NULL: without mutants */
    po_ctx *ctx;
    po_arena *arena;
    const po_plan_options *options;
    const po_graph *original;
    const po_delivered *delivered; /* the plain form, where samples are apart in it; NULL */
    const po_graph
        *from[BASES];         /* before folding, without and with mutants; NULL: there are none */
    const po_graph *like;     /* po_kernel_variants */
    po_open_samples *samples; /* where more is open than the batch */
    uint32_t used;            /* families that change anything */
    uint32_t outside;         /* of the plain form */
    guessed all[PO_CHOOSER_STATES];
    uint32_t n;
    po_chooser *chooser; /* choices are families; number: of `all` */
} choosing;

/* By the number of their bit. */
static const char *const families[] = {
    "composed products",
    "transposed convolutions as products",
    "upsampling unfolded",
    "gates in weights",
    "3-D convolutions by frames",
    "1-D convolutions as planes",
    "Toom-Cook along rows",
    "products over channels",
    "channels padded",
    "outputs split",
    "Toom-Cook in phases",
    "differences of upsampled maps",
    "interpolated maps smoothed behind",
};
enum { FAMILIES = sizeof families / sizeof families[0] };
/* Tokens stay as they are: a kernel keeps what it likes in blocks. */
enum { OF_KERNELS = PO_ALGEBRA_ALL & ~PO_ALGEBRA_TOKENS };
_Static_assert(OF_KERNELS == (1 << FAMILIES) - 1, "families are po_algebra bits");

static const char *name_of(po_arena *arena, uint32_t algebra, bool mutants) {
    const char *text = mutants ? "mutants, affine maps folded" : "affine maps folded";
    for (size_t i = 0; i < FAMILIES; i++)
        if (algebra >> i & 1)
            text = po_arena_printf(arena, "%s, %s", text, families[i]);
    return text;
}

static void form_free(kernel_form *form) {
    if (form->sizes)
        po_open_sizes_free(form->sizes);
    else if (form->graph != form->made)
        po_graph_free(form->graph);
    po_graph_free(form->made);
    *form = (kernel_form){0};
}

/* Forms are made at sizes of their own: what they take is compared at the one that is meant. */
static double at_the_meant(const kernel_form *form) {
    return form->sizes ? form->sizes->meant : 1;
}

/* Where more is open than the batch: at one size. */
static po_status open_form(const choosing *c, kernel_form *form) {
    po_open_sizes *sizes = PO_NEW(c->arena, po_open_sizes);
    PO_TRY(po_open_sizes_find(c->run, c->arena, form->made, c->samples, sizes));
    form->graph = sizes->here;
    form->axis = sizes->axis;
    form->sizes = sizes;
    return PO_OK;
}

/* Families that hold for one sample alone. */
enum { OF_ONE_SAMPLE = PO_ALGEBRA_GATES };

/* The form of one sample. Laws that compare lengths see those that are the same wherever the model
 * runs where its heights and widths are whole periods: what they make of it is proved at others. */
static po_status make_of_one(const choosing *c, const po_graph *from,
                             const po_postopt_options *options, po_graph **out,
                             po_postopt_counts *counts) {
    po_ctx *ctx = c->run->ctx;
    const po_delivered *d = c->delivered;
    po_graph *open = po_graph_clone(ctx, from), *whole = NULL, *made = NULL;
    po_status status = c->like ? po_samples_open(ctx, open, c->like, PO_SAMPLES) : PO_OK;
    if (status == PO_OK) {
        whole = po_one_sample(ctx, open, d->named, d->conditions ? PO_OPEN_PERIOD : 1);
        status = po_postopt(ctx, whole, options, &made, counts);
    }
    if (status == PO_OK)
        *out = po_one_sample(ctx, made, d->named, 1);
    po_graph_free(made);
    po_graph_free(whole);
    po_graph_free(open);
    return status;
}

/* Affine maps and batch norms in the weights, these families of identities, and nothing of what
 * only this runtime likes. */
static po_status fold(const choosing *c, const po_graph *from, uint32_t algebra, kernel_form *out,
                      po_postopt_counts *counts) {
    const bool of_one = c->delivered && (algebra & OF_ONE_SAMPLE);
    po_postopt_options options = po_postopt_plain(algebra);
    options.cubic = options.lone_norms = true;
    *out = (kernel_form){0};
    PO_TRY(of_one ? make_of_one(c, from, &options, &out->made, counts)
                  : po_postopt(c->ctx, from, &options, &out->made, counts));
    po_run_hold(c->run, out->made);
    out->graph = out->made;
    if (!c->like || of_one) {
        PO_TRY(po_infer_graph(c->ctx, out->made, true));
        if (po_batch_has_open_dims(out->made))
            PO_TRY(open_form(c, out));
        if (of_one) {
            out->delivered = c->delivered;
            out->axis = po_one_sample_axes(c->arena, out->made, c->delivered);
        }
        if (of_one && out->sizes)
            out->sizes->axis = out->axis;
        return PO_OK;
    }
    int8_t *axis;
    PO_TRY(po_samples_open(c->ctx, out->made, c->like, PO_SAMPLES));
    PO_TRY(po_samples_apart_values(c->ctx, c->arena, out->made, &axis));
    out->axis = axis;
    return po_batch_pinned(c->run, out->made, 1, &out->graph);
}

/* A region's program and ports, for all sizes where that is asked for. */
static po_status open_region(const po_run *run, po_arena *arena, po_kernel_variant *p, uint32_t i) {
    const po_region *r = &p->regions.regions[i];
    PO_TRY(po_open_ports(run->ctx, arena, p->graph, p->axis, r, &p->ports[i]));
    p->programs[i] = po_mu_closed(arena, p->plans[i].mu);
    if (!p->sizes)
        return PO_OK;
    PO_TRY(po_open_sizes_region(run, arena, p->sizes, r, p->plans[i].mu, p->plans[i].lowered.mu,
                                &p->programs[i], &p->ports[i]));
    return po_kernel_others_of(run, arena, p->sizes, &p->plans[i], p->programs[i], &p->ports[i],
                               &p->others[i]);
}

/* What cannot be opened has failed. */
static po_status open_all(const po_run *run, po_arena *arena, po_open_sizes *sizes,
                          po_kernel_variant *p) {
    p->programs = PO_NEW_N(arena, const po_mu_open *, p->regions.n + 1);
    p->ports = PO_NEW_N(arena, po_kernel_ports, p->regions.n + 1);
    p->others = PO_NEW_N(arena, po_kernel_others, p->regions.n + 1);
    p->batched = PO_NEW_N(arena, const po_kernel_batched *, p->regions.n + 1);
    po_status status = sizes ? po_open_sizes_larger(run, sizes) : PO_OK;
    for (uint32_t i = 0; i < p->regions.n && status == PO_OK; i++) {
        po_plan *plan = &p->plans[i];
        if (plan->failed)
            continue;
        status = open_region(run, arena, p, i);
        if (status != PO_OK)
            status = po_kernel_stage_drop(run, status, &plan->failed);
    }
    if (sizes)
        po_open_sizes_larger_free(sizes);
    return status;
}

static po_status plan_form(const choosing *c, const kernel_form *form,
                           const po_plan_options *options, po_kernel_variant *p) {
    const po_run *run = c->run;
    po_arena *arena = c->arena;
    const po_graph *graph = form->graph;
    p->graph = graph;
    p->open = form->made == graph ? NULL : form->made;
    p->axis = form->axis;
    p->sizes = form->sizes;
    PO_TRY(po_open_regions_that_fit(run, arena, graph, form->axis, form->sizes, &p->regions));
    if (form->delivered) {
        po_regions *there = PO_NEW(arena, po_regions);
        PO_TRY(
            po_one_sample_regions(c->ctx, arena, form->made, &p->regions, form->delivered, there));
        p->open = form->delivered->graph;
        p->there = there;
    }
    p->plans = PO_NEW_N(arena, po_plan, p->regions.n);
    po_log(run->ctx, "%s: %u regions with %u of %u nodes", p->name, p->regions.n,
           p->regions.n_nodes, graph->n_live);
    po_plan_options here = *options;
    here.open = form->sizes ? &form->sizes->plan : NULL;
    PO_TRY(po_plan_regions(run->ctx, arena, graph, &p->regions, &here, p->plans));
    PO_TRY(open_all(run, arena, form->sizes, p));
    p->outside = graph->n_live - p->regions.n_nodes;
    p->unread = 0;
    p->seconds = 0;
    bool read = true;
    for (uint32_t i = 0; i < p->regions.n; i++) {
        const po_plan *plan = &p->plans[i];
        p->outside += plan->failed ? plan->region->n_nodes : 0;
        p->unread += plan->unread;
        for (uint32_t k = 0; k < plan->n_steps; k++) {
            p->seconds += plan->steps[k].seconds * at_the_meant(form);
            p->magnifies = fmax(p->magnifies, plan->steps[k].magnifies);
            read &= plan->steps[k].seconds > 0;
        }
    }
    if (read)
        return PO_OK;
    po_arena *scratch = po_arena_child(arena);
    po_plan_guess guess;
    PO_TRY(po_plan_estimate(run->ctx, scratch, graph, &p->regions, &here, &guess));
    p->seconds = guess.seconds * at_the_meant(form);
    po_arena_free(scratch);
    return PO_OK;
}

/* --- estimates --- */

static bool is_known(const choosing *c, const po_graph *graph) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->all[i].form.graph && po_graph_equal(c->all[i].form.graph, graph))
            return true;
    return false;
}

static po_status estimate(choosing *c, guessed *g) {
    po_regions regions;
    po_plan_guess guess;
    po_arena *scratch = po_arena_child(c->arena);
    const po_graph *graph = g->form.graph;
    PO_TRY(po_open_regions(c->ctx, scratch, graph, g->form.axis, NULL, &regions));
    po_plan_options options = *c->options;
    options.open = g->form.sizes ? &g->form.sizes->plan : NULL;
    PO_TRY(po_plan_estimate(c->ctx, scratch, graph, &regions, &options, &guess));
    uint32_t outside = graph->n_live - regions.n_nodes + guess.n_nodes;
    po_arena_free(scratch);
    g->seconds = guess.seconds * at_the_meant(&g->form);
    g->unread = guess.unread;
    g->outside = outside > c->outside || guess.n_nodes > 0;
    if (g->outside)
        form_free(&g->form);
    return PO_OK;
}

/* What the families make of rounding, at most. */
static double magnified(const po_postopt_counts *counts) {
    double most = 0;
    for (uint32_t i = 0; i < PO_ALGEBRAS; i++)
        most = fmax(most, counts->magnifies[i]);
    return most;
}

/* The form with these families, estimated. */
static po_status look_at(choosing *c, po_combination *form) {
    po_postopt_counts counts;
    double most = c->options->magnifies;
    guessed g = {.algebra = (uint32_t)form->choices, .mutants = form->base == MUTATED};
    PO_TRY(po_ctx_poll(c->ctx));
    po_status status = fold(c, c->from[form->base], g.algebra, &g.form, &counts);
    if (po_search_drops(c->ctx, status)) {
        g.form = (kernel_form){0};
    } else {
        PO_TRY(status);
        g.magnifies = magnified(&counts);
        if (is_known(c, g.form.graph) || (most > 0 && g.magnifies > most))
            form_free(&g.form);
        else
            PO_TRY(estimate(c, &g));
    }
    if (g.form.graph)
        po_log(c->ctx, "%.3f ms estimated, %u schedules unread: %s", 1000 * g.seconds, g.unread,
               name_of(c->arena, g.algebra, g.mutants));
    form->number = c->n;
    c->all[c->n++] = g;
    return PO_OK;
}

/* Of what cannot be made, has nothing of its own, or has more nodes without kernels, there is no
 * cost. */
static po_status price(void *user, po_combination *const *batch, uint32_t n) {
    choosing *c = user;
    for (uint32_t i = 0; i < n; i++) {
        if (batch[i]->number == PO_NONE)
            PO_TRY(look_at(c, batch[i]));
        const guessed *g = &c->all[batch[i]->number];
        batch[i]->cost = g->form.graph ? g->seconds : 0;
        batch[i]->open = c->used;
    }
    return PO_OK;
}

/* The form with the least estimate that was not taken out; PO_NONE: none below the limit. */
static uint32_t most_promising(const choosing *c, double limit) {
    uint32_t best = PO_NONE;
    for (uint32_t i = 1; i < c->n; i++)
        if (c->all[i].form.graph && c->all[i].seconds < limit &&
            (best == PO_NONE || c->all[i].seconds < c->all[best].seconds))
            best = i;
    return best;
}

/* --- the whole --- */

/* From all families at once what gains only beside others is found. Where that leaves something to
 * the runtime it is no place to begin: all but those do that leave something by themselves. */
static po_status without_what_fails(choosing *c) {
    const po_combination *all = po_chooser_find(c->chooser, MODEL, c->used);
    po_choices fail = 0;
    if (!all || all->number == PO_NONE || !c->all[all->number].outside)
        return PO_OK;
    for (uint32_t k = 0; k < FAMILIES; k++) {
        const po_combination *one = po_chooser_find(c->chooser, MODEL, PO_CHOICE(k));
        fail |= one && one->number != PO_NONE && c->all[one->number].outside ? PO_CHOICE(k) : 0;
    }
    po_chooser_add(c->chooser, MODEL, c->used & ~fail);
    return po_chooser_run(c->chooser);
}

/* From the form with no families, which was read, and that with all of them that change anything.
 */
static po_status look_further(choosing *c) {
    kernel_form probe;
    po_postopt_counts counts;
    const po_chooser_rules rules = {.bases = 1u << MODEL,
                                    .n_choices = FAMILIES,
                                    .beam = BEAM,
                                    .most = MOST_ESTIMATES,
                                    .gain = a_gain,
                                    .hopeless = any,
                                    .price = price,
                                    .user = c};
    const uint32_t all =
        po_run_skips(c->run, "partly") ? OF_KERNELS & ~po_postopt_partly() : (uint32_t)OF_KERNELS;
    po_status status = fold(c, c->from[MODEL], all, &probe, &counts);
    if (po_search_drops(c->ctx, status))
        return PO_OK; /* some of them hold for PO_SAMPLES alone */
    PO_TRY(status);
    c->used = counts.used & all;
    form_free(&probe);
    c->chooser = po_chooser_create(c->ctx, c->arena, &rules);
    po_chooser_add(c->chooser, MODEL, 0)->number = 0;
    po_chooser_add(c->chooser, MODEL, c->used);
    PO_TRY(po_chooser_run(c->chooser));
    PO_TRY(without_what_fails(c));
    PO_TRY(po_kernel_mutants(c->run, c->search, c->options, c->all[0].seconds, &c->from[MUTATED]));
    if (!c->from[MUTATED])
        return PO_OK;
    c->chooser->rules.bases |= 1u << MUTATED;
    c->chooser->rules.most = WITH_MUTANTS;
    po_chooser_add(c->chooser, MUTATED, 0);
    return po_chooser_run(c->chooser);
}

/* Whether a form of one sample computes what it stands for: at each of a few sizes that the model
 * takes, others than it was made at. */
static po_status prove_one(const choosing *c, const kernel_form *form, const po_kernel_variant *p) {
    enum { SIZES = 3 };
    const po_open_sizes *sizes = form->sizes;
    if (!sizes)
        return po_one_sample_prove(c->run, c->original, form->made, &p->regions, p->open, p->there,
                                   form->delivered->named);
    /* The last are no larger ones. */
    const uint32_t n = sizes->plan.n_others;
    if (n < SIZES)
        return po_fail(c->ctx, PO_UNSUPPORTED, "the model takes few sizes");
    for (uint32_t i = n - SIZES; i < n; i++) {
        po_graph *at = po_open_sizes_at(c->run, sizes, i);
        po_status status = po_one_sample_prove(c->run, c->original, form->made, &p->regions,
                                               p->open, p->there, at);
        po_graph_free(at);
        PO_TRY(status);
    }
    return PO_OK;
}

/* Seconds of a call. A step is read with as many copies of its weights as fill PO_KERNELS_COLD
 * bytes: what a whole has beyond comes from farther. */
static double of_a_call(const po_kernel_variant *p, const po_rates *rates) {
    double bytes = 0;
    for (uint32_t i = 0; i < p->regions.n; i++) {
        const po_mu *mu = p->plans[i].mu;
        for (uint32_t k = 0; mu && k < mu->n_tensors; k++)
            if (mu->tensors[k].place == PO_MU_WEIGHT)
                bytes += (double)(mu->tensors[k].floats * po_mu_bytes(mu->tensors[k].type));
    }
    return p->seconds + fmax(0, bytes - PO_KERNELS_COLD) / rates->bytes;
}

/* Plans a form; *best becomes it where it is faster. again: others were read since it was
 * estimated, which may leave nothing of its promise. */
static po_status read_form(choosing *c, guessed *g, bool again, po_kernel_variant *best) {
    if (again)
        PO_TRY(estimate(c, g));
    if (again && (!g->form.graph || g->seconds > a_lead * best->seconds))
        return PO_OK;
    po_kernel_variant other = {.name = name_of(c->arena, g->algebra, g->mutants),
                               .mutants = g->mutants,
                               .magnifies = g->magnifies};
    PO_TRY(plan_form(c, &g->form, c->options, &other));
    po_rates rates;
    PO_TRY(po_run_rates(c->run, &rates));
    const double own = of_a_call(best, &rates), its = of_a_call(&other, &rates);
    po_log(c->ctx, "%.3f ms: %s; %.3f ms: %s; with all weights %.3f, %.3f", 1000 * best->seconds,
           best->name, 1000 * other.seconds, other.name, 1000 * own, 1000 * its);
    if (other.outside > best->outside || other.unread > best->unread || its > a_lead * own)
        return PO_OK;
    if (g->form.delivered)
        PO_TRY(prove_one(c, &g->form, &other));
    *best = other;
    return PO_OK;
}

/* The most promising are planned, too, and the fastest taken. */
static po_status read_promising(choosing *c, po_kernel_variant *best) {
    const po_plan_options *options = c->options;
    double first = 0;
    for (uint32_t k = 0; k < MOST_READ; k++) {
        double limit = k == 0 ? worth_reading * c->all[0].seconds : as_good * first;
        uint32_t i = most_promising(c, limit);
        if (i == PO_NONE || (options->until > 0 && po_now() > options->until))
            break;
        guessed *g = &c->all[i];
        const bool of_one = g->form.delivered != NULL;
        first = k == 0 ? g->seconds : first;
        po_status status = read_form(c, g, k > 0, best);
        g->form = (kernel_form){0}; /* has had its turn */
        if (status == PO_UNSUPPORTED && of_one) {
            po_log(c->ctx, "not %s: %s", name_of(c->arena, g->algebra, g->mutants),
                   c->ctx->error.message);
            po_ctx_clear(c->ctx);
            continue;
        }
        PO_TRY(status);
    }
    return PO_OK;
}

/* The plain form is read first, in a part of the time: others are estimated by what was read, and
 * the best of them have to be read as well. */
static po_plan_options for_the_first(const po_plan_options *options) {
    static const double part_of_time = 0.7;
    po_plan_options first = *options;
    const double now = po_now();
    if (options->until > now && !options->exact)
        first.until = now + part_of_time * (options->until - now);
    return first;
}

/* Whether to plan the first form again, for what could not be read of it: all else that a plan
 * takes is done again as well. */
static bool may_read_more(const po_plan_options *options, double planning) {
    static const double least = 0.15;
    return options->until <= 0 || options->until - po_now() > least * planning;
}

po_status po_kernel_variants(const po_run *run, const po_kernel_source *source, po_arena *arena,
                             const po_plan_options *options, po_kernel_variant *best) {
    const po_graph *graph = source->graph, *like = source->like;
    choosing c = {.run = run,
                  .search = source->search,
                  .ctx = run->ctx,
                  .arena = arena,
                  .options = options,
                  .original = source->original,
                  .from = {[MODEL] = graph},
                  .like = like,
                  .n = 1};
    po_postopt_counts counts;
    *best = (po_kernel_variant){.name = name_of(arena, 0, false)};
    if (!like && po_batch_has_open_dims(graph)) {
        c.samples = PO_NEW(run->arena, po_open_samples);
        PO_TRY(po_open_samples_find(run, run->arena, graph, c.samples));
    }
    PO_TRY(fold(&c, c.from[MODEL], 0, &c.all[0].form, &counts));
    const po_plan_options part = for_the_first(options);
    const kernel_form plain = c.all[0].form;
    const double start = po_now();
    PO_TRY(plan_form(&c, &plain, &part, best));
    const double planning = po_now() - start;
    const po_delivered delivered = {plain.made, plain.axis,
                                    plain.sizes ? plain.sizes->named : plain.graph,
                                    plain.sizes && plain.sizes->n_equal > 0};
    c.delivered = plain.axis ? &delivered : NULL;
    c.all[0].seconds = best->seconds;
    c.outside = best->outside;
    if (!(best->seconds > 0))
        return PO_OK; /* without a region no form promises a gain */
    if (options->exact)
        return po_kernel_batch(run, arena, options, c.samples, best);
    po_limit limit = po_limit_begin(run->ctx, options->until);
    po_status status = look_further(&c);
    po_limit_end(run->ctx, &limit, &status);
    PO_TRY(status);
    PO_TRY(read_promising(&c, best));
    if (best->graph == plain.graph && best->unread > 0 && may_read_more(options, planning))
        PO_TRY(plan_form(&c, &plain, options, best));
    for (uint32_t i = 1; i < c.n; i++)
        if (c.all[i].form.graph)
            form_free(&c.all[i].form);
    return po_kernel_batch(run, arena, options, c.samples, best);
}
