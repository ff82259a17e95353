/* Whether two muGraphs compute the same. What the reference computes is kept: a search compares
 * many programs with it. */
#include "mugraph/eval.h"
#include "superopt/search/internal.h"

#include <float.h>
#include <math.h>

enum { SEEDS = 2, MOST_SEEDS = 6, SCALES = 3, SHIFTED = SCALES - 1 };

typedef struct ports {
    uint32_t n[3]; /* INPUT, OUTPUT, WEIGHT */
    int64_t *count[3];
} ports;

static const po_mu_place places[3] = {PO_MU_INPUT, PO_MU_OUTPUT, PO_MU_WEIGHT};

static ports ports_of(po_arena *arena, const po_mu *mu) {
    ports p = {{0}, {NULL}};
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < mu->n_tensors; i++)
            if (mu->tensors[i].place == places[k] && mu->tensors[i].number >= p.n[k])
                p.n[k] = mu->tensors[i].number + 1;
        p.count[k] = PO_NEW_N(arena, int64_t, p.n[k] + 1);
        for (uint32_t i = 0; i < mu->n_tensors; i++) {
            const po_mu_tensor *t = &mu->tensors[i];
            if (t->place == places[k])
                p.count[k][t->number] = po_mu_elements(t);
        }
    }
    return p;
}

/* --- the reference --- */

/* Over finite fields, under one seed. */
typedef struct residues {
    bool made, says;           /* says: no division by 0 */
    po_mu_residue **values[3]; /* by port */
} residues;

/* In float64. */
typedef struct floats {
    bool made;
    double **values[3], **size;
    double **single; /* outputs in f32 (SHIFTED) */
} floats;

struct search_reference {
    const po_mu *mu;
    ports ports;
    residues seed[MOST_SEEDS];
    floats scale[SCALES];
};

static const double scales[SCALES] = {1, 40, 1};
/* Numbers far from 0 that differ by little: what a difference of large numbers loses shows. */
static const double shifts[SCALES] = {0, 0, 64};

static po_status make_residues(po_ctx *ctx, po_arena *arena, const search_reference *r,
                               uint32_t which, residues *to) {
    uint64_t seed = which + 1;
    for (uint32_t k = 0; k < 3; k++) {
        to->values[k] = PO_NEW_N(arena, po_mu_residue *, r->ports.n[k] + 1);
        for (uint32_t i = 0; i < r->ports.n[k]; i++) {
            int64_t count = r->ports.count[k][i];
            to->values[k][i] = PO_NEW_N(arena, po_mu_residue, count);
            for (int64_t e = 0; e < count && k != 1; e++)
                to->values[k][i][e] = po_mu_residue_random(seed, 16 * k + i, (uint64_t)e);
        }
    }
    po_status status =
        po_mu_eval_mod(ctx, r->mu, (const po_mu_residue *const *)to->values[0],
                       (const po_mu_residue *const *)to->values[2], to->values[1], seed);
    to->says = status == PO_OK;
    to->made = true;
    if (status != PO_UNSUPPORTED)
        return status;
    po_ctx_clear(ctx);
    return PO_OK;
}

static po_status make_floats(po_ctx *ctx, po_arena *arena, const search_reference *r,
                             uint32_t which, floats *to) {
    for (uint32_t k = 0; k < 3; k++) {
        to->values[k] = PO_NEW_N(arena, double *, r->ports.n[k] + 1);
        for (uint32_t i = 0; i < r->ports.n[k]; i++) {
            int64_t count = r->ports.count[k][i];
            to->values[k][i] = PO_NEW_N(arena, double, count);
            for (int64_t e = 0; e < count && k != 1; e++)
                to->values[k][i][e] =
                    (double)(float)((k ? 0 : shifts[which]) +
                                    (k ? 1 : scales[which]) *
                                        po_random_normal(7 + which, 16 * k + i, (uint64_t)e));
        }
    }
    to->size = PO_NEW_N(arena, double *, r->ports.n[1] + 1);
    to->single = PO_NEW_N(arena, double *, r->ports.n[1] + 1);
    for (uint32_t i = 0; i < r->ports.n[1]; i++) {
        to->size[i] = PO_NEW_N(arena, double, r->ports.count[1][i]);
        to->single[i] = PO_NEW_N(arena, double, r->ports.count[1][i]);
    }
    to->made = true;
    if (which == SHIFTED)
        PO_TRY(po_mu_eval_single(ctx, r->mu, (const double *const *)to->values[0],
                                 (const double *const *)to->values[2], to->single));
    return po_mu_eval(ctx, r->mu, (const double *const *)to->values[0],
                      (const double *const *)to->values[2], to->values[1], to->size);
}

static search_reference *reference_of(po_arena *arena, const po_mu *mu) {
    search_reference *r = PO_NEW(arena, search_reference);
    r->mu = mu;
    r->ports = ports_of(arena, mu);
    return r;
}

