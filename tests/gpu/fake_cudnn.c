/* libcudnn.so.9 on the fake driver: its graph interface, for convolutions and what may follow them,
 * by naive loops. Five engines: with tensor cores (which round f32), plain, one whose sums have no
 * order, a slow one, and one that no plan can be made of. FAKE_UNFUSED: a convolution alone is all
 * that an engine does with one. */
#include "fake_cuda.h"
#include "fake_numbers.h"

#include <stddef.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
enum { OK = 0, BAD_PARAM = 2000, NOT_FINALIZED = 2004, NOT_SUPPORTED = 3000 };
enum { POINTWISE, CONVOLUTION, ENGINE, CONFIG, HEURISTIC, PLAN, OP_CONV = 10, OP_POINT = 13 };
enum { GRAPH = 15, PACK = 16, TENSOR = 17 };
enum { TENSOR_CORES, PLAIN, UNORDERED, SLOW, IMPOSSIBLE };
enum { MOST_VALUES = 64, RANK = 5, TENSORS = 16 };

/* Bytes of a value by attribute type. */
static const size_t sizes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8};

typedef struct value {
    int attribute, type;
    int64_t n;
    char data[8 * MOST_VALUES];
    struct value *next;
} value;

typedef struct descriptor {
    int kind, final, engine;
    value *values;
    struct descriptor *graph; /* HEURISTIC, CONFIG, ENGINE: of what */
} descriptor;

static void *stream_of_all;
API int fake_cudnn_plans; /* that were made in this process */

API size_t cudnnGetVersion(void) {
    return 91900;
}

API const char *cudnnGetErrorString(int status) {
    return status >= NOT_SUPPORTED ? "not supported" : "bad parameter";
}

API int cudnnCreate(void **handle) {
    *handle = &stream_of_all;
    return OK;
}

API int cudnnDestroy(void *handle) {
    return handle == &stream_of_all ? OK : BAD_PARAM;
}

API int cudnnSetStream(void *handle, void *stream) {
    *(void **)handle = stream;
    return OK;
}

API int cudnnBackendCreateDescriptor(int kind, void **out) {
    descriptor *d = calloc(1, sizeof *d);
    if (!d)
        return BAD_PARAM;
    d->kind = kind;
    *out = d;
    return OK;
}

API int cudnnBackendDestroyDescriptor(void *descriptor_) {
    descriptor *d = descriptor_;
    for (value *v = d->values, *next; v; v = next) {
        next = v->next;
        free(v);
    }
    free(d);
    return OK;
}

static const value *find(const descriptor *d, int attribute, int type) {
    for (const value *v = d->values; v; v = v->next)
        if (v->attribute == attribute)
            return v->type == type ? v : NULL;
    return NULL;
}

static int64_t int_of(const descriptor *d, int attribute, int64_t i) {
    int64_t n = -1;
    const value *v = find(d, attribute, 3);
    if (v && i < v->n)
        memcpy(&n, v->data + 8 * i, 8);
    return n;
}

static int enum_of(const descriptor *d, int attribute, int type) {
    int n = -1;
    const value *v = find(d, attribute, type);
    if (v)
        memcpy(&n, v->data, sizeof n);
    return n;
}

static descriptor *part_of(const descriptor *d, int attribute, int64_t i) {
    descriptor *part = NULL;
    const value *v = find(d, attribute, 15);
    if (v && i < v->n)
        memcpy(&part, v->data + 8 * i, sizeof part);
    return part;
}

static int is_virtual(const descriptor *tensor) {
    const value *v = find(tensor, 907, 2);
    return v && v->data[0];
}

API int cudnnBackendSetAttribute(void *descriptor_, int attribute, int type, int64_t n,
                                 const void *values) {
    descriptor *d = descriptor_;
    if (!d || d->final || n < 1 || n > MOST_VALUES || type < 0 || type > 15 || !values)
        return BAD_PARAM;
    for (int64_t i = 0; type == 15 && i < n; i++)
        if (!((descriptor *const *)values)[i] || !((descriptor *const *)values)[i]->final)
            return NOT_FINALIZED;
    value *v = calloc(1, sizeof *v);
    if (!v)
        return BAD_PARAM;
    *v = (value){.attribute = attribute, .type = type, .n = n, .next = d->values};
    memcpy(v->data, values, (size_t)n * sizes[type]);
    d->values = v;
    return OK;
}

static int fuses(const descriptor *graph) {
#ifdef FAKE_UNFUSED
    const value *ops = find(graph, 801, 15);
    return ops->n == 1 || part_of(graph, 801, 0)->kind != OP_CONV;
#else
    (void)graph;
    return 1;
#endif
}

