/* SHA-1, only because ONNX's external data may carry such a checksum. It proves nothing against an
 * adversary. */
#ifndef PO_IMPORT_SHA1_H
#define PO_IMPORT_SHA1_H

#include <stddef.h>
#include <stdint.h>

/* Forty lower-case hexadecimal digits and a NUL. */
void po_sha1_hex(const uint8_t *data, size_t size, char hex[41]);

#endif
