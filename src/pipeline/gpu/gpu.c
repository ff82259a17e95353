/* Which GPU a model is made for, and what is known of it. */
#include "cost/cuda/gpu.h"
#include "codegen/cuda/nvrtc.h"
#include "cost/cost.h"
#include "cost/cuda/cost.h"
#include "pipeline/run.h"

/* Where none is named and none is here. */
static const char *const assumed = "H200";

/* The first GPU, by the libraries that the options say. */
static const po_cuda_options *first_device(const po_run *run) {
    po_cuda_options *options = PO_NEW(run->arena, po_cuda_options);
    *options = (po_cuda_options){.folder = run->options->cuda_folder};
    return options;
}

/* Of a GPU by the driver's name; the one that is assumed, with a note, where it has none. */
static const po_gpu *described(const po_run *run, const char *name) {
    const po_gpu *gpu = po_gpu_named(name);
    if (gpu)
        return gpu;
    po_record_note(run->record,
                   "of the GPU %s petopt has no description: estimates are for NVIDIA %s (--gpu)",
                   name, assumed);
    return po_gpu_named(assumed);
}

/* Readings of another GPU than the one that the model is made for say nothing. */
static bool is_asked_for(const po_run *run, const char *name) {
    const po_gpu *gpu = po_gpu_named(name);
    return !run->options->gpu || (gpu && strcmp(gpu->name, run->options->gpu) == 0);
}

static po_status take_recorded(po_run *run) {
    const char *file = run->options->replay;
    PO_TRY(po_cuda_cost_replay(run->ctx, run->arena, file, &run->gpu_cost));
    const char *name = run->gpu_cost->info.name;
    if (!is_asked_for(run, name))
        return po_fail(run->ctx, PO_BAD_USE, "--cost replay:%s: its readings are of %s, not of %s",
                       file, name, run->options->gpu);
    run->gpu = described(run, name);
    run->record->summary.gpu = name;
    return PO_OK;
}

static po_status take_own(po_run *run) {
    po_cuda_info info;
    const char *named = run->options->gpu;
    const po_cuda_options *device = first_device(run);
    PO_TRY(po_cuda_query(run->ctx, run->arena, device, &info));
    if (run->options->record && !info.has_gpu)
        return po_fail(run->ctx, PO_RUNTIME, "--cost record:%s: %s", run->options->record,
                       info.missing);
    if (run->options->record && !is_asked_for(run, info.name))
        return po_fail(run->ctx, PO_BAD_USE, "--cost record:%s: this GPU is %s, not %s",
                       run->options->record, info.name, named);
    if (info.has_gpu && is_asked_for(run, info.name)) {
        run->gpu = described(run, info.name);
        run->record->summary.gpu = po_arena_strdup(run->arena, info.name);
        if (run->options->model_cost)
            return PO_OK;
        po_cost *cost;
        PO_TRY(po_run_cost(run, &cost));
        return po_cuda_cost_open(run->ctx, run->arena, device, &info, cost->cache, &run->gpu_cost);
    }
    run->gpu = po_gpu_named(named ? named : assumed);
    if (!named)
        po_record_note(run->record, "estimates are for NVIDIA %s (--gpu): %s", assumed,
                       info.missing);
    return PO_OK;
}

po_status po_run_find_gpu(po_run *run) {
    PO_TRY(run->options->replay ? take_recorded(run) : take_own(run));
    if (!run->gpu)
        return po_fail(run->ctx, PO_INTERNAL, "the GPU has no description");
    if (!*run->record->summary.gpu)
        run->record->summary.gpu = po_arena_printf(run->arena, "NVIDIA %s", run->gpu->name);
    return PO_OK;
}

po_status po_run_nvrtc(const po_run *run, const po_nvrtc **nvrtc) {
    if (!run->services->nvrtc) {
        po_nvrtc *opened;
        bool here = run->gpu_cost && !run->gpu_cost->replay;
        PO_TRY(po_nvrtc_find(run->ctx, run->files, run->options->cuda_folder,
                             here ? run->gpu_cost->info.driver : NULL, &opened));
        run->services->nvrtc = opened;
    }
    *nvrtc = run->services->nvrtc;
    return PO_OK;
}
