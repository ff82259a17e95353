/* Indexed sums of convolutions and average pools, over any number of spatial axes. */
#include "base/num.h"
#include "ops/sem/rules_sem.h"

enum { MOST_SPATIAL = 8 };

static const char *kernel_name(uint32_t i, uint32_t n) {
    static const char *const names[] = {"s", "r", "q"};
    return n - 1 - i < 3 ? names[n - 1 - i] : NULL;
}

/* out[n, k, ...] += bias[k] */
static bool add_bias(po_sum *sum, uint32_t operand) {
    const po_operand *op = &sum->operands[operand];
    po_term *t = po_sem_pointwise(sum, 0);
    po_index *at = po_term_factor(sum, t, operand);
    if (op->rank != 1 || op->dims[0] != sum->dims[1])
        return false;
    po_index_add(t, at, 0, 1, 1);
    return true;
}

po_status po_sem_conv(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0], *weight = &sem->in[1];
    int64_t groups = po_node_int(sem->node, "group", 1);
    po_sum *sum = po_sem_begin(sem, 0);
    uint32_t n = in->rank - 2;
    po_sem_window w[MOST_SPATIAL];
    if (in->rank < 3 || n > MOST_SPATIAL || weight->rank != in->rank || sum->rank != in->rank ||
        groups < 1 || !po_sem_is_float(sem, 0) ||
        !po_sem_windows(sem, n, weight->dims + 2, in->dims + 2, sum->dims + 2, w))
        return PO_UNSUPPORTED;
    int64_t channels = weight->dims[1], features = weight->dims[0] / groups, all_channels;
    if (!po_mul_i64(channels, groups, &all_channels) || all_channels != in->dims[1] ||
        weight->dims[0] % groups || sum->dims[1] != weight->dims[0] || sum->dims[0] != in->dims[0])
        return PO_UNSUPPORTED;
    uint32_t x = po_sem_operand(sem, sum, 0), y = po_sem_operand(sem, sum, 1);
    po_term *t = po_sum_term(sum, 4 + 2 * n);
    po_index *a = po_term_factor(sum, t, x), *b = po_term_factor(sum, t, y);
    uint32_t batch = po_term_var(t, "n", in->dims[0]), g = po_term_var(t, "g", groups);
    uint32_t k = po_term_var(t, "k", features), spatial[MOST_SPATIAL];
    for (uint32_t i = 0; i < n; i++)
        spatial[i] = po_term_var(t, po_sem_axis_name(i, n), sum->dims[i + 2]);
    uint32_t c = po_term_var(t, "c", channels);
    po_index_add(t, &t->out, 0, 1, batch);
    po_index_add(t, &t->out, 1, features, g);
    po_index_add(t, &t->out, 1, 1, k);
    po_index_add(t, a, 0, 1, batch);
    po_index_add(t, a, 1, channels, g);
    po_index_add(t, a, 1, 1, c);
    po_index_add(t, b, 0, features, g);
    po_index_add(t, b, 0, 1, k);
    po_index_add(t, b, 1, 1, c);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = po_term_var(t, kernel_name(i, n), w[i].kernel);
        po_index_add(t, &t->out, i + 2, 1, spatial[i]);
        po_index_add(t, a, i + 2, w[i].stride, spatial[i]);
        po_index_add(t, a, i + 2, w[i].dilation, r);
        a->base[i + 2] = -w[i].before;
        po_index_add(t, b, i + 2, 1, r);
    }
    if (po_sem_has(sem, 2) && !add_bias(sum, po_sem_operand(sem, sum, 2)))
        return PO_UNSUPPORTED;
    return PO_OK;
}

