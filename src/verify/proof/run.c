/* One evaluation of a graph: nodes in order, each by the first of its meanings that takes it. */
#include "verify/proof/internal.h"

#include "ir/size.h"
#include "ops/shape.h"

typedef struct frame {
    po_prun *run;
    po_arena *arena;
    const po_pgraph_spec *spec;
    const po_graph *graph;
    struct frame *outer;
    po_ptensor **slots; /* by value; counted */
    bool recorded;      /* the caller is told what nodes make */
} frame;

static po_status evaluate_graph(frame *f, const po_pnamed *in, uint32_t n_in, po_ptensor **out);

/* Results that are kept: an operator of the same inputs has them again. */
typedef struct po_preuse {
    uint32_t n_out;
    po_ptensor **out;
    po_psize size; /* of the inputs */
} po_preuse;

static void keep_result(po_prun *run, po_hash print, po_psize size, uint32_t n_out,
                        po_ptensor *const *out);

/* Large constants are often those of the other model. */
static po_status fetch_constant(po_prun *run, const po_tensor *tensor, po_ptensor **slot) {
    enum { LARGE = 1 << 14 };
    if (tensor->count < LARGE)
        return po_pt_constant(run, tensor, slot);
    po_hash print = po_hash_u64(po_tensor_hash(tensor), 0x636f6e7374);
    uint32_t i = po_hash_map_get(run->reuse, print);
    if (i != PO_NONE && run->kept[i].n_out == 1) {
        *slot = po_pt_use(run->kept[i].out[0]);
        return PO_OK;
    }
    PO_TRY(po_pt_constant(run, tensor, slot));
    keep_result(run, print, (po_psize){1, 0}, 1, slot);
    return PO_OK;
}

static po_status fetch(frame *f, po_value_id id, po_ptensor **tensor) {
    po_ptensor **slot = &f->slots[id];
    const po_value *v = &f->graph->values[id];
    const char *name = po_graph_value_name(f->graph, id);
    const po_map *at = f->spec->constant_at;
    uint32_t k = at && v->constant ? po_map_get(at, name) : PO_NONE;
    if (!*slot && v->outer != PO_NONE && f->outer) {
        PO_TRY(fetch(f->outer, v->outer, slot));
        po_pt_use(*slot);
    } else if (!*slot && k != PO_NONE) {
        *slot = po_pt_use(f->spec->constants[k].tensor);
    } else if (!*slot) {
        if (!v->constant)
            return po_pfail(f->run, "value '%.100s' has no contents", name);
        PO_TRY(fetch_constant(f->run, v->constant, slot));
    }
    *tensor = *slot;
    return PO_OK;
}

/* --- types --- */

static po_status infer(po_pnode *n, po_type *out) {
    const po_node *node = n->node;
    const po_op_row *row = po_op_row_of(node->op);
    enum { MOST = 1 << 16 };
    for (uint32_t k = 0; k < node->n_out; k++)
        out[k] = node->out[k] != PO_NONE && (!row || !row->infer)
                     ? n->graph->values[node->out[k]].type
                     : po_type_unranked(PO_DT_NONE);
    if (!row || !row->infer)
        return PO_OK;
    const po_type **in = PO_NEW_N(n->arena, const po_type *, node->n_in);
    const po_tensor **constant = PO_NEW_N(n->arena, const po_tensor *, node->n_in);
    const po_partial **partial = PO_NEW_N(n->arena, const po_partial *, node->n_in);
    for (uint32_t k = 0; k < node->n_in; k++) {
        po_ptensor *t = n->in[k];
        po_tensor *c;
        if (!t)
            continue;
        po_type type = po_type_tensor_i64(n->arena, t->dtype, t->rank, t->dims);
        in[k] = po_arena_memdup(n->arena, &type, sizeof type);
        if (!t->known || t->known->s || t->count > MOST)
            continue;
        PO_TRY(po_array_to_tensor(n->run->ctx, n->arena, t->known, &c));
        constant[k] = c;
        if (!t->known->i || t->rank > 1 || t->count > PO_PARTIAL_MAX)
            continue;
        po_partial *p = PO_NEW(n->arena, po_partial);
        po_dim *items = PO_NEW_N(n->arena, po_dim, t->count);
        for (int64_t i = 0; i < t->count; i++)
            items[i] = po_size_item(n->arena, t->known->i[i]);
        *p = (po_partial){(uint32_t)t->count, items};
        partial[k] = p;
    }
    po_infer rule = {.ctx = n->run->ctx,
                     .arena = n->arena,
                     .graph = n->graph,
                     .node = node,
                     .opset = n->opset,
                     .n_in = node->n_in,
                     .n_out = node->n_out,
                     .in = in,
                     .constant = constant,
                     .partial = partial,
                     .out = out,
                     .out_partial = PO_NEW_N(n->arena, const po_partial *, node->n_out),
                     .lenient = true};
    po_status status = row->infer(&rule);
    if (status == PO_BAD_INPUT) {
        po_pfail(n->run, "%.300s", n->run->ctx->error.message);
        n->run->refused = true;
        status = PO_UNSUPPORTED;
        po_ctx_clear(n->run->ctx);
        return status;
    }
    po_ctx_clear(n->run->ctx);
    return status == PO_UNSUPPORTED ? PO_OK : status;
}

