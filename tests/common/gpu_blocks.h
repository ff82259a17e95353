/* The six blocks of the Trinity paper as they are lowered from f16 models, in short shapes: 8
 * tokens behind 40, 4 heads of 16. */
#ifndef PO_TESTS_GPU_BLOCKS_H
#define PO_TESTS_GPU_BLOCKS_H

#include "search_blocks.h"

extern const search_block gpu_blocks[];
extern const uint32_t n_gpu_blocks;

#endif
