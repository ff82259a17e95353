/* Writes for tests/cuda/ptx.py what it runs: kernels as PTX by the real NVRTC, with inputs, and
 * their results in float64. Of muGraphs by hand in all types, or of what the GPU's schedules make
 * of the search's blocks, or of Trinity's.
 *
 *     cuda_ptx_make FOLDER ARCH hand|plans|models [NAME]   77: there is no NVRTC */
#include "base/hash.h"
#include "codegen/cuda/nvrtc.h"
#include "cost/cuda/run.h"
#include "cuda_texts.h"
#include "gpu_blocks.h"
#include "mugraph/eval.h"
#include "search_blocks.h"
#include "superopt/gpu/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 8, KEPT = 3, NO_NVRTC = 77 };

typedef struct making {
    po_ctx ctx;
    po_arena *arena; /* of one case */
    po_nvrtc *nvrtc;
    const char *folder;
    const char *wanted; /* part of the names; NULL: all */
    double scale;       /* of inputs and weights */
    uint32_t arch, n;
} making;

static void die(const char *name, const char *why) {
    (void)fprintf(stderr, "%s: %s\n", name, why);
    exit(2);
}

static void save(const making *m, const char *ending, const void *data, size_t size) {
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%u.%s", m->folder, m->n, ending);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        die(path, "not written");
}

static const char *const places[] = {
    [PO_MU_INPUT] = "input", [PO_MU_WEIGHT] = "weight", [PO_MU_OUTPUT] = "output"};

/* Data of each port: as it is stored, of outputs in float64 beside S(v). */
static void ports(making *m, const po_mu *mu, po_text *json) {
    double *values[3][PORTS] = {{0}}, *sum[PORTS] = {0};
    const char *comma = "";
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        int64_t n = po_mu_elements(t);
        int at = t->place == PO_MU_INPUT ? 0 : t->place == PO_MU_WEIGHT ? 1 : 2;
        if (at == 2 && t->place != PO_MU_OUTPUT)
            continue;
        if (t->number >= PORTS)
            die(mu->name, "too many ports");
        double *v = values[at][t->number] = PO_NEW_N(m->arena, double, n);
        po_text_printf(json, "%s[\"%s\", %u, %d, %lld]", comma, places[t->place], t->number,
                       (int)t->type, (long long)n);
        comma = ", ";
        if (at == 2) {
            sum[t->number] = PO_NEW_N(m->arena, double, n);
            continue;
        }
        char *data = po_arena_alloc(m->arena, (size_t)(n * po_mu_bytes(t->type)));
        for (int64_t e = 0; e < n; e++)
            v[e] = m->scale * po_random_normal(5, 2 * t->number + (uint64_t)at, (uint64_t)e);
        po_cuda_store(t->type, v, n, data);
        po_cuda_load(t->type, data, n, v);
        save(m, po_arena_printf(m->arena, "%s%u", places[t->place], t->number), data,
             (size_t)(n * po_mu_bytes(t->type)));
    }
    if (po_mu_eval(&m->ctx, mu, (const double *const *)values[0], (const double *const *)values[1],
                   values[2], sum) != PO_OK)
        die(mu->name, m->ctx.error.message);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place != PO_MU_OUTPUT)
            continue;
        size_t bytes = sizeof(double) * (size_t)po_mu_elements(t);
        save(m, po_arena_printf(m->arena, "output%u", t->number), values[2][t->number], bytes);
        save(m, po_arena_printf(m->arena, "sum%u", t->number), sum[t->number], bytes);
    }
}

static void launches(const po_cuda_program *p, po_text *json) {
    static const char *const kinds[] = {[PO_CUDA_INPUT] = "input",
                                        [PO_CUDA_WEIGHT] = "weight",
                                        [PO_CUDA_OUTPUT] = "output",
                                        [PO_CUDA_DEVICE] = "device"};
    for (uint32_t l = 0; l < p->n_launches; l++) {
        const po_cuda_launch *k = &p->launches[l];
        po_text_printf(json,
                       "%s{\"symbol\": \"%s\", \"grid\": [%u, %u, %u], \"threads\": %u, "
                       "\"shared\": %u, \"args\": [",
                       l ? ", " : "", k->symbol, k->grid[0], k->grid[1], k->grid[2], k->threads,
                       k->shared);
        for (uint32_t a = 0; a < k->n_args; a++)
            po_text_printf(json, "%s[\"%s\", %u, %lld]", a ? ", " : "", kinds[k->args[a].kind],
                           k->args[a].number, (long long)k->args[a].offset);
        po_text_puts(json, "]}");
    }
}

