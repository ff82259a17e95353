/* Two ways to find where two programs agree, taken by their cost: by boxes, a few positions of each
 * (docs/boxes.md says why they are enough), or by every position of the whole tensors. */
#include "boxes/agree.h"

#include "base/num.h"
#include "boxes/contract.h"
#include "boxes/known.h"
#include "boxes/merge.h"
#include "boxes/motion.h"

#include <math.h>

static const double default_boxes = 65536;
/* Nanoseconds of an iteration at a point, and most that a comparison may take. */
static const double point_cost = 15, most_cost = 30e9;
/* Most that a position of the filter may take: the whole is cheaper then. */
static const double most_inside = 20e6;

static po_status check_alike(po_ctx *ctx, const po_program *a, const po_program *b) {
    if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
        return po_fail(ctx, PO_BAD_USE, "programs of %u and %u inputs, %u and %u outputs",
                       a->n_inputs, b->n_inputs, a->n_outputs, b->n_outputs);
    for (uint32_t i = 0; i < a->n_inputs + a->n_outputs; i++) {
        bool input = i < a->n_inputs;
        uint32_t k = input ? i : i - a->n_inputs;
        const po_tensor_shape *p = &a->values[input ? k : a->outputs[k]];
        const po_tensor_shape *q = &b->values[input ? k : b->outputs[k]];
        if (p->rank != q->rank || memcmp(p->dims, q->dims, p->rank * sizeof *p->dims) != 0)
            return po_fail(ctx, PO_BAD_USE, "%s %u of the two programs has two shapes",
                           input ? "input" : "output", k);
    }
    return PO_OK;
}

static uint64_t trial_seed(const po_agree_options *options, uint32_t trial) {
    return po_random_u64(options ? options->seed : 0, 0x747269616c, trial);
}

static uint32_t trials_of(const po_agree_options *options) {
    return options && options->trials ? options->trials : 1;
}

static po_agree_known *known_of(const po_agree_options *options) {
    return options ? options->known : NULL;
}

/* --- cost --- */

/* Iterations that evaluating so many positions of an output takes, nothing being shared. */
static double work(po_arena *arena, const po_program *p, uint32_t output, double points) {
    double *demand = PO_NEW_N(arena, double, p->n_values), total = 0;
    demand[p->outputs[output]] = points;
    for (uint32_t i = p->n_steps; i-- > 0;) {
        const po_program_step *step = &p->steps[i];
        double count = (double)p->values[step->out].count,
               each = count > 0 ? po_sum_iterations(step->sum) / count : 0;
        double wanted = demand[step->out] < count ? demand[step->out] : count;
        total += wanted * each;
        for (uint32_t k = 0; k < step->sum->n_operands; k++)
            if (step->sum->operands[k].kind != PO_OPERAND_TABLE)
                demand[step->in[step->sum->operands[k].input]] += wanted * each;
    }
    return total;
}

/* --- the first filter --- */

/* Whether one position of every output takes so much that a few are no quick filter. */
static bool costs_much(po_arena *arena, const po_program *a, const po_program *b) {
    double once = 0;
    for (uint32_t k = 0; k < a->n_outputs; k++)
        once += point_cost * (work(arena, a, k, 1) + work(arena, b, k, 1));
    return once > most_inside;
}

po_status po_agree_share(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b,
                         uint64_t seed, uint32_t positions, double *share) {
    po_program_points *points[2];
    *share = 1;
    PO_TRY(check_alike(ctx, a, b));
    if (costs_much(arena, a, b))
        return PO_OK;
    PO_TRY(po_program_points_create(arena, a, &points[0]));
    PO_TRY(po_program_points_create(arena, b, &points[1]));
    for (int i = 0; i < 2; i++)
        po_program_points_reset(points[i], seed);
    for (uint32_t k = 0; k < a->n_outputs; k++) {
        const po_tensor_shape *shape = &a->values[a->outputs[k]];
        int64_t index[PO_MAX_RANK];
        uint32_t equal = 0;
        for (uint32_t i = 0; i < positions && shape->count; i++) {
            for (uint32_t x = 0; x < shape->rank; x++) {
                int64_t dim = shape->dims[x], border = dim / 8;
                uint64_t draw = po_random_u64(seed, 64 + x, (uint64_t)k * positions + i);
                index[x] = border + (int64_t)(draw % (uint64_t)(dim - 2 * border));
            }
            equal += po_program_points_eval(points[0], k, index) ==
                     po_program_points_eval(points[1], k, index);
        }
        if (shape->count)
            *share = fmin(*share, (double)equal / positions);
        PO_TRY(po_ctx_poll(ctx));
    }
    return PO_OK;
}

