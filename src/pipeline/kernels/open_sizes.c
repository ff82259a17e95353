/* The size that kernels of an open model are made at, and the names of its lengths. */
#include "pipeline/kernels/open_sizes.h"

#include "ir/size.h"
#include "ops/samples.h"
#include "verify/inputs/inputs.h"

enum {
    MOST_KNOWN = 4096,
    MOST_NUMBER = 1 << 16, /* of those that constants are compared with */
    LEAST_OWN = 4,         /* shorter lengths are windows' and strides' too */
    SAMPLES_HERE = 5,      /* about so many, where they are such a length */
    MOST_TRIES = 4096,
    FAR = 128,   /* lengths that are tried for each name */
    PERIOD = 32, /* of the heights and widths that detectors take */
    FIRST_SAMPLE = 33,
    SAMPLES = 2 * PERIOD + 16,
    MOST_EQUAL = 64
};

/* A name for lengths. */
typedef struct length_name {
    const char *symbol; /* what the model calls it; NULL: nothing */
    int64_t meant;      /* how long it usually is */
    bool space;         /* a height or a width */
    int64_t tried[FAR]; /* lengths near that */
    uint32_t at;
} length_name;

typedef struct finding {
    const po_run *run;
    po_arena *arena;
    const po_graph *graph;
    po_inputs *plan;
    uint32_t n;
    length_name name[PO_KERNEL_GIVEN];
    const char *names[PO_KERNEL_GIVEN];
    int64_t lengths[PO_KERNEL_GIVEN];
    bool has_batch, too_many;
    bool names_batch; /* samples are not seen to be kept apart: their number is a length too */
    int64_t sample[SAMPLES]; /* lengths that the model takes */
    uint32_t n_samples;
    po_size_pair equal[MOST_EQUAL];
    uint32_t n_equal;
    bool *taken; /* numbers below MOST_NUMBER that are lengths at all sizes */
    po_mu_number *known;
    uint32_t n_known;
} finding;

/* --- names --- */

static bool is_batch(const finding *f, const po_graph *graph, po_value_id input, uint32_t axis) {
    return axis == 0 && po_inputs_class(f->plan, graph->values[input].name, axis) == PO_DIM_BATCH;
}

/* The name of an open dim of an input; PO_NONE: it is the batch. */
static uint32_t name_of(finding *f, const po_graph *graph, po_value_id input, uint32_t axis) {
    const po_value *v = &graph->values[input];
    const char *symbol = v->type.dims[axis].symbol;
    const bool batch = is_batch(f, graph, input, axis);
    if (batch && !f->names_batch)
        return PO_NONE;
    if (!symbol)
        symbol = po_arena_printf(f->arena, "%s %u", v->name, axis);
    for (uint32_t k = 0; k < f->n; k++)
        if (strcmp(f->name[k].symbol, symbol) == 0)
            return k;
    f->too_many |= f->n + 1 == PO_KERNEL_GIVEN;
    if (f->too_many)
        return 0;
    f->name[f->n] = (length_name){
        .symbol = po_arena_strdup(f->arena, symbol),
        .meant = batch ? SAMPLES_HERE
                       : po_inputs_length(f->plan, v->name, axis, po_inputs_meant_size(0)),
        .space = po_inputs_class(f->plan, v->name, axis) == PO_DIM_SPACE};
    f->names[f->n] = po_arena_printf(f->arena, "p%u", f->n);
    return f->n++;
}

/* What the model says of a length by those of others ("past + seq"), or shows by what it adds up;
 * unknown: it stands for itself. Over the model's own words. */
static po_dim sum_of(const finding *f, const char *symbol) {
    const po_dim related = symbol ? po_inputs_related(f->plan, symbol) : PO_DIM_UNKNOWN;
    if (related.value >= 0 || related.symbol || !symbol || !strchr(symbol, '+'))
        return related;
    return po_size_written(f->arena, symbol);
}

/* The model's word as a name. */
static po_dim name_for(void *user, const char *word) {
    const finding *f = user;
    for (uint32_t k = 0; k < f->n; k++)
        if (strcmp(f->name[k].symbol, word) == 0)
            return (po_dim){-1, f->names[k]};
    return PO_DIM_UNKNOWN;
}

