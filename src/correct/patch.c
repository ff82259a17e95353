/* Compute, then patch: the boxes that differ are computed by the original operators on slices, and
 * put over the mutant's output by Concat. Axes of which only some residue classes differ are seen
 * as two: quotient and residue. */
#include "base/num.h"
#include "correct/ways.h"
#include "ops/rewrite.h"
#include "ops/sem/sem.h"

enum { MOST_BOXES = 16, MOST_ROWS = 6 }; /* of an output; where taken position by position */
static const double most_share = 0.5;    /* of the original's work that patches may repeat */

/* An output seen with two axes for one where boxes have steps. */
typedef struct view {
    uint32_t rank, n;                  /* of the output; of the view */
    int64_t dims[PO_RT_MAX_RANK];      /* of the output */
    int64_t step[PO_RT_MAX_RANK];      /* by output axis */
    uint32_t axis[2 * PO_RT_MAX_RANK]; /* output axis of an axis of the view */
    bool residue[2 * PO_RT_MAX_RANK];  /* the lower of the two */
    int64_t size[2 * PO_RT_MAX_RANK];
} view;

/* [lo, hi) along every axis of a view. */
typedef struct cell {
    int64_t lo[2 * PO_RT_MAX_RANK], hi[2 * PO_RT_MAX_RANK];
} cell;

typedef struct patcher {
    po_correcting *c;
    po_restrictor *r;
    po_graph *g;
    view v;
    cell *cells; /* disjoint */
    po_value_id *patch;
    uint32_t n, cap;
    po_value_id whole; /* the mutant's output as the view has it */
    po_dtype dtype;
} patcher;

static bool set_view(view *v, const po_type *type, const po_box_list *boxes, bool plain) {
    v->rank = type->rank;
    if (v->rank > PO_RT_MAX_RANK)
        return false;
    for (uint32_t x = 0; x < v->rank; x++) {
        v->dims[x] = type->dims[x].value;
        v->step[x] = 1;
        for (uint32_t k = 0; k < boxes->n; k++) {
            const po_box *b = &boxes->boxes[k];
            int64_t step = b->count[x] > 1 ? b->step[x] : 1;
            if (step == 1 || plain)
                continue;
            if (step < 1 || (v->step[x] != 1 && v->step[x] != step))
                return false;
            v->step[x] = step;
        }
    }
    for (uint32_t x = 0; x < v->rank; x++) {
        v->axis[v->n] = x;
        v->residue[v->n] = false;
        v->size[v->n++] = po_ceil_div(v->dims[x], v->step[x]);
        if (v->step[x] == 1)
            continue;
        v->axis[v->n] = x;
        v->residue[v->n] = true;
        v->size[v->n++] = v->step[x];
    }
    return v->n <= PO_RT_MAX_RANK;
}

/* The axis' boxes in the view: of a run, whole rows of residues and what is left at its ends. */
static uint32_t split_run(int64_t first, int64_t count, int64_t step, int64_t parts[3][4]) {
    uint32_t n = 0;
    int64_t end = first + count, q = first / step, last = (end - 1) / step;
    if (first % step || q == last) {
        int64_t to = q == last ? (end - 1) % step + 1 : step;
        parts[n][0] = q;
        parts[n][1] = q + 1;
        parts[n][2] = first % step;
        parts[n++][3] = to;
        q++;
    }
    int64_t full = end / step;
    if (full > q) {
        parts[n][0] = q;
        parts[n][1] = full;
        parts[n][2] = 0;
        parts[n++][3] = step;
        q = full;
    }
    if (q <= last) {
        parts[n][0] = q;
        parts[n][1] = q + 1;
        parts[n][2] = 0;
        parts[n++][3] = end % step;
    }
    return n;
}

static bool same_cell(const view *v, const cell *a, const cell *b) {
    for (uint32_t i = 0; i < v->n; i++)
        if (a->lo[i] != b->lo[i] || a->hi[i] != b->hi[i])
            return false;
    return true;
}

/* Cells that differ along one axis, and touch or overlap there, are one. */
static bool merge_cells(const view *v, cell *a, const cell *b) {
    uint32_t differ = 0, at = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (a->lo[i] != b->lo[i] || a->hi[i] != b->hi[i]) {
            differ++;
            at = i;
        }
    if (differ > 1 || (differ && (a->hi[at] < b->lo[at] || b->hi[at] < a->lo[at])))
        return false;
    if (differ) {
        a->lo[at] = a->lo[at] < b->lo[at] ? a->lo[at] : b->lo[at];
        a->hi[at] = a->hi[at] > b->hi[at] ? a->hi[at] : b->hi[at];
    }
    return true;
}

