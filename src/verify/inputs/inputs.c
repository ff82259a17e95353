/* Data for the inputs of a graph: what kind each takes, and values of that kind. */
#include "verify/inputs/inputs.h"

#include "base/num.h"
#include "verify/inputs/internal.h"
#include "verify/inputs/patterns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEQUENCE_ITEMS = 3 };
#define LARGEST_SET ((size_t)2 << 30)

/* --- the plan --- */

static const po_value *input_named(const po_graph *graph, const char *name) {
    const po_value_id v = graph ? po_graph_input(graph, name) : PO_NONE;
    return v == PO_NONE ? NULL : &graph->values[v];
}

/* What is left to chance where no consumer bounds an input. */
static po_need default_need(const po_input *in, po_need need) {
    if (need.role == PO_ROLE_LIST)
        return need;
    if (po_name_contains(in->name, "mask") && (need.role == PO_ROLE_FREE || need.high <= 1)) {
        need.role = PO_ROLE_MASK;
        return need;
    }
    if (need.role != PO_ROLE_FREE)
        return need;
    po_dtype dtype = in->type.dtype;
    po_dtype_class class = po_dtype_class_of(dtype);
    if (class == PO_CLASS_FLOAT || class == PO_CLASS_NONE)
        return need;
    uint32_t bits = po_dtype_bits(dtype);
    need.role = PO_ROLE_RANGE;
    need.guessed = class == PO_CLASS_SIGNED && bits >= 32 && need.arithmetic;
    need.low = 0;
    need.high = 1;
    if (class == PO_CLASS_UNSIGNED && bits <= 16)
        need.high = exp2((double)bits) - 1;
    else if (class == PO_CLASS_SIGNED && bits <= 8) {
        need.low = -exp2((double)bits - 1);
        need.high = -need.low - 1;
    } else if (class != PO_CLASS_BOOL && need.arithmetic) {
        need.low = class == PO_CLASS_SIGNED ? -8 : 0;
        need.high = 8;
    }
    return need;
}

static void find_words(po_inputs *plan, const po_graph *g) {
    enum { LONGEST = 64, OF_ONE = 4 };
    for (po_value_id v = 0; g && v < g->n_values; v++) {
        const po_tensor *t = po_graph_constant(g, v);
        if (!t || t->dtype != PO_STR)
            continue;
        const po_bytes *strings = t->data;
        for (int64_t i = 0; i < t->count && i < OF_ONE && plan->n_words < PO_MOST_WORDS; i++)
            if (strings[i].size <= LONGEST)
                plan->words[plan->n_words++] = strings[i];
    }
}

po_status po_inputs_plan(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_graph *other,
                         po_inputs **out) {
    po_inputs *plan = PO_NEW(arena, po_inputs);
    plan->arena = arena;
    plan->inputs = PO_NEW_N(arena, po_input, graph->n_inputs);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const po_value *value = &graph->values[graph->inputs[i]];
        if (value->constant || value->is_initializer)
            continue; /* has a default: the runtime does not ask for it */
        po_input *in = &plan->inputs[plan->n++];
        in->name = value->name;
        in->number = i;
        in->type = value->type;
        const po_value *twin = input_named(other, value->name);
        if (twin && !po_type_merge(arena, &in->type, &twin->type))
            return po_fail(ctx, PO_BAD_INPUT, "the input '%s' has another type in the two models",
                           value->name);
        if (in->type.kind == PO_TYPE_OPTIONAL && in->type.element)
            in->type = *in->type.element; /* a value is always given */
        in->need = default_need(in, po_need_of(arena, graph, graph->inputs[i]));
        plan->has_masks |= in->need.role == PO_ROLE_MASK;
        plan->has_ranges |= in->need.role == PO_ROLE_RANGE && in->need.high > in->need.low;
        plan->has_floats |=
            in->need.role == PO_ROLE_FREE && po_dtype_class_of(in->type.dtype) == PO_CLASS_FLOAT;
        po_borders_add(arena, graph, graph->inputs[i], &in->borders);
        if (twin) /* the other model may tell apart what this one does not */
            po_borders_add(arena, other, (po_value_id)(twin - other->values), &in->borders);
        plan->has_borders |=
            in->borders.n > 0 && (in->need.role == PO_ROLE_FREE || in->need.role == PO_ROLE_RANGE);
        if (in->type.kind == PO_TYPE_TENSOR && in->type.has_rank)
            plan->dynamic |= !po_type_static(&in->type);
    }
    find_words(plan, graph);
    find_words(plan, other);
    if (plan->dynamic) {
        PO_TRY(po_inputs_find_relations(plan, graph));
        po_inputs_find_borders(plan, graph, other);
        po_inputs_find_meant(plan, graph);
    }
    *out = plan;
    return PO_OK;
}

