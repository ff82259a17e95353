/* Why a model has no kernels. */
#include "pipeline/open_batch.h"
#include "pipeline/recall.h"

/* Why no library was made. */
static const char *none_made(const po_run *run, const po_graph *original) {
    const bool found = run->record->n_regions > 0, open = po_batch_has_open_dims(original);
    const bool batch = open && po_samples_are_open(original);
    if (run->options->cuda)
        return found            ? (run->gpu_cost ? "none gains" : "by estimate none gains")
               : open && !batch ? "kernels need static shapes but for the batch (--input-shape)"
                                : "no part of it promises a gain over NVIDIA's libraries";
    if (run->record->cut && !found)
        return "none could be made for this model in its time (--time-limit S gives more)";
    if (open && !batch && !found)
        return "none could be made for this model with its lengths open (--input-shape pins them)";
    if (batch && !found)
        return "none could be made for this model; where its batch is open, samples must be "
               "seen to be kept apart (--input-shape pins it)";
    return "none could be made for this model";
}

const char *po_kernels_why_none(const po_run *run, const po_graph *original,
                                const po_recall *recall, const po_kernels *kernels,
                                const po_graph *winner) {
    const po_options *o = run->options;
    if (!o->kernels || winner->n_functions > 0)
        return "";
    if (recall)
        return recall->no_kernels;
    if (o->level < 1)
        return "none are made at -O0";
    if (!kernels->library)
        return none_made(run, original);
    const char *verdict = po_record_candidate(run->record, "kernels")->verdict;
    return *verdict ? verdict : "they were not compared in time";
}