/* Padding before each axis; false where the attributes contradict the output. */
static bool transpose_pads(const po_sem *sem, uint32_t n, const int64_t *kernel, const int64_t *in,
                           const int64_t *out, po_sem_window *w) {
    uint32_t n_strides, n_dilations, n_pads, n_extra, n_shape, n_kernel;
    const int64_t *strides = po_node_ints(sem->node, "strides", &n_strides);
    const int64_t *dilations = po_node_ints(sem->node, "dilations", &n_dilations);
    const int64_t *pads = po_node_ints(sem->node, "pads", &n_pads);
    const int64_t *extra = po_node_ints(sem->node, "output_padding", &n_extra);
    const int64_t *shape = po_node_ints(sem->node, "output_shape", &n_shape);
    const int64_t *given = po_node_ints(sem->node, "kernel_shape", &n_kernel);
    if ((strides && n_strides != n) || (dilations && n_dilations != n) ||
        (pads && n_pads != 2 * n) || (extra && n_extra != n) || (given && n_kernel != n))
        return false;
    bool notset = po_node_string_is(sem->node, "auto_pad", "NOTSET", "NOTSET");
    bool upper = po_node_string_is(sem->node, "auto_pad", "SAME_UPPER", "NOTSET");
    bool lower = po_node_string_is(sem->node, "auto_pad", "SAME_LOWER", "NOTSET");
    if (!notset && !upper && !lower && !po_node_string_is(sem->node, "auto_pad", "VALID", "NOTSET"))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t full, reach;
        w[i] = (po_sem_window){.kernel = kernel[i],
                               .stride = strides ? strides[i] : 1,
                               .dilation = dilations ? dilations[i] : 1,
                               .before = pads && notset ? pads[i] : 0,
                               .after = pads && notset ? pads[n + i] : 0};
        if (w[i].stride < 1 || w[i].dilation < 1 || w[i].kernel < 1 ||
            (given && given[i] != kernel[i]) || w[i].before < 0 || w[i].after < 0 ||
            !po_mul_i64(in[i] - 1, w[i].stride, &full) ||
            !po_mul_i64(w[i].kernel - 1, w[i].dilation, &reach) ||
            !po_add_i64(full, reach, &full) || !po_add_i64(full, 1, &full) ||
            (extra && (extra[i] < 0 || !po_add_i64(full, extra[i], &full))))
            return false;
        if (shape || upper || lower) {
            int64_t want = shape ? shape[n_shape - n + i] : in[i] * w[i].stride;
            if ((shape && n_shape < n) || want != out[i])
                return false;
            /* An output beyond the last scatter is filled up with zeros behind. */
            int64_t total = full > out[i] ? full - out[i] : 0;
            w[i].before = upper ? total / 2 : total - total / 2;
        } else if (out[i] != full - w[i].before - w[i].after) {
            return false;
        }
    }
    return true;
}

po_status po_sem_conv_transpose(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0], *weight = &sem->in[1];
    int64_t groups = po_node_int(sem->node, "group", 1);
    po_sum *sum = po_sem_begin(sem, 0);
    uint32_t n = in->rank - 2;
    po_sem_window w[MOST_SPATIAL];
    if (in->rank < 3 || n > MOST_SPATIAL || weight->rank != in->rank || sum->rank != in->rank ||
        groups < 1 || !po_sem_is_float(sem, 0) ||
        !transpose_pads(sem, n, weight->dims + 2, in->dims + 2, sum->dims + 2, w))
        return PO_UNSUPPORTED;
    int64_t channels = in->dims[1] / groups, features = weight->dims[1], all_features;
    if (in->dims[1] % groups || weight->dims[0] != in->dims[1] ||
        !po_mul_i64(features, groups, &all_features) || all_features != sum->dims[1] ||
        sum->dims[0] != in->dims[0])
        return PO_UNSUPPORTED;
    uint32_t x = po_sem_operand(sem, sum, 0), y = po_sem_operand(sem, sum, 1);
    po_term *t = po_sum_term(sum, 4 + 2 * n);
    po_index *a = po_term_factor(sum, t, x), *b = po_term_factor(sum, t, y);
    uint32_t batch = po_term_var(t, "n", in->dims[0]), g = po_term_var(t, "g", groups);
    uint32_t k = po_term_var(t, "k", features), c = po_term_var(t, "c", channels);
    po_index_add(t, &t->out, 0, 1, batch);
    po_index_add(t, &t->out, 1, features, g);
    po_index_add(t, &t->out, 1, 1, k);
    po_index_add(t, a, 0, 1, batch);
    po_index_add(t, a, 1, channels, g);
    po_index_add(t, a, 1, 1, c);
    po_index_add(t, b, 0, channels, g);
    po_index_add(t, b, 0, 1, c);
    po_index_add(t, b, 1, 1, k);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = po_term_var(t, po_sem_axis_name(i, n), in->dims[i + 2]);
        uint32_t r = po_term_var(t, kernel_name(i, n), w[i].kernel);
        po_index_add(t, a, i + 2, 1, v);
        po_index_add(t, b, i + 2, 1, r);
        po_index_add(t, &t->out, i + 2, w[i].stride, v);
        po_index_add(t, &t->out, i + 2, w[i].dilation, r);
        t->out.base[i + 2] = -w[i].before;
    }
    if (po_sem_has(sem, 2) && !add_bias(sum, po_sem_operand(sem, sum, 2)))
        return PO_UNSUPPORTED;
    return PO_OK;
}

