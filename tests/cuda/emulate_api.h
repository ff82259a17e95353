/* What emulate.h calls, as C has it. */
#ifndef TEST_CUDA_EMULATE_API_H
#define TEST_CUDA_EMULATE_API_H

#include "emulator.h"

enum { EMU_MMA_F16, EMU_MMA_BF16, EMU_MMA_TF32 };
enum { EMU_XOR, EMU_INDEX, EMU_UP, EMU_DOWN };

typedef struct emu_dim3 {
    unsigned x, y, z;
} emu_dim3;
EMU_API extern emu_dim3 threadIdx, blockIdx, blockDim, gridDim;

EMU_API unsigned char *emu_shared(void);
EMU_API void emu_barrier(void);
EMU_API void emu_warp_barrier(void);
EMU_API void emu_mma(int kind, float *d, const unsigned *a, const unsigned *b);
EMU_API void emu_ldmatrix(int count, int transposed, unsigned *r, const void *row);
EMU_API unsigned emu_shuffle(unsigned bits, int how, int by, int width);
EMU_API unsigned emu_ballot(int yes);
EMU_API void emu_copy(void *shared, const void *global, int size, int bytes);
EMU_API void emu_commit(void);
EMU_API void emu_wait(int groups);
EMU_API void emu_trap(void);
EMU_API float emu_from_f16(unsigned short h);
EMU_API unsigned short emu_to_f16(float f);

#endif
