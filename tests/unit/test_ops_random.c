/* Every row of the registry on random nodes, hostile ones included: nothing may crash or be
 * undefined (run under the sanitizers), and where the reference gives a result the shape rule must
 * agree with it. */
#include "ops/op.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

enum { TRIALS = 600, MAX_IN = 9 };

typedef struct dice {
    uint64_t seed, at;
} dice;

static int64_t roll(dice *d, int64_t n) {
    return (int64_t)(po_random_u64(d->seed, 7, d->at++) % (uint64_t)n);
}

static int64_t one_of(dice *d, const int64_t *list, int64_t n) {
    return list[roll(d, n)];
}

/* Mostly small, now and then at the ends of the range. */
static int64_t number(dice *d) {
    static const int64_t edges[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, -50, 50,
                                    INT32_MIN, INT32_MAX, 1LL << 40,     64,  63};
    if (roll(d, 40) == 0)
        return one_of(d, edges, sizeof edges / sizeof *edges);
    return roll(d, 3) ? roll(d, 4) : roll(d, 9) - 4;
}

static double real(dice *d) {
    static const double edges[] = {NAN, INFINITY, -INFINITY, -0.0, 1e300, -1e300, 0.5, 2.5};
    if (roll(d, 25) == 0)
        return edges[roll(d, sizeof edges / sizeof *edges)];
    return (double)(roll(d, 2001) - 1000) / 250.0;
}

static const po_tensor *tensor(dice *d, po_ctx *ctx, po_arena *arena, po_dtype dtype, uint32_t rank,
                               const int64_t *dims) {
    static const char *const words[] = {"", "a", "b", "abc", "1", "2.5"};
    po_tensor *t;
    assert_int_equal(po_tensor_create(ctx, arena, dtype, rank, dims, &t), PO_OK);
    for (int64_t i = 0; i < t->count; i++) {
        if (dtype == PO_STR) {
            const char *w = words[roll(d, 6)];
            ((po_bytes *)po_tensor_data(t))[i] = (po_bytes){w, strlen(w)};
        } else if (po_dtype_class_of(dtype) == PO_CLASS_FLOAT) {
            po_tensor_set_f64(t, i, real(d));
        } else {
            po_tensor_set_int(t, i, number(d));
        }
    }
    return t;
}

static po_dtype any_dtype(dice *d) {
    static const po_dtype all[] = {PO_F32, PO_F32,    PO_F32,   PO_F64, PO_F16,      PO_BF16,
                                   PO_I64, PO_I32,    PO_I8,    PO_U8,  PO_U16,      PO_U32,
                                   PO_U64, PO_BOOL,   PO_STR,   PO_I4,  PO_F8E4M3FN, PO_F8E5M2FNUZ,
                                   PO_U2,  PO_F4E2M1, PO_F8E8M0};
    return all[roll(d, sizeof all / sizeof *all)];
}

/* Shapes of one node's inputs have to do with one another, or nothing would ever fit. */
static const po_tensor *input(dice *d, po_ctx *ctx, po_arena *arena, po_dtype common, uint32_t rank,
                              const int64_t *base) {
    int64_t dims[8];
    int64_t kind = roll(d, 10);
    po_dtype dtype = roll(d, 12) ? common : any_dtype(d);
    if (kind < 5) {
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = roll(d, 8) ? base[i] : roll(d, 2) ? 1 : roll(d, 5);
        return tensor(d, ctx, arena, dtype, rank, dims);
    }
    if (kind < 8) {
        dims[0] = roll(d, 2) ? (int64_t)rank : roll(d, 4);
        return tensor(d, ctx, arena, roll(d, 3) ? PO_I64 : dtype, (uint32_t)roll(d, 2), dims);
    }
    if (kind == 8 && rank > 0)
        return tensor(d, ctx, arena, dtype, 1, &base[roll(d, rank)]);
    uint32_t other = (uint32_t)roll(d, 5);
    for (uint32_t i = 0; i < other; i++)
        dims[i] = roll(d, 5);
    return tensor(d, ctx, arena, dtype, other, dims);
}

static po_bytes word(dice *d) {
    static const char *const words[] = {
        "NOTSET",    "SAME_UPPER", "SAME_LOWER", "VALID",   "LEFT",    "RIGHT",         "none",
        "tanh",      "mean",       "sum",        "reflect", "edge",    "wrap",          "constant",
        "linear",    "nearest",    "cubic",      "up",      "down",    "add",           "mul",
        "max",       "asymmetric", "half_pixel", "floor",   "DCR",     "CRD",           "FLOAT",
        "INT64",     "bilinear",   "zeros",      "forward", "reverse", "bidirectional", "",
        "ij,jk->ik", "ii->i",      "...i->...",  "bij,bjk"};
    const char *w = words[roll(d, sizeof words / sizeof *words)];
    return (po_bytes){w, strlen(w)};
}

