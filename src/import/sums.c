/* The files that a model was read from: their hashes, and letting go of their pages. */
#include "import/import.h"

#include "base/file.h"
#include "base/sha256.h"
#include "onnx/onnx.h"

void po_import_sums(po_arena *arena, const po_model *model, const po_file_sum **sums, uint32_t *n) {
    const po_origin *origin = model->origin;
    *n = origin ? origin->n_files : 0;
    po_file_sum *s = PO_NEW_N(arena, po_file_sum, *n);
    for (uint32_t i = 0; i < *n; i++) {
        const po_content *c = origin->files[i];
        char *hex = po_arena_alloc(arena, PO_SHA256_HEX);
        po_sha256 *sha = po_sha256_begin(arena);
        po_sha256_add(sha, c->data, c->size);
        po_sha256_end(sha, hex);
        s[i] = (po_file_sum){po_path_name(c->path), hex};
    }
    *sums = s;
}

const po_content *const *po_import_contents(const po_model *model, uint32_t *n) {
    const po_origin *origin = model->origin;
    *n = origin ? origin->n_files : 0;
    return origin ? origin->files : NULL;
}

void po_import_rest(const po_model *model) {
    const po_origin *origin = model->origin;
    for (uint32_t i = 0; origin && i < origin->n_files; i++)
        po_content_rest(origin->files[i]);
}
