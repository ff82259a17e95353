/* RNN, GRU, LSTM: shapes and the walk over time. The cells are in rnn_cell.c. */
#include "ops/families/rnn.h"
#include "ops/kernels.h"

static int64_t gates_of(const po_node *node) {
    return strcmp(node->op_type, "LSTM") == 0 ? 4 : strcmp(node->op_type, "GRU") == 0 ? 3 : 1;
}

static po_status directions_of(po_ctx *ctx, const po_graph *graph, const po_node *node,
                               int64_t *directions) {
    bool both = po_rule_mode(graph, node, "direction", "bidirectional");
    if (!both && !po_rule_mode(graph, node, "direction", "forward") &&
        !po_rule_mode(graph, node, "direction", "reverse"))
        return po_rule_bad(ctx, node, "unknown direction");
    *directions = both ? 2 : 1;
    return PO_OK;
}

/* One input against the dims that it must have (-1: any). */
static po_status expect(const po_infer *infer, uint32_t input, uint32_t rank, const po_dim *want) {
    const po_type *t = po_rule_ranked(infer, input);
    if (!t)
        return PO_OK;
    if (t->rank != rank)
        return po_rule_bad(infer->ctx, infer->node, "input %u must have rank %u (found %u)", input,
                           rank, t->rank);
    for (uint32_t k = 0; k < rank; k++) {
        if (t->dims[k].value >= 0 && want[k].value >= 0 && t->dims[k].value != want[k].value)
            return po_rule_bad(infer->ctx, infer->node, "dim %u of input %u is %lld (want %lld)", k,
                               input, (long long)t->dims[k].value, (long long)want[k].value);
        po_rule_demand(infer, PO_DEMAND_IS, t->dims[k], want[k]);
    }
    return PO_OK;
}

static po_dim times(po_dim d, int64_t by) {
    int64_t v;
    return d.value >= 0 && po_mul_i64(d.value, by, &v) ? PO_DIM(v) : PO_DIM_UNKNOWN;
}

po_status po_infer_rnn(po_infer *infer) {
    const po_type *x = po_rule_ranked(infer, 0), *r = po_rule_ranked(infer, 2);
    po_dtype dtype = po_infer_dtype(infer, 0);
    int64_t gates = gates_of(infer->node), d, layout;
    layout = po_op_int(infer->graph, infer->node, "layout");
    PO_TRY(directions_of(infer->ctx, infer->graph, infer->node, &d));
    if (x && x->rank != 3)
        return po_rule_bad(infer->ctx, infer->node, "input must have rank 3 (found %u)", x->rank);
    po_dim hidden = PO_DIM_UNKNOWN, directions = PO_DIM(d);
    const po_attr *size = po_node_attr(infer->node, "hidden_size");
    if (size && size->kind == PO_ATTR_INT) {
        if (size->u.i < 1)
            return po_rule_bad(infer->ctx, infer->node, "hidden_size is out of range (found %lld)",
                               (long long)size->u.i);
        hidden = PO_DIM(size->u.i);
    } else if (r && r->rank == 3) {
        hidden = r->dims[2];
    }
    po_dim seq = x ? x->dims[layout ? 1 : 0] : PO_DIM_UNKNOWN;
    po_dim batch = x ? x->dims[layout ? 0 : 1] : PO_DIM_UNKNOWN;
    po_dim in = x ? x->dims[2] : PO_DIM_UNKNOWN;
    po_rule_demand(infer, PO_DEMAND_SEQUENCE, seq, PO_DIM(1));
    po_dim state[3] = {directions, batch, hidden};
    if (layout) {
        state[0] = batch;
        state[1] = directions;
    }
    PO_TRY(expect(infer, 1, 3, (po_dim[]){directions, times(hidden, gates), in}));
    PO_TRY(expect(infer, 2, 3, (po_dim[]){directions, times(hidden, gates), hidden}));
    PO_TRY(expect(infer, 3, 2, (po_dim[]){directions, times(hidden, 2 * gates)}));
    PO_TRY(expect(infer, 4, 1, &batch));
    PO_TRY(expect(infer, 5, 3, state));
    PO_TRY(expect(infer, 6, 3, state));
    PO_TRY(expect(infer, 7, 2, (po_dim[]){directions, times(hidden, 3)}));
    po_dim *y = po_rule_out(infer, 0, dtype, 4);
    y[0] = layout ? batch : seq;
    y[1] = layout ? seq : directions;
    y[2] = layout ? directions : batch;
    y[3] = hidden;
    for (uint32_t k = 1; k < infer->n_out; k++)
        memcpy(po_rule_out(infer, k, dtype, 3), state, sizeof state);
    return PO_OK;
}

