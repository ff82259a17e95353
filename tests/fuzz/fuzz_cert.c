/* Any text: a certificate is refused in one sentence, or what it says prints as one that says the
 * same. The digest is set right first, so that what lies behind it is reached. */
#include "base/arena.h"
#include "verify/cert.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right) {
    if (!right)
        abort();
}

static bool same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void check(po_ctx *ctx, const char *text, size_t size) {
    po_arena *arena = po_arena_create(ctx);
    po_cert cert, again;
    po_status status = po_cert_parse(ctx, arena, text, size, &cert);
    require(status == PO_OK || status == PO_BAD_INPUT);
    require((status == PO_OK) == (ctx->error.message[0] == '\0'));
    po_ctx_clear(ctx);
    if (status != PO_OK || !cert.petopt || !cert.runtime)
        return;
    const char *printed = po_cert_print(arena, &cert);
    require(po_cert_parse(ctx, arena, printed, strlen(printed), &again) == PO_OK);
    require(same(cert.petopt, again.petopt) && same(cert.recipes, again.recipes) &&
            same(cert.runtime, again.runtime) && same(cert.library, again.library));
    require(cert.n_in == again.n_in && cert.n_out == again.n_out);
    for (uint32_t i = 0; i < cert.n_in; i++)
        require(same(cert.in[i].name, again.in[i].name) &&
                same(cert.in[i].sha256, again.in[i].sha256));
}

/* The text with the digest that its other members have; NULL where it is no object. */
static char *signed_text(po_ctx *ctx, const char *text, size_t size) {
    enum { FLAGS = JSON_SORT_KEYS | JSON_REAL_PRECISION(17) };
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    char hex[PO_SHA256_HEX], *made = NULL;
    if (json_is_object(root)) {
        json_object_del(root, "digest");
        char *plain = json_dumps(root, JSON_COMPACT | FLAGS);
        po_arena *arena = po_arena_create(ctx);
        po_sha256 *sum = po_sha256_begin(arena);
        po_sha256_add(sum, plain, strlen(plain));
        po_sha256_end(sum, hex);
        po_arena_free(arena);
        json_object_set_new(root, "digest", json_string(hex));
        made = json_dumps(root, FLAGS);
        free(plain);
    }
    json_decref(root);
    return made;
}

static void check_guarded(po_ctx *ctx, const char *text, size_t size) {
    po_guard guard;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) == 0) {
        check(ctx, text, size);
        po_guard_pop(ctx, &guard);
        po_arenas_free_since(ctx, 0);
    } else {
        po_guard_unwind(ctx, &guard);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    char *made = signed_text(&ctx, (const char *)data, size);
    check_guarded(&ctx, (const char *)data, size);
    if (made) {
        po_ctx_clear(&ctx);
        check_guarded(&ctx, made, strlen(made));
    }
    free(made);
    return 0;
}