bool po_inputs_has(const po_inputs *plan, po_input_kind kind) {
    switch (kind) {
    case PO_INPUTS_NORMAL:
        return true;
    case PO_INPUTS_MASKED:
        return plan->has_masks;
    case PO_INPUTS_EXTREME:
        return plan->has_ranges;
    case PO_INPUTS_ZERO:
    case PO_INPUTS_RAMP:
    case PO_INPUTS_CONSTANT:
        return plan->has_floats || plan->has_ranges;
    case PO_INPUTS_BORDERS:
        return plan->has_borders;
    default:
        return plan->has_floats;
    }
}

/* --- values --- */

typedef struct maker {
    po_ctx *ctx;
    po_arena *arena;
    const po_inputs *plan;
    uint32_t size;
    po_input_kind kind;
    uint64_t seed;
    double scale;
} maker;

/* A border, what lies next to it on either side, or something else. */
static bool on_border(const maker *m, const po_borders *b, uint64_t stream, int64_t i, bool whole,
                      double *v) {
    enum { WHICH = 0x626f7264 };
    uint64_t r = po_random_u64(m->seed, stream ^ WHICH, (uint64_t)i);
    if (b->n == 0 || r % 4 == 0)
        return false;
    const po_border *border = &b->list[(r >> 8) % b->n];
    int side = (int)((r >> 4) % 3) - 1;
    if (whole) {
        *v = floor(border->at) + side;
        return true;
    }
    /* Where rounding has a say, as far off as that it has none. */
    double away = border->exact ? 0x1p-23 : 0x1p-14;
    if (!border->exact && side == 0)
        side = 1;
    *v = border->at + side * away * fmax(fabs(border->at), border->exact ? 0x1p-20 : 1);
    return true;
}

static double free_float(const maker *m, uint64_t stream, int64_t i, int64_t row) {
    switch (m->kind) {
    case PO_INPUTS_UNIFORM:
        return m->scale * po_random_unit(m->seed, stream, (uint64_t)i);
    case PO_INPUTS_ZERO:
        return 0;
    case PO_INPUTS_LARGE:
        return 30 * m->scale * po_random_normal(m->seed, stream, (uint64_t)i);
    case PO_INPUTS_ONE_HOT:
        return po_random_u64(m->seed, stream, (uint64_t)(i / row)) % (uint64_t)row ==
                       (uint64_t)(i % row)
                   ? 1
                   : 0;
    case PO_INPUTS_DENORMAL:
        return po_random_normal(m->seed, stream, (uint64_t)i) * (i % 3 == 0 ? 1e-39 : 1e-30);
    default:
        return m->scale * po_random_normal(m->seed, stream, (uint64_t)i);
    }
}

/* Of a range, the part that a pattern takes: its middle is 0, what goes beyond is cut. */
static double patterned(po_pattern *pattern, const po_need *need, int64_t i) {
    double low = ceil(need->low), high = floor(need->high);
    double part = fmin(fmax(0.5 + po_pattern_at(pattern, i) / 4, 0), 1);
    return low + floor(part * (high - low) + 0.5);
}

static double ranged(const maker *m, const po_need *need, const po_borders *borders,
                     uint64_t stream, int64_t i) {
    double low = ceil(need->low), width = floor(need->high) - low + 1;
    if (m->kind == PO_INPUTS_ZERO)
        return low > 0 ? low : need->high < 0 ? need->high : 0;
    double unit = po_random_unit(m->seed, stream, (uint64_t)i);
    double border;
    if (m->kind == PO_INPUTS_BORDERS && on_border(m, borders, stream, i, true, &border) &&
        (need->guessed ? fabs(border) <= INT32_MAX : border >= low && border <= need->high))
        return border;
    if (m->kind == PO_INPUTS_EXTREME)
        return unit < 0.5 ? low : floor(need->high);
    double v = low + floor(unit * width);
    return v > need->high ? need->high : v;
}

/* Every integer of the range at a place of its own, where there is room for as many again. */
static void cover(const maker *m, const po_need *need, uint64_t stream, po_tensor *t) {
    enum { MOST = 1 << 20, PLACES = 0x706c6163 };
    double low = ceil(need->low), width = floor(need->high) - low + 1;
    if (m->kind != PO_INPUTS_NORMAL || t->count > MOST || !(width > 2) ||
        2 * width > (double)t->count)
        return;
    po_arena *scratch = po_arena_create(m->ctx);
    uint32_t *places = PO_NEW_N(scratch, uint32_t, t->count);
    for (uint32_t i = 0; i < t->count; i++)
        places[i] = i;
    for (uint32_t i = 0; i < (uint32_t)width; i++) {
        uint64_t left = (uint64_t)t->count - i;
        uint32_t k = i + (uint32_t)(po_random_u64(m->seed, stream ^ PLACES, i) % left);
        uint32_t place = places[k];
        places[k] = places[i];
        po_tensor_set_int(t, place, (int64_t)low + i);
    }
    po_arena_free(scratch);
}