static void merge_all(patcher *p) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t k = i + 1; k < p->n; k++)
                if (merge_cells(&p->v, &p->cells[i], &p->cells[k])) {
                    p->cells[k--] = p->cells[--p->n];
                    changed = true;
                }
    }
}

static void add_box(patcher *p, const po_box *box, uint32_t at, cell *so_far) {
    const view *v = &p->v;
    if (at == v->n) {
        PO_PUSH(p->c->arena, p->cells, p->n, p->cap, *so_far);
        return;
    }
    uint32_t x = v->axis[at];
    int64_t step = v->step[x], first = box->first[x], count = box->count[x];
    if (step == 1) {
        bool runs = count > 1 && box->step[x] > 1; /* each position on its own */
        for (int64_t i = 0; i < (runs ? count : 1) && p->n <= MOST_BOXES; i++) {
            so_far->lo[at] = first + i * box->step[x];
            so_far->hi[at] = so_far->lo[at] + (runs ? 1 : count);
            add_box(p, box, at + 1, so_far);
        }
        return;
    }
    if (box->step[x] == step && count > 1) {
        so_far->lo[at] = first / step;
        so_far->hi[at] = first / step + count;
        so_far->lo[at + 1] = first % step;
        so_far->hi[at + 1] = first % step + 1;
        add_box(p, box, at + 2, so_far);
        return;
    }
    int64_t parts[3][4];
    uint32_t n = split_run(first, count, step, parts);
    for (uint32_t i = 0; i < n; i++) {
        so_far->lo[at] = parts[i][0];
        so_far->hi[at] = parts[i][1];
        so_far->lo[at + 1] = parts[i][2];
        so_far->hi[at + 1] = parts[i][3];
        add_box(p, box, at + 2, so_far);
    }
}

static bool overlap(const view *v, const cell *a, const cell *b) {
    for (uint32_t i = 0; i < v->n; i++)
        if (a->hi[i] <= b->lo[i] || b->hi[i] <= a->lo[i])
            return false;
    return true;
}

static cell everything(const view *v) {
    cell c = {{0}, {0}};
    for (uint32_t i = 0; i < v->n; i++) {
        c.lo[i] = 0;
        c.hi[i] = v->size[i];
    }
    return c;
}

/* Each cell becomes as long as the output on all axes but the one of which it takes least: fewer
 * pieces, more work. */
static void widen_all(patcher *p) {
    const view *v = &p->v;
    for (uint32_t k = 0; k < p->n; k++) {
        double least = 2;
        uint32_t keep = 0;
        for (uint32_t i = 0; i < v->n; i++) {
            double share = (double)(p->cells[k].hi[i] - p->cells[k].lo[i]) / (double)v->size[i];
            if (share < least) {
                least = share;
                keep = i;
            }
        }
        for (uint32_t i = 0; i < v->n; i++)
            if (i != keep) {
                p->cells[k].lo[i] = 0;
                p->cells[k].hi[i] = v->size[i];
            }
    }
    merge_all(p);
}

/* --- the patches --- */

/* The cell's positions that lie in the output; `fits` where that is all of it. */
static bool region_of(const view *v, const cell *c, po_stepped *r) {
    r->rank = v->rank;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t x = v->axis[i];
        int64_t step = v->step[x];
        if (v->residue[i])
            continue;
        r->first[x] = c->lo[i] * step;
        r->step[x] = step;
        r->count[x] = c->hi[i] - c->lo[i];
        if (step == 1)
            continue;
        int64_t lo = c->lo[i + 1], hi = c->hi[i + 1];
        r->first[x] += lo;
        if (hi - lo == 1) {
            int64_t valid = po_ceil_div(v->dims[x] - lo, step) - c->lo[i];
            r->count[x] = r->count[x] < valid ? r->count[x] : valid;
        } else if (hi - lo == step || r->count[x] == 1) {
            r->count[x] = r->count[x] == 1 ? hi - lo : r->count[x] * step;
            r->step[x] = 1;
            int64_t valid = v->dims[x] - r->first[x];
            r->count[x] = r->count[x] < valid ? r->count[x] : valid;
        } else {
            return false; /* several residues, not all: taken one by one */
        }
        if (r->count[x] < 1)
            return false;
    }
    return true;
}

