/* External data: which file a tensor's entries name, and whether it may be read.
 *
 * A location is a relative path below the model's folder. Nothing leads out of that folder: no
 * "..", no absolute path, no symbolic link. Models are often links themselves (caches of model
 * hubs keep files under other names and link to them): then a location may also be below the folder
 * that the model really lies in, or be a link from the one folder into the other. */
#include "base/num.h"
#include "import/parts.h"
#include "import/sha1.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct data_file {
    po_content content;
    uint32_t number;
    const char *checked; /* checksum that was found right; NULL: none yet */
} data_file;

/* A tensor's bytes, to find overlaps. */
typedef struct range {
    uint32_t file;
    int64_t start, end;
    const char *tensor;
} range;

struct po_external {
    const char *folder; /* as the model's path says */
    const char *real;   /* where the model lies; NULL: the same */
    int folder_fd, real_fd;
    po_map *by_location, *by_file; /* by_file: device and number, whatever it is called */
    data_file **files;
    uint32_t n_files, cap_files;
    range *ranges;
    uint32_t n_ranges, cap_ranges;
    const po_content **contents; /* the model, then the files */
    uint32_t n_contents, cap_contents;
};

po_external *po_external_create(po_importer *im, const char *path, const po_content *model) {
    po_external *x = PO_NEW(im->arena, po_external);
    x->folder = po_path_folder(im->arena, path);
    x->folder_fd = x->real_fd = -1;
    x->by_location = po_map_create(im->arena);
    x->by_file = po_map_create(im->arena);
    po_content *copy = po_arena_memdup(im->arena, model, sizeof *model);
    PO_PUSH(im->arena, x->contents, x->n_contents, x->cap_contents, copy);
    struct stat st;
    char full[PATH_MAX];
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, full))
        x->real = po_path_folder(im->arena, po_arena_strdup(im->arena, full));
    return x;
}

const po_content *const *po_external_files(po_external *x, uint32_t *n) {
    *n = x->n_contents;
    return x->contents;
}

/* What an entry's value may be: digits alone, up to 2^63 - 1. */
static bool parse_number(const char *text, int64_t *value) {
    *value = 0;
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || !po_mul_i64(*value, 10, value) ||
            !po_add_i64(*value, *text - '0', value))
            return false;
    return true;
}

typedef struct entries {
    const char *location, *checksum;
    int64_t offset, length; /* length -1: not given */
} entries;

static po_status read_entries(po_importer *im, const po_place *place, const Onnx__TensorProto *t,
                              entries *e) {
    static const char *const keys[] = {"location", "offset", "length", "checksum"};
    *e = (entries){.length = -1};
    uint32_t seen = 0;
    for (size_t i = 0; i < t->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = t->external_data[i];
        const char *key = entry->key ? entry->key : "", *value = entry->value ? entry->value : "";
        uint32_t k = 0;
        while (k < 4 && strcmp(key, keys[k]) != 0)
            k++;
        if (k == 4) {
            po_warn_at(im->ctx, im->file, place, "unknown external data key '%.60s'", key);
            continue;
        }
        if (seen & 1u << k)
            return po_bad(im, place, "external data names its %s twice", key);
        seen |= 1u << k;
        if (k == 0)
            e->location = value;
        else if (k == 3)
            e->checksum = value;
        else if (!parse_number(value, k == 1 ? &e->offset : &e->length))
            return po_bad(im, place,
                          "external data has a bad %s (found '%.60s', limit 0 to 2^63 - "
                          "1)",
                          key, value);
    }
    if (!e->location)
        return po_bad(im, place, "external data names no location");
    return PO_OK;
}

/* Refuses what is wrong whatever lies in the folder. */
static po_status check_location(po_importer *im, const po_place *place, const char *location) {
    const char *why = NULL;
    if (!*location)
        why = "is empty";
    else if (strstr(location, "_ORT_MEM_ADDR_"))
        why = "is a memory address of another process";
    else if (*location == '/' || *location == '\\' || location[1] == ':')
        why = "is an absolute path";
    else if (strlen(location) >= PATH_MAX)
        why = "is too long";
    for (const char *p = location; *p && !why;) {
        size_t n = strcspn(p, "/\\");
        if (n == 2 && memcmp(p, "..", 2) == 0)
            why = "leads out of the model's folder";
        p += n;
        p += *p != '\0';
    }
    if (why)
        return po_bad(im, place, "external data location %s (found '%.100s')", why, location);
    return PO_OK;
}

static po_status open_folder(po_importer *im, const char *path, int *fd) {
    if (*fd >= 0)
        return PO_OK;
    return po_file_open(im->ctx, im->scratch, AT_FDCWD, path, O_DIRECTORY, fd);
}

/* A link from the folder of the link to the model into the folder of the model itself. */
static int open_linked(po_external *x, const char *path) {
    char full[PATH_MAX];
    size_t n = strlen(x->real);
    if (!realpath(path, full) || strncmp(full, x->real, n) != 0 || full[n] != '/') {
        errno = EXDEV;
        return -1;
    }
    return po_file_open_beneath(x->real_fd, full + n + 1);
}

static po_status open_location(po_importer *im, const po_place *place, const char *location,
                               const char *path, int *fd) {
    po_external *x = im->external;
    PO_TRY(open_folder(im, x->folder, &x->folder_fd));
    *fd = po_file_open_beneath(x->folder_fd, location);
    int why = errno;
    if (*fd < 0 && x->real) {
        PO_TRY(open_folder(im, x->real, &x->real_fd));
        *fd = open_linked(x, path);
        if (*fd < 0)
            *fd = po_file_open_beneath(x->real_fd, location);
    }
    if (*fd >= 0)
        return PO_OK;
    if (why == EXDEV || why == ELOOP)
        return po_bad(im, place,
                      "external data location leads out of the model's folder (found "
                      "'%.100s')",
                      location);
    return po_bad(im, place, "external data '%.100s' cannot be opened (%s)", location,
                  strerror(why));
}

