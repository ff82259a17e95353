/* How several samples are worked at once. A kernel of an open batch is of one sample and called for
 * each of them, and each call transforms all of its weights and reads them from memory again. Where
 * maps are small and weights large that is most of the time, and a program that has the number of
 * samples among its lengths takes less; where maps are large they leave the caches between one step
 * and the next, and it takes more. So the region is cut where that pays most: what comes before is
 * called for each sample, the rest for many. */
#include "codegen/delivery/library.h"
#include "ir/size.h"
#include "pipeline/budget.h"
#include "pipeline/kernels/open_regions.h"
#include "pipeline/kernels/stage.h"
#include "pipeline/kernels/variants.h"

/* Of what the samples take one by one: what promises less is not made. */
static const double worth_it = 0.97;
/* Likewise, by estimate, of steps that are read: maps of several samples leave the caches, which
 * estimates leave out. ResNet-18's convolutions of 64 and 128 channels, put at 0.91 to 0.96,
 * read 1.02 to 1.4, those of 512, put at 0.5, 0.7. */
static const double promising = 0.9;
/* What crosses the cut is written and read once more than it was, in the model's own order. */
static const double bytes_a_second = 1e10;

enum {
    MOST_CROSSING = 4, /* values */
    COMPARED = 3,      /* samples: with so many every model is compared with the original */
    MOST_LARGER = 2    /* times as many elements as where it was read */
};

typedef struct batching {
    const po_run *run;
    po_arena *arena;
    const po_plan_options *options;
    po_kernel_variant *form;
    po_open_sizes sizes; /* with the number of samples among the lengths */
    uint32_t at;         /* the region */
    const po_region *region;
    po_plan one;  /* of one sample */
    po_plan tail; /* its steps that are read beside those of several samples */
    double times; /* as much to do as there is for one sample where that was read */
} batching;

/* A part of the region, planned. */
typedef struct planned_part {
    po_region region;
    po_plan plan;
} planned_part;

/* --- planning --- */

/* Weights are read as by the kernel of one sample. */
static po_status plan_part(batching *b, bool many, bool measure, planned_part *p) {
    po_plan_options here = *b->options;
    const po_open_sizes *sizes = many ? &b->sizes : b->form->sizes;
    const po_regions regions = {&p->region, 1, p->region.n_nodes};
    here.open = sizes ? &sizes->plan : NULL;
    here.like = &b->form->plans[b->at];
    here.beside = many ? &b->tail : NULL;
    here.measure = measure;
    PO_TRY(po_plan_regions(b->run->ctx, b->arena, many ? b->sizes.here : b->form->graph, &regions,
                           &here, &p->plan));
    if (p->plan.failed)
        return po_fail(b->run->ctx, PO_UNSUPPORTED, "%s", p->plan.failed);
    return p->plan.unread > 0
               ? po_fail(b->run->ctx, PO_UNSUPPORTED, "there was no time to read its steps")
               : PO_OK;
}

static double operations(const po_plan *plan) {
    po_mu_cost cost;
    po_mu_cost_of(plan->lowered.mu, &cost);
    return cost.flops;
}

/* As read; else by what it computes and moves: maps of one sample stay in the cache where those of
 * several do not. */
static double seconds_of_step(const po_plan_step *s) {
    return s->seconds > 0 ? s->seconds : s->flops / 1e11 + s->bytes / bytes_a_second;
}

static double seconds_of(const po_plan *plan) {
    double seconds = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        seconds += seconds_of_step(&plan->steps[i]);
    return seconds;
}

/* --- where it is cut --- */

/* Where a value stands in a list; n: nowhere. */
static uint32_t place_in(const po_value_id *list, uint32_t n, po_value_id v) {
    uint32_t i = 0;
    while (i < n && list[i] != v)
        i++;
    return i;
}

