/* Loops for a program: what goes through memory, grids, the for loop, by a model of the machine. */
#include "superopt/gpu/internal.h"

#include <math.h>

/* What one core does: operations and bytes a second, seconds a step and a block. */
static const struct {
    double products, others, scalar, turned, copied, cache1, through, cache2, cache3, memory, step,
        block, iteration;
} machine = {1.3e11, 2e10, 1.5e9, 3e9, 8e9, 2e11, 6e10, 9e10, 3e10, 1.2e10, 1e-6, 5e-8, 2e-8};

/* Of a kernel's loops: for a GPU, where estimates order chunks less well than readings do, more are
 * kept and tried. */
enum { GPU_OPTIONS = 12, GPU_TRIED = 6, CPU_OPTIONS = 6, CPU_TRIED = 3 };
enum { LARGE = 24 << 20, FEW_BLOCKS = 4, FAR = 1024 };
static const double beside = 0.6; /* of the time of what memory gives: not hidden by the work */
static const double ALONE = 1e-5; /* seconds that are not worth another thread */

typedef struct options_of {
    search_kernel list[GPU_OPTIONS];
    uint32_t n;
} options_of;

typedef struct layout_of {
    bool fits;
    search_layout l;
} layout_of;

typedef struct scheduling {
    const search_problem *p;
    const po_search_options *options;
    po_search_counts *counts;
    uint64_t budget;
    const search_skeleton *s;
    bool made[SEARCH_NODES];
    po_hash_map *known; /* of options by skeleton, root and what is made */
    options_of *kernels;
    po_hash_map *laid; /* of a root's layouts by loop and grids */
    layout_of *layouts;
    uint32_t n_layouts, cap_layouts;
    uint32_t number, n_kernels, cap_kernels;
    search_plan *plans;
    uint32_t n, most, each; /* of each program */
} scheduling;

static double rate_of(const search_problem *p, double bytes) {
    return bytes <= (double)p->cache2 / 2 ? machine.cache2
           : bytes <= LARGE               ? machine.cache3
                                          : machine.memory;
}

int64_t search_chunk_in(const search_problem *p, const search_kernel *k, uint32_t class,
                        bool inside) {
    for (uint32_t i = 0; i < k->n_grid; i++)
        if (k->grid[i] == class)
            return k->chunk[i];
    return inside && k->loop == class ? k->step : p->extent[class];
}

/* Elements of one block (and one iteration of the for loop). */
double search_held(const search_problem *p, const search_kernel *k, uint64_t labels, bool inside) {
    double n = 1;
    for (; labels; labels &= labels - 1)
        n *= (double)search_chunk_in(p, k, (uint32_t)__builtin_ctzll(labels), inside);
    return n;
}

double search_blocks_without(const search_problem *p, const search_kernel *k, uint64_t labels) {
    double n = 1;
    for (uint32_t i = 0; i < k->n_grid; i++)
        if (!(labels >> k->grid[i] & 1))
            n *= (double)((p->extent[k->grid[i]] + k->chunk[i] - 1) / k->chunk[i]);
    return n;
}

int64_t search_rows(const search_problem *p, const search_skeleton *s, const search_kernel *k,
                    const search_layout *l, uint32_t i, uint32_t lane, uint32_t *row) {
    const search_node *n = &s->node[i], *product = &s->node[n->arg[0]];
    int64_t best = 1;
    *row = PO_NONE;
    if (n->kind != SEARCH_SUM || product->kind != SEARCH_FUNCTION ||
        product->function != PO_MU_TIMES || lane == PO_NONE || lane == n->class)
        return 1;
    for (uint32_t c = 0; c < p->n_classes; c++) {
        if (!(n->labels >> c & 1) || c == lane)
            continue;
        bool both = (s->node[product->arg[0]].labels >> c & 1) &&
                    (s->node[product->arg[1]].labels >> c & 1);
        int64_t size = search_chunk_in(p, k, c, l->stage[i] == SEARCH_INSIDE);
        if (!both && size > best) {
            best = size;
            *row = c;
        }
    }
    return best;
}

