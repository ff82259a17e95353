/* What can be chosen for each subprogram, by time and layout, and what neighbours save
 * (layout_choice.h).
 */
#include "pipeline/search/layout_choice.h"

#include "ops/op.h"
#include "ops/rewrite.h"

enum { MOST_REGION = 48, MOST_OPTIONS = 16 };
/* Of the original's speed, at least: moves do not make up for more. */
static const double hopeful = 0.5;

typedef struct finder {
    po_ctx *ctx;
    po_arena *arena;
    po_arena *scratch; /* for one seam */
    const po_search *search;
    uint32_t threads;
    po_layouts *seams;
    uint32_t *owner;       /* by node of the model: the place that it is in; PO_NONE: none */
    uint32_t *maker, *end; /* by value: the place that gives it, as which of its outputs */
    po_layout_pair *pairs;
    uint32_t n_pairs, cap_pairs;
} finder;

/* --- layouts --- */

static po_status identity_of(po_ctx *ctx, po_arena *arena, const po_graph *g, po_value_id v,
                             const po_rt **rt) {
    uint32_t rank;
    const po_dim *d = po_static_dims(g, v, &rank);
    int64_t dims[PO_RT_MAX_RANK];
    *rt = NULL;
    if (d && rank <= PO_RT_MAX_RANK) {
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = d[i].value;
        *rt = po_rt_identity(arena, rank, dims);
    }
    return *rt ? PO_OK
               : po_fail(ctx, PO_UNSUPPORTED, "value '%s': no shape for a layout",
                         po_graph_value_name(g, v));
}

/* The value that its only reader makes of it alone; PO_NONE where there is none. */
static po_value_id moved(const po_graph *g, po_value_id v) {
    if (g->values[v].n_uses != 1 || g->values[v].n_outputs)
        return PO_NONE;
    const po_node *n = &g->nodes[g->values[v].uses[0].node];
    return po_op_has(n->op, PO_OPF_MOVES_DATA) && n->n_out == 1 && n->in[0] == v ? n->out[0]
                                                                                 : PO_NONE;
}

static po_status first_move(po_ctx *ctx, po_arena *arena, const po_graph *g, po_value_id input,
                            const po_rt **rt) {
    PO_TRY(identity_of(ctx, arena, g, input, rt));
    for (po_value_id v = moved(g, input); v != PO_NONE; v = moved(g, v)) {
        const po_rt *chain;
        po_value_id root;
        PO_TRY(po_rt_of_chain(ctx, arena, g, v, &root, &chain));
        if (!chain || root != input)
            break;
        *rt = chain;
    }
    return PO_OK;
}

/* Nothing but the chain reads what is between its ends. */
static po_status last_move(po_ctx *ctx, po_arena *arena, const po_graph *g, po_value_id output,
                           const po_rt **rt) {
    const po_rt *chain;
    po_value_id root;
    PO_TRY(identity_of(ctx, arena, g, output, rt));
    PO_TRY(po_rt_of_chain(ctx, arena, g, output, &root, &chain));
    if (!chain || root == output || g->values[root].is_input || g->values[output].n_uses ||
        g->values[output].n_outputs != 1)
        return PO_OK;
    for (po_value_id v = output; v != root;) {
        v = g->nodes[g->values[v].producer].in[0];
        if (v != root && (g->values[v].n_uses != 1 || g->values[v].n_outputs))
            return PO_OK;
    }
    *rt = chain;
    return PO_OK;
}

po_status po_layouts_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint32_t n_activations,
                        po_seam_move *layout) {
    layout->in = PO_NEW_N(arena, const po_rt *, n_activations + 1);
    layout->out = PO_NEW_N(arena, const po_rt *, graph->n_outputs + 1);
    for (uint32_t i = 0; i < n_activations; i++)
        PO_TRY(first_move(ctx, arena, graph, graph->inputs[i], &layout->in[i]));
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        PO_TRY(last_move(ctx, arena, graph, graph->outputs[i], &layout->out[i]));
    return PO_OK;
}