/* The node that a step ends with, by its number in the region; that of all nodes: none. */
static uint32_t node_of(const batching *b, const po_plan_step *s) {
    const po_region *r = b->region;
    const po_node_id made = s->made == PO_NONE ? PO_NONE : b->form->graph->values[s->made].producer;
    uint32_t k = 0;
    while (k < r->n_nodes && r->nodes[k] != made)
        k++;
    return k;
}

static double estimate_of_step(const po_plan_step *s) {
    return s->estimated;
}

/* Seconds by the region's nodes: each step's where it begins. */
static const double *seconds_by_node(const batching *b, const po_plan *plan,
                                     double (*of)(const po_plan_step *s)) {
    const uint32_t n = b->region->n_nodes;
    double *seconds = PO_NEW_N(b->arena, double, n + 1);
    uint32_t begin = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const uint32_t end = node_of(b, &plan->steps[i]);
        seconds[begin < n ? begin : n - 1] += of(&plan->steps[i]);
        if (end < n && end >= begin) /* else it goes with the next */
            begin = end + 1;
    }
    return seconds;
}

/* From which node on several samples promise a gain; the region's number: from none. */
static uint32_t find_promising(const batching *b, const po_plan *many) {
    const double *one = seconds_by_node(b, &b->one, estimate_of_step),
                 *all = seconds_by_node(b, many, estimate_of_step);
    double of_one = 0, of_all = 0;
    const uint32_t n = b->region->n_nodes;
    uint32_t from = n;
    for (uint32_t k = n; k-- > 0;) {
        of_one += b->times * one[k];
        of_all += all[k];
        if (!(of_all < promising * of_one))
            continue;
        from = k;
        of_one = of_all = 0;
    }
    return from;
}

/* Nodes first to last - 1 of the region as one. */
static po_region region_of(const batching *b, po_arena *arena, uint32_t first, uint32_t last) {
    return po_region_of(arena, b->form->graph, b->region->nodes + first, last - first);
}

/* Bytes of the values that a head makes for the rest, of a sample; below 0: the region is not cut
 * there. */
static double bytes_across(const batching *b, const po_region *head) {
    double bytes = 0;
    if (head->n_out > MOST_CROSSING)
        return -1;
    for (uint32_t i = 0; i < head->n_out; i++) {
        const po_value_id v = head->out[i];
        const int64_t elements = po_type_count(&b->form->graph->values[v].type);
        if (place_in(b->region->out, b->region->n_out, v) < b->region->n_out ||
            b->form->axis[v] < 0 || elements < 0)
            return -1;
        bytes += (double)sizeof(float) * (double)elements;
    }
    return bytes;
}

/* Seconds that a cut behind so many nodes costs a sample; below 0: there can be none. */
static double crossing(const batching *b, uint32_t n) {
    po_arena *scratch = po_arena_child(b->arena);
    const po_region head = region_of(b, scratch, 0, n);
    const double bytes = n == 0 ? 0 : bytes_across(b, &head);
    po_arena_free(scratch);
    return 2 * bytes / bytes_a_second;
}

/* Behind how many nodes, `from` at least; the region's number: nowhere, it gains nothing. */
static uint32_t find_cut(const batching *b, uint32_t from, const po_plan *many) {
    const uint32_t n = b->region->n_nodes;
    const double *one = seconds_by_node(b, &b->one, seconds_of_step),
                 *all = seconds_by_node(b, many, seconds_of_step);
    const double least = (1 - worth_it) * b->times * seconds_of(&b->one);
    uint32_t best = n;
    double gain = 0, most = least;
    for (uint32_t k = n; k-- > from;) {
        gain += b->times * one[k] - all[k];
        if (gain <= most)
            continue;
        const double cost = crossing(b, k);
        if (cost < 0 || gain - b->times * cost <= most)
            continue;
        most = gain - b->times * cost;
        best = k;
    }
    return best;
}

/* --- parts as programs --- */

