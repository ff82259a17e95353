/* Lengths by what models write, and over other names. */
#include "ir/size.h"

po_dim po_size_written(po_arena *arena, const char *symbol) {
    const po_dim bracketed = {-1, po_arena_printf(arena, "(%s)", symbol)};
    /* Arithmetic puts it in the order of the normal form. */
    return po_size_sub(arena, po_size_plus(arena, bracketed, 1), PO_DIM(1));
}

typedef struct renaming {
    po_arena *arena;
    po_size_rename_fn rename;
    void *user;
    po_dim *parts;
    uint32_t n, cap;
} renaming;

static uint32_t keep(renaming *r, po_dim d) {
    PO_PUSH(r->arena, r->parts, r->n, r->cap, d);
    return r->n - 1;
}

static uint32_t name_part(void *user, const char *name) {
    renaming *r = user;
    return keep(r, r->rename(r->user, name));
}

static uint32_t sum_part(void *user, int64_t offset, uint32_t n, const int64_t *coefs,
                         const uint32_t *parts) {
    renaming *r = user;
    po_dim sum = PO_DIM(0);
    for (uint32_t i = 0; i < n; i++)
        sum = po_size_add(r->arena, sum, po_size_times(r->arena, r->parts[parts[i]], coefs[i]));
    return keep(r, po_size_plus(r->arena, sum, offset));
}

static uint32_t quotient_part(void *user, uint32_t of, int64_t by) {
    renaming *r = user;
    return keep(r, po_size_floor(r->arena, r->parts[of], 0, by));
}

po_dim po_size_renamed(po_arena *arena, po_dim a, po_size_rename_fn rename, void *user) {
    renaming r = {.arena = arena, .rename = rename, .user = user};
    const po_size_builder build = {&r, name_part, sum_part, quotient_part};
    uint32_t out;
    return po_size_build(arena, a, &build, &out) ? r.parts[out] : PO_DIM_UNKNOWN;
}
