/* Each statement has a plan (steps of its accesses by label, tests, the innermost label by cost)
 * and runs in stretches along that label. Elements are stamped with the chunk that wrote them, so
 * that reading what was not written fails. */
#include "mugraph/run.h"

/* --- storage --- */

/* The ring is there from the start on. */
static const uint32_t ring_stamp = UINT32_MAX;

static void stamp_ring(po_mu_store *s, const po_mu_tensor *t) {
    for (int64_t at = 0; at < s->count; at++)
        for (uint32_t x = 0; x < t->rank; x++) {
            int64_t i = at / s->stride[x] % s->extent[x];
            if (i < t->before[x] || i >= s->extent[x] - t->after[x])
                s->stamp[at] = ring_stamp;
        }
}

static po_status make_stores(po_mu_run *run) {
    const po_mu *mu = run->mu;
    run->stores = PO_NEW_N(run->arena, po_mu_store, mu->n_tensors + 1);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        po_mu_store *s = &run->stores[i];
        s->count = s->n_inside = 1;
        for (uint32_t x = t->rank; x-- > 0;) {
            int64_t least, held;
            po_mu_held(mu, i, x, &least, &held);
            s->stride[x] = s->count;
            s->first[x] = least - t->before[x];
            s->extent[x] = t->before[x] + held + t->after[x];
            s->n_inside *= held;
            if (__builtin_mul_overflow(s->count, s->extent[x], &s->count) || s->count > (int64_t)1
                                                                                            << 33)
                return po_fail(run->ctx, PO_UNSUPPORTED,
                               "muGraph '%s': tensor '%s' is too large to evaluate", mu->name,
                               t->name);
        }
        /* Written here, since pages that are read first are made twice. */
        if (t->place == PO_MU_OUTPUT || t->place >= PO_MU_DEVICE) {
            s->stamp = po_arena_alloc(run->arena, (size_t)s->count * sizeof *s->stamp);
            memset(s->stamp, 0, (size_t)s->count * sizeof *s->stamp);
        }
        s->chunk = 1;
        if (s->stamp && s->n_inside < s->count)
            stamp_ring(s, t);
        run->store(run, i);
    }
    return PO_OK;
}

/* Starts the storage of the tensors of a scope anew. */
static void enter(po_mu_run *run, uint32_t scope, bool is_step) {
    const po_mu *mu = run->mu;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        bool scoped = t->place == PO_MU_SHARED || t->place == PO_MU_REGISTER;
        if (!scoped || (t->scope != scope && !(is_step && t->scope == PO_NONE)))
            continue;
        run->stores[i].chunk++;
        run->stores[i].n_written = 0;
    }
}

static void write_stamps(po_mu_store *s, int64_t at, int64_t step, int64_t n) {
    for (int64_t k = 0; k < n && s->stamp; k++)
        if (s->stamp[at + k * step] != s->chunk) {
            s->stamp[at + k * step] = s->chunk;
            s->n_written++;
        }
}

/* --- plans --- */

/* The label that costs least as the innermost one: elements side by side are cheap, far ones are
 * not, and each stretch has its own cost. */
static uint32_t innermost(const po_mu *mu, const po_mu_plan *p) {
    uint32_t best = 0;
    double least = 0;
    for (uint32_t j = 0; j < p->n_labels; j++) {
        uint32_t loop = po_mu_binder(mu, p->node, p->label[j]);
        int64_t extent = loop != PO_NONE ? po_mu_chunk(mu, loop) : mu->labels[p->label[j]].extent;
        double cost = 24 / (double)extent;
        for (uint32_t k = 0; k < p->n_accesses; k++) {
            int64_t step = p->step[k][j] < 0 ? -p->step[k][j] : p->step[k][j];
            cost += step == 0 ? 0.25 : step == 1 ? 1 : step < 8 ? 2 : 4;
        }
        if (j == 0 || cost < least) {
            least = cost;
            best = j;
        }
    }
    return best;
}

static const po_mu_access *access_of(const po_mu_statement *s, uint32_t k) {
    return k < s->n_in ? &s->in[k] : &s->out;
}