/* --- the whole --- */

/* Where any two outputs differ first; *output is PO_NONE where none does. */
static po_status compare_outputs(po_ctx *ctx, po_arena *scratch, const po_program *a,
                                 const po_program *b, const po_agree_options *options,
                                 uint32_t *output, int64_t *at) {
    *output = PO_NONE;
    for (uint32_t trial = 0; trial < trials_of(options); trial++) {
        uint64_t seed = trial_seed(options, trial);
        const uint32_t *const *x, *const *y;
        PO_TRY(po_known_outputs(ctx, scratch, known_of(options), a, seed, &x));
        PO_TRY(po_known_outputs(ctx, scratch, NULL, b, seed, &y));
        for (uint32_t k = 0; k < a->n_outputs; k++)
            for (int64_t i = 0; i < a->values[a->outputs[k]].count; i++)
                if (x[k][i] != y[k][i]) {
                    *output = k;
                    *at = i;
                    return PO_OK;
                }
    }
    return PO_OK;
}

/* Evaluating a step of a large program takes seconds in which nobody asks for the time. */
static po_status has_time(po_ctx *ctx, double nanoseconds) {
    PO_TRY(po_ctx_poll(ctx));
    if (ctx->deadline > 0 && po_now() + 1e-9 * nanoseconds > ctx->deadline)
        return po_fail(ctx, PO_UNSUPPORTED, "a comparison would take %.0f s, more than is left",
                       1e-9 * nanoseconds);
    return PO_OK;
}

/* Sums of the outputs over an axis, where that is cheaper: what differs anywhere differs there. */
static po_status sums_agree(po_ctx *ctx, po_arena *scratch, const po_program *a,
                            const po_program *b, const po_agree_options *options, double below,
                            bool *agree) {
    const po_program *p, *q;
    po_digit_of_axis *digits = PO_NEW_N(scratch, po_digit_of_axis, a->n_outputs);
    double cost;
    uint32_t output = PO_NONE;
    int64_t at;
    *agree = false;
    if (!po_programs_contract(scratch, a, b, &p, &q, digits, &cost) || cost >= below)
        return PO_OK;
    PO_TRY(has_time(ctx, cost * trials_of(options)));
    PO_TRY(compare_outputs(ctx, scratch, p, q, options, &output, &at));
    *agree = output == PO_NONE;
    return PO_OK;
}

static po_status agree_whole(po_ctx *ctx, po_arena *scratch, const po_program *a,
                             const po_program *b, const po_agree_options *options, bool *equal,
                             uint32_t *output, int64_t *at) {
    uint32_t where;
    int64_t first;
    *equal = false;
    PO_TRY(check_alike(ctx, a, b));
    PO_TRY(sums_agree(ctx, scratch, a, b, options, INFINITY, equal));
    if (*equal)
        return PO_OK;
    PO_TRY(has_time(ctx, (po_program_cost(a) + po_program_cost(b)) * trials_of(options)));
    PO_TRY(compare_outputs(ctx, scratch, a, b, options, &where, &first));
    *equal = where == PO_NONE;
    if (!*equal && output)
        *output = where;
    if (!*equal && at)
        *at = first;
    return PO_OK;
}

po_status po_agree_whole(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b,
                         const po_agree_options *options, bool *equal, uint32_t *output,
                         int64_t *at) {
    po_arena *scratch = po_arena_child(arena);
    po_status status = agree_whole(ctx, scratch, a, b, options, equal, output, at);
    po_arena_free(scratch);
    return status;
}

/* --- by boxes --- */

typedef struct judge {
    po_ctx *ctx;
    po_arena *arena, *scratch;
    const po_program *program[2];
    const po_agree_options *options;
    po_agreement *result;
    po_program_points *points[2];
    uint32_t trial; /* 1 + the trial whose values the points remember; 0: none */
    /* of the output under way */
    uint32_t output;
    const po_cuts *cuts;
    po_motions motions[2];
    bool part; /* a part of a box may stand for it */
    uint64_t mask;
    bool have_need;
    po_motion_need need;
    uint8_t *cells;
    int64_t cell;
    double tests; /* counting alone */
    int64_t equal_positions;
} judge;

static const po_motion_need *need_of(judge *j, const po_box *box) {
    uint64_t mask = 0;
    for (uint32_t x = 0; x < box->rank; x++)
        mask |= (uint64_t)(box->count[x] > 1) << x;
    if (!j->have_need || j->mask != mask)
        po_motions_need(j->arena, &j->motions[0], &j->motions[1], box->rank, mask, &j->need);
    j->mask = mask;
    j->have_need = true;
    return &j->need;
}

