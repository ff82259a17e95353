/* Linear operators by their indexed sums: products with what is added to them, and moves of data,
 * which are accesses where they can be. */
#include "ops/conv_view.h"
#include "ops/sem/sem.h"
#include "ops/sum/contract.h"
#include "superopt/lower/internal.h"
#include "superopt/lower/sum_kind.h"

/* A statement is one loop nest: what two after the other do in half the work is left to the
 * runtime, where it does not fall into pieces. */
static bool wants_two(po_arena *arena, const po_sum *sum) {
    po_contraction c;
    for (uint32_t i = 0; i < sum->n_terms; i++)
        if (po_sum_contract(arena, sum, &sum->terms[i], &c))
            return true;
    return false;
}

bool po_lower_sum_fits(po_ctx *ctx, po_arena *arena, const po_graph *graph, const po_node *node,
                       bool in_pieces) {
    po_sum **sums = PO_NEW_N(arena, po_sum *, node->n_out), *pieces[PO_LOWER_PIECES];
    if (po_sem_of(ctx, arena, graph, node, sums) != PO_OK)
        return false;
    for (uint32_t k = 0; k < node->n_out; k++) {
        po_sum_kind kind = sums[k] ? po_sum_kind_of(sums[k]) : PO_SUM_NONE;
        if (kind == PO_SUM_NONE || (kind >= PO_SUM_PRODUCT && node->n_out > 1) ||
            (wants_two(arena, sums[k]) &&
             !(in_pieces && po_lower_pieces(arena, sums[k], pieces) > 0)))
            return false;
    }
    return true;
}

/* --- statements --- */

/* What stands for a variable: a label, PO_NONE: one value; from this value on. */
typedef struct stand_in {
    uint32_t label;
    int64_t from;
} stand_in;

static bool affine_of(const po_term *t, const po_index *at, uint32_t axis, const stand_in *stands,
                      po_lower_index *to) {
    *to = (po_lower_index){.offset = at->base[axis]};
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t coef = po_index_coef(t, at, axis, v);
        to->offset += coef * stands[v].from;
        if (coef == 0 || stands[v].label == PO_NONE)
            continue;
        if (to->n == PO_AFFINE_TERMS)
            return false;
        to->terms[to->n++] = (po_mu_term){stands[v].label, coef};
    }
    return true;
}

static bool affines_of(const po_term *t, const po_index *at, const stand_in *stands,
                       po_lower_index *to) {
    for (uint32_t x = 0; x < at->rank; x++)
        if (!affine_of(t, at, x, stands, &to[x]))
            return false;
    return true;
}

/* Values of a variable for which an index along an axis can be inside. */
static void narrow(const po_term *t, const po_index *at, uint32_t axis, int64_t dim, uint32_t v,
                   int64_t *from, int64_t *to) {
    const int64_t coef = po_index_coef(t, at, axis, v);
    int64_t least = at->base[axis], most = at->base[axis];
    for (uint32_t u = 0; u < t->n_vars; u++) {
        const int64_t way = u == v ? 0 : po_index_coef(t, at, axis, u) * (t->extent[u] - 1);
        *(way < 0 ? &least : &most) += way;
    }
    while (*from + 1 < *to && (coef * *from + most < 0 || coef * *from + least >= dim))
        ++*from;
    while (*from + 1 < *to && (coef * (*to - 1) + most < 0 || coef * (*to - 1) + least >= dim))
        --*to;
}

/* A label for each variable. Taps of windows that meet padding alone add nothing and are left out:
 * a line at the edge of a map has some. */
static stand_in *stands_of(po_lowering *l, const po_sum *sum, const po_term *t) {
    stand_in *stands = PO_NEW_N(l->arena, stand_in, t->n_vars);
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t from = 0, to = t->extent[v];
        for (uint32_t k = 0; k < t->n_factors && !po_index_has(t, &t->out, v); k++)
            for (uint32_t x = 0; x < t->factor[k].at.rank; x++)
                if (po_index_coef(t, &t->factor[k].at, x, v) != 0)
                    narrow(t, &t->factor[k].at, x, sum->operands[t->factor[k].operand].dims[x], v,
                           &from, &to);
        stands[v] = (stand_in){PO_NONE, from};
        if (to - from > 1)
            stands[v].label = po_mu_add_label(l->mu, t->name[v] ? t->name[v] : "i", to - from);
    }
    return stands;
}

