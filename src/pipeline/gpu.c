/* Which GPU a model is made for. */
#include "cost/gpu.h"
#include "cost/cuda.h"
#include "pipeline/pipeline.h"

/* Where none is named and none is here. */
static const char *const assumed = "H200";

po_status po_pipeline_gpu(po_run_state *state) {
    const char *name = state->options->gpu;
    po_summary *s = &state->record->summary;
    if (!name) {
        const po_cuda_options options = {.device = 0};
        po_cuda_info info;
        PO_TRY(po_cuda_look(state->ctx, state->arena, &options, &info));
        const po_gpu *own = info.has_gpu ? po_gpu_named(info.name) : NULL;
        name = own ? own->name : assumed;
        if (info.has_gpu && !own)
            po_record_note(state->record,
                           "of this machine's GPU, %s, petopt has no description: estimates are "
                           "for NVIDIA %s (--gpu)",
                           info.name, name);
        else if (!own)
            po_record_note(state->record, "estimates are for NVIDIA %s (--gpu): %s", name,
                           info.missing);
    }
    state->gpu = po_gpu_named(name);
    if (!state->gpu)
        return po_fail(state->ctx, PO_INTERNAL, "GPU '%s' has no description", name);
    s->gpu = po_arena_printf(state->arena, "NVIDIA %s", state->gpu->name);
    return PO_OK;
}