/* --- contents --- */

static bool all_known(const po_pnode *n) {
    for (uint32_t k = 0; k < n->node->n_in; k++)
        if (n->in[k] && !n->in[k]->known)
            return false;
    return !po_op_has(n->node->op, PO_OPF_CONTROL | PO_OPF_RANDOM);
}

/* Operators whose floats are numbers like those of a constant, not functions of other floats. */
static bool generates(po_op_id op) {
    return op == PO_OP_ConstantOfShape || op == PO_OP_EyeLike || op == PO_OP_OneHot ||
           op == PO_OP_Range;
}

/* Contents of the outputs, where those of the inputs are known and someone may ask. Floats that
 * come from drawn integers keep none: comparing them would tell of these integers alone. */
static po_status find_contents(po_pnode *n, po_array **out) {
    enum { MOST_FLOATS = 1 << 16, MOST = 1 << 24 };
    const po_node *node = n->node;
    bool integers = generates(node->op);
    int64_t count = 0;
    for (uint32_t k = 0; k < node->n_out; k++) {
        integers |= po_dtype_class_of(n->type[k].dtype) != PO_CLASS_FLOAT;
        count += node->out[k] == PO_NONE ? 0 : po_type_count(&n->type[k]);
    }
    const po_array **in = PO_NEW_N(n->arena, const po_array *, node->n_in);
    bool drawn = false;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (n->in[k]) {
            in[k] = n->in[k]->known;
            count += in[k]->count;
            drawn |= n->in[k]->drawn || n->in[k]->decided;
        }
    if (count > (integers ? MOST : MOST_FLOATS) || (drawn && !integers))
        return PO_OK;
    po_status status = po_ref_node(n->run->ctx, n->arena, n->graph, node, in, out);
    if (status == PO_UNSUPPORTED)
        memset(out, 0, node->n_out * sizeof *out);
    return status == PO_UNSUPPORTED ? PO_OK : status;
}

/* --- operators of which the values do not matter, or choose --- */

static po_status run_shape(po_pnode *n) {
    const po_ptensor *in = n->in[0];
    int64_t rank = in->rank, one = 1;
    if (n->node->op == PO_OP_Size) {
        po_array a = {.dtype = PO_I64, .count = 1, .dims = &one, .i = (int64_t *)&in->count};
        n->out[0] = po_pt_known(n->run, &a);
        return PO_OK;
    }
    int64_t from = po_node_int(n->node, "start", 0);
    int64_t to = po_node_int(n->node, "end", rank);
    from = from < 0 ? from + rank : from;
    to = to < 0 ? to + rank : to;
    from = from < 0 ? 0 : from > rank ? rank : from;
    to = to < from ? from : to > rank ? rank : to;
    int64_t count = to - from, *dims = po_arena_memdup(n->arena, in->dims, in->rank * sizeof *dims);
    po_array a = {.dtype = PO_I64, .rank = 1, .dims = &count, .count = count, .i = dims + from};
    n->out[0] = po_pt_known(n->run, &a);
    return PO_OK;
}

static po_status run_view(po_pnode *n) {
    po_ptensor *in = n->in[0];
    const po_type *t = &n->type[0];
    if (!po_pt_mod(in) || po_type_count(t) != in->count)
        return PO_UNSUPPORTED;
    n->out[0] = po_pt_view(n->run, in, in->dtype, t->rank, po_pn_dims(n->arena, t));
    return PO_OK;
}

