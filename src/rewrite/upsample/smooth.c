/* Convolutions of maps that were interpolated by a whole factor.
 *
 * Linear interpolation up_f(z) is a repetition of pixels, smoothed: along one axis the sum of its
 * neighbours by [1 2 .. 2 1] / 2f for an even f, by [1 .. 1] / f for an odd one. A convolution K
 * and the smoothing change places, K up_f(z) = smooth(K repeat_f(z)), and a convolution of repeated
 * pixels has a part of the products (differences.c, upsample.c).
 *
 * That is right in part: K reads zeros around the map, and what is smoothed behind it does not.
 * Where z goes on with copies of its edge, all is right but the lines of the output that read a
 * zero. These are made as they were, from a strip of z along each edge, and put around the rest. */
#include "rewrite/passes.h"
#include "rewrite/upsample/split.h"

enum { MOST_FACTOR = 8, ROWS = 2, COLUMNS = 3 };

typedef struct smoothed {
    po_conv c;
    po_node_id up;
    po_value_id z;
    int64_t f, p; /* the factor; lines at each edge that read zeros */
} smoothed;

/* --- where it applies --- */

static bool interpolated(const po_graph *g, po_value_id y, po_value_id *z, int64_t *f) {
    const po_node *n = po_made_by(g, y, PO_OP_Resize);
    int64_t factor[4];
    if (!n || po_op_version(g, n) < 11 || !po_node_string_is(n, "mode", "linear", "nearest") ||
        po_node_int(n, "antialias", 0) != 0 || po_node_attr(n, "axes") ||
        !po_node_string_is(n, "keep_aspect_ratio_policy", "stretch", "stretch") ||
        (!po_node_string_is(n, "coordinate_transformation_mode", "half_pixel", "half_pixel") &&
         !po_node_string_is(n, "coordinate_transformation_mode", "pytorch_half_pixel",
                            "half_pixel")) ||
        po_rank_of(g, n->in[0]) != 4 || !po_whole_factors(g, n, 4, factor))
        return false;
    *z = n->in[0];
    *f = factor[2];
    return factor[0] == 1 && factor[1] == 1 && *f == factor[3] && *f >= 2 && *f <= MOST_FACTOR;
}

/* A convolution like c over the `channels` of the interpolated map up_f(z). */
static bool pays(const po_graph *g, const po_conv *c, po_value_id z, int64_t f, int64_t channels) {
    enum { TYPICAL = 64 }; /* of an open size */
    double n[2];
    for (int axis = 0; axis < 2; axis++) {
        int64_t d = po_dim_of(g, z, ROWS + axis);
        n[axis] = (double)(d > 0 ? d : TYPICAL);
    }
    const double k = (double)c->kernel[0], in = (double)channels, by = (double)f;
    const double reach = c->kernel[0] - 1 <= f ? 2 : 3, area = by * by * n[0] * n[1];
    const double phases = reach * reach * in;
    const double differences =
        k * k / (by * by) * (in + po_numbers.smooth.difference) + po_numbers.smooth.sum;
    const double products = phases < differences ? phases : differences;
    const double lines =
        2 * by * (n[0] + n[1]) * (k - 1) / 2 * (k - 1) * k * in * po_numbers.smooth.line;
    const double all = products * (n[0] + 2) * (n[1] + 2) / (n[0] * n[1]) +
                       po_numbers.smooth.moves +
                       (lines + po_numbers.smooth.nodes / (double)c->out) / area;
    const double direct = k * k * in, rows = direct / 2 + po_numbers.smooth.rows;
    return (direct < rows ? direct : rows) > po_numbers.smooth.gain * all;
}

/* Whether a convolution like c over a part with so many channels, up_f(z), takes less so. */
static bool applies(const po_graph *g, const po_conv *c, po_value_id part, int64_t channels,
                    po_value_id *z, int64_t *f) {
    return po_conv_keeps_size(c) && interpolated(g, part, z, f) && c->before[0] <= *f &&
           pays(g, c, *z, *f, channels);
}

static bool pays_apart(const po_graph *g, const po_conv *c, po_value_id part) {
    po_value_id z;
    int64_t f;
    return applies(g, c, part, po_dim_of(g, part, 1), &z, &f);
}

static bool read_smoothed(const po_graph *g, po_node_id id, smoothed *s) {
    if (!po_conv_read(g, id, &s->c) || !applies(g, &s->c, s->c.x, s->c.in, &s->z, &s->f))
        return false;
    s->p = s->c.before[0];
    s->up = g->values[s->c.x].producer;
    return true;
}

/* --- what is right inside --- */

static po_dim with_two(po_dim d) {
    return d.value >= 0 ? PO_DIM(d.value + 2) : PO_DIM_UNKNOWN;
}

/* z with a copy of its edge on each side. */
static po_value_id with_edges(po_graph *g, const smoothed *s) {
    static const int64_t pads[8] = {0, 0, 1, 1, 0, 0, 1, 1};
    const po_dim *d = g->values[s->z].type.dims;
    po_type type =
        po_type_tensor(g->arena, s->c.dtype, 4,
                       (po_dim[]){d[0], PO_DIM(s->c.in), with_two(d[ROWS]), with_two(d[COLUMNS])});
    po_value_id in[2] = {s->z, po_add_i64s(g, NULL, 8, pads)};
    po_value_id y = po_add_op(g, s->c.node, PO_OP_Pad, 2, in, &type);
    po_node_set_string(g, g->values[y].producer, "mode", "edge");
    return y;
}

