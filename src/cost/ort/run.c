/* Values in and out of a session, and its runs. */
#include "cost/ort/internal.h"

struct po_ort_run {
    po_session *session;
    OrtValue **in, **out;
};

po_status po_feed_order(po_ctx *ctx, po_arena *arena, const po_session *session,
                        const po_feed *feed, const po_datum **inputs) {
    po_datum *ordered = PO_NEW_N(arena, po_datum, session->n_inputs);
    for (uint32_t i = 0; i < session->n_inputs; i++) {
        const char *name = session->inputs[i].name;
        uint32_t k = 0;
        while (k < feed->n && strcmp(feed->names[k], name) != 0)
            k++;
        if (k == feed->n)
            return po_fail(ctx, PO_BAD_INPUT, "there is no data for the input '%s'", name);
        ordered[i] = feed->data[k];
    }
    *inputs = ordered;
    return PO_OK;
}

static po_status string_tensor(po_ctx *ctx, const po_ort *ort, const po_tensor *t,
                               OrtValue **value) {
    const char *what = "filling a string tensor";
    ORT_TRY(ctx, ort, what,
            CreateTensorAsOrtValue(ort->allocator, t->dims, t->rank,
                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, value));
    const po_bytes *strings = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        char *room = NULL;
        ORT_TRY(ctx, ort, what,
                GetResizedStringTensorElementBuffer(*value, (size_t)i, strings[i].size, &room));
        if (strings[i].size > 0)
            memcpy(room, strings[i].data, strings[i].size);
    }
    return PO_OK;
}

static po_status make_value(po_ctx *ctx, po_arena *arena, const po_ort *ort, const po_datum *datum,
                            OrtValue **value) {
    if (datum->kind == PO_TYPE_TENSOR) {
        const po_tensor *t = datum->tensor;
        if (t->dtype == PO_STR)
            return string_tensor(ctx, ort, t, value);
        void *data;
        memcpy(&data, &t->data, sizeof data); /* the runtime's signature is not const */
        ORT_TRY(ctx, ort, "passing an input",
                CreateTensorWithDataAsOrtValue(ort->memory, data, t->size, t->dims, t->rank,
                                               (enum ONNXTensorElementDataType)t->dtype, value));
        return PO_OK;
    }
    if (datum->kind == PO_TYPE_SEQUENCE && datum->n > 0) {
        OrtValue **items = PO_NEW_N(arena, OrtValue *, datum->n);
        po_status status = PO_OK;
        for (uint32_t i = 0; i < datum->n && status == PO_OK; i++)
            status = make_value(ctx, arena, ort, &datum->items[i], &items[i]);
        if (status == PO_OK)
            status = po_ort_check(ctx, ort,
                                  ort->api->CreateValue((const OrtValue *const *)items, datum->n,
                                                        ONNX_TYPE_SEQUENCE, value),
                                  "passing a sequence");
        for (uint32_t i = 0; i < datum->n; i++)
            if (items[i])
                ort->api->ReleaseValue(items[i]);
        return status;
    }
    return po_fail(ctx, PO_UNSUPPORTED, "an input that is neither a tensor nor a sequence");
}

static void release(const po_ort *ort, OrtValue **values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (values[i])
            ort->api->ReleaseValue(values[i]);
        values[i] = NULL;
    }
}

po_status po_ort_run_prepare(po_ctx *ctx, po_session *session, const po_datum *inputs,
                             po_ort_run **out) {
    po_ort_run *run = PO_NEW(session->arena, po_ort_run);
    run->session = session;
    run->in = PO_NEW_N(session->arena, OrtValue *, session->n_inputs);
    run->out = PO_NEW_N(session->arena, OrtValue *, session->n_outputs);
    for (uint32_t i = 0; i < session->n_inputs; i++) {
        po_status status = make_value(ctx, session->arena, session->ort, &inputs[i], &run->in[i]);
        if (status != PO_OK) {
            po_ort_run_free(run);
            return status;
        }
    }
    *out = run;
    return PO_OK;
}

po_status po_ort_run_repeat(po_ctx *ctx, po_ort_run *run, uint32_t times) {
    po_session *s = run->session;
    for (uint32_t k = 0; k < times; k++) {
        release(s->ort, run->out, s->n_outputs);
        ORT_TRY(ctx, s->ort, "running the model",
                Run(s->session, NULL, s->input_names, (const OrtValue *const *)run->in, s->n_inputs,
                    s->output_names, s->n_outputs, run->out));
    }
    return PO_OK;
}

void po_ort_run_drop_outputs(po_ort_run *run) {
    release(run->session->ort, run->out, run->session->n_outputs);
}

void po_ort_run_free(po_ort_run *run) {
    if (!run)
        return;
    release(run->session->ort, run->in, run->session->n_inputs);
    release(run->session->ort, run->out, run->session->n_outputs);
}

