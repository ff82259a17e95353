/* Prints, compiles, loads and runs a muGraph: for tests of the printer and for its bench. */
#ifndef TEST_KERNEL_RUN_H
#define TEST_KERNEL_RUN_H

#include "codegen/cpu/kernel.h"

#include <pthread.h>

typedef struct test_pool {
    size_t parts;
    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
    void *self;
} test_pool;

typedef void (*test_kernel_fn)(const float *const *in, const float *const *weight,
                               float *const *out, float *device, float *scratch, const long *z,
                               const test_pool *pool);

typedef struct test_kernel {
    const po_mu *mu;
    const po_isa *isa;
    void (*start)(float *device, const long *z);
    test_kernel_fn run;
    const long *z;
    size_t device, scratch;
    const uint32_t *weight; /* by WEIGHT number of mu: that of the call, the others NULL there;
                               NULL: the same */
} test_kernel;

/* Memory that ends (or, at_start, starts) where nothing may be touched. */
typedef struct test_buffer {
    float *data;
    size_t floats;
    void *map;
    size_t size;
} test_buffer;

/* The tensors of a place by number: how many, and their elements. */
uint32_t test_ports(const po_mu *mu, po_mu_place place, int64_t *elements, uint32_t most);

/* What a file of kernels starts with. */
void test_text_start(const po_isa *isa, po_text *text);
/* The text of a file that defines SYMBOL, after what is there. */
po_status test_kernel_text(po_ctx *ctx, const po_mu *mu, const po_isa *isa, const char *symbol,
                           po_text *text);
/* The same of one that is open. */
po_status test_open_text(po_ctx *ctx, const po_mu_open *open, const po_isa *isa, const char *symbol,
                         po_text *text);
/* Compiles such texts, one file each, and loads them; the files stay in DIR where keep. */
po_status test_kernels_load(po_ctx *ctx, po_arena *arena, const po_isa *isa,
                            const char *const *texts, uint32_t n, const char *flags,
                            const char *dir, bool keep, void **library);
/* given: lengths of what is open, `mu` at these. */
test_kernel test_kernel_of(po_arena *arena, void *library, const char *symbol, const po_mu *mu,
                           const long *given, const po_isa *isa);
/* Whether this machine runs the instruction set. */
bool test_has_isa(const po_isa *isa);

test_buffer test_buffer_of(size_t floats, bool at_start, bool aligned);
void test_buffer_free(test_buffer *b);
/* Whether what lies between the buffer and the fence is as it was. */
bool test_buffer_whole(const test_buffer *b);

/* Runs the parts one after the other, or each on its own thread. */
void test_pool_serial(void *self, void (*fn)(void *arg, size_t part), void *arg);
void test_pool_threads(void *self, void (*fn)(void *arg, size_t part), void *arg);

/* Evaluates in float64 and compares, element by element: |y - ref| <= k u S. Returns NULL or what
 * is wrong; worst (may be NULL) gets the greatest |y - ref| / (u S). */
const char *test_kernel_check(po_ctx *ctx, po_arena *arena, const test_kernel *kernel,
                              const float *const *in, const float *const *weight, size_t parts,
                              bool threads, bool at_start, double k, double *worst,
                              float **outputs);

#endif
