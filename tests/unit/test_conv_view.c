/* The one view of a convolution: its lists filled in, checked against the shape that inference
 * gives it, and what is no convolution refused. */
#include "ops/conv_view.h"
#include "rewriting.h"
#include "unit.h"

#include <stdio.h>

typedef struct sample {
    const char *node; /* of x, w: the graph's only one */
    const char *x, *w;
    const char *view; /* NULL: refused */
} sample;

static const sample samples[] = {
    {"Conv(x, w)", "1,4,8,9", "6,4,3,2", "2 axes, 4 to 6 by 1, k 3 2, s 1 1, d 1 1, pads 0 0 0 0"},
    {"Conv(x, w) {group=2, strides=[2,1], dilations=[1,3], pads=[1,0,2,4]}", "1,4,8,9", "6,2,3,2",
     "2 axes, 4 to 6 by 2, k 3 2, s 2 1, d 1 3, pads 1 0 2 4"},
    {"Conv(x, w) {auto_pad=\"SAME_UPPER\", strides=[2,2]}", "1,4,8,9", "6,4,3,2",
     "2 axes, 4 to 6 by 1, k 3 2, s 2 2, d 1 1, pads 0 0 1 1"},
    {"Conv(x, w) {auto_pad=\"SAME_LOWER\", strides=[2,2]}", "1,4,8,9", "6,4,3,2",
     "2 axes, 4 to 6 by 1, k 3 2, s 2 2, d 1 1, pads 1 1 0 0"},
    {"Conv(x, w) {auto_pad=\"SAME_UPPER\"}", "1,4,H,9", "6,4,4,2",
     "2 axes, 4 to 6 by 1, k 4 2, s 1 1, d 1 1, pads 1 0 2 1"},
    {"Conv(x, w) {auto_pad=\"SAME_UPPER\", strides=[2,2]}", "1,4,H,9", "6,4,3,2", NULL},
    {"Conv(x, w) {auto_pad=\"VALID\"}", "B,4,H,9", "6,4,3,2",
     "2 axes, 4 to 6 by 1, k 3 2, s 1 1, d 1 1, pads 0 0 0 0"},
    {"Conv(x, w)", "1,4,9", "6,4,3", "1 axes, 4 to 6 by 1, k 3, s 1, d 1, pads 0 0"},
    {"ConvTranspose(x, w) {group=2, strides=[2,2], output_padding=[1,0]}", "1,4,8,9", "4,3,3,2",
     "2 axes, 4 to 6 by 2, k 3 2, s 2 2, d 1 1, pads 0 0 0 0"},
    {"ConvTranspose(x, w) {auto_pad=\"SAME_UPPER\", strides=[2,2]}", "1,4,8,9", "4,3,3,3", NULL},
    {"Conv(x, w) {pads=[-1,0,0,0]}", "1,4,8,9", "6,4,3,2", NULL},
    {"Conv(x, w)", "1,4,3,3,3,3", "6,4,1,1,1,1", NULL}, /* four axes */
    {"MaxPool(x) {kernel_shape=[3,2]}", "1,4,8,9", "1", NULL},
};

static const char *list(po_arena *a, uint32_t n, const int64_t *v) {
    const char *text = "";
    for (uint32_t i = 0; i < n; i++)
        text = po_arena_printf(a, "%s %lld", text, (long long)v[i]);
    return text;
}

static const char *print(po_arena *a, const po_conv *c) {
    return po_arena_printf(
        a, "%u axes, %lld to %lld by %lld, k%s, s%s, d%s, pads%s%s", c->n, (long long)c->in,
        (long long)c->out, (long long)c->group, list(a, c->n, c->kernel), list(a, c->n, c->stride),
        list(a, c->n, c->dilation), list(a, c->n, c->before), list(a, c->n, c->after));
}

static void test_samples(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const sample *s = &samples[i];
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_graph *g = test_graph(&ctx, po_arena_printf(arena,
                                                       "graph g (x: f32[%s], w: f32[%s]) -> (y) {\n"
                                                       " y = %s\n}",
                                                       s->x, s->w, s->node));
        assert_int_equal(po_infer_graph(&ctx, g, true), PO_OK);
        po_conv c;
        const bool read = po_conv_view(g, 0, &c);
        const char *got = read ? print(arena, &c) : NULL;
        /* What inference found out by itself says the same of a plain one. */
        const bool open = strchr(s->x, 'H') != NULL || strchr(s->x, 'B') != NULL;
        const bool fits = !read || open || g->nodes[0].op != PO_OP_Conv || po_conv_fits(&c);
        if (read != (s->view != NULL) || (read && strcmp(got, s->view) != 0) || !fits) {
            printf("%s: %s (want %s)%s\n", s->node, got ? got : "refused",
                   s->view ? s->view : "refused", fits ? "" : ", does not fit");
            bad++;
        }
        po_graph_free(g);
        po_arena_free(arena);
    }
    assert_int_equal(bad, 0);
}

