/* Groups that grow together: each member names another of its group, one of them itself. */
#ifndef PO_BASE_GROUPS_H
#define PO_BASE_GROUPS_H

#include <stdint.h>

/* The member that names itself; ways to it get shorter. */
static inline uint32_t po_group_root(uint32_t *up, uint32_t i) {
    while (up[i] != i)
        i = up[i] = up[up[i]];
    return i;
}

#endif