/* --- the walk over time --- */

/* The transposed [columns, rows] of a matrix. */
static double *transposed(po_arena *arena, const double *m, int64_t rows, int64_t columns) {
    double *t = PO_NEW_N(arena, double, rows *columns);
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++)
            t[x * rows + y] = m[y * columns + x];
    return t;
}

typedef struct sizes {
    int64_t seq, batch, in, hidden, directions, gates;
    bool layout;
} sizes;

static int64_t y_at(const sizes *s, int64_t t, int64_t d, int64_t b) {
    return (s->layout ? (b * s->seq + t) * s->directions + d
                      : (t * s->directions + d) * s->batch + b) *
           s->hidden;
}

static int64_t state_at(const sizes *s, int64_t d, int64_t b) {
    return (s->layout ? b * s->directions + d : d * s->batch + b) * s->hidden;
}

static po_status lengths(po_ref *ref, const sizes *s, int64_t *len) {
    const po_array *given = po_ref_in(ref, 4);
    if (given && !given->i)
        return PO_UNSUPPORTED;
    for (int64_t b = 0; b < s->batch; b++) {
        len[b] = given ? given->i[b] : s->seq;
        if (len[b] < 0 || len[b] > s->seq)
            return po_rule_bad(ref->ctx, ref->node, "sequence length %lld is out of range",
                               (long long)len[b]);
    }
    return PO_OK;
}

static po_status one_direction(po_ref *ref, const sizes *s, int64_t d, const int64_t *len) {
    int64_t wide = s->gates * s->hidden;
    bool reverse = d == 1 || po_rule_mode(ref->graph, ref->node, "direction", "reverse");
    const po_array *x = ref->in[0], *h0 = po_ref_in(ref, 5), *c0 = po_ref_in(ref, 6);
    const po_array *bias = po_ref_in(ref, 3), *peep = po_ref_in(ref, 7);
    po_arena *arena = ref->arena;
    double *w = transposed(arena, ref->in[1]->f + d * wide * s->in, wide, s->in);
    double *r = transposed(arena, ref->in[2]->f + d * wide * s->hidden, wide, s->hidden);
    double *xw = PO_NEW_N(arena, double, s->seq * s->batch * wide);
    double *hr = PO_NEW_N(arena, double, s->batch *wide);
    double *h = PO_NEW_N(arena, double, s->batch * s->hidden);
    double *c = PO_NEW_N(arena, double, s->batch * s->hidden);
    po_cell *cell;
    PO_TRY(po_cell_create(ref, d, s->hidden, bias ? bias->f + d * 2 * wide : NULL,
                          peep ? peep->f + d * 3 * s->hidden : NULL, r, &cell));
    po_gemm(s->seq * s->batch, wide, s->in, x->f, s->in, 1, w, wide, 1, xw, wide);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t k = 0; k < s->hidden; k++) {
            h[b * s->hidden + k] = h0 ? h0->f[state_at(s, d, b) + k] : 0.0;
            c[b * s->hidden + k] = c0 ? c0->f[state_at(s, d, b) + k] : 0.0;
        }
    for (int64_t step = 0; step < s->seq; step++) {
        memset(hr, 0, (size_t)(s->batch * wide) * sizeof *hr);
        po_gemm(s->batch, wide, s->hidden, h, s->hidden, 1, r, wide, 1, hr, wide);
        for (int64_t b = 0; b < s->batch; b++) {
            if (step >= len[b])
                continue;
            int64_t t = reverse ? len[b] - 1 - step : step;
            int64_t row = s->layout ? b * s->seq + t : t * s->batch + b;
            po_cell_step(cell, xw + row * wide, hr + b * wide, h + b * s->hidden,
                         c + b * s->hidden);
            if (ref->out[0])
                memcpy(ref->out[0]->f + y_at(s, t, d, b), h + b * s->hidden,
                       (size_t)s->hidden * sizeof *h);
        }
    }
    for (int64_t b = 0; b < s->batch; b++)
        for (uint32_t k = 1; k < ref->n_out; k++)
            if (ref->out[k])
                memcpy(ref->out[k]->f + state_at(s, d, b), (k == 1 ? h : c) + b * s->hidden,
                       (size_t)s->hidden * sizeof *h);
    return PO_OK;
}

