/* What a kernel takes on a GPU. */
#include "superopt/gpu/internal.h"

#include <math.h>

const int64_t gpu_chunks[] = {1, 8, 16, 32, 64, 128, 0};
const int64_t gpu_steps[] = {32, 64, 128, 256, 0};

/* Seconds, read on an H200 (docs/gpu-schedules.md): that a launch adds behind another in a graph,
 * that a block takes to start and end, that a load is under way, of a chunk besides its work, that
 * what a chunk makes for the block takes and its elements by thread, of one step of a warp's
 * product. */
static const double launched = 1.2e-6, start = 3e-7, load = 6e-7, barrier = 2.5e-7;
static const double made = 1.5e-7, element = 8e-9, on_tile = 2e-9, step = 7e-9, tile = 2e-8;
static const double products_reach = 0.6, scalar_reach = 0.3, memory_reach = 0.85, share = 1.3;
enum {
    MOST_BLOCKS = 8, /* of a multiprocessor */
    SECTOR = 64,     /* of memory, bytes */
    SMALL_TILE = 64,
    THREADS = 128,
    BUFFERS = 4, /* of a pipeline, as the printer has them (codegen/cuda) */
    ROOM = 64 << 10
};

bool gpu_chunk(const search_problem *p, uint32_t class, int64_t chunk, bool last) {
    (void)p;
    (void)class;
    return !last || chunk >= 16;
}

bool gpu_splits(const search_problem *p, const search_skeleton *s, const search_kernel *k) {
    if (k->loop == PO_NONE || k->n_grid + 1 > PO_MU_MAX_GRID ||
        (s->node[k->root].labels >> k->loop & 1))
        return false;
    int64_t extent = p->extent[k->loop];
    return extent % PO_MU_VECTOR == 0 && extent % (k->parts * k->step) == 0 &&
           extent / k->parts > k->step &&
           search_blocks_without(p, k, 0) * (double)k->parts <= 8.0 * p->gpu->sms;
}

void gpu_combine_chunks(const search_problem *p, const search_kernel *k,
                        int64_t chunk[PO_MU_MAX_GRID]) {
    double blocks = search_blocks_without(p, k, 0);
    for (uint32_t i = 0; i < k->n_grid; i++)
        chunk[i] = k->chunk[i];
    while (blocks < 2.0 * p->gpu->sms) {
        uint32_t best = PO_NONE;
        for (uint32_t i = 0; i < k->n_grid; i++)
            if (chunk[i] > (i + 1 == k->n_grid ? 32 : 1) && chunk[i] % 2 == 0 &&
                (best == PO_NONE || chunk[i] > chunk[best]))
                best = i;
        if (best == PO_NONE)
            return;
        chunk[best] /= 2;
        blocks *= 2;
    }
}

typedef struct block {
    double tensor, scalar;   /* FLOPs */
    double bytes, per_round; /* read and written by a block; by an iteration of its loop */
    double shared, wide;     /* bytes of all blocks, by the L2; each once, by memory */
    double chunk;            /* bytes of a block that its loop fetches, once */
    double chain;            /* seconds that a chunk's steps wait for one another */
    double iterations, blocks;
} block;

/* Functions have units of their own. */
static double operations(po_mu_function f) {
    return fmin(search_flops[f], 6);
}

static double parts_of(const search_kernel *k) {
    return k->parts > 1 ? (double)k->parts : 1;
}

static double padded(double n, double to) {
    return ceil(n / to) * to;
}

/* Elements of one side of a product, of the block. */
static double side(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                   uint32_t of, uint32_t other) {
    return search_held(p, k, s->node[of].labels & ~s->node[other].labels, true);
}

static void add_product(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                        uint32_t i, const uint32_t operand[2], double times, block *b) {
    double m = side(p, s, k, operand[0], operand[1]), n = side(p, s, k, operand[1], operand[0]);
    double depth = padded((double)search_chunk_in(p, k, s->node[i].class, true), 16);
    double area = fmin(padded(m, 16) * padded(n, 8), padded(m, 8) * padded(n, 16));
    if (p->math == PO_GPU_F32 || m * n < SMALL_TILE) {
        b->scalar += 2 * m * n * depth * times;
        return;
    }
    b->tensor += 2 * area * depth * times;
    double tiles = area / (16 * 8) * 32 / THREADS, steps = depth / 16 * fmin(1, tiles);
    b->chain += fmax(1, steps) * (step + tile * fmax(1, tiles));
}

