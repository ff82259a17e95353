/* The kernel stage: regions of the model as generated kernels, each region one node with the
 * standard operators as its function (codegen/delivery/library.h). What comes out competes with the
 * standard forms in select. */
#include "codegen/compile.h"
#include "codegen/delivery/library.h"
#include "ops/recipe/pack.h"
#include "pipeline/budget.h"
#include "pipeline/dump.h"
#include "pipeline/kernels/one_sample.h"
#include "pipeline/kernels/open_regions.h"
#include "pipeline/kernels/stage.h"
#include "pipeline/kernels/tell_regions.h"
#include "pipeline/kernels/values.h"
#include "pipeline/kernels/variants.h"
#include "pipeline/open_batch.h"
#include "pipeline/recall.h"

/* Of the limit, within which kernels are while milder ones can be made: no set of inputs that is
 * drawn is the worst there is. */
static const double margin = 0.5;

/* --- a region as a node --- */

/* Puts the call in the region's place: activations, then weights as the kernel reads them. */
static po_status replace(const po_run *run, po_graph *graph, const po_kernel_variant *form,
                         const po_kernel *kernel, uint32_t number) {
    po_arena *arena = run->arena;
    const po_plan *plan = &form->plans[number];
    const po_region *r = form->there ? &form->there->regions[number] : plan->region;
    uint32_t n_in = r->n_in + plan->n_packed;
    po_value_id *in = PO_NEW_N(arena, po_value_id, n_in),
                *packed = PO_NEW_N(arena, po_value_id, n_in);
    bool *again = PO_NEW_N(arena, bool, n_in);
    memcpy(in, r->in, r->n_in * sizeof *in);
    for (uint32_t k = 0; k < plan->n_packed; k++) {
        po_value_id weight = plan->lowered.weights[plan->packed[k].weight];
        if (form->there)
            weight = po_one_sample_weight(graph, form->graph, weight);
        const char *name = po_arena_printf(arena, "%s_packed", graph->values[weight].name);
        PO_TRY(po_pack_add(run->ctx, graph, name, weight, &plan->packed[k].packing, &packed[k]));
        for (uint32_t i = 0; i < k; i++)
            again[k] |= in[r->n_in + i] == weight;
        in[r->n_in + k] = again[k] ? packed[k] : weight;
    }
    po_graph *body;
    po_node_id call;
    PO_TRY(po_kernel_stage_call(run, graph, r, kernel, number, in, n_in, &body, &call));
    /* A weight that is read in two orders is an input twice; the body unpacks the first. */
    for (uint32_t k = 0; k < plan->n_packed; k++) {
        uint32_t at = r->n_in + k;
        if (again[k])
            continue;
        PO_TRY(po_pack_unpack(run->ctx, body, body->inputs[at], &plan->packed[k].packing));
        po_graph_set_input(graph, call, at, packed[k]);
    }
    return PO_OK;
}

/* --- the stage --- */

static int64_t elements(const po_packing *p) {
    int64_t n = 1;
    for (uint32_t i = 0; i < p->rank; i++)
        n *= p->dims[i];
    return n;
}

static po_status print(const po_run *run, const po_kernel_variant *form, uint32_t region,
                       po_kernel *kernel) {
    const po_plan *plan = &form->plans[region];
    po_kernel_print_spec spec = {.ports = &form->ports[region],
                                 .others = &form->others[region],
                                 .batched = form->batched[region]};
    PO_TRY(po_kernel_stage_check(run, plan->lowered.mu, plan->mu, PO_SHARED_BYTES));
    for (uint32_t i = 0; i < PO_ISAS; i++)
        spec.mu[i] = form->programs[region];
    if (plan->small)
        PO_TRY(po_kernel_stage_check(run, plan->lowered.mu, plan->small->mu, PO_SHARED_BYTES));
    if (plan->wide)
        PO_TRY(po_kernel_stage_check(run, plan->lowered.mu, plan->wide->mu, PO_SHARED_BYTES));
    int64_t *weights = PO_NEW_N(run->arena, int64_t, plan->n_packed + 1);
    for (uint32_t k = 0; k < plan->n_packed; k++)
        weights[spec.n_weights++] = elements(&plan->packed[k].packing);
    spec.weights = weights;
    return po_kernel_print(run->ctx, run->arena, &spec, kernel);
}

