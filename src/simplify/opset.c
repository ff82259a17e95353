/* The opset is raised one version at a time: a table says which operators changed with it, and how
 * the old form is written in the new one. Nodes that a rule adds are written for the version under
 * way and are raised with the rest by the next. What is not in the table only gained types,
 * optional inputs or attributes whose defaults mean what was there before. */
#include "simplify/opset.h"

#include "simplify/opset_rules.h"

typedef struct change {
    po_op op;
    int version;
    const char *name;
    po_raise_fn rule;
    const char *text;
} change;

#define ROW(op, version, rule, text)                                                               \
    { PO_OP_##op, version, #op " for " #version, rule, text }
static const change changes[] = {
    /* Numpy broadcasting in place of attributes; inference in place of a flag. */
    ROW(Add, 7, po_raise_broadcast, NULL),
    ROW(Sub, 7, po_raise_broadcast, NULL),
    ROW(Mul, 7, po_raise_broadcast, NULL),
    ROW(Div, 7, po_raise_broadcast, NULL),
    ROW(Pow, 7, po_raise_broadcast, NULL),
    ROW(And, 7, po_raise_broadcast, NULL),
    ROW(Or, 7, po_raise_broadcast, NULL),
    ROW(Xor, 7, po_raise_broadcast, NULL),
    ROW(Greater, 7, po_raise_broadcast, NULL),
    ROW(Less, 7, po_raise_broadcast, NULL),
    ROW(Equal, 7, po_raise_broadcast, NULL),
    ROW(BatchNormalization, 7, po_raise_inference, "is_test"),
    ROW(Dropout, 7, po_raise_inference, "is_test"),
    ROW(Gemm, 7, po_raise_drop, "broadcast"),
    ROW(PRelu, 7, po_raise_prelu, NULL),
    ROW(LSTM, 7, po_raise_drop, "output_sequence"),
    ROW(GRU, 7, po_raise_drop, "output_sequence"),
    ROW(RNN, 7, po_raise_drop, "output_sequence"),
    ROW(Upsample, 7, po_raise_refuse, "its scales are two attributes"),

    ROW(BatchNormalization, 9, po_raise_spatial, NULL),
    ROW(Upsample, 9, po_raise_upsample_input, NULL),
    ROW(Scan, 9, po_raise_refuse, "it has a batch axis"),

    ROW(Upsample, 10, po_raise_upsample, NULL),
    ROW(Slice, 10, po_raise_slice, NULL),
    ROW(TopK, 10, po_raise_topk, NULL),

    ROW(Clip, 11, po_raise_clip, NULL),
    ROW(Pad, 11, po_raise_pad, NULL),
    ROW(Resize, 11, po_raise_resize, NULL),
    ROW(Scatter, 11, po_raise_scatter, NULL),

    ROW(Dropout, 12, po_raise_dropout, NULL),

    ROW(Softmax, 13, po_raise_softmax, NULL),
    ROW(LogSoftmax, 13, po_raise_softmax, NULL),
    ROW(Hardmax, 13, po_raise_softmax, NULL),
    ROW(Squeeze, 13, po_raise_to_input, "axes"),
    ROW(Unsqueeze, 13, po_raise_to_input, "axes"),
    ROW(ReduceSum, 13, po_raise_to_input, "axes"),
    ROW(Split, 13, po_raise_to_input, "split"),
    ROW(Resize, 13, po_raise_resize_mode, NULL),

    ROW(BatchNormalization, 14, po_raise_norm_outputs, NULL),

    ROW(RoiAlign, 16, po_raise_roi_align, NULL),

    ROW(ReduceL1, 18, po_raise_to_input, "axes"),
    ROW(ReduceL2, 18, po_raise_to_input, "axes"),
    ROW(ReduceLogSum, 18, po_raise_to_input, "axes"),
    ROW(ReduceLogSumExp, 18, po_raise_to_input, "axes"),
    ROW(ReduceMax, 18, po_raise_to_input, "axes"),
    ROW(ReduceMean, 18, po_raise_to_input, "axes"),
    ROW(ReduceMin, 18, po_raise_to_input, "axes"),
    ROW(ReduceProd, 18, po_raise_to_input, "axes"),
    ROW(ReduceSumSquare, 18, po_raise_to_input, "axes"),
    ROW(Split, 18, po_raise_split, NULL),

    ROW(DFT, 20, po_raise_dft, NULL),
    ROW(GridSample, 20, po_raise_grid_sample, NULL),

    ROW(GroupNormalization, 21, po_raise_refuse,
        "its scale and bias are for each group, not for each channel"),
};
#undef ROW

enum { CHANGES = sizeof changes / sizeof *changes };

uint32_t po_raise_rules(void) {
    return CHANGES;
}

const char *po_raise_rule_name(uint32_t rule) {
    return changes[rule].rule == po_raise_refuse ? NULL : changes[rule].name;
}

/* Nodes of the standard domain that the registry does not know may have changed in any way. */
static po_status check_known(po_ctx *ctx, po_graph *graph, void *user) {
    const po_raising *r = user;
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        const po_node *n = &graph->nodes[i];
        if (!n->removed && n->op == PO_OP_OPAQUE && !*n->domain)
            return po_raise_refuse(&(po_raising){ctx, graph, r->version, NULL}, i,
                                   "the operator is not known");
    }
    return PO_OK;
}

