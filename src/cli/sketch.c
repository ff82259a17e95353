/* The regions that changed, drawn before and after. A node changed where the other graph has none
 * with the same operator, inputs and outputs; changed nodes of both graphs that share a value are
 * one region. Regions of the same operators are drawn once. */
#include "base/groups.h"
#include "base/hash.h"
#include "cli/cli.h"

#include <stdlib.h>

enum { MOST_REGIONS = 8, MOST_NODES = 28, BOX_W = 128, BOX_H = 24, GAP_X = 14, GAP_Y = 18 };

/* Changed nodes of both graphs: those of the original first. */
typedef struct changes {
    po_arena *arena;
    const po_node_view **nodes;
    bool *after;
    uint32_t *parent; /* union-find */
    uint32_t n, cap_nodes, cap_after;
} changes;

static const char *key_of(po_arena *arena, const po_node_view *node) {
    po_text key;
    po_text_init(&key, arena);
    po_text_printf(&key, "%s\x1f%s", node->domain, node->op_type);
    for (size_t i = 0; i < node->n_in; i++)
        po_text_printf(&key, "\x1f%s", node->in[i]);
    po_text_puts(&key, "\x1e");
    for (size_t i = 0; i < node->n_out; i++)
        po_text_printf(&key, "\x1f%s", node->out[i]);
    return key.data;
}

/* Adds the nodes that the other graph lacks. */
static void collect(changes *c, const po_node_view *nodes, size_t n, const po_node_view *others,
                    size_t n_others, bool after) {
    po_map *there = po_map_create(c->arena);
    for (size_t i = 0; i < n_others; i++)
        po_map_put(there, key_of(c->arena, &others[i]), 1);
    for (size_t i = 0; i < n; i++) {
        if (po_map_get(there, key_of(c->arena, &nodes[i])) != PO_NONE ||
            strcmp(nodes[i].op_type, "Constant") == 0)
            continue;
        uint32_t count = c->n;
        PO_PUSH(c->arena, c->nodes, count, c->cap_nodes, &nodes[i]);
        PO_PUSH(c->arena, c->after, c->n, c->cap_after, after);
    }
}

static void join(changes *c, uint32_t i, uint32_t j) {
    i = po_group_root(c->parent, i);
    j = po_group_root(c->parent, j);
    if (i < j)
        c->parent[j] = i;
    else
        c->parent[i] = j;
}

/* Joins the makers of a value in the two graphs, and makers with readers, but not across a value
 * that both graphs have: there one region ends and another begins. */
static void connect(changes *c, const po_outcome *o) {
    c->parent = PO_NEW_N(c->arena, uint32_t, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        c->parent[i] = i;
    po_map *makers = po_map_create(c->arena), *before = po_map_create(c->arena);
    po_map *both = po_map_create(c->arena);
    for (size_t i = 0; i < o->n_before; i++)
        for (size_t k = 0; k < o->before[i].n_out; k++)
            po_map_put(before, o->before[i].out[k], 1);
    for (size_t i = 0; i < o->n_after; i++)
        for (size_t k = 0; k < o->after[i].n_out; k++)
            if (po_map_get(before, o->after[i].out[k]) != PO_NONE)
                po_map_put(both, o->after[i].out[k], 1);
    for (uint32_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->nodes[i]->n_out; k++) {
            const char *name = c->nodes[i]->out[k];
            uint32_t had = *name ? po_map_put(makers, name, i) : PO_NONE;
            if (had != PO_NONE)
                join(c, i, had);
        }
    for (uint32_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->nodes[i]->n_in; k++) {
            const char *name = c->nodes[i]->in[k];
            uint32_t maker = *name ? po_map_get(makers, name) : PO_NONE;
            if (maker != PO_NONE && po_map_get(both, name) == PO_NONE)
                join(c, i, maker);
        }
}

typedef struct region {
    uint32_t root, nodes, same; /* `same`: regions of the same operators, this one included */
    const char *signature;
} region;

/* The operators of each region, in order, as text. */
static region *regions_of(changes *c, uint32_t *n) {
    uint32_t *index = PO_NEW_N(c->arena, uint32_t, c->n);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (po_group_root(c->parent, i) == i)
            index[i] = count++;
    region *all = PO_NEW_N(c->arena, region, count);
    po_text *texts = PO_NEW_N(c->arena, po_text, count);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t r = index[po_group_root(c->parent, i)];
        if (all[r].nodes++ == 0) {
            all[r].root = i;
            all[r].same = 1;
            po_text_init(&texts[r], c->arena);
        }
        po_text_printf(&texts[r], "%c%s", c->after[i] ? '>' : '<', c->nodes[i]->op_type);
    }
    po_map *seen = po_map_create(c->arena);
    uint32_t kept = 0;
    for (uint32_t r = 0; r < count; r++) {
        all[r].signature = texts[r].data;
        uint32_t first = po_map_get(seen, all[r].signature);
        if (first != PO_NONE) {
            all[first].same++;
            continue;
        }
        po_map_put(seen, all[r].signature, kept);
        all[kept++] = all[r];
    }
    *n = kept;
    return all;
}

/* Most nodes in all first; then as in the graph. */
static int compare_regions(const void *x, const void *y) {
    const region *a = x, *b = y;
    uint64_t na = (uint64_t)a->nodes * a->same, nb = (uint64_t)b->nodes * b->same;
    return na != nb ? (na < nb ? 1 : -1) : a->root < b->root ? -1 : 1;
}

