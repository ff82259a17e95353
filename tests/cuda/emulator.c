/* Blocks, one after the other: their threads as fibers, warps in a drawn order. */
#include "emulator.h"
#include "emulate_api.h"
#include "emulator_private.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

emu_machine emu = {.random = 0x9e3779b97f4a7c15, .now = 1};
emu_dim3 threadIdx, blockIdx, blockDim, gridDim;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *stacks;

enum { NOBODY = UINT32_MAX };

void emu_seed(uint64_t seed) {
    emu.random = (seed + 1) * 0x9e3779b97f4a7c15;
}

void emu_host(bool yes) {
    emu.host = yes;
}

uint64_t emu_accesses(void) {
    return emu.accesses;
}

const char *emu_error(void) {
    return emu.error;
}

void emu_clear(void) {
    emu.error[0] = '\0';
}

/* --- faults --- */

static void record(uint32_t thread, const char *format, va_list args) {
    emu.failed = true;
    if (emu.error[0])
        return;
    int n = snprintf(emu.error, sizeof emu.error, "kernel %s, block (%u, %u, %u)", emu.name,
                     blockIdx.x, blockIdx.y, blockIdx.z);
    if (thread != NOBODY)
        n += snprintf(emu.error + n, sizeof emu.error - (size_t)n, ", thread %u", thread);
    n += snprintf(emu.error + n, sizeof emu.error - (size_t)n, ": ");
    (void)vsnprintf(emu.error + n, sizeof emu.error - (size_t)n, format, args);
}

static void leave(void) {
    if (emu.current != NOBODY)
        emu_fiber_switch(&emu.thread[emu.current].sp, emu.scheduler);
}

void emu_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    record(emu.current, format, args);
    va_end(args);
    leave();
}

void emu_fail_at(uint32_t thread, const char *format, ...) {
    va_list args;
    va_start(args, format);
    record(thread, format, args);
    va_end(args);
    leave();
}

void emu_trap(void) {
    emu_fail("the kernel gave up (__trap)");
}

/* --- threads --- */

static void enter(uint32_t thread) {
    emu.current = thread;
    threadIdx.x = thread;
}

/* The next lane of the current one's warp that can go on, in the warp's order. */
static uint32_t next_lane(uint32_t thread) {
    const emu_warp *w = &emu.warp[thread / EMU_LANES];
    uint32_t first = thread / EMU_LANES * EMU_LANES, lane = thread % EMU_LANES;
    for (uint32_t i = 0; i < EMU_LANES; i++) {
        lane = (lane + w->stride) % EMU_LANES;
        if (lane < w->lanes && emu.thread[first + lane].state == EMU_READY)
            return first + lane;
    }
    return NOBODY;
}

/* The current thread waits: another lane runs, or else another warp. */
static void give_way(emu_state state) {
    emu_thread *t = &emu.thread[emu.current];
    uint32_t me = emu.current, next;
    t->state = state;
    next = next_lane(me);
    if (next == NOBODY) {
        emu_fiber_switch(&t->sp, emu.scheduler);
    } else {
        enter(next);
        emu_fiber_switch(&t->sp, emu.thread[next].sp);
    }
    /* whoever came back has entered us */
}

static void together(emu_op op) {
    emu_thread *t = &emu.thread[emu.current];
    emu_warp *w = &emu.warp[emu.current / EMU_LANES];
    uint32_t first = emu.current / EMU_LANES * EMU_LANES;
    t->op = op;
    if (++w->arrived < w->lanes) {
        give_way(EMU_IN_WARP);
        return;
    }
    w->arrived = 0;
    emu_warp_perform(first, w->lanes);
    for (uint32_t lane = 0; lane < w->lanes; lane++)
        emu.thread[first + lane].state = EMU_READY;
    if (emu_random(8) == 0) /* another warp may go first */
        emu_fiber_switch(&t->sp, emu.scheduler);
}

void emu_barrier(void) {
    give_way(EMU_IN_BARRIER);
}

void emu_warp_barrier(void) {
    together(EMU_OP_BARRIER);
}

