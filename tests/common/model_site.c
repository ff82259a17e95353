/* A folder with a model and its external data. */
#include "model_site.h"

#include "test_paths.h"
#include "unit.h"

#include <sys/stat.h>

const char *site_at(site *s, const char *name) {
    return po_arena_printf(s->a, "%s/%s", s->folder, name);
}

void site_start(site *s) {
    *s = (site){.location = "w.bin", .offset = "0", .length = "24"};
    test_mkdtemp(s->folder, sizeof s->folder);
    po_ctx_init(&s->ctx);
    s->a = po_arena_create(&s->ctx);
    s->m = tm_model(s->a);
    s->model = site_at(s, "m/model.onnx");
    assert_int_equal(mkdir(site_at(s, "m"), 0777), 0);
    uint8_t data[64];
    for (int i = 0; i < 64; i++)
        data[i] = (uint8_t)(i + 1);
    test_write_file(site_at(s, "m/w.bin"), data, sizeof data);
    test_write_file(site_at(s, "outside.bin"), data, sizeof data);
}

void site_finish(site *s) {
    po_arena_free(s->a);
    assert_null(s->ctx.arenas);
    test_rmtree(s->folder);
}

void site_put(site *s) {
    size_t size;
    const uint8_t *data = tm_pack(s->a, s->m, &size);
    test_write_file(s->model, data, size);
}

void site_write(site *s) {
    tm_external(s->a, s->m->graph->initializer[0], s->location, s->offset, s->length);
    site_put(s);
}

po_model *site_read(site *s, const po_import_options *options) {
    po_model *model = NULL;
    po_ctx_clear(&s->ctx);
    po_status status = po_import_file_with(&s->ctx, s->model, options, &model);
    return status == PO_OK ? model : NULL;
}