static po_status run_dropout(po_pnode *n) {
    const po_ptensor *training = po_pn_in(n, 2);
    bool off = !training || (training->known && training->known->i && !training->known->i[0]);
    po_value_id mask = n->node->n_out > 1 ? n->node->out[1] : PO_NONE;
    const po_value *v = mask == PO_NONE ? NULL : &n->graph->values[mask];
    if (!off || !n->in[0] || (v && (v->n_uses || v->n_outputs)))
        return po_pfail(n->run, "node '%.100s' (Dropout) is random", n->node->name);
    n->out[0] = po_pt_use(n->in[0]);
    if (v)
        n->out[1] = po_pt_residues(n->run, PO_BOOL, n->in[0]->rank, n->in[0]->dims);
    return PO_OK;
}

static po_status run_body(frame *f, const po_node *node, const char *name, po_ptensor **out) {
    const po_attr *a = po_node_attr(node, name);
    if (!a || a->kind != PO_ATTR_GRAPH || a->u.g->n_outputs != node->n_out)
        return PO_UNSUPPORTED;
    frame body = {.run = f->run, .spec = f->spec, .graph = a->u.g, .outer = f};
    return evaluate_graph(&body, NULL, 0, out);
}

/* Of what the node is a function, beside its inputs. */
static void take_in(po_pnode *n, po_ptensor *t) {
    po_hash p = po_pt_print(t);
    n->captured = po_hash_u64(po_hash_u64(n->captured, p.lo), p.hi);
}

/* else + c (then - else), where c is a symbol. */
static po_status either(po_pnode *n, po_ptensor *c, po_ptensor *then, po_ptensor *other,
                        po_ptensor **out) {
    const uint32_t *x = po_pt_mod(then), *y = po_pt_mod(other), *by = po_pt_mod(c);
    bool same = x && y && by && then->rank == other->rank && then->dtype == other->dtype;
    for (uint32_t i = 0; same && i < then->rank; i++)
        same = then->dims[i] == other->dims[i];
    if (!same)
        return po_pfail(n->run, "node '%.100s' (If): the condition is not known before it runs",
                        n->node->name);
    po_field p = n->run->field;
    *out = po_pt_residues(n->run, then->dtype, then->rank, then->dims);
    for (int64_t i = 0; i < then->count; i++)
        (*out)->mod[i] = po_field_add(p, y[i], po_field_mul(p, by[0], po_field_sub(p, x[i], y[i])));
    po_pbound both = po_pb_sum(n->run, &then->bound, &other->bound);
    po_pbound chosen = po_pb_product(n->run, &c->bound, &both);
    (*out)->bound = po_pb_sum(n->run, &chosen, &other->bound);
    (*out)->drawn = c->drawn || c->decided || then->drawn || other->drawn;
    return PO_OK;
}

static po_status run_branch(frame *f, po_pnode *n) {
    po_ptensor *c = n->in[0];
    uint32_t n_out = n->node->n_out;
    if (!c || c->count != 1)
        return po_pfail(f->run, "node '%.100s' (If): the condition is not a tensor of one element",
                        n->node->name);
    if (c->known && c->known->i && !c->drawn && !c->decided)
        return run_body(f, n->node, c->known->i[0] ? "then_branch" : "else_branch", n->out);
    po_ptensor **then = PO_NEW_N(n->arena, po_ptensor *, n_out);
    po_ptensor **other = PO_NEW_N(n->arena, po_ptensor *, n_out);
    po_status status = run_body(f, n->node, "then_branch", then);
    if (status == PO_OK)
        status = run_body(f, n->node, "else_branch", other);
    for (uint32_t k = 0; k < n_out; k++) {
        if (status == PO_OK)
            status = either(n, c, then[k], other[k], &n->out[k]);
        if (status == PO_OK) {
            take_in(n, then[k]);
            take_in(n, other[k]);
        }
        po_pt_drop(then[k]);
        po_pt_drop(other[k]);
    }
    if (status == PO_OK)
        po_pn_note(n, false); /* twice the same choice is one: residues do not show it */
    return status;
}

/* A random operator is a function of its own: of two models that are alike, number by number. */
static po_status run_random(po_pnode *n) {
    n->captured = po_hash_u64((po_hash){8, 0}, n->run->randoms++);
    for (uint32_t k = 0; k < n->node->n_out; k++)
        if (n->node->out[k] != PO_NONE &&
            (n->type[k].kind != PO_TYPE_TENSOR || po_type_count(&n->type[k]) < 0))
            return po_pfail(n->run, "node '%.100s' (%.60s) is random", n->node->name,
                            n->node->op_type);
    return po_pn_opaque(n);
}

