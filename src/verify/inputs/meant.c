/* Lengths at which models are used, by what an input is: what is timed is timed there. The user's
 * own (--sizes) take the place of these. */
#include "verify/inputs/internal.h"

/* What an open dim counts. */
typedef enum use {
    USE_BATCH,
    USE_CHANNELS,
    USE_TOKENS,
    USE_STEP,     /* tokens of a decoder that keeps a cache */
    USE_PAST,     /* and what lies in the cache */
    USE_FRAMES,   /* of features */
    USE_FEATURES, /* of each of them, where these are open too */
    USE_SAMPLES,  /* of sound */
    USE_PAGE,     /* an axis of an image of which the outputs are maps or boxes */
    USE_PHOTO,    /* of an image that is put into classes */
    USE_LINE,     /* along an image whose other axis is short and known: text, a spectrogram */
    USE_IMAGES,   /* of a video */
    USE_VIDEO     /* an axis of its images */
} use;

/* The first is what is ranked by. Batches beyond one come with short inputs. */
static const int64_t lengths[][PO_MOST_MEANT] = {
    [USE_BATCH] = {1, 2, 1},        [USE_CHANNELS] = {3, 3, 3},
    [USE_TOKENS] = {128, 16, 512},  [USE_STEP] = {1, 1, 1},
    [USE_PAST] = {256, 16, 1024},   [USE_FRAMES] = {200, 40, 800},
    [USE_FEATURES] = {80, 64, 128}, [USE_SAMPLES] = {16000, 1600, 512},
    [USE_PAGE] = {640, 320, 320},   [USE_PHOTO] = {224, 160, 160},
    [USE_LINE] = {320, 160, 160},   [USE_IMAGES] = {16, 8, 8},
    [USE_VIDEO] = {112, 112, 112},
};
/* The last axis of an image differs where the first lengths would be square ones alone. */
static const int64_t page_widths[PO_MOST_MEANT] = {640, 480, 480};

enum { SHORT_SIDE = 128, MOST_CHANNELS = 4 };

static bool has_word(const char *symbol, const char *word) {
    return symbol && po_name_contains(symbol, word);
}

static bool keeps_cache(const po_inputs *plan) {
    for (uint32_t k = 0; k < plan->n; k++) {
        const po_type *type = &plan->inputs[k].type;
        for (uint32_t i = 0; type->kind == PO_TYPE_TENSOR && type->has_rank && i < type->rank; i++)
            if (type->dims[i].value < 0 && has_word(type->dims[i].symbol, "past"))
                return true;
    }
    return false;
}

/* Floats that are no ids: Keras' inputs are floats whatever they hold, and cast where they choose
 * rows of a table. */
static bool is_real(const po_input *in) {
    const bool ids = in->need.role == PO_ROLE_RANGE && !in->need.guessed;
    return po_dtype_class_of(in->type.dtype) == PO_CLASS_FLOAT && !ids;
}

/* An image's axis, of a tensor of rank 4 or 5. */
static use use_of_map(const po_inputs *plan, const po_input *in, uint32_t axis) {
    const po_type *type = &in->type;
    const po_dim *dims = type->dims;
    int64_t last = dims[type->rank - 1].value;
    bool channels_last = last > 0 && last <= MOST_CHANNELS && dims[1].value < 0;
    uint32_t first = channels_last ? 1 : 2, side = type->rank - (channels_last ? 2 : 1);
    if (axis < first || axis > side)
        return USE_CHANNELS;
    if (type->rank > 4)
        return axis == first ? USE_IMAGES : USE_VIDEO;
    const uint32_t across = axis == first ? side : first;
    const po_drawn *drawn = po_drawn_length(plan, in, across);
    int64_t other = drawn && !drawn->least ? drawn->length : dims[across].value;
    if (other > 0 && other <= SHORT_SIDE)
        return USE_LINE;
    return plan->dense ? USE_PAGE : USE_PHOTO;
}

static use use_of(const po_inputs *plan, const po_input *in, uint32_t axis) {
    const po_type *type = &in->type;
    const char *symbol = type->dims[axis].symbol;
    const po_dim_class class = po_input_class(in, axis);
    if (class == PO_DIM_BATCH)
        return USE_BATCH;
    if (has_word(symbol, "past"))
        return USE_PAST;
    bool tokens = has_word(symbol, "token");
    if ((class == PO_DIM_CHANNELS || class == PO_DIM_SPACE) && !tokens)
        return use_of_map(plan, in, axis);
    tokens |= !is_real(in) || has_word(symbol, "seq") || has_word(symbol, "len");
    if (tokens)
        return keeps_cache(plan) && !has_word(symbol, "encod") ? USE_STEP : USE_TOKENS;
    if ((in->runs & 1) && type->rank == 2 && axis == 1)
        return USE_FEATURES;
    bool one = type->rank <= 2 || (type->rank == 3 && type->dims[1].value == 1);
    return one && axis + 1 == type->rank ? USE_SAMPLES : USE_FRAMES;
}