const double search_flops[PO_MU_FUNCTIONS] = {
#define PO_MU_FUNCTION(id, name, arity, number, what) [PO_MU_##id] = number,
#include "mugraph/functions.def"
#undef PO_MU_FUNCTION
};

/* The operand of a statement's sum that is copied to the block. */
static uint32_t copied_of(const scheduling *z, const search_kernel *k, const search_layout *l,
                          uint32_t i, bool *reduced, bool *turned) {
    if (l->stage[i] == SEARCH_OUTSIDE || z->s->node[i].kind != SEARCH_SUM)
        return PO_NONE;
    return search_copied(z->p, z->s, k, l, i, search_lane(z->p, z->s, l, i, reduced), turned);
}

/* Bytes that a block holds. */
static double held_in_block(const scheduling *z, const search_kernel *k, const search_layout *l) {
    double bytes = 0;
    for (uint32_t i = 0; i < k->root; i++)
        if (l->stage[i] != SEARCH_OUTSIDE && l->stage[i] != SEARCH_INLINE && !l->on_tile[i] &&
            l->over[i] == PO_NONE)
            bytes += 4 * search_held(z->p, k, z->s->node[i].labels, l->stage[i] == SEARCH_INSIDE);
    for (uint32_t i = 0; i <= k->root; i++) {
        bool turned, reduced;
        const uint32_t leaf = copied_of(z, k, l, i, &reduced, &turned);
        if (leaf != PO_NONE)
            bytes += 4 * search_held(z->p, k, z->s->node[leaf].labels, true);
    }
    return bytes;
}

/* Bytes of what the block holds that a statement goes through, all blocks and iterations. */
static double gone_through(const scheduling *z, const search_kernel *k, const search_layout *l,
                           uint32_t i, uint32_t at, double times) {
    const search_node *n = &z->s->node[at];
    double bytes = 0;
    for (uint32_t a = 0; a < search_arity(n); a++) {
        const uint32_t x = n->arg[a];
        if (l->stage[x] == SEARCH_INLINE)
            bytes += gone_through(z, k, l, i, x, times);
        else if (l->stage[x] != SEARCH_OUTSIDE && !l->on_tile[x])
            bytes += 4 * times *
                     search_held(z->p, k, z->s->node[x].labels, l->stage[i] == SEARCH_INSIDE);
    }
    return bytes;
}