static double mask_at(const maker *m, uint64_t stream, int64_t i, int64_t row) {
    int64_t at = i % row, number = i / row;
    if (m->kind == PO_INPUTS_MASKED && number == 0)
        return 0;
    int64_t ones = 1 + (int64_t)(po_random_u64(m->seed, stream, (uint64_t)number) % (uint64_t)row);
    return at < ones ? 1 : 0;
}

static void fill(const maker *m, const po_input *in, uint64_t stream, po_tensor *t) {
    int64_t row = t->rank > 0 && t->dims[t->rank - 1] > 0 ? t->dims[t->rank - 1] : 1;
    bool real = po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT;
    const po_need *need = &in->need;
    float *f32 = t->dtype == PO_F32 ? po_tensor_data(t) : NULL;
    bool by_pattern = po_pattern_has(m->kind) && t->count > 0;
    po_arena *scratch = po_arena_create(m->ctx);
    po_pattern pattern = {0};
    if (by_pattern)
        pattern = po_pattern_of(scratch, m->kind, m->seed, stream,
                                need->role == PO_ROLE_FREE ? m->scale : 1, t->rank, t->dims);
    for (int64_t i = 0; i < t->count; i++) {
        double v = 0;
        switch (need->role) {
        case PO_ROLE_FREE:
            if (by_pattern)
                v = po_pattern_at(&pattern, i);
            else if (m->kind != PO_INPUTS_BORDERS ||
                     !on_border(m, &in->borders, stream, i, false, &v))
                v = free_float(m, stream, i, row);
            break;
        case PO_ROLE_RANGE:
            v = by_pattern ? patterned(&pattern, need, i)
                           : ranged(m, need, &in->borders, stream, i);
            break;
        case PO_ROLE_MASK:
            v = mask_at(m, stream, i, row);
            break;
        case PO_ROLE_REAL:
            v = need->low + (need->high - need->low) * po_random_unit(m->seed, stream, (uint64_t)i);
            break;
        case PO_ROLE_LIST:
            v = need->n == 0 ? 1 : (double)need->list[i < need->n ? i : need->n - 1];
            break;
        }
        if (f32)
            f32[i] = (float)v;
        else if (real)
            po_tensor_set_f64(t, i, v);
        else
            po_tensor_set_int(t, i, (int64_t)v);
    }
    po_arena_free(scratch);
    if (need->role == PO_ROLE_RANGE && !real)
        cover(m, need, stream, t);
}

static void fill_strings(const maker *m, uint64_t stream, po_tensor *t) {
    static const char *const words[] = {"1", "20", "a", "abc", "", "-3.5", "the cat", "\xc3\xa9"};
    po_bytes *strings = PO_NEW_N(m->arena, po_bytes, t->count);
    for (int64_t i = 0; i < t->count; i++) {
        uint64_t r = po_random_u64(m->seed, stream, (uint64_t)i);
        const char *word = words[r % 8];
        strings[i] = (po_bytes){word, strlen(word)};
        if (m->plan->n_words > 0 && (r >> 8) % 2 == 0)
            strings[i] = m->plan->words[(r >> 16) % m->plan->n_words];
    }
    t->data = strings;
}

static po_status make_tensor(const maker *m, const po_input *in, const po_type *type,
                             uint64_t stream, const po_tensor **out) {
    int64_t dims[PO_MAX_RANK] = {0};
    uint32_t rank = type->has_rank ? type->rank : in->need.role == PO_ROLE_LIST ? 1 : 2;
    po_input shaped = *in;
    shaped.type = *type;
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = po_input_length(m->plan, &shaped, i, m->size);
        if (!po_mul_i64(count, dims[i], &count))
            return po_fail(m->ctx, PO_UNSUPPORTED, "the input '%s' is too large", in->name);
    }
    size_t bytes = 0;
    if (type->dtype != PO_STR &&
        (!po_dtype_bytes(type->dtype, count, &bytes) || bytes > LARGEST_SET))
        return po_fail(m->ctx, PO_UNSUPPORTED, "no data can be made for the input '%s'", in->name);
    po_tensor *t = NULL;
    if (type->dtype == PO_STR) {
        t = PO_NEW(m->arena, po_tensor);
        *t = (po_tensor){PO_STR, rank, po_arena_memdup(m->arena, dims, sizeof *dims * rank),
                         count,  NULL, 0,
                         NULL};
        fill_strings(m, stream, t);
    } else {
        PO_TRY(po_tensor_create(m->ctx, m->arena, type->dtype, rank, dims, &t));
        fill(m, &shaped, stream, t);
    }
    *out = t;
    return PO_OK;
}