static int64_t length_of(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t k) {
    use u = use_of(plan, in, axis);
    return u == USE_PAGE && axis + 1 == in->type.rank ? page_widths[k] : lengths[u][k];
}

/* The dim that says most of what a symbol counts: of ids and masks before that of features. */
static const po_input *shown_by(const po_inputs *plan, const char *symbol, uint32_t *axis) {
    const po_input *found = NULL;
    for (uint32_t k = 0; k < plan->n; k++) {
        const po_input *in = &plan->inputs[k];
        if (in->type.kind != PO_TYPE_TENSOR || !in->type.has_rank ||
            (found && (is_real(in) || !is_real(found))))
            continue;
        for (uint32_t i = 0; i < in->type.rank; i++) {
            const po_dim *d = &in->type.dims[i];
            if (d->value < 0 && d->symbol && strcmp(d->symbol, symbol) == 0) {
                found = in;
                *axis = i;
                break;
            }
        }
    }
    return found;
}

/* --- what the user asked for --- */

static const int64_t *wanted_dims(const po_inputs *plan, const char *input, uint32_t k) {
    for (uint32_t i = 0; i < plan->n_wanted; i++) {
        const po_wanted *w = &plan->wanted[i];
        if (w->number == k && strcmp(plan->inputs[w->input].name, input) == 0)
            return w->dims;
    }
    return NULL;
}

static bool wanted_symbol(const po_inputs *plan, const char *symbol, uint32_t k, int64_t *length) {
    for (uint32_t i = 0; i < plan->n_wanted; i++) {
        const po_wanted *w = &plan->wanted[i];
        const po_type *type = &plan->inputs[w->input].type;
        for (uint32_t d = 0; w->number == k && d < type->rank; d++)
            if (type->dims[d].value < 0 && type->dims[d].symbol &&
                strcmp(type->dims[d].symbol, symbol) == 0) {
                *length = w->dims[d];
                return true;
            }
    }
    return false;
}

bool po_meant_symbol(const po_inputs *plan, const char *symbol, uint32_t k, int64_t *length) {
    uint32_t axis = 0;
    if (wanted_symbol(plan, symbol, k, length))
        return true;
    const po_input *in = shown_by(plan, symbol, &axis);
    k = plan->n_wanted > 0 ? 0 : k;
    if (in)
        *length = length_of(plan, in, axis, k);
    if (in && has_word(symbol, "total") && keeps_cache(plan))
        *length = lengths[USE_PAST][k] + lengths[USE_STEP][k];
    return in != NULL;
}

bool po_meant_asked(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t k,
                    int64_t *length) {
    const int64_t *dims = wanted_dims(plan, in->name, k);
    if (dims)
        *length = dims[axis];
    return dims != NULL;
}

int64_t po_meant_length(const po_inputs *plan, const po_input *in, uint32_t axis, uint32_t k) {
    return length_of(plan, in, axis, plan->n_wanted > 0 ? 0 : k);
}

po_status po_pin_check(po_ctx *ctx, const char *option, const po_type *type, const po_pin *pin) {
    if (type->kind != PO_TYPE_TENSOR)
        return po_fail(ctx, PO_BAD_USE, "--%s: input '%s' is not a tensor", option, pin->name);
    if (type->has_rank && type->rank != pin->rank)
        return po_fail(ctx, PO_BAD_USE, "--%s: input '%s' has rank %u, not %u", option, pin->name,
                       type->rank, pin->rank);
    for (uint32_t d = 0; d < pin->rank && type->has_rank; d++)
        if (po_dim_known(type->dims[d]) && pin->dims[d] < 0)
            return po_fail(ctx, PO_BAD_USE, "--%s: dim %u of input '%s' is %lld and not open",
                           option, d, pin->name, (long long)type->dims[d].value);
        else if (po_dim_known(type->dims[d]) && type->dims[d].value != pin->dims[d])
            return po_fail(ctx, PO_BAD_USE, "--%s: dim %u of input '%s' is %lld, not %lld", option,
                           d, pin->name, (long long)type->dims[d].value, (long long)pin->dims[d]);
    return PO_OK;
}

