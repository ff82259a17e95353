/* Reads the text of muGraphs by recursive descent. Depths, lengths and numbers have limits here;
 * whether it has a meaning is left to po_mu_check. */
#include "mugraph/parts.h"

#include "base/scan.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

/* --- functions by name --- */

const char *po_mu_function_name(po_mu_function function) {
    static const char *const names[] = {
#define PO_MU_FUNCTION(id, name, arity, flops, what) name,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    return names[function];
}

bool po_mu_is_infix(po_mu_function function) {
    return function == PO_MU_PLUS || function == PO_MU_MINUS || function == PO_MU_TIMES ||
           function == PO_MU_OVER;
}

/* PO_MU_FUNCTIONS where there is none that is written as a call. */
static po_mu_function function_of(const char *name) {
    for (uint32_t f = PO_MU_OPERAND + 1; f < PO_MU_FUNCTIONS; f++)
        if (!po_mu_is_infix((po_mu_function)f) &&
            strcmp(po_mu_function_name((po_mu_function)f), name) == 0)
            return (po_mu_function)f;
    return PO_MU_FUNCTIONS;
}

/* --- the parser --- */

enum { MOST_NAMED = PO_MU_MAX_ITEMS, DEEPEST = 100, MOST_TABLE = 1 << 20 };

typedef struct parser {
    po_scan scan;
    po_mu *mu;
    po_map *labels, *tensors;
    unsigned char *own_strides; /* by tensor */
    uint32_t cap_own;
    /* The statement under way: expressions that were given a name. */
    uint32_t statement, n_named, depth;
    const char *named[MOST_NAMED];
    uint32_t named_item[MOST_NAMED];
} parser;

static po_status whole(parser *p, int64_t least, int64_t *value) {
    const char *at = p->scan.at;
    PO_TRY(po_scan_i64(&p->scan, value));
    if (*value >= least)
        return PO_OK;
    p->scan.at = at;
    return po_scan_fail(&p->scan, "a number below %lld", (long long)least);
}

static po_status small(parser *p, uint32_t *value) {
    int64_t v;
    PO_TRY(whole(p, 0, &v));
    if (v >= INT32_MAX)
        return po_scan_fail(&p->scan, "a number is too large");
    *value = (uint32_t)v;
    return PO_OK;
}

/* Length of the label-like word that comes next: a letter, then letters and digits. */
static size_t word_length(parser *p) {
    po_scan_peek(&p->scan);
    const char *at = p->scan.at;
    size_t n = 0;
    while ((at[n] >= 'a' && at[n] <= 'z') || (n && at[n] >= '0' && at[n] <= '9'))
        n++;
    /* Part of a longer name, that of a tensor? */
    return at[n] == '_' || at[n] == '.' || at[n] == '$' || (at[n] >= 'A' && at[n] <= 'Z') ? 0 : n;
}

/* The label that comes next; not taken, PO_NONE, where what comes is none. */
static uint32_t try_label(parser *p) {
    size_t n = word_length(p);
    if (n == 0)
        return PO_NONE;
    const char *word =
        po_arena_printf(p->scan.arena, "%.*s", (int)(n > 4096 ? 4096 : n), p->scan.at);
    uint32_t label = po_map_get(p->labels, word);
    if (label != PO_NONE)
        p->scan.at += n;
    return label;
}

/* The same where the next statement may come instead, whose tensor may be named like a label. */
static uint32_t try_last_label(parser *p) {
    const char *at = p->scan.at;
    uint32_t label = try_label(p);
    if (label == PO_NONE || !po_scan_is(&p->scan, "["))
        return label;
    p->scan.at = at;
    return PO_NONE;
}

static po_status need_label(parser *p, uint32_t *label) {
    *label = try_label(p);
    return *label == PO_NONE ? po_scan_fail(&p->scan, "expected a label that was declared") : PO_OK;
}

static po_status label_declaration(parser *p) {
    size_t n = word_length(p);
    const char *at = p->scan.at;
    if (n == 0 || n > 4096)
        return po_scan_fail(&p->scan, "expected a label: lower-case letters and digits");
    const char *name = po_arena_printf(p->mu->arena, "%.*s", (int)n, at);
    if (po_mu_is_reserved(name))
        return po_scan_fail(&p->scan, "'%s' cannot be a label", name);
    p->scan.at += n;
    int64_t extent;
    PO_TRY(whole(p, 1, &extent));
    if (po_map_put(p->labels, name, p->mu->n_labels) != PO_NONE) {
        p->scan.at = at;
        return po_scan_fail(&p->scan, "there are two labels '%s'", name);
    }
    po_mu_label label = {name, extent};
    PO_PUSH(p->mu->arena, p->mu->labels, p->mu->n_labels, p->mu->cap_labels, label);
    return PO_OK;
}

/* --- tensors --- */

static po_status numbers(parser *p, int64_t least, uint32_t *n, int64_t *value) {
    PO_TRY(po_scan_need(&p->scan, "["));
    for (*n = 0; !po_scan_take(&p->scan, "]"); (*n)++) {
        if (*n == PO_MU_MAX_RANK)
            return po_scan_fail(&p->scan, "more than %d axes", PO_MU_MAX_RANK);
        if (*n)
            PO_TRY(po_scan_need(&p->scan, ","));
        PO_TRY(whole(p, least, &value[*n]));
    }
    return PO_OK;
}

static po_status numbers_of(parser *p, const po_mu_tensor *t, int64_t least, int64_t *value) {
    uint32_t n;
    PO_TRY(numbers(p, least, &n, value));
    return n == t->rank ? PO_OK
                        : po_scan_fail(&p->scan, "%u numbers for %u axes of tensor '%s'", n,
                                       t->rank, t->name);
}

/* The number that comes next, infinities included. The scanner's own reading would take the
 * slash of a quotient for a part of it. */
static po_status number(parser *p, double *value) {
    po_scan_peek(&p->scan);
    const char *at = p->scan.at;
    size_t n = *at == '-';
    char buffer[512], *end;
    if (strncmp(at + n, "inf", 3) == 0) {
        *value = n ? -(double)INFINITY : (double)INFINITY;
        p->scan.at += n + 3;
        return PO_OK;
    }
    while ((at[n] >= '0' && at[n] <= '9') || at[n] == '.' || at[n] == 'e' || at[n] == 'E' ||
           (n && (at[n] == '-' || at[n] == '+') && (at[n - 1] == 'e' || at[n - 1] == 'E')))
        n++;
    if (n >= sizeof buffer)
        return po_scan_fail(&p->scan, "a number of more than %zu characters", sizeof buffer - 1);
    memcpy(buffer, at, n);
    buffer[n] = '\0';
    *value = strtod_l(buffer, &end, (locale_t)p->scan.locale);
    if (n == 0 || *end || end == buffer || *value - *value != 0)
        return po_scan_fail(&p->scan, "expected a number");
    p->scan.at += n;
    return PO_OK;
}

static po_status table(parser *p, po_mu_tensor *t) {
    po_rational *items = NULL;
    uint32_t n = 0, cap = 0;
    int64_t count = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        if (__builtin_mul_overflow(count, t->dims[x], &count) || count > MOST_TABLE)
            return po_scan_fail(&p->scan, "table '%s' has more than %d elements", t->name,
                                MOST_TABLE);
    PO_TRY(po_scan_need(&p->scan, "{"));
    while (!po_scan_take(&p->scan, "}")) {
        po_rational value;
        if (n)
            PO_TRY(po_scan_need(&p->scan, ","));
        PO_TRY(po_scan_rational(&p->scan, &value));
        PO_PUSH(p->mu->arena, items, n, cap, value);
    }
    if (n != (uint64_t)count)
        return po_scan_fail(&p->scan, "table '%s' has %u fractions for %lld elements", t->name, n,
                            (long long)count);
    t->table = items;
    return PO_OK;
}

/* After the word tensor, shared or register. */
static po_status tensor_declaration(parser *p, po_mu_place place, uint32_t scope) {
    static const char *const places[] = {"input", "output", "weight", "table", "device"};
    po_mu_tensor t = {.place = place, .scope = scope};
    const char *at = p->scan.at;
    PO_TRY(po_scan_name(&p->scan, &t.name));
    t.name = po_arena_strdup(p->mu->arena, t.name);
    if (po_map_put(p->tensors, t.name, p->mu->n_tensors) != PO_NONE) {
        p->scan.at = at;
        return po_scan_fail(&p->scan, "there are two tensors '%s'", t.name);
    }
    if (place == PO_MU_DEVICE) {
        uint32_t k = 0;
        while (k < 5 && !po_scan_take_word(&p->scan, places[k]))
            k++;
        if (k == 5)
            return po_scan_fail(&p->scan, "expected input, output, weight, table or device");
        t.place = (po_mu_place)k;
    }
    if (t.place == PO_MU_INPUT || t.place == PO_MU_OUTPUT || t.place == PO_MU_WEIGHT)
        PO_TRY(small(p, &t.number));
    PO_TRY(numbers(p, 1, &t.rank, t.dims));
    for (uint32_t k = PO_MU_F16; k <= PO_MU_BF16; k++)
        if (po_scan_take_word(&p->scan, po_mu_type_names[k]))
            t.type = (po_mu_type)k;
    if (po_scan_take_word(&p->scan, "before"))
        PO_TRY(numbers_of(p, &t, 0, t.before));
    if (po_scan_take_word(&p->scan, "after"))
        PO_TRY(numbers_of(p, &t, 0, t.after));
    if (po_scan_take_word(&p->scan, "fill"))
        PO_TRY(number(p, &t.fill));
    bool strides = po_scan_take_word(&p->scan, "stride");
    if (strides)
        PO_TRY(numbers_of(p, &t, 0, t.stride));
    if (t.place == PO_MU_TABLE)
        PO_TRY(table(p, &t));
    uint32_t n = p->mu->n_tensors;
    PO_PUSH(p->mu->arena, p->mu->tensors, p->mu->n_tensors, p->mu->cap_tensors, t);
    PO_PUSH(p->mu->arena, p->own_strides, n, p->cap_own, strides);
    return PO_OK;
}

/* --- accesses --- */

static po_status index_of(parser *p, po_mu_access *access, uint32_t axis) {
    bool first = true;
    for (;;) {
        int64_t sign = 1, coef = 1;
        if (po_scan_take(&p->scan, "-"))
            sign = -1;
        else if (!first && !po_scan_take(&p->scan, "+"))
            return PO_OK;
        first = false;
        char c = po_scan_peek(&p->scan);
        bool counted = c >= '0' && c <= '9';
        uint32_t label = PO_NONE;
        if (counted)
            PO_TRY(whole(p, 0, &coef));
        if (!counted || po_scan_take(&p->scan, "*"))
            PO_TRY(need_label(p, &label));
        const po_mu_index *index = &access->axes[axis];
        int64_t have = label == PO_NONE ? index->offset : po_mu_coef(index, label), sum;
        if (__builtin_add_overflow(have, sign * coef, &sum))
            return po_scan_fail(&p->scan, "an index is too large");
        po_mu_at(p->mu, access, axis, sign * coef, label);
    }
}

/* The tensor's name is taken already. */
static po_status access_of(parser *p, const char *name, po_mu_access *access) {
    uint32_t tensor = po_map_get(p->tensors, name);
    if (tensor == PO_NONE)
        return po_scan_fail(&p->scan, "there is no tensor '%s'", name);
    PO_TRY(po_scan_need(&p->scan, "["));
    *access = po_mu_access_of(p->mu, tensor);
    for (uint32_t x = 0; x < p->mu->tensors[tensor].rank; x++) {
        if (x)
            PO_TRY(po_scan_need(&p->scan, ","));
        PO_TRY(index_of(p, access, x));
    }
    if (po_scan_take(&p->scan, "]"))
        return PO_OK;
    return po_scan_fail(&p->scan, "tensor '%s' has %u axes", name, p->mu->tensors[tensor].rank);
}

/* --- expressions --- */

static po_status sum(parser *p, uint32_t *item);
static po_status guarded(parser *p, uint32_t *item);

static po_status add_item(parser *p, po_mu_item item, uint32_t *number) {
    const po_mu_statement *s = &p->mu->nodes[p->statement].statement;
    if (s->n_items == PO_MU_MAX_ITEMS)
        return po_scan_fail(&p->scan, "an expression of more than %d parts", PO_MU_MAX_ITEMS);
    *number = item.function == PO_MU_CONST
                  ? po_mu_constant(p->mu, p->statement, item.value)
                  : po_mu_item_of(p->mu, p->statement, item.function, item.a, item.b, item.c);
    return PO_OK;
}

static po_status operand(parser *p, const char *name, uint32_t *item) {
    po_mu_access access;
    PO_TRY(access_of(p, name, &access));
    const po_mu_statement *s = &p->mu->nodes[p->statement].statement;
    uint32_t k = 0;
    while (k < s->n_in && !po_mu_same_access(p->mu, &s->in[k], &access))
        k++;
    if (k < s->n_in) { /* the same operand: its item is there */
        for (*item = 0; s->items[*item].function != PO_MU_OPERAND || s->items[*item].a != k;)
            ++*item;
        return PO_OK;
    }
    if (po_mu_operand(p->mu, p->statement, access) == PO_NONE)
        return po_scan_fail(&p->scan, "more than %d operands", PO_MU_MAX_INPUTS);
    return add_item(p, (po_mu_item){.function = PO_MU_OPERAND, .a = k}, item);
}

static po_status call(parser *p, const char *name, uint32_t *item) {
    po_mu_function f = function_of(name);
    if (f == PO_MU_FUNCTIONS)
        return po_scan_fail(&p->scan, "there is no function '%s'", name);
    uint32_t argument[3] = {0, 0, 0};
    for (uint32_t i = 0; i < po_mu_arity(f); i++) {
        PO_TRY(po_scan_need(&p->scan, i ? "," : "("));
        PO_TRY(sum(p, &argument[i]));
    }
    PO_TRY(po_scan_need(&p->scan, ")"));
    return add_item(p, (po_mu_item){f, argument[0], argument[1], argument[2], 0}, item);
}

/* Whether "name :=" comes next. */
static bool is_naming(parser *p) {
    size_t n = word_length(p);
    const char *at = p->scan.at + n;
    at += strspn(at, " \t\r\n");
    return n && n < 4096 && at[0] == ':' && at[1] == '=';
}

static po_status bracket(parser *p, uint32_t *item) {
    uint32_t named = PO_NONE;
    PO_TRY(po_scan_need(&p->scan, "("));
    if (is_naming(p)) {
        named = p->n_named;
        if (named == MOST_NAMED)
            return po_scan_fail(&p->scan, "more than %d named expressions", MOST_NAMED);
        PO_TRY(po_scan_name(&p->scan, &p->named[named]));
        for (uint32_t i = 0; i < named; i++)
            if (strcmp(p->named[i], p->named[named]) == 0)
                return po_scan_fail(&p->scan, "there are two expressions '%s'", p->named[i]);
        PO_TRY(po_scan_need(&p->scan, ":="));
        p->named_item[p->n_named++] = PO_NONE;
    }
    PO_TRY(sum(p, item));
    if (named != PO_NONE)
        p->named_item[named] = *item;
    return po_scan_need(&p->scan, ")");
}

static po_status primary(parser *p, uint32_t *item) {
    po_mu_item constant = {.function = PO_MU_CONST};
    char c = po_scan_peek(&p->scan), next = (char)(c ? p->scan.at[1] : 0);
    if (c == '(')
        return bracket(p, item);
    if (c == '-' && !(next >= '0' && next <= '9') && next != '.' &&
        strncmp(p->scan.at + 1, "inf", 3) != 0) {
        p->scan.at++;
        PO_TRY(guarded(p, item));
        return add_item(p, (po_mu_item){.function = PO_MU_NEGATE, .a = *item}, item);
    }
    if (c == '-' || c == '.' || (c >= '0' && c <= '9')) {
        PO_TRY(number(p, &constant.value));
        return add_item(p, constant, item);
    }
    const char *at = p->scan.at, *name;
    PO_TRY(po_scan_name(&p->scan, &name));
    if (po_scan_is(&p->scan, "["))
        return operand(p, name, item);
    if (po_scan_is(&p->scan, "("))
        return call(p, name, item);
    for (uint32_t i = 0; i < p->n_named; i++)
        if (strcmp(p->named[i], name) == 0 && p->named_item[i] != PO_NONE) {
            *item = p->named_item[i];
            return PO_OK;
        }
    p->scan.at = at;
    if (strcmp(name, "inf") != 0)
        return po_scan_fail(&p->scan, "'%s' is neither an operand nor a named expression", name);
    PO_TRY(number(p, &constant.value));
    return add_item(p, constant, item);
}

static po_status guarded(parser *p, uint32_t *item) {
    if (++p->depth > DEEPEST)
        return po_scan_fail(&p->scan, "an expression nested deeper than %d", DEEPEST);
    PO_TRY(primary(p, item));
    p->depth--;
    return PO_OK;
}

static po_status product(parser *p, uint32_t *item) {
    PO_TRY(guarded(p, item));
    for (;;) {
        bool is_times = po_scan_take(&p->scan, "*");
        if (!is_times && !po_scan_take(&p->scan, "/"))
            return PO_OK;
        uint32_t right;
        PO_TRY(guarded(p, &right));
        PO_TRY(add_item(p, (po_mu_item){is_times ? PO_MU_TIMES : PO_MU_OVER, *item, right, 0, 0},
                        item));
    }
}

static po_status sum(parser *p, uint32_t *item) {
    PO_TRY(product(p, item));
    for (;;) {
        bool is_plus = po_scan_take(&p->scan, "+");
        if (!is_plus && !po_scan_take(&p->scan, "-"))
            return PO_OK;
        uint32_t right;
        PO_TRY(product(p, &right));
        PO_TRY(add_item(p, (po_mu_item){is_plus ? PO_MU_PLUS : PO_MU_MINUS, *item, right, 0, 0},
                        item));
    }
}

/* --- the tree --- */

/* "ahead W 2304": of the first operand in that tensor. */
static po_status ahead(parser *p, po_mu_statement *s) {
    const char *name;
    PO_TRY(po_scan_name(&p->scan, &name));
    s->ahead_of = 0;
    while (s->ahead_of < s->n_in &&
           strcmp(p->mu->tensors[s->in[s->ahead_of].tensor].name, name) != 0)
        s->ahead_of++;
    if (s->ahead_of == s->n_in)
        return po_scan_fail(&p->scan, "expected an operand's tensor");
    return whole(p, 1, &s->ahead);
}

static po_status statement(parser *p, uint32_t parent) {
    const char *name;
    po_mu_access out;
    PO_TRY(po_scan_name(&p->scan, &name));
    PO_TRY(access_of(p, name, &out));
    po_mu_combine combine = PO_MU_SET;
    if (po_scan_take(&p->scan, "+="))
        combine = PO_MU_ADD;
    else if (po_scan_take(&p->scan, "max="))
        combine = PO_MU_MAXIMUM;
    else
        PO_TRY(po_scan_need(&p->scan, "="));
    p->statement = po_mu_add_statement(p->mu, parent, combine);
    p->mu->nodes[p->statement].statement.out = out;
    uint32_t item;
    p->n_named = p->depth = 0;
    PO_TRY(sum(p, &item));
    po_mu_statement *s = &p->mu->nodes[p->statement].statement;
    s->fresh = po_scan_take_word(&p->scan, "fresh");
    if (po_scan_take_word(&p->scan, "tile")) {
        uint32_t label, count;
        PO_TRY(need_label(p, &label));
        PO_TRY(po_scan_need(&p->scan, "*"));
        PO_TRY(small(p, &count));
        s->lane = label;
        s->vectors = count;
        bool row_only = po_scan_take(&p->scan, "-");
        uint32_t lane = row_only ? PO_NONE : try_last_label(p);
        if (row_only || lane != PO_NONE) { /* what came first was the row */
            s->row = label;
            s->rows = count;
            s->lane = lane;
            s->vectors = 0;
        }
        if (lane != PO_NONE) {
            PO_TRY(po_scan_need(&p->scan, "*"));
            PO_TRY(small(p, &s->vectors));
        }
    }
    if (po_scan_take_word(&p->scan, "order")) {
        uint32_t *order = NULL, cap = 0, label;
        PO_TRY(need_label(p, &label));
        do {
            PO_PUSH(p->mu->arena, order, s->n_order, cap, label);
            label = try_last_label(p);
        } while (label != PO_NONE);
        s->order = order;
    }
    if (po_scan_take_word(&p->scan, "ahead"))
        PO_TRY(ahead(p, s));
    s->fused = po_scan_take_word(&p->scan, "fused");
    return PO_OK;
}

/* What stands in the braces of a step or loop. */
static po_status block(parser *p, uint32_t node, uint32_t depth) {
    static const char *const kinds[] = {"grid", "for", "lanes"};
    uint32_t scope = p->mu->nodes[node].kind == PO_MU_LOOP ? node : PO_NONE;
    PO_TRY(po_scan_need(&p->scan, "{"));
    while (!po_scan_take(&p->scan, "}")) {
        if (po_scan_take_word(&p->scan, "shared")) {
            PO_TRY(tensor_declaration(p, PO_MU_SHARED, scope));
            continue;
        }
        if (po_scan_take_word(&p->scan, "register")) {
            PO_TRY(tensor_declaration(p, PO_MU_REGISTER, scope));
            continue;
        }
        uint32_t kind = 0, label;
        while (kind < 3 && !po_scan_take_word(&p->scan, kinds[kind]))
            kind++;
        if (kind == 3) {
            PO_TRY(statement(p, node));
            continue;
        }
        int64_t chunk = 0;
        if (depth == PO_MU_MAX_DEPTH)
            return po_scan_fail(&p->scan, "loops nested deeper than %d", PO_MU_MAX_DEPTH);
        PO_TRY(need_label(p, &label));
        if (kind != PO_MU_LANES) {
            if (!po_scan_take_word(&p->scan, "by"))
                return po_scan_fail(&p->scan, "expected 'by'");
            PO_TRY(whole(p, 1, &chunk));
        }
        PO_TRY(
            block(p, po_mu_add_loop(p->mu, node, (po_mu_loop_kind)kind, label, chunk), depth + 1));
    }
    return PO_OK;
}

static po_status whole_text(parser *p) {
    const char *name;
    po_scan *scan = &p->scan;
    if (!po_scan_take_word(scan, "mugraph"))
        return po_scan_fail(scan, "expected 'mugraph'");
    PO_TRY(po_scan_name(scan, &name));
    p->mu = po_mu_create(scan->arena, name);
    PO_TRY(po_scan_need(scan, "{"));
    while (!po_scan_take(scan, "}")) {
        if (po_scan_take_word(scan, "label")) {
            PO_TRY(label_declaration(p));
        } else if (po_scan_take_word(scan, "tensor")) {
            PO_TRY(tensor_declaration(p, PO_MU_DEVICE, PO_NONE));
        } else if (po_scan_take_word(scan, "shared")) {
            PO_TRY(tensor_declaration(p, PO_MU_SHARED, PO_NONE));
        } else if (po_scan_take_word(scan, "register")) {
            PO_TRY(tensor_declaration(p, PO_MU_REGISTER, PO_NONE));
        } else if (po_scan_take_word(scan, "step")) {
            po_bytes step;
            PO_TRY(po_scan_string(scan, &step));
            if (memchr(step.data, '\0', step.size))
                return po_scan_fail(scan, "the name of a step holds a NUL character");
            PO_TRY(block(p, po_mu_add_step(p->mu, step.data), 0));
        } else {
            return po_scan_fail(scan, "expected label, tensor, step or '}'");
        }
    }
    if (!po_scan_at_end(scan))
        return po_scan_fail(scan, "text after the muGraph");
    /* What local tensors hold is known now that all statements are. */
    for (uint32_t i = 0; i < p->mu->n_tensors; i++) {
        if (p->own_strides[i])
            po_mu_measure(p->mu, i);
        else
            po_mu_layout(p->mu, i, 1, 0);
    }
    return PO_OK;
}

po_status po_mu_parse(po_ctx *ctx, po_arena *arena, const char *text, po_mu **mu) {
    parser p = {.labels = po_map_create(arena), .tensors = po_map_create(arena)};
    po_scan_init(&p.scan, ctx, arena, text);
    PO_TRY(whole_text(&p));
    *mu = p.mu;
    return PO_OK;
}
