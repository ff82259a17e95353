/* A kernel for each region of a form. By estimates, the first candidate that promises a gain and
 * compiles; by readings, the fastest of the best two dozen, each compared with float64 on the GPU.
 */
#include "pipeline/budget.h"
#include "pipeline/gpu/making.h"
#include "pipeline/kernels/stage.h"
#include "split/split.h"
#include "superopt/search/search.h"

const char cuda_no_faster[] = "no faster than its nodes one by one";
const char cuda_no_time[] = "there was no time for its kernels";

enum { MOST_TIMED = 24, AT_A_TIME = 16 };

/* Whether the kernels' part of the time is over: what is not made yet is left out. */
static bool is_late(const cuda_making *m) {
    double end = po_budget_end(m->run, PO_PART_READ);
    return end > 0 && po_now() > end;
}

/* --- printing and compiling --- */

/* The first dim of what is one of each sample is open. */
static const po_kernel_port *open_ports(po_arena *arena, const po_kernel_port *ports, uint32_t n,
                                        const bool *batched) {
    po_kernel_port *open = PO_NEW_N(arena, po_kernel_port, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        open[i] = ports[i];
        if (!batched || batched[i])
            open[i].dims[0] = -1;
    }
    return open;
}

/* Prints a candidate, unless another that is the same was: its number in the pool. */
static po_status print(cuda_making *m, const cuda_variant *f, uint32_t i, const po_mu *mu,
                       uint32_t *number) {
    po_arena *arena = m->run->arena;
    const po_gpu_region *plan = &f->plans[i];
    const bool *batched = f->open ? f->batched[i] : NULL;
    const po_cuda_print_options options = {.tf32 = m->run->options->tf32, .batched = batched};
    cuda_made *made = PO_NEW(arena, cuda_made);
    PO_TRY(po_cuda_kernel_print(m->ctx, arena, mu, &options, &made->kernel));
    for (*number = 0; *number < m->n; ++*number)
        if (strcmp(m->pool[*number]->kernel.ports.name, made->kernel.ports.name) == 0)
            return PO_OK;
    PO_TRY(po_kernel_stage_check(m->run, plan->lowered.mu, mu, m->run->gpu->shared_block));
    made->mu = mu;
    made->naive = plan->lowered.mu;
    po_kernel *ports = &made->kernel.ports;
    po_kernel_stage_ports(arena, f->shapes, plan->region, ports);
    if (batched) {
        ports->in = open_ports(arena, ports->in, ports->n_in, batched);
        ports->out = open_ports(arena, ports->out, ports->n_out, NULL);
    }
    PO_PUSH(arena, m->pool, m->n, m->cap, made);
    return PO_OK;
}

/* arch: for one GPU alone; 0: for all. Those of `wanted` that have no such images yet. */
static po_status compile(cuda_making *m, const bool *wanted, uint32_t arch) {
    po_arena *arena = m->run->arena;
    po_cuda_kernel **kernels = PO_NEW_N(arena, po_cuda_kernel *, m->n + 1);
    const char **why = PO_NEW_N(arena, const char *, m->n + 1);
    uint32_t *of = PO_NEW_N(arena, uint32_t, m->n + 1), n = 0;
    for (uint32_t k = 0; k < m->n; k++) {
        const cuda_made *made = m->pool[k];
        bool there = arch ? made->kernel.n_images > 0 : made->whole;
        if (!wanted[k] || made->why || there)
            continue;
        of[n] = k;
        kernels[n++] = &m->pool[k]->kernel;
    }
    /* Between so many the time is looked at. */
    uint32_t threads = po_options_threads(m->run->options), most = AT_A_TIME;
    if (m->run->options->time_limit > 0 && threads < AT_A_TIME)
        most = threads;
    for (uint32_t at = 0; at < n; at += most) {
        uint32_t some = n - at < most ? n - at : most;
        if (is_late(m)) {
            for (uint32_t k = at; k < n; k++)
                why[k] = cuda_no_time;
            break;
        }
        po_step(m->ctx, 0.5 + 0.5 * at / n, "compiling %u of %u kernels", at + some, n);
        PO_TRY(po_cuda_kernels_compile(m->ctx, arena, m->nvrtc, m->images, arch, kernels + at, some,
                                       why + at));
    }
    for (uint32_t k = 0; k < n; k++) {
        m->pool[of[k]]->why = why[k];
        m->pool[of[k]]->whole = arch == 0;
    }
    return PO_OK;
}

/* Of regions whose kernel cannot be had. */
static bool lose_failed(cuda_making *m, cuda_variant *f) {
    bool lost = false;
    for (uint32_t i = 0; i < f->regions.n; i++) {
        if (f->why[i] || !m->pool[f->which[i]]->why)
            continue;
        f->why[i] = m->pool[f->which[i]]->why;
        lost = true;
    }
    return lost;
}

