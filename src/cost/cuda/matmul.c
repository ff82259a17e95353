/* Products by cuBLASLt. It takes matrices by columns: a matrix by rows is its transpose there, so
 * y = a b is asked for as y' = b' a'. */
#include "cost/cuda/internal.h"

typedef struct matmul {
    po_cuda *cuda;
    const po_cuda_matmul *m;
    void *desc, *a, *b, *c, *y, *preference;
    uint64_t at_a, at_b, at_c, at_y, workspace;
    uint32_t n;
    po_lt_heuristic ways[PO_CUDA_MOST_WAYS];
} matmul;

static int type_of(po_mu_type type) {
    return type == PO_MU_F16 ? PO_LT_R_16F : type == PO_MU_BF16 ? PO_LT_R_16BF : PO_LT_R_32F;
}

static void destroy(void *user) {
    const matmul *w = user;
    const po_lt *lt = w->cuda->lt;
    void *const layouts[] = {w->a, w->b, w->c, w->y};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i])
            lt->cublasLtMatrixLayoutDestroy(layouts[i]);
    if (w->preference)
        lt->cublasLtMatmulPreferenceDestroy(w->preference);
    if (w->desc)
        lt->cublasLtMatmulDescDestroy(w->desc);
}

static bool issue(void *own, uint32_t way) {
    static const float one = 1, zero = 0;
    const matmul *w = own;
    const po_lt *lt = w->cuda->lt;
    const po_lt_heuristic *h = &w->ways[way];
    /* Without c, y stands for it: multiplied by 0, it is not read. */
    bool adds = w->m->c.buffer != PO_NONE;
    uint64_t c = adds ? w->at_c : w->at_y;
    return lt->cublasLtMatmul(w->cuda->lt_handle, w->desc, &one, (const void *)w->at_b, w->b,
                              (const void *)w->at_a, w->a, adds ? &one : &zero, (const void *)c,
                              adds ? w->c : w->y, (void *)w->at_y, w->y, &h->algorithm,
                              h->workspace ? (void *)w->workspace : NULL, h->workspace,
                              w->cuda->stream) == 0;
}

/* A matrix of rows x columns by rows. */
static int make_layout(const po_lt *lt, const po_cuda_matmul *m, int64_t rows, int64_t columns,
                       int64_t apart, int64_t step, void **layout) {
    int32_t batch = (int32_t)m->batch;
    int r = lt->cublasLtMatrixLayoutCreate(layout, type_of(m->type), (uint64_t)columns,
                                           (uint64_t)rows, apart);
    if (r == 0 && batch > 1)
        r = lt->cublasLtMatrixLayoutSetAttribute(*layout, PO_LT_LAYOUT_BATCH, &batch, sizeof batch);
    if (r == 0 && batch > 1)
        r = lt->cublasLtMatrixLayoutSetAttribute(*layout, PO_LT_LAYOUT_BATCH_STRIDE, &step,
                                                 sizeof step);
    return r;
}

static int make_layouts(const po_lt *lt, matmul *w) {
    const po_cuda_matmul *m = w->m;
    int r = make_layout(lt, m, m->turn_a ? m->k : m->m, m->turn_a ? m->m : m->k, m->apart_a,
                        m->step_a, &w->a);
    if (r == 0)
        r = make_layout(lt, m, m->turn_b ? m->n : m->k, m->turn_b ? m->k : m->n, m->apart_b,
                        m->step_b, &w->b);
    if (r == 0)
        r = make_layout(lt, m, m->m, m->n, m->apart_y, m->step_y, &w->y);
    if (r == 0 && m->c.buffer != PO_NONE)
        r = make_layout(lt, m, m->m, m->n, m->apart_c, m->step_c, &w->c);
    return r;
}

static int set(const po_lt *lt, void *desc, int attribute, const void *value, size_t bytes) {
    return lt->cublasLtMatmulDescSetAttribute(desc, attribute, value, bytes);
}

