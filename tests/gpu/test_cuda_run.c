/* The executor on the fake libraries: what it computes, by launches and as a graph; algorithms that
 * are chosen by time; and that wrong results are seen. */
#include "unit.h"

#include "cost/cuda/internal.h"
#include "cost/isolate.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

static const po_cuda_options whole = {.folder = FAKES "/all", .alone = true};
static const po_cuda_options wrong = {.folder = FAKES "/wrong", .alone = true};
static const po_cuda_options unfused = {.folder = FAKES "/unfused", .alone = true};
static const po_cuda_options driver = {.folder = FAKES "/driver", .alone = true};

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    po_cuda_buffer buffers[16];
    uint32_t n_buffers;
    po_cuda_step steps[8];
    uint32_t n_steps;
    po_cuda_output output;
} fixture;

static void start(fixture *f) {
    memset(f, 0, sizeof *f);
    po_ctx_init(&f->ctx);
    f->arena = po_arena_create(&f->ctx);
}

/* Random numbers that `type` holds exactly, as float64 too; NULL: memory for a result. */
static po_cuda_place buffer(fixture *f, po_mu_type type, int64_t n, double **values) {
    int64_t bytes = n * po_mu_bytes(type);
    char *data = NULL;
    if (values) {
        *values = PO_NEW_N(f->arena, double, n);
        data = po_arena_alloc(f->arena, (size_t)bytes);
        for (int64_t i = 0; i < n; i++)
            (*values)[i] = 2 * po_random_unit(7, f->n_buffers, (uint64_t)i) - 1;
        po_cuda_store(type, *values, n, data);
        po_cuda_load(type, data, n, *values);
    }
    f->buffers[f->n_buffers] = (po_cuda_buffer){bytes, data};
    return (po_cuda_place){f->n_buffers++, 0};
}

static po_cuda_plan plan_of(const fixture *f) {
    return (po_cuda_plan){"test",     f->n_buffers, f->n_steps, f->output.bytes ? 1 : 0,
                          f->buffers, f->steps,     &f->output};
}

