/* The part of NVRTC's interface that the emulator offers. */
#ifndef TEST_CUDA_NVRTC_H
#define TEST_CUDA_NVRTC_H

#include "emulator.h"

typedef struct program program;

EMU_API const char *nvrtcGetErrorString(int error);
EMU_API int nvrtcVersion(int *major, int *minor);
EMU_API int nvrtcGetNumSupportedArchs(int *n);
EMU_API int nvrtcGetSupportedArchs(int *archs);
EMU_API int nvrtcCreateProgram(program **p, const char *text, const char *name, int n_headers,
                               const char *const *headers, const char *const *names);
EMU_API int nvrtcDestroyProgram(program **p);
EMU_API int nvrtcCompileProgram(program *p, int n, const char *const *options);
EMU_API int nvrtcGetProgramLogSize(program *p, size_t *bytes);
EMU_API int nvrtcGetProgramLog(program *p, char *log);
EMU_API int nvrtcGetCUBINSize(program *p, size_t *bytes);
EMU_API int nvrtcGetCUBIN(program *p, char *data);
EMU_API int nvrtcGetPTXSize(program *p, size_t *bytes);
EMU_API int nvrtcGetPTX(program *p, char *data);

#endif
