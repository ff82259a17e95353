/* The proof runs in a child process, on the winner as its file reads back, with 40 s of CPU time at
 * most; verdicts are cached by the hashes of both models and of the recipes. The certificate states
 * it beside the SHA-256 of the files. */
#include "pipeline/proving.h"

#include "codegen/delivery/library.h"
#include "cost/cache.h"
#include "cost/isolate.h"
#include "import/import.h"
#include "ir/text.h"
#include "ops/op.h"
#include "ops/recipe/recipe.h"
#include "pipeline/budget.h"
#include "pipeline/old_ir.h"
#include "pipeline/pin.h"
#include "po_config.h"
#include "po_rules.h"
#include "verify/cert.h"

#include <stdio.h>

/* Of CPU time, for the winner alone: a run must not wait long for its proof. */
static const double seconds_for_proof = 40, least_for_proof = 4;

/* Of which lengths, where it is every one. */
static const char *lengths_of(const po_proof_report *r) {
    if (r->spaced > 1)
        return " from 1 on whose heights and widths are multiples of 32";
    return r->positive ? " from 1 on" : "";
}

void po_proving_tell(const po_proof_report *r, char *text, size_t size) {
    if (r->proved && r->every_size)
        snprintf(text, size,
                 "for every size%s, modulo %u drawn primes: a difference would be missed with "
                 "probability 2^%.0f",
                 lengths_of(r), r->trials, r->log2_bound);
    else if (r->proved)
        snprintf(text, size,
                 "modulo %u drawn primes, %u shape%s%s: a difference would be missed with "
                 "probability 2^%.0f",
                 r->trials, r->sizes, r->sizes == 1 ? "" : "s",
                 r->any_batch ? " for every batch" : "", r->log2_bound);
    else
        snprintf(text, size, "%s", r->why);
}

/* --- the proof --- */

/* Of a winner against the original. */
typedef struct proving {
    const po_run *run;
    const po_graph *original;
    po_winner *winner;
} proving;

po_status po_proving_graphs(po_ctx *ctx, const po_graph *original, const po_graph *candidate,
                            const po_graph *recipes, double seconds, po_proof_report *report) {
    const po_proof_options options = {.cpu_seconds = seconds};
    po_graph *a, *b;
    PO_TRY(po_pin_inputs(ctx, original, NULL, 0, &a));
    PO_TRY(po_pin_inputs(ctx, candidate, NULL, 0, &b));
    po_graph_sweep(a);
    po_graph_sweep(b);
    po_status status = po_prove(ctx, a, b, recipes, &options, report);
    po_graph_free(b);
    po_graph_free(a);
    return status;
}

po_status po_proving_recipes(const po_run *run, const po_graph *graph, const po_graph **recipes) {
    po_graph *made;
    PO_TRY(po_recipes_to_graph(run->ctx, graph, &made));
    if (made) {
        po_run_hold(run, made);
        po_ops_resolve(made);
    }
    *recipes = made;
    return PO_OK;
}

static po_status prove(po_ctx *ctx, const proving *p, const po_graph *winner,
                       po_proof_report *report) {
    double end = po_budget_end(p->run, PO_PART_PROOF), left = end > 0 ? end - po_now() : 1e9;
    left = left < least_for_proof ? least_for_proof : left;
    return po_proving_graphs(ctx, p->original, winner, p->winner->recipes,
                             left < seconds_for_proof ? left : seconds_for_proof, report);
}

/* --- in a process of its own --- */

typedef struct looking {
    const proving *p;
    bool known; /* the proof is: only what was written is read back */
} looking;

typedef struct seen {
    int32_t same;   /* what was written is what was meant */
    int32_t proved; /* the report was filled */
    po_proof_report report;
} seen;

/* A model with functions is of a later IR version than that which lists weights as inputs. */
static bool is_meant(po_ctx *ctx, const po_graph *winner, const po_graph *back) {
    if (!po_old_ir_is(winner) || po_old_ir_is(back))
        return po_graph_equal(back, winner);
    po_graph *freed = po_graph_clone(ctx, winner);
    po_graph_free_initialisers(freed);
    const bool same = po_graph_equal(back, freed);
    po_graph_free(freed);
    return same;
}

static po_status look(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const looking *l = user;
    const proving *p = l->p;
    const po_graph *winner = p->winner->graph;
    seen *found = PO_NEW(arena, seen);
    found->same = 1;
    if (p->winner->path) {
        po_model *back;
        PO_TRY(po_import_file(ctx, p->winner->path, &back));
        po_ops_resolve(back->graph);
        found->same = is_meant(ctx, winner, back->graph);
        winner = back->graph;
    }
    if (found->same && !l->known) {
        PO_TRY(prove(ctx, p, winner, &found->report));
        found->proved = 1;
    }
    po_reply_add(reply, found, sizeof *found);
    return PO_OK;
}

/* Whatever happens to the proof, the winner is verified: what hangs or crashes here costs the proof
 * alone. */
static po_status look_apart(const proving *p, bool known, seen *found) {
    po_ctx *ctx = p->run->ctx;
    po_arena *arena = po_arena_create(ctx);
    looking l = {p, known};
    po_bytes data = {NULL, 0};
    double end = po_budget_end(p->run, PO_PART_PROOF), least = po_now() + 2 * least_for_proof;
    po_limit limit = po_limit_begin(ctx, end > 0 ? (end > least ? end : least) : 0);
    po_status status = po_isolate(ctx, arena, "the proof", 0, look, &l, &data);
    bool cut = po_limit_end(ctx, &limit, &status);
    *found = (seen){.same = 1};
    if (status == PO_OK && data.size == sizeof *found)
        memcpy(found, data.data, sizeof *found);
    else if (cut)
        snprintf(found->report.why, sizeof found->report.why, "there was no time for the proof");
    else if (status == PO_RUNTIME || status == PO_IO) {
        snprintf(found->report.why, sizeof found->report.why, "the proof failed: %.300s",
                 ctx->error.message);
        po_ctx_clear(ctx);
        status = PO_OK;
    }
    po_arena_free(arena);
    return status;
}

