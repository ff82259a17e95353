/* What the lanes of a warp do together, and asynchronous copies. Layouts of fragments as PTX
 * (mma.m16n8k16, mma.m16n8k8, ldmatrix) has them. */
#include "emulate_api.h"
#include "emulator_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- f16 --- */

float emu_from_f16(unsigned short h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, u;
    float f;
    if (e == 31) {
        u = sign | 0x7f800000 | m << 13;
    } else if (e) {
        u = sign | (e + 112) << 23 | m << 13;
    } else {
        f = (float)m * 0x1p-24F;
        return sign ? -f : f;
    }
    memcpy(&f, &u, sizeof f);
    return f;
}

unsigned short emu_to_f16(float f) {
    uint32_t u, sign;
    memcpy(&u, &f, sizeof u);
    sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000)
        return 0x7fff;
    if (u >= 0x477ff000) /* 65520 and more */
        return (unsigned short)(sign | 0x7c00);
    if (u < 0x38800000) { /* below the least normal: a multiple of 2^-24, to even */
        float a;
        memcpy(&a, &u, sizeof a);
        return (unsigned short)(sign | (uint32_t)lrintf(a * 0x1p24F));
    }
    u += 0xfff + (u >> 13 & 1);
    return (unsigned short)(sign | ((u >> 13) - (112 << 10)));
}

static float from_bf16(unsigned h) {
    uint32_t u = h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* --- mma --- */

static float part(int kind, unsigned word, unsigned half) {
    unsigned h = word >> 16 * half & 0xffff;
    return kind == EMU_MMA_F16 ? emu_from_f16((unsigned short)h) : from_bf16(h);
}

static float tf32(unsigned word) {
    uint32_t u = word & 0xffffe000;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void mma(uint32_t first) {
    emu_thread *t = &emu.thread[first];
    int kind = t->kind;
    float a[16][16], b[8][16];
    unsigned k_n = kind == EMU_MMA_TF32 ? 8 : 16;
    for (unsigned lane = 0; lane < EMU_LANES; lane++) {
        unsigned group = lane / 4, in = lane % 4;
        if (kind == EMU_MMA_TF32) {
            for (unsigned i = 0; i < 4; i++)
                a[group + i % 2 * 8][in + i / 2 * 4] = tf32(t[lane].a[i]);
            for (unsigned i = 0; i < 2; i++)
                b[group][in + i * 4] = tf32(t[lane].b[i]);
            continue;
        }
        for (unsigned i = 0; i < 4; i++)
            for (unsigned half = 0; half < 2; half++)
                a[group + i % 2 * 8][in * 2 + half + i / 2 * 8] = part(kind, t[lane].a[i], half);
        for (unsigned i = 0; i < 2; i++)
            for (unsigned half = 0; half < 2; half++)
                b[group][in * 2 + half + i * 8] = part(kind, t[lane].b[i], half);
    }
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned i = 0; i < 4; i++) {
            unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            float sum = t[lane].d[i];
            for (unsigned k = 0; k < k_n; k++)
                sum += a[row][k] * b[column][k]; /* exact products of 11 bits */
            t[lane].d[i] = sum;
        }
}

/* --- ldmatrix --- */

static void ldmatrix(uint32_t first) {
    emu_thread *t = &emu.thread[first];
    unsigned count = (unsigned)t->kind;
    const unsigned char *row[EMU_LANES] = {0};
    for (unsigned lane = 0; lane < 8 * count; lane++) {
        row[lane] = t[lane].row;
        if (!emu_is_shared(row[lane], 16)) {
            emu_fail_at(first + lane, "ldmatrix takes a row outside shared memory (byte %td of %u)",
                        row[lane] - emu_memory_shared(), emu.shared);
            return;
        }
        if ((uintptr_t)row[lane] % 16) {
            emu_fail_at(first + lane, "ldmatrix takes a row that is not aligned to 16 bytes");
            return;
        }
        if (emu.accesses)
            emu_check_load(row[lane], 16, first + lane);
        if (emu.failed)
            return;
    }
    for (unsigned lane = 0; lane < EMU_LANES; lane++)
        for (unsigned m = 0; m < count; m++) {
            unsigned i = lane / 4, j = lane % 4 * 2;
            uint16_t h[2];
            for (unsigned half = 0; half < 2; half++)
                if (t->by)
                    memcpy(&h[half], row[m * 8 + j + half] + 2 * i, 2);
                else
                    memcpy(&h[half], row[m * 8 + i] + 2 * (j + half), 2);
            t[lane].r[m] = h[0] | (unsigned)h[1] << 16;
        }
}

/* --- shuffles --- */

static void shuffle(uint32_t first, uint32_t lanes) {
    emu_thread *t = &emu.thread[first];
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t width = (uint32_t)t[lane].width, base = lane / width * width, by;
        by = (uint32_t)t[lane].by;
        uint32_t from = lane;
        switch (t[lane].kind) {
        case EMU_XOR:
            from = lane ^ by;
            break;
        case EMU_INDEX:
            from = base + by % width;
            break;
        case EMU_UP:
            from = lane - base >= by ? lane - by : lane;
            break;
        default:
            from = lane - base + by < width ? lane + by : lane;
        }
        if (from >= lanes) {
            emu_fail_at(first + lane, "a shuffle takes from lane %u, which the warp has not", from);
            return;
        }
        t[lane].result = t[from].bits;
    }
}

