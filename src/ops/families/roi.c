/* RoiAlign, MaxRoiPool, NonMaxSuppression. */
#include "ops/rule.h"

#include <math.h>
#include <stdlib.h>

/* --- RoiAlign --- */

static po_status check_rois(po_infer *infer, uint32_t columns) {
    const po_type *x = po_rule_ranked(infer, 0), *rois = po_rule_ranked(infer, 1);
    po_dim both;
    if (x && x->rank != 4)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 4 (found %u)", x->rank);
    if (rois && rois->rank != 2)
        return po_rule_bad(infer->ctx, infer->node, "rois must have rank 2 (found %u)", rois->rank);
    if (rois)
        PO_TRY(po_rule_same_dim(infer, rois->dims[1], PO_DIM(columns), "columns of rois", &both));
    return PO_OK;
}

static po_status pooled(po_infer *infer, int64_t height, int64_t width) {
    const po_type *x = po_rule_ranked(infer, 0), *rois = po_rule_ranked(infer, 1);
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
        return po_rule_bad(infer->ctx, infer->node,
                           "the output's size is out of range (%lld, %lld)", (long long)height,
                           (long long)width);
    po_dim *dims = po_rule_out(infer, 0, po_infer_dtype(infer, 0), 4);
    if (rois)
        dims[0] = rois->dims[0];
    if (x)
        dims[1] = x->dims[1];
    dims[2] = PO_DIM(height);
    dims[3] = PO_DIM(width);
    return PO_OK;
}

po_status po_infer_roi_align(po_infer *infer) {
    const po_type *rois = po_rule_ranked(infer, 1), *batch = po_rule_ranked(infer, 2);
    po_dim both;
    PO_TRY(check_rois(infer, 4));
    PO_TRY(pooled(infer, po_op_int(infer->graph, infer->node, "output_height"),
                  po_op_int(infer->graph, infer->node, "output_width")));
    if (batch && batch->rank != 1)
        return po_rule_bad(infer->ctx, infer->node, "batch_indices must have rank 1 (found %u)",
                           batch->rank);
    if (rois && batch)
        PO_TRY(po_rule_same_dim(infer, rois->dims[0], batch->dims[0], "numbers of rois", &both));
    return PO_OK;
}

/* Four neighbours of a place and their weights; false outside of the plane. */
typedef struct corners {
    int64_t at[4];
    double weight[4];
} corners;

static bool find_corners(double y, double x, int64_t height, int64_t width, corners *c) {
    if (!(y >= -1.0 && y <= (double)height && x >= -1.0 && x <= (double)width))
        return false;
    y = y > 0 ? y : 0;
    x = x > 0 ? x : 0;
    int64_t low_y = (int64_t)y, low_x = (int64_t)x, high_y = low_y + 1, high_x = low_x + 1;
    if (low_y >= height - 1) {
        high_y = low_y = height - 1;
        y = (double)low_y;
    }
    if (low_x >= width - 1) {
        high_x = low_x = width - 1;
        x = (double)low_x;
    }
    double ly = y - (double)low_y, lx = x - (double)low_x;
    *c = (corners){.at = {low_y * width + low_x, low_y * width + high_x, high_y * width + low_x,
                          high_y * width + high_x},
                   .weight = {(1 - ly) * (1 - lx), (1 - ly) * lx, ly * (1 - lx), ly * lx}};
    return true;
}

typedef struct bins {
    double start_y, start_x, bin_y, bin_x;
    int64_t grid_y, grid_x;
    bool max;
} bins;

