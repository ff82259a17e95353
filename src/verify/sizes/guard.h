/* What holds of places along an axis whatever the lengths are, decided by Z3. */
#ifndef PO_VERIFY_SIZES_GUARD_H
#define PO_VERIFY_SIZES_GUARD_H

#include "base/hash.h"
#include "ir/type.h"
#include "verify/sizes/read.h"

/* Asks, and remembers what was answered: layers of one shape ask alike. */
typedef struct po_oracle po_oracle;
po_oracle *po_oracle_create(po_arena *arena); /* freed with the arena */

/* Element y of an axis of `length`, y = read.m q + read.rho. */
typedef struct po_bounds {
    po_read read;
    po_dim length;
    bool reads; /* only where the leaf has the element: 0 <= alpha q + beta < leaf */
    po_dim leaf;
} po_bounds;

/* Whether 0 <= times q + plus < `of` follows. Products of lengths are any number. */
bool po_bounds_hold(po_oracle *oracle, const po_bounds *g, int64_t times, int64_t plus, po_dim of);
/* A length is at least so much. */
typedef struct po_room {
    po_dim length;
    int64_t least;
} po_room;

bool po_bounds_least(po_oracle *oracle, po_dim length, int64_t least);
/* Whether it is where all of `given` hold. */
bool po_bounds_follow(po_oracle *oracle, uint32_t n, const po_room *given, po_room asked);

#endif
