/* Raises models to a later opset.
 *
 *   raise OPSET IN OUT
 *   raise OPSET -b LIST        LIST: lines of IN <tab> OUT
 *
 * Prints a line for each model that is refused, with its path and the reason. */
#include "export/export.h"
#include "import/import.h"
#include "simplify/opset.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static po_status raise_model(po_ctx *ctx, int64_t opset, const char *in, const char *out) {
    po_guard guard;
    po_model *model = NULL;
    po_graph *g = NULL;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(ctx, &guard);
    po_status status = po_import_file(ctx, in, &model);
    if (status == PO_OK)
        status = po_raise_opset(ctx, model->graph, opset, &g, NULL);
    if (status == PO_OK)
        status = po_graph_check(ctx, g);
    if (status == PO_OK)
        status = po_export_file(ctx, g, out, &(po_export_options){0}, NULL);
    po_graph_free(g);
    if (model)
        po_model_free(model);
    po_guard_pop(ctx, &guard);
    if (status != PO_OK)
        printf("%s: %s\n", in, ctx->error.message);
    po_arenas_free_since(ctx, 0);
    return status;
}

static int batch(int64_t opset, const char *list) {
    FILE *f = fopen(list, "r");
    char line[8192];
    int broken = f ? 0 : 1;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *out = strchr(line, '\t');
        po_ctx ctx;
        po_ctx_init(&ctx);
        if (!out)
            continue;
        *out++ = '\0';
        po_status status = raise_model(&ctx, opset, line, out);
        broken |= status != PO_OK && status != PO_BAD_USE && status != PO_BAD_INPUT;
    }
    if (f)
        fclose(f);
    return broken;
}

int main(int argc, char **argv) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    if (argc != 4)
        return 2;
    int64_t opset = strtoll(argv[1], NULL, 10);
    if (strcmp(argv[2], "-b") == 0)
        return batch(opset, argv[3]);
    return raise_model(&ctx, opset, argv[2], argv[3]) == PO_OK ? 0 : 1;
}
