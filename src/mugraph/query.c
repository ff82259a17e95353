/* Looking at a muGraph: the order of its nodes, labels and accesses, and what it costs. */
#include "mugraph/parts.h"

#include <math.h>
#include <stdlib.h>

uint32_t po_mu_next(const po_mu *mu, uint32_t node) {
    if (node == PO_NONE)
        return mu->first;
    if (mu->nodes[node].first != PO_NONE)
        return mu->nodes[node].first;
    while (node != PO_NONE && mu->nodes[node].next == PO_NONE)
        node = mu->nodes[node].parent;
    return node == PO_NONE ? PO_NONE : mu->nodes[node].next;
}

bool po_mu_inside(const po_mu *mu, uint32_t node, uint32_t around) {
    while (node != around && node != PO_NONE)
        node = mu->nodes[node].parent;
    return node == around;
}

bool po_mu_names(const po_mu *mu, uint32_t around, uint32_t tensor) {
    for (uint32_t n = around; n != PO_NONE && po_mu_inside(mu, n, around); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++)
            if (po_mu_touched(s, k) == tensor)
                return true;
    }
    return false;
}

uint32_t po_mu_step_of(const po_mu *mu, uint32_t node) {
    while (mu->nodes[node].parent != PO_NONE)
        node = mu->nodes[node].parent;
    return node;
}

int64_t po_mu_elements(const po_mu_tensor *t) {
    int64_t n = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        n *= t->dims[x];
    return n;
}

/* --- labels --- */

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* 0 where it is not set yet. */
static uint32_t rank_of(const po_mu *mu, const po_mu_access *a) {
    return a->tensor == PO_NONE ? 0 : mu->tensors[a->tensor].rank;
}

/* The labels of accesses, each once, by number. A statement has a few of the muGraph's thousands:
 * nothing here goes by how many these are. */
static uint32_t *labels_in(const po_mu *mu, const po_mu_access *list, uint32_t n_list,
                           po_arena *arena, uint32_t *n) {
    uint32_t most = 0, all = 0, once = 0;
    for (uint32_t i = 0; i < n_list; i++)
        for (uint32_t x = 0; x < rank_of(mu, &list[i]); x++)
            most += list[i].axes[x].n;
    uint32_t *labels = PO_NEW_N(arena, uint32_t, most + 1);
    for (uint32_t i = 0; i < n_list; i++)
        for (uint32_t x = 0; x < rank_of(mu, &list[i]); x++)
            for (uint32_t k = 0; k < list[i].axes[x].n; k++)
                labels[all++] = list[i].axes[x].terms[k].label;
    qsort(labels, all, sizeof *labels, by_number);
    for (uint32_t i = 0; i < all; i++)
        if (i == 0 || labels[i] != labels[i - 1])
            labels[once++] = labels[i];
    *n = once;
    return labels;
}

void po_mu_labels_of(const po_mu *mu, const po_mu_statement *s, po_arena *arena, uint32_t *n_kept,
                     uint32_t **kept, uint32_t *n_reduced, uint32_t **reduced) {
    uint32_t n_read, n = 0;
    *kept = labels_in(mu, &s->out, 1, arena, n_kept);
    *reduced = labels_in(mu, s->in, s->n_in, arena, &n_read);
    for (uint32_t i = 0; i < n_read; i++)
        if (!bsearch(&(*reduced)[i], *kept, *n_kept, sizeof **kept, by_number))
            (*reduced)[n++] = (*reduced)[i];
    *n_reduced = n;
}

int64_t po_mu_extent(const po_mu *mu, uint32_t label) {
    return label == PO_NONE ? 1 : mu->labels[label].extent;
}

int64_t po_mu_coef(const po_mu_index *index, uint32_t label) {
    for (uint32_t i = 0; i < index->n; i++)
        if (index->terms[i].label == label)
            return index->terms[i].coef;
    return 0;
}

const po_mu_index *po_mu_last_axis(const po_mu *mu, const po_mu_access *access) {
    static const po_mu_index none = {0, 0, NULL};
    uint32_t rank = mu->tensors[access->tensor].rank;
    return rank == 0 ? &none : &access->axes[rank - 1];
}

bool po_mu_has(const po_mu *mu, const po_mu_access *access, uint32_t label) {
    for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++)
        if (po_mu_coef(&access->axes[x], label) != 0)
            return true;
    return false;
}

