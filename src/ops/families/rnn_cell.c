/* One step of RNN, GRU and LSTM cells in float64, gate by gate, with ONNX's activations and the
 * alphas and betas that are dealt out to them. */
#include "ops/families/rnn.h"

#include <math.h>
#include <strings.h>

typedef enum function {
    F_RELU,
    F_TANH,
    F_SIGMOID,
    F_AFFINE,
    F_LEAKY_RELU,
    F_THRESHOLDED_RELU,
    F_SCALED_TANH,
    F_HARD_SIGMOID,
    F_ELU,
    F_SOFTSIGN,
    F_SOFTPLUS,
    F_COUNT
} function;

/* How many of alpha and beta a function takes, and what they are where not given. */
static const struct {
    const char *name;
    bool has_alpha, has_beta;
    double alpha, beta;
} functions[F_COUNT] = {
    [F_RELU] = {"Relu", false, false, 0, 0},
    [F_TANH] = {"Tanh", false, false, 0, 0},
    [F_SIGMOID] = {"Sigmoid", false, false, 0, 0},
    [F_AFFINE] = {"Affine", true, true, 1, 0},
    [F_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01, 0},
    [F_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1, 0},
    [F_SCALED_TANH] = {"ScaledTanh", true, true, 1, 1},
    [F_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2, 0.5},
    [F_ELU] = {"Elu", true, false, 1, 0},
    [F_SOFTSIGN] = {"Softsign", false, false, 0, 0},
    [F_SOFTPLUS] = {"Softplus", false, false, 0, 0},
};

typedef struct activation {
    function fn;
    double alpha, beta;
} activation;

struct po_cell {
    int kind; /* 0 RNN, 1 GRU, 2 LSTM */
    int64_t hidden;
    const double *bias, *peep, *recurrence;
    activation act[3];
    double clip; /* 0: none */
    bool input_forget, linear_before_reset;
    double *scratch; /* 4 * hidden */
};

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double call(const activation *a, double x) {
    switch (a->fn) {
    case F_RELU:
        return x > 0 ? x : 0;
    case F_TANH:
        return tanh(x);
    case F_SIGMOID:
        return sigmoid(x);
    case F_AFFINE:
        return a->alpha * x + a->beta;
    case F_LEAKY_RELU:
        return x >= 0 ? x : a->alpha * x;
    case F_THRESHOLDED_RELU:
        return x >= a->alpha ? x : 0;
    case F_SCALED_TANH:
        return a->alpha * tanh(a->beta * x);
    case F_HARD_SIGMOID:
        x = a->alpha * x + a->beta;
        return x < 0 ? 0 : x > 1 ? 1 : x;
    case F_ELU:
        return x >= 0 ? x : a->alpha * (exp(x) - 1);
    case F_SOFTSIGN:
        return x / (1 + fabs(x));
    case F_SOFTPLUS:
        return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
    case F_COUNT:
        break;
    }
    return x;
}

static po_status find_function(po_ref *ref, po_bytes name, function *fn) {
    for (int i = 0; i < F_COUNT; i++)
        if (strlen(functions[i].name) == name.size &&
            strncasecmp(functions[i].name, name.data, name.size) == 0) {
            *fn = (function)i;
            return PO_OK;
        }
    return po_rule_bad(ref->ctx, ref->node, "unknown activation");
}

/* The activations of one direction; alphas and betas are dealt out in order to those that take
 * them, over all directions. */
static po_status read_activations(po_ref *ref, int64_t direction, uint32_t each, activation *act) {
    static const function usual[3][3] = {
        {F_TANH, F_TANH, F_TANH}, {F_SIGMOID, F_TANH, F_TANH}, {F_SIGMOID, F_TANH, F_TANH}};
    const po_attr *names = po_node_attr(ref->node, "activations");
    uint32_t n_alpha = 0, n_beta = 0, a = 0, b = 0, total = each * (uint32_t)(direction + 1);
    const float *alpha = po_node_floats(ref->node, "activation_alpha", &n_alpha);
    const float *beta = po_node_floats(ref->node, "activation_beta", &n_beta);
    bool given = names && names->kind == PO_ATTR_STRINGS && names->n > 0;
    if (given && names->n < total)
        return po_rule_bad(ref->ctx, ref->node, "too few activations (found %u)", names->n);
    for (uint32_t i = 0; i < total; i++) {
        activation one = {.fn = usual[each - 1][i % each]};
        if (given)
            PO_TRY(find_function(ref, names->u.strings[i], &one.fn));
        one.alpha = functions[one.fn].alpha;
        one.beta = functions[one.fn].beta;
        if (functions[one.fn].has_alpha && alpha && a < n_alpha)
            one.alpha = (double)alpha[a++];
        if (functions[one.fn].has_beta && beta && b < n_beta)
            one.beta = (double)beta[b++];
        act[i % each] = one;
    }
    return PO_OK;
}

