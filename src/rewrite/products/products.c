/* Matrix products: merged, bracketed anew, distributed, and by Strassen's algorithm. Equal
 * everywhere; each is proposed only where it saves multiplications or a launch. */
#include "rewrite/deriving.h"
#include "rewrite/pattern.h"

enum { MOST = 8 };

typedef struct product {
    po_node_id node;
    po_value_id a, b, y;
    uint32_t ra, rb, ry;
    int64_t da[PO_MOST_DIMS], db[PO_MOST_DIMS], dy[PO_MOST_DIMS];
} product;

static bool read_product(const po_graph *g, po_node_id id, product *p) {
    const po_node *n = &g->nodes[id];
    *p = (product){.node = id, .a = PO_NONE};
    if (n->removed || n->op != PO_OP_MatMul || !po_rearrangeable(g, n->in[0]))
        return false;
    p->a = n->in[0];
    p->b = n->in[1];
    p->y = n->out[0];
    return po_dims_of(g, p->a, &p->ra, p->da) && po_dims_of(g, p->b, &p->rb, p->db) &&
           po_dims_of(g, p->y, &p->ry, p->dy) && p->ra >= 2 && p->rb >= 2 && p->ry >= 2;
}

static double work(const product *p) {
    double w = (double)p->da[p->ra - 1];
    for (uint32_t i = 0; i < p->ry; i++)
        w *= (double)p->dy[i];
    return w;
}

static bool same_value_dims(uint32_t ra, const int64_t *a, uint32_t rb, const int64_t *b) {
    return ra == rb && memcmp(a, b, ra * sizeof *a) == 0;
}

/* x w0, x w1, .. as x [w0 w1 ..]. Side conditions: weights of rank 2. */
po_status po_derive_products_side(po_deriving *d, po_node_id id) {
    product p[MOST];
    if (!read_product(d->from, id, &p[0]) || p[0].rb != 2 || !d->weight[p[0].b])
        return PO_OK;
    uint32_t n = 1;
    const po_value *x = &d->from->values[p[0].a];
    for (uint32_t i = 0; i < x->n_uses && n < MOST; i++) {
        if (x->uses[i].node == id || x->uses[i].input != 0 ||
            !read_product(d->from, x->uses[i].node, &p[n]) || p[n].rb != 2 || !d->weight[p[n].b])
            continue;
        if (x->uses[i].node < id)
            return PO_OK; /* found from there */
        n++;
    }
    if (n < 2)
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id w[MOST], y[MOST];
    int64_t columns[MOST];
    for (uint32_t k = 0; k < n; k++) {
        w[k] = p[k].b;
        columns[k] = p[k].db[1];
    }
    po_value_id all = po_mk_matmul(d, p[0].a, po_mk_concat(d, 1, n, w));
    po_mk_split(d, all, p[0].ry - 1, n, columns, y);
    for (uint32_t k = 0; k < n && !d->dropped; k++)
        po_derive_replace(d, p[k].y, y[k]);
    return po_derive_end(d, po_arena_printf(d->arena, "%u", n));
}

