/* Makes the cases of the part that the first argument names, keeps those whose names have the
 * second, prints them where there is a third, and checks them all in one module. */
#include "cuda_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_LIMIT = 1 << 20 };

void cuda_die(const char *name, const char *why) {
    (void)fprintf(stderr, "%s: %s\n", name, why);
    exit(2);
}

po_mu *cuda_parsed(cuda_cases *c, const char *name, const char *text) {
    po_mu *mu;
    if (po_mu_parse(c->ctx, c->arena, text, &mu) != PO_OK)
        cuda_die(name, c->ctx->error.message);
    return mu;
}

po_mu *cuda_typed(cuda_cases *c, const char *name, const char *text, po_mu_type type) {
    return cuda_check_typed(c->ctx, c->arena, cuda_parsed(c, name, text), type);
}

cuda_case *cuda_add(cuda_cases *c, const char *name, const po_mu *mu) {
    if (c->n == CUDA_MOST_CASES)
        cuda_die(name, "too many cases");
    if (po_mu_check(c->ctx, mu, SHARED_LIMIT) != PO_OK)
        cuda_die(name, c->ctx->error.message);
    c->list[c->n] = (cuda_case){.name = name, .mu = mu};
    return &c->list[c->n++];
}

void cuda_show(po_ctx *ctx, po_arena *arena, const cuda_case *c) {
    po_cuda_program p;
    if (po_codegen_cuda(ctx, arena, c->mu, "k0", &c->options, &p) == PO_OK)
        (void)puts(strstr(p.source, "/* mugraph"));
    po_ctx_clear(ctx);
}

static void keep_named(cuda_cases *c, const char *name) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (strstr(c->list[i].name, name))
            c->list[kept++] = c->list[i];
    c->n = kept;
}

int cuda_main(int argc, char **argv, const cuda_part *parts, size_t n_parts) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    cuda_cases *c = calloc(1, sizeof *c);
    if (!c || argc < 2)
        return 2;
    c->ctx = &ctx;
    c->arena = po_arena_create(&ctx);
    cuda_check_start();
    po_nvrtc *nvrtc = cuda_check_nvrtc(&ctx, c->arena);
    for (size_t i = 0; i < n_parts; i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            parts[i].make(c);
    if (argc > 2)
        keep_named(c, argv[2]);
    for (uint32_t i = 0; i < c->n && argc > 3; i++)
        cuda_show(&ctx, c->arena, &c->list[i]);
    if (c->n == 0)
        cuda_die(argv[1], "no cases");
    cuda_check(&ctx, c->arena, nvrtc, c->list, c->n);
    int rc = cuda_check_report(c->list, c->n, 0);
    po_arena_free(c->arena);
    free(c);
    return rc;
}