po_status po_inputs_want(po_ctx *ctx, po_arena *arena, po_inputs *plan, const po_pin *sizes,
                         uint32_t n) {
    uint32_t numbers = 0;
    po_wanted *list = PO_NEW_N(arena, po_wanted, n);
    for (uint32_t i = 0; i < n; i++) {
        const po_pin *size = &sizes[i];
        const po_input *in = po_input_named(plan, size->name);
        if (!in)
            return po_fail(ctx, PO_BAD_USE, "--sizes: the model has no input '%s'", size->name);
        PO_TRY(po_pin_check(ctx, "sizes", &in->type, size));
        if (!in->type.has_rank)
            return po_fail(ctx, PO_BAD_USE, "--sizes: input '%s' has no known rank", size->name);
        po_wanted *w = &list[i];
        *w = (po_wanted){(uint32_t)(in - plan->inputs), 0, size->dims};
        for (uint32_t k = 0; k < i; k++)
            w->number += list[k].input == w->input;
        if (w->number == PO_MOST_MEANT)
            return po_fail(ctx, PO_BAD_USE, "--sizes: more than %d for input '%s'", PO_MOST_MEANT,
                           size->name);
        numbers = w->number + 1 > numbers ? w->number + 1 : numbers;
    }
    plan->wanted = list;
    plan->n_wanted = n;
    if (plan->dynamic && n > 0)
        plan->n_meant = numbers;
    return PO_OK;
}

po_hash po_pins_hash(po_hash hash, const po_pin *pins, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        hash = po_hash_str(po_hash_u64(hash, pins[i].rank), pins[i].name);
        hash = po_hash_bytes(pins[i].dims, pins[i].rank * sizeof *pins[i].dims, hash);
    }
    return hash;
}

/* --- how many there are --- */

bool po_inputs_alike(const po_inputs *plan, uint32_t a, uint32_t b) {
    for (uint32_t k = 0; k < plan->n; k++) {
        const po_input *in = &plan->inputs[k];
        for (uint32_t i = 0;
             in->type.kind == PO_TYPE_TENSOR && in->type.has_rank && i < in->type.rank; i++)
            if (po_input_length(plan, in, i, a) != po_input_length(plan, in, i, b))
                return false;
    }
    return true;
}

/* Whether an output has an open dim besides the batch. */
static bool is_dense(const po_graph *graph) {
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
        const po_type *type = &graph->values[graph->outputs[i]].type;
        if (type->kind != PO_TYPE_TENSOR || !type->has_rank)
            return true;
        for (uint32_t d = 1; d < type->rank && type->rank >= 3; d++)
            if (type->dims[d].value < 0)
                return true;
    }
    return false;
}

void po_inputs_find_meant(po_inputs *plan, const po_graph *graph) {
    plan->dense = is_dense(graph);
    for (plan->n_meant = 1; plan->n_meant < PO_MOST_MEANT; plan->n_meant++)
        for (uint32_t k = 0; k < plan->n_meant; k++)
            if (po_inputs_alike(plan, PO_FIRST_MEANT + k, PO_FIRST_MEANT + plan->n_meant))
                return;
}

uint32_t po_inputs_meant(const po_inputs *plan) {
    return plan->n_meant;
}

bool po_inputs_asked(const po_inputs *plan) {
    return plan->n_wanted > 0;
}

uint32_t po_inputs_meant_size(uint32_t k) {
    return PO_FIRST_MEANT + k;
}

bool po_inputs_is_meant(uint32_t size) {
    return size >= PO_FIRST_MEANT;
}

double po_inputs_elements(const po_inputs *plan, uint32_t size) {
    double sum = 0;
    for (uint32_t k = 0; k < plan->n; k++) {
        const po_input *in = &plan->inputs[k];
        double count = in->type.kind == PO_TYPE_TENSOR && in->type.has_rank;
        for (uint32_t i = 0; count > 0 && i < in->type.rank; i++)
            count *= (double)po_input_length(plan, in, i, size);
        sum += count;
    }
    return sum;
}

uint32_t po_inputs_turns(const po_inputs *plan) {
    return plan->n_meant + po_inputs_sizes(plan);
}

/* Whether one assignment is looked at before another, of those that nobody means. */
static bool comes_before(const po_inputs *plan, uint32_t a, uint32_t b) {
    const double most = plan->n_meant ? po_inputs_elements(plan, PO_FIRST_MEANT) : 0;
    const double x = po_inputs_elements(plan, a), y = po_inputs_elements(plan, b);
    if ((x <= most) != (y <= most))
        return x <= most;
    return x != y && x <= most ? x > y : a < b;
}

uint32_t po_inputs_turn(const po_inputs *plan, uint32_t k) {
    if (k < plan->n_meant)
        return PO_FIRST_MEANT + k;
    const uint32_t n = po_inputs_sizes(plan);
    for (uint32_t size = 0; size < n; size++) {
        uint32_t before = 0;
        for (uint32_t other = 0; other < n; other++)
            before += other != size && comes_before(plan, other, size);
        if (before == k - plan->n_meant)
            return size;
    }
    return 0;
}