void emu_mma(int kind, float *d, const unsigned *a, const unsigned *b) {
    emu_thread *t = &emu.thread[emu.current];
    t->kind = kind;
    t->d = d;
    t->a = a;
    t->b = b;
    together(EMU_OP_MMA);
}

void emu_ldmatrix(int count, int transposed, unsigned *r, const void *row) {
    emu_thread *t = &emu.thread[emu.current];
    t->kind = count;
    t->by = transposed;
    t->r = r;
    t->row = row;
    together(EMU_OP_LDMATRIX);
}

unsigned emu_shuffle(unsigned bits, int how, int by, int width) {
    emu_thread *t = &emu.thread[emu.current];
    t->bits = bits;
    t->kind = how;
    t->by = by;
    t->width = width;
    together(EMU_OP_SHUFFLE);
    return t->result;
}

unsigned emu_ballot(int yes) {
    emu_thread *t = &emu.thread[emu.current];
    t->bits = yes != 0;
    t->kind = 0;
    together(EMU_OP_BALLOT);
    return t->result;
}

unsigned char *emu_shared(void) {
    return emu_memory_shared();
}

static void thread_main(void) {
    emu.entry(emu.args);
    emu_wait(0);
    emu.warp[emu.current / EMU_LANES].done++;
    give_way(EMU_DONE);
    abort(); /* nobody goes back to a thread that is done */
}

/* --- blocks --- */

static void start_block(void) {
    emu.block_start = emu.ordered = ++emu.now;
    for (uint32_t w = 0; w < emu.warps; w++) {
        uint32_t left = emu.threads - w * EMU_LANES;
        emu.warp[w] = (emu_warp){.lanes = left < EMU_LANES ? left : EMU_LANES,
                                 .start = emu_random(EMU_LANES),
                                 .stride = emu_random(16) * 2 + 1,
                                 .ordered = emu.now};
    }
    for (uint32_t i = 0; i < emu.threads; i++) {
        emu_thread *t = &emu.thread[i];
        t->state = EMU_READY;
        t->sp = emu_fiber_new(stacks + (size_t)i * EMU_STACK, EMU_STACK, thread_main);
        emu_copies_open(t);
    }
    emu_memory_block(emu.shared);
}

/* A thread of a drawn warp that can go on. */
static uint32_t some_thread(void) {
    uint32_t start = emu_random(emu.warps);
    for (uint32_t i = 0; i < emu.warps; i++) {
        uint32_t w = (start + i) % emu.warps, first = w * EMU_LANES;
        uint32_t lane = next_lane(first + emu.warp[w].start);
        if (lane != NOBODY)
            return lane;
    }
    return NOBODY;
}

/* No thread can go on: they are all done, all at a barrier, or something is wrong. */
static bool settle(void) {
    uint32_t waiting = 0, done = 0, at_barrier = NOBODY, missing = NOBODY;
    for (uint32_t i = 0; i < emu.threads; i++) {
        emu_state s = emu.thread[i].state;
        if (s == EMU_IN_WARP) {
            emu_fail_at(i, "waits for lanes of its warp that %s",
                        emu.warp[i / EMU_LANES].done ? "have ended" : "are at a barrier");
            return false;
        }
        if (s == EMU_IN_BARRIER) {
            waiting++;
            at_barrier = i;
        } else {
            done++;
            missing = i;
        }
    }
    if (waiting == 0)
        return false;
    if (done) {
        emu_fail_at(at_barrier, "waits at a barrier that thread %u has missed", missing);
        return false;
    }
    for (uint32_t i = 0; i < emu.threads; i++)
        emu.thread[i].state = EMU_READY;
    emu.ordered = ++emu.now;
    return true;
}

static void run_block(void) {
    start_block();
    while (!emu.failed) {
        uint32_t next = some_thread();
        if (next == NOBODY) {
            if (!settle())
                break;
            continue;
        }
        enter(next);
        emu_fiber_switch(&emu.scheduler, emu.thread[next].sp);
        emu.current = NOBODY;
    }
    if (emu.failed)
        emu_memory_failed();
    else
        (void)emu_memory_whole();
}

/* --- addresses --- */

enum { OBJECTS = 2 };
static struct { uintptr_t start, end; } own[OBJECTS]; /* the kernel's library, and this one */

