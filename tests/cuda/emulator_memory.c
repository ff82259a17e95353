/* Memory of the emulated device, and the check of every access to it. Two bytes have a cell that
 * says who wrote and who read them last, and when; time steps at barriers. Two accesses of which
 * one writes are a race unless they are the same thread's, or a barrier of the block (or of the
 * warp, between its lanes) lies between them; blocks of a launch are never ordered. */
#include "emulator_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct cell {
    uint32_t written, writer; /* time; thread of the block in 10 bits, and the block */
    uint32_t read, reader;    /* time times 4 and a level; one of the readers */
} cell;

/* Who the readers since `read` are: more than one thread? of more than one warp, block? */
enum { ONE, LANES, WARPS, BLOCKS };

enum {
    UNIT = 2,
    FENCE = 4096,
    BUFFERS = 65536,
    FILL = 0xff, /* NaN as f32, f16 and bf16 */
};
static const size_t global_room = (size_t)16 << 30;
static const size_t shared_room = (size_t)1 << 20;
static const uint32_t in_flight = UINT32_MAX;

typedef struct buffer {
    unsigned char *data;
    size_t bytes;
} buffer;

static unsigned char *global, *shared, *shared_map;
static cell *global_cells, *shared_cells;
static size_t used;
static buffer buffers[BUFFERS]; /* ascending */
static uint32_t n_buffers, last_hit;
static uint32_t shared_bytes;

static void *reserve(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool emu_memory_open(void) {
    if (global)
        return true;
    unsigned char *g = reserve(global_room);
    global_cells = reserve(global_room / UNIT * sizeof(cell));
    shared_map = reserve(shared_room);
    shared_cells = reserve(shared_room / UNIT * sizeof(cell));
    if (!g || !global_cells || !shared_map || !shared_cells)
        return false;
    shared = shared_map + shared_room / 2;
    global = g;
    return true;
}

/* --- buffers --- */

void *emu_alloc(size_t bytes) {
    if (!emu_memory_open() || n_buffers == BUFFERS)
        return NULL;
    size_t room = (bytes + 255) / 256 * 256 + 2 * (size_t)FENCE, at = 0;
    uint32_t place = 0;
    /* The first gap that is large enough: freed memory is used again. */
    for (; place < n_buffers; place++) {
        size_t start = (size_t)(buffers[place].data - global) - FENCE;
        if (start - at >= room)
            break;
        at = start + (buffers[place].bytes + 255) / 256 * 256 + 2 * (size_t)FENCE;
    }
    if (at + room > global_room)
        return NULL;
    memmove(buffers + place + 1, buffers + place, (n_buffers - place) * sizeof *buffers);
    buffers[place] = (buffer){global + at + FENCE, bytes};
    n_buffers++;
    used = at + room > used ? at + room : used;
    memset(global + at, FILL, room);
    return buffers[place].data;
}

static uint32_t buffer_of(const unsigned char *at) {
    if (last_hit < n_buffers && at >= buffers[last_hit].data &&
        (size_t)(at - buffers[last_hit].data) < buffers[last_hit].bytes)
        return last_hit;
    uint32_t low = 0, high = n_buffers;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (buffers[mid].data <= at)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0 || (size_t)(at - buffers[low - 1].data) >= buffers[low - 1].bytes)
        return UINT32_MAX;
    return last_hit = low - 1;
}

bool emu_free(void *data) {
    uint32_t i = buffer_of(data);
    if (i == UINT32_MAX || buffers[i].data != data)
        return false;
    (void)madvise(buffers[i].data, buffers[i].bytes, MADV_DONTNEED);
    memmove(buffers + i, buffers + i + 1, (n_buffers - i - 1) * sizeof *buffers);
    n_buffers--;
    return true;
}

bool emu_holds(const void *data, size_t bytes) {
    if (bytes == 0)
        return true;
    uint32_t i = buffer_of(data);
    return i != UINT32_MAX &&
           (size_t)((const unsigned char *)data - buffers[i].data) + bytes <= buffers[i].bytes;
}

/* --- fences: what is seen without the compiler's calls --- */

static bool filled(const unsigned char *at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != FILL)
            return false;
    return true;
}

void emu_memory_failed(void) {
    memset(shared_cells, 0, shared_room / UNIT * sizeof(cell)); /* copies that never landed */
}

void emu_memory_block(uint32_t bytes) {
    shared_bytes = bytes;
    memset(shared - FENCE, FILL, bytes + 2 * (size_t)FENCE);
}