po_status search_reference_of(po_ctx *ctx, po_arena *arena, const po_mu *mu,
                              search_reference **reference) {
    search_reference *r = *reference = reference_of(arena, mu);
    for (uint32_t i = 0, said = 0; i < MOST_SEEDS && said < SEEDS; i++) {
        PO_TRY(make_residues(ctx, arena, r, i, &r->seed[i]));
        said += r->seed[i].says;
    }
    for (uint32_t i = 0; i < SCALES; i++)
        PO_TRY(make_floats(ctx, arena, r, i, &r->scale[i]));
    return PO_OK;
}

/* --- the candidate --- */

typedef struct comparing {
    po_ctx *ctx;
    po_arena *arena;
    const search_reference *r;
    const po_mu *b;
    const po_packed *packed;
    ports pb;
    int64_t **from; /* by WEIGHT of b: sources, or NULL */
} comparing;

/* By element of the packed weight: that of the weight, or -1. */
static int64_t *sources(po_arena *arena, const po_packing *k, int64_t *count) {
    int64_t n = 1, stride[PO_PACK_MAX];
    for (uint32_t i = k->rank; i-- > 0;) {
        stride[i] = n;
        n *= k->dims[i];
    }
    int64_t *from = PO_NEW_N(arena, int64_t, n);
    *count = n;
    for (int64_t e = 0; e < n; e++) {
        /* Index of the transposed, joined to `merged`, cut to `length`. */
        int64_t flat = 0, at = 0, rest;
        for (uint32_t i = 0; i < k->rank; i++)
            flat = flat * k->dims[k->perm[i]] + e / stride[k->perm[i]] % k->dims[k->perm[i]];
        int64_t below = 1, index[PO_PACK_MAX];
        rest = flat;
        for (uint32_t i = k->merged_rank; i-- > 0;) {
            index[i] = rest % k->merged[i];
            rest /= k->merged[i];
        }
        bool in = true;
        for (uint32_t i = k->merged_rank; i-- > 0;) {
            in &= index[i] < k->length[i];
            at += index[i] * below;
            below *= k->length[i];
        }
        from[e] = in ? at : -1;
    }
    return from;
}

static po_status differ(const comparing *c, const char *how, uint32_t output, int64_t element) {
    return po_fail(c->ctx, PO_BAD_INPUT,
                   "muGraph '%s' computes something else than '%s': %s, output %u, element %lld",
                   c->b->name, c->r->mu->name, how, output, (long long)element);
}

static uint32_t weight_of(const comparing *c, uint32_t number) {
    return c->packed ? c->packed[number].weight : number;
}

static po_status compare_residues(const comparing *c, uint32_t which, bool *said) {
    po_arena *arena = po_arena_child(c->arena);
    const ports *pa = &c->r->ports;
    residues own, *a = &own;
    po_status status = PO_OK;
    if (c->r->seed[which].made)
        own = c->r->seed[which];
    else
        status = make_residues(c->ctx, arena, c->r, which, a);
    po_mu_residue **out = PO_NEW_N(arena, po_mu_residue *, pa->n[1] + 1);
    po_mu_residue **packed = PO_NEW_N(arena, po_mu_residue *, c->pb.n[2] + 1);
    for (uint32_t i = 0; i < c->pb.n[2]; i++) {
        const po_mu_residue *from = a->values[2][weight_of(c, i)];
        packed[i] = a->values[2][weight_of(c, i)];
        if (!c->from[i])
            continue;
        packed[i] = PO_NEW_N(arena, po_mu_residue, c->pb.count[2][i]);
        for (int64_t e = 0; e < c->pb.count[2][i]; e++)
            packed[i][e] = c->from[i][e] < 0 ? po_mu_residue_of(0) : from[c->from[i][e]];
    }
    for (uint32_t i = 0; i < pa->n[1]; i++)
        out[i] = PO_NEW_N(arena, po_mu_residue, pa->count[1][i]);
    if (status == PO_OK && a->says)
        status = po_mu_eval_mod(c->ctx, c->b, (const po_mu_residue *const *)a->values[0],
                                (const po_mu_residue *const *)packed, out, which + 1);
    *said = status == PO_OK && a->says;
    if (status == PO_UNSUPPORTED) {
        po_ctx_clear(c->ctx);
        status = PO_OK;
    }
    for (uint32_t i = 0; i < pa->n[1] && *said && status == PO_OK; i++)
        for (int64_t e = 0; e < pa->count[1][i] && status == PO_OK; e++)
            if (!po_mu_residue_equal(a->values[1][i][e], out[i][e]))
                status = differ(c, "over finite fields", i, e);
    po_arena_free(arena);
    return status;
}

/* How far f32 may be off float64 where the reference's own is `own` off, values being `most` large:
 * sums go in other orders, but no digits are lost that it keeps. */
static double most_lost(double own, double most) {
    return 16 * own + 64 * (double)FLT_EPSILON * most;
}

