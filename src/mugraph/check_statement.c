/* Each statement by itself: all parts of its expression are used, '=' writes no element twice, and
 * a tile's labels are the statement's own and need no tests at the edges. */
#include "mugraph/check.h"

#include "mugraph/prove.h"

/* --- expressions --- */

static po_status expression(po_mu_checker *c, const po_mu_statement *s) {
    bool operand_used[PO_MU_MAX_INPUTS] = {false}, used[PO_MU_MAX_ITEMS] = {false};
    if (s->n_items < 1 || s->n_items > PO_MU_MAX_ITEMS)
        return po_mu_bad(c, "an expression of %u parts (1 to %d)", s->n_items, PO_MU_MAX_ITEMS);
    used[s->n_items - 1] = true;
    for (uint32_t i = s->n_items; i-- > 0;) {
        const po_mu_item *m = &s->items[i];
        if ((unsigned)m->function >= PO_MU_FUNCTIONS)
            return po_mu_bad(c, "part %u of the expression is no function", i);
        if (!used[i])
            return po_mu_bad(c, "part %u of the expression is not used", i);
        if (m->function == PO_MU_CONST && m->value != m->value)
            return po_mu_bad(c, "a constant that is not a number");
        if (m->function == PO_MU_OPERAND) {
            if (m->a >= s->n_in)
                return po_mu_bad(c, "operand %u of %u in the expression", m->a, s->n_in);
            operand_used[m->a] = true;
        }
        uint32_t argument[3] = {m->a, m->b, m->c};
        for (uint32_t k = 0; k < po_mu_arity(m->function); k++) {
            if (argument[k] >= i)
                return po_mu_bad(c, "part %u of the expression uses part %u", i, argument[k]);
            used[argument[k]] = true;
        }
    }
    for (uint32_t k = 0; k < s->n_in; k++)
        if (!operand_used[k])
            return po_mu_bad(c, "operand %u, of '%s', is not used", k,
                             c->mu->tensors[s->in[k].tensor].name);
    return PO_OK;
}

po_status po_mu_check_values(po_mu_checker *c) {
    for (uint32_t i = 0; i < c->mu->n_nodes; i++) {
        const po_mu_statement *s = &c->mu->nodes[i].statement;
        if (c->mu->nodes[i].kind != PO_MU_STATEMENT)
            continue;
        c->node = i;
        const po_mu_tensor *out = &c->mu->tensors[s->out.tensor];
        if ((unsigned)s->combine > PO_MU_MAXIMUM)
            return po_mu_bad(c, "a combination that there is not");
        if (out->place == PO_MU_INPUT || out->place == PO_MU_WEIGHT || out->place == PO_MU_TABLE)
            return po_mu_bad(c, "'%s' cannot be written", out->name);
        PO_TRY(expression(c, s));
    }
    return PO_OK;
}

/* --- what is written --- */

/* Steps that a label takes while one copy of the tensor lives. */
static int64_t steps_of(const po_mu *mu, uint32_t node, uint32_t tensor, uint32_t label) {
    uint32_t loop = po_mu_local(mu, tensor, label) ? po_mu_binder(mu, node, label) : PO_NONE;
    return (loop != PO_NONE ? po_mu_chunk(mu, loop) : mu->labels[label].extent) - 1;
}

/* Whether different values of the labels give different elements: axis by axis, each coefficient
 * must pass all that smaller ones on the axis reach, those left out that other axes tell apart.
 * Sufficient, not necessary. */
