/* The search in the report: each subprogram before and after, its mutants, and where the chosen one
 * was corrected. */
#include "cli/cli.h"

#include <stdlib.h>

enum { MOST_DRAWN = 16, MOST_NODES = 28, MOST_MUTANTS = 40, MOST_MARKS = 4096, MAP_SIZE = 220 };

/* --- the output tensor, the corrected parts coloured --- */

/* The last two axes as a map; one axis as a strip. */
typedef struct map {
    double width, height; /* of the picture */
    double per_x, per_y;  /* an element's size */
    size_t x, y;          /* axes; y == rank: there is none */
} map;

static map map_of(const po_subprogram_report *r) {
    map m = {.x = r->rank - 1, .y = r->rank > 1 ? r->rank - 2 : r->rank};
    double nx = (double)r->dims[m.x], ny = m.y < r->rank ? (double)r->dims[m.y] : 1;
    double most = nx > ny ? nx : ny;
    m.per_x = m.per_y = most > 0 ? MAP_SIZE / most : 1;
    m.width = nx * m.per_x;
    m.height = ny * m.per_y > 8 ? ny * m.per_y : 8;
    m.per_y = ny > 0 ? m.height / ny : 1;
    return m;
}

static size_t draw_box(po_text *t, const map *m, const po_box_report *b, size_t marks) {
    bool plane = m->y < b->rank;
    int64_t nx = b->step[m->x] == 1 ? 1 : b->count[m->x];
    int64_t ny = !plane || b->step[m->y] == 1 ? 1 : b->count[m->y];
    double w = (b->step[m->x] == 1 ? (double)b->count[m->x] : 1) * m->per_x;
    double h = !plane               ? m->height
               : b->step[m->y] == 1 ? (double)b->count[m->y] * m->per_y
                                    : m->per_y;
    for (int64_t i = 0; i < nx; i++)
        for (int64_t j = 0; j < ny && marks < MOST_MARKS; j++, marks++)
            po_text_printf(
                t, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"ws\"/>\n",
                1 + (double)(b->first[m->x] + i * b->step[m->x]) * m->per_x,
                plane ? 1 + (double)(b->first[m->y] + j * b->step[m->y]) * m->per_y : 1, w, h);
    return marks;
}

static void draw_map(po_text *t, const po_subprogram_report *r) {
    if (r->rank == 0 || r->n_repaired == 0)
        return;
    map m = map_of(r);
    po_text_printf(t,
                   "<figure><figcaption>the output's last axes; coloured: %zu boxes where the "
                   "mutant was corrected</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" "
                   "width=\"%.0f\" height=\"%.0f\" role=\"img\" aria-label=\"corrected boxes\" "
                   "xmlns=\"http://www.w3.org/2000/svg\">\n<rect x=\"1\" y=\"1\" width=\"%.2f\" "
                   "height=\"%.2f\" class=\"bn\"/>\n",
                   r->n_repaired, m.width + 2, m.height + 2, m.width + 2, m.height + 2, m.width,
                   m.height);
    size_t marks = 0;
    for (size_t i = 0; i < r->n_repaired && marks < MOST_MARKS; i++)
        marks = draw_box(t, &m, &r->repaired[i], marks);
    po_text_puts(t, "</svg></figure>\n");
}

/* --- before and after --- */

static void draw_side(po_text *t, const po_node_view *views, size_t n, bool after) {
    const po_node_view *nodes[MOST_NODES];
    uint32_t shown = n < MOST_NODES ? (uint32_t)n : MOST_NODES;
    for (uint32_t i = 0; i < shown; i++)
        nodes[i] = &views[i];
    po_text_printf(t, "<figure><figcaption>%s: %zu node%s%s</figcaption>\n",
                   after ? "after" : "before", n, n == 1 ? "" : "s",
                   shown < n ? ", the first shown" : "");
    po_sketch_nodes(t, nodes, shown, after);
    po_text_puts(t, "</figure>\n");
}

/* --- its mutants --- */

static void cell(po_text *t, const char *text) {
    po_text_puts(t, "<td>");
    po_html_text(t, text, 200);
    po_text_puts(t, "</td>");
}

static void mutant_row(po_text *t, const po_mutant_report *m) {
    po_text_puts(t, "<tr>");
    cell(t, m->name);
    cell(t, m->corrected ? "corrected" : m->enumerated ? "found blindly" : "derived");
    cell(t, *m->why ? m->why : m->fate);
    po_text_puts(t, "<td class=\"n\">");
    if (m->measured)
        po_text_printf(t, m->chosen ? "<b>%.2fx</b>" : "%.2fx", m->ratio);
    po_text_printf(t, "</td><td class=\"n\">%.2fx</td><td class=\"n\">%.1f</td></tr>\n",
                   m->estimate, m->flops / 1e6);
}

static void mutant_table(po_text *t, const po_subprogram_report *r) {
    po_text_printf(t,
                   "<details><summary>%zu mutants</summary><table><tr><th>mutant</th><th></th>"
                   "<th>fate</th><th class=\"n\">measured</th><th class=\"n\">roofline</th>"
                   "<th class=\"n\">MFLOP</th></tr>\n",
                   r->n_mutants);
    for (size_t i = 0; i < r->n_mutants && i < MOST_MUTANTS; i++)
        mutant_row(t, &r->mutants[i]);
    po_text_puts(t, "</table>");
    if (r->n_mutants > MOST_MUTANTS)
        po_text_printf(t, "<p class=\"soft\">and %zu others</p>", r->n_mutants - MOST_MUTANTS);
    po_text_puts(t, "</details>\n");
}

static void subprogram(po_text *t, const po_subprogram_report *r) {
    po_text_puts(t, "<h3>");
    po_html_text(t, r->name, 80);
    if (r->times > 1)
        po_text_printf(t, ", %zu times", r->times);
    po_text_puts(t, "</h3>\n<p class=\"soft\">");
    if (r->measured)
        po_text_printf(t, "%.3f ms in context; ", r->ms);
    po_text_printf(t,
                   "%.1f MFLOP, %.2f MB; %llu derived, %llu judged blindly (%llu ended by shape, "
                   "%llu as known, %llu by points), %llu boxes and %llu points compared</p>\n",
                   r->flops / 1e6, r->bytes / 1e6, (unsigned long long)r->derived,
                   (unsigned long long)r->judged, (unsigned long long)r->by_shape,
                   (unsigned long long)r->by_hash, (unsigned long long)r->by_points,
                   (unsigned long long)r->boxes, (unsigned long long)r->points);
    po_text_puts(t, "<div class=\"pair\">\n");
    draw_side(t, r->before, r->n_before, false);
    if (r->after)
        draw_side(t, r->after, r->n_after, true);
    draw_map(t, r);
    po_text_puts(t, "</div>\n");
    if (r->n_mutants > 0)
        mutant_table(t, r);
}

void po_html_subprograms(po_text *t, const po_summary *s) {
    po_text_printf(t, "<p>Search %.1f s, certification %.1f s, measurement %.1f s.</p>\n",
                   s->search_seconds, s->certify_seconds, s->measure_seconds);
    size_t drawn = 0;
    for (int changed = 1; changed >= 0; changed--) /* those with a winner first */
        for (size_t i = 0; i < s->n_subprograms && drawn < MOST_DRAWN; i++)
            if ((s->subprograms[i].after != NULL) == changed) {
                subprogram(t, &s->subprograms[i]);
                drawn++;
            }
    if (s->n_subprograms > drawn)
        po_text_printf(t, "<p class=\"soft\">and %zu other subprograms</p>\n",
                       s->n_subprograms - drawn);
}