static void close_held(void *user) {
    int *fd = user;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A file's content is read once, however many ways a model has to write its location. */
static po_status read_file(po_importer *im, const po_place *place, const char *path, int fd,
                           data_file **file) {
    po_external *x = im->external;
    struct stat id = {0};
    (void)fstat(fd, &id); /* where it fails, reading does */
    const char *key = po_arena_printf(im->arena, "%llu %llu", (unsigned long long)id.st_dev,
                                      (unsigned long long)id.st_ino);
    uint32_t known = po_map_get(x->by_file, key);
    if (known != PO_NONE) {
        *file = x->files[known];
        return PO_OK;
    }
    if (x->n_files == PO_MOST_DATA_FILES)
        return po_bad(im, place, "too many files of external data (limit %d)", PO_MOST_DATA_FILES);
    data_file *f = PO_NEW(im->arena, data_file);
    f->number = x->n_files;
    if (po_file_content(im->ctx, im->arena, fd, path, &f->content) != PO_OK)
        return po_fail_again_at(im->ctx, im->file, place);
    PO_PUSH(im->arena, x->contents, x->n_contents, x->cap_contents, &f->content);
    PO_PUSH(im->arena, x->files, x->n_files, x->cap_files, f);
    po_map_put(x->by_file, key, f->number);
    *file = f;
    return PO_OK;
}

static po_status load(po_importer *im, const po_place *place, const char *location,
                      data_file **file) {
    po_external *x = im->external;
    uint32_t known = po_map_get(x->by_location, location);
    if (known != PO_NONE) {
        *file = x->files[known];
        return PO_OK;
    }
    const char *path = po_arena_printf(im->arena, "%s/%s", x->folder, location);
    /* Descriptors are closed at once, or a model of a thousand files would use them up. */
    po_arena *holder = po_arena_create(im->ctx);
    int *fd = PO_NEW(holder, int);
    *fd = -1;
    po_arena_defer(holder, close_held, fd);
    po_status status = open_location(im, place, location, path, fd);
    if (status == PO_OK)
        status = read_file(im, place, path, *fd, file);
    po_arena_free(holder);
    if (status != PO_OK)
        return status;
    const data_file *f = *file;
    if (f->content.id.st_nlink > 1 && !im->hard_links)
        return po_bad(im, place,
                      "external data '%.100s' has %lu names (limit 1): it may be a file from "
                      "elsewhere, copy it",
                      location, (unsigned long)f->content.id.st_nlink);
    po_map_put(x->by_location, location, f->number);
    return PO_OK;
}

static po_status check_sum(po_importer *im, const po_place *place, const entries *e, data_file *f) {
    if (!e->checksum || (f->checked && strcmp(f->checked, e->checksum) == 0))
        return PO_OK;
    char hex[41];
    po_sha1_hex(f->content.data, f->content.size, hex);
    if (strcasecmp(hex, e->checksum) != 0)
        return po_bad(im, place,
                      "external data '%.100s' has the wrong checksum (found %s, want "
                      "%.60s)",
                      e->location, hex, e->checksum);
    f->checked = e->checksum;
    return PO_OK;
}

po_status po_external_find(po_importer *im, const po_place *place, const Onnx__TensorProto *t,
                           size_t size, const uint8_t **data) {
    entries e;
    PO_TRY(read_entries(im, place, t, &e));
    PO_TRY(check_location(im, place, e.location));
    if (!im->external)
        return po_bad(
            im, place,
            "external data is not allowed in a model from memory or a file of one tensor");
    if (e.length >= 0 && (uint64_t)e.length != size)
        return po_bad(im, place,
                      "external data's length does not fit type and dims (found %lld bytes, want "
                      "%zu)",
                      (long long)e.length, size);
    data_file *f = NULL;
    PO_TRY(load(im, place, e.location, &f));
    int64_t end;
    if (!po_add_i64(e.offset, (int64_t)size, &end))
        return po_bad(im, place, "external data's offset and length overflow (found %lld and %zu)",
                      (long long)e.offset, size);
    if ((uint64_t)end > f->content.size)
        return po_bad(
            im, place,
            "external data ends behind its file (found %lld bytes, limit %zu in '%.100s')",
            (long long)end, f->content.size, e.location);
    PO_TRY(check_sum(im, place, &e, f));
    *data = f->content.data + e.offset;
    po_external *x = im->external;
    range r = {f->number, e.offset, end, t->name ? t->name : ""};
    if (size)
        PO_PUSH(im->scratch, x->ranges, x->n_ranges, x->cap_ranges, r);
    return PO_OK;
}

static int by_start(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

void po_external_warn(po_importer *im) {
    po_external *x = im->external;
    if (!x || x->n_ranges < 2 || !im->ctx->log)
        return;
    qsort(x->ranges, x->n_ranges, sizeof *x->ranges, by_start);
    for (uint32_t i = 1; i < x->n_ranges; i++) {
        const range *a = &x->ranges[i - 1], *b = &x->ranges[i];
        bool shared = a->start == b->start && a->end == b->end;
        if (a->file != b->file || b->start >= a->end || shared)
            continue;
        po_warn_at(im->ctx, im->file, NULL,
                   "external data of tensors '%.100s' and '%.100s' overlap in '%.100s'", a->tensor,
                   b->tensor, x->files[a->file]->content.path);
        return;
    }
}
