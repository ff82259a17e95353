/* Times the kernels that are printed from muGraphs and checks them against float64:
 *
 *     petopt-kernels [--isa avx512|avx2] [--parts N] [--gflop F] [--repeat N] [--no-check]
 *                    [--keep DIR] [--flags FLAGS] FILE.mu ...
 *
 * GFLOP/s are of the muGraph's own operations, or of F (10^9 operations: those of the direct
 * algorithm, for fast ones). */
#include "kernel_run.h"

#include "base/folder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct options {
    const po_isa *isa;
    size_t parts;
    double gflop;
    int repeat;
    bool check, keep;
    const char *dir, *flags;
} options;

static float *random_floats(po_arena *arena, int64_t n, uint64_t *state) {
    float *to = (float *)(((uintptr_t)PO_NEW_N(arena, float, n + 32) + 63) & ~(uintptr_t)63);
    for (int64_t i = 0; i < n; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        to[i] = (float)((double)(*state >> 33) / 1073741824.0 - 1.0);
    }
    return to;
}

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static float *aligned(po_arena *arena, size_t n) {
    return (float *)(((uintptr_t)PO_NEW_N(arena, float, n + 32) + 63) & ~(uintptr_t)63);
}

static po_status one(po_ctx *ctx, po_arena *arena, const options *o, const char *path) {
    po_mu *mu;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return po_fail(ctx, PO_IO, "cannot read '%s'", path);
    char *source = po_arena_calloc(arena, 1 << 20, 1);
    size_t got = fread(source, 1, (1 << 20) - 1, file);
    (void)fclose(file);
    source[got] = '\0';
    PO_TRY(po_mu_parse(ctx, arena, source, &mu));
    PO_TRY(po_mu_check(ctx, mu, 4 << 20));
    po_text text;
    po_text_init(&text, arena);
    PO_TRY(test_kernel_text(ctx, mu, o->isa, "kernel", &text));
    double before = po_now();
    const char *const texts[] = {text.data};
    void *library;
    PO_TRY(test_kernels_load(ctx, arena, o->isa, texts, 1, o->flags, o->dir, o->keep, &library));
    test_kernel kernel = test_kernel_of(arena, library, "kernel", mu, NULL, o->isa);
    double compiled = po_now() - before;

    int64_t n[64];
    uint64_t state = 1;
    const float *in[64], *weight[64];
    float *out[64];
    uint32_t ins = test_ports(mu, PO_MU_INPUT, n, 64);
    for (uint32_t i = 0; i < ins; i++)
        in[i] = random_floats(arena, n[i], &state);
    uint32_t weights = test_ports(mu, PO_MU_WEIGHT, n, 64);
    for (uint32_t i = 0; i < weights; i++)
        weight[i] = random_floats(arena, n[i], &state);
    uint32_t outs = test_ports(mu, PO_MU_OUTPUT, n, 64);
    for (uint32_t i = 0; i < outs; i++)
        out[i] = aligned(arena, (size_t)n[i]);
    float *device = aligned(arena, kernel.device),
          *scratch = aligned(arena, kernel.scratch * o->parts);
    test_pool pool = {o->parts, o->parts > 1 ? test_pool_threads : test_pool_serial, NULL};
    pool.self = &pool;
    kernel.start(device, kernel.z);
    double *times = PO_NEW_N(arena, double, o->repeat + 1);
    for (int i = 0; i < 3; i++)
        kernel.run(in, weight, out, device, scratch, kernel.z, &pool);
    for (int i = 0; i < o->repeat; i++) {
        double from = po_now();
        kernel.run(in, weight, out, device, scratch, kernel.z, &pool);
        times[i] = po_now() - from;
    }
    qsort(times, (size_t)o->repeat, sizeof *times, by_time);
    po_mu_cost cost;
    po_mu_cost_of(mu, &cost);
    double flop = o->gflop > 0 ? o->gflop * 1e9 : cost.flops;
    const char *name = strrchr(path, '/');
    printf("%-28s %s  best %.4f ms  median %.4f ms  %7.1f GFLOP/s  compiled in %.1f s",
           name == NULL ? path : name + 1, o->isa->name, times[0] * 1e3, times[o->repeat / 2] * 1e3,
           flop / times[0] * 1e-9, compiled);
    if (o->check) {
        double worst = 0;
        const char *wrong = test_kernel_check(ctx, arena, &kernel, in, weight, o->parts, false,
                                              false, 1e4, &worst, NULL);
        printf("  error %.3g u S%s%s", worst,
               wrong == NULL ? "" : "  WRONG: ", wrong == NULL ? "" : wrong);
        if (wrong != NULL) {
            printf("\n");
            return PO_NOT_EQUAL;
        }
    }
    printf("\n");
    (void)dlclose(library);
    return PO_OK;
}

int main(int argc, char **argv) {
    options o = {&po_isas[PO_ISA_AVX512], 1, 0, 50, true, false, NULL, NULL};
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(a, "--no-check") == 0) {
            o.check = false;
            continue;
        }
        if (strncmp(a, "--", 2) == 0) {
            i++;
            if (strcmp(a, "--isa") == 0)
                o.isa = &po_isas[strcmp(next, "avx2") == 0 ? PO_ISA_AVX2 : PO_ISA_AVX512];
            else if (strcmp(a, "--parts") == 0)
                o.parts = (size_t)atoi(next);
            else if (strcmp(a, "--gflop") == 0)
                o.gflop = atof(next);
            else if (strcmp(a, "--repeat") == 0)
                o.repeat = atoi(next);
            else if (strcmp(a, "--flags") == 0)
                o.flags = next;
            else if (strcmp(a, "--keep") == 0) {
                o.dir = next;
                o.keep = true;
            } else {
                fprintf(stderr, "unknown option %s\n", a);
                return 2;
            }
            continue;
        }
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_status status = o.keep ? PO_OK : po_folder_temporary(&ctx, arena, &o.dir);
        if (status == PO_OK)
            status = one(&ctx, arena, &o, a);
        if (status != PO_OK) {
            printf("%s: %s\n", a, ctx.error.message);
            failed = 1;
        }
        po_arena_free(arena);
    }
    return failed;
}