static po_status make_datum(const maker *m, const po_input *in, const po_type *type,
                            uint64_t stream, po_datum *datum) {
    *datum = (po_datum){type->kind, NULL, 0, NULL};
    if (type->kind == PO_TYPE_TENSOR)
        return make_tensor(m, in, type, stream, &datum->tensor);
    if (type->kind == PO_TYPE_SEQUENCE && type->element) {
        po_datum *items = PO_NEW_N(m->arena, po_datum, SEQUENCE_ITEMS);
        for (uint64_t i = 0; i < SEQUENCE_ITEMS; i++)
            PO_TRY(make_datum(m, in, type->element, stream + (i + 1) * 1000003, &items[i]));
        datum->n = SEQUENCE_ITEMS;
        datum->items = items;
        return PO_OK;
    }
    return po_fail(m->ctx, PO_UNSUPPORTED, "no data can be made for the input '%s'", in->name);
}

po_status po_inputs_draw(po_ctx *ctx, po_arena *arena, const po_inputs *plan, const po_draw *draw,
                         po_feed *feed) {
    maker m = {
        ctx, arena, plan, draw->size, draw->kind, draw->seed, draw->scale > 0 ? draw->scale : 1};
    const char **names = PO_NEW_N(arena, const char *, plan->n);
    po_datum *data = PO_NEW_N(arena, po_datum, plan->n);
    for (uint32_t i = 0; i < plan->n; i++) {
        names[i] = plan->inputs[i].name;
        PO_TRY(make_datum(&m, &plan->inputs[i], &plan->inputs[i].type, i, &data[i]));
    }
    *feed = (po_feed){plan->n, names, data};
    return PO_OK;
}

po_status po_inputs_make(po_ctx *ctx, po_arena *arena, const po_inputs *plan, uint32_t size,
                         po_input_kind kind, uint64_t seed, po_feed *feed) {
    return po_inputs_draw(ctx, arena, plan, &(po_draw){size, kind, seed, 1}, feed);
}

po_draw po_inputs_fresh(const po_inputs *plan, uint32_t k, uint64_t seed) {
    static const po_input_kind kinds[] = {PO_INPUTS_NORMAL,   PO_INPUTS_PAGE,  PO_INPUTS_IMAGE,
                                          PO_INPUTS_UNIFORM,  PO_INPUTS_RAMP,  PO_INPUTS_SPARSE,
                                          PO_INPUTS_CONSTANT, PO_INPUTS_MASKED};
    static const double scales[] = {1, 3, 0.3, 10, 0.1, 30, 0.01};
    enum { KINDS = sizeof kinds / sizeof kinds[0], SCALES = sizeof scales / sizeof scales[0] };
    po_draw draw = {0, kinds[k % KINDS], seed + k, scales[(k + k / KINDS) % SCALES]};
    if (!po_inputs_has(plan, draw.kind))
        draw.kind = PO_INPUTS_NORMAL;
    return draw;
}

const char *po_inputs_tell(po_arena *arena, const po_inputs *plan, const po_draw *draw) {
    static const char *const kinds[] = {
        [PO_INPUTS_NORMAL] = "normal",      [PO_INPUTS_UNIFORM] = "uniform",
        [PO_INPUTS_ZERO] = "zeros",         [PO_INPUTS_LARGE] = "large",
        [PO_INPUTS_EXTREME] = "extreme",    [PO_INPUTS_ONE_HOT] = "one-hot",
        [PO_INPUTS_MASKED] = "masked",      [PO_INPUTS_DENORMAL] = "denormal",
        [PO_INPUTS_IMAGE] = "image",        [PO_INPUTS_PAGE] = "page",
        [PO_INPUTS_RAMP] = "ramp",          [PO_INPUTS_CONSTANT] = "constant",
        [PO_INPUTS_SPARSE] = "sparse",      [PO_INPUTS_OFFSET] = "offset",
        [PO_INPUTS_BORDERS] = "at borders",
    };
    po_text text;
    po_text_init(&text, arena);
    po_text_puts(&text, kinds[draw->kind]);
    if (draw->scale > 0 && draw->scale != 1)
        po_text_printf(&text, ", times %g,", draw->scale);
    for (uint32_t k = 0; k < plan->n && k < 4; k++) {
        const po_input *in = &plan->inputs[k];
        if (in->type.kind != PO_TYPE_TENSOR || !in->type.has_rank)
            continue;
        po_text_printf(&text, " %.40s:", in->name);
        for (uint32_t i = 0; i < in->type.rank; i++)
            po_text_printf(&text, "%s%lld", i ? "x" : "",
                           (long long)po_input_length(plan, in, i, draw->size));
    }
    return text.data;
}

const char *po_inputs_describe(po_arena *arena, const po_inputs *plan, uint32_t size,
                               po_input_kind kind) {
    return po_inputs_tell(arena, plan, &(po_draw){size, kind, 0, 1});
}
