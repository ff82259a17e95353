/* Einsum: explicit and implicit outputs, repeated labels, ellipsis. */
#include "ops/rule.h"

enum { MAX_OPERANDS = 16, MAX_LABELS = 64, LETTERS = 52, NO_LABEL = -1 };

/* Labels are numbered: letters by their place in the alphabet(s), then the axes of the ellipsis
 * from the right: LETTERS + 0 is its last axis. */
typedef struct term {
    uint32_t n;
    int8_t labels[PO_MAX_RANK];
} term;

typedef struct equation {
    uint32_t n_in;
    term in[MAX_OPERANDS], out;
    uint32_t ellipsis; /* the widest of the operands' */
    bool used[LETTERS + PO_MAX_RANK];
} equation;

typedef struct parser {
    po_ctx *ctx;
    const po_node *node;
    const char *at, *end;
} parser;

static po_status bad(const parser *p, const char *why) {
    return po_rule_bad(p->ctx, p->node, "equation: %s", why);
}

static int letter(char c) {
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : NO_LABEL;
}

/* One term up to ',' or "->" or the end; an ellipsis stands for `ellipsis` axes. */
static po_status read_term(parser *p, uint32_t ellipsis, bool *had_ellipsis, term *t) {
    *had_ellipsis = false;
    t->n = 0;
    while (p->at < p->end && *p->at != ',' && *p->at != '-') {
        char c = *p->at;
        if (c == ' ') {
            p->at++;
        } else if (c == '.') {
            if (*had_ellipsis || p->end - p->at < 3 || p->at[1] != '.' || p->at[2] != '.')
                return bad(p, "misplaced '.'");
            *had_ellipsis = true;
            p->at += 3;
            for (uint32_t k = ellipsis; k-- > 0;) {
                if (t->n == PO_MAX_RANK)
                    return bad(p, "too many axes");
                t->labels[t->n++] = (int8_t)(LETTERS + (int)k);
            }
        } else {
            if (letter(c) == NO_LABEL)
                return bad(p, "unknown character");
            if (t->n == PO_MAX_RANK)
                return bad(p, "too many axes");
            t->labels[t->n++] = (int8_t)letter(c);
            p->at++;
        }
    }
    return PO_OK;
}

static void implicit_output(equation *e) {
    int count[LETTERS] = {0};
    for (uint32_t i = 0; i < e->n_in; i++)
        for (uint32_t k = 0; k < e->in[i].n; k++)
            if (e->in[i].labels[k] < LETTERS)
                count[e->in[i].labels[k]]++;
    for (uint32_t k = e->ellipsis; k-- > 0;)
        e->out.labels[e->out.n++] = (int8_t)(LETTERS + (int)k);
    /* Upper-case letters come first, as characters are ordered. */
    for (int k = 0; k < LETTERS; k++) {
        int l = k < 26 ? k + 26 : k - 26;
        if (count[l] == 1 && e->out.n < PO_MAX_RANK)
            e->out.labels[e->out.n++] = (int8_t)l;
    }
}

static po_status parse(po_ctx *ctx, const po_graph *graph, const po_node *node, uint32_t n_in,
                       const uint32_t *ranks, equation *e) {
    po_bytes text = po_op_string(graph, node, "equation");
    parser p = {.ctx = ctx, .node = node};
    bool dots;
    memset(e, 0, sizeof *e);
    p.at = text.size ? text.data : "";
    p.end = p.at + text.size;
    e->n_in = n_in;
    for (uint32_t i = 0; i < n_in; i++) {
        const char *start = p.at;
        PO_TRY(read_term(&p, 0, &dots, &e->in[i]));
        if (e->in[i].n > ranks[i] || (!dots && e->in[i].n != ranks[i]))
            return bad(&p, "a term does not have its operand's rank");
        uint32_t wide = ranks[i] - e->in[i].n;
        p.at = start;
        PO_TRY(read_term(&p, wide, &dots, &e->in[i]));
        e->ellipsis = wide > e->ellipsis ? wide : e->ellipsis;
        for (uint32_t k = 0; k < e->in[i].n; k++)
            e->used[e->in[i].labels[k]] = true;
        if (i + 1 < n_in && (p.at == p.end || *p.at++ != ','))
            return bad(&p, "fewer terms than operands");
    }
    if (p.at == p.end) {
        implicit_output(e);
        return PO_OK;
    }
    if (p.end - p.at < 2 || p.at[0] != '-' || p.at[1] != '>')
        return bad(&p, "more terms than operands");
    p.at += 2;
    PO_TRY(read_term(&p, e->ellipsis, &dots, &e->out));
    if (p.at != p.end)
        return bad(&p, "text after the output");
    bool seen[LETTERS + PO_MAX_RANK] = {false};
    for (uint32_t k = 0; k < e->out.n; k++) {
        size_t l = (unsigned char)e->out.labels[k];
        if (!e->used[l] || seen[l])
            return bad(&p, "an output label is unknown or repeated");
        seen[l] = true;
    }
    return PO_OK;
}