/* Bytes that reading it moves: whole sectors of neighbouring elements. */
static double moved(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                    uint32_t i, double elements) {
    double size = (double)po_mu_bytes(gpu_device_type(p, s, i));
    uint32_t last = PO_NONE;
    for (uint32_t c = 0; c < p->n_classes; c++)
        if ((s->node[i].labels >> c & 1) && (last == PO_NONE || p->place[c] > p->place[last]))
            last = c;
    if (s->node[i].kind == SEARCH_LEAF) {
        const po_mu_tensor *t = &p->naive->tensors[s->node[i].tensor];
        last = t->rank ? p->axes[s->node[i].tensor][t->rank - 1] : PO_NONE;
    }
    double run = last == PO_NONE ? 1 : (double)search_chunk_in(p, k, last, true);
    return elements * size * fmax(1, SECTOR / (size * run));
}

static void add_reads(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                      const search_layout *l, const bool *staged, uint32_t i, block *b) {
    const search_node *n = &s->node[i];
    bool inside = k->loop != PO_NONE && (n->labels >> k->loop & 1);
    double held = search_held(p, k, n->labels, inside);
    double bytes = moved(p, s, k, i, held), all = search_elements(p, n->labels);
    double size = (double)po_mu_bytes(gpu_device_type(p, s, i));
    bool copied = staged[i] || inside;
    (void)l;
    b->bytes += bytes * (inside ? b->iterations : 1);
    b->per_round += inside || k->loop == PO_NONE ? bytes : 0;
    if (n->kind == SEARCH_LEAF)
        b->wide += all * size;
    double copy = copied ? held * (staged[i] ? (double)po_mu_bytes(p->half) : size) : 0;
    /* Two of them where the loop runs: one is filled while the other is read. */
    b->shared += copy * (inside ? 2 : 1);
    b->chunk += inside ? copy : 0;
}

static bool fits(const block *b) {
    return b->shared <= GPU_SHARED;
}

/* Seconds of one launch of such blocks: of a chunk the longest of what its steps wait for one
 * another, of what all blocks beside it compute, and of its copies, of which some are under way. */
static double launch(const po_gpu *gpu, po_gpu_math math, const block *b) {
    double sms = gpu->sms, each = ceil(b->blocks / sms);
    double resident = fmin(MOST_BLOCKS, floor((double)gpu->shared_sm / (b->shared + 1024)));
    double at_once = fmin(each, fmax(1, resident)), rounds = ceil(each / fmax(1, resident));
    double compute = (b->tensor / (po_gpu_peak(gpu, math, false) / sms * products_reach) +
                      b->scalar / (gpu->f32 / sms * scalar_reach)) /
                     b->iterations * at_once;
    double rate = share * gpu->l2_rate / sms, fixed = b->shared - b->chunk * 2;
    double ahead = b->chunk > 0 ? floor((ROOM - fixed) / b->chunk) - 1 : 1;
    double copies = b->per_round * at_once / rate;
    double waits = (load + copies) / fmin(BUFFERS - 1, fmax(1, ahead));
    double chunk = fmax(fmax(b->chain, compute), fmax(copies, waits));
    double rest = fmax(0, b->bytes - b->per_round * b->iterations) * at_once / rate;
    double blocks = rounds * (start + b->iterations * chunk + rest);
    double wide = fmax(b->wide / (gpu->dram * memory_reach),
                       b->blocks * b->bytes / (gpu->l2_rate * memory_reach));
    return launched + fmax(blocks, wide) + 0.2 * fmin(blocks, wide);
}

/* The step that adds up parts. */
static double combining(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                        const search_layout *l) {
    block b = {.iterations = 1};
    int64_t chunk[PO_MU_MAX_GRID];
    search_kernel small = *k;
    gpu_combine_chunks(p, k, chunk);
    memcpy(small.chunk, chunk, sizeof chunk);
    small.loop = PO_NONE;
    small.parts = 0;
    b.blocks = search_blocks_without(p, &small, 0);
    for (uint32_t i = 0; i <= k->root; i++) {
        const search_node *n = &s->node[i];
        double held = search_held(p, &small, n->labels, false);
        if (l->in_loop_sum[i]) {
            b.bytes += 4 * held * (double)k->parts;
            b.scalar += 2 * held * (double)k->parts;
            b.shared += 4 * held;
        } else if (l->stage[i] == SEARCH_AFTER || l->stage[i] == SEARCH_BEFORE) {
            b.scalar += held * operations(n->function);
        }
    }
    b.per_round = b.bytes;
    return launch(p->gpu, p->math, &b);
}

