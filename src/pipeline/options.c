/* One table of the options: name, help, the commands that take it, and the function that checks and
 * keeps its value. Numbers are read the same way under every locale. */
#include "pipeline/options.h"

#include "cost/cuda/gpu.h"
#include "pipeline/api/api.h"
#include "pipeline/pipeline.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 1024, MAX_BATCH = 65536 };

po_options po_options_default(void) {
    return (po_options){.level = 2, .tolerance = 1e-4, .recall = true, .batch = 8};
}

bool po_options_has(const char *const *list, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

bool po_options_estimated(const po_options *options) {
    return options->model_cost || options->cuda;
}

const char *po_options_cache(const po_options *options) {
    return options->record ? options->record : options->cache;
}

uint32_t po_options_threads(const po_options *options) {
    if (options->threads > 0)
        return options->threads;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (uint32_t)n;
}

/* --- numbers, whatever the locale --- */

static bool parse_int(const char *text, int64_t *value) {
    int64_t n = 0;
    const char *p = text;
    if (!*p)
        return false;
    for (; *p; p++) {
        if (*p < '0' || *p > '9' || n > (INT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (*p - '0');
    }
    *value = n;
    return true;
}

/* Non-negative decimals with an optional exponent: "0.001", "1e-4". */
static bool parse_real(const char *text, double *value) {
    const char *p = text;
    double n = 0;
    int exponent = 0;
    bool digits = false;
    for (; *p >= '0' && *p <= '9'; p++, digits = true)
        n = n * 10 + (*p - '0');
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits = true, exponent--)
            n = n * 10 + (*p - '0');
    if (!digits)
        return false;
    if (*p == 'e' || *p == 'E') {
        bool minus = p[1] == '-';
        p += p[1] == '-' || p[1] == '+' ? 2 : 1;
        int e = 0;
        if (!*p)
            return false;
        for (; *p >= '0' && *p <= '9'; p++)
            e = e < 1000 ? e * 10 + (*p - '0') : e;
        exponent += minus ? -e : e;
    }
    if (*p)
        return false;
    *value = exponent < 0 ? n / pow(10, -exponent) : n * pow(10, exponent);
    return isfinite(*value);
}

/* --- one function for each kind of value --- */

typedef struct set_args set_args;
struct set_args {
    po_ctx *ctx;
    po_options *o;
    const char *name, *value;
};

static po_status bad(set_args *a, const char *expected) {
    return po_fail(a->ctx, PO_BAD_USE, "--%s: '%s' is not %s", a->name, a->value, expected);
}

static po_status set_level(set_args *a) {
    if (strlen(a->value) != 1 || a->value[0] < '0' || a->value[0] > '0' + PO_MAX_LEVEL)
        return po_fail(a->ctx, PO_BAD_USE, "-O: '%s' is not a level from 0 to %d", a->value,
                       PO_MAX_LEVEL);
    int level = a->value[0] - '0';
    a->o->level = level;
    return PO_OK;
}

static po_status set_opset(set_args *a) {
    if (!parse_int(a->value, &a->o->opset) || a->o->opset < 1 || a->o->opset > 1000)
        return bad(a, "an operator-set version");
    return PO_OK;
}

static po_status set_target(set_args *a) {
    a->o->cuda = strcmp(a->value, "cuda") == 0;
    return a->o->cuda || strcmp(a->value, "cpu") == 0 ? PO_OK : bad(a, "cpu or cuda");
}

static po_status set_gpu(set_args *a) {
    const po_gpu *gpu = po_gpu_named(a->value);
    if (gpu) {
        a->o->gpu = gpu->name;
        return PO_OK;
    }
    po_text known;
    po_text_init(&known, a->o->arena);
    for (size_t i = 0; po_gpu_at(i); i++)
        po_text_printf(&known, "%s%s", i ? ", " : "a known GPU: ", po_gpu_at(i)->name);
    return bad(a, known.data);
}

static po_status set_cuda_folder(set_args *a) {
    a->o->cuda_folder = po_arena_strdup(a->o->arena, a->value);
    return *a->value ? PO_OK : bad(a, "a folder");
}

static po_status set_yes(set_args *a, bool *value) {
    *value = strcmp(a->value, "yes") == 0;
    return *value || strcmp(a->value, "no") == 0 ? PO_OK : bad(a, "yes or no");
}

static po_status set_tf32(set_args *a) {
    return set_yes(a, &a->o->tf32);
}

static po_status set_batch(set_args *a) {
    int64_t n;
    if (!parse_int(a->value, &n) || n < 1 || n > MAX_BATCH)
        return bad(a, "a number of samples from 1 to 65536");
    a->o->batch = (uint32_t)n;
    return PO_OK;
}

/* Letters or underscores, then digits. */
static bool is_name(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t n = strspn(text, letters);
    return n > 0 && text[n + strspn(text + n, "0123456789")] == '\0';
}

/* "NAME:D,D,..", added to a list. names: a name for a dim that stays open may stand there. */
static po_status add_pin(set_args *a, bool names, po_pin **list, uint32_t *n, uint32_t *cap) {
    const char *colon = strrchr(a->value, ':');
    if (!colon || colon == a->value)
        return bad(a, "of the form name:1,3,640,640");
    po_arena *arena = a->o->arena;
    char *name = po_arena_strdup(arena, a->value);
    name[colon - a->value] = '\0';
    char *rest = po_arena_strdup(arena, colon + 1);
    int64_t dims[64];
    const char *open[64] = {NULL};
    uint32_t rank = 0;
    for (char *p = rest; *p;) {
        char *comma = strchr(p, ',');
        if (comma)
            *comma = '\0';
        const bool is_open = names && is_name(p);
        if (rank == sizeof dims / sizeof dims[0] || (!is_open && !parse_int(p, &dims[rank])) ||
            (comma && !comma[1]))
            return bad(a, "of the form name:1,3,640,640");
        open[rank] = is_open ? p : NULL;
        dims[rank] = is_open ? -1 : dims[rank];
        rank++;
        p = comma ? comma + 1 : p + strlen(p);
    }
    if (*n == PO_MAX_PINS)
        return po_fail(a->ctx, PO_BAD_USE, "--%s: more than %d", a->name, PO_MAX_PINS);
    po_pin pin = {name, rank, po_arena_memdup(arena, dims, rank * sizeof dims[0]),
                  po_arena_memdup(arena, open, rank * sizeof open[0])};
    PO_PUSH(arena, *list, *n, *cap, pin);
    return PO_OK;
}

static po_status set_input_shape(set_args *a) {
    return add_pin(a, true, &a->o->pins, &a->o->n_pins, &a->o->cap_pins);
}

static po_status set_sizes(set_args *a) {
    return add_pin(a, false, &a->o->sizes, &a->o->n_sizes, &a->o->cap_sizes);
}

static po_status set_threads(set_args *a) {
    int64_t n;
    if (!parse_int(a->value, &n) || n < 1 || n > MAX_THREADS)
        return bad(a, "a number of threads from 1 to 1024");
    a->o->threads = (uint32_t)n;
    return PO_OK;
}

static po_status set_time_limit(set_args *a) {
    if (!parse_real(a->value, &a->o->time_limit) || a->o->time_limit <= 0)
        return bad(a, "a number of seconds above 0");
    return PO_OK;
}

static po_status set_tolerance(set_args *a) {
    if (!parse_real(a->value, &a->o->tolerance))
        return bad(a, "a number of 0 or more");
    return PO_OK;
}

static po_status set_check_data(set_args *a) {
    a->o->check_data = po_arena_strdup(a->o->arena, a->value);
    return *a->value ? PO_OK : bad(a, "a folder");
}

static po_status set_kernels(set_args *a) {
    a->o->kernels = po_arena_strdup(a->o->arena, a->value);
    return *a->value ? PO_OK : bad(a, "a folder");
}

static po_status set_cc(set_args *a) {
    a->o->cc = po_arena_strdup(a->o->arena, a->value);
    return *a->value ? PO_OK : bad(a, "a program");
}

/* The runtime takes a name without a slash for one on the system's own path. */
static po_status set_library(set_args *a) {
    a->o->library = strchr(a->value, '/') ? po_arena_strdup(a->o->arena, a->value)
                                          : po_arena_printf(a->o->arena, "./%s", a->value);
    if (access(a->value, R_OK) != 0)
        return po_fail(a->ctx, PO_BAD_USE, "--library %s: %s", a->value, strerror(errno));
    return PO_OK;
}

static po_status set_accuracy(set_args *a) {
    a->o->exact = strcmp(a->value, "exact") == 0;
    return a->o->exact || strcmp(a->value, "f32") == 0 ? PO_OK : bad(a, "exact or f32");
}

static po_status set_stage(set_args *a, const char ***list, uint32_t *n, uint32_t *cap) {
    if (*n == PO_MAX_STAGE_LIST)
        return po_fail(a->ctx, PO_BAD_USE, "--%s: given too often", a->name);
    const char *name = po_arena_strdup(a->o->arena, a->value);
    PO_PUSH(a->o->arena, *list, *n, *cap, name);
    return PO_OK;
}

static po_status set_skip(set_args *a) {
    if (!po_stage_known(a->value) && !po_stage_part_known(a->value))
        return bad(a, "a stage (" PO_STAGE_NAMES ") or a part of the search (" PO_PART_NAMES ")");
    return set_stage(a, &a->o->skip, &a->o->n_skip, &a->o->cap_skip);
}

static po_status set_dump(set_args *a) {
    if (!po_stage_known(a->value))
        return bad(a, "a stage (" PO_STAGE_NAMES ")");
    return set_stage(a, &a->o->dump, &a->o->n_dump, &a->o->cap_dump);
}

/* What follows `prefix`; NULL: something else, or nothing. */
static const char *file_after(const char *value, const char *prefix) {
    size_t n = strlen(prefix);
    return strncmp(value, prefix, n) == 0 && value[n] ? value + n : NULL;
}

static po_status one_cache(set_args *a) {
    return a->o->record && a->o->cache ? po_fail(a->ctx, PO_BAD_USE,
                                                 "--cost record:FILE and --cache: both say where "
                                                 "readings are kept; one of them will do")
                                       : PO_OK;
}

static po_status set_cost(set_args *a) {
    const char *replay = file_after(a->value, "replay:"), *record = file_after(a->value, "record:");
    a->o->model_cost = strcmp(a->value, "model") == 0;
    a->o->measured_cost = strcmp(a->value, "ort") == 0;
    a->o->replay = replay ? po_arena_strdup(a->o->arena, replay) : NULL;
    a->o->record = record ? po_arena_strdup(a->o->arena, record) : NULL;
    if (!a->o->model_cost && !a->o->measured_cost && !replay && !record)
        return bad(a, "ort, model, replay:FILE or record:FILE");
    return one_cache(a);
}

static po_status set_recall(set_args *a) {
    return set_yes(a, &a->o->recall);
}

static po_status set_cache(set_args *a) {
    a->o->cache = po_arena_strdup(a->o->arena, strcmp(a->value, "none") == 0 ? "" : a->value);
    return *a->value ? one_cache(a) : bad(a, "a file or 'none'");
}

/* --- the table --- */

#define ALL (PO_FOR_OPTIMISE | PO_FOR_VERIFY | PO_FOR_BENCH)

static const struct {
    po_option_def def;
    po_status (*set)(set_args *args);
} table[] = {
    {{"level", 'O', "0..3",
      "0: faithful round trip; 1: simplify, fold, keep what measures faster; 2 (default): search "
      "for "
      "mutants of what lies between non-linear operators too; 3: search deeper",
      PO_FOR_OPTIMISE},
     set_level},
    {{"opset", 0, "N", "let the operator-set version rise to N (default: the model's own stays)",
      PO_FOR_OPTIMISE},
     set_opset},
    {{"target", 0, "cpu|cuda", "what the model will run on; cuda: NVIDIA GPUs", PO_FOR_OPTIMISE},
     set_target},
    {{"gpu", 0, "NAME",
      "the GPU that estimates go by, as H200 (default: this machine's, else H200)",
      PO_FOR_OPTIMISE},
     set_gpu},
    {{"cuda-libraries", 0, "DIR",
      "a folder in which NVIDIA's libraries (libcuda, libnvrtc, libcublasLt, libcudnn) are looked "
      "for first",
      PO_FOR_OPTIMISE},
     set_cuda_folder},
    {{"tf32", 0, "yes|no",
      "let kernels for GPUs round the factors of f32 products to 10 bits of mantissa (default: no)",
      PO_FOR_OPTIMISE},
     set_tf32},
    {{"batch", 0, "N",
      "samples that kernels for GPUs are planned for where the model's batch is open; they take "
      "any "
      "number (default: 8)",
      PO_FOR_OPTIMISE},
     set_batch},
    {{"input-shape", 0, "NAME:D,D,..",
      "pin the dims of an input; may be given for each input. A name in the place of a number "
      "leaves that dim open (x:N,3,640,640)",
      ALL},
     set_input_shape},
    {{"sizes", 0, "NAME:D,D,..",
      "dims that an input will have; open ones stay open, and what is fastest is read at these "
      "(again for the same input: at each, the first counting most). Default: sizes that such "
      "inputs usually have",
      ALL},
     set_sizes},
    {{"threads", 0, "N", "threads that the model runs and is measured with (default: all CPUs)",
      ALL},
     set_threads},
    {{"time-limit", 0, "S", "stop after S seconds with the best verified so far", ALL},
     set_time_limit},
    {{"tolerance", 0, "T",
      "largest error, as a part of the output's largest magnitude (default 1e-4)",
      PO_FOR_OPTIMISE | PO_FOR_VERIFY},
     set_tolerance},
    {{"check-data", 0, "DIR", "compare on these inputs too: DIR/*/input_K.pb, as in ONNX's tests",
      PO_FOR_OPTIMISE | PO_FOR_VERIFY},
     set_check_data},
    {{"kernels", 0, "DIR",
      "generate kernels for this CPU, or for GPUs, and write their library here", PO_FOR_OPTIMISE},
     set_kernels},
    {{"cc", 0, "PROGRAM", "the C compiler for kernels (default: cc, gcc or clang)",
      PO_FOR_OPTIMISE},
     set_cc},
    {{"library", 0, "FILE", "load this library of kernels; verify: with the second model alone",
      PO_FOR_VERIFY | PO_FOR_BENCH},
     set_library},
    {{"accuracy", 0, "exact|f32",
      "exact: only changes that keep every bit, but for the order of sums in kernels; f32 "
      "(default): float rounding may differ",
      PO_FOR_OPTIMISE},
     set_accuracy},
    {{"skip", 0, "STAGE",
      "leave a stage out (" PO_STAGE_NAMES "), or a part of the search (" PO_PART_NAMES ")",
      PO_FOR_OPTIMISE},
     set_skip},
    {{"dump", 0, "STAGE", "print what a stage made: graph, sums, kernels' programs",
      PO_FOR_OPTIMISE},
     set_dump},
    {{"cost", 0, "ort|model|replay:FILE|record:FILE",
      "measure in ONNX Runtime (default up to 20,000 nodes), or estimate from a model of "
      "this machine; for GPUs: answer from the readings in a file alone, or take them here and "
      "keep them there",
      PO_FOR_OPTIMISE},
     set_cost},
    {{"recall", 0, "yes|no",
      "no: search and choose again, though the cache knows what the same run decided; readings "
      "are still taken from there",
      PO_FOR_OPTIMISE},
     set_recall},
    {{"cache", 0, "FILE", "where measurements are kept ('none': nowhere)", PO_FOR_OPTIMISE},
     set_cache},
};

const po_option_def *po_option_at(size_t index) {
    return index < sizeof table / sizeof table[0] ? &table[index].def : NULL;
}

/* --- the handle --- */

static po_status create_body(po_ctx *ctx, void *user) {
    po_options *o = user;
    o->arena = po_arena_create(ctx);
    po_arena_keep(o->arena);
    return PO_OK;
}

po_status po_options_create(po_options **options) {
    *options = NULL;
    po_options *o = malloc(sizeof *o);
    if (!o)
        return PO_NO_MEMORY;
    *o = po_options_default();
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_status status = po_api_call(&ctx, create_body, o, NULL);
    if (status != PO_OK) {
        free(o);
        return status;
    }
    *options = o;
    return PO_OK;
}

void po_options_free(po_options *options) {
    if (options)
        po_arena_free(options->arena);
    free(options);
}

static po_status set_body(po_ctx *ctx, void *user) {
    set_args *a = user;
    po_arena_bind(a->o->arena, ctx);
    a->ctx = ctx;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].def.name, a->name) == 0)
            return table[i].set(a);
    return po_fail(ctx, PO_BAD_USE, "there is no option '%s'", a->name);
}

po_status po_options_set(po_options *options, const char *name, const char *value,
                         po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    set_args args = {.o = options, .name = name, .value = value};
    return po_api_call(&ctx, set_body, &args, error);
}
