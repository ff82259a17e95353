/* po_models_verify and po_models_bench. */
#include "cost/cost.h"
#include "cost/kernels.h"
#include "import/import.h"
#include "ops/op.h"
#include "pipeline/api/api.h"
#include "pipeline/api/check_data.h"
#include "pipeline/pin.h"
#include "pipeline/proving.h"
#include "select/lengths.h"
#include "verify/verify.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct check_args {
    const char *const *paths;
    size_t count;
    const po_options *options;
    po_equality *verdict;
    po_bench_report *bench;
} check_args;

static void free_model(void *user) {
    po_model_free(*(po_model **)user);
}

/* A model's graph with its input shapes pinned as the options say, and its functions' bodies in the
 * place of their calls. The model goes with the arena. */
static po_status open_graph(po_ctx *ctx, po_arena *arena, const char *path, const po_options *o,
                            po_graph **graph) {
    po_model **slot = PO_NEW(arena, po_model *), *model;
    po_arena_defer(arena, free_model, slot);
    PO_TRY(po_import_file(ctx, path, &model));
    *slot = model;
    PO_TRY(po_pin_inputs(ctx, model->graph, o->pins, o->n_pins, graph));
    uint32_t inlined;
    PO_TRY(po_inline_functions(ctx, *graph, NULL, &inlined));
    po_graph_sweep(*graph);
    return inlined ? po_infer_graph(ctx, *graph, true) : PO_OK;
}

static void apply_limits(po_ctx *ctx, const po_options *o) {
    ctx->threads = po_options_threads(o);
    ctx->deadline = o->time_limit > 0 ? po_now() + o->time_limit : 0;
}

/* --- verify --- */

/* Whether both were read from the same bytes, external data included. */
static bool same_files(po_arena *arena, const po_graph *a, const po_graph *b) {
    const po_file_sum *x, *y;
    uint32_t n, m;
    po_import_sums(arena, a->model, &x, &n);
    po_import_sums(arena, b->model, &y, &m);
    bool same = n > 0 && n == m;
    for (uint32_t i = 0; same && i < n; i++)
        same =
            strcmp(x[i].sha256, y[i].sha256) == 0 && (i == 0 || strcmp(x[i].name, y[i].name) == 0);
    return same;
}

static void tell_how(po_equality *v, const po_verify_report *r) {
    static const char *const by[] = {
        [PO_EVIDENCE_NONE] = "nothing was compared",
        [PO_EVIDENCE_RUNTIME] = "compared in ONNX Runtime",
        [PO_EVIDENCE_REFERENCE] = "compared by the float64 reference",
        [PO_EVIDENCE_SHAPES] = "outputs are random: only types and shapes were compared",
    };
    if (r->equal)
        snprintf(v->how, sizeof v->how,
                 "%s on %u sets of inputs, %lld elements, largest difference %.2e of the output's "
                 "largest magnitude (limit %.2e; on %u sets the original's own error times 8)%s",
                 by[r->evidence], r->sets, (long long)r->elements, r->max_rel, r->tolerance,
                 r->excused,
                 r->empty_refused ? "; the second is refused with a batch of 0 samples" : "");
    else
        snprintf(v->how, sizeof v->how, "%.*s", (int)sizeof v->how - 1, r->why);
}

/* A library's code for the instruction sets that other processors have. */
static po_status compare_other_code(po_ctx *ctx, const po_verify_spec *spec, po_verify_report *r) {
    for (uint32_t isa = po_isa_from(po_isa_of_machine() + 1);
         isa < PO_ISAS && spec->kernels && r->equal; isa = po_isa_from(isa + 1)) {
        po_verify_spec other = *spec;
        po_verify_report more;
        other.isa = po_isas[isa].name;
        other.thorough = false;
        other.seconds = 20;
        PO_TRY(po_verify(ctx, &other, &more));
        if (more.refused) /* where the best code ran */
            more.evidence = PO_EVIDENCE_RUNTIME;
        po_verify_join(r, &more);
    }
    return PO_OK;
}

