/* A region for all sizes: what its kernel is given and gives, and the program at other sizes. Its
 * lengths are those of the model where its inputs tell them; else its inputs have names of their
 * own, and what follows from them is inferred in the region alone. */
#include "ir/function.h"
#include "ir/size.h"
#include "ops/op.h"
#include "pipeline/kernels/open_sizes.h"
#include "pipeline/kernels/stage.h"

#include <stdlib.h>

enum { MOST_MULTIPLE = 64, MOST_SHARED = 64 << 20 }; /* larger maps are worked, if slower */

typedef struct opening {
    const po_run *run;
    po_arena *arena;
    const po_open_sizes *sizes;
    const po_region *region;
    po_mu_naming naming; /* the names that the region has */
    po_kernel_given *given;
    po_dim *is;          /* by name: over the model's */
    const po_dim **dims; /* by port: over the names */
    const po_size_pair *equal;
    uint32_t n_equal;
} opening;

static const po_type *type_of(const opening *o, po_value_id v) {
    return &o->sizes->named->values[v].type;
}

static po_value_id port_at(const po_region *r, uint32_t i) {
    return i < r->n_in ? r->in[i] : r->out[i - r->n_in];
}

/* --- what is given --- */

/* The multiple of a name that a dim is; 0: it is none. */
static int64_t multiple_of(const opening *o, po_dim dim, const char *name) {
    for (int64_t c = 1; dim.value < 0 && dim.symbol && c <= MOST_MULTIPLE; c++)
        if (po_dim_same(dim, po_size_times(o->arena, (po_dim){-1, name}, c)))
            return c;
    return 0;
}

static bool is_given(const opening *o, const char *name, po_kernel_given *given) {
    for (uint32_t i = 0; i < o->region->n_in; i++) {
        const po_type *type = type_of(o, o->region->in[i]);
        for (uint32_t d = 0; d < type->rank; d++) {
            const int64_t multiple = multiple_of(o, type->dims[d], name);
            if (multiple > 0) {
                *given = (po_kernel_given){i, d, multiple};
                return true;
            }
        }
    }
    return false;
}

/* Names that some input of the region tells. */
static void find_given(opening *o) {
    const po_mu_naming *all = &o->sizes->plan.naming;
    const char **names = PO_NEW_N(o->arena, const char *, all->n_names + 1);
    int64_t *lengths = PO_NEW_N(o->arena, int64_t, all->n_names + 1);
    uint32_t n = 0;
    o->given = PO_NEW_N(o->arena, po_kernel_given, all->n_names + 1);
    o->is = PO_NEW_N(o->arena, po_dim, all->n_names + 1);
    for (uint32_t k = 0; k < all->n_names; k++)
        if (is_given(o, all->names[k], &o->given[n])) {
            lengths[n] = all->lengths[k];
            o->is[n] = (po_dim){-1, all->names[k]};
            names[n++] = all->names[k];
        }
    o->naming = *all;
    o->naming.names = names;
    o->naming.n_names = n;
    o->naming.lengths = lengths;
    o->dims = PO_NEW_N(o->arena, const po_dim *, o->region->n_in + o->region->n_out + 1);
    for (uint32_t i = 0; i < o->region->n_in + o->region->n_out; i++)
        o->dims[i] = type_of(o, port_at(o->region, i))->dims;
}

/* --- names of its own --- */

typedef struct naming_own {
    opening *o;
    const char *name[PO_KERNEL_GIVEN];
    int64_t length[PO_KERNEL_GIVEN];
    uint32_t n;
} naming_own;

/* The dim as a multiple of a name, a new one where there is none; the number of what is the same
 * wherever the model runs; unknown: there are too many. */
static po_dim own_dim(naming_own *w, po_dim dim, uint32_t input, uint32_t axis, int64_t here) {
    opening *o = w->o;
    const po_mu_naming *all = &o->sizes->plan.naming;
    if (po_open_lengths_same(o->arena, all->names, all->n_names, o->sizes->samples, dim,
                             PO_DIM(here)))
        return PO_DIM(here);
    for (uint32_t k = 0; k < w->n; k++) {
        const po_dim times = po_size_divide(o->arena, dim, o->is[k]);
        if (times.value > 0)
            return po_size_times(o->arena, (po_dim){-1, w->name[k]}, times.value);
    }
    if (w->n == PO_KERNEL_GIVEN || here < 1 || !dim.symbol)
        return PO_DIM_UNKNOWN;
    o->is[w->n] = (po_dim){-1, po_arena_strdup(o->arena, dim.symbol)};
    o->given[w->n] = (po_kernel_given){input, axis, 1};
    w->length[w->n] = here;
    w->name[w->n] = po_arena_printf(o->arena, "q%u", w->n);
    return (po_dim){-1, w->name[w->n++]};
}

