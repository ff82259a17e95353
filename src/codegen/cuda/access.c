/* Where accesses lie, what is side by side, what may lie outside, and the C of it. */
#include "codegen/cuda/internal.h"

#include <math.h>
#include <stdio.h>

bool cu_is_global(const po_mu_tensor *t) {
    return t->place == PO_MU_INPUT || t->place == PO_MU_OUTPUT || t->place == PO_MU_WEIGHT ||
           t->place == PO_MU_DEVICE;
}

bool cu_writes(const cu *c, uint32_t around, uint32_t tensor) {
    for (uint32_t n = around; n != PO_NONE && po_mu_inside(c->mu, n, around);
         n = po_mu_next(c->mu, n))
        if (c->mu->nodes[n].kind == PO_MU_STATEMENT &&
            c->mu->nodes[n].statement.out.tensor == tensor)
            return true;
    return false;
}

int64_t cu_count(const cu *c, uint32_t node, uint32_t label) {
    uint32_t loop = po_mu_binder(c->mu, node, label);
    return loop == PO_NONE ? c->mu->labels[label].extent : po_mu_chunk(c->mu, loop);
}

int64_t cu_count_all(const cu *c, uint32_t node, const uint32_t *labels, uint32_t n) {
    int64_t count = 1;
    for (uint32_t i = 0; i < n; i++)
        count *= cu_count(c, node, labels[i]);
    return count;
}

uint32_t cu_running(const cu *c, uint32_t node, const uint32_t *labels, uint32_t n, uint32_t *out) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++)
        if (cu_count(c, node, labels[i]) > 1)
            out[k++] = labels[i];
    return k;
}

bool cu_same_set(const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b) {
    for (uint32_t i = 0; i < n_a; i++) {
        bool found = false;
        for (uint32_t k = 0; k < n_b; k++)
            found |= a[i] == b[k];
        if (!found)
            return false;
    }
    return n_a == n_b;
}

bool cu_has_tail(const cu *c, uint32_t node, uint32_t label) {
    return c->mu->labels[label].extent % cu_count(c, node, label) != 0;
}

int64_t cu_step_of(const cu *c, const po_mu_access *access, uint32_t label) {
    int64_t step = 0;
    for (uint32_t x = 0; x < c->mu->tensors[access->tensor].rank; x++)
        step += po_mu_coef(&access->axes[x], label) * c->tensor[access->tensor].stride[x];
    return step;
}

static int64_t fixed_of(const cu *c, const po_mu_access *access) {
    const cu_tensor *t = &c->tensor[access->tensor];
    int64_t at = t->origin;
    for (uint32_t x = 0; x < c->mu->tensors[access->tensor].rank; x++)
        at += (access->axes[x].offset - t->least[x]) * t->stride[x];
    return at;
}

int64_t cu_side(const cu *c, uint32_t node, const po_mu_access *access, uint32_t label,
                int64_t most) {
    if (cu_step_of(c, access, label) != 1)
        return 0;
    const po_mu *mu = c->mu;
    int64_t unit = po_gcd_i64(most, fixed_of(c, access));
    for (uint32_t l = 0; l < mu->n_labels; l++) {
        int64_t step = cu_step_of(c, access, l);
        if (step == 0)
            continue;
        int64_t count = cu_count(c, node, l);
        bool moves = count < mu->labels[l].extent && !po_mu_local(mu, access->tensor, l);
        if (l != label && count > 1)
            unit = po_gcd_i64(unit, step);
        if (moves)
            unit = po_gcd_i64(unit, step * count);
        /* The last chunk ends between two as well. */
        if (l == label)
            unit = po_gcd_i64(unit, po_gcd_i64(count, mu->labels[l].extent % count));
    }
    if (c->tensor[access->tensor].stages > 1)
        unit = po_gcd_i64(unit, c->tensor[access->tensor].elements);
    return unit;
}

static int64_t size_of(int64_t v) {
    return v < 0 ? -v : v;
}

/* Some axis steps further by each label than all that steps less there can make up for. */
bool cu_is_apart(const cu *c, uint32_t node, const po_mu_access *access) {
    const po_mu *mu = c->mu;
    uint32_t rank = mu->tensors[access->tensor].rank;
    for (uint32_t label = 0; label < mu->n_labels; label++) {
        bool any = false, apart = false;
        for (uint32_t x = 0; x < rank; x++) {
            int64_t own = size_of(po_mu_coef(&access->axes[x], label)), reach = 0;
            any |= own != 0;
            for (uint32_t i = 0; i < access->axes[x].n; i++) {
                po_mu_term term = access->axes[x].terms[i];
                int64_t other = size_of(term.coef);
                if (other < own || (other == own && term.label < label))
                    reach += other * (cu_count(c, node, term.label) - 1);
            }
            apart |= own > reach;
        }
        if (any && !apart && cu_count(c, node, label) > 1)
            return false;
    }
    return true;
}