/* Seconds of a chunk for what is neither copied nor a product, over these labels: a map or a sum
 * over a product's tile stays in registers. */
static double made_in_loop(const search_problem *p, const search_skeleton *s,
                           const search_kernel *k, const search_layout *l, uint64_t space) {
    double elements = search_held(p, k, space, true);
    uint32_t operand[2];
    for (uint32_t j = 0; j <= k->root; j++)
        if (gpu_is_product(p, s, l, j, operand) && s->node[j].labels == space &&
            elements >= SMALL_TILE && p->math != PO_GPU_F32)
            return on_tile * elements / THREADS;
    return made + element * elements / THREADS;
}

bool gpu_estimate(const search_problem *p, const search_skeleton *s, search_kernel *k,
                  const search_layout *l) {
    block b = {.iterations = 1, .chain = barrier};
    bool read[SEARCH_NODES] = {false}, staged[SEARCH_NODES] = {false};
    bool factor[SEARCH_NODES] = {false}, inside[SEARCH_NODES] = {false}, sums = false;
    uint32_t operand[2];
    double parts = parts_of(k);
    if (k->loop != PO_NONE)
        b.iterations = (double)(p->extent[k->loop] / k->step) / parts;
    b.blocks = search_blocks_without(p, k, 0) * parts;
    for (uint32_t i = k->root + 1; i-- > 0;) {
        const search_node *n = &s->node[i];
        inside[i] |= l->stage[i] == SEARCH_INSIDE;
        if (l->stage[i] == SEARCH_OUTSIDE)
            continue;
        bool product = gpu_is_product(p, s, l, i, operand);
        for (uint32_t a = 0; a < search_arity(n); a++) {
            read[n->arg[a]] |= l->stage[n->arg[a]] == SEARCH_OUTSIDE;
            if (l->stage[n->arg[a]] == SEARCH_INLINE)
                inside[n->arg[a]] |= inside[i];
        }
        for (uint32_t a = 0; a < 2 && product; a++) {
            staged[operand[a]] |= l->stage[operand[a]] == SEARCH_OUTSIDE;
            if (s->node[operand[a]].kind == SEARCH_SUM) /* rounded to a tensor of its own */
                b.shared += (double)po_mu_bytes(p->half) *
                            search_held(p, k, s->node[operand[a]].labels, inside[i]);
        }
        if (product)
            factor[n->arg[0]] = true;
        uint64_t space = n->labels;
        for (uint32_t a = 0; a < search_arity(n); a++)
            space |= s->node[n->arg[a]].labels;
        double times = inside[i] ? b.iterations : 1;
        double elements = search_held(p, k, space, inside[i]) * times;
        double held = search_held(p, k, n->labels, inside[i] && !l->in_loop_sum[i]);
        if (l->stage[i] != SEARCH_INLINE && !product && inside[i])
            b.chain += made_in_loop(p, s, k, l, space);
        if (product)
            add_product(p, s, k, i, operand, times, &b);
        else if (n->kind == SEARCH_FUNCTION)
            b.scalar += factor[i] ? 0 : elements * operations(n->function);
        else
            b.scalar += elements;
        if (l->rescaled[i])
            b.scalar += held * b.iterations;
        sums |= l->in_loop_sum[i];
        if (l->stage[i] != SEARCH_INLINE && (i < k->root || n->kind != SEARCH_FUNCTION))
            b.shared += held * (double)po_mu_bytes(gpu_shared_type(p, s, l, k->root, i));
        if (k->parts > 1 && l->in_loop_sum[i]) {
            b.bytes += 4 * held;
            b.wide += 0;
        }
    }
    for (uint32_t i = 0; i <= k->root; i++)
        if (read[i] && s->node[i].kind != SEARCH_NUMBER)
            add_reads(p, s, k, l, staged, i, &b);
    if (k->parts > 1 && !sums)
        return false;
    if (k->parts <= 1) {
        double out = search_elements(p, s->node[k->root].labels);
        double size = k->root + 1 == s->n ? (double)po_mu_bytes(p->naive->tensors[p->target].type)
                                          : (double)po_mu_bytes(gpu_device_type(p, s, k->root));
        b.bytes += out * size / b.blocks;
        b.wide += k->root + 1 == s->n ? out * size : 0;
    }
    if (!fits(&b))
        return false;
    k->seconds = launch(p->gpu, p->math, &b);
    if (k->parts > 1)
        k->seconds += combining(p, s, k, l);
    return true;
}
