/* po_optimise and its result. */
#include "codegen/compile.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/delivery/library.h"
#include "cost/cache.h"
#include "pipeline/api/api.h"
#include "pipeline/budget.h"
#include "pipeline/pipeline.h"
#include "pipeline/proving.h"

#include <stdlib.h>

struct po_result {
    po_arena *arena; /* owns every graph of the run */
    po_model model;  /* around the graph that won */
    po_model *in;
    po_proof_report proof;
    const po_graph *recipes;   /* in the arena */
    const po_library *library; /* that the winner needs to be fast; NULL: none */
    const char *kernels;       /* folder for it, in the arena */
    po_summary summary;
};

typedef struct optimise_args {
    po_model *model;
    const po_options *options;
    const po_callbacks *callbacks;
    po_result *result;
    po_run run;
    po_optimised made;
} optimise_args;

/* Before any work is done for kernels that could not be compiled. */
static po_status check_nvrtc(po_ctx *ctx, const po_options *options) {
    po_nvrtc *nvrtc;
    po_arena *arena = po_arena_create(ctx);
    po_status status = po_nvrtc_find(ctx, arena, options->cuda_folder, NULL, &nvrtc);
    po_arena_free(arena);
    return status;
}

static po_status check_options(po_ctx *ctx, const po_model *model, const po_options *options) {
    int64_t opset = po_model_opset(model, "");
    if (options->opset > 0 && options->opset < opset)
        return po_fail(ctx, PO_BAD_USE, "--opset %lld: the model's operator set is %lld already",
                       (long long)options->opset, (long long)opset);
    if (!options->cuda && (options->gpu || options->tf32 || options->replay || options->record ||
                           options->cuda_folder))
        return po_fail(ctx, PO_BAD_USE, "%s is for --target cuda",
                       options->gpu           ? "--gpu"
                       : options->tf32        ? "--tf32"
                       : options->cuda_folder ? "--cuda-libraries"
                       : options->record      ? "--cost record"
                                              : "--cost replay");
    if (options->kernels) {
        PO_TRY(po_library_check_folder(ctx, options->kernels, NULL));
        PO_TRY(po_cc_check(ctx, options->cc, NULL));
    }
    return options->kernels && options->cuda ? check_nvrtc(ctx, options) : PO_OK;
}

/* A cache that is named and cannot be used ends the run before it begins; the default one is done
 * without, and the user hears of it where others could have written it. */
static po_status check_cache(const po_run *run) {
    const char *path = po_options_cache(run->options);
    if (run->options->level < 1 || (path && !*path))
        return PO_OK;
    po_cache *cache;
    po_arena *arena = po_arena_create(run->ctx);
    PO_TRY(po_cache_open(run->ctx, arena, path, &cache));
    if (po_cache_refused(cache))
        po_record_note(run->record, "%s", po_cache_refused(cache));
    po_arena_free(arena);
    return PO_OK;
}

/* What the winner brings with it. */
static void take_library(optimise_args *args) {
    const po_run *run = &args->run;
    const po_optimised *made = &args->made;
    po_summary *s = &run->record->summary;
    int64_t ir = made->winner.graph->model->ir_version;
    if (*made->no_kernels)
        po_record_note(run->record, "no kernels are written: %s", made->no_kernels);
    if (!made->library || made->winner.graph->n_functions == 0)
        return;
    args->result->library = made->library;
    args->result->kernels = po_arena_strdup(run->arena, args->options->kernels);
    s->library = po_arena_printf(run->arena, "%s/" PO_LIBRARY_NAME, args->options->kernels);
    s->n_kernels = made->winner.graph->n_functions;
    if (ir < PO_FUNCTION_IR)
        po_record_note(run->record,
                       "the model's IR version rises from %lld to %d, the first with functions",
                       (long long)ir, PO_FUNCTION_IR);
}

