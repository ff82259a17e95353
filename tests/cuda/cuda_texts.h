/* Block-level muGraphs as a GPU's schedules have them, with lengths that divide nothing. */
#ifndef TEST_CUDA_CUDA_TEXTS_H
#define TEST_CUDA_CUDA_TEXTS_H

#include "search_blocks.h"

extern const search_block cuda_texts[];
extern const uint32_t n_cuda_texts;

#endif