static po_hash key_of(const proving *p) {
    po_hash a = po_graph_hash(p->original), b = po_graph_hash(p->winner->graph);
    po_hash key = po_hash_str(po_hash_str((po_hash){0, 0}, PO_VERSION), PO_RULES);
    key = po_hash_u64(po_hash_u64(po_hash_u64(po_hash_u64(key, a.lo), a.hi), b.lo), b.hi);
    if (p->winner->recipes) {
        po_hash r = po_graph_hash(p->winner->recipes);
        key = po_hash_u64(po_hash_u64(key, r.lo), r.hi);
    }
    return key;
}

static po_status prove_once(const proving *p, bool *same) {
    const char *path = po_options_cache(p->run->options);
    po_cache *cache;
    po_hash key = key_of(p);
    if (path && !*path)
        cache = po_cache_none(p->run->files);
    else
        PO_TRY(po_cache_open(p->run->ctx, p->run->files, path, &cache));
    bool known =
        po_cache_get_fixed(cache, "proof", key, &p->winner->proof, sizeof p->winner->proof);
    seen found;
    *same = true;
    if (known && !p->winner->path)
        return PO_OK;
    PO_TRY(look_apart(p, known, &found));
    *same = found.same != 0;
    if (known || !*same)
        return PO_OK;
    p->winner->proof = found.report;
    /* What time did not suffice for may be proved on another day. */
    if (found.proved && (found.report.proved || found.report.differ == PO_DIFFER_CERTAIN))
        po_cache_put(cache, "proof", key, &p->winner->proof, sizeof p->winner->proof);
    return PO_OK;
}

/* Reads the winner back from the bytes that were measured, proves it as it was read, and tells the
 * record; *same: it is what was meant. Proofs are cached by what both models are. Fails only for
 * what stops the run. */
static po_status prove_winner(const proving *p, bool *same) {
    po_summary *s = &p->run->record->summary;
    char text[PO_PROOF_TEXT];
    *same = true;
    if (p->winner->graph == p->original)
        return PO_OK;
    po_step(p->run->ctx, 0.5, "proving");
    PO_TRY(po_proving_recipes(p->run, p->winner->graph, &p->winner->recipes));
    PO_TRY(prove_once(p, same));
    if (!*same)
        return PO_OK;
    po_proving_tell(&p->winner->proof, text, sizeof text);
    s->proved = p->winner->proof.proved != 0;
    s->proof = po_arena_strdup(p->run->arena, text);
    po_log(p->run->ctx, "proof: %s: %s, degree %.0f, %u nodes, %u taken over, %.2f s",
           s->proved ? "proved" : "tested only", text, p->winner->proof.degree,
           p->winner->proof.nodes, p->winner->proof.reused, p->winner->proof.seconds);
    return PO_OK;
}

po_status po_proving_winner(const po_run *run, const po_graph *original, po_winner *winner) {
    bool same;
    if (winner->proof_of == winner->graph)
        return PO_OK;
    winner->proof_of = winner->graph;
    memset(&winner->proof, 0, sizeof winner->proof);
    PO_TRY(prove_winner(&(proving){run, original, winner}, &same));
    if (same)
        return PO_OK;
    winner->graph = original;
    run->record->summary.winner = "original";
    return po_fail(run->ctx, PO_INTERNAL, "the winner does not read back as what it was");
}

/* --- the certificate --- */

po_status po_proving_certify(po_ctx *ctx, po_arena *arena, void *user, const po_export_sums *sums,
                             const char **text) {
    const po_certify *c = user;
    const po_file_sum *in;
    uint32_t n_in;
    po_import_sums(arena, c->in, &in, &n_in);
    po_cert_file *files = PO_NEW_N(arena, po_cert_file, n_in + 1), out[2];
    for (uint32_t i = 0; i < n_in; i++)
        files[i] = (po_cert_file){in[i].name, in[i].sha256};
    out[0] = (po_cert_file){"", sums->model};
    out[1] = (po_cert_file){sums->data_name, sums->data};
    po_cert cert = {.petopt = PO_VERSION,
                    .in = files,
                    .n_in = n_in,
                    .out = out,
                    .n_out = sums->data ? 2 : 1,
                    .proof = *c->proof,
                    .runtime = c->summary->compared ? c->summary->runtime : "",
                    .error = c->summary->error,
                    .tolerance = c->summary->tolerance};
    if (c->library) {
        char *hex = po_arena_alloc(arena, PO_SHA256_HEX);
        po_sha256 *sha = po_sha256_begin(arena);
        po_sha256_add(sha, c->library->object.data, c->library->object.size);
        po_sha256_end(sha, hex);
        cert.library = hex;
    }
    /* A run that was stopped before its proof has not made them. */
    const po_graph *recipes = c->recipes;
    po_graph *made = NULL;
    if (!recipes) {
        PO_TRY(po_recipes_to_graph(ctx, c->out, &made));
        recipes = made;
    }
    if (recipes) {
        po_text printed;
        po_text_init(&printed, arena);
        po_graph_print_as(&printed, recipes,
                          (po_print_options){.most_items = 32, .all_data = true});
        cert.recipes = printed.data;
    }
    *text = po_cert_print(arena, &cert);
    po_graph_free(made);
    return PO_OK;
}
