/* What the meanings of nodes share. */
#include "verify/proof/internal.h"

#include <math.h>

bool po_prun_affordable(const po_prun *run, double products) {
    const double rate = 2e9;
    if (run->cpu_end <= 0)
        return true;
    return po_process_seconds() + products / rate < run->cpu_end;
}

int64_t *po_pn_dims(po_arena *arena, const po_type *type) {
    int64_t *dims = PO_NEW_N(arena, int64_t, type->rank);
    for (uint32_t i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    return dims;
}

po_ptensor *po_pn_out(po_pnode *n, uint32_t k) {
    const po_type *t = &n->type[k];
    n->out[k] = po_pt_residues(n->run, t->dtype, t->rank, po_pn_dims(n->arena, t));
    return n->out[k];
}

const uint32_t *po_pn_broadcast(po_pnode *n, uint32_t k) {
    po_ptensor *in = po_pn_in(n, k);
    const po_type *type = &n->type[0];
    const uint32_t *mod = in ? po_pt_mod(in) : NULL;
    if (!mod || in->rank > type->rank)
        return NULL;
    int64_t count = po_type_count(type), step[PO_MAX_RANK] = {0}, at[PO_MAX_RANK] = {0}, stride = 1;
    uint32_t shift = type->rank - in->rank, rank = type->rank;
    /* Before opset 7 an axis said where the second shape begins. */
    int64_t axis = n->opset < 7 && k == 1 ? po_node_int(n->node, "axis", shift) : shift;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis + in->rank > rank)
        return NULL;
    shift = (uint32_t)axis;
    for (uint32_t i = in->rank; i-- > 0; stride *= in->dims[i]) {
        if (in->dims[i] != 1 && in->dims[i] != type->dims[i + shift].value)
            return NULL;
        step[i + shift] = in->dims[i] == 1 ? 0 : stride;
    }
    if (in->count == count)
        return mod;
    uint32_t *out = PO_NEW_N(n->arena, uint32_t, count);
    int64_t row = rank ? type->dims[rank - 1].value : 1, from = 0;
    int64_t last = rank ? step[rank - 1] : 0;
    for (int64_t i = 0; i < count; i += row) {
        for (int64_t j = 0; j < row; j++)
            out[i + j] = mod[from + j * last];
        for (uint32_t a = rank > 1 ? rank - 1 : 0; a-- > 0;) {
            from += step[a];
            if (++at[a] < type->dims[a].value)
                break;
            from -= step[a] * at[a];
            at[a] = 0;
        }
    }
    return out;
}

/* A number that no variable stands for has at most so many bits, numerator and common denominator
 * together (constant.c). */
static const double bits_of_number = 62.5, bits_of_prime = 30;

void po_prun_compared(po_prun *run, po_psize size, double times, double more) {
    double degree = times * size.degree + more, terms = times * size.terms + 1;
    run->degree = fmax(run->degree, degree);
    run->chances += 8 * degree + 1;
    run->factors += (bits_of_number * degree + terms) / bits_of_prime;
}

void po_pn_function(po_pnode *n, po_ptensor *out) {
    po_psize size = {0, 0};
    for (uint32_t k = 0; k < n->node->n_in; k++)
        if (n->in[k])
            size = po_psize_larger(size, po_pb_total(&n->in[k]->bound));
    po_prun_compared(n->run, size, 1, 0);
    out->bound = po_pb_symbol(n->run);
}

po_pnum po_pn_float(const po_pnode *n, const char *name) {
    float v = po_op_float(n->graph, n->node, name);
    return (po_pnum){true, po_pc_residue(n->run, v, PO_F32, true), v};
}

po_pnum po_pn_input_number(const po_pnode *n, uint32_t k) {
    po_pnum number = {0};
    po_ptensor *in = po_pn_in(n, k);
    if (in) {
        po_pt_mod(in);
        po_pt_number(in, &number);
    }
    return number;
}

bool po_pn_ints(const po_pnode *n, uint32_t input, const char *attr, uint32_t *count,
                const int64_t **values) {
    *count = 0;
    *values = NULL;
    const po_ptensor *in = po_pn_in(n, input);
    if (in) {
        if (!in->known || !in->known->i || in->count > UINT32_MAX)
            return false;
        *count = (uint32_t)in->count;
        *values = in->known->i;
    } else if (attr && po_node_attr(n->node, attr)) {
        *values = po_node_ints(n->node, attr, count);
    }
    return true;
}

/* --- identity --- */

typedef struct named_attr {
    const char *name;
    po_attr attr;
} named_attr;

static bool holds(const po_attr_def *d, int64_t opset) {
    return d->since <= opset && (!d->until || opset <= d->until);
}

static po_hash hash_attr(po_hash h, const po_attr *a) {
    h = po_hash_str(h, a->name);
    if (a->kind == PO_ATTR_GRAPH) {
        po_hash body = po_graph_hash(a->u.g);
        return po_hash_u64(po_hash_u64(h, body.lo), body.hi);
    }
    po_hash v = po_attr_hash(a);
    return po_hash_u64(po_hash_u64(h, v.lo), v.hi);
}

po_hash po_pn_identity(const po_pnode *n) {
    const po_node *node = n->node;
    const po_op_row *row = po_op_row_of(node->op);
    po_hash h = po_hash_str(po_hash_str((po_hash){n->run->seed, 1}, node->op_type), node->domain);
    po_hash operator= po_graph_operator_hash(n->graph, node);
    h = po_hash_u64(po_hash_u64(h, operator.lo), operator.hi);
    po_hash sum = {0, 0}; /* order-free: names are distinct */
    for (uint32_t i = 0; i < node->n_attr; i++) {
        po_hash a = hash_attr(h, &node->attr[i]);
        sum.lo += a.lo;
        sum.hi += a.hi;
    }
    for (const po_attr_def *d = row ? row->attrs : NULL; d && d->name; d++) {
        if (!d->has_default || !holds(d, n->opset) || po_node_attr(node, d->name))
            continue;
        po_attr value = {.name = d->name, .kind = d->kind, .n = 1};
        if (d->kind == PO_ATTR_INT)
            value.u.i = d->i;
        else if (d->kind == PO_ATTR_FLOAT)
            value.u.f = d->f;
        else
            value.u.s = (po_bytes){d->s, strlen(d->s)};
        po_hash a = hash_attr(h, &value);
        sum.lo += a.lo;
        sum.hi += a.hi;
    }
    h = po_hash_u64(po_hash_u64(h, sum.lo), sum.hi);
    return po_hash_u64(po_hash_u64(h, node->n_out), (uint64_t)n->opset);
}