unsigned char *emu_memory_shared(void) {
    return shared;
}

bool emu_memory_whole(void) {
    if (!filled(shared - FENCE, FENCE) || !filled(shared + shared_bytes, FENCE)) {
        emu_fail("something was stored outside the %u bytes of shared memory", shared_bytes);
        return false;
    }
    if (emu.accesses) /* buffers were looked after access by access */
        return true;
    for (uint32_t i = 0; i < n_buffers; i++)
        if (!filled(buffers[i].data - FENCE, FENCE) ||
            !filled(buffers[i].data + buffers[i].bytes, FENCE)) {
            emu_fail("something was stored outside a buffer of %zu bytes", buffers[i].bytes);
            return false;
        }
    return true;
}

bool emu_is_shared(const void *at, uint32_t bytes) {
    size_t off = (size_t)((const unsigned char *)at - shared);
    return off < shared_bytes && off + bytes <= shared_bytes;
}

/* --- who did what when --- */

static uint32_t name_of(uint32_t thread) {
    return thread | emu.block << 10;
}

/* Whether what a thread did at a time comes before all that thread does now. */
static bool ordered(uint32_t by, uint32_t time, uint32_t since, uint32_t thread) {
    if (time < since || by == name_of(thread))
        return true;
    if (by >> 10 != (emu.block & 0x3fffff))
        return false;
    return time < emu.ordered || ((by & 1023) / EMU_LANES == thread / EMU_LANES &&
                                  time < emu.warp[thread / EMU_LANES].ordered);
}

static bool readers_ordered(const cell *c, uint32_t since, uint32_t thread) {
    uint32_t time = c->read >> 2;
    if (time < since)
        return true;
    switch (c->read & 3) {
    case ONE:
        return ordered(c->reader, time, since, thread);
    case LANES:
        return c->reader >> 10 == (emu.block & 0x3fffff) &&
               (time < emu.ordered || ((c->reader & 1023) / EMU_LANES == thread / EMU_LANES &&
                                       time < emu.warp[thread / EMU_LANES].ordered));
    case WARPS:
        return c->reader >> 10 == (emu.block & 0x3fffff) && time < emu.ordered;
    default:
        return false;
    }
}

static void note_read(cell *c, uint32_t since, uint32_t thread) {
    uint32_t me = name_of(thread), level = c->read & 3;
    if ((level == ONE && c->reader == me) || readers_ordered(c, since, thread))
        level = ONE;
    else if (c->reader >> 10 != me >> 10)
        level = BLOCKS;
    else if ((c->reader & 1023) / EMU_LANES != thread / EMU_LANES)
        level = level < WARPS ? WARPS : level;
    else
        level = level < LANES ? LANES : level;
    c->reader = me;
    c->read = emu.now << 2 | level;
}

typedef struct span {
    cell *cells;
    uint32_t n, since, offset;
    const char *what;
} span;

/* Whether the emulator looks after an address at all; faults where it lies outside what may be
 * touched. Else it is the thread's own stack, or a constant. */
static bool span_of(const void *at, uint32_t bytes, uint32_t thread, const char *verb, span *s) {
    const unsigned char *p = at;
    size_t off = (size_t)(p - shared_map);
    if (off < shared_room) {
        off = (size_t)(p - shared);
        if (!emu_is_shared(at, bytes)) {
            emu_fail_at(thread, "%s %u bytes at byte %td of shared memory, which has %u", verb,
                        bytes, p - shared, shared_bytes);
            return false;
        }
        s->cells = shared_cells;
        s->since = emu.block_start;
        s->what = "shared memory";
        s->offset = (uint32_t)off;
    } else if ((off = (size_t)(p - global)) < global_room) {
        uint32_t i = buffer_of(p);
        if (!emu_holds(at, bytes)) {
            uint32_t near = 0;
            while (near + 1 < n_buffers && buffers[near + 1].data <= p + FENCE)
                near++;
            if (n_buffers && i == UINT32_MAX)
                emu_fail_at(thread, "%s %u bytes at byte %td of a buffer, which has %zu", verb,
                            bytes, p - buffers[near].data, buffers[near].bytes);
            else
                emu_fail_at(thread, "%s %u bytes over the end of a buffer of %zu", verb, bytes,
                            i == UINT32_MAX ? 0 : buffers[i].bytes);
            return false;
        }
        s->cells = global_cells;
        s->since = emu.launch_start;
        s->what = "a buffer";
        s->offset = (uint32_t)(p - buffers[i].data);
    } else {
        if (!emu.host && !emu_is_own(at))
            emu_fail_at(thread, "%s %u bytes at an address outside all buffers", verb, bytes);
        return false;
    }
    s->cells += off / UNIT;
    s->n = (uint32_t)((off % UNIT + bytes + UNIT - 1) / UNIT);
    return true;
}

