/* Parts of both models at the lengths tried, modulo the run's prime; and what values are in it. */
#include "verify/sizes/internal.h"

#include <stdio.h>

/* --- their residues --- */

/* The same elements in another shape; NULL where they are not as many. */
static po_ptensor *viewed(po_prun *run, po_ptensor *of, const po_type *t) {
    return po_type_count(t) == of->count
               ? po_pt_view(run, of, of->dtype, t->rank, po_pn_dims(run->arena, t))
               : NULL;
}

/* With channels of zeros behind. */
static po_ptensor *padded(po_prun *run, po_ptensor *of, const po_type *t, int64_t channels) {
    const int64_t count = po_type_count(t);
    const uint32_t *mod = po_pt_mod(of);
    if (!mod || count < 1 || t->rank < 2 || count / t->dims[1].value * channels != of->count)
        return NULL;
    po_ptensor *out = po_pt_residues(run, of->dtype, t->rank, po_pn_dims(run->arena, t));
    const int64_t row = count / t->dims[0].value, kept = row / t->dims[1].value * channels;
    for (int64_t n = 0; n < t->dims[0].value; n++)
        memcpy(&out->mod[n * row], &mod[n * kept], (size_t)kept * sizeof *mod);
    out->bound = of->bound;
    return out;
}

/* As a value of that type is made of it, which has channels of zeros behind so many (0: none). */
static po_ptensor *shaped(po_prun *run, po_ptensor *of, const po_type *t, int64_t channels) {
    return channels ? padded(run, of, t, channels) : viewed(run, of, t);
}

static po_status evaluate_side(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                               const po_pieces *part, uint32_t side, po_ptensor **leaves,
                               po_varying *varying, po_ptensor **out) {
    const po_cone *c = &part->side[side];
    po_ptensor *tensors[PO_CONE_LEAVES] = {NULL};
    const po_graph *g = s->sized[side].at[PO_MAKEUP_SIZES - 1];
    po_status status = PO_OK;
    for (uint32_t i = 0; i < c->n_leaves && status == PO_OK; i++) {
        tensors[i] = shaped(run, leaves[c->leaf[i]], &g->values[c->leaves[i]].type,
                            po_sizes_channels(s, side, c->leaves[i]));
        if (!tensors[i])
            status = po_pfail(run, "a leaf has another number of elements");
    }
    po_pgraph_spec spec = {.graph = g};
    if (side == 1) {
        spec.constant_at = candidate->constant_at;
        spec.constants = candidate->constants;
    }
    run->side = side;
    *varying = (po_varying){.open = s->sized[side].open, .cone = c, .arena = run->arena};
    for (uint32_t i = 0; i < c->n_leaves && status == PO_OK; i++)
        po_varying_record(varying, c->leaves[i], tensors[i]);
    spec.record = po_varying_record;
    spec.user = varying;
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

static bool same_residues(po_ptensor *a, po_ptensor *b) {
    const uint32_t *x = po_pt_mod(a), *y = po_pt_mod(b);
    return x && y && a->dtype == b->dtype && a->count > 0 && a->count == b->count &&
           memcmp(x, y, (size_t)a->count * sizeof *x) == 0;
}

/* The candidate's value is the original's, in another shape perhaps, or with channels of zeros. */
static bool same_targets(const po_sizes *s, po_prun *run, const po_pieces *part,
                         po_ptensor *const *out) {
    const po_cone *c = &part->side[1];
    const po_type *t = &s->sized[1].at[PO_MAKEUP_SIZES - 1]->values[c->target].type;
    po_ptensor *as_b = shaped(run, out[0], t, c->channels);
    const bool same = as_b && same_residues(as_b, out[1]);
    po_pt_drop(as_b);
    return same;
}

static po_ptensor *random_leaf(po_prun *run, const po_type *t, uint32_t class, uint32_t turn) {
    po_ptensor *leaf = po_pt_residues(run, t->dtype, t->rank, po_pn_dims(run->arena, t));
    const uint64_t key = po_pf_key(run, "leaf") ^ ((class * 2u + turn) * 0x9e3779b97f4a7c15u);
    for (int64_t k = 0; k < leaf->count; k++)
        leaf->mod[k] = po_pf(run->field, key, (uint64_t)k);
    leaf->bound = po_pb_symbol(run);
    return leaf;
}

/* With leaves of their own each turn. */
static po_status evaluate_once(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                               const po_pieces *part, uint32_t turn, po_varying *varying /* 2 */,
                               bool *same, char *why, size_t size) {
    po_ptensor *leaves[PO_CONE_LEAVES] = {NULL}, *out[2] = {NULL, NULL};
    po_status status = PO_OK;
    *same = false;
    for (uint32_t i = 0; i < part->n_leaves && status == PO_OK; i++) {
        const po_size_class *l = &s->classes[part->leaves[i]];
        const po_type *t = &s->sized[l->side].at[PO_MAKEUP_SIZES - 1]->values[l->value].type;
        if (po_type_count(t) < 0 || po_dtype_class_of(t->dtype) == PO_CLASS_NONE) {
            status = PO_UNSUPPORTED;
            snprintf(why, size, "the shape of '%.80s' is not known",
                     po_sizes_value(s, l->side, l->value)->name);
            break;
        }
        leaves[i] = random_leaf(run, t, part->leaves[i], turn);
    }
    for (uint32_t side = 0; side < 2 && status == PO_OK; side++)
        status = evaluate_side(s, run, candidate, part, side, leaves, &varying[side], &out[side]);
    if (status == PO_OK) {
        for (uint32_t side = 0; side < 2; side++)
            po_prun_compared(run, po_pb_total(&out[side]->bound), 1, 0);
        *same = same_targets(s, run, part, out);
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

po_status po_pieces_evaluate(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                             const po_pieces *part, bool *same, char *why, size_t size) {
    po_varying first[2] = {{0}}, second[2] = {{0}};
    PO_TRY(evaluate_once(s, run, candidate, part, 0, first, same, why, size));
    if (*same && (first[0].n_met || first[1].n_met))
        PO_TRY(evaluate_once(s, run, candidate, part, 1, second, same, why, size));
    for (uint32_t side = 0; side < 2 && *same; side++)
        if (po_varying_same(&first[side], &second[side])) {
            *same = false;
            snprintf(why, size,
                     "exponentials of what need not differ along an open axis are added up");
        }
    return PO_OK;
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

void po_sizes_record(po_sizes *s, uint32_t side, po_pgraph_spec *spec) {
    spec->record = record;
    spec->user = &s->recording[side];
}
