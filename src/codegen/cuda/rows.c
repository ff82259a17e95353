/* Sums and maxima: by a thread, by lanes side by side, by the whole block. */
#include "codegen/cuda/internal.h"

static const char *start_of(const po_mu_statement *s) {
    return s->combine == PO_MU_MAXIMUM ? "(-PC_INF)" : "0.0f";
}

static const char *both(cu *c, const po_mu_statement *s, const char *a, const char *b) {
    if (s->combine == PO_MU_SET)
        return b;
    return po_arena_printf(c->arena, s->combine == PO_MU_ADD ? "%s + %s" : "pc_max(%s, %s)", a, b);
}

/* All reduced labels' conditions and those of operands: what an iteration needs to count. */
static const char *counts(cu *c, uint32_t node, bool out) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *all = cu_tail(c, node, n->red, n->n_red);
    for (uint32_t k = 0; k < s->n_in; k++)
        all = cu_and(c, all, cu_inside(c, &s->in[k]));
    return out ? cu_and(c, all, cu_inside(c, &s->out)) : all;
}

/* Adds the value of one iteration, or of several side by side, to `sum`. */
static void add_up(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *operand[PO_MU_MAX_INPUTS], *inside = counts(c, node, false);
    bool vector = n->vector > 1;
    if (inside != NULL)
        cg_open(&c->g, "if (%s)", inside);
    for (uint32_t k = 0; k < s->n_in; k++) {
        operand[k] = po_arena_printf(c->arena, "x%u", k);
        if (vector && cu_step_of(c, &s->in[k], n->red[n->n_red - 1]) != 0) {
            (void)cu_vector_get(c, &s->in[k], operand[k], n->vector);
            operand[k] = po_arena_printf(c->arena, "x%u[v]", k);
        } else {
            cg_line(&c->g, "const float x%u = %s;", k, cu_get(c, &s->in[k]));
        }
    }
    if (vector) {
        cg_line(&c->g, "#pragma unroll");
        cg_open(&c->g, "for (int v = 0; v < %u; v++)", n->vector);
    }
    cg_line(&c->g, "sum = %s;", both(c, s, "sum", cu_value_of(c, s, operand)));
    if (vector)
        cg_close(&c->g);
    if (inside != NULL)
        cg_close(&c->g);
}

/* The loop over what is added up by one of `lanes`; `lane` is its number. */
static void over_sums(cu *c, uint32_t node, const char *lane, int64_t lanes) {
    const cu_node *n = &c->node[node];
    int64_t sums = cu_count_all(c, node, n->red, n->n_red) / n->vector;
    if (n->n_red == 0) {
        cg_brace(&c->g);
    } else {
        cg_line(&c->g, "#pragma unroll %d", sums / lanes >= 8 ? 8 : 4);
        cg_open(&c->g, "for (int k = %s; k < %lld; k += %lld)", lane, (long long)sums,
                (long long)lanes);
    }
    cu_take_apart(c, node, "k", n->red, n->n_red, n->vector);
    add_up(c, node);
    cg_close(&c->g);
    cu_forget(c, n->red, n->n_red);
}

/* Stores `sum` behind what is there, or anew. */
static void store(cu *c, uint32_t node) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *first = s->fresh ? cu_is_first(c, node) : "false", *old = cu_get(c, &s->out);
    if (first == NULL)
        cu_put(c, &s->out, "sum");
    else if (!s->fresh)
        cu_put(c, &s->out, both(c, s, old, "sum"));
    else
        cu_put(c, &s->out,
               po_arena_printf(c->arena, "%s ? sum : %s", first, both(c, s, old, "sum")));
}

static void by_threads(cu *c, uint32_t node, bool one) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    int64_t all = cu_count_all(c, node, n->order, n->n_order);
    if (one) {
        cg_line(&c->g, "/* elements meet: one thread does all of it */");
        cg_open(&c->g, "if (threadIdx.x == 0)");
        if (s->fresh) {
            const char *first = cu_is_first(c, node);
            cg_open(&c->g, "for (int e = 0; %s%se < %lld; e++)", first ? first : "",
                    first ? " && " : "", (long long)all);
            cu_take_apart(c, node, "e", n->order, n->n_order, 1);
            const char *inside =
                cu_and(c, cu_tail(c, node, n->order, n->n_order), cu_inside(c, &s->out));
            if (inside != NULL)
                cg_open(&c->g, "if (%s)", inside);
            cu_put(c, &s->out, start_of(s));
            if (inside != NULL)
                cg_close(&c->g);
            cg_close(&c->g);
        }
        cg_open(&c->g, "for (int e = 0; e < %lld; e++)", (long long)all);
    } else {
        cg_line(&c->g, "/* sum: a thread an element */");
        cg_open(&c->g, "for (int e = threadIdx.x; e < %lld; e += %u)", (long long)all, c->threads);
    }
    cu_take_apart(c, node, "e", n->order, n->n_order, 1);
    const char *inside = cu_and(c, cu_tail(c, node, n->order, n->n_order), cu_inside(c, &s->out));
    if (inside != NULL)
        cg_open(&c->g, "if (%s)", inside);
    cg_line(&c->g, "float sum = %s;", start_of(s));
    over_sums(c, node, "0", 1);
    if (one) {
        if (s->combine == PO_MU_SET)
            cu_put(c, &s->out, "sum");
        else
            cu_put(c, &s->out, both(c, s, cu_get(c, &s->out), "sum"));
    } else {
        store(c, node);
    }
    if (inside != NULL)
        cg_close(&c->g);
    cg_close(&c->g);
    if (one)
        cg_close(&c->g);
    cu_forget(c, n->order, n->n_order);
}

