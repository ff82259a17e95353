/* What the file of external data is called, and how data that no model needs any more goes. */
#include "export/parts.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

/* OUT.0123456789abcdef0123456789abcdef.data: digits of the content's SHA-256. */
enum { DIGITS = 32, STEM_MOST = 200 };
static const char ending[] = ".data";

/* The part of the model's name that goes into the data's. Models hold the data's name as text. */
static int stem_length(const char *model_name) {
    size_t n = strlen(model_name);
    if (n > STEM_MOST) {
        n = STEM_MOST;
        while (n > 0 && ((uint8_t)model_name[n] & 0xc0) == 0x80)
            n--;
    }
    return po_utf8_valid(model_name, n) ? (int)n : 0;
}

char *po_data_name(po_arena *arena, const char *model_name) {
    int n = stem_length(model_name);
    return po_arena_printf(arena, "%.*s.%0*d%s", n > 0 ? n : 6, n > 0 ? model_name : "petopt",
                           DIGITS, 0, ending);
}

void po_data_name_fill(char *name, const char *sha256) {
    memcpy(name + strlen(name) - strlen(ending) - DIGITS, sha256, DIGITS);
}

/* The same but for the hash. */
static bool is_data_name(const char *name, const char *pattern) {
    size_t n = strlen(pattern), stem = n - strlen(ending) - DIGITS;
    if (strlen(name) != n || strncmp(name, pattern, stem) != 0 ||
        strcmp(name + n - strlen(ending), ending) != 0)
        return false;
    for (size_t i = stem; i < stem + DIGITS; i++)
        if (!isdigit((unsigned char)name[i]) && !(name[i] >= 'a' && name[i] <= 'f'))
            return false;
    return true;
}

/* Whether a model's bytes hold the text as a string field: its length comes before it. */
static bool names(const po_content *model, const char *text) {
    size_t n = strlen(text);
    char field[STEM_MOST + DIGITS + 16];
    size_t head = 0;
    field[head++] = 0x12; /* StringStringEntryProto.value */
    if (n >= 0x80)
        field[head++] = (char)(0x80 | (n & 0x7f));
    field[head++] = (char)(n >= 0x80 ? n >> 7 : n);
    memcpy(field + head, text, n);
    return memmem(model->data, model->size, field, head + n) != NULL;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The input reads it, and the input is not the file that was replaced. */
static bool still_read(const po_exporter *ex, const po_content *replaced, const struct stat *file) {
    const po_origin *origin = ex->origin;
    if (!origin || origin->n_files == 0 || same_file(&origin->files[0]->id, &replaced->id))
        return false;
    for (uint32_t i = 1; i < origin->n_files; i++)
        if (same_file(&origin->files[i]->id, file))
            return true;
    return false;
}

static void close_folder(void *user) {
    closedir(user);
}

void po_data_retire(po_exporter *ex, const char *replaced, const char *path, const char *keep) {
    po_arena *scratch = po_arena_create(ex->ctx);
    const char *pattern = po_data_name(scratch, po_path_name(path));
    po_content model = {.data = NULL};
    DIR *folder = opendir(po_path_folder(scratch, path));
    const struct dirent *entry;
    if (folder)
        po_arena_defer(scratch, close_folder, folder);
    while (folder && (entry = readdir(folder)) != NULL) {
        struct stat st;
        if (!is_data_name(entry->d_name, pattern) || (keep && strcmp(entry->d_name, keep) == 0) ||
            fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        int fd;
        if (!model.data && (po_file_open(ex->ctx, scratch, AT_FDCWD, replaced, 0, &fd) != PO_OK ||
                            po_file_content(ex->ctx, scratch, fd, replaced, &model) != PO_OK)) {
            po_ctx_clear(ex->ctx); /* a file that stays is no failure */
            break;
        }
        if (names(&model, entry->d_name) && !still_read(ex, &model, &st))
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    po_arena_free(scratch);
}
