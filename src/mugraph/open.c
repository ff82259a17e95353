/* What of a muGraph's numbers hangs on sizes, and where its accesses lie at all of them. */
#include "mugraph/open.h"

#include "ir/size.h"
#include "mugraph/open_private.h"
#include "mugraph/parts.h"

enum { MOST_RING = 64 /* around what other sizes read past the dims */ };

/* --- construction --- */

static po_mu_open *create(po_arena *arena, const po_mu *mu) {
    po_mu_open *o = PO_NEW(arena, po_mu_open);
    *o = (po_mu_open){.arena = arena,
                      .mu = mu,
                      .extent = PO_NEW_N(arena, po_dim, mu->n_labels + 1),
                      .dim = PO_NEW_N(arena, po_mu_dims, mu->n_tensors + 1),
                      .stride = PO_NEW_N(arena, po_mu_dims, mu->n_tensors + 1),
                      .floats = PO_NEW_N(arena, po_dim, mu->n_tensors + 1),
                      .origin = PO_NEW_N(arena, po_dim, mu->n_tensors + 1),
                      .made = PO_NEW_N(arena, bool, mu->n_labels + 1),
                      .reached = PO_NEW_N(arena, po_mu_flags, mu->n_tensors + 1)};
    return o;
}

static void as_it_is(po_mu_open *o, uint32_t tensor) {
    const po_mu_tensor *t = &o->mu->tensors[tensor];
    for (uint32_t a = 0; a < t->rank; a++)
        o->stride[tensor][a] = PO_DIM(t->stride[a]);
    o->floats[tensor] = PO_DIM(t->floats);
    o->origin[tensor] = PO_DIM(t->origin);
}

const po_mu_open *po_mu_closed(po_arena *arena, const po_mu *mu) {
    po_mu_open *o = create(arena, mu);
    for (uint32_t l = 0; l < mu->n_labels; l++)
        o->extent[l] = PO_DIM(mu->labels[l].extent);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        for (uint32_t a = 0; a < mu->tensors[i].rank; a++)
            o->dim[i][a] = PO_DIM(mu->tensors[i].dims[a]);
        as_it_is(o, i);
    }
    return o;
}

/* --- questions --- */

bool po_mu_open_label(const po_mu_open *o, uint32_t label) {
    return po_mu_is_open(o->extent[label]);
}

int64_t po_mu_open_chunk(const po_mu_open *o, uint32_t loop) {
    const int64_t chunk = po_mu_chunk(o->mu, loop);
    return chunk < o->mu->labels[o->mu->nodes[loop].label].extent ? chunk : 0;
}

/* The k-th length that a number stands for; the last where there are fewer. */
static po_dim way_of(const po_mu_open *o, int64_t number, uint32_t k, po_dim own) {
    for (uint32_t i = 0; i < o->n_known && po_mu_is_open(own); i++)
        if (o->known[i].number == number) {
            own = o->known[i].is;
            if (k-- == 0)
                break;
        }
    return own;
}

bool po_mu_open_reach(const po_mu_open *o, const po_mu_tensor *t, const po_mu_index *index,
                      uint32_t way, int64_t *least, po_dim *reach, bool *cut) {
    *least = index->offset;
    *reach = PO_DIM(0);
    for (uint32_t i = 0; i < index->n; i++) {
        const po_mu_term term = index->terms[i];
        const uint32_t loop = t ? po_mu_local_loop(o->mu, t, term.label) : PO_NONE;
        po_dim steps = o->extent[term.label];
        if (!o->made[term.label])
            steps = way_of(o, o->mu->labels[term.label].extent, way, steps);
        if (loop != PO_NONE) {
            const int64_t chunk = po_mu_open_chunk(o, loop);
            steps = chunk ? PO_DIM(chunk) : steps;
            *cut = true;
        }
        if (term.coef < 0 && po_mu_is_open(steps))
            return false;
        const po_dim coef = term.coef < 0 ? PO_DIM(-term.coef) : po_mu_open_coef(o, index, i);
        if (!po_mu_is_open(steps) && !po_mu_is_open(coef)) {
            const int64_t more = coef.value * (steps.value > 0 ? steps.value - 1 : 0);
            *least -= term.coef < 0 ? more : 0;
            *reach = po_size_plus(o->arena, *reach, more);
        } else {
            *reach = po_size_add(o->arena, *reach, po_size_mul(o->arena, steps, coef));
            *reach = po_size_sub(o->arena, *reach, coef);
        }
    }
    return reach->value >= 0 || reach->symbol;
}