/* Products of the same shape, of inputs of the subprogram, as one with a batch. */
po_status po_derive_products_batch(po_deriving *d, po_node_id id) {
    product p[MOST];
    if (!read_product(d->from, id, &p[0]) || d->from->values[p[0].a].producer != PO_NONE ||
        d->from->values[p[0].b].producer != PO_NONE)
        return PO_OK;
    uint32_t n = 1;
    for (po_node_id other = 0; other < d->from->n_nodes && n < MOST; other++) {
        if (other == id || !read_product(d->from, other, &p[n]) ||
            d->from->values[p[n].a].producer != PO_NONE ||
            d->from->values[p[n].b].producer != PO_NONE ||
            !same_value_dims(p[0].ra, p[0].da, p[n].ra, p[n].da) ||
            !same_value_dims(p[0].rb, p[0].db, p[n].rb, p[n].db))
            continue;
        if (other < id)
            return PO_OK; /* found from there */
        n++;
    }
    uint32_t r = p[0].ra > p[0].rb ? p[0].ra : p[0].rb;
    if (n < 2 || r + 1 > PO_MOST_DIMS)
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id a[MOST], b[MOST];
    int64_t da[PO_MOST_DIMS], db[PO_MOST_DIMS];
    for (uint32_t i = 0; i <= r; i++)
        da[i] = db[i] = 1;
    memcpy(&da[r + 1 - p[0].ra], p[0].da, p[0].ra * sizeof *da);
    memcpy(&db[r + 1 - p[0].rb], p[0].db, p[0].rb * sizeof *db);
    for (uint32_t k = 0; k < n; k++) {
        a[k] = po_mk_reshape(d, p[k].a, r + 1, da);
        b[k] = po_mk_reshape(d, p[k].b, r + 1, db);
    }
    po_value_id y = po_mk_matmul(d, po_mk_concat(d, 0, n, a), po_mk_concat(d, 0, n, b));
    for (uint32_t k = 0; k < n && !d->dropped; k++)
        po_derive_replace(d, p[k].y,
                          po_mk_reshape(d, po_mk_slice(d, y, 0, k, 1, 1), p[k].ry, p[k].dy));
    return po_derive_end(d, po_arena_printf(d->arena, "%u", n));
}

/* Multiplications of a node; those of weights are done once. */
static double work_at(const po_deriving *d, const po_graph *g, po_node_id id) {
    product p;
    const bool runs =
        read_product(g, id, &p) && !(p.a < d->from->n_values && d->weight[p.a] && d->weight[p.b]);
    return runs ? work(&p) : 0;
}

/* A vector is a row in front and a column behind: between two matrices it is first the one and then
 * the other, and beside a batch it may meet another axis. */
static bool associative(const po_graph *g, const po_match *m) {
    const int a = po_rank_of(g, po_matched(m, 'a')), b = po_rank_of(g, po_matched(m, 'b')),
              c = po_rank_of(g, po_matched(m, 'c'));
    return b >= 2 && ((a >= 2 && c >= 2) || (b == 2 && a >= 1 && a <= 2 && c >= 1 && c <= 2));
}

static po_status bracket(po_deriving *d, po_node_id id, uint32_t inner, const char *from,
                         const char *to, const char *name) {
    const po_node *n = &d->from->nodes[id];
    po_match m;
    if (!po_matches(d->from, d->arena, n, from, &m) || !po_rearrangeable(d->from, n->out[0]) ||
        !associative(d->from, &m))
        return PO_OK;
    const double now =
        work_at(d, d->from, id) + work_at(d, d->from, d->from->values[n->in[inner]].producer);
    po_derive_begin(d, id);
    const po_node_id made = d->g->n_nodes;
    const po_value_id y = po_write(d->g, id, &m, to);
    d->dropped = d->dropped || work_at(d, d->g, made) + work_at(d, d->g, made + 1) >= now;
    return po_derive_done(d, y, name);
}

/* Side condition: fewer multiplications. */
po_status po_derive_bracket(po_deriving *d, po_node_id id) {
    PO_TRY(bracket(d, id, 0, "MatMul(&MatMul(a, b), c)", "MatMul(a, MatMul(b, c))", "a (b c)"));
    return bracket(d, id, 1, "MatMul(a, &MatMul(b, c))", "MatMul(MatMul(a, b), c)", "(a b) c");
}

static bool is_matrix(const po_deriving *d, po_value_id weight) {
    return weight == PO_NONE || (d->weight[weight] && po_rank_of(d->from, weight) == 2);
}

