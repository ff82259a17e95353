/* Which mutant every occurrence of every subprogram takes, seen together: a subprogram whose
 * mutants read their input through one move and leave their output in another pays for both, unless
 * its neighbour undoes them (PET, sections 4.3 and 6; docs/search.md). */
#ifndef PO_PIPELINE_LAYOUT_CHOICE_H
#define PO_PIPELINE_LAYOUT_CHOICE_H

#include "ops/move/rt.h"
#include "pipeline/search/search.h"

/* --- choosing --- */

/* What two places save where one takes option i and the other option k: saves[i * n(b) + k]. */
typedef struct po_layout_pair {
    uint32_t a, b; /* places, a < b; each pair once */
    double *saves; /* seconds, >= 0 */
} po_layout_pair;

typedef struct po_layout_problem {
    uint32_t n; /* places */
    const uint32_t *n_options;
    const double *const *seconds; /* by place and option */
    const po_layout_pair *pairs;
    uint32_t n_pairs;
} po_layout_problem;

/* The seconds of all places, less what their pairs save. */
double po_layouts_cost(const po_layout_problem *problem, const uint32_t *choice);

/* Finds a choice that costs no more than the one in `choice`. Where pairs of places with more than
 * one option form trees, or each part of the graph but one cycle, it is the least of all (dynamic
 * programming). Else one place of every further cycle is held fast, the rest solved exactly, and
 * the held places are tried in turn with each of their options until none of them gains, or
 * PO_SEAMS_ROUNDS rounds have passed. */
enum { PO_SEAMS_ROUNDS = 16 };
void po_layouts_solve(po_arena *arena, const po_layout_problem *problem, uint32_t *choice);

/* --- what can be chosen --- */

/* How a program of a subprogram's interface takes each activation and gives each output: the moves
 * that it begins and ends with, the identity for none. */
typedef struct po_seam_move {
    const po_rt **in, **out;
} po_seam_move;
po_status po_layouts_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint32_t n_activations,
                        po_seam_move *layout);

typedef struct po_layout_option {
    uint32_t trial; /* PO_NONE: the original */
    double seconds;
    po_seam_move layout;
} po_layout_option;

typedef struct po_layout_place {
    uint32_t site, at; /* occurrence */
} po_layout_place;

typedef struct po_layouts {
    po_layout_place *places;    /* by site, then by occurrence */
    po_layout_option **options; /* by site: the original, then the fastest of each layout */
    uint32_t *n_options;        /* by site */
    po_layout_problem problem;
} po_layouts;

/* The layouts of all trials that were measured, or are estimated, and may agree, and what they save
 * beside each other. All in the arena. */
po_status po_layouts_find(po_ctx *ctx, po_arena *arena, const po_search *search, uint32_t threads,
                          po_layouts *seams);

#endif