/* po_input_dim_fn: one sample, and names. */
static po_dim named_dim(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    finding *f = user;
    const po_dim own = graph->values[input].type.dims[axis];
    if (own.value >= 0)
        return own;
    const po_dim sum = po_size_renamed(f->arena, sum_of(f, own.symbol), name_for, f);
    if (sum.symbol)
        return sum;
    const uint32_t k = name_of(f, graph, input, axis);
    f->has_batch |= k == PO_NONE;
    return k == PO_NONE ? PO_DIM(1) : (po_dim){-1, f->names[k]};
}

static bool length_at(void *user, const char *name, int64_t *length) {
    const finding *f = user;
    for (uint32_t k = 0; k < f->n; k++)
        if (strcmp(f->names[k], name) == 0) {
            *length = f->lengths[k];
            return true;
        }
    return false;
}

/* One sample, and numbers. */
static po_dim dim_here(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    finding *f = user;
    int64_t number;
    const po_dim named = named_dim(user, graph, input, axis);
    return po_size_at(f->arena, named, length_at, f, &number) ? PO_DIM(number) : PO_DIM_UNKNOWN;
}

/* Numbers, and any number of samples. */
static po_dim dim_of_batch(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    finding *f = user;
    const po_dim own = graph->values[input].type.dims[axis];
    return own.value < 0 && is_batch(f, graph, input, axis) ? (po_dim){-1, "samples"}
                                                            : dim_here(user, graph, input, axis);
}

/* What is no sum of others has its name before sums are read. */
static void find_names(finding *f) {
    const po_graph *g = f->graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_type *type = &g->values[g->inputs[i]].type;
        for (uint32_t d = 0; type->kind == PO_TYPE_TENSOR && type->has_rank && d < type->rank;
             d++) {
            const po_dim sum = sum_of(f, type->dims[d].symbol);
            if (type->dims[d].value < 0 && sum.value < 0 && !sum.symbol)
                (void)name_of(f, g, g->inputs[i], d);
        }
    }
}

static po_graph *graph_with(finding *f, po_input_dim_fn dim) {
    po_graph *g = po_infer_with_dims(f->run->ctx, f->graph, dim, f);
    po_run_hold(f->run, g);
    return g;
}

/* --- lengths that the model takes --- */

/* Whether inference finds nothing wrong where every open length is this one. */
static bool takes(finding *f, int64_t length) {
    po_ctx *ctx = f->run->ctx;
    for (uint32_t k = 0; k < f->n; k++)
        f->lengths[k] = length;
    po_graph *g = po_graph_with_dims(ctx, f->graph, dim_here, f);
    const bool taken =
        po_infer_forget_shapes(ctx, g) == PO_OK && po_infer_graph(ctx, g, false) == PO_OK;
    po_graph_free(g);
    if (!taken)
        po_ctx_clear(ctx);
    return taken;
}

/* Many detectors take few lengths of each 32 alone, many encoders no more than 512 tokens: what is
 * the same at those is the same. */
static po_status find_samples(finding *f) {
    static const int64_t others[] = {1, 2, 3, 5, 7, 16, 20, 128, 511, 512, 513, 1000, 1024, 2048};
    enum { OTHERS = sizeof others / sizeof others[0] };
    bool maps = false;
    for (uint32_t k = 0; k < f->n; k++)
        maps |= f->name[k].space;
    for (int64_t i = 0; i < 2 * PERIOD + OTHERS; i++) {
        const int64_t length = i < 2 * PERIOD ? FIRST_SAMPLE + i : others[i - 2 * PERIOD];
        /* Maps of one row are taken for what is the same in all rows. */
        if ((!maps || length >= FIRST_SAMPLE) && takes(f, length))
            f->sample[f->n_samples++] = length;
        PO_TRY(po_ctx_poll(f->run->ctx));
    }
    return PO_OK;
}

/* --- the size at hand --- */

