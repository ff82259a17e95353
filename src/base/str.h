/* A growing text buffer in an arena. */
#ifndef PO_BASE_STR_H
#define PO_BASE_STR_H

#include "base/arena.h"

/* Bytes with a length: ONNX strings in tensors and attributes may hold a NUL. */
typedef struct po_bytes {
    const char *data;
    size_t size;
} po_bytes;

typedef struct po_text {
    po_arena *arena;
    char *data; /* NUL-terminated once anything was added */
    size_t size, capacity;
} po_text;

void po_text_init(po_text *text, po_arena *arena);
void po_text_add(po_text *text, const char *data, size_t size);
void po_text_puts(po_text *text, const char *string);
__attribute__((format(printf, 2, 3))) void po_text_printf(po_text *text, const char *format, ...);
/* The shortest decimal that reads back as the same float (f32) or double. */
void po_text_f32(po_text *text, float value);
void po_text_f64(po_text *text, double value);
/* In double quotes, with control characters, quotes and backslashes escaped (\xHH). */
void po_text_quoted(po_text *text, const char *data, size_t size);

/* True for well-formed UTF-8 without NUL: no surrogates, no overlong forms, at most U+10FFFF. */
bool po_utf8_valid(const void *text, size_t size);

#endif
