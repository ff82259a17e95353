/* What excuses a float that is off by more than the tolerance: what the original is off by itself,
 * from float64 or by rounding alone. */
#include "verify/runner.h"

#include <math.h>

/* How many draws of noise are asked for. */
enum { DRAWS = 4 };
/* Seconds that the float64 reference may take at once. */
static const double one_reference = 10;
/* What is finite at inputs this many times as large is not near the end of what floats hold. */
static const double range_left = 16;

/* One more run of the original in another manner: how far does it move the outputs? */
static po_status add_noise(po_runner *r, po_session *session, const po_feed *feed,
                           po_arena *scratch, const po_datum *expected) {
    po_ort_run *run = NULL;
    const po_datum *moved = NULL;
    po_status status = po_runner_run(r, session, feed, &run);
    if (status == PO_OK)
        status = po_ort_run_outputs(r->ctx, scratch, run, &moved);
    for (uint32_t i = 0; status == PO_OK && i < r->n_outputs; i++) {
        po_compare_rule rule = {.tolerance = HUGE_VAL};
        po_difference d;
        po_compare(&expected[i], &moved[i], &rule, &d);
        /* Of an output that is 0 all over no part is allowed, however large. */
        if (d.mismatch == PO_MATCH || d.mismatch == PO_MISMATCH_ERROR)
            r->outputs[i].noise = fmax(r->outputs[i].noise, d.max_abs);
    }
    po_ort_run_free(run);
    return status;
}

/* One part of an input: its last bit; and what a candidate may be off by before values are cut to
 * steps, a tenth of the usual tolerance. */
static const double last_bit = 0x1p-23, before_steps = 1e-5;

static double magnitude(const po_datum *d) {
    double most = 0;
    const po_tensor *t = d->kind == PO_TYPE_TENSOR ? d->tensor : NULL;
    bool floats = t && po_dtype_class_of(t->dtype) == PO_CLASS_FLOAT;
    for (int64_t i = 0; floats && i < t->count; i++)
        most = fmax(most, fabs(po_tensor_f64(t, i)));
    return most;
}

/* Every float of the feed moved by a part of it, up or down. */
static po_status move_feed(po_runner *r, po_arena *arena, const po_feed *feed, uint32_t draw,
                           po_feed *moved) {
    float by = (float)(po_verify_quantises(r->spec->graph) ? before_steps : last_bit);
    po_datum *data = po_arena_memdup(arena, feed->data, sizeof *data * feed->n);
    for (uint32_t k = 0; k < feed->n; k++) {
        const po_tensor *t = data[k].tensor;
        if (data[k].kind != PO_TYPE_TENSOR || t->dtype != PO_F32)
            continue;
        po_tensor *copy = NULL;
        PO_TRY(po_tensor_create(r->ctx, arena, t->dtype, t->rank, t->dims, &copy));
        const float *from = t->data;
        float *to = po_tensor_data(copy);
        for (int64_t i = 0; i < t->count; i++)
            to[i] = from[i] *
                    (1 + (po_random_u64(r->spec->seed + draw, 99 + k, (uint64_t)i) & 1 ? by : -by));
        data[k].tensor = copy;
    }
    *moved = (po_feed){feed->n, feed->names, data};
    return PO_OK;
}

/* How far rounding alone moves each output on this set: the original without graph optimisation,
 * and with its inputs moved. What is near a tie (the largest of many exponents) falls to the other
 * side in some draws only. */
static po_status measure_noise(po_runner *r, const po_feed *feed, po_arena *scratch,
                               const po_datum *expected) {
    po_feed moved;
    po_runner_mark(r, PO_STAGE_COMPARE);
    for (uint32_t i = 0; i < r->n_outputs; i++)
        r->outputs[i].noise = 0;
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        po_arena *each = po_arena_child(scratch);
        po_status status = move_feed(r, each, feed, draw, &moved);
        if (status == PO_OK)
            status = add_noise(r, r->original, &moved, each, expected);
        po_arena_free(each);
        PO_TRY(status);
    }
    if (!r->plain)
        PO_TRY(po_session_open(
            r->ctx, r->arena, r->ort, r->spec->original,
            &(po_session_options){.deterministic = true, .plain = true, .files = r->spec->files},
            &r->plain));
    return add_noise(r, r->plain, feed, scratch, expected);
}

