/* --report: one page that needs nothing else. */
#include "cli/cli.h"

/* Length of a well-formed UTF-8 sequence at p that may be shown, 0 where there is none. */
static size_t sequence(const unsigned char *p, uint32_t *code) {
    size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : 0;
    if (*p >= 0xf0 && *p < 0xf5)
        n = 4;
    if (n == 0)
        return 0;
    *code = n == 1 ? *p : *p & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    bool bad = *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000);
    return bad ? 0 : n;
}

/* Control characters, marks that turn the reading direction, and what no page may hold. */
static bool hidden(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
           (c & 0xfffe) == 0xfffe;
}

void po_html_text(po_text *text, const char *string, size_t most) {
    const unsigned char *p = (const unsigned char *)string;
    const unsigned char *end = p + strlen(string);
    const unsigned char *stop = (size_t)(end - p) > most ? p + most : end;
    while (p < stop) {
        uint32_t code = 0;
        size_t n = sequence(p, &code);
        if (n == 0 || hidden(code))
            po_text_puts(text, "\xef\xbf\xbd");
        else if (*p == '<')
            po_text_puts(text, "&lt;");
        else if (*p == '>')
            po_text_puts(text, "&gt;");
        else if (*p == '&')
            po_text_puts(text, "&amp;");
        else if (*p == '"')
            po_text_puts(text, "&quot;");
        else if (*p == '\'')
            po_text_puts(text, "&#39;");
        else
            po_text_add(text, (const char *)p, n);
        p += n ? n : 1;
    }
    if (stop < end)
        po_text_puts(text, "\xe2\x80\xa6");
}

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
    "<title>petopt report</title>\n<style>\n"
    ":root{--ink:#1d2430;--soft:#6a7484;--line:#d9dee6;--page:#fff;--panel:#f6f8fb;"
    "--old:#9aa6b8;--new:#1f7a5c;--warn:#b3541e}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b8;--line:#343c4a;"
    "--page:#14181f;--panel:#1c222c;--old:#66738a;--new:#48c79c;--warn:#e8935c}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);"
    "max-width:860px;margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.5em;margin-bottom:.2em}h2{font-size:1.1em;margin:2em 0 .5em}\n"
    ".soft{color:var(--soft)}.big{display:flex;flex-wrap:wrap;gap:1em;margin:1.2em 0}\n"
    ".big div{background:var(--panel);border-radius:8px;padding:.7em 1.1em;min-width:8em}\n"
    ".big b{display:block;font-size:1.45em}\n"
    "table{border-collapse:collapse;width:100%;font-size:.93em}\n"
    "td,th{text-align:left;padding:.3em .7em;border-bottom:1px solid var(--line);"
    "vertical-align:top}\ntd.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "svg{max-width:100%;height:auto;display:block;margin:.6em 0}\n"
    "svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .s{fill:var(--soft)}\n"
    "svg .o{fill:var(--old)}svg .w{fill:var(--new)}svg .e{stroke:var(--old);fill:none}\n"
    "svg .axis{stroke:var(--line)}svg .i{stroke:var(--ink);stroke-width:1.5}\n"
    "svg .b{fill:var(--panel);stroke:var(--line)}svg .bo{fill:var(--panel);stroke:var(--warn)}\n"
    "svg .bn{fill:var(--panel);stroke:var(--new)}svg .ws{fill:var(--warn)}\n"
    ".pair{display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start;margin-bottom:1.2em}\n"
    ".pair figure{margin:0;flex:1 1 300px}figcaption{color:var(--soft);font-size:.9em}\n"
    "</style></head><body>\n";

static void figure(po_text *t, const char *value, const char *what) {
    po_text_puts(t, "<div><b>");
    po_html_text(t, value, 80);
    po_text_puts(t, "</b><span class=\"soft\">");
    po_html_text(t, what, 200);
    po_text_puts(t, "</span></div>\n");
}

static void figures(po_text *t, const po_summary *s) {
    po_text_puts(t, "<div class=\"big\">\n");
    char value[80], what[200];
    if (s->measured) {
        snprintf(value, sizeof value, "%.2fx", s->ratio);
        snprintf(what, sizeof what, "as fast (%.2f to %.2f)%s%.80s", s->ratio_low, s->ratio_high,
                 *s->latency_by ? ", " : "", s->latency_by);
        figure(t, value, what);
    }
    for (size_t i = 1; i < s->n_sizes; i++) {
        snprintf(value, sizeof value, "%.2fx", s->sizes[i].ratio);
        snprintf(what, sizeof what, "at %.100s%s%.80s", s->sizes[i].inputs,
                 *s->sizes[i].by ? ", " : "", s->sizes[i].by);
        figure(t, value, what);
    }
    if (s->estimated) {
        snprintf(value, sizeof value, "%.2fx", s->ratio);
        snprintf(what, sizeof what, "as fast, estimated for %.60s, not measured", s->gpu);
        figure(t, value, what);
    }
    snprintf(value, sizeof value, "%llu \xe2\x86\x92 %llu", (unsigned long long)s->nodes_before,
             (unsigned long long)s->nodes_after);
    figure(t, value, "operators");
    if (!s->changed)
        figure(t, "0", "error: the same program");
    else if (s->compared) {
        snprintf(value, sizeof value, "%.1e", s->error);
        snprintf(what, sizeof what, "error, of the largest output (limit %.0e)", s->tolerance);
        figure(t, value, what);
    } else
        figure(t, "?", "error: not tested");
    po_text_puts(t, "</div>\n");
}

static void cell(po_text *t, const char *string) {
    po_text_puts(t, "<td>");
    po_html_text(t, string, 400);
    po_text_puts(t, "</td>");
}

