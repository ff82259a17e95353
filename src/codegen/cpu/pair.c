/* A kernel's file: one program, or several between which the sizes of what a call is given decide.
 * They have the numbers that hang on sizes in one array, and functions that are the same once. */
#include "codegen/cpu/printer.h"

static cg cg_for(po_ctx *ctx, po_codegen_file *file, const po_mu_open *open, const po_isa *isa,
                 cg_sizes *sizes) {
    po_arena *arena = file->arena;
    return (cg){.ctx = ctx,
                .arena = arena,
                .shared = file,
                .mu = open->mu,
                .open = open,
                .isa = isa,
                .sizes = sizes,
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

/* The next program goes on with the numbers of those before. */
static cg after(const cg *last, const po_kernel_other *other) {
    cg g = cg_for(last->ctx, last->shared, other->open, last->isa, last->sizes);
    g.weight = other->weight;
    g.brief = other->brief;
    return g;
}

/* Whether another program runs, as C. */
static const char *runs(cg *g, const po_kernel_other *other) {
    po_text text, measure;
    po_text_init(&text, g->arena);
    po_text_init(&measure, g->arena);
    po_codegen_length(other->measure, &measure);
    if (other->least > 1)
        po_text_printf(&text, "%s >= %lldl", measure.data, (long long)other->least);
    if (other->most < INT64_MAX)
        po_text_printf(&text, "%s%s <= %lldl", text.size ? " && " : "", measure.data,
                       (long long)other->most);
    return cg_keep(g, text.size ? text.data : "1");
}

/* What is there for the program that runs: of the first, then of the others. */
static const char *that_of(const cg *g, uint32_t n, const char *const *run,
                           const char *const *each) {
    const char *text = each[0];
    for (uint32_t k = n; k-- > 0;)
        text = po_arena_printf(g->arena, "%s ? %s : %s", run[k], each[k + 1], text);
    return text;
}

static po_status several(cg *first, const po_kernel_others *others, const char *symbol,
                         po_text *out) {
    enum { PROGRAMS = 1 + PO_KERNEL_OTHERS };
    const uint32_t n = others->n;
    const char *totals[CG_FIRST_SIZE][PROGRAMS], *names[PROGRAMS], *starts[PROGRAMS],
        *run[PO_KERNEL_OTHERS];
    cg g = *first;
    for (uint32_t k = 0; k <= n; k++) {
        g = k ? after(&g, &others->program[k - 1]) : g;
        names[k] =
            po_arena_printf(g.arena, "%s_%s", symbol, k ? others->program[k - 1].name : "usual");
        starts[k] = po_arena_printf(g.arena, "%s_start", names[k]);
        PO_TRY(program(&g, names[k], out));
        for (uint32_t i = 0; i < CG_FIRST_SIZE; i++)
            totals[i][k] = g.sizes->all[i].expression;
    }
    for (uint32_t k = 0; k < n; k++)
        run[k] = runs(&g, &others->program[k]);
    for (uint32_t i = 0; i < CG_FIRST_SIZE; i++)
        g.sizes->all[i].expression = that_of(&g, n, run, totals[i]);
    po_text_printf(out,
                   "\nvoid %s_start(float *device, const long *z);\n"
                   "void %s_start(float *device, const long *z) {\n"
                   "    (%s)(device, z);\n}\n",
                   symbol, symbol, that_of(&g, n, run, starts));
    po_text_printf(out,
                   "\nvoid %s(%s);\nvoid %s(%s) {\n"
                   "    (%s)(in, weight, out, device, scratch, z, pool);\n}\n",
                   symbol, cg_parameters, symbol, cg_parameters, that_of(&g, n, run, names));
    g.symbol = symbol;
    cg_sizes_function(&g);
    return PO_OK;
}

po_status po_codegen_kernel(po_ctx *ctx, const po_mu_open *open, const po_kernel_others *others,
                            const po_isa *isa, const char *symbol, po_codegen_file *file,
                            po_text *out) {
    po_codegen_file own = {.arena = file ? NULL : po_arena_create(ctx)};
    po_codegen_file *all = file ? file : &own;
    all->first = all->first ? all->first : symbol;
    cg_sizes sizes = {.at = po_map_create(all->arena)};
    cg g = cg_for(ctx, all, open, isa, &sizes);
    const bool one = !others || others->n == 0;
    po_status status = one ? program(&g, symbol, out) : several(&g, others, symbol, out);
    if (status == PO_OK && one)
        cg_sizes_function(&g);
    if (!file)
        po_arena_free(own.arena);
    return status;
}

po_status po_codegen_places(po_ctx *ctx, const po_mu *mu, const po_isa *isa, int64_t *places) {
    po_arena *arena = po_arena_create(ctx);
    po_codegen_file file = {.arena = arena};
    cg_sizes sizes = {.at = po_map_create(arena)};
    cg g = cg_for(ctx, &file, po_mu_closed(arena, mu), isa, &sizes);
    po_status status = cg_memory(&g);
    for (uint32_t i = 0; i < mu->n_tensors && status == PO_OK; i++)
        places[i] = mu->tensors[i].place == PO_MU_DEVICE ? g.tensor[i].offset : -1;
    po_arena_free(arena);
    return status;
}
