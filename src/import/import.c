/* Bytes to a model: scan, unpack, check tensors, build the graph. */
#include "import/parts.h"

#include <fcntl.h>
#include <limits.h>

enum { NEWEST_IR = ONNX__VERSION__IR_VERSION, FIRST_IR_WITH_OPSETS = 3 };

/* protobuf-c's memory is the model's arena: nothing is freed alone. */
static void *unpack_alloc(void *arena, size_t size) {
    return po_arena_alloc(arena, size);
}
static void unpack_free(void *arena, void *memory) {
    (void)arena;
    (void)memory;
}

static po_status unpack(po_importer *im, const po_content *content) {
    po_arena *scratch = po_arena_create(im->ctx);
    po_status status =
        po_scan_message(im->ctx, im->arena, scratch, im->file, &onnx__model_proto__descriptor,
                        content->data, content->size, &im->scan);
    if (status == PO_OK) {
        ProtobufCAllocator allocator = {unpack_alloc, unpack_free, im->arena};
        im->proto = (Onnx__ModelProto *)protobuf_c_message_unpack(
            &onnx__model_proto__descriptor, &allocator, im->scan.skeleton_size, im->scan.skeleton);
    }
    po_arena_free(scratch);
    if (status != PO_OK)
        return status;
    if (!im->proto)
        return po_fail(im->ctx, PO_BAD_INPUT, "%.300s: is not a valid protobuf message", im->file);
    return PO_OK;
}

static po_status check_header(po_importer *im) {
    const Onnx__ModelProto *m = im->proto;
    po_model *model = im->model;
    if (!m->graph)
        return po_bad(im, NULL, "there is no graph");
    if (!m->has_ir_version)
        return po_bad(im, NULL, "there is no IR version");
    if (m->ir_version < 0 || m->ir_version > NEWEST_IR)
        return po_bad(im, NULL, "unknown IR version (found %lld, limit 0 to %d)",
                      (long long)m->ir_version, NEWEST_IR);
    model->ir_version = m->ir_version;
    po_map *seen = po_map_create(im->scratch);
    model->opsets = PO_NEW_N(im->arena, po_opset, m->n_opset_import + 1);
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = m->opset_import[i];
        po_place at = {NULL, "opset_import", (int64_t)i, o->domain};
        const char *domain = o->domain ? o->domain : "";
        if (strcmp(domain, "ai.onnx") == 0)
            domain = "";
        if (!o->has_version || o->version < 1 || o->version > INT32_MAX)
            return po_bad(im, &at, "unknown operator set version (found %lld, limit 1 to %d)",
                          (long long)(o->has_version ? o->version : 0), INT32_MAX);
        uint32_t before = po_map_put(seen, domain, (uint32_t)o->version);
        if (before == (uint32_t)o->version) {
            po_warn_at(im->ctx, im->file, &at, "the operator set is imported twice: taken once");
            continue;
        }
        if (before != PO_NONE)
            return po_bad(im, &at, "the operator set is imported in two versions (%u and %lld)",
                          before, (long long)o->version);
        model->opsets[model->n_opsets++] = (po_opset){o->domain ? o->domain : "", o->version};
    }
    if (m->n_opset_import == 0) {
        if (m->ir_version >= FIRST_IR_WITH_OPSETS)
            return po_bad(im, NULL, "no operator set is imported (IR version %lld wants one)",
                          (long long)m->ir_version);
        /* Such old models mean version 1. */
        model->opsets[model->n_opsets++] = (po_opset){"", 1};
    }
    return PO_OK;
}

static po_status check_training(po_importer *im) {
    for (size_t i = 0; i < im->proto->n_training_info; i++) {
        const Onnx__TrainingInfoProto *t = im->proto->training_info[i];
        po_place at = {NULL, "training_info", (int64_t)i, NULL};
        for (int k = 0; k < 2; k++) {
            const Onnx__GraphProto *g = k ? t->algorithm : t->initialization;
            if (!g)
                continue;
            /* Names of the inference graph are in scope of an algorithm: only its parts are
             * checked, not where its names come from. */
            for (size_t n = 0; n < g->n_node; n++)
                if (!g->node[n]->op_type || !*g->node[n]->op_type)
                    return po_bad(im, &at, "a node has no operator type");
        }
    }
    return PO_OK;
}