static bool same_layout(const po_subprogram *sub, const po_seam_move *a, const po_seam_move *b) {
    for (uint32_t i = 0; i < sub->n_activations; i++)
        if (!po_rt_equal(a->in[i], b->in[i]))
            return false;
    for (uint32_t i = 0; i < sub->graph->n_outputs; i++)
        if (!po_rt_equal(a->out[i], b->out[i]))
            return false;
    return true;
}

/* --- options --- */

static bool may_be_chosen(const po_trial *t) {
    return (t->fate == PO_TRIAL_EQUAL || t->fate == PO_TRIAL_INSIDE || t->fate == PO_TRIAL_CHOSEN ||
            t->fate == PO_TRIAL_JOINED) &&
           t->ratio > hopeful;
}

/* Keeps the fastest of each layout; the original stays the first. Equals: the first of them. */
static void keep_fastest(const po_subprogram *sub, po_layout_option *options, uint32_t *n,
                         const po_layout_option *option) {
    uint32_t place = 1;
    while (place < *n && !same_layout(sub, &options[place].layout, &option->layout))
        place++;
    if (place == *n && *n < MOST_OPTIONS) {
        options[(*n)++] = *option;
        return;
    }
    if (place == *n) /* no room: in the place of the slowest */
        for (uint32_t i = place = 1; i < *n; i++)
            place = options[i].seconds > options[place].seconds ? i : place;
    if (option->seconds < options[place].seconds)
        options[place] = *option;
}

static po_status find_options(finder *f, uint32_t i) {
    const po_site *site = &f->search->sites[i];
    po_layout_option *options = PO_NEW_N(f->arena, po_layout_option, MOST_OPTIONS);
    f->seams->options[i] = options;
    f->seams->n_options[i] = 1;
    options[0] = (po_layout_option){.trial = PO_NONE, .seconds = po_search_seconds(site, PO_NONE)};
    PO_TRY(po_layouts_of(f->ctx, f->arena, site->sub->graph, site->sub->n_activations,
                         &options[0].layout));
    for (uint32_t k = 0; k < site->n_trials; k++) {
        if (!may_be_chosen(&site->trials[k]))
            continue;
        po_layout_option option = {.trial = k, .seconds = po_search_seconds(site, k)};
        po_status status = po_layouts_of(f->ctx, f->arena, site->trials[k].graph,
                                         site->sub->n_activations, &option.layout);
        if (po_search_drops(f->ctx, status))
            continue;
        PO_TRY(status);
        keep_fastest(site->sub, options, &f->seams->n_options[i], &option);
    }
    return PO_OK;
}

/* --- seams --- */

/* Where a place's input comes from. */
typedef struct seam {
    po_value_id from; /* what another place gives */
    bool through;     /* element-wise nodes stand between */
    bool alone;       /* nothing else reads it */
} seam;

static bool in_list(const po_node_id *list, uint32_t n, po_node_id id) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == id)
            return true;
    return false;
}

static bool only_place_reads(const finder *f, po_value_id v, uint32_t place) {
    const po_value *value = &f->search->graph->values[v];
    for (uint32_t i = 0; i < value->n_uses; i++)
        if (f->owner[value->uses[i].node] != place)
            return false;
    return !value->n_outputs;
}

static bool only_list_reads(const po_graph *g, po_value_id v, const po_node_id *list, uint32_t n) {
    for (uint32_t i = 0; i < g->values[v].n_uses; i++)
        if (!in_list(list, n, g->values[v].uses[i].node))
            return false;
    return !g->values[v].n_outputs;
}

static bool is_number(const po_graph *g, po_value_id v) {
    return v == PO_NONE || po_type_count(&g->values[v].type) == 1;
}

/* An element-wise node of one shape, as postopt's cancel_moves takes it. */
static bool passes(const finder *f, po_node_id id) {
    const po_graph *g = f->search->graph;
    const po_node *n = &g->nodes[id];
    if (f->owner[id] != PO_NONE || !po_op_has(n->op, PO_OPF_ELEMENTWISE) || n->n_out != 1 ||
        is_number(g, n->out[0]))
        return false;
    uint32_t rank, other;
    const po_dim *dims = po_static_dims(g, n->out[0], &rank);
    for (uint32_t i = 0; dims && i < n->n_in; i++) {
        if (is_number(g, n->in[i]))
            continue;
        const po_dim *d = po_static_dims(g, n->in[i], &other);
        if (!d || other != rank || g->values[n->in[i]].constant)
            return false;
        for (uint32_t k = 0; k < rank; k++)
            if (d[k].value != dims[k].value)
                return false;
    }
    return dims != NULL;
}

