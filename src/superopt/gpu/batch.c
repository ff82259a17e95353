/* Follows the samples through a naive muGraph: every statement must keep them apart, along first
 * axes. What it is with one sample must come out alike from two and from three. */
#include "superopt/gpu/batch.h"

typedef struct sampling {
    po_ctx *ctx;
    const po_mu *mu;
    int64_t samples;
    bool *batched; /* by tensor */
    bool *known;   /* by tensor: it was written, or comes from outside */
    bool *label;   /* of the samples */
} sampling;

static po_status no(const sampling *s, const char *why, uint32_t tensor) {
    return po_fail(s->ctx, PO_UNSUPPORTED, "its samples are not apart: %s '%s'", why,
                   s->mu->tensors[tensor].name);
}

static bool has(const po_mu_index *index, uint32_t label) {
    for (uint32_t i = 0; i < index->n; i++)
        if (index->terms[i].label == label)
            return true;
    return false;
}

/* The one label that the first axis is; PO_NONE: it is something else. */
static uint32_t first_label(const sampling *s, const po_mu_access *a) {
    const po_mu_index *index = &a->axes[0];
    if (s->mu->tensors[a->tensor].rank == 0 || index->n != 1 || index->offset != 0 ||
        index->terms[0].coef != 1 || s->mu->labels[index->terms[0].label].extent != s->samples ||
        s->mu->tensors[a->tensor].dims[0] != s->samples)
        return PO_NONE;
    return index->terms[0].label;
}

/* Whether the label stands on these axes. */
static bool stands(const sampling *s, const po_mu_access *a, uint32_t label, uint32_t first) {
    for (uint32_t x = first; x < s->mu->tensors[a->tensor].rank; x++)
        if (has(&a->axes[x], label))
            return true;
    return false;
}

static po_status look_at(sampling *s, const po_mu_statement *st) {
    uint32_t label = PO_NONE;
    for (uint32_t k = 0; k < st->n_in; k++) {
        uint32_t t = st->in[k].tensor, own = first_label(s, &st->in[k]);
        if (!s->known[t])
            return no(s, "it reads what nothing has written, ", t);
        if (!s->batched[t])
            continue;
        if (own == PO_NONE || (label != PO_NONE && own != label))
            return no(s, "another one is read of", t);
        label = own;
    }
    for (uint32_t k = 0; k < st->n_in && label != PO_NONE; k++)
        if (stands(s, &st->in[k], label, s->batched[st->in[k].tensor]))
            return no(s, "which one it is counts for", st->in[k].tensor);
    uint32_t out = st->out.tensor;
    bool each = label != PO_NONE;
    if (each && (first_label(s, &st->out) != label || stands(s, &st->out, label, 1)))
        return no(s, "they come together in", out);
    if (s->known[out] && s->batched[out] != each)
        return no(s, "not all of it is theirs, ", out);
    if (!each && s->mu->tensors[out].place == PO_MU_OUTPUT)
        return no(s, "they do not make", out);
    s->known[out] = true;
    s->batched[out] = each;
    if (each)
        s->label[label] = true;
    return PO_OK;
}

/* The same of one sample. */
static po_mu *cut(const sampling *s, po_arena *arena) {
    po_mu *mu = PO_NEW(arena, po_mu);
    *mu = *s->mu;
    mu->arena = arena;
    mu->labels = po_arena_memdup(arena, mu->labels, mu->n_labels * sizeof *mu->labels);
    mu->tensors = po_arena_memdup(arena, mu->tensors, mu->n_tensors * sizeof *mu->tensors);
    for (uint32_t i = 0; i < mu->n_labels; i++)
        if (s->label[i])
            mu->labels[i].extent = 1;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        if (s->batched[i])
            mu->tensors[i].dims[0] = 1;
        po_mu_layout(mu, i, 1, 0);
    }
    return mu;
}

static po_status sample_of(po_ctx *ctx, po_arena *arena, const po_mu *mu, int64_t samples,
                           const bool *batched, po_mu **one) {
    sampling s = {.ctx = ctx, .mu = mu, .samples = samples};
    s.batched = PO_NEW_N(arena, bool, mu->n_tensors + 1);
    s.known = PO_NEW_N(arena, bool, mu->n_tensors + 1);
    s.label = PO_NEW_N(arena, bool, mu->n_labels + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        s.known[i] = t->place == PO_MU_INPUT || t->place == PO_MU_WEIGHT || t->place == PO_MU_TABLE;
        s.batched[i] = t->place == PO_MU_INPUT && batched[t->number];
    }
    for (uint32_t n = po_mu_next(mu, PO_NONE); n != PO_NONE; n = po_mu_next(mu, n)) {
        if (mu->nodes[n].kind == PO_MU_LOOP)
            return po_fail(ctx, PO_UNSUPPORTED, "its samples are in a loop");
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            PO_TRY(look_at(&s, &mu->nodes[n].statement));
    }
    *one = cut(&s, arena);
    return PO_OK;
}

po_status po_gpu_sample_of(po_ctx *ctx, po_arena *arena, const po_mu *two, const po_mu *three,
                           const bool *batched, const po_mu **one) {
    po_mu *of_two, *of_three;
    PO_TRY(sample_of(ctx, arena, two, 2, batched, &of_two));
    PO_TRY(sample_of(ctx, arena, three, 3, batched, &of_three));
    if (!po_mu_equal(of_two, of_three))
        return po_fail(ctx, PO_UNSUPPORTED,
                       "its samples are another function where there are three"
                       " than where there are two");
    *one = of_two;
    return PO_OK;
}
