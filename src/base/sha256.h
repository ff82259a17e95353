/* SHA-256, by the system's library. */
#ifndef PO_BASE_SHA256_H
#define PO_BASE_SHA256_H

#include "base/arena.h"

enum { PO_SHA256_HEX = 65 }; /* lower-case digits and a NUL */

typedef struct po_sha256 po_sha256;
po_sha256 *po_sha256_begin(po_arena *arena);
void po_sha256_add(po_sha256 *sha, const void *data, size_t size);
/* Once. */
void po_sha256_end(po_sha256 *sha, char hex[PO_SHA256_HEX]);

#endif
