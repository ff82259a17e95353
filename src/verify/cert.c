/* A certificate as JSON, and back. */
#include "verify/cert.h"

#include "base/json.h"
#include "base/str.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static void drop_json(void *user) {
    json_decref(user);
}

static void drop_text(void *user) {
    free(user);
}

/* --- writing: nothing here allocates from the arena while JSON is held that it does not know ---
 */

static json_t *text_of(const char *text) {
    if (!text)
        return json_null();
    return json_string(po_utf8_valid(text, strlen(text)) ? text : "?");
}

static json_t *files(uint32_t n, const po_cert_file *list) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *file = json_object();
        po_json_put(&file, "name", text_of(list[i].name));
        po_json_put(&file, "sha256", text_of(list[i].sha256));
        po_json_append(&array, file);
    }
    return array;
}

static json_t *proof_of(const po_proof_report *r) {
    char seed[24];
    json_t *p = json_object(), *primes = json_array();
    for (uint32_t i = 0; i < r->trials && i < PO_PROOF_TRIALS; i++)
        po_json_append(&primes, json_integer(r->primes[i]));
    po_json_put(&p, "primes", primes);
    snprintf(seed, sizeof seed, "%016llx", (unsigned long long)r->seed);
    po_json_put(&p, "verdict", json_string(r->proved ? "proved" : "tested only"));
    po_json_put(&p, "why", text_of(r->why));
    po_json_put(&p, "trials", json_integer(r->trials));
    po_json_put(&p, "sizes", json_integer(r->sizes));
    po_json_put(&p, "every_batch", json_boolean(r->any_batch));
    po_json_put(&p, "every_size", json_boolean(r->every_size));
    po_json_put(&p, "multiples_of", json_integer(r->spaced));
    po_json_put(&p, "from_one", json_boolean(r->positive));
    po_json_put(&p, "seed", json_string(seed));
    po_json_put(&p, "degree", po_json_number(r->degree));
    po_json_put(&p, "log2_bound", po_json_number(r->log2_bound));
    po_json_put(&p, "elements", json_integer(r->elements));
    return p;
}

static void digest(po_arena *arena, const char *text, char hex[PO_SHA256_HEX]) {
    po_sha256 *sha = po_sha256_begin(arena);
    po_sha256_add(sha, text, strlen(text));
    po_sha256_end(sha, hex);
}

/* In a fixed order, so that the same content is the same text. */
static const char *dump_in(po_arena *arena, const json_t *root, size_t flags) {
    char *text = po_json_text(root, JSON_SORT_KEYS | JSON_REAL_PRECISION(17) | flags);
    if (!text)
        po_arena_exhausted(arena);
    po_arena_defer(arena, drop_text, text);
    return text;
}

static json_t *content_of(const po_cert *c) {
    json_t *root = json_object(), *tested = json_object();
    po_json_put(&root, "format", json_integer(PO_CERT_FORMAT));
    po_json_put(&root, "petopt", text_of(c->petopt));
    po_json_put(&root, "in", files(c->n_in, c->in));
    po_json_put(&root, "out", files(c->n_out, c->out));
    po_json_put(&root, "recipes", text_of(c->recipes));
    po_json_put(&root, "proof", proof_of(&c->proof));
    if (c->library)
        po_json_put(&root, "library", text_of(c->library));
    po_json_put(&tested, "runtime", text_of(c->runtime));
    po_json_put(&tested, "error", po_json_number(c->error));
    po_json_put(&tested, "tolerance", po_json_number(c->tolerance));
    po_json_put(&root, "tested", tested);
    return root;
}

const char *po_cert_print(po_arena *arena, const po_cert *c) {
    json_t *root = content_of(c);
    if (!root)
        po_arena_exhausted(arena);
    po_arena_defer(arena, drop_json, root);
    char hex[PO_SHA256_HEX];
    digest(arena, dump_in(arena, root, JSON_COMPACT), hex);
    json_t *value = json_string(hex);
    if (json_object_set_new(root, "digest", value) != 0)
        po_arena_exhausted(arena);
    return po_arena_printf(arena, "%s\n", dump_in(arena, root, JSON_INDENT(1)));
}

/* --- reading --- */

static po_status bad(po_ctx *ctx, const char *what) {
    return po_fail(ctx, PO_BAD_INPUT, "the certificate %s", what);
}

