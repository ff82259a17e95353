/* Text doubles its room as it grows; floats are printed with the fewest digits that read back as
 * the same number, always with a decimal point. Also the check that bytes are UTF-8 without NUL. */
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void po_text_init(po_text *text, po_arena *arena) {
    *text = (po_text){.arena = arena};
    text->capacity = 256;
    text->data = po_arena_alloc(arena, text->capacity);
    text->data[0] = '\0';
}

static void reserve(po_text *text, size_t more) {
    if (text->capacity - text->size > more)
        return;
    size_t capacity = text->capacity;
    while (capacity - text->size <= more) {
        if (capacity > SIZE_MAX / 2)
            po_arena_exhausted(text->arena);
        capacity *= 2;
    }
    char *data = po_arena_alloc(text->arena, capacity);
    memcpy(data, text->data, text->size + 1);
    text->data = data;
    text->capacity = capacity;
}

void po_text_add(po_text *text, const char *data, size_t size) {
    reserve(text, size);
    memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void po_text_puts(po_text *text, const char *string) {
    po_text_add(text, string, strlen(string));
}

void po_text_printf(po_text *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n > 0) {
        reserve(text, (size_t)n);
        vsnprintf(text->data + text->size, (size_t)n + 1, format, again);
        text->size += (size_t)n;
    }
    va_end(again);
}

/* The locale may print a decimal comma; the text form always uses a point. */
static void add_number(po_text *text, char *number) {
    for (char *p = number; *p; p++)
        if (*p == ',')
            *p = '.';
    po_text_puts(text, number);
}

void po_text_f32(po_text *text, float value) {
    char number[64];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, (double)value);
        if (strtof(number, NULL) == value)
            break;
    }
    add_number(text, number);
}

void po_text_f64(po_text *text, double value) {
    char number[64];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    add_number(text, number);
}

void po_text_quoted(po_text *text, const char *data, size_t size) {
    po_text_add(text, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '"' || c == '\\')
            po_text_printf(text, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            po_text_printf(text, "\\x%02x", c);
        else
            po_text_add(text, &data[i], 1);
    }
    po_text_add(text, "\"", 1);
}

static bool continuation(uint8_t byte) {
    return (byte & 0xc0) == 0x80;
}

bool po_utf8_valid(const void *text, size_t size) {
    const uint8_t *p = text;
    const uint8_t *end = p + size;
    while (p < end) {
        uint8_t c = *p;
        size_t left = (size_t)(end - p);
        if (c == 0)
            return false;
        if (c < 0x80) {
            p++;
        } else if (c >= 0xc2 && c <= 0xdf) {
            if (left < 2 || !continuation(p[1]))
                return false;
            p += 2;
        } else if (c >= 0xe0 && c <= 0xef) {
            if (left < 3 || !continuation(p[1]) || !continuation(p[2]) ||
                (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f))
                return false;
            p += 3;
        } else if (c >= 0xf0 && c <= 0xf4) {
            if (left < 4 || !continuation(p[1]) || !continuation(p[2]) || !continuation(p[3]) ||
                (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f))
                return false;
            p += 4;
        } else {
            return false;
        }
    }
    return true;
}