static bool is_injective(const po_mu *mu, uint32_t node, const po_mu_access *access,
                         po_arena *arena) {
    uint32_t rank = mu->tensors[access->tensor].rank;
    bool *apart = PO_NEW_N(arena, bool, mu->n_labels + 1), again = true;
    while (again) {
        again = false;
        for (uint32_t x = 0; x < rank; x++) {
            const po_mu_index *index = &access->axes[x];
            bool sound = true;
            for (uint32_t i = 0; i < index->n && sound; i++) {
                uint32_t label = index->terms[i].label;
                __int128 size = index->terms[i].coef, reach = 0;
                size = size < 0 ? -size : size;
                for (uint32_t k = 0; k < index->n; k++) {
                    uint32_t other = index->terms[k].label;
                    __int128 coef = index->terms[k].coef;
                    coef = coef < 0 ? -coef : coef;
                    if (k != i && (coef < size || (coef == size && k < i)) && !apart[other])
                        reach += coef * steps_of(mu, node, access->tensor, other);
                }
                sound =
                    apart[label] || size > reach || steps_of(mu, node, access->tensor, label) == 0;
            }
            for (uint32_t i = 0; i < index->n && sound; i++) {
                again |= !apart[index->terms[i].label];
                apart[index->terms[i].label] = true;
            }
        }
    }
    bool all = true;
    for (uint32_t x = 0; x < rank; x++)
        for (uint32_t i = 0; i < access->axes[x].n; i++)
            all = all && apart[access->axes[x].terms[i].label];
    return all;
}

/* Whether two accesses of one tensor never meet: on some axis one stays below the other. */
static bool is_disjoint(const po_mu *mu, const po_mu_access *a, const po_mu_access *b) {
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        int64_t a_least, a_most, b_least, b_most;
        po_mu_range(mu, a, x, &a_least, &a_most);
        po_mu_range(mu, b, x, &b_least, &b_most);
        if (a_most < b_least || b_most < a_least)
            return true;
    }
    return false;
}

static po_status writing(po_mu_checker *c, const po_mu_statement *s, const uint32_t *reduced,
                         uint32_t n_reduced) {
    const po_mu *mu = c->mu;
    if (s->combine == PO_MU_SET && n_reduced)
        return po_mu_bad(c, "'=' with label '%s' that is not in what is written",
                         mu->labels[reduced[0]].name);
    bool injective = is_injective(mu, c->node, &s->out, c->arena);
    if (s->combine == PO_MU_SET && !injective)
        injective = po_mu_never_twice(mu, c->node, &s->out, po_mu_checker_smt(c)) == PO_SMT_NEVER;
    if (s->combine == PO_MU_SET && !injective)
        return po_mu_bad(c, "'=' writes an element more than once");
    if (s->combine == PO_MU_SET && s->fresh)
        return po_mu_bad(c, "'=' needs no fresh start");
    for (uint32_t k = 0; k < s->n_in; k++) {
        if (s->in[k].tensor != s->out.tensor || is_disjoint(mu, &s->in[k], &s->out))
            continue;
        if (!po_mu_same_access(mu, &s->in[k], &s->out))
            return po_mu_bad(c, "other elements of what is written are read");
        if (s->fresh || n_reduced || !injective)
            return po_mu_bad(c, "what is being added up is read");
    }
    return PO_OK;
}

/* --- tiles --- */

static bool has(const uint32_t *labels, uint32_t n, uint32_t label) {
    for (uint32_t i = 0; i < n; i++)
        if (labels[i] == label)
            return true;
    return false;
}

