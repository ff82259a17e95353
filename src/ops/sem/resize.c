/* Indexed sums of Resize and Upsample, nearest, linear and cubic, where every scale is exactly the
 * ratio of the two lengths. Each axis is a small matrix from input to output positions: the
 * identity, an affine map (upsampling by repetition, downsampling by picking), or a table. */
#include "base/num.h"
#include "ops/sem/rules_sem.h"

#include <math.h>

enum { MOST_TABLE = 1 << 20, MOST_PLACES = 1 << 29 };

typedef enum coordinates { HALF_PIXEL, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC } coordinates;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } rounding;

typedef struct resize {
    bool linear, cubic;
    bool exclude_outside; /* cubic: what lies outside has no weight, the others one in all */
    po_rational a;        /* cubic: its coefficient */
    coordinates coordinates;
    rounding rounding;
} resize;

/* Position o of the output in the input, as a fraction. */
static bool source(const resize *r, int64_t o, int64_t in, int64_t out, po_rational *at) {
    /* (o + 1/2) * in / out - 1/2 and its kind; dims of tables are small. */
    switch (r->coordinates) {
    case PYTORCH_HALF_PIXEL:
        if (out == 1) {
            *at = PO_RATIONAL(0);
            return true;
        }
        return po_rational_make((2 * o + 1) * in - out, 2 * out, at);
    case HALF_PIXEL:
        return po_rational_make((2 * o + 1) * in - out, 2 * out, at);
    case ALIGN_CORNERS:
        if (out == 1) {
            *at = PO_RATIONAL(0);
            return true;
        }
        return po_rational_make(o * (in - 1), out - 1, at);
    case ASYMMETRIC:
        return po_rational_make(o * in, out, at);
    }
    return false;
}

static int64_t clamp(int64_t v, int64_t n) {
    return v < 0 ? 0 : v >= n ? n - 1 : v;
}

static int64_t nearest(const resize *r, po_rational at, int64_t in) {
    int64_t floor = po_floor_div(at.num, at.den), twice = 2 * (at.num - floor * at.den);
    bool up = r->rounding == CEIL          ? twice > 0
              : r->rounding == FLOOR       ? false
              : r->rounding == PREFER_CEIL ? twice >= at.den
                                           : twice > at.den;
    return clamp(floor + up, in);
}

/* A factor for one axis: the table's first axis is the output's. */
static bool add_table(po_sum *sum, po_term *t, po_index *a, uint32_t axis, const po_rational *table,
                      int64_t in, int64_t out) {
    int64_t dims[2] = {out, in};
    uint32_t id = po_sum_table(sum, 2, dims, table), o = po_term_var(t, NULL, out);
    uint32_t i = po_term_var(t, NULL, in);
    po_index *at = po_term_factor(sum, t, id);
    if (!at)
        return false;
    po_index_add(t, at, 0, 1, o);
    po_index_add(t, at, 1, 1, i);
    po_index_add(t, &t->out, axis, 1, o);
    po_index_add(t, a, axis, 1, i);
    return true;
}

/* What position o of the output is nearest to. */
static bool nearest_to(const resize *r, int64_t o, int64_t in, int64_t out, int64_t *from) {
    po_rational at;
    if (!source(r, o, in, out, &at))
        return false;
    *from = nearest(r, at, in);
    return true;
}

/* Whether positions a period of the output on are a whole number of places on in the input, so that
 * what the ends do says it of all: of how many positions. */
static bool is_periodic(const resize *r, int64_t in, int64_t out, int64_t *period) {
    *period = out % in == 0 ? out / in : 1;
    return r->coordinates != ALIGN_CORNERS && (out % in == 0 || in % out == 0);
}

/* Nearest positions that are floor(o / s) or s * o + c. False where they are neither, or too many
 * to be looked at. */
static bool add_affine(const resize *r, po_term *t, po_index *a, uint32_t axis, int64_t in,
                       int64_t out) {
    enum { ENDS = 3 /* periods */ };
    bool repeats = out % in == 0, picks = true;
    int64_t s = repeats ? out / in : 1, period, first, second;
    const bool periodic = is_periodic(r, in, out, &period);
    if ((!periodic && out > MOST_TABLE) || out > MOST_PLACES || ENDS * period > MOST_TABLE ||
        !nearest_to(r, 0, in, out, &first) || !nearest_to(r, out > 1, in, out, &second))
        return false;
    const int64_t step = out > 1 ? second - first : 1;
    for (int64_t o = 0; o < out; o++) {
        int64_t from;
        if (periodic && o == ENDS * period && out > 2 * ENDS * period)
            o = out - ENDS * period;
        if (!nearest_to(r, o, in, out, &from))
            return false;
        repeats = repeats && from == o / s;
        picks = picks && from == first + o * step;
    }
    if (!repeats && !picks)
        return false;
    uint32_t o = po_term_var(t, NULL, repeats ? in : out);
    po_index_add(t, &t->out, axis, repeats ? s : 1, o);
    po_index_add(t, a, axis, repeats ? 1 : step, o);
    if (repeats)
        po_index_add(t, &t->out, axis, 1, po_term_var(t, NULL, s));
    else
        a->base[axis] = first;
    return true;
}

