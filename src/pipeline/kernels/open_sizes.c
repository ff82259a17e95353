/* The size that kernels of an open model are made at, and the names of its lengths. */
#include "pipeline/kernels/open_sizes.h"

#include "ir/size.h"
#include "ops/samples.h"
#include "pipeline/budget.h"
#include "pipeline/kernels/open_regions.h"
#include "verify/inputs/inputs.h"

enum {
    SHORTEST = 4,     /* of the lengths that are tried, which vectors do not fill exactly */
    SAMPLES_HERE = 5, /* about so many, where they are such a length */
    MOST_TRIES = 4096,
    FAR = 128, /* lengths that are tried for each name */
    FIRST_SAMPLE = 33
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
    const po_open_samples *samples;
    po_open_lengths *told;
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
        .meant = batch ? SAMPLES_HERE : po_inputs_length(f->plan, v->name, axis, f->samples->usual),
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
    return k == PO_NONE ? PO_DIM(1) : (po_dim){-1, f->names[k]};
}

/* The number of a length at hand. */
static bool number_here(const finding *f, po_dim dim, int64_t *number) {
    return po_open_lengths_at(f->arena, f->names, f->n, f->lengths, dim, number);
}

/* One sample, and numbers. */
static po_dim dim_here(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    finding *f = user;
    int64_t number;
    const po_dim named = named_dim(user, graph, input, axis);
    return number_here(f, named, &number) ? PO_DIM(number) : PO_DIM_UNKNOWN;
}

/* Numbers, and any number of samples. */
static po_dim dim_of_batch(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    finding *f = user;
    const po_dim own = graph->values[input].type.dims[axis];
    return own.value < 0 && is_batch(f, graph, input, axis) ? (po_dim){-1, "samples"}
                                                            : dim_here(user, graph, input, axis);
}

/* What is no sum of others has its name before sums are read. Whether there is a batch. */
static void find_names(finding *f) {
    const po_graph *g = f->graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const po_type *type = &g->values[g->inputs[i]].type;
        for (uint32_t d = 0; type->kind == PO_TYPE_TENSOR && type->has_rank && d < type->rank;
             d++) {
            const po_dim sum = sum_of(f, type->dims[d].symbol);
            if (type->dims[d].value < 0 && sum.value < 0 && !sum.symbol)
                f->has_batch |= name_of(f, g, g->inputs[i], d) == PO_NONE;
        }
    }
}

static po_graph *graph_with(finding *f, po_input_dim_fn dim) {
    po_graph *g = po_infer_with_dims(f->run->ctx, f->graph, dim, f);
    po_run_hold(f->run, g);
    return g;
}

/* --- lengths that the model takes --- */

/* Whether inference finds nothing wrong. */
static bool fits(const finding *f, po_input_dim_fn dim, void *user) {
    po_ctx *ctx = f->run->ctx;
    po_graph *g = po_graph_with_dims(ctx, f->graph, dim, user);
    const bool taken =
        po_infer_forget_shapes(ctx, g) == PO_OK && po_infer_graph(ctx, g, false) == PO_OK;
    po_graph_free(g);
    if (!taken)
        po_ctx_clear(ctx);
    return taken;
}

/* Where every open length is this one. */
static bool takes(finding *f, int64_t length) {
    for (uint32_t k = 0; k < f->n; k++)
        f->lengths[k] = length;
    return fits(f, dim_here, f);
}

/* Where the model is read; else the first lengths that it takes. */
static uint32_t usual_of(const finding *f) {
    const uint32_t all = po_inputs_turns(f->plan);
    const po_budget *budget = f->run->budget;
    if (budget->read)
        return budget->size;
    for (uint32_t k = 0; k < all; k++) {
        po_assignment a = {f->plan, po_inputs_turn(f->plan, k)};
        if (fits(f, po_assigned_dim, &a))
            return a.size;
    }
    return po_inputs_meant_size(0);
}

/* Many detectors take few lengths of each 32 alone, many encoders no more than 512 tokens: what is
 * the same at those is the same. */
static po_status find_samples(finding *f, po_open_samples *samples) {
    static const int64_t others[] = {1, 2, 3, 5, 7, 16, 20, 128, 511, 512, 513, 1000, 1024, 2048};
    enum { OTHERS = sizeof others / sizeof others[0] };
    bool maps = false;
    for (uint32_t k = 0; k < f->n; k++)
        maps |= f->name[k].space;
    samples->length = PO_NEW_N(f->arena, int64_t, 2 * PO_OPEN_PERIOD + OTHERS);
    for (int64_t i = 0; i < 2 * PO_OPEN_PERIOD + OTHERS; i++) {
        const int64_t length =
            i < 2 * PO_OPEN_PERIOD ? FIRST_SAMPLE + i : others[i - 2 * PO_OPEN_PERIOD];
        /* Maps of one row are taken for what is the same in all rows. */
        if ((!maps || length >= FIRST_SAMPLE) && takes(f, length))
            samples->length[samples->n++] = length;
        PO_TRY(po_ctx_poll(f->run->ctx));
    }
    return PO_OK;
}