/* By launches and as a graph: the same bits. */
static po_bytes run(fixture *f, const po_cuda_options *options) {
    po_cuda_plan plan = plan_of(f);
    po_bytes direct, graph;
    if (po_cuda_execute(&f->ctx, f->arena, options, &plan, false, &direct) != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    assert_int_equal(po_cuda_execute(&f->ctx, f->arena, options, &plan, true, &graph), PO_OK);
    assert_int_equal(direct.size, f->output.bytes);
    assert_int_equal(graph.size, f->output.bytes);
    assert_memory_equal(direct.data, graph.data, direct.size);
    return direct;
}

static void fails(fixture *f, const po_cuda_options *options, po_status status,
                  const char *sentence) {
    po_cuda_plan plan = plan_of(f);
    po_bytes data;
    assert_int_equal(po_cuda_execute(&f->ctx, f->arena, options, &plan, true, &data), status);
    if (!strstr(f->ctx.error.message, sentence))
        fail_msg("'%s' is not in '%s'", sentence, f->ctx.error.message);
    po_ctx_clear(&f->ctx);
}

/* --- kernels --- */

static const char kernels[] = "fake " FAKES "/kernels/kernels.so";
static const po_cuda_image image = {90, false, {kernels, sizeof kernels}, 0, NULL};
static const po_cuda_arg add_args[] = {
    {PO_CUDA_INPUT, 0, 0}, {PO_CUDA_WEIGHT, 0, 0}, {PO_CUDA_DEVICE, 0, 256}};
static const po_cuda_arg twice_args[] = {{PO_CUDA_DEVICE, 0, 256}, {PO_CUDA_OUTPUT, 0, 0}};
static const po_cuda_launch launches[] = {
    {"add", "the sum", {4, 1, 1}, 16, 0, 3, add_args},
    {"twice", "its double", {2, 1, 1}, 32, 100000, 2, twice_args}};
static const po_cuda_program program = {"", 2, launches, 512};

static void a_program(fixture *f, double **a, double **b) {
    po_cuda_place in = buffer(f, PO_MU_F32, 64, a), weight = buffer(f, PO_MU_F32, 64, b);
    po_cuda_place out = buffer(f, PO_MU_F32, 64, NULL);
    po_cuda_io io = {&in, &weight, &out, buffer(f, PO_MU_F32, 128, NULL)};
    memcpy(f->steps, po_cuda_program_steps(f->arena, &program, &image, &io), 2 * sizeof *f->steps);
    f->n_steps = 2;
    f->output = (po_cuda_output){out, 256};
}

static void programs_run(void **state) {
    (void)state;
    fixture f;
    double *a, *b, y[64];
    start(&f);
    a_program(&f, &a, &b);
    po_cuda_load(PO_MU_F32, run(&f, &driver).data, 64, y);
    for (int i = 0; i < 64; i++)
        assert_true(y[i] == 2 * (double)((float)a[i] + (float)b[i]));
    po_arena_free(f.arena);
}

static void what_fails_is_named(void **state) {
    (void)state;
    fixture f;
    double *a, *b;
    start(&f);
    a_program(&f, &a, &b);
    po_cuda_launch none = launches[1], large = launches[1], crash = launches[1];
    none.symbol = "nothing";
    large.shared = 300000;
    crash.symbol = "wild";
    f.steps[1].u.kernel.launch = &none;
    fails(&f, &driver, PO_RUNTIME, "nothing: bad value (CUDA error 500)");
    f.steps[1].u.kernel.launch = &large;
    fails(&f, &driver, PO_RUNTIME, "twice: bad value");
    f.steps[1].u.kernel.launch = &crash;
    fails(&f, &driver, PO_RUNTIME, "running on a GPU");
    f.steps[1].u.kernel.launch = &launches[1];
    static const po_cuda_image text = {90, false, {"no image", 9}, 0, NULL};
    f.steps[1].u.kernel.image = &text;
    fails(&f, &driver, PO_RUNTIME, "loading kernels: bad image");
    f.steps[1].u.kernel.image = &image;
    f.buffers[3].bytes = INT64_C(1) << 40;
    fails(&f, &driver, PO_UNSUPPORTED, "has no 1099.5 GB of memory");
    f.buffers[3].bytes = 200 << 20;
    fails(&f, &driver, PO_UNSUPPORTED, "has no 0.2 GB of memory left");
    f.buffers[3].bytes = 100;
    fails(&f, &driver, PO_BAD_USE, "a place outside the buffers");
    po_arena_free(f.arena);
}

/* --- products --- */

typedef struct product {
    po_cuda_matmul m;
    double *a, *b, *bias, *c;
    int64_t elements; /* of y */
} product;

static product a_product(fixture *f, po_cuda_matmul m, bool biased, bool adds) {
    product p = {.m = m};
    po_mu_type t = m.type;
    p.m.apart_a = (m.turn_a ? m.m : m.k) + 3;
    p.m.apart_b = (m.turn_b ? m.k : m.n) + 1;
    p.m.apart_y = m.n + 2;
    p.m.apart_c = m.n;
    p.m.step_a = p.m.apart_a * (m.turn_a ? m.k : m.m);
    p.m.step_b = m.batch > 2 ? 0 : p.m.apart_b * (m.turn_b ? m.n : m.k);
    p.m.step_y = p.m.apart_y * m.m;
    p.m.step_c = m.n * m.m;
    p.elements = p.m.step_y * m.batch;
    p.m.a = buffer(f, t, p.m.step_a * m.batch, &p.a);
    p.m.b = buffer(f, t, p.m.apart_b * (m.turn_b ? m.n : m.k) * (m.batch > 2 ? 1 : m.batch), &p.b);
    p.m.bias = biased ? buffer(f, t, m.n, &p.bias) : PO_CUDA_NOWHERE;
    p.m.c = adds ? buffer(f, t, p.m.step_c * m.batch, &p.c) : PO_CUDA_NOWHERE;
    p.m.y = buffer(f, t, p.elements, NULL);
    f->steps[f->n_steps].kind = PO_CUDA_MATMUL;
    f->steps[f->n_steps].what = "MatMul 'x'";
    f->steps[f->n_steps++].u.matmul = p.m;
    f->output = (po_cuda_output){p.m.y, p.elements * po_mu_bytes(t)};
    return p;
}

/* In float64, with the sums of absolute values; gaps between rows are 0, as the buffer is. */
static void multiply(fixture *f, const product *p, double **y, double **s) {
    const po_cuda_matmul *m = &p->m;
    *y = PO_NEW_N(f->arena, double, p->elements);
    *s = PO_NEW_N(f->arena, double, p->elements);
    for (int64_t n = 0; n < m->batch; n++)
        for (int64_t i = 0; i < m->m; i++)
            for (int64_t j = 0; j < m->n; j++) {
                double sum = 0, all = 0;
                for (int64_t k = 0; k < m->k; k++) {
                    double t =
                        p->a[n * m->step_a +
                             (m->turn_a ? k * m->apart_a + i : i * m->apart_a + k)] *
                        p->b[n * m->step_b + (m->turn_b ? j * m->apart_b + k : k * m->apart_b + j)];
                    sum += t;
                    all += fabs(t);
                }
                double more[] = {p->bias ? p->bias[j] : 0,
                                 p->c ? p->c[n * m->step_c + i * m->apart_c + j] : 0};
                for (int k = 0; k < 2; k++) {
                    sum += more[k];
                    all += fabs(more[k]);
                }
                if (m->act == PO_CUDA_RELU)
                    sum = fmax(sum, 0);
                if (m->act == PO_CUDA_GELU_TANH)
                    sum = 0.5 * sum *
                          (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
                (*y)[n * m->step_y + i * m->apart_y + j] = sum;
                (*s)[n * m->step_y + i * m->apart_y + j] = all;
            }
}

static bool product_is_right(po_cuda_matmul m, bool biased, bool adds, bool as_tf32,
                             const po_cuda_options *options) {
    fixture f;
    double *y, *s;
    po_cuda_error error;
    start(&f);
    product p = a_product(&f, m, biased, adds);
    multiply(&f, &p, &y, &s);
    bool right = po_cuda_compare(m.type, as_tf32, run(&f, options), y, s, 4, &error);
    po_arena_free(f.arena);
    return right;
}

static void products_are_right(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 8; i++) {
            po_cuda_matmul m = {.type = (po_mu_type)t,
                                .turn_a = i & 1,
                                .turn_b = i & 2,
                                .m = 5,
                                .n = 7,
                                .k = 9,
                                .batch = i < 4   ? 1
                                         : i < 6 ? 2
                                                 : 3,
                                .act = i % 3 == 0   ? PO_CUDA_PLAIN
                                       : i % 3 == 1 ? PO_CUDA_RELU
                                                    : PO_CUDA_GELU_TANH};
            assert_true(product_is_right(m, i & 1, i & 4, false, &whole));
        }
}

static void tf32_only_where_asked_for(void **state) {
    (void)state;
    po_cuda_matmul m = {.type = PO_MU_F32, .m = 8, .n = 8, .k = 8, .batch = 1};
    assert_true(product_is_right(m, false, false, false, &whole));
    m.tf32 = true;
    assert_false(product_is_right(m, false, false, false, &whole));
    assert_true(product_is_right(m, false, false, true, &whole));
}

static void a_wrong_product_is_seen(void **state) {
    (void)state;
    po_cuda_matmul m = {.type = PO_MU_F32, .m = 8, .n = 8, .k = 8, .batch = 2};
    assert_false(product_is_right(m, false, false, false, &wrong));
}

/* --- convolutions --- */

typedef struct convolution {
    po_cuda_conv c;
    double *x, *w, *bias, *z;
    int64_t elements;
} convolution;

static int64_t product_of(const int64_t *values, uint32_t n) {
    int64_t p = 1;
    for (uint32_t i = 0; i < n; i++)
        p *= values[i];
    return p;
}

static convolution a_conv(fixture *f, po_cuda_conv c, bool biased, bool adds) {
    convolution v = {.c = c};
    for (uint32_t i = 0; i < c.spatial; i++)
        v.c.out[i] = (c.in[i] + c.before[i] + c.after[i] - (c.kernel[i] - 1) * c.dilation[i] - 1) /
                         c.stride[i] +
                     1;
    v.elements = c.n * c.k * product_of(v.c.out, c.spatial);
    v.c.x = buffer(f, c.type, c.n * c.c * product_of(c.in, c.spatial), &v.x);
    v.c.w = buffer(f, c.type, c.k * c.c / c.groups * product_of(c.kernel, c.spatial), &v.w);
    v.c.bias = biased ? buffer(f, c.type, c.k, &v.bias) : PO_CUDA_NOWHERE;
    v.c.z = adds ? buffer(f, c.type, v.elements, &v.z) : PO_CUDA_NOWHERE;
    v.c.y = buffer(f, c.type, v.elements, NULL);
    f->steps[f->n_steps].kind = PO_CUDA_CONV;
    f->steps[f->n_steps].what = "Conv 'x'";
    f->steps[f->n_steps++].u.conv = v.c;
    f->output = (po_cuda_output){v.c.y, v.elements * po_mu_bytes(c.type)};
    return v;
}

/* Where element (n, c, place) lies. */
static int64_t at(const po_cuda_conv *c, int64_t n, int64_t channel, int64_t channels,
                  const int64_t *place, const int64_t *dims) {
    int64_t p = 0;
    for (uint32_t i = 0; i < c->spatial; i++)
        p = p * dims[i] + place[i];
    int64_t places = product_of(dims, c->spatial);
    return c->channels_last ? (n * places + p) * channels + channel
                            : (n * channels + channel) * places + p;
}

static bool next(uint32_t n, const int64_t *dims, int64_t *index) {
    for (uint32_t i = n; i-- > 0;) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static void convolve(fixture *f, const convolution *v, double **y, double **s) {
    const po_cuda_conv *c = &v->c;
    int64_t each = c->c / c->groups;
    *y = PO_NEW_N(f->arena, double, v->elements);
    *s = PO_NEW_N(f->arena, double, v->elements);
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t k = 0; k < c->k; k++) {
            int64_t place[3] = {0};
            do {
                double sum = 0, all = 0;
                int64_t tap[3] = {0}, from[3];
                do {
                    bool inside = true;
                    for (uint32_t i = 0; i < c->spatial; i++) {
                        from[i] = place[i] * c->stride[i] + tap[i] * c->dilation[i] - c->before[i];
                        inside &= from[i] >= 0 && from[i] < c->in[i];
                    }
                    for (int64_t d = 0; d < each && inside; d++) {
                        double t =
                            v->x[at(c, n, k / (c->k / c->groups) * each + d, c->c, from, c->in)] *
                            v->w[at(c, k, d, each, tap, c->kernel)];
                        sum += t;
                        all += fabs(t);
                    }
                } while (next(c->spatial, c->kernel, tap));
                int64_t o = at(c, n, k, c->k, place, c->out);
                double more[] = {v->bias ? v->bias[k] : 0, v->z ? v->z[o] : 0};
                sum += more[0] + more[1];
                all += fabs(more[0]) + fabs(more[1]);
                (*y)[o] = c->act == PO_CUDA_RELU ? fmax(sum, 0) : sum;
                (*s)[o] = all;
            } while (next(c->spatial, c->out, place));
        }
}

static bool conv_is_right(po_cuda_conv c, bool biased, bool adds, bool as_tf32,
                          const po_cuda_options *options) {
    fixture f;
    double *y, *s;
    po_cuda_error error;
    start(&f);
    convolution v = a_conv(&f, c, biased, adds);
    convolve(&f, &v, &y, &s);
    bool right = po_cuda_compare(c.type, as_tf32, run(&f, options), y, s, 4, &error);
    po_arena_free(f.arena);
    return right;
}

static po_cuda_conv some_conv(int i) {
    po_cuda_conv c = {.type = (po_mu_type)(i % 3),
                      .channels_last = i & 2,
                      .spatial = 1 + (uint32_t)i % 3,
                      .n = 2,
                      .c = 4,
                      .k = 6,
                      .groups = i & 1 ? 2 : 1,
                      .act = i & 4 ? PO_CUDA_RELU : PO_CUDA_PLAIN};
    for (int s = 0; s < 3; s++) {
        c.in[s] = 5 + s;
        c.kernel[s] = 3 - s % 2;
        c.stride[s] = 1 + (i + s) % 2;
        c.dilation[s] = 1 + i % 4 / 3;
        c.before[s] = 1;
        c.after[s] = i % 2;
    }
    return c;
}

static void convolutions_are_right(void **state) {
    (void)state;
    for (int i = 0; i < 12; i++) {
        assert_true(conv_is_right(some_conv(i), i & 1, i & 8, false, &whole));
        /* Where nothing is fused, another graph does the rest. */
        assert_true(conv_is_right(some_conv(i), i & 1, i & 8, false, &unfused));
    }
}

static void engines_that_round_are_left_out(void **state) {
    (void)state;
    po_cuda_conv c = some_conv(1);
    c.type = PO_MU_F32;
    assert_true(conv_is_right(c, false, false, false, &whole));
    c.tf32 = true;
    assert_false(conv_is_right(c, false, false, false, &whole));
    assert_true(conv_is_right(c, false, false, true, &whole));
}

static void libraries_are_named(void **state) {
    (void)state;
    fixture f;
    start(&f);
    a_conv(&f, some_conv(0), false, false);
    fails(&f, &driver, PO_RUNTIME, "cuDNN was not found (libcudnn.so.9)");
    f.n_steps = 0;
    a_product(&f, (po_cuda_matmul){.m = 1, .n = 1, .k = 1, .batch = 1}, false, false);
    fails(&f, &driver, PO_RUNTIME, "cuBLAS was not found (libcublasLt.so.13)");
    po_arena_free(f.arena);
}

/* --- times --- */

/* The fake clock moves by 8 us for a kernel in a graph, 5 for the faster product, 18 for the one
 * engine that is exact, in order and not slow. */
static void times_are_of_the_fastest(void **state) {
    (void)state;
    fixture f, g;
    po_timing timing[2];
    po_timing_work work;
    double *a, *b;
    start(&f);
    a_product(&f, (po_cuda_matmul){.m = 3, .n = 4, .k = 5, .batch = 1}, false, false);
    po_cuda_conv c = some_conv(3);
    c.type = PO_MU_F32;
    a_conv(&f, c, true, false);
    start(&g);
    a_program(&g, &a, &b);
    po_cuda_plan plans[] = {plan_of(&f), plan_of(&g)};
    const po_cuda_plan *both[] = {&plans[0], &plans[1]};
    for (int cold = 0; cold < 2; cold++) {
        po_cuda_timing spec = {.options = &whole, .n = 2, .plans = both, .seconds = 0.5};
        spec.cold = cold;
        assert_int_equal(po_cuda_time(&f.ctx, &spec, timing, &work), PO_OK);
        assert_float_equal(timing[0].seconds, 23e-6, 1e-9);
        assert_float_equal(timing[1].seconds, 16e-6, 1e-9);
        assert_float_equal(timing[1].gain, 23.0 / 16, 0.01);
        assert_true(timing[1].low > 1.4 && work.processes >= 2);
    }
    po_arena_free(f.arena);
    po_arena_free(g.arena);
}

/* --- plans of cuDNN --- */

typedef struct counting {
    const po_cuda_options *options;
    const po_cuda_plan *plan;
    const char *library;
} counting;

/* How many plans cuDNN has made: the first time, and the second. */
static po_status count_plans(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    const counting *c = user;
    po_cuda *cuda;
    int made[2];
    PO_TRY(po_cuda_open(ctx, arena, c->options, &cuda));
    for (int i = 0; i < 2; i++) {
        po_cuda_ready *ready;
        PO_TRY(po_cuda_make_ready(ctx, cuda, arena, c->plan, NULL, &ready));
        PO_TRY(po_cuda_capture(ctx, arena, ready, 1));
        made[i] = *(int *)dlsym(dlopen(c->library, RTLD_NOW | RTLD_NOLOAD), "fake_cudnn_plans");
    }
    po_reply_add(reply, made, sizeof made);
    return PO_OK;
}

/* Two plans for the first of three equal convolutions (exact, and in order), one for each other; a
 * graph for the rest has two more. */
static void plans_are_made_once(void **state) {
    (void)state;
    static const struct {
        const po_cuda_options *options;
        const char *library;
        int made[2];
    } cases[] = {{&whole, FAKES "/all/libcudnn.so.9", {4, 7}},
                 {&unfused, FAKES "/unfused/libcudnn.so.9", {8, 14}}};
    for (size_t i = 0; i < 2; i++) {
        fixture f;
        po_bytes data;
        start(&f);
        po_cuda_conv c = some_conv(3);
        c.type = PO_MU_F32;
        for (int k = 0; k < 3; k++)
            a_conv(&f, c, true, false);
        po_cuda_plan plan = plan_of(&f);
        counting counted = {cases[i].options, &plan, cases[i].library};
        if (po_isolate(&f.ctx, f.arena, "counting", 20, count_plans, &counted, &data) != PO_OK)
            fail_msg("%s", f.ctx.error.message);
        assert_int_equal(data.size, sizeof cases[i].made);
        assert_memory_equal(data.data, cases[i].made, sizeof cases[i].made);
        po_arena_free(f.arena);
    }
}

/* --- comparing --- */

static void comparisons(void **state) {
    (void)state;
    const double reference[] = {1, -2, 1e30, HUGE_VAL}, magnitude[] = {4, 2, 1e30, HUGE_VAL};
    float y[] = {1, -2, 1e30F, HUGE_VALF};
    po_bytes got = {(const char *)y, sizeof y};
    po_cuda_error error;
    assert_true(po_cuda_compare(PO_MU_F32, false, got, reference, magnitude, 2, &error));
    y[0] += 7 * 0x1p-23F; /* 14 u where 8 are allowed */
    assert_false(po_cuda_compare(PO_MU_F32, false, got, reference, magnitude, 2, &error));
    assert_int_equal(error.index, 0);
    assert_int_equal(error.bad, 1);
    assert_float_equal(error.worst, 3.5, 1e-6);
    assert_true(po_cuda_compare(PO_MU_F32, true, got, reference, magnitude, 2, &error));
    y[0] = NAN;
    assert_false(po_cuda_compare(PO_MU_F32, false, got, reference, magnitude, 2, &error));
    y[0] = 1, y[3] = -HUGE_VALF;
    assert_false(po_cuda_compare(PO_MU_F32, false, got, reference, magnitude, 2, &error));
    assert_int_equal(error.index, 3);
    /* f16: beyond 65504 it is infinity. */
    uint16_t h[1];
    double large = 70000;
    po_cuda_store(PO_MU_F16, &large, 1, h);
    got = (po_bytes){(const char *)h, sizeof h};
    assert_true(po_cuda_compare(PO_MU_F16, false, got, &large, &large, 2, &error));
    large = 60000;
    assert_false(po_cuda_compare(PO_MU_F16, false, got, &large, &large, 2, &error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_run),
        cmocka_unit_test(what_fails_is_named),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(tf32_only_where_asked_for),
        cmocka_unit_test(a_wrong_product_is_seen),
        cmocka_unit_test(convolutions_are_right),
        cmocka_unit_test(engines_that_round_are_left_out),
        cmocka_unit_test(libraries_are_named),
        cmocka_unit_test(times_are_of_the_fastest),
        cmocka_unit_test(plans_are_made_once),
        cmocka_unit_test(comparisons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