/* A patch, shaped as its cell of the view. */
static const po_rt *patch_rt(po_arena *arena, const view *v, const cell *c, const po_stepped *r) {
    po_rt_digit d[2 * PO_RT_MAX_RANK];
    int64_t size[2 * PO_RT_MAX_RANK], zero[2 * PO_RT_MAX_RANK] = {0};
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t x = v->axis[i];
        bool two = v->step[x] > 1;
        size[i] = c->hi[i] - c->lo[i];
        int64_t below = two && !v->residue[i] ? c->hi[i + 1] - c->lo[i + 1] : 1;
        d[i] = (po_rt_digit){size[i], x, i, below, 1};
    }
    return po_rt_create(arena, &(po_rt){v->rank, v->n, v->n, r->count, size, zero, zero, d});
}

static const po_rt *view_rt(po_arena *arena, const view *v) {
    po_stepped all = {.rank = v->rank};
    cell c = everything(v);
    for (uint32_t x = 0; x < v->rank; x++) {
        all.count[x] = v->dims[x];
        all.step[x] = 1;
    }
    return patch_rt(arena, v, &c, &all);
}

static bool same_counts(const po_stepped *a, const po_stepped *b) {
    for (uint32_t x = 0; x < a->rank; x++)
        if (a->count[x] != b->count[x] || a->step[x] != b->step[x])
            return false;
    return true;
}

/* Patches of equal counts, behind one another on axis 0, by one run of the operators. */
static po_status patch_group(patcher *p, po_value_id output, const po_stepped *regions,
                             const uint32_t *members, uint32_t n, bool *done) {
    po_arena *arena = p->c->arena;
    po_stepped *group = PO_NEW_N(arena, po_stepped, n);
    po_value_id y;
    double flops = p->r->flops;
    for (uint32_t k = 0; k < n; k++)
        group[k] = regions[members[k]];
    PO_TRY(po_restrict(p->r, output, n, group, &y));
    if (y == PO_NONE) {
        p->r->flops = flops;
        return PO_OK;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t m = members[k];
        po_stepped part = group[k];
        int64_t dims[PO_RT_MAX_RANK];
        memcpy(dims, part.count, part.rank * sizeof *dims);
        for (uint32_t x = 0; x < part.rank; x++) {
            part.first[x] = 0;
            part.step[x] = 1;
        }
        const po_rt *shape = patch_rt(arena, &p->v, &p->cells[m], &group[k]);
        if (n > 1) {
            part.first[0] = k * dims[0];
            dims[0] *= n;
            const po_rt *pick = po_stepped_rt(arena, &part, dims);
            shape = pick && shape ? po_rt_compose(arena, pick, shape) : NULL;
        }
        if (!shape || (p->patch[m] = po_rt_emit(p->g, PO_NONE, y, shape)) == PO_NONE)
            return PO_OK;
    }
    *done = true;
    return PO_OK;
}

static po_status make_patches(patcher *p, po_value_id output, bool *done) {
    po_stepped *regions = PO_NEW_N(p->c->arena, po_stepped, p->n);
    uint32_t *members = PO_NEW_N(p->c->arena, uint32_t, p->n);
    p->patch = PO_NEW_N(p->c->arena, po_value_id, p->n);
    memset(p->patch, 0xff, p->n * sizeof *p->patch); /* PO_NONE */
    *done = false;
    for (uint32_t i = 0; i < p->n; i++)
        if (!region_of(&p->v, &p->cells[i], &regions[i]))
            return PO_OK;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->patch[i] != PO_NONE)
            continue;
        uint32_t n = 0;
        bool made = false;
        for (uint32_t k = i; k < p->n; k++)
            if (p->patch[k] == PO_NONE && same_counts(&regions[i], &regions[k]))
                members[n++] = k;
        if (n > 1)
            PO_TRY(patch_group(p, output, regions, members, n, &made));
        if (!made)
            PO_TRY(patch_group(p, output, regions, &i, 1, &made));
        if (!made)
            return PO_OK;
    }
    *done = true;
    return PO_OK;
}

/* --- putting them over the output --- */

static po_value_id slice_cell(patcher *p, po_value_id x, const cell *of, const cell *part) {
    po_stepped r = {.rank = p->v.n};
    int64_t dims[2 * PO_RT_MAX_RANK];
    for (uint32_t i = 0; i < p->v.n; i++) {
        r.first[i] = part->lo[i] - of->lo[i];
        r.step[i] = 1;
        r.count[i] = part->hi[i] - part->lo[i];
        dims[i] = of->hi[i] - of->lo[i];
    }
    const po_rt *rt = po_stepped_rt(p->c->arena, &r, dims);
    return rt ? po_rt_emit(p->g, PO_NONE, x, rt) : PO_NONE;
}

