/* Opening ONNX Runtime and loading models. */
#include "cost/ort/internal.h"

#include "po_config.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

/* The oldest C API whose functions suffice; ORT_API_VERSION is the header's. */
enum { OLDEST_API = 16, API_WITH_DETERMINISM = 17, API_WITH_FILES = 18 };

po_status po_ort_check(po_ctx *ctx, const po_ort *ort, OrtStatus *status, const char *what) {
    if (!status)
        return PO_OK;
    const char *text = ort->api->GetErrorMessage(status);
    size_t n = strcspn(text, "\n");
    po_status result = po_fail(ctx, PO_RUNTIME, "ONNX Runtime %s, %s: %.*s", ort->version, what,
                               (int)(n < 700 ? n : 700), text);
    ort->api->ReleaseStatus(status);
    return result;
}

static void ORT_API_CALL drop_message(void *user, OrtLoggingLevel level, const char *category,
                                      const char *id, const char *place, const char *message) {
    (void)user, (void)level, (void)category, (void)id, (void)place, (void)message;
}

static po_status open_library(po_ctx *ctx, po_arena *arena, const char *asked, void **handle,
                              const char **path) {
    const char *const known[] = {"libonnxruntime.so.1", "libonnxruntime.so", PO_ORT_LIBRARY};
    const char *const *candidates = asked ? &asked : known;
    size_t n = asked ? 1 : sizeof known / sizeof known[0];
    for (size_t i = 0; i < n; i++) {
        if (candidates[i][0] == '\0')
            continue;
        *handle = dlopen(candidates[i], RTLD_NOW | RTLD_LOCAL);
        if (*handle) {
            *path = po_arena_strdup(arena, candidates[i]);
            return PO_OK;
        }
    }
    if (asked)
        return po_fail(ctx, PO_RUNTIME, "ONNX Runtime could not be opened: %s", dlerror());
    return po_fail(ctx, PO_RUNTIME,
                   "ONNX Runtime was not found (libonnxruntime.so.1): install it, or use "
                   "--cost model");
}

/* Newer builds of ONNX Runtime report sessions to their makers, and keep an identifier and a queue
 * below ~/.cache, unless this stands in the environment when they are initialised: the C API comes
 * too late. It is a child's environment (isolate.h). */
