/* Models of petopt.h: load, save, text, a view of the nodes. */
#include "export/export.h"
#include "import/import.h"
#include "ir/text.h"
#include "pipeline/api/api.h"
#include "pipeline/record.h"

#include <stdlib.h>

void po_api_keep_model(po_model *model) {
    po_arena_keep(model->arena);
    if (model->graph)
        po_arena_keep(model->graph->arena);
}

void po_api_bind_model(po_model *model, po_ctx *ctx) {
    po_arena_bind(model->arena, ctx);
    po_arena_bind(model->graph->arena, ctx);
    if (model->graph->model != model)
        po_arena_bind(model->graph->model->arena, ctx);
}

typedef struct model_args {
    po_model *model;
    const char *path;
    char *text;
    const po_node_view *views;
    size_t count;
} model_args;

static po_status load_body(po_ctx *ctx, void *user) {
    model_args *args = user;
    PO_TRY(po_import_file(ctx, args->path, &args->model));
    po_api_keep_model(args->model);
    return PO_OK;
}

po_status po_model_load(const char *path, po_model **model, po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    model_args args = {.path = path};
    po_status status = po_api_call(&ctx, load_body, &args, error);
    *model = status == PO_OK ? args.model : NULL;
    return status;
}

static po_status save_body(po_ctx *ctx, void *user) {
    model_args *args = user;
    po_api_bind_model(args->model, ctx);
    return po_export_file(ctx, args->model->graph, args->path, NULL, NULL);
}

po_status po_model_save(po_model *model, const char *path, po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    model_args args = {.model = model, .path = path};
    return po_api_call(&ctx, save_body, &args, error);
}

static po_status text_body(po_ctx *ctx, void *user) {
    model_args *args = user;
    po_api_bind_model(args->model, ctx);
    po_text text;
    po_text_init(&text, po_arena_create(ctx));
    po_graph_print(&text, args->model->graph);
    args->text = malloc(text.size + 1);
    if (!args->text)
        return po_fail(ctx, PO_NO_MEMORY, "memory ran out");
    memcpy(args->text, text.size ? text.data : "", text.size);
    args->text[text.size] = '\0';
    return PO_OK;
}

po_status po_model_text(po_model *model, char **text, po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    model_args args = {.model = model};
    po_status status = po_api_call(&ctx, text_body, &args, error);
    *text = status == PO_OK ? args.text : NULL;
    return status;
}

static po_status nodes_body(po_ctx *ctx, void *user) {
    model_args *args = user;
    po_api_bind_model(args->model, ctx);
    const po_graph *g = args->model->graph;
    uint32_t n;
    args->views = po_record_views(g->arena, g, &n);
    args->count = n;
    return PO_OK;
}

po_status po_model_nodes(po_model *model, const po_node_view **nodes, size_t *count,
                         po_error *error) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    model_args args = {.model = model};
    po_status status = po_api_call(&ctx, nodes_body, &args, error);
    *nodes = args.views;
    *count = status == PO_OK ? args.count : 0;
    return status;
}