static po_status tile(po_mu_checker *c, const po_mu_statement *s, const uint32_t *kept,
                      uint32_t n_kept, const uint32_t *reduced, uint32_t n_reduced) {
    const po_mu *mu = c->mu;
    enum { MOST_TILE = 64 };
    if (s->lane != PO_NONE && ((!has(kept, n_kept, s->lane) && !has(reduced, n_reduced, s->lane)) ||
                               s->vectors < 1 || s->vectors > MOST_TILE))
        return po_mu_bad(c, "a tile of %u vectors along '%s'", s->vectors,
                         s->lane < mu->n_labels ? mu->labels[s->lane].name : "");
    if (s->row != PO_NONE && (!has(kept, n_kept, s->row) || s->rows < 1 || s->rows > MOST_TILE))
        return po_mu_bad(c, "a tile of %u rows along '%s'", s->rows,
                         s->row < mu->n_labels ? mu->labels[s->row].name : "");
    if (s->row != PO_NONE && s->row == s->lane)
        return po_mu_bad(c, "row and lane of the tile are one label");
    for (uint32_t at = mu->nodes[c->node].parent; at != PO_NONE; at = mu->nodes[at].parent)
        if (mu->nodes[at].kind == PO_MU_LOOP && mu->nodes[at].loop == PO_MU_LANES &&
            (s->lane != PO_NONE || s->row != PO_NONE))
            return po_mu_bad(c, "a tile inside a lanes loop");
    if (!s->n_order)
        return PO_OK;
    uint32_t tiled = (s->lane != PO_NONE ? 1u : 0) + (s->row != PO_NONE ? 1u : 0);
    bool reducing = false;
    for (uint32_t i = 0; i < s->n_order; i++) {
        uint32_t l = s->order[i];
        bool is_kept = has(kept, n_kept, l), is_reduced = has(reduced, n_reduced, l);
        if (l == s->lane || l == s->row || (!is_kept && !is_reduced) || has(s->order, i, l))
            return po_mu_bad(c, "'%s' cannot stand in the order",
                             l < mu->n_labels ? mu->labels[l].name : "");
        if (reducing && is_kept)
            return po_mu_bad(c, "in the order '%s' comes after what is reduced",
                             mu->labels[l].name);
        reducing = is_reduced;
    }
    if (s->n_order + tiled != n_kept + n_reduced)
        return po_mu_bad(c, "the order has %u labels of %u", s->n_order,
                         n_kept + n_reduced - tiled);
    return PO_OK;
}

/* A tile runs without tests on its row and lane. */
static po_status guards(po_mu_checker *c, const po_mu_statement *s) {
    const po_mu *mu = c->mu;
    if (s->lane == PO_NONE && s->row == PO_NONE)
        return PO_OK;
    for (uint32_t k = 0; k <= s->n_in; k++) {
        uint32_t operand = k < s->n_in ? k : PO_NONE;
        const po_mu_access *access = k < s->n_in ? &s->in[k] : &s->out;
        const po_mu_tensor *t = &mu->tensors[access->tensor];
        if (po_mu_edge_of(mu, c->node, operand) != PO_MU_GUARD)
            continue;
        for (uint32_t x = 0; x < t->rank; x++) {
            int64_t least, most;
            po_mu_range(mu, access, x, &least, &most);
            if (least >= 0 && most < t->dims[x])
                continue;
            int64_t row = s->row == PO_NONE ? 0 : po_mu_coef(&access->axes[x], s->row);
            int64_t lane = s->lane == PO_NONE ? 0 : po_mu_coef(&access->axes[x], s->lane);
            if (row || (lane && (lane != 1 || least < 0)))
                return po_mu_bad(
                    c,
                    "'%s' is %s from %lld to %lld on axis %u of %lld, along the tile, and its "
                    "ring of %lld and %lld, fill %g, does not serve",
                    t->name, k < s->n_in ? "read" : "written", (long long)least, (long long)most, x,
                    (long long)t->dims[x], (long long)t->before[x], (long long)t->after[x],
                    t->fill);
        }
    }
    return PO_OK;
}

po_status po_mu_check_statements(po_mu_checker *c) {
    const po_mu *mu = c->mu;
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        uint32_t n_kept, n_reduced, *kept, *reduced;
        if (mu->nodes[i].kind != PO_MU_STATEMENT)
            continue;
        c->node = i;
        po_mu_labels_of(mu, s, c->arena, &n_kept, &kept, &n_reduced, &reduced);
        PO_TRY(writing(c, s, reduced, n_reduced));
        PO_TRY(tile(c, s, kept, n_kept, reduced, n_reduced));
        PO_TRY(guards(c, s));
    }
    return PO_OK;
}
