/* The order of postopt's passes. */
#include "ops/sum/bilinear.h"
#include "postopt/passes.h"

#include <stdlib.h>

typedef po_status (*pass_fn)(po_ctx *ctx, po_graph *graph, po_postopt_state *state);

/* Tiny weights first, before others are made of them. Then rows of tables: functions are taken
 * apart there yet. Activations and norms then: affine folding would take their constants away. Then
 * hard-swish: its scale joins the affine chain behind it. Algebra last: it looks for convolutions
 * that read one another, which folding leaves. */
static const struct {
    pass_fn fn;
    uint32_t algebra; /* the family that it belongs to; 0: none */
    double magnifies; /* what it makes of rounding; 0: it says so itself */
} passes[] = {{po_drop_tiny, 0, 0},
              {po_take_rows, PO_ALGEBRA_COMPOSE, 1},
              {po_find_norms, 0, 0},
              {po_find_activations, 0, 0},
              {po_write_gates, 0, 0},
              {po_convolve_channels, PO_ALGEBRA_CHANNELS, 1},
              {po_fold_affine, 0, 0},
              {po_compose_linear, PO_ALGEBRA_COMPOSE, 1},
              {po_move_depth_to_space, PO_ALGEBRA_DEPTH_SPACE, 1},
              {po_smooth_behind, PO_ALGEBRA_SMOOTH, 1},
              {po_use_differences, PO_ALGEBRA_DIFFERENCES, 2},
              {po_unfold_upsampling, PO_ALGEBRA_UPSAMPLE, 1},
              {po_interpolate, PO_ALGEBRA_UPSAMPLE, 1},
              {po_fold_gates, PO_ALGEBRA_GATES, 1},
              {po_use_frames, PO_ALGEBRA_FRAMES, 0},
              {po_split_outputs, PO_ALGEBRA_SPLITS, 1},
              {po_use_planes, PO_ALGEBRA_PLANES, 1},
              {po_cancel_moves, 0, 0}},
  /* Once, when nothing fires any more: what depends on the channels that are left. */
    late[] = {{po_pad_channels, PO_ALGEBRA_BLOCKS, 1},
              {po_spread_gates, 0, 0},
              {po_use_phases, PO_ALGEBRA_PHASES, 0},
              {po_use_rows, PO_ALGEBRA_ROWS, 0}};

void po_postopt_magnifies(po_postopt_state *state, uint32_t algebra, double times) {
    state->counts->used |= algebra;
    for (uint32_t i = 0; i < PO_ALGEBRAS; i++) {
        double *known = &state->counts->magnifies[i];
        if (algebra >> i & 1 && *known < times)
            *known = times;
    }
}

/* --- places --- */

/* Positions of a map: what comes behind batch and channels; 0: not known. */
static int64_t positions_of(const po_graph *graph, po_value_id y) {
    uint32_t rank;
    int64_t n = 1;
    const po_dim *d = po_static_dims(graph, y, &rank);
    if (!d || rank < 3)
        return 0;
    for (uint32_t i = 2; i < rank; i++)
        n *= d[i].value;
    return n;
}

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of the sizes that there are, each once, the middle one: the lower half are small. */
static int64_t middle_of(const po_graph *graph, po_arena *scratch) {
    int64_t *sizes = PO_NEW_N(scratch, int64_t, graph->n_nodes + 1);
    uint32_t n = 0, distinct = 0;
    for (po_node_id i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i].removed && po_conv_is(graph, i) &&
            graph->nodes[i].out[0] != PO_NONE)
            sizes[n++] = positions_of(graph, graph->nodes[i].out[0]);
    qsort(sizes, n, sizeof *sizes, by_size);
    for (uint32_t i = 0; i < n; i++)
        if (sizes[i] > 0 && (distinct == 0 || sizes[distinct - 1] != sizes[i]))
            sizes[distinct++] = sizes[i];
    return distinct > 0 ? sizes[distinct / 2] : 0;
}

bool po_postopt_may(const po_postopt_state *state, uint32_t algebra, const po_graph *graph,
                    po_value_id y) {
    const po_postopt_options *o = state->options;
    bool small = positions_of(graph, y) < state->middle;
    return small ? !(o->on_large & algebra) : !(o->on_small & algebra);
}

