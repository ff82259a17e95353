/* verify's side of a certificate: nothing that it claims is believed. Its hashes must be those of
 * the files, its recipes must give every bit of the derived constants, and with them both models
 * must be equal modulo p at points that no one has chosen. */
#include "import/import.h"
#include "ir/text.h"
#include "ops/recipe/recipe.h"
#include "pipeline/proving.h"
#include "verify/cert.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const double seconds_for_replay = 600;

typedef struct replaying {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *a, *b;
    const char *library;
    po_replay *replay;
    const po_file_sum *sum_a, *sum_b;
    uint32_t n_a, n_b;
} replaying;

__attribute__((format(printf, 2, 3))) static void say(replaying *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->replay->text, sizeof r->replay->text, format, args);
    va_end(args);
}

/* Names may change when files are moved; what is in them may not. */
static bool same_files(const po_cert_file *told, uint32_t n_told, const po_file_sum *sums,
                       uint32_t n) {
    bool same = n_told == n;
    for (uint32_t i = 0; i < n && same; i++)
        same = strcmp(told[i].sha256, sums[i].sha256) == 0;
    return same;
}

static po_status open_certificate(replaying *r, const char *path, po_content *content,
                                  bool *found) {
    int fd;
    *found = access(path, F_OK) == 0;
    if (!*found)
        return PO_OK;
    PO_TRY(po_file_open(r->ctx, r->arena, AT_FDCWD, path, 0, &fd));
    return po_file_content(r->ctx, r->arena, fd, path, content);
}

static po_status check_library(replaying *r, const char *told) {
    int fd;
    po_content content;
    char hex[PO_SHA256_HEX];
    if (!r->library)
        return PO_OK;
    PO_TRY(po_file_open(r->ctx, r->arena, AT_FDCWD, r->library, 0, &fd));
    PO_TRY(po_file_content(r->ctx, r->arena, fd, r->library, &content));
    po_sha256 *sha = po_sha256_begin(r->arena);
    po_sha256_add(sha, content.data, content.size);
    po_sha256_end(sha, hex);
    if (!told || strcmp(told, hex) != 0)
        return po_fail(r->ctx, PO_BAD_INPUT, "the certificate is not of this library of kernels");
    return PO_OK;
}

/* Reads recipes from the certificate; PO_BAD_INPUT or PO_IO: it does not hold. */
static po_status read_certificate(replaying *r, const char *path, bool *found, po_graph **recipes) {
    po_content content;
    po_cert cert;
    const char *why;
    PO_TRY(open_certificate(r, path, &content, found));
    if (!*found)
        return PO_OK;
    PO_TRY(po_cert_parse(r->ctx, r->arena, (const char *)content.data, content.size, &cert));
    if (!same_files(cert.in, cert.n_in, r->sum_a, r->n_a) ||
        !same_files(cert.out, cert.n_out, r->sum_b, r->n_b))
        return po_fail(r->ctx, PO_BAD_INPUT, "the certificate is not of these files");
    PO_TRY(check_library(r, cert.library));
    if (!cert.recipes)
        return PO_OK;
    PO_TRY(po_graph_parse(r->ctx, cert.recipes, recipes));
    po_ops_resolve(*recipes);
    PO_TRY(po_recipes_check(r->ctx, r->arena, *recipes, r->a, r->b, &why));
    if (why)
        return po_fail(r->ctx, PO_BAD_INPUT, "the certificate's recipes do not hold: %.200s", why);
    return PO_OK;
}

static po_status replay(replaying *r, const char *path_of_b) {
    po_graph *recipes = NULL;
    bool found;
    char trouble[PO_PROOF_TEXT] = "";
    po_import_sums(r->arena, r->a->model, &r->sum_a, &r->n_a);
    po_import_sums(r->arena, r->b->model, &r->sum_b, &r->n_b);
    po_status status = read_certificate(r, po_cert_path(r->arena, path_of_b), &found, &recipes);
    if (status == PO_BAD_INPUT || status == PO_IO || status == PO_UNSUPPORTED) {
        snprintf(trouble, sizeof trouble, "%.*s", PO_PROOF_TEXT - 1, r->ctx->error.message);
        po_ctx_clear(r->ctx);
        recipes = NULL;
        status = PO_OK;
    }
    PO_TRY(status);
    po_proof_report report;
    po_proof_options options = {.cpu_seconds = seconds_for_replay};
    PO_TRY(po_prove(r->ctx, r->a, r->b, recipes, &options, &report));
    /* A certificate that does not hold is evidence of something, whatever is true without it. */
    r->replay->proved = report.proved && !*trouble;
    r->replay->differ = report.differ == PO_DIFFER_CERTAIN;
    char text[PO_PROOF_TEXT];
    po_proving_tell(&report, text, sizeof text);
    if (*trouble)
        say(r, "%s", trouble);
    else if (!report.proved && !found)
        say(r, "no certificate beside it, and without one %.300s", text);
    else
        say(r, "%s", text);
    return PO_OK;
}

po_status po_proving_replay(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                            const char *path_of_b, const char *library, po_replay *out) {
    *out = (po_replay){0};
    replaying r = {.ctx = ctx, .arena = arena, .a = a, .b = b, .library = library, .replay = out};
    return replay(&r, path_of_b);
}
