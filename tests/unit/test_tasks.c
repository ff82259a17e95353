/* Tasks on all processors. */
#include "base/tasks.h"

#include "base/hash.h"
#include "base/str.h"

#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 200 };

typedef struct shared {
    uint64_t out[TASKS];
    uint32_t fails[2], exhausts; /* tasks; PO_NONE */
} shared;

static po_status add_one(po_ctx *ctx, void *user, uint32_t which) {
    shared *s = user;
    s->out[which]++;
    (void)ctx;
    return PO_OK;
}

static po_status task(po_ctx *ctx, void *user, uint32_t which) {
    shared *s = user;
    po_arena *arena = po_arena_create(ctx);
    uint64_t *list = PO_NEW_N(arena, uint64_t, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        list[i] = (uint64_t)which * i;
    for (uint32_t i = 0; i < 1000; i++)
        s->out[which] += list[i];
    po_log(ctx, "task %u", which);
    if (which == s->fails[0] || which == s->fails[1])
        return po_fail(ctx, PO_UNSUPPORTED, "task %u failed", which);
    if (which == s->exhausts)
        po_arena_exhausted(arena);
    shared inner = {.fails = {PO_NONE, PO_NONE}};
    PO_TRY(po_tasks_run(ctx, 3, add_one, &inner)); /* one after the other */
    assert_int_equal(inner.out[2], 1);
    po_arena_free(arena);
    return PO_OK;
}

static void add_line(void *user, const char *line) {
    po_text_printf(user, "%s\n", line);
}

static po_status run(po_ctx *ctx, shared *s, po_text *text) {
    ctx->log = add_line;
    ctx->log_user = text;
    po_guard guard;
    po_guard_push(ctx, &guard);
    if (setjmp(guard.env) != 0)
        return po_guard_unwind(ctx, &guard);
    po_status status = po_tasks_run(ctx, TASKS, task, s);
    po_guard_pop(ctx, &guard);
    return status;
}

static void all_run_and_their_lines_stand_in_order(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_text text, expected;
    po_text_init(&text, arena);
    po_text_init(&expected, arena);
    shared s = {.fails = {PO_NONE, PO_NONE}, .exhausts = PO_NONE};
    assert_int_equal(run(&ctx, &s, &text), PO_OK);
    for (uint32_t i = 0; i < TASKS; i++) {
        assert_int_equal(s.out[i], (uint64_t)i * 499500);
        po_text_printf(&expected, "task %u\n", i);
    }
    assert_string_equal(text.data, expected.data);
    po_arena_free(arena);
}

static void the_first_failure_is_told(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 20; round++) {
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_text text;
        po_text_init(&text, arena);
        shared s = {.fails = {150, 7}, .exhausts = 9};
        assert_int_equal(run(&ctx, &s, &text), PO_UNSUPPORTED);
        assert_string_equal(ctx.error.message, "task 7 failed");
        po_arena_free(arena);
    }
}

static void memory_that_runs_out_is_told(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    po_arena *arena = po_arena_create(&ctx);
    po_text text;
    po_text_init(&text, arena);
    shared s = {.fails = {PO_NONE, PO_NONE}, .exhausts = 9};
    assert_int_equal(run(&ctx, &s, &text), PO_NO_MEMORY);
    po_arena_free(arena);
    assert_null(ctx.arenas);
}

static void a_cancelled_call_cancels_its_tasks(void **state) {
    (void)state;
    po_ctx ctx;
    po_ctx_init(&ctx);
    atomic_bool cancel = true;
    ctx.cancel = &cancel;
    assert_int_equal(po_tasks_run(&ctx, 2, add_one, NULL), PO_CANCELLED);
    po_ctx_clear(&ctx);
    ctx.cancel = NULL;
    assert_int_equal(po_tasks_run(&ctx, 0, add_one, NULL), PO_OK);
}

static po_status take_from_parent(po_ctx *ctx, void *user, uint32_t which) {
    (void)ctx, (void)which;
    po_arena_alloc(user, 8);
    return PO_OK;
}

static po_status child_of_parent(po_ctx *ctx, void *user, uint32_t which) {
    (void)ctx, (void)which;
    po_arena_free(po_arena_child(user));
    return PO_OK;
}

/* Two threads at one arena would break the heap, but rarely: it is refused always. */
static void tasks_keep_to_their_own_arenas(void **state) {
    (void)state;
    static const po_task_fn wrong[] = {take_from_parent, child_of_parent};
    for (size_t i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            po_ctx ctx;
            po_ctx_init(&ctx);
            signal(SIGABRT, SIG_DFL);
            freopen("/dev/null", "w", stderr);
            po_arena *arena = po_arena_create(&ctx);
            po_tasks_run(&ctx, 2, wrong[i], arena);
            _exit(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 0 : 99); /* one by one nothing is at stake */
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) ||
                    (WIFEXITED(status) && WEXITSTATUS(status) == 99));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_keep_to_their_own_arenas),
        cmocka_unit_test(all_run_and_their_lines_stand_in_order),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(a_cancelled_call_cancels_its_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
