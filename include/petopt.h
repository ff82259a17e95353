/* petopt: makes an ONNX model faster without changing what it computes.
 *
 * The only public header. Every function that can fail returns a po_status and,
 * where it takes one, fills a po_error with one sentence that names the node,
 * the tensor and the reason. Handles are opaque and belong to one thread at a time. */
#ifndef PETOPT_H
#define PETOPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PO_API __attribute__((visibility("default")))
#else
#define PO_API
#endif

/* What a call came to. PO_OK is the only success; PO_NOT_EQUAL is verify's "no". */
typedef enum po_status {
    PO_OK = 0,
    PO_NOT_EQUAL,     /* the models compute different functions */
    PO_BAD_INPUT,     /* the model, or a file that it names, is malformed or over a limit */
    PO_BAD_USE,       /* an option or argument is wrong */
    PO_NOT_AVAILABLE, /* not in this version */
    PO_UNSUPPORTED,   /* understood, but outside what this rule handles: callers skip it */
    PO_NO_MEMORY,     /* memory ran out */
    PO_IO,            /* reading or writing a file failed */
    PO_RUNTIME,       /* the inference runtime is missing or failed */
    PO_CANCELLED,     /* the caller's cancel flag was seen */
    PO_TIME_LIMIT,    /* the time limit passed */
    PO_INTERNAL       /* a check of petopt's own failed: a bug */
} po_status;

/* Returns the name of a status as lower-case words ("bad input"); never NULL. */
PO_API const char *po_status_name(po_status status);

#define PO_MESSAGE_MAX 1024

typedef struct po_error {
    po_status status;
    char message[PO_MESSAGE_MAX]; /* one sentence, printable, NUL-terminated */
} po_error;

#ifdef __cplusplus
}
#endif
#endif