/* a >= b at all sizes. */
static bool at_least(const po_mu_open *o, po_dim a, po_dim b) {
    const po_dim d = po_size_sub(o->arena, a, b);
    return d.value >= 0 || (d.symbol && po_size_natural(o->arena, d));
}

bool po_mu_open_held(const po_mu_open *o, uint32_t tensor, uint32_t axis, int64_t *least,
                     po_dim *count) {
    const po_mu *mu = o->mu;
    const po_mu_tensor *t = &mu->tensors[tensor];
    bool cut = false, any = false, known = true;
    int64_t number;
    po_dim end = PO_DIM(0); /* behind the greatest, from 0 */
    *least = 0;
    *count = o->dim[tensor][axis];
    if (o->n_names == 0) {
        cut = po_mu_held(mu, tensor, axis, least, &number);
        *count = PO_DIM(number);
        return cut;
    }
    if (t->scope == PO_NONE || (t->place != PO_MU_SHARED && t->place != PO_MU_REGISTER))
        return false;
    int64_t low = 0;
    for (uint32_t n = t->scope; n != PO_NONE && po_mu_inside(mu, n, t->scope);
         n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t i = 0; mu->nodes[n].kind == PO_MU_STATEMENT && i <= s->n_in; i++) {
            const po_mu_access *access = i < s->n_in ? &s->in[i] : &s->out;
            int64_t from;
            po_dim reach;
            if (access->tensor != tensor)
                continue;
            known &= po_mu_open_reach(o, t, &access->axes[axis], 0, &from, &reach, &cut);
            const po_dim to = po_size_plus(o->arena, reach, from + 1);
            end = !any || at_least(o, to, end) ? to : end;
            known &= at_least(o, end, to);
            low = any && low < from ? low : from;
            any = true;
        }
    }
    if (!cut)
        return false;
    *least = low;
    *count = known ? po_size_plus(o->arena, end, -low) : PO_DIM_UNKNOWN;
    return true;
}

/* The least n for which dim + n >= end; what suffices with n does with more. */
static int64_t past_by(const po_mu_open *o, po_dim dim, po_dim end) {
    int64_t least = 1, most = MOST_RING + 1;
    if (at_least(o, dim, end)) /* as nearly always */
        return 0;
    while (least < most) {
        const int64_t n = most > MOST_RING ? MOST_RING : least + (most - least) / 2;
        if (at_least(o, po_size_plus(o->arena, dim, n), end))
            most = n;
        else if (n == MOST_RING)
            return -1;
        else
            least = n + 1;
    }
    return most;
}

/* How many places past the end of an axis are read at most; below 0: there is no such number. What
 * is the same wherever the program runs may be taken for one another. */
static int64_t past_end(const po_mu_open *open, const po_mu_access *access, uint32_t axis,
                        int64_t *least) {
    enum { WAYS = 3 };
    const po_dim own = open->dim[access->tensor][axis];
    const int64_t number = open->mu->tensors[access->tensor].dims[axis];
    po_mu_open o = *open;
    int64_t best = -1;
    o.arena = po_arena_child(open->arena); /* of all that is compared only the number stays */
    for (uint32_t way = 0; way < WAYS * WAYS && best != 0; way++) {
        bool cut = false;
        po_dim reach;
        if (!po_mu_open_reach(&o, NULL, &access->axes[axis], way % WAYS, least, &reach, &cut)) {
            best = -1;
            break;
        }
        const po_dim dim =
            o.reached[access->tensor][axis] ? own : way_of(&o, number, way / WAYS, own);
        const int64_t n = past_by(&o, dim, po_size_plus(o.arena, reach, *least + 1));
        best = best < 0 || (n >= 0 && n < best) ? n : best;
    }
    po_arena_free(o.arena);
    return best;
}

