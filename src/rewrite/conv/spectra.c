/* Short-time Fourier transforms as convolutions.
 *
 * ONNX Runtime 1.31 takes 8 to 14 times as long for STFT of frames of 320 or 400 samples as for the
 * same as a convolution, and 1.3 times as long of 512: the window function and the table of cosines
 * and sines are one weight, a channel for each part of each bin. */
#include "base/num.h"
#include "ops/recipe/recipe.h"
#include "ops/spectrum.h"
#include "rewrite/conv/conv.h"
#include "rewrite/passes.h"

enum { SIGNAL, STEP, WINDOW, LENGTH };
/* Of frames of a power of two the runtime makes fast transforms, which longer ones are better by.
 */
enum { LONGEST_FAST = 512 };

static bool pays(int64_t length) {
    return length <= LONGEST_FAST || (length & (length - 1)) != 0;
}

static bool scalar(const po_graph *graph, const po_node *n, uint32_t input, int64_t *value) {
    const po_tensor *t =
        input < n->n_in && n->in[input] != PO_NONE ? po_graph_constant(graph, n->in[input]) : NULL;
    if (!t || t->count != 1)
        return false;
    *value = po_tensor_int(t, 0);
    return true;
}

/* Made of whole numbers that are so small that the proof takes them as they are (a weight is any
 * number to it): numerators in limbs, the first one first. */
static const po_recipe *table(po_arena *arena, int64_t length, int64_t bins) {
    enum { LIMBS = 3 };
    const int64_t dims[] = {bins * PO_SPECTRUM_PARTS, 1, length}, count = dims[0] * length;
    const int64_t limb = (int64_t)1 << PO_SPECTRUM_LIMB, whole = limb * limb * limb;
    const po_rational *t = po_spectrum_table(arena, length, bins);
    const po_recipe *scale = po_recipe_number(arena, (double)limb), *all = NULL;
    double *digit[LIMBS];
    for (int k = 0; k < LIMBS; k++)
        digit[k] = PO_NEW_N(arena, double, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t n = t[i].num * (whole / t[i].den);
        for (int k = LIMBS; k-- > 1; n = po_floor_div(n, limb))
            digit[k][i] = (double)(n - po_floor_div(n, limb) * limb);
        digit[0][i] = (double)n;
    }
    for (int k = 0; k < LIMBS; k++) {
        const po_recipe *d = po_recipe_literal(arena, 3, dims, digit[k]);
        all = k == 0 ? d : po_recipe_add(arena, po_recipe_mul(arena, all, scale), d);
    }
    for (int k = 0; k < LIMBS; k++)
        all = po_recipe_div(arena, all, scale);
    return all;
}

/* A map of one channel. */
static po_value_id channel_first(po_graph *graph, po_node_id id, po_value_id x, uint32_t rank,
                                 const po_type *type) {
    if (rank == 3)
        return po_add_transpose(graph, id, x, rank, (const int64_t[]){0, 2, 1}, type);
    const po_value_id in[] = {x, po_add_i64s(graph, NULL, 1, (const int64_t[]){1})};
    return po_add_op(graph, id, PO_OP_Unsqueeze, 2, in, type);
}

bool po_stft_as_convolution(po_rewriting *r, po_graph *graph, po_node_id id) {
    po_arena *arena = r->scratch;
    const po_node *n = &graph->nodes[id];
    int64_t step, length, elements;
    if (!r->options->spectra || n->op != PO_OP_STFT || !scalar(graph, n, STEP, &step) || step < 1)
        return false;
    const po_type x = graph->values[n->in[SIGNAL]].type, type = graph->values[n->out[0]].type;
    const po_value_id window = n->n_in > WINDOW ? n->in[WINDOW] : PO_NONE;
    const po_tensor *w = window == PO_NONE ? NULL : po_graph_constant(graph, window);
    const bool real = x.has_rank && (x.rank == 2 || (x.rank == 3 && x.dims[2].value == 1));
    if (!real || x.dtype != PO_F32 || !type.has_rank || (window != PO_NONE && (!w || w->rank != 1)))
        return false;
    if (!scalar(graph, n, LENGTH, &length)) {
        if (!w || (n->n_in > LENGTH && n->in[LENGTH] != PO_NONE))
            return false;
        length = w->count;
    }
    const int64_t bins = po_node_int(n, "onesided", 1) != 0 ? length / 2 + 1 : length;
    if (length < 1 || !pays(length) || (w && w->count != length) ||
        !po_mul_i64(bins * PO_SPECTRUM_PARTS, length, &elements) || elements > PO_SPECTRUM_MOST)
        return false;
    const po_recipe *weight = table(arena, length, bins);
    if (w)
        weight = po_recipe_mul(arena, weight,
                               po_recipe_reshape(arena, po_recipe_doubles(graph, arena, window), 3,
                                                 (const int64_t[]){1, 1, length}));
    const po_value_id kernel = po_add_recipe(graph, NULL, PO_F32, weight);
    if (kernel == PO_NONE)
        return false;
    po_value_id y = n->out[0];
    const po_type any = po_type_unranked(PO_F32);
    const po_value_id map = channel_first(graph, id, n->in[SIGNAL], x.rank, &any);
    po_conv frame = po_conv_of_one_tap(PO_F32, 1, 1, bins * PO_SPECTRUM_PARTS, 1);
    frame.kernel[0] = length;
    frame.stride[0] = step;
    const po_value_id conv = po_conv_add(graph, id, map, &frame, kernel, PO_NONE);
    const po_value_id turned =
        po_add_transpose(graph, id, conv, 3, (const int64_t[]){0, 2, 1}, NULL);
    const po_value_id out = po_add_reshape_told(
        graph, id, turned, 4, (const int64_t[]){0, 0, bins, PO_SPECTRUM_PARTS}, PO_NONE, &type);
    po_substitute(graph, y, out);
    return true;
}