/* A tensor that some node makes, or the model is given. */
static const po_type *live_type(const po_graph *named, po_value_id v) {
    const po_value *value = &named->values[v];
    const bool made = value->producer != PO_NONE && !named->nodes[value->producer].removed;
    bool given = false;
    for (uint32_t i = 0; i < named->n_inputs; i++)
        given |= named->inputs[i] == v;
    const bool tensor = value->type.kind == PO_TYPE_TENSOR && value->type.has_rank;
    return tensor && (made || given) && !po_graph_constant(named, v) ? &value->type : NULL;
}

/* Lengths that are the same at all sizes; what indexes weights is known by that. */
static void find_taken(finding *f, const po_graph *named) {
    f->taken = PO_NEW_N(f->arena, bool, MOST_NUMBER);
    for (int64_t i = 0; i < LEAST_OWN; i++)
        f->taken[i] = true;
    for (po_value_id v = 0; v < named->n_values; v++) {
        const po_type *type = live_type(named, v);
        for (uint32_t d = 0; type && d < type->rank; d++)
            if (type->dims[d].value >= 0 && type->dims[d].value < MOST_NUMBER)
                f->taken[type->dims[d].value] = true;
    }
}

typedef struct sampling {
    const po_open_sizes *sizes;
    uint32_t number;
} sampling;

/* Each name has another length. */
static bool sampled(void *user, const char *name, int64_t *length) {
    const sampling *s = user;
    const po_mu_naming *naming = &s->sizes->plan.naming;
    for (uint32_t k = 0; k < naming->n_names; k++)
        if (strcmp(naming->names[k], name) == 0) {
            *length = s->sizes->sample[(s->number + k) % s->sizes->n_samples];
            return true;
        }
    return false;
}

bool po_open_sizes_same(po_arena *arena, const po_open_sizes *sizes, po_dim a, po_dim b) {
    bool same = po_dim_same(a, b) || sizes->n_samples > 1;
    for (uint32_t i = 0; i < sizes->n_samples && same && !po_dim_same(a, b); i++) {
        sampling s = {sizes, i};
        int64_t x, y;
        same = po_size_at(arena, a, sampled, &s, &x) && po_size_at(arena, b, sampled, &s, &y) &&
               x == y;
    }
    return same;
}

/* The same; noted as a condition. */
static bool is_same(finding *f, po_dim a, po_dim b) {
    const po_open_sizes sizes = {.plan.naming = {.n_names = f->n, .names = f->names},
                                 .sample = f->sample,
                                 .n_samples = f->n_samples};
    if (po_dim_same(a, b))
        return true;
    for (uint32_t i = 0; i < f->n_equal; i++)
        if (po_dim_same(f->equal[i].a, a) && po_dim_same(f->equal[i].b, b))
            return true;
    const bool same = po_open_sizes_same(f->arena, &sizes, a, b);
    if (!same || f->n_equal == MOST_EQUAL)
        return false;
    f->equal[f->n_equal++] = (po_size_pair){a, b};
    return true;
}

/* Whether a length is one number wherever the model runs, as that of a slice of one token. */
static bool is_number(finding *f, po_dim dim, int64_t number) {
    return is_same(f, dim, PO_DIM(number));
}

/* Notes an open length; false where its number is another's too. */
static bool note(finding *f, po_dim dim) {
    int64_t number;
    if (dim.value >= 0 || !dim.symbol || f->n_known == MOST_KNOWN ||
        !po_size_at(f->arena, dim, length_at, f, &number))
        return true; /* no region has it */
    if (number >= 0 && is_number(f, dim, number))
        return true;
    if (number < 0 || (number < MOST_NUMBER && f->taken[number]))
        return false;
    for (uint32_t i = 0; i < f->n_known; i++)
        if (po_dim_same(f->known[i].is, dim))
            return true;
    for (uint32_t i = 0; i < f->n_known; i++)
        if (f->known[i].number == number && !is_same(f, f->known[i].is, dim))
            return false;
    f->known[f->n_known++] = (po_mu_number){number, dim};
    return true;
}

static bool note_product(finding *f, po_dim all) {
    const uint32_t n = f->n_equal;
    const bool own = note(f, all);
    f->n_equal = n; /* that of its factors is condition enough */
    return own;
}

