/* The instruction sets that kernels for the CPU are printed for: vector length, registers and the
 * compiler's flags. */
#include "base/num.h"
#include "codegen/cpu/kernel.h"

const po_isa po_isas[PO_ISAS] = {
    [PO_ISA_AVX512] = {"avx512", 16, 32,
                       "-mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl "
                       "-mprefer-vector-width=512 -mtune=generic"},
    [PO_ISA_AVX2] = {"avx2", 8, 16, "-mavx2 -mfma"},
};

double po_isa_cycles(int64_t rows, int64_t high, int64_t vectors) {
    enum { LATENCY = 4 };
    const double start = 0.2; /* of a tile: the loop, its sums are stored */
    const int64_t rest = rows % high;
    double whole = (double)(high * vectors) / 2, last = (double)(rest * vectors) / 2;
    whole = (whole < LATENCY ? LATENCY : whole) + start;
    last = rest == 0 ? 0 : (last < LATENCY ? LATENCY : last) + start;
    return (double)(rows / high) * whole + last;
}

void po_isa_tile(const po_isa *isa, int64_t extent, int64_t *rows, int64_t *lanes) {
    const int64_t registers = isa->registers, w = isa->lanes;
    /* Accumulators, a row of vectors, and what is multiplied by it; where those are few, one more
     * for what the compiler moves. */
    const int64_t few = registers >= 32 ? 4 : 2, more = registers >= 32 ? 1 : 2;
    int64_t vectors = po_ceil_div(*lanes, w);
    if (*rows == 1 && vectors + more > registers) /* each is read where it is used */
        vectors = registers / 2;
    if (*rows * vectors + vectors + more > registers && vectors > few && *rows > 1)
        vectors = few;
    while (*rows > 1 && *rows * vectors + vectors + more > registers)
        --*rows;
    const double worth = 0.98; /* lower tiles read the weights more often */
    for (int64_t high = *rows - 1, most = *rows; extent > most && high > 0 && 2 * high >= most;
         high--)
        if (po_isa_cycles(extent, high, vectors) < worth * po_isa_cycles(extent, *rows, vectors))
            *rows = high;
    *lanes = vectors * w;
}