static po_status forbid_telemetry(po_ctx *ctx) {
    static const char *const names[] = {"ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setenv(names[i], "1", 1) != 0)
            return po_fail(ctx, PO_RUNTIME, "ONNX Runtime's telemetry could not be turned off");
    return PO_OK;
}

po_status po_ort_load(po_ctx *ctx, po_arena *arena, const char *library, po_ort **out) {
    po_ort *ort = *out = PO_NEW(arena, po_ort);
    void *handle = NULL;
    PO_TRY(forbid_telemetry(ctx));
    PO_TRY(open_library(ctx, arena, library, &handle, &ort->library));
    void *symbol = dlsym(handle, "OrtGetApiBase");
    const OrtApiBase *(ORT_API_CALL * get_base)(void) = NULL;
    memcpy(&get_base, &symbol, sizeof get_base); /* ISO C has no cast from data to function */
    if (!get_base)
        return po_fail(ctx, PO_RUNTIME, "%s is not ONNX Runtime", ort->library);
    const OrtApiBase *base = get_base();
    ort->version = po_arena_strdup(arena, base->GetVersionString());
    for (ort->api_version = ORT_API_VERSION; ort->api_version >= OLDEST_API; ort->api_version--) {
        ort->api = base->GetApi(ort->api_version);
        if (ort->api)
            break;
    }
    if (!ort->api)
        return po_fail(ctx, PO_RUNTIME, "ONNX Runtime %s is too old: 1.%d or newer is needed",
                       ort->version, (int)OLDEST_API);
    return PO_OK;
}

/* One arena for all sessions, since they run in turn: each would keep what it needs at its peak.
 * Its first block is so large that what one plan of the memory gives back serves the next in one
 * piece; only what is written to becomes memory. Four sessions of the OCR detector add 116 MB, not
 * 523. */
static po_status share_memory(po_ctx *ctx, po_ort *ort) {
    const char *const keys[] = {"initial_chunk_size_bytes"};
    const size_t values[] = {(size_t)1 << 30};
    OrtArenaCfg *arena = NULL;
    ORT_TRY(ctx, ort, "starting", CreateArenaCfgV2(keys, values, 1, &arena));
    po_status status = po_ort_check(
        ctx, ort, ort->api->CreateAndRegisterAllocator(ort->env, ort->memory, arena), "starting");
    ort->api->ReleaseArenaCfg(arena);
    return status;
}

po_status po_ort_open(po_ctx *ctx, po_arena *arena, const po_ort_options *options, po_ort **out) {
    PO_TRY(po_ort_load(ctx, arena, options->library, out));
    po_ort *ort = *out;
    const char *what = "starting";
    OrtThreadingOptions *threading = NULL;
    ORT_TRY(ctx, ort, what, CreateThreadingOptions(&threading));
    ORT_TRY(ctx, ort, what, SetGlobalIntraOpNumThreads(threading, (int)options->threads));
    ORT_TRY(ctx, ort, what, SetGlobalInterOpNumThreads(threading, 1));
    ORT_TRY(ctx, ort, what, SetGlobalSpinControl(threading, 1));
    ORT_TRY(ctx, ort, what,
            CreateEnvWithCustomLoggerAndGlobalThreadPools(
                drop_message, NULL, ORT_LOGGING_LEVEL_ERROR, "petopt", threading, &ort->env));
    ort->api->ReleaseThreadingOptions(threading);
    ORT_TRY(ctx, ort, what,
            CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &ort->memory));
    ORT_TRY(ctx, ort, what, GetAllocatorWithDefaultOptions(&ort->allocator));
    PO_TRY(share_memory(ctx, ort));
    return PO_OK;
}

const char *po_ort_version(const po_ort *ort) {
    return ort->version;
}

const char *po_ort_library(const po_ort *ort) {
    return ort->library;
}

/* --- the types of inputs and outputs --- */

static po_status tensor_type(po_ctx *ctx, po_arena *arena, const po_ort *ort,
                             const OrtTensorTypeAndShapeInfo *info, po_type *type) {
    const char *what = "reading a type";
    enum ONNXTensorElementDataType element;
    size_t rank = 0;
    ORT_TRY(ctx, ort, what, GetTensorElementType(info, &element));
    ORT_TRY(ctx, ort, what, GetDimensionsCount(info, &rank));
    if (rank > PO_MAX_RANK)
        return po_fail(ctx, PO_RUNTIME, "a tensor of rank %zu (limit %d)", rank, PO_MAX_RANK);
    int64_t values[PO_MAX_RANK];
    const char *symbols[PO_MAX_RANK];
    po_dim dims[PO_MAX_RANK];
    ORT_TRY(ctx, ort, what, GetDimensions(info, values, rank));
    ORT_TRY(ctx, ort, what, GetSymbolicDimensions(info, symbols, rank));
    for (size_t i = 0; i < rank; i++) {
        dims[i] = (po_dim){values[i] >= 0 ? values[i] : -1, NULL};
        if (dims[i].value < 0 && symbols[i] && symbols[i][0])
            dims[i].symbol = po_arena_strdup(arena, symbols[i]);
    }
    *type = po_type_tensor(arena, (po_dtype)element, (uint32_t)rank, dims);
    return PO_OK;
}