static uint32_t table_operand(po_lowering *l, uint32_t statement, const po_operand *op,
                              const po_lower_index *at) {
    uint32_t id = po_mu_add_tensor(l->mu, "table", PO_MU_TABLE, op->rank, op->dims);
    l->mu->tensors[id].table =
        po_arena_memdup(l->arena, op->table, (size_t)op->count * sizeof *op->table);
    po_view view = {.set = true, .tensor = id, .rank = op->rank};
    for (uint32_t i = 0; i < op->rank; i++)
        view.coef[i][i] = 1;
    uint32_t operand = po_mu_operand(l->mu, statement, po_lower_access(l, &view, at));
    return operand == PO_NONE ? PO_NONE
                              : po_mu_item_of(l->mu, statement, PO_MU_OPERAND, operand, 0, 0);
}

static uint32_t factor_item(po_lowering *l, const po_node *node, uint32_t statement,
                            const po_operand *op, const po_lower_index *at) {
    if (op->kind == PO_OPERAND_TABLE)
        return table_operand(l, statement, op, at);
    return po_lower_operand(l, statement, node->in[op->input], at);
}

static void settle(po_lowering *l, const po_node *node, const po_operand *op,
                   const po_lower_index *at) {
    if (op->kind == PO_OPERAND_INPUT)
        po_lower_settle(l, node->in[op->input], at);
}

/* The terms after the first. */
typedef struct rest {
    const po_node *node;
    const po_sum *sum;
    const po_lower_index *at;
} rest;

static bool compose(const po_term *t, const po_index *index, uint32_t axis,
                    const po_lower_index *at, po_lower_index *to) {
    *to = (po_lower_index){.offset = index->base[axis]};
    for (uint32_t v = 0; v < t->n_vars; v++) {
        int64_t coef = po_index_coef(t, index, axis, v);
        to->offset += coef * at[v].offset;
        for (uint32_t k = 0; k < at[v].n && coef != 0; k++) {
            if (to->n == PO_AFFINE_TERMS)
                return false;
            to->terms[to->n++] = (po_mu_term){at[v].terms[k].label, coef * at[v].terms[k].coef};
        }
    }
    return true;
}

static uint32_t add_rest(po_lowering *l, uint32_t statement, uint32_t item, void *user) {
    const rest *r = user;
    for (uint32_t i = 1; i < r->sum->n_terms; i++) {
        const po_term *t = &r->sum->terms[i];
        uint32_t product = PO_NONE;
        for (uint32_t k = 0; k < t->n_factors; k++) {
            const po_operand *op = &r->sum->operands[t->factor[k].operand];
            po_lower_index at[PO_MU_MAX_RANK];
            for (uint32_t x = 0; x < op->rank; x++)
                if (!compose(t, &t->factor[k].at, x, r->at, &at[x]))
                    return PO_NONE;
            uint32_t f = factor_item(l, r->node, statement, op, at);
            if (f == PO_NONE)
                return PO_NONE;
            product = k ? po_mu_item_of(l->mu, statement, PO_MU_TIMES, product, f, 0) : f;
        }
        if (t->scale.num != 1 || t->scale.den != 1)
            product = po_mu_item_of(l->mu, statement, PO_MU_TIMES, product,
                                    po_mu_constant(l->mu, statement, po_rational_f64(t->scale)), 0);
        item = po_mu_item_of(l->mu, statement, PO_MU_PLUS, item, product, 0);
    }
    return item;
}

static const char *step_name(po_lowering *l, const po_node *node) {
    uint32_t rank;
    po_text text;
    po_text_init(&text, l->arena);
    po_text_printf(&text, "%s", node->op_type);
    for (uint32_t k = 0; k < node->n_in; k++)
        if (k < 2 && node->in[k] != PO_NONE) {
            const po_dim *dims = po_lower_dims(l, node->in[k], &rank);
            for (uint32_t i = 0; i < rank; i++)
                po_text_printf(&text, "%s%lld",
                               i   ? "x"
                               : k ? " by "
                                   : " ",
                               (long long)dims[i].value);
        }
    return text.data;
}

static bool reads_outside(const po_mu *mu, const po_mu_statement *s) {
    for (uint32_t k = 0; k < s->n_in; k++)
        if (!po_mu_is_inside(mu, &s->in[k]))
            return true;
    return false;
}

/* Of the first term's factors, by factor and axis. */
typedef po_lower_index indices[PO_SUM_FACTORS][PO_MU_MAX_RANK];

/* The step of a product, its first term read and written at these indices; `summed`: over more than
 * what is written. */
