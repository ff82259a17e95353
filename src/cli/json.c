/* --json. docs/report.md describes the fields. */
#include "cli/cli.h"

#include <jansson.h>
#include <math.h>
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

/* JSON has no infinities and no NaN. */
static json_t *number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *count(uint64_t n) {
    return json_integer((json_int_t)n);
}

/* Sets a member; a value that could not be made spoils the object, and so the whole. */
static void put(json_t **object, const char *name, json_t *value) {
    if (*object && json_object_set_new(*object, name, value) != 0) {
        json_decref(*object);
        *object = NULL;
    } else if (!*object) {
        json_decref(value);
    }
}

static void append(json_t **array, json_t *value) {
    if (*array && json_array_append_new(*array, value) != 0) {
        json_decref(*array);
        *array = NULL;
    } else if (!*array) {
        json_decref(value);
    }
}

static json_t *header(const char *command) {
    json_t *root = json_object();
    put(&root, "schema", json_integer(SCHEMA));
    put(&root, "petopt", text_of(po_version()));
    put(&root, "command", text_of(command));
    return root;
}

static char *finish(json_t *root) {
    if (!root)
        return NULL;
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    json_decref(root);
    return text;
}

static json_t *operators(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_operators; i++) {
        json_t *row = json_object();
        put(&row, "name", text_of(s->operators[i].name));
        put(&row, "before", count(s->operators[i].before));
        put(&row, "after", count(s->operators[i].after));
        append(&array, row);
    }
    return array;
}

static json_t *stages(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_stages; i++) {
        json_t *row = json_object();
        put(&row, "name", text_of(s->stages[i].name));
        put(&row, "ran", json_boolean(s->stages[i].ran));
        put(&row, "seconds", number(s->stages[i].seconds));
        put(&row, "nodes_before", count(s->stages[i].nodes_before));
        put(&row, "nodes_after", count(s->stages[i].nodes_after));
        put(&row, "note", text_of(s->stages[i].note));
        append(&array, row);
    }
    return array;
}

static json_t *rewrites(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_rewrites; i++) {
        json_t *row = json_object();
        put(&row, "stage", text_of(s->rewrites[i].stage));
        put(&row, "rule", text_of(s->rewrites[i].rule));
        put(&row, "count", count(s->rewrites[i].count));
        append(&array, row);
    }
    return array;
}

static json_t *candidates(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_candidates; i++) {
        const po_candidate_report *c = &s->candidates[i];
        json_t *row = json_object();
        put(&row, "name", text_of(c->name));
        put(&row, "nodes", count(c->nodes));
        put(&row, "measured", json_boolean(c->measured));
        put(&row, "ms", c->measured ? number(c->ms) : json_null());
        put(&row, "ratio", c->measured ? number(c->ratio) : json_null());
        put(&row, "ratio_low", c->measured ? number(c->low) : json_null());
        put(&row, "ratio_high", c->measured ? number(c->high) : json_null());
        put(&row, "error", c->compared ? number(c->error) : json_null());
        put(&row, "refused", json_boolean(c->refused));
        put(&row, "different", json_boolean(c->different));
        put(&row, "chosen", json_boolean(c->chosen));
        put(&row, "verdict", text_of(c->verdict));
        append(&array, row);
    }
    return array;
}

static json_t *lengths(size_t n, const int64_t *values) {
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        append(&array, json_integer(values[i]));
    return array;
}

static json_t *operator_names(const po_node_view *nodes, size_t n) {
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        append(&array, text_of(nodes[i].op_type));
    return array;
}

static json_t *mutants(const po_subprogram_report *r) {
    json_t *array = json_array();
    for (size_t i = 0; i < r->n_mutants; i++) {
        const po_mutant_report *m = &r->mutants[i];
        json_t *row = json_object();
        put(&row, "name", text_of(m->name));
        put(&row, "from",
            text_of(m->corrected    ? "correction"
                    : m->enumerated ? "enumeration"
                                    : "derivation"));
        put(&row, "fate", text_of(m->fate));
        put(&row, "agrees", text_of(m->agrees));
        put(&row, "chosen", json_boolean(m->chosen));
        put(&row, "ratio", m->measured ? number(m->ratio) : json_null());
        put(&row, "ratio_estimated", number(m->estimate));
        put(&row, "flops", number(m->flops));
        put(&row, "bytes", number(m->bytes));
        put(&row, "why", text_of(m->why));
        append(&array, row);
    }
    return array;
}

