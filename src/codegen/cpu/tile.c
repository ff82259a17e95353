/* The text of one statement on a tile: rows and vectors whose values are in registers. */
#include "codegen/cpu/tile.h"
#include "codegen/cpu/lanes.h"

/* Vector operations at most where reduced labels are unrolled. */
enum { UNROLLED = 160, BRIEF = 40 };

const char *cg_name(cg *g, const char *what, uint32_t number, bool by_row, int64_t r, bool by_lane,
                    int64_t v) {
    if (by_row && by_lane)
        return po_arena_printf(g->arena, "%s%u_%lld_%lld", what, number, (long long)r,
                               (long long)v);
    if (by_row)
        return po_arena_printf(g->arena, "%s%u_%lld", what, number, (long long)r);
    if (by_lane)
        return po_arena_printf(g->arena, "%s%u__%lld", what, number, (long long)v);
    return po_arena_printf(g->arena, "%s%u", what, number);
}

static const char *type_of(bool vector) {
    return vector ? "pk_v" : "float";
}

/* How many lanes of vector v count; NULL: all. */
static const char *tail_of(const cg_tile_work *w, int64_t v) {
    return v + 1 == w->v ? w->tail : NULL;
}

/* The same of what is written. */
static const char *written_tail(const cg_tile_work *w, int64_t v) {
    return v + 1 == w->t->v ? w->t->tail : NULL;
}

static const char *lanes_or(const cg_tile_work *w, const char *tail) {
    const cg *g = w->t->g;
    return tail ? tail : po_arena_printf(g->arena, "%lld", (long long)g->isa->lanes);
}

/* --- operands --- */

static bool is_turned(const cg_tile_work *w, const po_mu_access *access) {
    const cg *g = w->t->g;
    return w->t->row != PO_NONE && w->t->r > 1 && w->t->lane != PO_NONE &&
           cg_step_of(g, access, w->t->lane) != 1 && cg_step_of(g, access, w->t->lane) != 0 &&
           cg_step_of(g, access, w->t->row) == 1;
}

static const char *pointer(cg_tile_work *w, uint32_t k, int64_t r, int64_t v) {
    cg *g = w->t->g;
    cg_place(w, r, v);
    const char *rest = cg_rest(g, &w->s->in[k]);
    cg_unplace(w);
    return po_arena_printf(g->arena, "%s%s", w->base[k], rest);
}

/* Rows of vectors along the lanes, out of memory where the rows lie side by side. */
static void load_turned(cg_tile_work *w, uint32_t k) {
    cg *g = w->t->g;
    int64_t lanes = g->isa->lanes;
    const char *step = cg_step_text(g, &w->s->in[k], w->t->lane);
    for (int64_t v = 0; v < w->v; v++)
        for (int64_t r = 0; r < w->t->r; r += lanes) {
            int64_t n = w->t->r - r < lanes ? w->t->r - r : lanes;
            const char *tail = tail_of(w, v);
            for (int64_t i = r; i < r + n; i++)
                cg_line(g, "pk_v %s;", cg_name(g, "x", k, true, i, true, v));
            cg_brace(g);
            cg_line(g, "pk_v u[%lld];", (long long)lanes);
            const char *p = pointer(w, k, r, v);
            for (int64_t i = 0; i < lanes; i++) {
                const char *there =
                    tail ? po_arena_printf(g->arena, "%lld >= %s ? pk_set(0.0f) : ", (long long)i,
                                           tail)
                         : "";
                if (n == lanes)
                    cg_line(g, "u[%lld] = %spk_load(%s + %lld * %s);", (long long)i, there, p,
                            (long long)i, step);
                else
                    cg_line(g, "u[%lld] = %spk_load_n(%s + %lld * %s, %lld);", (long long)i, there,
                            p, (long long)i, step, (long long)n);
            }
            cg_line(g, "pk_turn(u);");
            for (int64_t i = 0; i < n; i++)
                cg_line(g, "%s = u[%lld];", cg_name(g, "x", k, true, r + i, true, v), (long long)i);
            cg_close(g);
        }
}

