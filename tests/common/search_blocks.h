/* The six blocks of the Mirage paper as naive muGraphs, in short shapes. */
#ifndef PO_TESTS_SEARCH_BLOCKS_H
#define PO_TESTS_SEARCH_BLOCKS_H

#include <stdint.h>

typedef struct search_block {
    const char *name, *text;
} search_block;
extern const search_block search_blocks[];
extern const uint32_t n_search_blocks;
const char *search_block_of(const char *name);

#endif
