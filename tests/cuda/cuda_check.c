/* All cases are one text and one module, each run in two orders of blocks, warps and lanes on
 * outputs full of NaN. An element may be off by a limit times u S; where that bound is loose, most
 * must be near. */
#include "cuda_check.h"

#include "base/hash.h"
#include "codegen/delivery/shipped.h"
#include "driver.h"
#include "emulate_api.h"
#include "mugraph/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 64, ARGS = 64, SEEDS = 2, LOOSE = 8, LOST = 50 };

/* --- elements by type --- */

static uint16_t to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void put(void *data, po_mu_type type, int64_t i, double v) {
    if (type == PO_MU_F32)
        ((float *)data)[i] = (float)v;
    else
        ((uint16_t *)data)[i] = type == PO_MU_F16 ? emu_to_f16((float)v) : to_bf16((float)v);
}

static double get(const void *data, po_mu_type type, int64_t i) {
    if (type == PO_MU_F32)
        return (double)((const float *)data)[i];
    uint16_t h = ((const uint16_t *)data)[i];
    return (double)(type == PO_MU_F16 ? emu_from_f16(h) : from_bf16(h));
}

/* Half a unit in the last place of a type, for 1, and its least normal number. */
static double unit_of(po_mu_type type) {
    return type == PO_MU_F32 ? 0x1p-24 : type == PO_MU_F16 ? 0x1p-11 : 0x1p-8;
}

/* --- a case at work --- */

typedef struct port {
    const po_mu_tensor *tensor;
    int64_t elements;
    double *values; /* as the device has them */
    uint64_t memory;
} port;

typedef struct ports {
    port in[PORTS], weight[PORTS], out[PORTS];
    uint32_t n_in, n_weight, n_out;
} ports;

static bool good(int rc) {
    return rc == 0;
}

static void must(bool right, const char *what) {
    if (!right) {
        (void)fprintf(stderr, "%s\n", what);
        exit(2);
    }
}

void cuda_check_start(void) {
    void *context;
    must(good(cuInit(0)) && good(cuDevicePrimaryCtxRetain(&context, 0)) &&
             good(cuCtxSetCurrent(context)),
         "the emulated driver does not start");
    emu_device("NVIDIA H200", 90);
}

po_nvrtc *cuda_check_nvrtc(po_ctx *ctx, po_arena *arena) {
    po_nvrtc *nvrtc;
    if (po_nvrtc_open(ctx, arena, EMULATED_NVRTC, &nvrtc) != PO_OK)
        must(false, ctx->error.message);
    return nvrtc;
}

po_mu *cuda_check_typed(po_ctx *ctx, po_arena *arena, const po_mu *mu, po_mu_type type) {
    po_text text;
    po_mu *copy;
    po_text_init(&text, arena);
    po_mu_print(&text, mu);
    if (po_mu_parse(ctx, arena, text.data, &copy) != PO_OK)
        must(false, ctx->error.message);
    for (uint32_t i = 0; i < copy->n_tensors; i++)
        if (copy->tensors[i].place != PO_MU_TABLE)
            copy->tensors[i].type = type;
    return copy;
}

static void find_ports(po_arena *arena, const cuda_case *c, ports *p) {
    *p = (ports){0};
    for (uint32_t i = 0; i < c->mu->n_tensors; i++) {
        const po_mu_tensor *t = &c->mu->tensors[i];
        bool in = t->place == PO_MU_INPUT, weight = t->place == PO_MU_WEIGHT;
        if (!in && !weight && t->place != PO_MU_OUTPUT)
            continue;
        must(t->number < PORTS, "too many ports");
        port *at = in ? &p->in[t->number] : weight ? &p->weight[t->number] : &p->out[t->number];
        uint32_t *n = in ? &p->n_in : weight ? &p->n_weight : &p->n_out;
        *n = t->number + 1 > *n ? t->number + 1 : *n;
        *at = (port){.tensor = t, .elements = po_mu_elements(t)};
        at->values = PO_NEW_N(arena, double, at->elements + 1);
        size_t bytes = (size_t)(at->elements * po_mu_bytes(t->type));
        void *data = po_arena_alloc(arena, bytes + 1);
        double scale = c->scale == 0 ? 1 : c->scale;
        for (int64_t e = 0; e < at->elements && (in || weight); e++) {
            double v = weight && c->weights
                           ? c->weights[t->number][e]
                           : po_random_normal(weight ? 7 : 3, t->number, (uint64_t)e) * scale;
            put(data, t->type, e, v);
            at->values[e] = get(data, t->type, e);
        }
        must(good(cuMemAlloc_v2(&at->memory, bytes)), "no memory");
        if (in || weight)
            must(good(cuMemcpyHtoD_v2(at->memory, data, bytes)), "no copy");
    }
}