/* Back through element-wise nodes that only one another and the place read, to the one value that
 * all of them read. Sums of several are not looked through. */
static bool look_back(const finder *f, po_value_id input, uint32_t place, seam *found) {
    const po_graph *g = f->search->graph;
    po_node_id region[MOST_REGION];
    uint32_t n = 0;
    *found = (seam){.from = input, .alone = only_place_reads(f, input, place)};
    if (f->maker[input] != PO_NONE)
        return true;
    if (!found->alone || g->values[input].producer == PO_NONE ||
        !passes(f, g->values[input].producer))
        return false;
    region[n++] = g->values[input].producer;
    /* Nodes join only when all their readers have: so until nothing changes. */
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t i = 0; i < n; i++) {
            const po_node *node = &g->nodes[region[i]];
            for (uint32_t k = 0; k < node->n_in; k++) {
                po_value_id v = node->in[k];
                po_node_id id = is_number(g, v) ? PO_NONE : g->values[v].producer;
                if (id == PO_NONE || n == MOST_REGION || f->maker[v] != PO_NONE ||
                    in_list(region, n, id) || !passes(f, id) || !only_list_reads(g, v, region, n))
                    continue;
                region[n++] = id;
                grown = true;
            }
        }
    }
    found->from = PO_NONE;
    found->through = true;
    for (uint32_t i = 0; i < n; i++) {
        const po_node *node = &g->nodes[region[i]];
        for (uint32_t k = 0; k < node->n_in; k++) {
            po_value_id v = node->in[k];
            if (is_number(g, v) ||
                (g->values[v].producer != PO_NONE && in_list(region, n, g->values[v].producer)))
                continue;
            if (found->from != PO_NONE && found->from != v)
                return false;
            found->from = v;
        }
    }
    if (found->from == PO_NONE || f->maker[found->from] == PO_NONE)
        return false;
    found->alone = only_list_reads(g, found->from, region, n);
    return true;
}

/* Seconds saved where `first` gives what `second` takes: what the two moves cost less than the one
 * that they come to. A move that others read too stays. */
static double saves(const finder *f, const seam *s, const po_rt *first, const po_rt *second) {
    if (po_rt_is_identity(second) || po_rt_is_identity(first) ||
        (s->through && !po_rt_is_bijection(second)))
        return 0;
    const po_rt *both = po_rt_compose(f->scratch, first, second);
    uint32_t nodes = both ? po_rt_nodes(f->scratch, both) : PO_NONE;
    uint32_t a = po_rt_nodes(f->scratch, first), b = po_rt_nodes(f->scratch, second);
    if (nodes == PO_NONE || a == PO_NONE || b == PO_NONE || nodes > (s->alone ? a : 0) + b)
        return 0;
    double less = po_rt_traffic(f->scratch, second) - po_rt_traffic(f->scratch, both);
    less += s->alone ? po_rt_traffic(f->scratch, first) : 0;
    size_t bytes = 0;
    if (less <= 0 || !po_dtype_bytes(f->search->graph->values[s->from].type.dtype, 1, &bytes))
        return 0;
    return po_roofline_bytes(&f->search->rates, f->threads, less * (double)bytes);
}

/* The pair of the two places; made where there is none. */
static po_layout_pair *pair_of(finder *f, uint32_t a, uint32_t b) {
    for (uint32_t i = f->n_pairs; i-- > 0;)
        if (f->pairs[i].a == a && f->pairs[i].b == b)
            return &f->pairs[i];
    const uint32_t *n = f->seams->problem.n_options;
    po_layout_pair pair = {.a = a, .b = b, .saves = PO_NEW_N(f->arena, double, n[a] * n[b])};
    PO_PUSH(f->arena, f->pairs, f->n_pairs, f->cap_pairs, pair);
    return &f->pairs[f->n_pairs - 1];
}

