/* Prints muGraphs as text that parses back, each local tensor declared in the braces in which it
 * lives. The same text without names is what equality and hashes go by. */
#include "mugraph/parts.h"

/* One printing. Without names, what is printed tells muGraphs apart that differ by more than
 * names: labels are called by number, tensors by the order in which the text declares them. */
typedef struct printer {
    po_text *text;
    const po_mu *mu;
    bool names;
    uint32_t *home; /* by tensor: the loop or step in whose braces it is declared; PO_NONE: none */
    uint32_t *called; /* by tensor: its place in the order of declarations */
    uint32_t n_called;
    uint32_t n_shared; /* expressions of the statement under way that were given a name */
} printer;

static bool is_scoped(const po_mu_tensor *t) {
    return t->place == PO_MU_SHARED || t->place == PO_MU_REGISTER;
}

static void find_home(printer *p, uint32_t tensor, uint32_t node) {
    const po_mu *mu = p->mu;
    if (tensor < mu->n_tensors && is_scoped(&mu->tensors[tensor]) && p->home[tensor] == PO_NONE)
        p->home[tensor] = po_mu_step_of(mu, node);
}

/* By item, how often items that the value needs use it; the value itself once. */
static uint32_t *uses_of(printer *p, const po_mu_statement *s) {
    uint32_t *uses = PO_NEW_N(p->text->arena, uint32_t, s->n_items + 1);
    if (s->n_items)
        uses[s->n_items - 1] = 1;
    for (uint32_t i = s->n_items; i-- > 0;) { /* what uses an item comes later */
        const po_mu_item *m = &s->items[i];
        uint32_t argument[3] = {m->a, m->b, m->c};
        for (uint32_t k = 0; k < po_mu_arity(m->function); k++)
            if (uses[i] && argument[k] < i)
                uses[argument[k]]++;
    }
    return uses;
}

static void find_homes(printer *p) {
    const po_mu *mu = p->mu;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        uint32_t scope = mu->tensors[i].scope;
        bool known = is_scoped(&mu->tensors[i]) && scope < mu->n_nodes &&
                     mu->nodes[scope].kind != PO_MU_STATEMENT;
        p->home[i] = known ? scope : PO_NONE;
    }
    for (uint32_t n = mu->first; n != PO_NONE; n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        find_home(p, s->out.tensor, n);
        const uint32_t *uses = uses_of(p, s);
        for (uint32_t i = 0; i < s->n_items; i++)
            if (uses[i] && s->items[i].function == PO_MU_OPERAND && s->items[i].a < s->n_in)
                find_home(p, s->in[s->items[i].a].tensor, n);
    }
}

/* --- names and numbers --- */

static void label(printer *p, uint32_t l) {
    if (l >= p->mu->n_labels)
        po_text_puts(p->text, "?");
    else if (p->names)
        po_text_puts(p->text, p->mu->labels[l].name);
    else
        po_text_printf(p->text, "l%u", l);
}

static void tensor_name(printer *p, uint32_t t) {
    if (t >= p->mu->n_tensors)
        po_text_puts(p->text, "?");
    else if (!p->names)
        po_text_printf(p->text, "t%u", p->called[t]);
    else if (po_mu_is_reserved(p->mu->tensors[t].name))
        po_text_quoted(p->text, p->mu->tensors[t].name, strlen(p->mu->tensors[t].name));
    else
        po_text_name(p->text, p->mu->tensors[t].name);
}

static void numbers(printer *p, const char *before, uint32_t n, const int64_t *value) {
    po_text_puts(p->text, before);
    po_text_puts(p->text, "[");
    for (uint32_t i = 0; i < n; i++)
        po_text_printf(p->text, "%s%lld", i ? ", " : "", (long long)value[i]);
    po_text_puts(p->text, "]");
}

static bool any(uint32_t n, const int64_t *value) {
    for (uint32_t i = 0; i < n; i++)
        if (value[i])
            return true;
    return false;
}

static void line(printer *p, uint32_t depth) {
    po_text_puts(p->text, "\n");
    for (uint32_t i = 0; i < depth; i++)
        po_text_puts(p->text, "  ");
}

/* --- tensors --- */

static bool has_own_strides(const po_mu *mu, uint32_t tensor) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    int64_t stride = 1, least, count, extent;
    for (uint32_t x = t->rank; x-- > 0;) {
        if (t->stride[x] != stride)
            return true;
        po_mu_held(mu, tensor, x, &least, &count);
        if (__builtin_add_overflow(t->before[x], t->after[x], &extent) ||
            __builtin_add_overflow(extent, count, &extent) ||
            __builtin_mul_overflow(stride, extent, &stride))
            return true;
    }
    return false;
}

