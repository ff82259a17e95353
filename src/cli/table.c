/* The closing table: what the user wants to know, before and after. */
#include "cli/cli.h"

/* "4.6 MB" */
static void print_bytes(po_text *text, uint64_t bytes) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double x = (double)bytes;
    size_t unit = 0;
    while (x >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        x /= 1000;
        unit++;
    }
    po_text_printf(text, "%.*f %s", unit == 0 || x >= 99.95 ? 0 : 1, x, units[unit]);
}

void po_text_ms(po_text *text, double ms) {
    if (ms < 0.9995)
        po_text_printf(text, "%.*f us", ms < 0.00995 ? 2 : ms < 0.0995 ? 1 : 0, 1000 * ms);
    else if (ms < 9999.5)
        po_text_printf(text, "%.*f ms", ms < 9.995 ? 2 : ms < 999.5 ? 1 : 0, ms);
    else
        po_text_printf(text, "%.2f s", ms / 1000);
}

enum { LABEL = 12, COLUMN = 14, REMARK = LABEL + 2 * COLUMN - 2 };

/* Text so far on this line, to align what follows. */
static void pad(po_text *text, size_t line, size_t column) {
    while (text->size - line < column)
        po_text_puts(text, " ");
}

static size_t label(po_text *text, const char *name) {
    size_t line = text->size;
    po_text_puts(text, name);
    pad(text, line, LABEL);
    return line;
}

static void counts(po_text *text, const po_summary *s) {
    size_t line = label(text, "operators");
    po_text_printf(text, "%llu", (unsigned long long)s->nodes_before);
    pad(text, line, LABEL + COLUMN);
    po_text_printf(text, "%llu\n", (unsigned long long)s->nodes_after);
    line = label(text, "weights");
    print_bytes(text, s->weights_before);
    pad(text, line, LABEL + COLUMN);
    print_bytes(text, s->weights_after);
    po_text_puts(text, "\n");
}

static void latency(po_text *text, const po_summary *s) {
    size_t line = label(text, "latency");
    if (!s->measured && !s->estimated) {
        po_text_puts(text, s->level == 0 ? "not measured at -O0\n" : "not measured\n");
        return;
    }
    po_text_ms(text, s->ms_before);
    pad(text, line, LABEL + COLUMN);
    po_text_ms(text, s->ms_after);
    pad(text, line, REMARK);
    if (s->estimated)
        po_text_printf(text, "%.2fx as fast, estimated for %s, not measured\n", s->ratio, s->gpu);
    else if (s->changed)
        po_text_printf(text, "%.2fx as fast (%.2f to %.2f)%s%s", s->ratio, s->ratio_low,
                       s->ratio_high, *s->gpu ? " on " : "", s->gpu);
    else
        po_text_puts(text, "unchanged");
    if (!s->estimated)
        po_text_printf(text, "%s%s\n", *s->latency_by ? ", " : "", s->latency_by);
}

/* The first is the one above; it says at which lengths that was. */
static void sizes(po_text *text, const po_summary *s) {
    for (size_t i = 0; i < s->n_sizes && s->changed; i++) {
        const po_size_report *size = &s->sizes[i];
        if (i == 0) {
            label(text, "");
            po_text_printf(text, "at %s\n", size->inputs);
            continue;
        }
        size_t line = label(text, "");
        po_text_ms(text, size->ms_before);
        pad(text, line, LABEL + COLUMN);
        po_text_ms(text, size->ms_after);
        pad(text, line, REMARK);
        po_text_printf(text, "%.2fx (%.2f to %.2f) at %s%s%s\n", size->ratio, size->low, size->high,
                       size->inputs, *size->by ? ", " : "", size->by);
    }
}

static void kept(po_text *text, const po_summary *s) {
    if (!*s->kept)
        return;
    label(text, "kept");
    po_text_printf(text, "%s\n", s->kept);
}

