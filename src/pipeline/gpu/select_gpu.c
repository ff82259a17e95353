/* Which variant takes the original's place on a GPU: the best reading, or estimate, that compares
 * equal; the original where there is no gain in any. */
#include "cost/roofline.h"
#include "pipeline/gpu/timing.h"
#include "pipeline/open_batch.h"
#include "pipeline/select/selecting.h"
#include "postopt/postopt.h"
#include "simplify/simplify.h"

static const double worth_estimating = 1.001; /* a figure below this is no gain */
/* Two readings are from two times, and others use the GPU too: one that is this near to the other
 * is compared with it side by side. */
static const double worth_comparing = 0.6;

/* What a GPU makes of the original and of each variant. */
typedef struct gpu_reading {
    double seconds; /* 0: not known */
    const po_cuda_plan *plan;
    uint32_t stand_ins; /* operators that are read as copies */
} gpu_reading;

/* The graph is asked where there is no plan of it. *why: what stands in the way; NULL: nothing
 * does. */
static po_status try_one(selecting *s, const po_graph *graph, const po_cuda_plan *plan,
                         bool stand_ins, gpu_reading *r, const char **why) {
    *r = (gpu_reading){.plan = plan};
    *why = NULL;
    po_status status = PO_OK;
    if (!plan)
        status = po_gpu_plan_graph(s->run, s->arena, graph, NULL, 0, false,
                                   stand_ins ? &r->stand_ins : NULL, &r->plan);
    if (status == PO_OK)
        status = po_cuda_cost_plan(s->ctx, s->run->gpu_cost, r->plan, &r->seconds);
    if (status != PO_UNSUPPORTED)
        return status;
    *why = po_arena_strdup(s->arena, s->ctx->error.message);
    po_ctx_clear(s->ctx);
    r->seconds = 0;
    return PO_OK;
}

static void tell_unread(const selecting *s, const char *why) {
    po_record_note(s->run->record, "not measured on %s: %s", s->run->record->summary.gpu, why);
}

static po_status read_variant(selecting *s, uint32_t i, gpu_reading *r) {
    const po_variant *v = &s->list.variants[i];
    const char *why;
    po_graph *typed = NULL;
    if (!v->plan) {
        typed = po_graph_clone(s->ctx, v->graph);
        po_run_hold(s->run, typed);
        PO_TRY(po_infer_graph(s->ctx, typed, true));
    }
    PO_TRY(try_one(s, typed, v->plan, true, r, &why));
    if (why)
        po_selecting_decide(s, po_selecting_row(s, i), "not measured: %s", why);
    return PO_OK;
}

/* As it is; or, where it has operators that no step of the executor does (batch norms, shapes that
 * are computed), simplified and folded: then the gain is over that. What no step does there either
 * and takes about as long as a copy is read as one, in what it is compared with too. */
static po_status read_original(selecting *s, gpu_reading *r) {
    const char *why, *still;
    po_graph *simple, *folded;
    po_simplify_options simplify = po_simplify_defaults();
    const po_postopt_options fold = po_postopt_gpu();
    po_law_counts counts;
    PO_TRY(try_one(s, s->original, NULL, false, r, &why));
    if (why && r->plan) /* it has a plan, and no reading */
        tell_unread(s, why);
    if (!why || r->plan)
        return PO_OK;
    PO_TRY(po_simplify(s->ctx, s->original, &simplify, &simple, &counts));
    po_run_hold(s->run, simple);
    PO_TRY(po_infer_graph(s->ctx, simple, true));
    PO_TRY(po_postopt(s->ctx, simple, &fold, &folded, NULL));
    po_run_hold(s->run, folded);
    PO_TRY(po_infer_graph(s->ctx, folded, true));
    PO_TRY(try_one(s, folded, NULL, true, r, &still));
    const char *gpu = s->run->record->summary.gpu;
    if (still)
        tell_unread(s, still);
    else
        po_record_note(s->run->record, "the original is read on %s with its affine maps folded",
                       gpu);
    if (!still && r->stand_ins > 0)
        po_record_note(
            s->run->record,
            "operators that are read on %s as copies of what they make, as no library and "
            "no kernel of ours does them: %u",
            gpu, r->stand_ins);
    return PO_OK;
}

