/* Patterns are matched as they are read. What is still to be matched is a list of goals, a text and
 * a value each; where there is a choice the rest is tried with one, then with the other. */
#include "rewrite/pattern.h"

#include "rewrite/spelling/match.h"

#include <ctype.h>
#include <math.h>

enum { MOST_STEPS = 4096, PATTERNS_SINCE = 7 };

typedef struct matcher {
    const po_graph *graph;
    po_arena *scratch;
    po_value_id root;
    po_match *match;
    uint32_t steps; /* that are left */
} matcher;

typedef struct goal {
    const char *text;
    po_value_id value;
    const struct goal *next;
} goal;

static bool solve(matcher *t, const goal *g);

/* --- text --- */

static const char *after(const char *p) {
    return p + strspn(p, " ");
}

const char *po_text_skip(const char *p, const char *marks) {
    for (int depth = 0; *p && (depth > 0 || !strchr(marks, *p)); p++)
        depth += (*p == '(' || *p == '[' || *p == '{') - (*p == ')' || *p == ']' || *p == '}');
    return p;
}

uint32_t po_text_operands(const char *p, const char *part[PO_TEXT_OPERANDS]) {
    uint32_t n = 0;
    do {
        part[n++] = after(p + 1);
        p = po_text_skip(p + 1, ",)");
    } while (*p == ',' && n < PO_TEXT_OPERANDS);
    return n;
}

bool po_text_starts(const char *p, const char *word) {
    return strncmp(p, word, strlen(word)) == 0;
}

bool po_text_letter(const char *p) {
    return islower((unsigned char)p[0]) && !isalnum((unsigned char)p[1]);
}

/* Not strtod: the caller's locale may write decimals with a comma. */
static double decimal(const char *p) {
    double digits = 0, scale = 1;
    for (; isdigit((unsigned char)*p); p++)
        digits = 10 * digits + (*p - '0');
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++, scale *= 10)
            digits = 10 * digits + (*p - '0');
    return digits / scale;
}

static double factor(const char *p, const po_match *match) {
    if (*p == '-')
        return -factor(p + 1, match);
    if (po_text_starts(p, "sqrt("))
        return sqrt(po_text_number(p + 5, match));
    if (po_text_starts(p, "pi"))
        return M_PI;
    if (po_text_starts(p, "inf"))
        return INFINITY;
    return isdigit((unsigned char)*p) ? decimal(p) : po_matched_number(match, *p);
}

double po_text_number(const char *p, const po_match *match) {
    double number = factor(p, match);
    for (p = po_text_skip(p, "*/,)]};|"); *p == '*' || *p == '/';
         p = po_text_skip(p + 1, "*/,)]};|"))
        number = *p == '*' ? number * factor(p + 1, match) : number / factor(p + 1, match);
    return number;
}

/* --- letters and numbers --- */

static bool bind(matcher *t, char letter, po_value_id value) {
    po_bound *b = &t->match->letter[letter - 'a'];
    b->reads++;
    if (!b->is_value && !b->is_number) {
        b->value = value;
        b->is_value = true;
    }
    return b->is_value && b->value == value;
}

/* Whether the number is what the text says: this one, or what the letter stands for. */
static bool is_number(matcher *t, const char *p, double number) {
    if (!po_text_letter(p) || p[1] == '*' || p[1] == '/')
        return po_near(number, po_text_number(p, t->match));
    const po_bound *b = &t->match->letter[*p - 'a'];
    if (!b->is_number && !b->is_value)
        po_match_number(t->match, *p, number);
    return b->is_number && po_near(number, b->number);
}

static bool letter(matcher *t, const char *p, const goal *g) {
    double c;
    if (strncmp(p + 1, ":number", 7) == 0)
        return po_scalar_constant(t->graph, g->value, &c) && is_number(t, p, c) &&
               solve(t, g->next);
    if (strncmp(p + 1, ":const", 6) == 0 && !po_graph_constant(t->graph, g->value))
        return false;
    return bind(t, *p, g->value) && solve(t, g->next);
}

/* --- operators --- */

static bool attributes(matcher *t, const char *p, const po_node *n) {
    for (const char *name = p + 1; *p == '{' || *p == ',';
         p = po_text_skip(p + 1, ",}"), name = after(p + 1)) {
        const char *value = strchr(name, '=');
        if (!is_number(
                t, value + 1,
                (double)po_op_float(
                    t->graph, n, po_arena_printf(t->scratch, "%.*s", (int)(value - name), name))))
            return false;
    }
    return true;
}

/* The goals, or with the values of the first two exchanged. */
static bool in_order(matcher *t, goal *list, bool or_exchanged) {
    const po_match saved = *t->match;
    if (solve(t, list))
        return true;
    if (!or_exchanged)
        return false;
    const po_value_id first = list[0].value;
    *t->match = saved;
    list[0].value = list[1].value;
    list[1].value = first;
    return solve(t, list);
}