/* What running a muGraph takes: for each statement the product of its labels' extents. */
static double work_of(const po_mu *mu) {
    double sum = 0;
    for (uint32_t i = 0; i < mu->n_nodes; i++) {
        const po_mu_statement *s = &mu->nodes[i].statement;
        if (mu->nodes[i].kind != PO_MU_STATEMENT)
            continue;
        double work = 1;
        for (uint32_t l = 0; l < mu->n_labels; l++) {
            bool used = po_mu_has(mu, &s->out, l);
            for (uint32_t k = 0; k < s->n_in && !used; k++)
                used = po_mu_has(mu, &s->in[k], l);
            work *= used ? (double)mu->labels[l].extent : 1;
        }
        sum += work;
    }
    return sum;
}

/* What is delivered has the values of the region, over finite fields and in float64, after all that
 * joined its steps. Larger ones rest on the structure, on Z3 and on what runs on the GPU. */
static po_status check_values(cuda_making *m, cuda_made *made) {
    static const double most = 4e6;
    double work = work_of(made->naive);
    if (made->valued || work > most || is_late(m)) {
        if (!made->valued)
            po_log(m->ctx, "%s: its values are not compared on this machine (%.0f operations)",
                   made->kernel.ports.name, work);
        return PO_OK;
    }
    made->valued = true;
    po_status status =
        po_search_same(m->ctx, made->naive, made->mu, NULL, 0, m->run->gpu->shared_block);
    if (status != PO_BAD_INPUT)
        return status;
    made->why = po_arena_printf(m->run->arena, "its kernel computes something else: %s",
                                m->ctx->error.message);
    po_ctx_clear(m->ctx);
    return PO_OK;
}

po_status cuda_compile_chosen(cuda_making *m, cuda_variant *f) {
    bool *wanted = PO_NEW_N(m->run->arena, bool, m->n + 1);
    for (uint32_t i = 0; i < f->regions.n; i++) {
        if (f->why[i])
            continue;
        wanted[f->which[i]] = true;
        PO_TRY(check_values(m, m->pool[f->which[i]]));
    }
    PO_TRY(compile(m, wanted, 0));
    lose_failed(m, f);
    return PO_OK;
}

/* --- by estimates --- */

/* The next candidate of a region, from *k on, that promises a gain and can be printed. */
static po_status next_candidate(cuda_making *m, cuda_variant *f, uint32_t i, uint32_t *k) {
    const po_gpu_region *plan = &f->plans[i];
    for (; *k < plan->n; ++*k) {
        const po_gpu_candidate *c = &plan->candidates[*k];
        if (!(c->seconds < cuda_worth_a_kernel * f->nodes[i])) {
            f->why[i] = f->why[i] ? f->why[i] : cuda_no_faster;
            return PO_OK;
        }
        po_status status = print(m, f, i, c->mu, &f->which[i]);
        if (status == PO_OK) {
            f->why[i] = NULL;
            f->taken[i] = c->seconds;
            ++*k;
            return PO_OK;
        }
        PO_TRY(po_kernel_stage_drop(m->run, status, &f->why[i]));
        po_log(m->ctx, "region %u, %s: %s", i, c->what, f->why[i]);
    }
    return PO_OK;
}

static po_status choose_by_estimates(cuda_making *m, cuda_variant *f) {
    uint32_t *next = PO_NEW_N(m->run->arena, uint32_t, f->regions.n + 1);
    bool *open = PO_NEW_N(m->run->arena, bool, f->regions.n + 1);
    for (uint32_t i = 0; i < f->regions.n; i++)
        open[i] = !f->plans[i].failed;
    for (bool again = true; again;) {
        for (uint32_t i = 0; i < f->regions.n; i++) {
            if (!open[i])
                continue;
            po_step(m->ctx, 0.5 * i / f->regions.n, "printing region %u", i);
            PO_TRY(po_ctx_poll(m->ctx));
            if (is_late(m))
                f->why[i] = cuda_no_time;
            else
                PO_TRY(next_candidate(m, f, i, &next[i]));
        }
        for (uint32_t i = 0; i < f->regions.n; i++)
            open[i] = !f->why[i];
        PO_TRY(cuda_compile_chosen(m, f));
        again = false;
        for (uint32_t i = 0; i < f->regions.n; i++) {
            open[i] &= f->why[i] != NULL && f->why[i] != cuda_no_time;
            again |= open[i];
        }
    }
    return PO_OK;
}

