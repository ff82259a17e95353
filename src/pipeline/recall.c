/* The key of a run is a hash of model, options and machine; its value is a text of the form that
 * won, of its mutants and of where each stands. What does not read back counts as not there. */
#include "pipeline/recall.h"

#include "export/export.h"
#include "ir/text.h"
#include "ops/op.h"
#include "pipeline/search/search.h"
#include "pipeline/variants.h"
#include "po_rules.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAYOUT = 4 };
static const char *const kind = "run";

static bool asks_for_more(const po_options *o) {
    return o->level < 1 || o->n_skip > 0 || o->n_dump > 0 || o->check_data ||
           po_options_estimated(o) || (o->cache && !*o->cache);
}

/* Everything that the decision depends on but the time. */
static po_status key_of(const po_run *run, const po_graph *original, const po_cost *cost,
                        po_hash *key) {
    const po_options *o = run->options;
    po_hash k;
    PO_TRY(po_export_hash(run->ctx, original, &k));
    po_hash machine = po_hash_str(po_cost_key(cost), PO_PROGRAM);
    k = po_hash_u64(po_hash_u64(po_hash_u64(k, LAYOUT), machine.lo), machine.hi);
    k = po_hash_bytes(&o->tolerance, sizeof o->tolerance, k);
    k = po_hash_bytes(&o->time_limit, sizeof o->time_limit, k);
    const uint64_t numbers[] = {(uint64_t)o->level, (uint64_t)o->opset, run->ctx->threads,
                                o->threads > 0,     o->exact,           o->measured_cost,
                                o->kernels != NULL};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        k = po_hash_u64(k, numbers[i]);
    if (o->kernels && o->cc)
        k = po_hash_str(k, o->cc);
    *key = po_pins_hash(k, o->sizes, o->n_sizes);
    return PO_OK;
}

/* --- as text --- */

static void print_line(po_text *t, const char *line) {
    for (const char *c = line; *c; c++)
        po_text_add(t, (unsigned char)*c < ' ' ? " " : c, 1);
    po_text_puts(t, "\n");
}

static void print_recall(po_text *t, const po_recall *r) {
    po_text_printf(t, "%s\n%u %d %u\n", r->form ? r->form : "", r->kind, r->cut, r->n_placed);
    po_text_f64(t, r->ms_before);
    po_text_puts(t, "\n");
    print_line(t, r->no_kernels);
    print_line(t, r->why);
    for (uint32_t i = 0; i < r->n_placed; i++) {
        const po_placed *p = &r->placed[i];
        bool same = i > 0 && r->placed[i - 1].mutant == p->mutant;
        po_text graph;
        po_text_init(&graph, t->arena);
        if (!same)
            po_graph_print_as(&graph, p->mutant,
                              (po_print_options){.most_items = 64, .all_data = true});
        po_text_printf(t, "%u %u %llx %llx %zu\n%s\n", p->site, p->at,
                       (unsigned long long)r->signatures[i].lo,
                       (unsigned long long)r->signatures[i].hi, graph.size, p->name);
        po_text_add(t, graph.data, graph.size);
    }
}

typedef struct reader {
    const po_run *run;
    const char *at, *end;
} reader;

static const char *read_line(reader *r) {
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    if (!end)
        return NULL;
    char *line = po_arena_alloc(r->run->arena, (size_t)(end - r->at) + 1);
    memcpy(line, r->at, (size_t)(end - r->at));
    line[end - r->at] = '\0';
    r->at = end + 1;
    return line;
}

static po_status read_mutant(reader *r, size_t size, const po_graph **mutant) {
    char *text = po_arena_alloc(r->run->arena, size + 1);
    po_graph *g;
    memcpy(text, r->at, size);
    text[size] = '\0';
    r->at += size;
    PO_TRY(po_graph_parse(r->run->ctx, text, &g));
    po_run_hold(r->run, g);
    po_ops_resolve(g);
    *mutant = g;
    return po_infer_graph(r->run->ctx, g, false);
}

/* PO_BAD_INPUT, not recorded, for what was written by something else. */
static po_status read_recall(reader *r, po_recall *recall) {
    const char *form = read_line(r), *counts = form ? read_line(r) : NULL,
               *ms = counts ? read_line(r) : NULL, *no_kernels = ms ? read_line(r) : NULL,
               *why = no_kernels ? read_line(r) : NULL;
    unsigned made_of = 0;
    int cut = 0;
    if (!why || sscanf(counts, "%u %d %u", &made_of, &cut, &recall->n_placed) != 3 ||
        made_of > PO_MUTATED_KINDS)
        return PO_BAD_INPUT;
    recall->ms_before = strtod(ms, NULL);
    recall->no_kernels = no_kernels;
    recall->why = why;
    recall->form = *form ? form : NULL;
    recall->kind = (po_mutated_kind)made_of;
    recall->cut = cut != 0;
    if (recall->n_placed > (size_t)(r->end - r->at) ||
        (recall->n_placed > 0 && recall->kind == PO_MUTATED_KINDS))
        return PO_BAD_INPUT;
    recall->placed = PO_NEW_N(r->run->arena, po_placed, recall->n_placed);
    recall->signatures = PO_NEW_N(r->run->arena, po_hash, recall->n_placed);
    for (uint32_t i = 0; i < recall->n_placed; i++) {
        po_placed *p = &recall->placed[i];
        const char *head = read_line(r), *name = head ? read_line(r) : NULL;
        unsigned long long lo, hi;
        size_t size;
        if (!name || sscanf(head, "%u %u %llx %llx %zu", &p->site, &p->at, &lo, &hi, &size) != 5 ||
            size > (size_t)(r->end - r->at) || (size == 0 && i == 0))
            return PO_BAD_INPUT;
        recall->signatures[i] = (po_hash){lo, hi};
        p->name = name;
        if (size > 0)
            PO_TRY(read_mutant(r, size, &p->mutant));
        else
            p->mutant = p[-1].mutant;
    }
    return PO_OK;
}

