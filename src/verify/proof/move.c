/* Elements that only move, indexed sums, and functions of which nothing is known. */
#include "verify/proof/internal.h"

#include "base/num.h"
#include "ops/sem/sem.h"

#include <math.h>

/* --- movement: by the operator's reference, on doubles that hold residues --- */

static po_array *as_doubles(po_pnode *n, po_ptensor *t) {
    po_array *a = PO_NEW(n->arena, po_array);
    const uint32_t *mod = po_pt_mod(t);
    *a = (po_array){.dtype = PO_F64, .rank = t->rank, .count = t->count};
    a->dims = po_arena_memdup(n->arena, t->dims, t->rank * sizeof *t->dims);
    a->f = PO_NEW_N(n->arena, double, t->count);
    for (int64_t i = 0; i < t->count; i++)
        a->f[i] = mod[i];
    return a;
}

/* The first input moves, others say where to. */
static bool gathers(po_op_id op) {
    return op == PO_OP_Gather || op == PO_OP_GatherElements || op == PO_OP_GatherND ||
           op == PO_OP_Slice;
}

static bool only_moves(const po_pnode *n) {
    switch (n->node->op) {
    case PO_OP_ScatterElements:
    case PO_OP_ScatterND:
        return po_node_string_is(n->node, "reduction", "none", "none");
    default:
        return po_op_has(n->node->op, PO_OPF_MOVES_DATA);
    }
}

po_status po_pn_move(po_pnode *n) {
    if (!only_moves(n))
        return PO_UNSUPPORTED;
    uint32_t n_in = n->node->n_in;
    const po_array **in = PO_NEW_N(n->arena, const po_array *, n_in);
    po_array **out = PO_NEW_N(n->arena, po_array *, n->node->n_out);
    po_pbound bound = po_pb_constant(0);
    bool first = true;
    for (uint32_t k = 0; k < n_in; k++) {
        po_ptensor *t = n->in[k];
        if (!t)
            continue;
        bool number = po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT || !t->known ||
                      (k == 0 && po_pn_symbolic(n) && gathers(n->node->op));
        if (number && !po_pt_mod(t))
            return PO_UNSUPPORTED;
        in[k] = number ? as_doubles(n, t) : t->known;
        if (number)
            bound = first ? po_pb_moved(&t->bound) : po_pb_either(n->run, &bound, &t->bound);
        first = first && !number;
    }
    po_status status = po_ref_node(n->run->ctx, n->arena, n->graph, n->node, in, out);
    if (status != PO_OK)
        return status;
    for (uint32_t k = 0; k < n->node->n_out; k++) {
        if (n->node->out[k] == PO_NONE || !out[k])
            continue;
        if (!out[k]->f || po_dtype_class_of(n->type[k].dtype) == PO_CLASS_NONE)
            return PO_UNSUPPORTED;
        po_ptensor *t = po_pt_residues(n->run, n->type[k].dtype, out[k]->rank, out[k]->dims);
        for (int64_t i = 0; i < t->count; i++)
            t->mod[i] = (uint32_t)out[k]->f[i];
        t->bound = bound;
        n->out[k] = t;
    }
    return PO_OK;
}

/* --- indexed sums --- */

/* Bits of numerators and of their common denominator. */
static double bits_of(int64_t n, const po_rational *numbers) {
    double bits = 0;
    int64_t common = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t den = numbers[i].den;
        bits = fmax(bits, log2(fabs((double)numbers[i].num) + 1));
        if (common % den == 0)
            continue;
        if (!po_mul_i64(common, den / po_gcd_i64(common, den), &common))
            return 63 * (double)n; /* more than any */
    }
    return bits + log2((double)common);
}

/* Of what the sum makes. */
static void bound_of(po_pnode *n, const po_sum *sum, po_ptensor *out) {
    po_pbound all = po_pb_constant(0);
    for (uint32_t i = 0; i < sum->n_terms; i++) {
        po_pbound term = po_pb_constant(0);
        uint32_t tables = 0, factors = sum->terms[i].n_factors;
        double bits = bits_of(1, &sum->terms[i].scale);
        for (uint32_t k = 0; k < factors; k++) {
            const po_operand *op = &sum->operands[sum->terms[i].factor[k].operand];
            if (op->kind == PO_OPERAND_TABLE) {
                tables++;
                bits += bits_of(op->count, op->table);
            } else if (k == tables)
                term = po_pb_moved(&n->in[op->input]->bound);
            else
                term = po_pb_product(n->run, &term, &n->in[op->input]->bound);
        }
        term.size.terms += bits;
        all = i ? po_pb_either(n->run, &all, &term) : term;
    }
    /* Elements that only move, or several at one place. */
    double each = out->count ? po_sum_iterations(sum) / (double)out->count : 0;
    bool moves = po_op_has(n->node->op, PO_OPF_MOVES_DATA) || (sum->n_terms == 1 && each <= 1);
    out->bound = moves ? all : po_pb_several(&all, each);
}

