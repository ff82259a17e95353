/* Residues packed in panels for register tiles, and the kernels of these: 16 by 12 with AVX-512, 8
 * by 3 with AVX2 and FMA, 4 by 2 in plain C. */
#include "ops/sum/mod_gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Residues are balanced around 0, so that none is above 2^30 - 1. There are two ways to add up:
 * - in doubles, the right side cut into limbs of at most 2^15 and 2^14: PO_GEMM_DEPTH products add
 *   up to at most 2^52, exactly;
 * - in 64-bit integers, folded after some products: h 2^32 + l becomes h c + l, c being 2^32 modulo
 *   p, balanced. That is at most 2^31 |c| + 2^32, and a product at most 2^60, so that five products
 *   may come between for any p. */
enum { LIMB = 16 };

typedef struct folding {
    int64_t c;
    uint32_t every;
} folding;

/* One call makes `rows` x `columns` sums of `depth` products: out[(limb * columns + n) * rows + m],
 * of doubles, or out[n * rows + m], of integers. */
typedef struct tile {
    uint32_t rows, columns;
    void (*by_doubles)(uint32_t depth, const double *a, const double *b, double *out);
    void (*by_integers)(uint32_t depth, const int64_t *a, const int64_t *b, int64_t *out,
                        folding fold);
} tile;

enum { MOST_SUMS = 16 * 12 };

typedef union cell {
    double f;
    int64_t i;
} cell;

struct po_gemm {
    po_field field;
    folding fold;
    const tile *tile;
    uint32_t rows, columns, depth; /* of what is packed */
    cell *left, *right;            /* panels of tile->rows; of tile->columns, by both limbs */
    uint32_t *result, *line;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void
kernel_512(uint32_t depth, const int64_t *a, const int64_t *b, int64_t *out, folding fold) {
    enum { COLUMNS = 12 };
    const __m512i low = _mm512_set1_epi64(UINT32_MAX), c = _mm512_set1_epi64(fold.c);
    __m512i sum[COLUMNS][2];
    for (int n = 0; n < COLUMNS; n++)
        sum[n][0] = sum[n][1] = _mm512_setzero_si512();
    for (uint32_t k = 0; k < depth; k += fold.every) {
        uint32_t end = depth - k < fold.every ? depth - k : fold.every;
        for (uint32_t i = 0; i < end; i++, a += 16, b += COLUMNS) {
            __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(a + 8);
#pragma GCC unroll 12
            for (int n = 0; n < COLUMNS; n++) {
                __m512i w = _mm512_set1_epi64(b[n]);
                sum[n][0] = _mm512_add_epi64(sum[n][0], _mm512_mul_epi32(x, w));
                sum[n][1] = _mm512_add_epi64(sum[n][1], _mm512_mul_epi32(y, w));
            }
        }
#pragma GCC unroll 12
        for (int n = 0; n < COLUMNS; n++)
            for (int h = 0; h < 2; h++)
                sum[n][h] = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(sum[n][h], 32), c),
                                             _mm512_and_si512(sum[n][h], low));
    }
    for (int n = 0; n < COLUMNS; n++) {
        _mm512_storeu_si512(out + 16 * (size_t)n, sum[n][0]);
        _mm512_storeu_si512(out + 16 * (size_t)n + 8, sum[n][1]);
    }
}

__attribute__((target("avx2,fma"))) static void kernel_256(uint32_t depth, const double *a,
                                                           const double *b, double *out) {
    enum { COLUMNS = 3 };
    __m256d sum[2 * COLUMNS][2];
    for (int n = 0; n < 2 * COLUMNS; n++)
        sum[n][0] = sum[n][1] = _mm256_setzero_pd();
    for (uint32_t k = 0; k < depth; k++, a += 8, b += (size_t)2 * COLUMNS) {
        __m256d x = _mm256_loadu_pd(a), y = _mm256_loadu_pd(a + 4);
#pragma GCC unroll 6
        for (int n = 0; n < 2 * COLUMNS; n++) {
            __m256d w = _mm256_set1_pd(b[n]);
            sum[n][0] = _mm256_fmadd_pd(x, w, sum[n][0]);
            sum[n][1] = _mm256_fmadd_pd(y, w, sum[n][1]);
        }
    }
    for (int n = 0; n < 2 * COLUMNS; n++) {
        _mm256_storeu_pd(out + 8 * (size_t)n, sum[n][0]);
        _mm256_storeu_pd(out + 8 * (size_t)n + 4, sum[n][1]);
    }
}
#endif

static void kernel_any(uint32_t depth, const double *a, const double *b, double *out) {
    enum { ROWS = 4, COLUMNS = 2 };
    double sum[2 * COLUMNS][ROWS] = {{0}};
    for (uint32_t k = 0; k < depth; k++, a += ROWS, b += (size_t)2 * COLUMNS)
        for (int n = 0; n < 2 * COLUMNS; n++)
            for (int m = 0; m < ROWS; m++)
                sum[n][m] += a[m] * b[n];
    memcpy(out, sum, sizeof sum);
}

static const tile tiles[] = {
#if defined(__x86_64__)
    {16, 12, NULL, kernel_512},
    {8, 3, kernel_256, NULL},
#endif
    {4, 2, kernel_any, NULL},
};

static const tile *choose_tile(void) {
    const tile *t = tiles;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return t;
    t++;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return t;
    t++;
#endif
    return t;
}

static int32_t balance(po_field f, uint32_t v) {
    return v > f.p / 2 ? (int32_t)((int64_t)v - f.p) : (int32_t)v;
}

