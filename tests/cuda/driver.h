/* The part of the CUDA driver's interface that the emulator offers: what petopt and what it
 * generates call. Handles are void *, enumerations int, as in src/cost/cuda/api.def. */
#ifndef TEST_CUDA_DRIVER_H
#define TEST_CUDA_DRIVER_H

#include "emulator.h"

/* The device that is shown: compute capability times 10. At first "NVIDIA A100-SXM4-40GB", 80. */
EMU_API void emu_device(const char *name, uint32_t arch);

EMU_API int cuInit(unsigned flags);
EMU_API int cuDriverGetVersion(int *version);
EMU_API int cuGetErrorString(int error, const char **text);
EMU_API int cuGetErrorName(int error, const char **text);
EMU_API int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                int *status);
EMU_API int cuDeviceGetCount(int *n);
EMU_API int cuDeviceGet(int *device, int number);
EMU_API int cuDeviceGetName(char *name, int size, int device);
EMU_API int cuDeviceGetAttribute(int *value, int attribute, int device);
EMU_API int cuDeviceTotalMem_v2(size_t *bytes, int device);
EMU_API int cuDevicePrimaryCtxRetain(void **context, int device);
EMU_API int cuDevicePrimaryCtxRelease_v2(int device);
EMU_API int cuCtxSetCurrent(void *context);
EMU_API int cuCtxGetCurrent(void **context);
EMU_API int cuCtxPushCurrent_v2(void *context);
EMU_API int cuCtxPopCurrent_v2(void **context);
EMU_API int cuCtxGetDevice(int *device);
EMU_API int cuCtxSynchronize(void);
EMU_API int cuMemGetInfo_v2(size_t *unused, size_t *total);
EMU_API int cuMemAlloc_v2(uint64_t *memory, size_t bytes);
EMU_API int cuMemFree_v2(uint64_t memory);
EMU_API int cuMemAllocAsync(uint64_t *memory, size_t bytes, void *stream);
EMU_API int cuMemFreeAsync(uint64_t memory, void *stream);
EMU_API int cuMemAllocHost_v2(void **memory, size_t bytes);
EMU_API int cuMemFreeHost(void *memory);
EMU_API int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
EMU_API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
EMU_API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes);
EMU_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
EMU_API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
EMU_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
EMU_API int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t n);
EMU_API int cuMemsetD32_v2(uint64_t to, unsigned value, size_t n);
EMU_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream);
EMU_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t n, void *stream);
EMU_API int cuModuleLoadData(void **module, const void *image);
EMU_API int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options,
                               void **values);
EMU_API int cuModuleUnload(void *module);
EMU_API int cuModuleGetFunction(void **function, void *module, const char *name);
EMU_API int cuFuncSetAttribute(void *function, int attribute, int value);
EMU_API int cuFuncGetAttribute(int *value, int attribute, void *function);
EMU_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                        size_t shared);
EMU_API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                           void *stream, void **parameters, void **extra);
EMU_API int cuStreamCreate(void **stream, unsigned flags);
EMU_API int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
EMU_API int cuStreamDestroy_v2(void *stream);
EMU_API int cuStreamSynchronize(void *stream);
EMU_API int cuStreamGetCtx(void *stream, void **context);
EMU_API int cuStreamQuery(void *stream);
EMU_API int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
EMU_API int cuStreamBeginCapture_v2(void *stream, int mode);
EMU_API int cuStreamEndCapture(void *stream, void **graph);
EMU_API int cuStreamIsCapturing(void *stream, int *status);
EMU_API int cuEventCreate(void **event, unsigned flags);
EMU_API int cuEventDestroy_v2(void *event);
EMU_API int cuEventRecord(void *event, void *stream);
EMU_API int cuEventQuery(void *event);
EMU_API int cuEventSynchronize(void *event);
EMU_API int cuEventElapsedTime(float *milliseconds, void *from, void *to);
EMU_API int cuEventElapsedTime_v2(float *milliseconds, void *from, void *to);
EMU_API int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
EMU_API int cuGraphGetNodes(void *graph, void **nodes, size_t *n);
EMU_API int cuGraphUpload(void *exec, void *stream);
EMU_API int cuGraphLaunch(void *exec, void *stream);
EMU_API int cuGraphExecDestroy(void *exec);
EMU_API int cuGraphDestroy(void *graph);

#endif
