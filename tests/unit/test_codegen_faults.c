/* Faults planted in printed kernels, in muGraphs and in compilers are seen. */
#include "unit.h"

#include "kernel_cases.h"
#include "kernel_run.h"
#include "test_paths.h"

#include "codegen/compile.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- faults in the text or in the muGraph: the original's meaning is what is compared with --- */

typedef struct fault {
    const char *name; /* start of the case's name */
    bool in_text;     /* of the printed C, else of the muGraph */
    const char *from, *to;
} fault;

static const fault faults[] = {
    {"product with panels", true, "pk_load_n(p1 + 35 * i_k + 32, 3)",
     "pk_load(p1 + 35 * i_k + 32)"},
    {"product with panels", true, "pk_store_n(o2 + 32, v2_0_2, 3)", "pk_store(o2 + 32, v2_0_2)"},
    {"product with panels", true, "+= e2_1_0;", "+= e2_0_0;"},
    {"product with panels", true, "i_k < 17;", "i_k < 16;"},
    {"product with panels", true, "const size_t to = 2ul", "const size_t to = 1ul"},
    {"product in chunks", true, "if (b_k == 0)", "if (b_k >= 0)"},
    {"product in chunks", true, "n_k; i_k++", "16; i_k++"},
    {"product in chunks", true, "if (b_m + n_m - i_m == 1)", "if (b_m + n_m - i_m == 2)"},
    {"product goes on", true, "= pk_load(o", "= 0 * pk_load(o"},
    {"convolution, channels last", true, "pk_turn(u);", "(void)u;"},
    {"convolution, channels last", true, "device[0 + i] = 0.0f", "device[0 + i] = 1.0f"},
    {"rings on what other maps used", true, "pk_fill(t, (size_t)(0 + 22), 0.0f)",
     "pk_fill(t, (size_t)(0 + 22), 1.0f)"},
    {"rings on what other maps used", true, "+ 2), 0.0f)", "+ 1), 0.0f)"},
    {"rings on what other maps used", true, "+ 1056, (size_t)(0 + 22", "+ 1056, (size_t)(0 + 48"},
    {"the same by smaller turns", true, "+ 1 * 99, 5)", "+ 1 * 99, 4)"},
    {"convolution by tests at the edges", true, "< (unsigned long)9", "< (unsigned long)10"},
    {"convolution by tests at the edges", true, "< (unsigned long)11", "< (unsigned long)12"},
    {"maximum over a ring", true, "(-__builtin_inff());\n}", "0.0f;\n}"},
    {"maximum by tests", true, "pk_max1(", "pk_min1("},
    {"norm over", true, ", 0.0f, 13)", ", 0.0f, 15)"},
    {"softmax", true, " += pk_sum_of(", " = 2 * pk_sum_of("},
    {"scatter of", true, " = 0.0f;", ";"},
    {"Winograd F(4,3)", true, " - z", " + z"},
    {"Winograd F(4,3)", true, "2.25f", "2.26f"},
    {"product with panels", false, "A[m, k]", "A[m, 16-k]"},
    {"product in chunks", false, "fresh tile", "tile"},
    {"convolution, channels last", false, "y+r-1", "y+r"},
    {"convolution, channels last", false, "+ R[y, x, 16*b+k]", "- R[y, x, 16*b+k]"},
    {"depthwise", false, "W[r, s, c]", "W[s, r, c]"},
    {"softmax", false, "E[i, j] / S[i]", "E[i, j] * S[i]"},
    {"running maximum", false, "L[q] += E[q, k] fresh", "L[q] max= E[q, k] fresh"},
    {"Winograd F(2,3)", false, "AT[x, n]", "AT[x, 3-n]"},
    {"elementwise", false, "less(Q[i, j], Z[i, j])", "less(Z[i, j], Q[i, j])"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

static const kernel_case *case_of(const char *name) {
    for (uint32_t i = 0; i < n_kernel_cases; i++)
        if (strncmp(kernel_cases[i].name, name, strlen(name)) == 0)
            return &kernel_cases[i];
    fail_msg("no case '%s'", name);
    return NULL;
}

static char *replaced(po_arena *arena, const char *text, const char *from, const char *to) {
    po_text out;
    po_text_init(&out, arena);
    /* The prelude stays as it is. */
    const char *start = strstr(text, "_call {");
    if (start == NULL)
        start = text;
    po_text_add(&out, text, (size_t)(start - text));
    uint32_t n = 0;
    for (const char *at; (at = strstr(start, from)) != NULL; n++) {
        po_text_add(&out, start, (size_t)(at - start));
        po_text_puts(&out, to);
        start = at + strlen(from);
    }
    po_text_puts(&out, start);
    return n > 0 ? out.data : NULL;
}

static const float **values_of(po_arena *arena, const po_mu *mu, po_mu_place place,
                               uint64_t state) {
    int64_t n[64];
    uint32_t count = test_ports(mu, place, n, 64);
    const float **all = PO_NEW_N(arena, const float *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        float *to = PO_NEW_N(arena, float, n[i] + 1);
        for (int64_t k = 0; k < n[i]; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            to[k] = (float)((double)(state >> 33) / 1073741824.0 - 1.3);
        }
        all[i] = to;
    }
    return all;
}

/* Whether running the kernel shows: by its values, its memory or its end. */
static bool shows(po_ctx *ctx, po_arena *arena, const test_kernel *kernel, double k) {
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL);
        const float **in = values_of(arena, kernel->mu, PO_MU_INPUT, 1);
        const float **weight = values_of(arena, kernel->mu, PO_MU_WEIGHT, 2);
        for (int at_start = 0; at_start < 2; at_start++)
            if (test_kernel_check(ctx, arena, kernel, in, weight, 2, false, at_start != 0, k, NULL,
                                  NULL) != NULL)
                _exit(1);
        _exit(0);
    }
    int state = 0;
    assert_true(waitpid(pid, &state, 0) == pid);
    return !WIFEXITED(state) || WEXITSTATUS(state) != 0;
}

