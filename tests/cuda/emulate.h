// What CUDA C has within itself, for a C++ compiler: it is put before a printed text, which then
// runs on the CPU (docs/cuda-testing.md). Without headers, so that it compiles fast. Everything
// that threads do together is done by the emulator, emu_*.
#ifndef PC_EMULATED
#define PC_EMULATED 1
#endif

extern "C" {
struct emu_dim3 {
    unsigned x, y, z;
};
extern emu_dim3 threadIdx, blockIdx, blockDim, gridDim;

enum { EMU_MMA_F16, EMU_MMA_BF16, EMU_MMA_TF32 };
enum { EMU_XOR, EMU_INDEX, EMU_UP, EMU_DOWN };

unsigned char *emu_shared(void);
void emu_barrier(void);
void emu_warp_barrier(void);
void emu_mma(int kind, float *d, const unsigned *a, const unsigned *b);
void emu_ldmatrix(int count, int transposed, unsigned *r, const void *row);
unsigned emu_shuffle(unsigned bits, int how, int by, int width);
unsigned emu_ballot(int yes);
void emu_copy(void *shared, const void *global, int size, int bytes);
void emu_commit(void);
void emu_wait(int groups);
void emu_trap(void);
float emu_from_f16(unsigned short h);
unsigned short emu_to_f16(float f);
int printf(const char *format, ...);

float expf(float);
float exp2f(float);
float logf(float);
float log2f(float);
float log1pf(float);
float expm1f(float);
float sqrtf(float);
float tanhf(float);
float erff(float);
float sinf(float);
float cosf(float);
float tanf(float);
float asinf(float);
float acosf(float);
float atanf(float);
float sinhf(float);
float coshf(float);
float asinhf(float);
float acoshf(float);
float atanhf(float);
float powf(float, float);
float fabsf(float);
float floorf(float);
float ceilf(float);
float rintf(float);
float roundf(float);
float truncf(float);
float nearbyintf(float);
float fmaf(float, float, float);
float fmaxf(float, float);
float fminf(float, float);
float fmodf(float, float);
float copysignf(float, float);
double exp(double);
double fma(double, double, double);
double fmax(double, double);
double fmin(double, double);
double fabs(double);
double sqrt(double);
void *memset(void *, int, unsigned long);
void *memcpy(void *, const void *, unsigned long);
}

#define __global__
#define __device__
#define __host__
#define __constant__    static const
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __grid_constant__

typedef unsigned long size_t;

// Copied member by member: so the compiler's calls for loads and stores see each.
#define EMU_VECTOR2(name, type, align)                                                             \
    struct alignas(align) name {                                                                   \
        type x, y;                                                                                 \
        name() {                                                                                   \
        }                                                                                          \
        name(type a, type b) : x(a), y(b) {                                                        \
        }                                                                                          \
        name(const name &o) : x(o.x), y(o.y) {                                                     \
        }                                                                                          \
        name &operator=(const name &o) {                                                           \
            x = o.x, y = o.y;                                                                      \
            return *this;                                                                          \
        }                                                                                          \
    };                                                                                             \
    static inline name make_##name(type a, type b) {                                               \
        return name(a, b);                                                                         \
    }
#define EMU_VECTOR4(name, type, align)                                                             \
    struct alignas(align) name {                                                                   \
        type x, y, z, w;                                                                           \
        name() {                                                                                   \
        }                                                                                          \
        name(type a, type b, type c, type d) : x(a), y(b), z(c), w(d) {                            \
        }                                                                                          \
        name(const name &o) : x(o.x), y(o.y), z(o.z), w(o.w) {                                     \
        }                                                                                          \
        name &operator=(const name &o) {                                                           \
            x = o.x, y = o.y, z = o.z, w = o.w;                                                    \
            return *this;                                                                          \
        }                                                                                          \
    };                                                                                             \
    static inline name make_##name(type a, type b, type c, type d) {                               \
        return name(a, b, c, d);                                                                   \
    }
