/* Which values of two models are equal for every length: nodes in order, and parts where no node of
 * the original makes what one of the candidate does. */
#include "verify/sizes/internal.h"

#include <stdio.h>

enum { MOST_GROWN = 8, MOST_CANDIDATES = 3, MOST_ALIKE = 64 };

__attribute__((format(printf, 2, 3))) static void say(po_sizes *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!s->why[0])
        vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
}

/* --- a value of the candidate that no node of the original makes so --- */

/* The leaf that is made last: nodes behind it are few. */
static bool grow(po_sizes *s, const po_pieces *part, bool *grown) {
    const po_cone *c = &part->side[1];
    uint32_t last = PO_NONE, at = 0;
    for (uint32_t i = 0; i < c->n_leaves; i++) {
        const po_node_id id = po_sizes_value(s, 1, c->leaves[i])->producer;
        if (id != PO_NONE && (last == PO_NONE || s->place[1][id] >= at)) {
            last = part->leaves[c->leaf[i]];
            at = s->place[1][id];
        }
    }
    if (last != PO_NONE)
        grown[last] = true;
    return last != PO_NONE;
}

static po_status show(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate, po_value_id a,
                      po_value_id b, int64_t channels, bool *same, char *why, size_t size) {
    po_arena *scratch = po_arena_child(s->arena);
    bool *grown = PO_NEW_N(scratch, bool, s->n_classes);
    po_status status = PO_OK;
    char last[160] = "";
    *same = false;
    why[0] = '\0';
    for (uint32_t turn = 0; turn < MOST_GROWN && status == PO_OK && !*same; turn++) {
        po_arena *round = po_arena_child(scratch);
        po_pieces part = {.n_leaves = 0};
        part.side[0].target = a;
        part.side[1].target = b;
        part.side[1].channels = channels;
        const bool whole = po_cone_collect(s, round, &part, 1, grown);
        bool fits = whole && po_cone_collect(s, round, &part, 0, grown);
        if (!fits)
            snprintf(last, sizeof last, "no parts of both models of the same values make it");
        if (fits)
            status = po_pieces_same(s, round, &part, &fits, last, sizeof last);
        if (fits && status == PO_OK)
            status = po_pieces_evaluate(s, run, candidate, &part, same, last, sizeof last);
        if (*same)
            PO_PUSH(s->arena, s->shown, s->n_shown, s->cap_shown, part);
        /* The smallest parts tell most. */
        if (fits || turn == 0 || !why[0])
            snprintf(why, size, "%s", last);
        const bool more = whole && grow(s, &part, grown);
        po_arena_free(round);
        if (!more || !po_prun_affordable(run, 0))
            break;
    }
    po_arena_free(scratch);
    return status;
}

/* By what they are at the lengths of the run: values of the original that this one may be, or, with
 * `channels` above 0, may be but for channels of zeros behind. */
static po_status find_among(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                            po_value_id b, po_hash print, int64_t channels, uint32_t *class) {
    char why[160];
    uint32_t v = po_hash_map_get(s->alike, print), tried[MOST_CANDIDATES], n = 0;
    *class = PO_NONE;
    for (uint32_t looked = 0;
         v != PO_NONE && looked < MOST_ALIKE && n < MOST_CANDIDATES && *class == PO_NONE;
         v = s->next_alike[v], looked++) {
        const uint32_t c = s->class_of[0][v];
        bool known = c == PO_NONE ||
                     po_sizes_value(s, 0, v)->type.dtype != po_sizes_value(s, 1, b)->type.dtype;
        bool same;
        for (uint32_t i = 0; i < n && !known; i++)
            known = tried[i] == c;
        if (known)
            continue;
        tried[n++] = c;
        PO_TRY(show(s, run, candidate, v, b, channels, &same, why, sizeof why));
        if (same && channels > 0) {
            *class = po_sizes_new_class(s, 1, b);
            s->classes[*class].within = c;
            s->classes[*class].channels = channels;
        } else if (same) {
            *class =
                po_sizes_same_type(s, 0, v, 1, b) ? c : po_sizes_view(s, 1, b, s->classes[c].flat);
        }
    }
    if (*class == PO_NONE && n > 0) {
        say(s, "'%.60s': %.150s", po_sizes_value(s, 1, b)->name, why);
        po_log(s->ctx, "proof: '%s' is not shown for every size: %s", po_sizes_value(s, 1, b)->name,
               why);
    }
    return PO_OK;
}