bool po_mu_open_leaves(const po_mu_open *o, const po_mu_access *access, uint32_t axis) {
    int64_t least, most;
    if (o->n_names == 0) {
        po_mu_range(o->mu, access, axis, &least, &most);
        return least < 0 || most >= o->mu->tensors[access->tensor].dims[axis];
    }
    return past_end(o, access, axis, &least) != 0 || least < 0;
}

po_mu_edge po_mu_open_edge(const po_mu_open *o, uint32_t statement, uint32_t operand) {
    const po_mu_statement *s = &o->mu->nodes[statement].statement;
    const po_mu_access *access = operand == PO_NONE ? &s->out : &s->in[operand];
    const po_mu_tensor *t = &o->mu->tensors[access->tensor];
    bool leaves = false, covered = operand != PO_NONE;
    if (o->n_names == 0)
        return po_mu_edge_of(o->mu, statement, operand);
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, held_least;
        po_dim held;
        const int64_t past = past_end(o, access, x, &least);
        if (past == 0 && least >= 0)
            continue;
        leaves = true;
        covered = covered && past >= 0 && least >= -t->before[x] && past <= t->after[x] &&
                  !po_mu_open_held(o, access->tensor, x, &held_least, &held);
    }
    if (!leaves)
        return PO_MU_WITHIN;
    return covered && po_mu_adds_nothing(s, operand, t->fill) ? PO_MU_RING : PO_MU_GUARD;
}

/* --- opening --- */

bool po_mu_open_part(const po_mu_open *o, double value, po_dim *of) {
    for (uint32_t i = 0; i < o->n_known; i++)
        if (po_mu_is_open(o->known[i].is) && 1.0 / (double)o->known[i].number == value) {
            *of = o->known[i].is;
            return true;
        }
    return false;
}

typedef struct checking {
    po_ctx *ctx;
    const po_mu_open *o;
    bool *read, *written; /* by tensor */
} checking;

static po_status note_use(void *user, const po_mu_access *access, bool written) {
    const checking *c = user;
    (written ? c->written : c->read)[access->tensor] = true;
    return PO_OK;
}

/* Whether labels that hang on no size run along all of an axis that does: it is cut into parts in
 * which other sizes have no place. */
static bool is_cut(const checking *c, const po_mu_access *access, uint32_t axis) {
    const po_mu_open *o = c->o;
    const po_mu_tensor *t = &o->mu->tensors[access->tensor];
    const po_mu_index *index = &access->axes[axis];
    int64_t least, most;
    bool open = index->n == 0 || t->place == PO_MU_WEIGHT || t->place == PO_MU_TABLE;
    for (uint32_t i = 0; i < index->n; i++)
        open |= po_mu_open_label(o, index->terms[i].label);
    po_mu_range(o->mu, access, axis, &least, &most);
    const bool end = c->read[access->tensor] != c->written[access->tensor];
    const bool hangs =
        po_mu_is_open(end ? po_mu_open_number(o, t->dims[axis]) : o->dim[access->tensor][axis]);
    return !open && hangs && most + 1 >= t->dims[axis];
}

static po_status check_cut(void *user, const po_mu_access *access, bool written) {
    const checking *c = user;
    const po_mu_tensor *t = &c->o->mu->tensors[access->tensor];
    (void)written;
    for (uint32_t a = 0; a < t->rank; a++)
        if (is_cut(c, access, a))
            return po_fail(c->ctx, PO_UNSUPPORTED,
                           "axis %u of '%s' is worked in parts that other sizes have not", a,
                           t->name);
    return PO_OK;
}

/* Rings reach as far as any size reads past the dims, where this one needs no test. */
static void widen(const po_mu_open *o, po_mu *mu, uint32_t node, uint32_t operand) {
    const po_mu_access *access = &mu->nodes[node].statement.in[operand];
    po_mu_tensor *t = &mu->tensors[access->tensor];
    if (t->place != PO_MU_DEVICE || po_mu_edge_of(mu, node, operand) == PO_MU_GUARD ||
        !po_mu_adds_nothing(&mu->nodes[node].statement, operand, t->fill))
        return;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, past = past_end(o, access, x, &least);
        t->after[x] = past > t->after[x] ? past : t->after[x];
        t->before[x] = -least > t->before[x] ? -least : t->before[x];
    }
}

