/* Changes of a generated graph that make it another, mostly: in a number or an operator, or nodes
 * that change a value only where a length is beyond a number, below one, or leaves a rest. */
#include "generate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void replace(char *line, size_t at, size_t size, const char *with) {
    char rest[GENERATED_LINE];
    snprintf(rest, sizeof rest, "%s", line + at + size);
    snprintf(line + at, GENERATED_LINE - at, "%s%s", with, rest);
}

/* A number within braces, beside what it was. */
static void change_number(generated *g, lots *l) {
    char *line = g->line[lots_below(l, g->n)];
    size_t found[64];
    uint32_t n = 0;
    int depth = 0;
    for (size_t i = 0; line[i]; i++) {
        depth += (line[i] == '{') - (line[i] == '}');
        if (depth > 0 && isdigit((unsigned char)line[i]) && !isalnum((unsigned char)line[i - 1]) &&
            line[i - 1] != '.' && n < 64)
            found[n++] = i;
    }
    if (n == 0)
        return;
    const size_t at = found[lots_below(l, n)];
    const size_t size = strspn(line + at, "0123456789");
    const long was = atol(line + at);
    static const long steps[] = {1, -1, 1, 2};
    char text[24];
    snprintf(text, sizeof text, "%ld",
             was > 1000 ? 40L + lots_below(l, 400) : labs(was + steps[lots_below(l, 4)]));
    replace(line, at, size, text);
}

static const char *const swaps[][2] = {
    {"ReduceMax(", "ReduceMin("},
    {"ReduceMean(", "ReduceMax("},
    {"MaxPool(", "AveragePool("},
    {"AveragePool(", "MaxPool("},
    {"Add(", "Sub("},
    {"Mul(", "Div("},
    {"Relu(", "Abs("},
    {"strides=[2,2]", "ceil_mode=1,strides=[2,2]"},
    {"count_include_pad=1", "count_include_pad=0"},
    {"\"nearest\"", "\"linear\""},
    {"nearest_mode=\"floor\"", "nearest_mode=\"ceil\""},
    {"perm=[0,2,1]", "perm=[0,1,2]"},
    {"Sigmoid(", "Tanh("},
    {"GlobalMaxPool(", "GlobalAveragePool("},
    {"\"DCR\"", "\"CRD\""},
};

static void change_operator(generated *g, lots *l) {
    const uint32_t from = lots_below(l, g->n);
    const size_t n = sizeof swaps / sizeof *swaps;
    const uint32_t first = lots_below(l, (uint32_t)n);
    for (uint32_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < n; k++) {
            char *line = g->line[(from + i) % g->n];
            const char *const *swap = swaps[(first + k) % n];
            const char *at = strstr(line, swap[0]);
            if (at) {
                replace(line, (size_t)(at - line), strlen(swap[0]), swap[1]);
                return;
            }
        }
}

/* --- nodes put in --- */

/* Steps that make m of the length n: X begins names, of which X0, X1 and X3 are 0, 1 and a number;
 * Xm is what the step before made. */
static const char *const of_lengths[] = {
    /* 0 up to the number, or down to it, or where there is no rest */
    "Sub(Xn, X3)|Max(Xm, X0)",
    "Sub(X3, Xn)|Max(Xm, X0)",
    "Div(Xn, X3)",
    "Mod(Xn, X3)",
    "Div(X3, Xn)",
    "Min(Xn, X3)|Sub(Xn, Xm)",
    "Min(Xn, X1)|Sub(X1, Xm)",
    "Div(Xn, X3)|Mul(Xm, X3)|Sub(Xn, Xm)",
    "Greater(Xn, X3)|Cast(Xm) {to=7}",
};

typedef struct putting {
    generated *out;
    uint32_t id, axis, rank;
    int number;
} putting;

/* Adds a line; X begins names of its own, @ is the axis and # the number. */
static void put(const putting *p, const char *text) {
    char *line = p->out->line[p->out->n];
    size_t at = 0;
    if (p->out->n + 1 >= GENERATED_LINES)
        return;
    for (; *text && at + 24 < GENERATED_LINE; text++) {
        if (*text == 'X')
            at += (size_t)snprintf(line + at, GENERATED_LINE - at, "x%u", p->id);
        else if (*text == '@')
            at += (size_t)snprintf(line + at, GENERATED_LINE - at, "%u", p->axis);
        else if (*text == '#')
            at += (size_t)snprintf(line + at, GENERATED_LINE - at, "%d", p->number);
        else
            line[at++] = *text;
    }
    line[at] = '\0';
    p->out->n++;
}

/* Xp: pads that have Xw at the front of the axis. */
static void put_pads(const putting *p, bool behind) {
    char text[200] = "Xp = Concat(";
    for (uint32_t i = 0; i < 2 * p->rank; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? ", " : "",
                 i == p->axis + (behind ? p->rank : 0) ? "Xw" : "Xz");
    snprintf(text + strlen(text), sizeof text - strlen(text), ") {axis=0}");
    put(p, text);
}

