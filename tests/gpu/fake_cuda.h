/* Between the fake libraries: a driver whose GPU is this process's memory. */
#ifndef PO_TESTS_FAKE_CUDA_H
#define PO_TESTS_FAKE_CUDA_H

#include <stdint.h>

/* Does the work now, or keeps it in the graph that the stream captures. Takes `microseconds` of the
 * GPU's clock, which only work moves. The argument is malloc's and stays the driver's. */
__attribute__((visibility("default"))) void fake_cuda_enqueue(void *stream, void (*work)(void *),
                                                              void *argument, double microseconds);
/* Whether so many bytes at an address belong to the GPU. */
__attribute__((visibility("default"))) int fake_cuda_holds(const void *at, uint64_t bytes);

/* A kernel of a fake module: an image is the text "fake " and the path of a library with a function
 * of this type, and an int NAME_args, for each kernel. */
typedef void fake_cuda_kernel(void *const *parameters, const unsigned grid[3], unsigned threads);

#endif
