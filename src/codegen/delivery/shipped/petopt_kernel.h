/* A kernel of a model's region, and the memory that its calls work in. */
#ifndef PETOPT_KERNEL_H
#define PETOPT_KERNEL_H

#include "petopt_ort_api.h"

#include <sys/mman.h>
#include <unistd.h>

/* --- what a kernel is --- */

typedef struct pk_pool {
    size_t parts;
    void (*run)(void *self, void (*fn)(void *arg, size_t part), void *arg);
    void *self;
} pk_pool;

typedef struct pk_kernel_code {
    const char *isa;
    const size_t *sizes; /* numbers that hang on lengths: z[0] is floats of device, z[1] those of
                            scratch for each part */
    void (*measure)(const int64_t *given, int64_t *z);
    void (*start)(float *device, const int64_t *z);
    void (*call)(const float *const *in, const float *const *weight, float *const *out,
                 float *device, float *scratch, const int64_t *z, const pk_pool *pool);
} pk_kernel_code;

enum {
    PK_ISAS = 2,
    PK_MAX_PARTS = 256,
    PK_MOST_SAMPLES = 8,
    PK_LINE = 64,
    PK_ORT_API = 17,
    PK_MAX_GIVEN = 16
};

/* --- memory of a call --- */

typedef struct pk_memory {
    char *base;
    size_t bytes;
    float *floats;
} pk_memory;

typedef struct pk_buffer {
    struct pk_buffer *next; /* in the list of free ones */
    size_t room[2];         /* floats of device and scratch */
    pk_memory device, scratch;
    pk_memory between; /* what the head makes of a group of samples */
    size_t between_room;
    /* Of the sample at hand and of all: n_in activations, then n_weights. */
    const float **in, **all_in;
    float **out, **all_out;
    int64_t given[PK_MAX_GIVEN], *z;
    bool measured;
    pk_region region; /* with the dims of these lengths */
    pk_port *ports;
    int64_t *dims;
} pk_buffer;

typedef struct pk_kernel {
    const OrtApi *api;
    const pk_region *region;
    const pk_kernel_code *code;
    bool *constant; /* by input: its shape was checked once and for all */
    pthread_mutex_t lock;
    pk_buffer *free_buffers;
    unsigned calls;
    size_t parts, most_parts;      /* threads that are known of; that there can be */
    struct pk_kernel *head, *rest; /* of region->batched; NULL: there is none */
} pk_kernel;

static size_t pk_up(size_t bytes, size_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
}

/* Zeroed, aligned to a line. With PK_GUARD (tests) it ends where nothing is mapped. */
static bool pk_map(pk_memory *m, size_t floats) {
    size_t need = pk_up(floats * sizeof(float) + 1, PK_LINE), before = 0, after = 0;
#ifdef PK_GUARD
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    need = pk_up(floats * sizeof(float), PK_LINE);
    before = pk_up(need, page) - need;
    after = page;
#endif
    m->bytes = before + need + after;
    void *base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return false;
    m->base = base;
    m->floats = (float *)(void *)(m->base + before);
    if (after && mprotect(m->base + before + need, after, PROT_NONE) != 0)
        return false;
#ifdef MADV_HUGEPAGE
    madvise(m->base, before + need, MADV_HUGEPAGE); /* only advice */
#endif
    return true;
}

static void pk_unmap(pk_memory *m) {
    if (m->base)
        munmap(m->base, m->bytes);
}

static void pk_free_buffer(pk_buffer *b) {
    if (!b)
        return;
    pk_unmap(&b->device);
    pk_unmap(&b->scratch);
    pk_unmap(&b->between);
    free(b->in);
    free(b->out);
    free(b->z);
    free(b->ports);
    free(b->dims);
    free(b);
}

static pk_buffer *pk_make_buffer(const pk_kernel *k) {
    const pk_region *r = k->region;
    pk_buffer *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    const size_t n_in = r->n_in + r->n_weights + 1, n_out = r->n_out + 1;
    b->in = calloc(2 * n_in, sizeof *b->in);
    b->out = calloc(2 * n_out, sizeof *b->out);
    b->z = calloc(*k->code->sizes + 2, sizeof *b->z);
    b->ports = calloc(r->n_in + r->n_out + 1, sizeof *b->ports);
    b->dims = calloc((r->n_in + r->n_out + 1) * PK_MAX_RANK, sizeof *b->dims);
    if (!b->in || !b->out || !b->z || !b->ports || !b->dims) {
        pk_free_buffer(b);
        return NULL;
    }
    b->all_in = b->in + n_in;
    b->all_out = b->out + n_out;
    b->region = *r;
    for (size_t i = 0; r->n_given > 0 && i < r->n_in + r->n_out; i++) {
        b->ports[i] = i < r->n_in ? r->in[i] : r->out[i - r->n_in];
        b->ports[i].dims = b->dims + i * PK_MAX_RANK;
    }
    if (r->n_given > 0) {
        b->region.in = b->ports;
        b->region.out = b->ports + r->n_in;
    }
    return b;
}

static bool pk_fit_memory(pk_memory *m, size_t *room, size_t floats) {
    if (m->base && *room >= floats)
        return true;
    pk_unmap(m);
    *m = (pk_memory){NULL, 0, NULL};
    *room = floats;
    return pk_map(m, floats);
}

/* Makes a buffer one for so many parts, and for these lengths. */
static bool pk_fit(const pk_kernel *k, pk_buffer *b, size_t parts, const int64_t *given) {
    const size_t bytes = k->region->n_given * sizeof *given;
    if (!b->measured || (bytes > 0 && memcmp(b->given, given, bytes) != 0)) {
        if (bytes > 0) {
            memcpy(b->given, given, bytes);
            (void)k->region->lengths(given, b->dims);
        }
        k->code->measure(given, b->z);
        b->measured = pk_fit_memory(&b->device, &b->room[0], (size_t)b->z[0]);
        if (!b->measured)
            return false;
        k->code->start(b->device.floats, b->z);
    }
    return pk_fit_memory(&b->scratch, &b->room[1], (size_t)b->z[1] * parts);
}

/* Takes a free buffer, or makes one. */
static pk_buffer *pk_take(pk_kernel *k, size_t parts, const int64_t *given) {
    pthread_mutex_lock(&k->lock);
    pk_buffer *b = k->free_buffers;
    if (b)
        k->free_buffers = b->next;
    pthread_mutex_unlock(&k->lock);
    if (!b)
        b = pk_make_buffer(k);
    if (b && pk_fit(k, b, parts, given))
        return b;
    pk_free_buffer(b);
    return NULL;
}

static void pk_return(pk_kernel *k, pk_buffer *b) {
    pthread_mutex_lock(&k->lock);
    b->next = k->free_buffers;
    k->free_buffers = b;
    pthread_mutex_unlock(&k->lock);
}

#endif