po_status po_infer_einsum(po_infer *infer) {
    uint32_t ranks[MAX_OPERANDS];
    equation *e = PO_NEW(infer->arena, equation);
    po_dtype dtype = po_infer_dtype(infer, 0);
    po_infer_set_unranked(infer, 0, dtype);
    if (infer->n_in > MAX_OPERANDS)
        return PO_OK;
    for (uint32_t i = 0; i < infer->n_in; i++) {
        const po_type *t = po_rule_ranked(infer, i);
        if (!t)
            return PO_OK;
        ranks[i] = t->rank;
    }
    PO_TRY(parse(infer->ctx, infer->graph, infer->node, infer->n_in, ranks, e));
    po_dim size[LETTERS + PO_MAX_RANK];
    for (int l = 0; l < LETTERS + PO_MAX_RANK; l++)
        size[l] = PO_DIM(1);
    for (uint32_t i = 0; i < infer->n_in; i++)
        for (uint32_t k = 0; k < e->in[i].n; k++)
            PO_TRY(po_rule_broadcast_dim(infer, size[e->in[i].labels[k]], infer->in[i]->dims[k],
                                         &size[e->in[i].labels[k]]));
    po_dim *dims = po_rule_out(infer, 0, dtype, e->out.n);
    for (uint32_t k = 0; k < e->out.n; k++)
        dims[k] = size[e->out.labels[k]];
    return PO_OK;
}

/* The loop nest: output labels, then summed ones. */
typedef struct nest {
    uint32_t n;
    int64_t dims[MAX_LABELS];
    int64_t out[MAX_LABELS], in[MAX_OPERANDS][MAX_LABELS]; /* strides */
} nest;

static po_status make_nest(po_ref *ref, const equation *e, nest *loops) {
    int64_t size[LETTERS + PO_MAX_RANK], strides[PO_MAX_RANK], space = 1;
    int place[LETTERS + PO_MAX_RANK];
    for (int l = 0; l < LETTERS + PO_MAX_RANK; l++) {
        size[l] = 1;
        place[l] = -1;
    }
    for (uint32_t i = 0; i < e->n_in; i++)
        for (uint32_t k = 0; k < e->in[i].n; k++)
            if (ref->in[i]->dims[k] != 1)
                size[e->in[i].labels[k]] = ref->in[i]->dims[k];
    memset(loops, 0, sizeof *loops);
    po_rule_strides(e->out.n, ref->out[0]->dims, strides);
    for (uint32_t k = 0; k < e->out.n; k++) {
        if (loops->n == MAX_LABELS)
            return PO_UNSUPPORTED;
        place[e->out.labels[k]] = (int)loops->n;
        loops->out[loops->n] = strides[k];
        loops->dims[loops->n++] = size[e->out.labels[k]];
    }
    for (int l = 0; l < LETTERS + PO_MAX_RANK; l++) {
        if (!e->used[l] || place[l] >= 0)
            continue;
        if (loops->n == MAX_LABELS)
            return PO_UNSUPPORTED;
        place[l] = (int)loops->n;
        loops->dims[loops->n++] = size[l];
    }
    for (uint32_t k = 0; k < loops->n; k++)
        if (!po_mul_i64(space, loops->dims[k], &space) || space > INT64_C(1) << 36)
            return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < e->n_in; i++) {
        po_rule_strides(ref->in[i]->rank, ref->in[i]->dims, strides);
        for (uint32_t k = 0; k < e->in[i].n; k++)
            if (ref->in[i]->dims[k] != 1)
                loops->in[i][place[e->in[i].labels[k]]] += strides[k];
    }
    return PO_OK;
}

po_status po_ref_einsum(po_ref *ref) {
    PO_TRY(po_rule_outputs(ref));
    const po_array *out = ref->out[0];
    uint32_t ranks[MAX_OPERANDS];
    equation *e = PO_NEW(ref->arena, equation);
    nest *loops = PO_NEW(ref->arena, nest);
    int64_t index[MAX_LABELS] = {0};
    if (ref->n_in > MAX_OPERANDS || !po_rule_floats(ref, 0, ref->n_in - 1))
        return PO_UNSUPPORTED;
    for (uint32_t i = 0; i < ref->n_in; i++) {
        if (!ref->in[i])
            return PO_UNSUPPORTED;
        ranks[i] = ref->in[i]->rank;
    }
    PO_TRY(parse(ref->ctx, ref->graph, ref->node, ref->n_in, ranks, e));
    PO_TRY(make_nest(ref, e, loops));
    for (uint32_t k = 0; k < loops->n; k++)
        if (loops->dims[k] == 0)
            return PO_OK;
    uint32_t outer = loops->n ? loops->n - 1 : 0;
    int64_t inner = loops->n ? loops->dims[outer] : 1;
    do {
        int64_t to = 0, from[MAX_OPERANDS] = {0};
        for (uint32_t k = 0; k < outer; k++) {
            to += index[k] * loops->out[k];
            for (uint32_t i = 0; i < ref->n_in; i++)
                from[i] += index[k] * loops->in[i][k];
        }
        for (int64_t x = 0; x < inner; x++) {
            double product = 1;
            for (uint32_t i = 0; i < ref->n_in; i++)
                product *= ref->in[i]->f[from[i] + x * loops->in[i][outer]];
            out->f[to + x * loops->out[outer]] += product;
        }
    } while (po_next_index(outer, loops->dims, index));
    return PO_OK;
}

/* --- attributes --- */

const po_attr_def po_attrs_einsum[] = {
    {.name = "equation", .kind = PO_ATTR_STRING, .since = 12, .required = true},
    {0},
};