static po_status read_type(po_ctx *ctx, po_arena *arena, const po_ort *ort, const OrtTypeInfo *info,
                           po_type *type) {
    const char *what = "reading a type";
    enum ONNXType kind;
    ORT_TRY(ctx, ort, what, GetOnnxTypeFromTypeInfo(info, &kind));
    *type = (po_type){PO_TYPE_UNKNOWN, PO_DT_NONE, false, 0, NULL, NULL};
    OrtTypeInfo *inner = NULL;
    switch (kind) {
    case ONNX_TYPE_TENSOR: {
        const OrtTensorTypeAndShapeInfo *tensor = NULL;
        ORT_TRY(ctx, ort, what, CastTypeInfoToTensorInfo(info, &tensor));
        return tensor_type(ctx, arena, ort, tensor, type);
    }
    case ONNX_TYPE_SEQUENCE: {
        const OrtSequenceTypeInfo *sequence = NULL;
        ORT_TRY(ctx, ort, what, CastTypeInfoToSequenceTypeInfo(info, &sequence));
        ORT_TRY(ctx, ort, what, GetSequenceElementType(sequence, &inner));
        type->kind = PO_TYPE_SEQUENCE;
        break;
    }
    case ONNX_TYPE_OPTIONAL: {
        const OrtOptionalTypeInfo *optional = NULL;
        ORT_TRY(ctx, ort, what, CastTypeInfoToOptionalTypeInfo(info, &optional));
        ORT_TRY(ctx, ort, what, GetOptionalContainedTypeInfo(optional, &inner));
        type->kind = PO_TYPE_OPTIONAL;
        break;
    }
    case ONNX_TYPE_MAP:
        type->kind = PO_TYPE_MAP;
        return PO_OK;
    case ONNX_TYPE_SPARSETENSOR:
        type->kind = PO_TYPE_SPARSE;
        return PO_OK;
    case ONNX_TYPE_OPAQUE:
        type->kind = PO_TYPE_OPAQUE;
        return PO_OK;
    case ONNX_TYPE_UNKNOWN:
        return PO_OK;
    }
    if (inner) {
        po_type *element = PO_NEW(arena, po_type);
        po_status status = read_type(ctx, arena, ort, inner, element);
        ort->api->ReleaseTypeInfo(inner);
        PO_TRY(status);
        type->element = element;
    }
    return PO_OK;
}

static po_status read_port(po_ctx *ctx, po_session *s, bool input, size_t i, po_port *port) {
    const po_ort *ort = s->ort;
    const OrtApi *api = ort->api;
    const char *what = "reading the model's interface";
    char *name = NULL;
    OrtTypeInfo *info = NULL;
    PO_TRY(po_ort_check(ctx, ort,
                        input ? api->SessionGetInputName(s->session, i, ort->allocator, &name)
                              : api->SessionGetOutputName(s->session, i, ort->allocator, &name),
                        what));
    port->name = po_arena_strdup(s->arena, name);
    ORT_TRY(ctx, ort, what, AllocatorFree(ort->allocator, name));
    PO_TRY(po_ort_check(ctx, ort,
                        input ? api->SessionGetInputTypeInfo(s->session, i, &info)
                              : api->SessionGetOutputTypeInfo(s->session, i, &info),
                        what));
    po_status status = read_type(ctx, s->arena, ort, info, &port->type);
    api->ReleaseTypeInfo(info);
    return status;
}

static po_status read_ports(po_ctx *ctx, po_session *s) {
    const po_ort *ort = s->ort;
    const char *what = "reading the model's interface";
    size_t n_in = 0, n_out = 0;
    ORT_TRY(ctx, ort, what, SessionGetInputCount(s->session, &n_in));
    ORT_TRY(ctx, ort, what, SessionGetOutputCount(s->session, &n_out));
    s->n_inputs = (uint32_t)n_in;
    s->n_outputs = (uint32_t)n_out;
    s->inputs = PO_NEW_N(s->arena, po_port, n_in);
    s->outputs = PO_NEW_N(s->arena, po_port, n_out);
    s->input_names = PO_NEW_N(s->arena, const char *, n_in);
    s->output_names = PO_NEW_N(s->arena, const char *, n_out);
    for (size_t i = 0; i < n_in; i++) {
        PO_TRY(read_port(ctx, s, true, i, &s->inputs[i]));
        s->input_names[i] = s->inputs[i].name;
    }
    for (size_t i = 0; i < n_out; i++) {
        PO_TRY(read_port(ctx, s, false, i, &s->outputs[i]));
        s->output_names[i] = s->outputs[i].name;
    }
    return PO_OK;
}