/* The graph, and where its nodes are out of order once more with them sorted. A model that cannot
 * be sorted gets the sentence that it would get in its own order. */
static po_status build(po_importer *im) {
    po_model *model = im->model;
    const Onnx__GraphProto *graph = im->proto->graph;
    po_place at = {NULL, "graph", -1, NULL};
    for (bool sorted = false;; sorted = true) {
        model->graph = po_graph_create(im->ctx, model, graph->name ? graph->name : "");
        im->n_renamings = 0;
        po_status status = po_build_graph(im, &at, graph, NULL, NULL, model->graph);
        for (uint32_t i = 0; i < im->n_renamings && status == PO_OK; i++)
            *im->renamings[i].name = po_arena_strdup(im->arena, im->renamings[i].now);
        if (status != PO_BAD_INPUT || !im->unsorted || sorted)
            return status;
        if (!po_sort_nodes(im))
            return status;
        po_ctx_clear(im->ctx);
        po_graph_free(model->graph);
        po_warn_at(im->ctx, im->file, &at, "the nodes are not in order: sorted");
    }
}

static po_status import(po_importer *im, const po_content *content) {
    PO_TRY(unpack(im, content));
    PO_TRY(check_header(im));
    PO_TRY(po_import_tensors(im));
    po_external_warn(im);
    po_model *model = im->model;
    PO_TRY(build(im));
    PO_TRY(po_check_functions(im));
    PO_TRY(check_training(im));
    PO_TRY(po_check_nodes(im));
    po_origin *origin = PO_NEW(im->arena, po_origin);
    origin->proto = im->proto;
    origin->external = im->has_external;
    if (im->external)
        origin->files = po_external_files(im->external, &origin->n_files);
    model->origin = origin;
    return PO_OK;
}

/* Everything of the import hangs on three arenas: the model's and the graph's, which stay where it
 * succeeds, and the scratch one. */
static po_status run(po_ctx *ctx, po_importer *im, const po_content *content, po_model **model) {
    po_status status = import(im, content);
    po_arena_free(im->scratch);
    if (status != PO_OK) {
        if (im->model->graph)
            po_graph_free(im->model->graph);
        po_arena_free(im->arena);
        return status;
    }
    po_arena_keep(im->model->graph->arena);
    po_arena_keep(im->arena);
    *model = im->model;
    (void)ctx;
    return PO_OK;
}

static void start(po_ctx *ctx, po_importer *im, const char *file) {
    *im = (po_importer){.ctx = ctx, .arena = po_arena_create(ctx), .file = file};
    im->scratch = po_arena_create(ctx);
    im->model = PO_NEW(im->arena, po_model);
    im->model->arena = im->arena;
}

po_status po_import_file_with(po_ctx *ctx, const char *path, const po_import_options *options,
                              po_model **model) {
    po_importer im;
    start(ctx, &im, path);
    im.hard_links = options && options->hard_links;
    im.model->path = po_arena_strdup(im.arena, path);
    int fd;
    po_content content;
    po_status status = po_file_open(ctx, im.scratch, AT_FDCWD, path, 0, &fd);
    if (status == PO_OK)
        status = po_file_content(ctx, im.arena, fd, path, &content);
    if (status != PO_OK) {
        po_arena_free(im.scratch);
        po_arena_free(im.arena);
        return status;
    }
    im.external = po_external_create(&im, path, &content);
    return run(ctx, &im, &content, model);
}

po_status po_import_file(po_ctx *ctx, const char *path, po_model **model) {
    return po_import_file_with(ctx, path, NULL, model);
}

po_status po_import_bytes(po_ctx *ctx, const void *data, size_t size, po_model **model) {
    po_importer im;
    start(ctx, &im, "model");
    po_content content = {.path = "model", .data = data, .size = size};
    return run(ctx, &im, &content, model);
}