static po_status constants_of(po_pnode *n, const po_tensor **constant) {
    enum { MOST = 1 << 16 };
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        po_tensor *t;
        if (!n->in[k] || !n->in[k]->known || n->in[k]->known->s || n->in[k]->count > MOST)
            continue;
        PO_TRY(po_array_to_tensor(n->run->ctx, n->arena, n->in[k]->known, &t));
        constant[k] = t;
    }
    return PO_OK;
}

po_status po_pn_sum(po_pnode *n) {
    const po_node *node = n->node;
    const po_op_row *row = po_op_row_of(node->op);
    if (!row || !row->sem)
        return PO_UNSUPPORTED;
    const po_type **in = PO_NEW_N(n->arena, const po_type *, node->n_in);
    const po_type **out = PO_NEW_N(n->arena, const po_type *, node->n_out);
    const po_tensor **constant = PO_NEW_N(n->arena, const po_tensor *, node->n_in);
    const uint32_t **mod = PO_NEW_N(n->arena, const uint32_t *, node->n_in);
    po_sum **sums = PO_NEW_N(n->arena, po_sum *, node->n_out);
    for (uint32_t k = 0; k < node->n_in; k++) {
        po_ptensor *t = n->in[k];
        if (!t)
            continue;
        po_type type = po_type_tensor_i64(n->arena, t->dtype, t->rank, t->dims);
        in[k] = po_arena_memdup(n->arena, &type, sizeof type);
        mod[k] = po_pt_mod(t);
    }
    for (uint32_t k = 0; k < node->n_out; k++)
        if (node->out[k] != PO_NONE)
            out[k] = &n->type[k];
    PO_TRY(constants_of(n, constant));
    PO_TRY(po_sem_node(n->run->ctx, n->arena, n->graph, node, in, constant, out, sums));
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == PO_NONE)
            continue;
        if (!sums[k])
            return PO_UNSUPPORTED;
        for (uint32_t i = 0; i < sums[k]->n_operands; i++) {
            const po_operand *op = &sums[k]->operands[i];
            if (op->kind == PO_OPERAND_RSQRT || op->kind == PO_OPERAND_RECIPROCAL ||
                (op->kind == PO_OPERAND_INPUT && !mod[op->input]))
                return PO_UNSUPPORTED;
        }
        if (!po_prun_affordable(n->run, po_sum_iterations(sums[k])))
            return po_prun_late(n->run);
        po_ptensor *t = po_pn_out(n, k);
        PO_TRY(po_sum_eval_mod(n->arena, n->run->field, sums[k], mod, t->mod));
        bound_of(n, sums[k], t);
    }
    return PO_OK;
}

/* --- opaque --- */

po_hash po_pn_print(po_pnode *n) {
    po_hash h = po_pn_identity(n);
    h = po_hash_u64(po_hash_u64(h, n->captured.lo), n->captured.hi);
    for (uint32_t k = 0; k < n->node->n_in; k++) {
        po_hash p = n->in[k] ? po_pt_print(n->in[k]) : (po_hash){0, 0};
        h = po_hash_u64(po_hash_u64(h, p.lo), p.hi);
    }
    return h;
}

/* Every element a random function of operator, attributes, inputs and place. */
/* For the sentence that says why two models differ. */
static void count_opaque(po_prun *run, const char *op_type) {
    uint32_t i = 0;
    while (i < run->n_opaque && strcmp(run->opaque[i].op_type, op_type) != 0)
        i++;
    if (i == PO_MOST_OPAQUE)
        return;
    if (i == run->n_opaque)
        run->opaque[run->n_opaque++] = (po_popaque){op_type, {0, 0}};
    run->opaque[i].n[run->side]++;
}

po_status po_pn_opaque(po_pnode *n) {
    po_hash h = po_pn_print(n);
    count_opaque(n->run, n->node->op_type);
    for (uint32_t k = 0; k < n->node->n_out; k++) {
        if (n->node->out[k] == PO_NONE)
            continue;
        if (po_dtype_class_of(n->type[k].dtype) == PO_CLASS_NONE || po_type_count(&n->type[k]) < 0)
            return PO_UNSUPPORTED;
        po_ptensor *t = po_pn_out(n, k);
        for (int64_t i = 0; i < t->count; i++)
            t->mod[i] = po_pf(n->run->field, h.lo + k, h.hi + (uint64_t)i);
        po_pn_function(n, t);
    }
    return PO_OK;
}