/* Xm of the length Xn, and Xw, the same in a list. */
static void put_length(const putting *p, lots *l) {
    const char *steps =
        of_lengths[lots_below(l, (uint32_t)(sizeof of_lengths / sizeof *of_lengths))];
    char text[200], name[8] = "Xm";
    put(p, "Xs = Shape(Xu)");
    put(p, "Xn = Gather(Xs, Xi: i64[] {@}) {axis=0}");
    put(p, "X3 = Identity(Xk: i64[] {#})");
    put(p, "X0 = Identity(Xy: i64[] {0})");
    put(p, "X1 = Identity(Xo: i64[] {1})");
    put(p, "Xz = Identity(Xj: i64[1] {0})");
    put(p, "Xe = Identity(Xl: i64[1] {9999999})");
    put(p, "Xa = Identity(Xb: i64[1] {@})");
    /* Each step is of the one before. */
    for (uint32_t i = 0; *steps; i++) {
        const size_t size = strcspn(steps, "|");
        char step[80], before[8];
        snprintf(before, sizeof before, "Xm%u", i);
        snprintf(name, sizeof name, "Xm%u", i + 1);
        size_t at = 0;
        for (size_t k = 0; k < size && at + 8 < sizeof step; k++) {
            const bool it = strncmp(steps + k, "Xm", 2) == 0;
            at += (size_t)snprintf(step + at, sizeof step - at, "%.*s", it ? 4 : 1,
                                   it ? before : steps + k);
            k += it;
        }
        snprintf(text, sizeof text, "%s = %s", name, step);
        put(p, text);
        steps += size + (steps[size] == '|');
    }
    snprintf(text, sizeof text, "Xm = Identity(%s)", name);
    put(p, text);
    put(p, "Xw = Unsqueeze(Xm, Xq: i64[1] {0})");
    put(p, "XN = Unsqueeze(Xn, Xr: i64[1] {0})");
}

/* Makes v of u: the same where Xm is 0, or the length below a number. */
static void put_change(const putting *p, lots *l) {
    const uint32_t kind = lots_below(l, 11);
    put_length(p, l);
    switch (kind) {
    case 0: /* up to a number */
        put(p, "Xv = Slice(Xu, Xz, Xh: i64[1] {#}, Xa)");
        break;
    case 1: /* a shift backwards */
        put_pads(p, false);
        put(p, "Xc = Pad(Xu, Xp)");
        put(p, "Xv = Slice(Xc, Xz, XN, Xa)");
        break;
    case 2: /* one forwards */
        put_pads(p, true);
        put(p, "Xc = Slice(Xu, Xw, Xe, Xa)");
        put(p, "Xv = Pad(Xc, Xp)");
        break;
    case 3:
        put(p, "Xf = Cast(Xm) {to=1}");
        put(p, "Xv = Add(Xu, Xf)");
        break;
    case 4: /* in two parts */
        put(p, "Xc = Slice(Xu, Xz, Xh: i64[1] {#}, Xa)");
        put(p, "Xd = Slice(Xu, Xh, Xe, Xa)");
        put(p, lots_one_in(l, 2) ? "Xv = Concat(Xc, Xd) {axis=@}" : "Xv = Concat(Xd, Xc) {axis=@}");
        break;
    case 5: /* indices that stop */
        put(p, "Xc = Range(X0, Xn, X1)");
        put(p, "Xd = Min(Xc, X3)");
        put(p, "Xv = Gather(Xu, Xd) {axis=@}");
        break;
    case 6:
        put(p, "Xc = Slice(Xu, Xw, Xe, Xa)");
        put(p, "Xv = Identity(Xc)");
        break;
    case 7:
        put_pads(p, lots_one_in(l, 2));
        put(p, "Xv = Pad(Xu, Xp)");
        break;
    case 8: /* of every so many one */
        put(p, "Xg = Add(Xw, Xh: i64[1] {1})");
        put(p, "Xv = Slice(Xu, Xz, Xe, Xa, Xg)");
        break;
    case 9: /* a part put in place of the whole */
        put(p, "Xc = Slice(Xu, Xz, Xh: i64[1] {#}, Xa)");
        put(p, "Xt = Gather(Xu, X0) {axis=@}");
        put(p, "Xd = Unsqueeze(Xt, Xa)");
        put(p, "Xg = Expand(Xd, Xs)");
        put(p, "Xv = Add(Xc, Xg)");
        break;
    default: /* a length that is bounded, in a shape */
        put(p, "Xc = Sub(Xn, Xm)");
        put(p, "Xd = Unsqueeze(Xc, Xx: i64[1] {0})");
        put(p, "Xv = Slice(Xu, Xz, Xd, Xa)");
    }
}

/* Renames what a line makes, and puts behind it what makes the value of it. */
static void put_nodes(generated *g, lots *l) {
    static const int numbers[] = {1, 2, 3, 5, 8, 12, 40, 64, 100, 300, 340, 512, 700, 4096};
    const uint32_t at = lots_below(l, g->n);
    putting p = {.id = at, .rank = strstr(g->inputs, "\"T\"") ? 3 : 4};
    generated out = *g;
    char *name = g->line[at];
    const size_t size = strcspn(name, " ");
    char made[24];
    if (name[0] == 's' || name[0] == 'n' || size >= sizeof made)
        return;
    p.out = &out;
    p.axis = p.rank == 3 ? lots_below(l, 4) != 0 : 2 + lots_below(l, 2);
    p.number = numbers[lots_below(l, sizeof numbers / sizeof *numbers)];
    snprintf(made, sizeof made, "%.*s", (int)size, name);
    out.n = at;
    put(&p, "Xu");
    char *line = out.line[out.n - 1];
    snprintf(line + strlen(line), GENERATED_LINE - strlen(line), "%s", g->line[at] + size);
    put_change(&p, l);
    line = out.line[out.n];
    snprintf(line, GENERATED_LINE, "%s = Identity(x%uv)", made, at);
    out.n++;
    for (uint32_t i = at + 1; i < g->n && out.n < GENERATED_LINES; i++)
        memcpy(out.line[out.n++], g->line[i], GENERATED_LINE);
    *g = out;
}

void generate_change(generated *g, uint64_t seed) {
    lots l = {.seed = seed, .stream = 62};
    switch (lots_below(&l, 6)) {
    case 0:
        change_number(g, &l);
        break;
    case 1:
        change_operator(g, &l);
        break;
    default:
        put_nodes(g, &l);
    }
}