static void tell_code(po_equality *v) {
    for (uint32_t isa = po_isa_from(0); isa < PO_ISAS; isa = po_isa_from(isa + 1)) {
        size_t n = strlen(v->how);
        snprintf(v->how + n, sizeof v->how - n, "; by the library's code for %s",
                 po_isas[isa].name);
    }
}

static po_status verify_body(po_ctx *ctx, void *user) {
    check_args *args = user;
    const po_options *o = args->options;
    po_equality *v = args->verdict;
    apply_limits(ctx, o);
    po_arena *arena = po_arena_create(ctx);
    po_graph *a, *b;
    PO_TRY(open_graph(ctx, arena, args->paths[0], o, &a));
    PO_TRY(open_graph(ctx, arena, args->paths[1], o, &b));
    const po_check_set *checks = NULL;
    uint32_t n_checks = 0;
    if (o->check_data)
        PO_TRY(po_check_data_read(ctx, arena, o->check_data, a, &checks, &n_checks));
    v->tolerance = o->tolerance;
    if (!o->library && same_files(arena, a, b)) {
        v->equal = v->proved = true;
        snprintf(v->how, sizeof v->how, "nothing was run");
        snprintf(v->proof, sizeof v->proof, "the files are the same");
        return PO_OK;
    }
    bool alike = po_graph_equal(a, b);
    po_replay replay = {.proved = true, .text = "the graphs are the same"};
    if (!alike)
        PO_TRY(po_proving_replay(ctx, arena, a, b, args->paths[1], o->library, &replay));
    v->proved = replay.proved;
    snprintf(v->proof, sizeof v->proof, "%.*s", (int)sizeof v->proof - 1, replay.text);
    po_verify_spec spec = {.original = args->paths[0],
                           .candidate = args->paths[1],
                           .kernels = o->library,
                           .graph = a,
                           .candidate_graph = b,
                           .checks = checks,
                           .n_checks = n_checks,
                           .meant = o->sizes,
                           .n_meant = o->n_sizes,
                           .tolerance = o->tolerance,
                           .seconds = 60,
                           .seed = 1,
                           .fresh = alike ? 0 : PO_FRESH_SETS,
                           .fresh_seed = 2,
                           .thorough = !alike};
    po_verify_report r;
    PO_TRY(po_verify(ctx, &spec, &r));
    PO_TRY(compare_other_code(ctx, &spec, &r));
    v->equal = r.equal != 0;
    v->inputs = r.sets;
    v->error = r.max_rel;
    snprintf(v->worst, sizeof v->worst, "%s", r.output);
    snprintf(v->runtime, sizeof v->runtime, "%s",
             r.evidence == PO_EVIDENCE_REFERENCE ? "reference" : "ONNX Runtime");
    tell_how(v, &r);
    if (o->library && r.equal)
        tell_code(v);
    if (r.evidence == PO_EVIDENCE_NONE && v->proved) {
        v->equal = true;
        return PO_OK;
    }
    if (replay.differ && (r.equal || r.evidence == PO_EVIDENCE_NONE)) {
        v->equal = v->proved = false;
        snprintf(v->how, sizeof v->how, "%s, and yet they are not the same function",
                 r.evidence == PO_EVIDENCE_NONE ? "nothing was compared" : "no set of inputs told");
        return po_fail(ctx, PO_NOT_EQUAL, "the proof found a difference: %s", replay.text);
    }
    /* Equal over the reals is not equal. */
    v->proved = v->proved && r.equal;
    if (r.evidence == PO_EVIDENCE_SHAPES && r.equal && !v->proved) {
        v->equal = false;
        return po_fail(ctx, PO_RUNTIME,
                       "the models could not be compared: their outputs are random, and not proved "
                       "to be the same function of what is drawn");
    }
    if (r.evidence == PO_EVIDENCE_NONE)
        return po_fail(ctx, PO_RUNTIME, "the models could not be compared: %s", r.why);
    return r.equal ? PO_OK : po_fail(ctx, PO_NOT_EQUAL, "%s", r.why);
}