/* Every attribute that a kind must have, by type. */
static int complete(const descriptor *d) {
    static const struct {
        int kind, attribute, type;
    } needed[] = {
        {TENSOR, 900, 3},      {TENSOR, 901, 1},      {TENSOR, 902, 3},      {TENSOR, 903, 3},
        {TENSOR, 906, 3},      {CONVOLUTION, 100, 1}, {CONVOLUTION, 101, 7}, {CONVOLUTION, 102, 3},
        {CONVOLUTION, 103, 3}, {CONVOLUTION, 104, 3}, {CONVOLUTION, 105, 3}, {CONVOLUTION, 106, 3},
        {POINTWISE, 0, 14},    {POINTWISE, 1, 1},     {OP_CONV, 700, 4},     {OP_CONV, 701, 4},
        {OP_CONV, 702, 15},    {OP_CONV, 703, 15},    {OP_CONV, 704, 15},    {OP_CONV, 705, 15},
        {OP_POINT, 750, 15},   {OP_POINT, 751, 15},   {OP_POINT, 753, 15},   {GRAPH, 800, 0},
        {GRAPH, 801, 15},      {HEURISTIC, 200, 8},   {HEURISTIC, 201, 15},  {PLAN, 400, 0},
        {PLAN, 401, 15},       {PACK, 1000, 3},       {PACK, 1001, 6},       {PACK, 1003, 6}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].kind == d->kind && !find(d, needed[i].attribute, needed[i].type))
            return 0;
    return 1;
}

static descriptor *graph_of_plan(const descriptor *plan) {
    return part_of(plan, 401, 0)->graph;
}

API int cudnnBackendFinalize(void *descriptor_) {
    descriptor *d = descriptor_;
    if (!d || d->final || !complete(d))
        return BAD_PARAM;
    if (d->kind == PLAN && part_of(d, 401, 0)->engine == IMPOSSIBLE)
        return NOT_SUPPORTED;
    fake_cudnn_plans += d->kind == PLAN;
    d->final = 1;
    return OK;
}

API int cudnnBackendGetAttribute(void *descriptor_, int attribute, int type, int64_t room,
                                 int64_t *n, void *values) {
    descriptor *d = descriptor_, **parts = values;
    if (!d || (!d->final && d->kind != CONFIG) || (d->kind == CONFIG && !d->graph))
        return NOT_FINALIZED;
    if (attribute == 202 && type == 15) { /* configurations of a heuristic */
        static const int offered[2][3] = {{TENSOR_CORES, PLAIN, UNORDERED}, {SLOW, IMPOSSIBLE, -1}};
        descriptor *graph = part_of(d, 201, 0);
        const int *engines = offered[enum_of(d, 200, 8) == 2];
        *n = 0;
        for (int i = 0; i < 3 && engines[i] >= 0 && fuses(graph); i++, ++*n)
            if (i < room) {
                parts[i]->engine = engines[i];
                parts[i]->graph = graph;
                parts[i]->final = 1;
            }
        return OK;
    }
    if (attribute == 300 && type == 15 && room == 1) { /* the engine of a configuration */
        parts[0]->engine = d->engine;
        parts[0]->final = 1;
        *n = 1;
        return OK;
    }
    if (attribute == 1303 && type == 11 && room >= 1) {
        int note = d->engine == TENSOR_CORES ? 0 : 4;
        *n = d->engine == TENSOR_CORES || d->engine == UNORDERED;
        memcpy(values, &note, sizeof note * (size_t)*n);
        return OK;
    }
    if (attribute == 402 && type == 3) {
        int64_t bytes = 1024;
        memcpy(values, &bytes, sizeof bytes);
        *n = 1;
        return OK;
    }
    return BAD_PARAM;
}

/* --- running --- */

typedef struct tensor {
    int64_t id, dims[RANK], strides[RANK], count;
    int rank, type;
    void *at;
    double *inner; /* virtual: its values, as if dense */
} tensor;

typedef struct run {
    descriptor *graph;
    int engine;
    int n;
    tensor tensors[TENSORS];
} run;

static int type_of(const descriptor *t) {
    int type = enum_of(t, 901, 1);
    return type == 0 ? F32 : type == 2 ? F16 : BF16;
}

static tensor *tensor_of(run *r, const descriptor *d) {
    int64_t id = int_of(d, 906, 0);
    for (int i = 0; i < r->n; i++)
        if (r->tensors[i].id == id)
            return &r->tensors[i];
    tensor *t = &r->tensors[r->n++];
    *t = (tensor){.id = id, .type = type_of(d), .rank = (int)find(d, 902, 3)->n, .count = 1};
    for (int i = 0; i < t->rank; i++) {
        t->dims[i] = int_of(d, 902, i);
        t->strides[i] = int_of(d, 903, i);
        t->count += t->strides[i] * (t->dims[i] - 1);
    }
    return t;
}

