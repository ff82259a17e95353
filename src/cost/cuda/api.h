/* NVIDIA's libraries as petopt calls them: the functions of api.def as tables that are filled
 * by dlopen, and what of the libraries' constants and structures they need. petopt is built without
 * NVIDIA's headers; tests/gpu/headers.c compares all of this with them where they are.
 * For code inside po_isolate's children only. */
#ifndef PO_COST_CUDA_API_H
#define PO_COST_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#define PO_CUDA_MEMBER(returns, name, parameters, arguments) returns(*name) parameters;

typedef struct po_cu { /* the driver: libcuda.so.1 */
#define PO_CU_ROW PO_CUDA_MEMBER
#include "cost/cuda/api.def"
} po_cu;

typedef struct po_lt { /* libcublasLt */
#define PO_LT_ROW PO_CUDA_MEMBER
#include "cost/cuda/api.def"
} po_lt;

typedef struct po_dnn { /* libcudnn 9: its graph interface alone */
#define PO_DNN_ROW PO_CUDA_MEMBER
#include "cost/cuda/api.def"
} po_dnn;

/* --- the driver's --- */

enum {
    PO_CU_SUCCESS = 0,
    PO_CU_NO_MEMORY = 2,
    PO_CU_NO_DEVICE = 100,
    PO_CU_CLOCK_RATE = 13, /* kHz */
    PO_CU_SMS = 16,
    PO_CU_L2 = 38,
    PO_CU_MAJOR = 75,
    PO_CU_MINOR = 76,
    PO_CU_SHARED_SM = 81,
    PO_CU_REGISTERS_SM = 82,
    PO_CU_SHARED_BLOCK = 97,  /* that a block may opt in to */
    PO_CU_DYNAMIC_SHARED = 8, /* of a function */
    PO_CU_STREAM_NON_BLOCKING = 1,
    PO_CU_CAPTURE_RELAXED = 2, /* cuBLAS and cuDNN may do what a capture else forbids */
    PO_CU_EVENT_DEFAULT = 0
};

/* --- cuBLASLt's --- */

enum {
    PO_LT_R_32F = 0,
    PO_LT_R_16F = 2,
    PO_LT_R_16BF = 14,
    PO_LT_COMPUTE_32F = 68,
    PO_LT_COMPUTE_32F_PEDANTIC = 69, /* no TF32, whatever the environment says */
    PO_LT_COMPUTE_32F_FAST_TF32 = 77,
    PO_LT_OP_T = 1,
    PO_LT_DESC_TRANSA = 3,
    PO_LT_DESC_TRANSB = 4,
    PO_LT_DESC_EPILOGUE = 7,
    PO_LT_DESC_BIAS_POINTER = 8,
    PO_LT_DESC_BIAS_TYPE = 26,
    PO_LT_LAYOUT_BATCH = 5,
    PO_LT_LAYOUT_BATCH_STRIDE = 6,
    PO_LT_PREF_WORKSPACE = 1,
    PO_LT_EPILOGUE_RELU = 2,
    PO_LT_EPILOGUE_BIAS = 4,
    PO_LT_EPILOGUE_GELU = 32, /* by tanh */
    PO_LT_ALGORITHM_WORDS = 8
};

typedef struct po_lt_algorithm {
    uint64_t words[PO_LT_ALGORITHM_WORDS];
} po_lt_algorithm;

typedef struct po_lt_heuristic {
    po_lt_algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} po_lt_heuristic;

/* --- cuDNN's --- */