static void free_ports(ports *p) {
    port *lists[] = {p->in, p->weight, p->out};
    for (int l = 0; l < 3; l++)
        for (uint32_t i = 0; i < PORTS; i++)
            if (lists[l][i].memory)
                must(good(cuMemFree_v2(lists[l][i].memory)), "cannot free");
}

static const char *compare(po_arena *arena, cuda_case *c, const ports *p, double *const *expected,
                           double *const *sum) {
    double unit = c->options.tf32 ? 0x1p-11 : 0x1p-24;
    for (uint32_t i = 0; i < c->mu->n_tensors; i++)
        if (c->mu->tensors[i].place != PO_MU_TABLE)
            unit = fmax(unit, unit_of(c->mu->tensors[i].type));
    for (uint32_t i = 0; i < p->n_out; i++) {
        const port *o = &p->out[i];
        po_mu_type type = o->tensor->type;
        size_t bytes = (size_t)(o->elements * po_mu_bytes(type));
        void *data = po_arena_alloc(arena, bytes + 1);
        must(good(cuMemcpyDtoH_v2(data, o->memory, bytes)), "no copy back");
        double largest = 0, least = type == PO_MU_F16 ? 0x1p-24 : 0x1p-126;
        for (int64_t e = 0; e < o->elements; e++)
            if (isfinite(expected[i][e]))
                largest = fmax(largest, fabs(expected[i][e]));
        for (int64_t e = 0; e < o->elements; e++) {
            double y = get(data, type, e), ref = expected[i][e], s = sum[i][e];
            if (!isfinite(ref) || isnan(s) || (type == PO_MU_F16 && fabs(ref) > 65000)) {
                c->skipped++; /* what leaves the range of floats is nobody's to compare */
                continue;
            }
            c->elements++;
            /* Where errors may grow beyond all values, most must still be near. */
            if (CUDA_LIMIT * unit * s > largest / LOOSE) {
                c->loose++;
                c->far = fmax(c->far, fabs(y - ref) / (largest + least));
                c->lost += !(fabs(y - ref) <= largest / LOOSE + least);
                continue;
            }
            double off = fabs(y - ref) / (unit * s + least);
            c->worst = off > c->worst ? off : c->worst;
            if (!(off <= CUDA_LIMIT))
                return po_arena_printf(arena,
                                       "output %u, element %lld: %.9g instead of %.9g (%.3g u S)",
                                       i, (long long)e, y, ref, off);
        }
    }
    if (c->lost * LOST > c->elements)
        return po_arena_printf(arena, "%lld of %lld elements are far off", (long long)c->lost,
                               (long long)c->elements);
    return NULL;
}

static const char *launch(po_arena *arena, void *module, const po_cuda_program *program,
                          const ports *p, uint64_t device) {
    for (uint32_t l = 0; l < program->n_launches; l++) {
        const po_cuda_launch *k = &program->launches[l];
        uint64_t values[ARGS];
        void *args[ARGS], *function;
        must(k->n_args <= ARGS, "too many arguments");
        for (uint32_t a = 0; a < k->n_args; a++) {
            const po_cuda_arg *arg = &k->args[a];
            values[a] = arg->kind == PO_CUDA_INPUT    ? p->in[arg->number].memory
                        : arg->kind == PO_CUDA_WEIGHT ? p->weight[arg->number].memory
                        : arg->kind == PO_CUDA_OUTPUT ? p->out[arg->number].memory
                                                      : device + (uint64_t)arg->offset;
            args[a] = &values[a];
        }
        int rc = cuModuleGetFunction(&function, module, k->symbol);
        if (rc == 0 && k->shared > 48 << 10)
            rc = cuFuncSetAttribute(function, 8, (int)k->shared);
        if (rc == 0)
            rc = cuLaunchKernel(function, k->grid[0], k->grid[1], k->grid[2], k->threads, 1, 1,
                                k->shared, NULL, args, NULL);
        if (rc != 0) {
            const char *text = NULL;
            (void)cuGetErrorString(rc, &text);
            text = po_arena_printf(arena, "step \"%s\": %s", k->what, text ? text : "?");
            emu_clear();
            return text;
        }
    }
    return NULL;
}