/* x made larger as the interpolation does it. */
static po_value_id enlarged(po_graph *g, const smoothed *s, po_value_id x) {
    const po_node like = g->nodes[s->up];
    return po_add_upsample(g, s->c.node, x, s->f, &like);
}

static po_value_id repeated(po_graph *g, const smoothed *s, po_value_id x) {
    po_value_id y = enlarged(g, s, x);
    po_node_id id = g->values[y].producer;
    po_node_set_string(g, id, "mode", "nearest");
    po_node_set_string(g, id, "coordinate_transformation_mode", "asymmetric");
    po_node_set_string(g, id, "nearest_mode", "floor");
    return y;
}

/* Weights of the neighbours along one axis, as whole numbers over one denominator. */
static int64_t neighbours(int64_t f, double *weight, double *over) {
    const int64_t taps = f % 2 ? f : f + 1;
    for (int64_t i = 0; i < taps; i++)
        weight[i] = f % 2 || i == 0 || i == f ? 1 : 2;
    *over = (double)(f % 2 ? f : 2 * f);
    return taps;
}

/* Smooths along the axes that are asked for, each channel by itself; as far from the ends as that
 * reaches, it leaves out. */
static po_value_id smooth(po_graph *g, po_arena *arena, const smoothed *s, po_value_id x,
                          const bool along[2], po_value_id bias) {
    double weight[MOST_FACTOR + 1], of[(MOST_FACTOR + 1) * (MOST_FACTOR + 1)], over;
    const int64_t taps = neighbours(s->f, weight, &over);
    po_taps window = {of, 1};
    po_conv like = po_conv_pointwise(s->c.dtype, s->c.out, s->c.out);
    for (int axis = 0; axis < 2; axis++) {
        like.kernel[axis] = along[axis] ? taps : 1;
        window.over *= along[axis] ? over : 1;
    }
    for (int64_t i = 0; i < like.kernel[0] * like.kernel[1]; i++)
        of[i] = (along[0] ? weight[i / like.kernel[1]] : 1) *
                (along[1] ? weight[i % like.kernel[1]] : 1);
    return po_conv_each(g, arena, s->c.node, x, &like, s->c.out, &window, bias);
}

/* All but the lines at the edges. */
static po_value_id right_inside(po_graph *g, po_arena *arena, const smoothed *s) {
    static const bool both[2] = {true, true}, rows[2] = {true, false}, columns[2] = {false, true};
    po_value_id y = repeated(g, s, with_edges(g, s));
    y = po_conv_add(g, s->c.node, y, &s->c, s->c.w, PO_NONE);
    const int64_t cut = s->f + s->p - s->f / 2;
    po_type unknown = po_type_unranked(s->c.dtype);
    y = po_add_crop(g, s->c.node, y, cut, -cut, &unknown);
    if (s->f == 2) /* nine taps at once take less than three and three */
        return smooth(g, arena, s, y, both, s->c.b);
    y = smooth(g, arena, s, y, rows, PO_NONE);
    return y == PO_NONE ? PO_NONE : smooth(g, arena, s, y, columns, s->c.b);
}

/* --- the lines at the edges --- */

static po_value_id take(po_graph *g, const smoothed *s, po_value_id x, int64_t axis, int64_t begin,
                        int64_t end) {
    po_type type = po_type_unranked(s->c.dtype);
    return po_add_slice(g, s->c.node, x, 1, &axis, &begin, &end, NULL, &type);
}

/* The first or the last p lines along an axis, as they were made. */
static po_value_id line(po_graph *g, const smoothed *s, int64_t axis, bool first) {
    const int64_t rows = (2 * s->p + s->f - 1) / s->f + 1, lines = 2 * s->p;
    po_conv like = s->c;
    po_value_id x =
        first ? take(g, s, s->z, axis, 0, rows) : take(g, s, s->z, axis, -rows, INT64_MAX);
    x = enlarged(g, s, x);
    x = first ? take(g, s, x, axis, 0, lines) : take(g, s, x, axis, -lines, INT64_MAX);
    (first ? like.after : like.before)[axis - ROWS] = 0;
    return po_conv_add(g, s->c.node, x, &like, s->c.w, s->c.b);
}

static po_value_id join(po_graph *g, const smoothed *s, int64_t axis, po_value_id first,
                        po_value_id middle, po_value_id last) {
    po_type type = po_type_unranked(s->c.dtype);
    return po_add_concat(g, s->c.node, 3, (po_value_id[]){first, middle, last}, axis, &type);
}

bool po_split_smooth(po_rewriting *r, po_graph *graph, po_node_id id) {
    return po_split_parts(graph, r->scratch, id, pays_apart);
}

bool po_smooth_behind(po_rewriting *r, po_graph *g, po_node_id id) {
    smoothed s;
    if (!read_smoothed(g, id, &s))
        return false;
    po_value_id y = right_inside(g, r->scratch, &s);
    if (y == PO_NONE)
        return false;
    po_value_id left = take(g, &s, line(g, &s, COLUMNS, true), ROWS, s.p, -s.p);
    po_value_id right = take(g, &s, line(g, &s, COLUMNS, false), ROWS, s.p, -s.p);
    y = join(g, &s, COLUMNS, left, y, right);
    /* One after the other: the order of arguments is the compiler's. */
    po_value_id first = line(g, &s, ROWS, true), last = line(g, &s, ROWS, false);
    y = join(g, &s, ROWS, first, y, last);
    g->values[y].type = g->values[s.c.y].type;
    po_substitute(g, s.c.y, y);
    return true;
}