/* How far to go along every axis, and how many steps over all axes together that are not tested at
 * each position: UINT32_MAX, no limit. */
static uint32_t reach(judge *j, const po_box *box, int64_t *most) {
    if (!j->part) {
        memcpy(most, box->count, box->rank * sizeof *most);
        return UINT32_MAX;
    }
    const po_motion_need *need = need_of(j, box);
    for (uint32_t x = 0; x < box->rank; x++)
        most[x] = need->on_axis[x] < box->count[x] ? need->on_axis[x] : box->count[x];
    return need->total;
}

/* Calls fn for the positions of a box that must be tested until it returns false. */
static bool each_test(judge *j, const po_box *box, bool (*fn)(judge *, const int64_t *)) {
    int64_t most[PO_MAX_RANK], at[PO_MAX_RANK] = {0}, index[PO_MAX_RANK];
    uint32_t total = reach(j, box, most);
    do {
        int64_t steps = 0;
        for (uint32_t x = 0; x < box->rank; x++) {
            /* An axis shorter than the number of its motions is tested at every position. */
            if (!j->part || j->need.on_axis[x] <= box->count[x])
                steps += at[x];
            index[x] = box->first[x] + at[x] * box->step[x];
        }
        if (steps < total && !fn(j, index))
            return false;
    } while (po_next_index(box->rank, most, at));
    return true;
}

static bool count_one(judge *j, const int64_t *index) {
    (void)index;
    j->tests++;
    return true;
}

static bool count_box(void *user, const po_box *box) {
    judge *j = user;
    if (j->part)
        return each_test(j, box, count_one);
    double n = 1;
    for (uint32_t x = 0; x < box->rank; x++)
        n *= (double)box->count[x];
    j->tests += n;
    return true;
}

static bool test_one(judge *j, const int64_t *index) {
    j->result->points++;
    return po_program_points_eval(j->points[0], j->output, index) ==
           po_program_points_eval(j->points[1], j->output, index);
}

static bool test_box(void *user, const po_box *box) {
    judge *j = user;
    uint8_t *cell = &j->cells[j->cell++];
    if (!*cell)
        *cell = !each_test(j, box, test_one);
    return true;
}

static bool box_positions(void *user, const po_box *box) {
    judge *j = user;
    int64_t n = 1;
    for (uint32_t x = 0; x < box->rank; x++)
        n *= box->count[x];
    j->equal_positions += j->cells[j->cell++] ? 0 : n;
    return true;
}

typedef struct collector {
    po_arena *arena;
    po_run_of_axis *items;
    uint32_t n, cap;
} collector;

static bool collect_run(void *user, const po_box *box) {
    collector *c = user;
    po_run_of_axis run = {box->first[0], box->step[0], box->count[0]};
    PO_PUSH(c->arena, c->items, c->n, c->cap, run);
    return true;
}

static void add_lists(judge *j, const po_grid_axis *axes, const uint8_t *cells) {
    po_agreement *r = j->result;
    uint32_t rank = j->program[0]->values[j->program[0]->outputs[j->output]].rank;
    po_grid_boxes(j->arena, rank, axes, cells, 0, &r->agree[j->output]);
    po_grid_boxes(j->arena, rank, axes, cells, 1, &r->differ[j->output]);
}

/* What is remembered of a trial stays good. */
static po_status start_trial(judge *j, uint32_t trial) {
    if (j->trial == trial + 1)
        return PO_OK;
    j->trial = trial + 1;
    uint64_t seed = trial_seed(j->options, trial);
    if (!j->points[1])
        PO_TRY(po_program_points_create(j->scratch, j->program[1], &j->points[1]));
    po_program_points_reset(j->points[1], seed);
    return po_known_points(j->scratch, known_of(j->options), j->program[0], seed, &j->points[0]);
}

/* Merging cuts boxes anew: one that is left without a difference goes to the other list. */
static void sift(judge *j) {
    po_box_list *differ = &j->result->differ[j->output], *agree = &j->result->agree[j->output];
    uint32_t kept = 0;
    bool part = j->part;
    j->part = false;
    for (uint32_t i = 0; i < differ->n; i++) {
        po_box box = differ->boxes[i];
        int64_t n = 1;
        bool same = true;
        for (uint32_t trial = 0; trial < trials_of(j->options) && same; trial++) {
            same = start_trial(j, trial) == PO_OK && each_test(j, &box, test_one);
        }
        if (!same) {
            differ->boxes[kept++] = box;
            continue;
        }
        for (uint32_t x = 0; x < box.rank; x++)
            n *= box.count[x];
        j->equal_positions += n;
        PO_PUSH(j->arena, agree->boxes, agree->n, agree->cap, box);
    }
    differ->n = kept;
    j->part = part;
}

