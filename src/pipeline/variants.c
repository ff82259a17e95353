/* The table of choices, and the forms that states of the chooser stand for. Which one the runtime
 * runs fastest is measured, not known (select/rank.c). */
#include "pipeline/variants.h"

#include "ops/samples.h"
#include "pipeline/half_weights.h"
#include "pipeline/old_ir.h"
#include "pipeline/usual_sizes.h"
#include "verify/inputs/inputs.h"

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

/* Where a family is used. */
typedef enum po_maps { ALL_MAPS, SMALL_MAPS, LARGE_MAPS } po_maps;

/* Of choices of one group only one can be made. */
enum { NO_GROUP, HARD_SWISH, FRAMES, ROWS, PHASES };

/* A choice is tried only where the first form made use of what it takes away. One with a tile takes
 * nothing away but the larger tiles: what rounds less, should the model need it, and does more. */
static const struct {
    const char *name;
    void (*change)(po_postopt_options *options); /* NULL: the algebra of `used` is left out */
    uint32_t used;                               /* po_algebra and po_used bits */
    uint32_t group;
    uint32_t tile;        /* 0: none */
    po_tile_family which; /* of a tile */
    po_maps maps;         /* the family is used on these alone */
} choices[] = {
    {.name = "without composed products", .used = PO_ALGEBRA_COMPOSE},
    {.name = "transposed convolutions kept", .used = PO_ALGEBRA_DEPTH_SPACE},
    {.name = "upsampling kept", .used = PO_ALGEBRA_UPSAMPLE},
    {.name = "upsampled maps in phases", .used = PO_ALGEBRA_DIFFERENCES},
    {.name = "interpolated maps kept", .used = PO_ALGEBRA_SMOOTH},
    {.name = "gates kept", .used = PO_ALGEBRA_GATES},
    {.name = "3-D convolutions kept", .used = PO_ALGEBRA_FRAMES, .group = FRAMES},
    {.name = "3-D convolutions by smaller tiles",
     .used = PO_ALGEBRA_FRAMES,
     .group = FRAMES,
     .tile = 4,
     .which = PO_TILED_FRAMES},
    {.name = "3-D convolutions by the smallest tiles",
     .used = PO_ALGEBRA_FRAMES,
     .group = FRAMES,
     .tile = 2,
     .which = PO_TILED_FRAMES},
    {.name = "1-D convolutions kept", .used = PO_ALGEBRA_PLANES},
    {.name = "2-D convolutions kept", .used = PO_ALGEBRA_TILES, .group = ROWS},
    {.name = "2-D convolutions by smaller tiles",
     .used = PO_ALGEBRA_TILES,
     .group = ROWS,
     .tile = 4,
     .which = PO_TILED_MAPS},
    {.name = "2-D convolutions by the smallest tiles",
     .used = PO_ALGEBRA_TILES,
     .group = ROWS,
     .tile = 2,
     .which = PO_TILED_MAPS},
    {.name = "2-D convolutions kept on large maps",
     .used = PO_ALGEBRA_TILES,
     .group = ROWS,
     .maps = SMALL_MAPS},
    {.name = "2-D convolutions kept on small maps",
     .used = PO_ALGEBRA_TILES,
     .group = ROWS,
     .maps = LARGE_MAPS},
    {.name = "convolutions without phases", .used = PO_ALGEBRA_PHASES, .group = PHASES},
    {.name = "convolutions in fewer phases",
     .used = PO_ALGEBRA_PHASES,
     .group = PHASES,
     .tile = 3,
     .which = PO_TILED_PHASES},
    {.name = "convolutions in two phases",
     .used = PO_ALGEBRA_PHASES,
     .group = PHASES,
     .tile = 2,
     .which = PO_TILED_PHASES},
    {.name = "phases on small maps alone",
     .used = PO_ALGEBRA_PHASES,
     .group = PHASES,
     .maps = SMALL_MAPS},
    {.name = "phases on large maps alone",
     .used = PO_ALGEBRA_PHASES,
     .group = PHASES,
     .maps = LARGE_MAPS},
    {.name = "products over channels kept", .used = PO_ALGEBRA_CHANNELS},
    {.name = "products of tokens kept", .used = PO_ALGEBRA_TOKENS},
    {.name = "channels not padded", .used = PO_ALGEBRA_BLOCKS},
    {.name = "gates not spread", .change = no_spread, .used = PO_USED_SPREAD},
    {.name = "split outputs kept", .used = PO_ALGEBRA_SPLITS},
    {.name = "HardSwish nodes",
     .change = hard_swish_node,
     .used = PO_USED_HARD_SWISH,
     .group = HARD_SWISH},
    {.name = "hard-swish kept",
     .change = hard_swish_kept,
     .used = PO_USED_HARD_SWISH,
     .group = HARD_SWISH},
    {.name = "leftovers as arithmetic", .change = arithmetic, .used = PO_USED_LEFTOVER},
    {.name = "sums before norms as Add", .change = added_sums, .used = PO_USED_SUMS},
    {.name = "DepthToSpace as one node", .change = other_moves, .used = PO_USED_MOVES},
    {.name = "tiny weights kept", .change = tiny_kept, .used = PO_USED_TINY},
    {.name = "masked rows kept", .change = masks_kept, .used = PO_USED_MASKS},
    {.name = "affine folding alone", .used = PO_ALGEBRA_ALL},
};
enum { CHOICES = sizeof choices / sizeof choices[0], AFFINE_ALONE = CHOICES - 1 };
_Static_assert((int)CHOICES <= (int)PO_CHOOSER_CHOICES, "choices are bits of a state");