uint32_t po_mu_binder(const po_mu *mu, uint32_t node, uint32_t label) {
    for (uint32_t at = mu->nodes[node].parent; at != PO_NONE; at = mu->nodes[at].parent)
        if (mu->nodes[at].kind == PO_MU_LOOP && mu->nodes[at].label == label)
            return at;
    return PO_NONE;
}

int64_t po_mu_chunk(const po_mu *mu, uint32_t loop) {
    const po_mu_node *n = &mu->nodes[loop];
    int64_t chunk = n->loop == PO_MU_LANES ? PO_MU_VECTOR : n->chunk;
    return chunk < mu->labels[n->label].extent ? chunk : mu->labels[n->label].extent;
}

bool po_mu_same_access(const po_mu *mu, const po_mu_access *a, const po_mu_access *b) {
    if (a->tensor != b->tensor)
        return false;
    for (uint32_t x = 0; x < mu->tensors[a->tensor].rank; x++) {
        const po_mu_index *i = &a->axes[x], *j = &b->axes[x];
        if (i->offset != j->offset || i->n != j->n)
            return false;
        for (uint32_t k = 0; k < i->n; k++)
            if (i->terms[k].label != j->terms[k].label || i->terms[k].coef != j->terms[k].coef)
                return false;
    }
    return true;
}

/* --- storage --- */

bool po_mu_has_ring(const po_mu_tensor *t) {
    for (uint32_t a = 0; a < t->rank; a++)
        if (t->before[a] > 0 || t->after[a] > 0)
            return true;
    return false;
}

uint32_t po_mu_local_loop(const po_mu *mu, const po_mu_tensor *t, uint32_t label) {
    if ((t->place != PO_MU_SHARED && t->place != PO_MU_REGISTER) || t->scope == PO_NONE ||
        t->scope >= mu->n_nodes)
        return PO_NONE;
    for (uint32_t at = t->scope; at != PO_NONE; at = mu->nodes[at].parent)
        if (mu->nodes[at].kind == PO_MU_LOOP && mu->nodes[at].label == label)
            return at;
    return PO_NONE;
}

bool po_mu_local(const po_mu *mu, uint32_t tensor, uint32_t label) {
    return po_mu_local_loop(mu, &mu->tensors[tensor], label) != PO_NONE;
}

/* Least and greatest value of an index; its local labels stay within their first chunk. */
static bool residual(const po_mu *mu, const po_mu_tensor *t, const po_mu_index *index,
                     __int128 *least, __int128 *most) {
    bool cut = false;
    *least = *most = index->offset;
    for (uint32_t i = 0; i < index->n; i++) {
        po_mu_term term = index->terms[i];
        int64_t extent = mu->labels[term.label].extent;
        uint32_t loop = t ? po_mu_local_loop(mu, t, term.label) : PO_NONE;
        if (loop != PO_NONE) {
            cut = true;
            extent = po_mu_chunk(mu, loop);
        }
        __int128 reach = (__int128)term.coef * (extent > 0 ? extent - 1 : 0);
        *(reach < 0 ? least : most) += reach;
    }
    return cut;
}

static int64_t clamp(__int128 v) {
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

bool po_mu_held(const po_mu *mu, uint32_t tensor, uint32_t axis, int64_t *least, int64_t *count) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    bool cut = false, any = false;
    __int128 low = 0, high = 0;
    *least = 0;
    *count = t->dims[axis];
    if (t->scope == PO_NONE || (t->place != PO_MU_SHARED && t->place != PO_MU_REGISTER))
        return false;
    /* Accesses stand inside the scope (po_mu_check). */
    for (uint32_t n = t->scope < mu->n_nodes ? t->scope : PO_NONE;
         n != PO_NONE && po_mu_inside(mu, n, t->scope); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t i = 0; i <= s->n_in; i++) {
            const po_mu_access *access = i < s->n_in ? &s->in[i] : &s->out;
            __int128 a, b;
            if (access->tensor != tensor)
                continue;
            cut |= residual(mu, t, &access->axes[axis], &a, &b);
            low = any && low < a ? low : a;
            high = any && high > b ? high : b;
            any = true;
        }
    }
    if (!cut)
        return false;
    *least = clamp(low);
    *count = clamp(high - low + 1);
    return true;
}

void po_mu_range(const po_mu *mu, const po_mu_access *access, uint32_t axis, int64_t *least,
                 int64_t *most) {
    __int128 low, high;
    residual(mu, NULL, &access->axes[axis], &low, &high);
    *least = clamp(low);
    *most = clamp(high);
}

bool po_mu_is_inside(const po_mu *mu, const po_mu_access *access) {
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, most;
        po_mu_range(mu, access, x, &least, &most);
        if (least < 0 || most >= t->dims[x])
            return false;
    }
    return true;
}

