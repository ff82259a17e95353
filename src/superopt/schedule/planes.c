/* Products with few outputs of a group, whose lanes would be nearly empty: grouped convolutions of
 * few channels, and ones to a channel or a few. The input is turned into planes, one a channel, in
 * a step of its own; vectors are neighbouring pixels of a row, and each of the group's outputs has
 * a row of accumulators. */
#include "base/num.h"
#include "superopt/schedule/internal.h"

enum { VECTORS, ROWS }; /* of po_choice.n */
enum { ACCUMULATORS = 24, MOST_ROWS = 8 };

typedef struct parts {
    po_naive_step n;
    uint32_t pixel; /* label along the rows of the map */
    uint32_t w_axis;
} parts;

static bool find_parts(const po_mu *mu, uint32_t step, parts *p) {
    if (!po_naive_step_of(mu, step, &p->n) || !p->n.product ||
        mu->labels[p->n.lane].extent >= PO_MU_VECTOR)
        return false;
    const po_mu_access *a = &p->n.s->in[p->n.a], *b = &p->n.s->in[p->n.b];
    const po_mu_tensor *t = &mu->tensors[a->tensor];
    if (t->place != PO_MU_DEVICE || mu->tensors[b->tensor].place != PO_MU_WEIGHT || t->rank < 2 ||
        t->rank == PO_MU_MAX_RANK)
        return false;
    p->w_axis = po_access_axis(mu, b, p->n.lane);
    if (p->w_axis == PO_NONE)
        return false;
    p->pixel = PO_NONE;
    const po_mu_index *row = &a->axes[t->rank - 2];
    for (uint32_t i = 0; i < row->n; i++)
        if (!po_is_reduced(mu, &p->n, row->terms[i].label)) {
            if (p->pixel != PO_NONE || row->terms[i].coef != 1)
                return false;
            p->pixel = row->terms[i].label;
        }
    return p->pixel != PO_NONE && mu->labels[p->pixel].extent >= PO_MU_VECTOR &&
           !po_mu_has(mu, b, p->pixel) && po_access_axis(mu, a, p->pixel) == t->rank - 2 &&
           po_access_axis(mu, &p->n.s->out, p->pixel) != PO_NONE;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    (void)isa;
    parts p;
    if (n == PO_CHOICES_MAX || !find_parts(naive, step, &p))
        return n;
    int64_t outputs = naive->labels[p.n.lane].extent;
    int64_t rows = po_ceil_div(outputs, po_ceil_div(outputs, MOST_ROWS));
    int64_t vectors = po_ceil_div(naive->labels[p.pixel].extent, PO_MU_VECTOR),
            most = ACCUMULATORS / rows;
    most = most < 4 ? most : 4;
    choices[n] = (po_choice){.how = &po_schedule_planes};
    choices[n].n[VECTORS] = po_ceil_div(vectors, po_ceil_div(vectors, most));
    choices[n].n[ROWS] = rows;
    return n + 1;
}

/* The input's axes with the channels first: what stands at each. */
static uint32_t axis_at(uint32_t rank, uint32_t i) {
    return i == 0 ? rank - 1 : i - 1;
}

/* The planes, with rings by what is read of them. A last axis of one element stands behind the
 * pixels: vectors that are partly inside may be stored over the end of a tensor's last axis, and
 * the ring must stay. */
static uint32_t turn(po_schedule *s, const parts *p, const char *name) {
    const po_mu *mu = s->naive;
    const po_mu_access *a = &p->n.s->in[p->n.a];
    uint32_t rank = mu->tensors[a->tensor].rank, from = po_twin(s, a->tensor);
    uint32_t labels[PO_MU_MAX_RANK];
    int64_t dims[PO_MU_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = mu->tensors[a->tensor].dims[axis_at(rank, i)];
    dims[rank] = 1;
    uint32_t planes = po_mu_add_tensor(s->mu, "planes", PO_MU_DEVICE, rank + 1, dims);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t least, most;
        po_mu_range(mu, a, axis_at(rank, i), &least, &most);
        s->mu->tensors[planes].before[i] = least < 0 ? -least : 0;
        s->mu->tensors[planes].after[i] = most >= dims[i] ? most - dims[i] + 1 : 0;
        labels[i] = po_mu_add_label(s->mu, "i", dims[i]);
    }
    po_mu_tensor *t = &s->mu->tensors[planes];
    t->after[rank - 1] += PO_MU_VECTOR - 1;
    t->after[rank - 1] -=
        (t->before[rank - 1] + dims[rank - 1] + t->after[rank - 1]) % PO_MU_VECTOR;
    po_mu_layout(s->mu, planes, 1, 0);
    uint32_t at = po_mu_add_step(s->mu, po_arena_printf(s->arena, "%s, planes", name));
    for (uint32_t i = 1; i + 1 < rank && i <= PO_MU_MAX_GRID; i++)
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, labels[i], 1);
    po_mu_access out = po_mu_access_of(s->mu, planes), in = po_mu_access_of(s->mu, from);
    for (uint32_t i = 0; i < rank; i++) {
        po_mu_at(s->mu, &out, i, 1, labels[i]);
        po_mu_at(s->mu, &in, axis_at(rank, i), 1, labels[i]);
    }
    uint32_t id = po_mu_add_statement(s->mu, at, PO_MU_SET);
    s->mu->nodes[id].statement.out = out;
    po_mu_item_of(s->mu, id, PO_MU_OPERAND, po_mu_operand(s->mu, id, in), 0, 0);
    po_mu_statement *copy = &s->mu->nodes[id].statement;
    copy->lane = labels[rank - 1];
    copy->vectors = 1;
    copy->row = labels[0];
    copy->rows = PO_MU_VECTOR;
    return planes;
}