/* Bodies that are not entered: what they take from around them goes in too. */
static po_status add_captures(frame *f, po_pnode *n, const po_graph *body) {
    for (po_value_id id = 0; id < body->n_values; id++) {
        const po_value *v = &body->values[id];
        po_ptensor *t;
        if (v->outer == PO_NONE || (v->n_uses == 0 && v->n_outputs == 0))
            continue;
        PO_TRY(fetch(f, v->outer, &t));
        take_in(n, t);
    }
    return PO_OK;
}

/* --- a node --- */

static po_status by_meaning(po_pnode *n) {
    static const po_pnode_fn meanings[] = {po_pn_rows,   po_pn_clip, po_pn_pointwise, po_pn_window,
                                           po_pn_rotary, po_pn_sum,  po_pn_move,      po_pn_opaque};
    const po_node *node = n->node;
    bool indexed = node->op == PO_OP_Gather || node->op == PO_OP_Pad;
    po_status status = PO_UNSUPPORTED;
    if (po_op_has(node->op, PO_OPF_SHAPE_ONLY) && node->n_in && n->in[0])
        status = run_view(n);
    for (size_t i = 0;
         status == PO_UNSUPPORTED && !n->run->why[0] && i < sizeof meanings / sizeof meanings[0];
         i++) {
        if (indexed && meanings[i] == po_pn_sum)
            continue;
        for (uint32_t k = 0; k < node->n_out; k++) {
            po_pt_drop(n->out[k]);
            n->out[k] = NULL;
        }
        status = meanings[i](n);
        if (status == PO_OK)
            po_pn_note(n, meanings[i] == po_pn_sum || meanings[i] == po_pn_move);
    }
    return status;
}

static po_status evaluate_node(frame *f, po_pnode *n) {
    const po_node *node = n->node;
    po_prun *run = f->run;
    if (node->op && po_model_function(n->graph->model, node))
        return po_pfail(run,
                        "node '%.100s' (%.60s): the model has a function of that name, and "
                        "runtimes may take either",
                        node->name, node->op_type);
    if (node->n_in && n->in[0] && (node->op == PO_OP_Shape || node->op == PO_OP_Size))
        return run_shape(n);
    if (node->op == PO_OP_Dropout)
        return run_dropout(n);
    if (node->op == PO_OP_If)
        return run_branch(f, n);
    po_type *types = PO_NEW_N(n->arena, po_type, node->n_out);
    n->type = types;
    PO_TRY(infer(n, types));
    if (po_op_has(node->op, PO_OPF_RANDOM))
        return run_random(n);
    po_array **contents = PO_NEW_N(n->arena, po_array *, node->n_out);
    if (all_known(n))
        PO_TRY(find_contents(n, contents));
    bool done = true, is_static = true, symbolic = po_pn_symbolic(n);
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k] == PO_NONE)
            continue;
        if (contents[k] && !symbolic && (!contents[k]->f || generates(node->op)))
            n->out[k] = po_pt_known(run, contents[k]);
        else
            is_static = is_static && types[k].kind == PO_TYPE_TENSOR &&
                        po_type_count(&types[k]) >= 0 &&
                        po_type_count(&types[k]) <= (int64_t)1 << 30;
        done = done && n->out[k];
    }
    if (done)
        return PO_OK;
    const po_op_row *row = po_op_row_of(node->op);
    run->refused = !is_static && row && row->infer;
    if (!is_static)
        return po_pfail(run, "node '%.100s' (%.60s): the shape of its output is not known",
                        node->name, node->op_type);
    for (uint32_t k = 0; k < node->n_attr; k++) {
        if (node->attr[k].kind == PO_ATTR_GRAPH)
            PO_TRY(add_captures(f, n, node->attr[k].u.g));
        else if (node->attr[k].kind == PO_ATTR_GRAPHS)
            return PO_UNSUPPORTED;
    }
    po_pn_note_table(n);
    po_pn_note_choices(n);
    po_status status = by_meaning(n);
    bool strings = symbolic && status == PO_UNSUPPORTED && !run->why[0] && contents[0] &&
                   contents[0]->s && node->n_out == 1;
    if (strings)
        status = PO_OK;
    for (uint32_t k = 0; k < node->n_out && status == PO_OK; k++)
        if (contents[k])
            PO_TRY(po_pn_attach(n, k, contents[k]));
    return status;
}

/* --- results taken over --- */

