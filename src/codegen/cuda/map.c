/* Maps and copies: elements dealt to the threads, several side by side at a time. */
#include "codegen/cuda/internal.h"

/* Opens the loop that deals n things to the threads. */
static void deal(cu *c, int64_t n) {
    int64_t threads = c->threads;
    if (n == threads) {
        cg_brace(&c->g);
        cg_line(&c->g, "const int e = threadIdx.x;");
    } else if (n < threads) {
        cg_open(&c->g, "if (threadIdx.x < %lld)", (long long)n);
        cg_line(&c->g, "const int e = threadIdx.x;");
    } else {
        if (n / threads <= 8)
            cg_line(&c->g, "#pragma unroll");
        else
            cg_line(&c->g, "#pragma unroll 4");
        cg_open(&c->g, "for (int e = threadIdx.x; e < %lld; e += %lld)", (long long)n,
                (long long)threads);
    }
}

/* As sums by so many lanes deal them: to the first lane of each. */
static void deal_rows(cu *c, int64_t n, uint32_t lanes) {
    if (lanes == c->threads) {
        cg_open(&c->g, "for (int e = 0; threadIdx.x == 0 && e < %lld; e++)", (long long)n);
        return;
    }
    cg_open(&c->g, "for (int e = threadIdx.x / %u; threadIdx.x %% %u == 0 && e < %lld; e += %u)",
            lanes, lanes, (long long)n, c->threads / lanes);
}

static int64_t elements_of(const cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    int64_t all = 1;
    for (uint32_t i = 0; i < n->n_order; i++)
        all *= cu_count(c, node, n->order[i]);
    return all;
}

/* The condition under which an iteration counts: tails of chunks, all indices inside. */
static const char *counts(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const char *all = cu_tail(c, node, n->order, n->n_order);
    for (uint32_t k = 0; k <= s->n_in; k++)
        all = cu_and(c, all, cu_inside(c, k < s->n_in ? &s->in[k] : &s->out));
    return all;
}

const char *cu_vector_get(cu *c, const po_mu_access *a, const char *name, uint32_t vector) {
    const po_mu_tensor *t = &c->mu->tensors[a->tensor];
    int64_t bytes = vector * po_mu_bytes(t->type);
    cg_line(&c->g, "float %s[%u];", name, vector);
    for (int64_t at = 0; at < bytes; at += 16) {
        int64_t piece = bytes - at < 16 ? bytes - at : 16;
        const char *pointer = cu_pointer(c, a);
        if (at > 0)
            pointer = po_arena_printf(c->arena, "%s + %lld", pointer,
                                      (long long)(at / po_mu_bytes(t->type)));
        cg_line(&c->g, "pc_get%lld%s(%s%s, %s);", (long long)piece, cu_suffix(t->type), name,
                at > 0
                    ? po_arena_printf(c->arena, " + %lld", (long long)(at / po_mu_bytes(t->type)))
                    : "",
                pointer);
    }
    return name;
}

static void vector_put(cu *c, const po_mu_access *a, const char *name, uint32_t vector) {
    const po_mu_tensor *t = &c->mu->tensors[a->tensor];
    int64_t bytes = vector * po_mu_bytes(t->type), each = 16 / po_mu_bytes(t->type);
    for (int64_t at = 0; at * 16 < bytes; at++) {
        int64_t piece = bytes < 16 ? bytes : 16;
        const char *more =
            at > 0 ? po_arena_printf(c->arena, " + %lld", (long long)(at * each)) : "";
        cg_line(&c->g, "pc_put%lld%s(%s%s, %s%s);", (long long)piece, cu_suffix(t->type),
                cu_pointer(c, a), more, name, more);
    }
}

/* What is stored: combined with what is there. */
static const char *combined(cu *c, const po_mu_statement *s, const char *value, const char *old) {
    if (s->combine == PO_MU_ADD)
        return po_arena_printf(c->arena, "%s + (%s)", old, value);
    if (s->combine == PO_MU_MAXIMUM)
        return po_arena_printf(c->arena, "pc_max(%s, %s)", old, value);
    return value;
}

void cu_put(cu *c, const po_mu_access *a, const char *value) {
    const po_mu_tensor *t = &c->mu->tensors[a->tensor];
    if (t->type == PO_MU_F32)
        cg_line(&c->g, "%s[%s] = %s;", c->tensor[a->tensor].name, cu_offset(c, a), value);
    else
        cg_line(&c->g, "pc_put%s(%s, %s);", cu_suffix(t->type), cu_pointer(c, a), value);
}

static void one_element(cu *c, const po_mu_statement *s) {
    const char *operand[PO_MU_MAX_INPUTS];
    for (uint32_t k = 0; k < s->n_in; k++) {
        operand[k] = po_arena_printf(c->arena, "x%u", k);
        cg_line(&c->g, "const float x%u = %s;", k, cu_get(c, &s->in[k]));
    }
    const char *old = s->fresh ? (s->combine == PO_MU_ADD ? "0.0f" : "(-PC_INF)")
                               : (s->combine == PO_MU_SET ? NULL : cu_get(c, &s->out));
    cu_put(c, &s->out, combined(c, s, cu_value_of(c, s, operand), old));
}

