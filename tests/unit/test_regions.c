/* Regions: what is joined, and that the independent look finds what was broken on purpose. */
#include "superopt/regions.h"

#include "rewriting.h"
#include "unit.h"

/* Erf stays outside, Identity and Reshape are moves, MatMul and Conv are cores. */
static po_region_part part(void *user, const po_graph *graph, const po_node *node) {
    (void)user;
    (void)graph;
    switch (node->op) {
    case PO_OP_Erf:
        return PO_REGION_NOT;
    case PO_OP_MatMul:
    case PO_OP_Conv:
        return PO_REGION_CORE;
    case PO_OP_Identity:
    case PO_OP_Reshape:
        return PO_REGION_MOVE;
    default:
        return PO_REGION_MAP;
    }
}

static const struct {
    const char *name, *graph;
    uint32_t n, nodes[3]; /* of each region */
} samples[] = {
    {"a whole network",
     "graph g (x: f32[4,8]) -> (y) {\n"
     " a = MatMul(x, w: f32[8,8] random 1)\n b = Relu(a)\n y = Add(b, a)\n}",
     1,
     {3}},
    {"a lone map is not worth a node",
     "graph g (x: f32[4,8]) -> (y) {\n"
     " a = Erf(x)\n b = Relu(a)\n y = Erf(b)\n}",
     0,
     {0}},
    {"two maps are", "graph g (x: f32[4,8]) -> (y) {\n a = Abs(x)\n y = Relu(a)\n}", 1, {2}},
    {"moves alone are not",
     "graph g (x: f32[4,8]) -> (y) {\n a = Identity(x)\n y = Identity(a)\n}",
     0,
     {0}},
    {"what leaves and comes back parts two regions",
     "graph g (x: f32[8,8]) -> (y) {\n"
     " a = MatMul(x, w: f32[8,8] random 1)\n b = Erf(a)\n c = Relu(a)\n d = Abs(c)\n"
     " e = Add(b, d)\n y = MatMul(e, w)\n}",
     2,
     {3, 2}},
    {"regions that would wait for each other",
     "graph g (x: f32[8,8], z: f32[8,8]) -> (y, u) {\n"
     " a = MatMul(x, w: f32[8,8] random 1)\n b = MatMul(z, w)\n ea = Erf(a)\n eb = Erf(b)\n"
     " y = Add(a, eb)\n u = Add(b, ea)\n}",
     2,
     {1, 1}},
};

static void finds(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = test_graph(&ctx, samples[i].graph);
        po_regions r;
        assert_int_equal(po_regions_find(&ctx, arena, g, part, NULL, &r), PO_OK);
        if (r.n != samples[i].n)
            fail_msg("%s: %u regions", samples[i].name, r.n);
        for (uint32_t k = 0; k < r.n; k++)
            if (r.regions[k].n_nodes != samples[i].nodes[k])
                fail_msg("%s: region %u has %u nodes", samples[i].name, k, r.regions[k].n_nodes);
        po_graph_free(g);
        po_arena_free(arena);
    }
    po_arenas_free_since(&ctx, 0);
}

/* Every planted error must be found. */
static void notices(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_graph *g = test_graph(&ctx, samples[4].graph);
    po_regions r;
    assert_int_equal(po_regions_find(&ctx, arena, g, part, NULL, &r), PO_OK);
    po_region broken[2];
    po_node_id all[8];
    po_regions list = {broken, 2, r.n_nodes};
    for (int error = 0; error < 6; error++) {
        memcpy(broken, r.regions, sizeof broken);
        list.n = 2;
        switch (error) {
        case 0: /* an input is missing */
            broken[0].n_in = 0;
            break;
        case 1: /* an output is missing */
            broken[0].n_out--;
            break;
        case 2: /* a node stands in both */
            broken[1].nodes = broken[0].nodes;
            break;
        case 3: /* an input is made inside */
            broken[1].in = broken[1].out;
            break;
        case 4: /* one region around the node outside: a cycle */
            memcpy(all, r.regions[0].nodes, 3 * sizeof *all);
            memcpy(all + 3, r.regions[1].nodes, 2 * sizeof *all);
            broken[0].nodes = all;
            broken[0].n_nodes = 5;
            broken[0].in = (po_value_id[]){r.regions[0].in[0], r.regions[1].in[0]};
            broken[0].n_in = 2;
            broken[0].out = (po_value_id[]){r.regions[0].out[0], r.regions[1].out[0]};
            broken[0].n_out = 2;
            list.n = 1;
            break;
        default: /* no such node */
            broken[1].nodes = (po_node_id[]){999, 1000};
        }
        if (po_regions_check(&ctx, g, &list) != PO_INTERNAL)
            fail_msg("error %d is not found", error);
        po_ctx_clear(&ctx);
    }
    po_graph_free(g);
    po_arenas_free_since(&ctx, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds), cmocka_unit_test(notices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