static po_status find_equal(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                            po_value_id b, uint32_t *class) {
    PO_TRY(find_among(s, run, candidate, b, s->prints[1][b], 0, class));
    if (*class == PO_NONE && s->channels[b] > 0)
        PO_TRY(find_among(s, run, candidate, b, s->trimmed[b], s->channels[b], class));
    return PO_OK;
}

/* --- a model --- */

/* A value of the original, in another shape perhaps, or with channels of zeros. */
static bool is_of_original(const po_sizes *s, uint32_t c) {
    return s->classes[s->classes[c].flat].original || s->classes[c].within != PO_NONE;
}

static po_status class_of_node(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                               uint32_t side, const po_node *node) {
    po_hash key = {0, 0};
    const bool view = po_sizes_is_view(s, side, node);
    const bool keyed = !view && po_sizes_key(s, run, side, node, &key);
    for (uint32_t k = 0; k < node->n_out; k++) {
        const po_value_id v = node->out[k];
        uint32_t c = PO_NONE;
        if (v == PO_NONE || po_sizes_class(s, side, v) != PO_NONE)
            continue;
        const po_hash own = keyed ? po_hash_u64(key, k) : key;
        if (view && k == 0)
            c = po_sizes_class_of_view(s, side, node);
        else if (keyed)
            c = po_hash_map_get(s->keys, own);
        if (side == 1 && (c == PO_NONE || !is_of_original(s, c))) {
            uint32_t found;
            PO_TRY(find_equal(s, run, candidate, v, &found));
            c = found != PO_NONE ? found : c;
        }
        if (c == PO_NONE)
            c = po_sizes_new_class(s, side, v);
        if (keyed && po_hash_map_get(s->keys, own) == PO_NONE)
            po_hash_map_put(s->keys, own, c);
        s->class_of[side][v] = c;
    }
    return PO_OK;
}

static po_status classes_of(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                            uint32_t side) {
    uint32_t n;
    const po_graph *g = s->sized[side].open;
    po_arena *scratch = po_arena_child(s->arena);
    const po_node_id *order = po_graph_order(g, scratch, &n);
    po_status status = PO_OK;
    for (uint32_t i = 0; i < n; i++)
        s->place[side][order[i]] = i;
    for (uint32_t i = 0; i < n && status == PO_OK; i++) {
        status = po_ctx_poll(s->ctx);
        if (status == PO_OK)
            status = class_of_node(s, run, candidate, side, &g->nodes[order[i]]);
        if (!po_prun_affordable(run, 0)) {
            say(s, "the CPU time given for the proof does not suffice");
            break;
        }
    }
    po_arena_free(scratch);
    return status;
}

static void note_alike(po_sizes *s) {
    const po_graph *g = s->sized[0].open;
    s->alike = po_hash_map_create(s->arena);
    s->next_alike = PO_NEW_N(s->arena, uint32_t, g->n_values);
    for (po_value_id v = g->n_values; v-- > 0;) {
        const po_hash p = s->prints[0][v];
        s->next_alike[v] = PO_NONE;
        if (p.lo == 0 && p.hi == 0)
            continue;
        s->next_alike[v] = po_hash_map_get(s->alike, p);
        po_hash_map_put(s->alike, p, v);
    }
}

/* Whether an output is the same: of one class, or shown as a part of both models. */
static po_status compare_output(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                                po_value_id a, po_value_id b) {
    const uint32_t x = po_sizes_class(s, 0, a), y = po_sizes_class(s, 1, b);
    char why[160] = "it has another type";
    s->hold = po_sizes_same_type(s, 0, a, 1, b);
    if (s->hold && (x == PO_NONE || x != y))
        PO_TRY(show(s, run, candidate, a, b, 0, &s->hold, why, sizeof why));
    if (!s->hold)
        say(s, "output '%.80s' is not shown: %.120s", po_sizes_value(s, 0, a)->name, why);
    return PO_OK;
}