static void keep_result(po_prun *run, po_hash print, po_psize size, uint32_t n_out,
                        po_ptensor *const *out) {
    const size_t most = (size_t)80 << 20;
    po_preuse r = {n_out, PO_NEW_N(run->arena, po_ptensor *, n_out), size};
    size_t bytes = 0;
    for (uint32_t k = 0; k < r.n_out; k++)
        if (out[k])
            bytes += (size_t)out[k]->count * sizeof(uint32_t);
    if (run->kept_bytes + bytes > most)
        return;
    run->kept_bytes += bytes;
    for (uint32_t k = 0; k < r.n_out; k++)
        r.out[k] = out[k] ? po_pt_use(out[k]) : NULL;
    PO_PUSH(run->arena, run->kept, run->n_kept, run->cap_kept, r);
    po_hash_map_put(run->reuse, print, run->n_kept - 1);
}

/* The same product of floats of another width has this node's own type. */
static po_ptensor *taken_over(const po_pnode *n, po_ptensor *kept) {
    const po_ptensor *in = n->in[0];
    if (!kept || !in || kept->dtype == in->dtype ||
        po_dtype_class_of(in->dtype) != PO_CLASS_FLOAT ||
        po_dtype_class_of(kept->dtype) != PO_CLASS_FLOAT)
        return kept ? po_pt_use(kept) : NULL;
    return po_pt_view(n->run, kept, in->dtype, kept->rank, kept->dims);
}

static po_psize inputs_size(const po_pnode *n) {
    po_psize size = {0, 0};
    for (uint32_t k = 0; k < n->node->n_in; k++)
        if (n->in[k])
            size = po_psize_larger(size, po_pb_total(&n->in[k]->bound));
    return size;
}

po_status po_prun_late(po_prun *run) {
    run->late = true;
    return po_pfail(run, "the CPU time given for the proof does not suffice");
}

static po_status evaluate(frame *f, po_pnode *n) {
    po_prun *run = f->run;
    po_hash print = {0, 0};
    bool worth = po_op_is_product(n->node->op); /* what time goes into */
    if (run->nodes++ % 16 == 15 && !po_prun_affordable(run, 0))
        return po_prun_late(run);
    if (worth) {
        print = po_pn_print(n);
        uint32_t i = po_hash_map_get(run->reuse, print);
        if (i != PO_NONE && run->kept[i].n_out == n->node->n_out) {
            for (uint32_t k = 0; k < n->node->n_out; k++)
                n->out[k] = taken_over(n, run->kept[i].out[k]);
            run->reused++;
            /* Inputs that are equal here, and might not be as terms. */
            po_prun_compared(run, run->kept[i].size, 1, 0);
            po_prun_compared(run, inputs_size(n), 1, 0);
            return PO_OK;
        }
    }
    po_status status = evaluate_node(f, n);
    if (status == PO_UNSUPPORTED)
        return po_pfail(run, "node '%.100s' (%.60s) cannot be evaluated modulo p", n->node->name,
                        n->node->op_type);
    if (status == PO_OK && worth)
        keep_result(run, print, inputs_size(n), n->node->n_out, n->out);
    return status;
}

static po_status run_node(frame *f, const po_node *node) {
    po_pnode n = {.run = f->run,
                  .arena = po_arena_child(f->arena),
                  .graph = f->graph,
                  .node = node,
                  .opset = po_op_version(f->graph, node)};
    n.in = PO_NEW_N(n.arena, po_ptensor *, node->n_in);
    n.out = PO_NEW_N(n.arena, po_ptensor *, node->n_out);
    po_status status = PO_OK;
    bool constant = node->n_out > 0;
    for (uint32_t k = 0; k < node->n_out; k++)
        constant = constant && (node->out[k] == PO_NONE || f->graph->values[node->out[k]].constant);
    for (uint32_t k = 0; k < node->n_in && status == PO_OK; k++)
        if (node->in[k] != PO_NONE)
            status = fetch(f, node->in[k], &n.in[k]);
    if (status == PO_OK && !constant)
        status = evaluate(f, &n);
    po_pn_mark(&n);
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (status == PO_OK && node->out[k] != PO_NONE && !constant) {
            if (n.out[k]) {
                f->slots[node->out[k]] = n.out[k];
                if (f->recorded)
                    f->spec->record(f->spec->user, node->out[k], n.out[k]);
            } else {
                status = po_pfail(f->run, "node '%.100s' (%.60s): output %u is not modelled",
                                  node->name, node->op_type, k);
            }
        } else {
            po_pt_drop(n.out[k]);
        }
    }
    po_arena_free(n.arena);
    return status;
}