/* The cubic kernel at a distance of |i - t| < 2 from a point between two elements. */
static bool cubic_weight(po_rational a, po_rational t, int64_t i, po_rational *w) {
    po_rational x, minus = PO_RATIONAL(-1), c[4], power = PO_RATIONAL(1);
    if (!po_rational_mul(t, minus, &x) || !po_rational_add(x, PO_RATIONAL(i), &x) ||
        (x.num < 0 && !po_rational_mul(x, minus, &x)))
        return false;
    /* (a + 2) x^3 - (a + 3) x^2 + 1 up to 1, a x^3 - 5a x^2 + 8a x - 4a beyond. */
    const bool near = x.num <= x.den;
    const int64_t by[2][4] = {{-4, 8, -5, 1}, {0, 0, -1, 1}}, plus[2][4] = {{0}, {1, 0, -3, 2}};
    *w = PO_RATIONAL(0);
    for (int k = 0; k < 4; k++) {
        if (!po_rational_mul(a, PO_RATIONAL(by[near][k]), &c[k]) ||
            !po_rational_add(c[k], PO_RATIONAL(plus[near][k]), &c[k]) ||
            !po_rational_mul(c[k], power, &c[k]) || !po_rational_add(*w, c[k], w) ||
            !po_rational_mul(power, x, &power))
            return false;
    }
    return true;
}

static bool cubic_row(const resize *r, po_rational at, int64_t in, po_rational *row) {
    const int64_t floor = po_floor_div(at.num, at.den);
    po_rational t, sum = PO_RATIONAL(0);
    if (!po_rational_make(at.num - floor * at.den, at.den, &t))
        return false;
    for (int64_t i = -1; i <= 2; i++) {
        po_rational w, *to = &row[clamp(floor + i, in)];
        if (r->exclude_outside && (floor + i < 0 || floor + i >= in))
            continue;
        if (!cubic_weight(r->a, t, i, &w) || !po_rational_add(*to, w, to) ||
            !po_rational_add(sum, w, &sum))
            return false;
    }
    po_rational each;
    if (!r->exclude_outside)
        return true;
    if (sum.num == 0 || !po_rational_make(sum.den, sum.num, &each))
        return false;
    for (int64_t i = -1; i <= 2; i++)
        if (floor + i >= 0 && floor + i < in &&
            !po_rational_mul(row[floor + i], each, &row[floor + i]))
            return false;
    return true;
}

/* Beyond the ends the outermost element counts alone. */
static bool linear_row(const po_rational at, int64_t in, po_rational *row) {
    po_rational low, high;
    const int64_t floor = po_floor_div(at.num, at.den);
    po_rational *left = &row[clamp(floor, in)], *right = &row[clamp(floor + 1, in)];
    return po_rational_make(at.num - floor * at.den, at.den, &high) &&
           po_rational_make(at.den - (at.num - floor * at.den), at.den, &low) &&
           po_rational_add(*left, low, left) && po_rational_add(*right, high, right);
}

static bool add_axis(const resize *r, po_sum *sum, po_term *t, po_index *a, uint32_t axis,
                     int64_t in, int64_t out) {
    int64_t size;
    if (in < 1)
        return false;
    if (out == 0) { /* no places at all */
        const uint32_t none = po_term_var(t, NULL, 0);
        po_index_add(t, a, axis, 1, none);
        po_index_add(t, &t->out, axis, 1, none);
        return true;
    }
    if (((!r->linear && !r->cubic) || in == out) && add_affine(r, t, a, axis, in, out))
        return true;
    if (!po_mul_i64(in, out, &size) || size > MOST_TABLE)
        return false;
    po_rational *table = PO_NEW_N(sum->arena, po_rational, size);
    for (int64_t i = 0; i < size; i++)
        table[i] = PO_RATIONAL(0);
    for (int64_t o = 0; o < out; o++) {
        po_rational at;
        po_rational *row = &table[o * in];
        if (!source(r, o, in, out, &at))
            return false;
        if (!r->cubic && !r->linear)
            row[nearest(r, at, in)] = PO_RATIONAL(1);
        else if (!(r->cubic ? cubic_row(r, at, in, row) : linear_row(at, in, row)))
            return false;
    }
    return add_table(sum, t, a, axis, table, in, out);
}