/* Seconds of a kernel; false where it does not fit the cache. */
static bool estimate(const scheduling *z, search_kernel *k, const search_layout *l) {
    const search_problem *p = z->p;
    double work = 0, bytes = 0, blocks = search_blocks_without(p, k, 0);
    double shared = held_in_block(z, k, l), through = 0;
    const double turns =
        k->loop == PO_NONE ? 1 : ceil((double)p->extent[k->loop] / (double)k->step);
    bool read[SEARCH_NODES] = {false};
    for (uint32_t i = 0; i <= k->root; i++) {
        const search_node *n = &z->s->node[i];
        if (l->stage[i] == SEARCH_OUTSIDE)
            continue;
        uint64_t space = n->labels;
        for (uint32_t a = 0; a < search_arity(n); a++) {
            space |= z->s->node[n->arg[a]].labels;
            if (l->stage[n->arg[a]] == SEARCH_OUTSIDE)
                read[n->arg[a]] = true;
        }
        if (l->stage[i] != SEARCH_INLINE && !l->fused[i])
            through +=
                gone_through(z, k, l, i, i, blocks * (l->stage[i] == SEARCH_INSIDE ? turns : 1));
        double elements = search_elements(p, space) * search_blocks_without(p, k, space);
        bool reduced;
        uint32_t lane = search_lane(p, z->s, l, i, &reduced), row;
        int64_t rows = search_rows(p, z->s, k, l, i, lane, &row);
        if (n->kind == SEARCH_FUNCTION) {
            const search_node *user = NULL;
            for (uint32_t u = i + 1; u <= k->root && l->stage[i] == SEARCH_INLINE; u++)
                for (uint32_t a = 0; a < search_arity(&z->s->node[u]); a++)
                    if (z->s->node[u].arg[a] == i)
                        user = &z->s->node[u];
            if (!user || user->kind != SEARCH_SUM || n->function != PO_MU_TIMES)
                work += elements * search_flops[n->function] /
                        (lane == PO_NONE && l->stage[i] != SEARCH_INLINE ? machine.scalar
                                                                         : machine.others);
        } else {
            int64_t tile = rows < 6 ? rows : 6;
            double rate = lane == PO_NONE ? machine.scalar
                          : rows > 1      ? machine.products * (tile < 4 ? (double)tile / 4 : 1)
                                          : machine.others;
            work += 2 * elements / rate;
            bool turned;
            const uint32_t leaf = search_copied(p, z->s, k, l, i, lane, &turned);
            if (leaf != PO_NONE)
                work += search_elements(p, z->s->node[leaf].labels) *
                        search_blocks_without(p, k, z->s->node[leaf].labels) /
                        (turned ? machine.turned : machine.copied);
            /* What all rows read again, from further away than the second cache. */
            const search_node *x = &z->s->node[n->arg[0]];
            for (uint32_t a = 0; a < search_arity(x) && rows > 6; a++) {
                const search_node *o = &z->s->node[x->arg[a]];
                double region = 4 * search_held(p, k, o->labels, true);
                if (row != PO_NONE && !(o->labels >> row & 1) &&
                    region + shared > (double)p->cache2 * 3 / 4)
                    work += ((double)rows / 6 - 1) * 4 * search_elements(p, o->labels) *
                            search_blocks_without(p, k, o->labels) / machine.cache3;
            }
        }
        if (l->in_loop_sum[i] && (n->labels & ~((uint64_t)1 << n->class)))
            work += 2 * search_elements(p, n->labels) * search_blocks_without(p, k, n->labels) *
                    turns / machine.others;
    }
    for (uint32_t i = 0; i <= k->root; i++) {
        const search_node *n = &z->s->node[i];
        if (!read[i] || n->kind == SEARCH_NUMBER)
            continue;
        double size = 4 * search_elements(p, n->labels);
        bytes += size / rate_of(p, size);
        bytes += size * (search_blocks_without(p, k, n->labels) - 1) /
                 rate_of(p, size > (double)p->cache2 ? size : 0);
    }
    double out = 4 * search_elements(p, z->s->node[k->root].labels);
    bytes += out / rate_of(p, out);
    if (shared > (double)p->cache2 * 3 / 4)
        return false;
    work += through / (shared <= (double)p->cache1 * 3 / 4 ? machine.cache1 : machine.through);
    /* Other cores want blocks of their own. */
    if (blocks < FEW_BLOCKS && work + bytes > ALONE)
        work *= 1.5;
    k->seconds = (work > bytes ? work + bytes * beside : bytes + work / 4) + machine.step +
                 blocks * (machine.block + turns * machine.iteration);
    return true;
}

/* --- loops of a kernel --- */

/* Ends with 0. */
static const int64_t cpu_chunks[] = {1, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 0};
static const int64_t cpu_steps[] = {32, 64, 128, 256, 512, 1024, 0};

static void keep_option(options_of *o, const search_kernel *k, bool gpu) {
    const uint32_t most = gpu ? GPU_OPTIONS : CPU_OPTIONS;
    /* One of each kind of loop nest; for a GPU, of each step of the loop. */
    for (uint32_t i = 0; i < o->n; i++)
        if (o->list[i].loop == k->loop && o->list[i].n_grid == k->n_grid &&
            (!gpu || o->list[i].step == k->step) && (o->list[i].parts > 1) == (k->parts > 1) &&
            memcmp(o->list[i].grid, k->grid, k->n_grid * sizeof *k->grid) == 0) {
            if (k->seconds >= o->list[i].seconds)
                return;
            for (uint32_t j = i; j + 1 < o->n; j++)
                o->list[j] = o->list[j + 1];
            o->n--;
            break;
        }
    if (o->n == most && k->seconds >= o->list[o->n - 1].seconds)
        return;
    uint32_t at = o->n < most ? o->n++ : o->n - 1;
    for (; at > 0 && k->seconds < o->list[at - 1].seconds; at--)
        o->list[at] = o->list[at - 1];
    o->list[at] = *k;
}