static void run(po_ctx *ctx, po_arena *arena, cuda_case *c, void *module,
                const po_cuda_program *program) {
    ports p;
    const double *in[PORTS], *weight[PORTS];
    double *expected[PORTS], *sum[PORTS];
    find_ports(arena, c, &p);
    for (uint32_t i = 0; i < PORTS; i++) {
        in[i] = p.in[i].values;
        weight[i] = p.weight[i].values;
        expected[i] = PO_NEW_N(arena, double, p.out[i].elements + 1);
        sum[i] = PO_NEW_N(arena, double, p.out[i].elements + 1);
    }
    if (po_mu_eval(ctx, c->naive ? c->naive : c->mu, in, weight, expected, sum) != PO_OK) {
        c->failed = po_arena_strdup(arena, ctx->error.message);
        po_ctx_clear(ctx);
    }
    uint64_t device = 0;
    for (uint64_t seed = 0; seed < SEEDS && !c->failed; seed++) {
        if (program->device)
            must(good(cuMemAlloc_v2(&device, (size_t)program->device)), "no memory");
        for (uint32_t i = 0; i < p.n_out; i++) /* NaN again */
            must(good(cuMemsetD8_v2(
                     p.out[i].memory, 255,
                     (size_t)(p.out[i].elements * po_mu_bytes(p.out[i].tensor->type)))),
                 "no fill");
        emu_seed(seed + 1);
        c->failed = launch(arena, module, program, &p, device);
        if (!c->failed)
            c->failed = compare(arena, c, &p, expected, sum);
        if (device)
            must(good(cuMemFree_v2(device)), "cannot free");
        device = 0;
    }
    free_ports(&p);
}

/* --- many at once --- */

void cuda_check(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc, cuda_case *cases, uint32_t n) {
    po_cuda_program *programs = PO_NEW_N(arena, po_cuda_program, n);
    po_text text;
    void *module;
    po_text_init(&text, arena);
    po_text_puts(&text, po_shipped_cuda_prelude_cu);
    for (uint32_t i = 0; i < n; i++) {
        cuda_case *c = &cases[i];
        c->failed = c->unsupported = NULL;
        const char *symbol = po_arena_printf(arena, "k%u", i);
        if (po_codegen_cuda(ctx, arena, c->mu, symbol, &c->options, &programs[i]) != PO_OK) {
            c->unsupported = po_arena_strdup(arena, ctx->error.message);
            po_ctx_clear(ctx);
            continue;
        }
        const char *source = programs[i].source, *at = strstr(source, po_shipped_cuda_prelude_cu);
        must(at == source, "a printed text does not start with the prelude");
        at += strlen(po_shipped_cuda_prelude_cu);
        if (c->edit) {
            const char *changed = c->edit(arena, at, c->which);
            c->edited = changed != NULL;
            if (!changed)
                continue;
            at = changed;
        }
        c->launches = programs[i].n_launches;
        po_text_puts(&text, at);
    }
    po_cuda_image image;
    if (po_nvrtc_compile(ctx, arena, nvrtc, text.data, "the tests' kernels", 90, false, &image) !=
        PO_OK) {
        for (uint32_t i = 0; i < n; i++)
            cases[i].failed = po_arena_strdup(arena, ctx->error.message);
        po_ctx_clear(ctx);
        return;
    }
    must(good(cuModuleLoadData(&module, image.bytes.data)), "the module does not load");
    for (uint32_t i = 0; i < n; i++)
        if (!cases[i].unsupported && (!cases[i].edit || cases[i].edited))
            run(ctx, arena, &cases[i], module, &programs[i]);
    must(good(cuModuleUnload(module)), "the module does not unload");
}

int cuda_check_report(const cuda_case *cases, uint32_t n, uint32_t most_unsupported) {
    uint32_t unsupported = 0, failed = 0, launches = 0;
    int64_t elements = 0, skipped = 0, loose = 0;
    double worst = 0, far = 0;
    for (uint32_t i = 0; i < n; i++) {
        const cuda_case *c = &cases[i];
        unsupported += c->unsupported != NULL;
        failed += c->failed != NULL;
        launches += c->launches;
        elements += c->elements;
        skipped += c->skipped;
        loose += c->loose;
        far = c->far > far ? c->far : far;
        worst = c->worst > worst ? c->worst : worst;
        if (c->unsupported)
            (void)printf("%s: not printed: %s\n", c->name, c->unsupported);
        if (c->failed)
            (void)printf("%s: %s\n", c->name, c->failed);
    }
    (void)printf(
        "%u programs, %u kernels, %u not printed, %u wrong; %lld elements, off by %.2f u S "
        "at most, %lld with a loose bound (off by %.2g of the largest), %lld beyond floats\n",
        n, launches, unsupported, failed, (long long)elements, worst, (long long)loose, far,
        (long long)skipped);
    return failed || unsupported > most_unsupported || skipped > elements / 4;
}
