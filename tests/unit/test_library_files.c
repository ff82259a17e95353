/* What a library is compiled from: large kernels in several files, code for other machines only
 * where there is time, and steps that there is no time to compare. */
#include "codegen/compile.h"
#include "codegen/delivery/library.h"
#include "planned.h"
#include "superopt/plan/compiled.h"
#include "superopt/schedule/schedule.h"
#include "test_paths.h"
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUNCTIONS = 1500 };

/* The prelude, functions that reduce, with tables between them, and one that calls them all. */
static const char *long_text(po_arena *arena, const po_isa *isa) {
    po_text text;
    po_text_init(&text, arena);
    po_codegen_prelude(isa, &text);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        po_text_printf(&text, "\nstatic const float k_table%u[] = {%u};\n", i, i);
        po_text_printf(&text, "\n%s void k_body%u(float *const *at, long n) {\n",
                       i % 3 ? "PK_BIG" : "PK_OWN", i);
        if (i > 0)
            po_text_printf(&text, "    k_body%u(at, n + 1);\n", i - 1);
        for (uint32_t k = 0; k < 20; k++)
            po_text_printf(&text, "    {\n        at[0][n + %u] += %u.0f;\n    }\n", k, i);
        po_text_puts(&text, "}\n\n");
    }
    po_text_puts(&text,
                 "\nPK_OWN void k_0(void *arg, size_t part) {\n    (void)arg, (void)part;\n}\n"
                 "\nvoid k_all(float *to);\nvoid k_all(float *to) {\n"
                 "    float *const at[] = {to};\n");
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        po_text_printf(&text, "    k_body%u(at, 0);\n    to[1] += k_table%u[0];\n", i, i);
    po_text_puts(&text, "    k_0(NULL, 0);\n}\n");
    return text.data;
}