/* Whole vectors between what lies one behind the other keep streams apart at other sizes too. */
static int64_t gap_of(const po_mu_open *o, const po_mu_tensor *t, uint32_t axis, po_dim stride) {
    int64_t here;
    if ((t->place != PO_MU_DEVICE && t->place != PO_MU_SHARED) ||
        !po_mu_open_length(o, o->here, stride, &here) || here > t->stride[axis])
        return 0;
    return (t->stride[axis] - here) / PO_MU_VECTOR * PO_MU_VECTOR;
}

/* Row-major over what is held with its ring. Where that hangs on no size strides stay as they are,
 * with what they were rounded up by. */
static bool lay_out(po_mu_open *o, const po_mu *mu, uint32_t tensor) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    po_dim stride = PO_DIM(1), whole[PO_MU_MAX_RANK];
    bool open = false;
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t least;
        po_mu_open_held(o, tensor, a, &least, &whole[a]);
        whole[a] = po_size_plus(o->arena, whole[a], t->before[a] + t->after[a]);
        open |= po_mu_is_open(whole[a]);
    }
    if (!open) {
        as_it_is(o, tensor);
        return true;
    }
    o->origin[tensor] = PO_DIM(0);
    for (uint32_t a = t->rank; a-- > 0;) {
        po_dim *own = &o->stride[tensor][a];
        *own = !po_mu_is_open(stride) && t->place != PO_MU_INPUT && t->place != PO_MU_OUTPUT
                   ? PO_DIM(t->stride[a])
                   : po_size_plus(o->arena, stride, gap_of(o, t, a, stride));
        stride = po_size_mul(o->arena, *own, whole[a]);
        o->origin[tensor] =
            po_size_add(o->arena, o->origin[tensor], po_size_times(o->arena, *own, t->before[a]));
    }
    o->floats[tensor] = stride;
    return (!po_mu_is_open(stride) || stride.symbol) &&
           (!po_mu_is_open(o->origin[tensor]) || o->origin[tensor].symbol);
}

/* Strides of the size at hand, as they come out of the layout for all. */
static bool lay_out_here(const po_mu_open *o, po_mu *mu, const int64_t *lengths) {
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        po_mu_tensor *t = &mu->tensors[i];
        for (uint32_t a = 0; a < t->rank; a++)
            if (!po_mu_open_length(o, lengths, o->stride[i][a], &t->stride[a]))
                return false;
        po_mu_measure(mu, i);
    }
    return true;
}

/* It is known how far apart digits are in memory. */
static po_status check_steps(void *user, const po_mu_access *access, bool written) {
    const checking *c = user;
    const po_mu_open *o = c->o;
    (void)written;
    for (uint32_t a = 0; a < o->mu->tensors[access->tensor].rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++) {
            const po_dim coef = po_mu_open_coef(o, &access->axes[a], i);
            if (coef.symbol && !po_size_mul(o->arena, o->stride[access->tensor][a], coef).symbol)
                return po_fail(c->ctx, PO_UNSUPPORTED, "'%s' has steps that are not known",
                               o->mu->tensors[access->tensor].name);
        }
    return PO_OK;
}

po_status po_mu_open_by(po_ctx *ctx, po_arena *arena, po_mu *mu, const po_mu_naming *naming,
                        const po_mu_open **open) {
    po_mu_open *o = create(arena, mu);
    o->names = naming->names;
    o->n_names = naming->n_names;
    o->known = naming->known;
    o->n_known = naming->n_known;
    o->here = naming->lengths;
    PO_TRY(po_mu_open_find(ctx, o));
    checking c = {ctx, o, PO_NEW_N(arena, bool, mu->n_tensors + 1),
                  PO_NEW_N(arena, bool, mu->n_tensors + 1)};
    PO_TRY(po_mu_each_access(mu, note_use, &c));
    PO_TRY(po_mu_each_access(mu, check_cut, &c));
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n))
        for (uint32_t k = 0;
             mu->nodes[n].kind == PO_MU_STATEMENT && k < mu->nodes[n].statement.n_in; k++)
            widen(o, mu, n, k);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        po_mu_tensor *t = &mu->tensors[i];
        if (po_mu_has_ring(t) && t->place == PO_MU_DEVICE)
            po_mu_layout(mu, i, 1, 0);
        if (!lay_out(o, mu, i))
            return po_fail(ctx, PO_UNSUPPORTED, "'%s' has no length for all sizes", t->name);
    }
    if (!lay_out_here(o, mu, naming->lengths))
        return po_fail(ctx, PO_UNSUPPORTED, "'%s' has lengths that are not known", mu->name);
    *open = o;
    return po_mu_each_access(mu, check_steps, &c);
}