/* Sums of products of one tensor. */
po_status po_derive_factor_sum(po_deriving *d, po_node_id id) {
    po_match m;
    if (!po_matches(d->from, d->arena, &d->from->nodes[id],
                    "Add(&MatMul(x, v), (&MatMul(x, w) | &MatMul(&MatMul(x, a), b)))", &m) ||
        !po_rearrangeable(d->from, po_matched(&m, 'x')) || !is_matrix(d, po_matched(&m, 'v')) ||
        !is_matrix(d, po_matched(&m, 'w')) || !is_matrix(d, po_matched(&m, 'a')) ||
        !is_matrix(d, po_matched(&m, 'b')))
        return PO_OK;
    return po_derive_text(d, id, &m,
                          po_matched(&m, 'w') != PO_NONE ? "MatMul(x, Add(v, w))"
                                                         : "MatMul(x, Add(v, MatMul(a, b)))");
}

/* Side condition: a and b of one shape. */
po_status po_derive_common_weight(po_deriving *d, po_node_id id) {
    po_match m;
    return po_matches(d->from, d->arena, &d->from->nodes[id], "Add(&MatMul(a, w), &MatMul(b, w))",
                      &m) &&
                   po_rearrangeable(d->from, po_matched(&m, 'a')) &&
                   po_same_dims(d->from, po_matched(&m, 'a'), po_matched(&m, 'b'))
               ? po_derive_text(d, id, &m, "MatMul(Add(a, b), w)")
               : PO_OK;
}

/* One step of Strassen's algorithm: 7 products of halves for 8. Side condition: the two inner and
 * outer sizes are even, and large enough that a product costs more than the sums. */
po_status po_derive_strassen(po_deriving *d, po_node_id id) {
    enum { LEAST = 8 };
    static const double u[7 * 4] = {1, 0, 0, 1, 0, 0, 1,  1, 1, 0, 0, 0, 0, 0,
                                    0, 1, 1, 1, 0, 0, -1, 0, 1, 0, 0, 1, 0, -1};
    static const double v[7 * 4] = {1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, -1, -1, 0,
                                    1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0,  1,  1};
    static const double w[4 * 7] = {1, 0, 0, 1, -1, 0, 1, 0, 0,  1, 0, 1, 0, 0,
                                    0, 1, 0, 1, 0,  0, 0, 1, -1, 1, 0, 0, 1, 0};
    product p;
    if (!read_product(d->from, id, &p) || p.ra != 2 || p.rb != 2)
        return PO_OK;
    int64_t m = p.da[0], k = p.da[1], n = p.db[1];
    if (m % 2 || k % 2 || n % 2 || m < LEAST || k < LEAST || n < LEAST)
        return PO_OK;
    po_derive_begin(d, id);
    po_value_id a = po_mk_reshape(d, p.a, 4, (int64_t[]){2, m / 2, 2, k / 2});
    a = po_mk_transpose(d, a, (int[]){0, 2, 1, 3});
    a = po_mk_reshape(d, a, 2, (int64_t[]){4, m * k / 4});
    a = po_mk_matmul(d, po_mk_table(d, 2, (int64_t[]){7, 4}, u), a);
    a = po_mk_reshape(d, a, 3, (int64_t[]){7, m / 2, k / 2});
    po_value_id b = po_mk_reshape(d, p.b, 4, (int64_t[]){2, k / 2, 2, n / 2});
    b = po_mk_transpose(d, b, (int[]){0, 2, 1, 3});
    b = po_mk_reshape(d, b, 2, (int64_t[]){4, k * n / 4});
    b = po_mk_matmul(d, po_mk_table(d, 2, (int64_t[]){7, 4}, v), b);
    b = po_mk_reshape(d, b, 3, (int64_t[]){7, k / 2, n / 2});
    po_value_id y = po_mk_reshape(d, po_mk_matmul(d, a, b), 2, (int64_t[]){7, m * n / 4});
    y = po_mk_matmul(d, po_mk_table(d, 2, (int64_t[]){4, 7}, w), y);
    y = po_mk_reshape(d, y, 4, (int64_t[]){2, 2, m / 2, n / 2});
    y = po_mk_transpose(d, y, (int[]){0, 2, 1, 3});
    return po_derive_done(d, po_mk_reshape(d, y, 2, (int64_t[]){m, n}), NULL);
}
