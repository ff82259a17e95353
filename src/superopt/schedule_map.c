/* Anything, vector by vector along the last axis: pools, maps, copies, reductions. */
#include "superopt/schedule_private.h"

enum { LANE, VECTORS, ROW };

/* Whether the last axis of what is written has a ring, over which no vector may spill. */
static bool has_ring_behind(const po_mu *mu, uint32_t tensor) {
    uint32_t last = mu->tensors[tensor].rank - 1;
    for (uint32_t n = 0; n < mu->n_nodes; n++) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        for (uint32_t i = 0; mu->nodes[n].kind == PO_MU_STATEMENT && i < s->n_in; i++) {
            int64_t least, most;
            if (s->in[i].tensor != tensor)
                continue;
            po_mu_range(mu, &s->in[i], last, &least, &most);
            if (least < 0 || most >= mu->tensors[tensor].dims[last])
                return true;
        }
    }
    return false;
}

/* A lone copy whose source lies along another axis: 16 by 16 at a time, turned in registers. The
 * label along the source's last axis, PO_NONE: it is no such copy. */
static uint32_t turned_row(const po_mu *mu, const po_naive_step *n) {
    const po_mu_access *in = &n->s->in[0];
    if (n->tail || n->s->combine != PO_MU_SET || n->s->n_in != 1 || n->s->n_items != 1)
        return PO_NONE;
    const po_mu_index *last = &in->axes[mu->tensors[in->tensor].rank - 1];
    uint32_t axis = po_access_axis(mu, in, n->lane);
    if (last->n != 1 || last->terms[0].coef != 1 || last->terms[0].label == n->lane ||
        axis == PO_NONE || po_mu_coef(&in->axes[axis], n->lane) != 1 ||
        mu->labels[last->terms[0].label].extent < 4)
        return PO_NONE;
    return last->terms[0].label;
}

static uint32_t list(const po_mu *naive, uint32_t step, po_choice *choices, uint32_t n) {
    po_naive_step p;
    if (n == PO_CHOICES_MAX || !po_naive_step_of(naive, step, &p))
        return n;
    /* Vectors need the lane to lie in neighbouring elements wherever it occurs. */
    bool lanes = p.lane != PO_NONE;
    const po_mu_statement *both[2] = {p.s, p.tail};
    for (uint32_t i = 0; i < 2 && lanes && both[i]; i++)
        for (uint32_t k = 0; k < both[i]->n_in && lanes; k++) {
            const po_mu_access *in = &both[i]->in[k];
            uint32_t rank = naive->tensors[in->tensor].rank;
            for (uint32_t x = 0; x + 1 < rank; x++)
                lanes &= po_mu_coef(&in->axes[x], p.lane) == 0;
            int64_t coef = rank ? po_mu_coef(&in->axes[rank - 1], p.lane) : 0;
            lanes &= coef == 0 || coef == 1;
        }
    if (lanes && naive->labels[p.lane].extent % PO_MU_VECTOR)
        lanes = !has_ring_behind(naive, p.out->tensor);
    int64_t extent = lanes ? naive->labels[p.lane].extent : 1;
    choices[n] = (po_choice){.how = &po_schedule_map};
    choices[n].n[LANE] = lanes && extent >= PO_MU_VECTOR ? (int64_t)p.lane : -1;
    int64_t vectors = extent % 64 == 0 ? 4 : extent % 48 == 0 ? 3 : extent % 32 == 0 ? 2 : 1;
    choices[n].n[VECTORS] = extent >= 64 && extent % 16 ? 4 : vectors;
    choices[n].n[ROW] = -1;
    uint32_t row = !lanes && p.lane != PO_NONE ? turned_row(naive, &p) : PO_NONE;
    if (row != PO_NONE && naive->labels[p.lane].extent >= 4) {
        choices[n].n[LANE] = (int64_t)p.lane;
        choices[n].n[VECTORS] = 1;
        choices[n].n[ROW] = (int64_t)row;
    }
    return n + 1;
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    const po_mu *mu = s->naive;
    po_naive_step n;
    po_naive_step_of(mu, step, &n);
    po_for_label *map = po_for_labels(s);
    po_keep_labels(s, map, &n);
    uint32_t at = po_mu_add_step(s->mu, mu->nodes[step].name);
    uint32_t lane = choice->n[LANE] < 0 ? PO_NONE : (uint32_t)choice->n[LANE], grids = 0;
    /* The outermost kept labels are dealt out. */
    for (uint32_t x = 0; x < mu->tensors[n.out->tensor].rank && grids < 2; x++)
        for (uint32_t i = n.out->axes[x].n; i-- > 0 && grids < 2;) {
            uint32_t label = n.out->axes[x].terms[i].label;
            if (label == lane || (int64_t)label == choice->n[ROW])
                continue;
            at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[label].terms[0].label, 1);
            grids++;
        }
    if (grids == 0 && lane != PO_NONE && mu->labels[lane].extent > 4096)
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[lane].terms[0].label, 1024);
    if (n.tail) {
        const po_mu_tensor *t = &mu->tensors[n.s->out.tensor];
        uint32_t reg = po_mu_add_tensor(s->mu, "p", PO_MU_REGISTER, t->rank, t->dims);
        s->mu->tensors[reg].scope = at;
        s->tensor[n.s->out.tensor] = reg;
    }
    po_mu_access out = po_map_access(s, map, &n.s->out);
    uint32_t id = po_map_statement(s, at, map, n.s, &out, NULL);
    if (lane != PO_NONE) {
        s->mu->nodes[id].statement.lane = map[lane].terms[0].label;
        s->mu->nodes[id].statement.vectors = (uint32_t)choice->n[VECTORS];
        s->mu->nodes[id].statement.rows = 1;
        if (choice->n[ROW] >= 0) {
            s->mu->nodes[id].statement.row = map[choice->n[ROW]].terms[0].label;
            s->mu->nodes[id].statement.rows = PO_MU_VECTOR;
        }
    }
    if (n.tail) {
        po_mu_access y = po_map_access(s, map, n.out);
        po_map_statement(s, at, map, n.tail, &y, NULL);
    }
}

static void tell(const po_choice *choice, po_text *text) {
    if (choice->n[LANE] < 0)
        po_text_puts(text, "plain loops");
    else if (choice->n[ROW] >= 0)
        po_text_puts(text, "turned in registers");
    else
        po_text_printf(text, "vectors, %lld at a time", (long long)choice->n[VECTORS]);
}

const po_scheduler po_schedule_map = {"map", true, list, apply, tell};