static po_status add_product(po_lowering *l, const po_node *node, const po_sum *sum, bool summed,
                             const po_lower_index *out, indices at, const po_node_id *follow,
                             uint32_t n_follow) {
    const po_term *t = &sum->terms[0];
    for (uint32_t k = 0; k < t->n_factors; k++)
        settle(l, node, &sum->operands[t->factor[k].operand], at[k]);
    uint32_t step = po_mu_add_step(l->mu, step_name(l, node)), product = PO_NONE;
    uint32_t id = po_mu_add_statement(l->mu, step, summed ? PO_MU_ADD : PO_MU_SET);
    l->mu->nodes[id].statement.fresh = summed;
    for (uint32_t k = 0; k < t->n_factors; k++) {
        uint32_t f = factor_item(l, node, id, &sum->operands[t->factor[k].operand], at[k]);
        if (f == PO_NONE)
            return PO_UNSUPPORTED;
        product = k ? po_mu_item_of(l->mu, id, PO_MU_TIMES, product, f, 0) : f;
    }
    if (reads_outside(l->mu, &l->mu->nodes[id].statement)) {
        /* '=' would leave those elements as they are. */
        l->mu->nodes[id].statement.combine = PO_MU_ADD;
        l->mu->nodes[id].statement.fresh = true;
    }
    rest r = {node, sum, out};
    po_lower_end end = {.step = step,
                        .statement = id,
                        .node = (po_node_id)(node - l->graph->nodes),
                        .value = node->out[0],
                        .at = out,
                        .scale = po_rational_f64(t->scale),
                        .follow = follow,
                        .n_follow = n_follow,
                        .extra = sum->n_terms > 1 ? add_rest : NULL,
                        .user = &r};
    return po_lower_finish(l, &end);
}

/* One phase of a transposed convolution. */
static po_status lower_phase(po_lowering *l, const po_node *node, const po_sum *sum,
                             const po_sum_scatter *sc, uint32_t phase, const po_node_id *follow,
                             uint32_t n_follow) {
    const po_term *t = &sum->terms[0];
    po_lower_index *var = PO_NEW_N(l->arena, po_lower_index, t->n_vars);
    for (uint32_t v = 0; v < t->n_vars; v++)
        if (t->extent[v] > 1) {
            bool spatial = false;
            for (uint32_t i = 0; i < sc->n; i++)
                spatial |= v == sc->v[i] || v == sc->r[i];
            if (!spatial)
                var[v] = (po_lower_index){
                    0,
                    1,
                    {{po_mu_add_label(l->mu, t->name[v] ? t->name[v] : "i", t->extent[v]), 1}}};
        }
    for (uint32_t i = 0; i < sc->n; i++) {
        int64_t s = sc->stride[i], at = phase % s, first = (at + sc->pad[i]) % s;
        int64_t from = (at + sc->pad[i] - first) / s;
        int64_t outputs = (sum->dims[sc->axis[i]] - at + s - 1) / s;
        int64_t taps = (t->extent[sc->r[i]] - first + s - 1) / s;
        phase /= (uint32_t)s;
        uint32_t q = po_mu_add_label(l->mu,
                                     sc->n - i == 1   ? "x"
                                     : sc->n - i == 2 ? "y"
                                                      : "z",
                                     outputs);
        po_lower_index *v = &var[sc->v[i]], *r = &var[sc->r[i]];
        *v = (po_lower_index){from, 1, {{q, 1}}};
        *r = (po_lower_index){first, 0, {{0, 0}}};
        if (taps > 1) {
            uint32_t tap = po_mu_add_label(l->mu, sc->n - i == 1 ? "s" : "r", taps);
            /* From the last tap, so that the window moves on as that of a convolution. */
            int64_t apart = s > 1 ? 1 : sc->dilation[i];
            v->offset -= apart * (taps - 1);
            v->terms[v->n++] = (po_mu_term){tap, apart};
            r->offset += s * (taps - 1);
            r->terms[r->n++] = (po_mu_term){tap, -s};
        }
    }
    po_lower_index out[PO_MU_MAX_RANK] = {{0}};
    for (uint32_t x = 0; x < t->out.rank; x++)
        if (!compose(t, &t->out, x, var, &out[x]))
            return PO_UNSUPPORTED;
    indices at;
    for (uint32_t k = 0; k < t->n_factors; k++)
        for (uint32_t x = 0; x < t->factor[k].at.rank; x++)
            if (!compose(t, &t->factor[k].at, x, var, &at[k][x]))
                return PO_UNSUPPORTED;
    return add_product(l, node, sum, true, out, at, follow, n_follow);
}