/* --- edges --- */

uint32_t po_mu_arity(po_mu_function function) {
    static const uint32_t arity[] = {
#define PO_MU_FUNCTION(id, name, n, flops, what) n,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    return arity[function];
}

double po_mu_apply(po_mu_function function, double a, double b, double c) {
    switch (function) {
    case PO_MU_PLUS:
        return a + b;
    case PO_MU_MINUS:
        return a - b;
    case PO_MU_TIMES:
        return a * b;
    case PO_MU_OVER:
        return a / b;
    case PO_MU_MAX:
        return a != a || b != b ? a + b : a > b ? a : b;
    case PO_MU_MIN:
        return a != a || b != b ? a + b : a < b ? a : b;
    case PO_MU_NEGATE:
        return -a;
    case PO_MU_ABS:
        return fabs(a);
    case PO_MU_EXP:
        return exp(a);
    case PO_MU_LOG:
        return log(a);
    case PO_MU_SQRT:
        return sqrt(a);
    case PO_MU_TANH:
        return tanh(a);
    case PO_MU_ERF:
        return erf(a);
    case PO_MU_SIGMOID:
        return 1 / (1 + exp(-a));
    case PO_MU_FLOOR:
        return floor(a);
    case PO_MU_POW:
        return pow(a, b);
    case PO_MU_LESS:
        return a < b;
    case PO_MU_CHOOSE:
        return a != 0 ? b : c;
    case PO_MU_CONST:
    case PO_MU_OPERAND:
    case PO_MU_FUNCTIONS:
        break;
    }
    return NAN;
}

/* Whether the statement adds nothing where the operand is `fill`, by what is known of each item
 * when the other operands are any finite numbers. */
bool po_mu_adds_nothing(const po_mu_statement *s, uint32_t operand, double fill) {
    double value[PO_MU_MAX_ITEMS];
    bool known[PO_MU_MAX_ITEMS];
    if (s->combine == PO_MU_SET || s->n_items > PO_MU_MAX_ITEMS)
        return false;
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *m = &s->items[i];
        if (m->function == PO_MU_CONST || m->function == PO_MU_OPERAND) {
            known[i] = m->function == PO_MU_CONST || m->a == operand;
            value[i] = m->function == PO_MU_CONST ? m->value : fill;
            continue;
        }
        uint32_t n = po_mu_arity(m->function), b = n > 1 ? m->b : m->a, c = n > 2 ? m->c : m->a;
        double va = value[m->a], vb = value[b];
        known[i] = known[m->a] && known[b] && known[c];
        value[i] = known[i] ? po_mu_apply(m->function, va, vb, value[c]) : 0;
        if (known[i])
            continue;
        if (m->function == PO_MU_TIMES)
            known[i] = (known[m->a] && va == 0) || (known[b] && vb == 0);
        else if (m->function == PO_MU_OVER)
            known[i] = known[m->a] && va == 0;
        else if ((m->function == PO_MU_PLUS && (known[m->a] || known[b])) ||
                 (m->function == PO_MU_MINUS && known[m->a])) {
            value[i] = known[m->a] ? va : vb;
            known[i] = isinf(value[i]);
        }
    }
    uint32_t last = s->n_items - 1;
    return s->n_items && known[last] &&
           value[last] == (s->combine == PO_MU_ADD ? 0.0 : (double)-INFINITY);
}

po_mu_edge po_mu_edge_of(const po_mu *mu, uint32_t statement, uint32_t operand) {
    const po_mu_statement *s = &mu->nodes[statement].statement;
    const po_mu_access *access = operand == PO_NONE ? &s->out : &s->in[operand];
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    bool leaves = false, covered = operand != PO_NONE;
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, most, held_least, held;
        po_mu_range(mu, access, x, &least, &most);
        if (least >= 0 && most < t->dims[x])
            continue;
        leaves = true;
        covered = covered && least >= -t->before[x] && most - t->dims[x] < t->after[x] &&
                  !po_mu_held(mu, access->tensor, x, &held_least, &held);
    }
    if (!leaves)
        return PO_MU_WITHIN;
    return covered && po_mu_adds_nothing(s, operand, t->fill) ? PO_MU_RING : PO_MU_GUARD;
}

/* --- figures --- */