/* The weights with the outputs last, so that a row's numbers lie side by side. */
static po_mu_access weights(po_schedule *s, const parts *p, const po_for_label *map) {
    const po_mu_access *b = &p->n.s->in[p->n.b];
    uint32_t rank = s->naive->tensors[b->tensor].rank;
    po_panels panels = {.weight_tensor = b->tensor, .split = PO_NONE};
    for (uint32_t x = 0; x < rank; x++)
        if (x != p->w_axis)
            panels.order[panels.n_order++] = x;
    panels.order[panels.n_order++] = p->w_axis;
    po_mu_index axes[PO_MU_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = b->axes[panels.order[i]];
    po_mu_access turned = {b->tensor, axes};
    return po_map_access_on(s, map, &turned, rank, po_pack_weight(s, &panels));
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    const po_mu *mu = s->naive;
    parts p;
    (void)find_parts(mu, step, &p);
    const po_naive_step *n = &p.n;
    const po_mu_access *a = &n->s->in[n->a];
    uint32_t rank = mu->tensors[a->tensor].rank;
    uint32_t planes = turn(s, &p, mu->nodes[step].name);
    po_for_label *map = po_for_labels(s);
    po_keep_labels(s, map, n);
    /* The groups outside, then the rows of the map. */
    uint32_t at = po_mu_add_step(s->mu, mu->nodes[step].name), grids = 0;
    uint32_t out_rank = mu->tensors[n->s->out.tensor].rank;
    for (uint32_t i = 0; i < out_rank; i++) {
        const po_mu_index *index = &n->s->out.axes[axis_at(out_rank, i)];
        for (uint32_t k = index->n; k-- > 0 && grids < 3;) {
            uint32_t label = index->terms[k].label;
            if (label == p.pixel || label == n->lane)
                continue;
            at = po_mu_add_loop(s->mu, at, PO_MU_GRID, map[label].terms[0].label, 1);
            grids++;
        }
    }
    if (n->tail) {
        const po_mu_tensor *t = &mu->tensors[n->s->out.tensor];
        uint32_t reg = po_mu_add_tensor(s->mu, "p", PO_MU_REGISTER, t->rank, t->dims);
        s->mu->tensors[reg].scope = s->mu->nodes[at].kind == PO_MU_LOOP ? at : PO_NONE;
        s->tensor[n->s->out.tensor] = reg;
    }
    po_mu_index axes[PO_MU_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = a->axes[axis_at(rank, i)];
    po_mu_access turned = {planes, axes}, replaced[PO_MU_MAX_INPUTS];
    replaced[n->a] = po_map_access_on(s, map, &turned, rank, planes);
    replaced[n->b] = weights(s, &p, map);
    po_mu_access out = po_map_access(s, map, &n->s->out);
    uint32_t id = po_map_statement(s, at, map, n->s, &out, replaced);
    po_mu_statement *main = &s->mu->nodes[id].statement;
    main->lane = map[p.pixel].terms[0].label;
    main->vectors = (uint32_t)choice->n[VECTORS];
    main->rows = 1;
    if (mu->labels[n->lane].extent > 1) {
        main->row = map[n->lane].terms[0].label;
        main->rows = (uint32_t)choice->n[ROWS];
    }
    if (n->tail) {
        po_mu_access y = po_map_access(s, map, n->out);
        uint32_t tail = po_map_statement(s, at, map, n->tail, &y, NULL);
        s->mu->nodes[tail].statement.fused = true;
    }
}

static int64_t family(const po_choice *choice) {
    (void)choice;
    return 0;
}

static void tell(const po_choice *choice, po_text *text) {
    po_text_printf(text, "planes, tile %lldx%lld", (long long)choice->n[ROWS],
                   (long long)choice->n[VECTORS] * PO_MU_VECTOR);
}

const po_scheduler po_schedule_planes = {"planes", PO_ORDERS_SUMS, list, apply,
                                         family,   tell,           NULL, NULL};
