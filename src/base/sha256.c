#include "base/sha256.h"

#include <openssl/evp.h>

struct po_sha256 {
    po_arena *arena;
    EVP_MD_CTX *md;
};

static void release(void *user) {
    EVP_MD_CTX_free(((po_sha256 *)user)->md);
}

po_sha256 *po_sha256_begin(po_arena *arena) {
    po_sha256 *sha = PO_NEW(arena, po_sha256);
    sha->arena = arena;
    po_arena_defer(arena, release, sha);
    sha->md = EVP_MD_CTX_new();
    if (!sha->md || EVP_DigestInit_ex(sha->md, EVP_sha256(), NULL) != 1)
        po_arena_exhausted(arena);
    return sha;
}

/* These fail only where the library has no memory left. */
void po_sha256_add(po_sha256 *sha, const void *data, size_t size) {
    if (EVP_DigestUpdate(sha->md, data, size) != 1)
        po_arena_exhausted(sha->arena);
}

void po_sha256_end(po_sha256 *sha, char hex[PO_SHA256_HEX]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(sha->md, sum, &n) != 1 || n != 32)
        po_arena_exhausted(sha->arena);
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * n] = '\0';
}
