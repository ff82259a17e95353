/* Pointwise convolutions before maps are made larger, and convolutions of joined maps split so that
 * this can happen.
 *
 * Interpolation, nearest, linear or cubic, takes each channel by itself, with weights that sum to
 * one: a mix of channels, bias and all, may as well come before, at the smaller map. Decoders of
 * segmentation and depth networks (SegFormer, HRNet, DPT, LR-ASPP) do it behind, often over maps of
 * several sizes that they join. */
#include "rewrite/passes.h"
#include "rewrite/upsample/split.h"

enum {
    RANK = 4,
    CHANNEL_AXIS = 1,
    /* Below so many channels, making the result larger costs what the smaller map saves. */
    LEAST_CHANNELS = 32,
    /* An interpolated element costs as much as 30 multiplications do: results that have many times
     * the channels are left. */
    MOST_GROWTH = 4
};

/* What says how large the result is. */
typedef struct resized {
    const po_node *node;
    po_value_id x;
    uint32_t sizes;    /* the input with sizes of all axes, channels among them; 0: none */
    bool interpolated; /* linear or cubic */
} resized;

/* Only the map axes are named. */
static bool axes_of_map(const int64_t *axes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if ((axes[i] < 0 ? axes[i] + RANK : axes[i]) <= CHANNEL_AXIS)
            return false;
    return true;
}

static bool one(double scale) {
    return scale >= 1 && scale <= 1;
}

/* Scales of every axis: batch and channels stay. */
static bool scales_of_map(const po_graph *g, const po_node *n) {
    double scale[RANK];
    return po_resize_scales(g, n, RANK, scale) && one(scale[0]) && one(scale[CHANNEL_AXIS]);
}

/* Smaller maps are not made on purpose; where the sizes are open it is taken to become larger. */
static bool grows(const po_type *x, const po_type *y) {
    int64_t from = 1, to = 1;
    for (uint32_t i = CHANNEL_AXIS + 1; i < RANK; i++) {
        if (x->dims[i].value < 1 || y->dims[i].value < 1)
            return true;
        from *= x->dims[i].value;
        to *= y->dims[i].value;
    }
    return to > from;
}

static bool read_resized(const po_graph *g, po_value_id y, resized *r) {
    const po_node *n = po_graph_producer(g, y);
    if (!n || (n->op != PO_OP_Resize && n->op != PO_OP_Upsample))
        return false;
    const bool late = n->op == PO_OP_Resize && po_op_version(g, n) >= 11;
    *r = (resized){.node = n, .x = n->in[0]};
    const po_type *x = &g->values[r->x].type, *type = &g->values[y].type;
    r->interpolated = po_node_string_is(n, "mode", "linear", "nearest") ||
                      po_node_string_is(n, "mode", "cubic", "nearest");
    if ((!r->interpolated && !po_node_string_is(n, "mode", "nearest", "nearest")) ||
        po_node_string_is(n, "coordinate_transformation_mode", "tf_crop_and_resize",
                          "half_pixel") ||
        !po_node_string_is(n, "keep_aspect_ratio_policy", "stretch", "stretch") || !x->has_rank ||
        x->rank != RANK || !type->has_rank || type->rank != RANK || !grows(x, type))
        return false;
    uint32_t count = 0;
    const int64_t *axes = late ? po_node_ints(n, "axes", &count) : NULL;
    if (axes)
        return axes_of_map(axes, count);
    const uint32_t sizes = 3;
    if (!late || n->n_in <= sizes || n->in[sizes] == PO_NONE)
        return scales_of_map(g, n);
    r->sizes = sizes;
    return x->dims[CHANNEL_AXIS].value >= 1 &&
           x->dims[CHANNEL_AXIS].value == type->dims[CHANNEL_AXIS].value &&
           po_dim_same(x->dims[0], type->dims[0]);
}

/* The sizes with another number of channels. */
static po_value_id sizes_with(po_graph *g, po_node_id place, po_value_id sizes, int64_t channels) {
    const po_tensor *t = po_graph_constant(g, sizes);
    if (t && t->count == RANK) {
        int64_t all[RANK];
        for (uint32_t i = 0; i < RANK; i++)
            all[i] = i == CHANNEL_AXIS ? channels : po_tensor_int(t, i);
        return po_add_i64s(g, NULL, RANK, all);
    }
    static const int64_t axis = 0, none = 0, at = CHANNEL_AXIS, behind = CHANNEL_AXIS + 1,
                         all = RANK;
    po_type part = po_type_unranked(PO_I64);
    po_value_id in[3] = {po_add_slice(g, place, sizes, 1, &axis, &none, &at, NULL, &part),
                         po_add_i64s(g, NULL, 1, &channels),
                         po_add_slice(g, place, sizes, 1, &axis, &behind, &all, NULL, &part)};
    po_type type = po_type_tensor_i64(g->arena, PO_I64, 1, &all);
    return po_add_concat(g, place, 3, in, 0, &type);
}

