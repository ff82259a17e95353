/* Blind enumeration: reads a subprogram, searches it at small sizes, carries what agrees inside to
 * the true sizes, and keeps the best by roofline cost. */
#include "mutate/enumerate_rank.h"

enum {
    EN_LEVELS = 4,              /* moves of all R/Ts of a program */
    EN_KEEP = 32,               /* mutants */
    EN_MOST_ELEMENTS = 1 << 17, /* of what cannot be searched at smaller sizes */
    EN_RTS = 1 << 14,           /* of one tensor; where few candidates are judged, the latter */
    EN_FEW_RTS = 1 << 11,
    EN_SMALL = 1 << 19,        /* of work */
    EN_MANY_PRODUCTS = 1 << 9, /* of an element */
    EN_MOST = 1 << 17,
    EN_PARENTS = 2, /* mutants of a round that the next one mutates */
    EN_LATER = 8    /* a later round's candidates, as a part of the first one's */
};

static const char *describe(po_arena *arena, const en_ranked *r) {
    static const char *const names[] = {
        [EN_CONV] = "Conv",      [EN_MATMUL] = "MatMul",  [EN_ADD] = "Add",
        [EN_CONCAT] = "Concat",  [EN_SPLIT] = "Split",    [EN_POOL] = "AveragePool",
        [EN_MOVE] = "Transpose", [EN_RESHAPE] = "Reshape"};
    po_text text;
    po_text_init(&text, arena);
    po_text_printf(&text, "enumerated (depth %u, candidate %llu):", r->depth,
                   (unsigned long long)r->order);
    for (uint32_t n = 0; n < r->program.n_ops; n++) {
        const en_op *op = &r->program.op[n];
        po_text_printf(&text, "%s %s(", n ? ";" : "", names[op->kind]);
        for (uint32_t k = 0; k < op->n_in; k++) {
            const en_rt *rt = r->program.view[n][k];
            const en_shape *s = rt ? &rt->out : &r->program.shape[op->in[k]];
            po_text_puts(&text, k ? ", [" : "[");
            for (uint32_t i = 0; i < s->rank; i++)
                po_text_printf(&text, i ? ",%d" : "%d", s->d[i]);
            po_text_puts(&text, rt ? "] R/T" : "]");
        }
        po_text_puts(&text, ")");
    }
    if (r->program.n_out == 1 && r->program.last[0])
        po_text_puts(&text, "; R/T");
    return text.data;
}

/* Problems of one structure and size in one subprogram are searched once. */
typedef struct solved {
    po_hash target;
    const en_ranking *found;
    en_checker *checker; /* at true sizes; NULL where the search was at them */
} solved;

/* A mutant, for the next round. */
typedef struct offspring {
    const po_graph *graph; /* the list's */
    const char *name;
    double gain;    /* seconds by the roofline, against the subprogram */
    int32_t joined; /* products fewer than the subprogram's */
    bool exact;
} offspring;

typedef struct enumerating {
    po_ctx *ctx;
    po_arena *arena;  /* scratch */
    po_arena *search; /* of the search under way, used again by the next */
    en_maker *maker;
    const po_mutate_options *options;
    po_mutants *mutants;
    po_mutate_counts *counts;
    solved *solved;
    uint32_t n_solved, cap_solved;
    offspring *offspring; /* of the round under way */
    uint32_t n_offspring, cap_offspring;
} enumerating;

static po_hash problem_hash(const en_problem *p) {
    po_hash h = po_hash_u64(en_program_hash(&p->target), p->n_activations);
    for (uint32_t i = 0; i < p->target.n_slots; i++)
        h = po_hash_bytes(&p->target.shape[i], sizeof p->target.shape[i], h);
    return h;
}

/* Candidates of many channels take longer to judge: fewer of them then. */
static uint64_t budget_for(const en_problem *p, uint64_t budget) {
    double flops, bytes, made = 0;
    en_program_cost(&p->target, p->n_activations, &flops, &bytes);
    for (uint32_t k = 0; k < p->target.n_out; k++)
        made += (double)en_count(&p->target.shape[p->target.out[k]]);
    double products = flops / 2 / made;
    return products > EN_MANY_PRODUCTS ? (uint64_t)((double)budget * EN_MANY_PRODUCTS / products)
                                       : budget;
}

static const solved *solve(enumerating *e, const en_problem *problem, uint64_t budget) {
    po_hash target = problem_hash(problem);
    for (uint32_t i = 0; i < e->n_solved; i++)
        if (po_hash_equal(e->solved[i].target, target))
            return &e->solved[i];
    en_ranking *c = en_ranking_create(e->arena, problem);
    en_problem *small = PO_NEW(e->arena, en_problem);
    bool shrunk = en_shrink(problem, small, e->arena);
    budget = budget_for(shrunk ? small : problem, shrunk ? budget : budget / 4);
    en_search search = {.arena = e->search,
                        .maker = e->maker,
                        .problem = shrunk ? small : problem,
                        .depth = e->options->depth,
                        .moves = EN_LEVELS,
                        .most_rts = budget < EN_SMALL ? EN_FEW_RTS : EN_RTS,
                        .budget = budget,
                        .ctx = e->ctx,
                        .found = en_rank,
                        .user = c,
                        .counts = e->counts};
    if (shrunk || en_elements(problem) <= EN_MOST_ELEMENTS)
        en_search_run(&search);
    en_rank_done(c);
    po_arena_reset(e->search); /* what was found is at true sizes by now */
    en_checker *checker = shrunk && c->n ? en_checker_create(e->arena, problem) : NULL;
    PO_PUSH(e->arena, e->solved, e->n_solved, e->cap_solved, ((solved){target, c, checker}));
    return &e->solved[e->n_solved - 1];
}

