/* The options of petopt.h, read and checked. */
#ifndef PO_PIPELINE_OPTIONS_H
#define PO_PIPELINE_OPTIONS_H

#include "base/arena.h"
#include "verify/inputs/inputs.h"

enum { PO_MAX_PINS = 256, PO_MAX_STAGE_LIST = 64 };

struct po_options {
    po_arena *arena; /* kept: lives with the options */
    int level;
    int64_t opset;    /* 0: the model's own */
    uint32_t threads; /* 0: as many as this process may run on */
    double time_limit, tolerance;
    bool exact;              /* --accuracy exact */
    bool cuda;               /* --target cuda */
    const char *gpu;         /* --gpu, a name that po_gpu_named knows; NULL: the machine's own */
    bool tf32;               /* --tf32 yes */
    uint32_t batch;          /* --batch: samples that kernels for an open batch are planned for */
    const char *cuda_folder; /* --cuda-libraries; NULL: the system's places */
    const char *replay;      /* --cost replay:FILE; NULL: none */
    const char *record;      /* --cost record:FILE: a GPU must be there; NULL: none */
    bool model_cost;         /* --cost model */
    bool measured_cost;      /* --cost ort, as asked for rather than by default */
    bool recall;             /* what the same run decided before may stand */
    const char *check_data;  /* NULL: none */
    const char *cache;       /* NULL: the default place; "": none */
    const char *kernels;     /* --kernels: folder for generated ones; NULL: none are made */
    const char *cc;          /* --cc; NULL: the first that is on the path */
    const char *library;     /* --library: of kernels, for bench and verify; NULL: none */
    po_pin *pins;
    uint32_t n_pins, cap_pins;
    po_pin *sizes; /* --sizes */
    uint32_t n_sizes, cap_sizes;
    const char **skip, **dump; /* names of stages */
    uint32_t n_skip, cap_skip, n_dump, cap_dump;
};

/* The defaults, without an arena: for callers that gave no options. */
po_options po_options_default(void);
bool po_options_has(const char *const *list, uint32_t n, const char *name);
/* The file of the cost cache: --cost record's or --cache's; NULL and "" as there. */
const char *po_options_cache(const po_options *options);
/* Whether estimates decide: nothing of the candidates is timed. */
bool po_options_estimated(const po_options *options);
/* Threads to run and measure with: as asked for, else the CPUs of this process. */
uint32_t po_options_threads(const po_options *options);

#endif
