/* The CUDA printer by its text and its launches: what is worked how, where barriers are, what it
 * refuses. That the text computes what the muGraph says is tested by running it (tests/cuda). */
#include "codegen/cuda/cuda.h"

#include "search_blocks.h"
#include "unit.h"

typedef struct printed {
    po_ctx ctx;
    po_arena *arena;
    po_mu *mu;
    po_cuda_program program;
    const char *kernels; /* the text behind the prelude */
} printed;

static po_status try_print(printed *p, const char *text, const po_cuda_print_options *options) {
    po_ctx_init(&p->ctx);
    p->arena = po_arena_create(&p->ctx);
    if (po_mu_parse(&p->ctx, p->arena, text, &p->mu) != PO_OK ||
        po_mu_check(&p->ctx, p->mu, 1 << 20) != PO_OK)
        fail_msg("%s", p->ctx.error.message);
    po_status status = po_codegen_cuda(&p->ctx, p->arena, p->mu, "f", options, &p->program);
    p->kernels = status == PO_OK ? strstr(p->program.source, "/* mugraph") : NULL;
    return status;
}

static void print(printed *p, const char *text) {
    if (try_print(p, text, &(po_cuda_print_options){0}) != PO_OK)
        fail_msg("%s", p->ctx.error.message);
    assert_non_null(p->kernels);
}

static void done(printed *p) {
    po_arena_free(p->arena);
}

