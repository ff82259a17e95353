/* Scan, as it is since opset 9. Opset 8 had a batch axis: its body is looked into, its outputs stay
 * unknown. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

typedef struct scan {
    po_graph *body;
    uint32_t states, scanned, outs; /* carried values, scan inputs, scan outputs */
} scan;

static bool read_scan(const po_graph *graph, const po_node *node, scan *s) {
    int64_t n = po_op_int(graph, node, "num_scan_inputs");
    s->body = po_node_body(node, "body");
    if (!s->body || n < 1 || n > node->n_in || s->body->n_inputs != node->n_in ||
        s->body->n_outputs != node->n_out)
        return false;
    s->scanned = (uint32_t)n;
    s->states = node->n_in - s->scanned;
    if (s->states > node->n_out)
        return false;
    s->outs = node->n_out - s->states;
    return true;
}

/* Entry k of a list attribute, 0 where it is absent. */
static int64_t entry(const po_node *node, const char *name, uint32_t k) {
    uint32_t n;
    const int64_t *list = po_node_ints(node, name, &n);
    return list && k < n ? list[k] : 0;
}

/* --- shapes --- */

static po_status scan_input(po_infer *infer, const scan *s, uint32_t k, po_dim *length) {
    const po_type *t = po_infer_tensor(infer, s->states + k);
    uint32_t at;
    if (!t || !t->has_rank)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, entry(infer->node, "scan_input_axes", k), t->rank,
                        &at));
    if (length->value < 0)
        *length = t->dims[at];
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, t->rank);
    for (uint32_t i = 0, to = 0; i < t->rank; i++)
        if (i != at)
            dims[to++] = t->dims[i];
    po_type slice = po_type_tensor(infer->arena, t->dtype, t->rank - 1, dims);
    po_infer_merge(s->body, s->body->inputs[s->states + k], &slice);
    return PO_OK;
}

static po_status scan_output(po_infer *infer, const scan *s, uint32_t k, po_dim length) {
    const po_type *t = &s->body->values[s->body->outputs[s->states + k]].type;
    uint32_t at;
    po_infer_set_unranked(infer, s->states + k, t->dtype);
    if (t->kind != PO_TYPE_TENSOR || !t->has_rank || t->rank >= PO_MAX_RANK)
        return PO_OK;
    PO_TRY(po_rule_axis(infer->ctx, infer->node, entry(infer->node, "scan_output_axes", k),
                        t->rank + 1, &at));
    po_dim *dims = PO_NEW_N(infer->arena, po_dim, t->rank + 1);
    for (uint32_t i = 0; i <= t->rank; i++)
        dims[i] = i < at ? t->dims[i] : i == at ? length : t->dims[i - 1];
    po_infer_set(infer, s->states + k, t->dtype, t->rank + 1, dims);
    return PO_OK;
}

po_status po_infer_scan(po_infer *infer) {
    scan s;
    po_dim length = PO_DIM_UNKNOWN;
    if (infer->opset == 8) {
        po_graph *body = po_node_body(infer->node, "body");
        return body ? po_infer_body(infer, body) : PO_OK;
    }
    if (!read_scan(infer->graph, infer->node, &s))
        return po_rule_bad(infer->ctx, infer->node,
                           "the body's inputs and outputs do not fit the node's");
    for (uint32_t k = 0; k < s.states; k++)
        if (infer->in[k])
            po_infer_merge(s.body, s.body->inputs[k], infer->in[k]);
    for (uint32_t k = 0; k < s.scanned; k++)
        PO_TRY(scan_input(infer, &s, k, &length));
    PO_TRY(po_infer_body(infer, s.body));
    for (uint32_t k = 0; k < s.states; k++)
        if (infer->in[k])
            infer->out[k] = po_type_common(infer->arena, infer->in[k],
                                           &s.body->values[s.body->outputs[k]].type);
    for (uint32_t k = 0; k < s.outs; k++)
        PO_TRY(scan_output(infer, &s, k, length));
    return PO_OK;
}

/* --- reference --- */

/* Element t of x along an axis. */
static po_status slice(po_ref *ref, po_arena *arena, const po_array *x, uint32_t axis, int64_t t,
                       const po_array **part) {
    int64_t dims[PO_MAX_RANK];
    po_array *y;
    for (uint32_t i = 0, to = 0; i < x->rank; i++)
        if (i != axis)
            dims[to++] = x->dims[i];
    PO_TRY(po_array_create(ref->ctx, arena, x->dtype, x->rank - 1, dims, &y));
    int64_t n = x->dims[axis], inner = po_product(x->dims, axis + 1, x->rank);
    for (int64_t k = 0; k < y->count; k++) {
        int64_t from = (k / inner * n + t) * inner + k % inner;
        if (x->f)
            y->f[k] = x->f[from];
        else if (x->i)
            y->i[k] = x->i[from];
        else
            y->s[k] = x->s[from];
    }
    *part = y;
    return PO_OK;
}

