/* The proof in the pipeline, and the certificate beside what is written. */
#ifndef PO_PIPELINE_PROVING_H
#define PO_PIPELINE_PROVING_H

#include "export/export.h"
#include "pipeline/stages.h"

/* The last look at a winner: read back from the bytes that were measured it must be the graph that
 * was meant, and that is what is proved. Once for each winner. Proofs are cached by what both
 * models are. PO_INTERNAL where it is not: the original is the winner again. */
po_status po_proving_winner(const po_run *run, const po_graph *original, po_winner *winner);

/* What a graph's derived constants are made of, as po_prove takes it; held by the run, NULL: there
 * are none. */
po_status po_proving_recipes(const po_run *run, const po_graph *graph, const po_graph **recipes);
/* po_prove of graphs as they are delivered: calls of kernels are what they stand for. `seconds` of
 * CPU. */
po_status po_proving_graphs(po_ctx *ctx, const po_graph *original, const po_graph *candidate,
                            const po_graph *recipes, double seconds, po_proof_report *report);

/* "modulo 2 drawn primes, ..." or why not. */
void po_proving_tell(const po_proof_report *report, char *text, size_t size);

/* What a certificate is made from. */
typedef struct po_certify {
    const po_model *in;
    const po_graph *out;     /* with its recipes */
    const po_graph *recipes; /* as a graph; NULL: not made yet */
    const po_proof_report *proof;
    const po_summary *summary;
    const struct po_library *library; /* of kernels; NULL: none */
} po_certify;
/* po_certify_fn for po_export_options; user: po_certify. */
po_status po_proving_certify(po_ctx *ctx, po_arena *arena, void *user, const po_export_sums *sums,
                             const char **text);

/* What verify finds: OUT.cert where it is there and holds, then the proof with fresh seeds. A
 * library of kernels (NULL: none) must be the one that the certificate names. */
typedef struct po_replay {
    bool proved;
    bool differ;              /* for sure */
    char text[PO_PROOF_TEXT]; /* one sentence */
} po_replay;
po_status po_proving_replay(po_ctx *ctx, po_arena *arena, const po_graph *a, const po_graph *b,
                            const char *path_of_b, const char *library, po_replay *replay);

#endif
