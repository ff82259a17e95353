/* Tensors of a proof: residues, contents, who uses them. */
#include "verify/proof/internal.h"

#include <stdio.h>

po_status po_pfail(po_prun *run, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!run->why[0])
        vsnprintf(run->why, sizeof run->why, format, args);
    va_end(args);
    return PO_UNSUPPORTED;
}

static po_ptensor *new_tensor(po_prun *run, po_dtype dtype, uint32_t rank, const int64_t *dims) {
    po_arena *arena = po_arena_child(run->arena);
    po_ptensor *t = PO_NEW(arena, po_ptensor);
    t->arena = arena;
    t->field = run->field;
    t->users = 1;
    t->dtype = dtype;
    t->rank = rank;
    t->dims = po_arena_memdup(arena, dims, rank * sizeof *dims);
    t->count = 1;
    for (uint32_t i = 0; i < rank; i++)
        t->count *= dims[i];
    return t;
}

po_ptensor *po_pt_residues(po_prun *run, po_dtype dtype, uint32_t rank, const int64_t *dims) {
    po_ptensor *t = new_tensor(run, dtype, rank, dims);
    t->mod = PO_NEW_N(t->arena, uint32_t, t->count);
    return t;
}

po_ptensor *po_pt_view(po_prun *run, po_ptensor *of, po_dtype dtype, uint32_t rank,
                       const int64_t *dims) {
    po_ptensor *t = new_tensor(run, dtype, rank, dims);
    po_pt_mod(of);
    t->mod = of->mod;
    t->bound = of->bound;
    t->base = po_pt_use(of);
    return t;
}

po_ptensor *po_pt_known(po_prun *run, const po_array *array) {
    po_ptensor *t = new_tensor(run, array->dtype, array->rank, array->dims);
    po_array *a = po_arena_memdup(t->arena, array, sizeof *array);
    size_t n = (size_t)array->count;
    a->dims = po_arena_memdup(t->arena, array->dims, array->rank * sizeof *array->dims);
    if (array->f)
        a->f = po_arena_memdup(t->arena, array->f, n * sizeof *array->f);
    if (array->i)
        a->i = po_arena_memdup(t->arena, array->i, n * sizeof *array->i);
    if (array->s) {
        a->s = po_arena_memdup(t->arena, array->s, n * sizeof *array->s);
        for (size_t k = 0; k < n; k++)
            a->s[k].data = po_arena_memdup(t->arena, a->s[k].data, a->s[k].size);
    }
    t->known = a;
    t->bound = po_pb_numbers(a->f ? 63 : 30);
    if (a->f) {
        t->mod = PO_NEW_N(t->arena, uint32_t, n);
        for (size_t k = 0; k < n; k++)
            t->mod[k] = po_pc_residue(run, a->f[k], a->dtype, n == 1);
    }
    return t;
}

/* Integers beyond what residues tell apart are variables of their own. */
static uint32_t integer_residue(po_field field, int64_t value) {
    if (value > -(1 << 30) && value < 1 << 30)
        return po_field_i64(field, value);
    return po_pf(field, 0x696e74, (uint64_t)value);
}

po_status po_pt_constant(po_prun *run, const po_tensor *tensor, po_ptensor **out) {
    /* What more elements hold is not asked for: they shape no operator. */
    enum { MOST_KNOWN = 1 << 20 };
    po_ptensor *t = new_tensor(run, tensor->dtype, tensor->rank, tensor->dims);
    *out = t;
    t->constant = true;
    t->bound = po_pb_numbers(30);
    po_dtype_class class = po_dtype_class_of(tensor->dtype);
    if (class == PO_CLASS_NONE && tensor->dtype != PO_STR)
        return po_pfail(run, "a constant's element type %s is not modelled",
                        po_dtype_name(tensor->dtype));
    bool large = tensor->count > MOST_KNOWN && tensor->dtype != PO_STR;
    if (class == PO_CLASS_FLOAT) {
        t->mod = PO_NEW_N(t->arena, uint32_t, t->count);
        po_pc_residues(run, tensor, t->mod);
        t->bound = po_pb_constant(1);
    } else if (large) {
        t->mod = PO_NEW_N(t->arena, uint32_t, t->count);
        for (int64_t i = 0; i < t->count; i++)
            t->mod[i] = integer_residue(t->field, po_tensor_int(tensor, i));
    }
    if (!large) {
        po_array *a;
        PO_TRY(po_array_from_tensor(run->ctx, t->arena, tensor, &a));
        t->known = a;
    }
    return PO_OK;
}

void po_pt_drop(po_ptensor *t) {
    while (t && --t->users == 0) {
        po_ptensor *base = t->base;
        po_pt_drop(t->from);
        po_arena_free(t->arena);
        t = base;
    }
}

const uint32_t *po_pt_mod(po_ptensor *t) {
    if (t->mod || !t->known || !t->known->i)
        return t->mod;
    t->mod = PO_NEW_N(t->arena, uint32_t, t->count);
    for (int64_t i = 0; i < t->count; i++)
        t->mod[i] = integer_residue(t->field, t->known->i[i]);
    return t->mod;
}

bool po_pt_number(const po_ptensor *t, po_pnum *number) {
    *number = (po_pnum){0};
    const po_array *a = t->known;
    if (!a || a->s || t->count == 0 || !t->mod)
        return false;
    for (int64_t i = 1; i < t->count; i++)
        if (t->mod[i] != t->mod[0] || (a->f && a->f[i] != a->f[0]))
            return false;
    *number = (po_pnum){true, t->mod[0], a->f ? a->f[0] : (double)a->i[0]};
    return true;
}

po_hash po_pt_print(po_ptensor *t) {
    if (t->printed)
        return t->print;
    po_hash h = {t->count ? (uint64_t)t->count : 0, t->rank};
    for (uint32_t i = 0; i < t->rank; i++)
        h = po_hash_u64(h, (uint64_t)t->dims[i]);
    const uint32_t *mod = po_pt_mod(t);
    if (mod)
        h = po_hash_bytes(mod, (size_t)t->count * sizeof *mod, h);
    else if (t->known && t->known->s)
        for (int64_t i = 0; i < t->count; i++)
            h = po_hash_bytes(t->known->s[i].data, t->known->s[i].size, h);
    t->print = h;
    t->printed = true;
    return h;
}
