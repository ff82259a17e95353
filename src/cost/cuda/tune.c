/* Capturing, timing what is captured, and choosing among ways by it. */
#include "cost/cuda/internal.h"

#include "cost/timing_internal.h"

#include <math.h>

/* Seconds of one timed launch, of runs in it: long enough for the events' resolution (0.5 us). */
static const double launch_aim = 200e-6;
enum { MOST_RUNS = 32, TAKES = 5, MOST_FINAL = 12 };
static const double near_best = 1.3; /* of the first reading, to be read again */

void *po_cuda_captured(po_cuda *cuda, bool (*issue)(void *own, uint32_t way), void *own,
                       uint32_t way, uint32_t times, size_t *nodes) {
    const po_cu *cu = cuda->cu;
    void *graph = NULL, *exec = NULL;
    if (cu->cuStreamBeginCapture_v2(cuda->stream, PO_CU_CAPTURE_RELAXED) != PO_CU_SUCCESS)
        return NULL;
    bool good = true;
    for (uint32_t i = 0; i < times && good; i++)
        good = issue(own, way);
    good &= cu->cuStreamEndCapture(cuda->stream, &graph) == PO_CU_SUCCESS && graph;
    if (good && nodes)
        good = cu->cuGraphGetNodes(graph, NULL, nodes) == PO_CU_SUCCESS;
    if (good && cu->cuGraphInstantiateWithFlags(&exec, graph, 0) != PO_CU_SUCCESS)
        exec = NULL;
    if (graph)
        cu->cuGraphDestroy(graph);
    return good ? exec : NULL;
}

double po_cuda_launch_seconds(po_cuda *cuda, void *exec, uint32_t launches) {
    const po_cu *cu = cuda->cu;
    void *from = NULL, *to = NULL;
    float milliseconds = -1;
    bool good = cu->cuEventCreate(&from, PO_CU_EVENT_DEFAULT) == PO_CU_SUCCESS &&
                cu->cuEventCreate(&to, PO_CU_EVENT_DEFAULT) == PO_CU_SUCCESS &&
                cu->cuEventRecord(from, cuda->stream) == PO_CU_SUCCESS;
    for (uint32_t i = 0; i < launches && good; i++)
        good = cu->cuGraphLaunch(exec, cuda->stream) == PO_CU_SUCCESS;
    good = good && cu->cuEventRecord(to, cuda->stream) == PO_CU_SUCCESS &&
           cu->cuEventSynchronize(to) == PO_CU_SUCCESS &&
           cu->cuEventElapsedTime(&milliseconds, from, to) == PO_CU_SUCCESS;
    if (from)
        cu->cuEventDestroy_v2(from);
    if (to)
        cu->cuEventDestroy_v2(to);
    return good ? fmax((double)milliseconds * 1e-3, 1e-9) : -1;
}

po_status po_cuda_workspace(po_ctx *ctx, po_cuda *cuda, uint64_t *memory) {
    if (!cuda->workspace)
        PO_TRY(po_cuda_alloc(ctx, cuda, cuda->arena, PO_CUDA_WORKSPACE, &cuda->workspace));
    *memory = cuda->workspace;
    return PO_OK;
}

typedef struct po_cuda_tuned {
    po_arena *arena;
    po_hash_map *of; /* by hash: place in the list */
    po_cuda_known *list;
    uint32_t n, cap;
} po_cuda_tuned;

po_cuda_known po_cuda_recall_way(const po_cuda *cuda, po_hash step) {
    const po_cuda_tuned *t = cuda->tuned;
    uint32_t at = t ? po_hash_map_get(t->of, step) : PO_NONE;
    return at == PO_NONE ? (po_cuda_known){PO_NONE, PO_NONE} : t->list[at];
}

void po_cuda_keep_way(po_cuda *cuda, po_hash step, po_cuda_known known) {
    if (!cuda->tuned) {
        cuda->tuned = PO_NEW(cuda->arena, po_cuda_tuned);
        cuda->tuned->arena = cuda->arena;
        cuda->tuned->of = po_hash_map_create(cuda->arena);
    }
    po_cuda_tuned *t = cuda->tuned;
    po_hash_map_put(t->of, step, t->n);
    PO_PUSH(t->arena, t->list, t->n, t->cap, known);
}

/* Seconds of one run; HUGE_VAL where this way does not run, or cannot be captured. */
static double first_reading(po_cuda *cuda, const po_cuda_work *work, uint32_t way) {
    void *exec = NULL;
    double seconds = -1;
    if (work->issue(work->own, way) && cuda->cu->cuStreamSynchronize(cuda->stream) == PO_CU_SUCCESS)
        exec = po_cuda_captured(cuda, work->issue, work->own, way, 1, NULL);
    if (exec && po_cuda_launch_seconds(cuda, exec, 1) > 0) {
        seconds = po_cuda_launch_seconds(cuda, exec, 1);
        seconds = fmin(seconds, po_cuda_launch_seconds(cuda, exec, 1));
    }
    if (exec)
        cuda->cu->cuGraphExecDestroy(exec);
    return seconds > 0 ? seconds : HUGE_VAL;
}

static double careful_reading(po_cuda *cuda, const po_cuda_work *work, uint32_t way, double about) {
    double runs = ceil(launch_aim / about), takes[TAKES];
    uint32_t times = runs < 1 ? 1 : runs > MOST_RUNS ? MOST_RUNS : (uint32_t)runs;
    void *exec = po_cuda_captured(cuda, work->issue, work->own, way, times, NULL);
    if (!exec || po_cuda_launch_seconds(cuda, exec, 1) < 0)
        return HUGE_VAL;
    bool good = true;
    for (int i = 0; i < TAKES; i++) {
        takes[i] = po_cuda_launch_seconds(cuda, exec, 1) / times;
        good &= takes[i] > 0;
    }
    cuda->cu->cuGraphExecDestroy(exec);
    return good ? po_median(takes, TAKES) : HUGE_VAL;
}

po_status po_cuda_tune(po_ctx *ctx, po_cuda *cuda, po_cuda_work *work) {
    double seconds[PO_CUDA_MOST_WAYS], best = HUGE_VAL;
    uint32_t n = work->n < PO_CUDA_MOST_WAYS ? work->n : PO_CUDA_MOST_WAYS;
    for (uint32_t i = 0; i < n; i++) {
        PO_TRY(po_ctx_poll(ctx));
        seconds[i] = first_reading(cuda, work, i);
        best = fmin(best, seconds[i]);
    }
    if (!(best < HUGE_VAL))
        return po_fail(ctx, PO_UNSUPPORTED, "%s: none of the library's %u algorithms runs on %s",
                       work->what, n, cuda->info.name);
    double limit = near_best * best;
    work->seconds = HUGE_VAL;
    for (uint32_t i = 0, looked = 0; i < n && looked < MOST_FINAL; i++) {
        if (seconds[i] > limit)
            continue;
        looked++;
        double s = careful_reading(cuda, work, i, seconds[i]);
        if (s < work->seconds) {
            work->seconds = s;
            work->chosen = i;
        }
    }
    if (!(work->seconds < HUGE_VAL))
        return po_fail(ctx, PO_RUNTIME, "%s: timing it on %s failed", work->what, cuda->info.name);
    return PO_OK;
}