/* Prints a region's kernel; equal regions have one. *why: it could not be done. */
static po_status add_kernel(const po_run *run, const po_kernel_variant *form, uint32_t region,
                            po_kernel *kernels, uint32_t *n, uint32_t *which, const char **why) {
    po_kernel *kernel = &kernels[*n];
    po_status status = print(run, form, region, kernel);
    if (status != PO_OK)
        return po_kernel_stage_drop(run, status, why);
    for (*which = 0; *which < *n && strcmp(kernels[*which].name, kernel->name) != 0; ++*which)
        ;
    *n += *which == *n;
    return PO_OK;
}

/* One making of kernels. */
typedef struct making {
    const po_run *run;
    const po_imported *imported;
    const po_graph *graph; /* of the model, as simplified */
    const po_graph *like;  /* with its batch open, where that is; NULL */
    po_search *search;     /* for mutants; NULL: none take part */
    const po_recall *recall;
    po_arena *arena; /* of the plans, tens of megabytes; goes when the kernels are there */
    po_plan_options options;
    po_kernel_variant form;
    const char **why; /* by region: why it has no kernel */
    po_kernels *out;
} making;

/* A program in which regions are calls of their kernels. */
typedef struct placing {
    const po_kernel_variant *form;
    const po_kernel *kernels;
    const uint32_t *which; /* by region: its kernel; PO_NONE: none */
    const char **why;      /* by region: why it has none */
} placing;

/* Puts the kernels in. *whole: false where one could not be, which leaves the graph half done. */
static po_status place_in(const po_run *run, const placing *p, uint32_t out, po_graph *graph,
                          bool *whole) {
    *whole = true;
    for (uint32_t i = 0; i < p->form->regions.n && *whole; i++) {
        if (p->which[i] == PO_NONE || i == out || p->why[i])
            continue;
        po_status status = replace(run, graph, p->form, &p->kernels[p->which[i]], i);
        *whole = status == PO_OK;
        PO_TRY(*whole ? PO_OK : po_kernel_stage_drop(run, status, &p->why[i]));
    }
    return PO_OK;
}

/* Adds it as a variant. `out`: a region that stays with the runtime; PO_NONE: none does. */
static po_status place(const making *m, const placing *p, uint32_t out, const char *name) {
    const po_run *run = m->run;
    po_kernels *made = m->out;
    if (!po_recall_wants(m->recall, name) || made->n_variants == PO_MAX_VARIANTS)
        return PO_OK;
    po_graph *graph;
    bool whole;
    do {
        graph = po_graph_clone(run->ctx, p->form->open ? p->form->open : p->form->graph);
        po_run_hold(run, graph);
        PO_TRY(place_in(run, p, out, graph, &whole));
    } while (!whole);
    po_graph_sweep(graph);
    if (graph->n_functions > 0)
        made->variants[made->n_variants++] =
            (po_variant){.name = name, .graph = graph, .kernels = true};
    return PO_OK;
}

/* With all kernels, and with each of a few left out: a region whose kernel loses stays with the
 * runtime. Weights are packed in each of them. */
enum { MOST_LEFT_OUT = 4 };
#define MOST_WEIGHTS ((uint64_t)256 << 20)

static po_status place_all(const making *m, const placing *p) {
    uint32_t n = 0;
    PO_TRY(place(m, p, PO_NONE, "kernels"));
    for (uint32_t i = 0; i < p->form->regions.n; i++)
        n += p->which[i] != PO_NONE && !p->why[i];
    if (n < 2 || n > MOST_LEFT_OUT || po_record_weights(p->form->graph) > MOST_WEIGHTS)
        return PO_OK;
    for (uint32_t i = 0; i < p->form->regions.n; i++)
        if (p->which[i] != PO_NONE && !p->why[i])
            PO_TRY(place(m, p, i, po_arena_printf(m->run->arena, "kernels, not of region %u", i)));
    return PO_OK;
}

/* The form that kernels are made of. An open batch of which samples are not seen to be kept apart
 * has none. */
