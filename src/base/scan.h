/* Reads the text forms (.pir graphs, indexed sums): names, strings and numbers from a
 * NUL-terminated text, with errors that name line and column. White space and comments, from '#'
 * to the end of the line, may stand between any two tokens. */
#ifndef PO_BASE_SCAN_H
#define PO_BASE_SCAN_H

#include "base/str.h"

typedef struct po_scan {
    po_ctx *ctx;
    po_arena *arena; /* names and strings are copied into it */
    const char *text, *at, *end;
    void *locale; /* "C": the caller's may write decimals with a comma */
} po_scan;

void po_scan_init(po_scan *scan, po_ctx *ctx, po_arena *arena, const char *text);
/* PO_BAD_INPUT: "line 3, column 7: " and the message. */
__attribute__((format(printf, 2, 3))) po_status po_scan_fail(po_scan *scan, const char *format,
                                                             ...);

/* Whether the next token is this punctuation; `take` also passes it, `need` fails without it. */
bool po_scan_is(po_scan *scan, const char *mark);
bool po_scan_take(po_scan *scan, const char *mark);
po_status po_scan_need(po_scan *scan, const char *mark);
/* The same for a whole word: "in" is not the start of "input". */
bool po_scan_is_word(po_scan *scan, const char *word);
bool po_scan_take_word(po_scan *scan, const char *word);
bool po_scan_at_end(po_scan *scan);
/* The next character after white space; '\0' at the end. */
char po_scan_peek(po_scan *scan);

/* A bare word of letters, digits and _ / . $, or a quoted string without NUL. */
po_status po_scan_name(po_scan *scan, const char **name);
/* A quoted string: \" \\ \n \t \xHH are understood, raw control characters are not. */
po_status po_scan_string(po_scan *scan, po_bytes *string);
po_status po_scan_i64(po_scan *scan, int64_t *value);
po_status po_scan_u64(po_scan *scan, uint64_t *value); /* decimal, or hexadecimal after 0x */
/* Finite decimals; the nearest value, and an overflow fails. */
po_status po_scan_f32(po_scan *scan, float *value);
po_status po_scan_f64(po_scan *scan, double *value);
/* Whether the number that comes next is written as a float: with a point, an exponent, inf, nan. */
bool po_scan_is_float(po_scan *scan);
/* Exactly 2 * size hexadecimal digits into bytes; white space may stand between bytes. */
po_status po_scan_hex(po_scan *scan, unsigned char *bytes, size_t size);

/* Writes a name so that po_scan_name reads it: bare where that is possible. `_` is quoted. */
void po_text_name(po_text *text, const char *name);

#endif