/* Where the cell can be cut along an axis: at ends of the patches in it; between `first` and the
 * cell's end. Patches across a cut are counted. */
static uint32_t cuts_on(const patcher *p, const cell *c, uint32_t axis, int64_t *cuts,
                        uint32_t *across) {
    uint32_t n = 0;
    *across = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        if (!overlap(&p->v, c, &p->cells[k]))
            continue;
        for (int side = 0; side < 2; side++) {
            int64_t at = side ? p->cells[k].hi[axis] : p->cells[k].lo[axis];
            uint32_t i = n;
            if (at <= c->lo[axis] || at >= c->hi[axis])
                continue;
            for (; i && cuts[i - 1] > at; i--)
                cuts[i] = cuts[i - 1];
            if (i && cuts[i - 1] == at) {
                memmove(&cuts[i], &cuts[i + 1], (n - i) * sizeof *cuts);
                continue;
            }
            cuts[i] = at;
            n++;
        }
    }
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t i = 0; i < n; i++)
            *across += overlap(&p->v, c, &p->cells[k]) && p->cells[k].lo[axis] < cuts[i] &&
                       p->cells[k].hi[axis] > cuts[i];
    return n;
}

static po_value_id assemble(patcher *p, const cell *c) {
    uint32_t inside = PO_NONE, n_inside = 0, best = PO_NONE, least = UINT32_MAX;
    for (uint32_t k = 0; k < p->n; k++)
        if (overlap(&p->v, c, &p->cells[k])) {
            inside = k;
            n_inside++;
        }
    cell all = everything(&p->v);
    if (!n_inside)
        return slice_cell(p, p->whole, &all, c);
    int64_t cuts[2 * MOST_BOXES + 1];
    for (uint32_t i = 0; i < p->v.n; i++) {
        uint32_t across, n = cuts_on(p, c, i, cuts, &across);
        if (n && across < least) {
            least = across;
            best = i;
        }
    }
    if (best == PO_NONE) /* one patch covers it */
        return same_cell(&p->v, c, &p->cells[inside])
                   ? p->patch[inside]
                   : slice_cell(p, p->patch[inside], &p->cells[inside], c);
    uint32_t across, n = cuts_on(p, c, best, cuts, &across);
    po_value_id parts[2 * MOST_BOXES + 1];
    cell part = *c;
    for (uint32_t i = 0; i <= n; i++) {
        part.lo[best] = i ? cuts[i - 1] : c->lo[best];
        part.hi[best] = i < n ? cuts[i] : c->hi[best];
        parts[i] = assemble(p, &part);
        if (parts[i] == PO_NONE)
            return PO_NONE;
    }
    int64_t dims[2 * PO_RT_MAX_RANK];
    for (uint32_t i = 0; i < p->v.n; i++)
        dims[i] = c->hi[i] - c->lo[i];
    po_type type = po_type_tensor_i64(p->g->arena, p->dtype, p->v.n, dims);
    po_value_id y = po_add_op(p->g, PO_NONE, PO_OP_Concat, n + 1, parts, &type);
    po_node_set_int(p->g, p->g->values[y].producer, "axis", best);
    return y;
}

/* --- the whole --- */

/* The output under another number, so that its own can be that of the patched one. */
static po_value_id hold(po_graph *g, po_value_id output) {
    po_type type = g->values[output].type;
    po_value_id held = po_graph_add_value(g, NULL, &type);
    while (g->values[output].n_uses) {
        po_use use = g->values[output].uses[0];
        po_graph_set_input(g, use.node, use.input, held);
    }
    po_graph_set_output(g, g->values[output].producer, g->values[output].output, held);
    return held;
}

typedef struct way {
    po_correction kind;
    bool widen, plain; /* plain: residue classes taken position by position */
} way;

static const way ways[] = {
    {PO_CORRECTION_BOXES, false, false},
    {PO_CORRECTION_SLABS, true, false},
    {PO_CORRECTION_ROWS, false, true},
};