po_status po_models_verify(const char *a, const char *b, const po_options *options,
                           const po_callbacks *callbacks, po_equality *report, po_error *error) {
    memset(report, 0, sizeof *report);
    po_options defaults = po_options_default();
    const char *const paths[2] = {a, b};
    check_args args = {
        .paths = paths, .count = 2, .options = options ? options : &defaults, .verdict = report};
    po_ctx ctx;
    po_api_context(&ctx, callbacks);
    return po_api_call(&ctx, verify_body, &args, error);
}

/* --- bench --- */

static po_status name_machine(po_ctx *ctx, po_arena *arena, po_bench_report *bench) {
    po_cost *cost;
    PO_TRY(po_cost_open(ctx, arena, &(po_cost_options){.cache = ""}, &cost));
    PO_TRY(po_cost_need_runtime(ctx, cost));
    snprintf(bench->runtime, sizeof bench->runtime, "ONNX Runtime %s", cost->machine.runtime);
    snprintf(bench->cpu, sizeof bench->cpu, "%s", cost->machine.cpu);
    return PO_OK;
}

static po_status bench_body(po_ctx *ctx, void *user) {
    check_args *args = user;
    const po_options *o = args->options;
    po_bench_report *bench = args->bench;
    apply_limits(ctx, o);
    po_arena *arena = po_arena_create(ctx);
    po_graph *graph;
    PO_TRY(open_graph(ctx, arena, args->paths[0], o, &graph));
    po_inputs *plan;
    uint32_t size;
    PO_TRY(po_inputs_plan(ctx, arena, graph, NULL, &plan));
    PO_TRY(po_inputs_want(ctx, arena, plan, o->sizes, o->n_sizes));
    PO_TRY(name_machine(ctx, arena, bench));
    /* The first model once more, as the control: what it reads against itself. */
    uint32_t n = (uint32_t)args->count;
    const char **models = PO_NEW_N(arena, const char *, n + 1);
    memcpy(models, args->paths, n * sizeof *models);
    models[n] = args->paths[0];
    po_timing *timing = PO_NEW_N(arena, po_timing, n + 1);
    po_timing_work work = {0};
    po_timing_spec spec = {.threads = ctx->threads,
                           .kernels = o->library,
                           .n = n + 1,
                           .models = models,
                           .seconds = 4.0 * (n + 1),
                           .seed = 1,
                           .thorough = true};
    PO_TRY(po_time_at_first(ctx, arena, plan, &spec, 0, timing, &work, &size));
    for (uint32_t i = 0; i < n; i++)
        bench->rows[i] =
            (po_bench_row){1000 * timing[i].seconds, timing[i].gain, timing[i].low, timing[i].high};
    bench->control = timing[n].gain;
    bench->rounds = work.rounds;
    bench->threads = ctx->threads;
    return PO_OK;
}

po_status po_models_bench(const char *const *paths, size_t count, const po_options *options,
                          const po_callbacks *callbacks, po_bench_report **report,
                          po_error *error) {
    *report = NULL;
    if (count < 1 || count >= PO_TIMING_MAX)
        return po_api_error(error, PO_BAD_USE, "bench takes 1 to %d models, not %zu",
                            PO_TIMING_MAX - 1, count);
    po_bench_report *bench = calloc(1, sizeof *bench);
    if (bench)
        bench->rows = calloc(count, sizeof *bench->rows);
    if (!bench || !bench->rows) {
        free(bench);
        return po_api_error(error, PO_NO_MEMORY, "memory ran out");
    }
    bench->n_rows = count;
    po_options defaults = po_options_default();
    check_args args = {
        .paths = paths, .count = count, .options = options ? options : &defaults, .bench = bench};
    po_ctx ctx;
    po_api_context(&ctx, callbacks);
    po_status status = po_api_call(&ctx, bench_body, &args, error);
    if (status == PO_OK)
        *report = bench;
    else
        po_bench_report_free(bench);
    return status;
}

void po_bench_report_free(po_bench_report *report) {
    if (report)
        free(report->rows);
    free(report);
}
