/* How many candidates the blind enumeration judges a second, and what it costs a whole network.
 *
 *     candidates MODEL.onnx...
 *
 * prints a line for each distinct subprogram, and the sums of each network. */
#include "import/import.h"
#include "mutate/mutate.h"
#include "ops/op.h"
#include "postopt/postopt.h"
#include "simplify/simplify.h"
#include "split/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void describe(const po_graph *g) {
    const char *between = "";
    for (po_node_id i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].removed) {
            printf("%s%s", between, g->nodes[i].op_type);
            between = " ";
        }
    printf(" [");
    po_dim none = PO_DIM(0);
    const po_type *t = &g->values[g->inputs[0]].type;
    for (uint32_t i = 0; i < t->rank; i++)
        printf(i ? ",%lld" : "%lld", (long long)(t->dims ? t->dims[i] : none).value);
    printf("]\n");
}

static po_status network(po_ctx *ctx, const char *path) {
    po_arena *arena = po_arena_create(ctx);
    po_model *model;
    po_graph *simple, *folded;
    po_split split;
    PO_TRY(po_import_file(ctx, path, &model));
    po_simplify_options simplify = po_simplify_defaults();
    PO_TRY(po_simplify(ctx, model->graph, &simplify, &simple, NULL));
    po_postopt_options options = po_postopt_defaults();
    options.algebra = 0;
    PO_TRY(po_postopt(ctx, simple, &options, &folded, NULL));
    PO_TRY(po_infer_graph(ctx, folded, true));
    PO_TRY(po_split_model(ctx, arena, folded, NULL, &split));
    po_mutate_counts sum = {0};
    uint64_t mutants = 0;
    double begin = cpu_seconds();
    for (uint32_t i = 0; i < split.n; i++) {
        po_mutate_counts c = {0};
        po_mutants list;
        po_mutants_init(&list, arena);
        double start = cpu_seconds();
        PO_TRY(po_enumerate(ctx, arena, &split.subs[i],
                            &(po_mutate_options){.depth = 4, .rounds = 4}, &list, &c));
        double took = cpu_seconds() - start;
        printf("%4u %3ux %9llu judged %9llu shape %7llu hash %8llu points %3u mutants %6.3f s  ", i,
               split.subs[i].n_at, (unsigned long long)c.judged, (unsigned long long)c.by_shape,
               (unsigned long long)c.by_hash, (unsigned long long)c.by_points, list.n, took);
        describe(split.subs[i].graph);
        sum.judged += c.judged;
        sum.by_shape += c.by_shape;
        sum.by_hash += c.by_hash;
        sum.by_points += c.by_points;
        mutants += list.n;
    }
    double took = cpu_seconds() - begin;
    printf("%s: %u subprograms, %llu judged (%llu by points), %llu mutants, %.2f s of CPU, %.0f "
           "judged/s, %.0f by points/s\n",
           path, split.n, (unsigned long long)sum.judged,
           (unsigned long long)(sum.judged - sum.by_shape), (unsigned long long)mutants, took,
           (double)sum.judged / took, (double)(sum.judged - sum.by_shape) / took);
    po_arena_free(arena);
    return PO_OK;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_guard guard;
        po_guard_push(&ctx, &guard);
        po_status status = setjmp(guard.env) != 0 ? po_guard_unwind(&ctx, &guard) : PO_OK;
        if (status == PO_OK) {
            status = network(&ctx, argv[i]);
            po_guard_pop(&ctx, &guard);
        }
        if (status != PO_OK) {
            fprintf(stderr, "%s: %s\n", argv[i], ctx.error.message);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