static void join(finder *f, uint32_t second, uint32_t input, const seam *s) {
    uint32_t first = f->maker[s->from], output = f->end[s->from];
    uint32_t a = f->seams->places[first].site, b = f->seams->places[second].site;
    if (first == second)
        return;
    f->scratch = po_arena_child(f->arena);
    for (uint32_t i = 0; i < f->seams->n_options[a]; i++)
        for (uint32_t k = 0; k < f->seams->n_options[b]; k++) {
            double less = saves(f, s, f->seams->options[a][i].layout.out[output],
                                f->seams->options[b][k].layout.in[input]);
            if (less <= 0)
                continue;
            if (first < second)
                pair_of(f, first, second)->saves[i * f->seams->n_options[b] + k] += less;
            else
                pair_of(f, second, first)->saves[k * f->seams->n_options[a] + i] += less;
        }
    po_arena_free(f->scratch);
}

static po_status find_pairs(finder *f) {
    po_layouts *seams = f->seams;
    for (uint32_t p = 0; p < seams->problem.n; p++) {
        const po_subprogram *sub = f->search->sites[seams->places[p].site].sub;
        const po_occurrence *at = &sub->at[seams->places[p].at];
        PO_TRY(po_ctx_poll(f->ctx));
        for (uint32_t i = 0; i < sub->n_activations; i++) {
            seam s;
            if (look_back(f, at->in[i], p, &s))
                join(f, p, i, &s);
        }
    }
    seams->problem.pairs = f->pairs;
    seams->problem.n_pairs = f->n_pairs;
    return PO_OK;
}

/* Numbers the places, and says of the model's nodes and values which they belong to. */
static void find_places(finder *f) {
    po_layouts *seams = f->seams;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->search->n_sites; i++)
        n += f->search->sites[i].sub->n_at;
    uint32_t *n_options = PO_NEW_N(f->arena, uint32_t, n);
    double **seconds = PO_NEW_N(f->arena, double *, n);
    seams->places = PO_NEW_N(f->arena, po_layout_place, n);
    seams->problem = (po_layout_problem){.n_options = n_options};
    seams->problem.seconds = (const double *const *)seconds;
    for (uint32_t i = 0; i < f->search->n_sites; i++) {
        const po_subprogram *sub = f->search->sites[i].sub;
        for (uint32_t k = 0; k < sub->n_at; k++) {
            uint32_t p = seams->problem.n++;
            seams->places[p] = (po_layout_place){i, k};
            n_options[p] = seams->n_options[i];
            seconds[p] = PO_NEW_N(f->arena, double, n_options[p]);
            for (uint32_t o = 0; o < n_options[p]; o++)
                seconds[p][o] = seams->options[i][o].seconds;
            for (uint32_t x = 0; x < sub->at[k].n_nodes; x++)
                f->owner[sub->at[k].nodes[x]] = p;
            for (uint32_t x = 0; x < sub->graph->n_outputs; x++) {
                po_value_id v = sub->at[k].out[x];
                f->maker[v] = p;
                f->end[v] = x;
            }
        }
    }
}

static uint32_t *nones(po_arena *arena, uint32_t n) {
    uint32_t *list = PO_NEW_N(arena, uint32_t, n);
    memset(list, 0xff, n * sizeof *list); /* PO_NONE */
    return list;
}

po_status po_layouts_find(po_ctx *ctx, po_arena *arena, const po_search *search, uint32_t threads,
                          po_layouts *seams) {
    finder f = {.ctx = ctx,
                .arena = arena,
                .search = search,
                .threads = threads,
                .seams = seams,
                .owner = nones(arena, search->graph->n_nodes),
                .maker = nones(arena, search->graph->n_values),
                .end = nones(arena, search->graph->n_values)};
    *seams = (po_layouts){.options = PO_NEW_N(arena, po_layout_option *, search->n_sites),
                          .n_options = PO_NEW_N(arena, uint32_t, search->n_sites)};
    for (uint32_t i = 0; i < search->n_sites; i++)
        PO_TRY(find_options(&f, i));
    find_places(&f);
    return find_pairs(&f);
}