/* --- on a GPU that is here, or by what was recorded there --- */

static const po_cuda_image *own_image(const cuda_making *m, const po_cuda_kernel *kernel) {
    const po_cuda_image *best = NULL;
    uint32_t arch = m->run->gpu_cost->info.arch;
    for (uint32_t i = 0; i < kernel->n_images; i++) {
        const po_cuda_image *image = &kernel->images[i];
        bool runs =
            image->ptx ? image->arch <= arch : image->arch / 10 == arch / 10 && image->arch <= arch;
        if (runs && (!best || best->ptx || (!image->ptx && image->arch > best->arch)))
            best = image;
    }
    return best;
}

/* Seconds of a region's nodes, one by one, there. */
static po_status time_nodes(cuda_making *m, cuda_variant *f, uint32_t i) {
    const po_region *r = &f->regions.regions[i];
    po_extract part;
    double seconds;
    const char *why;
    PO_TRY(po_split_extract(m->ctx, m->run->arena, f->graph, r->nodes, r->n_nodes, false, &part));
    po_run_hold(m->run, part.graph);
    PO_TRY(po_infer_graph(m->ctx, part.graph, true));
    PO_TRY(po_gpu_graph_seconds(m->run, m->run->arena, part.graph, false, &f->timed[i], &seconds,
                                &why));
    if (f->timed[i])
        f->nodes[i] = seconds;
    else
        po_log(m->ctx, "region %u node by node: %s", i, why);
    return PO_OK;
}

/* A region's printed candidates, the best by estimate first: their numbers in the pool and in the
 * plan. */
typedef struct few {
    uint32_t number[MOST_TIMED], candidate[MOST_TIMED], n;
} few;

/* Those from place `from` on, as far as they are compiled: each compared with float64 and timed.
 * What does not run or computes something else is out; the fastest of all that were read stays. */
static po_status time_kernels(cuda_making *m, cuda_variant *f, uint32_t i, const few *all,
                              uint32_t from, uint32_t to) {
    const po_gpu_region *plan = &f->plans[i];
    const bool first = f->taken[i] == 0; /* none was read */
    po_cuda_candidate c[MOST_TIMED];
    uint32_t place[MOST_TIMED], n = 0;
    for (uint32_t k = from; k < to && k < all->n; k++) {
        const cuda_made *made = m->pool[all->number[k]];
        if (made->why) {
            f->why[i] = first ? made->why : f->why[i];
            continue;
        }
        place[n] = k;
        c[n++] = (po_cuda_candidate){.mu = plan->candidates[all->candidate[k]].mu,
                                     .program = &made->kernel.program,
                                     .image = own_image(m, &made->kernel),
                                     .tf32 = m->run->options->tf32};
    }
    if (n == 0)
        return PO_OK;
    const po_cuda_trial trial = {
        .meaning = plan->lowered.mu, .check = true, .time = true, .seed = 1};
    PO_TRY(po_cuda_cost_programs(m->ctx, m->run->arena, m->run->gpu_cost, &trial, c, n));
    if (first)
        f->why[i] = c[0].why;
    for (uint32_t k = 0; k < n; k++) {
        const po_gpu_candidate *from_plan = &plan->candidates[all->candidate[place[k]]];
        bool ran = c[k].seconds > 0;
        po_log(m->ctx, "region %u, %s: %s%.1f us (estimate %.1f), error %.2f u S", i,
               from_plan->what, ran ? "" : c[k].why, 1e6 * c[k].seconds, 1e6 * from_plan->seconds,
               c[k].worst);
        if (!ran || (f->taken[i] > 0 && c[k].seconds >= f->taken[i]))
            continue;
        f->which[i] = all->number[place[k]];
        f->taken[i] = c[k].seconds;
    }
    if (f->taken[i] > 0)
        f->why[i] = f->taken[i] < cuda_worth_a_kernel * f->nodes[i] ? NULL : cuda_no_faster;
    return PO_OK;
}

/* Prints the best few of a region by estimate. */
static po_status print_few(cuda_making *m, cuda_variant *f, uint32_t i, few *all) {
    const po_gpu_region *plan = &f->plans[i];
    for (uint32_t k = 0; k < plan->n && all->n < MOST_TIMED; k++) {
        uint32_t number;
        bool again = false; /* other algebra, the same kernel */
        po_status status = print(m, f, i, plan->candidates[k].mu, &number);
        if (status != PO_OK) {
            PO_TRY(po_kernel_stage_drop(m->run, status, &f->why[i]));
            po_log(m->ctx, "region %u, %s: %s", i, plan->candidates[k].what, f->why[i]);
            continue;
        }
        for (uint32_t j = 0; j < all->n; j++)
            again |= all->number[j] == number;
        if (again)
            continue;
        all->number[all->n] = number;
        all->candidate[all->n++] = k;
    }
    return PO_OK;
}