static po_status find_form(making *m) {
    const po_run *run = m->run;
    const char *why;
    const po_kernel_source source = {m->imported->graph, m->graph, m->like, m->search};
    po_status status = po_kernel_variants(run, &source, m->arena, &m->options, &m->form);
    if ((!m->like && !po_batch_has_open_dims(m->graph)) || status == PO_OK)
        return status;
    m->form = (po_kernel_variant){0};
    PO_TRY(po_kernel_stage_drop(run, status, &why));
    po_record_note(run->record, "no kernels for open %s: %s", m->like ? "batches" : "sizes", why);
    return PO_OK;
}

/* Plans, prints, compiles, and adds what comes of it to the variants. */
static po_status make(making *m) {
    const po_run *run = m->run;
    const po_kernel_variant *form = &m->form;
    PO_TRY(find_form(m));
    uint32_t n_regions = form->regions.n, n = 0;
    po_kernel *kernels = PO_NEW_N(run->arena, po_kernel, n_regions);
    uint32_t *which = PO_NEW_N(run->arena, uint32_t, n_regions);
    m->why = PO_NEW_N(run->arena, const char *, n_regions);
    for (uint32_t i = 0; i < n_regions; i++) {
        which[i] = PO_NONE;
        m->why[i] = form->plans[i].failed;
        if (!m->why[i])
            PO_TRY(add_kernel(run, form, i, kernels, &n, &which[i], &m->why[i]));
    }
    if (n == 0)
        return PO_OK;
    po_step(run->ctx, 0.9, "compiling %u kernels", n);
    po_kept_objects libraries = {m->options.cache, "library"};
    const po_object_store store = po_kernel_stage_store(&libraries);
    po_library_spec spec = {
        .cc = run->options->cc, .store = &store, .kernels = kernels, .n_kernels = n};
    const double end = po_budget_end(run, PO_PART_KERNELS);
    spec.until = end > 0 ? end + po_budget_grace(run, PO_PART_KERNELS) / 2 : 0;
    for (uint32_t isa = 0; isa < PO_ISAS; isa++)
        spec.foreign[isa] = po_isa_of_machine() < PO_ISAS && !po_isa_runs(isa);
    PO_TRY(po_library_build(run->ctx, run->arena, &spec, &m->out->library));
    if (m->out->library->partly)
        po_record_note(run->record,
                       "the kernels have no code for instruction sets that this machine lacks: "
                       "there was no time to compile it (--time-limit S gives more)");
    return place_all(m, &(placing){form, kernels, which, m->why});
}

/* What the kernels that differ are made without, in the next try: what makes more of rounding than
 * half of the largest, then all that rounds otherwise than the plain way. */
static po_plan_options less_rough(const making *m) {
    po_plan_options options = m->options;
    options.exact = options.magnifies > 0 || m->form.magnifies < 4;
    options.magnifies = options.exact ? 1 : m->form.magnifies / 2;
    return options;
}

/* The same without what rounds worst, in their place. What cannot be made in time leaves them as
 * they are, for select to judge; *replaced: it was made. */
static po_status make_milder(making *m, const char *why, bool *replaced) {
    po_kernels *out = m->out;
    uint32_t end = out->n_variants;
    const po_library *library = out->library;
    making milder = *m;
    milder.options = less_rough(m);
    milder.form = (po_kernel_variant){0};
    milder.why = NULL;
    po_log(m->run->ctx, "kernels again, without what makes %.1f of rounding or more: %s",
           milder.options.magnifies, why);
    po_status status = make(&milder);
    *replaced = status == PO_OK && out->n_variants > end;
    if (!*replaced) {
        out->n_variants = end;
        out->library = library;
        return status;
    }
    out->n_variants -= end;
    memmove(&out->variants[0], &out->variants[end], out->n_variants * sizeof *out->variants);
    *m = milder;
    return PO_OK;
}

static po_status compare_values(const making *m, double part, const char **why) {
    return po_kernel_values(m->run, m->imported, m->out->library, &m->out->variants[0],
                            m->form.sizes != NULL, part, why);
}

/* Error is a cost for kernels, too: where the model as a whole is beyond the limit, its largest
 * contributors take milder schedules, not the model the original. Twice at most, and while there is
 * time. */
