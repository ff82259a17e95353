/* Runs passes on graphs in the text form and compares what they give with what was agreed.
 *
 *     golden [--update | --sabotage] FOLDER [NAME...]
 *
 * FOLDER/NAME.in.pir begins with "# pass: PASS" (a row of `passes`); FOLDER/NAME.out.pir is the
 * text that the pass must give. --update writes it; read the difference before you commit it.
 * --sabotage changes every result a little and succeeds where every comparison then fails. */
#include "golden.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct golden_options {
    bool update, sabotage;
} golden_options;

static char *read_file(po_arena *arena, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    po_text text;
    char buffer[4096];
    po_text_init(&text, arena);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        po_text_add(&text, buffer, n);
    fclose(file);
    return text.data;
}

static bool write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    bool good = file && fputs(text, file) >= 0;
    return (file && fclose(file) == 0) && good;
}

/* The row of `passes` that the first line names, or NULL. */
static const golden_pass *pass_of(const char *text) {
    static const char head[] = "# pass: ";
    if (strncmp(text, head, strlen(head)) != 0)
        return NULL;
    const char *name = text + strlen(head);
    size_t size = strcspn(name, "\r\n");
    for (const golden_pass *p = golden_passes; p->name; p++)
        if (strlen(p->name) == size && memcmp(p->name, name, size) == 0)
            return p;
    return NULL;
}

static void print_first_difference(const char *path, const char *expected, const char *got) {
    int line = 1;
    for (;; line++) {
        size_t a = strcspn(expected, "\n"), b = strcspn(got, "\n");
        if (a != b || memcmp(expected, got, a) != 0 || !expected[a] || !got[b]) {
            printf("%s:%d: differs\n  expected: %.*s\n  got:      %.*s\n", path, line, (int)a,
                   expected, (int)b, got);
            return;
        }
        expected += a + 1;
        got += b + 1;
    }
}

/* True where the case is as agreed (or was written). */
static bool run_case(po_ctx *ctx, po_arena *arena, const char *folder, const char *name,
                     golden_options options) {
    char *in_path = po_arena_printf(arena, "%s/%s.in.pir", folder, name);
    char *out_path = po_arena_printf(arena, "%s/%s.out.pir", folder, name);
    const char *in = read_file(arena, in_path);
    const golden_pass *pass = in ? pass_of(in) : NULL;
    po_graph *before, *after, *again;
    if (!pass) {
        printf("%s: %s\n", in_path, in ? "the first line names no known pass" : "cannot be read");
        return false;
    }
    if (po_graph_parse(ctx, in, &before) != PO_OK) {
        printf("%s: %s\n", in_path, ctx->error.message);
        return false;
    }
    po_ops_resolve(before);
    po_text text;
    po_text_init(&text, arena);
    if (pass->run(ctx, before, &after) != PO_OK) {
        /* What must be refused has its message for an answer. */
        po_text_printf(&text, "# refused: %s\n", ctx->error.message);
        po_ctx_clear(ctx);
    } else if (po_graph_check(ctx, after) != PO_OK) {
        printf("%s: the result is broken: %s\n", in_path, ctx->error.message);
        return false;
    } else {
        po_graph_print_as(&text, after, (po_print_options){.most_items = 256});
        if (po_graph_parse_with(ctx, text.data, after, &again) != PO_OK ||
            !po_graph_equal(after, again)) {
            printf("%s: the result does not parse back: %s\n", in_path, ctx->error.message);
            return false;
        }
    }
    if (options.update)
        return write_file(out_path, text.data);
    if (options.sabotage)
        text.data[text.size / 2] ^= 1;
    const char *expected = read_file(arena, out_path);
    if (expected && strcmp(expected, text.data) == 0)
        return true;
    if (!options.sabotage)
        print_first_difference(out_path, expected ? expected : "", text.data);
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int main(int argc, char **argv) {
    static const char suffix[] = ".in.pir";
    golden_options options = {0};
    int arg = 1;
    for (; arg < argc && argv[arg][0] == '-'; arg++) {
        options.update |= strcmp(argv[arg], "--update") == 0;
        options.sabotage |= strcmp(argv[arg], "--sabotage") == 0;
    }
    if (arg == argc) {
        fprintf(stderr, "usage: golden [--update | --sabotage] FOLDER [NAME...]\n");
        return 2;
    }
    const char *folder = argv[arg++];
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    const char **names = NULL;
    uint32_t n = 0, cap = 0, failed = 0;
    for (; arg < argc; arg++)
        PO_PUSH(arena, names, n, cap, argv[arg]);
    DIR *dir = n ? NULL : opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t size = strlen(e->d_name), tail = strlen(suffix);
        if (size > tail && strcmp(e->d_name + size - tail, suffix) == 0) {
            char *name = po_arena_printf(arena, "%.*s", (int)(size - tail), e->d_name);
            PO_PUSH(arena, names, n, cap, name);
        }
    }
    if (dir)
        closedir(dir);
    qsort(names, n, sizeof *names, by_name);
    for (uint32_t i = 0; i < n; i++) {
        po_ctx own;
        po_ctx_init(&own);
        bool good = run_case(&own, po_arena_create(&own), folder, names[i], options);
        failed += good == options.sabotage;
        if (good && options.sabotage)
            printf("%s: a changed result was not noticed\n", names[i]);
        po_arenas_free_since(&own, 0);
    }
    printf("%u of %u golden cases %s\n", n - failed, n,
           options.update     ? "written"
           : options.sabotage ? "notice a changed result"
                              : "as agreed");
    po_arena_free(arena);
    return n == 0 || failed ? 1 : 0;
}
