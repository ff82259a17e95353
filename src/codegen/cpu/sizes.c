/* Numbers of a kernel that hang on the sizes of what it is given: each once, in an array that is
 * filled when the sizes are known. */
#include "codegen/cpu/printer.h"

#include <ctype.h>
#include <stdlib.h>

void po_codegen_length(po_dim length, po_text *out) {
    static const char *const words[][2] = {
        {"floor(", "pk_quotient("}, {"min(", "pk_least("}, {"max(", "pk_most("}, {"/", ","}};
    enum { WORDS = sizeof words / sizeof words[0] };
    const char *p = length.symbol;
    if (!p)
        po_text_printf(out, "%lld", (long long)length.value);
    while (p && *p) {
        uint32_t k = 0;
        while (k < WORDS && strncmp(p, words[k][0], strlen(words[k][0])) != 0)
            k++;
        const size_t n = k < WORDS ? strlen(words[k][0]) : 1;
        po_text_add(out, k < WORDS ? words[k][1] : p, k < WORDS ? strlen(words[k][1]) : n);
        p += n;
    }
}

/* NULL: it is not known yet. */
static const char *known(const cg *g, const char *key) {
    const uint32_t k = po_map_get(g->sizes->at, key);
    return k == PO_NONE ? NULL : g->sizes->all[k].name;
}

static const char *add(cg *g, const char *key, const char *expression) {
    cg_sizes *s = g->sizes;
    const cg_size size = {po_arena_printf(g->arena, "z[%u]", s->n), expression};
    po_map_put(s->at, key, s->n);
    PO_PUSH(g->arena, s->all, s->n, s->cap, size);
    return size.name;
}

const char *cg_keep(cg *g, const char *expression) {
    const char *name = known(g, expression);
    return name ? name : add(g, expression, expression);
}

const char *cg_length(cg *g, po_dim length) {
    if (length.value >= 0)
        return po_arena_printf(g->arena, "%lld", (long long)length.value);
    if (!length.symbol) /* po_mu_open_by lets none pass */
        return "0";
    const char *name = known(g, length.symbol);
    if (name)
        return name;
    po_text text;
    po_text_init(&text, g->arena);
    po_codegen_length(length, &text);
    return add(g, length.symbol, text.data);
}

const char *cg_constant(cg *g, double value) {
    po_dim of;
    if (g->open->n_names > 0 && po_mu_open_part(g->open, value, &of))
        return po_arena_printf(g->arena, "pk_part(%s)", cg_length(g, of));
    po_text text;
    po_text_init(&text, g->arena);
    cg_number(&text, value);
    return text.data;
}

cg_terms cg_terms_start(cg *g) {
    cg_terms t = {0};
    po_text_init(&t.text, g->arena);
    po_text_puts(&t.text, "");
    return t;
}

void cg_terms_add(cg *g, cg_terms *t, int64_t coef, po_dim length) {
    if (length.value >= 0) {
        t->number += coef * length.value;
        return;
    }
    const char *text = cg_length(g, length);
    if (coef == 1)
        po_text_printf(&t->text, " + %s", text);
    else if (coef != 0)
        po_text_printf(&t->text, " %c %lld * %s", coef < 0 ? '-' : '+',
                       (long long)(coef < 0 ? -coef : coef), text);
}

const char *cg_terms_text(cg *g, cg_terms *t) {
    (void)g;
    const int64_t n = t->number;
    if (n != 0)
        po_text_printf(&t->text, " %c %lld", n < 0 ? '-' : '+', (long long)(n < 0 ? -n : n));
    return t->text.data ? t->text.data : "";
}

/* Behind the number of a size that is named at p; NULL: none is. `before`: the character there. */
static const char *behind_size(const char *p, char before, uint32_t *number) {
    const bool word = before == '_' || isalnum((unsigned char)before);
    if (word || p[0] != 'z' || p[1] != '[' || !isdigit((unsigned char)p[2]))
        return NULL;
    char *end;
    *number = (uint32_t)strtoul(p + 2, &end, 10);
    return end + 1;
}

const char *cg_own_sizes(cg *g, const char *text, const char **passed) {
    po_text own, list;
    uint32_t *all = NULL, n = 0, cap = 0;
    po_text_init(&own, g->arena);
    po_text_init(&list, g->arena);
    const char *from = text, *p = text;
    while (*p) {
        uint32_t number, k = 0;
        const char *end = behind_size(p, p == text ? ' ' : p[-1], &number);
        if (!end) {
            p++;
            continue;
        }
        while (k < n && all[k] != number)
            k++;
        if (k == n) {
            PO_PUSH(g->arena, all, n, cap, number);
            po_text_printf(&list, "%sz[%u]", k > 0 ? ", " : "", number);
        }
        po_text_add(&own, from, (size_t)(p - from));
        po_text_printf(&own, "z[%u]", k);
        from = p = end;
    }
    po_text_puts(&own, from);
    *passed = n > 0 ? po_arena_printf(g->arena, "(const long[]){%s}", list.data) : "z";
    return own.data;
}

void cg_sizes_function(cg *g) {
    po_text_printf(g->out,
                   "\nconst size_t %s_sizes = %u;\n"
                   "void %s_measure(const long *given, long *z);\n"
                   "void %s_measure(const long *given, long *z) {\n    (void)given;\n",
                   g->symbol, g->sizes->n, g->symbol, g->symbol);
    for (uint32_t k = 0; k < g->open->n_names; k++)
        po_text_printf(g->out, "    const long %s = given[%u];\n", g->open->names[k], k);
    for (uint32_t k = 0; k < g->open->n_names; k++)
        po_text_printf(g->out, "    (void)%s;\n", g->open->names[k]);
    for (uint32_t i = 0; i < g->sizes->n; i++) {
        const uint32_t k = (i + CG_FIRST_SIZE) % g->sizes->n; /* the totals last */
        po_text_printf(g->out, "    z[%u] = %s;\n", k, g->sizes->all[k].expression);
    }
    po_text_puts(g->out, "}\n");
}