/* The layout for these loops; NULL: they do not admit the program. */
static const search_layout *layout_for(scheduling *z, const search_kernel *k) {
    uint64_t grids = 0;
    for (uint32_t i = 0; i < k->n_grid; i++)
        grids |= (uint64_t)1 << k->grid[i];
    po_hash key = po_hash_u64(po_hash_u64((po_hash){2, 0}, grids), k->loop);
    uint32_t known = po_hash_map_get(z->laid, key);
    if (known == PO_NONE) {
        layout_of one;
        one.fits = (z->p->gpu ? gpu_lay : search_lay)(z->p, z->s, k, z->made, &one.l);
        known = z->n_layouts;
        po_hash_map_put(z->laid, key, known);
        PO_PUSH(z->p->arena, z->layouts, z->n_layouts, z->cap_layouts, one);
    }
    return z->layouts[known].fits ? &z->layouts[known].l : NULL;
}

/* Looks at a loop nest; false where no longer step of this loop will do either. */
static bool try_nest(scheduling *z, search_kernel *k, options_of *o) {
    z->budget--;
    z->counts->states++;
    if (z->budget % SEARCH_POLL == 0 && po_ctx_poll(z->p->ctx) != PO_OK)
        z->budget = 0; /* po_search asks again */
    int64_t extent = k->loop == PO_NONE ? 1 : z->p->extent[k->loop];
    const search_layout *l = NULL;
    if (k->loop == PO_NONE || (extent > k->step && (!z->p->gpu || extent % k->step == 0)))
        l = layout_for(z, k);
    if (!l || (z->p->gpu && !gpu_fits_blocks(z->p, z->s, k, l))) {
        z->counts->by_shape++;
        return false;
    }
    if (z->p->gpu ? gpu_estimate(z->p, z->s, k, l) : estimate(z, k, l))
        keep_option(o, k, z->p->gpu != NULL);
    else
        z->counts->by_shape++;
    return true;
}

static void try_loops(scheduling *z, search_kernel *k, uint64_t inner, options_of *o) {
    for (uint32_t c = 0; c <= z->p->n_classes; c++) {
        bool grid = false, none = c == z->p->n_classes;
        for (uint32_t i = 0; i < k->n_grid; i++)
            grid |= !none && k->grid[i] == c;
        if (grid || (!none && !(inner >> c & 1)))
            continue;
        const int64_t *steps = z->p->gpu ? gpu_steps : cpu_steps;
        for (uint32_t i = 0; i < 1 || (!none && steps[i]); i++) {
            if (!none && !z->p->gpu && search_panel(z->p, c) && steps[i] % search_panel(z->p, c))
                continue;
            if (z->budget == 0)
                return;
            k->loop = none ? PO_NONE : c;
            k->step = none ? 0 : steps[i];
            k->staged = !none && z->p->extent[c] >= FAR;
            k->parts = 0;
            if (!try_nest(z, k, o))
                break; /* longer steps will not do either */
            for (k->parts = 2; z->p->gpu && gpu_splits(z->p, z->s, k) && z->budget; k->parts *= 2)
                if (!try_nest(z, k, o))
                    break;
        }
    }
}

static bool is_chunk(const scheduling *z, uint32_t class, int64_t chunk, bool last, bool alone) {
    int64_t extent = z->p->extent[class];
    if (chunk >= extent && !(z->p->gpu && chunk == 1))
        return false;
    if (z->p->gpu)
        return gpu_chunk(z->p, class, chunk, last);
    int64_t panel = last ? search_panel(z->p, class) : 0;
    return !(panel && chunk % panel) && !(last && chunk < PO_MU_VECTOR) &&
           !(!last && chunk == 1 && extent > 64 && !alone);
}