/* One bin of one plane. */
static double pool_bin(const bins *b, const double *plane, int64_t height, int64_t width,
                       int64_t py, int64_t px) {
    double sum = 0, top = 0;
    bool any = false;
    for (int64_t iy = 0; iy < b->grid_y; iy++)
        for (int64_t ix = 0; ix < b->grid_x; ix++) {
            double y = b->start_y + (double)py * b->bin_y +
                       ((double)iy + 0.5) * b->bin_y / (double)b->grid_y;
            double x = b->start_x + (double)px * b->bin_x +
                       ((double)ix + 0.5) * b->bin_x / (double)b->grid_x;
            corners c;
            bool inside = find_corners(y, x, height, width, &c);
            double best = 0;
            for (int k = 0; k < 4 && inside; k++) {
                double v = c.weight[k] * plane[c.at[k]];
                sum += v;
                best = k == 0 || v > best ? v : best;
            }
            top = !any || best > top ? best : top;
            any = true;
        }
    if (b->max)
        return top;
    double n = (double)(b->grid_y * b->grid_x);
    return sum / (n > 1 ? n : 1);
}

static po_status find_bins(const po_ref *ref, const double *roi, const po_array *out, bins *b) {
    const po_graph *g = ref->graph;
    double scale = (double)po_op_float(g, ref->node, "spatial_scale");
    int64_t ratio = po_op_int(g, ref->node, "sampling_ratio");
    bool half = ref->opset >= 16 &&
                po_rule_mode(g, ref->node, "coordinate_transformation_mode", "half_pixel");
    double shift = half ? 0.5 : 0.0;
    b->start_x = roi[0] * scale - shift;
    b->start_y = roi[1] * scale - shift;
    double width = roi[2] * scale - shift - b->start_x;
    double height = roi[3] * scale - shift - b->start_y;
    if (!half) {
        width = width > 1 ? width : 1;
        height = height > 1 ? height : 1;
    }
    b->bin_y = height / (double)out->dims[2];
    b->bin_x = width / (double)out->dims[3];
    b->max = po_rule_mode(g, ref->node, "mode", "max");
    if (!(fabs(b->bin_y) < 1e4 && fabs(b->bin_x) < 1e4) || ratio > 10000)
        return PO_UNSUPPORTED;
    b->grid_y = ratio > 0 ? ratio : (int64_t)ceil(b->bin_y);
    b->grid_x = ratio > 0 ? ratio : (int64_t)ceil(b->bin_x);
    return PO_OK;
}

po_status po_ref_roi_align(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *rois = ref->in[1], *batch = ref->in[2], *out = ref->out[0];
    if (!po_rule_floats(ref, 0, 1) || !batch->i || (out->count && x->count == 0))
        return PO_UNSUPPORTED;
    int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3];
    double *to = out->f;
    for (int64_t n = 0; n < out->dims[0] && out->count; n++) {
        bins b;
        if (batch->i[n] < 0 || batch->i[n] >= x->dims[0])
            return po_rule_bad(ref->ctx, ref->node, "batch index %lld is out of range",
                               (long long)batch->i[n]);
        PO_TRY(find_bins(ref, rois->f + n * 4, out, &b));
        for (int64_t c = 0; c < channels; c++) {
            const double *plane = x->f + (batch->i[n] * channels + c) * height * width;
            for (int64_t py = 0; py < out->dims[2]; py++)
                for (int64_t px = 0; px < out->dims[3]; px++)
                    *to++ = pool_bin(&b, plane, height, width, py, px);
        }
    }
    return PO_OK;
}

/* --- MaxRoiPool --- */

po_status po_infer_max_roi_pool(po_infer *infer) {
    uint32_t n;
    const int64_t *shape = po_node_ints(infer->node, "pooled_shape", &n);
    PO_TRY(check_rois(infer, 5));
    if (!shape || n != 2)
        return po_rule_bad(infer->ctx, infer->node, "pooled_shape must have 2 items");
    return pooled(infer, shape[0], shape[1]);
}

/* First and last pixel of bin k on an axis, kept inside. */
static void bin_range(double start, double size, int64_t k, int64_t dim, int64_t *low,
                      int64_t *high) {
    double a = floor((double)k * size) + start, b = ceil((double)(k + 1) * size) + start;
    double n = (double)dim;
    *low = (int64_t)(a < 0 ? 0 : a > n ? n : a);
    *high = (int64_t)(b < 0 ? 0 : b > n ? n : b);
}