static po_status lower_scatter(po_lowering *l, const po_node *node, const po_sum *sum) {
    po_sum_scatter s;
    po_node_id follow[PO_LOWER_CHAIN];
    uint32_t n = po_lower_follow(l, (po_node_id)(node - l->graph->nodes), node->out[0], follow);
    if (!po_sum_find_scatter(sum, &sum->terms[0], &s))
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < s.phases; i++)
        PO_TRY(lower_phase(l, node, sum, &s, i, follow, n));
    return PO_OK;
}

static po_status lower_product(po_lowering *l, const po_node *node, const po_sum *sum,
                               const po_node_id *follow, uint32_t n_follow) {
    const po_term *t = &sum->terms[0];
    const stand_in *stands = stands_of(l, sum, t);
    po_lower_index out[PO_MU_MAX_RANK] = {{0}};
    if (!affines_of(t, &t->out, stands, out))
        return PO_UNSUPPORTED;
    indices at;
    for (uint32_t k = 0; k < t->n_factors; k++)
        if (!affines_of(t, &t->factor[k].at, stands, at[k]))
            return PO_UNSUPPORTED;
    return add_product(l, node, sum, po_sum_reduces(t), out, at, follow, n_follow);
}

/* What is interpolated along several axes. */
static po_status lower_pieces(po_lowering *l, const po_node *node, const po_sum *sum) {
    po_sum *pieces[PO_LOWER_PIECES];
    po_node_id follow[PO_LOWER_CHAIN];
    const uint32_t n = po_lower_pieces(l->arena, sum, pieces);
    const uint32_t after =
        po_lower_follow(l, (po_node_id)(node - l->graph->nodes), node->out[0], follow);
    for (uint32_t i = 0; i < n; i++)
        PO_TRY(lower_product(l, node, pieces[i], follow, after));
    return n > 0 ? PO_OK : PO_UNSUPPORTED;
}

/* --- moves --- */

/* The value is read where its source lies. */
static bool make_view(po_lowering *l, const po_node *node, const po_sum *sum, po_value_id v) {
    const po_term *t = &sum->terms[0];
    const po_index *at = &t->factor[0].at;
    const po_view *from = po_lower_read(l, node->in[sum->operands[t->factor[0].operand].input]);
    if (!from || l->output[v] != PO_NONE)
        return false;
    po_view view = {.set = true, .tensor = from->tensor, .rank = from->rank};
    for (uint32_t x = 0; x < from->rank; x++) {
        view.base[x] = from->base[x];
        for (uint32_t j = 0; j < at->rank; j++) {
            view.base[x] += from->coef[x][j] * at->base[j];
            for (uint32_t i = 0; i < sum->rank; i++)
                if (sum->dims[i] > 1)
                    view.coef[x][i] +=
                        from->coef[x][j] *
                        po_index_coef(t, at, j, po_sum_axis_variable(t, sum->dims, i));
        }
    }
    /* What is repeated would be added up once: its label would stand nowhere. */
    for (uint32_t i = 0; i < sum->rank; i++) {
        bool stands = sum->dims[i] == 1;
        for (uint32_t x = 0; x < from->rank; x++)
            stands |= view.coef[x][i] != 0;
        if (!stands)
            return false;
    }
    l->view[v] = view;
    return true;
}

static po_status copy_term(po_lowering *l, const po_node *node, const po_sum *sum, uint32_t i,
                           po_value_id v) {
    const po_term *t = &sum->terms[i];
    const uint32_t input = sum->operands[t->factor[0].operand].input;
    const po_view *to = po_lower_storage(l, v);
    if (node->op == PO_OP_Concat && po_lower_is_joined(l, node, input))
        return PO_OK;
    const stand_in *stands = stands_of(l, sum, t);
    po_lower_index out[PO_MU_MAX_RANK] = {{0}}, in[PO_MU_MAX_RANK] = {{0}};
    if (!affines_of(t, &t->out, stands, out) || !affines_of(t, &t->factor[0].at, stands, in))
        return PO_UNSUPPORTED;
    uint32_t step = po_mu_add_step(l->mu, step_name(l, node));
    uint32_t s = po_mu_add_statement(l->mu, step, PO_MU_SET);
    l->mu->nodes[s].statement.out = po_lower_access(l, to, out);
    return po_lower_operand(l, s, node->in[input], in) == PO_NONE ? PO_UNSUPPORTED : PO_OK;
}