static uint32_t count(const char *text, const char *what) {
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

#define PRODUCT(type, body)                                                                        \
    "mugraph m { label i 128 label k 512 label j 256\n"                                            \
    " tensor X input 0 [128, 512] " type " tensor W weight 0 [512, 256] " type "\n"                \
    " tensor b weight 1 [256] tensor O output 0 [128, 256] " type "\n"                             \
    " step \"product\" { grid i by 64 { grid j by 64 { shared r [128, 256]\n" body " } } } }"
#define LOOP "for k by 64 { r[i, j] += X[i, k] * W[k, j] fresh }"

static void product_on_tensor_cores(void **state) {
    (void)state;
    printed p;
    print(&p, PRODUCT("f16", LOOP " O[i, j] = max(r[i, j] + b[j], 0)"));
    assert_int_equal(p.program.n_launches, 1);
    const po_cuda_launch *l = &p.program.launches[0];
    assert_string_equal(l->symbol, "f_0");
    assert_string_equal(l->what, "product");
    assert_int_equal(l->grid[0], 4); /* j, the inner one */
    assert_int_equal(l->grid[1], 2);
    assert_int_equal(l->grid[2], 1);
    assert_int_equal(l->threads, 128);
    assert_int_equal(l->n_args, 4);
    assert_int_equal(p.program.device, 0);
    /* One barrier a chunk, none behind the loop: the sum stays in registers. */
    assert_int_equal(count(p.kernels, "pc_barrier();"), 1);
    assert_non_null(strstr(p.kernels, "pc_mma_f16("));
    assert_non_null(strstr(p.kernels, "/* r, in registers */"));
    assert_non_null(strstr(p.kernels, "rows by ldmatrix, columns by ldmatrix.trans"));
    assert_non_null(strstr(p.kernels, "map: over the register tile"));
    assert_non_null(strstr(p.kernels, "pc_copy16("));
    assert_null(strstr(p.kernels, "pc_copy4("));
    done(&p);
}

/* What tells the two apart from the first: types, and a reader that registers do not serve. */
static void product_otherwise(void **state) {
    (void)state;
    printed p;
    print(&p, PRODUCT("bf16", LOOP " O[i, j] = r[i, j]"));
    assert_non_null(strstr(p.kernels, "pc_mma_bf16("));
    done(&p);
    print(&p, PRODUCT("", LOOP " O[i, j] = r[i, j]"));
    assert_null(strstr(p.kernels, "pc_mma_"));
    assert_non_null(strstr(p.kernels, "FFMA"));
    done(&p);
    if (try_print(&p, PRODUCT("", LOOP " O[i, j] = r[i, j]"),
                  &(po_cuda_print_options){.tf32 = true}) != PO_OK)
        fail_msg("%s", p.ctx.error.message);
    assert_non_null(strstr(p.kernels, "pc_mma_tf32("));
    done(&p);
    print(&p, PRODUCT("f16", "shared q [256] " LOOP " q[j] max= r[i, j] fresh"
                             " O[i, j] = r[i, j] - q[j]"));
    assert_null(strstr(p.kernels, "/* r, in registers */"));
    /* Each chunk's, one before the maximum, one behind it. */
    assert_int_equal(count(p.kernels, "pc_barrier();"), 3);
    done(&p);
}

#define ATTENTION(type, rows, keys)                                                                \
    "mugraph m { label i 128 label j 512 label k 64 label l 64 tensor Q input 0 [128, 64] " type   \
    " tensor K input 1 [64, 512] " type " tensor V input 2 [512, 64] " type                        \
    " tensor O output 0 [128, 64] " type " tensor D output 1 [128]\n"                              \
    " step \"attention\" { grid i by " rows " { shared q [128, 64] " type " shared m [128]"        \
    " shared d [128] shared o [128, 64]\n"                                                         \
    "  q[i, k] = 0.125 * Q[i, k] m[i] = -inf d[i] = 0 o[i, l] = 0\n"                               \
    "  for j by " keys " { shared s [128, 512] shared p [128, 512] " type " shared old [128]"      \
    " shared f [128]\n"                                                                            \
    "   s[i, j] += q[i, k] * K[k, j] fresh old[i] = m[i] m[i] max= s[i, j]"                        \
    " f[i] = exp(old[i] - m[i]) d[i] = d[i] * f[i] o[i, l] = o[i, l] * f[i]\n"                     \
    "   p[i, j] = exp(s[i, j] - m[i]) d[i] += p[i, j] o[i, l] += p[i, j] * V[j, l] }\n"            \
    "  O[i, l] = o[i, l] / d[i] D[i] = d[i] } } }"

/* Where warps have whole rows, nothing of attention but its operands lies in shared memory, and a
 * chunk has one barrier. */
static void rows_in_registers(void **state) {
    (void)state;
    static const char *const types[] = {"f16", "bf16"};
    printed p;
    print(&p, PRODUCT("f16", "shared q [128] " LOOP " q[i] max= r[i, j] fresh"
                             " O[i, j] = r[i, j] - q[i]"));
    assert_non_null(strstr(p.kernels, "/* r, in registers */"));
    assert_non_null(strstr(p.kernels, "/* q, by rows in registers */"));
    assert_int_equal(count(p.kernels, "pc_barrier();"), 1);
    done(&p);
    for (int i = 0; i < 2; i++) {
        print(&p, i ? ATTENTION("bf16", "64", "64") : ATTENTION("f16", "64", "64"));
        assert_int_equal(count(p.kernels, "by rows in registers"), 4);
        assert_int_equal(count(p.kernels, ", in registers */"), 3);
        assert_int_equal(count(p.kernels, "rows as they are in registers"), 1);
        assert_non_null(strstr(p.kernels, po_arena_printf(p.arena, "pc_pack_%s(r", types[i])));
        /* q; then each chunk's. */
        assert_int_equal(count(p.kernels, "pc_barrier();"), 1);
        done(&p);
    }
    /* Two warps would have nothing to do: through shared memory. */
    print(&p, ATTENTION("f16", "32", "64"));
    assert_int_equal(count(p.kernels, "by rows in registers"), 0);
    assert_true(count(p.kernels, "pc_barrier();") > 3);
    done(&p);
    /* The last chunk is shorter: what lies behind its end must be zeros for the next product. */
    print(&p, ATTENTION("f16", "64", "48"));
    assert_int_equal(count(p.kernels, "rows as they are in registers"), 0);
    done(&p);
    /* Not on tensor cores. */
    print(&p, ATTENTION("", "64", "64"));
    assert_int_equal(count(p.kernels, "by rows in registers"), 0);
    done(&p);
}

/* A thread that finds what it wrote needs no barrier; one that finds what another wrote does. */
static void barriers(void **state) {
    (void)state;
    static const char own[] = "mugraph m { label i 64 label k 256 tensor X input 0 [64, 256] "
                              "tensor O output 0 [64, 256]\n"
                              " step \"s\" { grid i by 4 { shared t [64, 256]\n"
                              "  t[i, k] = exp(X[i, k]) O[i, k] = t[i, k] * t[i, k] } } }";
    static const char other[] = "mugraph m { label i 64 label k 256 tensor X input 0 [64, 256] "
                                "tensor O output 0 [64, 256]\n"
                                " step \"s\" { grid i by 4 { shared t [64, 256]\n"
                                "  t[i, k] = exp(X[i, k]) O[i, k] = t[i, 255-k] } } }";
    printed p;
    print(&p, own);
    assert_int_equal(count(p.kernels, "pc_barrier();"), 0);
    done(&p);
    print(&p, other);
    assert_int_equal(count(p.kernels, "pc_barrier();"), 1);
    assert_non_null(strstr(p.kernels, "t was written by other threads"));
    done(&p);
}

/* The barriers of a sum by all threads are no wait for copies that are still in flight. */
static void copies_are_waited_for(void **state) {
    (void)state;
    printed p;
    print(&p, "mugraph m { label i 64 label k 512 tensor X input 0 [64, 512] f16\n"
              " tensor Y input 1 [64, 512] tensor O output 0 [64, 512] tensor q output 1 [64]\n"
              " step \"s\" { grid i by 1 { shared t [64, 512] f16\n"
              "  t[i, k] = X[i, k] q[i] max= Y[i, k] fresh\n"
              "  O[i, k] = t[i, 511-k] * t[i, k] } } }");
    const char *wait = strstr(p.kernels, "pc_wait<0>();"), *copy = strstr(p.kernels, "pc_copy");
    assert_non_null(strstr(p.kernels, "sum: all threads an element"));
    assert_non_null(wait);
    assert_true(copy != NULL && copy < wait && wait < strstr(p.kernels, "pc_barrier();"));
    done(&p);
}

static void naive_steps_are_dealt(void **state) {
    (void)state;
    for (uint32_t i = 0; i < n_search_blocks; i++) {
        printed p;
        print(&p, search_blocks[i].text);
        uint32_t steps = count(search_blocks[i].text, "step ");
        assert_int_equal(p.program.n_launches, steps);
        for (uint32_t k = 0; k < p.program.n_launches; k++) {
            const po_cuda_launch *l = &p.program.launches[k];
            assert_true(l->threads % 32 == 0 && l->threads <= 1024);
            for (uint32_t a = 0; a < l->n_args; a++)
                if (l->args[a].kind == PO_CUDA_DEVICE) {
                    assert_int_equal(l->args[a].offset % 256, 0);
                    assert_true(l->args[a].offset < p.program.device);
                }
        }
        assert_int_equal(count(p.kernels, "__global__"), steps);
        done(&p);
    }
}

/* Tensors that are not alive at once lie on one another. */
static void places_are_used_again(void **state) {
    (void)state;
    printed p;
    print(&p, "mugraph m { label i 1024 tensor X input 0 [1024] tensor O output 0 [1024]\n"
              " tensor a device [1024] tensor b device [1024] tensor c device [1024] f16\n"
              " step \"1\" { a[i] = X[i] } step \"2\" { b[i] = a[i] } step \"3\" { c[i] = b[i] }\n"
              " step \"4\" { O[i] = c[i] } }");
    assert_int_equal(p.program.device, 8192);
    done(&p);
}

/* Two products of one operand: one loop, one copy of it. Few rows: they are the tile's columns, and
 * eight warps share what is added up. */
static void products_share(void **state) {
    (void)state;
    static const char two[] =
        "mugraph m { label i 8 label k 1024 label j 512 tensor X input 0 [8, 1024] f16\n"
        " tensor U weight 0 [1024, 512] f16 tensor V weight 1 [1024, 512] f16\n"
        " tensor O output 0 [8, 512] f16 step \"mlp\" { grid j by 16 {\n"
        "  shared x [8, 1024] f16 shared t [8, 512] shared u [8, 512] x[i, k] = X[i, k]\n"
        "  t[i, j] += x[i, k] * U[k, j] fresh u[i, j] += x[i, k] * V[k, j] fresh\n"
        "  O[i, j] = t[i, j] * sigmoid(t[i, j]) * u[i, j] } } }";
    printed p;
    print(&p, two);
    assert_int_equal(count(p.kernels, "/* copies run"), 1);
    assert_int_equal(count(p.kernels, "/* X: copied"), 2); /* before the loop, and in it */
    assert_int_equal(count(p.kernels, "mma 16x8x16 f16: 8 x 1 x 1 warps"), 2);
    assert_int_equal(p.program.launches[0].threads, 256);
    /* A chunk's, and that of the warps' parts. */
    assert_int_equal(count(p.kernels, "pc_barrier();"), 2);
    done(&p);
}

/* A product of f32 and f16 is as exact as f32: two products of tf32. */
static void mixed_types(void **state) {
    (void)state;
    printed p;
    print(&p, "mugraph m { label i 16 label k 64 label j 64 tensor X input 0 [16, 64]\n"
              " tensor W weight 0 [64, 64] f16 tensor O output 0 [16, 64]\n"
              " step \"s\" { grid j by 32 { O[i, j] += X[i, k] * W[k, j] fresh } } }");
    assert_int_equal(count(p.kernels, "pc_mma_tf32("), 2);
    assert_non_null(strstr(p.kernels, "rest["));
    done(&p);
}

/* Elements that threads would meet in are one thread's. */
static void scatter(void **state) {
    (void)state;
    printed p;
    print(&p, "mugraph m { label y 9 label r 3 tensor X input 0 [9] tensor W input 1 [3]\n"
              " tensor O output 0 [19] step \"s\" { O[2*y+r] += X[y] * W[r] fresh } }");
    assert_non_null(strstr(p.kernels, "one thread does all of it"));
    assert_int_equal(p.program.launches[0].grid[0], 1);
    done(&p);
}

static void same_text_twice(void **state) {
    (void)state;
    printed p, q;
    print(&p, search_blocks[0].text);
    print(&q, search_blocks[0].text);
    assert_string_equal(p.program.source, q.program.source);
    done(&q);
    done(&p);
}

static void refuses(void **state) {
    (void)state;
    printed p;
    po_status status = try_print(
        &p,
        "mugraph m { label i 64 label k 4096 tensor X input 0 [64, 4096]\n"
        " tensor O output 0 [64, 4096] step \"too much\" { grid i by 16 { shared t [64, 4096]\n"
        "  t[i, k] = exp(X[i, k]) O[i, k] = t[i, 4095-k] } } }",
        &(po_cuda_print_options){0});
    assert_int_equal(status, PO_UNSUPPORTED);
    assert_non_null(strstr(p.ctx.error.message, "step 'too much'"));
    assert_non_null(strstr(p.ctx.error.message, "of 101376 that it may"));
    done(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_on_tensor_cores),
        cmocka_unit_test(product_otherwise),
        cmocka_unit_test(rows_in_registers),
        cmocka_unit_test(barriers),
        cmocka_unit_test(copies_are_waited_for),
        cmocka_unit_test(naive_steps_are_dealt),
        cmocka_unit_test(places_are_used_again),
        cmocka_unit_test(products_share),
        cmocka_unit_test(mixed_types),
        cmocka_unit_test(scatter),
        cmocka_unit_test(same_text_twice),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
