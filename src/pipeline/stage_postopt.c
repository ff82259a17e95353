/* Postopt's forms as variants: which one the runtime runs fastest is measured, not known. The first
 * is the one that wins most often; each of the others differs from it in one choice. */
#include "pipeline/budget.h"
#include "pipeline/old_ir.h"
#include "pipeline/pipeline.h"
#include "pipeline/recall.h"
#include "postopt/postopt.h"

/* Forms that only one runtime on the CPU likes are left out where the model is for a GPU. */
static po_postopt_options defaults(const po_run_state *state) {
    return state->options->cuda ? po_postopt_plain(0) : po_postopt_defaults();
}

/* --- one choice changed --- */

static void hard_swish_node(po_postopt_options *o) {
    o->hard_swish = PO_HARD_SWISH_NODE;
}

static void hard_swish_kept(po_postopt_options *o) {
    o->hard_swish = PO_HARD_SWISH_KEEP;
}

static void arithmetic(po_postopt_options *o) {
    o->leftover = PO_LEFTOVER_ARITHMETIC;
}

static void no_spread(po_postopt_options *o) {
    o->spread_gates = false;
}

static void added_sums(po_postopt_options *o) {
    o->sums = false;
}

static void other_moves(po_postopt_options *o) {
    o->split_moves = !o->split_moves;
}

/* A choice is tried only where the first form made use of what it takes away. */
static const struct {
    const char *name;
    void (*change)(po_postopt_options *options); /* NULL: the algebra of `used` is left out */
    uint32_t used;                               /* po_algebra and po_used bits */
} choices[] = {
    {"without composed products", NULL, PO_ALGEBRA_COMPOSE},
    {"transposed convolutions kept", NULL, PO_ALGEBRA_DEPTH_SPACE},
    {"upsampling kept", NULL, PO_ALGEBRA_UPSAMPLE},
    {"upsampled maps in phases", NULL, PO_ALGEBRA_DIFFERENCES},
    {"gates kept", NULL, PO_ALGEBRA_GATES},
    {"3-D convolutions kept", NULL, PO_ALGEBRA_FRAMES},
    {"1-D convolutions kept", NULL, PO_ALGEBRA_PLANES},
    {"2-D convolutions kept", NULL, PO_ALGEBRA_ROWS},
    {"convolutions without phases", NULL, PO_ALGEBRA_PHASES},
    {"products over channels kept", NULL, PO_ALGEBRA_CHANNELS},
    {"channels not padded", NULL, PO_ALGEBRA_BLOCKS},
    {"gates not spread", no_spread, PO_USED_SPREAD},
    {"split outputs kept", NULL, PO_ALGEBRA_SPLITS},
    {"HardSwish nodes", hard_swish_node, PO_USED_HARD_SWISH},
    {"hard-swish kept", hard_swish_kept, PO_USED_HARD_SWISH},
    {"leftovers as arithmetic", arithmetic, PO_USED_LEFTOVER},
    {"sums before norms as Add", added_sums, PO_USED_SUMS},
    {"DepthToSpace as one node", other_moves, PO_USED_MOVES},
    {"affine folding alone", NULL, PO_ALGEBRA_ALL},
};
/* Every form may have weights of its own: of larger models only the first is made. */
#define LARGE_WEIGHTS ((uint64_t)1 << 30)
enum { CHOICES = sizeof choices / sizeof choices[0] };

static bool is_new(const po_run_state *state, const po_graph *graph) {
    if (state->n_variants == PO_MAX_VARIANTS || po_graph_equal(graph, state->original))
        return false;
    for (uint32_t i = 0; i < state->n_variants; i++)
        if (po_graph_equal(graph, state->variants[i].graph))
            return false;
    return true;
}

/* Adds a variant, or frees it where it is the original or one that is there already. */
static void add_variant(po_run_state *state, const char *name, const po_graph *graph) {
    if (is_new(state, graph))
        state->variants[state->n_variants++] = (po_variant){name, graph, false, 0, NULL};
    else
        po_graph_free(graph);
}