/* Patches one output; *done false where that cannot be done, or costs too much. */
static po_status patch_output(patcher *p, uint32_t output, const way *w, double most_flops,
                              bool *done) {
    po_correcting *c = p->c;
    const po_box_list *boxes = &c->agreement->differ[output];
    po_value_id y = p->g->outputs[output];
    const po_type *type = &c->sub->graph->values[c->sub->graph->outputs[output]].type;
    *done = false;
    p->v = (view){0};
    p->n = 0;
    if (!po_type_static(type) || p->g->values[y].producer == PO_NONE ||
        p->g->values[y].n_outputs != 1 || !set_view(&p->v, type, boxes, w->plain))
        return PO_OK;
    p->dtype = type->dtype;
    for (uint32_t k = 0; k < boxes->n; k++) {
        cell empty = {{0}, {0}};
        add_box(p, &boxes->boxes[k], 0, &empty);
    }
    merge_all(p);
    uint32_t exact = p->n;
    if (w->widen)
        widen_all(p);
    cell all = everything(&p->v);
    if ((w->widen && p->n == exact) || p->n > (w->plain ? MOST_ROWS : MOST_BOXES) || p->n == 0)
        return PO_OK;
    for (uint32_t k = 0; k < p->n; k++)
        if (same_cell(&p->v, &p->cells[k], &all))
            return PO_OK; /* nothing of the mutant would be left */
    PO_TRY(make_patches(p, c->sub->graph->outputs[output], done));
    if (!*done || p->r->flops > most_flops) {
        *done = false;
        return PO_OK;
    }
    *done = false;
    const po_rt *there = view_rt(c->arena, &p->v);
    const po_rt *back = there ? po_rt_invert(c->arena, there) : NULL;
    if (!back)
        return PO_OK;
    po_value_id held = hold(p->g, y);
    p->whole = po_rt_emit(p->g, PO_NONE, held, there);
    po_value_id made = p->whole == PO_NONE ? PO_NONE : assemble(p, &all);
    if (made != PO_NONE)
        made = po_rt_emit(p->g, PO_NONE, made, back);
    if (made == PO_NONE)
        return PO_OK;
    po_node_id id = p->g->values[made].producer;
    po_graph_set_output(p->g, id, p->g->values[made].output, y);
    *done = true;
    return PO_OK;
}

/* Operations of what of the program runs each time. */
static po_status count_flops(po_correcting *c, const bool *weight, double *flops) {
    const po_graph *g = c->sub->graph;
    uint32_t n;
    const po_node_id *order = po_graph_order(g, c->arena, &n);
    *flops = 0;
    for (uint32_t k = 0; k < n; k++) {
        const po_node *node = &g->nodes[order[k]];
        if (po_reads_weights(node, weight))
            continue;
        po_sum **sums = PO_NEW_N(c->arena, po_sum *, node->n_out);
        po_status status = po_sem_of(c->ctx, c->arena, g, node, sums);
        if (status == PO_UNSUPPORTED)
            continue;
        PO_TRY(status);
        for (uint32_t i = 0; i < node->n_out; i++)
            *flops += sums[i] ? po_sum_flops(sums[i]) : 0;
    }
    return PO_OK;
}

static po_status try_patches(po_correcting *c, const bool *weight, double flops, const way *w) {
    po_graph *g = po_graph_clone(c->ctx, c->mutant->graph);
    po_restrictor r = {c->ctx, c->arena, c->sub->graph, weight, g, g->inputs, 0, NULL};
    patcher p = {.c = c, .r = &r, .g = g};
    for (uint32_t o = 0; o < g->n_outputs; o++) {
        bool done = true;
        if (c->agreement->differ[o].n)
            PO_TRY(patch_output(&p, o, w, flops * most_share, &done));
        if (!done) {
            po_graph_free(g);
            return PO_OK;
        }
    }
    bool right;
    return po_correct_offer(c, g, w->kind, &right);
}

static bool has_steps(const po_agreement *agreement, uint32_t n_outputs) {
    for (uint32_t o = 0; o < n_outputs; o++)
        for (uint32_t k = 0; k < agreement->differ[o].n; k++) {
            const po_box *b = &agreement->differ[o].boxes[k];
            for (uint32_t x = 0; x < b->rank; x++)
                if (b->count[x] > 1 && b->step[x] > 1)
                    return true;
        }
    return false;
}

po_status po_correct_boxes(po_correcting *c) {
    double flops;
    if (c->agreement->share < 1 - most_share)
        return PO_OK;
    bool steps = has_steps(c->agreement, c->sub->graph->n_outputs);
    const bool *weight = po_weights_of(c->sub->graph, c->arena, c->sub->n_activations);
    PO_TRY(count_flops(c, weight, &flops));
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
        if (steps || !ways[k].plain)
            PO_TRY(try_patches(c, weight, flops, &ways[k]));
    return PO_OK;
}
