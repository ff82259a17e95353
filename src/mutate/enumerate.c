/* Blind enumeration: reads a subprogram, searches it at small sizes, carries what agrees inside to
 * the true sizes, and keeps the best by roofline cost. */
#include "mutate/enumerate.h"

enum {
    EN_DEPTH = 4,
    EN_LEVELS = 4,   /* moves of all R/Ts of a program */
    EN_KEEP = 32,    /* mutants */
    EN_RANKED = 256, /* found ones that are remembered until the search ends */
    EN_BUDGET = 1 << 22
};

typedef struct ranked {
    en_program program; /* at true sizes */
    double cost, share;
    uint64_t order;
    po_hash key; /* what it costs: of programs alike in this, the first stays */
    uint8_t depth, moves;
} ranked;

typedef struct collecting {
    po_arena *arena;
    const en_problem *problem; /* at true sizes */
    po_hash original;
    ranked *best; /* by cost, then order */
    uint32_t n;
} collecting;

/* What is computed, whatever moves lead to it: its operators and their operands' shapes, and
 * whether it agrees everywhere. */
static po_hash key_of(const en_program *p, double bytes, bool exact) {
    po_hash h = po_hash_u64((po_hash){1, exact}, (uint64_t)bytes);
    for (uint32_t n = 0; n < p->n_ops; n++) {
        const en_op *op = &p->op[n];
        h = po_hash_u64(h, op->kind);
        for (uint32_t k = 0; k < op->n_in; k++) {
            const en_shape *s = p->view[n][k] ? &p->view[n][k]->out : &p->shape[op->in[k]];
            for (uint32_t i = 0; i < s->rank; i++)
                h = po_hash_u64(h, (uint64_t)s->d[i] << 8 | i);
        }
        if (op->kind == EN_CONV || op->kind == EN_POOL)
            h = po_hash_bytes(op->stride, 2 * sizeof op->stride, h);
    }
    return h;
}

static bool before(const ranked *a, const ranked *b) {
    return a->cost != b->cost ? a->cost < b->cost : a->order < b->order;
}

static bool collect(void *user, const en_found *found) {
    collecting *c = user;
    ranked r = {
        .order = found->order, .share = found->share, .depth = found->depth, .moves = found->moves};
    double flops, bytes;
    if (!en_lift(c->arena, &found->program, c->problem, &r.program) ||
        po_hash_equal(en_program_hash(&r.program), c->original))
        return true;
    r.cost = en_program_cost(&r.program, c->problem->n_activations, &flops, &bytes);
    r.key = key_of(&r.program, bytes, found->share >= 1);
    for (uint32_t i = 0; i < c->n; i++)
        if (po_hash_equal(c->best[i].key, r.key))
            return true;
    uint32_t at = c->n;
    if (c->n == EN_RANKED) {
        if (!before(&r, &c->best[c->n - 1]))
            return true;
        at--;
    } else {
        c->n++;
    }
    for (; at > 0 && before(&r, &c->best[at - 1]); at--)
        c->best[at] = c->best[at - 1];
    c->best[at] = r;
    return true;
}

static const char *describe(po_arena *arena, const ranked *r) {
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

po_status po_enumerate(po_ctx *ctx, po_arena *arena, const po_subprogram *sub,
                       const po_mutate_options *options, po_mutants *mutants,
                       po_mutate_counts *counts) {
    double begin = po_now();
    po_arena *scratch = po_arena_child(arena);
    en_problem *problem = PO_NEW(scratch, en_problem), *small = PO_NEW(scratch, en_problem);
    bool read = false;
    uint32_t keep = options->keep ? options->keep : EN_KEEP;
    PO_TRY(en_read(ctx, scratch, sub, problem, &read));
    if (read && options->depth) {
        bool shrunk = en_shrink(problem, small, scratch);
        collecting c = {.arena = scratch,
                        .problem = problem,
                        .original = en_program_hash(&problem->target),
                        .best = PO_NEW_N(scratch, ranked, EN_RANKED)};
        en_search search = {.arena = scratch,
                            .problem = shrunk ? small : problem,
                            .depth = options->depth,
                            .moves = EN_LEVELS,
                            .budget = EN_BUDGET,
                            .found = collect,
                            .user = &c,
                            .counts = counts};
        en_search_run(&search);
        uint32_t added = 0;
        for (uint32_t i = 0; i < c.n && added < keep; i++) {
            po_graph *graph;
            if (shrunk && !en_agrees(scratch, problem, &c.best[i].program)) {
                counts->by_points++;
                continue;
            }
            PO_TRY(en_write(ctx, scratch, problem, &c.best[i].program, &graph));
            if (graph)
                added += po_mutants_add(mutants, describe(scratch, &c.best[i]), graph);
        }
    }
    po_arena_free(scratch);
    counts->seconds += po_now() - begin;
    return PO_OK;
}