/* What is written from a view is read as the same view. */
static void written_lists_read_back(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const sample *s = &samples[i];
        if (!s->view || strncmp(s->node, "Conv(", 5) != 0)
            continue;
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        const char *form = "graph g (x: f32[%s], w: f32[%s]) -> (y) {\n y = %s\n}";
        po_graph *from = test_graph(&ctx, po_arena_printf(arena, form, s->x, s->w, s->node));
        po_conv a, b;
        assert_int_equal(po_infer_graph(&ctx, from, true), PO_OK);
        assert_true(po_conv_view(from, 0, &a));
        const char *plain = po_arena_printf(arena, "Conv(x, w) {group=%lld}", (long long)a.group);
        po_graph *to = test_graph(&ctx, po_arena_printf(arena, form, s->x, s->w, plain));
        po_conv_set_lists(to, 0, &a);
        to->values[to->nodes[0].out[0]].type = from->values[a.y].type;
        assert_true(po_conv_view(to, 0, &b));
        assert_string_equal(print(arena, &a), print(arena, &b));
        po_graph_free(to);
        po_graph_free(from);
        po_arena_free(arena);
    }
}

/* What the verbs say of makers and readers, and a convolution that is added from a view. */
static void verbs(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_graph *g = test_graph(&ctx, "graph g (x: f32[1,4,8,9], w: f32[6,2,3,3]) -> (y) {\n"
                                   "  a = Conv(x, w) {group=2, pads=[1,1,1,1]}\n"
                                   "  b = ConvTranspose(a, v: f32[6,4,2,2] random 1)\n"
                                   "  y = Relu(b)\n}");
    const po_node *conv = &g->nodes[0], *transposed = &g->nodes[1], *relu = &g->nodes[2];
    assert_true(po_conv_is(conv) && !po_conv_is(transposed) && !po_conv_is(relu));
    assert_true(!po_conv_is_transposed(conv) && po_conv_is_transposed(transposed));
    assert_true(po_conv_is_either(conv) && po_conv_is_either(transposed));
    assert_false(po_conv_is_either(relu) || po_conv_is(NULL) || po_conv_is_either(NULL));
    assert_ptr_equal(po_made_by_conv(g, conv->out[0]), conv);
    assert_ptr_equal(po_made_alone_by_conv(g, conv->out[0]), conv);
    assert_null(po_made_by_conv(g, transposed->out[0]));
    assert_true(po_read_by_conv(g, &g->values[conv->in[0]].uses[0]));
    assert_false(po_read_by_conv(g, &g->values[conv->in[1]].uses[0]));
    assert_false(po_read_by_conv(g, &g->values[conv->out[0]].uses[0]));

    po_conv view, again;
    assert_true(po_conv_view(g, 0, &view));
    const po_value_id x = view.x, w = view.w, made = view.y;
    const po_type type = g->values[made].type;
    const po_value_id y = po_add_conv(g, 0, x, w, PO_NONE, &view, &type);
    assert_true(po_conv_view(g, g->values[y].producer, &again));
    assert_true(again.group == 2 && again.n == 2 && again.kernel[1] == 3 && po_conv_fits(&again));
    assert_true(po_conv_padded(&again) && again.b == PO_NONE);

    /* A factor and a shift for each channel. */
    const po_conv tap = po_conv_of_one_tap(PO_F32, 2, 4, 4, 4);
    const double ones[4] = {1, 2, 3, 4};
    const po_value_id factor = po_add_floats(g, NULL, PO_F32, 4, (int64_t[]){4, 1, 1, 1}, ones);
    const po_value_id shift = po_add_floats(g, NULL, PO_F32, 1, (int64_t[]){4}, ones);
    const po_value_id z = po_add_conv(g, PO_NONE, x, factor, shift, &tap, NULL);
    assert_int_equal(po_infer_graph(&ctx, g, false), PO_OK);
    assert_true(po_conv_view(g, g->values[z].producer, &again) && po_conv_fits(&again));
    assert_true(again.group == 4 && po_conv_taps(&again) == 1 && again.b == shift);
    assert_true(po_same_dims(g, z, x));
    po_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples),
                                       cmocka_unit_test(written_lists_read_back),
                                       cmocka_unit_test(verbs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