po_status po_ref_rnn(po_ref *ref) {
    for (uint32_t k = 0; k < ref->n_out; k++)
        ref->out[k] = NULL;
    PO_TRY(po_rule_outputs(ref));
    const po_array *x = ref->in[0];
    if (!po_rule_floats(ref, 0, 3) || !po_rule_floats(ref, 5, 7))
        return PO_UNSUPPORTED;
    sizes s = {.gates = gates_of(ref->node), .hidden = ref->in[2]->dims[2], .in = x->dims[2]};
    PO_TRY(directions_of(ref->ctx, ref->graph, ref->node, &s.directions));
    s.layout = po_op_int(ref->graph, ref->node, "layout") != 0;
    s.seq = x->dims[s.layout ? 1 : 0];
    s.batch = x->dims[s.layout ? 0 : 1];
    int64_t total;
    if (!po_mul_i64(s.seq * s.batch, s.gates * s.hidden, &total) || total > PO_REF_MAX_COUNT)
        return PO_UNSUPPORTED;
    int64_t *len = PO_NEW_N(ref->arena, int64_t, s.batch);
    PO_TRY(lengths(ref, &s, len));
    for (int64_t d = 0; d < s.directions; d++)
        PO_TRY(one_direction(ref, &s, d, len));
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_rnn[] = {
    {.name = "activation_alpha", .kind = PO_ATTR_FLOATS, .since = 1},
    {.name = "activation_beta", .kind = PO_ATTR_FLOATS, .since = 1},
    {.name = "activations", .kind = PO_ATTR_STRINGS, .since = 1},
    {.name = "clip", .kind = PO_ATTR_FLOAT, .since = 1},
    {.name = "direction", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "forward"},
    {.name = "hidden_size", .kind = PO_ATTR_INT, .since = 1},
    {.name = "layout", .kind = PO_ATTR_INT, .since = 14, .has_default = true, .i = 0},
    {.name = "output_sequence",
     .kind = PO_ATTR_INT,
     .since = 1,
     .until = 6,
     .has_default = true,
     .i = 0},
    {0},
};

const po_attr_def po_attrs_gru[] = {
    {.name = "activation_alpha", .kind = PO_ATTR_FLOATS, .since = 1},
    {.name = "activation_beta", .kind = PO_ATTR_FLOATS, .since = 1},
    {.name = "activations", .kind = PO_ATTR_STRINGS, .since = 1},
    {.name = "clip", .kind = PO_ATTR_FLOAT, .since = 1},
    {.name = "direction",
     .kind = PO_ATTR_STRING,
     .since = 1,
     .until = 2,
     .has_default = true,
     .s = "forward"},
    {.name = "direction", .kind = PO_ATTR_STRING, .since = 3, .has_default = true, .s = "forward"},
    {.name = "hidden_size", .kind = PO_ATTR_INT, .since = 1},
    {.name = "layout", .kind = PO_ATTR_INT, .since = 14, .has_default = true, .i = 0},
    {.name = "linear_before_reset", .kind = PO_ATTR_INT, .since = 3, .has_default = true, .i = 0},
    {.name = "output_sequence",
     .kind = PO_ATTR_INT,
     .since = 1,
     .until = 6,
     .has_default = true,
     .i = 0},
    {0},
};

const po_attr_def po_attrs_lstm[] = {
    {.name = "activation_alpha", .kind = PO_ATTR_FLOATS, .since = 1},
    {.name = "activation_beta", .kind = PO_ATTR_FLOATS, .since = 1},
    {.name = "activations", .kind = PO_ATTR_STRINGS, .since = 1},
    {.name = "clip", .kind = PO_ATTR_FLOAT, .since = 1},
    {.name = "direction", .kind = PO_ATTR_STRING, .since = 1, .has_default = true, .s = "forward"},
    {.name = "hidden_size", .kind = PO_ATTR_INT, .since = 1},
    {.name = "input_forget", .kind = PO_ATTR_INT, .since = 1, .has_default = true, .i = 0},
    {.name = "layout", .kind = PO_ATTR_INT, .since = 14, .has_default = true, .i = 0},
    {.name = "output_sequence",
     .kind = PO_ATTR_INT,
     .since = 1,
     .until = 6,
     .has_default = true,
     .i = 0},
    {0},
};
