/* If and Loop. */
#include "ops/families/rules.h"
#include "ops/ref.h"
#include "ops/shape.h"

po_graph *po_node_body(const po_node *node, const char *name) {
    const po_attr *a = po_node_attr(node, name);
    return a && a->kind == PO_ATTR_GRAPH ? a->u.g : NULL;
}

po_type po_type_common(po_arena *arena, const po_type *a, const po_type *b) {
    po_type common = {0};
    if (a->kind != b->kind)
        return common;
    common.kind = a->kind;
    common.dtype = a->dtype == b->dtype ? a->dtype : PO_DT_NONE;
    if (a->element && b->element) {
        po_type element = po_type_common(arena, a->element, b->element);
        common.element = po_arena_memdup(arena, &element, sizeof element);
    }
    if (!a->has_rank || !b->has_rank || a->rank != b->rank)
        return common;
    po_dim *dims = po_arena_memdup(arena, a->dims, a->rank * sizeof *dims);
    for (uint32_t i = 0; i < a->rank; i++)
        if (!po_dim_same(a->dims[i], b->dims[i]))
            dims[i] = PO_DIM_UNKNOWN;
    common.has_rank = true;
    common.rank = a->rank;
    common.dims = dims;
    return common;
}

static const po_type *output_type(const po_graph *body, uint32_t k) {
    return &body->values[body->outputs[k]].type;
}

/* --- If --- */

po_status po_infer_if(po_infer *infer) {
    po_graph *then = po_node_body(infer->node, "then_branch");
    po_graph *other = po_node_body(infer->node, "else_branch");
    const po_tensor *cond = infer->constant[0];
    if (!then || !other || then->n_outputs < infer->n_out || other->n_outputs < infer->n_out)
        return po_rule_bad(infer->ctx, infer->node, "the branches do not have the node's outputs");
    PO_TRY(po_infer_body(infer, then));
    PO_TRY(po_infer_body(infer, other));
    for (uint32_t k = 0; k < infer->n_out; k++) {
        if (cond && cond->dtype == PO_BOOL && cond->count == 1)
            infer->out[k] = *output_type(po_tensor_int(cond, 0) ? then : other, k);
        else
            infer->out[k] =
                po_type_common(infer->arena, output_type(then, k), output_type(other, k));
    }
    return PO_OK;
}

po_status po_ref_if(po_ref *ref) {
    const po_array *cond = po_ref_in(ref, 0);
    if (!cond || !cond->i || cond->count != 1)
        return PO_UNSUPPORTED;
    const po_graph *body = po_node_body(ref->node, cond->i[0] ? "then_branch" : "else_branch");
    if (!body || body->n_outputs != ref->n_out || body->n_inputs != 0)
        return PO_UNSUPPORTED;
    return po_ref_body(ref, ref->arena, body, NULL, ref->out);
}

/* --- Loop --- */

/* What a carried value keeps from one trip to the next: its shape may change. */
static po_type without_shape(po_arena *arena, const po_type *type) {
    po_type bare = {.kind = type->kind, .dtype = type->dtype};
    if (type->element) {
        po_type element = without_shape(arena, type->element);
        bare.element = po_arena_memdup(arena, &element, sizeof element);
    }
    return bare;
}