/* --- sessions --- */

static po_status set_options(po_ctx *ctx, po_ort *ort, const po_session_options *options,
                             OrtSessionOptions *o) {
    const char *what = "setting up a session";
    ORT_TRY(ctx, ort, what, SetSessionExecutionMode(o, ORT_SEQUENTIAL));
    ORT_TRY(ctx, ort, what,
            SetSessionGraphOptimizationLevel(o, options->plain ? ORT_DISABLE_ALL : ORT_ENABLE_ALL));
    ORT_TRY(ctx, ort, what, SetSessionLogSeverityLevel(o, ORT_LOGGING_LEVEL_FATAL));
    ORT_TRY(ctx, ort, what, DisablePerSessionThreads(o));
    if (options->deterministic && ort->api_version >= API_WITH_DETERMINISM)
        ORT_TRY(ctx, ort, what, SetDeterministicCompute(o, true));
    if (options->deterministic)
        ORT_TRY(ctx, ort, what, DisableMemPattern(o));
    ORT_TRY(ctx, ort, what, AddSessionConfigEntry(o, "session.use_env_allocators", "1"));
    if (options->isa)
        ORT_TRY(ctx, ort, what, AddSessionConfigEntry(o, "petopt.isa", options->isa));
    if (options->kernels)
        ORT_TRY(ctx, ort, options->kernels, RegisterCustomOpsLibrary_V2(o, options->kernels));
    const po_side_files *files = options->files;
    if (files && files->n > 0) {
        if (ort->api_version < API_WITH_FILES)
            return po_fail(ctx, PO_UNSUPPORTED,
                           "ONNX Runtime %s takes no external data from memory", ort->version);
        char *const *data; /* the runtime's signature is not const; it only reads */
        memcpy(&data, &files->data, sizeof data);
        ORT_TRY(ctx, ort, what,
                AddExternalInitializersFromFilesInMemory(o, files->names, data, files->sizes,
                                                         files->n));
    }
    return PO_OK;
}

/* Loading takes half as much again as the session then holds (BERT-base: 678 MB for 450), which the
 * C library would keep for as long as the process lives. Meanwhile large blocks go back to the
 * system as they are freed; then it is as it is where a model was loaded by others: up to 32 MB
 * come from the heap. Where nothing is timed it stays as it was for loading. */
static void begin_loading(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

static void end_loading(const po_side_files *files, bool timed) {
    for (uint32_t i = 0; files && i < files->n_mapped; i++)
        po_content_rest(files->mapped[i]);
#ifdef __GLIBC__
    malloc_trim(0);
    if (timed)
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
#else
    (void)timed;
#endif
}

po_status po_session_open(po_ctx *ctx, po_arena *arena, po_ort *ort, const char *path,
                          const po_session_options *options, po_session **out) {
    po_session *s = PO_NEW(arena, po_session);
    s->ort = ort;
    s->arena = arena;
    OrtSessionOptions *o = NULL;
    ORT_TRY(ctx, ort, "setting up a session", CreateSessionOptions(&o));
    po_status status = set_options(ctx, ort, options, o);
    begin_loading();
    if (status == PO_OK)
        status = po_ort_check(ctx, ort, ort->api->CreateSession(ort->env, path, o, &s->session),
                              "loading the model");
    end_loading(options->files, !options->deterministic);
    ort->api->ReleaseSessionOptions(o);
    PO_TRY(status);
    PO_TRY(read_ports(ctx, s));
    *out = s;
    return PO_OK;
}

const po_port *po_session_inputs(const po_session *session, uint32_t *n) {
    *n = session->n_inputs;
    return session->inputs;
}

const po_port *po_session_outputs(const po_session *session, uint32_t *n) {
    *n = session->n_outputs;
    return session->outputs;
}