static void test_planted(void **state) {
    (void)state;
    const po_isa *isa = &po_isas[PO_ISA_AVX512];
    if (!test_has_isa(isa))
        skip();
    po_ctx ctx;
    po_ctx_init(&ctx);
    ctx.threads = 2;
    po_arena *arena = po_arena_create(&ctx);
    char dir[] = "/tmp/petopt-faults-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char *texts[FAULTS];
    po_mu *meant[FAULTS];
    for (uint32_t i = 0; i < FAULTS; i++) {
        const fault *f = &faults[i];
        const kernel_case *c = case_of(f->name);
        po_mu *printed;
        po_text text;
        po_text_init(&text, arena);
        assert_int_equal(po_mu_parse(&ctx, arena, c->text, &meant[i]), PO_OK);
        const char *source = f->in_text ? c->text : replaced(arena, c->text, f->from, f->to);
        if (source == NULL)
            fail_msg("%s: '%s' is not in the muGraph", f->name, f->from);
        if (po_mu_parse(&ctx, arena, source, &printed) != PO_OK)
            fail_msg("%s, '%s': %s", f->name, f->to, ctx.error.message);
        const char *symbol = po_arena_printf(arena, "k%u", i);
        assert_int_equal(test_kernel_text(&ctx, printed, isa, symbol, &text), PO_OK);
        texts[i] = f->in_text ? replaced(arena, text.data, f->from, f->to) : text.data;
        if (texts[i] == NULL)
            fail_msg("%s: '%s' is not in the text", f->name, f->from);
    }
    void *library;
    if (test_kernels_load(&ctx, arena, isa, texts, FAULTS, "-O1", dir, false, &library) != PO_OK)
        fail_msg("%s", ctx.error.message);
    for (uint32_t i = 0; i < FAULTS; i++) {
        test_kernel kernel =
            test_kernel_of(arena, library, po_arena_printf(arena, "k%u", i), meant[i], NULL, isa);
        if (!shows(&ctx, arena, &kernel, case_of(faults[i].name)->k))
            fail_msg("%s: '%s' for '%s' does not show", faults[i].name, faults[i].to,
                     faults[i].from);
    }
    (void)dlclose(library);
    (void)rmdir(dir);
    po_arena_free(arena);
}

/* --- compilers --- */