/* Grid loops over the classes from `at` on. */
static void try_grids(scheduling *z, search_kernel *k, const uint32_t *classes, uint32_t n,
                      uint32_t at, uint64_t inner, options_of *o) {
    if (at == n) {
        try_loops(z, k, inner, o);
        return;
    }
    try_grids(z, k, classes, n, at + 1, inner, o);
    if (k->n_grid == PO_MU_MAX_GRID)
        return;
    const int64_t *chunks = z->p->gpu ? gpu_chunks : cpu_chunks;
    for (size_t i = 0; chunks[i]; i++) {
        if (!is_chunk(z, classes[at], chunks[i], at == n - 1, n == 1))
            continue;
        uint32_t own = k->n_grid++;
        k->grid[own] = classes[at];
        k->chunk[own] = chunks[i];
        try_grids(z, k, classes, n, at + 1, inner, o);
        k->n_grid = own;
    }
}

static const options_of *options_for(scheduling *z, uint32_t root) {
    const search_skeleton *s = z->s;
    po_hash key = po_hash_u64(po_hash_u64((po_hash){1, 0}, z->number), root);
    uint64_t inner = 0, made = 0;
    bool in[SEARCH_NODES] = {false};
    in[root] = true;
    for (uint32_t i = root + 1; i-- > 0;)
        for (uint32_t k = 0; in[i] && k < search_arity(&s->node[i]); k++) {
            uint32_t a = s->node[i].arg[k];
            inner |= s->node[a].labels;
            made |= z->made[a] ? (uint64_t)1 << a : 0;
            in[a] |= !z->made[a];
        }
    key = po_hash_u64(key, made);
    uint32_t known = po_hash_map_get(z->known, key);
    if (known != PO_NONE)
        return &z->kernels[known];
    options_of o = {0};
    z->laid = po_hash_map_create(z->p->arena);
    z->n_layouts = 0;
    uint32_t classes[PO_FORM_CLASSES], n = 0;
    for (uint32_t place = 0; place < z->p->n_classes; place++)
        for (uint32_t c = 0; c < z->p->n_classes; c++)
            if (z->p->place[c] == place && (s->node[root].labels >> c & 1))
                classes[n++] = c;
    search_kernel k = {.root = root};
    try_grids(z, &k, classes, n, 0, inner | s->node[root].labels, &o);
    po_hash_map_put(z->known, key, z->n_kernels);
    PO_PUSH(z->p->arena, z->kernels, z->n_kernels, z->cap_kernels, o);
    return &z->kernels[z->n_kernels - 1];
}

/* --- plans --- */

/* Of plans for a GPU whose kernels are as many and take as long, which are mostly the same ones by
 * another formula, one is enough: readings are few, and others are worth one. */
static bool has_twin(const scheduling *z, const search_plan *plan) {
    bool twin = false;
    for (uint32_t i = 0; i < z->n; i++)
        twin |= z->plans[i].n == plan->n &&
                fabs(z->plans[i].seconds - plan->seconds) < 0.002 * plan->seconds;
    return twin;
}

static bool is_same_program(const search_plan *a, const search_plan *b) {
    return a->number == b->number;
}

static bool has_as_many_kernels(const search_plan *a, const search_plan *b) {
    return a->n == b->n;
}

static bool is_same_way(const search_plan *a, const search_plan *b) {
    return is_same_program(a, b) && has_as_many_kernels(a, b);
}

/* Whether the last kernels, which mostly are the longest, go through the same loop. */
static bool is_same_loop(const search_plan *a, const search_plan *b) {
    const search_kernel *k = &a->kernel[a->n - 1], *j = &b->kernel[b->n - 1];
    return k->loop == j->loop && k->step == j->step;
}

