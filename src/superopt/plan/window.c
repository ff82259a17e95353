/* Which steps of a naive muGraph are a window, and their muGraph by itself. */
#include "superopt/plan/window.h"

#include "superopt/part/part.h"
#include "superopt/plan/plan.h"
#include "superopt/schedule/internal.h"

enum { MOST_STATEMENTS = 32 /* as the search takes them */ };

/* Errors that are let pass, as those of row_fusion_choice.c: as the search has it. */
static const double window_error = 32;

/* --- which steps --- */

/* A product with a weight, which has ways of its own to be worked. */
static bool is_heavy(const po_mu *naive, const po_naive_step *n) {
    for (uint32_t k = 0; n->product && k < n->s->n_in; k++)
        if (naive->tensors[n->s->in[k].tensor].place == PO_MU_WEIGHT)
            return true;
    return false;
}

static bool is_copy(const po_naive_step *n) {
    return n->s->combine == PO_MU_SET && n->s->n_in == 1 && n->s->n_items == 1 && !n->tail;
}

static double bytes_of(const po_mu *mu, uint32_t tensor) {
    const po_mu_tensor *t = &mu->tensors[tensor];
    return t->place == PO_MU_WEIGHT || t->place == PO_MU_TABLE || t->place == PO_MU_REGISTER
               ? 0
               : (double)po_mu_elements(t) * (double)po_mu_bytes(t->type);
}

/* Bytes that a step reads and writes. */
static double moved_by(const po_mu *mu, const po_naive_step *n) {
    double bytes = 0;
    for (const po_mu_statement *s = n->s; s; s = s == n->tail ? NULL : n->tail)
        for (uint32_t k = 0; k <= s->n_in; k++)
            bytes += bytes_of(mu, po_mu_touched(s, k));
    return bytes;
}

po_plan_uses po_plan_uses_of(po_arena *arena, const po_mu *mu) {
    po_plan_uses u = {PO_NEW_N(arena, uint32_t, mu->n_tensors + 1),
                      PO_NEW_N(arena, uint32_t, mu->n_tensors + 1),
                      PO_NEW_N(arena, uint32_t, mu->n_nodes + 1)};
    uint32_t at = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        u.writer[i] = u.reader[i] = PO_NONE;
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        u.number[step] = at++;
        for (uint32_t n = mu->nodes[step].first; n != PO_NONE; n = mu->nodes[n].next) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            for (uint32_t k = 0; mu->nodes[n].kind == PO_MU_STATEMENT && k < s->n_in; k++)
                u.reader[s->in[k].tensor] = step;
            if (mu->nodes[n].kind == PO_MU_STATEMENT && u.writer[s->out.tensor] == PO_NONE)
                u.writer[s->out.tensor] = step;
        }
    }
    return u;
}

/* Whether nothing behind a step reads what steps before it made. */
static bool is_done_with(const po_mu *mu, const po_plan_uses *u, const uint32_t *made, uint32_t n,
                         uint32_t step) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t reader = u->reader[made[i]];
        if (mu->tensors[made[i]].place != PO_MU_DEVICE || reader == PO_NONE ||
            u->number[reader] > u->number[step])
            return false;
    }
    return true;
}

uint32_t po_plan_window_from(const po_mu *naive, const po_plan_uses *uses, uint32_t first,
                             uint32_t most, double worth) {
    uint32_t made[PO_WINDOW_MOST], statements = 0, best = 0;
    double moved = 0;
    bool reduces = false;
    for (uint32_t n = 0, step = first; n < most && n < PO_WINDOW_MOST && step != PO_NONE;
         n++, step = naive->nodes[step].next) {
        po_naive_step one;
        if (!po_naive_step_of(naive, step, &one) || is_heavy(naive, &one) ||
            uses->writer[one.out->tensor] != step)
            break;
        statements += one.tail ? 2 : 1;
        if (statements > MOST_STATEMENTS)
            break;
        moved += moved_by(naive, &one);
        reduces |= one.s->combine != PO_MU_SET;
        if (n > 0 && reduces && !is_copy(&one) && is_done_with(naive, uses, made, n, step) &&
            moved - bytes_of(naive, one.out->tensor) >= worth)
            best = n + 1;
        made[n] = one.out->tensor;
    }
    return best;
}

/* --- the steps by themselves --- */

/* What is read and not written is INPUT, what is written last OUTPUT. home: by tensor of what is
 * made, that of the naive one. */
static po_mu *cut_out(po_arena *arena, const po_mu *naive, const uint32_t *node, uint32_t n,
                      uint32_t **home) {
    po_mu *to = po_mu_create(arena, naive->name);
    po_mu_view *twin = PO_NEW_N(arena, po_mu_view, naive->n_tensors + 1);
    bool *written = PO_NEW_N(arena, bool, naive->n_tensors + 1);
    uint32_t last = PO_NONE;
    for (uint32_t i = 0; i < naive->n_tensors; i++)
        twin[i].tensor = PO_NONE;
    part_appending a = part_append_begin(arena, to, naive, twin);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = po_mu_add_step(to, naive->nodes[node[i]].name);
        for (uint32_t k = naive->nodes[node[i]].first; k != PO_NONE; k = naive->nodes[k].next) {
            part_append_statement(&a, at, &naive->nodes[k].statement);
            last = twin[naive->nodes[k].statement.out.tensor].tensor;
            written[last] = true;
        }
    }
    *home = PO_NEW_N(arena, uint32_t, to->n_tensors + 1);
    for (uint32_t i = 0; i < naive->n_tensors; i++)
        if (twin[i].tensor != PO_NONE)
            (*home)[twin[i].tensor] = i;
    for (uint32_t i = 0; i < to->n_tensors; i++)
        if (to->tensors[i].place == PO_MU_DEVICE && !written[i])
            to->tensors[i].place = PO_MU_INPUT;
    to->tensors[last].place = PO_MU_OUTPUT;
    return to;
}

bool po_plan_window_cut(po_arena *arena, const po_mu *naive, const uint32_t *node, uint32_t n,
                        const po_mu **mu, const po_mu_view **view) {
    uint32_t *home;
    const po_mu *cut = cut_out(arena, naive, node, n, &home);
    po_mu_part *parts;
    uint32_t n_parts;
    part_all(arena, part_with_digits(arena, part_without_copies(arena, cut)), NULL, true, &parts,
             &n_parts);
    if (n_parts != 1 || !parts->mu)
        return false;
    for (uint32_t i = 0; i < parts->mu->n_tensors; i++) {
        const po_mu_tensor *t = &parts->mu->tensors[i];
        po_mu_view *own = &parts->twin[i];
        own->tensor = own->tensor == PO_NONE ? PO_NONE : home[own->tensor];
        for (uint32_t x = 0; x < t->rank && t->place == PO_MU_WEIGHT; x++)
            if (own->axis[x] != x || own->times[x] != 1 || own->from[x] != 0 ||
                naive->tensors[own->tensor].dims[x] != t->dims[x])
                return false; /* weights are packed as they are */
    }
    *mu = parts->mu;
    *view = parts->twin;
    return true;
}

void po_plan_window_apply(po_schedule *to, const po_row_fusion *b, const po_plan_window *w) {
    po_search_append(w->found, w->view, b->naive->nodes[b->node[0]].name, to);
}

po_mu *po_plan_window_standalone(po_arena *arena, const po_row_fusion *b, const po_plan_window *w,
                                 po_standalone_step *lone) {
    po_schedule s;
    po_schedule_start(&s, arena, b->naive, true);
    po_plan_window_apply(&s, b, w);
    return po_plan_end_standalone(&s, b, true, window_error, lone);
}
