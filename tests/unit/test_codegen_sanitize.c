/* Printed kernels built with the compiler's sanitizers, in a program of their own: addresses and
 * undefined behaviour on heap blocks of the exact sizes, data races with a thread for each part. */
#include "unit.h"

#include "kernel_cases.h"
#include "kernel_run.h"
#include "test_paths.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { CASES = 64, PORTS = 8 };

static const char harness[] =
    "#include <pthread.h>\n"
    "#include <stddef.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "typedef struct pool { size_t parts; void (*run)(void *, void (*)(void *, size_t), void *);\n"
    "    void *self; } pool;\n"
    "typedef struct call { void (*fn)(void *, size_t); void *arg; size_t part; } call;\n"
    "static void *one(void *user) { call *c = user; c->fn(c->arg, c->part); return NULL; }\n"
    "static void run(void *self, void (*fn)(void *, size_t), void *arg) {\n"
    "    pool *p = self; pthread_t t[8]; call c[8];\n"
    "    for (size_t i = 0; i < p->parts; i++) {\n"
    "        c[i] = (call){fn, arg, i};\n"
    "        if (pthread_create(&t[i], NULL, one, &c[i]) != 0) abort();\n"
    "    }\n"
    "    for (size_t i = 0; i < p->parts; i++) pthread_join(t[i], NULL);\n"
    "}\n"
    "static float *floats(size_t n) {\n"
    "    float *p = malloc(n * sizeof(float) + (n == 0));\n"
    "    for (size_t i = 0; i < n; i++) p[i] = (float)((i * 37 + n) % 101) / 50.0f - 1.0f;\n"
    "    return p;\n"
    "}\n"
    "static float *lines(size_t n) {\n"
    "    float *p = aligned_alloc(64, (n + 16) / 16 * 64);\n"
    "    for (size_t i = 0; i < n; i++) p[i] = 9.0f;\n"
    "    return p;\n"
    "}\n";

/* Runs a program; whether it ended well. Its words go to a file. */
static bool ran(const char *const *words, const char *log) {
    pid_t pid;
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    int error =
        posix_spawnp(&pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    int state = 0;
    return error == 0 && waitpid(pid, &state, 0) == pid && WIFEXITED(state) &&
           WEXITSTATUS(state) == 0;
}

static void port_arrays(po_text *main_text, const po_mu *mu, po_mu_place place, const char *name,
                        const char *type) {
    int64_t n[PORTS];
    uint32_t count = test_ports(mu, place, n, PORTS);
    po_text_printf(main_text, "    %s%s[%u] = {0};\n", type, name, count + 1);
    for (uint32_t i = 0; i < count; i++)
        po_text_printf(main_text, "    %s[%u] = floats(%lld);\n", name, i, (long long)n[i]);
}

static void free_arrays(po_text *main_text, const po_mu *mu, po_mu_place place, const char *name) {
    int64_t n[PORTS];
    uint32_t count = test_ports(mu, place, n, PORTS);
    for (uint32_t i = 0; i < count; i++)
        po_text_printf(main_text, "    free((void *)%s[%u]);\n", name, i);
}

/* spoil: replaces text in what is printed, for the check of the check. */
static bool clean(const po_isa *isa, const char *sanitizer, unsigned parts, uint32_t first,
                  uint32_t step, const char *spoil, const char *by) {
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    char dir[] = "/tmp/petopt-sanitize-XXXXXX";
    assert_non_null(mkdtemp(dir));
    po_text text, main_text, calls;
    po_text_init(&text, arena);
    po_text_init(&main_text, arena);
    po_text_init(&calls, arena);
    po_text_puts(&main_text, harness);
    for (uint32_t i = first; i < n_kernel_cases; i += step) {
        po_mu *mu;
        assert_int_equal(po_mu_parse(&ctx, arena, kernel_cases[i].text, &mu), PO_OK);
        const char *symbol = po_arena_printf(arena, "k%u", i);
        if (test_kernel_text(&ctx, mu, isa, symbol, &text) != PO_OK)
            fail_msg("%s: %s", kernel_cases[i].name, ctx.error.message);
        po_text_printf(&main_text,
                       "extern const size_t k%u_sizes;\n"
                       "void k%u_measure(const long *, long *);\n"
                       "void k%u_start(float *, const long *);\n"
                       "void k%u(const float *const *, const float *const *, float *const *, "
                       "float *, float *, const long *, const pool *);\n"
                       "static void case%u(pool *p) {\n",
                       i, i, i, i, i);
        port_arrays(&main_text, mu, PO_MU_INPUT, "in", "const float *");
        port_arrays(&main_text, mu, PO_MU_WEIGHT, "weight", "const float *");
        port_arrays(&main_text, mu, PO_MU_OUTPUT, "out", "float *");
        po_text_printf(&main_text,
                       "    long *z = calloc(k%u_sizes + 1, sizeof *z);\n"
                       "    k%u_measure(NULL, z);\n"
                       "    float *device = lines((size_t)z[0]);\n"
                       "    float *scratch = lines((size_t)z[1] * p->parts);\n"
                       "    k%u_start(device, z);\n"
                       "    k%u(in, weight, out, device, scratch, z, p);\n"
                       "    k%u(in, weight, out, device, scratch, z, p);\n",
                       i, i, i, i, i);
        free_arrays(&main_text, mu, PO_MU_INPUT, "in");
        free_arrays(&main_text, mu, PO_MU_WEIGHT, "weight");
        free_arrays(&main_text, mu, PO_MU_OUTPUT, "out");
        po_text_puts(&main_text, "    free(device);\n    free(scratch);\n    free(z);\n}\n");
        po_text_printf(&calls, "    case%u(&p);\n", i);
    }
    po_text_printf(&main_text,
                   "int main(void) {\n    pool p = {%u, run, NULL};\n    p.self = &p;\n%s"
                   "    return 0;\n}\n",
                   parts, calls.data);
    const char *printed = text.data;
    if (spoil != NULL) {
        char *at = strstr(text.data, spoil);
        assert_non_null(at);
        printed = po_arena_printf(arena, "%.*s%s%s", (int)(at - text.data), text.data, by,
                                  at + strlen(spoil));
    }
    const char *c = po_arena_printf(arena, "%s/kernels.c", dir);
    const char *m = po_arena_printf(arena, "%s/main.c", dir);
    const char *program = po_arena_printf(arena, "%s/program", dir);
    const char *log = po_arena_printf(arena, "%s/log", dir);
    test_write_text(c, printed);
    test_write_text(m, main_text.data);
    const char *words[40] = {
        "cc",           "-std=c17", "-D_GNU_SOURCE",      "-O1",
        "-DPK_LEAST=0", "-w",       "-ffp-contract=fast", "-fno-sanitize-recover=all",
        sanitizer};
    uint32_t n = 9;
    char *flags = po_arena_strdup(arena, isa->flags), *rest = NULL;
    for (char *f = strtok_r(flags, " ", &rest); f != NULL; f = strtok_r(NULL, " ", &rest))
        words[n++] = f;
    const char *const more[] = {"-o", program, c, m, "-lm", "-lpthread"};
    for (uint32_t i = 0; i < 6; i++)
        words[n++] = more[i];
    words[n] = NULL;
    bool built = ran(words, log), good = false;
    if (built) {
        const char *const run[] = {program, NULL};
        good = ran(run, log);
    }
    char said[3000] = "";
    FILE *file = fopen(log, "rb");
    if (file != NULL) {
        said[fread(said, 1, sizeof said - 1, file)] = '\0';
        (void)fclose(file);
    }
    (void)unlink(c);
    (void)unlink(m);
    (void)unlink(program);
    (void)unlink(log);
    (void)rmdir(dir);
    po_arena_free(arena);
    if (!built)
        fail_msg("%s: not built: %s", sanitizer, said);
    if (!good && spoil == NULL)
        print_message("%s\n", said);
    return good;
}

static const po_isa *isa_here(void) {
    const po_isa *wide = &po_isas[PO_ISA_AVX512], *narrow = &po_isas[PO_ISA_AVX2];
    return test_has_isa(wide) ? wide : test_has_isa(narrow) ? narrow : NULL;
}

static void test_addresses(void **state) {
    (void)state;
    const po_isa *isa = isa_here();
    if (isa == NULL)
        skip();
    assert_true(clean(isa, "-fsanitize=address,undefined", 2, 0, 1, NULL, NULL));
    /* A loop that is one too long is seen. */
    assert_false(clean(isa, "-fsanitize=address,undefined", 2, 0, 100, "17 - s_k :", "18 - s_k :"));
}

static void test_threads(void **state) {
    (void)state;
    const po_isa *isa = isa_here();
    if (isa == NULL)
        skip();
    assert_true(clean(isa, "-fsanitize=thread", 4, 0, 1, NULL, NULL));
    /* Parts that are dealt the same blocks are seen. */
    assert_false(clean(isa, "-fsanitize=thread", 4, 0, 100, "ul * part / parts", "ul * 0 / parts"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_addresses),
                                       cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
