/* The instruction sets that kernels for the CPU are printed for: vector length, registers and the
 * compiler's flags. */
#include "codegen/cpu/kernel.h"

const po_isa po_isas[PO_ISAS] = {
    [PO_ISA_AVX512] = {"avx512", 16, 32,
                       "-mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl "
                       "-mprefer-vector-width=512 -mtune=generic"},
    [PO_ISA_AVX2] = {"avx2", 8, 16, "-mavx2 -mfma"},
};