static bool axis_leaves(const cu *c, const po_mu_access *access, uint32_t axis) {
    int64_t least, most;
    po_mu_range(c->mu, access, axis, &least, &most);
    return least < 0 || most >= c->mu->tensors[access->tensor].dims[axis];
}

bool cu_leaves(const cu *c, const po_mu_access *access) {
    for (uint32_t x = 0; x < c->mu->tensors[access->tensor].rank; x++)
        if (axis_leaves(c, access, x))
            return true;
    return false;
}

/* --- text --- */

const char *cu_c_type(po_mu_type type) {
    static const char *const names[] = {
        [PO_MU_F32] = "float", [PO_MU_F16] = "pc_f16", [PO_MU_BF16] = "pc_bf16"};
    return names[type];
}

const char *cu_suffix(po_mu_type type) {
    static const char *const names[] = {
        [PO_MU_F32] = "", [PO_MU_F16] = "_f16", [PO_MU_BF16] = "_bf16"};
    return names[type];
}

static bool is_plain(const char *text) {
    for (; *text != '\0'; text++)
        if (!(*text >= 'a' && *text <= 'z') && !(*text >= '0' && *text <= '9') && *text != '_')
            return false;
    return true;
}

static void add_times(po_text *text, int64_t by, const char *name) {
    const char *open = is_plain(name) ? "" : "(", *close = is_plain(name) ? "" : ")";
    po_text_puts(text, text->size == 0 ? (by < 0 ? "-" : "") : by < 0 ? " - " : " + ");
    if (size_of(by) != 1)
        po_text_printf(text, "%lld * ", (long long)size_of(by));
    po_text_printf(text, "%s%s%s", open, name, close);
}

static void add_number(po_text *text, int64_t number) {
    if (text->size == 0)
        po_text_printf(text, "%lld", (long long)number);
    else if (number != 0)
        po_text_printf(text, " %c %lld", number < 0 ? '-' : '+', (long long)size_of(number));
}

const char *cu_offset(cu *c, const po_mu_access *access) {
    po_text text;
    po_text_init(&text, c->arena);
    for (uint32_t l = 0; l < c->mu->n_labels; l++) {
        int64_t step = cu_step_of(c, access, l);
        if (step == 0)
            continue;
        if (c->value[l].start != NULL && !po_mu_local(c->mu, access->tensor, l))
            add_times(&text, step, c->value[l].start);
        if (c->value[l].inner != NULL)
            add_times(&text, step, c->value[l].inner);
    }
    add_number(&text, fixed_of(c, access));
    return text.data;
}

const char *cu_pointer(cu *c, const po_mu_access *access) {
    const char *offset = cu_offset(c, access), *name = c->tensor[access->tensor].name;
    if (strcmp(offset, "0") == 0)
        return name;
    return po_arena_printf(c->arena, "%s + %s", name, offset);
}

const char *cu_get(cu *c, const po_mu_access *access) {
    const po_mu_tensor *t = &c->mu->tensors[access->tensor];
    if (t->type == PO_MU_F32)
        return po_arena_printf(c->arena, "%s[%s]", c->tensor[access->tensor].name,
                               cu_offset(c, access));
    return po_arena_printf(c->arena, "pc_get%s(%s)", cu_suffix(t->type), cu_pointer(c, access));
}

const char *cu_and(cu *c, const char *a, const char *b) {
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return strcmp(a, b) == 0 ? a : po_arena_printf(c->arena, "%s && %s", a, b);
}

const char *cu_inside(cu *c, const po_mu_access *access) {
    const char *all = NULL;
    for (uint32_t x = 0; x < c->mu->tensors[access->tensor].rank; x++) {
        if (!axis_leaves(c, access, x))
            continue;
        const po_mu_index *index = &access->axes[x];
        po_text text;
        po_text_init(&text, c->arena);
        for (uint32_t i = 0; i < index->n; i++) {
            const cu_value *v = &c->value[index->terms[i].label];
            if (v->start != NULL)
                add_times(&text, index->terms[i].coef, v->start);
            if (v->inner != NULL)
                add_times(&text, index->terms[i].coef, v->inner);
        }
        add_number(&text, index->offset);
        const char *one = po_arena_printf(c->arena, "(unsigned)(%s) < %lldu", text.data,
                                          (long long)c->mu->tensors[access->tensor].dims[x]);
        all = cu_and(c, all, one);
    }
    return all;
}