/* Makes x larger as r did with another map, `y`. */
static po_value_id resize_like(po_graph *g, po_node_id place, po_value_id x, int64_t channels,
                               const resized *r, po_value_id y) {
    enum { MOST = 4 };
    const po_node like = *r->node;
    const po_type *t = &g->values[y].type;
    po_value_id in[MOST];
    const uint32_t n_in = like.n_in < MOST ? like.n_in : MOST;
    memcpy(in, like.in, n_in * sizeof *in);
    po_type type = po_type_tensor(g->arena, t->dtype, RANK,
                                  (po_dim[]){t->dims[0], PO_DIM(channels), t->dims[2], t->dims[3]});
    in[0] = x;
    if (r->sizes)
        in[r->sizes] = sizes_with(g, place, in[r->sizes], channels);
    return po_add_like(g, place, &like, n_in, in, &type);
}

bool po_mix_before_resize(po_rewriting *r, po_graph *graph, po_node_id id) {
    (void)r;
    po_conv c;
    resized up;
    if (!po_conv_read(graph, id, &c) || !po_conv_is_pointwise(&c) || c.in < LEAST_CHANNELS ||
        !read_resized(graph, c.x, &up) || (up.interpolated && c.out > MOST_GROWTH * c.in))
        return false;
    po_value_id y = po_conv_add(graph, id, up.x, &c, c.w, c.b);
    const po_dim *d = graph->values[up.x].type.dims;
    graph->values[y].type =
        po_type_tensor(graph->arena, c.dtype, RANK, (po_dim[]){d[0], PO_DIM(c.out), d[2], d[3]});
    po_substitute(graph, c.y, resize_like(graph, id, y, c.out, &up, c.x));
    return true;
}

static bool resized_apart(const po_graph *g, const po_conv *c, po_value_id part) {
    po_value_id x;
    int64_t factor;
    resized r;
    if (c->kernel[0] > 1)
        return po_upsampled(g, part, &x, &factor);
    return po_dim_of(g, part, CHANNEL_AXIS) >= LEAST_CHANNELS && read_resized(g, part, &r) &&
           (!r.interpolated || c->out <= MOST_GROWTH * po_dim_of(g, part, CHANNEL_AXIS));
}

/* Parts first .. last - 1 as one. */
static po_value_id joined(po_graph *g, po_arena *arena, po_node_id place, const po_node *cat,
                          uint32_t first, uint32_t last) {
    if (last - first == 1)
        return cat->in[first];
    po_value_id *in = po_arena_memdup(arena, &cat->in[first], (last - first) * sizeof *in);
    po_type type = po_type_unranked(g->values[in[0]].type.dtype);
    return po_add_concat(g, place, last - first, in, CHANNEL_AXIS, &type);
}

bool po_split_parts(po_graph *graph, po_arena *arena, po_node_id id, po_apart_fn apart) {
    po_conv c;
    if (!po_conv_read(graph, id, &c) || c.group != 1 ||
        (c.kernel[0] < 2 && !po_conv_is_pointwise(&c)))
        return false;
    const po_node *made = po_made_alone_by(graph, c.x, PO_OP_Concat);
    if (!made || po_node_int(made, "axis", 1) != CHANNEL_AXIS)
        return false;
    const po_node cat = *made;
    po_value_id *parts = PO_NEW_N(arena, po_value_id, cat.n_in);
    int64_t *channels = PO_NEW_N(arena, int64_t, cat.n_in), all = 0;
    bool *own = PO_NEW_N(arena, bool, cat.n_in), some = false;
    for (uint32_t i = 0; i < cat.n_in; i++) {
        const int64_t each = po_dim_of(graph, cat.in[i], CHANNEL_AXIS);
        if (each < 1)
            return false;
        all += each;
        own[i] = apart(graph, &c, cat.in[i]);
        some = some || own[i];
    }
    if (!some || cat.n_in < 2 || all != c.in)
        return false;
    uint32_t n = 0;
    for (uint32_t first = 0, last; first < cat.n_in; first = last, n++) {
        channels[n] = 0;
        for (last = first; last < cat.n_in && (last == first || !(own[first] || own[last])); last++)
            channels[n] += po_dim_of(graph, cat.in[last], CHANNEL_AXIS);
        parts[n] = joined(graph, arena, id, &cat, first, last);
    }
    return po_split_conv(graph, &c, n, parts, channels);
}

bool po_split_concat(po_rewriting *r, po_graph *graph, po_node_id id) {
    return po_split_parts(graph, r->scratch, id, resized_apart);
}