/* Readings where there are such for the original; else estimates. */
static po_status read_all(selecting *s, gpu_reading *original, gpu_reading *r, bool *measured) {
    const po_graph *graph;
    po_rates rates;
    po_estimate e;
    *measured = false;
    if (s->run->gpu_cost) {
        PO_TRY(read_original(s, original));
        *measured = original->seconds > 0;
    }
    PO_TRY(po_run_rates(s->run, &rates));
    if (!*measured) {
        PO_TRY(po_batch_planned(s->run, s->original, &graph));
        po_roofline_graph(graph, &rates, 1, &e);
        original->seconds = e.seconds;
    }
    for (uint32_t i = 0; i < s->list.n; i++) {
        const po_variant *v = &s->list.variants[i];
        r[i].seconds = v->seconds;
        if (*measured) {
            PO_TRY(read_variant(s, i, &r[i]));
        } else if (!(v->seconds > 0)) {
            PO_TRY(po_batch_planned(s->run, v->graph, &graph));
            po_roofline_graph(graph, &rates, 1, &e);
            r[i].seconds = e.seconds;
        }
    }
    return PO_OK;
}

static void sort_by_reading(selecting *s, const gpu_reading *r) {
    for (uint32_t i = 0; i < s->list.n; i++) {
        if (!s->written[i].path || s->done[i] || !(r[i].seconds > 0))
            continue;
        uint32_t k = s->n_order++;
        for (; k > 0 && r[i].seconds < r[s->order[k - 1]].seconds; k--)
            s->order[k] = s->order[k - 1];
        s->order[k] = i;
    }
}

/* Whether the GPU has the variant faster for sure, side by side with the original; what was
 * recorded is taken as it is. *why: what to tell. */
static po_status confirm_on_gpu(selecting *s, const gpu_reading *before, const gpu_reading *after,
                                bool measured, bool *faster, po_timing *t, const char **why) {
    const char *gpu = s->run->record->summary.gpu;
    double gain = before->seconds / after->seconds;
    *t = (po_timing){.seconds = after->seconds, .gain = gain, .low = gain, .high = gain};
    *faster = gain >= worth_estimating;
    const char *how = measured ? "recorded" : "estimated";
    po_timing side = *t;
    po_status status = PO_UNSUPPORTED;
    if (measured && gain >= worth_comparing) {
        status = po_cuda_cost_compare(s->ctx, s->run->gpu_cost, before->plan, after->plan, &side);
        if (status != PO_OK && status != PO_UNSUPPORTED)
            return status;
        if (status == PO_UNSUPPORTED)
            po_ctx_clear(s->ctx);
    }
    if (status == PO_OK) {
        *t = side;
        *faster = t->low > 1;
        *why = po_arena_printf(s->arena, "%s on %s (%.3fx, %.3f to %.3f)",
                               *faster ? "compares equal; faster" : "not surely faster", gpu,
                               t->gain, t->low, t->high);
    } else if (*faster) {
        *why = po_arena_printf(s->arena, "compares equal; %s for %s (%.2fx)%s", how, gpu, gain,
                               measured ? "" : ", not measured");
    } else {
        *why = po_arena_printf(s->arena, "%s to be no faster on %s (%.3fx)", how, gpu, gain);
    }
    return PO_OK;
}

po_status po_select_for_gpu(selecting *s) {
    po_summary *sum = &s->run->record->summary;
    gpu_reading original, *r = PO_NEW_N(s->arena, gpu_reading, PO_MAX_VARIANTS);
    bool measured;
    PO_TRY(read_all(s, &original, r, &measured));
    sum->estimated = !measured && original.seconds > 0;
    sum->measured = measured;
    sum->ms_before = sum->ms_after = 1e3 * original.seconds;
    sum->ratio = sum->ratio_low = sum->ratio_high = 1;
    s->n_order = 0;
    sort_by_reading(s, r);
    for (uint32_t k = 0; k < s->n_order; k++) {
        uint32_t i = s->order[k];
        bool faster, untested, taken;
        po_timing t;
        const char *why;
        po_verify_report report;
        PO_TRY(confirm_on_gpu(s, &original, &r[i], measured, &faster, &t, &why));
        if (!faster) {
            po_selecting_decide(s, po_selecting_row(s, i), "%s", why);
            continue;
        }
        PO_TRY(po_selecting_compare(s, i, why, &report, &untested, &taken));
        if (taken) {
            sum->ms_after = 1e3 * original.seconds / t.gain;
            sum->ratio = t.gain;
            sum->ratio_low = t.low;
            sum->ratio_high = t.high;
        }
        if (taken || untested)
            return PO_OK;
    }
    return PO_OK;
}