po_status po_ref_max_roi_pool(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0], *rois = ref->in[1], *out = ref->out[0];
    if (!po_rule_floats(ref, 0, 1))
        return PO_UNSUPPORTED;
    double scale = (double)po_op_float(ref->graph, ref->node, "spatial_scale");
    int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3];
    double *to = out->f;
    for (int64_t n = 0; n < out->dims[0] && out->count; n++) {
        const double *roi = rois->f + n * 5;
        if (!(roi[0] >= 0 && roi[0] < (double)x->dims[0]))
            return po_rule_bad(ref->ctx, ref->node, "batch index %g is out of range", roi[0]);
        double x0 = round(roi[1] * scale), y0 = round(roi[2] * scale);
        double wide = round(roi[3] * scale) - x0 + 1, high = round(roi[4] * scale) - y0 + 1;
        if (!(fabs(x0) < 1e9 && fabs(y0) < 1e9 && fabs(wide) < 1e9 && fabs(high) < 1e9))
            return PO_UNSUPPORTED;
        wide = (wide > 1 ? wide : 1) / (double)out->dims[3];
        high = (high > 1 ? high : 1) / (double)out->dims[2];
        for (int64_t c = 0; c < channels; c++) {
            const double *plane = x->f + ((int64_t)roi[0] * channels + c) * height * width;
            for (int64_t py = 0; py < out->dims[2]; py++)
                for (int64_t px = 0; px < out->dims[3]; px++) {
                    int64_t ya, yb, xa, xb;
                    double top = 0;
                    bin_range(y0, high, py, height, &ya, &yb);
                    bin_range(x0, wide, px, width, &xa, &xb);
                    for (int64_t y = ya; y < yb; y++)
                        for (int64_t i = xa; i < xb; i++) {
                            double v = plane[y * width + i];
                            top = (y == ya && i == xa) || v > top ? v : top;
                        }
                    *to++ = top;
                }
        }
    }
    return PO_OK;
}

/* --- NonMaxSuppression --- */

po_status po_infer_non_max_suppression(po_infer *infer) {
    const po_type *boxes = po_rule_ranked(infer, 0), *scores = po_rule_ranked(infer, 1);
    po_dim *dims = po_rule_out(infer, 0, PO_I64, 2), both;
    dims[1] = PO_DIM(3);
    if ((boxes && boxes->rank != 3) || (scores && scores->rank != 3))
        return po_rule_bad(infer->ctx, infer->node, "boxes and scores must have rank 3");
    if (boxes)
        PO_TRY(po_rule_same_dim(infer, boxes->dims[2], PO_DIM(4), "numbers of a box", &both));
    if (boxes && scores) {
        PO_TRY(po_rule_same_dim(infer, boxes->dims[0], scores->dims[0], "batch sizes", &both));
        PO_TRY(po_rule_same_dim(infer, boxes->dims[1], scores->dims[2], "numbers of boxes", &both));
    }
    return PO_OK;
}

typedef struct candidate {
    double score;
    int64_t box;
} candidate;

static int best_first(const void *a, const void *b) {
    const candidate *p = a, *q = b;
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    return p->box < q->box ? -1 : p->box > q->box;
}

/* Low and high corner of a box on an axis (0: y or x as stored first). */
static void span(const double *box, bool center, int axis, double *low, double *high) {
    double a = center ? box[axis] - box[axis + 2] / 2 : box[axis];
    double b = center ? box[axis] + box[axis + 2] / 2 : box[axis + 2];
    *low = a < b ? a : b;
    *high = a < b ? b : a;
    if (center) { /* negative sizes stay negative */
        *low = a;
        *high = b;
    }
}

static bool overlaps(const double *p, const double *q, bool center, double threshold) {
    double both = 1, area_p = 1, area_q = 1;
    for (int axis = 0; axis < 2; axis++) {
        double pl, ph, ql, qh;
        span(p, center, axis, &pl, &ph);
        span(q, center, axis, &ql, &qh);
        double low = pl > ql ? pl : ql, high = ph < qh ? ph : qh;
        if (high <= low)
            return false;
        both *= high - low;
        area_p *= ph - pl;
        area_q *= qh - ql;
    }
    double all = area_p + area_q - both;
    return both > 0 && area_p > 0 && area_q > 0 && all > 0 && both / all > threshold;
}