/* Steps of each access by label, and where its storage starts. */
static void fill_steps(po_mu_run *run, po_mu_plan *p) {
    const po_mu *mu = run->mu;
    for (uint32_t k = 0; k < p->n_accesses; k++) {
        const po_mu_access *access = access_of(p->s, k);
        const po_mu_store *store = &run->stores[access->tensor];
        int64_t *step = PO_NEW_N(run->arena, int64_t, p->n_labels);
        bool *is_local = PO_NEW_N(run->arena, bool, p->n_labels);
        p->base[k] = 0;
        for (uint32_t x = 0; x < mu->tensors[access->tensor].rank; x++) {
            p->base[k] += (access->axes[x].offset - store->first[x]) * store->stride[x];
            for (uint32_t j = 0; j < p->n_labels; j++)
                if (p->label[j] != PO_NONE)
                    step[j] += po_mu_coef(&access->axes[x], p->label[j]) * store->stride[x];
        }
        for (uint32_t j = 0; j < p->n_labels; j++)
            is_local[j] = p->label[j] != PO_NONE && po_mu_local(mu, access->tensor, p->label[j]);
        p->step[k] = step;
        p->is_local[k] = is_local;
    }
}

static void fill_guards(po_mu_run *run, po_mu_plan *p) {
    const po_mu *mu = run->mu;
    uint32_t most = 0;
    for (uint32_t k = 0; k < p->n_accesses; k++)
        most += mu->tensors[access_of(p->s, k)->tensor].rank;
    po_mu_guard *guards = PO_NEW_N(run->arena, po_mu_guard, most + 1);
    for (uint32_t i = 0; i < p->n_accesses; i++) {
        uint32_t k = i ? i - 1 : p->n_accesses - 1; /* what is written first */
        const po_mu_access *access = access_of(p->s, k);
        const po_mu_tensor *t = &mu->tensors[access->tensor];
        if (po_mu_edge_of(mu, p->node, k < p->s->n_in ? k : PO_NONE) != PO_MU_GUARD)
            continue;
        for (uint32_t x = 0; x < t->rank; x++) {
            int64_t least, high;
            po_mu_range(mu, access, x, &least, &high);
            if (least >= 0 && high < t->dims[x])
                continue;
            int64_t *coef = PO_NEW_N(run->arena, int64_t, p->n_labels);
            for (uint32_t j = 0; j < p->n_labels; j++)
                if (p->label[j] != PO_NONE)
                    coef[j] = po_mu_coef(&access->axes[x], p->label[j]);
            guards[p->n_guards++] = (po_mu_guard){access->axes[x].offset, t->dims[x], coef};
        }
        if (i == 0)
            p->n_out_guards = p->n_guards;
    }
    p->guards = guards;
}

static void make_plan(po_mu_run *run, uint32_t node) {
    const po_mu *mu = run->mu;
    const po_mu_statement *s = &mu->nodes[node].statement;
    po_mu_plan *p = PO_NEW(run->arena, po_mu_plan);
    uint32_t n_kept, n_reduced, *kept, *reduced;
    po_mu_labels_of(mu, s, run->arena, &n_kept, &kept, &n_reduced, &reduced);
    p->s = s;
    p->node = node;
    p->n_accesses = s->n_in + 1;
    p->n_labels = n_kept + n_reduced;
    uint32_t *label = PO_NEW_N(run->arena, uint32_t, p->n_labels + 1);
    memcpy(label, kept, n_kept * sizeof *label);
    memcpy(label + n_kept, reduced, n_reduced * sizeof *label);
    if (!p->n_labels)
        label[p->n_labels++] = PO_NONE;
    p->label = label;
    fill_steps(run, p);
    if (label[0] != PO_NONE) {
        uint32_t in = innermost(mu, p), l = label[in];
        memmove(label + in, label + in + 1, (p->n_labels - in - 1) * sizeof *label);
        label[p->n_labels - 1] = l;
        fill_steps(run, p);
    }
    fill_guards(run, p);
    uint32_t *places = PO_NEW_N(run->arena, uint32_t, p->n_labels);
    for (uint32_t j = 0; j < p->n_labels; j++)
        for (uint32_t i = 0; i < n_kept; i++)
            if (label[j] == kept[i])
                places[p->n_kept++] = j;
    p->kept = places;
    uint32_t *all = PO_NEW_N(run->arena, uint32_t, p->n_labels);
    for (uint32_t j = 0; j < p->n_labels; j++)
        all[j] = j;
    p->all = all;
    p->scratch = PO_NEW_N(run->arena, int64_t, p->n_guards + p->n_labels);
    for (uint32_t i = 0; i < n_reduced; i++) {
        uint32_t loop = po_mu_binder(mu, node, reduced[i]);
        if (loop != PO_NONE && mu->nodes[loop].loop == PO_MU_FOR)
            p->outer[p->n_outer++] = reduced[i];
    }
    run->plans[node] = p;
}

/* --- a statement --- */