static po_status make_right(making *m) {
    enum { TRIES = 2 };
    const char *why = NULL, *first = NULL;
    po_status status = PO_OK;
    bool replaced = m->options.measure && !m->options.exact && m->out->n_variants > 0;
    for (uint32_t i = 0; i <= TRIES && replaced && status == PO_OK; i++) {
        status = compare_values(m, margin, &why);
        if (status != PO_OK || !why || i == TRIES || m->options.exact)
            break;
        first = first ? first : why;
        status = make_milder(m, why, &replaced);
    }
    /* For any size: what differs by no more than rounding is milder by now. */
    if (status == PO_OK && why && m->form.sizes)
        status = compare_values(m, 1, &why);
    if (status == PO_OK && why && m->form.sizes) {
        m->out->n_variants = 0;
        po_record_note(m->run->record, "kernels for any size are left out: %s", why);
    }
    if (m->options.magnifies > 0)
        po_record_note(m->run->record,
                       "the kernels do without the algorithms that round worse (%s); with them: %s",
                       m->options.exact ? "Winograd, Strassen" : "the largest tiles", first);
    return status;
}

static void print_batched(po_text *text, uint32_t region, const po_kernel_batched *batched) {
    if (batched->head.open)
        po_dump_program(text, region, batched->head.open->mu);
    po_dump_program(text, region, batched->rest.open->mu);
}

static void print_programs(const making *m) {
    po_text text;
    po_text_init(&text, m->run->arena);
    for (uint32_t i = 0; i < m->form.regions.n; i++)
        if (!m->why[i]) {
            po_dump_program(&text, i, m->form.plans[i].mu);
            for (uint32_t k = 0; k < m->form.others[i].n; k++)
                po_dump_program(&text, i, m->form.others[i].program[k].open->mu);
            if (m->form.batched[i])
                print_batched(&text, i, m->form.batched[i]);
        }
    m->out->programs = text.size ? text.data : NULL;
}

static po_status make_kernels(void *user) {
    making *m = user;
    const po_run *run = m->run;
    const po_recall *known = m->recall;
    if (!run->options->kernels ||
        (known && (!known->form || strncmp(known->form, "kernels", 7) != 0)))
        return PO_OK;
    po_cost *cost;
    po_rates rates;
    PO_TRY(po_run_cost(run, &cost));
    po_rates_of_machine(cost, &rates);
    /* What kernels take is known for what a compiler makes of them. */
    po_hash compiler, key = po_cost_key(cost);
    PO_TRY(po_cc_check(run->ctx, run->options->cc, &compiler));
    key = po_hash_u64(po_hash_u64(key, compiler.lo), compiler.hi);
    m->arena = po_arena_child(run->arena);
    m->options = (po_plan_options){.exact = run->options->exact,
                                   .measure = !run->options->model_cost,
                                   .cc = run->options->cc,
                                   .cache = cost->cache,
                                   .key = key,
                                   .readings = po_plan_readings_create(m->arena),
                                   .until = po_budget_end(run, PO_PART_READ)};
    PO_TRY(make(m));
    po_status status = make_right(m);
    m->out->of_mutants = m->form.mutants;
    if (m->form.unread > 0)
        po_record_note(run->record,
                       "the schedules of %u steps of kernels are by estimate: there was no time to "
                       "read more (--time-limit S gives more)",
                       m->form.unread);
    for (uint32_t i = 0; i < m->form.regions.n; i++) {
        if (m->why[i])
            po_record_note(run->record, "region %u stays with the runtime: %s", i, m->why[i]);
        po_tell_region(run, &m->form.plans[i], &rates, m->why[i]);
    }
    if (po_dump_is_asked(run, "superopt"))
        print_programs(m);
    po_arena_free(m->arena);
    return status;
}

po_status po_stage_superopt(const po_run *run, const po_imported *imported,
                            const po_simplified *simplified, const po_search *search,
                            const po_recall *recall, po_kernels *out) {
    bool cut;
    po_search *next = search ? po_search_next(search) : NULL;
    *out = (po_kernels){.search = next};
    making m = {.run = run,
                .imported = imported,
                .graph = simplified->sample ? simplified->sample : simplified->graph,
                .like = simplified->sample ? imported->graph : NULL,
                .search = recall ? NULL : next,
                .recall = recall,
                .out = out};
    return po_budget_call(run, PO_PART_KERNELS, "the making of kernels was cut short", make_kernels,
                          &m, &cut);
}