/* Where rounding alone moves an output by half of what it is, it is nothing but rounding (a row
 * without variance, normalised): float64 may meet the same by chance, so that it is the noise that
 * counts. */
static void allow_noise(const po_runner_output *o, const po_datum *expected, bool steps, bool wide,
                        po_own_error *own) {
    bool nothing_else = o->noise > 0.5 * magnitude(expected);
    if (!own->known && (wide || nothing_else))
        *own = (po_own_error){o->noise, o->noise, true, NULL};
    if (own->known && (steps || nothing_else)) {
        own->most = fmax(own->most, o->noise);
        own->mean = fmax(own->mean, o->noise);
    }
}

/* Whether it has time left, and its graph the runtime's outputs. */
static bool has_reference(const po_runner *r) {
    return r->references > 0 && r->spec->graph->n_outputs == r->n_outputs;
}

/* Seconds that it may take for one question more: what was begun in time is not cut short, since
 * without an answer the tolerance alone would count. */
static double reference_seconds(const po_runner *r) {
    return fmin(one_reference, r->references + fmin(one_reference, r->spec->seconds));
}

/* The error from float64 of the original's outputs; unknown without a reference. */
static po_status ask_reference(po_runner *r, po_arena *scratch, const po_feed *feed,
                               const po_datum *outputs, po_excuses *e) {
    const po_graph *graph = r->spec->graph;
    e->own_error = PO_NEW_N(scratch, po_own_error, r->n_outputs);
    po_runner_mark(r, PO_STAGE_COMPARE);
    if (!has_reference(r))
        return PO_OK;
    double start = po_now();
    PO_TRY(po_verify_exact(r->ctx, scratch, graph, feed, reference_seconds(r), &e->exact));
    po_verify_own_error(scratch, graph, e->exact, outputs, e->own_error);
    r->references -= po_now() - start;
    return PO_OK;
}

/* Inputs that stand on a step are the same for both models. */
static bool stands_on_steps(const po_input_set *set) {
    return set->draw && set->draw->kind == PO_INPUTS_BORDERS;
}

/* What stands beyond the tolerance may be as far off as the original is from float64. Where the
 * reference cannot tell, for inputs that no model is made for, it is eight times what rounding
 * alone moves the original by; so it is where values are cut to steps, if that is more. */
static po_status allow_own_error(po_runner *r, const po_input_set *set, po_arena *scratch,
                                 const po_datum *expected, po_excuses *e) {
    PO_TRY(ask_reference(r, scratch, set->feed, expected, e));
    if (stands_on_steps(set))
        return PO_OK;
    bool steps = po_verify_quantises(r->spec->graph);
    PO_TRY(measure_noise(r, set->feed, scratch, expected));
    for (uint32_t i = 0; i < r->n_outputs; i++)
        allow_noise(&r->outputs[i], &expected[i], steps, set->wide, &e->own_error[i]);
    return PO_OK;
}

static void free_run(void *run) {
    po_ort_run_free(run);
}

/* The original's outputs on another feed, as long as the scratch arena. NULL where it does not run.
 */
static po_status run_elsewhere(po_runner *r, const po_feed *feed, po_arena *scratch,
                               const po_datum **outputs) {
    po_ort_run *run = NULL;
    *outputs = NULL;
    po_status status = po_runner_run(r, r->original, feed, &run);
    if (status == PO_OK) {
        po_arena_defer(scratch, free_run, run); /* the outputs are the runtime's memory */
        status = po_ort_run_outputs(r->ctx, scratch, run, outputs);
    }
    if (status == PO_RUNTIME || status == PO_UNSUPPORTED) {
        po_ctx_clear(r->ctx);
        *outputs = NULL;
        return PO_OK;
    }
    return status;
}

