/* Which tiles, slices and blocks are worth a try for a convolution. */
#include "base/num.h"
#include "ops/sum/bilinear.h"
#include "superopt/schedule/winograd.h"

#include <math.h>

enum { LARGEST_BLOCK = 1 << 20 }; /* floats of a block's tensors (4 MB) */

int64_t po_winograd_outputs(const po_conv_axis *axis, int64_t m) {
    return axis->taps == 1 ? 1 : m;
}

int64_t po_winograd_products(const po_conv_axis *axis, int64_t m) {
    return axis->stride * (po_winograd_outputs(axis, m) - 1) + axis->taps;
}

int64_t po_winograd_tiles(const po_conv_axis *axis, int64_t m) {
    return po_ceil_div(po_ceil_div(axis->length, axis->apart), po_winograd_outputs(axis, m));
}

/* Floats that a block holds: transformed inputs or weights, and products. `shots`: frames of the
 * input. */
static int64_t shared(const po_mu_conv *v, int64_t shots, int64_t outputs, int64_t slice,
                      int64_t block, int64_t panel) {
    const po_conv_axis *y = &v->map[0], *x = &v->map[1];
    int64_t products = po_winograd_products(y, outputs) * po_winograd_products(x, outputs);
    int64_t rows = block ? block : po_winograd_tiles(y, outputs) * y->apart;
    int64_t tiles = rows * po_winograd_tiles(x, outputs) * x->apart;
    int64_t read = block ? shots * (tiles + 1) * (v->inputs + PO_WINOGRAD_PAD)
                         : v->frames.taps * slice * panel;
    return products * (read + v->frames.length * (tiles + 1) * (panel + PO_WINOGRAD_PAD));
}

static double magnifies(const po_conv_axis *axis, int64_t outputs) {
    return po_bilinear_magnifies(PO_POINTS_STEADY, (uint32_t)po_winograd_outputs(axis, outputs),
                                 (uint32_t)axis->taps, (uint32_t)axis->stride);
}

static uint32_t add(const po_mu *mu, const po_isa *isa, po_choice *choices, uint32_t n,
                    const po_mu_conv *v, int64_t outputs, int64_t slice, int64_t block) {
    static const int64_t panels[][2] = {{64, 6}, {48, 8}, {32, 14}, {16, 14}};
    uint32_t i = 0;
    while (i < 3 && po_panel_parts(isa, panels[i]) > 1)
        i++;
    bool odd = v->outputs % PO_MU_VECTOR != 0; /* one panel, its end padded */
    while (odd ? i < 3 && panels[i + 1][0] >= v->outputs : v->outputs % panels[i][0] != 0)
        i++;
    if (n == PO_CHOICES_MAX)
        return n;
    int64_t frames =
        v->frames.axis == PO_NONE ? 1 : mu->tensors[v->n.s->in[v->n.a].tensor].dims[v->frames.axis];
    while (shared(v, frames, outputs, slice, block, odd ? v->outputs : panels[i][0]) >
           LARGEST_BLOCK) {
        if (odd || i == 3)
            return n;
        i++; /* which divides the outputs as the larger one did, or ends it */
        if (v->outputs % panels[i][0] != 0)
            return n;
    }
    choices[n] = (po_choice){.how = &po_schedule_winograd};
    choices[n].n[PO_WINOGRAD_OUTPUTS] = outputs;
    choices[n].n[PO_WINOGRAD_SLICE] = slice;
    choices[n].n[PO_WINOGRAD_BLOCK] = block;
    choices[n].n[PO_WINOGRAD_PANEL] = odd ? v->outputs : panels[i][0];
    choices[n].n[PO_WINOGRAD_ROWS] = panels[i][1];
    choices[n].n[PO_WINOGRAD_MAGNIFIES] =
        (int64_t)ceil(16 * magnifies(&v->map[0], outputs) * magnifies(&v->map[1], outputs));
    return n + 1;
}

void po_winograd_stand_up(po_mu_conv *v) {
    if (v->map[0].axis != PO_NONE)
        return;
    po_conv_axis none = v->map[0];
    v->map[0] = v->map[1];
    v->map[1] = none;
}

/* Blocks of a sequence: as even as can be, what is past the end is worked for nothing. */
static uint32_t list_sequence(const po_mu *naive, const po_isa *isa, po_choice *choices, uint32_t n,
                              po_mu_conv v, int64_t m) {
    static const int64_t blocks[] = {96, 48};
    int64_t tiles = po_winograd_tiles(&v.map[1], m), before = 0;
    po_winograd_stand_up(&v);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        int64_t block = po_ceil_div(tiles, po_ceil_div(tiles, blocks[i]));
        if (block < tiles && block != before)
            n = add(naive, isa, choices, n, &v, m, v.inputs, block);
        before = block;
    }
    return n;
}

