/* The table of choices, and variants that combine them. Which one the runtime runs fastest is
 * measured, not known: each choice is read alone, and what reads better together then. */
#include "pipeline/variants.h"

#include "pipeline/old_ir.h"

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

static void tiny_kept(po_postopt_options *o) {
    o->tiny = false;
}

static void masks_kept(po_postopt_options *o) {
    o->masks = false;
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
    {"interpolated maps kept", NULL, PO_ALGEBRA_SMOOTH},
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
    {"tiny weights kept", tiny_kept, PO_USED_TINY},
    {"masked rows kept", masks_kept, PO_USED_MASKS},
    {"affine folding alone", NULL, PO_ALGEBRA_ALL},
};
enum { CHOICES = sizeof choices / sizeof choices[0], AFFINE_ALONE = CHOICES - 1 };
_Static_assert(CHOICES <= 32, "choices are bits of a plan");

static const char first_name[] = "folded", joint[] = " and ";
/* Every form may have weights of its own: of larger models only the first is made. */
#define LARGE_WEIGHTS ((uint64_t)1 << 30)
/* What a choice must read over the first form to be joined with others: less is noise. */
static const double reads_better = 1.01;

uint32_t po_variant_choices(void) {
    return CHOICES;
}

uint32_t po_variant_affine_alone(void) {
    return AFFINE_ALONE;
}

bool po_variant_matters(uint32_t choice, const po_postopt_counts *first) {
    return (first->used & choices[choice].used) != 0;
}

bool po_variants_one_only(const po_graph *from) {
    return po_record_weights(from) > LARGE_WEIGHTS;
}

/* --- names --- */

const char *po_variant_name(po_arena *arena, const po_variant_plan *plan) {
    const char *name = plan->of;
    for (uint32_t i = 0; i < CHOICES; i++)
        if (plan->choices >> i & 1)
            name = *name ? po_arena_printf(arena, "%s%s%s", name, joint, choices[i].name)
                         : choices[i].name;
    return *name ? name : first_name;
}

/* The rest of the text behind a word and, where there is more, " and "; NULL: another word. */
static const char *behind(const char *text, const char *word) {
    size_t n = strlen(word), m = sizeof joint - 1;
    if (strncmp(text, word, n) != 0)
        return NULL;
    if (text[n] == '\0')
        return text + n;
    return strncmp(text + n, joint, m) == 0 && text[n + m] ? text + n + m : NULL;
}

const char *po_mutated_name(po_mutated_kind kind) {
    static const char *const names[PO_MUTATED_KINDS] = {
        [PO_MUTATED_BEST] = "mutants",
        [PO_MUTATED_JOINED] = "mutants, seams joined",
    };
    return names[kind];
}

po_mutated_kind po_mutated_of(const char *form) {
    po_mutated_kind kind = 0;
    while (kind < PO_MUTATED_KINDS && !behind(form, po_mutated_name(kind)))
        kind++;
    return kind;
}

static bool read_choices(const char *text, uint32_t *bits) {
    *bits = 0;
    for (uint32_t i = 0; i < CHOICES && *text; i++) { /* in the table's order */
        const char *rest = behind(text, choices[i].name);
        if (!rest)
            continue;
        *bits |= UINT32_C(1) << i;
        text = rest;
    }
    return *text == '\0';
}

bool po_variant_named(const char *name, const po_variant_plan *of, uint32_t n,
                      po_variant_plan *plan) {
    for (uint32_t i = 0; i < n; i++) {
        const char *rest = *of[i].of                       ? behind(name, of[i].of)
                           : strcmp(name, first_name) == 0 ? ""
                           : *name                         ? name
                                                           : NULL;
        *plan = of[i];
        if (of[i].from && rest && read_choices(rest, &plan->choices))
            return true;
    }
    return false;
}

/* --- making --- */

/* Forms that only one runtime on the CPU likes are left out where the model is for a GPU. */
static po_postopt_options options_of(const po_run_state *state, const po_variant_plan *plan) {
    po_postopt_options options = state->options->cuda ? po_postopt_plain(0) : po_postopt_defaults();
    for (uint32_t i = 0; i < CHOICES; i++) {
        if (!(plan->choices >> i & 1))
            continue;
        if (choices[i].change)
            choices[i].change(&options);
        else
            options.algebra &= ~choices[i].used;
    }
    return options;
}