static uint32_t files_in(const char *dir) {
    DIR *d = opendir(dir);
    assert_non_null(d);
    uint32_t n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void test_compiler(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    ctx.threads = 2;
    po_arena *arena = po_arena_create(&ctx);
    char dir[] = "/tmp/petopt-cc-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char *so = po_arena_printf(arena, "%s/out.so", dir);
    po_cc_source sources[5];
    for (uint32_t i = 0; i < 5; i++) {
        sources[i] = (po_cc_source){.path = po_arena_printf(arena, "%s/%u.c", dir, i)};
        test_write_text(sources[i].path,
                        po_arena_printf(arena, "int f%u(void) { return 1; }\n", i));
    }
    assert_int_equal(po_cc_library(&ctx, NULL, sources, 5, NULL, so), PO_OK);
    assert_int_equal(files_in(dir), 6);
    assert_int_equal(unlink(so), 0);

    /* One of five that does not compile. */
    test_write_text(sources[3].path, "int broken(void) { return nonsense; }\n");
    assert_int_equal(po_cc_library(&ctx, NULL, sources, 5, NULL, so), PO_UNSUPPORTED);
    assert_non_null(strstr(ctx.error.message, "nonsense"));
    assert_int_equal(files_in(dir), 5);
    po_ctx_clear(&ctx);

    /* No such compiler; one that fails; one that writes nothing. */
    assert_int_equal(po_cc_library(&ctx, "no-such-compiler", sources, 1, NULL, so), PO_UNSUPPORTED);
    assert_non_null(strstr(ctx.error.message, "no-such-compiler"));
    po_ctx_clear(&ctx);
    assert_int_equal(po_cc_library(&ctx, "false", sources, 1, NULL, so), PO_UNSUPPORTED);
    po_ctx_clear(&ctx);
    assert_int_equal(files_in(dir), 5);

    /* Cancelled while it compiles. */
    atomic_bool cancel = true;
    ctx.cancel = &cancel;
    assert_int_equal(po_cc_library(&ctx, NULL, sources, 1, NULL, so), PO_CANCELLED);
    ctx.cancel = NULL;
    po_ctx_clear(&ctx);
    assert_int_equal(files_in(dir), 5);
    const char *slow = po_arena_printf(arena, "%s/slow", dir);
    test_write_text(slow, "#!/bin/sh\nexec sleep 30\n");
    (void)chmod(slow, 0700);
    double from = po_now();
    ctx.deadline = from + 0.2;
    assert_int_equal(po_cc_library(&ctx, slow, sources, 2, NULL, so), PO_TIME_LIMIT);
    assert_true(po_now() - from < 10);
    ctx.deadline = 0;
    po_ctx_clear(&ctx);
    assert_int_equal(files_in(dir), 6);

    /* A folder that is not there. */
    assert_int_equal(po_cc_library(&ctx, NULL, sources, 1, NULL, "/nonexistent/dir/out.so"), PO_IO);
    (void)unlink(slow);
    for (uint32_t i = 0; i < 5; i++)
        (void)unlink(sources[i].path);
    (void)rmdir(dir);
    po_arena_free(arena);
}

static void count_files(void *user, uint32_t compiled) {
    uint32_t *told = user;
    assert_int_equal(compiled, *told + 1);
    *told = compiled;
}

/* What does not compile is left out where that is allowed; headers are read compiled or as text. */
static void test_compiler_leaves_out(void **state) {
    (void)state;
    enum { N = 4 };
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    char dir[] = "/tmp/petopt-cc-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char *so = po_arena_printf(arena, "%s/out.so", dir);
    const char *header = po_arena_printf(arena, "%s/all.h", dir);
    const char *made = po_arena_printf(arena, "%s.gch", header);
    po_cc_source sources[N];
    for (uint32_t i = 0; i < N; i++) {
        sources[i] = (po_cc_source){.path = po_arena_printf(arena, "%s/%u.c", dir, i),
                                    .flags = "-fvisibility=default",
                                    .header = header};
        test_write_text(sources[i].path, po_arena_printf(arena, "number f%u(void) { return %s; }\n",
                                                         i, i == 2 ? "nonsense" : "ONE"));
    }
    bool failed[N] = {false};
    uint32_t told = 0;
    po_cc_build build = {.sources = sources,
                         .n = N,
                         .so_path = so,
                         .failed = failed,
                         .told = count_files,
                         .user = &told};
    for (uint32_t round = 0; round < 3; round++) {
        /* Compiled; as text, where that cannot be; compiled by what makes no sense of it. */
        test_write_text(header, "typedef int number;\n#define ONE 1\n");
        assert_int_equal(
            po_cc_header(&ctx, round == 1 ? "false" : NULL, header, "-fvisibility=default"), PO_OK);
        assert_int_equal(access(made, F_OK) == 0, round != 1);
        if (round == 2)
            test_write_text(made, "nothing of the kind");
        told = 0;
        memset(failed, 0, sizeof failed);
        assert_int_equal(po_cc_build_library(&ctx, &build), PO_OK);
        assert_int_equal(told, N);
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(failed[i], i == 2);
        void *library = dlopen(so, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        assert_non_null(dlsym(library, "f3"));
        assert_null(dlsym(library, "f2"));
        (void)dlclose(library);
        (void)unlink(so);
        (void)unlink(made);
    }
    /* Nothing compiles. */
    told = 0;
    test_write_text(header, "");
    assert_int_equal(po_cc_build_library(&ctx, &build), PO_UNSUPPORTED);
    po_ctx_clear(&ctx);
    assert_int_equal(files_in(dir), N + 1);
    for (uint32_t i = 0; i < N; i++)
        (void)unlink(sources[i].path);
    (void)unlink(header);
    (void)rmdir(dir);
    po_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted),
                                       cmocka_unit_test(test_compiler),
                                       cmocka_unit_test(test_compiler_leaves_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
