// What every printed CUDA file starts with. First the primitives: all PTX is in them. Where
// PC_EMULATED is defined, whoever compiles the text has defined them, and what CUDA C has beyond
// C++ (__global__, threadIdx, ...). Then helpers in plain C++ over them.
typedef unsigned short pc_f16, pc_bf16; // bits
#ifndef PC_EMULATED // which looks at every access, and not at copies of structures
struct __align__(16) pc_u4 {
    unsigned x, y, z, w;
};
struct __align__(8) pc_u2 {
    unsigned x, y;
};
#endif
#define PC_FN __device__ __forceinline__
// For __launch_bounds__: for sm_100 the compiler would rather spill than take more registers than
// suit many blocks, unless it is told that one is enough.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define PC_BOUNDS(threads) threads, 1
#else
#define PC_BOUNDS(threads) threads
#endif

#ifndef PC_EMULATED
// The block's dynamic shared memory.
#define PC_SHARED(name)                                                                            \
    extern __shared__ __align__(128) unsigned char pc_dynamic[];                                   \
    unsigned char *const name = pc_dynamic

PC_FN unsigned pc_address(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared); }
PC_FN void pc_barrier() { __syncthreads(); }
PC_FN void pc_warp_barrier() { __syncwarp(); }
// The value of the lane whose number is this one's xor mask.
PC_FN float pc_shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }

