/* There are no tokens in advance: the text is read where it stands, numbers in the C locale, and
 * lines and columns are counted only where reading fails. */
#include "base/scan.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static void free_locale(void *user) {
    freelocale((locale_t)user);
}

void po_scan_init(po_scan *scan, po_ctx *ctx, po_arena *arena, const char *text) {
    *scan =
        (po_scan){.ctx = ctx, .arena = arena, .text = text, .at = text, .end = text + strlen(text)};
    scan->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!scan->locale)
        po_arena_exhausted(arena);
    po_arena_defer(arena, free_locale, scan->locale);
}

po_status po_scan_fail(po_scan *scan, const char *format, ...) {
    unsigned line = 1, column = 1;
    for (const char *p = scan->text; p < scan->at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    char message[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return po_fail(scan->ctx, PO_BAD_INPUT, "line %u, column %u: %s", line, column, message);
}

char po_scan_peek(po_scan *scan) {
    for (;;) {
        char c = *scan->at;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            scan->at++;
        else if (c == '#')
            scan->at += strcspn(scan->at, "\n");
        else
            return c;
    }
}

bool po_scan_at_end(po_scan *scan) {
    return po_scan_peek(scan) == '\0';
}

bool po_scan_is(po_scan *scan, const char *mark) {
    po_scan_peek(scan);
    return strncmp(scan->at, mark, strlen(mark)) == 0;
}

bool po_scan_take(po_scan *scan, const char *mark) {
    bool is = po_scan_is(scan, mark);
    if (is)
        scan->at += strlen(mark);
    return is;
}

/* What stands at the scanner, for messages. */
static const char *found(const po_scan *scan) {
    if (!*scan->at)
        return "the end";
    size_t n = strcspn(scan->at, " \t\r\n");
    return po_arena_printf(scan->arena, "'%.*s'", (int)(n > 24 ? 24 : n), scan->at);
}

po_status po_scan_need(po_scan *scan, const char *mark) {
    if (po_scan_take(scan, mark))
        return PO_OK;
    return po_scan_fail(scan, "expected '%s' (found %s)", mark, found(scan));
}

static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '$';
}

bool po_scan_is_word(po_scan *scan, const char *word) {
    return po_scan_is(scan, word) && !is_word_char(scan->at[strlen(word)]);
}

bool po_scan_take_word(po_scan *scan, const char *word) {
    bool is = po_scan_is_word(scan, word);
    if (is)
        scan->at += strlen(word);
    return is;
}

po_status po_scan_name(po_scan *scan, const char **name) {
    if (po_scan_peek(scan) == '"') {
        po_bytes bytes;
        PO_TRY(po_scan_string(scan, &bytes));
        if (bytes.size && memchr(bytes.data, '\0', bytes.size))
            return po_scan_fail(scan, "a name holds a NUL character");
        *name = bytes.data;
        return PO_OK;
    }
    size_t n = 0;
    while (is_word_char(scan->at[n]))
        n++;
    if (n == 0)
        return po_scan_fail(scan, "expected a name (found %s)", found(scan));
    *name = po_arena_printf(scan->arena, "%.*s", n > INT32_MAX ? INT32_MAX : (int)n, scan->at);
    scan->at += n;
    return PO_OK;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

po_status po_scan_string(po_scan *scan, po_bytes *string) {
    PO_TRY(po_scan_need(scan, "\""));
    size_t limit = 0;
    for (const char *p = scan->at; *p && *p != '"'; p += (*p == '\\' && p[1]) + 1)
        limit++;
    char *out = po_arena_alloc(scan->arena, limit + 1);
    size_t n = 0;
    while (*scan->at != '"') {
        char c = *scan->at;
        if (c == '\0')
            return po_scan_fail(scan, "a string has no end");
        if ((unsigned char)c < 0x20)
            return po_scan_fail(scan, "a control character in a string (write \\x%02x)",
                                (unsigned)c);
        scan->at++;
        if (c == '\\') {
            char kind = *scan->at;
            int high = kind == 'x' ? hex_digit(scan->at[1]) : 0;
            int low = kind == 'x' && high >= 0 ? hex_digit(scan->at[2]) : 0;
            if (kind == '"' || kind == '\\')
                c = kind;
            else if (kind == 'n')
                c = '\n';
            else if (kind == 't')
                c = '\t';
            else if (kind == 'x' && high >= 0 && low >= 0)
                c = (char)(high * 16 + low);
            else
                return po_scan_fail(scan, "an unknown escape in a string");
            scan->at += kind == 'x' ? 3 : 1;
        }
        out[n++] = c;
    }
    scan->at++;
    out[n] = '\0';
    *string = (po_bytes){out, n};
    return PO_OK;
}

/* Length of the number that stands at the scanner. */
static size_t number_length(const po_scan *scan) {
    const char *p = scan->at;
    p += *p == '-' || *p == '+';
    while (is_word_char(*p) || ((*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E')))
        p++;
    return (size_t)(p - scan->at);
}

po_status po_scan_u64(po_scan *scan, uint64_t *value) {
    po_scan_peek(scan);
    const char *p = scan->at;
    unsigned base = p[0] == '0' && p[1] == 'x' ? 16 : 10;
    p += base == 16 ? 2 : 0;
    const char *digits = p;
    uint64_t v = 0;
    for (int d; (d = hex_digit(*p)) >= 0 && (unsigned)d < base; p++)
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, (uint64_t)d, &v))
            return po_scan_fail(scan, "a number is too large");
    if (p == digits || is_word_char(*p))
        return po_scan_fail(scan, "expected a whole number (found %s)", found(scan));
    scan->at = p;
    *value = v;
    return PO_OK;
}

po_status po_scan_i64(po_scan *scan, int64_t *value) {
    bool negative = po_scan_take(scan, "-");
    uint64_t v;
    PO_TRY(po_scan_u64(scan, &v));
    if (v > (uint64_t)INT64_MAX + negative)
        return po_scan_fail(scan, "a number is too large");
    *value = negative ? (int64_t)(0 - v) : (int64_t)v;
    return PO_OK;
}

/* Copies the number so that strtod stops at its end. */
static po_status number_text(po_scan *scan, char *buffer, size_t size) {
    po_scan_peek(scan);
    size_t n = number_length(scan);
    if (n == 0 || n >= size)
        return po_scan_fail(scan, "expected a number (found %s)", found(scan));
    memcpy(buffer, scan->at, n);
    buffer[n] = '\0';
    /* strtod reads more than the form has: hexadecimal floats, "infinity", "nan(...)". */
    if (strspn(buffer, "+-0123456789.eE") != n)
        return po_scan_fail(scan, "expected a number (found %s)", found(scan));
    return PO_OK;
}

po_status po_scan_f64(po_scan *scan, double *value) {
    char buffer[512], *end;
    PO_TRY(number_text(scan, buffer, sizeof buffer));
    *value = strtod_l(buffer, &end, (locale_t)scan->locale);
    if (*end || *value - *value != 0)
        return po_scan_fail(scan, "expected a finite number (found %s)", found(scan));
    scan->at += strlen(buffer);
    return PO_OK;
}

po_status po_scan_f32(po_scan *scan, float *value) {
    char buffer[512], *end;
    PO_TRY(number_text(scan, buffer, sizeof buffer));
    *value = strtof_l(buffer, &end, (locale_t)scan->locale);
    if (*end || *value - *value != 0)
        return po_scan_fail(scan, "expected a finite number (found %s)", found(scan));
    scan->at += strlen(buffer);
    return PO_OK;
}

bool po_scan_is_float(po_scan *scan) {
    po_scan_peek(scan);
    size_t n = number_length(scan);
    const char *p = scan->at;
    if (n > 2 && p[0] == '0' && p[1] == 'x')
        return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] == '.' || p[i] == 'e' || p[i] == 'E' || p[i] == 'i' || p[i] == 'n')
            return true;
    return false;
}

po_status po_scan_hex(po_scan *scan, unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        po_scan_peek(scan);
        int high = hex_digit(scan->at[0]), low = high < 0 ? -1 : hex_digit(scan->at[1]);
        if (low < 0)
            return po_scan_fail(scan, "expected two hexadecimal digits (found %s)", found(scan));
        bytes[i] = (unsigned char)(high * 16 + low);
        scan->at += 2;
    }
    if (is_word_char(*scan->at))
        return po_scan_fail(scan, "too many hexadecimal digits");
    return PO_OK;
}

void po_text_name(po_text *text, const char *name) {
    size_t n = 0;
    while (is_word_char(name[n]))
        n++;
    if (n == 0 || name[n] || strcmp(name, "_") == 0)
        po_text_quoted(text, name, strlen(name));
    else
        po_text_puts(text, name);
}
