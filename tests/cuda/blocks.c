/* The schedules of the papers' blocks, printed and run in the emulator against float64: Trinity's
 * in short shapes, and attention, norms and products at shapes where loops run several times and
 * are shared by several blocks.
 *
 *     cuda_blocks trinity|loops */
#include "cuda_cases.h"
#include "gpu_blocks.h"
#include "superopt/gpu/plan.h"

#include <string.h>

enum { EACH = 4 };

/* Attention of 32 queries over 512 keys, with norms, and of one query; products of few rows. */
static const search_block loops[] = {
    {"attention",
     "mugraph m { label b 2 label i 32 label k 64 label j 512 label d 64\n"
     " tensor Q input 0 [2, 32, 64] tensor K input 1 [2, 64, 512] tensor V input 2 [2, 512, 64]\n"
     " tensor O output 0 [2, 32, 64] tensor s device [2, 32, 512] tensor m device [2, 32]\n"
     " tensor p device [2, 32, 512] tensor l device [2, 32] tensor a device [2, 32, 512]\n"
     " step \"a\" { s[b, i, j] += Q[b, i, k] * K[b, k, j] fresh }\n"
     " step \"c\" { m[b, i] max= s[b, i, j] fresh }\n"
     " step \"d\" { p[b, i, j] = exp(s[b, i, j] - m[b, i]) }\n"
     " step \"e\" { l[b, i] += p[b, i, j] fresh }\n"
     " step \"f\" { a[b, i, j] = p[b, i, j] / l[b, i] }\n"
     " step \"g\" { O[b, i, d] += a[b, i, j] * V[b, j, d] fresh } }"},
    {"one query",
     "mugraph m { label b 4 label k 64 label j 512 label d 64\n"
     " tensor Q input 0 [4, 64] tensor K input 1 [4, 512, 64] tensor V input 2 [4, 512, 64]\n"
     " tensor O output 0 [4, 64] tensor s device [4, 512] tensor m device [4]\n"
     " tensor p device [4, 512] tensor l device [4] tensor a device [4, 512]\n"
     " step \"a\" { s[b, j] += Q[b, k] * K[b, j, k] fresh }\n"
     " step \"c\" { m[b] max= s[b, j] fresh }\n"
     " step \"d\" { p[b, j] = exp(s[b, j] - m[b]) }\n"
     " step \"e\" { l[b] += p[b, j] fresh }\n"
     " step \"f\" { a[b, j] = p[b, j] / l[b] }\n"
     " step \"g\" { O[b, d] += a[b, j] * V[b, j, d] fresh } }"},
    {"norm and product",
     "mugraph m { label i 16 label k 512 label j 128\n"
     " tensor X input 0 [16, 512] tensor g weight 0 [512] tensor W weight 1 [512, 128]\n"
     " tensor O output 0 [16, 128]\n"
     " tensor s device [16] tensor r device [16] tensor n device [16, 512]\n"
     " step \"a\" { s[i] += X[i, k] * X[i, k] fresh }\n"
     " step \"b\" { r[i] = 1 / sqrt(s[i] * 0.001953125 + 0.000001) }\n"
     " step \"c\" { n[i, k] = X[i, k] * r[i] * g[k] }\n"
     " step \"d\" { O[i, j] += n[i, k] * W[k, j] fresh } }"},
    {"gated",
     "mugraph m { label i 4 label k 512 label j 128\n"
     " tensor X input 0 [4, 512] tensor U weight 0 [512, 128] tensor V weight 1 [512, 128]\n"
     " tensor O output 0 [4, 128] tensor u device [4, 128] tensor v device [4, 128]\n"
     " step \"a\" { u[i, j] += X[i, k] * U[k, j] fresh }\n"
     " step \"b\" { v[i, j] += X[i, k] * V[k, j] fresh }\n"
     " step \"c\" { O[i, j] = u[i, j] * sigmoid(u[i, j]) * v[i, j] } }"},
    {"gated, one row",
     "mugraph m { label k 512 label j 128\n"
     " tensor X input 0 [512] tensor U weight 0 [512, 128] tensor V weight 1 [512, 128]\n"
     " tensor O output 0 [128] tensor u device [128] tensor v device [128]\n"
     " step \"a\" { u[j] += X[k] * U[k, j] fresh }\n"
     " step \"b\" { v[j] += X[k] * V[k, j] fresh }\n"
     " step \"c\" { O[j] = u[j] * sigmoid(u[j]) * v[j] } }"},
    {"low rank",
     "mugraph m { label i 16 label k 256 label r 16 label j 256\n"
     " tensor X input 0 [16, 256] tensor W weight 0 [256, 256] tensor A weight 1 [256, 16]\n"
     " tensor B weight 2 [16, 256] tensor O output 0 [16, 256]\n"
     " tensor t device [16, 16] tensor u device [16, 256] tensor v device [16, 256]\n"
     " step \"a\" { t[i, r] += X[i, k] * A[k, r] fresh }\n"
     " step \"b\" { u[i, j] += t[i, r] * B[r, j] fresh }\n"
     " step \"c\" { v[i, j] += X[i, k] * W[k, j] fresh }\n"
     " step \"d\" { O[i, j] = v[i, j] + u[i, j] } }"},
};

/* The best candidates, and those whose program differs most from them. */
static void add(cuda_cases *c, const search_block *block, const po_mu *mu) {
    po_gpu_candidate *found;
    po_gpu_options options = {0};
    uint32_t n, taken = 0;
    if (po_gpu_plan(c->ctx, c->arena, mu, po_gpu_named("H100"), &options, &found, &n) != PO_OK)
        cuda_die(block->name, c->ctx->error.message);
    for (uint32_t k = 0; k < n; k++) {
        /* Loops that blocks share are few among the best. */
        if (taken >= EACH && !strstr(found[k].what, " parts"))
            continue;
        taken++;
        const char *name =
            po_arena_printf(c->arena, "%s, plan %u: %s", block->name, k, found[k].what);
        cuda_add(c, name, found[k].mu)->options.tf32 = true;
    }
}

static void make_trinity(cuda_cases *c) {
    for (uint32_t i = 0; i < n_gpu_blocks; i++)
        add(c, &gpu_blocks[i], cuda_parsed(c, gpu_blocks[i].name, gpu_blocks[i].text));
}

static void make_loops(cuda_cases *c) {
    for (uint32_t i = 0; i < sizeof loops / sizeof *loops; i++)
        for (int t = PO_MU_F32; t <= PO_MU_F16; t++) {
            const po_mu *mu = cuda_typed(c, loops[i].name, loops[i].text, (po_mu_type)t);
            add(c, &loops[i], mu);
        }
}

int main(int argc, char **argv) {
    static const cuda_part parts[] = {{"trinity", make_trinity}, {"loops", make_loops}};
    return cuda_main(argc, argv, parts, sizeof parts / sizeof *parts);
}