static folding folding_of(po_field f) {
    const int64_t product = (int64_t)1 << 60, one = (int64_t)1 << 31;
    int64_t c = balance(f, po_field_reduce(f, (uint64_t)1 << 32)), left = one * (c < 0 ? -c : c);
    return (folding){c, (uint32_t)((INT64_MAX - left - 2 * one) / product)};
}

po_gemm *po_gemm_create(po_arena *arena, po_field field) {
    po_gemm *g = PO_NEW(arena, po_gemm);
    g->field = field;
    g->fold = folding_of(field);
    g->tile = choose_tile();
    g->left = PO_NEW_N(arena, cell, (size_t)PO_GEMM_ROWS * PO_GEMM_DEPTH);
    g->right = PO_NEW_N(arena, cell, (size_t)PO_GEMM_COLUMNS * PO_GEMM_DEPTH * 2);
    g->result = PO_NEW_N(arena, uint32_t, (size_t)PO_GEMM_ROWS * PO_GEMM_COLUMNS);
    g->line = PO_NEW_N(arena, uint32_t, PO_GEMM_ROWS);
    return g;
}

static uint32_t round_up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

static void pack_left(po_gemm *g, uint32_t k) {
    uint32_t width = g->tile->rows, rows = round_up(g->rows, width);
    bool whole = g->tile->by_integers != NULL;
    for (uint32_t i = g->rows; i < rows; i++)
        g->line[i] = 0;
    for (uint32_t p = 0; p < rows; p += width) {
        cell *out = g->left + (size_t)p * g->depth + (size_t)k * width;
        if (whole)
            for (uint32_t i = 0; i < width; i++)
                out[i].i = balance(g->field, g->line[p + i]);
        else
            for (uint32_t i = 0; i < width; i++)
                out[i].f = balance(g->field, g->line[p + i]);
    }
}

/* Cells that one column takes at one depth. */
static uint32_t limbs(const po_gemm *g) {
    return g->tile->by_integers ? 1 : 2;
}

static void pack_right(po_gemm *g, uint32_t k) {
    uint32_t width = g->tile->columns, columns = round_up(g->columns, width), n = limbs(g);
    for (uint32_t i = g->columns; i < columns; i++)
        g->line[i] = 0;
    for (uint32_t p = 0; p < columns; p += width) {
        cell *out = g->right + n * ((size_t)p * g->depth + (size_t)k * width);
        for (uint32_t i = 0; i < width; i++) {
            int32_t v = balance(g->field, g->line[p + i]);
            if (n == 1) {
                out[i].i = v;
                continue;
            }
            int32_t high = (v + (1 << (LIMB - 1))) >> LIMB;
            out[i].f = v - high * (1 << LIMB);
            out[width + i].f = high;
        }
    }
}

void po_gemm_pack(po_gemm *gemm, po_gemm_fill_fn left, po_gemm_fill_fn right, void *user,
                  int64_t row, uint32_t rows, int64_t column, uint32_t columns, int64_t at,
                  uint32_t depth) {
    gemm->rows = rows;
    gemm->columns = columns;
    gemm->depth = depth;
    for (uint32_t k = 0; k < depth; k++) {
        left(user, row, rows, at + k, gemm->line);
        pack_left(gemm, k);
    }
    for (uint32_t k = 0; k < depth; k++) {
        right(user, column, columns, at + k, gemm->line);
        pack_right(gemm, k);
    }
}

/* The residue of a number of magnitude below 2^62. */
static inline uint32_t residue(po_field f, int64_t v) {
    return po_field_reduce(f, (uint64_t)v + ((uint64_t)f.p << 32));
}

static void add_tile(po_gemm *g, const cell *sums, uint32_t row, uint32_t column, bool first) {
    const tile *t = g->tile;
    const po_field f = g->field;
    uint32_t rows = g->rows - row < t->rows ? g->rows - row : t->rows;
    uint32_t columns = g->columns - column < t->columns ? g->columns - column : t->columns;
    for (uint32_t n = 0; n < columns; n++) {
        const cell *low = sums + (size_t)n * t->rows,
                   *high = sums + (size_t)(t->columns + n) * t->rows;
        uint32_t *out = g->result + (size_t)(column + n) * PO_GEMM_ROWS + row;
        for (uint32_t m = 0; m < rows; m++) {
            uint64_t v = t->by_integers ? residue(f, low[m].i)
                                        : ((uint64_t)residue(f, (int64_t)high[m].f) << LIMB) +
                                              residue(f, (int64_t)low[m].f);
            out[m] = po_field_reduce(f, v + (first ? 0 : out[m]));
        }
    }
}

void po_gemm_multiply(po_gemm *gemm, bool first) {
    cell sums[MOST_SUMS];
    const tile *t = gemm->tile;
    for (uint32_t n = 0; n < gemm->columns; n += t->columns)
        for (uint32_t m = 0; m < gemm->rows; m += t->rows) {
            const cell *a = gemm->left + (size_t)m * gemm->depth;
            const cell *b = gemm->right + limbs(gemm) * (size_t)n * gemm->depth;
            if (t->by_integers)
                t->by_integers(gemm->depth, &a->i, &b->i, &sums->i, gemm->fold);
            else
                t->by_doubles(gemm->depth, &a->f, &b->f, &sums->f);
            add_tile(gemm, sums, m, n, first);
        }
}

const uint32_t *po_gemm_result(const po_gemm *gemm, uint32_t *stride) {
    *stride = PO_GEMM_ROWS;
    return gemm->result;
}
