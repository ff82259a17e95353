/* What a run did, collected as it goes. */
#include "pipeline/record.h"

#include <stdio.h>
#include <stdlib.h>

po_record *po_record_create(po_arena *arena) {
    po_record *record = PO_NEW(arena, po_record);
    record->arena = arena;
    record->stage = "";
    record->summary.runtime = record->summary.cpu = record->summary.gpu = "";
    record->summary.winner = "original";
    record->summary.kept = "";
    record->summary.proof = "";
    record->summary.kernels_compared = record->summary.kernels_unrun = "";
    record->summary.latency_by = "";
    record->summary.error_reference = -1;
    return record;
}

/* A copy for a terminal: names in a model may hold anything. */
static const char *one_line(po_arena *arena, const char *text) {
    char *copy = po_arena_strdup(arena, text);
    for (unsigned char *p = (unsigned char *)copy; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
    return copy;
}

void po_record_note(po_record *record, const char *format, ...) {
    char text[PO_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *note = one_line(record->arena, text);
    PO_PUSH(record->arena, record->notes, record->n_notes, record->cap_notes, note);
}

void po_record_fired(po_record *record, const char *rule, uint64_t times) {
    if (times == 0)
        return;
    for (uint32_t i = 0; i < record->n_rewrites; i++) {
        po_rewrite_report *r = &record->rewrites[i];
        if (strcmp(r->stage, record->stage) == 0 && strcmp(r->rule, rule) == 0) {
            r->count += times;
            return;
        }
    }
    po_rewrite_report row = {record->stage, po_arena_strdup(record->arena, rule), times};
    PO_PUSH(record->arena, record->rewrites, record->n_rewrites, record->cap_rewrites, row);
}

po_candidate_report *po_record_candidate(po_record *record, const char *name) {
    for (uint32_t i = 0; i < record->n_candidates; i++)
        if (strcmp(record->candidates[i].name, name) == 0)
            return &record->candidates[i];
    po_candidate_report row = {.name = po_arena_strdup(record->arena, name), .verdict = ""};
    PO_PUSH(record->arena, record->candidates, record->n_candidates, record->cap_candidates, row);
    return &record->candidates[record->n_candidates - 1];
}

/* --- counts over a graph and its bodies --- */

/* Calls fn for each live node of the graph and of the bodies below it. */
static void each_node(const po_graph *graph, void (*fn)(const po_node *node, void *user),
                      void *user) {
    for (po_node_id i = 0; i < graph->n_nodes; i++) {
        const po_node *node = &graph->nodes[i];
        if (node->removed)
            continue;
        fn(node, user);
        for (uint32_t a = 0; a < node->n_attr; a++) {
            if (node->attr[a].kind == PO_ATTR_GRAPH)
                each_node(node->attr[a].u.g, fn, user);
            else if (node->attr[a].kind == PO_ATTR_GRAPHS)
                for (uint32_t k = 0; k < node->attr[a].n; k++)
                    each_node(node->attr[a].u.graphs[k], fn, user);
        }
    }
}

static void count_node(const po_node *node, void *user) {
    (void)node;
    ++*(uint64_t *)user;
}

uint64_t po_record_nodes(const po_graph *graph) {
    uint64_t n = 0;
    each_node(graph, count_node, &n);
    return n;
}

static uint64_t initializer_bytes(const po_graph *graph) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < graph->n_initializers; i++) {
        const po_tensor *tensor = graph->values[graph->initializers[i]].constant;
        bytes += tensor ? tensor->size : 0;
    }
    return bytes;
}

static void add_weights(const po_node *node, void *user) {
    uint64_t *bytes = user;
    for (uint32_t a = 0; a < node->n_attr; a++) {
        if (node->attr[a].kind == PO_ATTR_TENSOR)
            *bytes += node->attr[a].u.t->size;
        else if (node->attr[a].kind == PO_ATTR_GRAPH)
            *bytes += initializer_bytes(node->attr[a].u.g);
        else if (node->attr[a].kind == PO_ATTR_GRAPHS)
            for (uint32_t k = 0; k < node->attr[a].n; k++)
                *bytes += initializer_bytes(node->attr[a].u.graphs[k]);
    }
}

uint64_t po_record_weights(const po_graph *graph) {
    uint64_t bytes = initializer_bytes(graph);
    each_node(graph, add_weights, &bytes);
    return bytes;
}

typedef struct counting {
    po_arena *arena;
    po_map *index;
    po_operator_count *rows;
    uint32_t n, cap;
    bool after;
} counting;

