/* All candidates run on the same drawn inputs in one child; one that ends the child has failed, and
 * a new child goes on behind it. A result is right within k u S, u being the unit of the coarsest
 * type in the muGraph. */
#include "cost/cuda/program.h"

#include "cost/cuda/internal.h"
#include "cost/isolate.h"
#include "cost/timing_internal.h"
#include "mugraph/eval.h"

#include <math.h>
#include <stdio.h>

enum { TAKES = 9, MOST_TIMES = 64, TRY_SECONDS = 300, PORTS = 64, WHY = 400 };
static const double launch_aim = 400e-6;
static const double usual_k = 16;

/* A tensor that the caller and the program share. */
typedef struct port {
    const po_mu_tensor *tensor; /* NULL: this number is none */
    int64_t n;
    double *values, *sum; /* of outputs: in float64, and S */
    void *data;           /* of inputs and weights: as stored */
} port;

typedef struct ports {
    port in[PORTS], weight[PORTS], out[PORTS];
    uint32_t n_in, n_weight, n_out;
} ports;

/* Numbers as models have them: with weights of 1 a few products in a row leave the range of f16,
 * and scores far apart make softmax all or nothing. */
static double scale_of(const po_mu_tensor *t) {
    int64_t longest = 1;
    for (uint32_t x = 0; x < t->rank; x++)
        longest = t->dims[x] > longest ? t->dims[x] : longest;
    return t->place == PO_MU_INPUT ? 0.5 : t->rank < 2 ? 1 : 1 / sqrt((double)longest);
}

static po_status find_ports(po_ctx *ctx, po_arena *arena, const po_mu *mu, uint64_t seed,
                            ports *p) {
    *p = (ports){.n_in = 0};
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        bool in = t->place == PO_MU_INPUT, weight = t->place == PO_MU_WEIGHT;
        if (!in && !weight && t->place != PO_MU_OUTPUT)
            continue;
        if (t->number >= PORTS)
            return po_fail(ctx, PO_UNSUPPORTED, "'%s': more than %d inputs or outputs", mu->name,
                           (int)PORTS);
        port *at = in ? &p->in[t->number] : weight ? &p->weight[t->number] : &p->out[t->number];
        uint32_t *n = in ? &p->n_in : weight ? &p->n_weight : &p->n_out;
        *n = t->number + 1 > *n ? t->number + 1 : *n;
        *at = (port){.tensor = t, .n = po_mu_elements(t)};
        at->values = PO_NEW_N(arena, double, at->n + 1);
        if (!in && !weight) {
            at->sum = PO_NEW_N(arena, double, at->n + 1);
            continue;
        }
        at->data = po_arena_alloc(arena, (size_t)(at->n * po_mu_bytes(t->type)) + 1);
        for (int64_t e = 0; e < at->n; e++)
            at->values[e] =
                scale_of(t) * po_random_normal(seed, 2 * t->number + weight, (uint64_t)e);
        po_cuda_store(t->type, at->values, at->n, at->data);
        po_cuda_load(t->type, at->data, at->n, at->values);
    }
    return PO_OK;
}

static po_status evaluate(po_ctx *ctx, po_arena *arena, const po_mu *mu, const ports *p) {
    const double **in = PO_NEW_N(arena, const double *, PORTS);
    const double **weight = PO_NEW_N(arena, const double *, PORTS);
    double **out = PO_NEW_N(arena, double *, PORTS), **sum = PO_NEW_N(arena, double *, PORTS);
    for (uint32_t i = 0; i < PORTS; i++) {
        in[i] = p->in[i].values;
        weight[i] = p->weight[i].values;
        out[i] = p->out[i].values;
        sum[i] = p->out[i].sum;
    }
    return po_mu_eval(ctx, mu, in, weight, out, sum);
}

/* --- a plan of one program --- */

static bool same_port(const po_mu_tensor *a, const po_mu_tensor *b) {
    if (!a || !b || a->type != b->type || po_mu_elements(a) != po_mu_elements(b))
        return a == b;
    return true;
}

static bool same_ports(const po_mu *mu, const ports *p) {
    uint32_t n = 0, known = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        const port *ports_of = t->place == PO_MU_INPUT    ? p->in
                               : t->place == PO_MU_WEIGHT ? p->weight
                               : t->place == PO_MU_OUTPUT ? p->out
                                                          : NULL;
        if (!ports_of)
            continue;
        if (t->number >= PORTS || !same_port(ports_of[t->number].tensor, t))
            return false;
        n++;
    }
    for (uint32_t i = 0; i < PORTS; i++)
        known += (uint32_t)((p->in[i].tensor != NULL) + (p->weight[i].tensor != NULL) +
                            (p->out[i].tensor != NULL));
    return n == known;
}

static void place_ports(const port *list, uint32_t n, po_cuda_buffer *buffers, uint32_t *at,
                        po_cuda_place *places) {
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = list[i].tensor ? list[i].n * po_mu_bytes(list[i].tensor->type) : 0;
        buffers[*at] = (po_cuda_buffer){bytes, list[i].data};
        places[i] = (po_cuda_place){(*at)++, 0};
    }
}