static double number_or(const po_array *a, double otherwise) {
    return a && a->count ? po_rule_number(a, 0) : otherwise;
}

po_status po_ref_non_max_suppression(po_ref *ref) {
    const po_array *boxes = po_ref_in(ref, 0), *scores = po_ref_in(ref, 1);
    po_type *types = PO_NEW_N(ref->arena, po_type, ref->n_out);
    po_infer infer;
    PO_TRY(po_rule_infer_of(ref, types, &infer));
    PO_TRY(po_infer_non_max_suppression(&infer));
    if (!boxes || !scores || !po_rule_floats(ref, 0, 1) || !po_rule_floats(ref, 3, 4) ||
        ref->n_out != 1)
        return PO_UNSUPPORTED;
    const po_array *limit = po_ref_in(ref, 2), *threshold = po_ref_in(ref, 4);
    bool center = po_op_int(ref->graph, ref->node, "center_point_box") != 0;
    double iou = number_or(po_ref_in(ref, 3), 0);
    int64_t most = limit && limit->i && limit->count ? limit->i[0] : 0;
    int64_t n = boxes->dims[1], classes = scores->dims[1], found = 0, capacity = 0;
    most = most < 0 ? 0 : most > n ? n : most;
    if (!po_mul_i64(boxes->dims[0] * classes, most, &capacity) || capacity > PO_REF_MAX_COUNT / 3)
        return PO_UNSUPPORTED;
    int64_t *chosen = PO_NEW_N(ref->arena, int64_t, 3 * capacity);
    candidate *list = PO_NEW_N(ref->arena, candidate, n);
    for (int64_t row = 0; row < boxes->dims[0] * classes && most; row++) {
        const double *box = boxes->f + row / classes * n * 4;
        int64_t count = 0, first = found;
        for (int64_t i = 0; i < n; i++) {
            double score = scores->f[row * n + i];
            if (score == score && (!threshold || !threshold->count || score > threshold->f[0]))
                list[count++] = (candidate){score, i};
        }
        qsort(list, (size_t)count, sizeof *list, best_first);
        for (int64_t i = 0; i < count && found - first < most; i++) {
            bool keep = true;
            for (int64_t k = first; k < found && keep; k++)
                keep = !overlaps(box + list[i].box * 4, box + chosen[3 * k + 2] * 4, center, iou);
            if (!keep)
                continue;
            chosen[3 * found] = row / classes;
            chosen[3 * found + 1] = row % classes;
            chosen[3 * found + 2] = list[i].box;
            found++;
        }
    }
    PO_TRY(po_array_create(ref->ctx, ref->arena, PO_I64, 2, (int64_t[]){found, 3}, &ref->out[0]));
    memcpy(ref->out[0]->i, chosen, (size_t)found * 3 * sizeof *chosen);
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_roi_align[] = {
    {.name = "coordinate_transformation_mode",
     .kind = PO_ATTR_STRING,
     .since = 16,
     .has_default = true,
     .s = "half_pixel"},
    {.name = "mode", .kind = PO_ATTR_STRING, .since = 10, .has_default = true, .s = "avg"},
    {.name = "output_height", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 1},
    {.name = "output_width", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 1},
    {.name = "sampling_ratio", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {.name = "spatial_scale", .kind = PO_ATTR_FLOAT, .since = 10, .has_default = true, .f = 1.0f},
    {0},
};

const po_attr_def po_attrs_max_roi_pool[] = {
    {.name = "pooled_shape", .kind = PO_ATTR_INTS, .since = 1, .required = true},
    {.name = "spatial_scale", .kind = PO_ATTR_FLOAT, .since = 1, .has_default = true, .f = 1.0f},
    {0},
};

const po_attr_def po_attrs_non_max_suppression[] = {
    {.name = "center_point_box", .kind = PO_ATTR_INT, .since = 10, .has_default = true, .i = 0},
    {0},
};