static void declare(printer *p, uint32_t i, uint32_t depth) {
    static const char *const places[] = {
        [PO_MU_INPUT] = "input",      [PO_MU_OUTPUT] = "output", [PO_MU_WEIGHT] = "weight",
        [PO_MU_TABLE] = "table",      [PO_MU_DEVICE] = "device", [PO_MU_SHARED] = "shared",
        [PO_MU_REGISTER] = "register"};
    const po_mu_tensor *t = &p->mu->tensors[i];
    p->called[i] = p->n_called++;
    line(p, depth);
    po_text_puts(p->text, is_scoped(t) ? places[t->place] : "tensor");
    po_text_puts(p->text, " ");
    tensor_name(p, i);
    if (!is_scoped(t))
        po_text_printf(p->text, " %s", places[t->place]);
    if (t->place == PO_MU_INPUT || t->place == PO_MU_OUTPUT || t->place == PO_MU_WEIGHT)
        po_text_printf(p->text, " %u", t->number);
    numbers(p, " ", t->rank, t->dims);
    if (t->type != PO_MU_F32)
        po_text_printf(p->text, " %s", po_mu_type_names[t->type]);
    if (any(t->rank, t->before))
        numbers(p, " before ", t->rank, t->before);
    if (any(t->rank, t->after))
        numbers(p, " after ", t->rank, t->after);
    if (t->fill != 0) {
        po_text_puts(p->text, " fill ");
        po_text_f64(p->text, t->fill);
    }
    if (has_own_strides(p->mu, i))
        numbers(p, " stride ", t->rank, t->stride);
    if (t->place == PO_MU_TABLE && t->table) {
        int64_t count = po_mu_elements(t);
        for (int64_t k = 0; k < count; k++) {
            po_text_puts(p->text, k ? ", " : " {");
            po_text_rational(p->text, t->table[k]);
        }
        po_text_puts(p->text, "}");
    }
}

static void declare_all(printer *p, uint32_t home, uint32_t depth) {
    for (uint32_t i = 0; i < p->mu->n_tensors; i++)
        if (p->home[i] == home)
            declare(p, i, depth);
}

/* --- accesses --- */

static void index_of(printer *p, const po_mu_index *index) {
    for (uint32_t i = 0; i < index->n; i++) {
        int64_t coef = index->terms[i].coef;
        po_text_puts(p->text, coef < 0 ? "-" : i ? "+" : "");
        uint64_t size = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
        if (size != 1)
            po_text_printf(p->text, "%llu*", (unsigned long long)size);
        label(p, index->terms[i].label);
    }
    if (index->offset || !index->n)
        po_text_printf(p->text, index->n ? "%+lld" : "%lld", (long long)index->offset);
}

static void access_of(printer *p, const po_mu_access *access) {
    tensor_name(p, access->tensor);
    po_text_puts(p->text, "[");
    if (access->tensor < p->mu->n_tensors)
        for (uint32_t x = 0; x < p->mu->tensors[access->tensor].rank; x++) {
            po_text_puts(p->text, x ? ", " : "");
            index_of(p, &access->axes[x]);
        }
    po_text_puts(p->text, "]");
}

/* --- expressions --- */

enum { SUM, PRODUCT, CALL }; /* how tightly an expression binds */

static int binding(po_mu_function f) {
    return f == PO_MU_PLUS || f == PO_MU_MINUS   ? SUM
           : f == PO_MU_TIMES || f == PO_MU_OVER ? PRODUCT
                                                 : CALL;
}

/* shared: by item, 0 where it is used once or is a leaf; else 1 before and its number from 2 on
 * after it was printed. */
static void expression(printer *p, const po_mu_statement *s, uint32_t item, int around,
                       uint32_t *shared) {
    if (item >= s->n_items) {
        po_text_puts(p->text, "?");
        return;
    }
    const po_mu_item *m = &s->items[item];
    if (m->function == PO_MU_CONST) {
        po_text_f64(p->text, m->value);
        return;
    }
    if (m->function == PO_MU_OPERAND) {
        if (m->a < s->n_in)
            access_of(p, &s->in[m->a]);
        else
            po_text_puts(p->text, "?");
        return;
    }
    if (shared[item] > 1) {
        po_text_printf(p->text, "e%u", shared[item] - 1);
        return;
    }
    bool named = shared[item], infix = po_mu_is_infix(m->function);
    uint32_t argument[3] = {m->a, m->b, m->c}, arity = po_mu_arity(m->function);
    int own = binding(m->function);
    /* The number is taken before what is inside: the text names it first. */
    uint32_t number = named ? ++p->n_shared + 1 : 0;
    if (named)
        po_text_printf(p->text, "(e%u := ", number - 1);
    else if (own < around)
        po_text_puts(p->text, "(");
    if (!infix)
        po_text_printf(p->text, "%s(", po_mu_function_name(m->function));
    for (uint32_t i = 0; i < arity; i++) {
        if (i)
            po_text_printf(p->text, infix ? " %s " : ", ", po_mu_function_name(m->function));
        if (argument[i] >= item)
            po_text_puts(p->text, "?");
        else
            expression(p, s, argument[i], infix ? own + (i > 0) : SUM, shared);
    }
    if (!infix || named || own < around)
        po_text_puts(p->text, !infix && named ? "))" : ")");
    shared[item] = number;
}

