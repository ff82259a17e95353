/* --json. docs/report.md describes the fields. */
#include "base/json.h"
#include "cli/cli.h"

#include <stdlib.h>

enum { SCHEMA = 1 };

/* Names from a model may hold anything: in what is not UTF-8 every such byte becomes "?". */
static json_t *text_of(const char *string) {
    json_t *value = json_string(string);
    if (value || !string)
        return value;
    char *clean = strdup(string);
    if (!clean)
        return NULL;
    for (char *p = clean; *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    value = json_string(clean);
    free(clean);
    return value;
}

static json_t *count(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *header(const char *command) {
    json_t *root = json_object();
    po_json_put(&root, "schema", json_integer(SCHEMA));
    po_json_put(&root, "petopt", text_of(po_version()));
    po_json_put(&root, "command", text_of(command));
    return root;
}

static char *finish(json_t *root) {
    if (!root)
        return NULL;
    char *text = po_json_text(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    json_decref(root);
    return text;
}

static json_t *operators(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_operators; i++) {
        json_t *row = json_object();
        po_json_put(&row, "name", text_of(s->operators[i].name));
        po_json_put(&row, "before", count(s->operators[i].before));
        po_json_put(&row, "after", count(s->operators[i].after));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *stages(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_stages; i++) {
        json_t *row = json_object();
        po_json_put(&row, "name", text_of(s->stages[i].name));
        po_json_put(&row, "ran", json_boolean(s->stages[i].ran));
        po_json_put(&row, "seconds", po_json_number(s->stages[i].seconds));
        po_json_put(&row, "nodes_before", count(s->stages[i].nodes_before));
        po_json_put(&row, "nodes_after", count(s->stages[i].nodes_after));
        po_json_put(&row, "note", text_of(s->stages[i].note));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *rewrites(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_rewrites; i++) {
        json_t *row = json_object();
        po_json_put(&row, "stage", text_of(s->rewrites[i].stage));
        po_json_put(&row, "rule", text_of(s->rewrites[i].rule));
        po_json_put(&row, "count", count(s->rewrites[i].count));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *candidates(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_candidates; i++) {
        const po_candidate_report *c = &s->candidates[i];
        json_t *row = json_object();
        po_json_put(&row, "name", text_of(c->name));
        po_json_put(&row, "nodes", count(c->nodes));
        po_json_put(&row, "measured", json_boolean(c->measured));
        po_json_put(&row, "ms", c->measured ? po_json_number(c->ms) : json_null());
        po_json_put(&row, "ratio", c->measured ? po_json_number(c->ratio) : json_null());
        po_json_put(&row, "ratio_low", c->measured ? po_json_number(c->low) : json_null());
        po_json_put(&row, "ratio_high", c->measured ? po_json_number(c->high) : json_null());
        po_json_put(&row, "error", c->compared ? po_json_number(c->error) : json_null());
        po_json_put(&row, "refused", json_boolean(c->refused));
        po_json_put(&row, "different", json_boolean(c->different));
        po_json_put(&row, "chosen", json_boolean(c->chosen));
        po_json_put(&row, "verdict", text_of(c->verdict));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *lengths(size_t n, const int64_t *values) {
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        po_json_append(&array, json_integer(values[i]));
    return array;
}

static json_t *operator_names(const po_node_view *nodes, size_t n) {
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        po_json_append(&array, text_of(nodes[i].op_type));
    return array;
}

static json_t *mutants(const po_subprogram_report *r) {
    json_t *array = json_array();
    for (size_t i = 0; i < r->n_mutants; i++) {
        const po_mutant_report *m = &r->mutants[i];
        json_t *row = json_object();
        po_json_put(&row, "name", text_of(m->name));
        po_json_put(&row, "from",
                    text_of(m->corrected    ? "correction"
                            : m->enumerated ? "enumeration"
                                            : "derivation"));
        po_json_put(&row, "fate", text_of(m->fate));
        po_json_put(&row, "agrees", text_of(m->agrees));
        po_json_put(&row, "chosen", json_boolean(m->chosen));
        po_json_put(&row, "ratio", m->measured ? po_json_number(m->ratio) : json_null());
        po_json_put(&row, "ratio_estimated", po_json_number(m->estimate));
        po_json_put(&row, "flops", po_json_number(m->flops));
        po_json_put(&row, "bytes", po_json_number(m->bytes));
        po_json_put(&row, "why", text_of(m->why));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *repaired(const po_subprogram_report *r) {
    json_t *array = json_array();
    for (size_t i = 0; i < r->n_repaired; i++) {
        json_t *row = json_object();
        po_json_put(&row, "first", lengths(r->repaired[i].rank, r->repaired[i].first));
        po_json_put(&row, "step", lengths(r->repaired[i].rank, r->repaired[i].step));
        po_json_put(&row, "count", lengths(r->repaired[i].rank, r->repaired[i].count));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *subprograms(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_subprograms; i++) {
        const po_subprogram_report *r = &s->subprograms[i];
        json_t *row = json_object();
        po_json_put(&row, "name", text_of(r->name));
        po_json_put(&row, "times", count(r->times));
        po_json_put(&row, "before", operator_names(r->before, r->n_before));
        po_json_put(&row, "after", r->after ? operator_names(r->after, r->n_after) : json_null());
        po_json_put(&row, "output", lengths(r->rank, r->dims));
        po_json_put(&row, "ms", r->measured ? po_json_number(r->ms) : json_null());
        po_json_put(&row, "flops", po_json_number(r->flops));
        po_json_put(&row, "bytes", po_json_number(r->bytes));
        po_json_put(&row, "derived", count(r->derived));
        po_json_put(&row, "lifted", count(r->lifted));
        po_json_put(&row, "composed", count(r->composed));
        po_json_put(&row, "tried", count(r->tried));
        po_json_put(&row, "judged", count(r->judged));
        po_json_put(&row, "ended_by_shape", count(r->by_shape));
        po_json_put(&row, "ended_as_known", count(r->by_hash));
        po_json_put(&row, "ended_by_points", count(r->by_points));
        po_json_put(&row, "boxes", count(r->boxes));
        po_json_put(&row, "points", count(r->points));
        po_json_put(&row, "mutants", mutants(r));
        po_json_put(&row, "corrected", repaired(r));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *search(const po_summary *s) {
    json_t *row = json_object();
    po_json_put(&row, "seconds", po_json_number(s->search_seconds));
    po_json_put(&row, "certify_seconds", po_json_number(s->certify_seconds));
    po_json_put(&row, "measure_seconds", po_json_number(s->measure_seconds));
    po_json_put(&row, "subprograms", subprograms(s));
    return row;
}

static json_t *steps(const po_region_report *r) {
    json_t *array = json_array();
    for (size_t i = 0; i < r->n_steps; i++) {
        const po_kernel_step_report *s = &r->steps[i];
        json_t *row = json_object();
        po_json_put(&row, "name", text_of(s->name));
        po_json_put(&row, "schedule", text_of(s->schedule));
        po_json_put(&row, "flops", po_json_number(s->flops));
        po_json_put(&row, "bytes", po_json_number(s->bytes));
        po_json_put(&row, "ms", s->ms > 0 ? po_json_number(s->ms) : json_null());
        po_json_put(&row, "ms_roofline", po_json_number(s->ms_roofline));
        po_json_append(&array, row);
    }
    return array;
}

static json_t *regions(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_regions; i++) {
        const po_region_report *r = &s->regions[i];
        json_t *row = json_object();
        po_json_put(&row, "nodes", count(r->nodes));
        po_json_put(&row, "why", text_of(r->why));
        po_json_put(&row, "ms", r->ms > 0 ? po_json_number(r->ms) : json_null());
        po_json_put(&row, "ms_roofline", po_json_number(r->ms_roofline));
        po_json_put(&row, "ms_estimated",
                    r->ms_estimated > 0 ? po_json_number(r->ms_estimated) : json_null());
        po_json_put(&row, "ms_nodes", r->ms_nodes > 0 ? po_json_number(r->ms_nodes) : json_null());
        po_json_put(&row, "steps", steps(r));
        po_json_append(&array, row);
    }
    return array;
}

/* By how many threads a latency was read; 0: not on a CPU. */
static void put_clock(json_t **row, uint32_t threads, const char *by) {
    bool known = threads > 0;
    po_json_put(row, "threads", known ? json_integer(threads) : json_null());
    po_json_put(row, "clock", known ? text_of(threads == 1 ? "processor" : "wall") : json_null());
    po_json_put(row, "by", text_of(by));
}

static void put_ratio(json_t **row, double before, double after, double ratio) {
    po_json_put(row, "ms_before", po_json_number(before));
    po_json_put(row, "ms_after", po_json_number(after));
    po_json_put(row, "ratio", po_json_number(ratio));
}

/* And what is told besides of what was measured. */
static void put_interval(json_t **row, double low, double high, uint32_t threads, const char *by) {
    po_json_put(row, "ratio_low", po_json_number(low));
    po_json_put(row, "ratio_high", po_json_number(high));
    put_clock(row, threads, by);
}

/* Figures that were measured, or estimated, as asked for; null where they are not such. */
static json_t *latency(const po_summary *s, bool estimated) {
    if (estimated ? !s->estimated : !s->measured)
        return json_null();
    json_t *row = json_object();
    put_ratio(&row, s->ms_before, s->ms_after, s->ratio);
    if (!estimated)
        put_interval(&row, s->ratio_low, s->ratio_high, s->latency_threads, s->latency_by);
    return row;
}

static json_t *sizes(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_sizes; i++) {
        const po_size_report *size = &s->sizes[i];
        json_t *row = json_object();
        po_json_put(&row, "inputs", text_of(size->inputs));
        put_ratio(&row, size->ms_before, size->ms_after, size->ratio);
        put_interval(&row, size->low, size->high, size->threads, size->by);
        po_json_append(&array, row);
    }
    return array;
}

char *po_json_optimise(const po_outcome *outcome) {
    const po_summary *s = outcome->summary;
    json_t *root = header(outcome->out ? "optimise" : "explain"), *notes = json_array();
    po_json_put(&root, "in", text_of(outcome->in));
    po_json_put(&root, "out", outcome->out ? text_of(outcome->out) : json_null());
    po_json_put(&root, "level", json_integer(s->level));
    po_json_put(&root, "runtime", text_of(s->runtime));
    po_json_put(&root, "cpu", text_of(s->cpu));
    po_json_put(&root, "target", text_of(*s->gpu ? "cuda" : "cpu"));
    po_json_put(&root, "gpu", *s->gpu ? text_of(s->gpu) : json_null());
    po_json_put(&root, "threads", json_integer(s->threads));
    po_json_put(&root, "stopped", text_of(s->stopped == PO_OK ? "" : po_status_name(s->stopped)));
    po_json_put(&root, "changed", json_boolean(s->changed));
    po_json_put(&root, "winner", text_of(s->winner));
    po_json_put(&root, "kept", text_of(s->kept));
    po_json_put(&root, "library", s->library ? text_of(s->library) : json_null());
    po_json_put(&root, "ratio_fallback",
                s->ratio_fallback > 0 ? po_json_number(s->ratio_fallback) : json_null());
    po_json_put(&root, "kernels", count(s->n_kernels));
    po_json_put(&root, "kernels_compared", text_of(s->kernels_compared));
    po_json_put(&root, "kernels_not_executed", text_of(s->kernels_unrun));
    po_json_put(&root, "nodes_before", count(s->nodes_before));
    po_json_put(&root, "nodes_after", count(s->nodes_after));
    po_json_put(&root, "weights_before", count(s->weights_before));
    po_json_put(&root, "weights_after", count(s->weights_after));
    po_json_put(&root, "latency", latency(s, false));
    po_json_put(&root, "sizes", sizes(s));
    po_json_put(&root, "latency_estimated", latency(s, true));
    po_json_put(&root, "error", s->compared ? po_json_number(s->error) : json_null());
    po_json_put(&root, "error_reference",
                s->error_reference >= 0 ? po_json_number(s->error_reference) : json_null());
    po_json_put(&root, "error_excused",
                s->inputs_excused > 0 ? po_json_number(s->error_excused) : json_null());
    po_json_put(&root, "inputs", count(s->inputs));
    po_json_put(&root, "inputs_fresh", count(s->inputs_fresh));
    po_json_put(&root, "tolerance", po_json_number(s->tolerance));
    po_json_put(&root, "proved", json_boolean(s->proved));
    po_json_put(&root, "proof", text_of(s->proof));
    po_json_put(&root, "load_seconds", po_json_number(outcome->load_seconds));
    po_json_put(&root, "seconds", po_json_number(s->seconds));
    po_json_put(&root, "operators", operators(s));
    po_json_put(&root, "stages", stages(s));
    po_json_put(&root, "rewrites", rewrites(s));
    po_json_put(&root, "candidates", candidates(s));
    po_json_put(&root, "regions", regions(s));
    for (size_t i = 0; i < s->n_notes; i++)
        po_json_append(&notes, text_of(s->notes[i]));
    po_json_put(&root, "search", search(s));
    po_json_put(&root, "notes", notes);
    return finish(root);
}

char *po_json_verify(const po_equality *report, const char *a, const char *b) {
    json_t *root = header("verify");
    po_json_put(&root, "a", text_of(a));
    po_json_put(&root, "b", text_of(b));
    po_json_put(&root, "equal", json_boolean(report->equal));
    po_json_put(&root, "proved", json_boolean(report->proved));
    po_json_put(&root, "inputs", count(report->inputs));
    po_json_put(&root, "error", po_json_number(report->error));
    po_json_put(&root, "tolerance", po_json_number(report->tolerance));
    po_json_put(&root, "worst", text_of(report->worst));
    po_json_put(&root, "proof", text_of(report->proof));
    po_json_put(&root, "how", text_of(report->how));
    po_json_put(&root, "runtime", text_of(report->runtime));
    return finish(root);
}

char *po_json_bench(const po_bench_report *report, char *const *files) {
    json_t *root = header("bench"), *rows = json_array();
    po_json_put(&root, "runtime", text_of(report->runtime));
    po_json_put(&root, "cpu", text_of(report->cpu));
    po_json_put(&root, "threads", json_integer(report->threads));
    po_json_put(&root, "rounds", json_integer(report->rounds));
    po_json_put(&root, "control", po_json_number(report->control));
    for (size_t i = 0; i < report->n_rows; i++) {
        json_t *row = json_object();
        po_json_put(&row, "file", text_of(files[i]));
        po_json_put(&row, "ms", po_json_number(report->rows[i].ms));
        po_json_put(&row, "ratio", po_json_number(report->rows[i].ratio));
        po_json_put(&row, "ratio_low", po_json_number(report->rows[i].low));
        po_json_put(&row, "ratio_high", po_json_number(report->rows[i].high));
        po_json_append(&rows, row);
    }
    po_json_put(&root, "models", rows);
    return finish(root);
}