static void error(po_text *text, const po_summary *s) {
    size_t line = label(text, "error");
    if (!s->changed) {
        po_text_puts(text, "-");
        pad(text, line, LABEL + COLUMN);
        po_text_puts(text, "0 (the same program)\n");
        return;
    }
    if (s->error_reference >= 0)
        po_text_printf(text, "%.1e", s->error_reference);
    else
        po_text_puts(text, "-");
    pad(text, line, LABEL + COLUMN);
    if (s->compared)
        po_text_printf(text, "%.1e", s->error);
    else
        po_text_puts(text, "not tested");
    pad(text, line, REMARK);
    po_text_printf(text, "of the largest output; limit %.1e", s->tolerance);
    if (s->compared && s->inputs > 0)
        po_text_printf(text, "; %u sets of inputs, %u of them fresh", s->inputs, s->inputs_fresh);
    po_text_puts(text, "\n");
}

static void proof(po_text *text, const po_summary *s) {
    if (!s->changed || !s->proof || !*s->proof)
        return;
    label(text, "proof");
    po_text_printf(text, "%s: %s\n", s->proved ? "proved" : "tested only", s->proof);
}

/* How to load what was written beside the model. */
static void kernels(po_text *text, const po_outcome *o) {
    const po_summary *s = o->summary;
    if (!s->library)
        return;
    label(text, "kernels");
    po_text_printf(text, "%zu in %s\n", s->n_kernels, s->library);
    if (*s->kernels_compared) {
        label(text, "");
        po_text_printf(text, "compared: %s\n", s->kernels_compared);
    }
    if (*s->kernels_unrun) {
        label(text, "");
        po_text_printf(text, "not executed here: %s\n", s->kernels_unrun);
    }
    po_text_puts(text, "Python:\n    options = onnxruntime.SessionOptions()\n"
                       "    options.register_custom_ops_library(");
    po_text_quoted(text, s->library, strlen(s->library));
    po_text_puts(text, ")\n    session = onnxruntime.InferenceSession(");
    po_text_quoted(text, o->out, strlen(o->out));
    po_text_printf(text, ", options%s)\n",
                   *s->gpu ? ", providers=[\"CUDAExecutionProvider\"]" : "");
    if (*s->gpu) {
        po_text_puts(text, "C, and TensorRT: README.md beside the library\n");
        return;
    }
    po_text_puts(text, "C:\n    api->CreateSessionOptions(&options);\n"
                       "    api->RegisterCustomOpsLibrary_V2(options, ");
    po_text_quoted(text, s->library, strlen(s->library));
    po_text_puts(text, ");\n    api->CreateSession(env, ");
    po_text_quoted(text, o->out, strlen(o->out));
    po_text_puts(text, ", options, &session);\n");
}

void po_table_print(po_text *text, const po_outcome *outcome) {
    const po_summary *s = outcome->summary;
    size_t line = label(text, "");
    po_text_puts(text, "original");
    pad(text, line, LABEL + COLUMN);
    po_text_puts(text, "written\n");
    counts(text, s);
    latency(text, s);
    sizes(text, s);
    kept(text, s);
    error(text, s);
    proof(text, s);
    if (*s->runtime || *s->cpu)
        po_text_printf(text, "%s%s%s%s, %u thread%s\n", *s->gpu ? "compared on " : "", s->runtime,
                       *s->runtime && *s->cpu ? ", " : "", s->cpu, s->threads,
                       s->threads == 1 ? "" : "s");
    for (size_t i = 0; i < s->n_notes; i++)
        po_text_printf(text, "note: %s\n", s->notes[i]);
    if (s->stopped == PO_CANCELLED)
        po_text_puts(text, "interrupted: the best verified so far is written\n");
    else if (s->stopped == PO_TIME_LIMIT)
        po_text_puts(text, "the time limit passed: the best verified so far is written\n");
    kernels(text, outcome);
    po_text_printf(text, "won: %s, in %.1f s\n", s->winner, s->seconds + outcome->load_seconds);
}