typedef struct running {
    scan s;
    int64_t length;
    const po_array **in;
    po_array **out, ***parts;
} running;

static po_status step(po_ref *ref, running *r, po_arena *arena, int64_t t) {
    const scan *s = &r->s;
    PO_TRY(po_ref_trip(ref));
    for (uint32_t k = 0; k < s->scanned; k++) {
        const po_array *x = ref->in[s->states + k];
        bool reverse = entry(ref->node, "scan_input_directions", k) != 0;
        uint32_t at;
        if (!po_axis_at(entry(ref->node, "scan_input_axes", k), x->rank, &at))
            return PO_UNSUPPORTED;
        PO_TRY(slice(ref, arena, x, at, reverse ? r->length - 1 - t : t, &r->in[s->states + k]));
    }
    PO_TRY(po_ref_body(ref, arena, s->body, r->in, r->out));
    for (uint32_t k = 0; k < s->states; k++)
        r->in[k] = r->out[k];
    for (uint32_t k = 0; k < s->outs; k++)
        r->parts[k][t] = po_array_copy(ref->arena, r->out[s->states + k]);
    return PO_OK;
}

static po_status run_steps(po_ref *ref, running *r) {
    po_arena *before = NULL;
    po_status status = PO_OK;
    for (int64_t t = 0; t < r->length && status == PO_OK; t++) {
        po_arena *arena = po_arena_child(ref->arena);
        status = step(ref, r, arena, t);
        po_arena_free(before);
        before = arena;
    }
    for (uint32_t k = 0; k < r->s.states && status == PO_OK; k++)
        ref->out[k] = po_array_copy(ref->arena, r->in[k]);
    po_arena_free(before);
    return status;
}

po_status po_ref_scan(po_ref *ref) {
    running r = {.length = -1};
    uint32_t at;
    if (ref->opset == 8 || !read_scan(ref->graph, ref->node, &r.s))
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < ref->n_in; k++) {
        const po_array *x = ref->in[k];
        if (!x)
            return PO_UNSUPPORTED;
        if (k < r.s.states)
            continue;
        if (!po_axis_at(entry(ref->node, "scan_input_axes", k - r.s.states), x->rank, &at) ||
            (r.length >= 0 && x->dims[at] != r.length))
            return PO_UNSUPPORTED;
        r.length = x->dims[at];
    }
    if (r.length < 1 || r.length > PO_REF_MAX_TRIPS)
        return PO_UNSUPPORTED;
    r.in = po_arena_memdup(ref->arena, ref->in, ref->n_in * sizeof *ref->in);
    r.out = PO_NEW_N(ref->arena, po_array *, ref->n_out);
    r.parts = PO_NEW_N(ref->arena, po_array **, r.s.outs);
    for (uint32_t k = 0; k < r.s.outs; k++)
        r.parts[k] = PO_NEW_N(ref->arena, po_array *, r.length);
    PO_TRY(run_steps(ref, &r));
    for (uint32_t k = 0; k < r.s.outs; k++) {
        if (!po_axis_at(entry(ref->node, "scan_output_axes", k), r.parts[k][0]->rank + 1, &at))
            return PO_UNSUPPORTED;
        PO_TRY(po_ref_stack(ref, r.s.states + k, (uint32_t)r.length, r.parts[k], at,
                            entry(ref->node, "scan_output_directions", k) != 0));
    }
    return PO_OK;
}

const po_attr_def po_attrs_scan[] = {
    {.name = "body", .kind = PO_ATTR_GRAPH, .since = 8, .required = true},
    {.name = "directions", .kind = PO_ATTR_INTS, .since = 8, .until = 8},
    {.name = "num_scan_inputs", .kind = PO_ATTR_INT, .since = 8, .required = true},
    {.name = "scan_input_axes", .kind = PO_ATTR_INTS, .since = 9},
    {.name = "scan_input_directions", .kind = PO_ATTR_INTS, .since = 9},
    {.name = "scan_output_axes", .kind = PO_ATTR_INTS, .since = 9},
    {.name = "scan_output_directions", .kind = PO_ATTR_INTS, .since = 9},
    {0},
};
