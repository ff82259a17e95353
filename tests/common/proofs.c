/* Proves one graph against another under a fixed seed, or nodes put into the same frame; and
 * replaces a piece of a text. */
#include "proofs.h"

#include "rewriting.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

po_proof_report test_prove(po_ctx *ctx, const char *a, const char *b, const char *recipes) {
    po_proof_report r;
    po_graph *x = test_graph(ctx, a), *y = test_graph(ctx, b);
    po_graph *made = recipes ? test_graph(ctx, recipes) : NULL;
    po_proof_options options = {.seed = 5};
    assert_int_equal(po_prove(ctx, x, y, made, &options, &r), PO_OK);
    po_graph_free(x);
    po_graph_free(y);
    po_graph_free(made);
    return r;
}

po_proof_report test_prove_nodes(po_ctx *ctx, const char *a, const char *b) {
    const char *form = "pir 1 ir_version=8 opset=17\n"
                       "graph g (x: f32[2,6,4,4]) -> (y) {\n %s\n}\n";
    char x[2048], y[2048];
    snprintf(x, sizeof x, form, a);
    snprintf(y, sizeof y, form, b);
    return test_prove(ctx, x, y, NULL);
}

char *test_replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (!at)
        return NULL;
    char *out = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(out);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}