static double touched(const po_mu *mu, const po_mu_access *access) {
    double n = 1;
    const po_mu_tensor *t = &mu->tensors[access->tensor];
    for (uint32_t x = 0; x < t->rank; x++) {
        int64_t least, most;
        po_mu_range(mu, access, x, &least, &most);
        least = least < 0 ? 0 : least;
        most = most >= t->dims[x] ? t->dims[x] - 1 : most;
        n *= most < least ? 0 : (double)(most - least + 1);
    }
    return n;
}

static void cost_of_statement(const po_mu *mu, uint32_t node, po_arena *arena, po_mu_cost *cost) {
    static const double flops[] = {
#define PO_MU_FUNCTION(id, name, arity, n, what) n,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
    };
    const po_mu_statement *s = &mu->nodes[node].statement;
    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(mu, s, arena, &n_kept, &kept, &n_reduced, &reduced);
    double times = 1, each = s->combine != PO_MU_SET;
    for (uint32_t i = 0; i < n_kept; i++)
        times *= (double)mu->labels[kept[i]].extent;
    for (uint32_t i = 0; i < n_reduced; i++)
        times *= (double)mu->labels[reduced[i]].extent;
    /* Loops over labels that the statement does not have repeat it. */
    for (uint32_t at = mu->nodes[node].parent; at != PO_NONE; at = mu->nodes[at].parent) {
        const po_mu_node *loop = &mu->nodes[at];
        bool own = false;
        if (loop->kind != PO_MU_LOOP)
            continue;
        for (uint32_t i = 0; i < n_kept; i++)
            own |= kept[i] == loop->label;
        for (uint32_t i = 0; i < n_reduced; i++)
            own |= reduced[i] == loop->label;
        int64_t chunk = po_mu_chunk(mu, at), extent = mu->labels[loop->label].extent;
        if (!own && chunk > 0)
            times *= (double)((extent - 1) / chunk + 1);
    }
    /* What is the same for all rows of a tile is made once for them. */
    bool *by_row = PO_NEW_N(arena, bool, s->n_items + 1);
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *it = &s->items[i];
        const uint32_t of[3] = {it->a, it->b, it->c};
        by_row[i] = s->row == PO_NONE || s->rows < 2 ||
                    (it->function == PO_MU_OPERAND && po_mu_has(mu, &s->in[it->a], s->row));
        for (uint32_t a = 0; a < po_mu_arity(it->function); a++)
            by_row[i] |= by_row[of[a]];
        each += flops[it->function] / (by_row[i] ? 1 : s->rows);
    }
    cost->flops += times * each;
}

void po_mu_cost_of(const po_mu *mu, po_mu_cost *cost) {
    po_arena *arena = po_arena_child(mu->arena);
    *cost = (po_mu_cost){0};
    /* By tensor: what the step under way reads and writes of it, at most all. */
    double *reads = PO_NEW_N(arena, double, mu->n_tensors + 1);
    double *writes = PO_NEW_N(arena, double, mu->n_tensors + 1);
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        int64_t shared = 0;
        memset(reads, 0, (mu->n_tensors + 1) * sizeof *reads);
        memset(writes, 0, (mu->n_tensors + 1) * sizeof *writes);
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            if (mu->nodes[n].kind != PO_MU_STATEMENT)
                continue;
            cost_of_statement(mu, n, arena, cost);
            writes[s->out.tensor] += touched(mu, &s->out);
            for (uint32_t i = 0; i < s->n_in; i++) {
                const po_mu_tensor *t = &mu->tensors[s->in[i].tensor];
                const double read = touched(mu, &s->in[i]);
                reads[s->in[i].tensor] = fmax(reads[s->in[i].tensor], read);
                if (t->place == PO_MU_WEIGHT)
                    cost->weights += read * (double)po_mu_bytes(t->type);
            }
        }
        for (uint32_t i = 0; i < mu->n_tensors; i++) {
            const po_mu_tensor *t = &mu->tensors[i];
            double elements = 1;
            for (uint32_t x = 0; x < t->rank; x++)
                elements *= (double)t->dims[x];
            if (t->place == PO_MU_SHARED)
                shared += reads[i] + writes[i] > 0 ? po_mu_bytes(t->type) * t->floats : 0;
            else if (t->place != PO_MU_REGISTER && t->place != PO_MU_TABLE)
                cost->bytes +=
                    (double)po_mu_bytes(t->type) * (reads[i] + fmin(writes[i], elements));
        }
        cost->shared = shared > cost->shared ? shared : cost->shared;
    }
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_DEVICE)
            cost->device += po_mu_bytes(mu->tensors[i].type) * mu->tensors[i].floats;
    po_arena_free(arena);
}