/* The region by itself, its inputs' lengths named. */
static po_status own_graph(naming_own *w, const po_kernel_ports *from, po_graph **body) {
    const opening *o = w->o;
    const po_region *r = o->region;
    po_ctx *ctx = o->run->ctx;
    po_node_id call;
    const po_outline outline = po_region_outline("region", r);
    po_graph *whole = po_graph_clone(ctx, o->sizes->named);
    po_status status = po_graph_outline(ctx, whole, &outline, body, &call);
    po_graph_free(whole);
    PO_TRY(status);
    for (uint32_t i = 0; i < r->n_in; i++) {
        po_type *type = &(*body)->values[(*body)->inputs[i]].type;
        po_dim *dims = po_arena_memdup((*body)->arena, type->dims, type->rank * sizeof *dims);
        for (uint32_t d = 0; d < type->rank; d++)
            if (dims[d].value < 0)
                dims[d] = own_dim(w, dims[d], i, d, from->in[i].dims[d]);
        type->dims = dims;
    }
    PO_TRY(po_infer_forget_shapes(ctx, *body));
    return po_infer_graph(ctx, *body, true);
}

/* The lengths of its ports over those names; the graph is needed no more. */
static po_status take_own(opening *o, const po_graph *body) {
    for (uint32_t i = 0; i < o->region->n_in + o->region->n_out; i++) {
        const po_value_id v =
            i < o->region->n_in ? body->inputs[i] : body->outputs[i - o->region->n_in];
        const po_type *own = &body->values[v].type, *type = type_of(o, port_at(o->region, i));
        if (!own->has_rank || own->rank != type->rank)
            return po_fail(o->run->ctx, PO_UNSUPPORTED, "the shape of '%s' is not known by itself",
                           body->values[v].name);
        po_dim *dims = po_arena_memdup(o->arena, own->dims, own->rank * sizeof *dims);
        for (uint32_t d = 0; d < own->rank; d++)
            dims[d].symbol = dims[d].symbol ? po_arena_strdup(o->arena, dims[d].symbol) : NULL;
        o->dims[i] = dims;
    }
    return PO_OK;
}

static po_status find_own(opening *o, const po_kernel_ports *from) {
    naming_own *w = PO_NEW(o->arena, naming_own);
    po_open_lengths *told = PO_NEW(o->arena, po_open_lengths);
    po_graph *body = NULL;
    *w = (naming_own){.o = o};
    o->is = PO_NEW_N(o->arena, po_dim, PO_KERNEL_GIVEN);
    o->given = PO_NEW_N(o->arena, po_kernel_given, PO_KERNEL_GIVEN);
    po_status status = own_graph(w, from, &body);
    po_open_lengths_init(told, o->arena, w->name, w->n, o->sizes->samples);
    if (status == PO_OK) {
        po_open_lengths_collect(told, body);
        if (w->n == 0 || !po_open_lengths_tell(told, w->length))
            status = po_fail(o->run->ctx, PO_UNSUPPORTED,
                             "its lengths are not told apart by what the region reads");
    }
    if (status == PO_OK)
        status = take_own(o, body);
    if (body)
        po_graph_free(body);
    o->naming = (po_mu_naming){w->n, w->name, w->length, told->known, told->n_known};
    o->equal = told->equal;
    o->n_equal = told->n_equal;
    return status;
}

/* --- ports --- */

static bool length_of(void *user, const char *name, int64_t *length) {
    const po_mu_naming *naming = user;
    for (uint32_t k = 0; k < naming->n_names; k++)
        if (strcmp(naming->names[k], name) == 0) {
            *length = naming->lengths[k];
            return true;
        }
    return false;
}

/* Whether a length is known by the names that are given. */
static bool is_known(const opening *o, po_dim dim) {
    int64_t number;
    return dim.value >= 0 || (dim.symbol && po_size_at(o->arena, dim, length_of,
                                                       (void *)(uintptr_t)&o->naming, &number));
}