static const char *across(const po_mu_statement *s) {
    return s->combine == PO_MU_ADD ? "pc_sum" : "pc_most";
}

static void by_lanes(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    int64_t all = cu_count_all(c, node, n->order, n->n_order);
    int64_t groups = c->threads / n->lanes;
    cg_line(&c->g, "/* sum: %u lanes an element, %lld element%s at a time */", n->lanes,
            (long long)groups, groups == 1 ? "" : "s");
    if (all <= groups) {
        cg_brace(&c->g);
        cg_line(&c->g, "const int e = threadIdx.x / %u;", n->lanes);
    } else {
        cg_open(&c->g, "for (int from = 0; from < %lld; from += %lld)", (long long)all,
                (long long)groups);
        cg_line(&c->g, "const int e = from + threadIdx.x / %u;", n->lanes);
    }
    cu_take_apart(c, node, "e", n->order, n->n_order, 1);
    const char *live = cu_and(c, cu_tail(c, node, n->order, n->n_order), cu_inside(c, &s->out));
    if (all % groups != 0)
        live = cu_and(c, po_arena_printf(c->arena, "e < %lld", (long long)all), live);
    cg_line(&c->g, "float sum = %s;", start_of(s));
    if (live != NULL) {
        cg_line(&c->g, "const bool live = %s;", live);
        cg_open(&c->g, "if (live)");
    }
    over_sums(c, node, po_arena_printf(c->arena, "threadIdx.x %% %u", n->lanes), n->lanes);
    if (live != NULL)
        cg_close(&c->g);
    cg_line(&c->g, "sum = %s<%u>(sum);", across(s), n->lanes);
    cg_open(&c->g, "if (%sthreadIdx.x %% %u == 0)", live ? "live && " : "", n->lanes);
    store(c, node);
    cg_close(&c->g);
    cg_close(&c->g);
    cu_forget(c, n->order, n->n_order);
}

/* Two rows of partial sums in turn: a thread is at most one element ahead of another. */
static void by_block(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    int64_t all = cu_count_all(c, node, n->order, n->n_order);
    uint32_t warps = c->threads / CU_WARP;
    cg_line(&c->g, "/* sum: all threads an element */");
    cu_wait(c); /* its barriers stand for those that the copies' readers need */
    bool repeated = all > 1 || (c->mu->nodes[c->mu->nodes[node].parent].kind == PO_MU_LOOP &&
                                c->mu->nodes[c->mu->nodes[node].parent].loop == PO_MU_FOR);
    cg_open(&c->g, "for (int e = 0; e < %lld; e++)", (long long)all);
    cu_take_apart(c, node, "e", n->order, n->n_order, 1);
    const char *live = cu_and(c, cu_tail(c, node, n->order, n->n_order), cu_inside(c, &s->out));
    cg_line(&c->g, "float sum = %s;", start_of(s));
    if (live != NULL)
        cg_open(&c->g, "if (%s)", live);
    over_sums(c, node, "threadIdx.x", n->lanes);
    if (live != NULL)
        cg_close(&c->g);
    cg_line(&c->g, "sum = %s<%d>(sum);", across(s), CU_WARP);
    if (repeated)
        cg_line(&c->g, "pc_barrier(); /* the partial sums before these have been read */");
    cg_line(&c->g, "float *const part = partial_%u;", node);
    cg_line(&c->g, "if (threadIdx.x %% %d == 0)", CU_WARP);
    cg_line(&c->g, "    part[threadIdx.x / %d] = sum;", CU_WARP);
    cg_line(&c->g, "pc_barrier(); /* all warps' partial sums */");
    cg_open(&c->g, live == NULL ? "if (threadIdx.x == 0)" : "if (threadIdx.x == 0 && %s)", live);
    cg_line(&c->g, "sum = part[0];");
    cg_line(&c->g, "#pragma unroll");
    cg_line(&c->g, "for (int w = 1; w < %u; w++)", warps);
    cg_line(&c->g, "    sum = %s;", both(c, s, "sum", "part[w]"));
    store(c, node);
    cg_close(&c->g);
    cg_close(&c->g);
    cu_forget(c, n->order, n->n_order);
}

po_status cu_print_rows(cu *c, uint32_t node) {
    switch (c->node[node].work) {
    case CU_ROWS:
        by_lanes(c, node);
        break;
    case CU_BLOCK:
        by_block(c, node);
        break;
    default:
        by_threads(c, node, c->node[node].work == CU_ONE);
    }
    return PO_OK;
}