static const char *const type_names[] = {"f32", "f16", "bf16"};

static po_mu *parsed(making *m, const search_block *text) {
    po_mu *mu;
    if (po_mu_parse(&m->ctx, m->arena, text->text, &mu) != PO_OK)
        die(text->name, m->ctx.error.message);
    return mu;
}

static po_mu *typed(making *m, const search_block *text, po_mu_type type) {
    po_mu *mu = parsed(m, text);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place != PO_MU_TABLE)
            mu->tensors[i].type = type;
    return mu;
}

/* naive: what the results are those of. */
static void make(making *m, const char *name, const po_mu *mu, const po_mu *naive, bool tf32) {
    po_cuda_print_options options = {.tf32 = tf32};
    po_cuda_program program;
    po_cuda_image image;
    po_text json;
    if (m->wanted && !strstr(name, m->wanted))
        return;
    if (po_codegen_cuda(&m->ctx, m->arena, mu, "k", &options, &program) != PO_OK ||
        po_nvrtc_compile(&m->ctx, m->arena, m->nvrtc, program.source, name, m->arch, true,
                         &image) != PO_OK)
        die(name, m->ctx.error.message);
    po_mu_type coarsest = PO_MU_F32;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        coarsest = mu->tensors[i].type > coarsest ? mu->tensors[i].type : coarsest;
    po_text_init(&json, m->arena);
    po_text_printf(&json, "{\"name\": \"%s\", \"type\": %d, \"tf32\": %d, \"device\": %lld, ", name,
                   (int)coarsest, tf32, (long long)program.device);
    po_text_puts(&json, "\"launches\": [");
    launches(&program, &json);
    po_text_puts(&json, "], \"ports\": [");
    ports(m, naive, &json);
    po_text_puts(&json, "]}\n");
    save(m, "json", json.data, json.size);
    save(m, "ptx", image.bytes.data, strlen(image.bytes.data));
    m->n++;
}

static const char *named(making *m, const search_block *b, const char *more) {
    return po_arena_printf(m->arena, "%s %s", b->name, more);
}

static void planned(making *m, const char *name, const po_mu *mu) {
    po_gpu_options options = {.keep = KEPT};
    po_gpu_candidate *found;
    uint32_t n;
    if (po_gpu_plan(&m->ctx, m->arena, mu, po_gpu_named("H200"), &options, &found, &n) != PO_OK)
        die(name, m->ctx.error.message);
    for (uint32_t k = 0; k < n; k++)
        make(m, po_arena_printf(m->arena, "%s, plan %u", name, k), found[k].mu, mu, false);
}

static void hand(making *m, const search_block *b) {
    for (int t = PO_MU_F32; t <= PO_MU_BF16; t++) {
        const po_mu *mu = typed(m, b, (po_mu_type)t);
        make(m, named(m, b, type_names[t]), mu, mu, false);
        if (t == PO_MU_F32)
            make(m, named(m, b, "tf32"), mu, mu, true);
    }
}

static void plans(making *m, const search_block *b) {
    for (int t = PO_MU_F32; t <= PO_MU_F16; t++)
        planned(m, named(m, b, type_names[t]), typed(m, b, (po_mu_type)t));
}

static void models(making *m, const search_block *b) {
    m->scale = 0.25; /* scores that softmax does not make all or nothing of */
    planned(m, b->name, parsed(m, b));
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        const search_block *blocks;
        uint32_t n;
        void (*make)(making *m, const search_block *b);
    } parts[] = {{"hand", cuda_texts, n_cuda_texts, hand},
                 {"plans", search_blocks, n_search_blocks, plans},
                 {"models", gpu_blocks, n_gpu_blocks, models}};
    making m = {.scale = 1};
    if (argc < 4)
        return 2;
    po_ctx_init(&m.ctx);
    po_arena *arena = po_arena_create(&m.ctx);
    if (po_nvrtc_find(&m.ctx, arena, NULL, NULL, &m.nvrtc) != PO_OK) {
        (void)printf("%s\n", m.ctx.error.message);
        return NO_NVRTC;
    }
    m.folder = argv[1];
    m.arch = (uint32_t)strtoul(argv[2], NULL, 10);
    m.wanted = argc > 4 ? argv[4] : NULL;
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++)
        for (uint32_t i = 0; i < parts[p].n && strcmp(argv[3], parts[p].name) == 0; i++) {
            m.arena = po_arena_create(&m.ctx);
            parts[p].make(&m, &parts[p].blocks[i]);
            po_arena_free(m.arena);
        }
    po_arena_free(arena);
    return 0;
}
