/* What a region with an open batch does to one sample; what mixes samples is refused. */
#include "superopt/gpu/batch.h"

#include "unit.h"

typedef struct row {
    const char *what, *body;
    const char *refused; /* part of the reason; NULL: it is taken */
} row;

/* N: samples; x and y are of each, w is not. */
static const row rows[] = {
    {"a map",
     "step \"a\" {\n d[i, j] = exp(x[i, j])\n }\n"
     "step \"b\" {\n y[k, l] = d[k, l] * w[l]\n }\n",
     NULL},
    {"a sum of each sample",
     "step \"a\" {\n s[i] += x[i, j] * w[j] fresh\n }\n"
     "step \"b\" {\n y[k, l] = x[k, l] - s[k]\n }\n",
     NULL},
    {"what is none of theirs",
     "step \"a\" {\n v[l] = exp(w[l])\n }\n"
     "step \"b\" {\n y[i, j] = x[i, j] * v[j]\n }\n",
     NULL},
    {"a sum over samples",
     "step \"a\" {\n v[j] += x[i, j] fresh\n }\n"
     "step \"b\" {\n y[k, l] = x[k, l] - v[l]\n }\n",
     "come together in 'v'"},
    {"two samples of one statement", "step \"a\" {\n y[i, j] += x[i, j] * x[k, j] fresh\n }\n",
     "another one is read of 'x'"},
    {"the next sample", "step \"a\" {\n y[i, j] = x[i, j] + x[i+1, j]\n }\n",
     "another one is read of 'x'"},
    {"the first sample", "step \"a\" {\n y[i, j] = x[i, j] + x[0, j]\n }\n",
     "another one is read of 'x'"},
    {"samples the other way", "step \"a\" {\n y[i, j] = x[N-1-i, j]\n }\n",
     "another one is read of 'x'"},
    {"its number counts", "step \"a\" {\n y[i, j] = x[i, j] * w[i]\n }\n",
     "which one it is counts for 'w'"},
    {"its number counts on another axis", "step \"a\" {\n y[i, j] = x[i, j+i]\n }\n",
     "which one it is counts for 'x'"},
    {"turned", "step \"a\" {\n t[j, i] = x[i, j]\n }\n step \"b\" {\n y[k, l] = t[l, k]\n }\n",
     "come together in 't'"},
    {"an output of none", "step \"a\" {\n y[i, j] = w[j]\n }\n", "do not make 'y'"},
};

/* The text with the number in the place of %u. */
static const char *with_number(po_arena *arena, const char *text, uint32_t n) {
    const char *at = strstr(text, "%u");
    return at ? po_arena_printf(arena, "%.*s%u%s", (int)(at - text), text, n, at + 2) : text;
}

static po_status sample_of(po_ctx *ctx, po_arena *arena, const row *r, const po_mu **one) {
    po_mu *mu[2];
    for (uint32_t n = 2; n <= 3; n++) {
        po_text text;
        po_text_init(&text, arena);
        /* What stands in it alone: dims of others would tell two from three. */
        const char *const optional[][2] = {{"k", " label k %u\n"},
                                           {"l", " label l 8\n"},
                                           {"x[", "tensor x input 0 [%u, 8]\n"},
                                           {"w[", "tensor w weight 0 [8]\n"},
                                           {"d[", "tensor d device [%u, 8]\n"},
                                           {"s[", "tensor s device [%u]\n"},
                                           {"v[", "tensor v device [8]\n"},
                                           {"t[", "tensor t device [8, %u]\n"}};
        po_text_printf(&text, "mugraph g {\n label i %u\n label j 8\n", n);
        for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
            if (strstr(r->body, optional[i][0]))
                po_text_puts(&text, with_number(arena, optional[i][1], n));
        po_text_printf(&text, "tensor y output 0 [%u, 8]\n", n);
        for (const char *c = r->body; *c; c++)
            if (strncmp(c, "N-1-i", 5) == 0) {
                po_text_printf(&text, "%u-i", n - 1);
                c += 4;
            } else {
                po_text_add(&text, c, 1);
            }
        po_text_puts(&text, "}\n");
        if (po_mu_parse(ctx, arena, text.data, &mu[n - 2]) != PO_OK)
            fail_msg("%s: %s", r->what, ctx->error.message);
    }
    return po_gpu_sample_of(ctx, arena, mu[0], mu[1], (bool[]){true}, one);
}

static void samples_that_are_apart(void **state) {
    (void)state;
    uint32_t taken = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        const po_mu *one;
        po_status status = sample_of(&ctx, arena, &rows[i], &one);
        if (rows[i].refused) {
            if (status != PO_UNSUPPORTED || !strstr(ctx.error.message, rows[i].refused))
                fail_msg("%s: %s", rows[i].what, ctx.error.message);
        } else {
            if (status != PO_OK)
                fail_msg("%s: %s", rows[i].what, ctx.error.message);
            for (uint32_t t = 0; t < one->n_tensors; t++)
                if (strchr("xy", *one->tensors[t].name))
                    assert_int_equal(one->tensors[t].dims[0], 1);
            assert_int_equal(po_mu_check(&ctx, one, 1 << 20), PO_OK);
            taken++;
        }
        po_arena_free(arena);
    }
    assert_int_equal(taken, 3);
}

/* The same text for two and for three but for a number: what was made of it hangs on how many. */
static void another_function_for_three(void **state) {
    (void)state;
    static const char text[] =
        "mugraph g {\n label i %d\n label j 8\n tensor x input 0 [%d, 8]\n"
        "tensor y output 0 [%d, 8]\n step \"a\" {\n y[i, j] = x[i, j] * %s\n }\n}\n";
    const struct {
        const char *numbers[2];
        po_status status;
    } pairs[] = {{{"0.5", "0.5"}, PO_OK}, {{"0.5", "0.25"}, PO_UNSUPPORTED}};
    for (size_t i = 0; i < 2; i++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_mu *mu[2];
        const po_mu *one;
        for (int n = 0; n < 2; n++)
            assert_int_equal(
                po_mu_parse(&ctx, arena,
                            po_arena_printf(arena, text, n + 2, n + 2, n + 2, pairs[i].numbers[n]),
                            &mu[n]),
                PO_OK);
        assert_int_equal(po_gpu_sample_of(&ctx, arena, mu[0], mu[1], (bool[]){true}, &one),
                         pairs[i].status);
        po_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_that_are_apart),
        cmocka_unit_test(another_function_for_three),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