void po_postopt_tiled(po_postopt_state *state, const po_graph *graph, po_value_id y,
                      const po_tiled_use *use) {
    uint32_t *known = &state->counts->tile[use->which];
    bool small = positions_of(graph, y) < state->middle;
    *known = *known < use->m ? use->m : *known;
    *(small ? &state->counts->on_small : &state->counts->on_large) |= use->algebra;
    po_postopt_magnifies(
        state, use->algebra,
        po_bilinear_magnifies(PO_POINTS_DYADIC, use->m, (uint32_t)use->r, (uint32_t)use->stride));
}

enum { MOST_ROUNDS = 16 };

typedef struct pass_call {
    pass_fn fn;
    po_postopt_state *state;
} pass_call;

static po_status call_pass(po_ctx *ctx, po_graph *graph, void *user) {
    const pass_call *call = user;
    return call->fn(ctx, graph, call->state);
}

static uint32_t total(const po_postopt_counts *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < PO_POSTOPT_RULES; i++)
        n += c->rule[i];
    return n;
}

const char *po_postopt_rule_name(po_postopt_rule rule) {
    static const char *const names[] = {
#define RULE(id, name) name,
#include "postopt/rules.def"
#undef RULE
    };
    return names[rule];
}

po_postopt_options po_postopt_defaults(void) {
    return (po_postopt_options){.affine = true,
                                .algebra = PO_ALGEBRA_ALL,
                                .hard_swish = PO_HARD_SWISH_GATED,
                                .leftover = PO_LEFTOVER_CONV,
                                .activations = true,
                                .norms = true,
                                .spread_gates = true,
                                .sums = true,
                                .split_moves = true,
                                .tiny = true,
                                .masks = true};
}

po_postopt_options po_postopt_plain(uint32_t algebra) {
    po_postopt_options options = po_postopt_defaults();
    options.algebra = algebra;
    options.hard_swish = PO_HARD_SWISH_KEEP;
    options.leftover = PO_LEFTOVER_ARITHMETIC;
    options.spread_gates = options.sums = options.split_moves = options.masks = false;
    return options;
}

po_status po_postopt(po_ctx *ctx, const po_graph *in, const po_postopt_options *options,
                     po_graph **out, po_postopt_counts *counts) {
    po_postopt_counts own = {0};
    po_graph *g = po_graph_clone(ctx, in);
    po_arena *scratch = po_arena_create(ctx);
    PO_TRY(po_infer_graph(ctx, g, true));
    const int64_t middle = middle_of(g, scratch);
    po_arena_free(scratch);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        uint32_t before = total(&own);
        po_postopt_state state = {options, &own, po_arena_create(ctx), middle};
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_infer_graph(ctx, g, true));
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
            pass_call call = {passes[i].fn, &state};
            uint32_t fired = total(&own);
            PO_TRY(po_ctx_poll(ctx));
            PO_TRY(po_graph_walk(ctx, g, call_pass, &call));
            /* What is left over must not count as a reader in the next pass. */
            if (total(&own) != fired) {
                po_graph_sweep(g);
                po_postopt_magnifies(&state, passes[i].algebra, passes[i].magnifies);
            }
        }
        po_arena_free(state.scratch);
        if (total(&own) == before)
            break;
    }
    po_postopt_state last = {options, &own, po_arena_create(ctx), middle};
    PO_TRY(po_infer_graph(ctx, g, true));
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        uint32_t fired = total(&own);
        PO_TRY(po_ctx_poll(ctx));
        PO_TRY(po_graph_walk(ctx, g, call_pass, &(pass_call){late[i].fn, &last}));
        if (total(&own) != fired)
            po_postopt_magnifies(&last, late[i].algebra, late[i].magnifies);
        po_graph_sweep(g);
        PO_TRY(po_infer_graph(ctx, g, true));
    }
    PO_TRY(po_graph_walk(ctx, g, call_pass, &(pass_call){po_write_forms, &last}));
    PO_TRY(po_graph_walk(ctx, g, call_pass, &(pass_call){po_spell, &last}));
    PO_TRY(po_graph_walk(ctx, g, call_pass, &(pass_call){po_raise_masked, &last}));
    po_arena_free(last.scratch);
    po_graph_sweep(g);
    if (counts)
        *counts = own;
    *out = g;
    return PO_OK;
}
