/* What the parts of the emulator share. */
#ifndef TEST_CUDA_EMULATOR_PRIVATE_H
#define TEST_CUDA_EMULATOR_PRIVATE_H

#include "emulator.h"

enum {
    EMU_LANES = 32,
    EMU_THREADS = 1024,
    EMU_WARPS = EMU_THREADS / EMU_LANES,
    EMU_STACK = 256 << 10,
    EMU_SHARED_MAX = 256 << 10,
    EMU_COPIES = 4096 /* of a thread in flight */
};

typedef enum emu_state { EMU_READY, EMU_IN_WARP, EMU_IN_BARRIER, EMU_DONE } emu_state;

typedef enum emu_op {
    EMU_OP_BARRIER,
    EMU_OP_MMA,
    EMU_OP_LDMATRIX,
    EMU_OP_SHUFFLE,
    EMU_OP_BALLOT
} emu_op;

typedef struct emu_copy_job {
    unsigned char *to;
    const unsigned char *from;
    uint8_t size, bytes;
    uint32_t group;
} emu_copy_job;

typedef struct emu_thread {
    void *sp;
    emu_state state;
    /* what it asks of its warp */
    emu_op op;
    int kind, by, width;
    float *d;
    const unsigned *a, *b;
    unsigned *r;
    const void *row;
    unsigned bits, result;
    /* copies, oldest first, in a ring */
    emu_copy_job *copies;
    uint32_t n_copies, first_copy, groups; /* groups: committed so far */
} emu_thread;

typedef struct emu_warp {
    uint32_t lanes, arrived, done;
    uint32_t start, stride; /* the order of its lanes */
    uint32_t ordered;       /* time of its last barrier */
} emu_warp;

typedef struct emu_machine {
    uint64_t random, accesses;
    /* the launch */
    emu_entry entry;
    void **args;
    const char *name;
    uint32_t threads, warps, shared;
    uint32_t block; /* in the order of numbers */
    bool failed;
    bool host; /* emu_host */
    /* Time steps at barriers. What happened before `ordered` is ordered before what follows, in
     * this block. */
    uint32_t now, ordered, block_start, launch_start;
    uint32_t current; /* thread */
    void *scheduler;  /* its stack pointer */
    emu_thread thread[EMU_THREADS];
    emu_warp warp[EMU_WARPS];
    char error[1024];
} emu_machine;

extern emu_machine emu;

static inline uint32_t emu_random(uint32_t below) {
    emu.random ^= emu.random << 13;
    emu.random ^= emu.random >> 7;
    emu.random ^= emu.random << 17;
    return (uint32_t)(emu.random >> 33) % below;
}

/* Records the fault and leaves the block, unless the scheduler itself calls it. */
__attribute__((format(printf, 1, 2))) void emu_fail(const char *format, ...);
/* The same for a thread other than the current one. */
__attribute__((format(printf, 2, 3))) void emu_fail_at(uint32_t thread, const char *format, ...);

/* Whether an address lies in the threads' stacks, or in constants of the kernel's library. */
bool emu_is_own(const void *at);

/* --- fibers --- */

/* Where a thread starts: emu_thread_main. */
void *emu_fiber_new(unsigned char *stack, size_t size, void (*start)(void));
void emu_fiber_switch(void **from, void *to);

/* --- memory --- */

bool emu_memory_open(void);
/* The block's shared memory, full of NaN. */
void emu_memory_block(uint32_t shared);
/* A block was left in the middle. */
void emu_memory_failed(void);
/* Whether the fences around shared memory and buffers stand; says what is wrong. */
bool emu_memory_whole(void);
unsigned char *emu_memory_shared(void);
void emu_check_load(const void *at, uint32_t bytes, uint32_t thread);
void emu_check_store(const void *at, uint32_t bytes, uint32_t thread);
/* A copy is on its way to `at`; it is there. */
void emu_check_sent(const void *at, uint32_t bytes, uint32_t thread);
void emu_check_landed(const void *at, uint32_t bytes, uint32_t thread);
bool emu_is_shared(const void *at, uint32_t bytes);

/* --- what warps do together --- */

void emu_warp_perform(uint32_t first, uint32_t lanes);
void emu_copies_open(emu_thread *t);

#endif