static po_cuda_plan plan_of(po_arena *arena, const ports *p, const po_cuda_candidate *c) {
    po_cuda_buffer *buffers = PO_NEW_N(arena, po_cuda_buffer, 3 * PORTS + 1);
    po_cuda_place *in = PO_NEW_N(arena, po_cuda_place, PORTS);
    po_cuda_place *weight = PO_NEW_N(arena, po_cuda_place, PORTS);
    po_cuda_place *out = PO_NEW_N(arena, po_cuda_place, PORTS);
    po_cuda_output *outputs = PO_NEW_N(arena, po_cuda_output, PORTS);
    uint32_t n = 0;
    place_ports(p->in, p->n_in, buffers, &n, in);
    place_ports(p->weight, p->n_weight, buffers, &n, weight);
    place_ports(p->out, p->n_out, buffers, &n, out);
    buffers[n] = (po_cuda_buffer){c->program->device, NULL};
    po_cuda_io io = {in, weight, out, {n++, 0}};
    for (uint32_t i = 0; i < p->n_out; i++)
        outputs[i] = (po_cuda_output){out[i], buffers[out[i].buffer].bytes};
    const po_cuda_step *steps = po_cuda_program_steps(arena, c->program, c->image, &io);
    return (po_cuda_plan){c->mu->name, n,      c->program->n_launches, p->n_out, buffers,
                          steps,       outputs};
}

/* --- in the child --- */

typedef struct job {
    const po_cuda_trial *trial;
    const ports *ports;
    const po_cuda_candidate *candidates;
    uint32_t from, n;
} job;

/* Of one candidate; `last`: the GPU is in no state to go on. */
typedef struct answer {
    double seconds, worst;
    uint32_t last;
    char why[WHY];
} answer;

static const double units[] = {[PO_MU_F32] = 0x1p-24, [PO_MU_F16] = 0x1p-11, [PO_MU_BF16] = 0x1p-8};

static double unit_of(const po_mu *mu, bool tf32) {
    double u = tf32 ? 0x1p-11 : 0x1p-24;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place != PO_MU_TABLE)
            u = fmax(u, units[mu->tensors[i].type]);
    return u;
}

/* What is stored on the way rounds as well: u is that of the coarsest type in the muGraph. */
static po_status compare(po_ctx *ctx, const job *j, po_arena *arena, po_cuda_ready *r,
                         const po_cuda_candidate *c, answer *a) {
    po_cuda *cuda = r->cuda;
    double k = j->trial->k > 0 ? j->trial->k : usual_k;
    CU_TRY(ctx, cuda, c->mu->name, cuGraphLaunch(r->exec, cuda->stream));
    CU_TRY(ctx, cuda, c->mu->name, cuStreamSynchronize(cuda->stream));
    for (uint32_t i = 0; i < j->ports->n_out; i++) {
        const port *o = &j->ports->out[i];
        const po_cuda_output *at = &r->plan->outputs[i];
        po_cuda_error e;
        if (!o->tensor)
            continue;
        char *data = po_arena_alloc(arena, (size_t)at->bytes + 1);
        CU_TRY(ctx, cuda, "copying from it",
               cuMemcpyDtoH_v2(data, r->memory[at->place.buffer] + (uint64_t)at->place.offset,
                               (size_t)at->bytes));
        double coarser = unit_of(c->mu, c->tf32) / units[o->tensor->type];
        bool right = po_cuda_compare(o->tensor->type, false, (po_bytes){data, (size_t)at->bytes},
                                     o->values, o->sum, k * coarser, &e);
        a->worst = fmax(a->worst, e.worst / coarser);
        if (right)
            continue;
        a->seconds = -1;
        snprintf(a->why, sizeof a->why,
                 "output %u, element %lld: %.9g instead of %.9g (%.3g u S, limit %.3g); %lld of "
                 "%lld elements are wrong",
                 i, (long long)e.index, e.got, e.expected, e.worst / coarser, k, (long long)e.bad,
                 (long long)o->n);
        break;
    }
    return PO_OK;
}

static po_status time_it(po_ctx *ctx, const job *j, po_arena *arena, po_cuda_ready *r, answer *a) {
    po_cuda *cuda = r->cuda;
    double one = po_cuda_launch_seconds(cuda, r->exec, 1), takes[TAKES], times = 1;
    uint64_t flush = 0;
    size_t flushed = j->trial->cold ? 2 * (size_t)cuda->info.l2 : 0;
    if (flushed)
        PO_TRY(po_cuda_alloc(ctx, cuda, arena, (int64_t)flushed, &flush));
    if (one > 0 && !flushed) {
        times = fmin(fmax(ceil(launch_aim / one), 1), MOST_TIMES);
        PO_TRY(po_cuda_capture(ctx, arena, r, (uint32_t)times));
        one = po_cuda_launch_seconds(cuda, r->exec, 1);
    }
    for (int i = 0; i < TAKES && one > 0; i++) {
        if (flushed)
            CU_TRY(ctx, cuda, "flushing its cache",
                   cuMemsetD8Async(flush, (unsigned char)i, flushed, cuda->stream));
        one = po_cuda_launch_seconds(cuda, r->exec, 1);
        takes[i] = one / times;
    }
    if (one < 0)
        return po_fail(ctx, PO_RUNTIME, "'%s' failed on %s", r->plan->name, cuda->info.name);
    a->seconds = po_median(takes, TAKES);
    return PO_OK;
}

