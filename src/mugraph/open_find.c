/* Which length each extent and dim of a muGraph is. Numbers of the size at hand that stand for a
 * length are that. What a schedule makes of them is told by how it is used: a label that counts
 * parts of an axis (tiles of a map) is as long as covers what it writes; a tensor that parts are
 * written to is as long as they reach; and what runs along that is as long as it. */
#include "ir/size.h"
#include "mugraph/open_private.h"

enum { ROUNDS = 4 /* of lengths that follow from lengths */ };

po_dim po_mu_open_number(const po_mu_open *o, int64_t number) {
    for (uint32_t i = 0; i < o->n_known; i++)
        if (o->known[i].number == number)
            return o->known[i].is;
    return PO_DIM(number);
}

/* The same of an axis that an open label runs along, which may have a margin. */
static po_dim length_with_margin(const po_mu_open *o, int64_t number) {
    enum { MARGIN = 16 };
    for (int64_t more = 0; more <= MARGIN; more++)
        for (int64_t sign = 1; sign >= -1; sign -= 2) {
            const po_dim d = po_mu_open_number(o, number - sign * more);
            if (po_mu_is_open(d))
                return po_size_plus(o->arena, d, sign * more);
        }
    return PO_DIM_UNKNOWN;
}

/* --- accesses --- */

typedef struct finding {
    po_ctx *ctx;
    po_mu_open *o;
    bool *constant;             /* by label: it indexes a constant */
    po_mu_flags *fixed, *along; /* by tensor and axis: an access has labels there, none of which is
                                    open; one that is */
    bool *tile;                 /* by label: it counts tiles, whose places index constants */
    bool changed;
} finding;

po_status po_mu_each_access(const po_mu *mu, po_mu_access_fn *fn, void *user) {
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k <= s->n_in; k++)
            PO_TRY(fn(user, k < s->n_in ? &s->in[k] : &s->out, k == s->n_in));
    }
    return PO_OK;
}

static bool is_constant(const po_mu_tensor *t) {
    return t->place == PO_MU_WEIGHT || t->place == PO_MU_TABLE;
}

/* --- labels --- */

/* What indexes a constant is as long as that is. */
static po_status find_constant(void *user, const po_mu_access *access, bool written) {
    finding *f = user;
    const po_mu_tensor *t = &f->o->mu->tensors[access->tensor];
    (void)written;
    for (uint32_t a = 0; is_constant(t) && a < t->rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++)
            f->constant[access->axes[a].terms[i].label] = true;
    return PO_OK;
}

static bool same(po_dim a, po_dim b) {
    return a.symbol && b.symbol && strcmp(a.symbol, b.symbol) == 0;
}

/* Whether a number stands for this length, or for none. */
static bool may_be(const po_mu_open *o, int64_t number, po_dim length) {
    bool any = false;
    for (uint32_t i = 0; i < o->n_known; i++) {
        if (o->known[i].number == number && same(o->known[i].is, length))
            return true;
        any |= o->known[i].number == number;
    }
    return !any;
}

/* So many of those along an axis: of the lengths that the axis has, one that the label's number
 * stands for too, if there is such. */
static po_dim parts_of(const po_mu_open *o, int64_t number, po_dim own, int64_t by,
                       int64_t extent) {
    for (uint32_t i = 0; i < o->n_known; i++) {
        const po_dim parts = po_size_floor(o->arena, o->known[i].is, by - 1, by);
        if (o->known[i].number == number && may_be(o, extent, parts))
            return parts;
    }
    return po_size_floor(o->arena, own, by - 1, by);
}

static po_status set_extent(finding *f, uint32_t label, po_dim length) {
    po_mu_open *o = f->o;
    const po_mu_label *l = &o->mu->labels[label];
    int64_t here;
    if (!po_mu_is_open(length) || f->constant[label] ||
        !po_mu_open_length(o, o->here, length, &here) || here != l->extent)
        return PO_OK;
    if (o->made[label] && !same(o->extent[label], length))
        return po_fail(f->ctx, PO_UNSUPPORTED, "label '%s' is two lengths", l->name);
    f->changed |= !o->made[label];
    o->made[label] = true;
    o->extent[label] = length;
    return PO_OK;
}

/* An index in digits, y = 4 * tile + place: its top, the places of one part filling it exactly;
 * PO_NONE: it is none. */
static uint32_t digits_of(const po_mu_open *o, const po_mu_index *index) {
    uint32_t top = 0;
    int64_t filled = 1;
    for (uint32_t i = 0; i < index->n; i++)
        top = index->terms[i].coef > index->terms[top].coef ? i : top;
    for (uint32_t i = 0; i < index->n; i++) {
        const po_mu_term term = index->terms[i];
        if (i != top && (term.coef < 0 || po_mu_open_label(o, term.label)))
            return PO_NONE;
        filled += i != top ? term.coef * (o->mu->labels[term.label].extent - 1) : 0;
    }
    return index->n >= 2 && index->offset == 0 && filled == index->terms[top].coef ? top : PO_NONE;
}