static po_status unwritten(po_mu_run *run, const po_mu_plan *p, uint32_t tensor, int64_t at) {
    const po_mu *mu = run->mu;
    const po_mu_store *s = &run->stores[tensor];
    po_text where;
    po_text_init(&where, run->arena);
    for (uint32_t x = 0; x < mu->tensors[tensor].rank; x++)
        po_text_printf(&where, "%s%lld", x ? ", " : "",
                       (long long)(at / s->stride[x] % s->extent[x] + s->first[x]));
    po_mu_checker c = {run->ctx, mu, run->arena, p->node, NULL};
    return po_mu_bad(&c, "element [%s] of '%s' is read and was not written", where.data,
                     mu->tensors[tensor].name);
}

static po_status are_written(po_mu_run *run, const po_mu_plan *p, uint32_t tensor, int64_t at,
                             int64_t step, int64_t n) {
    const po_mu_store *s = &run->stores[tensor];
    if (!s->stamp || s->n_written == s->n_inside)
        return PO_OK;
    for (int64_t k = 0; k < (step ? n : 1); k++)
        if (s->stamp[at + k * step] != s->chunk && s->stamp[at + k * step] != ring_stamp)
            return unwritten(run, p, tensor, at + k * step);
    return PO_OK;
}

static po_status stretch(po_mu_run *run, const po_mu_plan *p, const int64_t *at,
                         const int64_t *step, int64_t n, bool beginning) {
    uint32_t out = p->n_accesses - 1;
    po_mu_store *written = &run->stores[p->s->out.tensor];
    if (beginning) {
        run->begin(run, p, at[out], step[out], n);
        write_stamps(written, at[out], step[out], n);
        return PO_OK;
    }
    for (uint32_t k = 0; k < p->s->n_in; k++)
        PO_TRY(are_written(run, p, p->s->in[k].tensor, at[k], step[k], n));
    if (p->s->combine != PO_MU_SET)
        PO_TRY(are_written(run, p, p->s->out.tensor, at[out], step[out], n));
    PO_TRY(run->inner(run, p, at, step, n));
    if (p->s->combine == PO_MU_SET)
        write_stamps(written, at[out], step[out], n);
    return PO_OK;
}

static void chunk_of(const po_mu_run *run, uint32_t label, int64_t *start, int64_t *size) {
    *start = label == PO_NONE ? 0 : run->start[label];
    *size = label == PO_NONE ? 1 : run->size[label];
}

/* The iterations over the labels at `places`, the last of them innermost. */
static po_status nest(po_mu_run *run, const po_mu_plan *p, const uint32_t *places, uint32_t n,
                      uint32_t n_guards, bool beginning) {
    int64_t at[PO_MU_ACCESSES], step[PO_MU_ACCESSES];
    int64_t *guard = p->scratch, *value = guard + p->n_guards, start, size;
    for (uint32_t k = 0; k < p->n_accesses; k++)
        at[k] = p->base[k];
    for (uint32_t g = 0; g < n_guards; g++)
        guard[g] = p->guards[g].offset;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = places[i];
        chunk_of(run, p->label[j], &start, &size);
        value[i] = 0;
        for (uint32_t k = 0; k < p->n_accesses; k++)
            at[k] += p->is_local[k][j] ? 0 : p->step[k][j] * start;
        for (uint32_t g = 0; g < n_guards; g++)
            guard[g] += p->guards[g].coef[j] * start;
    }
    for (uint32_t k = 0; k < p->n_accesses; k++)
        step[k] = n ? p->step[k][places[n - 1]] : 0;
    int64_t length = 1;
    if (n)
        chunk_of(run, p->label[places[n - 1]], &start, &length);
    for (;;) {
        int64_t low = 0, high = length; /* of the innermost, where every guard holds */
        for (uint32_t g = 0; g < n_guards && low < high; g++) {
            int64_t c = n ? p->guards[g].coef[places[n - 1]] : 0, v = guard[g];
            int64_t room = p->guards[g].dim - 1 - v, a = 0, b;
            if (c == 0)
                b = v >= 0 && room >= 0 ? length : 0;
            else if (c > 0) {
                a = v < 0 ? (-v + c - 1) / c : 0;
                b = room < 0 ? 0 : room / c + 1;
            } else {
                a = room < 0 ? (-room - c - 1) / -c : 0;
                b = v < 0 ? 0 : v / -c + 1;
            }
            low = a > low ? a : low;
            high = b < high ? b : high;
        }
        if (low < high) {
            int64_t from[PO_MU_ACCESSES];
            for (uint32_t k = 0; k < p->n_accesses; k++)
                from[k] = at[k] + low * step[k];
            PO_TRY(stretch(run, p, from, step, high - low, beginning));
        }
        /* The next of the outer labels. */
        uint32_t i = n ? n - 1 : 0;
        while (i > 0) {
            uint32_t j = places[i - 1];
            chunk_of(run, p->label[j], &start, &size);
            bool carry = ++value[i - 1] == size;
            int64_t move = carry ? 1 - size : 1;
            for (uint32_t k = 0; k < p->n_accesses; k++)
                at[k] += move * p->step[k][j];
            for (uint32_t g = 0; g < n_guards; g++)
                guard[g] += move * p->guards[g].coef[j];
            if (!carry)
                break;
            value[--i] = 0;
        }
        if (i == 0)
            return PO_OK;
    }
}