/* The dims of a value; or products of neighbouring ones, of which kernels make one axis and means
 * have a part. */
static bool note_value(finding *f, const po_type *type, bool products) {
    bool own = true;
    for (uint32_t d = 0; d < type->rank && own; d++) {
        po_dim all = type->dims[d];
        own = products || note(f, all);
        for (uint32_t e = d + 1; e < type->rank && products && own; e++) {
            const bool open = all.value < 0 && type->dims[e].value < 0;
            all = po_size_mul(f->arena, all, type->dims[e]);
            own = note_product(f, all) || !open;
        }
    }
    return own;
}

static bool note_all(finding *f, const po_graph *named) {
    bool own = true;
    f->n_known = 0;
    for (int products = 0; products < 2 && own; products++)
        for (po_value_id v = 0; v < named->n_values && own; v++) {
            const po_type *type = live_type(named, v);
            if (type && type->dtype == PO_F32)
                own = note_value(f, type, products);
        }
    return own;
}

/* Whether the model takes heights and widths that are as far off a period. */
static bool is_taken(const finding *f, int64_t length) {
    for (uint32_t i = 0; i < f->n_samples; i++)
        if (f->sample[i] >= FIRST_SAMPLE && f->sample[i] % PERIOD == length % PERIOD)
            return true;
    return false;
}

/* Up and down from what is meant, in steps that grow. */
static void set_tried(const finding *f, length_name *l) {
    uint32_t n = 0;
    for (int64_t step = 0, away = 0; n < FAR && step <= 8 * FAR; step++, away += 1 + step / 8)
        for (int64_t sign = 1; sign >= -1 && n < FAR; sign -= 2) {
            const int64_t length = l->meant + sign * away;
            /* What vectors fill exactly is cut into parts that other lengths have not. */
            const bool fits = l->space ? is_taken(f, length) : length % LEAST_OWN != 0;
            if (fits && length >= LEAST_OWN && (away > 0 || sign > 0))
                l->tried[n++] = length;
        }
    for (; n < FAR; n++)
        l->tried[n] = l->meant;
}

/* Whether some length is so far from what is meant. */
static bool is_as_far(const finding *f, uint32_t far) {
    bool any = false;
    for (uint32_t k = 0; k < f->n; k++)
        any |= f->name[k].at == far;
    return any;
}

/* The next lengths that are at most so far; false: those were all. */
static bool next_lengths(finding *f, uint32_t far) {
    for (uint32_t k = f->n; k-- > 0;) {
        if (f->name[k].at++ < far)
            return true;
        f->name[k].at = 0;
    }
    return false;
}

/* Leaves out lengths at which what hangs on this name alone is no number of its own. */
static void drop_tried(finding *f, const po_graph *named, uint32_t k) {
    enum { FAR_OFF = 1000003 };
    length_name *l = &f->name[k];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        f->lengths[i] = FAR_OFF * (int64_t)(i + 1);
    for (uint32_t i = 0; i < FAR; i++) {
        f->lengths[k] = l->tried[i];
        if (note_all(f, named))
            l->tried[n++] = l->tried[i];
    }
    for (uint32_t i = n; n > 0 && i < FAR; i++)
        l->tried[i] = l->tried[n - 1];
}

/* Near what the model is meant for, where every length is a number that nothing else is; so many
 * such sizes are passed over. */
static po_status find_here(finding *f, const po_graph *named, uint32_t skip) {
    f->known = PO_NEW_N(f->arena, po_mu_number, MOST_KNOWN);
    find_taken(f, named);
    for (uint32_t k = 0; k < f->n; k++) {
        set_tried(f, &f->name[k]);
        drop_tried(f, named, k);
    }
    uint32_t tries = 0;
    for (uint32_t far = 0; far < FAR; far++) {
        for (uint32_t k = 0; k < f->n; k++)
            f->name[k].at = 0;
        do {
            if (!is_as_far(f, far))
                continue;
            for (uint32_t k = 0; k < f->n; k++)
                f->lengths[k] = f->name[k].tried[f->name[k].at];
            tries++;
            if (note_all(f, named) && skip-- == 0)
                return PO_OK;
            PO_TRY(po_ctx_poll(f->run->ctx));
        } while (tries < MOST_TRIES && next_lengths(f, far));
    }
    return po_fail(f->run->ctx, PO_UNSUPPORTED,
                   "there is no size near the usual ones at which each length is told apart");
}

