/* What the standard operators take and give at an opset version (signatures.def): how many inputs
 * and outputs, which of them must be there, and their element types. */
#include "ops/op.h"

enum { MOST_LETTERS = 8 };

typedef struct signature {
    uint16_t op, since;
    const char *in, *out;
    uint32_t types[MOST_LETTERS]; /* of each letter, a bit for each element type */
} signature;

#define PO_NEWEST_OPSET(version) enum { NEWEST_OPSET = version };
#define PO_SIGNATURE(...)
#include "ops/signatures.def"
#undef PO_NEWEST_OPSET
#undef PO_SIGNATURE

#define PO_NEWEST_OPSET(version)
#define PO_SIGNATURE(id, since, in, out, ...) {PO_OP_##id, since, in, out, {__VA_ARGS__}},
static const signature signatures[] = {
#include "ops/signatures.def"
};
#undef PO_NEWEST_OPSET
#undef PO_SIGNATURE

/* A parameter of a signature. */
typedef struct param {
    char letter, option; /* option: '?', '*', '+' or 0 */
} param;

/* The parameter of a place; the last one where it repeats. False beyond the last. */
static bool param_at(const char *params, uint32_t at, param *found) {
    uint32_t k = 0;
    for (const char *p = params; *p; k++) {
        found->letter = *p++;
        found->option = *p == '?' || *p == '*' || *p == '+' ? *p++ : '\0';
        if (k == at || found->option == '*' || found->option == '+')
            return true;
    }
    return false;
}

/* The row in force; NULL where none is known: other domains, operators without a row, opsets newer
 * than the table. */
static const signature *find(const po_graph *graph, const po_node *node) {
    const po_op_row *row = po_op_row_of(node->op);
    int64_t version = po_op_version(graph, node);
    if (!row || *row->domain || version < 1 || version > NEWEST_OPSET)
        return NULL;
    size_t low = 0, high = sizeof signatures / sizeof signatures[0];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const signature *s = &signatures[mid];
        if (s->op < node->op || (s->op == node->op && s->since <= version))
            low = mid + 1;
        else
            high = mid;
    }
    const signature *s = low > 0 ? &signatures[low - 1] : NULL;
    return s && s->op == node->op && *s->in != '-' ? s : NULL;
}

static po_status bad(po_ctx *ctx, const po_node *node, const char *what, uint32_t at,
                     const char *why) {
    return po_fail(ctx, PO_BAD_INPUT, "node '%s' (%s): %s %u %s", node->name, node->op_type, what,
                   at, why);
}

static po_status check_attrs(po_ctx *ctx, const po_node *node, int64_t version) {
    const po_op_row *row = po_op_row_of(node->op);
    for (uint32_t k = 0; k < node->n_attr; k++) {
        const char *name = node->attr[k].name;
        bool known = strncmp(name, "__", 2) == 0; /* runtimes' own */
        for (const po_attr_def *d = row->attrs; d && d->name && !known; d++)
            known = strcmp(d->name, name) == 0 && version >= d->since &&
                    (d->until == 0 || version <= d->until);
        if (!known)
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): the operator has no attribute '%.60s' at opset %lld",
                           node->name, node->op_type, name, (long long)version);
    }
    return PO_OK;
}

po_status po_signature_check(po_ctx *ctx, const po_graph *graph, const po_node *node) {
    const signature *s = find(graph, node);
    param p;
    if (!s)
        return PO_OK;
    for (uint32_t k = 0; k < node->n_in; k++)
        if (!param_at(s->in, k, &p))
            return bad(ctx, node, "input", k, "is one too many for the operator");
    for (uint32_t k = 0; k < node->n_out; k++)
        if (!param_at(s->out, k, &p))
            return bad(ctx, node, "output", k, "is one too many for the operator");
    for (uint32_t k = 0; param_at(s->in, k, &p); k++) {
        if (p.option == '+' || (p.option == '*' && k >= node->n_in))
            break;
        if (p.option != '?' && (k >= node->n_in || node->in[k] == PO_NONE))
            return bad(ctx, node, "input", k, "is missing");
    }
    return check_attrs(ctx, node, po_op_version(graph, node));
}

/* Inputs that are lists or single numbers: their rank, whatever the others are. */
typedef struct rank_rule {
    uint16_t op;
    uint8_t input, rank;
} rank_rule;