EMU_VECTOR2(uint2, unsigned, 8)
EMU_VECTOR2(int2, int, 8)
EMU_VECTOR2(float2, float, 8)
EMU_VECTOR2(ushort2, unsigned short, 4)
EMU_VECTOR4(uint4, unsigned, 16)
EMU_VECTOR4(int4, int, 16)
EMU_VECTOR4(float4, float, 16)
EMU_VECTOR4(ushort4, unsigned short, 8)

#define __syncthreads() emu_barrier()
#define __syncwarp(...) emu_warp_barrier()
#define __trap()        emu_trap()

static inline unsigned __float_as_uint(float f) {
    return __builtin_bit_cast(unsigned, f);
}
static inline int __float_as_int(float f) {
    return __builtin_bit_cast(int, f);
}
static inline float __uint_as_float(unsigned u) {
    return __builtin_bit_cast(float, u);
}
static inline float __int_as_float(int i) {
    return __builtin_bit_cast(float, i);
}

static inline float __shfl_xor_sync(unsigned, float v, int by, int width = 32) {
    return __uint_as_float(emu_shuffle(__float_as_uint(v), EMU_XOR, by, width));
}
static inline unsigned __shfl_xor_sync(unsigned, unsigned v, int by, int width = 32) {
    return emu_shuffle(v, EMU_XOR, by, width);
}
static inline int __shfl_xor_sync(unsigned, int v, int by, int width = 32) {
    return (int)emu_shuffle((unsigned)v, EMU_XOR, by, width);
}
static inline float __shfl_sync(unsigned, float v, int lane, int width = 32) {
    return __uint_as_float(emu_shuffle(__float_as_uint(v), EMU_INDEX, lane, width));
}
static inline unsigned __shfl_sync(unsigned, unsigned v, int lane, int width = 32) {
    return emu_shuffle(v, EMU_INDEX, lane, width);
}
static inline int __shfl_sync(unsigned, int v, int lane, int width = 32) {
    return (int)emu_shuffle((unsigned)v, EMU_INDEX, lane, width);
}
static inline float __shfl_down_sync(unsigned, float v, unsigned by, int width = 32) {
    return __uint_as_float(emu_shuffle(__float_as_uint(v), EMU_DOWN, (int)by, width));
}
static inline float __shfl_up_sync(unsigned, float v, unsigned by, int width = 32) {
    return __uint_as_float(emu_shuffle(__float_as_uint(v), EMU_UP, (int)by, width));
}
static inline unsigned __ballot_sync(unsigned, int yes) {
    return emu_ballot(yes);
}
static inline int __any_sync(unsigned, int yes) {
    return emu_ballot(yes) != 0;
}
static inline int __all_sync(unsigned, int yes) {
    return emu_ballot(!yes) == 0;
}

static inline float __expf(float x) {
    return expf(x);
}
static inline float __exp2f(float x) {
    return exp2f(x);
}
static inline float __logf(float x) {
    return logf(x);
}
static inline float __log2f(float x) {
    return log2f(x);
}
static inline float __powf(float x, float y) {
    return powf(x, y);
}
static inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
static inline float __frsqrt_rn(float x) {
    return 1.0f / sqrtf(x);
}
static inline float __fsqrt_rn(float x) {
    return sqrtf(x);
}
static inline float __frcp_rn(float x) {
    return 1.0f / x;
}
static inline float __fdividef(float x, float y) {
    return x / y;
}
static inline float __fdiv_rn(float x, float y) {
    return x / y;
}
static inline float __fmul_rn(float x, float y) {
    return x * y;
}
static inline float __fadd_rn(float x, float y) {
    return x + y;
}
static inline float __fmaf_rn(float x, float y, float z) {
    return fmaf(x, y, z);
}
static inline float __saturatef(float x) {
    return fminf(fmaxf(x, 0.0f), 1.0f);
}
template <class T> static inline T __ldg(const T *p) {
    return *p;
}
static inline int min(int a, int b) {
    return a < b ? a : b;
}
static inline int max(int a, int b) {
    return a > b ? a : b;
}
static inline unsigned min(unsigned a, unsigned b) {
    return a < b ? a : b;
}
static inline unsigned max(unsigned a, unsigned b) {
    return a > b ? a : b;
}
static inline long long min(long long a, long long b) {
    return a < b ? a : b;
}
static inline long long max(long long a, long long b) {
    return a > b ? a : b;
}
static inline float min(float a, float b) {
    return fminf(a, b);
}
static inline float max(float a, float b) {
    return fmaxf(a, b);
}

