/* The instruction sets that kernels for the CPU are printed for: vector length, registers and the
 * compiler's flags. */
#include "codegen/cpu/kernel.h"

const po_isa po_isas[PO_ISAS] = {
    [PO_ISA_AVX512] = {"avx512", 16, 32,
                       "-mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl "
                       "-mprefer-vector-width=512 -mtune=generic"},
    [PO_ISA_AVX2] = {"avx2", 8, 16, "-mavx2 -mfma"},
};

void po_isa_tile(const po_isa *isa, int64_t *rows, int64_t *lanes) {
    const int64_t registers = isa->registers, w = isa->lanes;
    /* Accumulators, a row of vectors, and what is multiplied by it; where those are few, one more
     * for what the compiler moves. */
    const int64_t most = registers >= 32 ? 4 : 2, more = registers >= 32 ? 1 : 2;
    int64_t vectors = (*lanes + w - 1) / w;
    if (*rows == 1 && vectors + more > registers) /* each is read where it is used */
        vectors = registers / 2;
    if (*rows * vectors + vectors + more > registers && vectors > most && *rows > 1)
        vectors = most;
    while (*rows > 1 && *rows * vectors + vectors + more > registers)
        --*rows;
    *lanes = vectors * w;
}