static po_status find_tiles(void *user, const po_mu_access *access, bool written) {
    finding *f = user;
    for (uint32_t a = 0; written && a < f->o->mu->tensors[access->tensor].rank; a++) {
        const po_mu_index *index = &access->axes[a];
        const uint32_t top = digits_of(f->o, index);
        bool constant = top != PO_NONE;
        for (uint32_t i = 0; i < index->n; i++)
            constant &= i == top || f->constant[index->terms[i].label];
        if (constant)
            f->tile[index->terms[top].label] = true;
    }
    return PO_OK;
}

/* A label that counts parts of an axis is as long as covers it, whatever other length its number
 * stands for. What tiles are the places of lies in a tensor of tiles, whose length follows. */
static po_status find_parts(void *user, const po_mu_access *access, bool written) {
    finding *f = user;
    po_mu_open *o = f->o;
    for (uint32_t a = 0; written && a < o->mu->tensors[access->tensor].rank; a++) {
        const po_mu_index *index = &access->axes[a];
        const po_dim dim = o->dim[access->tensor][a];
        const uint32_t top = digits_of(o, index);
        bool of_tiles = false;
        for (uint32_t i = 0; i < index->n; i++)
            of_tiles |= i != top && f->tile[index->terms[i].label];
        if (top == PO_NONE || of_tiles || !po_mu_is_open(dim))
            continue;
        const uint32_t label = index->terms[top].label;
        PO_TRY(set_extent(f, label,
                          parts_of(o, o->mu->tensors[access->tensor].dims[a], dim,
                                   index->terms[top].coef, o->mu->labels[label].extent)));
    }
    return PO_OK;
}

/* What runs along all of a tensor that parts are written to is as long as it. */
static po_status find_runs(void *user, const po_mu_access *access, bool written) {
    finding *f = user;
    po_mu_open *o = f->o;
    (void)written;
    for (uint32_t a = 0; a < o->mu->tensors[access->tensor].rank; a++) {
        const po_mu_index *index = &access->axes[a];
        if (o->reached[access->tensor][a] && index->n == 1 && index->offset == 0 &&
            index->terms[0].coef == 1)
            PO_TRY(set_extent(f, index->terms[0].label, o->dim[access->tensor][a]));
    }
    return PO_OK;
}

/* --- tensors --- */

static bool has_open(const po_mu_open *o, const po_mu_index *index) {
    bool open = false;
    for (uint32_t i = 0; i < index->n; i++)
        open |= po_mu_open_label(o, index->terms[i].label);
    return open;
}

static po_status find_fixed(void *user, const po_mu_access *access, bool written) {
    finding *f = user;
    (void)written;
    for (uint32_t a = 0; a < f->o->mu->tensors[access->tensor].rank; a++) {
        const bool open = has_open(f->o, &access->axes[a]);
        f->along[access->tensor][a] |= open;
        f->fixed[access->tensor][a] |= !open && access->axes[a].n > 0;
    }
    return PO_OK;
}

/* Whether parts are what an index counts: tiles, one behind the other. */
static bool counts_parts(const po_mu_open *o, const po_mu_index *index) {
    bool any = false;
    for (uint32_t i = 0; i < index->n; i++)
        any |= index->terms[i].coef == 1 && o->made[index->terms[i].label];
    return any;
}

/* A dim that is no length by its number is as long as what is written reaches; so is one along
 * which parts lie, whatever its number is. */
static po_status find_reached(void *user, const po_mu_access *access, bool written) {
    finding *f = user;
    po_mu_open *o = f->o;
    const po_mu_tensor *t = &o->mu->tensors[access->tensor];
    const bool ends = t->place == PO_MU_INPUT || t->place == PO_MU_OUTPUT || is_constant(t);
    for (uint32_t a = 0; written && !ends && a < t->rank; a++) {
        po_dim *dim = &o->dim[access->tensor][a], reach;
        int64_t least, here;
        bool cut;
        const bool open = has_open(o, &access->axes[a]);
        const bool parts = counts_parts(o, &access->axes[a]);
        if (!open || o->reached[access->tensor][a] || (dim->symbol && !parts) ||
            !po_mu_open_reach(o, NULL, &access->axes[a], 0, &least, &reach, &cut))
            continue;
        const po_dim end = po_size_plus(o->arena, reach, least + 1);
        if (least != 0 || !po_mu_open_length(o, o->here, end, &here) || here != t->dims[a])
            continue;
        *dim = end;
        f->changed = o->reached[access->tensor][a] = true;
    }
    return PO_OK;
}