static uint32_t count(const char *text, const char *what) {
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Compiles the files, each by itself, and calls what calls all functions. */
static void run_files(po_ctx *ctx, po_arena *arena, const po_library_sources *s, const char *dir) {
    po_cc_source *sources = PO_NEW_N(arena, po_cc_source, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        const char *path = po_arena_printf(arena, "%s/%s", dir, s->files[i].name);
        test_write_text(path, s->files[i].text);
        sources[i] = (po_cc_source){.path = path, .flags = s->flags[i]};
    }
    const char *so = po_arena_printf(arena, "%s/out.so", dir);
    assert_int_equal(po_cc_library(ctx, NULL, sources, s->n, NULL, so), PO_OK);
    void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    assert_null(dlsym(library, "k_body0")); /* for this object alone */
    (void)dlclose(library);
}

static void long_kernels_stand_in_several_files(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    for (uint32_t isa = 0; isa < PO_ISAS; isa++) {
        const po_isa *of = &po_isas[isa];
        po_library_sources s = {.arena = arena};
        const char *text = long_text(arena, of);
        po_text prelude, all;
        po_text_init(&prelude, arena);
        po_text_init(&all, arena);
        po_codegen_prelude(of, &prelude);
        po_library_add_code(&s, "k", of, text, of->flags, isa == 0);
        assert_true(s.n > 2);
        for (uint32_t i = 0; i < s.n; i++) {
            assert_int_equal(strncmp(s.files[i].text, prelude.data, prelude.size), 0);
            assert_true(strlen(s.files[i].text) < strlen(text) / 4 * 3);
            assert_int_equal(s.optional[i], isa == 0);
            po_text_puts(&all, s.files[i].text);
        }
        for (uint32_t i = 0; i < FUNCTIONS; i++) {
            const char *name = po_arena_printf(arena, "void k_body%u(float *const *at, long n)", i);
            assert_int_equal(count(all.data, po_arena_printf(arena, "%s {", name)), 1);
            assert_int_equal(count(all.data, po_arena_printf(arena, "%s;", name)), s.n);
            assert_int_equal(count(all.data, po_arena_printf(arena, " k_table%u[] = {%u};", i, i)),
                             1);
        }
        assert_int_equal(count(all.data, "\nPK_BIG void k_"), 0);
        assert_int_equal(count(all.data, "\nPK_OWN void k_0("), 1);
        assert_int_equal(count(all.data, "\nPK_OWN void k_"), 1);
        if (isa == PO_ISA_AVX2) {
            char dir[] = "/tmp/petopt-files-XXXXXX";
            assert_non_null(mkdtemp(dir));
            run_files(&ctx, arena, &s, dir);
            test_rmtree(dir);
        }
        /* A short one stays as it is. */
        po_library_sources one = {.arena = arena};
        po_library_add_code(&one, "k", of, "int f;\n", of->flags, false);
        assert_int_equal(one.n, 1);
        assert_string_equal(one.files[0].text, "int f;\n");
    }
    po_arena_free(arena);
}

/* With much to compile behind it: it is not done before what is sure. */
static const char *slowly(po_arena *arena, const char *start) {
    po_text text;
    po_text_init(&text, arena);
    po_text_puts(&text, start);
    for (uint32_t i = 0; i < 6000; i++)
        po_text_printf(&text, "int g%u(int x);\nint g%u(int x) { return x * %u + x / 7; }\n", i, i,
                       i);
    return text.data;
}

/* Optional files are left out where they would be late, and the last file is told. How late is not
 * read off two lines, which take a compiler as long as its start does. */
static void what_would_be_late_is_left_out(void **state) {
    (void)state;
    static const struct {
        double from_now; /* 0: no limit */
        bool left_out;
    } cases[] = {{0, false}, {120, false}, {-1, true}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        char dir[] = "/tmp/petopt-files-XXXXXX";
        assert_non_null(mkdtemp(dir));
        static const char *const texts[] = {
            "int sure(void);\nint sure(void) { return 1; }\n",
            "int other(void);\nint other(void) { return 2; }\n",
            "__attribute__((visibility(\"default\"))) int all(void);\nint sure(void);\n"
            "int other(void);\nint all(void) {\n#ifdef WITHOUT\n    return sure();\n#else\n"
            "    return sure() + other();\n#endif\n}\n"};
        po_cc_source sources[3];
        for (uint32_t i = 0; i < 3; i++) {
            sources[i] = (po_cc_source){.path = po_arena_printf(arena, "%s/%u.c", dir, i),
                                        .optional = i == 1};
            test_write_text(sources[i].path, i == 1 ? slowly(arena, texts[i]) : texts[i]);
        }
        bool left_out = !cases[c].left_out;
        const char *so = po_arena_printf(arena, "%s/out.so", dir);
        po_cc_build build = {.sources = sources,
                             .n = 3,
                             .so_path = so,
                             .until = cases[c].from_now == 0 ? 0 : po_now() + cases[c].from_now,
                             .without = "-DWITHOUT",
                             .left_out = &left_out};
        assert_int_equal(po_cc_build_library(&ctx, &build), PO_OK);
        assert_int_equal(left_out, cases[c].left_out);
        void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        int (*all)(void);
        void *found = dlsym(library, "all");
        assert_non_null(found);
        memcpy(&all, &found, sizeof all);
        assert_int_equal(all(), left_out ? 1 : 3);
        (void)dlclose(library);
        test_rmtree(dir);
        po_arena_free(arena);
    }
}

/* A step that there was no time to compute is not called wrong. */
static void no_time_is_not_wrong(void **state) {
    (void)state;
    test_planned f;
    test_planned_start(&f,
                       "graph g (x: f32[64,256]) -> (y) {\n"
                       " y = MatMul(x, w: f32[256,256] random 1)\n}",
                       false);
    const po_mu *naive = f.plan.lowered.mu;
    po_choice choices[PO_CHOICES_MAX];
    po_standalone_step lone;
    po_step_values *last = NULL;
    assert_true(po_choices_of(naive, naive->first, &po_isas[PO_ISA_AVX2], 1, choices) > 0);
    const po_mu *mu = po_plan_standalone(f.arena, naive, naive->first, &choices[0], &lone);
    lone.last = &last;
    const po_loaded_kernel kernel = {.mu = mu};
    f.ctx.deadline = po_now() - 1;
    assert_ptr_equal(po_check_step(&f.ctx, f.arena, &lone, &kernel), po_check_no_time);
    f.ctx.deadline = 0;
    po_ctx_clear(&f.ctx);
    test_planned_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_kernels_stand_in_several_files),
        cmocka_unit_test(what_would_be_late_is_left_out),
        cmocka_unit_test(no_time_is_not_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
