/* The lengths that open dims are tried at. */
#include "verify/inputs/inputs.h"

#include "base/num.h"
#include "ir/size.h"
#include "ops/op.h"
#include "verify/inputs/internal.h"

#include <stdlib.h>

enum { MOST_SIZES = 16 };

/* Lengths tried in turn. Detectors want multiples of 32; the first three differ in every class. */
static const int64_t lengths[][MOST_SIZES] = {
    [PO_DIM_BATCH] = {1, 2, 3, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1, 1},
    [PO_DIM_CHANNELS] = {3, 3, 3, 1, 3, 3, 3, 3, 4, 3, 16, 1, 3, 1, 3, 1},
    [PO_DIM_SPACE] = {64, 96, 160, 32, 224, 320, 48, 640, 256, 8, 16, 7, 512, 28, 416, 384},
    [PO_DIM_SEQUENCE] = {8, 17, 33, 1, 4, 16, 64, 128, 2, 3, 5, 7, 256, 512, 1024, 16000},
};
/* The second spatial dim, so that width and height are not mixed up unseen. */
static const int64_t widths[MOST_SIZES] = {96,  64, 192, 32, 224, 320, 320, 640,
                                           192, 16, 8,   7,  512, 28,  416, 384};

bool po_name_contains(const char *text, const char *part) {
    size_t n = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && (text[i] | 0x20) == part[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

po_dim_class po_input_class(const po_input *in, uint32_t axis) {
    const char *symbol = in->type.dims[axis].symbol;
    if (symbol && po_name_contains(symbol, "batch"))
        return PO_DIM_BATCH;
    if (symbol && (po_name_contains(symbol, "seq") || po_name_contains(symbol, "len")))
        return PO_DIM_SEQUENCE;
    if (axis == 0 && in->type.rank >= 2 && !(in->runs & 1))
        return PO_DIM_BATCH;
    if (!symbol && axis == 1 && in->type.rank == 3 && in->type.dims[0].value > 1 &&
        in->type.dims[2].value > 0)
        return PO_DIM_BATCH; /* of a state: layers, batch, hidden */
    bool image = in->type.rank >= 4 &&
                 (po_dtype_class_of(in->type.dtype) == PO_CLASS_FLOAT || in->type.dtype == PO_U8);
    if (image && axis == 1 && !symbol)
        return PO_DIM_CHANNELS;
    if (image)
        return PO_DIM_SPACE;
    return PO_DIM_SEQUENCE;
}

const po_input *po_input_named(const po_inputs *plan, const char *name) {
    for (uint32_t i = 0; i < plan->n; i++)
        if (strcmp(plan->inputs[i].name, name) == 0)
            return &plan->inputs[i];
    return NULL;
}

/* The length of the axis by its class alone. */
static int64_t usual_length(const po_input *in, uint32_t axis, uint32_t size) {
    po_dim_class c = po_input_class(in, axis);
    return c == PO_DIM_SPACE && axis == in->type.rank - 1 ? widths[size] : lengths[c][size];
}

const po_input *po_input_with(const po_inputs *plan, const char *symbol, uint32_t *axis) {
    for (uint32_t k = 0; k < plan->n; k++) {
        const po_type *t = &plan->inputs[k].type;
        for (uint32_t i = 0; t->kind == PO_TYPE_TENSOR && t->has_rank && i < t->rank; i++)
            if (po_dim_same(t->dims[i], (po_dim){-1, symbol})) {
                *axis = i;
                return &plan->inputs[k];
            }
    }
    return NULL;
}

static bool as_long(void *user, const char *name, int64_t *length) {
    (void)name;
    *length = *(const int64_t *)user;
    return true;
}

/* The least length from there on that an expression takes which is so many times names of its own.
 */
static int64_t taken_from(const po_inputs *plan, const char *symbol, int64_t least) {
    po_arena *scratch = po_arena_child(plan->arena);
    int64_t one = 1, step, none = 0, base;
    const bool known =
        po_size_made(symbol) && po_size_at(scratch, (po_dim){-1, symbol}, as_long, &one, &step) &&
        po_size_at(scratch, (po_dim){-1, symbol}, as_long, &none, &base) && base == 0 && step > 0;
    po_arena_free(scratch);
    return known ? (least + step - 1) / step * step : least;
}

/* The class that the first dim with this symbol shows; a symbol has one length everywhere. */
static bool symbol_length(const po_inputs *plan, const char *symbol, uint32_t size,
                          int64_t *length) {
    if (po_inputs_is_meant(size))
        return po_meant_symbol(plan, symbol, size - PO_FIRST_MEANT, length);
    if (size >= MOST_SIZES) {
        const po_border_size *x = &plan->border[size - MOST_SIZES];
        *length = x->length;
        if (x->symbol && strcmp(x->symbol, symbol) == 0)
            return true;
        size = 0;
    }
    uint32_t axis;
    const po_input *in = po_input_with(plan, symbol, &axis);
    if (in)
        *length = taken_from(plan, symbol, usual_length(in, axis, size));
    return in != NULL;
}

/* Exporters write "past + seq" and "seq + 1" where lengths add up. */
static bool sum_length(const po_inputs *plan, const char *symbol, uint32_t size, int64_t *length) {
    if (!strchr(symbol, '+'))
        return false;
    int64_t sum = 0;
    char term[128];
    while (*symbol) {
        size_t n = strcspn(symbol, "+");
        size_t from = 0, to = n;
        while (from < to && symbol[from] == ' ')
            from++;
        while (to > from && symbol[to - 1] == ' ')
            to--;
        if (to - from == 0 || to - from >= sizeof term)
            return false;
        memcpy(term, symbol + from, to - from);
        term[to - from] = '\0';
        char *end = NULL;
        int64_t value = strtoll(term, &end, 10);
        if (*end != '\0' && !symbol_length(plan, term, size, &value))
            return false;
        if (!po_add_i64(sum, value, &sum))
            return false;
        symbol += n + (symbol[n] == '+');
    }
    *length = sum;
    return sum >= 0;
}

/* An expression of names that other dims have: twice as long as another map. */
typedef struct made_of {
    const po_inputs *plan;
    uint32_t size;
} made_of;

static bool name_length(void *user, const char *name, int64_t *length) {
    const made_of *m = user;
    return symbol_length(m->plan, name, m->size, length);
}

static bool made_length(const po_inputs *plan, const char *symbol, uint32_t size, int64_t *length) {
    if (!po_size_made(symbol))
        return false;
    made_of m = {plan, size};
    po_arena *scratch = po_arena_child(plan->arena);
    const bool known = po_size_at(scratch, (po_dim){-1, symbol}, name_length, &m, length);
    po_arena_free(scratch);
    return known && *length >= 0;
}

int64_t po_inputs_length(const po_inputs *plan, const char *name, uint32_t axis, uint32_t size) {
    const po_input *in = po_input_named(plan, name);
    return in ? po_input_length(plan, in, axis, size) : -1;
}

po_dim_class po_inputs_class(const po_inputs *plan, const char *name, uint32_t axis) {
    const po_input *in = po_input_named(plan, name);
    return in ? po_input_class(in, axis) : PO_DIM_SEQUENCE;
}

static bool is_open_batch(const po_input *in, uint32_t axis) {
    return in->type.kind == PO_TYPE_TENSOR && in->type.has_rank && in->type.dims[axis].value < 0 &&
           po_input_class(in, axis) == PO_DIM_BATCH;
}

bool po_inputs_has_batch(const po_inputs *plan) {
    for (uint32_t i = 0; i < plan->n; i++)
        if (plan->inputs[i].type.rank > 0 && is_open_batch(&plan->inputs[i], 0))
            return true;
    return false;
}

/* What is not said otherwise: by classes of inputs. */
static int64_t drawn_as(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t size) {
    const po_dim d = in->type.dims[axis];
    int64_t length = 0;
    if (d.symbol &&
        (made_length(plan, d.symbol, size, &length) || sum_length(plan, d.symbol, size, &length) ||
         symbol_length(plan, d.symbol, size, &length)))
        return length;
    if (po_inputs_is_meant(size))
        return po_meant_length(plan, in, axis, size - PO_FIRST_MEANT);
    if (size >= MOST_SIZES && !d.symbol && !plan->border[size - MOST_SIZES].symbol)
        return plan->border[size - MOST_SIZES].length;
    return usual_length(in, axis, size < MOST_SIZES ? size : 0);
}

int64_t po_input_length(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t size) {
    if (size & PO_EMPTY_BATCH && is_open_batch(in, axis))
        return 0;
    if (size & PO_ONE_SAMPLE && axis == 0 && is_open_batch(in, 0))
        return 1;
    size &= ~(uint32_t)(PO_EMPTY_BATCH | PO_ONE_SAMPLE);
    if (!in->type.has_rank)
        return lengths[PO_DIM_SEQUENCE][size % MOST_SIZES];
    po_dim d = in->type.dims[axis];
    int64_t length = 0;
    if (d.value >= 0)
        return d.value;
    if (po_inputs_is_meant(size) && po_meant_asked(plan, in, axis, size - PO_FIRST_MEANT, &length))
        return length;
    if (d.symbol && po_related_length(plan, d.symbol, size, &length))
        return length;
    const po_drawn *drawn = po_drawn_length(plan, in, axis);
    if (drawn && !drawn->least)
        return drawn->length;
    length = drawn_as(plan, in, axis, size);
    return drawn && length < drawn->length ? drawn->length : length;
}

po_dim po_assigned_dim(void *assignment, po_graph *graph, po_value_id input, uint32_t axis) {
    const po_assignment *a = assignment;
    const po_value *v = &graph->values[input];
    const int64_t length = po_inputs_length(a->plan, v->name, axis, a->size);
    return length >= 0 ? PO_DIM(length) : v->type.dims[axis];
}

bool po_inputs_fit(po_ctx *ctx, const po_inputs *plan, const po_graph *graph, uint32_t size) {
    po_graph *g = po_infer_with_dims(ctx, graph, po_assigned_dim, &(po_assignment){plan, size});
    bool fits = true;
    for (po_value_id v = 0; v < g->n_values && fits; v++)
        fits = po_type_count(&g->values[v].type) <= PO_MOST_ELEMENTS;
    po_graph_free(g);
    return fits;
}

/* Whether the inputs are small enough to be tried at one more assignment. */
static bool is_small(const po_inputs *plan, uint32_t size) {
    return po_inputs_elements(plan, size) <= 1 << 22;
}

static void add_size(po_inputs *plan, const char *symbol, int64_t length) {
    for (uint32_t i = 0; i < plan->n_border; i++) {
        const char *other = plan->border[i].symbol;
        bool same = symbol && other ? strcmp(symbol, other) == 0 : symbol == other;
        if (same && plan->border[i].length == length)
            return;
    }
    if (plan->n_border == PO_MOST_BORDER_SIZES)
        return;
    plan->border[plan->n_border++] = (po_border_size){symbol, length};
    if (!is_small(plan, MOST_SIZES + plan->n_border - 1))
        plan->n_border--;
}

/* Every open dim of the inputs at the length. */
static void add_length(po_inputs *plan, int64_t length) {
    for (uint32_t k = 0; k < plan->n; k++) {
        const po_type *type = &plan->inputs[k].type;
        for (uint32_t i = 0; type->kind == PO_TYPE_TENSOR && type->has_rank && i < type->rank; i++)
            if (type->dims[i].value < 0)
                add_size(plan, type->dims[i].symbol, length);
    }
}

static bool is_among(const int64_t *list, uint32_t n, int64_t v) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

void po_inputs_find_borders(po_inputs *plan, const po_graph *a, const po_graph *b) {
    enum { MOST = 64 };
    int64_t of_a[MOST], of_b[MOST];
    uint32_t n_a = po_border_lengths(a, of_a, 0, MOST);
    uint32_t n_b = b ? po_border_lengths(b, of_b, 0, MOST) : 0;
    for (int shared = 0; shared < 2; shared++) {
        for (uint32_t i = 0; i < n_b; i++)
            if (is_among(of_a, n_a, of_b[i]) == shared)
                add_length(plan, of_b[i]);
        for (uint32_t i = 0; i < n_a && !shared; i++)
            if (!is_among(of_b, n_b, of_a[i]))
                add_length(plan, of_a[i]);
    }
}

uint32_t po_inputs_sizes(const po_inputs *plan) {
    return plan->dynamic ? MOST_SIZES : 1;
}

uint32_t po_inputs_border_sizes(const po_inputs *plan) {
    return plan->n_border;
}
