/* Mutants that differ from the original in names, in the order of their initialisers and in an
 * operator that the runtime removes, go through selection. None is faster: what is accepted is
 * noise taken for gain. Prints what each reading said. Usage: identity_mutants [COUNT [THREADS]] */
#include "onnx_load.h"
#include "select/select.h"
#include "test_onnx.h"
#include "test_paths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 1, MUTANTS = 100, OF_ACCEPTED = 20, BASES = 4 };
static const double seconds_a_reading = 0.35; /* the less, the more noise: 8 where it matters */

static _Noreturn void stop(const char *what) {
    fprintf(stderr, "identity_mutants: %s\n", what);
    exit(2);
}

/* `layers` of Sigmoid and Tanh in turn. */
static void write_chain(const char *path, int layers, const char *dims) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, dims);
    test_onnx_output(m, "y", F32, dims);
    char from[16] = "x", to[16];
    for (int i = 0; i < layers; i++) {
        snprintf(to, sizeof to, i + 1 == layers ? "y" : "t%d", i);
        test_onnx_node(m, i % 2 ? "Tanh" : "Sigmoid", from, to);
        memcpy(from, to, sizeof from);
    }
    test_onnx_write(m, path);
    test_onnx_free(m);
}

/* Three convolutions with ReLUs. */
static void write_convolutions(const char *path) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "1,16,28,28");
    test_onnx_output(m, "y", F32, "1,16,28,28");
    float w[16 * 16 * 9];
    int64_t pads[] = {1, 1, 1, 1};
    static const char *const in[] = {"x w0", "b0 w1", "b1 w2"};
    static const char *const mid[] = {"a0", "a1", "a2"}, *const out[] = {"b0", "b1", "y"};
    static const char *const weights[] = {"w0", "w1", "w2"};
    for (uint64_t k = 0; k < 3; k++) {
        for (uint64_t i = 0; i < 16 * 16 * 9; i++)
            w[i] = 0.1f * (float)po_random_normal(3, k, i);
        test_onnx_initializer(m, weights[k], F32, "16,16,3,3", w, sizeof w);
        test_onnx_ints(test_onnx_node(m, "Conv", in[k], mid[k]), "pads", 4, pads);
        test_onnx_node(m, "Relu", mid[k], out[k]);
    }
    test_onnx_write(m, path);
    test_onnx_free(m);
}

/* --- mutation --- */

static bool is_interface(const Onnx__GraphProto *g, const char *name) {
    for (size_t i = 0; i < g->n_input; i++)
        if (strcmp(g->input[i]->name, name) == 0)
            return true;
    for (size_t i = 0; i < g->n_output; i++)
        if (strcmp(g->output[i]->name, name) == 0)
            return true;
    return false;
}

static void rename_value(const Onnx__GraphProto *g, char **name, uint32_t number) {
    if ((*name)[0] == '\0' || is_interface(g, *name))
        return;
    size_t size = strlen(*name) + 24;
    char *fresh = malloc(size);
    if (!fresh)
        stop("memory");
    snprintf(fresh, size, "m%u_%s", number, *name);
    *name = fresh; /* the old one goes with the process */
}