static po_status optimise_body(po_ctx *ctx, void *user) {
    optimise_args *args = user;
    po_run *run = &args->run;
    double start = po_now();
    po_api_bind_model(args->model, ctx);
    const po_options *o = args->options;
    PO_TRY(check_options(ctx, args->model, o));
    ctx->threads = po_options_threads(o);
    ctx->deadline = start + po_budget_limit(o);
    po_arena *arena = po_arena_create(ctx);
    po_arena_keep(arena);
    args->result->arena = arena;
    po_run_begin(run, ctx, o, arena, start);
    run->callbacks = args->callbacks;
    po_summary *s = &run->record->summary;
    s->level = o->level;
    s->threads = ctx->threads;
    s->tolerance = o->tolerance;
    PO_TRY(check_cache(run));
    if (o->cuda)
        PO_TRY(po_run_find_gpu(run));
    PO_TRY(po_pipeline_run(run, args->model->graph, &args->made));
    s->changed = args->made.winner.graph != args->made.original;
    take_library(args);
    po_record_finish(run->record, args->model->graph, args->made.winner.graph);
    s->seconds = po_now() - start;
    return PO_OK;
}

po_status po_optimise(po_model *model, const po_options *options, const po_callbacks *callbacks,
                      po_result **result, po_error *error) {
    *result = NULL;
    po_result *r = calloc(1, sizeof *r);
    if (!r)
        return po_api_error(error, PO_NO_MEMORY, "memory ran out");
    po_ctx ctx;
    po_api_context(&ctx, callbacks);
    po_options defaults = po_options_default();
    optimise_args args = {.model = model,
                          .options = options ? options : &defaults,
                          .callbacks = callbacks,
                          .result = r};
    po_status status = po_api_call(&ctx, optimise_body, &args, error);
    if (status != PO_OK) {
        po_result_free(r);
        return status;
    }
    r->summary = args.run.record->summary;
    r->model = *model;
    r->in = model;
    r->proof = args.made.winner.proof;
    r->recipes = args.made.winner.recipes;
    r->model.graph =
        args.made.winner.graph == model->graph ? model->graph : (po_graph *)args.made.winner.graph;
    *result = r;
    return PO_OK;
}

double po_options_seconds(const po_options *options) {
    po_options defaults = po_options_default();
    return po_budget_limit(options ? options : &defaults);
}

const po_summary *po_result_summary(const po_result *result) {
    return &result->summary;
}

typedef struct save_args {
    po_result *result;
    const char *path;
    bool (*ready)(void *user);
    void *user;
} save_args;

static po_status save_body(po_ctx *ctx, void *user) {
    save_args *args = user;
    po_result *r = args->result;
    po_api_bind_model(&r->model, ctx);
    po_certify certify = {r->in, r->model.graph, r->recipes, &r->proof, &r->summary, r->library};
    po_export_options options = {.certify = po_proving_certify, .certify_user = &certify};
    po_library_saving *saving = NULL;
    po_export *written;
    po_arena *arena = po_arena_create(ctx);
    po_commit *commit = po_commit_create(ctx, arena, NULL);
    if (r->library)
        PO_TRY(po_library_begin(ctx, po_arena_create(ctx), r->library, NULL, r->kernels, args->path,
                                &saving));
    PO_TRY(po_export_begin(ctx, arena, r->model.graph, args->path,
                           r->summary.changed ? &options : NULL, commit, &written));
    if (saving)
        po_library_join(saving, commit);
    if (args->ready && !args->ready(args->user))
        return po_fail(ctx, PO_CANCELLED, "cancelled");
    PO_TRY(po_commit_run(commit));
    po_export_end(written, NULL);
    po_commit_keep(commit);
    return PO_OK;
}

po_status po_result_save_if(po_result *result, const char *path, bool (*ready)(void *user),
                            void *user, po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    save_args args = {result, path, ready, user};
    return po_api_call(&ctx, save_body, &args, error);
}

po_status po_result_save(po_result *result, const char *path, po_error *error) {
    return po_result_save_if(result, path, NULL, NULL, error);
}

typedef struct check_args {
    const po_options *options;
    const char *path;
} check_args;

static po_status check_output(po_ctx *ctx, void *user) {
    const check_args *args = user;
    PO_TRY(po_writer_try(ctx, args->path));
    const char *kernels = args->options ? args->options->kernels : NULL;
    return kernels ? po_library_check_folder(ctx, kernels, args->path) : PO_OK;
}

po_status po_options_check_output(const po_options *options, const char *path, po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    check_args args = {options, path};
    return po_api_call(&ctx, check_output, &args, error);
}

po_model *po_result_model(po_result *result) {
    return &result->model;
}

void po_result_free(po_result *result) {
    if (!result)
        return;
    po_arena_free(result->arena);
    free(result);
}