/* --- outputs --- */

static po_status read_strings(po_ctx *ctx, po_arena *arena, const po_ort *ort,
                              const OrtValue *value, int64_t count, po_bytes **strings) {
    const char *what = "reading a string tensor";
    *strings = PO_NEW_N(arena, po_bytes, count);
    for (int64_t i = 0; i < count; i++) {
        size_t size = 0;
        ORT_TRY(ctx, ort, what, GetStringTensorElementLength(value, (size_t)i, &size));
        char *data = po_arena_alloc(arena, size + 1);
        if (size > 0)
            ORT_TRY(ctx, ort, what, GetStringTensorElement(value, size, (size_t)i, data));
        data[size] = '\0';
        (*strings)[i] = (po_bytes){data, size};
    }
    return PO_OK;
}

static po_status read_tensor(po_ctx *ctx, po_arena *arena, const po_ort *ort, OrtValue *value,
                             po_datum *datum) {
    const char *what = "reading an output";
    OrtTensorTypeAndShapeInfo *info = NULL;
    enum ONNXTensorElementDataType element;
    size_t rank = 0;
    ORT_TRY(ctx, ort, what, GetTensorTypeAndShape(value, &info));
    ORT_TRY(ctx, ort, what, GetTensorElementType(info, &element));
    ORT_TRY(ctx, ort, what, GetDimensionsCount(info, &rank));
    int64_t *dims = PO_NEW_N(arena, int64_t, rank);
    ORT_TRY(ctx, ort, what, GetDimensions(info, dims, rank));
    size_t total = 0;
    ORT_TRY(ctx, ort, what, GetTensorShapeElementCount(info, &total));
    ort->api->ReleaseTensorTypeAndShapeInfo(info);
    int64_t count = (int64_t)total;
    po_tensor *t = PO_NEW(arena, po_tensor);
    if (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        po_bytes *strings = NULL;
        PO_TRY(read_strings(ctx, arena, ort, value, count, &strings));
        *t = (po_tensor){PO_STR, (uint32_t)rank, dims, count, strings, 0, NULL};
    } else {
        void *data = NULL;
        ORT_TRY(ctx, ort, what, GetTensorMutableData(value, &data));
        size_t size = 0;
        if (!po_dtype_bytes((po_dtype)element, count, &size))
            return po_fail(ctx, PO_UNSUPPORTED, "an output of element type %d", (int)element);
        *t = (po_tensor){(po_dtype)element, (uint32_t)rank, dims, count, data, size, NULL};
    }
    *datum = (po_datum){PO_TYPE_TENSOR, t, 0, NULL};
    return PO_OK;
}

static po_status read_value(po_ctx *ctx, po_arena *arena, const po_ort *ort, OrtValue *value,
                            po_datum *datum) {
    const char *what = "reading an output";
    *datum = (po_datum){PO_TYPE_UNKNOWN, NULL, 0, NULL};
    int there = 0;
    if (!value)
        return PO_OK;
    ORT_TRY(ctx, ort, what, HasValue(value, &there));
    if (!there)
        return PO_OK;
    enum ONNXType kind;
    ORT_TRY(ctx, ort, what, GetValueType(value, &kind));
    if (kind == ONNX_TYPE_TENSOR)
        return read_tensor(ctx, arena, ort, value, datum);
    if (kind != ONNX_TYPE_SEQUENCE && kind != ONNX_TYPE_MAP)
        return po_fail(ctx, PO_UNSUPPORTED, "an output that is no tensor, sequence or map");
    size_t n = 0;
    ORT_TRY(ctx, ort, what, GetValueCount(value, &n));
    po_datum *items = PO_NEW_N(arena, po_datum, n);
    for (size_t i = 0; i < n; i++) {
        /* The element is a view of its own; it stays until the child ends. */
        OrtValue *item = NULL;
        ORT_TRY(ctx, ort, what, GetValue(value, (int)i, ort->allocator, &item));
        PO_TRY(read_value(ctx, arena, ort, item, &items[i]));
    }
    *datum = (po_datum){kind == ONNX_TYPE_MAP ? PO_TYPE_MAP : PO_TYPE_SEQUENCE, NULL, (uint32_t)n,
                        items};
    return PO_OK;
}

po_status po_ort_run_outputs(po_ctx *ctx, po_arena *arena, const po_ort_run *run,
                             const po_datum **outputs) {
    const po_session *s = run->session;
    po_datum *out = PO_NEW_N(arena, po_datum, s->n_outputs);
    for (uint32_t i = 0; i < s->n_outputs; i++)
        PO_TRY(read_value(ctx, arena, s->ort, run->out[i], &out[i]));
    *outputs = out;
    return PO_OK;
}
