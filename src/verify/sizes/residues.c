/* Parts of both models at the lengths tried, modulo the run's prime; and what values are in it. */
#include "verify/sizes/internal.h"

#include <stdio.h>

/* --- their residues --- */

static po_ptensor *viewed(po_prun *run, po_ptensor *leaf, const po_type *t) {
    int64_t dims[PO_MAX_RANK];
    if (po_type_count(t) != leaf->count)
        return NULL;
    for (uint32_t x = 0; x < t->rank; x++)
        dims[x] = t->dims[x].value;
    return po_pt_view(run, leaf, leaf->dtype, t->rank, dims);
}

/* With channels of zeros behind. */
static po_ptensor *padded(po_prun *run, po_ptensor *leaf, const po_type *t, int64_t channels) {
    int64_t dims[PO_MAX_RANK];
    const int64_t count = po_type_count(t);
    if (count < 1 || t->rank < 2 || count / t->dims[1].value * channels != leaf->count)
        return NULL;
    for (uint32_t x = 0; x < t->rank; x++)
        dims[x] = t->dims[x].value;
    po_ptensor *out = po_pt_residues(run, leaf->dtype, t->rank, dims);
    const int64_t inner = count / dims[0] / dims[1];
    for (int64_t n = 0; n < dims[0]; n++)
        memcpy(&out->mod[n * dims[1] * inner], &leaf->mod[n * channels * inner],
               (size_t)(channels * inner) * sizeof *out->mod);
    out->bound = leaf->bound;
    return out;
}

static po_status evaluate_side(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                               const po_pieces *part, uint32_t side, po_ptensor **leaves,
                               po_ptensor **out) {
    const po_cone *c = &part->side[side];
    po_ptensor *tensors[PO_CONE_LEAVES] = {NULL};
    const po_graph *g = s->sized[side].at[PO_MAKEUP_SIZES - 1];
    po_status status = PO_OK;
    for (uint32_t i = 0; i < c->n_leaves && status == PO_OK; i++) {
        const po_type *t = &g->values[c->leaves[i]].type;
        po_ptensor *leaf = leaves[c->leaf[i]];
        const int64_t channels = po_sizes_channels(s, side, c->leaves[i]);
        tensors[i] = channels ? padded(run, leaf, t, channels) : viewed(run, leaf, t);
        if (!tensors[i])
            status = po_pfail(run, "a leaf has another number of elements");
    }
    po_pgraph_spec spec = {.graph = g};
    if (side == 1) {
        spec.constant_at = candidate->constant_at;
        spec.constants = candidate->constants;
    }
    run->side = side;
    const po_ppiece nodes = {.spec = &spec,
                             .n_leaves = c->n_leaves,
                             .leaves = c->leaves,
                             .tensors = tensors,
                             .n_nodes = c->n_nodes,
                             .nodes = c->nodes,
                             .target = c->target};
    if (status == PO_OK)
        status = po_prun_piece(run, &nodes, out);
    for (uint32_t i = 0; i < c->n_leaves; i++)
        po_pt_drop(tensors[i]);
    return status;
}

/* b is a with channels of zeros behind. */
static bool same_within(po_ptensor *a, po_ptensor *b, int64_t channels) {
    const uint32_t *x = po_pt_mod(a), *y = po_pt_mod(b);
    if (!x || !y || a->dtype != b->dtype || b->rank < 2 || b->count < 1 ||
        b->count / b->dims[1] * channels != a->count)
        return false;
    const int64_t inner = b->count / b->dims[0] / b->dims[1];
    for (int64_t n = 0; n < b->dims[0]; n++)
        for (int64_t i = 0; i < b->dims[1] * inner; i++) {
            const uint32_t at = i < channels * inner ? x[n * channels * inner + i] : 0;
            if (y[n * b->dims[1] * inner + i] != at)
                return false;
        }
    return true;
}

static bool same_residues(po_ptensor *a, po_ptensor *b) {
    const uint32_t *x = po_pt_mod(a), *y = po_pt_mod(b);
    return x && y && a->dtype == b->dtype && a->count > 0 && a->count == b->count &&
           memcmp(x, y, (size_t)a->count * sizeof *x) == 0;
}