static po_status set_ports(const opening *o, const po_kernel_ports *from, po_kernel_port *ports) {
    const po_region *r = o->region;
    for (uint32_t i = 0; i < r->n_in + r->n_out; i++) {
        const po_value_id v = port_at(r, i);
        const po_type *type = type_of(o, v);
        ports[i] = i < r->n_in ? from->in[i] : from->out[i - r->n_in];
        for (uint32_t d = 0; d < type->rank; d++) {
            const po_dim dim = o->dims[i][d];
            if (!is_known(o, dim) || (dim.value < 0 && ports[i].dims[d] < 0))
                return po_fail(o->run->ctx, PO_UNSUPPORTED,
                               "a length of '%s' is not told by what the region reads",
                               o->sizes->named->values[v].name);
            ports[i].open[d] = dim.value < 0 ? dim : (po_dim){0};
        }
    }
    return PO_OK;
}

/* The model's conditions that are told by what is given. */
static void find_equal(opening *o) {
    po_size_pair *list = PO_NEW_N(o->arena, po_size_pair, o->sizes->n_equal + 1);
    for (uint32_t i = 0; i < o->sizes->n_equal; i++)
        if (is_known(o, o->sizes->equal[i].a) && is_known(o, o->sizes->equal[i].b))
            list[o->n_equal++] = o->sizes->equal[i];
    o->equal = list;
}

bool po_open_port_is(const po_kernel_port *port) {
    for (uint32_t d = 0; d < port->rank; d++)
        if (port->open[d].symbol)
            return true;
    return false;
}

po_dim po_open_port_elements(po_arena *arena, const po_kernel_port *port) {
    po_dim all = PO_DIM(1);
    for (uint32_t d = 0; d < port->rank; d++)
        all = po_size_mul(arena, all,
                          port->open[d].symbol ? port->open[d] : PO_DIM(llabs(port->dims[d])));
    return all;
}

static po_dim elements(po_arena *arena, const po_dim *dims, uint32_t rank) {
    po_dim all = PO_DIM(1);
    for (uint32_t d = 0; d < rank; d++)
        all = po_size_mul(arena, all, dims[d]);
    return all;
}

/* A tensor has as many elements as its port, at all sizes. */
static po_status check_elements(const opening *o, const po_mu_open *open) {
    const po_region *r = o->region;
    for (uint32_t i = 0; i < open->mu->n_tensors; i++) {
        const po_mu_tensor *t = &open->mu->tensors[i];
        if (t->place != PO_MU_INPUT && t->place != PO_MU_OUTPUT)
            continue;
        const uint32_t at = t->place == PO_MU_INPUT ? t->number : r->n_in + t->number;
        const po_value_id v = port_at(r, at);
        const po_dim own = elements(o->arena, open->dim[i], t->rank);
        const po_dim port = elements(o->arena, o->dims[at], type_of(o, v)->rank);
        if (!po_open_lengths_same(o->arena, o->naming.names, o->naming.n_names, o->sizes->samples,
                                  own, port) ||
            (own.value < 0 && !own.symbol))
            return po_fail(o->run->ctx, PO_UNSUPPORTED, "'%s' is not as long as its kernel has it",
                           o->sizes->named->values[v].name);
    }
    return PO_OK;
}

/* --- other sizes --- */

static bool has_ring(const po_mu_tensor *t) {
    bool any = false;
    for (uint32_t x = 0; x < t->rank; x++)
        any |= t->before[x] > 0 || t->after[x] > 0;
    return any;
}

static po_mu *without_rings(po_arena *arena, const po_mu *from) {
    po_mu *mu = po_mu_copy(arena, from);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        memset(mu->tensors[i].before, 0, sizeof mu->tensors[i].before);
        memset(mu->tensors[i].after, 0, sizeof mu->tensors[i].after);
        po_mu_layout(mu, i, 1, 0);
    }
    return mu;
}

/* Whether both are the same but for how much lies around tensors: what is opened keeps some for
 * lengths of 0. Where statements read the same places, and the same number lies past the ends, they
 * read the same. */
static bool same_program(po_arena *arena, const po_mu *a, const po_mu *b) {
    if (a->n_tensors != b->n_tensors)
        return false;
    for (uint32_t i = 0; i < a->n_tensors; i++)
        if (has_ring(&a->tensors[i]) && has_ring(&b->tensors[i]) &&
            a->tensors[i].fill != b->tensors[i].fill)
            return false;
    return po_mu_equal(without_rings(arena, a), without_rings(arena, b));
}