// Rounded to the nearest, ties to even.
PC_FN float pc_from_f16(pc_f16 v) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v));
    return f;
}
PC_FN pc_f16 pc_to_f16(float v) {
    pc_f16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
PC_FN float pc_from_bf16(pc_bf16 v) { return __uint_as_float((unsigned)v << 16); }
PC_FN pc_bf16 pc_to_bf16(float v) {
    pc_bf16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
// Two of them in one word, the first in the low half.
PC_FN unsigned pc_pack_f16(float low, float high) {
    unsigned v;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
PC_FN unsigned pc_pack_bf16(float low, float high) {
    unsigned v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}
// The bits of a tf32 value, rounded to 10 bits of mantissa.
PC_FN unsigned pc_to_tf32(float v) {
    unsigned t;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(t) : "f"(v));
    return t;
}
// NaN where either is.
PC_FN float pc_max(float a, float b) {
    float v;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
}
PC_FN float pc_min(float a, float b) {
    float v;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
    return v;
}

// d += a b of a warp: m16n8k16, m16n8k8 for tf32; fragments as PTX lays them out.
PC_FN void pc_mma_f16(float d[4], const unsigned a[4], const unsigned b[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
PC_FN void pc_mma_bf16(float d[4], const unsigned a[4], const unsigned b[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
PC_FN void pc_mma_tf32(float d[4], const unsigned a[4], const unsigned b[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Matrices of 8 x 8 halves: lane 8 i + r points to row r of matrix i (16 bytes, in shared memory).
PC_FN void pc_ldmatrix4(unsigned r[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(pc_address(row))
                 : "memory");
}
PC_FN void pc_ldmatrix4_trans(unsigned r[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(pc_address(row))
                 : "memory");
}
PC_FN void pc_ldmatrix2(unsigned r[2], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(pc_address(row))
                 : "memory");
}
PC_FN void pc_ldmatrix2_trans(unsigned r[2], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(pc_address(row))
                 : "memory");
}
// Copies from global to shared memory behind the thread's back: there once the group that they
// were committed in is waited for. `bytes` of the source are read, zeros follow.
PC_FN void pc_copy16(void *shared, const void *global, int bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(pc_address(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
}
PC_FN void pc_copy8(void *shared, const void *global, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(pc_address(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
}
PC_FN void pc_copy4(void *shared, const void *global, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(pc_address(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
}
PC_FN void pc_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most N groups are still in flight.
template <int N> PC_FN void pc_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#else // those that are one instruction here and plain C++ elsewhere
PC_FN unsigned pc_pack_f16(float low, float high) {
    return pc_to_f16(low) | (unsigned)pc_to_f16(high) << 16;
}
PC_FN unsigned pc_pack_bf16(float low, float high) {
    return pc_to_bf16(low) | (unsigned)pc_to_bf16(high) << 16;
}
PC_FN unsigned pc_to_tf32(float v) {
    const unsigned bits = __float_as_uint(v);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
PC_FN float pc_max(float a, float b) { return a != a || b != b ? a + b : a > b ? a : b; }
PC_FN float pc_min(float a, float b) { return a != a || b != b ? a + b : a < b ? a : b; }
#endif

PC_FN float pc_shuffle(float v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
PC_FN unsigned pc_bits(float v) { return __float_as_uint(v); }
PC_FN float pc_float(unsigned v) { return __uint_as_float(v); }

#define PC_INF pc_float(0x7f800000u)

PC_FN float pc_abs(float a) { return fabsf(a); }
PC_FN float pc_exp(float a) { return expf(a); }
PC_FN float pc_log(float a) { return logf(a); }
PC_FN float pc_sqrt(float a) { return sqrtf(a); }
PC_FN float pc_tanh(float a) { return tanhf(a); }
PC_FN float pc_erf(float a) { return erff(a); }
PC_FN float pc_sigmoid(float a) { return 1.0f / (1.0f + expf(-a)); }
PC_FN float pc_floor(float a) { return floorf(a); }
PC_FN float pc_pow(float a, float b) { return powf(a, b); }
PC_FN float pc_less(float a, float b) { return a < b ? 1.0f : 0.0f; }
PC_FN float pc_choose(float a, float b, float c) { return a != 0.0f ? b : c; }

// Elements by type: load, store, as stored.
PC_FN float pc_get(const float *p) { return *p; }
PC_FN void pc_put(float *p, float v) { *p = v; }
PC_FN float pc_get_f16(const pc_f16 *p) { return pc_from_f16(*p); }
PC_FN void pc_put_f16(pc_f16 *p, float v) { *p = pc_to_f16(v); }
PC_FN float pc_get_bf16(const pc_bf16 *p) { return pc_from_bf16(*p); }
PC_FN void pc_put_bf16(pc_bf16 *p, float v) { *p = pc_to_bf16(v); }

// The halves of a word.
PC_FN float pc_low_f16(unsigned v) { return pc_from_f16((pc_f16)(v & 0xffffu)); }
PC_FN float pc_high_f16(unsigned v) { return pc_from_f16((pc_f16)(v >> 16)); }
PC_FN float pc_low_bf16(unsigned v) { return pc_float(v << 16); }
PC_FN float pc_high_bf16(unsigned v) { return pc_float(v & 0xffff0000u); }

// 16 bytes as values and back.
PC_FN void pc_get16(float *v, const float *p) {
    const pc_u4 u = *(const pc_u4 *)p;
    v[0] = pc_float(u.x), v[1] = pc_float(u.y), v[2] = pc_float(u.z), v[3] = pc_float(u.w);
}
PC_FN void pc_put16(float *p, const float *v) {
    pc_u4 u;
    u.x = pc_bits(v[0]), u.y = pc_bits(v[1]), u.z = pc_bits(v[2]), u.w = pc_bits(v[3]);
    *(pc_u4 *)p = u;
}
PC_FN void pc_get8(float *v, const float *p) {
    const pc_u2 u = *(const pc_u2 *)p;
    v[0] = pc_float(u.x), v[1] = pc_float(u.y);
}
PC_FN void pc_put8(float *p, const float *v) {
    pc_u2 u;
    u.x = pc_bits(v[0]), u.y = pc_bits(v[1]);
    *(pc_u2 *)p = u;
}
#define PC_HALVES(T)                                                                               \
    PC_FN void pc_get16_##T(float *v, const pc_##T *p) {                                           \
        const pc_u4 u = *(const pc_u4 *)p;                                                         \
        v[0] = pc_low_##T(u.x), v[1] = pc_high_##T(u.x);                                           \
        v[2] = pc_low_##T(u.y), v[3] = pc_high_##T(u.y);                                           \
        v[4] = pc_low_##T(u.z), v[5] = pc_high_##T(u.z);                                           \
        v[6] = pc_low_##T(u.w), v[7] = pc_high_##T(u.w);                                           \
    }                                                                                              \
    PC_FN void pc_put16_##T(pc_##T *p, const float *v) {                                           \
        pc_u4 u;                                                                                   \
        u.x = pc_pack_##T(v[0], v[1]), u.y = pc_pack_##T(v[2], v[3]);                              \
        u.z = pc_pack_##T(v[4], v[5]), u.w = pc_pack_##T(v[6], v[7]);                              \
        *(pc_u4 *)p = u;                                                                           \
    }                                                                                              \
    PC_FN void pc_get8_##T(float *v, const pc_##T *p) {                                            \
        const pc_u2 u = *(const pc_u2 *)p;                                                         \
        v[0] = pc_low_##T(u.x), v[1] = pc_high_##T(u.x);                                           \
        v[2] = pc_low_##T(u.y), v[3] = pc_high_##T(u.y);                                           \
    }                                                                                              \
    PC_FN void pc_put8_##T(pc_##T *p, const float *v) {                                            \
        pc_u2 u;                                                                                   \
        u.x = pc_pack_##T(v[0], v[1]), u.y = pc_pack_##T(v[2], v[3]);                              \
        *(pc_u2 *)p = u;                                                                           \
    }                                                                                              \
    PC_FN void pc_get4_##T(float *v, const pc_##T *p) {                                            \
        const unsigned u = *(const unsigned *)p;                                                   \
        v[0] = pc_low_##T(u), v[1] = pc_high_##T(u);                                               \
    }                                                                                              \
    PC_FN void pc_put4_##T(pc_##T *p, const float *v) {                                            \
        *(unsigned *)p = pc_pack_##T(v[0], v[1]);                                                  \
    }
PC_HALVES(f16)
PC_HALVES(bf16)

// The sum and the maximum of a group of lanes, a power of two of them side by side; all get it.
template <int N> PC_FN float pc_sum(float v) {
#pragma unroll
    for (int mask = N / 2; mask > 0; mask /= 2)
        v += pc_shuffle_xor(v, mask);
    return v;
}
template <int N> PC_FN float pc_most(float v) {
#pragma unroll
    for (int mask = N / 2; mask > 0; mask /= 2)
        v = pc_max(v, pc_shuffle_xor(v, mask));
    return v;
}