static bool operator(matcher *t, const char *p, bool shared, const goal *g) {
    const po_node *n = po_graph_producer(t->graph, g->value);
    const po_op_row *row = n ? po_op_row_of(n->op) : NULL;
    const size_t length = strcspn(p, "([{");
    if (!row || *row->domain || strncmp(p, row->name, length) != 0 || row->name[length] ||
        (!shared && g->value != t->root && !po_read_once(t->graph, g->value)))
        return false;
    p += length;
    if (*p == '{') {
        if (!attributes(t, p, n))
            return false;
        p = po_text_skip(p, "(");
    }
    const char *part[PO_TEXT_OPERANDS];
    const bool reduction = *p == '[';
    uint32_t axis;
    if (reduction && (!po_reduced_axis(t->graph, n, &axis) || !is_number(t, p + 1, axis)))
        return false;
    const uint32_t count = po_text_operands(po_text_skip(p, "("), part);
    if (!reduction && n->n_in != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (n->in[i] == PO_NONE)
            return false;
    goal list[PO_TEXT_OPERANDS];
    for (uint32_t i = count; i-- > 0;)
        list[i] = (goal){part[i], n->in[i], i + 1 < count ? &list[i + 1] : g->next};
    return in_order(t, list, count == 2 && po_op_has(n->op, PO_OPF_COMMUTATIVE));
}

/* --- forms --- */

static bool line(matcher *t, const char *p, const goal *g) {
    const char *part[PO_TEXT_OPERANDS];
    goal inner = {NULL, PO_NONE, g->next};
    double a, b;
    po_match_line(t->graph, t->scratch, g->value, &inner.value, &a, &b);
    po_text_operands(p, part);
    inner.text = part[1];
    return is_number(t, part[0], a) && is_number(t, part[2], b) && solve(t, &inner);
}

static bool product(matcher *t, const char *p, const goal *g) {
    const char *part[PO_TEXT_OPERANDS];
    po_matched_product m;
    po_text_operands(p, part);
    if (!po_match_product(t->graph, g->value, &m) || m.n != 2 || !is_number(t, part[0], m.c))
        return false;
    goal list[2] = {{part[1], m.v[0], &list[1]}, {part[2], m.v[1], g->next}};
    return in_order(t, list, true);
}

static bool cubic(matcher *t, const char *p, const goal *g) {
    double k[4];
    if (!po_match_cubic(t->graph, g->value, po_matched(t->match, p[1]), k))
        return false;
    for (uint32_t i = 0; i < 4; i++) {
        p = po_text_skip(p + 1, ",)");
        if (!is_number(t, after(p + 1), k[i]))
            return false;
    }
    return solve(t, g->next);
}

/* --- all of it --- */

static bool one(matcher *t, const char *p, const goal *g) {
    double c;
    bool shared = *p == '&';
    p += shared;
    if (*p == '(')
        return solve(t, &(goal){after(p + 1), g->value, g->next});
    if (islower((unsigned char)p[0]) && p[1] == '=') {
        if (!bind(t, *p, g->value))
            return false;
        t->match->letter[*p - 'a'].own = !shared;
        shared = true;
        p += 2;
    }
    if (isupper((unsigned char)*p))
        return operator(t, p, shared, g);
    if (po_text_starts(p, "line("))
        return line(t, p + 4, g);
    if (po_text_starts(p, "product("))
        return product(t, p + 7, g);
    if (po_text_starts(p, "cubic("))
        return cubic(t, p + 5, g);
    if (po_text_letter(p))
        return letter(t, p, g);
    return po_scalar_constant(t->graph, g->value, &c) && is_number(t, p, c) && solve(t, g->next);
}

/* What the pattern names is read as often as the pattern has it. */
static bool owned(const matcher *t) {
    for (size_t i = 0; i < sizeof t->match->letter / sizeof *t->match->letter; i++) {
        const po_bound *b = &t->match->letter[i];
        const po_value *v = b->own ? &t->graph->values[b->value] : NULL;
        if (v && (v->n_uses != b->reads || v->n_outputs))
            return false;
    }
    return true;
}

static bool solve(matcher *t, const goal *g) {
    if (!g)
        return owned(t);
    const po_match saved = *t->match;
    for (const char *p = g->text; t->steps > 0; p = after(p + 1)) {
        t->steps--;
        if (one(t, p, g))
            return true;
        *t->match = saved;
        p = po_text_skip(p, "|,)");
        if (*p != '|')
            break;
    }
    return false;
}

bool po_matches(const po_graph *graph, po_arena *scratch, const po_node *node, const char *text,
                po_match *match) {
    if (node->n_out == 0 || node->out[0] == PO_NONE || po_opset_of(graph) < PATTERNS_SINCE)
        return false;
    matcher t = {graph, scratch, node->out[0], match, MOST_STEPS};
    *match = (po_match){0};
    return solve(&t, &(goal){text, node->out[0], NULL});
}
