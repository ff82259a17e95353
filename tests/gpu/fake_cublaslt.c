/* libcublasLt.so.13 on the fake driver: products by three loops, over matrices by columns as
 * cuBLASLt has them. It offers four algorithms: a slow one, a fast one, one that fails when it runs
 * and one that its heuristics call impossible. With FAKE_WRONG the fast one is wrong in a place. */
#include "fake_cuda.h"
#include "fake_numbers.h"

#include <stddef.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
enum { OK = 0, INVALID = 7, NOT_SUPPORTED = 15, FAILED = 13 };
enum { SLOW, FAST, FAILS, NEVER, WAYS };

typedef struct desc {
    int compute, scale;
    int32_t turn_a, turn_b, bias_type;
    uint32_t epilogue;
    uint64_t bias;
} desc;

typedef struct layout {
    int type;
    uint64_t rows, columns;
    int64_t apart, step;
    int32_t batch;
} layout;

typedef struct heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} heuristic;

static int handle_of_all;

API size_t cublasLtGetVersion(void) {
#ifdef FAKE_OLDER
    return 120401;
#else
    return 130100;
#endif
}

API const char *cublasLtGetStatusString(int status) {
    return status == NOT_SUPPORTED ? "not supported" : "invalid value";
}

API int cublasLtCreate(void **handle) {
    *handle = &handle_of_all;
    return OK;
}

API int cublasLtDestroy(void *handle) {
    return handle == &handle_of_all ? OK : INVALID;
}

API int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    desc *d = calloc(1, sizeof *d);
    if (!d || scale != F32 || (compute != 68 && compute != 77))
        return INVALID;
    *d = (desc){.compute = compute, .scale = scale, .epilogue = 1, .bias_type = -1};
    *out = d;
    return OK;
}

API int cublasLtMatmulDescDestroy(void *d) {
    free(d);
    return OK;
}

static int take(void *to, size_t size, const void *value, size_t bytes) {
    if (bytes != size || !value)
        return INVALID;
    memcpy(to, value, size);
    return OK;
}

API int cublasLtMatmulDescSetAttribute(void *desc_, int attribute, const void *value,
                                       size_t bytes) {
    desc *d = desc_;
    switch (attribute) {
    case 3:
        return take(&d->turn_a, 4, value, bytes);
    case 4:
        return take(&d->turn_b, 4, value, bytes);
    case 7:
        return take(&d->epilogue, 4, value, bytes);
    case 8:
        return take(&d->bias, 8, value, bytes);
    case 26:
        return take(&d->bias_type, 4, value, bytes);
    default:
        return INVALID;
    }
}

API int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns,
                                   int64_t apart) {
    layout *l = calloc(1, sizeof *l);
    if (!l || apart < (int64_t)rows)
        return INVALID;
    *l = (layout){type, rows, columns, apart, 0, 1};
    *out = l;
    return OK;
}

API int cublasLtMatrixLayoutDestroy(void *l) {
    free(l);
    return OK;
}

API int cublasLtMatrixLayoutSetAttribute(void *layout_, int attribute, const void *value,
                                         size_t bytes) {
    layout *l = layout_;
    return attribute == 5   ? take(&l->batch, 4, value, bytes)
           : attribute == 6 ? take(&l->step, 8, value, bytes)
                            : INVALID;
}

API int cublasLtMatmulPreferenceCreate(void **out) {
    *out = calloc(1, sizeof(uint64_t));
    return *out ? OK : FAILED;
}

API int cublasLtMatmulPreferenceDestroy(void *p) {
    free(p);
    return OK;
}

API int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value,
                                             size_t bytes) {
    return attribute == 1 ? take(p, 8, value, bytes) : INVALID;
}

/* Rows and columns of op(matrix). */
static uint64_t rows_of(const layout *l, int turned) {
    return turned ? l->columns : l->rows;
}

static uint64_t columns_of(const layout *l, int turned) {
    return turned ? l->rows : l->columns;
}

static int fits(const desc *d, const layout *a, const layout *b, const layout *c, const layout *y) {
    return rows_of(a, d->turn_a) == y->rows && columns_of(b, d->turn_b) == y->columns &&
           columns_of(a, d->turn_a) == rows_of(b, d->turn_b) && c->rows == y->rows &&
           c->columns == y->columns && a->batch == y->batch && b->batch == y->batch &&
           c->batch == y->batch && a->type == y->type && b->type == y->type &&
           (d->bias == 0) == ((d->epilogue & 4) == 0) && (d->bias == 0 || d->bias_type == y->type);
}