static void write_mutant(const char *from, const char *to, uint32_t number) {
    size_t size;
    char *bytes = test_read_file(from, &size);
    Onnx__ModelProto *model =
        bytes ? onnx__model_proto__unpack(NULL, size, (const uint8_t *)bytes) : NULL;
    if (!model)
        stop("the original cannot be read");
    Onnx__GraphProto *g = model->graph;
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *node = g->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            rename_value(g, &node->input[k], number);
        for (size_t k = 0; k < node->n_output; k++)
            rename_value(g, &node->output[k], number);
    }
    for (size_t i = 0; i < g->n_initializer; i++)
        rename_value(g, &g->initializer[i]->name, number);
    for (size_t i = g->n_initializer; i > 1; i--) {
        size_t k = (size_t)(po_random_u64(11, number, i) % i);
        Onnx__TensorProto *kept = g->initializer[k];
        g->initializer[k] = g->initializer[i - 1];
        g->initializer[i - 1] = kept;
    }
    g->n_value_info = 0;
    if (number % 2) { /* an Identity behind the input, which the runtime takes away */
        static char op[] = "Identity";
        Onnx__NodeProto *idle = malloc(sizeof *idle),
                        **nodes = malloc((g->n_node + 1) * sizeof *nodes);
        char **names = malloc(2 * sizeof *names), *inner = malloc(40);
        if (!idle || !nodes || !names || !inner)
            stop("memory");
        snprintf(inner, 40, "m%u_entry", number);
        for (size_t i = 0; i < g->n_node; i++)
            for (size_t k = 0; k < g->node[i]->n_input; k++)
                if (strcmp(g->node[i]->input[k], g->input[0]->name) == 0)
                    g->node[i]->input[k] = inner;
        onnx__node_proto__init(idle);
        idle->op_type = op;
        names[0] = g->input[0]->name;
        names[1] = inner;
        idle->n_input = idle->n_output = 1;
        idle->input = &names[0];
        idle->output = &names[1];
        nodes[0] = idle;
        memcpy(nodes + 1, g->node, g->n_node * sizeof *nodes);
        g->node = nodes;
        g->n_node++;
    }
    size_t packed = onnx__model_proto__get_packed_size(model);
    uint8_t *out = malloc(packed);
    if (!out)
        stop("memory");
    onnx__model_proto__pack(model, out);
    test_write_file(to, out, packed);
    free(out);
    free(bytes);
}

int main(int argc, char **argv) {
    uint32_t mutants = argc > 1 ? (uint32_t)atoi(argv[1]) : MUTANTS;
    char dir[512], bases[BASES][600], mutant[600];
    test_mkdtemp(dir, sizeof dir);
    for (int b = 0; b < 3; b++)
        snprintf(bases[b], sizeof bases[b], "%s/base%d.onnx", dir, b);
    write_chain(bases[0], 3, "1,16");
    write_chain(bases[1], 2, "64,1024");
    write_convolutions(bases[2]);
    test_deps_path(bases[3], sizeof bases[3], "models/ch_ppocr_mobile_v2.0_cls_infer.onnx");
    snprintf(mutant, sizeof mutant, "%s/mutant.onnx", dir);

    uint32_t accepted = 0, readings = 0;
    double worst = 0, sum = 0;
    for (uint32_t i = 0; i < mutants; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_cost *cost = NULL;
        po_cost_options options = {NULL, ""}; /* nothing is remembered */
        const char *base = bases[i % BASES];
        write_mutant(base, mutant, i);
        po_model *model = test_model_load(&ctx, base);
        if (!model || po_cost_open(&ctx, arena, &options, &cost) != PO_OK)
            stop(ctx.error.message);
        po_ops_resolve(model->graph);
        po_select_spec spec = {.cost = cost,
                               .original = base,
                               .candidate = mutant,
                               .graph = model->graph,
                               .threads = argc > 2             ? (uint32_t)atoi(argv[2])
                                          : i / BASES % 4 == 3 ? cost->machine.cores
                                                               : 1,
                               .timing_seconds = seconds_a_reading,
                               .seed = 1000 + i};
        po_verdict v;
        if (po_select(&ctx, &spec, &v) != PO_OK)
            stop(ctx.error.message);
        if (v.code == PO_VERDICT_WRONG || v.code == PO_VERDICT_UNTESTED ||
            v.code == PO_VERDICT_SAME_FILE || v.n_readings == 0)
            stop(v.reason);
        accepted += po_verdict_accepted(&v);
        const po_reading *r = &v.readings[0];
        worst = fmax(worst, fabs(r->gain - 1));
        sum += fabs(r->gain - 1);
        readings++;
        char clock[PO_TIMING_CLOCK];
        printf("%3u base %u, %s: %9.4f ms, %.4fx [%.4f, %.4f], %u readings: %s\n", i, i % BASES,
               po_timing_clock(r->threads, r->by, clock), 1e3 * r->original, r->gain, r->low,
               r->high, v.n_readings, po_verdict_accepted(&v) ? "ACCEPTED" : "kept out");
        fflush(stdout);
        test_model_free(model);
        po_arena_free(arena);
    }
    test_rmtree(dir);
    printf("%u of %u identity mutants accepted (limit %u); first readings off by %.4f on average, "
           "%.4f at most\n",
           accepted, mutants, mutants / OF_ACCEPTED, sum / readings, worst);
    return accepted <= mutants / OF_ACCEPTED && mutants > 0 ? 0 : 1;
}
