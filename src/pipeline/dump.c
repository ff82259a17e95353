/* Graphs, subprograms with their indexed sums, and kernels' muGraphs as text. */
#include "pipeline/dump.h"

#include "boxes/program.h"
#include "ir/text.h"
#include "pipeline/search/search.h"

bool po_dump_is_asked(const po_run *run, const char *stage) {
    return po_options_has(run->options->dump, run->options->n_dump, stage) && run->callbacks &&
           run->callbacks->dump;
}

/* Each line behind "# ". */
static void add_comment(po_text *out, const char *text) {
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t n = end ? (size_t)(end - text) : strlen(text);
        po_text_puts(out, n > 0 ? "# " : "#");
        po_text_add(out, text, n);
        po_text_puts(out, "\n");
        text += n + (end != NULL);
    }
}

/* The graph, and what its operators compute as sums, where all of them have one. */
static void print_program(po_ctx *ctx, po_text *out, const po_graph *graph) {
    const po_program *program;
    po_graph_print(out, graph);
    if (po_program_of(ctx, out->arena, graph, &program) != PO_OK) {
        po_ctx_clear(ctx);
        return;
    }
    for (uint32_t i = 0; i < program->n_steps; i++) {
        po_text_printf(out, "%s: ", program->steps[i].name);
        po_sum_print(out, program->steps[i].sum);
    }
}

/* Every subprogram, and the mutant that took its place. */
static void print_search(po_ctx *ctx, po_text *out, const po_search *search) {
    for (uint32_t i = 0; i < search->n_sites; i++) {
        const po_site *site = &search->sites[i];
        po_text_printf(out, "\nsubprogram %u of %u, %u times\n", i + 1, search->n_sites,
                       site->sub->n_at);
        print_program(ctx, out, site->sub->graph);
        if (site->chosen == PO_NONE)
            continue;
        po_text_printf(out, "in its place: %s\n", site->trials[site->chosen].name);
        print_program(ctx, out, site->trials[site->chosen].graph);
    }
}

void po_dump_program(po_text *text, uint32_t region, const po_mu *mu) {
    po_text_printf(text, "\nregion %u\n", region);
    po_mu_print(text, mu);
}

void po_dump(const po_run *run, const char *stage, const po_graph *graph, const po_search *search,
             const char *programs) {
    po_arena *scratch = po_arena_create(run->ctx);
    po_text text, more;
    po_text_init(&text, scratch);
    po_text_init(&more, scratch);
    po_graph_print(&text, graph);
    if (search)
        print_search(run->ctx, &more, search);
    if (more.size)
        add_comment(&text, more.data);
    if (programs)
        add_comment(&text, programs);
    run->callbacks->dump(run->callbacks->user, stage, text.size ? text.data : "");
    po_arena_free(scratch);
}