static po_status find_classes(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate) {
    note_alike(s);
    PO_TRY(classes_of(s, run, candidate, 0));
    PO_TRY(classes_of(s, run, candidate, 1));
    const po_graph *a = s->sized[0].open, *b = s->sized[1].open;
    s->hold = a->n_outputs == b->n_outputs;
    for (uint32_t k = 0; k < a->n_outputs && s->hold; k++)
        PO_TRY(compare_output(s, run, candidate, a->outputs[k], b->outputs[k]));
    char why[200];
    if (s->hold && !po_sizes_taken(s, why, sizeof why)) {
        s->hold = false;
        say(s, "%s", why);
    }
    return PO_OK;
}

/* --- for which lengths --- */

/* Names for every open dim, at the lengths that are wanted, and nothing known of values yet. */
static bool begin(po_sizes *s, po_spacing spacing) {
    po_sized_free(&s->sized[0]);
    po_sized_free(&s->sized[1]);
    s->names = (po_names){.arena = s->arena,
                          .plan = s->plan,
                          .size = s->size,
                          .spaced = spacing.spaced,
                          .positive = spacing.positive};
    s->spacing = spacing;
    s->n_classes = s->n_shown = 0;
    s->why[0] = '\0';
    s->keys = po_hash_map_create(s->arena);
    for (uint32_t side = 0; side < 2; side++)
        for (po_value_id v = 0; v < s->graph[side]->n_values; v++)
            s->class_of[side][v] = PO_NONE;
    if (!po_names_find(&s->names, s->graph[0]))
        return false;
    po_sized_make(s->ctx, &s->names, s->graph[0], s->graph, s->sized);
    return true;
}

/* The first lengths of which it is shown. */
po_status po_sizes_find(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate) {
    static const po_spacing wanted[] = {{1, false}, {1, true}, {32, true}};
    s->found = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !s->hold; i++) {
        if (!begin(s, wanted[i]) || (wanted[i].spaced > 1 && !s->names.has_space))
            continue;
        PO_TRY(find_classes(s, run, candidate));
        if (!s->hold)
            po_log(s->ctx, "proof: not for every size%s: %s",
                   wanted[i].spaced > 1 ? " that is a multiple of 32"
                   : wanted[i].positive ? " from 1 on"
                                        : "",
                   s->why);
    }
    return PO_OK;
}

bool po_sizes_found(const po_sizes *s) {
    return s->found;
}

po_status po_sizes_again(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate) {
    char why[160] = "";
    for (uint32_t i = 0; i < s->n_shown && s->hold; i++) {
        PO_TRY(po_pieces_evaluate(s, run, candidate, &s->shown[i], &s->hold, why, sizeof why));
        if (!s->hold)
            say(s, "'%.60s': %.150s", po_sizes_value(s, 1, s->shown[i].side[1].target)->name, why);
    }
    return PO_OK;
}

bool po_sizes_hold(const po_sizes *s, po_spacing *spacing) {
    *spacing = s->spacing;
    return s->hold;
}

po_sizes *po_sizes_create(po_ctx *ctx, po_arena *arena, const po_inputs *plan, uint32_t size,
                          const po_graph *original, const po_graph *candidate) {
    po_sizes *s = PO_NEW(arena, po_sizes);
    *s = (po_sizes){.ctx = ctx,
                    .arena = arena,
                    .oracle = po_oracle_create(arena),
                    .plan = plan,
                    .size = size,
                    .graph = {original, candidate},
                    .trimmed = PO_NEW_N(arena, po_hash, candidate->n_values),
                    .channels = PO_NEW_N(arena, int64_t, candidate->n_values)};
    for (uint32_t side = 0; side < 2; side++) {
        const po_graph *g = s->graph[side];
        s->recording[side] = (po_recording){s, side};
        s->prints[side] = PO_NEW_N(arena, po_hash, g->n_values);
        s->class_of[side] = PO_NEW_N(arena, uint32_t, g->n_values);
        s->place[side] = PO_NEW_N(arena, uint32_t, g->n_nodes);
    }
    return s;
}

void po_sizes_free(po_sizes *s) {
    if (!s)
        return;
    po_sized_free(&s->sized[0]);
    po_sized_free(&s->sized[1]);
}
