/* Anything, vector by vector along the last axis: pools, maps, copies, reductions. */
#include "superopt/schedule/internal.h"

enum { LANE, VECTORS, ROW, ROWS };
enum { FEW_LANES = 4 /* from so many on a vector that is partly empty is faster than numbers */ };

/* A weight that can be packed so that the lane's axis, this one, comes last; else PO_NONE. */
static uint32_t packs(const po_mu *mu, const po_mu_access *in, uint32_t lane) {
    const po_mu_tensor *t = &mu->tensors[in->tensor];
    uint32_t axis = t->place == PO_MU_WEIGHT ? po_access_axis(mu, in, lane) : PO_NONE;
    if (axis == PO_NONE || axis + 1 == t->rank || po_mu_coef(&in->axes[axis], lane) != 1)
        return PO_NONE;
    return axis;
}

/* The label of neighbours along the last axis of an operand whose lanes lie along another;
 * n->lane: they lie side by side, or it has none; PO_NONE: neither. */
static uint32_t row_of(const po_mu *mu, const po_naive_step *n, const po_mu_access *in) {
    const po_mu_index *last = po_mu_last_axis(mu, in);
    const uint32_t axis = po_access_axis(mu, in, n->lane);
    uint32_t row = PO_NONE;
    if (!po_mu_has(mu, in, n->lane) || packs(mu, in, n->lane) != PO_NONE)
        return n->lane;
    if (axis == PO_NONE || po_mu_coef(&in->axes[axis], n->lane) != 1)
        return PO_NONE;
    if (axis + 1 == mu->tensors[in->tensor].rank)
        return n->lane;
    for (uint32_t i = 0; i < last->n; i++)
        if (last->terms[i].coef == 1 && mu->labels[last->terms[i].label].extent >= 4)
            row = last->terms[i].label;
    return row;
}

/* A copy or a map of which some operands lie along another axis, the same for all: 16 by 16 at a
 * time, these turned in registers. The label of neighbours there, PO_NONE: it is no such step. */
static uint32_t turned_row(const po_mu *mu, const po_naive_step *n) {
    const bool copy = n->s->n_in == 1 && n->s->n_items == 1;
    uint32_t row = PO_NONE;
    if (n->tail || n->s->combine != PO_MU_SET)
        return PO_NONE;
    for (uint32_t k = 0; k < n->s->n_in; k++) {
        uint32_t own = row_of(mu, n, &n->s->in[k]);
        if (own == PO_NONE || (!copy && po_mu_edge_of(mu, n->main, k) != PO_MU_WITHIN))
            return PO_NONE;
        if (own == n->lane)
            continue;
        if (row != PO_NONE && row != own)
            return PO_NONE;
        row = own;
    }
    return row;
}