static const char first_name[] = "folded", joint[] = " and ";
/* Every form may have weights of its own: of larger models only the first is made. */
#define LARGE_WEIGHTS ((uint64_t)1 << 30)

uint32_t po_variant_choices(void) {
    return CHOICES;
}

uint32_t po_variant_affine_alone(void) {
    return AFFINE_ALONE;
}

bool po_variant_matters(uint32_t choice, const po_postopt_counts *first) {
    uint32_t tile = choices[choice].tile, used = choices[choice].used;
    if (choices[choice].maps != ALL_MAPS && !(first->on_small & first->on_large & used))
        return false;
    return (first->used & used) != 0 && (tile == 0 || first->tile[choices[choice].which] > tile);
}

bool po_variant_first(uint32_t choice) {
    return choices[choice].tile == 0 && choices[choice].maps == ALL_MAPS;
}

/* --- rounding --- */

/* The choice by which a family of identities rounds less: the largest tiles that are smaller than
 * what was made, else it is left out. CHOICES: there is none. */
static uint32_t milder_of(uint32_t family, const po_postopt_counts *counts) {
    uint32_t best = CHOICES;
    for (uint32_t i = 0; i < CHOICES; i++)
        if (choices[i].used == UINT32_C(1) << family && choices[i].maps == ALL_MAPS &&
            po_variant_matters(i, counts) &&
            (best == CHOICES || choices[i].tile > choices[best].tile))
            best = i;
    return best;
}