/* Whether nothing but sums of products over windows reads the value: what lies outside of what
 * they read adds nothing. */
static bool read_in_windows(const po_lowering *l, po_value_id v) {
    const po_value *value = &l->graph->values[v];
    for (uint32_t u = 0; u < value->n_uses; u++) {
        const po_use *use = &value->uses[u];
        if (l->place[use->node] == PO_NONE || !po_read_by_conv(l->graph, use))
            return false;
    }
    return l->output[v] == PO_NONE;
}

/* The block's source is read in its place, from as far before it as the block starts. */
static bool make_padded_view(po_lowering *l, const po_node *node, const po_sum *sum) {
    const po_term *t = &sum->terms[0];
    const po_index *at = &t->factor[0].at;
    const po_view *from = po_lower_read(l, node->in[sum->operands[t->factor[0].operand].input]);
    if (!from || at->rank != sum->rank || l->mu->tensors[from->tensor].place != PO_MU_DEVICE ||
        !read_in_windows(l, node->out[0]))
        return false;
    po_view view = *from;
    for (uint32_t x = 0; x < sum->rank; x++) {
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (t->extent[v] > 1 && po_index_coef(t, at, x, v) != po_index_coef(t, &t->out, x, v))
                return false;
        int64_t whole = 1;
        for (uint32_t v = 0; v < t->n_vars; v++)
            if (po_index_coef(t, at, x, v) != 0 && t->extent[v] > 1)
                whole = t->extent[v];
        /* All of the source, along an axis of its own. */
        uint32_t held = 0;
        for (uint32_t i = 0; i < from->rank; i++)
            if (from->coef[i][x] != 0) {
                held += from->coef[i][x] == 1 &&
                        (sum->dims[x] == whole ||
                         (from->base[i] == 0 && l->mu->tensors[from->tensor].dims[i] == whole));
                for (uint32_t k = 0; k < sum->rank; k++)
                    held += k != x && from->coef[i][k] != 0 ? 2 : 0;
            }
        if (at->base[x] != 0 || (sum->dims[x] > 1 && held != 1))
            return false;
        for (uint32_t i = 0; i < from->rank; i++)
            view.base[i] -= from->coef[i][x] * t->out.base[x];
    }
    l->view[node->out[0]] = view;
    return true;
}

static po_status fill_with_zeros(po_lowering *l, const po_node *node, po_value_id v) {
    po_lower_index at[PO_MU_MAX_RANK];
    const po_view *to = po_lower_storage(l, v);
    po_lower_labels(l, v, at);
    uint32_t s = po_mu_add_statement(l->mu, po_mu_add_step(l->mu, step_name(l, node)), PO_MU_SET);
    l->mu->nodes[s].statement.out = po_lower_access(l, to, at);
    po_mu_constant(l->mu, s, 0);
    return PO_OK;
}

po_status po_lower_sum(po_lowering *l, const po_node *node) {
    po_sum **sums = PO_NEW_N(l->arena, po_sum *, node->n_out);
    po_status status = po_sem_of(l->ctx, l->arena, l->graph, node, sums);
    for (uint32_t k = 0; k < node->n_out && status == PO_OK; k++) {
        po_sum_kind kind = sums[k] ? po_sum_kind_of(sums[k]) : PO_SUM_NONE;
        if (kind == PO_SUM_NONE)
            return PO_UNSUPPORTED;
        /* Upsampled maps, alone among moves, are computed where they are read: they are larger than
         * what they are made of, and seldom needed but for what is computed from them. */
        if (kind == PO_SUM_PRODUCT || (kind == PO_SUM_MOVES && node->op == PO_OP_Resize &&
                                       node->n_out == 1 && sums[k]->n_terms == 1)) {
            status = wants_two(l->arena, sums[k]) ? lower_pieces(l, node, sums[k])
                                                  : lower_product(l, node, sums[k], NULL, 0);
            continue;
        }
        if (kind == PO_SUM_SCATTER) {
            status = lower_scatter(l, node, sums[k]);
            continue;
        }
        if (kind == PO_SUM_VIEW && make_view(l, node, sums[k], node->out[k]))
            continue;
        if (kind == PO_SUM_PART && node->n_out == 1 && make_padded_view(l, node, sums[k]))
            continue;
        if (kind == PO_SUM_PART)
            PO_TRY(fill_with_zeros(l, node, node->out[k]));
        for (uint32_t i = 0; i < sums[k]->n_terms && status == PO_OK; i++)
            status = copy_term(l, node, sums[k], i, node->out[k]);
    }
    return status;
}