/* Divides the term by how many elements each window of an axis has: by a number where that is the
 * same everywhere, else by a table. Windows count padding where `padding` is set, but never what
 * hangs over the padding's end. */
static bool divide_axis(po_sum *sum, uint32_t axis, uint32_t var, const po_sem_window *w,
                        int64_t in, bool padding) {
    int64_t n = sum->dims[axis], first = 0;
    bool same = true;
    if (n > PO_SUM_MAX_TABLE || n * w->kernel > PO_SUM_MAX_TABLE)
        return false;
    po_rational *table = PO_NEW_N(sum->arena, po_rational, n);
    for (int64_t o = 0; o < n; o++) {
        int64_t count = 0;
        for (int64_t r = 0; r < w->kernel; r++) {
            int64_t at = o * w->stride + r * w->dilation - w->before;
            count += padding ? at < in + w->after : at >= 0 && at < in;
        }
        if (count == 0 || !po_rational_make(1, count, &table[o]))
            return false;
        first = o ? first : count;
        same &= count == first;
    }
    if (n == 0)
        return true;
    uint32_t id = same ? 0 : po_sum_table(sum, 1, &n, table);
    po_term *t = &sum->terms[sum->n_terms - 1];
    if (same)
        return po_rational_mul(t->scale, table[0], &t->scale);
    po_index *at = po_term_factor(sum, t, id);
    if (at)
        po_index_add(t, at, 0, 1, var);
    return at != NULL;
}

po_status po_sem_average_pool(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    po_sum *sum = po_sem_begin(sem, 0);
    uint32_t n = in->rank - 2;
    po_sem_window w[MOST_SPATIAL];
    bool padding = po_node_int(sem->node, "count_include_pad", 0) != 0;
    if (in->rank < 3 || n > MOST_SPATIAL || sum->rank != in->rank || !po_sem_is_float(sem, 0) ||
        sum->dims[0] != in->dims[0] || sum->dims[1] != in->dims[1] ||
        !po_sem_windows(sem, n, NULL, in->dims + 2, sum->dims + 2, w))
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, n);
    po_index *a = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    po_index_add(t, a, 0, 1, 0);
    po_index_add(t, a, 1, 1, 1);
    for (uint32_t i = 0; i < n; i++) {
        if (w[i].before < 0 || w[i].after < 0) /* what is cut off would be counted as padding */
            return PO_UNSUPPORTED;
        uint32_t r = po_term_var(t, kernel_name(i, n), w[i].kernel);
        po_index_add(t, a, i + 2, w[i].stride, i + 2);
        po_index_add(t, a, i + 2, w[i].dilation, r);
        a->base[i + 2] = -w[i].before;
        if (!divide_axis(sum, i + 2, i + 2, &w[i], in->dims[i + 2], padding))
            return PO_UNSUPPORTED;
    }
    return PO_OK;
}

po_status po_sem_global_average_pool(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    int64_t size = 1;
    po_sum *sum = po_sem_begin(sem, 0);
    if (in->rank < 2 || sum->rank != in->rank || !po_sem_is_float(sem, 0) ||
        sum->dims[0] != in->dims[0] || sum->dims[1] != in->dims[1])
        return PO_UNSUPPORTED;
    po_term *t = po_sem_pointwise(sum, in->rank);
    po_index *a = po_term_factor(sum, t, po_sem_operand(sem, sum, 0));
    for (uint32_t i = 0; i < in->rank; i++) {
        if (i >= 2 && sum->dims[i] != 1)
            return PO_UNSUPPORTED;
        size *= i >= 2 ? in->dims[i] : 1;
        po_index_add(t, a, i, 1, i < 2 ? i : po_term_var(t, NULL, in->dims[i]));
    }
    return po_rational_make(1, size, &t->scale) ? PO_OK : PO_UNSUPPORTED;
}