enum {
    PO_DNN_NOT_SUPPORTED = 3000, /* 3000 to 3999 */
    /* kinds of descriptors */
    PO_DNN_POINTWISE = 0,
    PO_DNN_CONVOLUTION = 1,
    PO_DNN_ENGINE = 2,
    PO_DNN_ENGINECFG = 3,
    PO_DNN_ENGINEHEUR = 4,
    PO_DNN_EXECUTION_PLAN = 5,
    PO_DNN_OPERATION_CONVOLUTION = 10,
    PO_DNN_OPERATION_POINTWISE = 13,
    PO_DNN_OPERATIONGRAPH = 15,
    PO_DNN_VARIANT_PACK = 16,
    PO_DNN_TENSOR = 17,
    /* types of attributes */
    PO_DNN_T_HANDLE = 0,
    PO_DNN_T_DATA_TYPE = 1,
    PO_DNN_T_BOOLEAN = 2,
    PO_DNN_T_INT64 = 3,
    PO_DNN_T_FLOAT = 4,
    PO_DNN_T_DOUBLE = 5,
    PO_DNN_T_POINTER = 6,
    PO_DNN_T_CONVOLUTION_MODE = 7,
    PO_DNN_T_HEUR_MODE = 8,
    PO_DNN_T_NUMERICAL_NOTE = 11,
    PO_DNN_T_POINTWISE_MODE = 14,
    PO_DNN_T_DESCRIPTOR = 15,
    /* attributes */
    PO_DNN_POINTWISE_MODE = 0,
    PO_DNN_POINTWISE_PREC = 1,
    PO_DNN_CONV_COMP_TYPE = 100,
    PO_DNN_CONV_MODE = 101,
    PO_DNN_CONV_DILATIONS = 102,
    PO_DNN_CONV_STRIDES = 103,
    PO_DNN_CONV_POST_PADDINGS = 104,
    PO_DNN_CONV_PRE_PADDINGS = 105,
    PO_DNN_CONV_SPATIAL_DIMS = 106,
    PO_DNN_HEUR_MODE = 200,
    PO_DNN_HEUR_GRAPH = 201,
    PO_DNN_HEUR_RESULTS = 202,
    PO_DNN_CFG_ENGINE = 300,
    PO_DNN_PLAN_HANDLE = 400,
    PO_DNN_PLAN_CONFIG = 401,
    PO_DNN_PLAN_WORKSPACE = 402,
    PO_DNN_OPCONV_ALPHA = 700,
    PO_DNN_OPCONV_BETA = 701,
    PO_DNN_OPCONV_DESC = 702,
    PO_DNN_OPCONV_W = 703,
    PO_DNN_OPCONV_X = 704,
    PO_DNN_OPCONV_Y = 705,
    PO_DNN_OPPOINT_DESC = 750,
    PO_DNN_OPPOINT_X = 751,
    PO_DNN_OPPOINT_B = 752,
    PO_DNN_OPPOINT_Y = 753,
    PO_DNN_GRAPH_HANDLE = 800,
    PO_DNN_GRAPH_OPS = 801,
    PO_DNN_TENSOR_ALIGNMENT = 900,
    PO_DNN_TENSOR_TYPE = 901,
    PO_DNN_TENSOR_DIMS = 902,
    PO_DNN_TENSOR_STRIDES = 903,
    PO_DNN_TENSOR_ID = 906,
    PO_DNN_TENSOR_IS_VIRTUAL = 907,
    PO_DNN_PACK_IDS = 1000,
    PO_DNN_PACK_POINTERS = 1001,
    PO_DNN_PACK_WORKSPACE = 1003,
    PO_DNN_ENGINE_NOTES = 1303,
    /* values */
    PO_DNN_FLOAT = 0,
    PO_DNN_HALF = 2,
    PO_DNN_BFLOAT16 = 9,
    PO_DNN_CROSS_CORRELATION = 1,
    PO_DNN_MODE_ADD = 0,
    PO_DNN_MODE_RELU = 100,
    PO_DNN_HEUR_FALLBACK = 2,
    PO_DNN_HEUR_A = 3,
    PO_DNN_NOTE_TENSOR_CORE = 0,
    PO_DNN_NOTE_DOWN_CONVERT = 1,
    PO_DNN_NOTE_FFT = 3,
    PO_DNN_NOTE_NONDETERMINISTIC = 4,
    PO_DNN_NOTE_WINOGRAD = 5,
    PO_DNN_NOTES = 10
};

#endif
