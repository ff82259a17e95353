/* Pairs of small graphs: where po_prove says that they compute the same function, they do, in the
 * float64 reference on drawn inputs. The bytes are nodes of three bytes each, then edits of three
 * bytes each that make the second graph of the first. */
#include "base/num.h"
#include "ir/text.h"
#include "ops/op.h"
#include "ops/ref.h"
#include "verify/proof/proof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODES = 10, BYTES = 3, EDITS = 4, TEXT = 8192, DRAWS = 3 };

static void require(bool right) {
    if (!right)
        abort();
}

/* Operators that keep [3,3]; %s is an operand. */
typedef struct op {
    const char *form;
    int operands;
} op;

static const op ops[] = {
    {"Relu(%s)", 1},
    {"Neg(%s)", 1},
    {"Abs(%s)", 1},
    {"Sigmoid(%s)", 1},
    {"Tanh(%s)", 1},
    {"Erf(%s)", 1},
    {"Sign(%s)", 1},
    {"Floor(%s)", 1},
    {"Sqrt(%s)", 1},
    {"Exp(%s)", 1},
    {"Reciprocal(%s)", 1},
    {"Identity(%s)", 1},
    {"Transpose(%s) {perm=[1,0]}", 1},
    {"Softmax(%s) {axis=1}", 1},
    {"Softmax(%s) {axis=0}", 1},
    {"Clip(%s, zero, six)", 1},
    {"LeakyRelu(%s) {alpha=0.5}", 1},
    {"Mul(%s, two)", 1},
    {"Mul(%s, large)", 1},
    {"Add(%s, three)", 1},
    {"Pow(%s, two)", 1},
    {"Mul(%s, row)", 1},
    {"Add(%s, column)", 1},
    {"Add(%s, %s)", 2},
    {"Sub(%s, %s)", 2},
    {"Mul(%s, %s)", 2},
    {"Div(%s, %s)", 2},
    {"Max(%s, %s)", 2},
    {"Min(%s, %s)", 2},
    {"MatMul(%s, %s)", 2},
    {"Gemm(%s, %s) {transB=1}", 2},
    {"Gather(%s, order) {axis=0}", 1},
    {"Gather(%s, order) {axis=1}", 1},
};

typedef struct pair {
    uint8_t nodes[NODES][BYTES];
    int n;
} pair;

static const char head[] = "pir 1 ir_version=8 opset=17\n"
                           "graph g (x: f32[3,3], z: f32[3,3]) -> (y) {\n"
                           "  zero = Constant() {value=f32[] {0.0}}\n"
                           "  six = Constant() {value=f32[] {6.0}}\n"
                           "  two = Constant() {value=f32[] {2.0}}\n"
                           "  three = Constant() {value=f32[] {3.0}}\n"
                           "  large = Constant() {value=f32[] {2147483648.0}}\n"
                           "  row = Constant() {value=f32[3] {1.0, -2.0, 0.5}}\n"
                           "  column = Constant() {value=f32[3,1] {0.25, -1.0, 2.0}}\n"
                           "  order = Constant() {value=i64[3] {2, 0, 1}}\n"
                           "  n0 = Identity(x)\n"
                           "  n1 = Identity(z)\n";