po_status po_pieces_evaluate(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                             const po_pieces *part, bool *same, char *why, size_t size) {
    po_ptensor *leaves[PO_CONE_LEAVES] = {NULL}, *out[2] = {NULL, NULL};
    po_status status = PO_OK;
    *same = false;
    for (uint32_t i = 0; i < part->n_leaves && status == PO_OK; i++) {
        const po_size_class *l = &s->classes[part->leaves[i]];
        const po_type *t = &s->sized[l->side].at[PO_MAKEUP_SIZES - 1]->values[l->value].type;
        int64_t dims[PO_MAX_RANK];
        if (po_type_count(t) < 0 || po_dtype_class_of(t->dtype) == PO_CLASS_NONE) {
            status = PO_UNSUPPORTED;
            snprintf(why, size, "the shape of '%.80s' is not known",
                     po_sizes_value(s, l->side, l->value)->name);
            break;
        }
        for (uint32_t x = 0; x < t->rank; x++)
            dims[x] = t->dims[x].value;
        leaves[i] = po_pt_residues(run, t->dtype, t->rank, dims);
        const uint64_t key = po_pf_key(run, "leaf") ^ (part->leaves[i] * 0x9e3779b97f4a7c15u);
        for (int64_t k = 0; k < leaves[i]->count; k++)
            leaves[i]->mod[k] = po_pf(run->field, key, (uint64_t)k);
        leaves[i]->bound = po_pb_symbol(run);
    }
    for (uint32_t side = 0; side < 2 && status == PO_OK; side++)
        status = evaluate_side(s, run, candidate, part, side, leaves, &out[side]);
    if (status == PO_OK) {
        for (uint32_t side = 0; side < 2; side++)
            po_prun_compared(run, po_pb_total(&out[side]->bound), 1, 0);
        *same = part->side[1].channels ? same_within(out[0], out[1], part->side[1].channels)
                                       : same_residues(out[0], out[1]);
        if (!*same)
            snprintf(why, size, "for any values of what it is made of, it is not the same");
    } else if (status == PO_UNSUPPORTED) {
        if (run->why[0])
            snprintf(why, size, "%.150s", run->why);
        run->why[0] = '\0';
        run->refused = false;
        status = PO_OK;
    }
    for (uint32_t i = 0; i < part->n_leaves; i++)
        po_pt_drop(leaves[i]);
    po_pt_drop(out[0]);
    po_pt_drop(out[1]);
    return status;
}

/* --- what values are at the lengths of the run --- */

/* Channels behind the last one that is not 0 all over. */
static int64_t channels_of(const po_ptensor *t, const uint32_t *mod) {
    int64_t channels = t->rank >= 3 ? t->dims[1] : 0;
    const int64_t samples = t->rank >= 3 ? t->dims[0] : 0;
    if (t->count == 0 || channels == 0)
        return channels;
    const int64_t inner = t->count / samples / channels, row = inner * channels;
    for (; channels > 0; channels--)
        for (int64_t n = 0; n < samples; n++)
            for (int64_t i = 0; i < inner; i++)
                if (mod[n * row + (channels - 1) * inner + i] != 0)
                    return channels;
    return channels;
}

static void record(void *user, po_value_id v, po_ptensor *t) {
    const po_recording *r = user;
    const uint32_t *mod = po_pt_mod(t);
    if (!mod)
        return;
    const po_hash start = {t->dtype, 1};
    r->s->prints[r->side][v] = po_hash_bytes(mod, (size_t)t->count * sizeof *mod, start);
    const int64_t channels = r->side == 1 ? channels_of(t, mod) : 0;
    if (channels == 0 || channels == t->dims[1])
        return;
    const int64_t inner = t->count / t->dims[0] / t->dims[1];
    po_arena *scratch = po_arena_child(r->s->arena);
    uint32_t *kept = PO_NEW_N(scratch, uint32_t, t->dims[0] * channels * inner);
    for (int64_t n = 0; n < t->dims[0]; n++)
        memcpy(&kept[n * channels * inner], &mod[n * t->dims[1] * inner],
               (size_t)(channels * inner) * sizeof *kept);
    r->s->trimmed[v] =
        po_hash_bytes(kept, (size_t)(t->dims[0] * channels * inner) * sizeof *kept, start);
    r->s->channels[v] = channels;
    po_arena_free(scratch);
}

/* Classes are found in the first trial: later ones need no prints. */
void po_sizes_record(po_sizes *s, uint32_t side, po_pgraph_spec *spec) {
    if (s->trials > 0)
        return;
    spec->record = record;
    spec->user = &s->recording[side];
}