po_status po_cell_create(po_ref *ref, int64_t direction, int64_t hidden, const double *bias,
                         const double *peep, const double *recurrence, po_cell **cell) {
    po_cell *c = PO_NEW(ref->arena, po_cell);
    const char *name = ref->node->op_type;
    c->kind = strcmp(name, "LSTM") == 0 ? 2 : strcmp(name, "GRU") == 0 ? 1 : 0;
    c->hidden = hidden;
    c->bias = bias;
    c->peep = peep;
    c->recurrence = recurrence;
    c->clip = (double)po_node_float(ref->node, "clip", 0.0f);
    c->input_forget = po_op_int(ref->graph, ref->node, "input_forget") != 0;
    c->linear_before_reset = po_op_int(ref->graph, ref->node, "linear_before_reset") != 0;
    c->scratch = PO_NEW_N(ref->arena, double, 4 * hidden);
    PO_TRY(read_activations(ref, direction, (uint32_t)c->kind + 1, c->act));
    *cell = c;
    return PO_OK;
}

static double clipped(const po_cell *c, double x) {
    if (c->clip > 0)
        return x > c->clip ? c->clip : x < -c->clip ? -c->clip : x;
    return x;
}

/* Bias of gate g, element k: of the input's side and of the recurrence's. */
static double bias_w(const po_cell *c, int64_t g, int64_t k) {
    return c->bias ? c->bias[g * c->hidden + k] : 0.0;
}

static double bias_r(const po_cell *c, int64_t gates, int64_t g, int64_t k) {
    return c->bias ? c->bias[(gates + g) * c->hidden + k] : 0.0;
}

static void step_rnn(po_cell *c, const double *xw, const double *hr, double *h) {
    for (int64_t k = 0; k < c->hidden; k++)
        h[k] = call(&c->act[0], clipped(c, xw[k] + hr[k] + bias_w(c, 0, k) + bias_r(c, 1, 0, k)));
}

/* Gates z, r, h. */
static void step_gru(po_cell *c, const double *xw, const double *hr, double *h) {
    int64_t n = c->hidden;
    double *z = c->scratch, *r = z + n, *rh = r + n, *product = rh + n;
    for (int64_t k = 0; k < n; k++) {
        z[k] = call(&c->act[0], clipped(c, xw[k] + hr[k] + bias_w(c, 0, k) + bias_r(c, 3, 0, k)));
        r[k] = call(&c->act[0],
                    clipped(c, xw[n + k] + hr[n + k] + bias_w(c, 1, k) + bias_r(c, 3, 1, k)));
        rh[k] = r[k] * h[k];
        product[k] = 0;
    }
    if (!c->linear_before_reset)
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < n; k++)
                product[k] += rh[j] * c->recurrence[j * 3 * n + 2 * n + k];
    for (int64_t k = 0; k < n; k++) {
        double recurrent = c->linear_before_reset ? r[k] * (hr[2 * n + k] + bias_r(c, 3, 2, k))
                                                  : product[k] + bias_r(c, 3, 2, k);
        double fresh = call(&c->act[1], clipped(c, xw[2 * n + k] + bias_w(c, 2, k) + recurrent));
        h[k] = (1 - z[k]) * fresh + z[k] * h[k];
    }
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void step_lstm(po_cell *c, const double *xw, const double *hr, double *h, double *state) {
    int64_t n = c->hidden;
    for (int64_t k = 0; k < n; k++) {
        double gate[4];
        for (int64_t g = 0; g < 4; g++)
            gate[g] = xw[g * n + k] + hr[g * n + k] + bias_w(c, g, k) + bias_r(c, 4, g, k);
        double pi = c->peep ? c->peep[k] : 0.0, po = c->peep ? c->peep[n + k] : 0.0;
        double pf = c->peep ? c->peep[2 * n + k] : 0.0;
        double i = call(&c->act[0], clipped(c, gate[0] + pi * state[k]));
        double f = c->input_forget ? 1 - i : call(&c->act[0], clipped(c, gate[2] + pf * state[k]));
        state[k] = f * state[k] + i * call(&c->act[1], clipped(c, gate[3]));
        double o = call(&c->act[0], clipped(c, gate[1] + po * state[k]));
        h[k] = o * call(&c->act[2], state[k]);
    }
}

void po_cell_step(po_cell *c, const double *xw, const double *hr, double *h, double *state) {
    if (c->kind == 0)
        step_rnn(c, xw, hr, h);
    else if (c->kind == 1)
        step_gru(c, xw, hr, h);
    else
        step_lstm(c, xw, hr, h, state);
}