static double get(const run *r, const tensor *t, const int64_t *index) {
    int64_t i = 0;
    for (int x = 0; x < t->rank; x++)
        i += (t->dims[x] == 1 ? 0 : index[x]) * t->strides[x];
    double v = t->inner ? t->inner[i] : fake_load(t->type, t->at, i);
    return r->engine == TENSOR_CORES && t->type == F32 && !t->inner ? rounded(v, 10, -126) : v;
}

static void put(const tensor *t, const int64_t *index, double v) {
    int64_t i = 0;
    for (int x = 0; x < t->rank; x++)
        i += index[x] * t->strides[x];
    if (t->inner)
        t->inner[i] = v;
    else
        fake_store(t->type, t->at, i, v);
}

static int step(const tensor *t, int64_t *index) {
    for (int x = t->rank - 1; x >= 0; x--) {
        if (++index[x] < t->dims[x])
            return 1;
        index[x] = 0;
    }
    return 0;
}

static void convolve(run *r, const descriptor *op) {
    const descriptor *c = part_of(op, 702, 0);
    const tensor *w = tensor_of(r, part_of(op, 703, 0)), *x = tensor_of(r, part_of(op, 704, 0));
    const tensor *y = tensor_of(r, part_of(op, 705, 0));
    int64_t groups = x->dims[1] / w->dims[1], index[RANK] = {0};
    do {
        int64_t tap[RANK] = {index[1]}, from[RANK] = {index[0]};
        double sum = 0;
        do {
            int inside = 1;
            from[1] = index[1] / (y->dims[1] / groups) * w->dims[1] + tap[1];
            for (int s = 2; s < y->rank; s++) {
                from[s] = index[s] * int_of(c, 103, s - 2) + tap[s] * int_of(c, 102, s - 2) -
                          int_of(c, 105, s - 2);
                inside &= from[s] >= 0 && from[s] < x->dims[s];
            }
            if (inside)
                sum += get(r, x, from) * get(r, w, tap);
        } while (step(w, tap) && tap[0] == index[1]);
        put(y, index, sum);
    } while (step(y, index));
}

static void pointwise(run *r, const descriptor *op) {
    int mode = enum_of(part_of(op, 750, 0), 0, 14);
    const descriptor *b = part_of(op, 752, 0);
    const tensor *x = tensor_of(r, part_of(op, 751, 0)), *y = tensor_of(r, part_of(op, 753, 0));
    int64_t index[RANK] = {0};
    do {
        double v = get(r, x, index);
        v = mode == 100 ? (v > 0 ? v : 0) : v + get(r, tensor_of(r, b), index);
        put(y, index, v);
    } while (step(y, index));
}

static void execute(void *argument) {
    run *r = argument;
    const value *ops = find(r->graph, 801, 15);
    for (int64_t i = 0; i < ops->n; i++) {
        const descriptor *op = part_of(r->graph, 801, i);
        if (op->kind == OP_CONV)
            convolve(r, op);
        else
            pointwise(r, op);
    }
}

/* Finds the memory of each tensor; 0: the pack lacks one, or it is not the GPU's. */
static int place(run *r, const descriptor *pack) {
    static const int parts[] = {703, 704, 705, 751, 752, 753};
    const value *ops = find(r->graph, 801, 15), *ids = find(pack, 1000, 3);
    for (int64_t o = 0; o < ops->n; o++)
        for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
            const descriptor *d = part_of(part_of(r->graph, 801, o), parts[p], 0);
            if (!d)
                continue;
            tensor *t = tensor_of(r, d);
            if (is_virtual(d)) {
                if (!t->inner)
                    t->inner = calloc((size_t)t->count, sizeof(double));
                continue;
            }
            for (int64_t i = 0; i < ids->n; i++)
                if (int_of(pack, 1000, i) == t->id)
                    memcpy(&t->at, find(pack, 1001, 6)->data + 8 * i, 8);
            if (!t->at || !fake_cuda_holds(t->at, (uint64_t)(t->count * bytes_of(t->type))))
                return 0;
        }
    return 1;
}

API int cudnnBackendExecute(void *handle, void *plan, void *pack) {
    static const double microseconds[] = {5, 20, 3, 50};
    if (!((descriptor *)plan)->final || !((descriptor *)pack)->final)
        return NOT_FINALIZED;
    run *r = calloc(1, sizeof *r);
    if (!r)
        return BAD_PARAM;
    r->graph = graph_of_plan(plan);
    r->engine = part_of(plan, 401, 0)->engine;
    if (!place(r, pack))
        return BAD_PARAM;
    fake_cuda_enqueue(*(void **)handle, execute, r, microseconds[r->engine]);
    return OK;
}