/* --- the size at hand --- */

/* Whether the model takes heights and widths that are as far off a period. */
static bool is_taken(const finding *f, int64_t length) {
    for (uint32_t i = 0; i < f->samples->n; i++)
        if (f->samples->length[i] >= FIRST_SAMPLE &&
            f->samples->length[i] % PO_OPEN_PERIOD == length % PO_OPEN_PERIOD)
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
            const bool fits = l->space ? is_taken(f, length) : length % SHORTEST != 0;
            if (fits && length >= SHORTEST && (away > 0 || sign > 0))
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
static void drop_tried(finding *f, uint32_t k) {
    enum { FAR_OFF = 1000003 };
    length_name *l = &f->name[k];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        f->lengths[i] = FAR_OFF * (int64_t)(i + 1);
    for (uint32_t i = 0; i < FAR; i++) {
        f->lengths[k] = l->tried[i];
        if (po_open_lengths_tell(f->told, f->lengths))
            l->tried[n++] = l->tried[i];
    }
    for (uint32_t i = n; n > 0 && i < FAR; i++)
        l->tried[i] = l->tried[n - 1];
}

/* Near what the model is meant for, where every length is a number that nothing else is; so many
 * such sizes are passed over. */
static po_status find_here(finding *f, uint32_t skip) {
    for (uint32_t k = 0; k < f->n; k++) {
        set_tried(f, &f->name[k]);
        drop_tried(f, k);
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
            if (po_open_lengths_tell(f->told, f->lengths) && skip-- == 0)
                return PO_OK;
            PO_TRY(po_ctx_poll(f->run->ctx));
        } while (tries < MOST_TRIES && next_lengths(f, far));
    }
    return po_fail(f->run->ctx, PO_UNSUPPORTED,
                   "there is no size near the usual ones at which each length is told apart");
}

static po_status find_axis(finding *f, po_open_sizes *sizes) {
    if (!f->has_batch)
        return PO_OK;
    po_graph *batch = po_infer_with_dims(f->run->ctx, f->graph, dim_of_batch, f);
    po_status status = po_open_axes(f->run->ctx, f->arena, batch, sizes->here, &sizes->axis);
    po_graph_free(batch);
    return status;
}

/* Whether the model has the lengths at hand. */
static bool is_met(finding *f) {
    for (uint32_t i = 0; i < f->told->n_equal; i++) {
        int64_t a, b;
        if (!number_here(f, f->told->equal[i].a, &a) || !number_here(f, f->told->equal[i].b, &b) ||
            a != b)
            return false;
    }
    return true;
}

enum { LARGER = 2, OTHERS = 5 };

/* The lengths at hand as another size, where the model has them. */
static bool add_other(finding *f, const int64_t **others, uint32_t *n) {
    if (!is_met(f))
        return false;
    others[(*n)++] = po_arena_memdup(f->arena, f->lengths, sizeof f->lengths);
    return true;
}

/* Larger sizes, in turn: every length by so many periods; else all but one, which grows by as many
 * elements; else one alone. False: those were all. */
static bool next_larger(finding *f, const int64_t *here, uint32_t turn) {
    enum { PERIODS = 8 };
    const uint32_t i = 1 + turn % PERIODS, way = turn / PERIODS;
    const bool but_one = way > 0 && way <= f->n;
    if (way > 2 * f->n || (way > 0 && f->n == 1))
        return false;
    for (uint32_t k = 0; k < f->n; k++) {
        const bool is_it = way > 0 && k == (way - 1) % f->n;
        const bool little = way > 0 && is_it == but_one;
        f->lengths[k] =
            here[k] + (little ? (int64_t)i : (int64_t)PO_OPEN_PERIOD * i * (i % 2 ? 1 + k % 3 : 1));
    }
    return true;
}

