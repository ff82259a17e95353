/* What the stages of the search share: judging a mutant, and the way its parts live. */
#include "pipeline/search/search.h"
#include "ops/samples.h"

#include "ops/op.h"

enum { POSITIONS = 8, SEED = 1 };

static po_agree_options options_of(const po_site *site) {
    return (po_agree_options){.seed = SEED, .trials = 1, .known = site->known};
}

/* Mutants that agree at less than this share of positions are not corrected. */
static const double worth_correcting = 0.25;
static const double hopeless = 1.5; /* times the original's estimate */

po_search *po_search_next(const po_search *before) {
    po_arena *arena = before->arena;
    po_search *search = po_arena_memdup(arena, before, sizeof *before);
    search->sites = PO_NEW_N(arena, po_site, before->n_sites);
    for (uint32_t i = 0; i < before->n_sites; i++) {
        const po_site *from = &before->sites[i];
        po_site *to = &search->sites[i];
        *to = *from;
        to->trials = PO_NEW_N(arena, po_trial, from->n_trials);
        to->cap_trials = from->n_trials;
        for (uint32_t k = 0; k < from->n_trials; k++)
            to->trials[k] = from->trials[k];
    }
    return search;
}

bool po_search_drops(po_ctx *ctx, po_status status) {
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT && status != PO_BAD_USE &&
        status != PO_INTERNAL)
        return false;
    po_log(ctx, "dropped: %s", ctx->error.message);
    po_ctx_clear(ctx);
    return true;
}

static bool same_ports(const po_graph *a, const po_graph *b) {
    if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
        return false;
    for (uint32_t i = 0; i < a->n_inputs; i++)
        if (!po_type_equal(&a->values[a->inputs[i]].type, &b->values[b->inputs[i]].type))
            return false;
    for (uint32_t i = 0; i < a->n_outputs; i++)
        if (!po_type_equal(&a->values[a->outputs[i]].type, &b->values[b->outputs[i]].type))
            return false;
    return true;
}

/* --- by positions --- */

static po_status judge(const po_run *run, po_search *search, po_site *site, po_trial *trial) {
    trial->fate = PO_TRIAL_MALFORMED;
    if (!same_ports(site->sub->graph, trial->graph))
        return PO_OK;
    PO_TRY(po_program_of(run->ctx, search->arena, trial->graph, &trial->program));
    po_arena *scratch = po_arena_create(run->ctx);
    double share = 0;
    po_status status =
        po_agree_share(run->ctx, scratch, site->program, trial->program, SEED, POSITIONS, &share);
    po_arena_free(scratch);
    PO_TRY(status);
    site->points += POSITIONS;
    trial->fate = share == 1                  ? PO_TRIAL_INSIDE
                  : share >= worth_correcting ? PO_TRIAL_PARTLY
                                              : PO_TRIAL_POINTS;
    return PO_OK;
}

po_status po_search_positions(const po_run *run, po_search *search, po_site *site,
                              po_trial *trial) {
    if (trial->fate != PO_TRIAL_MADE)
        return PO_OK;
    double start = po_now();
    po_status status = judge(run, search, site, trial);
    if (trial->corrected && trial->fate == PO_TRIAL_INSIDE)
        trial->fate = PO_TRIAL_EQUAL; /* po_correct has seen to that */
    search->search_seconds += po_now() - start;
    return po_search_drops(run->ctx, status) ? PO_OK : status;
}

/* --- by boxes and whole --- */

po_status po_search_boxes(const po_run *run, po_search *search, po_site *site, po_trial *trial) {
    po_arena *arena = search->arena;
    double start = po_now();
    po_agreement *agreement = PO_NEW(arena, po_agreement);
    trial->fate = PO_TRIAL_MALFORMED;
    po_agree_options options = options_of(site);
    po_status status =
        po_agree(run->ctx, arena, site->program, trial->program, &options, agreement);
    search->search_seconds += po_now() - start;
    if (po_search_drops(run->ctx, status))
        return PO_OK;
    PO_TRY(status);
    trial->agreement = agreement;
    trial->fate = agreement->equal ? PO_TRIAL_EQUAL : PO_TRIAL_BOXES;
    site->boxes += agreement->boxes;
    site->points += agreement->points;
    return PO_OK;
}

po_status po_search_whole(const po_run *run, po_search *search, po_site *site, po_trial *trial,
                          bool *equal) {
    if (trial->agreement && trial->agreement->whole) { /* has been tested so */
        *equal = trial->agreement->equal;
        return PO_OK;
    }
    po_arena *scratch = po_arena_create(run->ctx);
    po_agree_options options = options_of(site);
    double start = po_now();
    *equal = false;
    po_status status = po_agree_whole(run->ctx, scratch, site->program, trial->program, &options,
                                      equal, NULL, NULL);
    search->certify_seconds += po_now() - start;
    po_arena_free(scratch);
    return po_search_drops(run->ctx, status) ? PO_OK : status;
}

