/* Integers and strings that were drawn, and lengths that the model leaves open. A trial sees the
 * values that were drawn, and must not take them for all: they are variables too. What such an
 * integer decides (a comparison, a row that it picks) is a symbol; where values are needed to go on
 * at all, as indices are, both models must ask the same of the same. */
#include "ops/indices.h"
#include "verify/proof/internal.h"

static bool is_float(const po_ptensor *t) {
    return po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT;
}

/* Operators by which a length that happens to be so decides something. */
static bool decides(po_op_id op) {
    switch (op) {
    case PO_OP_Equal:
    case PO_OP_Less:
    case PO_OP_LessOrEqual:
    case PO_OP_Greater:
    case PO_OP_GreaterOrEqual:
    case PO_OP_Mod:
        return true;
    default:
        return false;
    }
}

/* Whether lengths that happen to be so decide what the node makes: not whether a position is at
 * least 0, or a length is the -1 of a shape. */
static bool decided_here(const po_pnode *n) {
    return decides(n->node->op) && !po_condition_told(n->arena, n->graph, n->node);
}

bool po_pn_symbolic(const po_pnode *n) {
    /* Rows of zeros and a one are picked, as Gather picks. */
    if (n->node->op == PO_OP_Shape || n->node->op == PO_OP_Size || n->node->op == PO_OP_OneHot)
        return false;
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        const po_ptensor *t = n->in[k];
        if (t && !is_float(t) && (t->drawn || t->decided || (t->sized && decided_here(n))))
            return true;
    }
    return false;
}

void po_pn_mark(const po_pnode *n) {
    bool drawn = false, constant = n->node->n_in > 0, sized = false, decided = false;
    bool lengths = n->node->op == PO_OP_Shape || n->node->op == PO_OP_Size;
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        const po_ptensor *t = n->in[k];
        constant = constant && (!t || t->constant);
        if (!t || lengths)
            continue;
        drawn |= t->drawn;
        sized |= t->sized && !is_float(t);
        decided |= t->decided && !is_float(t);
    }
    decided |= sized && decided_here(n);
    if (lengths && n->in[0] && n->run->open) {
        const po_type *type = &n->graph->values[n->node->in[0]].type;
        sized = !po_type_static(type);
    }
    for (uint32_t k = 0; k < n->node->n_out; k++)
        if (n->out[k]) {
            n->out[k]->drawn |= drawn;
            n->out[k]->constant |= constant;
            n->out[k]->sized |= sized;
            n->out[k]->decided |= decided;
        }
}

/* --- contents beside symbols --- */

po_status po_pn_attach(po_pnode *n, uint32_t k, const po_array *a) {
    po_ptensor *t = n->out[k];
    if (!t && a->s && po_pn_symbolic(n)) {
        t = n->out[k] = po_pt_known(n->run, a);
        t->print = po_hash_u64(po_pn_print(n), k); /* not the strings that were drawn */
        t->printed = true;
        return PO_OK;
    }
    if (!t || t->known || a->s || a->count != t->count)
        return PO_OK;
    po_array *copy = po_arena_memdup(t->arena, a, sizeof *a);
    copy->dims = po_arena_memdup(t->arena, a->dims, a->rank * sizeof *a->dims);
    if (a->f)
        copy->f = po_arena_memdup(t->arena, a->f, (size_t)a->count * sizeof *a->f);
    if (a->i)
        copy->i = po_arena_memdup(t->arena, a->i, (size_t)a->count * sizeof *a->i);
    t->known = copy;
    return PO_OK;
}

/* --- choices --- */

static void note(po_prun *run, po_hash what) {
    if (po_hash_map_put(run->choices, what, 1) != PO_NONE)
        return;
    run->choice_sum.lo += po_mix(what.lo);
    run->choice_sum.hi += po_mix(what.hi);
}

/* Which inputs choose where elements come from or how many there are, the first one aside. */
static bool chooses(const po_pnode *n, uint32_t k) {
    switch (n->node->op) {
    case PO_OP_Range:
    case PO_OP_ConstantOfShape:
    case PO_OP_NonZero:
    case PO_OP_OneHot:
        return true;
    case PO_OP_Concat:
    case PO_OP_Einsum:
    case PO_OP_MatMul:
    case PO_OP_MatMulInteger:
    case PO_OP_ConvInteger:
        return false;
    default:
        return k > 0 && !po_op_has(n->node->op, PO_OPF_ELEMENTWISE);
    }
}

/* Of elements; others choose shapes, which are compared as such. */
static bool picks(po_op_id op) {
    switch (op) {
    case PO_OP_Gather:
    case PO_OP_GatherElements:
    case PO_OP_GatherND:
    case PO_OP_OneHot:
    case PO_OP_ScatterElements:
    case PO_OP_ScatterND:
    case PO_OP_Slice:
    case PO_OP_Pad:
    case PO_OP_Compress:
        return true;
    default:
        return false;
    }
}

/* A bound beyond the length at hand, which a longer one would reach. */
static void note_bounds(po_pnode *n) {
    const po_ptensor *data = po_pn_in(n, 0);
    const po_type *type = data ? &n->graph->values[n->node->in[0]].type : NULL;
    if (!n->run->open || !data || data->constant || po_type_static(type))
        return;
    int64_t longest = 0;
    for (uint32_t i = 0; i < data->rank; i++)
        longest = data->dims[i] > longest ? data->dims[i] : longest;
    for (uint32_t which = 1; which <= 2; which++) {
        uint32_t count;
        const int64_t *v;
        if (!po_pn_ints(n, which, which == 1 ? "starts" : "ends", &count, &v))
            continue;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t size = v[i] < 0 ? 0 - (uint64_t)v[i] : (uint64_t)v[i];
            if (size > (uint64_t)longest && size < INT32_MAX)
                note(n->run, po_hash_u64((po_hash){7, which}, (uint64_t)v[i]));
        }
    }
}

/* The elements in their order, whatever the shape. */
static po_hash elements_of(po_ptensor *t) {
    const uint32_t *mod = po_pt_mod(t);
    return mod ? po_hash_bytes(mod, (size_t)t->count * sizeof *mod, (po_hash){9, 0})
               : po_pt_print(t);
}

void po_pn_note_choices(po_pnode *n) {
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        po_ptensor *t = n->in[k];
        /* Where every row is picked, every choice was tried. */
        if (!t || is_float(t) || !chooses(n, k) || po_pn_picks_all(n))
            continue;
        if (t->drawn || (t->decided && picks(n->node->op)))
            note(n->run, elements_of(t));
    }
    if (n->node->op == PO_OP_Slice)
        note_bounds(n);
}