/* A few other sizes, each length another: some larger ones, and some that the model takes. */
static void find_others(finding *f, po_open_sizes *sizes) {
    enum { TRIES = 64, STRIDE = 13 };
    int64_t here[PO_KERNEL_GIVEN];
    memcpy(here, f->lengths, sizeof here);
    const int64_t **others = PO_NEW_N(f->arena, const int64_t *, OTHERS);
    uint32_t n = 0;
    for (uint32_t turn = 0; sizes->n_larger < LARGER && next_larger(f, here, turn); turn++)
        sizes->n_larger += add_other(f, others, &n);
    for (uint32_t i = 0; i < TRIES && n < OTHERS; i++) {
        for (uint32_t k = 0; k < f->n; k++)
            f->lengths[k] = f->samples->length[(STRIDE * i + k) % f->samples->n];
        add_other(f, others, &n);
    }
    memcpy(f->lengths, here, sizeof here);
    sizes->plan.others = others;
    sizes->plan.n_others = n;
}

/* --- lengths that inference leaves open --- */

/* What two lengths that must be the same broadcast to is neither to inference. At hand it is a
 * number, and that is a length. Whether some were found. */
static bool fill_in(finding *f, po_graph *named, const po_graph *here) {
    bool any = false;
    for (po_value_id v = 0; v < named->n_values; v++) {
        po_type *type = &named->values[v].type;
        const po_type *own = &here->values[v].type;
        if (!po_open_live_type(named, v) || type->rank != own->rank)
            continue;
        po_dim *dims = NULL;
        for (uint32_t d = 0; d < type->rank; d++) {
            if (type->dims[d].value >= 0 || type->dims[d].symbol || own->dims[d].value < 0)
                continue;
            uint32_t k = 0;
            while (k < f->told->n_known && f->told->known[k].number != own->dims[d].value)
                k++;
            if (k == f->told->n_known)
                continue;
            dims =
                dims ? dims : po_arena_memdup(named->arena, type->dims, type->rank * sizeof *dims);
            dims[d] = f->told->known[k].is;
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
        po_open_lengths_collect(f->told, named);
        if (!po_open_lengths_tell(f->told, f->lengths))
            return po_fail(f->run->ctx, PO_UNSUPPORTED,
                           "lengths that come to light are not told apart");
        PO_TRY(po_ctx_poll(f->run->ctx));
    }
    return PO_OK;
}

/* Whether the lengths are those that inference finds where they are numbers. */
static po_status check_lengths(finding *f, const po_graph *named, const po_graph *at) {
    for (po_value_id v = 0; v < named->n_values; v++) {
        const po_type *type = po_open_live_type(named, v), *own = &at->values[v].type;
        for (uint32_t d = 0; type && own->has_rank && type->rank == own->rank && d < type->rank;
             d++) {
            int64_t number;
            if (own->dims[d].value < 0 || !number_here(f, type->dims[d], &number))
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

/* po_input_dim_fn: of the named graph, at another size. */
typedef struct other_size {
    po_arena *arena;
    const po_plan_sizes *plan;
    uint32_t number;
} other_size;

static po_dim dim_there(void *user, po_graph *graph, po_value_id input, uint32_t axis) {
    const other_size *o = user;
    const po_mu_naming *n = &o->plan->naming;
    int64_t number;
    return po_open_lengths_at(o->arena, n->names, n->n_names, o->plan->others[o->number],
                              graph->values[input].type.dims[axis], &number)
               ? PO_DIM(number)
               : PO_DIM_UNKNOWN;
}

po_graph *po_open_sizes_at(const po_run *run, const po_open_sizes *sizes, uint32_t other) {
    other_size o = {run->arena, &sizes->plan, other};
    return po_infer_with_dims(run->ctx, sizes->named, dim_there, &o);
}

po_status po_open_sizes_larger(const po_run *run, po_open_sizes *sizes) {
    sizes->larger = PO_NEW_N(run->arena, const po_graph *, sizes->n_larger + 1);
    for (uint32_t i = 0; i < sizes->n_larger; i++) {
        sizes->larger[i] = po_open_sizes_at(run, sizes, i);
        PO_TRY(po_ctx_poll(run->ctx));
    }
    return PO_OK;
}

void po_open_sizes_larger_free(po_open_sizes *sizes) {
    for (uint32_t i = 0; sizes->larger && i < sizes->n_larger; i++)
        po_graph_free(sizes->larger[i]);
    sizes->larger = NULL;
}

void po_open_sizes_free(po_open_sizes *sizes) {
    po_open_sizes_larger_free(sizes);
    po_graph_free(sizes->here);
    po_graph_free(sizes->named);
    sizes->here = sizes->named = NULL;
}

/* The size at hand: further ones are tried where those that come to light are not told apart. */
static po_status find_lengths(finding *f, po_open_sizes *sizes) {
    enum { ATTEMPTS = 8, FURTHER = 5 };
    po_status status = PO_UNSUPPORTED;
    for (uint32_t i = 0; i < ATTEMPTS && status == PO_UNSUPPORTED; i++) {
        po_ctx_clear(f->run->ctx);
        po_open_sizes_free(sizes);
        po_graph *named = graph_with(f, named_dim);
        sizes->named = named;
        po_open_lengths_init(f->told, f->arena, f->names, f->n, f->samples);
        po_open_lengths_collect(f->told, named);
        PO_TRY(find_here(f, FURTHER * i * (i + 1) / 2));
        sizes->here = graph_with(f, dim_here);
        status = fill_all(f, named, sizes->here);
        if (status == PO_OK && !po_open_lengths_tell_means(f->told, f->run->ctx, sizes->here))
            status = po_fail(f->run->ctx, PO_UNSUPPORTED, "a mean's terms are not told apart");
    }
    return status;
}

static po_status find(finding *f, po_open_sizes *sizes) {
    po_ctx *ctx = f->run->ctx;
    find_names(f);
    if (f->n == 0 || f->too_many)
        return po_fail(ctx, PO_UNSUPPORTED, "it has %s open lengths", f->n ? "many" : "no");
    if (f->samples->n < 2)
        return po_fail(ctx, PO_UNSUPPORTED, "at the sizes tried its shapes do not fit one another");
    PO_TRY(find_lengths(f, sizes));
    sizes->plan.naming =
        (po_mu_naming){f->n, f->names, f->lengths, f->told->known, f->told->n_known};
    sizes->equal = f->told->equal;
    sizes->n_equal = f->told->n_equal;
    sizes->samples = f->samples;
    find_others(f, sizes);
    PO_TRY(check_others(f, sizes));
    PO_TRY(find_axis(f, sizes));
    sizes->meant = 1;
    for (uint32_t k = 0; k < f->n; k++)
        sizes->meant *= (double)f->name[k].meant / (double)f->lengths[k];
    for (uint32_t k = 0; k < f->n; k++)
        po_log(ctx, "kernels for any size are made at %s = %lld", f->name[k].symbol,
               (long long)f->lengths[k]);
    return PO_OK;
}

static po_status begin(const po_run *run, po_arena *arena, const po_graph *graph, finding **out) {
    finding *f = PO_NEW(arena, finding);
    *f = (finding){.run = run, .arena = arena, .graph = graph};
    f->told = PO_NEW(arena, po_open_lengths);
    *out = f;
    return po_run_inputs(run, arena, graph, NULL, &f->plan);
}

/* The names that it leaves are those of the lengths that were tried. */
static po_status find_own_samples(finding *f, po_open_samples *samples) {
    *samples = (po_open_samples){.usual = usual_of(f)};
    f->samples = samples;
    find_names(f);
    return find_samples(f, samples);
}

po_status po_open_samples_find(const po_run *run, po_arena *arena, const po_graph *graph,
                               po_open_samples *samples) {
    finding *f;
    PO_TRY(begin(run, arena, graph, &f));
    return find_own_samples(f, samples);
}

/* *has_batch: the model has one, and it is not named. */
static po_status find_with(const po_run *run, po_arena *arena, const po_graph *graph,
                           const po_open_samples *samples, bool names_batch, po_open_sizes *sizes,
                           bool *has_batch) {
    finding *f;
    *sizes = (po_open_sizes){0};
    po_ctx_clear(run->ctx);
    PO_TRY(begin(run, arena, graph, &f));
    f->names_batch = names_batch;
    f->samples = samples;
    if (!samples) { /* nothing else is open */
        PO_TRY(find_own_samples(f, PO_NEW(arena, po_open_samples)));
        f->n = 0;
    }
    po_status status = find(f, sizes);
    *has_batch = f->has_batch;
    if (status != PO_OK)
        po_open_sizes_free(sizes);
    return status;
}

po_status po_open_sizes_find(const po_run *run, po_arena *arena, const po_graph *graph,
                             const po_open_samples *samples, po_open_sizes *sizes) {
    bool has_batch;
    po_status status = find_with(run, arena, graph, samples, false, sizes, &has_batch);
    if (status != PO_UNSUPPORTED || !has_batch)
        return status;
    po_log(run->ctx, "kernels are of all samples at once: %s", run->ctx->error.message);
    return find_with(run, arena, graph, samples, true, sizes, &has_batch);
}

po_status po_open_sizes_of_batch(const po_run *run, po_arena *arena, const po_graph *graph,
                                 const po_open_samples *samples, po_open_sizes *sizes) {
    bool has_batch;
    return find_with(run, arena, graph, samples, true, sizes, &has_batch);
}