/* Whether it may run as a whole: no loop around it cuts a label, nothing read is missing. */
static bool is_whole(const po_mu_run *run, const po_mu_plan *p) {
    if (!run->whole || !p->s->fresh || p->s->combine == PO_MU_SET || p->n_out_guards > 0)
        return false;
    for (uint32_t j = 0; j < p->n_labels; j++)
        if (p->label[j] != PO_NONE &&
            (run->start[p->label[j]] != 0 ||
             run->size[p->label[j]] != run->mu->labels[p->label[j]].extent))
            return false;
    for (uint32_t k = 0; k < p->s->n_in; k++) {
        const po_mu_store *s = &run->stores[p->s->in[k].tensor];
        if (s->stamp && s->n_written != s->n_inside)
            return false;
    }
    return true;
}

static po_status statement(po_mu_run *run, const po_mu_plan *p) {
    bool first = p->s->fresh && p->s->combine != PO_MU_SET;
    for (uint32_t i = 0; i < p->n_outer; i++)
        first = first && run->start[p->outer[i]] == 0;
    if (first)
        PO_TRY(nest(run, p, p->kept, p->n_kept, p->n_out_guards, true));
    if (first && is_whole(run, p) && run->whole(run, p))
        return PO_OK;
    return nest(run, p, p->all, p->n_labels, p->n_guards, false);
}

/* --- the tree --- */

static po_status block(po_mu_run *run, uint32_t parent);

static po_status loop(po_mu_run *run, uint32_t node) {
    const po_mu_node *n = &run->mu->nodes[node];
    int64_t chunk = po_mu_chunk(run->mu, node), extent = run->mu->labels[n->label].extent;
    int64_t count = (extent - 1) / chunk + 1;
    for (int64_t i = 0; i < count; i++) {
        /* Chunks of a grid in the other order: nothing may hang on it. */
        int64_t start = (n->loop == PO_MU_GRID ? count - 1 - i : i) * chunk;
        run->start[n->label] = start;
        run->size[n->label] = extent - start < chunk ? extent - start : chunk;
        enter(run, node, false);
        PO_TRY(block(run, node));
        PO_TRY(po_ctx_poll(run->ctx));
    }
    run->start[n->label] = 0;
    run->size[n->label] = extent;
    return PO_OK;
}

static po_status block(po_mu_run *run, uint32_t parent) {
    for (uint32_t n = run->mu->nodes[parent].first; n != PO_NONE; n = run->mu->nodes[n].next) {
        if (run->mu->nodes[n].kind == PO_MU_STATEMENT)
            PO_TRY(statement(run, run->plans[n]));
        else
            PO_TRY(loop(run, n));
    }
    return PO_OK;
}

po_status po_mu_run_all(po_mu_run *run) {
    const po_mu *mu = run->mu;
    po_mu_checker c = {run->ctx, mu, run->arena, PO_NONE, NULL};
    PO_TRY(po_mu_check_parts(&c));
    PO_TRY(po_mu_check_values(&c));
    PO_TRY(po_mu_check_scopes(&c));
    run->start = PO_NEW_N(run->arena, int64_t, mu->n_labels + 1);
    run->size = PO_NEW_N(run->arena, int64_t, mu->n_labels + 1);
    for (uint32_t l = 0; l < mu->n_labels; l++)
        run->size[l] = mu->labels[l].extent;
    PO_TRY(make_stores(run));
    run->plans = PO_NEW_N(run->arena, po_mu_plan *, mu->n_nodes + 1);
    for (uint32_t n = 0; n < mu->n_nodes; n++)
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            make_plan(run, n);
    for (uint32_t step = mu->first; step != PO_NONE; step = mu->nodes[step].next) {
        enter(run, step, true);
        PO_TRY(block(run, step));
    }
    c.node = PO_NONE;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_OUTPUT &&
            run->stores[i].n_written < run->stores[i].n_inside)
            return po_mu_bad(&c, "%lld elements of output '%s' were not written",
                             (long long)(run->stores[i].n_inside - run->stores[i].n_written),
                             mu->tensors[i].name);
    return PO_OK;
}
