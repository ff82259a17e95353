/* The texts: RMSNorm and a linear layer, a gated MLP, LoRA, nTrans, grouped-query attention, and
 * attention with normed queries and keys. */
#include "search_blocks.h"

#include <stddef.h>
#include <string.h>

/* Attention: what it reads, what it keeps, and the steps from scores on. */
#define QUERIES_KEYS_VALUES                                                                        \
    "mugraph m { label b 2 label i 16 label k 16 label j 64 label d 32\n"                          \
    " tensor Q input 0 [2, 16, 16] tensor K input 1 [2, 16, 64] tensor V input 2 [2, 64, 32]\n"
#define SCORES_AND_OUTPUT                                                                          \
    " tensor O output 0 [2, 16, 32] tensor s device [2, 16, 64] tensor m device [2, 16]\n"         \
    " tensor p device [2, 16, 64] tensor l device [2, 16] tensor a device [2, 16, 64]\n"
#define FROM_SCORES                                                                                \
    " step \"b\" { u[b, i, j] = s[b, i, j] * 0.25 }\n"                                             \
    " step \"c\" { m[b, i] max= u[b, i, j] fresh }\n"                                              \
    " step \"d\" { p[b, i, j] = exp(u[b, i, j] - m[b, i]) }\n"                                     \
    " step \"e\" { l[b, i] += p[b, i, j] fresh }\n"                                                \
    " step \"f\" { a[b, i, j] = p[b, i, j] / l[b, i] }\n"                                          \
    " step \"g\" { O[b, i, d] += a[b, i, j] * V[b, j, d] fresh } }"

/* Naive muGraphs, one statement a step, in short shapes. */
const search_block search_blocks[] = {
    {"rmsnorm_linear",
     "mugraph m { label i 16 label k 64 label j 128\n"
     " tensor X input 0 [16, 64] tensor g weight 0 [64] tensor W weight 1 [64, 128]\n"
     " tensor O output 0 [16, 128]\n"
     " tensor s device [16] tensor r device [16] tensor n device [16, 64]\n"
     " step \"a\" { s[i] += X[i, k] * X[i, k] fresh }\n"
     " step \"b\" { r[i] = 1 / sqrt(s[i] * 0.015625 + 0.000001) }\n"
     " step \"c\" { n[i, k] = X[i, k] * r[i] * g[k] }\n"
     " step \"d\" { O[i, j] += n[i, k] * W[k, j] fresh } }"},
    {"gated_mlp",
     "mugraph m { label i 8 label k 64 label j 128\n"
     " tensor X input 0 [8, 64] tensor U weight 0 [64, 128] tensor V weight 1 [64, 128]\n"
     " tensor O output 0 [8, 128] tensor u device [8, 128] tensor v device [8, 128]\n"
     " step \"a\" { u[i, j] += X[i, k] * U[k, j] fresh }\n"
     " step \"b\" { v[i, j] += X[i, k] * V[k, j] fresh }\n"
     " step \"c\" { O[i, j] = u[i, j] * sigmoid(u[i, j]) * v[i, j] } }"},
    {"lora", "mugraph m { label i 16 label k 64 label r 16 label j 128\n"
             " tensor X input 0 [16, 64] tensor W weight 0 [64, 128] tensor A weight 1 [64, 16]\n"
             " tensor B weight 2 [16, 128] tensor O output 0 [16, 128]\n"
             " tensor t device [16, 16] tensor u device [16, 128] tensor v device [16, 128]\n"
             " step \"a\" { t[i, r] += X[i, k] * A[k, r] fresh }\n"
             " step \"b\" { u[i, j] += t[i, r] * B[r, j] fresh }\n"
             " step \"c\" { v[i, j] += X[i, k] * W[k, j] fresh }\n"
             " step \"d\" { O[i, j] = v[i, j] + u[i, j] } }"},
    {"ntrans",
     "mugraph m { label i 8 label k 64\n"
     " tensor X input 0 [8, 64] tensor H input 1 [8, 64] tensor A input 2 [8, 64]\n"
     " tensor O output 0 [8, 64] tensor s device [8] tensor r device [8] tensor y device [8, 64]\n"
     " tensor t device [8] tensor q device [8]\n"
     " step \"a\" { s[i] += H[i, k] * H[i, k] fresh }\n"
     " step \"b\" { r[i] = sqrt(s[i]) }\n"
     " step \"c\" { y[i, k] = X[i, k] + A[i, k] * (H[i, k] / r[i] - X[i, k]) }\n"
     " step \"d\" { t[i] += y[i, k] * y[i, k] fresh }\n"
     " step \"e\" { q[i] = sqrt(t[i]) }\n"
     " step \"f\" { O[i, k] = y[i, k] / q[i] } }"},
    {"gqa", QUERIES_KEYS_VALUES SCORES_AND_OUTPUT
     " tensor u device [2, 16, 64]\n"
     " step \"a\" { s[b, i, j] += Q[b, i, k] * K[b, k, j] fresh }\n" FROM_SCORES},
    {"qknorm", QUERIES_KEYS_VALUES
     " tensor g weight 0 [16] tensor h weight 1 [16]\n" SCORES_AND_OUTPUT
     " tensor u device [2, 16, 64] tensor qs device [2, 16] tensor ks device [2, 64]\n"
     " tensor qn device [2, 16, 16] tensor kn device [2, 16, 64]\n"
     " step \"q\" { qs[b, i] += Q[b, i, k] * Q[b, i, k] fresh }\n"
     " step \"r\" { qn[b, i, k] = Q[b, i, k] / sqrt(qs[b, i] * 0.0625 + 0.000001) * g[k] }\n"
     " step \"s\" { ks[b, j] += K[b, k, j] * K[b, k, j] fresh }\n"
     " step \"t\" { kn[b, k, j] = K[b, k, j] / sqrt(ks[b, j] * 0.0625 + 0.000001) * h[k] }\n"
     " step \"a\" { s[b, i, j] += qn[b, i, k] * kn[b, k, j] fresh }\n" FROM_SCORES},
};
const uint32_t n_search_blocks = sizeof search_blocks / sizeof *search_blocks;

const char *search_block_of(const char *name) {
    for (uint32_t i = 0; i < n_search_blocks; i++)
        if (strcmp(search_blocks[i].name, name) == 0)
            return search_blocks[i].text;
    return NULL;
}
