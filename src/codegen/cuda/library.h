/* The library of a model's kernels for NVIDIA GPUs: printed kernels (codegen/cuda/cuda.h), compiled
 * by NVRTC, as operators of ONNX Runtime's CUDA provider and as TensorRT plugins (docs/cuda.md). */
#ifndef PO_CODEGEN_CUDA_LIBRARY_H
#define PO_CODEGEN_CUDA_LIBRARY_H

#include "codegen/cuda/cuda.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/delivery/library.h"

/* The version of what stands between a node and its kernels; part of the operators' names. */
enum { PO_CUDA_KERNEL_ABI = 1 };

/* As the nodes of the model say it to TensorRT, in attributes. */
#define PO_PLUGIN_VERSION   "1"
#define PO_PLUGIN_NAMESPACE PO_KERNEL_DOMAIN

typedef struct po_cuda_kernel {
    po_kernel ports;                      /* name, what, numbers and dims; no code */
    const po_mu_type *in, *weights, *out; /* by number: their types */
    po_cuda_program program;
    const po_cuda_image *images; /* by architecture, the PTX last; NULL: not compiled yet */
    uint32_t n_images;
    int cuda; /* of the compiler that made them, as po_nvrtc_cuda */
} po_cuda_kernel;

/* Prints a region's muGraph, whose INPUT, WEIGHT and OUTPUT tensors are the node's (po_kernel_print
 * in library.h). The name is a hash of the muGraph with the types of its tensors, of the options
 * and of the ABI. PO_UNSUPPORTED where a statement has no printer. */
po_status po_cuda_kernel_print(po_ctx *ctx, po_arena *arena, const po_mu *mu,
                               const po_cuda_print_options *options, po_cuda_kernel *kernel);

/* Compiles it for all architectures and as PTX, on all processors. Images that the store has are
 * not made again. */
po_status po_cuda_kernel_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                 const po_object_store *store, po_cuda_kernel *kernel);

/* The same for one GPU alone, of this architecture: the image that a library with all of them would
 * run there. */
po_status po_cuda_kernel_compile_for(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                     const po_object_store *store, uint32_t arch,
                                     po_cuda_kernel *kernel);

/* The same of many, for one GPU (arch) or for all (0). why: by kernel, in the arena, why it cannot
 * be compiled, which is no failure of the call; NULL: it is. */
po_status po_cuda_kernels_compile(po_ctx *ctx, po_arena *arena, const po_nvrtc *nvrtc,
                                  const po_object_store *store, uint32_t arch,
                                  po_cuda_kernel *const *kernels, uint32_t n, const char **why);

typedef struct po_cuda_library_spec {
    const char *cc;               /* as for po_cc_library */
    const po_object_store *store; /* of objects of the C compiler; NULL: none */
    const po_cuda_kernel *kernels;
    uint32_t n_kernels;
    const char *flags; /* further ones for every file; NULL: none */
} po_cuda_library_spec;

/* The library beside the sources it is built from, held in memory as po_library_build's is:
 * po_library_begin writes it, with the sources of the TensorRT plugins in DIR/tensorrt. */
po_status po_cuda_library_build(po_ctx *ctx, po_arena *arena, const po_cuda_library_spec *spec,
                                const po_library **library);

#endif