API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *d, void *a, void *b, void *c, void *y,
                                       void *preference, int room, void *results, int *n) {
    heuristic *h = results;
    (void)handle;
    *n = 0;
    if (!preference || !fits(d, a, b, c, y))
        return NOT_SUPPORTED;
    for (uint64_t i = 0; i < WAYS && *n < room; i++) {
        h[i] = (heuristic){.algorithm = {i}, .workspace = i == FAST ? 4096 : 0};
        h[i].state = i == NEVER ? NOT_SUPPORTED : OK;
        ++*n;
    }
    return OK;
}

typedef struct product {
    desc d;
    layout a, b, c, y;
    float alpha, beta;
    const void *at_a, *at_b, *at_c;
    void *at_y;
    int wrong;
} product;

static int64_t index_of(const layout *l, int turned, uint64_t row, uint64_t column, int32_t batch) {
    uint64_t r = turned ? column : row, c = turned ? row : column;
    return (int64_t)batch * l->step + (int64_t)c * l->apart + (int64_t)r;
}

static double factor(const product *p, const layout *l, const void *at, int64_t i) {
    double v = fake_load(l->type, at, i);
    return p->d.compute == 77 ? rounded(v, 10, -126) : v;
}

static void multiply(void *argument) {
    const product *p = argument;
    uint64_t depth = columns_of(&p->a, p->d.turn_a);
    for (int32_t n = 0; n < p->y.batch; n++)
        for (uint64_t c = 0; c < p->y.columns; c++)
            for (uint64_t r = 0; r < p->y.rows; r++) {
                double sum = 0;
                for (uint64_t k = 0; k < depth; k++)
                    sum += factor(p, &p->a, p->at_a, index_of(&p->a, p->d.turn_a, r, k, n)) *
                           factor(p, &p->b, p->at_b, index_of(&p->b, p->d.turn_b, k, c, n));
                sum *= (double)p->alpha;
                if (p->beta != 0)
                    sum += (double)p->beta *
                           fake_load(p->c.type, p->at_c, index_of(&p->c, 0, r, c, n));
                if (p->d.bias)
                    sum +=
                        fake_load(p->d.bias_type, (const void *)(uintptr_t)p->d.bias, (int64_t)r);
                if (p->d.epilogue & 2)
                    sum = sum > 0 ? sum : 0;
                if (p->d.epilogue & 32)
                    sum = 0.5 * sum *
                          (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
                if (p->wrong && r + 1 == p->y.rows && c + 1 == p->y.columns)
                    sum *= 1.01;
                fake_store(p->y.type, p->at_y, index_of(&p->y, 0, r, c, n), sum);
            }
}

static int held(const layout *l, const void *at) {
    int64_t last = (l->batch - 1) * l->step + ((int64_t)l->columns - 1) * l->apart;
    return fake_cuda_holds(at, (uint64_t)(last + (int64_t)l->rows) * (uint64_t)bytes_of(l->type));
}

API int cublasLtMatmul(void *handle, void *d, const void *alpha, const void *a, void *a_layout,
                       const void *b, void *b_layout, const void *beta, const void *c,
                       void *c_layout, void *y, void *y_layout, const void *algorithm,
                       void *workspace, size_t workspace_bytes, void *stream) {
    static const double microseconds[] = {30, 7, 1, 1};
    uint64_t way;
    (void)handle;
    memcpy(&way, algorithm, sizeof way);
    if (!fits(d, a_layout, b_layout, c_layout, y_layout) || way >= FAILS)
        return way == FAILS ? FAILED : INVALID;
    if (way == FAST && (workspace_bytes < 4096 || !fake_cuda_holds(workspace, 4096)))
        return INVALID;
    if (!held(a_layout, a) || !held(b_layout, b) || !held(c_layout, c) || !held(y_layout, y))
        return INVALID;
    product *p = calloc(1, sizeof *p);
    if (!p)
        return FAILED;
    *p = (product){.d = *(const desc *)d,
                   .a = *(const layout *)a_layout,
                   .b = *(const layout *)b_layout,
                   .c = *(const layout *)c_layout,
                   .y = *(const layout *)y_layout,
                   .at_a = a,
                   .at_b = b,
                   .at_c = c,
                   .at_y = y};
    memcpy(&p->alpha, alpha, sizeof p->alpha);
    memcpy(&p->beta, beta, sizeof p->beta);
#ifdef FAKE_WRONG
    p->wrong = way == FAST;
#endif
    fake_cuda_enqueue(stream, multiply, p, microseconds[way]);
    return OK;
}
