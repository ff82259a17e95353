/* The winner's proof, where select has not asked for it. */
#include "pipeline/proving.h"
#include "pipeline/stages.h"

po_status po_stage_export(const po_run *run, const po_imported *imported, const po_winner *selected,
                          po_winner *out) {
    *out = *selected;
    return po_proving_winner(run, imported->original, out);
}