static bool is_new(const po_run_state *state, const po_graph *graph) {
    if (state->n_variants == PO_MAX_VARIANTS || po_graph_equal(graph, state->original))
        return false;
    for (uint32_t i = 0; i < state->n_variants; i++)
        if (po_graph_equal(graph, state->variants[i].graph))
            return false;
    return true;
}

void po_variant_add(po_run_state *state, const char *name, const po_graph *graph,
                    const po_variant_plan *plan) {
    if (!is_new(state, graph)) {
        po_graph_free(graph);
        return;
    }
    po_variant_plan *own = plan ? PO_NEW(state->arena, po_variant_plan) : NULL;
    if (own)
        *own = *plan;
    state->variants[state->n_variants++] = (po_variant){.name = name, .graph = graph, .how = own};
}

po_status po_variant_make(po_run_state *state, const po_variant_plan *plan,
                          po_postopt_counts *counts, bool *made) {
    const po_postopt_options options = options_of(state, plan);
    const char *name = po_variant_name(state->arena, plan);
    po_postopt_counts own = {0};
    po_graph *out = NULL;
    if (made)
        *made = false;
    po_status status = po_postopt(state->ctx, plan->from, &options, &out, &own);
    if (counts)
        *counts = own;
    if (status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT) {
        po_record_note(state->record, "the form '%s' was dropped: %s", name,
                       state->ctx->error.message);
        po_ctx_clear(state->ctx);
        return PO_OK;
    }
    PO_TRY(status);
    po_old_ir_constants(state->ctx, out);
    po_pipeline_hold(state, out);
    po_variant_add(state, name, out, plan);
    if (made)
        *made = true;
    return PO_OK;
}

/* --- combining --- */

/* What was read of one graph's forms. */
static const po_variant *best_first_form(const po_run_state *state, const double *gain,
                                         double *best) {
    const po_variant *found = NULL;
    *best = 0;
    for (uint32_t i = 0; i < state->n_variants; i++) {
        const po_variant *v = &state->variants[i];
        if (v->how && v->how->choices == 0 && gain[i] > *best) {
            found = v;
            *best = gain[i];
        }
    }
    return found;
}

static double first_form_of(const po_run_state *state, const double *gain, const po_graph *from) {
    for (uint32_t i = 0; i < state->n_variants; i++) {
        const po_variant_plan *plan = state->variants[i].how;
        if (plan && plan->choices == 0 && plan->from == from)
            return gain[i];
    }
    return 0;
}

/* Of choices that change the same thing only one can be made: the better one. */
static void leave_the_best(double over[CHOICES]) {
    for (uint32_t a = 0; a < CHOICES; a++)
        for (uint32_t b = a + 1; b < CHOICES; b++)
            if (choices[a].change && choices[b].change && choices[a].used == choices[b].used)
                over[over[a] < over[b] ? a : b] = 0;
}

/* Single choices that read better than the first form of their graph, the best ahead. */
static uint32_t find_better(const po_run_state *state, const double *gain,
                            uint32_t found[CHOICES]) {
    double over[CHOICES] = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < state->n_variants; i++) {
        const po_variant_plan *plan = state->variants[i].how;
        if (!plan || plan->choices == 0 || (plan->choices & (plan->choices - 1)))
            continue;
        double first = first_form_of(state, gain, plan->from);
        uint32_t c = (uint32_t)__builtin_ctz(plan->choices);
        if (first > 0 && gain[i] > reads_better * first && gain[i] / first > over[c])
            over[c] = gain[i] / first;
    }
    leave_the_best(over);
    for (uint32_t c = 0; c < CHOICES; c++) {
        uint32_t k = n;
        if (!(over[c] > 0))
            continue;
        for (; k > 0 && over[found[k - 1]] < over[c]; k--)
            found[k] = found[k - 1];
        found[k] = c;
        n++;
    }
    return n;
}

po_status po_variants_combine(po_run_state *state, const double *gain) {
    double first;
    uint32_t found[CHOICES], n = find_better(state, gain, found);
    const po_variant *best = best_first_form(state, gain, &first);
    if (!best || n == 0 || po_variants_one_only(best->how->from))
        return PO_OK;
    /* All of them; the two best; the best. What was read already is no variant of its own. */
    const uint32_t sizes[] = {n, 2, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        po_variant_plan plan = *best->how;
        for (uint32_t k = 0; k < sizes[i] && k < n; k++)
            plan.choices |= UINT32_C(1) << found[k];
        PO_TRY(po_ctx_poll(state->ctx));
        PO_TRY(po_variant_make(state, &plan, NULL, NULL));
    }
    return PO_OK;
}
