/* A form for the sizes that a model is mostly run at, beside that for all (ops/branches.h): one
 * sample, and heights and widths that are multiples of 32. More laws hold there: gates go into
 * weights, which samples otherwise share, and halves of halves are as long as quarters. */
#ifndef PO_PIPELINE_USUAL_SIZES_H
#define PO_PIPELINE_USUAL_SIZES_H

#include "pipeline/variants.h"

/* The model at usual sizes, simplified, and what these are told by; `plan`: of its inputs. from
 * NULL: its lengths are not open, or it is meant for others, or its weights are too large to be
 * there twice. */
po_status po_usual_find(const po_run *run, const po_inputs *plan, const po_graph *open,
                        po_variant_plan *base, po_branches *usual);

/* Whether some law fired more often there than for all sizes. */
bool po_usual_does_more(const po_postopt_counts *usual, const po_postopt_counts *open);

#endif