bool po_variant_milder(const po_postopt_counts *counts, po_choices *made) {
    static const double as_large = 0.5; /* of the largest: what has as much of a part in it */
    double largest = 0;
    bool any = false;
    uint32_t which[PO_ALGEBRAS];
    for (uint32_t i = 0; i < PO_ALGEBRAS; i++) {
        which[i] = milder_of(i, counts);
        largest =
            which[i] < CHOICES && counts->magnifies[i] > largest ? counts->magnifies[i] : largest;
    }
    for (uint32_t i = 0; i < PO_ALGEBRAS; i++) {
        if (!(largest > 0) || which[i] == CHOICES || counts->magnifies[i] < as_large * largest)
            continue;
        for (uint32_t k = 0; k < CHOICES; k++)
            if (choices[k].group > 0 && choices[k].group == choices[which[i]].group)
                *made &= ~PO_CHOICE(k);
        *made |= PO_CHOICE(which[i]);
        any = true;
    }
    return any;
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

static bool read_choices(const char *text, po_choices *bits) {
    *bits = 0;
    for (uint32_t i = 0; i < CHOICES && *text; i++) { /* in the table's order */
        const char *rest = behind(text, choices[i].name);
        if (!rest)
            continue;
        *bits |= PO_CHOICE(i);
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
static po_postopt_options options_of(const po_run *run, const po_variant_list *list,
                                     const po_variant_plan *plan) {
    po_postopt_options options = run->options->cuda ? po_postopt_gpu() : po_postopt_defaults();
    options.meant = list->meant;
    for (uint32_t i = 0; i < CHOICES; i++) {
        if (!(plan->choices >> i & 1))
            continue;
        if (choices[i].change)
            choices[i].change(&options);
        else if (choices[i].tile > 0)
            options.most_tile[choices[i].which] = choices[i].tile;
        else if (choices[i].maps != ALL_MAPS)
            *(choices[i].maps == SMALL_MAPS ? &options.on_small : &options.on_large) |=
                choices[i].used;
        else
            options.algebra &= ~choices[i].used;
    }
    if (po_run_skips(run, "partly"))
        options.algebra &= ~po_postopt_partly();
    return options;
}

/* The variant that is this graph; list->n: none. *original: it is the original. */
static uint32_t find_graph(const po_variant_list *list, const po_graph *graph, bool *original) {
    uint32_t i = 0;
    *original = po_graph_equal(graph, list->original);
    while (i < list->n && !po_graph_equal(graph, list->variants[i].graph))
        i++;
    return i;
}

uint32_t po_variant_add(const po_run *run, po_variant_list *list, const char *name,
                        const po_graph *graph, const po_variant_plan *plan,
                        const po_postopt_counts *counts) {
    bool original;
    uint32_t number = find_graph(list, graph, &original);
    if (original || number < list->n || number == PO_MAX_VARIANTS) {
        po_graph_free(graph);
        return original || number == PO_MAX_VARIANTS ? PO_NONE : number;
    }
    po_arena *arena = run->arena;
    list->variants[list->n++] =
        (po_variant){.name = name,
                     .graph = graph,
                     .how = plan ? po_arena_memdup(arena, plan, sizeof *plan) : NULL,
                     .counts = counts ? po_arena_memdup(arena, counts, sizeof *counts) : NULL};
    return number;
}

/* postopt's result; NULL: it is for one number of samples alone. The model's own form is then made
 * with its batch open, where fewer laws hold. */
static po_status make_open(const po_run *run, const po_variant_list *list,
                           const po_variant_plan *plan, const po_postopt_options *options,
                           po_graph **out, po_postopt_counts *counts) {
    PO_TRY(po_postopt(run->ctx, plan->from, options, out, counts));
    if (!list->sample)
        return PO_OK;
    po_status status = po_samples_open(run->ctx, *out, list->open, PO_SAMPLES);
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT)
        return status;
    po_log(run->ctx, "'%s' is for %d samples alone: %s", po_variant_name(run->arena, plan),
           PO_SAMPLES, run->ctx->error.message);
    po_ctx_clear(run->ctx);
    po_graph_free(*out);
    *out = NULL;
    return plan->from == list->sample ? po_postopt(run->ctx, list->graph, options, out, counts)
                                      : PO_OK;
}

/* One that was made so; NULL. */
static const po_variant *find_made(const po_variant_list *list, const po_variant_plan *plan) {
    for (uint32_t i = 0; i < list->n; i++) {
        const po_variant *v = &list->variants[i];
        if (v->how && v->how->from == plan->from && v->how->choices == plan->choices)
            return v;
    }
    return NULL;
}

/* The form for usual sizes, beside one for all others, which was made with these counts. */
static po_status add_usual(const po_run *run, const po_variant_list *list,
                           const po_variant_plan *plan, const po_postopt_options *options,
                           const po_graph *form, const po_postopt_counts *of_form, po_graph **out,
                           po_postopt_counts *counts) {
    po_graph *usual;
    const po_branches *by = &list->usual;
    *out = NULL;
    PO_TRY(po_postopt(run->ctx, plan->from, options, &usual, counts));
    po_status status = po_usual_does_more(counts, of_form)
                           ? po_branches_make(run->ctx, usual, form, by->lengths, by->n, out)
                           : PO_OK;
    po_graph_free(usual);
    return status;
}

/* Beside the same choices of the model itself. */
static po_status make_usual(const po_run *run, const po_variant_list *list,
                            const po_variant_plan *plan, const po_postopt_options *options,
                            po_graph **out, po_postopt_counts *counts) {
    po_variant_plan open = list->bases[PO_BASE_MODEL];
    open.choices = plan->choices;
    const po_variant *made = find_made(list, &open);
    if (made)
        return add_usual(run, list, plan, options, made->graph, made->counts, out, counts);
    po_postopt_counts of_form;
    po_graph *form;
    *out = NULL;
    PO_TRY(make_open(run, list, &open, options, &form, &of_form));
    if (!form)
        return PO_OK;
    po_status status = add_usual(run, list, plan, options, form, &of_form, out, counts);
    po_graph_free(form);
    return status;
}

static po_status make_graph(const po_run *run, const po_variant_list *list,
                            const po_variant_plan *plan, const po_postopt_options *options,
                            po_graph **out, po_postopt_counts *counts) {
    return plan->from == list->bases[PO_BASE_USUAL].from
               ? make_usual(run, list, plan, options, out, counts)
               : make_open(run, list, plan, options, out, counts);
}

po_status po_variant_make(const po_run *run, po_variant_list *list, const po_variant_plan *plan,
                          po_variant_made *made) {
    const po_postopt_options options = options_of(run, list, plan);
    const char *name = po_variant_name(run->arena, plan);
    po_graph *out = NULL;
    *made = (po_variant_made){.number = PO_NONE};
    po_status status = make_graph(run, list, plan, &options, &out, &made->counts);
    if (status == PO_UNSUPPORTED || status == PO_INTERNAL || status == PO_BAD_INPUT) {
        po_record_note(run->record, "the form '%s' was dropped: %s", name, run->ctx->error.message);
        po_ctx_clear(run->ctx);
        return PO_OK;
    }
    PO_TRY(status);
    if (!out)
        return PO_OK;
    if (made->counts.fired[PO_LAW_HALF] > 0)
        PO_TRY(po_half_weights(run->ctx, out));
    po_old_ir_constants(run->ctx, out);
    po_run_hold(run, out);
    made->number = po_variant_add(run, list, name, out, plan, &made->counts);
    if (made->number != PO_NONE)
        list->variants[made->number].twice = plan->from == list->bases[PO_BASE_USUAL].from;
    made->made = true;
    return PO_OK;
}

/* --- the chooser among forms --- */

/* Choices that would change something in a form with these counts, were they made in it as well.
 * Folding alone takes so much away that it is no step from anywhere. */
static po_choices open_in(const po_variant_plan *plan, const po_postopt_counts *counts) {
    po_choices open = 0;
    for (uint32_t i = 0; i < CHOICES; i++)
        if (i != AFFINE_ALONE && !(plan->choices >> i & 1) && po_variant_matters(i, counts))
            open |= PO_CHOICE(i);
    return po_variants_one_only(plan->from) ? 0 : open;
}

void po_variant_list_begin(po_variant_list *list, const po_imported *imported,
                           const po_simplified *simplified, const po_kernels *kernels) {
    *list = (po_variant_list){.original = imported->original,
                              .graph = simplified->graph,
                              .sample = simplified->sample,
                              .open = imported->graph,
                              .n = kernels->n_variants,
                              .library = kernels->library};
    for (uint32_t i = 0; i < kernels->n_variants; i++)
        list->variants[i] = kernels->variants[i];
}

/* What names are as long as where the model is meant to be used, whatever it was read at: forms are
 * made again where a run is recalled. */
static void find_meant(const po_run *run, const po_inputs *plan, po_meant *meant) {
    *meant = (po_meant){.n = po_inputs_meant(plan), .length = po_assigned_length};
    void **user = PO_NEW_N(run->arena, void *, meant->n + 1);
    for (uint32_t k = 0; k < meant->n; k++) {
        const po_assignment there = {plan, po_inputs_meant_size(k)};
        user[k] = po_arena_memdup(run->arena, &there, sizeof there);
    }
    meant->user = user;
}

po_status po_variant_list_forms(const po_run *run, po_variant_list *f, const po_chosen *chosen) {
    po_chooser_rules rules = {.bases = 1u << PO_BASE_MODEL, .n_choices = CHOICES, .gain = 1};
    for (po_mutated_kind i = 0; i < PO_MUTATED_KINDS; i++) {
        f->bases[i] = (po_variant_plan){po_mutated_name(i), chosen->mutated[i].graph, 0};
        rules.bases |= (uint32_t)(f->bases[i].from != NULL) << i;
    }
    f->bases[PO_BASE_MODEL] = (po_variant_plan){"", f->sample ? f->sample : f->graph, 0};
    for (uint32_t i = 0; i < CHOICES; i++)
        for (uint32_t k = 0; k < CHOICES; k++)
            if (i != k && choices[i].group > 0 && choices[i].group == choices[k].group)
                rules.excludes[i] |= PO_CHOICE(k);
    po_inputs *plan;
    PO_TRY(po_run_inputs(run, run->arena, f->graph, NULL, &plan));
    find_meant(run, plan, &f->meant);
    PO_TRY(po_usual_find(run, plan, f->open, &f->bases[PO_BASE_USUAL], &f->usual));
    rules.bases |= (uint32_t)(f->bases[PO_BASE_USUAL].from != NULL) << PO_BASE_USUAL;
    f->chooser = po_chooser_create(run->ctx, run->arena, &rules);
    return PO_OK;
}

po_status po_variant_list_make(const po_run *run, po_variant_list *list, po_combination *form,
                               po_variant_made *made) {
    po_variant_made own = {.number = PO_NONE};
    if (form) {
        po_variant_plan plan = list->bases[form->base];
        plan.choices = form->choices;
        PO_TRY(po_variant_make(run, list, &plan, &own));
        form->number = own.number;
        form->open = own.made ? open_in(&plan, &own.counts) : 0;
    }
    if (made)
        *made = own;
    return PO_OK;
}