static po_attr attribute(dice *d, po_ctx *ctx, po_arena *arena, const po_attr_def *def) {
    po_attr a = {.name = def->name, .kind = def->kind, .n = 1};
    int64_t list[5];
    switch (def->kind) {
    case PO_ATTR_INT:
        a.u.i = number(d);
        break;
    case PO_ATTR_FLOAT:
        a.u.f = (float)real(d);
        break;
    case PO_ATTR_STRING:
        a.u.s = word(d);
        break;
    case PO_ATTR_INTS:
        a.n = (uint32_t)roll(d, 5);
        for (uint32_t i = 0; i < a.n; i++)
            list[i] = roll(d, 4) ? roll(d, 3) + 1 : number(d);
        a.u.ints = po_arena_memdup(arena, list, a.n * sizeof *list);
        break;
    case PO_ATTR_FLOATS: {
        float *floats = PO_NEW_N(arena, float, 4);
        a.n = (uint32_t)roll(d, 5);
        for (uint32_t i = 0; i < a.n; i++)
            floats[i] = (float)real(d);
        a.u.floats = floats;
        break;
    }
    case PO_ATTR_STRINGS: {
        po_bytes *strings = PO_NEW_N(arena, po_bytes, 4);
        a.n = (uint32_t)roll(d, 5);
        for (uint32_t i = 0; i < a.n; i++)
            strings[i] = word(d);
        a.u.strings = strings;
        break;
    }
    case PO_ATTR_TENSOR:
        a.u.t = tensor(d, ctx, arena, any_dtype(d), 1, (int64_t[]){roll(d, 4) ? 1 : roll(d, 3)});
        break;
    default:
        a.kind = PO_ATTR_UNDEFINED;
        break;
    }
    return a;
}

typedef struct trial {
    po_graph *graph;
    po_node_id node;
    uint32_t n_in;
    const po_array *in[MAX_IN];
} trial;

static void add_input(dice *d, po_ctx *ctx, trial *t, const po_tensor *value, po_value_id *id) {
    po_graph *g = t->graph;
    po_array *a;
    if (roll(d, 2)) {
        *id = po_graph_add_constant(g, NULL, value);
    } else {
        po_type type = po_tensor_type(g->arena, value);
        *id = po_graph_add_input(g, NULL, &type);
    }
    assert_int_equal(po_array_from_tensor(ctx, g->arena, value, &a), PO_OK);
    t->in[t->n_in] = a;
}

static void make(dice *d, po_ctx *ctx, po_op_id op, po_model *model, trial *t) {
    static const int64_t versions[] = {1,  5,  6,  7,  9,  10, 11, 12, 13, 15, 17,
                                       18, 19, 21, 23, 25, 13, 17, 18, 21, 26, 27};
    const po_op_row *row = po_op_row_of(op);
    po_opset *opset = model->opsets;
    *opset = (po_opset){
        row->domain, row->domain[0] ? 1 : one_of(d, versions, sizeof versions / sizeof *versions)};
    po_graph *g = t->graph = po_graph_create(ctx, model, "random");
    uint32_t rank = (uint32_t)roll(d, 6);
    int64_t base[8];
    for (uint32_t i = 0; i < rank; i++)
        base[i] = roll(d, 20) ? 1 + roll(d, 4) : 0;
    int most = row->max_in < 0 ? row->min_in + 3 : row->max_in;
    uint32_t n_in = (uint32_t)(row->min_in + roll(d, most - row->min_in + 1));
    po_dtype common = any_dtype(d);
    po_value_id in[MAX_IN], out[8];
    for (t->n_in = 0; t->n_in < n_in; t->n_in++) {
        in[t->n_in] = PO_NONE;
        t->in[t->n_in] = NULL;
        if ((int)t->n_in < row->min_in || roll(d, 5))
            add_input(d, ctx, t, input(d, ctx, g->arena, common, rank, base), &in[t->n_in]);
    }
    most = row->max_out < 0 ? row->min_out + 2 : row->max_out;
    uint32_t n_out = (uint32_t)(row->min_out + roll(d, most - row->min_out + 1)), n_attr = 0;
    for (uint32_t k = 0; k < n_out; k++)
        out[k] = k && roll(d, 8) == 0 ? PO_NONE : po_graph_add_value(g, NULL, NULL);
    po_attr attrs[32];
    for (const po_attr_def *def = row->attrs; def && def->name && n_attr < 32; def++)
        if (opset->version >= def->since && (def->until == 0 || opset->version <= def->until) &&
            (def->required || roll(d, 5) < 2))
            attrs[n_attr++] = attribute(d, ctx, g->arena, def);
    po_node_spec spec = {.op = op,
                         .n_in = n_in,
                         .in = in,
                         .n_out = n_out,
                         .out = out,
                         .n_attr = n_attr,
                         .attr = attrs};
    t->node = po_ops_add(g, PO_NONE, &spec);
}

