/* A region's kernel from its check (Z3 in a child process) to its call as a node with a function;
 * why regions are dropped; and compiled objects kept in the cost cache. */
#include "pipeline/kernels/stage.h"

#include "cost/isolate.h"
#include "mugraph/prove.h"

static po_status prove(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    po_mu_proved proved;
    (void)arena;
    PO_TRY(po_mu_prove(ctx, user, 0, &proved));
    po_reply_add(reply, &proved, sizeof proved);
    return PO_OK;
}

/* In a process of its own: where memory is short Z3 ends the one that it is in. */
static po_status prove_apart(po_ctx *ctx, po_arena *scratch, const po_mu *mu) {
    po_mu_proved proved;
    po_bytes data;
    void *user;
    memcpy(&user, &mu, sizeof user); /* it is only read */
    double start = po_now();
    po_status status = po_isolate(ctx, scratch, "proving a kernel", 0, prove, user, &data);
    if (status == PO_RUNTIME) {
        const char *why = po_arena_strdup(scratch, ctx->error.message);
        po_ctx_clear(ctx);
        return po_fail(ctx, PO_UNSUPPORTED, "its kernel could not be proved: %s", why);
    }
    PO_TRY(status);
    if (data.size != sizeof proved)
        return po_fail(ctx, PO_UNSUPPORTED, "its kernel could not be proved: no answer came");
    memcpy(&proved, data.data, sizeof proved);
    po_log(ctx, "Z3: %u questions in %.2f s, %u undecided", proved.asked, po_now() - start,
           proved.unknown);
    return PO_OK;
}

po_status po_kernel_stage_check(const po_run *run, const po_mu *meaning, const po_mu *mu,
                                int64_t shared_limit) {
    PO_TRY(po_mu_check(run->ctx, meaning, shared_limit));
    PO_TRY(po_mu_check(run->ctx, mu, shared_limit));
    po_arena *scratch = po_arena_create(run->ctx);
    po_status status = prove_apart(run->ctx, scratch, mu);
    po_arena_free(scratch);
    return status;
}

static const po_kernel_port *ports(po_arena *arena, const po_graph *graph,
                                   const po_value_id *values, uint32_t n) {
    po_kernel_port *list = PO_NEW_N(arena, po_kernel_port, n);
    for (uint32_t i = 0; i < n; i++) {
        const po_type *type = &graph->values[values[i]].type;
        list[i].rank = type->rank;
        for (uint32_t k = 0; k < type->rank; k++)
            list[i].dims[k] = type->dims[k].value;
    }
    return list;
}

void po_kernel_stage_ports(po_arena *arena, const po_graph *graph, const po_region *region,
                           po_kernel *kernel) {
    kernel->in = ports(arena, graph, region->in, region->n_in);
    kernel->out = ports(arena, graph, region->out, region->n_out);
}

po_status po_kernel_stage_drop(const po_run *run, po_status status, const char **why) {
    if (status != PO_UNSUPPORTED && status != PO_BAD_INPUT && status != PO_INTERNAL)
        return status;
    *why = po_arena_strdup(run->arena, run->ctx->error.message);
    po_ctx_clear(run->ctx);
    return PO_OK;
}

po_status po_kernel_stage_call(const po_run *run, po_graph *graph, const po_region *region,
                               const po_kernel *kernel, uint32_t number, const po_value_id *in,
                               uint32_t n_in, po_graph **body, po_node_id *call) {
    po_outline outline = po_region_outline(kernel->name, region);
    outline.node_name = po_arena_printf(run->arena, "%s_%u", kernel->name, number);
    outline.n_in = n_in;
    outline.in = in;
    PO_TRY(po_graph_outline(run->ctx, graph, &outline, body, call));
    po_run_hold(run, *body);
    return PO_OK;
}

/* --- objects that are kept --- */

static bool find(void *user, po_arena *arena, po_hash key, po_bytes *object) {
    const po_kept_objects *kept = user;
    return po_cache_get(kept->cache, arena, kept->kind, key, object);
}

static void keep(void *user, po_hash key, po_bytes object) {
    const po_kept_objects *kept = user;
    po_cache_put(kept->cache, kept->kind, key, object.data, object.size);
}

po_object_store po_kernel_stage_store(po_kept_objects *kept) {
    return (po_object_store){kept, find, keep};
}
