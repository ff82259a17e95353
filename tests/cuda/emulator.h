/* Runs printed CUDA C on the CPU (docs/cuda-testing.md): the threads of a block are fibers, blocks
 * and warps run in an order drawn from a seed, shared memory starts as NaN, asynchronous copies
 * land when they are waited for. Where the text was compiled by clang, which calls us for every
 * load and store, each access is checked: inside a buffer or not, ordered by a barrier or not.
 *
 * One launch at a time, whatever thread asks. */
#ifndef TEST_CUDA_EMULATOR_H
#define TEST_CUDA_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_API __attribute__((visibility("default")))

typedef void (*emu_entry)(void **args); /* NAME__call of a compiled text */

typedef struct emu_launch_shape {
    uint32_t grid[3], threads;
    uint32_t shared; /* bytes */
} emu_launch_shape;

/* The order of blocks, warps and lanes from here on. */
EMU_API void emu_seed(uint64_t seed);
/* Memory of the device: NaN at first, fenced. NULL: no more. */
EMU_API void *emu_alloc(size_t bytes);
EMU_API bool emu_free(void *data);
/* Whether memory of the process counts as memory of the device too, unchecked: for runtimes that
 * have no other. At first it does not. */
EMU_API void emu_host(bool yes);
/* Whether a buffer holds all these bytes. */
EMU_API bool emu_holds(const void *data, size_t bytes);
/* False: emu_error() says what went wrong, naming kernel, block and thread. */
EMU_API bool emu_launch(emu_entry entry, const char *name, const emu_launch_shape *shape,
                        void **args);
/* The first fault since the last emu_clear; "" if none. */
EMU_API const char *emu_error(void);
EMU_API void emu_clear(void);
/* Loads and stores that were checked so far: 0 says that the compiler has no such calls. */
EMU_API uint64_t emu_accesses(void);

#endif
