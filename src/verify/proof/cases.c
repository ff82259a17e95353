/* A candidate that takes one of two forms by lengths of its inputs is proved case by case: the one
 * form beside the original with inputs of those lengths, the other beside it as it is. Each is a
 * graph of its own then, so that what stands for every length does so for both. */
#include "ops/branches.h"
#include "ops/recipe/recipe.h"
#include "verify/proof/internal.h"

#include <math.h>

typedef struct cases {
    po_ctx *ctx;
    const po_graph *original, *candidate, *recipes;
    const po_proof_options *options;
    double cpu_start;
    po_branches branches;
} cases;

/* Both sides of a case. */
typedef struct one_case {
    po_graph *original, *form, *recipes; /* original NULL: it is the whole's; recipes: or NULL */
} one_case;

static void case_free(const one_case *c) {
    po_graph_free(c->original);
    po_graph_free(c->form);
    po_graph_free(c->recipes);
}

static po_status make_case(const cases *c, bool then, one_case *out) {
    po_graph *form;
    *out = (one_case){0};
    PO_TRY(po_branches_take(c->ctx, c->candidate, &c->branches, then, &form));
    out->form = form;
    if (c->recipes)
        PO_TRY(po_recipes_of(c->ctx, c->recipes, form, &out->recipes));
    if (!then)
        return PO_OK;
    out->form = po_branches_pin(c->ctx, form, &c->branches);
    po_graph_free(form);
    out->original = po_branches_pin(c->ctx, c->original, &c->branches);
    return PO_OK;
}

/* Whether some length of an input is open: along this axis, or any (PO_NONE). */
static bool is_open(const po_graph *graph, uint32_t axis) {
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_type *type = &graph->values[graph->inputs[i]].type;
        for (uint32_t d = 0; type->kind == PO_TYPE_TENSOR && d < type->rank; d++)
            if ((axis == PO_NONE || axis == d) && !po_dim_known(type->dims[d]))
                return true;
    }
    return false;
}

/* What is known of a case where nothing is open says it of every length that there is. */
static void close(const one_case *c, po_proof_report *r) {
    const po_graph *original = c->original;
    if (!r->proved || !original)
        return;
    r->every_size |= !is_open(original, PO_NONE);
    r->any_batch |= !is_open(original, 0);
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Both cases: what is missed in one of them is missed. */
static void join(po_proof_report *r, const po_proof_report *other) {
    r->differ = larger(r->differ, other->differ);
    r->trials = r->trials > other->trials ? r->trials : other->trials;
    r->sizes += other->sizes;
    r->any_batch = r->any_batch && other->any_batch;
    r->every_size = r->every_size && other->every_size;
    r->spaced = larger(r->spaced, other->spaced);
    r->positive |= other->positive;
    r->degree = fmax(r->degree, other->degree);
    r->log2_bound = log2(exp2(r->log2_bound) + exp2(other->log2_bound));
    r->elements += other->elements;
    r->nodes += other->nodes;
    r->reused += other->reused;
    r->proved = r->proved && other->proved;
    memcpy(r->why, other->why, sizeof r->why);
}

static po_status prove_case(const cases *c, bool then, po_proof_report *r) {
    one_case of;
    po_status status = make_case(c, then, &of);
    if (status == PO_OK)
        status = po_proof_of(c->ctx, of.original ? of.original : c->original, of.form, of.recipes,
                             c->options, c->cpu_start, r);
    if (status == PO_OK)
        close(&of, r);
    case_free(&of);
    return status;
}

static po_status prove_cases(const cases *c, po_proof_report *report) {
    po_proof_report then = *report;
    PO_TRY(prove_case(c, false, report));
    if (!report->proved)
        return PO_OK;
    PO_TRY(prove_case(c, true, &then));
    join(report, &then);
    return PO_OK;
}

po_status po_prove(po_ctx *ctx, const po_graph *original, const po_graph *candidate,
                   const po_graph *recipes, const po_proof_options *options,
                   po_proof_report *report) {
    po_arena *arena = po_arena_create(ctx);
    cases c = {.ctx = ctx,
               .original = original,
               .candidate = candidate,
               .recipes = recipes,
               .options = options,
               .cpu_start = po_process_seconds()};
    po_branches own;
    memset(report, 0, sizeof *report);
    po_status status = po_proof_draw(ctx, options, report);
    const po_proof_report drawn = *report;
    bool whole = status == PO_OK;
    if (whole && !po_branches_find(arena, original, &own) &&
        po_branches_find(arena, candidate, &c.branches)) {
        status = prove_cases(&c, report);
        whole = status == PO_UNSUPPORTED;
    }
    if (whole) {
        po_ctx_clear(ctx);
        *report = drawn;
        status = po_proof_of(ctx, original, candidate, recipes, options, c.cpu_start, report);
    }
    report->seconds = po_process_seconds() - c.cpu_start;
    po_arena_free(arena);
    return status;
}