/* margins: what is left over has one. */
static po_status find_dims(finding *f, bool margins) {
    po_mu_open *o = f->o;
    const po_mu *mu = o->mu;
    f->fixed = PO_NEW_N(o->arena, po_mu_flags, mu->n_tensors + 1);
    f->along = PO_NEW_N(o->arena, po_mu_flags, mu->n_tensors + 1);
    PO_TRY(po_mu_each_access(mu, find_fixed, f));
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        for (uint32_t a = 0; a < t->rank; a++) {
            const bool fixed = f->fixed[i][a] || is_constant(t);
            if (o->reached[i][a])
                continue;
            o->dim[i][a] = fixed ? PO_DIM(t->dims[a]) : po_mu_open_number(o, t->dims[a]);
            if (f->along[i][a] && !fixed && !po_mu_is_open(o->dim[i][a]))
                o->dim[i][a] = margins ? length_with_margin(o, t->dims[a]) : PO_DIM_UNKNOWN;
        }
    }
    return PO_OK;
}

/* --- digits --- */

po_dim po_mu_open_coef(const po_mu_open *o, const po_mu_index *index, uint32_t term) {
    const int64_t coef = index->terms[term].coef;
    for (uint32_t i = 0; i < index->n && o->n_names > 0 && coef > 1; i++) {
        const uint32_t label = index->terms[i].label;
        if (i != term && index->terms[i].coef == 1 && po_mu_is_open(o->extent[label]) &&
            o->mu->labels[label].extent == coef)
            return o->extent[label];
    }
    return PO_DIM(coef);
}

po_dim po_mu_open_coef_of(const po_mu_open *o, const po_mu_index *index, uint32_t label) {
    for (uint32_t i = 0; i < index->n; i++)
        if (index->terms[i].label == label)
            return po_mu_open_coef(o, index, i);
    return PO_DIM(0);
}

/* Whether a term steps over all of another that hangs on sizes, by a number that does not. */
static bool steps_over(const po_mu_open *o, const po_mu_index *index, uint32_t term) {
    const int64_t coef = index->terms[term].coef;
    bool over = false;
    for (uint32_t i = 0; i < index->n; i++)
        over |= i != term && index->terms[i].coef == 1 &&
                po_mu_open_label(o, index->terms[i].label) && coef > 1 &&
                coef >= o->mu->labels[index->terms[i].label].extent;
    return over && !po_mu_is_open(po_mu_open_coef(o, index, term));
}

/* Above a digit whose base hangs on sizes all bases do. */
static po_status check_digits(void *user, const po_mu_access *access, bool written) {
    const finding *f = user;
    const po_mu_open *o = f->o;
    (void)written;
    for (uint32_t a = 0; a < o->mu->tensors[access->tensor].rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++)
            if (steps_over(o, &access->axes[a], i))
                return po_fail(f->ctx, PO_UNSUPPORTED,
                               "axis %u of '%s' has parts of parts that other sizes have not", a,
                               o->mu->tensors[access->tensor].name);
    return PO_OK;
}

po_status po_mu_open_find(po_ctx *ctx, po_mu_open *o) {
    const po_mu *mu = o->mu;
    finding f = {.ctx = ctx,
                 .o = o,
                 .constant = PO_NEW_N(o->arena, bool, mu->n_labels + 1),
                 .tile = PO_NEW_N(o->arena, bool, mu->n_labels + 1),
                 .changed = true};
    PO_TRY(po_mu_each_access(mu, find_constant, &f));
    for (uint32_t l = 0; l < mu->n_labels; l++)
        o->extent[l] = f.constant[l] ? PO_DIM(mu->labels[l].extent)
                                     : po_mu_open_number(o, mu->labels[l].extent);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        for (uint32_t a = 0; a < mu->tensors[i].rank; a++)
            o->dim[i][a] = is_constant(&mu->tensors[i])
                               ? PO_DIM(mu->tensors[i].dims[a])
                               : po_mu_open_number(o, mu->tensors[i].dims[a]);
    PO_TRY(po_mu_each_access(mu, find_tiles, &f));
    PO_TRY(po_mu_each_access(mu, find_parts, &f));
    for (uint32_t round = 0; round < ROUNDS && f.changed; round++) {
        f.changed = false;
        PO_TRY(find_dims(&f, false));
        PO_TRY(po_mu_each_access(mu, find_reached, &f));
        PO_TRY(po_mu_each_access(mu, find_runs, &f));
    }
    PO_TRY(find_dims(&f, true));
    return po_mu_each_access(mu, check_digits, &f);
}
