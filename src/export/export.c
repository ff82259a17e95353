/* Writing: messages to bytes, bytes to files that appear whole or not at all. */
#include "export/export.h"

#include "export/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LARGEST_FILE ((uint64_t)INT32_MAX)

/* protobuf-c's way to write: weights pass through by address. */
typedef struct sink {
    ProtobufCBuffer base;
    po_writer *writer;
} sink;

static void sink_append(ProtobufCBuffer *buffer, size_t size, const uint8_t *data) {
    po_writer_put(((sink *)buffer)->writer, data, size);
}

static void write_model(const Onnx__ModelProto *proto, po_writer *writer) {
    sink s = {{sink_append}, writer};
    protobuf_c_message_pack_to_buffer(&proto->base, &s.base);
}

static uint64_t packed_size(const Onnx__ModelProto *proto) {
    return protobuf_c_message_get_packed_size(&proto->base);
}

static uint64_t limit_of(const po_export_options *o) {
    return o && o->limit ? o->limit : LARGEST_FILE;
}

static po_status check_unchanged(const po_exporter *ex) {
    for (uint32_t i = 0; ex->origin && i < ex->origin->n_files; i++)
        PO_TRY(po_content_unchanged(ex->ctx, ex->origin->files[i]));
    return PO_OK;
}

static po_exporter exporter(po_ctx *ctx, po_arena *arena, const po_graph *graph) {
    return (po_exporter){ctx, arena, graph->model, graph->model->origin};
}

/* --- to a file --- */

/* What is on the disk under temporary names. */
struct po_export {
    po_exporter ex;
    po_commit *commit;
    po_writer *model, *data; /* data NULL: none */
};

static po_status write_certificate(po_exporter *ex, const po_export_options *o, po_writer *model,
                                   po_writer *data, const char *path, po_writer **writer) {
    const char *text;
    po_export_sums sums = {.model = po_writer_sha256(model)};
    if (data) {
        sums.data_name = po_path_name(po_writer_path(data));
        sums.data = po_writer_sha256(data);
    }
    PO_TRY(o->certify(ex->ctx, ex->arena, o->certify_user, &sums, &text));
    PO_TRY(po_writer_create(ex->ctx, ex->arena, o->ops, path, writer));
    po_writer_put(*writer, text, strlen(text));
    return po_writer_finish(*writer);
}

/* Writes the weights, then gives the file the name that its content has: the model that refers to
 * it has that name by address. */
static po_status write_data(po_exporter *ex, const po_data_plan *plan, const po_export_options *o,
                            const char *folder, char *name, po_writer **out) {
    po_writer *data;
    PO_TRY(po_writer_create(ex->ctx, ex->arena, o ? o->ops : NULL,
                            po_arena_printf(ex->arena, "%s/%s", folder, name), &data));
    if (o && o->hash)
        po_writer_hash_begin(data);
    po_writer_sha256_begin(data);
    po_write_data(plan, data);
    PO_TRY(po_writer_finish(data));
    po_data_name_fill(name, po_writer_sha256(data));
    po_writer_set_name(data, name);
    *out = data;
    return PO_OK;
}

/* Whether a certificate of petopt's stands there, which is of no use to another model: its text
 * starts so. What cannot be told stays no certificate beside another model. */
static po_status find_certificate(po_exporter *ex, const char *path, bool *is) {
    static const char start[] = "{\n \"digest\": \"";
    char head[sizeof start - 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *is = false;
    if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == ENAMETOOLONG))
        return PO_OK;
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    int error = n < 0 && errno != EISDIR ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (error)
        return po_fail(ex->ctx, PO_IO, "%.300s: cannot be read (%s)", path, strerror(error));
    *is = n == (ssize_t)sizeof head && memcmp(head, start, sizeof head) == 0;
    return PO_OK;
}

static po_status write_files(po_export *e, const po_graph *graph, const char *path,
                             const po_export_options *o) {
    po_exporter *ex = &e->ex;
    const po_file_ops *ops = o ? o->ops : NULL;
    PO_TRY(check_unchanged(ex));
    PO_TRY(po_writer_create(ex->ctx, ex->arena, ops, path, &e->model));
    Onnx__ModelProto *made;
    PO_TRY(po_make_model(ex, graph, &made));
    /* The data lies beside the file that is really written, under a name of the same length
     * whatever it holds. */
    const char *target = po_writer_path(e->model), *folder = po_path_folder(ex->arena, target);
    char *location = po_data_name(ex->arena, po_path_name(target));
    const Onnx__ModelProto *proto;
    /* What was made of weights lies where they lay. */
    bool all = (o && o->external) || (ex->origin && ex->origin->external);
    po_data_plan *plan = po_plan_data(ex, made, all, location, &proto);
    if (!all && packed_size(proto) >= limit_of(o))
        plan = po_plan_data(ex, made, true, location, &proto);
    if (packed_size(proto) >= limit_of(o) && packed_size(proto) >= LARGEST_FILE)
        return po_fail(ex->ctx, PO_UNSUPPORTED,
                       "%.300s: the model is too large without its weights (found %llu bytes, "
                       "limit %llu)",
                       path, (unsigned long long)packed_size(proto),
                       (unsigned long long)LARGEST_FILE);
    if (po_plan_bytes(plan))
        PO_TRY(write_data(ex, plan, o, folder, location, &e->data));
    if (o && o->hash)
        po_writer_hash_begin(e->model);
    if (o && o->certify)
        po_writer_sha256_begin(e->model);
    write_model(proto, e->model);
    PO_TRY(po_writer_finish(e->model));
    PO_TRY(check_unchanged(ex));
    po_writer *certificate = NULL;
    const char *cert_path = po_arena_printf(ex->arena, "%s.cert", target);
    if (o && o->certify)
        PO_TRY(write_certificate(ex, o, e->model, e->data, cert_path, &certificate));
    /* A reader who comes between two steps finds a model with its own weights, and with its own
     * certificate or none. */
    if (e->data) {
        po_commit_add(e->commit, e->data);
        po_commit_sync(e->commit);
    }
    bool old_certificate;
    PO_TRY(find_certificate(ex, cert_path, &old_certificate));
    if (certificate || old_certificate)
        po_commit_drop(e->commit, cert_path);
    po_commit_add(e->commit, e->model);
    if (certificate)
        po_commit_add(e->commit, certificate);
    po_commit_sync(e->commit);
    return PO_OK;
}

