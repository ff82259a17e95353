/* A kernel's file: one program, or two between which the sizes of what a call is given decide. Both
 * have the numbers that hang on sizes in one array, and functions that are the same once. */
#include "codegen/cpu/printer.h"

static cg cg_for(po_ctx *ctx, po_codegen_file *file, const po_mu_open *open, const po_isa *isa) {
    po_arena *arena = file->arena;
    return (cg){.ctx = ctx,
                .arena = arena,
                .shared = file,
                .mu = open->mu,
                .open = open,
                .isa = isa,
                .value = PO_NEW_N(arena, cg_value, open->mu->n_labels + 1),
                .span = PO_NEW_N(arena, cg_span, open->mu->n_labels + 1),
                .label = PO_NEW_N(arena, const char *, open->mu->n_labels + 1)};
}

static po_status program(cg *g, const char *symbol, po_text *out) {
    g->symbol = symbol;
    g->out = out;
    PO_TRY(cg_memory(g));
    return cg_program(g);
}

/* The second program goes on with the first one's numbers. */
static cg after(const cg *first, const po_kernel_small *small) {
    cg g = cg_for(first->ctx, first->shared, small->open, first->isa);
    g.weight = small->weight;
    g.brief = true;
    g.size = first->size;
    g.size_key = first->size_key;
    g.n_sizes = first->n_sizes;
    g.cap_sizes = first->cap_sizes;
    g.cap_keys = first->cap_keys;
    return g;
}

static const char *either(cg *g, const char *is_small, const char *small, const char *large) {
    return po_arena_printf(g->arena, "%s ? %s : %s", is_small, small, large);
}

static po_status two(cg *large, const po_kernel_small *small, const char *symbol, po_text *out) {
    po_arena *arena = large->arena;
    PO_TRY(program(large, po_arena_printf(arena, "%s_large", symbol), out));
    const char *totals[CG_FIRST_SIZE];
    memcpy(totals, large->size, sizeof totals);
    cg g = after(large, small);
    PO_TRY(program(&g, po_arena_printf(arena, "%s_small", symbol), out));
    po_text measure;
    po_text_init(&measure, arena);
    po_codegen_length(small->measure, &measure);
    const char *is_small =
        cg_keep(&g, po_arena_printf(arena, "%s <= %lldl", measure.data, (long long)small->most));
    for (uint32_t i = 0; i < CG_FIRST_SIZE; i++)
        g.size[i] = either(&g, is_small, g.size[i], totals[i]);
    po_text_printf(out,
                   "\nvoid %s_start(float *device, const long *z);\n"
                   "void %s_start(float *device, const long *z) {\n"
                   "    (%s ? %s_small_start : %s_large_start)(device, z);\n}\n",
                   symbol, symbol, is_small, symbol, symbol);
    po_text_printf(
        out,
        "\nvoid %s(%s);\nvoid %s(%s) {\n"
        "    (%s ? %s_small : %s_large)(in, weight, out, device, scratch, z, pool);\n}\n",
        symbol, cg_parameters, symbol, cg_parameters, is_small, symbol, symbol);
    g.symbol = symbol;
    cg_sizes_function(&g);
    return PO_OK;
}

po_status po_codegen_kernel(po_ctx *ctx, const po_mu_open *open, const po_kernel_small *small,
                            const po_isa *isa, const char *symbol, po_codegen_file *file,
                            po_text *out) {
    po_codegen_file own = {.arena = file ? NULL : po_arena_create(ctx)};
    po_codegen_file *all = file ? file : &own;
    all->first = all->first ? all->first : symbol;
    cg g = cg_for(ctx, all, open, isa);
    po_status status = small ? two(&g, small, symbol, out) : program(&g, symbol, out);
    if (status == PO_OK && !small)
        cg_sizes_function(&g);
    if (!file)
        po_arena_free(own.arena);
    return status;
}

po_status po_codegen_places(po_ctx *ctx, const po_mu *mu, const po_isa *isa, int64_t *places) {
    po_arena *arena = po_arena_create(ctx);
    po_codegen_file file = {.arena = arena};
    cg g = cg_for(ctx, &file, po_mu_closed(arena, mu), isa);
    po_status status = cg_memory(&g);
    for (uint32_t i = 0; i < mu->n_tensors && status == PO_OK; i++)
        places[i] = mu->tensors[i].place == PO_MU_DEVICE ? g.tensor[i].offset : -1;
    po_arena_free(arena);
    return status;
}