// --- the primitives of printed texts (codegen/cuda/cuda.h's prelude) ---

typedef unsigned short pc_f16;
typedef unsigned short pc_bf16;

typedef uint4 pc_u4;
typedef uint2 pc_u2;
#define PC_SHARED(name) unsigned char *const name = emu_shared()

static inline float pc_from_f16(pc_f16 h) {
    return emu_from_f16(h);
}
static inline pc_f16 pc_to_f16(float f) {
    return emu_to_f16(f);
}
static inline float pc_from_bf16(pc_bf16 h) {
    return __uint_as_float((unsigned)h << 16);
}
static inline pc_bf16 pc_to_bf16(float f) {
    unsigned u = __float_as_uint(f);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (pc_bf16)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
static inline void pc_mma_f16(float d[4], const unsigned a[4], const unsigned b[2]) {
    emu_mma(EMU_MMA_F16, d, a, b);
}
static inline void pc_mma_bf16(float d[4], const unsigned a[4], const unsigned b[2]) {
    emu_mma(EMU_MMA_BF16, d, a, b);
}
static inline void pc_mma_tf32(float d[4], const unsigned a[4], const unsigned b[2]) {
    emu_mma(EMU_MMA_TF32, d, a, b);
}
static inline void pc_ldmatrix4(unsigned r[4], const void *row) {
    emu_ldmatrix(4, 0, r, row);
}
static inline void pc_ldmatrix4_trans(unsigned r[4], const void *row) {
    emu_ldmatrix(4, 1, r, row);
}
static inline void pc_ldmatrix2(unsigned r[2], const void *row) {
    emu_ldmatrix(2, 0, r, row);
}
static inline void pc_ldmatrix2_trans(unsigned r[2], const void *row) {
    emu_ldmatrix(2, 1, r, row);
}
static inline void pc_copy16(void *shared, const void *global, int bytes) {
    emu_copy(shared, global, 16, bytes);
}
static inline void pc_copy8(void *shared, const void *global, int bytes) {
    emu_copy(shared, global, 8, bytes);
}
static inline void pc_copy4(void *shared, const void *global, int bytes) {
    emu_copy(shared, global, 4, bytes);
}
static inline void pc_commit(void) {
    emu_commit();
}
template <int N> static inline void pc_wait(void) {
    emu_wait(N);
}
static inline float pc_shuffle_xor(float v, int mask) {
    return __shfl_xor_sync(~0u, v, mask);
}
static inline void pc_barrier(void) {
    emu_barrier();
}
static inline void pc_warp_barrier(void) {
    emu_warp_barrier();
}

// --- how a kernel is called with an array of pointers to its arguments ---

template <unsigned long... I> struct emu_numbers {};
template <unsigned long N, unsigned long... I>
struct emu_numbers_to : emu_numbers_to<N - 1, N - 1, I...> {};
template <unsigned long... I> struct emu_numbers_to<0, I...> { typedef emu_numbers<I...> type; };
template <class... A, unsigned long... I>
static void emu_apply(void (*kernel)(A...), void **p, emu_numbers<I...>) {
    kernel(*(A *)p[I]...);
}
template <class... A> static void emu_call(void (*kernel)(A...), void **p) {
    emu_apply(kernel, p, typename emu_numbers_to<sizeof...(A)>::type());
}
template <class... A> static const unsigned *emu_sizes(void (*)(A...)) {
    static const unsigned sizes[] = {(unsigned)sizeof(A)..., 0};
    return sizes;
}
#define EMU_KERNEL(name)                                                                           \
    extern "C" void name##__call(void **p) {                                                       \
        emu_call(name, p);                                                                         \
    }                                                                                              \
    extern "C" const unsigned *name##__sizes() {                                                   \
        return emu_sizes(name);                                                                    \
    }