static void write_graph(const pair *p, char text[TEXT]) {
    size_t at = (size_t)snprintf(text, TEXT, "%s", head);
    for (int i = 0; i < p->n; i++) {
        char a[16], b[16], line[128];
        const op *o = &ops[p->nodes[i][0] % (sizeof ops / sizeof ops[0])];
        snprintf(a, sizeof a, "n%d", p->nodes[i][1] % (i + 2));
        snprintf(b, sizeof b, "n%d", p->nodes[i][2] % (i + 2));
        /* The form comes from the table above, never from the input. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(line, sizeof line, o->form, a, b);
#pragma GCC diagnostic pop
        at += (size_t)snprintf(text + at, TEXT - at, "  n%d = %s\n", i + 2, line);
    }
    snprintf(text + at, TEXT - at, "  y = Identity(n%d)\n}\n", p->n + 1);
}

/* Bytes of nodes up to the byte 255 in an operator's place, then edits. */
static void read_pair(const uint8_t *data, size_t size, pair *first, pair *second) {
    *first = (pair){.n = 0};
    size_t at = 0;
    for (; at + BYTES <= size && data[at] != 255 && first->n < NODES; at += BYTES)
        memcpy(first->nodes[first->n++], data + at, BYTES);
    *second = *first;
    at += at < size && data[at] == 255;
    for (int k = 0; k < EDITS && at + BYTES <= size && first->n > 0; k++, at += BYTES) {
        int node = data[at] % first->n, field = data[at] / 64;
        if (field < BYTES) {
            second->nodes[node][field] = data[at + 1];
        } else if (second->n < NODES) { /* a node in between: those after it shift */
            memmove(second->nodes[node + 1], second->nodes[node],
                    (size_t)(second->n - node) * BYTES);
            memcpy(second->nodes[node], (uint8_t[]){data[at + 1], data[at + 2], data[at + 2]},
                   BYTES);
            second->n++;
        }
    }
}

static bool evaluate(po_ctx *ctx, po_arena *arena, const po_graph *g, uint64_t seed,
                     po_array **out) {
    static const double scales[DRAWS] = {1, 0.1, 6};
    int64_t dims[] = {3, 3};
    const po_array *in[2];
    for (uint64_t k = 0; k < 2; k++) {
        po_array *a;
        require(po_array_create(ctx, arena, PO_F32, 2, dims, &a) == PO_OK);
        for (uint64_t i = 0; i < 9; i++)
            a->f[i] = scales[seed] * po_random_normal(seed + 1, k, i);
        in[k] = a;
    }
    return po_ref_graph(ctx, arena, g, in, out, false) == PO_OK;
}

/* Whether two draws of the second graph are the first one's. Values that leave the range, or that
 * cancel below what doubles hold of `large`, say nothing. */
static bool differ(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b) {
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        po_array *u, *v;
        if (!evaluate(ctx, arena, a, seed, &u) || !evaluate(ctx, arena, b, seed, &v)) {
            po_ctx_clear(ctx);
            continue;
        }
        if (u->count != v->count)
            return true;
        for (int64_t i = 0; i < u->count; i++)
            if (isfinite(u->f[i]) && isfinite(v->f[i]) &&
                fabs(u->f[i] - v->f[i]) > 1e-3 * fmax(1, fmax(fabs(u->f[i]), fabs(v->f[i]))))
                return true;
    }
    return false;
}

/* Sums of products of large and small numbers cancel to nothing in doubles: one factor of `large`
 * and few steps that magnify, else the pair is left alone. */
static bool is_tame(const pair *p) {
    int large = 0, wild = 0;
    for (int i = 0; i < p->n; i++) {
        const char *form = ops[p->nodes[i][0] % (sizeof ops / sizeof ops[0])].form;
        large += strstr(form, "large") != NULL;
        wild += strncmp(form, "Exp", 3) == 0 || strncmp(form, "Pow", 3) == 0 ||
                strncmp(form, "Div", 3) == 0 || strncmp(form, "Rec", 3) == 0;
    }
    return large <= 1 && wild + large <= 2;
}

static po_graph *graph_of(po_ctx *ctx, const pair *p) {
    char text[TEXT];
    po_graph *g;
    write_graph(p, text);
    require(po_graph_parse(ctx, text, &g) == PO_OK);
    po_ops_resolve(g);
    require(po_infer_graph(ctx, g, false) == PO_OK);
    return g;
}

static void prove(po_ctx *ctx, const pair *first, const pair *second) {
    static const po_proof_options options = {.seed = 7, .cpu_seconds = 2};
    po_proof_report report;
    po_arena *arena = po_arena_create(ctx);
    const po_graph *a = graph_of(ctx, first), *b = graph_of(ctx, second);
    require(po_prove(ctx, a, b, NULL, &options, &report) == PO_OK);
#ifdef CREDULOUS /* a proof that believes everything: the corpus must find it out */
    if (differ(ctx, arena, a, b))
        exit(3);
#endif
    if (report.proved && differ(ctx, arena, a, b)) {
        char text[TEXT];
        write_graph(first, text);
        fprintf(stderr, "proved:\n%s", text);
        write_graph(second, text);
        fprintf(stderr, "is\n%s", text);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_guard guard;
    pair first, second;
    read_pair(data, size, &first, &second);
    if (first.n == 0 || !is_tame(&first) || !is_tame(&second))
        return 0;
    po_ctx_init(&ctx);
    po_guard_push(&ctx, &guard);
    if (setjmp(guard.env) == 0) {
        prove(&ctx, &first, &second);
        po_guard_pop(&ctx, &guard);
        po_arenas_free_since(&ctx, 0);
    } else {
        po_guard_unwind(&ctx, &guard);
    }
    return 0;
}