static const rank_rule ranks[] = {
    {PO_OP_Col2Im, 1, 1},  {PO_OP_Col2Im, 2, 1},  {PO_OP_ConstantOfShape, 0, 1},
    {PO_OP_Dropout, 1, 0}, {PO_OP_Dropout, 2, 0}, {PO_OP_Expand, 1, 1},
    {PO_OP_Reshape, 1, 1}, {PO_OP_Slice, 1, 1},   {PO_OP_Slice, 2, 1},
    {PO_OP_Tile, 1, 1},    {PO_OP_TopK, 1, 1},
};

static po_status check_ranks(po_ctx *ctx, const po_graph *graph, const po_node *node) {
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        const rank_rule *r = &ranks[i];
        if (r->op != node->op || r->input >= node->n_in || node->in[r->input] == PO_NONE)
            continue;
        const po_type *t = &graph->values[node->in[r->input]].type;
        if (t->kind == PO_TYPE_TENSOR && t->has_rank && t->rank != r->rank)
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): input %u must have rank %u (found %u)", node->name,
                           node->op_type, r->input, r->rank, t->rank);
    }
    return PO_OK;
}

po_status po_signature_outputs(po_ctx *ctx, const po_graph *graph, const po_node *node) {
    const signature *s = find(graph, node);
    param p;
    for (uint32_t k = 0; s && k < node->n_out; k++) {
        if (node->out[k] == PO_NONE || !param_at(s->out, k, &p))
            continue;
        const po_type *t = &graph->values[node->out[k]].type;
        if (t->kind == PO_TYPE_TENSOR && t->dtype && !(s->types[p.letter - 'A'] >> t->dtype & 1))
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): output %u would have element type %s, which the "
                           "operator does not give at opset %lld",
                           node->name, node->op_type, k, po_dtype_name(t->dtype),
                           (long long)po_op_version(graph, node));
    }
    return PO_OK;
}

po_status po_signature_types(po_ctx *ctx, const po_graph *graph, const po_node *node) {
    const signature *s = find(graph, node);
    if (s)
        PO_TRY(check_ranks(ctx, graph, node));
    po_dtype bound[MOST_LETTERS] = {PO_DT_NONE};
    for (uint32_t k = 0; s && k < node->n_in; k++) {
        param p;
        if (node->in[k] == PO_NONE || !param_at(s->in, k, &p))
            continue;
        const po_type *t = &graph->values[node->in[k]].type;
        if (t->kind != PO_TYPE_TENSOR || t->dtype == PO_DT_NONE)
            continue;
        int letter = p.letter - 'A';
        if (!(s->types[letter] >> t->dtype & 1))
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): input %u has element type %s, which the operator does "
                           "not take at opset %lld",
                           node->name, node->op_type, k, po_dtype_name(t->dtype),
                           (long long)po_op_version(graph, node));
        if (p.option == '+')
            continue;
        if (bound[letter] != PO_DT_NONE && bound[letter] != t->dtype)
            return po_fail(ctx, PO_BAD_INPUT,
                           "node '%s' (%s): element types differ (%s and %s of input %u)",
                           node->name, node->op_type, po_dtype_name(bound[letter]),
                           po_dtype_name(t->dtype), k);
        bound[letter] = t->dtype;
    }
    return PO_OK;
}

/* The letter of a tensor of that type at a place, of one that may be of type `to` as well; 0 where
 * it is another's place; -1 where it may not. */
static int retyped(const po_graph *graph, const signature *s, const char *params, uint32_t at,
                   po_value_id value, po_dtype from, po_dtype to) {
    if (value == PO_NONE)
        return 0;
    const po_type *t = &graph->values[value].type;
    param p;
    if (t->kind != PO_TYPE_TENSOR || t->dtype != from)
        return 0;
    if (!param_at(params, at, &p) || !(s->types[p.letter - 'A'] >> to & 1))
        return -1;
    return p.letter;
}

bool po_signature_retypes(const po_graph *graph, const po_node *node, po_dtype from, po_dtype to) {
    const signature *s = find(graph, node);
    uint32_t taken = 0;
    for (uint32_t k = 0; s && k < node->n_in; k++) {
        const int letter = retyped(graph, s, s->in, k, node->in[k], from, to);
        if (letter < 0)
            return false;
        taken |= letter > 0 ? 1u << (letter - 'A') : 0;
    }
    for (uint32_t k = 0; s && k < node->n_out; k++) {
        const int letter = retyped(graph, s, s->out, k, node->out[k], from, to);
        if (letter < 0 || (letter > 0 && !(taken >> (letter - 'A') & 1)))
            return false;
    }
    return s != NULL;
}