static void ballot(uint32_t first, uint32_t lanes) {
    unsigned all = 0;
    for (uint32_t lane = 0; lane < lanes; lane++)
        all |= (emu.thread[first + lane].bits ? 1U : 0U) << lane;
    for (uint32_t lane = 0; lane < lanes; lane++)
        emu.thread[first + lane].result = all;
}

void emu_warp_perform(uint32_t first, uint32_t lanes) {
    const emu_thread *t = &emu.thread[first];
    for (uint32_t lane = 1; lane < lanes; lane++)
        if (t[lane].op != t->op || (t->op != EMU_OP_BARRIER && t[lane].kind != t->kind)) {
            emu_fail_at(first + lane, "does not what lane 0 of its warp does: lanes have parted "
                                      "where they must act together");
            return;
        }
    if (lanes < EMU_LANES && (t->op == EMU_OP_MMA || t->op == EMU_OP_LDMATRIX)) {
        emu_fail_at(first, "mma or ldmatrix in a warp of %u lanes", lanes);
        return;
    }
    switch (t->op) {
    case EMU_OP_BARRIER:
        emu.warp[first / EMU_LANES].ordered = ++emu.now;
        break;
    case EMU_OP_MMA:
        mma(first);
        break;
    case EMU_OP_LDMATRIX:
        ldmatrix(first);
        break;
    case EMU_OP_SHUFFLE:
        shuffle(first, lanes);
        break;
    case EMU_OP_BALLOT:
        ballot(first, lanes);
        break;
    }
}

/* --- copies --- */

void emu_copies_open(emu_thread *t) {
    if (!t->copies)
        t->copies = malloc(EMU_COPIES * sizeof *t->copies);
    t->n_copies = t->first_copy = t->groups = 0;
}

void emu_copy(void *to, const void *from, int size, int bytes) {
    emu_thread *t = &emu.thread[emu.current];
    if (bytes < 0 || bytes > size)
        emu_fail("copies %d bytes of %d", bytes, size);
    if (!emu_is_shared(to, (uint32_t)size))
        emu_fail("copies outside shared memory (to byte %td of %u)",
                 (unsigned char *)to - emu_memory_shared(), emu.shared);
    if ((uintptr_t)to % (unsigned)size || (bytes && (uintptr_t)from % (unsigned)size))
        emu_fail("copies %d bytes %s an address that is not aligned to them", size,
                 (uintptr_t)to % (unsigned)size ? "to" : "from");
    if (bytes && !emu.host && !emu_holds(from, (size_t)bytes))
        emu_fail("copies %d bytes from outside all buffers", bytes);
    if (t->n_copies == EMU_COPIES)
        emu_fail("more than %d copies in flight", EMU_COPIES);
    if (emu.accesses) {
        if (bytes)
            emu_check_load(from, (uint32_t)bytes, emu.current);
        emu_check_sent(to, (uint32_t)size, emu.current);
    }
    memset(to, 0xff, (size_t)size); /* until it lands */
    t->copies[(t->first_copy + t->n_copies++) % EMU_COPIES] =
        (emu_copy_job){to, from, (uint8_t)size, (uint8_t)bytes, t->groups};
}

void emu_commit(void) {
    emu.thread[emu.current].groups++;
}

void emu_wait(int groups) {
    emu_thread *t = &emu.thread[emu.current];
    while (t->n_copies) {
        const emu_copy_job *job = &t->copies[t->first_copy];
        if (job->group + (uint32_t)groups >= t->groups)
            break;
        memset(job->to, 0, job->size);
        memcpy(job->to, job->from, job->bytes);
        if (emu.accesses)
            emu_check_landed(job->to, job->size, emu.current);
        t->first_copy = (t->first_copy + 1) % EMU_COPIES;
        t->n_copies--;
    }
}
