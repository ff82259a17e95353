/* Networks in f16 and of other batches: inputs, numbers and weights of the network's type. */
#include "net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ONNX_FLOAT = 1, ONNX_HALF = 10 };

/* The nearest f16, ties to even. */
static uint16_t to_half(double value) {
    uint16_t sign = value < 0 ? 0x8000 : 0;
    double size = fabs(value);
    if (size < ldexp(1, -25))
        return sign;
    if (size >= 65520)
        return (uint16_t)(sign | 0x7c00);
    int exponent;
    (void)frexp(size, &exponent); /* size is below 2^exponent */
    int unit = exponent - 11 < -24 ? -24 : exponent - 11;
    double scaled = rint(ldexp(size, -unit)); /* whole numbers up to 2^11 */
    unsigned bits = (unsigned)scaled;
    return (uint16_t)(sign + (bits < 1024 ? bits : ((unsigned)(unit + 24) << 10) + bits));
}

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

po_val net_random(net *n, const char *name, size_t rank, const int64_t *dims, double low,
                  double high) {
    uint64_t seed = n->seed++, state = seed * 0x2545f4914f6cdd1du;
    if (!n->half)
        return po_build_random(n->b, name, rank, dims, seed, low, high);
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    uint16_t *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count && data; i++)
        data[i] = to_half(low + (high - low) * (double)(next(&state) >> 11) * 0x1p-53);
    po_val value = data ? po_build_data(n->b, name, "f16", rank, dims, data) : 0;
    free(data);
    return value;
}

int64_t net_batch(const net *n, int64_t otherwise) {
    return n->batch > 0 ? n->batch : otherwise;
}

po_val net_input(net *n, const char *name, size_t rank, const int64_t *dims) {
    char text[160];
    int at = snprintf(text, sizeof text, "%s[", n->half ? "f16" : "f32");
    for (size_t i = 0; i < rank; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "," : "",
                       (long long)dims[i]);
    (void)snprintf(text + at, sizeof text - (size_t)at, "]");
    return po_build_input(n->b, name, text);
}

po_val net_number(net *n, float value) {
    uint16_t half = to_half((double)value);
    return n->half ? po_build_data(n->b, NULL, "f16", 0, NULL, &half) : po_build_f32(n->b, value);
}

static po_val cast(net *n, po_val x, int64_t to) {
    po_val y = net_op1(n, "Cast", x);
    po_build_attr_int(n->b, y, "to", to);
    return y;
}

po_val net_wide(net *n, po_val x) {
    return n->half ? cast(n, x, ONNX_FLOAT) : x;
}

po_val net_narrow(net *n, po_val x) {
    return n->half ? cast(n, x, ONNX_HALF) : x;
}