/* Whether each row reads item i, a vector that is the same for all of them. The compiler is kept
 * from making it again for each. */
static bool is_for_rows(const cg_tile_work *w, uint32_t i) {
    if (w->item_row[i] || !w->item_lane[i] || !w->result_row || w->t->r == 1 || w->unroll == 0)
        return false;
    for (uint32_t j = i + 1; j < w->s->n_items; j++) {
        const po_mu_item *it = &w->s->items[j];
        const uint32_t of[3] = {it->a, it->b, it->c};
        for (uint32_t a = 0; w->item_row[j] && a < po_mu_arity(it->function); a++)
            if (of[a] == i)
                return true;
    }
    return i + 1 == w->s->n_items;
}

static bool is_loaded_for_rows(const cg_tile_work *w, uint32_t k) {
    for (uint32_t i = 0; i < w->s->n_items; i++)
        if (w->s->items[i].function == PO_MU_OPERAND && w->s->items[i].a == k && is_for_rows(w, i))
            return true;
    return false;
}

static void load_one(cg_tile_work *w, uint32_t k, int64_t r, int64_t v) {
    cg *g = w->t->g;
    const po_mu_access *access = &w->s->in[k];
    const char *name = cg_name(g, "x", k, w->in_row[k], r, w->in_lane[k], v);
    const char *p = pointer(w, k, r, v);
    if (!w->in_lane[k]) {
        cg_line(g, "const float %s = *(%s);", name, p);
        return;
    }
    int64_t step = cg_step_of(g, access, w->t->lane);
    const char *tail = tail_of(w, v);
    if (step == 1 && !tail)
        cg_line(g, "pk_v %s = pk_load(%s);", name, p);
    else if (step == 1)
        cg_line(g, "pk_v %s = pk_load_n(%s, %s);", name, p, tail);
    else
        cg_line(g, "pk_v %s = pk_gather(%s, %s, %s);", name, p, cg_step_text(g, access, w->t->lane),
                lanes_or(w, tail));
    if (is_loaded_for_rows(w, k))
        cg_line(g, "PK_HOLD(%s);", name);
}

static const char *operand_name(cg_tile_work *w, uint32_t k, int64_t r, int64_t v) {
    cg *g = w->t->g;
    if (cg_is_held(w, k))
        return cg_name(g, "v", g->tensor[w->s->in[k].tensor].number, w->in_row[k], r, w->in_lane[k],
                       v);
    return cg_name(g, "x", k, w->in_row[k], r, w->in_lane[k], v);
}

/* --- items --- */

static const char *item_name(cg_tile_work *w, uint32_t i, int64_t r, int64_t v, bool *vector) {
    cg *g = w->t->g;
    const po_mu_item *it = &w->s->items[i];
    *vector = w->item_lane[i];
    if (it->function == PO_MU_CONST)
        return cg_constant(g, it->value);
    if (it->function == PO_MU_OPERAND)
        return operand_name(w, it->a, r, v);
    return cg_name(g, "e", i, w->item_row[i], r, w->item_lane[i], v);
}

static void compute(cg_tile_work *w, uint32_t i, int64_t r, int64_t v) {
    cg *g = w->t->g;
    const po_mu_item *it = &w->s->items[i];
    const char *argument[3] = {"", "", ""};
    bool vector[3] = {false, false, false};
    uint32_t n = po_mu_arity(it->function);
    const uint32_t of[3] = {it->a, it->b, it->c};
    for (uint32_t a = 0; a < n; a++)
        argument[a] = item_name(w, of[a], r, v, &vector[a]);
    bool hold = is_for_rows(w, i);
    const char *name = cg_name(g, "e", i, w->item_row[i], r, w->item_lane[i], v);
    cg_line(g, "%s%s %s = %s;", hold ? "" : "const ", type_of(w->item_lane[i]), name,
            cg_item(g, w->s, i, argument, vector));
    if (hold)
        cg_line(g, "PK_HOLD(%s);", name);
}

