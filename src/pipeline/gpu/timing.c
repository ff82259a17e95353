/* Plans graphs and asks for the readings of all plans at once. A graph that no library and no
 * kernel can do has a reason in place of its seconds. */
#include "pipeline/gpu/timing.h"

#include "pipeline/kernels/stage.h"

po_status po_gpu_plan_graph(const po_run *run, po_arena *arena, const po_graph *graph,
                            const po_gpu_given *given, uint32_t n_given, bool fuse,
                            uint32_t *stand_ins, const po_cuda_plan **plan) {
    po_gpu_model *model = PO_NEW(arena, po_gpu_model);
    po_kept_objects cubins = {run->gpu_cost->cache, "cubin"};
    const po_object_store images = po_kernel_stage_store(&cubins);
    po_gpu_model_options options = {.gpu = run->gpu,
                                    .arch = run->gpu_cost->info.arch,
                                    .tf32 = run->options->tf32,
                                    .fuse = fuse,
                                    .stand_ins = stand_ins != NULL,
                                    .given = given,
                                    .n_given = n_given};
    if (!run->gpu_cost->replay) { /* new readings can be made */
        PO_TRY(po_run_nvrtc(run, &options.nvrtc));
        options.images = &images;
    }
    PO_TRY(po_gpu_model_make(run->ctx, arena, graph, &options, NULL, model));
    *plan = &model->plan;
    if (!stand_ins)
        return PO_OK;
    *stand_ins = 0;
    for (uint32_t i = 0; i < model->n_units; i++)
        *stand_ins += model->units[i].kind == PO_GPU_STAND_IN;
    return PO_OK;
}

po_status po_gpu_graphs_seconds(const po_run *run, po_arena *arena, const po_graph *const *graphs,
                                uint32_t n, bool fuse, double *seconds, const char **why) {
    const po_cuda_plan **plans = PO_NEW_N(arena, const po_cuda_plan *, n + 1);
    double *read = PO_NEW_N(arena, double, n + 1);
    const char **unread = PO_NEW_N(arena, const char *, n + 1);
    uint32_t *of = PO_NEW_N(arena, uint32_t, n + 1), n_plans = 0;
    for (uint32_t i = 0; i < n; i++) {
        seconds[i] = 0;
        why[i] = NULL;
        po_status status =
            po_gpu_plan_graph(run, arena, graphs[i], NULL, 0, fuse, NULL, &plans[n_plans]);
        if (status == PO_OK) {
            of[n_plans++] = i;
            continue;
        }
        if (status != PO_UNSUPPORTED)
            return status;
        why[i] = po_arena_strdup(arena, run->ctx->error.message);
        po_ctx_clear(run->ctx);
    }
    PO_TRY(po_cuda_cost_plans(run->ctx, arena, run->gpu_cost, plans, n_plans, read, unread));
    for (uint32_t k = 0; k < n_plans; k++) {
        seconds[of[k]] = read[k];
        why[of[k]] = unread[k];
    }
    return PO_OK;
}

po_status po_gpu_graph_seconds(const po_run *run, po_arena *arena, const po_graph *graph, bool fuse,
                               bool *known, double *seconds, const char **why) {
    const po_graph *const graphs[1] = {graph};
    PO_TRY(po_gpu_graphs_seconds(run, arena, graphs, 1, fuse, seconds, why));
    *known = *seconds > 0;
    return PO_OK;
}
