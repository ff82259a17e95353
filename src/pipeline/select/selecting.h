/* What the parts of the choice among variants share. */
#ifndef PO_PIPELINE_SELECTING_H
#define PO_PIPELINE_SELECTING_H

#include "cost/cost.h"
#include "pipeline/candidates.h"
#include "pipeline/choose/chooser.h"
#include "pipeline/stages.h"
#include "pipeline/variants.h"
#include "verify/verify.h"

typedef struct selecting {
    const po_run *run;
    const po_imported *imported;
    po_variant_list list; /* the stage's own: it makes more of them */
    uint32_t size;        /* the assignment of lengths that readings are taken at */
    po_selected *out;
    po_ctx *ctx;
    po_arena *arena;
    po_cost *cost;
    const po_graph *original; /* types inferred */
    const char *original_path;
    po_hash original_hash;
    po_candidate_store store;
    po_side_files files;                   /* the store's, once all are written */
    po_candidate written[PO_MAX_VARIANTS]; /* path NULL: could not be written */
    double flops;                          /* of the original */
    po_chooser *forms;                     /* among forms; costs by readings */
    po_timing rank[PO_MAX_VARIANTS];
    double score[PO_MAX_VARIANTS]; /* what they are ordered by; 0: not read */
    bool full[PO_MAX_VARIANTS];    /* rank is from the longer readings */
    bool heavy;                    /* each process that times the model takes seconds to load it */
    bool read[PO_MAX_VARIANTS];    /* in this run, and not only for a moment */
    uint32_t order[PO_MAX_VARIANTS]; /* best first */
    uint32_t n_order;
    bool chosen_before;         /* and disproved */
    bool done[PO_MAX_VARIANTS]; /* compared: taken or dropped */
    /* milder.c: what is told of a variant that was made since another is beyond the limit; NULL */
    const char *milder[PO_MAX_VARIANTS];
    uint32_t n_milder;
    bool busy; /* what decided was read beside other programs */
} selecting;

/* The variant's row in the report; what becomes of it. */
po_candidate_report *po_selecting_row(selecting *s, uint32_t i);
__attribute__((format(printf, 3, 4))) void
po_selecting_decide(selecting *s, po_candidate_report *row, const char *format, ...);
/* rank.c. Writes the variants from this one on; reads and sorts them into s->order, and adds forms
 * that the chooser comes to. */
po_status po_selecting_write(selecting *s, uint32_t from);
po_status po_selecting_rank(selecting *s);
/* Reads one that is not in the order yet, which takes its place there. */
po_status po_selecting_read(selecting *s, uint32_t i);
/* milder.c: of a variant that the report says to be beyond the limit, one that rounds less, made
 * and written, or the next in the order where it is there; PO_NONE: there is none, or so many were
 * made. */
enum { MOST_MILDER = 3 };
po_status po_selecting_milder(selecting *s, uint32_t i, const po_verify_report *r,
                              uint32_t *number);
/* compare.c. The library of generated kernels that a variant needs here; NULL: none. */
const char *po_selecting_kernels(const selecting *s, uint32_t i);
/* One that the runtime refuses, or that computes something else. */
void po_selecting_fault(selecting *s, po_candidate_report *row, const char *why, bool refused);
/* The same where a comparison says so. */
void po_selecting_judge(selecting *s, po_candidate_report *row, const po_verify_report *r);
/* Of a variant with the original; kernels NULL: without its library. */
po_verify_spec po_selecting_comparison(const selecting *s, uint32_t i, const char *kernels);
/* Compares what runs without the library, and on other processors. */
po_status po_selecting_elsewhere(selecting *s, uint32_t i, bool *right);
/* "by the kernels' code for avx2". */
const char *po_selecting_code(const selecting *s, uint32_t isa);
/* Which code of the library ran on the inputs of the comparison. */
void po_selecting_tell_kernels(selecting *s, uint32_t i);

/* *taken: it compares equal, and so does what it is without its library. *untested: the original
 * itself does not run. */
po_status po_selecting_compare(selecting *s, uint32_t i, const char *why, po_verify_report *report,
                               bool *untested, bool *taken);

/* fallback.c: reads, for a moment, how fast a variant with kernels is without its library,
 * at the size of that number. */
po_status po_select_fallback(selecting *s, uint32_t i, uint32_t size);

/* select_gpu.c: target cuda. By readings of a GPU, or what was recorded of one, or else by
 * estimates. */
po_status po_select_for_gpu(selecting *s);

/* model.c: the first variant that compares equal and is not estimated to be slower. */
po_status po_select_by_model(selecting *s, const char *why);
/* The original is the winner again: the proof found a difference. */
void po_selecting_give_up(selecting *s);

#endif