/* Loads and computes what depends on the row, or what does not. */
static void operands_and_items(cg_tile_work *w, bool by_row, int64_t r) {
    for (uint32_t k = 0; k < w->s->n_in; k++)
        if (!cg_is_held(w, k) && w->in_row[k] == by_row && !is_turned(w, &w->s->in[k]))
            for (int64_t v = 0; v < (w->in_lane[k] ? w->v : 1); v++)
                load_one(w, k, r, v);
    for (uint32_t i = 0; i < w->s->n_items; i++) {
        const po_mu_item *it = &w->s->items[i];
        if (it->function != PO_MU_CONST && it->function != PO_MU_OPERAND &&
            w->item_row[i] == by_row && !cg_is_gate(w->s, i))
            for (int64_t v = 0; v < (w->item_lane[i] ? w->v : 1); v++)
                compute(w, i, r, v);
    }
}

/* --- memory --- */

static const char *out_pointer(cg_tile_work *w, const char *base, int64_t r, int64_t v) {
    cg *g = w->t->g;
    cg_place(w, r, v);
    const char *rest = cg_rest(g, &w->s->out);
    cg_unplace(w);
    return po_arena_printf(g->arena, "%s%s", base, rest);
}

static const char *from_memory(cg_tile_work *w, const char *base, int64_t r, int64_t v,
                               bool vector) {
    cg *g = w->t->g;
    const char *p = out_pointer(w, base, r, v);
    if (!vector)
        return po_arena_printf(g->arena, "*(%s)", p);
    const char *tail = written_tail(w, v);
    if (cg_step_of(g, &w->s->out, w->t->lane) == 1)
        return tail ? po_arena_printf(g->arena, "pk_load_n(%s, %s)", p, tail)
                    : po_arena_printf(g->arena, "pk_load(%s)", p);
    return po_arena_printf(g->arena, "pk_gather(%s, %s, %s)", p,
                           cg_step_text(g, &w->s->out, w->t->lane), lanes_or(w, tail));
}

static void store_turned(cg_tile_work *w, const char *base) {
    cg *g = w->t->g;
    int64_t lanes = g->isa->lanes;
    const char *step = cg_step_text(g, &w->s->out, w->t->lane);
    for (int64_t v = 0; v < w->t->v; v++)
        for (int64_t r = 0; r < w->t->r; r += lanes) {
            int64_t n = w->t->r - r < lanes ? w->t->r - r : lanes;
            const char *tail = written_tail(w, v);
            cg_brace(g);
            cg_line(g, "pk_v u[%lld];", (long long)lanes);
            for (int64_t i = 0; i < lanes; i++)
                cg_line(g, "u[%lld] = %s;", (long long)i,
                        i < n ? cg_name(g, "v", cg_number_of(w), true, r + i, true, v)
                              : "pk_set(0.0f)");
            cg_line(g, "pk_turn(u);");
            const char *p = out_pointer(w, base, r, v);
            for (int64_t i = 0; i < lanes; i++) {
                const char *there =
                    tail ? po_arena_printf(g->arena, "if (%lld < %s) ", (long long)i, tail) : "";
                if (n == lanes)
                    cg_line(g, "%spk_store(%s + %lld * %s, u[%lld]);", there, p, (long long)i, step,
                            (long long)i);
                else
                    cg_line(g, "%spk_store_n(%s + %lld * %s, u[%lld], %lld);", there, p,
                            (long long)i, step, (long long)i, (long long)n);
            }
            cg_close(g);
        }
}

static void store_row(cg_tile_work *w, const char *base, int64_t r, bool by_row, bool by_lane) {
    cg *g = w->t->g;
    for (int64_t v = 0; v < (by_lane ? w->t->v : 1); v++) {
        const char *p = out_pointer(w, base, r, v);
        const char *x = cg_name(g, "v", cg_number_of(w), by_row, r, by_lane, v);
        int64_t step = by_lane ? cg_step_of(g, &w->s->out, w->t->lane) : 0;
        const char *tail = written_tail(w, v);
        if (!by_lane)
            cg_line(g, "*(%s) = %s;", p, x);
        else if (step == 1 && !tail)
            cg_line(g, "pk_store(%s, %s);", p, x);
        else if (step == 1)
            cg_line(g, "pk_store_n(%s, %s, %s);", p, x, tail);
        else
            cg_line(g, "pk_scatter(%s, %s, %s, %s);", p, cg_step_text(g, &w->s->out, w->t->lane), x,
                    lanes_or(w, tail));
    }
}