static int look_at(struct dl_phdr_info *info, size_t size, void *data) {
    const uintptr_t *inside = data;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        for (int k = 0; k < OBJECTS; k++)
            if (inside[k] - info->dlpi_addr < (uintptr_t)1 << 30 && inside[k] >= start &&
                inside[k] - start < info->dlpi_phdr[i].p_memsz) {
                own[k].start = info->dlpi_addr;
                own[k].end = 0;
                for (int m = 0; m < info->dlpi_phnum; m++)
                    if (info->dlpi_phdr[m].p_type == PT_LOAD) {
                        uintptr_t end = info->dlpi_addr + info->dlpi_phdr[m].p_vaddr +
                                        info->dlpi_phdr[m].p_memsz;
                        own[k].end = end > own[k].end ? end : own[k].end;
                    }
            }
    }
    return 0;
}

bool emu_is_own(const void *at) {
    if ((size_t)((const unsigned char *)at - stacks) < (size_t)EMU_THREADS * EMU_STACK)
        return true;
    for (int k = 0; k < OBJECTS; k++)
        if ((uintptr_t)at >= own[k].start && (uintptr_t)at < own[k].end)
            return true;
    return false;
}

static struct sigaction before;

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)info;
    (void)context;
    if (emu.current != NOBODY)
        emu_fail("touches an address where there is no memory");
    (void)sigaction(number, &before, NULL);
}

/* --- launches --- */

static bool prepare(const emu_launch_shape *shape) {
    if (!emu_memory_open())
        return false;
    if (!stacks) {
        void *p = mmap(NULL, (size_t)EMU_THREADS * EMU_STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        stacks = p == MAP_FAILED ? NULL : p;
    }
    return stacks && shape->threads >= 1 && shape->threads <= EMU_THREADS &&
           shape->shared <= EMU_SHARED_MAX && shape->grid[0] && shape->grid[1] && shape->grid[2] &&
           (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2] < 1 << 22;
}

bool emu_launch(emu_entry entry, const char *name, const emu_launch_shape *shape, void **args) {
    (void)pthread_mutex_lock(&lock);
    emu.name = name;
    emu.current = NOBODY;
    emu.failed = false;
    blockIdx = (emu_dim3){0, 0, 0};
    if (!prepare(shape)) {
        emu_fail("a launch of %u x %u x %u blocks of %u threads, with %u bytes of shared memory",
                 shape->grid[0], shape->grid[1], shape->grid[2], shape->threads, shape->shared);
        (void)pthread_mutex_unlock(&lock);
        return false;
    }
    emu.entry = entry;
    emu.args = args;
    emu.threads = shape->threads;
    emu.warps = (shape->threads + EMU_LANES - 1) / EMU_LANES;
    emu.shared = shape->shared;
    emu.launch_start = ++emu.now;
    uintptr_t inside[OBJECTS] = {(uintptr_t)entry, (uintptr_t)&threadIdx};
    (void)dl_iterate_phdr(look_at, inside);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGSEGV, &action, &before);
    blockDim = (emu_dim3){shape->threads, 1, 1};
    gridDim = (emu_dim3){shape->grid[0], shape->grid[1], shape->grid[2]};
    /* A walk through all blocks: steps that share no factor with their number. */
    uint32_t n = shape->grid[0] * shape->grid[1] * shape->grid[2];
    uint32_t at = emu_random(n), step = 1;
    for (uint32_t tries = 0; tries < 16; tries++) {
        uint32_t a = 1 + emu_random(n), x = a, y = n;
        while (y) {
            uint32_t r = x % y;
            x = y;
            y = r;
        }
        if (x == 1) {
            step = a;
            break;
        }
    }
    for (uint32_t i = 0; i < n && !emu.failed; i++) {
        emu.block = at;
        blockIdx =
            (emu_dim3){at % gridDim.x, at / gridDim.x % gridDim.y, at / gridDim.x / gridDim.y};
        run_block();
        at = (uint32_t)(((uint64_t)at + step) % n);
    }
    emu.current = NOBODY;
    (void)sigaction(SIGSEGV, &before, NULL);
    bool good = !emu.failed;
    (void)pthread_mutex_unlock(&lock);
    return good;
}
