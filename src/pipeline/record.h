/* What a run did, collected for the summary of petopt.h. */
#ifndef PO_PIPELINE_RECORD_H
#define PO_PIPELINE_RECORD_H

#include "ir/graph.h"

typedef struct po_record {
    po_arena *arena;
    po_stage_report *stages;
    uint32_t n_stages, cap_stages;
    po_rewrite_report *rewrites;
    uint32_t n_rewrites, cap_rewrites;
    po_candidate_report *candidates;
    uint32_t n_candidates, cap_candidates;
    const po_subprogram_report *subprograms;
    uint32_t n_subprograms;
    po_region_report *regions;
    uint32_t n_regions, cap_regions;
    const char **notes;
    uint32_t n_notes, cap_notes;
    const char *stage; /* under way */
    bool cut;          /* a part of the run ended by its time */
    const char *known; /* why an earlier run, which is not done again, kept the original; NULL */
    po_summary summary;
} po_record;

po_record *po_record_create(po_arena *arena);
/* A sentence for the user. */
__attribute__((format(printf, 2, 3))) void po_record_note(po_record *record, const char *format,
                                                          ...);
/* Adds to the count of a rule of the stage under way. */
void po_record_fired(po_record *record, const char *rule, uint64_t times);
/* The candidate's row, made where it is not there yet. */
po_candidate_report *po_record_candidate(po_record *record, const char *name);

/* Nodes of a graph and its bodies. */
uint64_t po_record_nodes(const po_graph *graph);
/* Bytes of the constants of a graph and its bodies, those in Constant nodes included. */
uint64_t po_record_weights(const po_graph *graph);

/* The nodes of a graph in execution order, for reports. */
po_node_view *po_record_views(po_arena *arena, const po_graph *graph, uint32_t *n);

/* Why the original was kept, in one line; "" where it was not. */
const char *po_record_why_kept(const po_record *record);

/* Closes the summary: counts of both graphs, and the collected lists. */
void po_record_finish(po_record *record, const po_graph *before, const po_graph *after);

#endif
