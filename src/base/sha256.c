/* The library's plain functions of SHA-256: those behind EVP allocate, and do not survive a failed
 * allocation at their first use. */
#define OPENSSL_API_COMPAT 0x10100000L
#include "base/sha256.h"

#include <openssl/sha.h>

struct po_sha256 {
    SHA256_CTX state;
};

po_sha256 *po_sha256_begin(po_arena *arena) {
    po_sha256 *sha = PO_NEW(arena, po_sha256);
    SHA256_Init(&sha->state);
    return sha;
}

void po_sha256_add(po_sha256 *sha, const void *data, size_t size) {
    SHA256_Update(&sha->state, data, size);
}

void po_sha256_end(po_sha256 *sha, char hex[PO_SHA256_HEX]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[SHA256_DIGEST_LENGTH];
    SHA256_Final(sum, &sha->state);
    for (unsigned i = 0; i < sizeof sum; i++) {
        hex[2 * (size_t)i] = digits[sum[i] >> 4];
        hex[2 * i + 1] = digits[sum[i] & 15];
    }
    hex[2 * sizeof sum] = '\0';
}