static po_status try_one(po_ctx *ctx, po_cuda *cuda, po_arena *arena, const job *j,
                         const po_cuda_candidate *c, answer *a) {
    po_cuda_plan plan = plan_of(arena, j->ports, c);
    po_cuda_ready *r = NULL;
    PO_TRY(po_cuda_make_ready(ctx, cuda, arena, &plan, NULL, &r));
    PO_TRY(po_cuda_capture(ctx, arena, r, 1));
    if (j->trial->check)
        PO_TRY(compare(ctx, j, arena, r, c, a));
    if (j->trial->time && a->seconds >= 0)
        PO_TRY(time_it(ctx, j, arena, r, a));
    return PO_OK;
}

/* Sent first: from here on it is the candidates that fail. */
static const uint64_t opened = 1;

static po_status try_all(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const job *j = user;
    po_cuda *cuda = NULL;
    PO_TRY(po_cuda_open(ctx, arena, j->trial->options, &cuda));
    po_reply_add(reply, &opened, sizeof opened);
    for (uint32_t i = j->from; i < j->n; i++) {
        const po_cuda_candidate *c = &j->candidates[i];
        po_arena *mine = po_arena_create(ctx);
        answer a;
        memset(&a, 0, sizeof a);
        if (same_ports(c->mu, j->ports)) {
            po_status status = try_one(ctx, cuda, mine, j, c, &a);
            if (status != PO_OK) {
                if (status != PO_RUNTIME && status != PO_UNSUPPORTED && status != PO_BAD_USE)
                    return status;
                a.seconds = 0;
                a.last = status == PO_RUNTIME;
                snprintf(a.why, sizeof a.why, "%.*s", WHY - 1, ctx->error.message);
                po_ctx_clear(ctx);
            }
        } else {
            snprintf(a.why, sizeof a.why, "'%s' has other inputs or outputs than the first",
                     c->mu->name);
        }
        po_reply_add(reply, &a, sizeof a);
        if (a.last) /* what failed may fail everything after it in this process */
            return PO_OK;
        po_arena_free(mine);
    }
    return PO_OK;
}

/* --- in the caller --- */

static void take(po_arena *arena, po_cuda_candidate *c, const answer *a) {
    c->seconds = a->seconds;
    c->worst = a->worst;
    c->why = a->why[0] ? po_arena_strdup(arena, a->why) : NULL;
}

po_status po_cuda_try(po_ctx *ctx, po_arena *arena, const po_cuda_trial *trial,
                      po_cuda_candidate *candidates, uint32_t n) {
    if (n == 0)
        return PO_OK;
    const po_mu *meaning = trial->meaning ? trial->meaning : candidates[0].mu;
    ports *p = PO_NEW(arena, ports);
    PO_TRY(find_ports(ctx, arena, candidates[0].mu, trial->seed, p));
    if (!same_ports(meaning, p))
        return po_fail(ctx, PO_BAD_USE, "'%s' has other inputs or outputs than '%s'", meaning->name,
                       candidates[0].mu->name);
    if (trial->check)
        PO_TRY(evaluate(ctx, arena, meaning, p));
    job j = {trial, p, candidates, 0, n};
    while (j.from < n) {
        po_bytes data = {NULL, 0};
        po_status status = po_isolate(ctx, arena, "trying kernels on a GPU",
                                      TRY_SECONDS + 5.0 * (n - j.from), try_all, &j, &data);
        if ((status != PO_OK && status != PO_RUNTIME) || data.size < sizeof opened)
            return status != PO_OK ? status : po_fail(ctx, PO_INTERNAL, "kernels gave no answer");
        uint32_t got = (uint32_t)((data.size - sizeof opened) / sizeof(answer));
        for (uint32_t i = 0; i < got && j.from < n; i++) {
            answer a;
            memcpy(&a, data.data + sizeof opened + i * sizeof a, sizeof a);
            take(arena, &candidates[j.from++], &a);
        }
        if (status == PO_RUNTIME && j.from < n) { /* this one ended the process */
            answer a = {0, 0, 0, ""};
            snprintf(a.why, sizeof a.why, "%.*s", WHY - 1, ctx->error.message);
            po_ctx_clear(ctx);
            take(arena, &candidates[j.from++], &a);
        } else if (got == 0) {
            return po_fail(ctx, PO_INTERNAL, "trying kernels on a GPU gave no answer");
        }
    }
    return PO_OK;
}