/* What the region was lowered to, at another size, is what the model there is lowered to: numbers
 * were taken for the lengths that they are. */
static po_status check_lowered(const opening *o, const po_mu_open *naive, uint32_t other,
                               const int64_t *lengths, bool *compared) {
    po_lowered lowered;
    po_arena *scratch = po_arena_child(o->arena);
    const po_mu *mu = po_mu_open_at(scratch, naive, lengths);
    po_status status = po_lower_region(o->run->ctx, scratch, o->sizes->larger[other], o->region,
                                       naive->mu->name, &lowered);
    if (status == PO_UNSUPPORTED) { /* of some maps nothing is left there */
        po_ctx_clear(o->run->ctx);
        status = PO_OK;
    } else if (status == PO_OK) {
        *compared = true;
        if (!mu || !same_program(scratch, mu, lowered.mu))
            status = po_fail(o->run->ctx, PO_UNSUPPORTED,
                             "what it computes at other sizes is not told by the one that it was "
                             "made at");
    }
    po_arena_free(scratch);
    return status;
}

static po_status check_at(const opening *o, const po_mu_open *open, const int64_t *lengths) {
    po_arena *scratch = po_arena_child(o->arena);
    const po_mu *mu = po_mu_open_at(scratch, open, lengths);
    po_status status = PO_OK;
    if (!mu)
        status = po_fail(o->run->ctx, PO_UNSUPPORTED, "it is no program at other sizes");
    else if (po_mu_open_is_there(mu))
        status = po_kernel_stage_check(o->run, mu, mu, MOST_SHARED);
    po_arena_free(scratch);
    return status;
}

/* Checked and proved as muGraphs at other sizes, and compared with the model there. */
static po_status check_sizes(const opening *o, const po_mu_open *open, const po_mu_open *naive) {
    const po_plan_sizes *plan = &o->sizes->plan;
    const po_mu_naming *all = &plan->naming;
    bool compared = !naive;
    int64_t *lengths = PO_NEW_N(o->arena, int64_t, o->naming.n_names + 1);
    for (uint32_t i = 0; i < plan->n_others; i++) {
        for (uint32_t k = 0; k < o->naming.n_names; k++)
            if (!po_open_lengths_at(o->arena, all->names, all->n_names, plan->others[i], o->is[k],
                                    &lengths[k]))
                return po_fail(o->run->ctx, PO_UNSUPPORTED, "another size is not known");
        PO_TRY(check_at(o, open, lengths));
        if (naive && i < o->sizes->n_larger)
            PO_TRY(check_lowered(o, naive, i, lengths, &compared));
    }
    return compared && plan->n_others > 0
               ? PO_OK
               : po_fail(o->run->ctx, PO_UNSUPPORTED, "it was not looked at at other sizes");
}

/* The lowering opened by the same numbers; *open NULL: none is asked for, or the model has no
 * larger size to compare it at. */
static po_status open_naive(const opening *o, const po_mu *naive, const po_mu_open **open) {
    *open = NULL;
    return naive && o->sizes->n_larger > 0
               ? po_mu_open_by(o->run->ctx, o->arena, po_mu_copy(o->arena, naive), &o->naming, open)
               : PO_OK;
}

po_status po_open_sizes_region(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                               const po_region *region, po_mu *mu, const po_mu *naive,
                               const po_mu_open **open, po_kernel_ports *ports) {
    opening o = {.run = run, .arena = arena, .sizes = sizes, .region = region};
    po_kernel_port *list = PO_NEW_N(arena, po_kernel_port, region->n_in + region->n_out + 1);
    const po_mu_open *meaning;
    find_given(&o);
    po_status status = set_ports(&o, ports, list);
    if (status == PO_UNSUPPORTED) {
        po_ctx_clear(run->ctx);
        PO_TRY(find_own(&o, ports));
        PO_TRY(set_ports(&o, ports, list));
    } else {
        PO_TRY(status);
        find_equal(&o);
    }
    PO_TRY(po_mu_open_by(run->ctx, arena, mu, &o.naming, open));
    PO_TRY(check_elements(&o, *open));
    PO_TRY(open_naive(&o, naive, &meaning));
    PO_TRY(check_sizes(&o, *open, meaning));
    *ports = (po_kernel_ports){
        list, list + region->n_in, region->n_in, region->n_out, o.given, o.equal, o.n_equal};
    return PO_OK;
}