po_status po_infer_loop(po_infer *infer) {
    po_graph *body = po_node_body(infer->node, "body");
    uint32_t carried = infer->n_in < 2 ? 0 : infer->n_in - 2;
    if (!body || body->n_inputs != carried + 2 || body->n_outputs != infer->n_out + 1 ||
        infer->n_out < carried)
        return po_rule_bad(infer->ctx, infer->node,
                           "the body's inputs and outputs do not fit the node's");
    po_type number = po_type_unranked(PO_I64), boolean = po_type_unranked(PO_BOOL);
    po_infer_merge(body, body->inputs[0], &number);
    po_infer_merge(body, body->inputs[1], &boolean);
    for (uint32_t k = 0; k < carried; k++)
        if (infer->in[2 + k]) {
            po_type bare = without_shape(infer->arena, infer->in[2 + k]);
            po_infer_merge(body, body->inputs[2 + k], &bare);
        }
    PO_TRY(po_infer_body(infer, body));
    for (uint32_t k = 0; k < infer->n_out; k++) {
        const po_type *t = output_type(body, k + 1);
        if (k < carried) {
            /* No trip at all gives what went in. */
            if (infer->in[2 + k])
                infer->out[k] = po_type_common(infer->arena, infer->in[2 + k], t);
            continue;
        }
        if (t->kind != PO_TYPE_TENSOR || !t->has_rank || t->rank >= PO_MAX_RANK) {
            po_infer_set_unranked(infer, k, t->dtype);
            continue;
        }
        po_dim *dims = PO_NEW_N(infer->arena, po_dim, t->rank + 1);
        dims[0] = PO_DIM_UNKNOWN;
        for (uint32_t i = 0; i < t->rank; i++)
            dims[i + 1] = t->dims[i];
        po_infer_set(infer, k, t->dtype, t->rank + 1, dims);
    }
    return PO_OK;
}

po_status po_ref_stack(po_ref *ref, uint32_t out, uint32_t n, po_array *const *parts, uint32_t axis,
                       bool reverse) {
    int64_t dims[PO_MAX_RANK + 1];
    const po_array *p = parts[0];
    po_array *y;
    if (axis > p->rank || p->rank >= PO_MAX_RANK)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i <= p->rank; i++)
        dims[i] = i < axis ? p->dims[i] : i == axis ? (int64_t)n : p->dims[i - 1];
    PO_TRY(po_ref_out(ref, out, p->dtype, p->rank + 1, dims, &y));
    int64_t outer = po_product(p->dims, 0, axis), inner = po_product(p->dims, axis, p->rank);
    size_t width = y->s ? sizeof *y->s : sizeof(double);
    char *to = y->f ? (char *)y->f : y->i ? (char *)y->i : (char *)y->s;
    for (uint32_t k = 0; k < n; k++) {
        const po_array *from = parts[reverse ? n - 1 - k : k];
        const char *data = from->f   ? (const char *)from->f
                           : from->i ? (const char *)from->i
                                     : (const char *)from->s;
        if (from->dtype != p->dtype || from->rank != p->rank ||
            memcmp(from->dims, p->dims, p->rank * sizeof *p->dims) != 0)
            return PO_UNSUPPORTED;
        for (int64_t o = 0; o < outer && inner; o++)
            memcpy(to + (size_t)(o * n + k) * (size_t)inner * width,
                   data + (size_t)(o * inner) * width, (size_t)inner * width);
    }
    return PO_OK;
}

/* One running Loop. */
typedef struct loop {
    const po_graph *body;
    uint32_t carried, scans;
    const po_array **in; /* of the next trip: number, condition, carried values */
    po_array **out;      /* of a trip: condition, carried values, elements of the scan outputs */
    po_array ***parts;   /* per scan output: its elements so far */
    uint32_t trips, capacity;
} loop;

static po_status scalar(po_ref *ref, po_arena *arena, const po_graph *body, uint32_t input,
                        po_dtype dtype, int64_t value, const po_array **array) {
    /* Some exporters declare these as vectors of one. */
    const po_type *t = &body->values[body->inputs[input]].type;
    po_array *a;
    PO_TRY(
        po_array_create(ref->ctx, arena, dtype, t->has_rank && t->rank == 1, (int64_t[]){1}, &a));
    a->i[0] = value;
    *array = a;
    return PO_OK;
}

