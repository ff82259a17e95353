/* The executor: runs and times plans on a GPU (docs/cuda-cost.md).
 *
 * A plan is buffers of device memory and steps that work on them in order, on one stream: kernels
 * of a po_cuda_program, products by cuBLASLt, convolutions by cuDNN. It is captured as a CUDA graph
 * and replayed, so that what is timed is the GPU and not the launching. Which of the libraries'
 * algorithms a step runs is found by timing them. */
#ifndef PO_COST_CUDA_RUN_H
#define PO_COST_CUDA_RUN_H

#include "base/hash.h"
#include "codegen/cuda/cuda.h"
#include "codegen/cuda/nvrtc.h"
#include "cost/cuda/cuda.h"
#include "cost/timing.h"

/* Somewhere in a buffer; offset in bytes, a multiple of 256 where a library reads or writes. */
typedef struct po_cuda_place {
    uint32_t buffer; /* PO_NONE: nothing */
    int64_t offset;
} po_cuda_place;
#define PO_CUDA_NOWHERE ((po_cuda_place){PO_NONE, 0})

typedef struct po_cuda_buffer {
    int64_t bytes;
    const void *data; /* so many bytes, copied there before anything runs; NULL: zeros */
} po_cuda_buffer;

typedef enum po_cuda_act { PO_CUDA_PLAIN, PO_CUDA_RELU, PO_CUDA_GELU_TANH } po_cuda_act;

/* y = act(a b + bias + c), all row-major: a is m x k, or k x m where `turn_a`; b likewise. `apart`:
 * elements from one row to the next; `step`: from one matrix of the batch to the next, 0: the same
 * one for all. bias: n values, one a column. */
typedef struct po_cuda_matmul {
    po_mu_type type; /* of all of them; sums are in f32 */
    bool tf32;       /* f32 only */
    bool turn_a, turn_b;
    int64_t m, n, k, batch;
    int64_t apart_a, apart_b, apart_c, apart_y;
    int64_t step_a, step_b, step_c, step_y;
    po_cuda_place a, b, y, bias, c; /* bias, c: or nowhere */
    po_cuda_act act;
} po_cuda_matmul;

enum { PO_CUDA_SPATIAL = 3 };

/* y = act(conv(x, w) + z + bias): x [n,c,in], w [k,c/groups,kernel], y and z [n,k,out], bias [k].
 * One axis is done as two, the first of length 1. */
typedef struct po_cuda_conv {
    po_mu_type type;
    bool tf32;
    bool channels_last; /* how x, w, y and z lie: [n,in,c], [k,kernel,c/groups], [n,out,k] */
    uint32_t spatial;   /* 1 to 3 */
    int64_t n, c, k, groups;
    int64_t in[PO_CUDA_SPATIAL], kernel[PO_CUDA_SPATIAL], out[PO_CUDA_SPATIAL];
    int64_t stride[PO_CUDA_SPATIAL], dilation[PO_CUDA_SPATIAL];
    int64_t before[PO_CUDA_SPATIAL], after[PO_CUDA_SPATIAL]; /* padding */
    po_cuda_place x, w, y, bias, z;                          /* bias, z: or nowhere */
    po_cuda_act act;                                         /* PLAIN or RELU */
} po_cuda_conv;

/* One launch of a program; its args are places here. */
typedef struct po_cuda_call {
    const po_cuda_image *image; /* for the GPU at hand; NULL where nothing is run */
    const po_cuda_launch *launch;
    const po_cuda_place *args; /* launch->n_args of them */
    po_hash source; /* of the program's text and the launch's number: what records go by */
} po_cuda_call;

typedef struct po_cuda_copy {
    po_cuda_place from, to;
    int64_t bytes;
} po_cuda_copy;

typedef enum po_cuda_step_kind {
    PO_CUDA_KERNEL,
    PO_CUDA_MATMUL,
    PO_CUDA_CONV,
    PO_CUDA_COPY
} po_cuda_step_kind;

typedef struct po_cuda_step {
    po_cuda_step_kind kind;
    const char *what; /* for people: "Conv 'layer1.0'" */
    union {
        po_cuda_call kernel;
        po_cuda_matmul matmul;
        po_cuda_conv conv;
        po_cuda_copy copy;
    } u;
} po_cuda_step;

/* The places of a step, to be looked at or changed; those behind the first `needed` may be nowhere.
 * A launch's are copied first: steps may share them. In the arena. */
typedef struct po_cuda_places {
    po_cuda_place **list;
    uint32_t n, needed;
} po_cuda_places;
po_cuda_places po_cuda_step_places(po_arena *arena, po_cuda_step *step);

typedef struct po_cuda_output {
    po_cuda_place place;
    int64_t bytes;
} po_cuda_output;

typedef struct po_cuda_plan {
    const char *name;
    uint32_t n_buffers, n_steps, n_outputs;
    const po_cuda_buffer *buffers;
    const po_cuda_step *steps;
    const po_cuda_output *outputs;
} po_cuda_plan;

/* Steps of a program (appended by the caller where it wants them): inputs, weights and outputs by
 * number; `device` is where the program's device memory begins. In an arena. */
typedef struct po_cuda_io {
    const po_cuda_place *inputs, *weights, *outputs;
    po_cuda_place device;
} po_cuda_io;
/* Hash of a program's text and launches, without the names of its symbols. */
po_hash po_cuda_program_hash(const po_cuda_program *program);
const po_cuda_step *po_cuda_program_steps(po_arena *arena, const po_cuda_program *program,
                                          const po_cuda_image *image, const po_cuda_io *io);

/* Runs a plan once, in a child: launch by launch, or as a graph. outputs: one a plan's output, in
 * the arena. PO_RUNTIME: no GPU, or something failed, which is named; PO_UNSUPPORTED: a library has
 * no algorithm for a step. */
po_status po_cuda_execute(po_ctx *ctx, po_arena *arena, const po_cuda_options *options,
                          const po_cuda_plan *plan, bool as_graph, po_bytes *outputs);

typedef struct po_cuda_timing {
    const po_cuda_options *options;
    uint32_t n; /* at most PO_TIMING_MAX */
    const po_cuda_plan *const *plans;
    double seconds; /* aim for at most this long; 0: 8 s */
    uint64_t seed;
    bool cold;    /* the L2 is flushed before each run, else it holds what the run before left */
    bool ranking; /* as in po_timing_spec */
    bool thorough;
} po_cuda_timing;

/* Seconds of one run of each plan, by events, after warm-up, interleaved, in several processes;
 * gains over the first plan with their intervals (cost/timing.h). */
po_status po_cuda_time(po_ctx *ctx, const po_cuda_timing *spec, po_timing *timing,
                       po_timing_work *work);

/* Compares elements with float64: |y - reference| <= k u S, where u is half a unit in the last
 * place of `type` (tf32: of 10 bits of mantissa), S the sum of the absolute values that were added
 * up, and the least number of the type is allowed on top. Infinities and NaNs must agree. */
typedef struct po_cuda_error {
    int64_t bad, index;   /* elements beyond the bound; the worst element, -1: none */
    double got, expected; /* there */
    double worst;         /* largest error in u S */
} po_cuda_error;
bool po_cuda_compare(po_mu_type type, bool tf32, po_bytes got, const double *reference,
                     const double *magnitude, double k, po_cuda_error *error);
/* Stores numbers as a type does, rounded to nearest even; and back. */
void po_cuda_store(po_mu_type type, const double *values, int64_t n, void *to);
void po_cuda_load(po_mu_type type, const void *from, int64_t n, double *values);

#endif
