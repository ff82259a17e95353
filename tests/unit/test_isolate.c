/* A child's answers, failures and crashes reach the caller, and nothing of it stays behind. */
#include "cost/isolate.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

typedef struct fixture {
    po_ctx ctx;
    po_arena *arena;
    int descriptors;
} fixture;

static void start(fixture *f) {
    po_ctx_init(&f->ctx);
    f->descriptors = open_descriptors();
    f->arena = po_arena_create(&f->ctx);
}

/* No child, no zombie, no descriptor. */
static void finish(fixture *f) {
    po_arena_free(f->arena);
    assert_int_equal(open_descriptors(), f->descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static po_status answers(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)ctx;
    uint32_t n = *(uint32_t *)user;
    uint32_t *numbers = PO_NEW_N(arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = i * 2654435761u;
    po_reply_add(reply, numbers, sizeof *numbers * n);
    po_reply_add(reply, "end", 3);
    *(uint32_t *)user = 0; /* the caller's memory must not change */
    return PO_OK;
}

static void the_answer_arrives_whole(void **state) {
    (void)state;
    fixture f;
    start(&f);
    uint32_t n = 3000000; /* many pipe buffers */
    po_bytes data;
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 60, answers, &n, &data), PO_OK);
    assert_int_equal(n, 3000000);
    assert_int_equal(data.size, 4 * (size_t)n + 3);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t got;
        memcpy(&got, data.data + 4 * (size_t)i, 4);
        assert_int_equal(got, i * 2654435761u);
    }
    assert_memory_equal(data.data + 4 * (size_t)n, "end", 3);
    finish(&f);
}

static po_status fails(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)arena, (void)reply, (void)user;
    return po_fail(ctx, PO_BAD_INPUT, "node 'conv1' is odd");
}

static po_status crashes(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)ctx, (void)arena;
    po_reply_add(reply, "x", 1);
    raise(*(int *)user);
    return PO_OK;
}

static po_status leaves(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)ctx, (void)arena, (void)reply, (void)user;
    _exit(7);
}

static po_status exhausts(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)ctx, (void)reply, (void)user;
    po_arena_exhausted(arena);
}

static po_status hangs(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)ctx, (void)arena, (void)reply, (void)user;
    while (pause() == -1)
        continue;
    return PO_OK;
}

static void failures_are_sentences(void **state) {
    (void)state;
    fixture f;
    start(&f);
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 60, fails, NULL, NULL), PO_BAD_INPUT);
    assert_string_equal(f.ctx.error.message, "node 'conv1' is odd");
    po_ctx_clear(&f.ctx);
    static const int signals[] = {SIGSEGV, SIGABRT, SIGKILL, SIGFPE};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        int number = signals[i];
        assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 60, crashes, &number, NULL),
                         PO_RUNTIME);
        char expected[40];
        snprintf(expected, sizeof expected, "ended by signal %d ", number);
        assert_non_null(strstr(f.ctx.error.message, expected));
        po_ctx_clear(&f.ctx);
    }
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 60, leaves, NULL, NULL), PO_RUNTIME);
    assert_non_null(strstr(f.ctx.error.message, "code 7"));
    po_ctx_clear(&f.ctx);
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 60, exhausts, NULL, NULL), PO_NO_MEMORY);
    finish(&f);
}

static void limits_hold(void **state) {
    (void)state;
    fixture f;
    start(&f);
    double from = po_now();
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 0.2, hangs, NULL, NULL), PO_RUNTIME);
    po_ctx_clear(&f.ctx);
    f.ctx.deadline = po_now() + 0.2;
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 0, hangs, NULL, NULL), PO_TIME_LIMIT);
    po_ctx_clear(&f.ctx);
    f.ctx.deadline = 0;
    atomic_bool cancel = true;
    f.ctx.cancel = &cancel;
    assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 0, hangs, NULL, NULL), PO_CANCELLED);
    assert_true(po_now() - from < 20);
    finish(&f);
}

static po_status alone(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)ctx, (void)arena, (void)user;
    pid_t me = getpid();
    po_reply_add(reply, &me, sizeof me);
    return PO_OK;
}

/* A child outlives nobody: it is killed with its caller, however the caller ends. */
static void the_child_dies_with_its_caller(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t caller = fork();
    assert_true(caller >= 0);
    if (caller == 0) {
        close(ends[0]);
        po_ctx ctx;
        po_ctx_init(&ctx);
        po_arena *arena = po_arena_create(&ctx);
        po_isolate(&ctx, arena, "test", 0, hangs, NULL, NULL); /* the child holds the write end */
        _exit(0);
    }
    close(ends[1]);
    usleep(200000);
    kill(caller, SIGKILL);
    waitpid(caller, NULL, 0);
    char byte;
    alarm(30);                                    /* a child left alive would hang the read */
    assert_int_equal(read(ends[0], &byte, 1), 0); /* the last holder of the write end is gone */
    alarm(0);
    close(ends[0]);
}

static void each_child_is_a_fresh_process(void **state) {
    (void)state;
    fixture f;
    start(&f);
    pid_t seen[3];
    for (int i = 0; i < 3; i++) {
        po_bytes data;
        assert_int_equal(po_isolate(&f.ctx, f.arena, "test", 60, alone, NULL, &data), PO_OK);
        assert_int_equal(data.size, sizeof(pid_t));
        memcpy(&seen[i], data.data, sizeof(pid_t));
        assert_int_not_equal(seen[i], getpid());
    }
    assert_true(seen[0] != seen[1] && seen[1] != seen[2]);
    finish(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_arrives_whole),
        cmocka_unit_test(failures_are_sentences),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(the_child_dies_with_its_caller),
        cmocka_unit_test(each_child_is_a_fresh_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
