/* The certificate beside an optimised model, OUT.cert: JSON, format 1 (docs/proof.md).
 *
 * What it says is not believed: it holds what is needed to prove again that OUT computes what IN
 * does (the recipes of derived constants), and what was found when OUT was written. */
#ifndef PO_VERIFY_CERT_H
#define PO_VERIFY_CERT_H

#include "base/file.h"
#include "base/sha256.h"
#include "verify/proof/proof.h"

enum { PO_CERT_FORMAT = 2 };

typedef struct po_cert_file {
    const char *name;
    const char *sha256;
} po_cert_file;

typedef struct po_cert {
    const char *petopt;           /* version that wrote it */
    const po_cert_file *in, *out; /* the model, then its external data */
    uint32_t n_in, n_out;
    const char *recipes; /* .pir, or NULL: no constant of OUT is derived */
    po_proof_report proof;
    const char *runtime; /* that OUT was tested in; "" where in none */
    double error, tolerance;
    const char *library; /* SHA-256 of the kernels that it was tested with; NULL: of none */
} po_cert;

/* The JSON text. Its member "digest" is the SHA-256 of the others, so that a changed one shows. */
const char *po_cert_print(po_arena *arena, const po_cert *cert);

/* PO_BAD_INPUT with the reason where the text is no certificate that this version reads, or was
 * changed. */
po_status po_cert_parse(po_ctx *ctx, po_arena *arena, const char *text, size_t size, po_cert *cert);

/* OUT.cert for a model's path (links followed, as they are on writing), in the arena. */
const char *po_cert_path(po_arena *arena, const char *model);

#endif