/* Whether there is room for one more that is like others: the worst of too many goes. */
static bool has_room(scheduling *z, const search_plan *plan,
                     bool (*alike)(const search_plan *, const search_plan *), uint32_t most) {
    uint32_t same = 0, worst = PO_NONE;
    for (uint32_t i = 0; i < z->n; i++)
        if (alike(&z->plans[i], plan)) {
            same++;
            worst = i;
        }
    if (same < most)
        return true;
    z->counts->by_bound++;
    if (plan->seconds >= z->plans[worst].seconds)
        return false;
    z->n--;
    for (uint32_t i = worst; i < z->n; i++)
        z->plans[i] = z->plans[i + 1];
    return true;
}

static void keep_plan(scheduling *z, const search_plan *plan) {
    if (z->p->gpu && has_twin(z, plan)) {
        z->counts->by_bound++;
        return;
    }
    /* Few of each program: estimates are rough, and other programs are worth a reading. */
    if (!has_room(z, plan, z->p->gpu ? is_same_program : is_same_way,
                  z->p->gpu ? z->each : (z->each + 1) / 2) ||
        !has_room(z, plan, z->p->gpu ? is_same_loop : has_as_many_kernels, (z->most + 2) / 3))
        return;
    if (z->n == z->most && plan->seconds >= z->plans[z->n - 1].seconds) {
        z->counts->by_bound++;
        return;
    }
    uint32_t at = z->n < z->most ? z->n++ : z->n - 1;
    for (; at > 0 && plan->seconds < z->plans[at - 1].seconds; at--)
        z->plans[at] = z->plans[at - 1];
    z->plans[at] = *plan;
}

/* Whether it can go through memory: what is there or a number does not. */
static bool is_cut(const search_skeleton *s, uint32_t node) {
    return s->node[node].kind != SEARCH_LEAF && s->node[node].kind != SEARCH_NUMBER;
}

/* With these nodes going through memory. */
static void with_cuts(scheduling *z, const uint32_t *cuts, uint32_t n) {
    search_plan plan = {.skeleton = z->s, .number = z->number, .n = n + 1};
    memset(z->made, 0, sizeof z->made);
    for (uint32_t i = 0; i < n; i++)
        z->made[cuts[i]] = true;
    for (uint32_t i = 0; i < n; i++) {
        z->made[cuts[i]] = false;
        const options_of *o = options_for(z, cuts[i]);
        z->made[cuts[i]] = true;
        if (!o->n)
            return;
        plan.kernel[i] = o->list[0];
        plan.seconds += o->list[0].seconds;
        if (z->n == z->most && plan.seconds > z->plans[z->n - 1].seconds) {
            z->counts->by_bound++;
            return;
        }
    }
    const options_of *o = options_for(z, z->s->n - 1);
    double before = plan.seconds;
    for (uint32_t i = 0; i < o->n && i < (z->p->gpu ? GPU_TRIED : CPU_TRIED); i++) {
        plan.kernel[n] = o->list[i];
        plan.seconds = before + o->list[i].seconds;
        keep_plan(z, &plan);
    }
}

uint32_t search_schedules(const search_problem *p, const search_skeleton *skeletons, uint32_t n,
                          const po_search_options *options, po_search_counts *counts,
                          search_plan *plans, uint32_t most) {
    scheduling z = {.p = p,
                    .options = options,
                    .counts = counts,
                    .budget = options->schedules,
                    .known = po_hash_map_create(p->arena),
                    .plans = plans,
                    .most = most,
                    .each = n > 1 ? (most + 2) / 3 : most};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t cuts[2];
        z.s = &skeletons[i];
        z.number = i;
        with_cuts(&z, cuts, 0);
        for (uint32_t a = 0; a + 1 < z.s->n; a++) {
            if (!is_cut(z.s, a))
                continue;
            cuts[0] = a;
            with_cuts(&z, cuts, 1);
            for (uint32_t b = a + 1; b + 1 < z.s->n; b++) {
                cuts[1] = b;
                if (is_cut(z.s, b))
                    with_cuts(&z, cuts, 2);
            }
        }
    }
    return z.n;
}
