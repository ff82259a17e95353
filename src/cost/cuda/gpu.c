/* The table of GPUs, and a roofline estimate of a kernel's seconds: products, scalar work and
 * memory, each at what kernels usually reach of the peak, and whole waves of blocks. */
#include "cost/cuda/gpu.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define KB ((int64_t)1024)
#define MB (1024 * KB)
#define T  1e12

/* The part that mma.sync reaches of the Hopper's and Blackwell's peaks is what others report; their
 * newer instructions alone reach all of it. */
static const po_gpu gpus[] = {
    {"A100", 80, 108, 2048, 163 * KB, 164 * KB, 65536, 40 * MB, 2.04 * T, 5.0 * T, 19.5 * T,
     156 * T, 312 * T, 1.0, 1.2e-6, 2.2e-6},
    {"A10", 86, 72, 1536, 99 * KB, 100 * KB, 65536, 6 * MB, 0.6 * T, 1.8 * T, 31.2 * T, 62.5 * T,
     125 * T, 1.0, 1.2e-6, 2.0e-6},
    {"L4", 89, 58, 1536, 99 * KB, 100 * KB, 65536, 48 * MB, 0.3 * T, 1.6 * T, 30.3 * T, 60 * T,
     121 * T, 1.0, 1.1e-6, 2.0e-6},
    {"H100", 90, 132, 2048, 227 * KB, 228 * KB, 65536, 50 * MB, 3.35 * T, 5.6 * T, 66.9 * T,
     494 * T, 989 * T, 0.62, 1.0e-6, 2.0e-6},
    {"H200", 90, 132, 2048, 227 * KB, 228 * KB, 65536, 50 * MB, 4.8 * T, 5.8 * T, 66.9 * T, 494 * T,
     989 * T, 0.62, 1.0e-6, 2.0e-6},
    {"B200", 100, 148, 2048, 227 * KB, 228 * KB, 65536, 126 * MB, 7.7 * T, 10.0 * T, 75 * T,
     1100 * T, 2250 * T, 0.3, 1.0e-6, 2.0e-6},
};

const po_gpu *po_gpu_at(size_t index) {
    return index < sizeof gpus / sizeof gpus[0] ? &gpus[index] : NULL;
}

/* Whether `name` stands in `text` as a word of its own. */
static bool has_word(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *p = strstr(text, name); p; p = strstr(p + 1, name))
        if ((p == text || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[n]))
            return true;
    return false;
}

const po_gpu *po_gpu_named(const char *name) {
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++)
        if (has_word(name, gpus[i].name))
            return &gpus[i];
    return NULL;
}

double po_gpu_peak(const po_gpu *gpu, po_gpu_math math, bool library) {
    double part = library ? 1 : gpu->mma;
    return math == PO_GPU_F32 ? gpu->f32 : math == PO_GPU_TF32 ? gpu->tf32 * part : gpu->f16 * part;
}

int64_t po_gpu_bytes_of(po_gpu_math math) {
    return math == PO_GPU_F16 || math == PO_GPU_BF16 ? 2 : 4;
}

/* What kernels reach of a peak that is on paper: products, everything else, memory. */
static const double products_reach = 0.75, scalar_reach = 0.6, memory_reach = 0.85;
/* So many blocks a multiprocessor are needed for the memory's rate. */
static const double blocks_for_memory = 0.6;

/* The part of the multiprocessors' time that is used: whole waves of blocks. */
static double used(const po_gpu *gpu, double blocks) {
    if (blocks <= 0)
        return 1;
    double waves = ceil(blocks / gpu->sms);
    return blocks / (waves * gpu->sms);
}

double po_gpu_seconds(const po_gpu *gpu, const po_gpu_work *work, bool warm) {
    double part = used(gpu, work->blocks);
    double products =
        work->flops / (po_gpu_peak(gpu, work->math, work->library) * products_reach * part);
    double scalar = work->scalar / (gpu->f32 * scalar_reach * part);
    double reach = work->blocks > 0
                       ? fmin(1, work->blocks / (blocks_for_memory * gpu->sms)) * memory_reach
                       : memory_reach;
    bool kept = warm && work->dram < (double)gpu->l2 / 2;
    double dram = work->dram / ((kept ? gpu->l2_rate : gpu->dram) * reach);
    double l2 = fmax(work->l2, work->dram) / (gpu->l2_rate * reach);
    /* Products and the rest share the issue slots: they add up. */
    return gpu->launch + gpu->latency + fmax(products + scalar, fmax(dram, l2));
}