static bool read_modes(const po_sem *sem, resize *r) {
    static const struct {
        const char *name;
        coordinates value;
    } coordinate_modes[] = {{"half_pixel", HALF_PIXEL},
                            {"half_pixel_symmetric", HALF_PIXEL},
                            {"pytorch_half_pixel", PYTORCH_HALF_PIXEL},
                            {"align_corners", ALIGN_CORNERS},
                            {"asymmetric", ASYMMETRIC}};
    static const struct {
        const char *name;
        rounding value;
    } roundings[] = {{"round_prefer_floor", PREFER_FLOOR},
                     {"round_prefer_ceil", PREFER_CEIL},
                     {"floor", FLOOR},
                     {"ceil", CEIL}};
    const po_node *node = sem->node;
    bool known = false;
    r->linear = po_node_string_is(node, "mode", "linear", "nearest") ||
                po_node_string_is(node, "mode", "bilinear", "nearest");
    r->cubic = po_node_string_is(node, "mode", "cubic", "nearest");
    if (!r->linear && !r->cubic && !po_node_string_is(node, "mode", "nearest", "nearest"))
        return false;
    if (strcmp(node->op_type, "Upsample") == 0 || sem->opset < 11) {
        r->coordinates = ASYMMETRIC;
        r->rounding = FLOOR;
        return !r->cubic;
    }
    enum { PARTS = 1024 };
    const double a = (double)po_op_float(sem->graph, node, "cubic_coeff_a") * PARTS;
    r->exclude_outside = po_op_int(sem->graph, node, "exclude_outside") != 0;
    if (r->cubic && (!(a >= -PARTS * 4.0 && a <= PARTS * 4.0) || a < floor(a) || a > floor(a) ||
                     !po_rational_make((int64_t)a, PARTS, &r->a)))
        return false;
    for (size_t i = 0; i < sizeof coordinate_modes / sizeof *coordinate_modes; i++)
        if (po_node_string_is(node, "coordinate_transformation_mode", coordinate_modes[i].name,
                              "half_pixel")) {
            r->coordinates = coordinate_modes[i].value;
            known = true;
        }
    bool rounds = r->linear || r->cubic;
    for (size_t i = 0; i < sizeof roundings / sizeof *roundings; i++)
        if (po_node_string_is(node, "nearest_mode", roundings[i].name, "round_prefer_floor")) {
            r->rounding = roundings[i].value;
            rounds = true;
        }
    return known && rounds && !po_node_int(node, "antialias", 0) &&
           po_node_string_is(node, "keep_aspect_ratio_policy", "stretch", "stretch");
}

/* Whether what scales the node names are exactly out / in on each axis. */
static bool scales_exact(const po_sem *sem, const po_sum *sum) {
    const po_sem_tensor *in = &sem->in[0];
    uint32_t n_axes, n_floats, count = in->rank;
    const float *floats = po_node_floats(sem->node, "scales", &n_floats);
    const int64_t *axes = po_node_ints(sem->node, "axes", &n_axes);
    bool upsample = strcmp(sem->node->op_type, "Upsample") == 0;
    uint32_t input = upsample || sem->opset < 11 ? 1 : 2;
    count = axes ? n_axes : count;
    bool given[PO_MAX_RANK] = {false};
    const po_tensor *t = po_sem_has(sem, input) ? sem->in[input].constant : NULL;
    bool by_size = !upsample && sem->opset >= 11 && po_sem_has(sem, 3) &&
                   !(sem->in[3].rank == 1 && sem->in[3].dims[0] == 0);
    if (!by_size && !t && !floats)
        return false;
    if (!by_size && (t ? t->count : (int64_t)n_floats) != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        if (!po_sem_axis(axes ? axes[i] : i, in->rank, &axis) || given[axis])
            return false;
        given[axis] = true;
        if (by_size)
            continue;
        double scale = t ? po_tensor_f64(t, i) : (double)floats[i];
        /* Exact in double: lengths are far below 2^29 and scales have 24 bits. */
        if (in->dims[axis] > 1 << 28 || scale * (double)in->dims[axis] != (double)sum->dims[axis])
            return false;
    }
    for (uint32_t i = 0; i < in->rank; i++)
        if (!given[i] && in->dims[i] != sum->dims[i])
            return false;
    return true;
}

po_status po_sem_resize(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    resize r = {0};
    po_sum *sum = po_sem_begin(sem, 0);
    if (sum->rank != in->rank || !read_modes(sem, &r) || !scales_exact(sem, sum) ||
        ((r.linear || r.cubic) && !po_sem_is_float(sem, 0)) || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    po_term *t = po_sum_term(sum, 2 * sum->rank);
    po_index *a = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    for (uint32_t i = 0; i < sum->rank; i++) {
        if (in->dims[i] == sum->dims[i] && (r.coordinates != ALIGN_CORNERS || in->dims[i] > 1)) {
            uint32_t v = po_term_var(t, NULL, in->dims[i]);
            po_index_add(t, a, i, 1, v);
            po_index_add(t, &t->out, i, 1, v);
        } else if (!add_axis(&r, sum, t, a, i, in->dims[i], sum->dims[i])) {
            return PO_UNSUPPORTED;
        }
    }
    return PO_OK;
}