static json_t *repaired(const po_subprogram_report *r) {
    json_t *array = json_array();
    for (size_t i = 0; i < r->n_repaired; i++) {
        json_t *row = json_object();
        put(&row, "first", lengths(r->repaired[i].rank, r->repaired[i].first));
        put(&row, "step", lengths(r->repaired[i].rank, r->repaired[i].step));
        put(&row, "count", lengths(r->repaired[i].rank, r->repaired[i].count));
        append(&array, row);
    }
    return array;
}

static json_t *subprograms(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_subprograms; i++) {
        const po_subprogram_report *r = &s->subprograms[i];
        json_t *row = json_object();
        put(&row, "name", text_of(r->name));
        put(&row, "times", count(r->times));
        put(&row, "before", operator_names(r->before, r->n_before));
        put(&row, "after", r->after ? operator_names(r->after, r->n_after) : json_null());
        put(&row, "output", lengths(r->rank, r->dims));
        put(&row, "ms", r->measured ? number(r->ms) : json_null());
        put(&row, "flops", number(r->flops));
        put(&row, "bytes", number(r->bytes));
        put(&row, "derived", count(r->derived));
        put(&row, "judged", count(r->judged));
        put(&row, "ended_by_shape", count(r->by_shape));
        put(&row, "ended_as_known", count(r->by_hash));
        put(&row, "ended_by_points", count(r->by_points));
        put(&row, "boxes", count(r->boxes));
        put(&row, "points", count(r->points));
        put(&row, "mutants", mutants(r));
        put(&row, "corrected", repaired(r));
        append(&array, row);
    }
    return array;
}

static json_t *search(const po_summary *s) {
    json_t *row = json_object();
    put(&row, "seconds", number(s->search_seconds));
    put(&row, "certify_seconds", number(s->certify_seconds));
    put(&row, "measure_seconds", number(s->measure_seconds));
    put(&row, "subprograms", subprograms(s));
    return row;
}

static json_t *steps(const po_region_report *r) {
    json_t *array = json_array();
    for (size_t i = 0; i < r->n_steps; i++) {
        const po_kernel_step_report *s = &r->steps[i];
        json_t *row = json_object();
        put(&row, "name", text_of(s->name));
        put(&row, "schedule", text_of(s->schedule));
        put(&row, "flops", number(s->flops));
        put(&row, "bytes", number(s->bytes));
        put(&row, "ms", s->ms > 0 ? number(s->ms) : json_null());
        put(&row, "ms_roofline", number(s->ms_roofline));
        append(&array, row);
    }
    return array;
}

static json_t *regions(const po_summary *s) {
    json_t *array = json_array();
    for (size_t i = 0; i < s->n_regions; i++) {
        const po_region_report *r = &s->regions[i];
        json_t *row = json_object();
        put(&row, "nodes", count(r->nodes));
        put(&row, "why", text_of(r->why));
        put(&row, "ms", r->ms > 0 ? number(r->ms) : json_null());
        put(&row, "ms_roofline", number(r->ms_roofline));
        put(&row, "ms_estimated", r->ms_estimated > 0 ? number(r->ms_estimated) : json_null());
        put(&row, "ms_nodes", r->ms_nodes > 0 ? number(r->ms_nodes) : json_null());
        put(&row, "steps", steps(r));
        append(&array, row);
    }
    return array;
}

/* Figures that were measured, or estimated, as asked for; null where they are not such. */
static json_t *latency(const po_summary *s, bool estimated) {
    if (estimated ? !s->estimated : !s->measured)
        return json_null();
    json_t *row = json_object();
    put(&row, "ms_before", number(s->ms_before));
    put(&row, "ms_after", number(s->ms_after));
    put(&row, "ratio", number(s->ratio));
    if (!estimated) {
        put(&row, "ratio_low", number(s->ratio_low));
        put(&row, "ratio_high", number(s->ratio_high));
    }
    return row;
}