/* The program with the weights of the whole. */
static const po_mu_open *with_weights(po_arena *arena, const po_mu_open *open,
                                      const uint32_t *weight) {
    po_mu_open *made = po_arena_memdup(arena, open, sizeof *open);
    po_mu *mu = po_mu_copy(arena, open->mu);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_WEIGHT)
            mu->tensors[i].number = weight[mu->tensors[i].number];
    made->mu = mu;
    return made;
}

/* The graphs that regions are compared with, once one is cut. */
static po_status larger(const po_run *run, po_open_sizes *sizes) {
    return sizes && !sizes->larger ? po_open_sizes_larger(run, sizes) : PO_OK;
}

/* Opens it, and checks it as any kernel. */
static po_status open_part(batching *b, bool many, planned_part *p, const planned_part *head,
                           po_kernel_part *out) {
    const po_run *run = b->run;
    const po_region *whole = b->region;
    po_open_sizes *sizes = many ? &b->sizes : b->form->sizes;
    uint32_t *from = PO_NEW_N(b->arena, uint32_t, p->region.n_in + 1);
    PO_TRY(po_open_ports(run->ctx, b->arena, many ? b->sizes.here : b->form->graph,
                         many ? NULL : b->form->axis, &p->region, &out->ports));
    PO_TRY(po_kernel_stage_check(run, p->plan.lowered.mu, p->plan.mu, PO_SHARED_BYTES));
    out->open = po_mu_closed(b->arena, p->plan.mu);
    PO_TRY(larger(run, sizes));
    if (sizes)
        PO_TRY(po_open_sizes_region(run, b->arena, sizes, &p->region, p->plan.mu,
                                    p->plan.lowered.mu, &out->open, &out->ports));
    for (uint32_t i = 0; i < p->region.n_in; i++) {
        const po_value_id v = p->region.in[i];
        from[i] = place_in(whole->in, whole->n_in, v);
        if (from[i] == whole->n_in && head)
            from[i] += place_in(head->region.out, head->region.n_out, v);
    }
    out->from = from;
    return PO_OK;
}

static po_status share_weights(const batching *b, const planned_part *p, po_kernel_part *out) {
    const uint32_t *weight = po_plan_share_weights(b->arena, &b->form->plans[b->at], &p->plan);
    if (!weight)
        return po_fail(b->run->ctx, PO_UNSUPPORTED, "it reads constants that one sample has not");
    out->open = with_weights(b->arena, out->open, weight);
    return PO_OK;
}

/* --- for which sizes it is meant --- */

/* The number of samples, over the names of the rest. */
static po_dim samples_of(const batching *b, const po_kernel_batched *made) {
    const po_kernel_ports *whole = &b->form->ports[b->at];
    for (uint32_t i = 0; i < made->rest.ports.n_in; i++) {
        const uint32_t from = made->rest.from[i];
        const po_kernel_port *one =
            from < whole->n_in ? &whole->in[from] : &made->head.ports.out[from - whole->n_in];
        for (uint32_t d = 0; d < one->rank; d++)
            if (one->dims[d] < 0)
                return po_size_divide(b->arena, made->rest.ports.in[i].open[d],
                                      PO_DIM(-one->dims[d]));
    }
    return PO_DIM_UNKNOWN;
}

/* From so many samples on it gains, by estimate as its readings compare; 0: it does not. */
static int64_t least_samples(const batching *b, const po_kernel_batched *made, po_dim samples,
                             const planned_part *head, const planned_part *rest) {
    const po_mu_open *open = made->rest.open;
    int64_t lengths[PO_KERNEL_GIVEN], least = 0;
    uint32_t k = 0;
    while (k < open->n_names && !po_dim_same(samples, (po_dim){-1, open->names[k]}))
        k++;
    if (k == open->n_names)
        return 0;
    memcpy(lengths, open->here, open->n_names * sizeof *lengths);
    const int64_t here = lengths[k];
    double one = po_plan_estimated_small(b->one.mu), one_read = seconds_of(&b->one);
    if (made->head.open) {
        one -= po_plan_estimated_small(head->plan.mu);
        one_read -= seconds_of(&head->plan);
    }
    one *= b->times / (double)here;
    one_read *= b->times / (double)here;
    const double scale =
        seconds_of(&rest->plan) / po_plan_estimated_small(rest->plan.mu) / (one_read / one);
    for (int64_t n = here; n >= 2; n--) {
        po_arena *scratch = po_arena_child(b->arena);
        lengths[k] = n;
        const po_mu *mu = po_mu_open_at(scratch, open, lengths);
        const double all = mu ? scale * po_plan_estimated_small(mu) : 0;
        po_arena_free(scratch);
        if (!(all > 0 && all < (double)n * one))
            break;
        least = n;
    }
    return least <= COMPARED ? least : 0;
}