po_status po_export_begin(po_ctx *ctx, po_arena *arena, const po_graph *graph, const char *path,
                          const po_export_options *options, po_commit *commit, po_export **out) {
    po_export *e = PO_NEW(arena, po_export);
    e->ex = exporter(ctx, arena, graph);
    e->commit = commit;
    *out = e;
    return write_files(e, graph, path, options);
}

void po_export_end(po_export *e, po_export_result *result) {
    const char *replaced = po_commit_replaced(e->commit, e->model);
    if (replaced)
        po_data_retire(&e->ex, replaced, po_writer_path(e->model),
                       e->data ? po_path_name(po_writer_path(e->data)) : NULL);
    if (!result)
        return;
    *result = (po_export_result){.model_bytes = po_writer_offset(e->model)};
    result->model_hash = po_writer_hash(e->model);
    if (e->data) {
        result->data_bytes = po_writer_offset(e->data);
        result->data_hash = po_writer_hash(e->data);
    }
}

po_status po_export_file(po_ctx *ctx, const po_graph *graph, const char *path,
                         const po_export_options *options, po_export_result *result) {
    po_arena *arena = po_arena_create(ctx);
    po_commit *commit = po_commit_create(ctx, arena, options ? options->ops : NULL);
    po_export *e;
    po_status status = po_export_begin(ctx, arena, graph, path, options, commit, &e);
    if (status == PO_OK)
        status = po_commit_run(commit);
    if (status == PO_OK) {
        po_export_end(e, result);
        po_commit_keep(commit);
    }
    po_arena_free(arena);
    return status;
}

/* --- to a descriptor --- */

static po_status write_one(po_exporter *ex, const Onnx__ModelProto *proto, po_writer *writer,
                           const po_export_options *o, po_export_result *result) {
    if (packed_size(proto) >= limit_of(o))
        return po_fail(ex->ctx, PO_UNSUPPORTED,
                       "the model is too large for one piece (found %llu bytes, limit %llu)",
                       (unsigned long long)packed_size(proto), (unsigned long long)limit_of(o));
    if (o && o->hash)
        po_writer_hash_begin(writer);
    write_model(proto, writer);
    PO_TRY(po_writer_finish(writer));
    if (result)
        *result = (po_export_result){.model_bytes = po_writer_offset(writer),
                                     .model_hash = po_writer_hash(writer)};
    return PO_OK;
}

static po_status write_fd(po_exporter *ex, const po_graph *graph, int fd,
                          const po_export_options *o, po_export_result *result) {
    Onnx__ModelProto *made;
    PO_TRY(check_unchanged(ex));
    PO_TRY(po_make_model(ex, graph, &made));
    return write_one(ex, po_inline_data(ex, made),
                     po_writer_on_fd(ex->ctx, ex->arena, fd, "a model in memory"), o, result);
}

po_status po_export_fd(po_ctx *ctx, const po_graph *graph, int fd, const po_export_options *options,
                       po_export_result *result) {
    po_arena *arena = po_arena_create(ctx);
    po_exporter ex = exporter(ctx, arena, graph);
    po_status status = write_fd(&ex, graph, fd, options, result);
    po_arena_free(arena);
    return status;
}

static po_status write_split(po_exporter *ex, po_arena *keep, const po_graph *graph, int fd,
                             const po_export_options *o, const po_weight **weights,
                             uint32_t *n_weights, po_export_result *result) {
    Onnx__ModelProto *made;
    PO_TRY(check_unchanged(ex));
    PO_TRY(po_make_model(ex, graph, &made));
    const Onnx__ModelProto *proto = po_split_data(ex, keep, made, weights, n_weights);
    return write_one(ex, proto, po_writer_on_fd(ex->ctx, ex->arena, fd, "a model in memory"), o,
                     result);
}

po_status po_export_split(po_ctx *ctx, po_arena *keep, const po_graph *graph, int fd,
                          const po_export_options *options, const po_weight **weights,
                          uint32_t *n_weights, po_export_result *result) {
    po_arena *arena = po_arena_create(ctx);
    po_exporter ex = exporter(ctx, arena, graph);
    po_status status = write_split(&ex, keep, graph, fd, options, weights, n_weights, result);
    po_arena_free(arena);
    return status;
}

static po_status hash_model(po_exporter *ex, const po_graph *graph, po_hash *hash) {
    Onnx__ModelProto *made;
    PO_TRY(po_make_model(ex, graph, &made));
    po_writer *writer = po_writer_null(ex->ctx, ex->arena);
    po_writer_hash_begin(writer);
    write_model(po_inline_data(ex, made), writer);
    PO_TRY(po_writer_finish(writer));
    *hash = po_writer_hash(writer);
    return PO_OK;
}

po_status po_export_hash(po_ctx *ctx, const po_graph *graph, po_hash *hash) {
    po_arena *arena = po_arena_create(ctx);
    po_exporter ex = exporter(ctx, arena, graph);
    po_status status = hash_model(&ex, graph, hash);
    po_arena_free(arena);
    return status;
}