static void several(cu *c, uint32_t node, const po_mu_statement *s) {
    const cu_node *n = &c->node[node];
    uint32_t along = n->order[n->n_order - 1];
    const char *operand[PO_MU_MAX_INPUTS], *old = NULL;
    for (uint32_t k = 0; k < s->n_in; k++) {
        operand[k] = po_arena_printf(c->arena, "x%u", k);
        if (cu_step_of(c, &s->in[k], along) == 0) {
            cg_line(&c->g, "const float x%u = %s;", k, cu_get(c, &s->in[k]));
        } else {
            (void)cu_vector_get(c, &s->in[k], operand[k], n->vector);
            operand[k] = po_arena_printf(c->arena, "x%u[v]", k);
        }
    }
    if (s->combine != PO_MU_SET && s->fresh) {
        old = s->combine == PO_MU_ADD ? "0.0f" : "(-PC_INF)";
    } else if (s->combine != PO_MU_SET) {
        (void)cu_vector_get(c, &s->out, "old", n->vector);
        old = "old[v]";
    }
    cg_line(&c->g, "float y[%u];", n->vector);
    cg_line(&c->g, "#pragma unroll");
    cg_open(&c->g, "for (int v = 0; v < %u; v++)", n->vector);
    cg_line(&c->g, "y[v] = %s;", combined(c, s, cu_value_of(c, s, operand), old));
    cg_close(&c->g);
    vector_put(c, &s->out, "y", n->vector);
}

po_status cu_print_map(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    int64_t all = elements_of(c, node) / n->vector;
    if (n->vector > 1)
        cg_line(&c->g, "/* map: %u elements side by side at a time */", n->vector);
    else if (n->lanes > 1)
        cg_line(&c->g, "/* map: by the threads that have the rows' sums */");
    else
        cg_line(&c->g, "/* map: element by element */");
    if (n->lanes > 1)
        deal_rows(c, all, n->lanes);
    else
        deal(c, all);
    cu_take_apart(c, node, "e", n->order, n->n_order, n->vector);
    const char *inside = counts(c, node);
    if (inside != NULL)
        cg_open(&c->g, "if (%s)", inside);
    if (n->vector > 1)
        several(c, node, s);
    else
        one_element(c, s);
    if (inside != NULL)
        cg_close(&c->g);
    cg_close(&c->g);
    cu_forget(c, n->order, n->n_order);
    return PO_OK;
}

/* --- copies --- */

static bool is_staged(const cu *c, uint32_t tensor) {
    return c->tensor[tensor].staged;
}

po_status cu_print_copy(cu *c, uint32_t node, const char *stage) {
    const cu_node *n = &c->node[node];
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    const po_mu_tensor *t = &c->mu->tensors[s->out.tensor];
    const char *own = c->tensor[s->out.tensor].name;
    int64_t bytes = n->vector * po_mu_bytes(t->type);
    if (stage != NULL)
        c->tensor[s->out.tensor].name = stage;
    cg_line(&c->g, "/* %s: %s, %lld bytes at a time */", c->mu->tensors[s->in[0].tensor].name,
            bytes >= 4 ? "copied behind the threads' backs" : "copied", (long long)bytes);
    deal(c, elements_of(c, node) / n->vector);
    cu_take_apart(c, node, "e", n->order, n->n_order, n->vector);
    const char *inside = counts(c, node);
    bool zeros = is_staged(c, s->out.tensor);
    if (bytes >= 4 && inside != NULL && zeros) {
        cg_line(&c->g, "const bool inside = %s;", inside);
        cg_line(&c->g, "pc_copy%lld(%s, %s + (inside ? %s : 0), inside ? %lld : 0);",
                (long long)bytes, cu_pointer(c, &s->out), c->tensor[s->in[0].tensor].name,
                cu_offset(c, &s->in[0]), (long long)bytes);
    } else {
        if (inside != NULL && !zeros)
            cg_open(&c->g, "if (%s)", inside);
        if (bytes >= 4)
            cg_line(&c->g, "pc_copy%lld(%s, %s, %lld);", (long long)bytes, cu_pointer(c, &s->out),
                    cu_pointer(c, &s->in[0]), (long long)bytes);
        else if (inside != NULL && zeros)
            cg_line(&c->g, "%s[%s] = %s ? %s[%s] : (%s)0;", c->tensor[s->out.tensor].name,
                    cu_offset(c, &s->out), inside, c->tensor[s->in[0].tensor].name,
                    cu_offset(c, &s->in[0]), cu_c_type(t->type));
        else
            cg_line(&c->g, "%s[%s] = %s[%s];", c->tensor[s->out.tensor].name, cu_offset(c, &s->out),
                    c->tensor[s->in[0].tensor].name, cu_offset(c, &s->in[0]));
        if (inside != NULL && !zeros)
            cg_close(&c->g);
    }
    cg_close(&c->g);
    cu_forget(c, n->order, n->n_order);
    c->tensor[s->out.tensor].name = own;
    if (stage == NULL) {
        cg_line(&c->g, "pc_commit();");
        c->pending = true;
    }
    return PO_OK;
}
