/* Which GPU a model is made for, and what is known of it. */
#include "cost/cuda/gpu.h"
#include "codegen/cuda/nvrtc.h"
#include "cost/cost.h"
#include "cost/cuda/cost.h"
#include "pipeline/options.h"
#include "pipeline/pipeline.h"

/* Where none is named and none is here. */
static const char *const assumed = "H200";

/* The first GPU, by the libraries that the options say. */
static const po_cuda_options *first_device(const po_run_state *state) {
    po_cuda_options *options = PO_NEW(state->arena, po_cuda_options);
    *options = (po_cuda_options){.folder = state->options->cuda_folder};
    return options;
}

/* Of a GPU by the driver's name; the one that is assumed, with a note, where it has none. */
static const po_gpu *described(po_run_state *state, const char *name) {
    const po_gpu *gpu = po_gpu_named(name);
    if (gpu)
        return gpu;
    po_record_note(state->record,
                   "of the GPU %s petopt has no description: estimates are for NVIDIA %s (--gpu)",
                   name, assumed);
    return po_gpu_named(assumed);
}

/* Readings of another GPU than the one that the model is made for say nothing. */
static bool is_asked_for(const po_run_state *state, const char *name) {
    const po_gpu *gpu = po_gpu_named(name);
    return !state->options->gpu || (gpu && strcmp(gpu->name, state->options->gpu) == 0);
}

static po_status take_recorded(po_run_state *state) {
    const char *file = state->options->replay;
    PO_TRY(po_cuda_cost_replay(state->ctx, state->arena, file, &state->gpu_cost));
    const char *name = state->gpu_cost->info.name;
    if (!is_asked_for(state, name))
        return po_fail(state->ctx, PO_BAD_USE,
                       "--cost replay:%s: its readings are of %s, not of %s", file, name,
                       state->options->gpu);
    state->gpu = described(state, name);
    state->record->summary.gpu = name;
    return PO_OK;
}

static po_status take_own(po_run_state *state) {
    po_cuda_info info;
    const char *named = state->options->gpu;
    const po_cuda_options *device = first_device(state);
    PO_TRY(po_cuda_query(state->ctx, state->arena, device, &info));
    if (state->options->record && !info.has_gpu)
        return po_fail(state->ctx, PO_RUNTIME, "--cost record:%s: %s", state->options->record,
                       info.missing);
    if (state->options->record && !is_asked_for(state, info.name))
        return po_fail(state->ctx, PO_BAD_USE, "--cost record:%s: this GPU is %s, not %s",
                       state->options->record, info.name, named);
    if (info.has_gpu && is_asked_for(state, info.name)) {
        state->gpu = described(state, info.name);
        state->record->summary.gpu = po_arena_strdup(state->arena, info.name);
        if (state->options->model_cost)
            return PO_OK;
        po_cost *cost;
        PO_TRY(po_pipeline_cost(state, &cost));
        return po_cuda_cost_open(state->ctx, state->arena, device, &info, cost->cache,
                                 &state->gpu_cost);
    }
    state->gpu = po_gpu_named(named ? named : assumed);
    if (!named)
        po_record_note(state->record, "estimates are for NVIDIA %s (--gpu): %s", assumed,
                       info.missing);
    return PO_OK;
}

po_status po_pipeline_gpu(po_run_state *state) {
    PO_TRY(state->options->replay ? take_recorded(state) : take_own(state));
    if (!state->gpu)
        return po_fail(state->ctx, PO_INTERNAL, "the GPU has no description");
    if (!*state->record->summary.gpu)
        state->record->summary.gpu = po_arena_printf(state->arena, "NVIDIA %s", state->gpu->name);
    return PO_OK;
}

po_status po_pipeline_nvrtc(po_run_state *state, const po_nvrtc **nvrtc) {
    if (!state->nvrtc) {
        po_nvrtc *opened;
        bool here = state->gpu_cost && !state->gpu_cost->replay;
        PO_TRY(po_nvrtc_find(state->ctx, state->files, state->options->cuda_folder,
                             here ? state->gpu_cost->info.driver : NULL, &opened));
        state->nvrtc = opened;
    }
    *nvrtc = state->nvrtc;
    return PO_OK;
}