static void candidate_table(po_text *t, const po_summary *s) {
    po_text_puts(t, "<table><tr><th>candidate</th><th class=\"n\">operators</th>"
                    "<th class=\"n\">latency</th><th class=\"n\">ratio</th>"
                    "<th class=\"n\">error</th><th>verdict</th></tr>\n");
    for (size_t i = 0; i < s->n_candidates; i++) {
        const po_candidate_report *c = &s->candidates[i];
        po_text_puts(t, "<tr>");
        cell(t, c->name);
        po_text_printf(t, "<td class=\"n\">%llu</td><td class=\"n\">",
                       (unsigned long long)c->nodes);
        if (c->measured)
            po_text_ms(t, c->ms);
        po_text_puts(t, "</td><td class=\"n\">");
        if (c->measured)
            po_text_printf(t, "%.2f (%.2f to %.2f)", c->ratio, c->low, c->high);
        po_text_puts(t, "</td><td class=\"n\">");
        if (c->compared)
            po_text_printf(t, "%.1e", c->error);
        po_text_puts(t, "</td>");
        cell(t, c->verdict);
        po_text_puts(t, "</tr>\n");
    }
    po_text_puts(t, "</table>\n");
}

static void rewrite_table(po_text *t, const po_summary *s) {
    po_text_puts(t, "<table><tr><th>stage</th><th>rewrite</th><th class=\"n\">times</th></tr>\n");
    for (size_t i = 0; i < s->n_rewrites; i++) {
        po_text_puts(t, "<tr>");
        cell(t, s->rewrites[i].stage);
        cell(t, s->rewrites[i].rule);
        po_text_printf(t, "<td class=\"n\">%llu</td></tr>\n",
                       (unsigned long long)s->rewrites[i].count);
    }
    po_text_puts(t, "</table>\n");
}

static void region_table(po_text *t, const po_summary *s) {
    po_text_puts(t, "<table><tr><th class=\"n\">region</th><th>step</th><th>schedule</th>"
                    "<th class=\"n\">ms</th><th class=\"n\">roofline, ms</th></tr>\n");
    for (size_t i = 0; i < s->n_regions; i++) {
        const po_region_report *r = &s->regions[i];
        if (*r->why) {
            po_text_printf(t, "<tr><td class=\"n\">%zu</td><td>%llu operators</td>", i,
                           (unsigned long long)r->nodes);
            cell(t, r->why);
            po_text_puts(t, "<td></td><td></td></tr>\n");
        }
        for (size_t k = 0; k < r->n_steps && !*r->why; k++) {
            po_text_printf(t, "<tr><td class=\"n\">%zu</td>", i);
            cell(t, r->steps[k].name);
            cell(t, r->steps[k].schedule);
            if (r->ms_estimated > 0)
                po_text_puts(t, "<td></td><td></td></tr>\n");
            else
                po_text_printf(t, "<td class=\"n\">%.3f</td><td class=\"n\">%.3f</td></tr>\n",
                               r->steps[k].ms, r->steps[k].ms_roofline);
        }
    }
    po_text_puts(t, "</table>\n");
}

static void heading(po_text *t, const char *title) {
    po_text_printf(t, "<h2>%s</h2>\n", title);
}

static void title(po_text *t, const po_outcome *o) {
    const po_summary *s = o->summary;
    po_text_puts(t, "<h1>");
    po_html_text(t, o->in, 200);
    po_text_puts(t, "</h1>\n<p class=\"soft\">petopt ");
    po_html_text(t, po_version(), 40);
    po_text_printf(t, ", -O%d", s->level);
    if (o->out) {
        po_text_puts(t, "; written to ");
        po_html_text(t, o->out, 200);
    }
    po_text_puts(t, ". ");
    if (*s->runtime || *s->cpu) {
        po_html_text(t, s->runtime, 80);
        po_text_puts(t, *s->runtime && *s->cpu ? ", " : "");
        po_html_text(t, s->cpu, 120);
        po_text_printf(t, ", %u thread%s.", s->threads, s->threads == 1 ? "" : "s");
    }
    po_text_puts(t, "</p>\n<p>");
    po_text_puts(t, s->changed ? "Won: " : "Nothing won over the ");
    po_html_text(t, s->winner, 200);
    po_text_puts(t, ".</p>\n");
}

void po_html_report(po_text *t, const po_outcome *o) {
    const po_summary *s = o->summary;
    po_text_puts(t, head);
    title(t, o);
    figures(t, s);
    if (s->measured) {
        heading(t, "Latency");
        po_chart_latency(t, s);
    }
    if (s->n_candidates > 0) {
        heading(t, "Candidates");
        po_chart_candidates(t, s);
        candidate_table(t, s);
    }
    heading(t, "Operators");
    po_chart_operators(t, s);
    if (s->changed) {
        heading(t, "What changed");
        po_sketch_regions(t, o);
    }
    if (s->n_rewrites > 0) {
        heading(t, "Rewrites");
        rewrite_table(t, s);
    }
    if (s->n_regions > 0) {
        heading(t, "Kernels");
        region_table(t, s);
    }
    if (s->n_subprograms > 0) {
        heading(t, "Subprograms");
        po_html_subprograms(t, s);
    }
    heading(t, "Stages");
    po_chart_stages(t, s);
    if (s->n_notes > 0) {
        heading(t, "Notes");
        po_text_puts(t, "<ul>\n");
        for (size_t i = 0; i < s->n_notes; i++) {
            po_text_puts(t, "<li>");
            po_html_text(t, s->notes[i], PO_MESSAGE_MAX);
            po_text_puts(t, "</li>\n");
        }
        po_text_puts(t, "</ul>\n");
    }
    po_text_puts(t, "</body></html>\n");
}