static void store(cg_tile_work *w, const char *base, bool by_row, bool by_lane) {
    if (by_lane && is_turned(w, &w->s->out)) {
        store_turned(w, base);
        return;
    }
    for (int64_t r = 0; r < (by_row ? w->t->r : 1); r++)
        store_row(w, base, r, by_row, by_lane);
}

/* --- the value --- */

static void take_row(cg_tile_work *w, int64_t r) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    for (int64_t v = 0; v < (w->result_lane ? w->v : 1); v++) {
        bool vector;
        const char *e = item_name(w, s->n_items - 1, r, v, &vector);
        const char *to =
            cg_name(g, w->result, cg_number_of(w), w->result_row, r, w->result_lane, v);
        const char *tail = w->t->lane_reduced ? tail_of(w, v) : NULL;
        if (w->result_lane && !vector)
            e = po_arena_printf(g->arena, "pk_set(%s)", e);
        const char *one = w->result_lane ? "" : "1";
        if (tail)
            e = po_arena_printf(g->arena, "pk_keep(%s, %s, %s)", e,
                                s->combine == PO_MU_ADD ? "0.0f" : "-__builtin_inff()", tail);
        if (s->combine == PO_MU_SET)
            cg_line(g, "%s = %s;", to, e);
        else if (s->combine == PO_MU_ADD)
            cg_line(g, "%s += %s;", to, e);
        else
            cg_line(g, "%s = pk_max%s(%s, %s);", to, one, to, e);
    }
}

static po_status body(cg_tile_work *w) {
    cg *g = w->t->g;
    cg_brace(g);
    if (!w->t->lane_reduced && w->s->combine == PO_MU_ADD)
        cg_hide_rows(w, w->unroll, w->n_reduced);
    if (w->stride > 0)
        cg_fetch_for(w, 1);
    for (uint32_t k = 0; k < w->s->n_in; k++)
        if (!cg_is_held(w, k) && is_turned(w, &w->s->in[k]))
            load_turned(w, k);
    operands_and_items(w, false, 0);
    for (int64_t r = 0; r < (w->result_row ? w->t->r : 1); r++) {
        operands_and_items(w, true, r);
        take_row(w, r);
        if (w->at_once != NULL)
            store_row(w, w->at_once, r, w->result_row, w->result_lane);
    }
    cg_close(g);
    return PO_OK;
}

static po_status lane_block(void *user, cg_steps steps) {
    cg_tile_work *w = user;
    int64_t lanes = w->t->g->isa->lanes;
    w->v = (steps.n + lanes - 1) / lanes;
    w->tail = cg_tail_of(w->t->g, steps);
    if (!w->t->led)
        return body(w);
    cg_tile lead = *w->t;
    lead.led = lead.lane_reduced = false;
    lead.v = w->v;
    lead.tail = w->tail;
    cg_brace(w->t->g);
    PO_TRY(cg_on_tile(&lead, w->t->lead, false));
    PO_TRY(body(w));
    cg_close(w->t->g);
    w->t->g->tensor[w->t->g->mu->nodes[w->t->lead].statement.out.tensor].held = false;
    return PO_OK;
}

static po_status reduced(cg_tile_work *w);

