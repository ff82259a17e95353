/* The table of a model's regions for NVIDIA GPUs: petopt_table.c has it. C and C++. */
#ifndef PETOPT_TABLE_H
#define PETOPT_TABLE_H

#include "petopt_cuda.h"
#include "petopt_region.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const pk_region pk_regions[]; /* code: a pk_program */
extern const size_t pk_n_regions;

#ifdef __cplusplus
}
#endif

#endif
