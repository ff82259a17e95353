/* Pictures of the report, as SVG inside the page. Lengths are in SVG units. */
#include "cli/cli.h"

enum { WIDTH = 760, NAME = 190, VALUE = 110, BAR = WIDTH - NAME - VALUE, ROW = 22, THICK = 14 };

static void open_svg(po_text *t, double height, const char *label) {
    po_text_printf(t,
                   "<svg viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\" role=\"img\" "
                   "aria-label=\"%s\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                   WIDTH, height, WIDTH, height, label);
}

static void close_svg(po_text *t) {
    po_text_puts(t, "</svg>\n");
}

static void name_at(po_text *t, double y, const char *name) {
    po_text_printf(t, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", NAME - 8, y);
    po_html_text(t, name, 34);
    po_text_puts(t, "</text>\n");
}

static void bar(po_text *t, double x, double y, double width, double height, const char *class) {
    po_text_printf(t,
                   "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" "
                   "class=\"%s\"/>\n",
                   x, y, width < 1 ? 1 : width, height, class);
}

void po_chart_latency(po_text *t, const po_summary *s) {
    const char *const names[2] = {"original", "written"};
    const double ms[2] = {s->ms_before, s->ms_after};
    double most = ms[0] > ms[1] ? ms[0] : ms[1];
    open_svg(t, 2 * ROW + 4, "latency before and after");
    for (int i = 0; i < 2; i++) {
        double y = i * ROW + 2, width = most > 0 ? BAR * ms[i] / most : 0;
        name_at(t, y + 14, names[i]);
        bar(t, NAME, y + 3, width, THICK, i ? "w" : "o");
        po_text_printf(t, "<text x=\"%.1f\" y=\"%.1f\">", NAME + width + 6, y + 14);
        po_text_ms(t, ms[i]);
        po_text_puts(t, "</text>\n");
    }
    close_svg(t);
}

void po_chart_operators(po_text *t, const po_summary *s) {
    enum { MOST = 40 };
    size_t n = s->n_operators < MOST ? s->n_operators : MOST;
    uint64_t most = 1;
    for (size_t i = 0; i < n; i++) {
        most = s->operators[i].before > most ? s->operators[i].before : most;
        most = s->operators[i].after > most ? s->operators[i].after : most;
    }
    open_svg(t, (double)n * ROW + 4, "operators before and after");
    for (size_t i = 0; i < n; i++) {
        const po_operator_count *c = &s->operators[i];
        double y = (double)i * ROW + 2;
        double before = BAR * (double)c->before / (double)most;
        double after = BAR * (double)c->after / (double)most;
        name_at(t, y + 14, c->name);
        if (c->before > 0)
            bar(t, NAME, y + 2, before, 8, "o");
        if (c->after > 0)
            bar(t, NAME, y + 11, after, 8, "w");
        po_text_printf(t, "<text x=\"%.1f\" y=\"%.1f\">%llu \xe2\x86\x92 %llu</text>\n",
                       NAME + (before > after ? before : after) + 6, y + 15,
                       (unsigned long long)c->before, (unsigned long long)c->after);
    }
    close_svg(t);
    if (s->n_operators > n)
        po_text_printf(t, "<p class=\"soft\">and %zu operators that occur more rarely</p>\n",
                       s->n_operators - n);
}

void po_chart_stages(po_text *t, const po_summary *s) {
    double most = 1e-6;
    for (size_t i = 0; i < s->n_stages; i++)
        most = s->stages[i].seconds > most ? s->stages[i].seconds : most;
    open_svg(t, (double)s->n_stages * ROW + 4, "time of each stage");
    for (size_t i = 0; i < s->n_stages; i++) {
        const po_stage_report *g = &s->stages[i];
        double y = (double)i * ROW + 2, width = g->ran ? BAR * g->seconds / most : 0;
        name_at(t, y + 14, g->name);
        if (g->ran)
            bar(t, NAME, y + 3, width, THICK, "o");
        po_text_printf(t, "<text x=\"%.1f\" y=\"%.1f\"%s>", NAME + width + 6, y + 14,
                       g->ran ? "" : " class=\"s\"");
        if (g->ran)
            po_text_ms(t, 1000 * g->seconds);
        else
            po_html_text(t, g->note, 60);
        po_text_puts(t, "</text>\n");
    }
    close_svg(t);
}

/* Each candidate's interval over a common scale, with a line at 1: right of it is faster. */
void po_chart_candidates(po_text *t, const po_summary *s) {
    double low = 0.95, high = 1.05;
    size_t n = 0;
    for (size_t i = 0; i < s->n_candidates; i++) {
        const po_candidate_report *c = &s->candidates[i];
        if (!c->measured)
            continue;
        n++;
        low = c->low < low ? c->low : low;
        high = c->high > high ? c->high : high;
    }
    if (n == 0)
        return;
    double span = high - low, scale = BAR / span, one = NAME + (1 - low) * scale;
    double height = (double)n * ROW + 22;
    open_svg(t, height, "measured gain of each candidate");
    po_text_printf(t,
                   "<line x1=\"%.1f\" y1=\"0\" x2=\"%.1f\" y2=\"%.1f\" class=\"axis\"/>\n"
                   "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" class=\"s\">1.00</text>\n",
                   one, one, height - 16, one, height - 4);
    double y = 2;
    for (size_t i = 0; i < s->n_candidates; i++) {
        const po_candidate_report *c = &s->candidates[i];
        if (!c->measured)
            continue;
        name_at(t, y + 14, c->name);
        double a = NAME + (c->low - low) * scale, b = NAME + (c->high - low) * scale;
        po_text_printf(t,
                       "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"i\"/>\n"
                       "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"%s\"/>\n"
                       "<text x=\"%.1f\" y=\"%.1f\">%.2f</text>\n",
                       a, y + 10, b, y + 10, NAME + (c->ratio - low) * scale, y + 10,
                       c->chosen ? "w" : "o", b + 8, y + 14, c->ratio);
        y += ROW;
    }
    close_svg(t);
}