/* The values of the label at hand one after the other. */
static po_status unrolled(cg_tile_work *w) {
    cg *g = w->t->g;
    uint32_t label = w->reduced[w->at];
    const cg_span *span = &g->span[label];
    int64_t block = cg_sum_block(w, w->at), extent = g->mu->labels[label].extent;
    const char *whole = NULL;
    bool *done = w->done;
    w->at++;
    w->ready[label] = true;
    for (int64_t i = 0; i < span->full; i++) {
        if (block > 0 && i % block == 0)
            whole = cg_sum_start(w);
        g->value[label] = (cg_value){span->start, i, i, extent - span->full + i, true};
        w->done = po_arena_memdup(g->arena, done,
                                  (size_t)(PO_MU_MAX_INPUTS + 1) * PO_MU_MAX_RANK * sizeof *done);
        PO_TRY(reduced(w));
        if (block > 0 && ((i + 1) % block == 0 || i + 1 == span->full))
            cg_sum_end(w, whole);
    }
    w->done = done;
    return PO_OK;
}

/* Bodies of a loop that are printed side by side; 1: it stays as it is. Counting and branching take
 * a fifth of what a core hands out to its units when twelve products make a body: free on a core of
 * one's own, and not where another thread of the processor shares it. */
static int64_t side_by_side(const cg_tile_work *w, const cg_span *span) {
    enum { SMALL = 12, LEAST = 16 };
    const int64_t vectors = w->t->r * w->t->v;
    if (w->at + 1 != w->n_reduced || w->unroll != w->n_reduced || w->t->lane_reduced ||
        !w->result_lane || w->t->r < w->t->rows || (span->count == NULL && span->full < LEAST))
        return 1;
    return vectors > SMALL ? 2 : 4;
}

/* The values of the label at hand in a loop. */
static po_status looped(cg_tile_work *w) {
    cg *g = w->t->g;
    uint32_t label = w->reduced[w->at], braces = 1;
    const cg_span *span = &g->span[label];
    const int64_t sum = cg_sum_block(w, w->at), times = side_by_side(w, span);
    const int64_t stride = w->stride;
    const bool fetches = times > 1 && stride > 0 && sum == 0;
    const int64_t block = fetches ? cg_fetch_block(w, span) : sum;
    const char *whole = NULL;
    if (block > 0) {
        cg_run_blocks(g, label, block);
        if (fetches) {
            cg_fetch_for(w, block);
            w->stride = 0;
        }
        if (sum > 0)
            whole = cg_sum_start(w);
    }
    if (times > 1)
        cg_line(g, "PK_UNROLL(%lld)", (long long)times);
    if (block > 0)
        cg_run_block(g, label, block);
    else
        braces = cg_run(g, label, true);
    w->at++;
    w->ready[label] = true;
    if (w->at == w->unroll && w->at < w->n_reduced)
        cg_hide_rows(w, w->at - 1, w->at);
    PO_TRY(reduced(w));
    while (braces-- > 0)
        cg_close(g);
    if (sum > 0)
        cg_sum_end(w, whole);
    if (block > 0)
        cg_close(g);
    w->stride = stride;
    return PO_OK;
}

static po_status reduced(cg_tile_work *w) {
    cg *g = w->t->g;
    uint32_t braces = cg_guards(g, w->node, w->ready, w->done);
    if (w->at == w->n_reduced) {
        if (w->t->lane_reduced)
            PO_TRY(cg_spread(g, w->t->lane, w->t->lanes, g->isa->lanes, true, lane_block, w));
        else
            PO_TRY(body(w));
    } else {
        bool apart = cg_sum_apart(w, w->at);
        const char *whole = apart ? cg_sum_start(w) : NULL;
        PO_TRY(w->at >= w->unroll ? unrolled(w) : looped(w));
        w->at--;
        w->ready[w->reduced[w->at]] = false;
        if (apart)
            cg_sum_end(w, whole);
    }
    while (braces-- > 0)
        cg_close(g);
    return PO_OK;
}