/* Regions by what their best candidates promise, the most first. */
static uint32_t *by_promise(const cuda_making *m, const cuda_variant *f) {
    uint32_t *order = PO_NEW_N(m->run->arena, uint32_t, f->regions.n + 1);
    double *gain = PO_NEW_N(m->run->arena, double, f->regions.n + 1);
    for (uint32_t i = 0; i < f->regions.n; i++) {
        uint32_t at = i;
        gain[i] = f->plans[i].failed || f->plans[i].n == 0
                      ? 0
                      : f->nodes[i] - f->plans[i].candidates[0].seconds;
        for (; at > 0 && gain[i] > gain[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

/* The candidates of these places, of every region. */
static po_status read_places(cuda_making *m, cuda_variant *f, const few *all, const uint32_t *order,
                             uint32_t from, uint32_t to) {
    bool *wanted = PO_NEW_N(m->run->arena, bool, m->n + 1);
    for (uint32_t i = 0; i < f->regions.n; i++)
        for (uint32_t k = from; k < to && k < all[i].n; k++)
            wanted[all[i].number[k]] = true;
    /* Records answer by the text. */
    if (!m->run->gpu_cost->replay)
        PO_TRY(compile(m, wanted, m->run->gpu_cost->info.arch));
    for (uint32_t at = 0; at < f->regions.n; at++) {
        uint32_t i = order[at];
        if (from >= all[i].n)
            continue;
        if (is_late(m)) {
            f->why[i] = f->taken[i] > 0 ? f->why[i] : cuda_no_time;
            continue;
        }
        po_step(m->ctx, 0.5 + 0.5 * at / f->regions.n, "timing region %u", i);
        PO_TRY(po_ctx_poll(m->ctx));
        if (from == 0)
            PO_TRY(time_nodes(m, f, i));
        PO_TRY(time_kernels(m, f, i, &all[i], from, to));
    }
    return PO_OK;
}

/* First the best of each region, then further ones: where time ends, what is read counts. */
static po_status choose_by_readings(cuda_making *m, cuda_variant *f) {
    static const uint32_t until[] = {2, 6, 12, MOST_TIMED};
    few *all = PO_NEW_N(m->run->arena, few, f->regions.n + 1);
    for (uint32_t i = 0; i < f->regions.n; i++) {
        po_step(m->ctx, 0.5 * i / f->regions.n, "printing region %u", i);
        PO_TRY(po_ctx_poll(m->ctx));
        if (!f->plans[i].failed)
            PO_TRY(print_few(m, f, i, &all[i]));
    }
    const uint32_t *order = by_promise(m, f);
    for (uint32_t round = 0, from = 0; round < sizeof until / sizeof until[0]; round++) {
        PO_TRY(read_places(m, f, all, order, from, until[round]));
        from = until[round];
    }
    return PO_OK;
}

po_status cuda_choose_kernels(cuda_making *m, cuda_variant *f) {
    return m->run->gpu_cost && !f->open ? choose_by_readings(m, f) : choose_by_estimates(m, f);
}

po_status cuda_read_variant(cuda_making *m, cuda_variant *f) {
    po_arena *arena = m->run->arena;
    po_gpu_given *given = PO_NEW_N(arena, po_gpu_given, f->regions.n + 1);
    uint32_t n = 0, stand_ins;
    const char *why = NULL;
    if (!m->run->gpu_cost || f->open)
        return PO_OK;
    for (uint32_t i = 0; i < f->regions.n; i++)
        if (!f->why[i]) {
            const po_cuda_kernel *kernel = &m->pool[f->which[i]]->kernel;
            given[n++] = (po_gpu_given){&f->regions.regions[i], &f->plans[i].lowered,
                                        &kernel->program, own_image(m, kernel)};
        }
    po_status status =
        po_gpu_plan_graph(m->run, arena, f->graph, given, n, false, &stand_ins, &f->plan);
    if (status == PO_OK)
        status = po_cuda_cost_plans(m->ctx, arena, m->run->gpu_cost, &f->plan, 1, &f->read, &why);
    if (status == PO_UNSUPPORTED) {
        why = po_arena_strdup(arena, m->ctx->error.message);
        po_ctx_clear(m->ctx);
        status = PO_OK;
    }
    if (why)
        po_log(m->ctx, "%s: not timed as a whole: %s", f->name, why);
    else if (status == PO_OK)
        po_log(m->ctx, "%s: %.1f us as a whole", f->name, 1e6 * f->read);
    return status;
}