static const char *string_at(po_arena *arena, const json_t *object, const char *name) {
    const char *s = json_string_value(json_object_get(object, name));
    return s ? po_arena_strdup(arena, s) : NULL;
}

static po_status read_files(po_ctx *ctx, po_arena *arena, const json_t *array,
                            const po_cert_file **list, uint32_t *n) {
    size_t count = json_array_size(array), i;
    po_cert_file *f = PO_NEW_N(arena, po_cert_file, count);
    json_t *item;
    if (count == 0 || count > UINT32_MAX)
        return bad(ctx, "names no files");
    json_array_foreach(array, i, item) {
        f[i] = (po_cert_file){string_at(arena, item, "name"), string_at(arena, item, "sha256")};
        if (!f[i].name || !f[i].sha256 || strlen(f[i].sha256) != PO_SHA256_HEX - 1)
            return bad(ctx, "has a file without a hash");
    }
    *list = f;
    *n = (uint32_t)count;
    return PO_OK;
}

static void read_proof(po_arena *arena, const json_t *p, po_proof_report *r) {
    const char *verdict = json_string_value(json_object_get(p, "verdict"));
    const char *why = string_at(arena, p, "why"), *seed = string_at(arena, p, "seed");
    r->proved = verdict && strcmp(verdict, "proved") == 0;
    snprintf(r->why, sizeof r->why, "%.*s", PO_PROOF_TEXT - 1, why ? why : "");
    const json_t *primes = json_object_get(p, "primes");
    for (uint32_t i = 0; i < PO_PROOF_TRIALS; i++)
        r->primes[i] = (uint32_t)json_integer_value(json_array_get(primes, i));
    r->trials = (uint32_t)json_integer_value(json_object_get(p, "trials"));
    r->sizes = (uint32_t)json_integer_value(json_object_get(p, "sizes"));
    r->any_batch = json_is_true(json_object_get(p, "every_batch"));
    r->every_size = json_is_true(json_object_get(p, "every_size"));
    r->spaced = (int32_t)json_integer_value(json_object_get(p, "multiples_of"));
    r->positive = json_is_true(json_object_get(p, "from_one"));
    r->seed = seed ? strtoull(seed, NULL, 16) : 0;
    r->degree = json_number_value(json_object_get(p, "degree"));
    r->log2_bound = json_number_value(json_object_get(p, "log2_bound"));
    r->elements = json_integer_value(json_object_get(p, "elements"));
}

static po_status check_digest(po_ctx *ctx, po_arena *arena, json_t *root) {
    const char *told = string_at(arena, root, "digest");
    char hex[PO_SHA256_HEX];
    json_object_del(root, "digest");
    digest(arena, dump_in(arena, root, JSON_COMPACT), hex);
    return told && strcmp(told, hex) == 0 ? PO_OK : bad(ctx, "was changed: its digest is wrong");
}

po_status po_cert_parse(po_ctx *ctx, po_arena *arena, const char *text, size_t size,
                        po_cert *cert) {
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return bad(ctx, "is not JSON");
    }
    po_arena_defer(arena, drop_json, root);
    if (json_integer_value(json_object_get(root, "format")) != PO_CERT_FORMAT)
        return bad(ctx, "is of a format that this version does not read");
    PO_TRY(check_digest(ctx, arena, root));
    const json_t *tested = json_object_get(root, "tested");
    *cert = (po_cert){.petopt = string_at(arena, root, "petopt"),
                      .recipes = string_at(arena, root, "recipes"),
                      .library = string_at(arena, root, "library"),
                      .runtime = string_at(arena, tested, "runtime"),
                      .error = json_number_value(json_object_get(tested, "error")),
                      .tolerance = json_number_value(json_object_get(tested, "tolerance"))};
    read_proof(arena, json_object_get(root, "proof"), &cert->proof);
    PO_TRY(read_files(ctx, arena, json_object_get(root, "in"), &cert->in, &cert->n_in));
    return read_files(ctx, arena, json_object_get(root, "out"), &cert->out, &cert->n_out);
}

const char *po_cert_path(po_arena *arena, const char *model) {
    char full[PATH_MAX];
    return po_arena_printf(arena, "%s.cert", realpath(model, full) ? full : model);
}