static void count_operator(const po_node *node, void *user) {
    counting *c = user;
    const char *name = *node->domain
                           ? po_arena_printf(c->arena, "%s.%s", node->domain, node->op_type)
                           : node->op_type;
    uint32_t i = po_map_get(c->index, name);
    if (i == PO_NONE) {
        po_operator_count row = {.name = po_arena_strdup(c->arena, name)};
        i = c->n;
        PO_PUSH(c->arena, c->rows, c->n, c->cap, row);
        po_map_put(c->index, row.name, i);
    }
    if (c->after)
        c->rows[i].after++;
    else
        c->rows[i].before++;
}

/* Most frequent first, then by name: the same order on every run. */
static int compare_counts(const void *x, const void *y) {
    const po_operator_count *a = x, *b = y;
    uint64_t na = a->before > a->after ? a->before : a->after;
    uint64_t nb = b->before > b->after ? b->before : b->after;
    return na != nb ? (na < nb ? 1 : -1) : strcmp(a->name, b->name);
}

/* The candidate that came farthest: one that was compared, else the one that read fastest. */
static const po_candidate_report *nearest(const po_record *record) {
    const po_candidate_report *best = NULL;
    for (uint32_t i = 0; i < record->n_candidates; i++) {
        const po_candidate_report *c = &record->candidates[i];
        if (!*c->verdict)
            continue;
        bool first = !best || (c->compared && !best->compared);
        if (first || (c->compared == best->compared && c->ratio > best->ratio))
            best = c;
    }
    return best;
}

const char *po_record_why_kept(const po_record *record) {
    const po_summary *s = &record->summary;
    const po_candidate_report *c = nearest(record);
    if (s->changed)
        return "";
    if (s->level == 0)
        return "-O0 changes nothing";
    if (record->known)
        return po_arena_printf(record->arena, "as an earlier run found: %s", record->known);
    if (s->stopped == PO_CANCELLED)
        return "the run was interrupted before anything was confirmed";
    if (c)
        return one_line(record->arena,
                        po_arena_printf(record->arena, "%s: %s", c->name, c->verdict));
    if (s->stopped == PO_TIME_LIMIT)
        return "the time limit passed before anything was measured";
    if (record->cut)
        return "what was found before parts of the run were cut short makes no other form of it";
    return "no rewrite, mutant or kernel makes another form of it";
}

void po_record_finish(po_record *record, const po_graph *before, const po_graph *after) {
    counting c = {.arena = record->arena, .index = po_map_create(record->arena)};
    each_node(before, count_operator, &c);
    c.after = true;
    each_node(after, count_operator, &c);
    if (c.n > 0)
        qsort(c.rows, c.n, sizeof *c.rows, compare_counts);
    po_summary *s = &record->summary;
    s->kept = po_record_why_kept(record);
    s->operators = c.rows;
    s->n_operators = c.n;
    s->nodes_before = po_record_nodes(before);
    s->nodes_after = po_record_nodes(after);
    s->weights_before = po_record_weights(before);
    s->weights_after = po_record_weights(after);
    s->stages = record->stages;
    s->n_stages = record->n_stages;
    s->rewrites = record->rewrites;
    s->n_rewrites = record->n_rewrites;
    s->candidates = record->candidates;
    s->n_candidates = record->n_candidates;
    s->subprograms = record->subprograms;
    s->n_subprograms = record->n_subprograms;
    s->regions = record->regions;
    s->n_regions = record->n_regions;
    s->notes = record->notes;
    s->n_notes = record->n_notes;
}

/* The names of a node's values; "" for omitted ones. */
static const char *const *names_of(po_arena *arena, const po_graph *graph, uint32_t n,
                                   const po_value_id *ids) {
    const char **names = PO_NEW_N(arena, const char *, n);
    for (uint32_t i = 0; i < n; i++)
        names[i] = ids[i] == PO_NONE ? "" : po_graph_value_name(graph, ids[i]);
    return names;
}

po_node_view *po_record_views(po_arena *arena, const po_graph *graph, uint32_t *n) {
    const po_node_id *order = po_graph_order(graph, arena, n);
    po_node_view *views = PO_NEW_N(arena, po_node_view, *n);
    for (uint32_t i = 0; i < *n; i++) {
        const po_node *node = &graph->nodes[order[i]];
        views[i] = (po_node_view){.op_type = node->op_type,
                                  .domain = node->domain,
                                  .name = node->name,
                                  .n_in = node->n_in,
                                  .n_out = node->n_out,
                                  .in = names_of(arena, graph, node->n_in, node->in),
                                  .out = names_of(arena, graph, node->n_out, node->out)};
    }
    return views;
}