/* What a sample has of the region's first input that is open otherwise, over the names of a part
 * that reads it: about as much as where it was read, and more than small programs are for. */
static bool range_of(const batching *b, const po_kernel_part *part, po_dim samples,
                     po_size_range *range) {
    const po_kernel_ports *whole = &b->form->ports[b->at];
    const po_kernel_others *others = &b->form->others[b->at];
    for (uint32_t i = 0; i < part->ports.n_in; i++) {
        const uint32_t from = part->from[i];
        if (from >= whole->n_in || !po_open_port_is(&whole->in[from]))
            continue;
        const po_kernel_port *own = &whole->in[from];
        int64_t here = 1;
        for (uint32_t d = 0; d < own->rank; d++)
            here *= own->dims[d] < 0 ? -own->dims[d] : own->dims[d];
        po_dim all = po_open_port_elements(b->arena, &part->ports.in[i]);
        if (samples.symbol)
            all = po_size_divide(b->arena, all, samples);
        *range = (po_size_range){all, 1, MOST_LARGER * here};
        for (uint32_t k = 0; k < others->n; k++)
            if (others->program[k].most < here)
                range->least = others->program[k].most + 1;
        if (all.symbol)
            return true;
    }
    return false;
}

static bool set_ranges(const batching *b, po_kernel_batched *made, const planned_part *head,
                       const planned_part *rest) {
    enum { RANGES = 2 };
    po_size_range *range = PO_NEW_N(b->arena, po_size_range, RANGES),
                  *of_head = PO_NEW(b->arena, po_size_range);
    const po_dim samples = samples_of(b, made);
    const int64_t least = samples.symbol ? least_samples(b, made, samples, head, rest) : 0;
    po_log(b->run->ctx, "region %u: %u of %u nodes for several samples at once, from %lld on",
           b->at, rest->region.n_nodes, b->region->n_nodes, (long long)least);
    range[made->rest.n_meant++] = (po_size_range){samples, least, 0};
    if (range_of(b, &made->rest, samples, &range[made->rest.n_meant]))
        made->rest.n_meant++;
    made->rest.meant = range;
    made->head.meant = of_head;
    if (made->head.open && range_of(b, &made->head, (po_dim){0}, of_head))
        made->head.n_meant = 1;
    return least > 0;
}

/* --- the whole --- */

static bool same_values(const po_value_id *a, uint32_t n, const po_value_id *b, uint32_t m) {
    return n == m && memcmp(a, b, n * sizeof *a) == 0;
}

static po_status make(batching *b, uint32_t cut, const po_kernel_batched **out) {
    const po_region *whole = b->region;
    po_kernel_batched *made = PO_NEW(b->arena, po_kernel_batched);
    planned_part head = {.region = region_of(b, b->arena, 0, cut)},
                 rest = {.region = region_of(b, b->arena, cut, whole->n_nodes)};
    if (!same_values(rest.region.out, rest.region.n_out, whole->out, whole->n_out))
        return po_fail(b->run->ctx, PO_UNSUPPORTED, "its outputs are in another order");
    if (cut > 0) {
        PO_TRY(plan_part(b, false, b->options->measure, &head));
        PO_TRY(open_part(b, false, &head, NULL, &made->head));
    }
    PO_TRY(plan_part(b, true, b->options->measure, &rest));
    PO_TRY(open_part(b, true, &rest, &head, &made->rest));
    if (!set_ranges(b, made, &head, &rest))
        return PO_OK;
    if (cut > 0)
        PO_TRY(share_weights(b, &head, &made->head));
    PO_TRY(share_weights(b, &rest, &made->rest));
    *out = made;
    return PO_OK;
}