/* --- at other sizes --- */

typedef struct lengths_of {
    const po_mu_open *open;
    const int64_t *lengths;
} lengths_of;

static bool length_named(void *user, const char *name, int64_t *length) {
    const lengths_of *l = user;
    for (uint32_t k = 0; k < l->open->n_names; k++)
        if (strcmp(l->open->names[k], name) == 0) {
            *length = l->lengths[k];
            return true;
        }
    return false;
}

bool po_mu_open_length(const po_mu_open *open, const int64_t *lengths, po_dim dim, int64_t *value) {
    lengths_of l = {open, lengths};
    *value = dim.value;
    return dim.value >= 0 || (dim.symbol && po_size_at(open->arena, dim, length_named, &l, value));
}

/* Its constants that are 1 over a length. */
static bool set_parts(po_arena *arena, const po_mu_open *open, const int64_t *lengths,
                      po_mu_statement *s) {
    po_mu_item *items = po_arena_memdup(arena, s->items, s->n_items * sizeof *items);
    for (uint32_t i = 0; i < s->n_items; i++) {
        po_dim of;
        int64_t n;
        if (items[i].function != PO_MU_CONST || !po_mu_open_part(open, items[i].value, &of))
            continue;
        if (!po_mu_open_length(open, lengths, of, &n))
            return false;
        items[i].value = n == 0 ? 0 : 1.0 / (double)n; /* as printed */
    }
    s->items = items;
    return true;
}

/* Its bases that hang on sizes. */
static bool set_coefs(po_arena *arena, const po_mu_open *open, const int64_t *lengths,
                      po_mu_access *access) {
    const uint32_t rank = open->mu->tensors[access->tensor].rank;
    po_mu_index *axes = po_arena_memdup(arena, access->axes, rank * sizeof *axes);
    for (uint32_t a = 0; a < rank; a++) {
        po_mu_term *terms = po_arena_memdup(arena, axes[a].terms, axes[a].n * sizeof *terms);
        for (uint32_t i = 0; i < axes[a].n; i++) {
            const po_dim coef = po_mu_open_coef(open, &access->axes[a], i);
            if (coef.symbol && !po_mu_open_length(open, lengths, coef, &terms[i].coef))
                return false;
            terms[i].coef = coef.symbol && terms[i].coef == 0 ? 1 : terms[i].coef; /* of nothing */
        }
        axes[a].terms = terms;
    }
    access->axes = axes;
    return true;
}

po_mu *po_mu_open_at(po_arena *arena, const po_mu_open *open, const int64_t *lengths) {
    const po_mu *from = open->mu;
    po_mu *mu = po_mu_copy(arena, from);
    bool known = true;
    for (uint32_t l = 0; l < mu->n_labels; l++)
        known &= po_mu_open_length(open, lengths, open->extent[l], &mu->labels[l].extent);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        for (uint32_t a = 0; a < mu->tensors[i].rank; a++)
            known &= po_mu_open_length(open, lengths, open->dim[i][a], &mu->tensors[i].dims[a]);
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k <= s->n_in; k++)
            known &= set_coefs(arena, open, lengths, k < s->n_in ? &s->in[k] : &s->out);
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            known &= set_parts(arena, open, lengths, s);
    }
    return known && lay_out_here(open, mu, lengths) ? mu : NULL;
}

bool po_mu_open_is_there(const po_mu *there) {
    for (uint32_t l = 0; l < there->n_labels; l++)
        if (there->labels[l].extent <= 0)
            return false;
    return true;
}