static po_status reach(po_ctx *ctx, po_graph *graph, void *user) {
    po_raising r = *(const po_raising *)user;
    po_arena *scratch = po_arena_create(ctx);
    r.graph = graph;
    uint32_t n;
    const po_node_id *order = po_graph_order(graph, scratch, &n);
    for (uint32_t k = 0; k < n; k++)
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
            const change *c = &changes[i];
            if (c->version != r.version || graph->nodes[order[k]].op != c->op)
                continue;
            PO_TRY(c->rule(&r, order[k], c->text));
            if (r.fired)
                r.fired[i]++;
            break; /* an operator that became another is looked at with the next version */
        }
    po_arena_free(scratch);
    return PO_OK;
}

static po_status take_model(po_ctx *ctx, po_graph *graph, void *user) {
    (void)ctx;
    graph->model = user;
    return PO_OK;
}

po_status po_raise_opset(po_ctx *ctx, const po_graph *in, int64_t opset, po_graph **out,
                         uint32_t *fired) {
    int64_t from = in->model ? po_model_opset(in->model, "") : 0;
    if (opset < from)
        return po_fail(ctx, PO_BAD_USE, "the model has opset %lld and cannot be lowered to %lld",
                       (long long)from, (long long)opset);
    if (opset > from && (from < PO_OPSET_LEAST || opset > PO_OPSET_MOST))
        return po_fail(ctx, PO_BAD_USE,
                       "opset %lld cannot be raised to %lld (from %d on, up to %d)",
                       (long long)from, (long long)opset, PO_OPSET_LEAST, PO_OPSET_MOST);
    po_graph *g = po_graph_clone(ctx, in);
    if (opset > from) {
        po_raising r = {ctx, g, opset, fired};
        PO_TRY(po_infer_graph(ctx, g, true));
        PO_TRY(po_graph_walk(ctx, g, check_known, &r));
        po_model *model = po_arena_memdup(g->arena, in->model, sizeof *model);
        model->opsets = po_arena_memdup(g->arena, in->model->opsets,
                                        in->model->n_opsets * sizeof *model->opsets);
        po_opset *standard = model->opsets;
        while (*standard->domain && strcmp(standard->domain, "ai.onnx") != 0)
            standard++;
        PO_TRY(po_graph_walk(ctx, g, take_model, model));
        if (opset >= 9 && model->ir_version < 4) {
            po_graph_free_initialisers(g);
            model->ir_version = 4;
        }
        for (r.version = from + 1; r.version <= opset; r.version++) {
            standard->version = r.version;
            PO_TRY(po_graph_walk(ctx, g, reach, &r));
        }
    }
    *out = g;
    return PO_OK;
}
