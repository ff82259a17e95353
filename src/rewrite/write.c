/* Nodes from text, as the model's opset has them. */
#include "ops/shape.h"
#include "rewrite/pattern.h"
#include "rewrite/spelling/match.h"

#include <ctype.h>
#include <math.h>

typedef struct writer {
    po_graph *graph;
    po_node_id place;
    po_match match;
} writer;

static po_value_id write_part(writer *w, const char *p);

static bool is_value(const writer *w, const char *p) {
    return isupper((unsigned char)*p) ||
           (po_text_letter(p) && po_matched(&w->match, *p) != PO_NONE);
}

/* "{name=2, name=word}", each of the kind that the registry says. */
static void set_attributes(writer *w, po_node_id id, const char *p) {
    po_graph *g = w->graph;
    while (*p == '{' || *p == ',') {
        p += 1 + strspn(p + 1, " ");
        const char *value = strchr(p, '=') + 1;
        const char *name = po_arena_printf(g->arena, "%.*s", (int)(value - 1 - p), p);
        const po_attr_def *def = po_op_row_of(g->nodes[id].op)->attrs;
        while (strcmp(def->name, name) != 0)
            def++;
        p = po_text_skip(value, ",}");
        if (def->kind == PO_ATTR_STRING)
            po_node_set_string(g, id, name,
                               po_arena_printf(g->arena, "%.*s", (int)(p - value), value));
        else if (def->kind == PO_ATTR_FLOAT)
            po_node_set_float(g, id, name, (float)po_text_number(value, &w->match));
        else
            po_node_set_int(g, id, name, (int64_t)po_text_number(value, &w->match));
    }
}

/* Axes became an input with opset 13 for ReduceSum, with 18 for the others. */
static po_value_id write_reduction(writer *w, po_op_id op, po_value_id x, int64_t axis) {
    po_graph *g = w->graph;
    const bool as_input = po_opset_of(g) >= (op == PO_OP_ReduceSum ? 13 : 18);
    /* Before opset 11 they count from 0. */
    if (axis < 0 && po_rank_of(g, x) > 0)
        axis += po_rank_of(g, x);
    po_value_id in[2] = {x, as_input ? po_add_i64s(g, NULL, 1, &axis) : PO_NONE};
    /* The next inference of the whole graph finds the shape. */
    const po_type type = po_type_unranked(g->values[x].type.dtype);
    po_value_id y = po_add_op(g, w->place, op, as_input ? 2 : 1, in, &type);
    if (!as_input)
        po_node_set_ints(g, g->values[y].producer, "axes", 1, &axis);
    po_node_set_int(g, g->values[y].producer, "keepdims", 1);
    return y;
}

/* Bounds became inputs with opset 11; an infinite one is left out. */
static po_value_id write_clip(writer *w, po_value_id x, double low, double high) {
    po_graph *g = w->graph;
    const po_dtype dtype = g->values[x].type.dtype;
    po_value_id in[3] = {x, PO_NONE, PO_NONE};
    if (po_opset_of(g) < 11) {
        po_value_id y = po_add_op(g, w->place, PO_OP_Clip, 1, in, NULL);
        if (isfinite(low))
            po_node_set_float(g, g->values[y].producer, "min", (float)low);
        if (isfinite(high))
            po_node_set_float(g, g->values[y].producer, "max", (float)high);
        return y;
    }
    if (isfinite(low))
        in[1] = po_add_floats(g, NULL, dtype, 0, NULL, &low);
    if (isfinite(high))
        in[2] = po_add_floats(g, NULL, dtype, 0, NULL, &high);
    return po_add_op(g, w->place, PO_OP_Clip, isfinite(high) ? 3 : 2, in, NULL);
}

static po_value_id write_operator(writer *w, const char *p) {
    po_graph *g = w->graph;
    const size_t length = strcspn(p, "([{");
    const po_op_id op = po_op_find("", po_arena_printf(g->arena, "%.*s", (int)length, p));
    const char *part[PO_TEXT_OPERANDS], *mark = p + length;
    const uint32_t n = po_text_operands(po_text_skip(mark, "("), part);
    po_value_id in[PO_TEXT_OPERANDS], y;
    in[0] = write_part(w, part[0]);
    if (op == PO_OP_Mul && !is_value(w, part[1]) && po_near(po_text_number(part[1], &w->match), 1))
        return in[0];
    if (*mark == '[')
        return write_reduction(w, op, in[0], (int64_t)po_text_number(mark + 1, &w->match));
    if (op == PO_OP_Clip) {
        y = write_clip(w, in[0], po_text_number(part[1], &w->match),
                       po_text_number(part[2], &w->match));
    } else {
        bool known = true;
        for (uint32_t i = 1; i < n; i++) {
            in[i] = write_part(w, part[i]);
            known = known && po_rank_of(g, in[i]) >= 0;
        }
        /* What is not known of the others is no wider than the first. */
        const po_type type = g->values[in[0]].type;
        y = po_add_op(g, w->place, op, n, in, known ? NULL : &type);
        set_attributes(w, g->values[y].producer, mark);
    }
    po_infer_one(g, g->values[y].producer);
    return y;
}

static po_value_id write_part(writer *w, const char *p) {
    if (!is_value(w, p)) {
        const po_value_id y = w->graph->nodes[w->place].out[0];
        return po_add_floats(w->graph, NULL, w->graph->values[y].type.dtype, 0, NULL,
                             (const double[]){po_text_number(p, &w->match)});
    }
    return isupper((unsigned char)*p) ? write_operator(w, p) : po_matched(&w->match, *p);
}

po_value_id po_write(po_graph *graph, po_node_id place, const po_match *match, const char *text) {
    writer w = {graph, place, *match};
    for (const char *end; *(end = po_text_skip(text, ";")); text = end + 1 + strspn(end + 1, " ")) {
        /* "e = Exp(x)" */
        const po_value_id named = write_part(&w, strchr(text, '=') + 2);
        po_match_value(&w.match, *text, named);
    }
    return write_part(&w, text);
}

bool po_write_for(po_graph *graph, po_node_id place, po_value_id y, const po_match *match,
                  const char *text) {
    const po_value_id made = po_write(graph, place, match, text);
    po_infer_merge(graph, made, &graph->values[y].type);
    po_substitute(graph, y, made);
    return true;
}

bool po_write_instead(po_graph *graph, po_node_id id, const po_match *match, const char *text) {
    return po_write_for(graph, id, graph->nodes[id].out[0], match, text);
}

bool po_rewrite_by_text(po_rewriting *r, po_graph *graph, po_node_id id, const po_text_law *laws,
                        size_t n) {
    po_match m;
    for (const po_text_law *l = laws; l < laws + n; l++) {
        const po_node *node = &graph->nodes[id];
        if (po_matches(graph, r->scratch, node, l->from, &m) &&
            (!l->where || l->where(graph, node, &m)))
            return po_law_fired(r, l->law, po_write_instead(graph, id, &m, l->to));
    }
    return false;
}