static po_status find_axis(finding *f, po_open_sizes *sizes) {
    int8_t *axis;
    if (!f->has_batch)
        return PO_OK;
    PO_TRY(po_samples_apart_values(f->run->ctx, f->arena, graph_with(f, dim_of_batch), &axis));
    sizes->axis = axis;
    return PO_OK;
}

/* Whether the model has the lengths at hand. */
static bool is_met(finding *f) {
    for (uint32_t i = 0; i < f->n_equal; i++) {
        int64_t a, b;
        if (!po_size_at(f->arena, f->equal[i].a, length_at, f, &a) ||
            !po_size_at(f->arena, f->equal[i].b, length_at, f, &b) || a != b)
            return false;
    }
    return true;
}

/* A few other sizes, each length another: one a period larger, and some that the model takes. */
static void find_others(finding *f, po_open_sizes *sizes) {
    enum { OTHERS = 4, TRIES = 64, STRIDE = 13 };
    const int64_t **others = PO_NEW_N(f->arena, const int64_t *, OTHERS);
    int64_t here[PO_KERNEL_GIVEN];
    memcpy(here, f->lengths, sizeof here);
    for (uint32_t i = 0; i < TRIES && sizes->plan.n_others < OTHERS; i++) {
        for (uint32_t k = 0; k < f->n; k++)
            f->lengths[k] = i == 0 ? here[k] + PERIOD : f->sample[(STRIDE * i + k) % f->n_samples];
        if (is_met(f))
            others[sizes->plan.n_others++] =
                po_arena_memdup(f->arena, f->lengths, sizeof f->lengths);
    }
    memcpy(f->lengths, here, sizeof here);
    sizes->plan.others = others;
}

/* --- lengths that inference leaves open --- */

/* What two lengths that must be the same broadcast to is neither to inference. At hand it is a
 * number, and that is a length. Whether some were found. */
static bool fill_in(finding *f, po_graph *named, const po_graph *here) {
    bool any = false;
    for (po_value_id v = 0; v < named->n_values; v++) {
        po_type *type = &named->values[v].type;
        const po_type *own = &here->values[v].type;
        if (!live_type(named, v) || type->rank != own->rank)
            continue;
        po_dim *dims = NULL;
        for (uint32_t d = 0; d < type->rank; d++) {
            if (type->dims[d].value >= 0 || type->dims[d].symbol || own->dims[d].value < 0)
                continue;
            uint32_t k = 0;
            while (k < f->n_known && f->known[k].number != own->dims[d].value)
                k++;
            if (k == f->n_known)
                continue;
            dims =
                dims ? dims : po_arena_memdup(named->arena, type->dims, type->rank * sizeof *dims);
            dims[d] = f->known[k].is;
            any = true;
        }
        type->dims = dims ? dims : type->dims;
    }
    return any;
}

/* Until no more follow from what was found. */
static po_status fill_all(finding *f, po_graph *named, const po_graph *here) {
    enum { ROUNDS = 16 };
    for (uint32_t i = 0; i < ROUNDS && fill_in(f, named, here); i++) {
        if (po_infer_graph(f->run->ctx, named, true) != PO_OK)
            po_ctx_clear(f->run->ctx);
        for (int products = 0; products < 2; products++)
            for (po_value_id v = 0; v < named->n_values; v++) {
                const po_type *type = live_type(named, v);
                if (type && type->dtype == PO_F32 && !note_value(f, type, products))
                    return po_fail(f->run->ctx, PO_UNSUPPORTED,
                                   "the lengths of '%s' are not told apart", named->values[v].name);
            }
        PO_TRY(po_ctx_poll(f->run->ctx));
    }
    return PO_OK;
}

