/* The winner's proof, where select has not asked for it. */
#include "pipeline/pipeline.h"
#include "pipeline/proving.h"

po_status po_stage_export(po_run_state *state) {
    return po_proving_winner(state);
}
