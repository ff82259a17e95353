/* What is kept of a program between comparisons (inside this folder). */
#ifndef PO_BOXES_KNOWN_H
#define PO_BOXES_KNOWN_H

#include "boxes/agree.h"

/* The outputs of a program for a seed. From `known`, where it holds those of this program or may
 * come to hold them, else made in `scratch`. `known` may be NULL. */
po_status po_known_outputs(po_ctx *ctx, po_arena *scratch, po_agree_known *known,
                           const po_program *program, uint64_t seed,
                           const uint32_t *const **outputs);
const po_cuts *const *po_known_cuts(po_arena *scratch, po_agree_known *known,
                                    const po_program *program);
/* Reset to the seed, or to be gone on with. PO_UNSUPPORTED (not recorded) as
 * po_program_points_create. */
po_status po_known_points(po_arena *scratch, po_agree_known *known, const po_program *program,
                          uint64_t seed, po_program_points **points);

#endif