const char *cu_tail(cu *c, uint32_t node, const uint32_t *labels, uint32_t n) {
    const char *all = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (cu_has_tail(c, node, labels[i]) && c->value[labels[i]].inner != NULL) {
            const char *name = c->mu->labels[labels[i]].name, *in = c->value[labels[i]].inner;
            all = cu_and(
                c, all,
                po_arena_printf(c->arena, is_plain(in) ? "%s < n_%s" : "(%s) < n_%s", in, name));
        }
    return all;
}

const char *cu_literal(cu *c, double value) {
    if (isinf(value) || isinf((float)value))
        return value > 0 ? "PC_INF" : "(-PC_INF)";
    po_text text;
    po_text_init(&text, c->arena);
    cg_number(&text, value);
    return text.data;
}

const char *cu_value_of(cu *c, const po_mu_statement *s, const char *const *operand) {
    const char **text = PO_NEW_N(c->arena, const char *, s->n_items);
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *it = &s->items[i];
        const char *a = text[it->a], *b = text[it->b];
        const char *value;
        switch (it->function) {
        case PO_MU_CONST:
            text[i] = cu_literal(c, it->value);
            continue;
        case PO_MU_OPERAND:
            text[i] = operand[it->a];
            continue;
        case PO_MU_PLUS:
        case PO_MU_MINUS:
        case PO_MU_TIMES:
        case PO_MU_OVER:
            value = po_arena_printf(c->arena, "%s %s %s", a, po_mu_function_name(it->function), b);
            break;
        case PO_MU_NEGATE:
            value = po_arena_printf(c->arena, "-%s", a);
            break;
        default:
            value = po_arena_printf(c->arena, "pc_%s(%s", po_mu_function_name(it->function), a);
            for (uint32_t k = 1; k < po_mu_arity(it->function); k++)
                value = po_arena_printf(c->arena, "%s, %s", value, k == 1 ? b : text[it->c]);
            value = po_arena_printf(c->arena, "%s)", value);
        }
        if (i + 1 == s->n_items)
            return value;
        text[i] = po_arena_printf(c->arena, "v%u", i);
        cg_line(&c->g, "const float %s = %s;", text[i], value);
    }
    return text[s->n_items - 1];
}

void cu_take_apart(cu *c, uint32_t node, const char *index, const uint32_t *labels, uint32_t n,
                   int64_t vector) {
    int64_t by = 1;
    uint32_t outermost = PO_NONE; /* of those that run at all: its quotient needs no remainder */
    for (uint32_t i = n; i-- > 0;)
        if (cu_count(c, node, labels[i]) > 1)
            outermost = i;
    for (uint32_t i = n; i-- > 0;) {
        int64_t count = cu_count(c, node, labels[i]), unit = i + 1 == n ? vector : 1;
        c->value[labels[i]].inner = NULL;
        if (count <= 1)
            continue;
        const char *name = po_arena_printf(c->arena, "i_%s", c->mu->labels[labels[i]].name);
        po_text text;
        po_text_init(&text, c->arena);
        po_text_puts(&text, index);
        if (by > 1)
            po_text_printf(&text, " / %lld", (long long)by);
        if (i != outermost)
            po_text_printf(&text, " %% %lld", (long long)(count / unit));
        if (unit > 1)
            po_text_printf(&text, " * %lld", (long long)unit);
        cg_line(&c->g, "const int %s = %s;", name, text.data);
        c->value[labels[i]].inner = name;
        by *= count / unit;
    }
}

void cu_forget(cu *c, const uint32_t *labels, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        c->value[labels[i]].inner = NULL;
}

const char *cu_is_first(cu *c, uint32_t node) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *all = NULL;
    for (uint32_t at = c->mu->nodes[node].parent; at != PO_NONE; at = c->mu->nodes[at].parent) {
        const po_mu_node *n = &c->mu->nodes[at];
        bool read = false;
        if (n->kind != PO_MU_LOOP || n->loop != PO_MU_FOR || po_mu_has(c->mu, &s->out, n->label))
            continue;
        for (uint32_t k = 0; k < s->n_in; k++)
            read |= po_mu_has(c->mu, &s->in[k], n->label);
        if (read)
            all = cu_and(c, all,
                         po_arena_printf(c->arena, "b_%s == 0", c->mu->labels[n->label].name));
    }
    return all;
}