/* Whether tiles end where the map does, or what is past its end is written nowhere. */
static bool tiles_fit(const po_mu *mu, const po_mu_conv *v, int64_t m) {
    for (int i = 0; i < 2; i++) {
        const po_conv_axis *axis = &v->map[i];
        if (axis->length % (axis->apart * po_winograd_outputs(axis, m)) != 0 &&
            !po_ends_outside(mu, v->n.out, axis->at))
            return false;
    }
    return true;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    static const int64_t slices[] = {64, 48, 32, 16}, forms[] = {6, 4, 2};
    /* Larger weights are read from memory for each block: 32 tiles take longer to work by far. */
    enum { LARGEST_WEIGHTS = 3 << 20, MANY_TILES = 32, FEW_TILES = 784, SMALL_MAP = 64 };
    po_mu_conv v;
    if (!po_conv_of(naive, step, &v))
        return n;
    const po_conv_axis *y = &v.map[0], *x = &v.map[1];
    bool both = y->taps > 1 && x->taps > 1, strided = y->stride * x->stride > 1;
    int64_t most = (both ? 6 : 8) + (strided ? (both ? 3 : 5) : 0);
    if (y->taps > 7 || x->taps > 7 || y->taps * x->taps < 3 || (both && !po_conv_alike(y, x)))
        return n;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        int64_t m = forms[f], ty = po_winograd_products(y, m), tx = po_winograd_products(x, m);
        int64_t rows = po_winograd_tiles(y, m), columns = po_winograd_tiles(x, m);
        int64_t tiles = rows * columns * y->apart * x->apart;
        /* Products a padded output against those of the plain convolution. */
        double cost =
            (double)(ty * tx * tiles) / (double)(y->taps * x->taps * y->length * x->length);
        if (ty > most || tx > most || cost > 0.85 || (both && m == 6) || !tiles_fit(naive, &v, m) ||
            (m == 2 && y->taps == 3 && x->taps == 3 && !strided && tiles > SMALL_MAP))
            continue;
        uint32_t taken = 0;
        for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++)
            if (v.inputs % slices[i] == 0 && taken < 2 &&
                tiles * v.frames.length * ty * tx <= INT64_C(36) * FEW_TILES) {
                n = add(naive, isa, choices, n, &v, m,
                        slices[i] / (v.frames.taps > 1 && slices[i] == 64 ? 2 : 1), 0);
                taken++;
            }
        if (y->apart > 1 || x->apart > 1)
            continue;
        const bool large = ty * tx * v.frames.taps * v.inputs * v.outputs > LARGEST_WEIGHTS;
        if (y->axis == PO_NONE) {
            if (!large && po_ends_outside(naive, v.n.out, x->at))
                n = list_sequence(naive, isa, choices, n, v, m);
            continue;
        }
        for (int64_t block = 1; block <= 4 && block < rows; block *= 2)
            if (rows % block == 0 && (!large || block * columns >= MANY_TILES))
                n = add(naive, isa, choices, n, &v, m, v.inputs, block);
    }
    return n;
}

static int64_t family(const po_choice *choice) {
    return 2 * choice->n[PO_WINOGRAD_OUTPUTS] + (choice->n[PO_WINOGRAD_BLOCK] > 0);
}

static void tell(const po_choice *choice, po_text *text) {
    po_text_printf(text, "F(%lld) Winograd, ", (long long)choice->n[PO_WINOGRAD_OUTPUTS]);
    if (choice->n[PO_WINOGRAD_BLOCK])
        po_text_printf(text, "%lld tile rows at a time", (long long)choice->n[PO_WINOGRAD_BLOCK]);
    else
        po_text_printf(text, "slices of %lld", (long long)choice->n[PO_WINOGRAD_SLICE]);
    po_text_printf(text, ", tile %lldx%lld", (long long)choice->n[PO_WINOGRAD_ROWS],
                   (long long)choice->n[PO_WINOGRAD_PANEL]);
}

static double choice_magnifies(const po_choice *choice) {
    return (double)choice->n[PO_WINOGRAD_MAGNIFIES] / 16;
}

static bool plainly(const po_mu *naive, uint32_t step, const po_choice *choice, po_choice *plain) {
    return po_direct_as_tiles(naive, step, choice->n[PO_WINOGRAD_PANEL], plain);
}

const po_scheduler po_schedule_winograd = {
    "winograd", PO_ROUNDS, list, po_winograd_apply, family, tell, choice_magnifies, plainly};