static po_status by_boxes(judge *j, po_arena *scratch) {
    uint32_t rank = j->cuts->rank;
    j->cells = PO_NEW_N(scratch, uint8_t, po_boxes_count(j->cuts) + 1);
    for (uint32_t trial = 0; trial < trials_of(j->options); trial++) {
        if (start_trial(j, trial) != PO_OK)
            return po_fail(j->ctx, PO_UNSUPPORTED, "a fraction has no residue modulo the prime");
        j->cell = 0;
        po_boxes_each(scratch, j->cuts, test_box, j);
    }
    j->result->boxes += (uint64_t)j->cell;
    j->cell = 0;
    po_boxes_each(scratch, j->cuts, box_positions, j);
    po_grid_axis *axes = PO_NEW_N(scratch, po_grid_axis, rank);
    for (uint32_t x = 0; x < rank; x++) {
        collector c = {.arena = scratch};
        const po_cuts one = {1, &j->cuts->axis[x]};
        po_boxes_each(scratch, &one, collect_run, &c);
        axes[x] = (po_grid_axis){j->cuts->axis[x].dim, c.n, c.items};
    }
    add_lists(j, axes, j->cells);
    sift(j);
    return PO_OK;
}

/* --- by every position --- */

static po_status compare_wholes(judge *j, uint8_t **differ) {
    const po_program *a = j->program[0];
    for (uint32_t k = 0; k < a->n_outputs; k++)
        differ[k] = PO_NEW_N(j->scratch, uint8_t, a->values[a->outputs[k]].count);
    for (uint32_t trial = 0; trial < trials_of(j->options); trial++) {
        const uint32_t *const *x, *const *y;
        uint64_t seed = trial_seed(j->options, trial);
        PO_TRY(po_known_outputs(j->ctx, j->scratch, known_of(j->options), a, seed, &x));
        PO_TRY(po_known_outputs(j->ctx, j->scratch, NULL, j->program[1], seed, &y));
        for (uint32_t k = 0; k < a->n_outputs; k++)
            for (int64_t i = 0; i < a->values[a->outputs[k]].count; i++)
                differ[k][i] |= x[k][i] != y[k][i];
    }
    return PO_OK;
}

static void by_positions(judge *j, po_arena *scratch, const uint8_t *differ) {
    const po_tensor_shape *shape = &j->program[0]->values[j->program[0]->outputs[j->output]];
    po_grid_axis *axes = PO_NEW_N(scratch, po_grid_axis, shape->rank);
    for (uint32_t x = 0; x < shape->rank; x++)
        axes[x] = (po_grid_axis){shape->dims[x], (uint32_t)shape->dims[x], NULL};
    for (int64_t i = 0; i < shape->count; i++)
        j->equal_positions += !differ[i];
    j->result->boxes += (uint64_t)shape->count;
    j->result->points += (uint64_t)shape->count;
    add_lists(j, axes, differ);
}

/* --- both --- */

typedef struct plan {
    const po_cuts *cuts;
    po_motions motions[2];
    bool part, whole;
} plan;

/* Prepares every output and says what its boxes cost. */
static void prepare(judge *j, po_arena *scratch, plan *plans, double *cost, double *boxes) {
    const po_program *a = j->program[0], *b = j->program[1];
    const po_cuts *const *cuts[2] = {po_known_cuts(scratch, known_of(j->options), a),
                                     po_program_cuts_all(scratch, b)};
    *cost = *boxes = 0;
    for (uint32_t k = 0; k < a->n_outputs; k++) {
        plan *p = &plans[k];
        p->cuts = po_cuts_meet(scratch, cuts[0][a->outputs[k]], cuts[1][b->outputs[k]]);
        for (uint32_t s = 0; s < 2; s++)
            p->motions[s] = po_motions_of(scratch, j->program[s], k);
        p->part = po_motions_compatible(&p->motions[0], &p->motions[1]);
        double n = po_boxes_count(p->cuts);
        *boxes = n > *boxes ? n : *boxes;
        double most =
            j->options && j->options->most_boxes > 0 ? j->options->most_boxes : default_boxes;
        if (n > most)
            continue;
        j->cuts = p->cuts;
        memcpy(j->motions, p->motions, sizeof j->motions);
        j->part = p->part;
        j->have_need = false;
        j->tests = 0;
        po_boxes_each(scratch, p->cuts, count_box, j);
        *cost += point_cost * (work(scratch, a, k, j->tests) + work(scratch, b, k, j->tests));
    }
}