static void value(printer *p, const po_mu_statement *s) {
    uint32_t *uses = uses_of(p, s);
    p->n_shared = 0;
    for (uint32_t i = 0; i < s->n_items; i++)
        uses[i] = uses[i] > 1;
    expression(p, s, s->n_items - 1, SUM, uses);
}

/* --- the tree --- */

static void statement(printer *p, const po_mu_statement *s) {
    static const char *const combine[] = {" = ", " += ", " max= "};
    access_of(p, &s->out);
    po_text_puts(p->text, combine[s->combine]);
    value(p, s);
    if (s->fresh)
        po_text_puts(p->text, " fresh");
    if (s->lane != PO_NONE || s->row != PO_NONE)
        po_text_puts(p->text, " tile");
    if (s->row != PO_NONE) {
        po_text_puts(p->text, " ");
        label(p, s->row);
        po_text_printf(p->text, "*%u", s->rows);
    }
    if (s->lane != PO_NONE) {
        po_text_puts(p->text, " ");
        label(p, s->lane);
        po_text_printf(p->text, "*%u", s->vectors);
    } else if (s->row != PO_NONE) {
        po_text_puts(p->text, " -");
    }
    for (uint32_t i = 0; i < s->n_order; i++) {
        po_text_puts(p->text, i ? " " : " order ");
        label(p, s->order[i]);
    }
    if (s->ahead != 0 && s->ahead_of < s->n_in) {
        po_text_puts(p->text, " ahead ");
        tensor_name(p, s->in[s->ahead_of].tensor);
        po_text_printf(p->text, " %lld", (long long)s->ahead);
    }
    if (s->fused)
        po_text_puts(p->text, " fused");
}

static void node(printer *p, uint32_t n, uint32_t depth) {
    static const char *const kinds[] = {"grid ", "for ", "lanes "};
    const po_mu_node *at = &p->mu->nodes[n];
    line(p, depth);
    if (at->kind == PO_MU_STATEMENT) {
        statement(p, &at->statement);
        return;
    }
    if (at->kind == PO_MU_STEP) {
        po_text_puts(p->text, "step ");
        const char *name = p->names ? at->name : "";
        po_text_quoted(p->text, name, strlen(name));
    } else {
        po_text_puts(p->text, kinds[at->loop]);
        label(p, at->label);
        if (at->loop != PO_MU_LANES)
            po_text_printf(p->text, " by %lld", (long long)at->chunk);
    }
    po_text_puts(p->text, " {");
    declare_all(p, n, depth + 1);
    for (uint32_t child = at->first; child != PO_NONE; child = p->mu->nodes[child].next)
        node(p, child, depth + 1);
    line(p, depth);
    po_text_puts(p->text, "}");
}

static void print(po_text *text, const po_mu *mu, bool names) {
    printer p = {.text = text, .mu = mu, .names = names};
    p.home = PO_NEW_N(text->arena, uint32_t, mu->n_tensors + 1);
    p.called = PO_NEW_N(text->arena, uint32_t, mu->n_tensors + 1);
    find_homes(&p);
    po_text_puts(text, "mugraph ");
    po_text_name(text, names ? mu->name : "m");
    po_text_puts(text, " {");
    for (uint32_t i = 0; i < mu->n_labels; i++) {
        line(&p, 1);
        po_text_puts(text, "label ");
        label(&p, i);
        po_text_printf(text, " %lld", (long long)mu->labels[i].extent);
    }
    declare_all(&p, PO_NONE, 1);
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next)
        node(&p, step, 1);
    po_text_puts(text, "\n}\n");
}

void po_mu_print(po_text *text, const po_mu *mu) {
    print(text, mu, true);
}

/* --- identity --- */

bool po_mu_equal(const po_mu *a, const po_mu *b) {
    po_arena *arena = po_arena_child(a->arena);
    po_text ta, tb;
    po_text_init(&ta, arena);
    po_text_init(&tb, arena);
    print(&ta, a, false);
    print(&tb, b, false);
    bool equal = ta.size == tb.size && memcmp(ta.data, tb.data, ta.size) == 0;
    po_arena_free(arena);
    return equal;
}

po_hash po_mu_hash(const po_mu *mu) {
    po_arena *arena = po_arena_child(mu->arena);
    po_text text;
    po_text_init(&text, arena);
    print(&text, mu, false);
    po_hash hash = po_hash_bytes(text.data, text.size, (po_hash){0x6d75u, 0});
    po_arena_free(arena);
    return hash;
}