/* --- finding --- */

bool po_recall_wants(const po_recall *r, const char *form) {
    return !r || (r->form && strcmp(r->form, form) == 0);
}

/* Nothing is left to be done: the report says what was measured then. */
static void keep_original(const po_run *run, const po_recall *r) {
    po_summary *s = &run->record->summary;
    s->measured = r->ms_before > 0;
    s->ms_before = s->ms_after = r->ms_before;
    s->ratio = s->ratio_low = s->ratio_high = 1;
    s->latency_threads = s->measured ? run->ctx->threads : 0; /* else it would not be kept */
    run->record->known = r->why;
}

po_status po_recall_find(const po_run *run, const po_graph *original, po_recalled *out) {
    *out = (po_recalled){0};
    if (asks_for_more(run->options))
        return PO_OK;
    PO_TRY(po_run_cost(run, &out->cost));
    PO_TRY(key_of(run, original, out->cost, &out->key));
    po_bytes value;
    if (!run->options->recall ||
        !po_cache_get(out->cost->cache, run->arena, kind, out->key, &value))
        return PO_OK;
    po_recall *recall = PO_NEW(run->arena, po_recall);
    reader r = {run, value.data, value.data + value.size};
    po_status status = read_recall(&r, recall);
    if (status == PO_BAD_INPUT || po_search_drops(run->ctx, status)) {
        po_ctx_clear(run->ctx);
        return PO_OK;
    }
    PO_TRY(status);
    po_log(run->ctx, "the same run is known: %s",
           recall->form ? recall->form : "the original stays");
    if (recall->cut)
        po_record_note(run->record, "goes on from a run that its time cut short (--recall no "
                                    "searches on)");
    if (!recall->form)
        keep_original(run, recall);
    out->recall = recall;
    return PO_OK;
}

static bool fits(const po_search *search, const po_recall *r) {
    for (uint32_t i = 0; i < r->n_placed; i++) {
        const po_placed *p = &r->placed[i];
        if (p->site >= search->n_sites || p->at >= search->sites[p->site].sub->n_at ||
            !po_hash_equal(search->sites[p->site].sub->signature, r->signatures[i]))
            return false;
    }
    return true;
}

po_status po_recall_place(const po_run *run, const po_search *search, const po_recall *r,
                          po_chosen *out) {
    out->recall = NULL;
    if (!fits(search, r))
        return PO_OK;
    po_graph *g = po_graph_clone(run->ctx, search->graph);
    for (uint32_t i = 0; i < r->n_placed; i++) {
        const po_subprogram *sub = search->sites[r->placed[i].site].sub;
        po_status status =
            po_split_replace(run->ctx, g, sub, &sub->at[r->placed[i].at], r->placed[i].mutant);
        if (po_search_drops(run->ctx, status)) {
            po_graph_free(g);
            return PO_OK;
        }
        PO_TRY(status);
        po_record_fired(run->record, r->placed[i].name, 1);
    }
    po_graph_sweep(g);
    PO_TRY(po_infer_graph(run->ctx, g, true));
    po_run_hold(run, g);
    out->mutated[r->kind].graph = g;
    out->recall = r;
    return PO_OK;
}

/* --- keeping --- */

static void keep_mutants(po_arena *arena, const po_chosen *chosen, po_recall *r) {
    r->kind = po_mutated_of(r->form);
    if (r->kind == PO_MUTATED_KINDS)
        return;
    r->n_placed = chosen->mutated[r->kind].n;
    r->placed = chosen->mutated[r->kind].placed;
    r->signatures = PO_NEW_N(arena, po_hash, r->n_placed);
    for (uint32_t i = 0; i < r->n_placed; i++)
        r->signatures[i] = chosen->search->sites[r->placed[i].site].sub->signature;
}

void po_recall_keep(const po_run *run, const po_recalled *where, const po_decided *decided) {
    const po_summary *s = &run->record->summary;
    if (decided->chosen->recall || !where->cost)
        return;
    if (!decided->changed && decided->undecided) /* with its readings, another run gets farther */
        return;
    if (decided->changed && decided->kernels_of_mutants && strncmp(s->winner, "kernels", 7) == 0)
        return;
    po_recall r = {.form = decided->changed ? s->winner : NULL,
                   .kind = PO_MUTATED_KINDS,
                   .cut = run->record->cut,
                   .why = decided->changed ? "" : po_record_why_kept(run->record),
                   .ms_before = s->ms_before,
                   .no_kernels = decided->no_kernels};
    if (decided->changed)
        keep_mutants(run->arena, decided->chosen, &r);
    po_text text;
    po_text_init(&text, run->arena);
    print_recall(&text, &r);
    po_cache_put(where->cost->cache, kind, where->key, text.data, text.size);
}