static void all_equal(judge *j) {
    po_agreement *r = j->result;
    r->equal = r->whole = true;
    r->share = 1;
    for (uint32_t k = 0; k < j->program[0]->n_outputs; k++) {
        const po_tensor_shape *shape = &j->program[0]->values[j->program[0]->outputs[k]];
        po_grid_axis *axes = PO_NEW_N(j->scratch, po_grid_axis, shape->rank);
        for (uint32_t x = 0; x < shape->rank; x++) {
            po_run_of_axis *run = PO_NEW(j->scratch, po_run_of_axis);
            *run = (po_run_of_axis){0, 1, shape->dims[x]};
            axes[x] = (po_grid_axis){shape->dims[x], shape->dims[x] > 0, run};
        }
        po_grid_boxes(j->arena, shape->rank, axes, (uint8_t[]){0}, 0, &r->agree[k]);
        r->boxes += r->agree[k].n;
        r->points += (uint64_t)shape->count;
    }
}

static po_status agree(po_ctx *ctx, po_arena *arena, po_arena *scratch, const po_program *a,
                       const po_program *b, const po_agree_options *options,
                       po_agreement *agreement) {
    PO_TRY(check_alike(ctx, a, b));
    *agreement = (po_agreement){.agree = PO_NEW_N(arena, po_box_list, a->n_outputs),
                                .differ = PO_NEW_N(arena, po_box_list, a->n_outputs),
                                .degree = a->degree > b->degree ? a->degree : b->degree};
    judge j = {.ctx = ctx,
               .arena = arena,
               .scratch = scratch,
               .program = {a, b},
               .options = options,
               .result = agreement};
    double most_boxes = options && options->most_boxes > 0 ? options->most_boxes : default_boxes;
    double boxes, box_cost, cost = po_program_cost(a) + po_program_cost(b);
    plan *plans = PO_NEW_N(scratch, plan, a->n_outputs);
    prepare(&j, scratch, plans, &box_cost, &boxes);
    po_agree_how how = options ? options->how : PO_AGREE_CHEAPER;
    bool whole =
        boxes > most_boxes || how == PO_AGREE_WHOLE || (how == PO_AGREE_CHEAPER && cost < box_cost);
    bool equal = false;
    if (how != PO_AGREE_BOXES)
        PO_TRY(sums_agree(ctx, scratch, a, b, options, whole ? INFINITY : box_cost, &equal));
    if (equal) {
        all_equal(&j);
        return PO_OK;
    }
    if ((whole ? cost : box_cost) * trials_of(options) > most_cost)
        return po_fail(
            ctx, PO_UNSUPPORTED,
            "programs too large to compare: %.0f boxes (limit %.0f), whole in about %.3g s", boxes,
            most_boxes, 1e-9 * cost);
    PO_TRY(has_time(ctx, (whole ? cost : box_cost) * trials_of(options)));
    uint8_t **differ = PO_NEW_N(scratch, uint8_t *, a->n_outputs);
    if (whole)
        PO_TRY(compare_wholes(&j, differ));
    double total = 0, same = 0;
    agreement->equal = true;
    agreement->whole = whole;
    for (uint32_t k = 0; k < a->n_outputs; k++) {
        j.output = k;
        j.equal_positions = 0;
        j.cuts = plans[k].cuts;
        memcpy(j.motions, plans[k].motions, sizeof j.motions);
        j.part = plans[k].part;
        j.have_need = false;
        if (whole)
            by_positions(&j, scratch, differ[k]);
        else
            PO_TRY(by_boxes(&j, scratch));
        total += (double)a->values[a->outputs[k]].count;
        same += (double)j.equal_positions;
        agreement->equal &= agreement->differ[k].n == 0;
    }
    agreement->share = total > 0 ? same / total : 1;
    return PO_OK;
}

po_status po_agree(po_ctx *ctx, po_arena *arena, const po_program *a, const po_program *b,
                   const po_agree_options *options, po_agreement *agreement) {
    po_arena *scratch = po_arena_child(arena);
    po_status status = agree(ctx, arena, scratch, a, b, options, agreement);
    po_arena_free(scratch);
    return status;
}
