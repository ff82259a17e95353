/* Imports a model and exports it again, nothing in between.
 *
 *   roundtrip [-x] [-i] [-l LIMIT] [-t] IN OUT
 *       -x: weights into OUT.data, -i: functions inlined, -t: print time and memory
 *   roundtrip -b LIST                         LIST: lines of IN <tab> OUT
 *   roundtrip -n LIST                         lines of IN: import alone, and count */
#include "export/export.h"
#include "import/import.h"
#include "ops/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void print_line(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s\n", line);
}

static po_status inlined(po_ctx *ctx, const po_model *model, const char *out,
                         const po_export_options *o) {
    po_graph *graph = po_graph_clone(ctx, model->graph);
    uint32_t n;
    po_status status = po_inline_functions(ctx, graph, NULL, &n);
    if (status == PO_OK)
        status = po_graph_check(ctx, graph);
    if (status == PO_OK)
        status = po_export_file(ctx, graph, out, o, NULL);
    if (status == PO_OK)
        printf("%u calls inlined\n", n);
    po_graph_free(graph);
    return status;
}

static po_status copy(po_ctx *ctx, const char *in, const char *out, const po_export_options *o,
                      bool inlining) {
    po_guard guard;
    po_model *model = NULL;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(ctx, &guard);
    po_status status = po_import_file(ctx, in, &model);
    if (status == PO_OK)
        status = po_graph_check(ctx, model->graph);
    if (status == PO_OK && out && inlining)
        status = inlined(ctx, model, out, o);
    else if (status == PO_OK && out)
        status = po_export_file(ctx, model->graph, out, o, NULL);
    if (status == PO_OK)
        po_model_free(model);
    po_guard_pop(ctx, &guard);
    return status;
}

/* A line of /proc/self/status in KiB. */
static long memory_of(const char *what) {
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0)
            kib = strtol(line + strlen(what) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

static int batch(const char *list, bool pairs, const po_export_options *o) {
    FILE *f = fopen(list, "r");
    char line[8192];
    int good = 0, bad = 0;
    if (!f)
        return 2;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *out = strchr(line, '\t');
        if (out)
            *out++ = '\0';
        po_ctx ctx;
        po_ctx_init(&ctx);
        if (copy(&ctx, line, pairs ? out : NULL, o, false) == PO_OK) {
            good++;
        } else {
            bad++;
            printf("%s\n", ctx.error.message);
        }
        if (ctx.arenas) {
            bad++;
            printf("%s: left an arena behind\n", line);
        }
    }
    fclose(f);
    printf("%d good, %d bad\n", good, bad);
    return bad ? 1 : 0;
}

int main(int argc, char **argv) {
    po_export_options o = {0};
    bool timed = false, verbose = false, inlining = false;
    int c;
    while ((c = getopt(argc, argv, "xtvil:b:n:")) != -1) {
        if (c == 'x')
            o.external = true;
        else if (c == 't')
            timed = true;
        else if (c == 'v')
            verbose = true;
        else if (c == 'i')
            inlining = true;
        else if (c == 'l')
            o.limit = strtoull(optarg, NULL, 10);
        else if (c == 'b' || c == 'n')
            return batch(optarg, c == 'b', &o);
        else
            return 2;
    }
    if (argc - optind != 2)
        return 2;
    po_ctx ctx;
    po_ctx_init(&ctx);
    if (verbose)
        ctx.log = print_line;
    double start = po_now();
    po_status status = copy(&ctx, argv[optind], argv[optind + 1], &o, inlining);
    if (timed)
        printf("%.3f s, anonymous memory at most %ld KiB in all now, peak resident %ld KiB\n",
               po_now() - start, memory_of("RssAnon"), memory_of("VmHWM"));
    if (status != PO_OK)
        fprintf(stderr, "roundtrip: %s\n", ctx.error.message);
    return status == PO_OK ? 0 : 1;
}
