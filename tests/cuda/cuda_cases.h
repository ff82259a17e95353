/* A program that checks cases: a list of them for each of its parts, and its main. */
#ifndef TEST_CUDA_CUDA_CASES_H
#define TEST_CUDA_CUDA_CASES_H

#include "cuda_check.h"

enum { CUDA_MOST_CASES = 256 };

typedef struct cuda_cases {
    po_ctx *ctx;
    po_arena *arena;
    cuda_case list[CUDA_MOST_CASES];
    uint32_t n;
} cuda_cases;

/* Ends the program with 2. */
_Noreturn void cuda_die(const char *name, const char *why);
po_mu *cuda_parsed(cuda_cases *c, const char *name, const char *text);
/* In one type (cuda_check_typed). */
po_mu *cuda_typed(cuda_cases *c, const char *name, const char *text, po_mu_type type);
/* The muGraph must be sound. */
cuda_case *cuda_add(cuda_cases *c, const char *name, const po_mu *mu);
/* Prints the kernels of a case, without the prelude; nothing where that fails. */
void cuda_show(po_ctx *ctx, po_arena *arena, const cuda_case *c);

typedef struct cuda_part {
    const char *name;
    void (*make)(cuda_cases *c);
} cuda_part;

/* PROGRAM PART [NAME [text]]: checks the cases of a part; for people, those with NAME in theirs,
 * and with a third word their kernels too. */
int cuda_main(int argc, char **argv, const cuda_part *parts, size_t n_parts);

#endif
