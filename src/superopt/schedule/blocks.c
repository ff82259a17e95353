/* Long sums lane by lane: maps' means, squares. Blocks of what is added up have sums of their own,
 * in parallel, which are then added: thousands of numbers one after the other would lose accuracy
 * as no other order does, and be one thread's work. */
#include "superopt/schedule/internal.h"

enum { SUMMED, BLOCK }; /* of po_choice.n; BLOCK 0: each index of the label is a block */
enum { LONG = 512, WHOLE = 256, USUAL = 32 };

/* Whether past its extent the label leads outside of what is read. */
static bool ends_outside(const po_mu *mu, const po_mu_statement *s, uint32_t label) {
    for (uint32_t i = 0; i < s->n_in; i++)
        for (uint32_t x = 0; x < mu->tensors[s->in[i].tensor].rank; x++) {
            const po_mu_index *index = &s->in[i].axes[x];
            if (index->n == 1 && index->terms[0].label == label && index->terms[0].coef == 1 &&
                index->offset == 0 &&
                mu->tensors[s->in[i].tensor].dims[x] == po_mu_extent(mu, label))
                return true;
        }
    return false;
}

static int64_t block_of(const po_mu *mu, const po_mu_statement *s, uint32_t label) {
    for (int64_t n = INT64_C(2) * USUAL; n >= USUAL / 2; n--)
        if (po_mu_extent(mu, label) % n == 0)
            return n;
    return ends_outside(mu, s, label) ? USUAL : 0;
}

/* Vectors need the lane along the last axis of all that is read. */
static bool lies_in_lanes(const po_mu *mu, const po_mu_statement *s, uint32_t lane) {
    for (uint32_t i = 0; i < s->n_in; i++) {
        uint32_t rank = mu->tensors[s->in[i].tensor].rank;
        for (uint32_t x = 0; x < rank; x++) {
            int64_t coef = po_mu_coef(&s->in[i].axes[x], lane);
            if (coef != 0 && (x + 1 < rank || coef != 1))
                return false;
        }
    }
    return true;
}

static uint32_t list(const po_mu *naive, uint32_t step, const po_isa *isa, po_choice *choices,
                     uint32_t n) {
    (void)isa;
    po_naive_step p;
    uint32_t summed = PO_NONE, labels = 0;
    int64_t elements = 1;
    if (n == PO_CHOICES_MAX || !po_naive_step_of(naive, step, &p) || p.lane == PO_NONE ||
        p.s->combine != PO_MU_ADD || !p.s->fresh || po_mu_extent(naive, p.lane) < PO_MU_VECTOR ||
        !lies_in_lanes(naive, p.s, p.lane) ||
        naive->tensors[p.s->out.tensor].rank >= PO_MU_MAX_RANK)
        return n;
    for (uint32_t l = 0; l < naive->n_labels; l++) {
        if (!po_is_reduced(naive, &p, l) || po_mu_extent(naive, l) == 1)
            continue;
        elements *= po_mu_extent(naive, l);
        labels++;
        if (summed == PO_NONE || po_mu_extent(naive, l) > po_mu_extent(naive, summed))
            summed = l;
    }
    if (elements < LONG)
        return n;
    bool whole = labels > 1 && po_mu_extent(naive, summed) < WHOLE;
    int64_t block = whole ? 0 : block_of(naive, p.s, summed);
    if (!whole && block == 0)
        return n;
    choices[n] = (po_choice){.how = &po_schedule_blocks};
    choices[n].n[SUMMED] = (int64_t)summed;
    choices[n].n[BLOCK] = block;
    return n + 1;
}

static void tile(po_mu_statement *s, uint32_t lane, int64_t lanes) {
    s->lane = lane;
    s->vectors = lanes >= INT64_C(4) * PO_MU_VECTOR ? 4 : 1;
    s->rows = 1;
}

static void apply(po_schedule *s, uint32_t step, const po_choice *choice) {
    const po_mu *mu = s->naive;
    po_naive_step n;
    po_naive_step_of(mu, step, &n);
    uint32_t summed = (uint32_t)choice->n[SUMMED];
    int64_t block = choice->n[BLOCK];
    int64_t blocks =
        block ? (po_mu_extent(mu, summed) + block - 1) / block : po_mu_extent(mu, summed);
    po_for_label *map = po_for_labels(s);
    uint32_t number = po_mu_add_label(s->mu, "block", blocks);
    map[summed] = (po_for_label){1, {{number, block ? block : 1}}};
    if (block)
        map[summed].terms[map[summed].n++] =
            (po_mu_term){po_mu_add_label(s->mu, "within", block), 1};
    po_keep_labels(s, map, &n);
    uint32_t lane = map[n.lane].terms[0].label;
    /* A sum for each block. */
    const po_mu_tensor *t = &mu->tensors[n.s->out.tensor];
    int64_t dims[PO_MU_MAX_RANK] = {blocks};
    memcpy(&dims[1], t->dims, t->rank * sizeof *dims);
    uint32_t parts = po_mu_add_tensor(s->mu, "parts", PO_MU_DEVICE, t->rank + 1, dims);
    po_mu_layout(s->mu, parts, PO_MU_VECTOR, 0);
    const char *name = mu->nodes[step].name;
    uint32_t at = po_mu_add_step(s->mu, po_arena_printf(s->arena, "%s, blocks", name));
    at = po_mu_add_loop(s->mu, at, PO_MU_GRID, number, 1);
    po_mu_access part = po_mu_access_of(s->mu, parts);
    po_mu_at(s->mu, &part, 0, 1, number);
    for (uint32_t x = 0; x < t->rank; x++) {
        const po_mu_index *index = &n.s->out.axes[x];
        po_mu_at(s->mu, &part, x + 1, index->offset, PO_NONE);
        for (uint32_t i = 0; i < index->n; i++)
            po_mu_at(s->mu, &part, x + 1, index->terms[i].coef,
                     map[index->terms[i].label].terms[0].label);
    }
    uint32_t id = po_map_statement(s, at, map, n.s, &part, NULL);
    tile(&s->mu->nodes[id].statement, lane, po_mu_extent(mu, n.lane));
    /* Their sum. */
    at = po_mu_add_step(s->mu, name);
    if (n.tail) {
        uint32_t reg = po_mu_add_tensor(s->mu, "p", PO_MU_REGISTER, t->rank, t->dims);
        s->mu->tensors[reg].scope = PO_NONE;
        s->tensor[n.s->out.tensor] = reg;
    }
    po_mu_access out = po_map_access(s, map, &n.s->out);
    id = po_mu_add_statement(s->mu, at, PO_MU_ADD);
    s->mu->nodes[id].statement.out = out;
    s->mu->nodes[id].statement.fresh = true;
    po_mu_item_of(s->mu, id, PO_MU_OPERAND, po_mu_operand(s->mu, id, part), 0, 0);
    tile(&s->mu->nodes[id].statement, lane, po_mu_extent(mu, n.lane));
    if (n.tail) {
        po_mu_access y = po_map_access(s, map, n.out);
        po_map_statement(s, at, map, n.tail, &y, NULL);
    }
}

static int64_t family(const po_choice *choice) {
    return choice->n[BLOCK] > 0;
}

static void tell(const po_choice *choice, po_text *text) {
    if (choice->n[BLOCK])
        po_text_printf(text, "sums of blocks of %lld", (long long)choice->n[BLOCK]);
    else
        po_text_puts(text, "sums of rows");
}

const po_scheduler po_schedule_blocks = {"blocks", PO_ORDERS_SUMS, list, apply,
                                         family,   tell,           NULL, NULL};