/* --- by the roofline --- */

void po_search_estimate(const po_run *run, const po_search *search, const po_subprogram *sub,
                        const po_graph *graph, po_estimate *estimate) {
    po_arena *scratch = po_arena_create(run->ctx);
    const bool *weight = po_weights_of(graph, scratch, sub->n_activations);
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, scratch, &n);
    *estimate = (po_estimate){0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < n; i++)
        if (!po_reads_weights(&graph->nodes[order[i]], weight))
            po_roofline_add(graph, &graph->nodes[order[i]], &search->rates, run->ctx->threads,
                            estimate);
    po_arena_free(scratch);
}

/* More work of both kinds than any kernel or layout makes up for. */
static bool is_hopeless(const po_run *run, const po_site *site, const po_trial *trial) {
    const po_estimate *a = &site->estimate, *b = &trial->estimate;
    return run->options->level < 3 && b->seconds > hopeless * a->seconds && b->flops >= a->flops &&
           b->bytes >= a->bytes;
}

/* Whether what the mutant makes of samples that are apart is apart, as it is of the subprogram, for
 * any number of them. */
static bool keeps_samples(const po_run *run, const po_search *search, const po_subprogram *sub,
                          const po_graph *graph) {
    const int8_t *own = search->sample_axis;
    for (uint32_t k = 1; k < sub->n_at; k++)
        for (uint32_t i = 0; i < graph->n_inputs; i++)
            if (own[sub->at[k].in[i]] != own[sub->at[0].in[i]])
                return false;
    po_arena *scratch = po_arena_create(run->ctx);
    int8_t *axis = PO_NEW_N(scratch, int8_t, graph->n_values);
    memset(axis, PO_NO_SAMPLES, graph->n_values);
    for (uint32_t i = 0; i < graph->n_inputs; i++)
        axis[graph->inputs[i]] = own[sub->at[0].in[i]];
    bool good = po_samples_follow(run->ctx, graph, search->samples, axis) == PO_OK;
    for (uint32_t i = 0; i < graph->n_outputs && good; i++)
        good = axis[graph->outputs[i]] == own[sub->at[0].out[i]];
    po_ctx_clear(run->ctx);
    po_arena_free(scratch);
    return good;
}

po_status po_search_add(const po_run *run, po_search *search, po_site *site,
                        const po_mutant *mutant, po_trial trial) {
    trial.name = mutant->name;
    trial.graph = mutant->graph;
    PO_TRY(po_ctx_poll(run->ctx));
    po_status status = po_infer_graph(run->ctx, mutant->graph, false);
    PO_PUSH(search->arena, site->trials, site->n_trials, site->cap_trials, trial);
    po_trial *t = &site->trials[site->n_trials - 1];
    if (status != PO_OK) {
        t->fate = PO_TRIAL_MALFORMED;
        return po_search_drops(run->ctx, status) ? PO_OK : status;
    }
    if (search->samples > 0 && !keeps_samples(run, search, site->sub, t->graph)) {
        t->fate = PO_TRIAL_SAMPLES;
        return PO_OK;
    }
    po_search_estimate(run, search, site->sub, t->graph, &t->estimate);
    if (is_hopeless(run, site, t)) {
        t->fate = PO_TRIAL_HOPELESS;
        return PO_OK;
    }
    return PO_OK;
}

static bool may_be_taken(const po_search *search, bool chosen, const po_trial *t) {
    return t->fate == PO_TRIAL_CHOSEN || t->fate == PO_TRIAL_JOINED ||
           (!chosen &&
            (t->fate == PO_TRIAL_MADE || t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_EQUAL ||
             (search->kernels && t->fate == PO_TRIAL_UNMEASURED)));
}

void po_search_free_losers(po_search *search, bool chosen) {
    for (uint32_t i = 0; i < search->n_sites; i++)
        for (uint32_t k = 0; k < search->sites[i].n_trials; k++) {
            po_trial *t = &search->sites[i].trials[k];
            if (may_be_taken(search, chosen, t))
                continue;
            po_graph_free(t->graph);
            t->graph = NULL;
        }
}

/* --- order --- */

static double weight(const po_site *site) {
    return site->sub->n_at * site->estimate.seconds;
}

const uint32_t *po_search_heaviest(po_search *search) {
    uint32_t *order = PO_NEW_N(search->arena, uint32_t, search->n_sites);
    for (uint32_t i = 0; i < search->n_sites; i++) {
        uint32_t k = i;
        for (; k > 0 && weight(&search->sites[order[k - 1]]) < weight(&search->sites[i]); k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return order;
}
