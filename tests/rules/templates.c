/* Patterns of graphs with parameters, filled by drawing lots: patterns*.txt.
 *
 * A pattern begins with "% NAME" or "% NAME / N" (one graph in N of what others get, for what is
 * slow). "? a=1|2|5 b=3:9 f=Relu|Tanh" draws parameters: one of a list, or a number of a range. In
 * the text $a is a parameter, $(a*b+1) a whole number made of them, $[A|B|C] one of these. What
 * follows "random" is a stream of numbers: the seed moves them all. Lines with # are comments. */
#include "rules.h"

#include "base/hash.h"
#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct pattern {
    const char *name, *draws, *text;
    uint32_t rarity;
} pattern;

struct templates {
    pattern *rows;
    uint32_t n, cap;
};

enum { MOST_PARAMETERS = 24, NAME = 24 };

typedef struct filling {
    po_arena *arena;
    uint64_t seed, drawn;
    uint32_t n;
    struct {
        char name[NAME];
        const char *value;
    } row[MOST_PARAMETERS];
} filling;

static void give_up(const char *why, const char *what) {
    fprintf(stderr, "patterns: %s: %.60s\n", why, what);
    exit(2);
}

templates *templates_create(po_arena *arena) {
    return PO_NEW(arena, templates);
}

void templates_read(templates *t, po_arena *arena, const char *path) {
    FILE *file = fopen(path, "r");
    char line[1024];
    po_text text;
    pattern row = {0};
    if (!file)
        give_up("cannot be read", path);
    for (bool more = true; more;) {
        more = fgets(line, sizeof line, file) != NULL;
        if (!more || line[0] == '%') {
            if (row.name) {
                row.text = text.data;
                PO_PUSH(arena, t->rows, t->n, t->cap, row);
            }
            if (!more)
                break;
            char *slash = strstr(line, " / ");
            row = (pattern){.draws = "", .rarity = slash ? (uint32_t)atoi(slash + 3) : 1};
            if (slash)
                *slash = '\0';
            line[strcspn(line, "\n")] = '\0';
            row.name = po_arena_strdup(arena, line + 2);
            po_text_init(&text, arena);
        } else if (line[0] == '?') {
            row.draws = po_arena_printf(arena, "%s %s", row.draws, line + 1);
        } else if (line[0] != '#' && row.name) {
            po_text_printf(&text, "%s", line);
        }
    }
    fclose(file);
}

uint32_t templates_count(const templates *t) {
    return t->n;
}

uint32_t templates_rarity(const templates *t, uint32_t row) {
    return t->rows[row].rarity;
}

const char *templates_name(const templates *t, uint32_t row) {
    return t->rows[row].name;
}

static uint64_t draw(filling *f, uint64_t n) {
    return po_random_u64(f->seed, 23, f->drawn++) % n;
}

/* One of "a|b|c"; brackets within hold others. */
static const char *choose(filling *f, const char *list, size_t size) {
    uint32_t n = 1;
    int depth = 0;
    for (size_t i = 0; i < size; i++) {
        depth += (list[i] == '[') - (list[i] == ']');
        n += depth == 0 && list[i] == '|';
    }
    uint64_t skip = draw(f, n);
    size_t from = 0, to;
    for (; skip > 0; from++) {
        depth += (list[from] == '[') - (list[from] == ']');
        skip -= depth == 0 && list[from] == '|';
    }
    for (to = from; to < size && (depth > 0 || list[to] != '|'); to++)
        depth += (list[to] == '[') - (list[to] == ']');
    return po_arena_printf(f->arena, "%.*s", (int)(to - from), list + from);
}

static const char *value_of(const filling *f, const char *name, size_t size) {
    for (uint32_t i = 0; i < f->n; i++)
        if (strlen(f->row[i].name) == size && memcmp(f->row[i].name, name, size) == 0)
            return f->row[i].value;
    give_up("no such parameter", name);
    return NULL;
}

static size_t name_size(const char *p) {
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

/* Numbers and parameters with + - * /, from left to right but products first. */
static int64_t factor(const filling *f, const char **p) {
    if (isdigit((unsigned char)**p)) {
        char *end;
        int64_t n = strtoll(*p, &end, 10);
        *p = end;
        return n;
    }
    size_t size = name_size(*p);
    int64_t n = strtoll(value_of(f, *p, size), NULL, 10);
    *p += size;
    return n;
}

static int64_t term(const filling *f, const char **p) {
    int64_t n = factor(f, p);
    while (**p == '*' || **p == '/') {
        char op = *(*p)++;
        int64_t m = factor(f, p);
        n = op == '*' ? n * m : n / m;
    }
    return n;
}

static int64_t sum(const filling *f, const char **p) {
    int64_t n = term(f, p);
    while (**p == '+' || **p == '-') {
        char op = *(*p)++;
        int64_t m = term(f, p);
        n = op == '+' ? n + m : n - m;
    }
    return n;
}

static void draw_parameters(filling *f, const char *p) {
    for (;;) {
        p += strspn(p, " \n");
        size_t name = strcspn(p, "="), size;
        if (!*p)
            return;
        if (name >= NAME || f->n == MOST_PARAMETERS)
            give_up("too much to draw", p);
        const char *list = p + name + 1, *range;
        size = strcspn(list, " \n");
        snprintf(f->row[f->n].name, NAME, "%.*s", (int)name, p);
        range = memchr(list, ':', size);
        if (range) {
            int64_t from = strtoll(list, NULL, 10), to = strtoll(range + 1, NULL, 10);
            int64_t n = from + (int64_t)draw(f, (uint64_t)(to - from + 1));
            f->row[f->n].value = po_arena_printf(f->arena, "%lld", (long long)n);
        } else {
            f->row[f->n].value = choose(f, list, size);
        }
        f->n++;
        p = list + size;
    }
}

static void fill(filling *f, po_text *text, const char *p) {
    while (*p) {
        if (strncmp(p, "random ", 7) == 0) {
            char *end;
            int64_t stream = strtoll(p + 7, &end, 10);
            po_text_printf(text, "random %lld",
                           (long long)(stream + (int64_t)(f->seed % 100000) * 64));
            p = end;
        } else if (*p != '$') {
            po_text_add(text, p++, 1);
        } else if (p[1] == '[') {
            size_t size = 0;
            for (int depth = 1; p[2 + size]; size++) {
                depth += (p[2 + size] == '[') - (p[2 + size] == ']');
                if (depth == 0)
                    break;
            }
            if (!p[2 + size])
                give_up("no end of a choice", p);
            fill(f, text, choose(f, p + 2, size));
            p += size + 3;
        } else if (p[1] == '(') {
            p += 2;
            po_text_printf(text, "%lld", (long long)sum(f, &p));
            if (*p++ != ')')
                give_up("no number", p - 1);
        } else {
            size_t size = name_size(++p);
            po_text_printf(text, "%s", value_of(f, p, size));
            p += size;
        }
    }
}

const char *templates_fill(const templates *t, po_arena *arena, uint32_t row, uint64_t seed) {
    filling f = {.arena = arena, .seed = seed + 7919 * (uint64_t)row};
    po_text text;
    po_text_init(&text, arena);
    draw_parameters(&f, t->rows[row].draws);
    fill(&f, &text, t->rows[row].text);
    return text.data;
}