/* A trip: evaluates the body into `arena` and keeps what the scan outputs take. */
static po_status trip(po_ref *ref, loop *l, po_arena *arena) {
    PO_TRY(po_ref_trip(ref));
    PO_TRY(scalar(ref, arena, l->body, 0, PO_I64, l->trips, &l->in[0]));
    PO_TRY(po_ref_body(ref, arena, l->body, l->in, l->out));
    if (!l->out[0]->i || l->out[0]->count != 1)
        return PO_UNSUPPORTED;
    for (uint32_t k = 0; k < l->scans; k++) {
        uint32_t capacity = l->capacity;
        const po_array *part = l->out[1 + l->carried + k];
        if (l->trips && part->count > PO_REF_MAX_COUNT / l->trips)
            return PO_UNSUPPORTED;
        l->parts[k] =
            po_arena_grow(ref->arena, l->parts[k], &capacity, l->trips + 1, sizeof **l->parts);
        l->parts[k][l->trips] = po_array_copy(ref->arena, part);
        if (k + 1 == l->scans)
            l->capacity = capacity;
    }
    for (uint32_t k = 0; k < 1 + l->carried; k++)
        l->in[1 + k] = l->out[k];
    l->trips++;
    return PO_OK;
}

static po_status run_trips(po_ref *ref, loop *l, int64_t most, bool ignores_condition) {
    po_arena *before = NULL;
    po_status status = PO_OK;
    while (status == PO_OK && l->trips < most && l->in[1]->i[0]) {
        po_arena *arena = po_arena_child(ref->arena);
        status = trip(ref, l, arena);
        po_arena_free(before);
        before = arena;
        /* What runtimes do here is not what the standard says. */
        if (status == PO_OK && ignores_condition && !l->in[1]->i[0])
            status = PO_UNSUPPORTED;
    }
    for (uint32_t k = 0; k < l->carried && status == PO_OK; k++)
        ref->out[k] = po_array_copy(ref->arena, l->in[2 + k]);
    po_arena_free(before);
    return status;
}

/* Without a single trip a scan output is empty, of the declared shape. */
static po_status empty_scan(po_ref *ref, uint32_t out, const po_type *type) {
    int64_t dims[PO_MAX_RANK + 1] = {0};
    po_array *y;
    if (!po_type_static(type) || type->rank >= PO_MAX_RANK)
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i + 1] = type->dims[i].value;
    return po_ref_out(ref, out, type->dtype, type->rank + 1, dims, &y);
}

po_status po_ref_loop(po_ref *ref) {
    const po_array *most = po_ref_in(ref, 0), *cond = po_ref_in(ref, 1);
    loop l = {.body = po_node_body(ref->node, "body"), .carried = ref->n_in - 2};
    if (!l.body || ref->n_in < 2 || l.body->n_inputs != ref->n_in ||
        l.body->n_outputs != ref->n_out + 1 || ref->n_out < l.carried ||
        (most && (!most->i || most->count != 1)) || (cond && (!cond->i || cond->count != 1)))
        return PO_UNSUPPORTED;
    l.scans = ref->n_out - l.carried;
    l.in = PO_NEW_N(ref->arena, const po_array *, ref->n_in);
    l.out = PO_NEW_N(ref->arena, po_array *, ref->n_out + 1);
    l.parts = PO_NEW_N(ref->arena, po_array **, l.scans);
    for (uint32_t k = 0; k < l.carried; k++)
        if (!(l.in[2 + k] = ref->in[2 + k]))
            return PO_UNSUPPORTED;
    PO_TRY(scalar(ref, ref->arena, l.body, 1, PO_BOOL, cond ? cond->i[0] != 0 : 1, &l.in[1]));
    PO_TRY(run_trips(ref, &l, most ? most->i[0] : INT64_MAX, !cond));
    for (uint32_t k = 0; k < l.scans; k++) {
        if (l.trips)
            PO_TRY(po_ref_stack(ref, l.carried + k, l.trips, l.parts[k], 0, false));
        else
            PO_TRY(empty_scan(ref, l.carried + k, output_type(l.body, 1 + l.carried + k)));
    }
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_if[] = {
    {.name = "else_branch", .kind = PO_ATTR_GRAPH, .since = 1, .required = true},
    {.name = "then_branch", .kind = PO_ATTR_GRAPH, .since = 1, .required = true},
    {0},
};
const po_attr_def po_attrs_loop[] = {
    {.name = "body", .kind = PO_ATTR_GRAPH, .since = 1, .required = true},
    {0},
};