/* The reduced labels, in their order, and how far from the inside they are unrolled. */
static void set_reduced(cg_tile_work *w) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    uint32_t n_kept, *kept, n, *all;
    po_mu_labels_of(g->mu, s, g->arena, &n_kept, &kept, &n, &all);
    w->reduced = PO_NEW_N(g->arena, uint32_t, n + 1);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < (pass == 0 ? s->n_order : n); i++) {
            uint32_t label = pass == 0 ? s->order[i] : all[i];
            bool is = false, has = label == w->t->lane;
            for (uint32_t j = 0; j < n; j++)
                is |= all[j] == label;
            for (uint32_t j = 0; j < w->n_reduced; j++)
                has |= w->reduced[j] == label;
            if (is && !has)
                w->reduced[w->n_reduced++] = label;
        }
    w->unroll = w->n_reduced;
    /* Of rows whose number is open the smaller blocks are for the last few: they run the loops that
     * whole ones run, or most of what is compiled would be theirs. */
    const bool open = w->t->row != PO_NONE && g->span[w->t->row].open;
    int64_t total = (open ? w->t->rows : w->t->r) * w->t->v;
    const int64_t most = g->brief ? BRIEF : UNROLLED;
    while (w->unroll > 0 && !w->t->lane_reduced) {
        const cg_span *span = &g->span[w->reduced[w->unroll - 1]];
        if (span->count != NULL || total * span->full > most)
            break;
        total *= span->full;
        w->unroll--;
    }
    for (uint32_t i = 0; i < n_kept; i++)
        w->ready[kept[i]] = true;
    for (uint32_t i = 0; i < n; i++)
        w->ready[all[i]] = false;
}

static void set_dependence(cg_tile_work *w) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    w->item_row = PO_NEW_N(g->arena, bool, s->n_items + 1);
    w->item_lane = PO_NEW_N(g->arena, bool, s->n_items + 1);
    for (uint32_t k = 0; k < s->n_in; k++) {
        const cg_tensor *held = &g->tensor[s->in[k].tensor];
        w->in_row[k] = held->held ? held->by_row : cg_has_row(w->t, &s->in[k]);
        w->in_lane[k] = held->held
                            ? held->by_lane
                            : w->t->lane != PO_NONE && po_mu_has(g->mu, &s->in[k], w->t->lane);
    }
    for (uint32_t i = 0; i < s->n_items; i++) {
        const po_mu_item *it = &s->items[i];
        const uint32_t of[3] = {it->a, it->b, it->c};
        if (it->function == PO_MU_OPERAND) {
            w->item_row[i] = w->in_row[it->a];
            w->item_lane[i] = w->in_lane[it->a];
        }
        for (uint32_t a = 0; a < po_mu_arity(it->function); a++) {
            w->item_row[i] |= w->item_row[of[a]];
            w->item_lane[i] |= w->item_lane[of[a]];
        }
    }
}

/* --- one statement --- */

/* Declares and starts the variables that the statement's value is made in. */
static void start_values(cg_tile_work *w, const char *base, bool by_row, bool by_lane) {
    cg *g = w->t->g;
    const po_mu_statement *s = w->s;
    const char *zero = s->combine == PO_MU_ADD ? "0.0f" : "-__builtin_inff()", *condition;
    bool fresh = cg_starts(g, s, &condition) && !w->t->started;
    if (w->t->lane_reduced) {
        int64_t n_v = w->t->lanes / g->isa->lanes;
        cg_each_value(w, "a", by_row, true, n_v, "pk_v ",
                      po_arena_printf(g->arena, "pk_set(%s)", zero));
    }
    if (by_lane)
        zero = po_arena_printf(g->arena, "pk_set(%s)", zero);
    const char *type = by_lane ? "pk_v " : "float ";
    if (s->combine == PO_MU_SET || condition != NULL || !fresh)
        cg_each_value(w, "v", by_row, by_lane, w->t->v, type, "");
    else
        cg_each_value(w, "v", by_row, by_lane, w->t->v, type, zero);
    if (s->combine == PO_MU_SET || (fresh && condition == NULL))
        return;
    if (fresh) {
        cg_open(g, "if (%s)", condition);
        cg_each_value(w, "v", by_row, by_lane, w->t->v, "", zero);
        g->depth--;
        cg_open(g, "} else");
    }
    for (int64_t r = 0; r < (by_row ? w->t->r : 1); r++)
        for (int64_t v = 0; v < (by_lane ? w->t->v : 1); v++)
            cg_line(g, "%s = %s;", cg_name(g, "v", cg_number_of(w), by_row, r, by_lane, v),
                    from_memory(w, base, r, v, by_lane));
    if (fresh)
        cg_close(g);
}

