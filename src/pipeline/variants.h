/* Variants of a model: postopt's result under choices of what it does. The first form of a graph
 * has none of them; each of the others leaves something out or spells it otherwise. */
#ifndef PO_PIPELINE_VARIANTS_H
#define PO_PIPELINE_VARIANTS_H

#include "ops/branches.h"
#include "pipeline/choose/chooser.h"
#include "pipeline/stages.h"
#include "postopt/postopt.h"

typedef struct po_variant_plan {
    const char *of;       /* "": the simplified model; else what the search made, in words */
    const po_graph *from; /* that graph */
    po_choices choices;   /* rows of the table in variants.c */
} po_variant_plan;

/* "mutants, seams joined"; and which kind's graph a form of that name is made of: PO_MUTATED_KINDS
 * where it is of none. */
const char *po_mutated_name(po_mutated_kind kind);
po_mutated_kind po_mutated_of(const char *form);

/* Rows of the table, and "affine folding alone" among them. */
uint32_t po_variant_choices(void);
uint32_t po_variant_affine_alone(void);
/* What postopt made use of, as counted in the graph's first form, that the choice takes away. */
bool po_variant_matters(uint32_t choice, const po_postopt_counts *first);
/* Whether it is read from the first: what only rounds less is not, nor what is done in places;
 * these are come to. */
bool po_variant_first(uint32_t choice);

/* Of a form with these counts, whose choices these are: those of one that rounds less. What has the
 * largest part in it by what it states, or half of that, takes its milder alternative; what has
 * none is left out. False: there is nothing to be milder. */
bool po_variant_milder(const po_postopt_counts *counts, po_choices *choices);

/* "folded", "mutants", "upsampling kept and gates not spread"; and back, where one of the n graphs
 * (the choices of `of` are not looked at) makes a form of that name. */
const char *po_variant_name(po_arena *arena, const po_variant_plan *plan);
bool po_variant_named(const char *name, const po_variant_plan *of, uint32_t n,
                      po_variant_plan *plan);

enum { PO_BASE_MODEL = PO_MUTATED_KINDS, PO_BASE_USUAL /* usual_sizes.h */, PO_BASES };

/* What postopt hands on: all variants, those with kernels first, and where more forms come from. */
typedef struct po_variant_list {
    const po_graph *original; /* which is none of them */
    po_variant variants[PO_MAX_VARIANTS];
    uint32_t n;
    const struct po_library *library; /* of those with kernels; NULL: there are none */
    const po_graph *graph; /* that a report shows: the first form, or the model as simplified */
    /* Graphs that forms are made of: of the search, by po_mutated_kind, and for usual sizes, where
     * `from` is not NULL, and the model's own; and which forms of them there are
     * (choose/chooser.h), whose number is that of the variant. chooser NULL: no forms are made. */
    po_variant_plan bases[PO_BASES];
    po_branches usual; /* of the base for usual sizes: what these are told by */
    const po_graph *sample,
        *open; /* the bases were made of `sample`, which has PO_SAMPLES samples,
                  and forms take the open batch of `open`; NULL: they were not */
    po_chooser *chooser;
    po_meant meant; /* lengths that forms are made by where they are open */
} po_variant_list;

/* The variants with kernels alone. */
void po_variant_list_begin(po_variant_list *list, const po_imported *imported,
                           const po_simplified *simplified, const po_kernels *kernels);

/* What came of making a form. */
typedef struct po_variant_made {
    bool made;       /* there is such a form */
    uint32_t number; /* of the variant that it is; PO_NONE: of none, it is the original */
    po_postopt_counts counts;
} po_variant_made;

/* Makes the form and adds it to the variants, unless it is there. One that fails is dropped and
 * reported. */
po_status po_variant_make(const po_run *run, po_variant_list *list, const po_variant_plan *plan,
                          po_variant_made *made);

/* Adds a graph as a variant, or frees it where it is the original or one that is there already: the
 * number of that. `plan` and `counts` may be NULL. */
uint32_t po_variant_add(const po_run *run, po_variant_list *list, const char *name,
                        const po_graph *graph, const po_variant_plan *plan,
                        const po_postopt_counts *counts);

/* Of a graph with weights this large only the first form is made: each holds weights of its own. */
bool po_variants_one_only(const po_graph *from);

/* --- the chooser among forms --- */

/* Bases and the chooser, with no form yet. */
po_status po_variant_list_forms(const po_run *run, po_variant_list *list, const po_chosen *chosen);
/* Makes the form that a state stands for; NULL: nothing is done. `made` may be NULL. */
po_status po_variant_list_make(const po_run *run, po_variant_list *list, po_combination *form,
                               po_variant_made *made);

#endif
