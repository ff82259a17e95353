/* Printed kernels with one thing taken out: a barrier, a wait for copies, a test at an edge, what
 * lanes tell each other. That must be told, by a fault or by a wrong element. A few are not needed
 * for the lengths at hand, and nothing can tell: a barrier between a thread's own writes and its
 * reads, a guard in front of another one. */
#include "cuda_check.h"
#include "cuda_texts.h"
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, REDUNDANT = 6 /* one in so many may be */ };

/* What is put for the first mark that `which` others stand before. */
typedef struct kind {
    const char *name, *from, *to;
    uint32_t least; /* so many must be found in all */
} kind;

static const kind kinds[] = {
    {"no barrier", "pc_barrier();", "", 20},
    {"no wait", "pc_wait<", "if (false) pc_wait<", 6},
    {"a wait for one group less", "pc_wait<", "pc_wait<1 + ", 6},
    {"a tail that runs on", "= min(", "= max(", 10},
    {"lanes that keep their sums", "pc_sum<4>(", "(", 2},
    {"lanes that keep their maxima", "pc_most<4>(", "(", 2},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const kind *editing;

static const char *edit(po_arena *arena, const char *text, int which) {
    const char *at = strstr(text, "extern \"C\"");
    for (int i = 0; at && (at = strstr(at, editing->from)); i++, at++)
        if (i == which)
            return po_arena_printf(arena, "%.*s%s%s", (int)(at - text), text, editing->to,
                                   at + strlen(editing->from));
    return NULL;
}

static uint32_t marks(po_ctx *ctx, po_arena *arena, const po_mu *mu, const char *from) {
    po_cuda_program p;
    uint32_t n = 0;
    if (po_codegen_cuda(ctx, arena, mu, "k0", &(po_cuda_print_options){0}, &p) != PO_OK) {
        po_ctx_clear(ctx);
        return 0;
    }
    const char *at = strstr(strstr(p.source, "/* mugraph"), "extern \"C\"");
    for (; at && (at = strstr(at, from)); at++)
        n++;
    return n;
}

int main(int argc, char **argv) {
    (void)argv; /* any: tell all */
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    int rc = 0;
    cuda_check_start();
    po_nvrtc *nvrtc = cuda_check_nvrtc(&ctx, arena);
    cuda_case *cases = PO_NEW_N(arena, cuda_case, MOST);
    for (uint32_t k = 0; k < KINDS; k++) {
        uint32_t n = 0, missed = 0;
        editing = &kinds[k];
        for (uint32_t i = 0; i < n_cuda_texts; i++)
            for (int t = PO_MU_F32; t <= PO_MU_F16; t++) {
                po_mu *mu;
                if (po_mu_parse(&ctx, arena, cuda_texts[i].text, &mu) != PO_OK)
                    return 2;
                mu = cuda_check_typed(&ctx, arena, mu, (po_mu_type)t);
                uint32_t found = marks(&ctx, arena, mu, editing->from);
                for (uint32_t w = 0; w < found && n < MOST; w++)
                    cases[n++] = (cuda_case){
                        .name = po_arena_printf(arena, "%s %s, %s %u", cuda_texts[i].name,
                                                t ? "f16" : "f32", editing->name, w),
                        .mu = mu,
                        .edit = edit,
                        .which = (int)w};
            }
        cuda_check(&ctx, arena, nvrtc, cases, n);
        if (emu_accesses() == 0) {
            (void)printf("without clang accesses are not checked one by one: skipped\n");
            break;
        }
        for (uint32_t i = 0; i < n; i++) {
            if (argc > 1 || !cases[i].failed)
                (void)printf("%s: %s\n", cases[i].name,
                             cases[i].failed ? cases[i].failed : "not told");
            missed += !cases[i].failed;
        }
        (void)printf("%s: %u planted, %u not told\n", editing->name, n, missed);
        rc |= missed * REDUNDANT > n || n < editing->least;
    }
    po_arena_free(arena);
    return rc;
}