char *po_json_optimise(const po_outcome *outcome) {
    const po_summary *s = outcome->summary;
    json_t *root = header(outcome->out ? "optimise" : "explain"), *notes = json_array();
    put(&root, "in", text_of(outcome->in));
    put(&root, "out", outcome->out ? text_of(outcome->out) : json_null());
    put(&root, "level", json_integer(s->level));
    put(&root, "runtime", text_of(s->runtime));
    put(&root, "cpu", text_of(s->cpu));
    put(&root, "target", text_of(*s->gpu ? "cuda" : "cpu"));
    put(&root, "gpu", *s->gpu ? text_of(s->gpu) : json_null());
    put(&root, "threads", json_integer(s->threads));
    put(&root, "stopped", text_of(s->stopped == PO_OK ? "" : po_status_name(s->stopped)));
    put(&root, "changed", json_boolean(s->changed));
    put(&root, "winner", text_of(s->winner));
    put(&root, "kept", text_of(s->kept));
    put(&root, "library", s->library ? text_of(s->library) : json_null());
    put(&root, "ratio_fallback", s->ratio_fallback > 0 ? number(s->ratio_fallback) : json_null());
    put(&root, "kernels", count(s->n_kernels));
    put(&root, "kernels_compared", text_of(s->kernels_compared));
    put(&root, "kernels_not_executed", text_of(s->kernels_unrun));
    put(&root, "nodes_before", count(s->nodes_before));
    put(&root, "nodes_after", count(s->nodes_after));
    put(&root, "weights_before", count(s->weights_before));
    put(&root, "weights_after", count(s->weights_after));
    put(&root, "latency", latency(s, false));
    put(&root, "latency_estimated", latency(s, true));
    put(&root, "error", s->compared ? number(s->error) : json_null());
    put(&root, "error_reference",
        s->error_reference >= 0 ? number(s->error_reference) : json_null());
    put(&root, "error_excused", s->inputs_excused > 0 ? number(s->error_excused) : json_null());
    put(&root, "inputs", count(s->inputs));
    put(&root, "inputs_fresh", count(s->inputs_fresh));
    put(&root, "tolerance", number(s->tolerance));
    put(&root, "proved", json_boolean(s->proved));
    put(&root, "proof", text_of(s->proof));
    put(&root, "load_seconds", number(outcome->load_seconds));
    put(&root, "seconds", number(s->seconds));
    put(&root, "operators", operators(s));
    put(&root, "stages", stages(s));
    put(&root, "rewrites", rewrites(s));
    put(&root, "candidates", candidates(s));
    put(&root, "regions", regions(s));
    for (size_t i = 0; i < s->n_notes; i++)
        append(&notes, text_of(s->notes[i]));
    put(&root, "search", search(s));
    put(&root, "notes", notes);
    return finish(root);
}

char *po_json_verify(const po_equality *report, const char *a, const char *b) {
    json_t *root = header("verify");
    put(&root, "a", text_of(a));
    put(&root, "b", text_of(b));
    put(&root, "equal", json_boolean(report->equal));
    put(&root, "proved", json_boolean(report->proved));
    put(&root, "inputs", count(report->inputs));
    put(&root, "error", number(report->error));
    put(&root, "tolerance", number(report->tolerance));
    put(&root, "worst", text_of(report->worst));
    put(&root, "proof", text_of(report->proof));
    put(&root, "how", text_of(report->how));
    put(&root, "runtime", text_of(report->runtime));
    return finish(root);
}

char *po_json_bench(const po_bench_report *report, char *const *files) {
    json_t *root = header("bench"), *rows = json_array();
    put(&root, "runtime", text_of(report->runtime));
    put(&root, "cpu", text_of(report->cpu));
    put(&root, "threads", json_integer(report->threads));
    put(&root, "rounds", json_integer(report->rounds));
    put(&root, "control", number(report->control));
    for (size_t i = 0; i < report->n_rows; i++) {
        json_t *row = json_object();
        put(&row, "file", text_of(files[i]));
        put(&row, "ms", number(report->rows[i].ms));
        put(&row, "ratio", number(report->rows[i].ratio));
        put(&row, "ratio_low", number(report->rows[i].low));
        put(&row, "ratio_high", number(report->rows[i].high));
        append(&rows, row);
    }
    put(&root, "models", rows);
    return finish(root);
}
