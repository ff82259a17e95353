/* Reads input_0.pb, input_1.pb, ... in the folder itself and in each folder below it, sorted by
 * name, and checks every tensor against the type of its input. */
#include "pipeline/api/check_data.h"

#include "import/import.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct reading {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph;
    po_check_set *sets;
    uint32_t n, cap;
} reading;

static void close_folder(void *user) {
    DIR **folder = user;
    if (*folder)
        closedir(*folder);
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static po_status check_type(reading *r, const char *path, const po_value *input,
                            const po_tensor *tensor) {
    const po_type *want = &input->type;
    if (want->kind != PO_TYPE_TENSOR)
        return po_fail(r->ctx, PO_BAD_INPUT, "%.300s: input '%s' is not a tensor", path,
                       input->name);
    bool fits = want->dtype == PO_DT_NONE || want->dtype == tensor->dtype;
    fits = fits && (!want->has_rank || want->rank == tensor->rank);
    for (uint32_t d = 0; fits && want->has_rank && d < want->rank; d++)
        fits = !po_dim_known(want->dims[d]) || want->dims[d].value == tensor->dims[d];
    if (fits)
        return PO_OK;
    po_text text;
    po_text_init(&text, r->arena);
    po_type found = po_tensor_type(r->arena, tensor);
    po_type_print(&text, &found);
    po_text_puts(&text, ", not ");
    po_type_print(&text, want);
    return po_fail(r->ctx, PO_BAD_INPUT, "%.300s: input '%s' is %s", path, input->name, text.data);
}

/* One folder's inputs; nothing where it holds no input_0.pb. */
static po_status read_set(reading *r, const char *folder) {
    po_arena *a = r->arena;
    if (!is_file(po_arena_printf(a, "%s/input_0.pb", folder)))
        return PO_OK;
    po_check_set set = {.name = folder};
    po_datum *data = PO_NEW_N(a, po_datum, r->graph->n_inputs);
    for (uint32_t i = 0; i < r->graph->n_inputs; i++) {
        const po_value *input = &r->graph->values[r->graph->inputs[i]];
        if (input->constant || input->is_initializer)
            continue;
        const char *path = po_arena_printf(a, "%s/input_%u.pb", folder, set.n);
        const po_tensor *tensor;
        PO_TRY(po_import_tensor_file(r->ctx, a, path, &tensor));
        PO_TRY(check_type(r, path, input, tensor));
        data[set.n++] = (po_datum){.kind = PO_TYPE_TENSOR, .tensor = tensor};
    }
    set.data = data;
    PO_PUSH(a, r->sets, r->n, r->cap, set);
    return PO_OK;
}

static int compare_names(const void *x, const void *y) {
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The names in a folder, in an order that does not depend on the file system. */
static po_status list(reading *r, const char *folder, const char ***names, uint32_t *n) {
    DIR **slot = PO_NEW(r->arena, DIR *);
    po_arena_defer(r->arena, close_folder, slot);
    *slot = opendir(folder);
    if (!*slot)
        return po_fail(r->ctx, PO_BAD_USE, "--check-data: %.300s: %s", folder, strerror(errno));
    uint32_t cap = 0;
    *names = NULL;
    *n = 0;
    for (const struct dirent *entry; (entry = readdir(*slot));) {
        const char *name = po_arena_strdup(r->arena, entry->d_name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            PO_PUSH(r->arena, *names, *n, cap, name);
    }
    if (*n > 0)
        qsort(*names, *n, sizeof **names, compare_names);
    return PO_OK;
}

po_status po_check_data_read(po_ctx *ctx, po_arena *arena, const char *folder,
                             const po_graph *graph, const po_check_set **sets, uint32_t *n_sets) {
    reading r = {.ctx = ctx, .arena = arena, .graph = graph};
    const char **names = NULL;
    uint32_t n = 0;
    PO_TRY(list(&r, folder, &names, &n));
    PO_TRY(read_set(&r, folder));
    for (uint32_t i = 0; i < n; i++)
        PO_TRY(read_set(&r, po_arena_printf(arena, "%s/%s", folder, names[i])));
    if (r.n == 0)
        return po_fail(ctx, PO_BAD_USE, "--check-data: %.300s: there is no input_0.pb in it",
                       folder);
    *sets = r.sets;
    *n_sets = r.n;
    return PO_OK;
}