/* The access to a weight packed so. */
static po_mu_access packed_access(po_schedule *s, const po_for_label *map, const po_mu_access *in,
                                  uint32_t axis) {
    const po_mu_tensor *t = &s->naive->tensors[in->tensor];
    po_panels p = {.weight_tensor = in->tensor, .split = PO_NONE};
    for (uint32_t x = 0; x < t->rank; x++)
        if (x != axis)
            p.order[p.n_order++] = x;
    p.order[p.n_order++] = axis;
    uint32_t tensor = po_pack_weight(s, &p);
    po_mu_index axes[PO_MU_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        axes[i] = in->axes[p.order[i]];
    po_mu_access turned = {in->tensor, axes};
    return po_map_access_on(s, map, &turned, t->rank, tensor);
}

/* Replaces the operands that are packed for the lane. */
static void pack_operands(po_schedule *s, const po_for_label *map, const po_mu_statement *from,
                          uint32_t lane, po_mu_access *replaced) {
    for (uint32_t i = 0; i < from->n_in; i++) {
        uint32_t axis = lane == PO_NONE ? PO_NONE : packs(s->naive, &from->in[i], lane);
        replaced[i].tensor = PO_NONE;
        if (axis != PO_NONE)
            replaced[i] = packed_access(s, map, &from->in[i], axis);
    }
}

/* A reduced label along the last axis of all that the first statement reads: vectors of it are
 * added up, and then across. PO_NONE: there is none. */
static uint32_t reduced_lane(const po_mu *mu, const po_naive_step *n) {
    uint32_t lane = PO_NONE;
    if (n->s->combine == PO_MU_SET)
        return PO_NONE;
    for (uint32_t k = 0; k < n->s->n_in; k++) {
        const po_mu_access *in = &n->s->in[k];
        const po_mu_index *last = po_mu_last_axis(mu, in);
        for (uint32_t i = 0; i < last->n && lane == PO_NONE; i++)
            if (last->terms[i].coef == 1 && po_is_reduced(mu, n, last->terms[i].label))
                lane = last->terms[i].label;
    }
    for (uint32_t k = 0; k < n->s->n_in && lane != PO_NONE; k++) {
        const po_mu_access *in = &n->s->in[k];
        if (packs(mu, in, lane) != PO_NONE)
            continue;
        if (po_mu_has(mu, in, lane) &&
            (po_access_axis(mu, in, lane) + 1 != mu->tensors[in->tensor].rank ||
             po_mu_coef(po_mu_last_axis(mu, in), lane) != 1))
            return PO_NONE;
    }
    return lane;
}

/* Sums of products, lane by lane (depthwise): rows along the map share what they multiply with, and
 * take the place of the plain choice. */
static uint32_t add_rows(const po_mu *mu, const po_naive_step *p, po_choice *choices, uint32_t n) {
    static const int64_t tiles[][2] = {{7, 2}, {4, 4}, {6, 1}};
    enum { HALF = PO_MU_VECTOR / 2, NARROW_ROWS = 12 /* of a vector each */ };
    const po_choice plain = choices[n - 1];
    if (plain.n[LANE] < 0 || plain.n[ROW] >= 0 || p->s->combine != PO_MU_ADD || p->s->n_in != 2)
        return n;
    const po_mu_access *in = &p->s->in[0];
    uint32_t row = PO_NONE;
    for (uint32_t x = 0; x + 1 < mu->tensors[in->tensor].rank; x++)
        for (uint32_t i = 0; i < in->axes[x].n; i++) {
            uint32_t label = in->axes[x].terms[i].label;
            if (!po_is_reduced(mu, p, label) && !po_mu_has(mu, &p->s->in[1], label))
                row = label;
        }
    int64_t vectors = (mu->labels[p->lane].extent + PO_MU_VECTOR - 1) / PO_MU_VECTOR;
    uint32_t to = n - 1;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0] && row != PO_NONE; i++) {
        if (to == PO_CHOICES_MAX || mu->labels[row].extent < tiles[i][0] || vectors < tiles[i][1])
            continue;
        choices[to] = plain;
        choices[to].n[VECTORS] = tiles[i][1];
        choices[to].n[ROW] = (int64_t)row;
        choices[to].n[ROWS] = tiles[i][0];
        if (mu->labels[p->lane].extent <= HALF && mu->labels[row].extent >= NARROW_ROWS)
            choices[to].n[ROWS] = NARROW_ROWS;
        to++;
    }
    return to > n ? to : n;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    (void)isa;
    po_naive_step p;
    if (n == PO_CHOICES_MAX || !po_naive_step_of(naive, step, &p))
        return n;
    /* Vectors need the lane to lie in neighbouring elements wherever it occurs. */
    bool lanes = p.lane != PO_NONE;
    const po_mu_statement *both[2] = {p.s, p.tail};
    for (uint32_t i = 0; i < 2 && lanes && both[i]; i++)
        for (uint32_t k = 0; k < both[i]->n_in && lanes; k++) {
            const po_mu_access *in = &both[i]->in[k];
            if (packs(naive, in, p.lane) != PO_NONE)
                continue;
            for (uint32_t x = 0; x + 1 < naive->tensors[in->tensor].rank; x++)
                lanes &= po_mu_coef(&in->axes[x], p.lane) == 0;
            int64_t coef = po_mu_coef(po_mu_last_axis(naive, in), p.lane);
            lanes &= coef == 0 || coef == 1;
        }
    int64_t extent = lanes ? naive->labels[p.lane].extent : 1;
    choices[n] = (po_choice){.how = &po_schedule_map};
    choices[n].n[LANE] = lanes && extent >= FEW_LANES ? (int64_t)p.lane : -1;
    int64_t vectors = extent % 64 == 0 ? 4 : extent % 48 == 0 ? 3 : extent % 32 == 0 ? 2 : 1;
    choices[n].n[VECTORS] = extent >= 64 && extent % 16 ? 4 : vectors;
    choices[n].n[ROW] = -1;
    uint32_t row = !lanes && p.lane != PO_NONE ? turned_row(naive, &p) : PO_NONE;
    if (row != PO_NONE && naive->labels[p.lane].extent >= 4) {
        choices[n].n[LANE] = (int64_t)p.lane;
        choices[n].n[VECTORS] = 1;
        choices[n].n[ROW] = (int64_t)row;
        choices[n].n[ROWS] = PO_MU_VECTOR;
    }
    n = add_rows(naive, &p, choices, n + 1);
    uint32_t across = !lanes ? reduced_lane(naive, &p) : PO_NONE;
    if (n < PO_CHOICES_MAX && row == PO_NONE && across != PO_NONE &&
        naive->labels[across].extent >= PO_MU_VECTOR) {
        /* The first is taken where there is no time to read both: plain loops do as much work. */
        po_choice *vectors_across = &choices[n - 1];
        choices[n++] = *vectors_across;
        vectors_across->n[LANE] = (int64_t)across;
        vectors_across->n[VECTORS] =
            naive->labels[across].extent >= INT64_C(4) * PO_MU_VECTOR ? 4 : 1;
    }
    return n;
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    const po_mu *mu = s->naive;
    po_naive_step n;
    po_naive_step_of(mu, step, &n);
    po_for_label *map = po_for_labels(s);
    po_keep_labels(s, map, &n);
    uint32_t at = po_mu_add_step(s->mu, mu->nodes[step].name);
    uint32_t lane = choice->n[LANE] < 0 ? PO_NONE : (uint32_t)choice->n[LANE], grids = 0;
    /* The outermost kept labels are dealt out; of digits of one axis that are turned none, behind
     * another label: that their chunks never meet is hard to prove. */
    const bool turned = choice->n[ROW] >= 0 && choice->n[ROWS] == PO_MU_VECTOR;
    for (uint32_t x = 0; x < mu->tensors[n.out->tensor].rank && grids < 2; x++)
        for (uint32_t i = n.out->axes[x].n; i-- > 0 && grids < 2;) {
            uint32_t label = n.out->axes[x].terms[i].label;
            if (label == lane || (int64_t)label == choice->n[ROW] ||
                (turned && grids > 0 && n.out->axes[x].n > 2))
                continue;
            at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[label].terms[0].label, 1);
            grids++;
        }
    if (grids == 0 && lane != PO_NONE && mu->labels[lane].extent > 4096)
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[lane].terms[0].label, 1024);
    /* What is added up across lanes is finished before its tail starts. */
    bool across = lane != PO_NONE && po_is_reduced(mu, &n, lane);
    uint32_t reg = PO_NONE;
    if (n.tail) {
        const po_mu_tensor *t = &mu->tensors[n.s->out.tensor];
        reg =
            po_mu_add_tensor(s->mu, "p", across ? PO_MU_SHARED : PO_MU_REGISTER, t->rank, t->dims);
        s->mu->tensors[reg].scope = s->mu->nodes[at].kind == PO_MU_LOOP ? at : PO_NONE;
        s->tensor[n.s->out.tensor] = reg;
    }
    po_mu_access out = po_map_access(s, map, &n.s->out);
    po_mu_access replaced[PO_MU_MAX_INPUTS];
    pack_operands(s, map, n.s, lane, replaced);
    uint32_t id = po_map_statement(s, at, map, n.s, &out, replaced);
    if (lane != PO_NONE) {
        s->mu->nodes[id].statement.lane = map[lane].terms[0].label;
        s->mu->nodes[id].statement.vectors = (uint32_t)choice->n[VECTORS];
        s->mu->nodes[id].statement.rows = 1;
        if (choice->n[ROW] >= 0) {
            s->mu->nodes[id].statement.row = map[choice->n[ROW]].terms[0].label;
            s->mu->nodes[id].statement.rows = (uint32_t)choice->n[ROWS];
        }
    }
    if (n.tail) {
        po_mu_access y = po_map_access(s, map, n.out);
        pack_operands(s, map, n.tail, across ? PO_NONE : lane, replaced);
        uint32_t tail = po_map_statement(s, at, map, n.tail, &y, replaced);
        s->mu->nodes[tail].statement.fused = !across;
        if (across)
            po_mu_layout(s->mu, reg, 1, 0);
    }
}

static int64_t family(const po_choice *choice) {
    if (choice->n[LANE] < 0)
        return 0;
    if (choice->n[ROW] < 0)
        return 1;
    return choice->n[ROWS] == PO_MU_VECTOR ? 2 : 3;
}

static void tell(const po_choice *choice, po_text *text) {
    if (choice->n[LANE] < 0)
        po_text_puts(text, "plain loops");
    else if (choice->n[ROW] >= 0 && choice->n[ROWS] == PO_MU_VECTOR)
        po_text_puts(text, "turned in registers");
    else if (choice->n[ROW] >= 0)
        po_text_printf(text, "tile %lldx%lld", (long long)choice->n[ROWS],
                       (long long)choice->n[VECTORS] * PO_MU_VECTOR);
    else
        po_text_printf(text, "vectors, %lld at a time", (long long)choice->n[VECTORS]);
}

const po_scheduler po_schedule_map = {"map", PO_ORDERS_SUMS, list, apply, family, tell, NULL, NULL};