/* --- drawing one side --- */

typedef struct place {
    uint32_t level, column;
} place;

static double left_of(place p, const uint32_t *columns, uint32_t widest) {
    double row = columns[p.level] * (BOX_W + GAP_X) - GAP_X;
    double all = widest * (BOX_W + GAP_X) - GAP_X;
    return 2 + (all - row) / 2 + p.column * (double)(BOX_W + GAP_X);
}

static void draw_edge(po_text *t, double x1, double y1, double x2, double y2) {
    double bend = (y2 - y1) / 2;
    po_text_printf(t, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\" class=\"e\"/>\n", x1,
                   y1, x1, y1 + bend, x2, y2 - bend, x2, y2);
}

void po_sketch_nodes(po_text *t, const po_node_view *const *nodes, uint32_t n, bool after) {
    po_arena *arena = t->arena;
    place *places = PO_NEW_N(arena, place, n);
    uint32_t *columns = PO_NEW_N(arena, uint32_t, n + 1);
    po_map *makers = po_map_create(arena);
    uint32_t levels = 0, widest = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t level = 0;
        for (size_t k = 0; k < nodes[i]->n_in; k++) {
            uint32_t m = po_map_get(makers, nodes[i]->in[k]);
            if (m != PO_NONE && places[m].level + 1 > level)
                level = places[m].level + 1;
        }
        places[i] = (place){level, columns[level]++};
        widest = columns[level] > widest ? columns[level] : widest;
        levels = level + 1 > levels ? level + 1 : levels;
        for (size_t k = 0; k < nodes[i]->n_out; k++)
            if (*nodes[i]->out[k])
                po_map_put(makers, nodes[i]->out[k], i);
    }
    double width = widest * (BOX_W + GAP_X) - GAP_X + 4,
           height = levels * (BOX_H + GAP_Y) - GAP_Y + 4;
    po_text_printf(t,
                   "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
                   "aria-label=\"nodes %s\" xmlns=\"http://www.w3.org/2000/svg\">\n",
                   width, height, width, height, after ? "after" : "before");
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_in; k++) {
            uint32_t m = po_map_get(makers, nodes[i]->in[k]);
            if (m == PO_NONE || m >= i)
                continue;
            draw_edge(t, left_of(places[m], columns, widest) + BOX_W / 2.0,
                      places[m].level * (BOX_H + GAP_Y) + BOX_H + 2,
                      left_of(places[i], columns, widest) + BOX_W / 2.0,
                      places[i].level * (BOX_H + GAP_Y) + 2);
        }
    for (uint32_t i = 0; i < n; i++) {
        double x = left_of(places[i], columns, widest), y = places[i].level * (BOX_H + GAP_Y) + 2;
        po_text_puts(t, "<g><title>");
        po_html_text(t, *nodes[i]->name ? nodes[i]->name : nodes[i]->op_type, 120);
        po_text_printf(t,
                       "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" "
                       "rx=\"4\" class=\"%s\"/>",
                       x, y, BOX_W, BOX_H, after ? "bn" : "bo");
        po_text_printf(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x + BOX_W / 2.0,
                       y + 16);
        po_html_text(t, nodes[i]->op_type, 18);
        po_text_puts(t, "</text></g>\n");
    }
    po_text_puts(t, "</svg>\n");
}

static void draw_side(po_text *t, changes *c, const region *r, bool after) {
    const po_node_view *nodes[MOST_NODES];
    uint32_t n = 0, all = 0, root = po_group_root(c->parent, r->root);
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->after[i] != after || po_group_root(c->parent, i) != root)
            continue;
        if (n < MOST_NODES)
            nodes[n++] = c->nodes[i];
        all++;
    }
    po_text_printf(t, "<figure><figcaption>%s: %u node%s", after ? "after" : "before", all,
                   all == 1 ? "" : "s");
    if (all > n)
        po_text_printf(t, ", the first %u shown", n);
    po_text_puts(t, "</figcaption>\n");
    if (n > 0)
        po_sketch_nodes(t, nodes, n, after);
    po_text_puts(t, "</figure>\n");
}

void po_sketch_regions(po_text *text, const po_outcome *o) {
    changes c = {.arena = text->arena};
    collect(&c, o->before, o->n_before, o->after, o->n_after, false);
    collect(&c, o->after, o->n_after, o->before, o->n_before, true);
    if (c.n == 0) {
        po_text_puts(text, "<p>Only constants and types changed.</p>\n");
        return;
    }
    connect(&c, o);
    uint32_t n;
    region *regions = regions_of(&c, &n);
    qsort(regions, n, sizeof *regions, compare_regions);
    for (uint32_t i = 0; i < n && i < MOST_REGIONS; i++) {
        if (regions[i].same > 1)
            po_text_printf(text, "<p>%u regions like this one, the first from ", regions[i].same);
        else
            po_text_puts(text, "<p>From ");
        const po_node_view *first = c.nodes[regions[i].root];
        po_html_text(text, first->n_out > 0 && *first->out[0] ? first->out[0] : first->op_type, 80);
        po_text_puts(text, ":</p>\n<div class=\"pair\">\n");
        draw_side(text, &c, &regions[i], false);
        draw_side(text, &c, &regions[i], true);
        po_text_puts(text, "</div>\n");
    }
    if (n > MOST_REGIONS)
        po_text_printf(text, "<p class=\"soft\">and %u other kinds of regions</p>\n",
                       n - MOST_REGIONS);
}
