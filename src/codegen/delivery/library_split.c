/* Cuts the files of large kernels, so that processors share them: functions of where tensors are
 * ask for nothing but the prelude and one another. */
#include "codegen/delivery/library.h"

#include <string.h>

/* Bytes of a file that is cut no further: two or three seconds of gcc. */
enum { MOST = 1 << 20, PART = 3 << 18 };

static const char far[] = "PK_FAR ";

/* A function: from "void NAME_body" to what ends it. */
typedef struct piece {
    const char *line, *name, *body, *end;
} piece;

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* The next one from `at` on; false: there is none. */
static bool find(const char *at, piece *p) {
    static const char kinds[][16] = {"PK_BIG void ", "PK_OWN void "};
    const size_t word = strlen("PK_BIG ");
    while ((at = strstr(at, "\nPK_")) != NULL) {
        at++;
        if (!starts_with(at, kinds[0]) && !starts_with(at, kinds[1]))
            continue;
        const char *is = strstr(at, "_body"), *opens = strchr(at, '(');
        const char *body = strstr(at, " {\n"), *end = body ? strstr(body, "\n}\n") : NULL;
        if (!is || !opens || is > opens || !end)
            continue;
        *p = (piece){at, at + word, body, end + strlen("\n}\n")};
        return true;
    }
    return false;
}

static void declare(po_text *to, const piece *p) {
    po_text_puts(to, far);
    po_text_add(to, p->name, (size_t)(p->body - p->name));
    po_text_puts(to, ";\n");
}

static void define(po_text *to, const piece *p) {
    po_text_puts(to, far);
    po_text_add(to, p->name, (size_t)(p->end - p->name));
}

static void add(po_library_sources *s, const char *name, const char *text, const char *flags,
                bool optional) {
    po_library_add(s, name, text, flags);
    s->optional[s->n - 1] = optional;
}

void po_library_add_code(po_library_sources *s, const char *name, const po_isa *isa,
                         const char *text, const char *flags, bool optional) {
    const char *first = po_arena_printf(s->arena, "%s_%s.c", name, isa->name);
    po_text head, rest, part;
    po_text_init(&head, s->arena);
    po_codegen_prelude(isa, &head);
    const char *at = text + head.size;
    piece p;
    if (strlen(text) <= MOST || strncmp(text, head.data, head.size) != 0 || !find(at, &p)) {
        add(s, first, text, flags, optional);
        return;
    }
    /* Every file has all declarations. */
    po_text_puts(&head, "\n");
    for (const char *next = at; find(next, &p); next = p.end)
        declare(&head, &p);
    po_text_init(&rest, s->arena);
    po_text_init(&part, s->arena);
    po_text_add(&rest, head.data, head.size);
    for (uint32_t number = 0; find(at, &p);) {
        if (part.size == 0)
            po_text_add(&part, head.data, head.size);
        po_text_add(&rest, at, (size_t)(p.line - at));
        define(&part, &p);
        at = p.end;
        if (part.size - head.size < PART && find(at, &p))
            continue;
        add(s, po_arena_printf(s->arena, "%s_%s_%u.c", name, isa->name, ++number), part.data, flags,
            optional);
        po_text_init(&part, s->arena);
    }
    po_text_puts(&rest, at);
    add(s, first, rest.data, flags, optional);
}
