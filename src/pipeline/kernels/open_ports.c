/* A region for all sizes: what its kernel is given and gives, and the program at other sizes. */
#include "ir/size.h"
#include "pipeline/kernels/open_sizes.h"
#include "pipeline/kernels/stage.h"

enum { MOST_MULTIPLE = 64, SHARED_LIMIT = 4 << 20 };

typedef struct opening {
    const po_run *run;
    po_arena *arena;
    const po_open_sizes *sizes;
    const po_region *region;
    po_mu_naming naming; /* the names that the region has */
    po_kernel_given *given;
    uint32_t *number; /* of each name among the model's */
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
    o->number = PO_NEW_N(o->arena, uint32_t, all->n_names + 1);
    for (uint32_t k = 0; k < all->n_names; k++)
        if (is_given(o, all->names[k], &o->given[n])) {
            lengths[n] = all->lengths[k];
            o->number[n] = k;
            names[n++] = all->names[k];
        }
    o->naming = *all;
    o->naming.names = names;
    o->naming.n_names = n;
    o->naming.lengths = lengths;
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
            const po_dim dim = type->dims[d];
            if (!is_known(o, dim) || (dim.value < 0 && ports[i].dims[d] < 0))
                return po_fail(o->run->ctx, PO_UNSUPPORTED,
                               "a length of '%s' is not told by what the region reads",
                               o->sizes->named->values[v].name);
            ports[i].open[d] = dim.value < 0 ? dim : (po_dim){0};
        }
    }
    return PO_OK;
}

/* The conditions that are told by what is given. */
static uint32_t find_equal(const opening *o, const po_size_pair **equal) {
    po_size_pair *list = PO_NEW_N(o->arena, po_size_pair, o->sizes->n_equal + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->sizes->n_equal; i++)
        if (is_known(o, o->sizes->equal[i].a) && is_known(o, o->sizes->equal[i].b))
            list[n++] = o->sizes->equal[i];
    *equal = list;
    return n;
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
        const po_value_id v = t->place == PO_MU_INPUT ? r->in[t->number] : r->out[t->number];
        const po_dim own = elements(o->arena, open->dim[i], t->rank);
        const po_dim port = elements(o->arena, type_of(o, v)->dims, type_of(o, v)->rank);
        if (!po_open_sizes_same(o->arena, o->sizes, own, port) || (own.value < 0 && !own.symbol))
            return po_fail(o->run->ctx, PO_UNSUPPORTED, "'%s' is not as long as its kernel has it",
                           o->sizes->named->values[v].name);
    }
    return PO_OK;
}

/* --- other sizes --- */

static bool is_there(const po_mu *mu) {
    for (uint32_t l = 0; l < mu->n_labels; l++)
        if (mu->labels[l].extent <= 0)
            return false;
    return true;
}

static po_status check_at(const opening *o, const po_mu_open *open, const int64_t *lengths) {
    po_arena *scratch = po_arena_child(o->arena);
    const po_mu *mu = po_mu_open_at(scratch, open, lengths);
    po_status status = PO_OK;
    if (!mu)
        status = po_fail(o->run->ctx, PO_UNSUPPORTED, "it is no program at other sizes");
    else if (is_there(mu))
        status = po_kernel_stage_check(o->run, mu, mu, SHARED_LIMIT);
    po_arena_free(scratch);
    return status;
}

/* Checked and proved as muGraphs at other sizes. */
static po_status check_sizes(const opening *o, const po_mu_open *open) {
    const po_plan_sizes *plan = &o->sizes->plan;
    int64_t *lengths = PO_NEW_N(o->arena, int64_t, o->naming.n_names + 1);
    for (uint32_t i = 0; i < plan->n_others; i++) {
        for (uint32_t k = 0; k < o->naming.n_names; k++)
            lengths[k] = plan->others[i][o->number[k]];
        PO_TRY(check_at(o, open, lengths));
    }
    return plan->n_others > 0
               ? PO_OK
               : po_fail(o->run->ctx, PO_UNSUPPORTED, "it was not looked at at other sizes");
}

po_status po_open_sizes_region(const po_run *run, po_arena *arena, const po_open_sizes *sizes,
                               const po_region *region, po_mu *mu, const po_mu_open **open,
                               po_kernel_ports *ports) {
    opening o = {.run = run, .arena = arena, .sizes = sizes, .region = region};
    po_kernel_port *list = PO_NEW_N(arena, po_kernel_port, region->n_in + region->n_out + 1);
    find_given(&o);
    PO_TRY(set_ports(&o, ports, list));
    PO_TRY(po_mu_open_by(run->ctx, arena, mu, &o.naming, open));
    PO_TRY(check_elements(&o, *open));
    PO_TRY(check_sizes(&o, *open));
    const po_size_pair *equal;
    const uint32_t n_equal = find_equal(&o, &equal);
    *ports = (po_kernel_ports){
        list, list + region->n_in, region->n_in, region->n_out, o.given, equal, n_equal};
    return PO_OK;
}