po_status cg_on_tile(cg_tile *t, uint32_t node, bool guarded) {
    cg *g = t->g;
    cg_tile_work w = {
        .t = t, .node = node, .s = &g->mu->nodes[node].statement, .v = t->v, .tail = t->tail};
    const po_mu_tensor *out = &g->mu->tensors[w.s->out.tensor];
    w.ready = PO_NEW_N(g->arena, bool, g->mu->n_labels + 1);
    w.done = PO_NEW_N(g->arena, bool, (PO_MU_MAX_INPUTS + 1) * PO_MU_MAX_RANK);
    set_reduced(&w);
    set_dependence(&w);
    bool by_row = cg_has_row(t, &w.s->out);
    bool by_lane = t->lane != PO_NONE && !t->lane_reduced && po_mu_has(g->mu, &w.s->out, t->lane);
    if (w.s->combine == PO_MU_SET && (w.n_reduced > 0 || t->lane_reduced))
        return po_fail(g->ctx, PO_UNSUPPORTED,
                       "step '%s': '%s' is set once for each of its reduced labels", g->step,
                       out->name);
    /* Labels that run inside this statement. */
    for (uint32_t i = 0; i < w.n_reduced; i++)
        g->value[w.reduced[i]].inner = true;
    if (t->lane_reduced)
        g->value[t->lane].inner = true;

    /* Of what is added up or compared single terms are left out, in reduced(). */
    uint32_t braces = 0;
    bool *own = PO_NEW_N(g->arena, bool, (PO_MU_MAX_INPUTS + 1) * PO_MU_MAX_RANK);
    for (uint32_t i = 0; i < (PO_MU_MAX_INPUTS + 1) * PO_MU_MAX_RANK; i++) {
        bool reads = i < w.s->n_in * PO_MU_MAX_RANK, single = w.s->combine != PO_MU_SET;
        own[i] = !guarded || (reads && single);
        w.done[i] = !(reads && single);
    }
    const char *base = NULL;
    if (out->place != PO_MU_REGISTER) {
        base = po_arena_printf(g->arena, "o%u", cg_number_of(&w));
        cg_line(g, "float *const %s = %s;", base, cg_base(g, &w.s->out));
    }
    braces += cg_guards(g, node, w.ready, own);
    start_values(&w, base, by_row, by_lane);
    if (!guarded && w.n_reduced > 0 && t->row != PO_NONE && t->lane != PO_NONE && !t->lane_reduced)
        cg_fetch_fused(&w);
    cg_brace(g);
    const po_mu_statement *lead = t->led ? &g->mu->nodes[t->lead].statement : NULL;
    for (uint32_t k = 0; k < w.s->n_in; k++)
        if (!cg_is_held(&w, k) && (lead == NULL || w.s->in[k].tensor != lead->out.tensor)) {
            w.base[k] = po_arena_printf(g->arena, "p%u", k);
            cg_line(g, "const float *p%u = %s;", k, cg_base(g, &w.s->in[k]));
            if (guarded)
                cg_line(g, "PK_HIDE(p%u);", k);
        }
    if (w.s->combine == PO_MU_SET && base != NULL && !(by_lane && is_turned(&w, &w.s->out)))
        w.at_once = base;
    cg_fetch_ahead(&w);
    w.result = t->lane_reduced ? "a" : "v";
    w.result_row = by_row;
    w.result_lane = t->lane_reduced || by_lane;
    w.sum = cg_sum_of(&w);
    PO_TRY(reduced(&w));
    cg_close(g);
    if (t->lane_reduced)
        cg_sum_lanes(&w, by_row);
    if (base != NULL && w.at_once == NULL)
        store(&w, base, by_row, by_lane);
    g->tensor[w.s->out.tensor].held = true;
    g->tensor[w.s->out.tensor].by_row = by_row;
    g->tensor[w.s->out.tensor].by_lane = by_lane;
    while (braces-- > 0)
        cg_close(g);
    return PO_OK;
}