static const char *disagreement(const po_value *v, const po_array *a) {
    const po_type *t = &v->type;
    if (t->kind == PO_TYPE_UNKNOWN)
        return NULL;
    if (t->kind != PO_TYPE_TENSOR || (t->dtype != PO_DT_NONE && t->dtype != a->dtype))
        return "type";
    if (t->has_rank && t->rank != a->rank)
        return "rank";
    for (uint32_t i = 0; t->has_rank && i < t->rank; i++)
        if (t->dims[i].value >= 0 && t->dims[i].value != a->dims[i])
            return "dim";
    if (v->partial && (v->partial->n != (uint64_t)a->count || !a->i))
        return "length of contents";
    for (uint32_t i = 0; v->partial && i < v->partial->n; i++)
        if (v->partial->items[i].value >= 0 && v->partial->items[i].value != a->i[i])
            return "contents";
    return NULL;
}

typedef struct counts {
    int evaluated, refused, wrong;
} counts;

static void print_trial(const trial *t, const char *what, uint64_t seed) {
    const po_node *n = &t->graph->nodes[t->node];
    printf("%s (seed %llu): %s of opset %lld:", n->op_type, (unsigned long long)seed, what,
           (long long)t->graph->model->opsets[0].version);
    for (uint32_t k = 0; k < t->n_in; k++) {
        printf(" %s[", t->in[k] ? po_dtype_name(t->in[k]->dtype) : "-");
        for (uint32_t i = 0; t->in[k] && i < t->in[k]->rank; i++)
            printf("%s%lld", i ? "," : "", (long long)t->in[k]->dims[i]);
        printf("]");
    }
    for (uint32_t k = 0; k < n->n_attr; k++) {
        printf(" %s=", n->attr[k].name);
        if (n->attr[k].kind == PO_ATTR_INT)
            printf("%lld", (long long)n->attr[k].u.i);
        if (n->attr[k].kind == PO_ATTR_STRING)
            printf("%s", n->attr[k].u.s.data);
        for (uint32_t i = 0; n->attr[k].kind == PO_ATTR_INTS && i < n->attr[k].n; i++)
            printf("%s%lld", i ? "," : "", (long long)n->attr[k].u.ints[i]);
    }
    printf("\n");
}

static void run(po_op_id op, uint64_t seed, counts *c) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    dice d = {.seed = seed};
    po_opset opset;
    po_model model = {.opsets = &opset, .n_opsets = 1};
    trial t = {0};
    make(&d, &ctx, op, &model, &t);
    po_array *out[8] = {0};
    const po_node *node = &t.graph->nodes[t.node];
    po_status inferred = po_infer_graph(&ctx, t.graph, false);
    assert_true(inferred == PO_OK || inferred == PO_BAD_INPUT);
    po_ctx_clear(&ctx);
    po_status evaluated = po_ref_node(&ctx, t.graph->arena, t.graph, node, t.in, out);
    assert_true(evaluated == PO_OK || evaluated == PO_UNSUPPORTED);
    c->evaluated += evaluated == PO_OK;
    if (evaluated == PO_OK && inferred != PO_OK) {
        c->refused++;
        if (c->refused <= 2)
            print_trial(&t, "evaluated, but its shapes are refused", seed);
    }
    for (uint32_t k = 0; evaluated == PO_OK && inferred == PO_OK && k < node->n_out; k++) {
        const char *what =
            node->out[k] == PO_NONE ? NULL : disagreement(&t.graph->values[node->out[k]], out[k]);
        if (what && c->wrong++ < 3)
            print_trial(&t, what, seed);
    }
    po_graph_free(t.graph);
}

static void test_random_nodes(void **state) {
    counts sum = {0};
    int reached = 0, with_ref = 0;
    (void)state;
    for (po_op_id op = 1; op < PO_OP_COUNT; op++) {
        const po_op_row *row = po_op_row_of(op);
        counts c = {0};
        if (row->flags & PO_OPF_CONTROL)
            continue;
        double start = po_now();
        for (uint64_t k = 0; k < TRIALS; k++)
            run(op, op * 100000ull + k, &c);
        if (row->ref && c.evaluated == 0)
            printf("never evaluated: %s\n", row->name);
        if (po_now() - start > 1)
            printf("%s took %.1f s\n", row->name, po_now() - start);
        with_ref += row->ref != NULL;
        reached += row->ref && c.evaluated > 0;
        sum.evaluated += c.evaluated;
        sum.refused += c.refused;
        sum.wrong += c.wrong;
    }
    printf("%d of %d operators evaluated, %d nodes in all\n", reached, with_ref, sum.evaluated);
    assert_int_equal(sum.wrong, 0);
    assert_int_equal(sum.refused, 0);
    assert_true(reached * 10 >= with_ref * 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