/* Whether a program keeps the digits that the reference keeps. */
static po_status compare_digits(const comparing *c, const floats *a, double *const *out) {
    for (uint32_t i = 0; i < c->r->ports.n[1]; i++) {
        double own = 0, most = 0;
        for (int64_t e = 0; e < c->r->ports.count[1][i]; e++) {
            const double x = a->values[1][i][e], y = a->single[i][e];
            if (isfinite(x) && isfinite(y)) {
                own = fmax(own, fabs(x - y));
                most = fmax(most, fabs(x));
            }
        }
        for (int64_t e = 0; e < c->r->ports.count[1][i]; e++) {
            const double x = a->values[1][i][e], y = out[i][e];
            if (isfinite(x) && isfinite(a->single[i][e]) && !(fabs(x - y) <= most_lost(own, most)))
                return differ(c, "it loses digits", i, e);
        }
    }
    return PO_OK;
}

static po_status compare_floats(const comparing *c, uint32_t which) {
    static const double tolerance = 1e-10;
    po_arena *arena = po_arena_child(c->arena);
    const ports *pa = &c->r->ports;
    floats own, *a = &own;
    po_status status = PO_OK;
    if (c->r->scale[which].made)
        own = c->r->scale[which];
    else
        status = make_floats(c->ctx, arena, c->r, which, a);
    double **out = PO_NEW_N(arena, double *, pa->n[1] + 1);
    double **packed = PO_NEW_N(arena, double *, c->pb.n[2] + 1);
    for (uint32_t i = 0; i < c->pb.n[2]; i++) {
        const double *from = a->values[2][weight_of(c, i)];
        packed[i] = a->values[2][weight_of(c, i)];
        if (!c->from[i])
            continue;
        packed[i] = PO_NEW_N(arena, double, c->pb.count[2][i]);
        for (int64_t e = 0; e < c->pb.count[2][i]; e++)
            packed[i][e] = c->from[i][e] < 0 ? 0 : from[c->from[i][e]];
    }
    for (uint32_t i = 0; i < pa->n[1]; i++)
        out[i] = PO_NEW_N(arena, double, pa->count[1][i]);
    if (status == PO_OK)
        status = (which == SHIFTED)
                     ? po_mu_eval_single(c->ctx, c->b, (const double *const *)a->values[0],
                                         (const double *const *)packed, out)
                     : po_mu_eval(c->ctx, c->b, (const double *const *)a->values[0],
                                  (const double *const *)packed, out, NULL);
    if (status == PO_OK && which == SHIFTED)
        status = compare_digits(c, a, out);
    for (uint32_t i = 0; i < pa->n[1] && which != SHIFTED && status == PO_OK; i++)
        for (int64_t e = 0; e < pa->count[1][i] && status == PO_OK; e++) {
            double x = a->values[1][i][e], y = out[i][e];
            if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= tolerance * a->size[i][e]))
                status = differ(c, which ? "in float64, large inputs" : "in float64", i, e);
        }
    po_arena_free(arena);
    return status;
}

static po_status same_borders(const comparing *c) {
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < c->pb.n[k] && k < 2; i++)
            if (i >= c->r->ports.n[k] || c->r->ports.count[k][i] != c->pb.count[k][i])
                return differ(c, k ? "another output" : "another input", i, 0);
        for (uint32_t i = 0; i < c->pb.n[k] && k == 2; i++)
            if (weight_of(c, i) >= c->r->ports.n[2] ||
                (!c->packed && c->pb.count[2][i] != c->r->ports.count[2][i]))
                return differ(c, "another weight", i, 0);
    }
    return c->pb.n[1] == c->r->ports.n[1] ? PO_OK : differ(c, "another output", 0, 0);
}

po_status search_same_as(po_ctx *ctx, const search_reference *r, const po_mu *candidate,
                         const po_packed *packed, uint32_t n_packed, int64_t shared_limit) {
    PO_TRY(po_mu_check(ctx, candidate, shared_limit));
    comparing c = {
        .ctx = ctx, .arena = po_arena_create(ctx), .r = r, .b = candidate, .packed = packed};
    c.pb = ports_of(c.arena, candidate);
    po_status status =
        packed && c.pb.n[2] != n_packed ? differ(&c, "other weights", 0, 0) : same_borders(&c);
    c.from = PO_NEW_N(c.arena, int64_t *, c.pb.n[2] + 1);
    for (uint32_t i = 0; i < n_packed && packed && status == PO_OK; i++) {
        int64_t count;
        c.from[i] = sources(c.arena, &packed[i].packing, &count);
        if (count != c.pb.count[2][i])
            status = differ(&c, "a weight of another size", i, 0);
    }
    uint32_t said = 0;
    for (uint32_t i = 0; i < MOST_SEEDS && said < SEEDS && status == PO_OK; i++) {
        bool one;
        status = compare_residues(&c, i, &one);
        said += one;
    }
    if (status == PO_OK && said < SEEDS)
        status = differ(&c, "the finite fields say nothing", 0, 0);
    for (uint32_t i = 0; i < SCALES && status == PO_OK; i++)
        status = compare_floats(&c, i);
    po_arena_free(c.arena);
    return status;
}

po_status po_search_same(po_ctx *ctx, const po_mu *reference, const po_mu *candidate,
                         const po_packed *packed, uint32_t n_packed, int64_t shared_limit) {
    po_arena *arena = po_arena_create(ctx);
    po_status status = search_same_as(ctx, reference_of(arena, reference), candidate, packed,
                                      n_packed, shared_limit);
    po_arena_free(arena);
    return status;
}
