/* Images are waves and discs, drawn for each plane; pages are strokes in lines; ramps have a slope
 * along each axis. Elements are made one at a time, and nothing but a page's ink is stored. */
#include "verify/inputs/patterns.h"

#include <math.h>

static const double turn = 6.283185307179586;
static const double densities[] = {0.001, 0.01, 0.1};
enum { PARAMETERS = 0x70617261, WHOLE = 0x77686f6c, PER_PLANE = 64 };

bool po_pattern_has(po_input_kind kind) {
    return kind >= PO_INPUTS_IMAGE && kind <= PO_INPUTS_OFFSET;
}

static double unit(const po_pattern *p, uint64_t i) {
    return po_random_unit(p->seed, p->stream ^ PARAMETERS, i);
}

static int64_t between(const po_pattern *p, uint64_t i, int64_t low, int64_t high) {
    return low + (int64_t)(unit(p, i) * (double)(high > low ? high - low + 1 : 1));
}

/* Lines of strokes, words apart, from the top to the bottom. */
static const unsigned char *make_page(po_arena *arena, const po_pattern *p) {
    unsigned char *ink = PO_NEW_N(arena, unsigned char, p->rows * p->columns);
    int64_t line = between(p, 0, 6, 40), margin = p->columns / 8;
    uint64_t k = 1;
    for (int64_t top = between(p, k++, 0, 20); top < p->rows; top += line + between(p, k++, 1, 9))
        for (int64_t left = between(p, k++, 0, margin); left < p->columns - margin;) {
            int64_t width = between(p, k++, 1, line / 3 + 1), height = between(p, k++, 1, line);
            bool drawn = unit(p, k++) < 0.8;
            for (int64_t y = top; drawn && y < top + height && y < p->rows; y++)
                for (int64_t x = left; x < left + width && x < p->columns; x++)
                    ink[y * p->columns + x] = 1;
            left += width + between(p, k++, 1, line / 4 + 1);
        }
    return ink;
}

static double whole_of(const po_pattern *p) {
    double u = po_random_unit(p->seed, p->stream ^ WHOLE, 0);
    switch (p->kind) {
    case PO_INPUTS_CONSTANT:
        return po_random_normal(p->seed, p->stream ^ WHOLE, 0);
    case PO_INPUTS_SPARSE:
        return densities[(size_t)(u * sizeof densities / sizeof densities[0])];
    case PO_INPUTS_OFFSET:
        return u < 0.5 ? -1 : 1;
    default:
        return 0.7 + 0.5 * u; /* how light the paper is */
    }
}

po_pattern po_pattern_of(po_arena *arena, po_input_kind kind, uint64_t seed, uint64_t stream,
                         double scale, uint32_t rank, const int64_t *dims) {
    po_pattern p = {.kind = kind,
                    .seed = seed,
                    .stream = stream,
                    .scale = scale,
                    .rank = rank,
                    .dims = dims,
                    .rows = rank > 1 ? dims[rank - 2] : 1,
                    .columns = rank > 0 ? dims[rank - 1] : 1,
                    .plane = -1};
    p.whole = whole_of(&p);
    if (kind == PO_INPUTS_PAGE)
        p.ink = make_page(arena, &p);
    return p;
}

/* Waves: rate down, rate across, phase, height. Discs: centre, radius, height. */
static void begin_plane(po_pattern *p, int64_t plane) {
    uint64_t k = (uint64_t)plane * PER_PLANE;
    p->plane = plane;
    for (int w = 0; w < PO_PATTERN_WAVES; w++) {
        p->waves[w][0] = turn * (18 * unit(p, k) - 9) / (double)p->rows;
        p->waves[w][1] = turn * (18 * unit(p, k + 1) - 9) / (double)p->columns;
        p->waves[w][2] = turn * unit(p, k + 2);
        p->waves[w][3] = 0.1 + 0.9 * unit(p, k + 3);
        k += 4;
    }
    for (int d = 0; d < PO_PATTERN_DISCS; d++) {
        p->discs[d][0] = unit(p, k) * (double)p->rows;
        p->discs[d][1] = unit(p, k + 1) * (double)p->columns;
        p->discs[d][2] = 1 + unit(p, k + 2) * (double)p->columns / 3;
        p->discs[d][3] = 2 * unit(p, k + 3) - 1;
        k += 4;
    }
}

static double image_at(const po_pattern *p, double y, double x) {
    double v = 0;
    for (int w = 0; w < PO_PATTERN_WAVES; w++)
        v += p->waves[w][3] * sin(p->waves[w][0] * y + p->waves[w][1] * x + p->waves[w][2]);
    for (int d = 0; d < PO_PATTERN_DISCS; d++) {
        double dy = y - p->discs[d][0], dx = x - p->discs[d][1], r = p->discs[d][2];
        v += dy * dy + dx * dx < r * r ? p->discs[d][3] : 0;
    }
    return v;
}

static double ramp_at(const po_pattern *p, int64_t i) {
    double v = 0;
    for (uint32_t axis = p->rank; axis-- > 0;) {
        int64_t n = p->dims[axis], at = i % n;
        i /= n;
        if (n > 1)
            v += po_random_normal(p->seed, p->stream ^ PARAMETERS, axis) *
                 (2 * (double)at / (double)(n - 1) - 1);
    }
    return v;
}

double po_pattern_at(po_pattern *p, int64_t i) {
    int64_t size = p->rows * p->columns, in_plane = i % size;
    double random;
    switch (p->kind) {
    case PO_INPUTS_IMAGE:
        if (p->plane != i / size)
            begin_plane(p, i / size);
        return p->scale *
               image_at(p, (double)(in_plane / p->columns), (double)(in_plane % p->columns));
    case PO_INPUTS_PAGE:
        return p->scale * (p->ink[in_plane] ? -1 : p->whole);
    case PO_INPUTS_RAMP:
        return p->scale * ramp_at(p, i);
    case PO_INPUTS_CONSTANT:
        return p->scale * p->whole;
    case PO_INPUTS_SPARSE:
        random = po_random_unit(p->seed, p->stream ^ WHOLE, (uint64_t)i + 1);
        return random < p->whole ? p->scale * po_random_normal(p->seed, p->stream, (uint64_t)i) : 0;
    default:
        return p->scale * p->whole + po_random_normal(p->seed, p->stream, (uint64_t)i);
    }
}