/* Reads the steps from a node on, of one sample and of several. */
static po_status read_from(batching *b, uint32_t node, planned_part *many) {
    uint32_t first = b->one.n_steps;
    while (first > 0 && node_of(b, &b->one.steps[first - 1]) >= node)
        first--;
    b->tail = b->one;
    b->tail.steps += first;
    b->tail.n_steps -= first;
    many->region = region_of(b, b->arena, node, b->region->n_nodes);
    PO_TRY(plan_part(b, true, true, many));
    po_log(b->run->ctx, "region %u, several samples at once: %.2f of the time as read, of %u steps",
           b->at, seconds_of(&many->plan) / (b->times * seconds_of(&b->tail)), b->tail.n_steps);
    po_plan_step *steps = po_arena_memdup(b->arena, b->one.steps, b->one.n_steps * sizeof *steps);
    memcpy(steps + first, b->tail.steps, b->tail.n_steps * sizeof *steps);
    b->one.steps = steps;
    return PO_OK;
}

static po_status try_region(batching *b) {
    planned_part many = {.region = *b->region};
    b->one = b->form->plans[b->at];
    PO_TRY(plan_part(b, true, false, &many));
    b->times = operations(&many.plan) / operations(&b->one);
    const double part =
        po_plan_estimated_small(many.plan.mu) / (b->times * po_plan_estimated_small(b->one.mu));
    const uint32_t from = part < worth_it ? find_promising(b, &many.plan) : b->region->n_nodes;
    po_log(
        b->run->ctx,
        "region %u, several samples at once: %.2f of the time by estimate, from node %u of %u on",
        b->at, part, from, b->region->n_nodes);
    if (from == b->region->n_nodes)
        return PO_OK;
    if (b->options->measure)
        PO_TRY(read_from(b, from, &many));
    const uint32_t cut = find_cut(b, from, &many.plan);
    return cut < b->region->n_nodes ? make(b, cut, &b->form->batched[b->at]) : PO_OK;
}

static po_status try_all(batching *b) {
    po_kernel_variant *form = b->form;
    for (b->at = 0; b->at < form->regions.n; b->at++) {
        const char *why;
        if (form->plans[b->at].failed)
            continue;
        b->region = &form->regions.regions[b->at];
        po_status status = try_region(b);
        if (status == PO_OK)
            continue;
        PO_TRY(po_kernel_stage_drop(b->run, status, &why));
        po_log(b->run->ctx, "region %u, each sample by itself: %s", b->at, why);
    }
    return PO_OK;
}

po_status po_kernel_batch(const po_run *run, po_arena *arena, const po_plan_options *options,
                          const po_open_samples *samples, po_kernel_variant *form) {
    /* What holds for one sample alone is no program of several. */
    if (!form->axis || form->there || form->regions.n == 0)
        return PO_OK;
    batching b = {.run = run, .arena = arena, .options = options, .form = form};
    const char *why;
    po_status status = po_open_sizes_of_batch(run, arena, form->open ? form->open : form->graph,
                                              samples, &b.sizes);
    if (status == PO_OK) {
        po_limit limit = po_limit_begin(run->ctx, options->until);
        status = try_all(&b);
        po_limit_end(run->ctx, &limit, &status);
        po_open_sizes_larger_free(&b.sizes); /* its names are those of ports */
        if (form->sizes)
            po_open_sizes_larger_free(form->sizes);
    }
    if (status == PO_OK)
        return PO_OK;
    PO_TRY(po_kernel_stage_drop(run, status, &why));
    po_log(run->ctx, "each sample by itself: %s", why);
    return PO_OK;
}
