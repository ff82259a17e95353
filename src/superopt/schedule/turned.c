/* Products with few outputs: pointwise convolutions and transposed ones to a channel or two, whose
 * lanes would be nearly empty. Sixteen neighbouring pixels are turned in registers, so that their
 * channels lie apart, and are the lanes of the product. */
#include "superopt/schedule/internal.h"

enum { OPERAND, VECTORS }; /* of po_choice.n */
enum { FEW = 8 /* outputs of a pixel along any label */, CHUNK = 64, MOST_CHANNELS = 512 };

/* The label that is alone in an index, with coefficient 1 and without an offset; PO_NONE. */
static uint32_t alone(const po_mu_index *index) {
    return index->n == 1 && index->terms[0].coef == 1 && index->offset == 0 ? index->terms[0].label
                                                                            : PO_NONE;
}

typedef struct parts {
    po_naive_step n;
    uint32_t a, b;          /* operands: what is turned, what a vector takes one number of */
    uint32_t lane, channel; /* along the last two axes of `a` that are longer than 1 */
    uint32_t row;           /* a label of `b` that is kept; PO_NONE */
} parts;

static bool find_parts(const po_mu *mu, uint32_t step, uint32_t a, parts *p) {
    const po_mu_statement *s;
    if (!po_naive_step_of(mu, step, &p->n))
        return false;
    s = p->n.s;
    if (s->combine != PO_MU_ADD || s->n_in != 2 || s->n_items != 3 ||
        s->items[2].function != PO_MU_TIMES || s->in[0].tensor == s->in[1].tensor)
        return false;
    p->a = a;
    p->b = 1 - a;
    const po_mu_access *in = &s->in[a], *other = &s->in[1 - a];
    const po_mu_tensor *t = &mu->tensors[in->tensor];
    if (t->rank < 2 || t->place == PO_MU_WEIGHT || !po_mu_is_inside(mu, in))
        return false;
    p->lane = alone(&in->axes[t->rank - 2]);
    p->channel = alone(po_mu_last_axis(mu, in));
    if (p->lane == PO_NONE || p->channel == PO_NONE || po_is_reduced(mu, &p->n, p->lane) ||
        !po_is_reduced(mu, &p->n, p->channel) || po_mu_has(mu, other, p->lane) ||
        !po_mu_has(mu, other, p->channel) || mu->labels[p->lane].extent < PO_MU_VECTOR ||
        mu->labels[p->channel].extent < 4 || mu->labels[p->channel].extent > MOST_CHANNELS ||
        po_access_axis(mu, in, p->lane) == PO_NONE)
        return false;
    /* Each label outside has an index of its own, so that one chunk can be held, and a loop. */
    uint32_t loops = mu->labels[p->lane].extent > CHUNK;
    for (uint32_t x = 0; x + 2 < t->rank; x++) {
        if (in->axes[x].n > 1 || (in->axes[x].n == 1 && alone(&in->axes[x]) == PO_NONE))
            return false;
        loops += in->axes[x].n;
    }
    if (loops > PO_MU_MAX_GRID)
        return false;
    /* What else is kept is a row of the map or one of few outputs. */
    p->row = PO_NONE;
    int64_t outputs = 1;
    for (uint32_t l = 0; l < mu->n_labels; l++) {
        bool first = po_mu_has(mu, in, l), second = po_mu_has(mu, other, l);
        if (!second)
            continue;
        if (l != p->channel && (first || po_is_reduced(mu, &p->n, l)))
            return false;
        if (l == p->channel)
            continue;
        outputs *= mu->labels[l].extent;
        if (p->row == PO_NONE || mu->labels[l].extent > mu->labels[p->row].extent)
            p->row = l;
    }
    return outputs <= FEW;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    (void)isa;
    for (uint32_t a = 0; a < 2; a++) {
        parts p;
        if (n == PO_CHOICES_MAX || !find_parts(naive, step, a, &p))
            continue;
        choices[n] = (po_choice){.how = &po_schedule_turned};
        choices[n].n[OPERAND] = a;
        choices[n].n[VECTORS] = naive->labels[p.lane].extent >= CHUNK ? 4 : 1;
        n++;
    }
    return n;
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    const po_mu *mu = s->naive;
    parts p;
    (void)find_parts(mu, step, (uint32_t)choice->n[OPERAND], &p);
    const po_naive_step *n = &p.n;
    const po_mu_access *in = &n->s->in[p.a];
    const po_mu_tensor *t = &mu->tensors[in->tensor];
    po_for_label *map = po_for_labels(s);
    po_keep_labels(s, map, n);
    uint32_t at = po_mu_add_step(s->mu, mu->nodes[step].name);
    uint32_t lane = map[p.lane].terms[0].label, channel = map[p.channel].terms[0].label;
    /* What is turned holds one chunk of the loops around it. */
    int64_t dims[PO_MU_MAX_RANK];
    uint32_t by[PO_MU_MAX_RANK], rank = 0;
    for (uint32_t x = 0; x + 2 < t->rank; x++)
        for (uint32_t i = in->axes[x].n; i-- > 0;) {
            by[rank] = map[in->axes[x].terms[i].label].terms[0].label;
            dims[rank++] = mu->labels[in->axes[x].terms[i].label].extent;
            at = po_mu_add_loop(s->mu, at, PO_MU_GRID, by[rank - 1], 1);
        }
    if (mu->labels[p.lane].extent > CHUNK)
        at = po_mu_add_loop(s->mu, at, PO_MU_GRID, lane, CHUNK);
    by[rank] = channel;
    dims[rank++] = mu->labels[p.channel].extent;
    by[rank] = lane;
    dims[rank++] = mu->labels[p.lane].extent;
    uint32_t turned = po_mu_add_tensor(s->mu, "turned", PO_MU_SHARED, rank, dims);
    s->mu->tensors[turned].scope = at;
    /* The copy. */
    uint32_t copy = po_mu_add_statement(s->mu, at, PO_MU_SET);
    s->mu->nodes[copy].statement.out = po_mu_access_by(s->mu, turned, by);
    uint32_t operand = po_mu_operand(s->mu, copy, po_map_access(s, map, in));
    po_mu_item_of(s->mu, copy, PO_MU_OPERAND, operand, 0, 0);
    po_mu_statement *st = &s->mu->nodes[copy].statement;
    st->lane = lane;
    st->vectors = 1;
    st->row = channel;
    st->rows = PO_MU_VECTOR;
    /* The product. */
    if (n->tail) {
        const po_mu_tensor *made = &mu->tensors[n->s->out.tensor];
        uint32_t reg = po_mu_add_tensor(s->mu, "p", PO_MU_REGISTER, made->rank, made->dims);
        s->mu->tensors[reg].scope = at;
        s->tensor[n->s->out.tensor] = reg;
    }
    po_mu_access replaced[PO_MU_MAX_INPUTS];
    replaced[p.a] = po_mu_access_by(s->mu, turned, by);
    replaced[p.b].tensor = PO_NONE;
    po_mu_access out = po_map_access(s, map, &n->s->out);
    uint32_t id = po_map_statement(s, at, map, n->s, &out, replaced);
    st = &s->mu->nodes[id].statement;
    st->lane = lane;
    st->vectors = (uint32_t)choice->n[VECTORS];
    st->rows = 1;
    if (p.row != PO_NONE) {
        st->row = map[p.row].terms[0].label;
        st->rows = (uint32_t)(mu->labels[p.row].extent < 4 ? mu->labels[p.row].extent : 4);
    }
    if (n->tail) {
        po_mu_access y = po_map_access(s, map, n->out);
        po_map_statement(s, at, map, n->tail, &y, NULL);
    }
    po_mu_layout(s->mu, turned, 1, 0);
}

static int64_t family(const po_choice *choice) {
    (void)choice;
    return 0;
}

static void tell(const po_choice *choice, po_text *text) {
    po_text_printf(text, "pixels turned into lanes, %lld at a time",
                   (long long)choice->n[VECTORS] * PO_MU_VECTOR);
}

const po_scheduler po_schedule_turned = {"turned", PO_ORDERS_SUMS, list, apply,
                                         family,   tell,           NULL, NULL};