/* Makes one form. A form that fails is dropped and reported: *out is NULL then. */
static po_status make_form(po_run_state *state, const po_graph *simplified, const char *name,
                           const po_postopt_options *options, po_postopt_counts *counts,
                           po_graph **out) {
    *out = NULL;
    memset(counts, 0, sizeof *counts);
    po_status status = po_postopt(state->ctx, simplified, options, out, counts);
    if (status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT) {
        po_record_note(state->record, "the form '%s' was dropped: %s", name,
                       state->ctx->error.message);
        po_ctx_clear(state->ctx);
        *out = NULL;
        return PO_OK;
    }
    PO_TRY(status);
    po_old_ir_constants(state->ctx, *out);
    po_pipeline_hold(state, *out);
    return PO_OK;
}

typedef struct choosing {
    const po_graph *simplified;
    const po_postopt_counts *first;
} choosing;

static po_status make_choices(po_run_state *state, void *user) {
    const po_graph *simplified = ((const choosing *)user)->simplified;
    const po_postopt_counts *first = ((const choosing *)user)->first;
    for (size_t i = 0; i < CHOICES; i++) {
        if (state->recall ? !po_recall_wants(state, choices[i].name)
                          : !(first->used & choices[i].used))
            continue;
        po_postopt_options options = po_postopt_defaults();
        if (choices[i].change)
            choices[i].change(&options);
        else
            options.algebra &= ~choices[i].used;
        po_postopt_counts counts;
        po_graph *out;
        po_step(state->ctx, (double)(i + 1) / (CHOICES + 1), "%s", choices[i].name);
        PO_TRY(po_ctx_poll(state->ctx));
        PO_TRY(make_form(state, simplified, choices[i].name, &options, &counts, &out));
        if (out)
            add_variant(state, choices[i].name, out);
    }
    return PO_OK;
}

/* The search's result in the form that wins most often, and with nothing but affine folding. */
static po_status make_mutated(po_run_state *state, void *user) {
    (void)user;
    const struct {
        const char *name;
        const po_graph *graph;
        bool affine;
    } forms[] = {{"mutants", state->mutated, false},
                 {"mutants, seams joined", state->joined, false},
                 {"mutants and affine folding alone", state->mutated, true}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        po_postopt_options options = defaults(state);
        po_postopt_counts counts;
        po_graph *out;
        if (!forms[i].graph || !po_recall_wants(state, forms[i].name))
            continue;
        if (forms[i].affine)
            options.algebra = 0;
        PO_TRY(make_form(state, forms[i].graph, forms[i].name, &options, &counts, &out));
        if (out)
            add_variant(state, forms[i].name, out);
    }
    return PO_OK;
}

po_status po_stage_postopt(po_run_state *state) {
    const po_graph *simplified = state->current;
    if (!state->options->exact) {
        bool cut;
        PO_TRY(po_budget_call(state, PO_PART_FORMS, "forms with mutants were left out",
                              make_mutated, NULL, &cut));
        po_postopt_options options = defaults(state);
        po_postopt_counts counts = {0};
        po_graph *out = NULL;
        bool all = !state->recall;
        if (all || po_recall_wants(state, "folded"))
            PO_TRY(make_form(state, simplified, "folded", &options, &counts, &out));
        if (out) {
            for (uint32_t i = 0; i < PO_POSTOPT_RULES; i++)
                po_record_fired(state->record, po_postopt_rule_name((po_postopt_rule)i),
                                counts.rule[i]);
            add_variant(state, "folded", out);
        }
        if (po_record_weights(simplified) > LARGE_WEIGHTS)
            po_record_note(state->record, "one form only: each holds weights of its own");
        else if ((out || !all) && !state->options->cuda)
            PO_TRY(po_budget_call(state, PO_PART_FORMS, "further forms were left out", make_choices,
                                  &(choosing){simplified, &counts}, &cut));
    }
    if (po_recall_wants(state, "simplified")) {
        po_graph *plain = po_graph_clone(state->ctx, simplified);
        po_pipeline_hold(state, plain);
        po_old_ir_constants(state->ctx, plain);
        add_variant(state, "simplified", plain);
    }
    for (uint32_t i = state->n_variants; i > 0; i--)
        if (!state->variants[i - 1].kernels)
            state->current = state->variants[i - 1].graph;
    return PO_OK;
}