/* The original may be exact at a point by luck (a mean of equal numbers), and off from float64 all
 * around it by as much as the other is there: so what its operators may round by counts as well. */
static po_status allow_rounding(po_runner *r, const po_input_set *set, po_arena *scratch,
                                po_excuses *e) {
    const uint64_t draw = r->spec->seed + e->draws++;
    po_own_error *noise = PO_NEW_N(scratch, po_own_error, r->n_outputs), *own = e->own_error;
    if (stands_on_steps(set) || !e->exact || !has_reference(r))
        return PO_OK;
    double start = po_now();
    po_runner_mark(r, PO_STAGE_COMPARE);
    PO_TRY(po_verify_noise(r->ctx, r->spec->graph, set->feed, e->exact, draw, reference_seconds(r),
                           noise));
    r->references -= po_now() - start;
    for (uint32_t i = 0; i < r->n_outputs; i++)
        if (own[i].known && noise[i].known) {
            own[i].most = fmax(own[i].most, noise[i].most);
            own[i].mean = fmax(own[i].mean, noise[i].mean);
        }
    return PO_OK;
}

/* The original's outputs at inputs 16 times as large, as long as the scratch arena. NULL where
 * these cannot be had. */
static po_status run_scaled(po_runner *r, const po_input_set *set, po_arena *scratch,
                            const po_datum **outputs) {
    po_feed feed;
    *outputs = NULL;
    if (!set->draw)
        return PO_OK;
    po_draw draw = *set->draw;
    draw.scale = range_left * (draw.scale > 0 ? draw.scale : 1);
    po_runner_mark(r, PO_STAGE_COMPARE);
    PO_TRY(po_inputs_draw(r->ctx, scratch, r->plan, &draw, &feed));
    return run_elsewhere(r, &feed, scratch, outputs);
}

static void compare_with_own(const po_own_error *own, const po_datum *expected, const po_datum *got,
                             po_compare_rule *rule, po_difference *d) {
    rule->own = own->most;
    rule->own_mean = own->mean;
    rule->overflowed = own->overflowed;
    po_compare(expected, got, rule, d);
}

po_status po_excuse_floats(po_runner *r, const po_input_set *set, po_arena *scratch, uint32_t i,
                           const po_datum *expected, const po_datum *got, po_compare_rule *rule,
                           po_excuses *e, po_difference *d) {
    if (d->mismatch == PO_MISMATCH_ERROR && d->max_rel <= r->spec->tolerance) {
        if (!e->noise)
            PO_TRY(measure_noise(r, set->feed, scratch, expected));
        e->noise = true;
        rule->noise = r->outputs[i].noise;
        po_compare(&expected[i], &got[i], rule, d);
    }
    if (d->mismatch == PO_MISMATCH_ERROR ||
        (d->mismatch == PO_MISMATCH_SPECIAL && !isfinite(d->expected))) {
        if (!e->own)
            PO_TRY(allow_own_error(r, set, scratch, expected, e));
        e->own = true;
        compare_with_own(&e->own_error[i], &expected[i], &got[i], rule, d);
    }
    while (d->mismatch == PO_MISMATCH_ERROR && e->own_error[i].known && e->draws < DRAWS) {
        PO_TRY(allow_rounding(r, set, scratch, e));
        compare_with_own(&e->own_error[i], &expected[i], &got[i], rule, d);
    }
    if (d->mismatch == PO_MISMATCH_SPECIAL) {
        if (!e->scaled)
            PO_TRY(run_scaled(r, set, scratch, &e->at_scale));
        e->scaled = true;
        if (!e->at_scale || e->at_scale[i].kind != PO_TYPE_TENSOR)
            return PO_OK;
        rule->scaled = e->at_scale[i].tensor;
        po_compare(&expected[i], &got[i], rule, d);
    }
    return PO_OK;
}