/* Adds the best found for one part of a graph. */
static po_status add_best(enumerating *e, const en_problem *problem, const solved *s,
                          const offspring *parent, uint32_t most) {
    double flops, bytes;
    double before_cost = en_program_cost(&problem->target, problem->n_activations, &flops, &bytes);
    for (uint32_t i = 0, added = 0; i < s->found->n && added < most; i++) {
        const en_ranked *best = &s->found->best[i];
        po_graph *graph;
        if (s->checker && !en_agrees(s->checker, &best->program)) {
            e->counts->by_points++;
            continue;
        }
        PO_TRY(en_write(e->ctx, e->arena, problem, &best->program, &graph));
        const char *name = describe(e->arena, best);
        if (parent)
            name = po_arena_printf(e->arena, "%s; then %s", parent->name, name);
        if (!graph || !po_mutants_add(e->mutants, name, graph))
            continue;
        added++;
        offspring child = {.graph = graph,
                           .name = name,
                           .gain = best->cost - before_cost,
                           .joined = (int32_t)en_products(&problem->target) -
                                     (int32_t)en_products(&best->program),
                           .exact = best->share >= 1};
        if (parent) {
            child.gain += parent->gain;
            child.joined += parent->joined;
        }
        PO_PUSH(e->arena, e->offspring, e->n_offspring, e->cap_offspring, child);
    }
    return PO_OK;
}

/* Searches every part of a graph: the subprogram, or a mutant of it. */
static po_status enumerate_graph(enumerating *e, const po_graph *g, uint32_t n_activations,
                                 const offspring *parent, uint32_t keep, uint64_t budget) {
    uint32_t n_regions;
    const bool *weight = po_weights_of(g, e->arena, n_activations);
    const en_region *regions = en_regions(e->arena, g, parent != NULL, &n_regions);
    for (uint32_t r = 0; r < n_regions; r++) {
        en_problem *problem = PO_NEW(e->arena, en_problem);
        if (!en_read(e->arena, g, weight, &regions[r], problem))
            continue;
        const solved *s = solve(e, problem, budget / n_regions);
        PO_TRY(po_ctx_poll(e->ctx));
        PO_TRY(add_best(e, problem, s, parent, (keep + n_regions - 1) / n_regions));
    }
    return PO_OK;
}

/* Of those that agree everywhere, the best of those with the fewest products. */
static const offspring *most_joined(const enumerating *e) {
    const offspring *most = NULL;
    for (uint32_t i = 0; i < e->n_offspring; i++) {
        const offspring *o = &e->offspring[i];
        if (o->exact && (!most || o->joined > most->joined ||
                         (o->joined == most->joined && o->gain < most->gain)))
            most = o;
    }
    return most;
}

/* The best of a round that agree everywhere, and the one that joined most: joins lead to further
 * ones, though what they gain is no matter of the roofline. */
static uint32_t choose_parents(const enumerating *e, offspring parents[EN_PARENTS]) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_offspring; i++) {
        const offspring *o = &e->offspring[i];
        uint32_t at = n;
        if (!o->exact || (n == EN_PARENTS && o->gain >= parents[n - 1].gain))
            continue;
        if (n == EN_PARENTS)
            at--;
        else
            n++;
        for (; at > 0 && parents[at - 1].gain > o->gain; at--)
            parents[at] = parents[at - 1];
        parents[at] = *o;
    }
    const offspring *most = most_joined(e);
    bool in = !most || most->joined <= 0;
    for (uint32_t i = 0; i < n; i++)
        in |= parents[i].graph == (most ? most->graph : NULL);
    if (!in)
        parents[n < EN_PARENTS ? n++ : n - 1] = *most;
    return n;
}

po_status po_enumerate(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                       const po_mutate_options *options, po_mutants *mutants,
                       po_mutate_counts *counts) {
    double begin = po_now();
    enumerating e = {.ctx = ctx,
                     .arena = po_arena_child(arena),
                     .search = po_arena_child(arena),
                     .options = options,
                     .mutants = mutants,
                     .counts = counts};
    e.maker = en_maker_create(e.arena);
    uint32_t keep = options->keep ? options->keep : EN_KEEP;
    uint64_t budget = EN_POINT_WORK * (options->most ? options->most : EN_MOST);
    if (options->depth)
        PO_TRY(enumerate_graph(&e, sub->graph, sub->n_activations, NULL, keep, budget));
    for (uint32_t round = 1; round < options->rounds; round++) {
        offspring parents[EN_PARENTS];
        uint32_t n = choose_parents(&e, parents);
        if (options->seconds > 0 && po_now() - begin > options->seconds)
            break; /* between rounds: what is found does not depend on where within one */
        e.n_offspring = 0;
        for (uint32_t i = 0; i < n; i++)
            PO_TRY(enumerate_graph(&e, parents[i].graph, sub->n_activations, &parents[i],
                                   (keep + 7) / 8, budget / EN_LATER));
    }
    po_arena_free(e.search);
    po_arena_free(e.arena);
    counts->seconds += po_now() - begin;
    return po_ctx_poll(ctx);
}