static int make_desc(const po_lt *lt, matmul *w, uint64_t bias) {
    const po_cuda_matmul *m = w->m;
    int32_t turned = PO_LT_OP_T;
    uint32_t epilogue = (bias ? (uint32_t)PO_LT_EPILOGUE_BIAS : 0) |
                        (m->act == PO_CUDA_RELU        ? (uint32_t)PO_LT_EPILOGUE_RELU
                         : m->act == PO_CUDA_GELU_TANH ? (uint32_t)PO_LT_EPILOGUE_GELU
                                                       : 0);
    int compute = m->type == PO_MU_F32 && m->tf32 ? PO_LT_COMPUTE_32F_FAST_TF32 : PO_LT_COMPUTE_32F;
    int r = lt->cublasLtMatmulDescCreate(&w->desc, compute, PO_LT_R_32F);
    if (r == 0 && m->turn_b) /* the first there is b */
        r = set(lt, w->desc, PO_LT_DESC_TRANSA, &turned, sizeof turned);
    if (r == 0 && m->turn_a)
        r = set(lt, w->desc, PO_LT_DESC_TRANSB, &turned, sizeof turned);
    if (r == 0 && epilogue)
        r = set(lt, w->desc, PO_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (r == 0 && bias) {
        int32_t type = type_of(m->type);
        r = set(lt, w->desc, PO_LT_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (r == 0)
            r = set(lt, w->desc, PO_LT_DESC_BIAS_TYPE, &type, sizeof type);
    }
    return r;
}

static int find_ways(const po_lt *lt, matmul *w) {
    uint64_t room = PO_CUDA_WORKSPACE;
    int n = 0;
    int r = lt->cublasLtMatmulPreferenceCreate(&w->preference);
    if (r == 0)
        r = lt->cublasLtMatmulPreferenceSetAttribute(w->preference, PO_LT_PREF_WORKSPACE, &room,
                                                     sizeof room);
    if (r == 0)
        r = lt->cublasLtMatmulAlgoGetHeuristic(w->cuda->lt_handle, w->desc, w->b, w->a,
                                               w->c ? w->c : w->y, w->y, w->preference,
                                               PO_CUDA_MOST_WAYS, w->ways, &n);
    for (int i = 0; r == 0 && i < n; i++)
        if (w->ways[i].state == 0 && w->ways[i].workspace <= room)
            w->ways[w->n++] = w->ways[i];
    return r;
}

static uint64_t place(const uint64_t *memory, po_cuda_place p) {
    return p.buffer == PO_NONE ? 0 : memory[p.buffer] + (uint64_t)p.offset;
}

po_status po_cuda_matmul_work(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const po_cuda_step *step,
                              const uint64_t *memory, po_cuda_work *work) {
    PO_TRY(po_cuda_need_cublas(ctx, cuda));
    matmul *w = PO_NEW(arena, matmul);
    w->cuda = cuda;
    w->m = &step->u.matmul;
    po_arena_defer(arena, destroy, w);
    PO_TRY(po_cuda_workspace(ctx, cuda, &w->workspace));
    w->at_a = place(memory, w->m->a);
    w->at_b = place(memory, w->m->b);
    w->at_c = place(memory, w->m->c);
    w->at_y = place(memory, w->m->y);
    int r = make_desc(cuda->lt, w, place(memory, w->m->bias));
    if (r == 0)
        r = make_layouts(cuda->lt, w);
    if (r == 0)
        r = find_ways(cuda->lt, w);
    if (r != 0 || w->n == 0)
        return po_fail(ctx, PO_UNSUPPORTED, "%s: cuBLAS %s has no algorithm for it%s%s", step->what,
                       cuda->info.cublas, r ? ": " : "",
                       r ? cuda->lt->cublasLtGetStatusString(r) : "");
    *work = (po_cuda_work){.what = step->what, .n = w->n, .own = w, .issue = issue};
    return PO_OK;
}