static void race(const span *s, uint32_t i, uint32_t thread, const char *verb, uint32_t by,
                 const char *did) {
    emu_fail_at(thread,
                "%s byte %u of %s, which thread %u of block %u has %s since the last "
                "barrier",
                verb, s->offset + i * UNIT, s->what, by & 1023, by >> 10, did);
}

void emu_check_load(const void *at, uint32_t bytes, uint32_t thread) {
    span s;
    if (!span_of(at, bytes, thread, "reads", &s))
        return;
    for (uint32_t i = 0; i < s.n && !emu.failed; i++) {
        cell *c = &s.cells[i];
        if (c->written == in_flight)
            emu_fail_at(thread, "reads byte %u of %s, where a copy of thread %u was not waited for",
                        s.offset + i * UNIT, s.what, c->writer & 1023);
        else if (!ordered(c->writer, c->written, s.since, thread))
            race(&s, i, thread, "reads", c->writer, "written");
        note_read(c, s.since, thread);
    }
}

static void store(const void *at, uint32_t bytes, uint32_t thread, const char *verb,
                  uint32_t time) {
    span s;
    if (!span_of(at, bytes, thread, verb, &s))
        return;
    for (uint32_t i = 0; i < s.n && !emu.failed; i++) {
        cell *c = &s.cells[i];
        if (c->written == in_flight)
            emu_fail_at(thread, "%s byte %u of %s, where a copy of thread %u was not waited for",
                        verb, s.offset + i * UNIT, s.what, c->writer & 1023);
        else if (!ordered(c->writer, c->written, s.since, thread))
            race(&s, i, thread, verb, c->writer, "written");
        else if (!readers_ordered(c, s.since, thread))
            race(&s, i, thread, verb, c->reader, "read");
        c->written = time;
        c->writer = name_of(thread);
    }
}

void emu_check_store(const void *at, uint32_t bytes, uint32_t thread) {
    store(at, bytes, thread, "writes", emu.now);
}

void emu_check_sent(const void *at, uint32_t bytes, uint32_t thread) {
    store(at, bytes, thread, "copies to", in_flight);
}

void emu_check_landed(const void *at, uint32_t bytes, uint32_t thread) {
    span s;
    (void)thread;
    if (span_of(at, bytes, thread, "copies to", &s))
        for (uint32_t i = 0; i < s.n; i++)
            s.cells[i].written = emu.now;
}

/* --- what clang calls (-fsanitize-coverage=trace-loads,trace-stores) --- */

#define EMU_TRACE(bytes)                                                                           \
    EMU_API void __sanitizer_cov_load##bytes(const void *at);                                      \
    EMU_API void __sanitizer_cov_store##bytes(const void *at);                                     \
    void __sanitizer_cov_load##bytes(const void *at) {                                             \
        emu.accesses++;                                                                            \
        emu_check_load(at, bytes, emu.current);                                                    \
    }                                                                                              \
    void __sanitizer_cov_store##bytes(const void *at) {                                            \
        emu.accesses++;                                                                            \
        emu_check_store(at, bytes, emu.current);                                                   \
    }
EMU_TRACE(1)
EMU_TRACE(2)
EMU_TRACE(4)
EMU_TRACE(8)
EMU_TRACE(16)

/* And for what has no meaning in C (-fsanitize=alignment,bounds,... with the minimal runtime). */
#define EMU_FAULT(name, what)                                                                      \
    EMU_API void __ubsan_handle_##name##_minimal(void);                                            \
    void __ubsan_handle_##name##_minimal(void) {                                                   \
        emu_fail(what);                                                                            \
    }
EMU_FAULT(type_mismatch, "a pointer is not aligned as its type demands")
EMU_FAULT(out_of_bounds, "an index lies outside its array")
EMU_FAULT(divrem_overflow, "a division by 0, or one that does not fit")
EMU_FAULT(shift_out_of_bounds, "a shift by more bits than there are")
EMU_FAULT(add_overflow, "a sum of integers that does not fit")
EMU_FAULT(sub_overflow, "a difference of integers that does not fit")
EMU_FAULT(mul_overflow, "a product of integers that does not fit")
EMU_FAULT(negate_overflow, "a negated integer that does not fit")