/* Whether the lengths are those that inference finds where they are numbers. */
static po_status check_lengths(finding *f, const po_graph *named, const po_graph *at) {
    for (po_value_id v = 0; v < named->n_values; v++) {
        const po_type *type = live_type(named, v), *own = &at->values[v].type;
        for (uint32_t d = 0; type && own->has_rank && type->rank == own->rank && d < type->rank;
             d++) {
            int64_t number;
            if (own->dims[d].value < 0 ||
                !po_size_at(f->arena, type->dims[d], length_at, f, &number))
                continue;
            if (number != own->dims[d].value)
                return po_fail(
                    f->run->ctx, PO_UNSUPPORTED, "a length of '%s' is %lld where %lld was expected",
                    named->values[v].name, (long long)own->dims[d].value, (long long)number);
        }
    }
    return PO_OK;
}

static po_status check_others(finding *f, const po_open_sizes *sizes) {
    int64_t here[PO_KERNEL_GIVEN];
    po_status status = PO_OK;
    memcpy(here, f->lengths, sizeof here);
    for (uint32_t i = 0; i < sizes->plan.n_others && status == PO_OK; i++) {
        memcpy(f->lengths, sizes->plan.others[i], sizeof f->lengths);
        po_graph *at = po_infer_with_dims(f->run->ctx, f->graph, dim_here, f);
        status = check_lengths(f, sizes->named, at);
        po_graph_free(at);
    }
    memcpy(f->lengths, here, sizeof here);
    return status;
}

/* The size at hand: further ones are tried where those that come to light are not told apart. */
static po_status find_lengths(finding *f, po_open_sizes *sizes) {
    enum { ATTEMPTS = 8, FURTHER = 5 };
    po_status status = PO_UNSUPPORTED;
    for (uint32_t i = 0; i < ATTEMPTS && status == PO_UNSUPPORTED; i++) {
        po_ctx_clear(f->run->ctx);
        f->n_equal = 0;
        po_graph *named = graph_with(f, named_dim);
        PO_TRY(find_here(f, named, FURTHER * i * (i + 1) / 2));
        sizes->named = named;
        sizes->here = graph_with(f, dim_here);
        status = fill_all(f, named, sizes->here);
    }
    return status;
}

static po_status find(finding *f, po_open_sizes *sizes) {
    po_ctx *ctx = f->run->ctx;
    find_names(f);
    (void)graph_with(f, named_dim); /* whether there is a batch */
    if (f->n == 0 || f->too_many)
        return po_fail(ctx, PO_UNSUPPORTED, "it has %s open lengths", f->n ? "many" : "no");
    PO_TRY(find_samples(f));
    if (f->n_samples < 2)
        return po_fail(ctx, PO_UNSUPPORTED, "at the sizes tried its shapes do not fit one another");
    PO_TRY(find_lengths(f, sizes));
    sizes->plan.naming = (po_mu_naming){f->n, f->names, f->lengths, f->known, f->n_known};
    sizes->equal = f->equal;
    sizes->n_equal = f->n_equal;
    sizes->sample = f->sample;
    sizes->n_samples = f->n_samples;
    find_others(f, sizes);
    PO_TRY(check_others(f, sizes));
    PO_TRY(find_axis(f, sizes));
    for (uint32_t k = 0; k < f->n; k++)
        po_log(ctx, "kernels for any size are made at %s = %lld", f->name[k].symbol,
               (long long)f->lengths[k]);
    return PO_OK;
}

po_status po_open_sizes_find(const po_run *run, po_arena *arena, const po_graph *graph,
                             po_open_sizes *sizes) {
    po_status status = PO_UNSUPPORTED;
    for (int names_batch = 0; names_batch < 2 && status == PO_UNSUPPORTED; names_batch++) {
        finding *f = PO_NEW(arena, finding);
        *f = (finding){.run = run, .arena = arena, .graph = graph, .names_batch = names_batch != 0};
        *sizes = (po_open_sizes){0};
        PO_TRY(po_run_inputs(run, arena, graph, NULL, &f->plan));
        if (names_batch)
            po_ctx_clear(run->ctx);
        status = find(f, sizes);
        if (!f->has_batch && !names_batch)
            break;
    }
    return status;
}
