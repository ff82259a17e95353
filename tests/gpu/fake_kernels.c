/* "Kernels" of the fake driver: over f32, n by the grid and the threads of a block. */
#include "fake_cuda.h"

#define API __attribute__((visibility("default")))

API int add_args = 3, twice_args = 2, almost_args = 2, wild_args = 2;

API void add(void *const *parameters, const unsigned grid[3], unsigned threads) {
    const float *a = *(float *const *)parameters[0], *b = *(float *const *)parameters[1];
    float *y = *(float *const *)parameters[2];
    for (unsigned i = 0; i < grid[0] * threads; i++)
        y[i] = a[i] + b[i];
}

API void twice(void *const *parameters, const unsigned grid[3], unsigned threads) {
    const float *a = *(float *const *)parameters[0];
    float *y = *(float *const *)parameters[1];
    for (unsigned i = 0; i < grid[0] * threads; i++)
        y[i] = 2 * a[i];
}

/* Wrong in the last element. */
API void almost(void *const *parameters, const unsigned grid[3], unsigned threads) {
    twice(parameters, grid, threads);
    (*(float *const *)parameters[1])[grid[0] * threads - 1] *= 1.001F;
}

/* As a kernel that takes the GPU's driver down. */
API void wild(void *const *parameters, const unsigned grid[3], unsigned threads) {
    (void)parameters, (void)grid, (void)threads;
    __builtin_trap();
}