/* For every place in the order the values that are used there last, as lists. */
static uint32_t *last_uses(frame *f, const po_node_id *order, uint32_t n, uint32_t **next) {
    const po_graph *g = f->graph;
    uint32_t *place = PO_NEW_N(f->arena, uint32_t, g->n_nodes);
    uint32_t *heads = PO_NEW_N(f->arena, uint32_t, n + 1);
    *next = PO_NEW_N(f->arena, uint32_t, g->n_values);
    for (uint32_t i = 0; i <= n; i++)
        heads[i] = PO_NONE;
    for (uint32_t i = 0; i < n; i++)
        place[order[i]] = i;
    for (po_value_id v = 0; v < g->n_values; v++) {
        const po_value *value = &g->values[v];
        if (value->n_outputs)
            continue;
        uint32_t last = value->producer != PO_NONE && !g->nodes[value->producer].removed
                            ? place[value->producer]
                            : 0;
        for (uint32_t u = 0; u < value->n_uses; u++)
            if (place[value->uses[u].node] > last)
                last = place[value->uses[u].node];
        (*next)[v] = heads[last];
        heads[last] = v;
    }
    return heads;
}

static po_status evaluate_nodes(frame *f, po_ptensor **out) {
    uint32_t n, *next;
    const po_graph *g = f->graph;
    const po_node_id *order = po_graph_order(g, f->arena, &n);
    const uint32_t *heads = last_uses(f, order, n, &next);
    for (uint32_t i = 0; i < n; i++) {
        PO_TRY(po_ctx_poll(f->run->ctx));
        PO_TRY(run_node(f, &g->nodes[order[i]]));
        for (uint32_t v = heads[i]; v != PO_NONE; v = next[v]) {
            po_pt_drop(f->slots[v]);
            f->slots[v] = NULL;
        }
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        PO_TRY(fetch(f, g->outputs[k], &out[k]));
        po_pt_use(out[k]);
        po_prun_compared(f->run, po_pb_total(&out[k]->bound), 1, 0);
    }
    return PO_OK;
}

static po_status evaluate_graph(frame *f, const po_pnamed *in, uint32_t n_in, po_ptensor **out) {
    f->arena = po_arena_child(f->run->arena);
    f->slots = PO_NEW_N(f->arena, po_ptensor *, f->graph->n_values);
    po_map *at = po_map_create(f->arena);
    for (uint32_t k = 0; k < n_in; k++)
        po_map_put(at, in[k].name, k);
    for (uint32_t i = 0; i < f->graph->n_inputs; i++) {
        uint32_t k = po_map_get(at, f->graph->values[f->graph->inputs[i]].name);
        if (k != PO_NONE)
            f->slots[f->graph->inputs[i]] = po_pt_use(in[k].tensor);
    }
    po_status status = evaluate_nodes(f, out);
    for (po_value_id v = 0; v < f->graph->n_values; v++)
        po_pt_drop(f->slots[v]);
    po_arena_free(f->arena);
    return status;
}

void po_prun_forget(po_prun *run) {
    for (uint32_t i = 0; i < run->n_kept; i++)
        for (uint32_t k = 0; k < run->kept[i].n_out; k++)
            po_pt_drop(run->kept[i].out[k]);
    run->n_kept = 0;
}

po_status po_prun_graph(po_prun *run, const po_pgraph_spec *spec, po_ptensor **out) {
    frame f = {.run = run, .spec = spec, .graph = spec->graph, .recorded = spec->record != NULL};
    return evaluate_graph(&f, spec->in, spec->n_in, out);
}

po_status po_prun_piece(po_prun *run, const po_ppiece *part, po_ptensor **out) {
    const po_graph *g = part->spec->graph;
    po_arena *arena = po_arena_child(run->arena);
    frame f = {.run = run,
               .arena = arena,
               .spec = part->spec,
               .graph = g,
               .recorded = part->spec->record != NULL};
    po_status status = PO_OK;
    f.slots = PO_NEW_N(arena, po_ptensor *, g->n_values);
    for (uint32_t i = 0; i < part->n_leaves; i++)
        f.slots[part->leaves[i]] = po_pt_use(part->tensors[i]);
    for (uint32_t i = 0; i < part->n_nodes && status == PO_OK; i++)
        status = run_node(&f, &g->nodes[part->nodes[i]]);
    if (status == PO_OK)
        status = fetch(&f, part->target, out);
    if (status == PO_OK)
        po_pt_use(*out);
    for (po_value_id v = 0; v < g->n_values; v++)
        po_pt_drop(f.slots[v]);
    po_arena_free(arena);
    return status;
}
