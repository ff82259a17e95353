/* Lines of C with their indentation, f32 numbers with enough digits to read back exactly, and texts
 * made fit to stand in a comment. */
#include "codegen/cpu/printer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void indent(cg *g) {
    for (uint32_t i = 0; i < g->depth; i++)
        po_text_puts(g->out, "    ");
}

static void add(cg *g, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n > 0) {
        char *line = po_arena_alloc(g->arena, (size_t)n + 1);
        (void)vsnprintf(line, (size_t)n + 1, format, again);
        po_text_add(g->out, line, (size_t)n);
    }
    va_end(again);
}

void cg_line(cg *g, const char *format, ...) {
    indent(g);
    va_list args;
    va_start(args, format);
    add(g, format, args);
    va_end(args);
    po_text_puts(g->out, "\n");
}

void cg_open(cg *g, const char *format, ...) {
    indent(g);
    va_list args;
    va_start(args, format);
    add(g, format, args);
    va_end(args);
    po_text_puts(g->out, " {\n");
    g->depth++;
}

void cg_brace(cg *g) {
    cg_line(g, "{");
    g->depth++;
}

void cg_close(cg *g) {
    g->depth--;
    indent(g);
    po_text_puts(g->out, "}\n");
}

void cg_number(po_text *text, double value) {
    float f = (float)value;
    if (isnan(f)) {
        po_text_puts(text, "__builtin_nanf(\"\")");
    } else if (isinf(f)) {
        po_text_puts(text, f > 0 ? "__builtin_inff()" : "(-__builtin_inff())");
    } else {
        char number[40];
        (void)snprintf(number, sizeof number, "%.9g", (double)f);
        bool whole = strpbrk(number, ".e") == NULL;
        po_text_printf(text, signbit(f) ? "(%s%sf)" : "%s%sf", number, whole ? ".0" : "");
    }
}

const char *cg_comment(cg *g, const char *text) {
    po_text out;
    po_text_init(&out, g->arena);
    po_text_puts(&out, "");
    for (const char *c = text; *c != '\0'; c++) {
        po_text_add(&out, c, 1);
        if ((*c == '*' && c[1] == '/') || (*c == '/' && c[1] == '*'))
            po_text_puts(&out, " ");
        if (*c == '\n')
            po_text_puts(&out, " * ");
    }
    return out.data == NULL ? "" : out.data;
}
