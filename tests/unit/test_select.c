/* Selection takes what is right and faster, and nothing else. */
#include "noisy.h"
#include "onnx_load.h"
#include "select/select.h"
#include "test_onnx.h"
#include "test_paths.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { F32 = 1 };

enum { NAME = 64 };

/* Operators behind `from`, which then names the last: max(t, -2) changes nothing of a t above that,
 * and costs time. */
static void add_idle(test_onnx *m, char *from, int idle, const char *prefix) {
    char to[NAME], both[NAME + 8];
    float low = -2;
    test_onnx_initializer(m, "low", F32, "", &low, sizeof low);
    for (int i = 0; i < idle; i++) {
        snprintf(to, sizeof to, "%si%d", prefix, i);
        snprintf(both, sizeof both, "%s low", from);
        test_onnx_node(m, "Max", both, to);
        memcpy(from, to, sizeof to);
    }
}

/* `layers` tanh in a row on 64x256 floats, then `idle` operators that cost time and change nothing;
 * inner names begin with `prefix`; `shift` is added to one element of the result. */
static void write_chain(const char *path, int layers, int idle, const char *prefix, float shift) {
    test_onnx *m = test_onnx_new();
    test_onnx_input(m, "x", F32, "64,256");
    test_onnx_output(m, "y", F32, "64,256");
    char from[NAME] = "x", to[NAME], both[NAME + 8];
    for (int i = 0; i < layers; i++) {
        snprintf(to, sizeof to, "%s%d", prefix, i);
        test_onnx_node(m, "Tanh", from, to);
        memcpy(from, to, sizeof from);
    }
    add_idle(m, from, idle, prefix);
    float *offset = calloc(64 * 256, sizeof *offset);
    if (!offset)
        abort();
    offset[5000] = shift;
    test_onnx_initializer(m, "offset", F32, "64,256", offset, 64 * 256 * sizeof *offset);
    free(offset);
    snprintf(both, sizeof both, "%s offset", from);
    test_onnx_node(m, "Add", both, "y");
    test_onnx_write(m, path);
    test_onnx_free(m);
}

typedef struct fixture {
    char dir[512], a[600], b[600], db[600];
    po_ctx ctx;
} fixture;

static void start(fixture *f) {
    test_mkdtemp(f->dir, sizeof f->dir);
    snprintf(f->a, sizeof f->a, "%s/a.onnx", f->dir);
    snprintf(f->b, sizeof f->b, "%s/b.onnx", f->dir);
    snprintf(f->db, sizeof f->db, "%s/cost.db", f->dir);
    po_ctx_init(&f->ctx);
}

/* Times are told by `machine`, of which models "0" and "1" are the original and the candidate. */
static po_status told(void *user, po_ctx *ctx, po_arena *arena, const po_timing_spec *spec,
                      uint32_t number, double seconds, po_timing_process *process) {
    static const char *const names[] = {"0", "1"};
    po_timing_spec named = *spec;
    named.models = names;
    return noisy_source(user, ctx, arena, &named, number, seconds, process);
}

/* kept: in the cache. */
static po_verdict choose_told(fixture *f, noisy_machine *machine, uint32_t threads,
                              bool these_threads, bool kept) {
    po_arena *arena = po_arena_create(&f->ctx);
    po_cost *cost = NULL;
    assert_int_equal(po_cost_open(&f->ctx, arena, &(po_cost_options){NULL, f->db}, &cost), PO_OK);
    if (!kept)
        cost->cache = po_cache_none(arena);
    cost->machine.cores = 2;
    po_model *model = test_model_load(&f->ctx, f->a);
    assert_non_null(model);
    po_select_spec spec = {.cost = cost,
                           .original = f->a,
                           .candidate = f->b,
                           .graph = model->graph,
                           .threads = threads,
                           .these_threads = these_threads,
                           .seed = 3,
                           .source = told,
                           .source_user = machine};
    po_verdict verdict;
    machine->calls = 0;
    assert_int_equal(po_select(&f->ctx, &spec, &verdict), PO_OK);
    test_model_free(model);
    po_arena_free(arena);
    return verdict;
}

static po_verdict choose(fixture *f, uint32_t threads) {
    po_arena *arena = po_arena_create(&f->ctx);
    po_cost *cost = NULL;
    assert_int_equal(po_cost_open(&f->ctx, arena, &(po_cost_options){NULL, f->db}, &cost), PO_OK);
    cost->machine.cores = threads; /* no reading at other counts: the test is about the choice */
    po_model *model = test_model_load(&f->ctx, f->a);
    assert_non_null(model);
    po_select_spec spec = {.cost = cost,
                           .original = f->a,
                           .candidate = f->b,
                           .graph = model->graph,
                           .threads = threads,
                           .timing_seconds = 1,
                           .seed = 3};
    po_verdict verdict;
    po_status status = po_select(&f->ctx, &spec, &verdict);
    if (status != PO_OK)
        fail_msg("%s", f->ctx.error.message);
    test_model_free(model);
    po_arena_free(arena);
    return verdict;
}

static void the_faster_one_is_taken(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_chain(f.a, 2, 6, "t", 0);
    write_chain(f.b, 2, 0, "t", 0);
    po_verdict v = choose(&f, 1);
    if (!po_verdict_accepted(&v))
        fail_msg("%s", v.reason);
    assert_int_equal(v.cached, 0);
    assert_int_equal(v.n_readings, 2);
    const po_reading *shown = po_verdict_shown(&v);
    assert_int_equal(shown->kind, PO_READING_CONFIRM);
    assert_true(shown->low > 1 && shown->low <= shown->gain && shown->gain <= shown->high);
    assert_true(v.verify.identical);

    /* The verdict is kept: the same question costs no run. */
    po_verdict again = choose(&f, 1);
    assert_int_equal(again.cached, 1);
    again.cached = 0;
    assert_memory_equal(&again, &v, sizeof v);

    /* The other way round the original stays. */
    write_chain(f.b, 2, 12, "t", 0);
    v = choose(&f, 1);
    assert_int_equal(v.code, PO_VERDICT_NO_GAIN);
    assert_true(v.readings[0].gain < 1);
    test_rmtree(f.dir);
}

static void the_wrong_one_is_not_taken(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_chain(f.a, 2, 6, "t", 0);
    write_chain(f.b, 2, 0, "t", 0.01f); /* faster, and wrong at one element */
    po_verdict v = choose(&f, 1);
    assert_int_equal(v.code, PO_VERDICT_WRONG);
    assert_int_equal(v.verify.index, 5000);
    assert_int_equal(v.n_readings, 0);
    assert_true(choose(&f, 1).cached == 1);
    test_write_text(f.b, "x");
    assert_int_equal(choose(&f, 1).code, PO_VERDICT_WRONG);
    write_chain(f.b, 2, 6, "t", 0);
    assert_int_equal(choose(&f, 1).code, PO_VERDICT_SAME_FILE);
    test_rmtree(f.dir);
}

/* Copies under other names are no gain. */
static void copies_are_not_taken(void **state) {
    (void)state;
    fixture f;
    start(&f);
    write_chain(f.a, 3, 0, "t", 0);
    int taken = 0;
    for (int i = 0; i < 4; i++) {
        char prefix[20];
        snprintf(prefix, sizeof prefix, "copy%d_", i);
        write_chain(f.b, 3, 0, prefix, 0);
        po_verdict v = choose(&f, 1);
        taken += po_verdict_accepted(&v);
        assert_true(v.n_readings >= 1);
        assert_true(v.readings[0].gain > 0.8 && v.readings[0].gain < 1.25);
    }
    /* Of a hundred copies five may be taken (bench/ counts them); two of four are too many. */
    assert_true(taken <= 1);
    test_rmtree(f.dir);
}

/* Faster with one thread, and with two slower, faster, or not to be told: what is taken where the
 * thread count was not named, and where it was. */
static void what_other_threads_read(void **state) {
    (void)state;
    static const double alone[] = {4.4e-3, 3.5e-3}, slower[] = {3.34e-3, 3.49e-3},
                        faster[] = {3.34e-3, 3.1e-3}, even[] = {3.34e-3, 3.32e-3};
    static const struct {
        const char *name;
        const double *shared, *loaded;
        double taken, jitter;
        bool holds;
        uint32_t least_calls; /* two readings with one thread and those with two */
    } cases[] = {
        {"slower, nothing else running", slower, slower, 0, 0.01, false, 3},
        {"slower, a processor taken now and then", slower, alone, 0.4, 0.02, false, 3},
        {"slower, a processor taken all the time", slower, slower, 1, 0.02, false, 4},
        {"faster, nothing else running", faster, alone, 0, 0.01, true, 3},
        {"faster, a processor taken now and then", faster, alone, 0.4, 0.02, true, 3},
        {"even, which is clear only after some time", even, alone, 0, 0.12, true, 4},
        {"faster, a processor taken all the time", faster, faster, 1, 0.02, true, 4},
        {"with one processor as with one thread", faster, alone, 1, 0.02, true, 4},
    };
    fixture f;
    start(&f);
    write_chain(f.a, 2, 1, "t", 0);
    write_chain(f.b, 2, 0, "t", 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        noisy_machine m = {.alone = alone,
                           .shared = cases[i].shared,
                           .loaded = cases[i].loaded,
                           .placement = 0.005,
                           .jitter = cases[i].jitter,
                           .taken = cases[i].taken,
                           .seed = 100 * i};
        po_verdict v = choose_told(&f, &m, 1, false, false);
        printf("%s: %s (%u readings)\n", cases[i].name, v.reason, m.calls);
        assert_int_equal(v.code, cases[i].holds ? PO_VERDICT_FASTER : PO_VERDICT_SLOWER_ELSEWHERE);
        assert_true(m.calls >= cases[i].least_calls);
        assert_int_equal(po_verdict_disturbed(&v), cases[i].taken >= 1);
        v = choose_told(&f, &m, 1, true, false);
        assert_true(po_verdict_accepted(&v) && !po_verdict_disturbed(&v));
        assert_int_equal(m.calls, 3);
        assert_int_equal(v.n_readings, 3);
        const po_reading *other = &v.readings[2];
        assert_int_equal(other->kind, PO_READING_THREADS);
        assert_true(other->threads == 2 && other->by == 2);
        double truth = cases[i].shared[0] / cases[i].shared[1];
        assert_true(other->low < 1.02 * truth && other->high > 0.98 * truth);
    }
    test_rmtree(f.dir);
}

/* A model of any number of rows, which are read two at a time as well. */
static void write_rows(const char *path, int idle) {
    test_onnx *m = test_onnx_new();
    char from[NAME] = "x";
    test_onnx_input(m, "x", F32, "rows,256");
    test_onnx_output(m, "y", F32, "rows,256");
    add_idle(m, from, idle, "");
    test_onnx_node(m, "Tanh", from, "y");
    test_onnx_write(m, path);
    test_onnx_free(m);
}

/* At another size a short look is enough where the gain is clear: on a busy machine too, where what
 * was confirmed was confirmed by one thread. */
static void other_sizes_are_looked_at(void **state) {
    (void)state;
    static const double clear[] = {4e-3, 3e-3}, little[] = {4e-3, 3.8e-3};
    fixture f;
    start(&f);
    write_rows(f.a, 2);
    write_rows(f.b, 1);
    for (int busy = 0; busy < 2; busy++) {
        noisy_machine m = {.placement = 0.005, .jitter = 0.02, .taken = busy ? 1 : 0, .seed = 7};
        uint32_t calls[2];
        for (int k = 0; k < 2; k++) {
            m.alone = m.shared = m.loaded = k ? little : clear;
            po_verdict v = choose_told(&f, &m, 2, false, false);
            const po_reading *last = &v.readings[v.n_readings - 1];
            printf("%s: %s (%u readings)\n", busy ? "busy" : "quiet", v.reason, m.calls);
            assert_true(po_verdict_accepted(&v));
            assert_int_equal(last->kind, PO_READING_SIZE);
            assert_non_null(strstr(last->inputs, "2x256"));
            assert_int_equal(last->by, busy ? 1 : 2);
            calls[k] = m.calls;
        }
        assert_true(calls[0] < calls[1]);
    }
    test_rmtree(f.dir);
}

/* What other programs keep from being told with two threads one thread tells; the verdict is not
 * kept, and the question asked again once they have gone. */
static void a_busy_machine_decides_for_itself_alone(void **state) {
    (void)state;
    static const double one[] = {4e-3, 3e-3}, two[] = {3e-3, 2e-3};
    fixture f;
    start(&f);
    write_chain(f.a, 2, 1, "t", 0);
    write_chain(f.b, 2, 0, "t", 0);
    noisy_machine m = {
        .alone = one, .shared = two, .placement = 0.005, .jitter = 0.02, .taken = 1, .seed = 7};
    for (int run = 0; run < 2; run++) {
        po_verdict v = choose_told(&f, &m, 2, false, true);
        assert_int_equal(v.code, PO_VERDICT_FASTER);
        assert_int_equal(v.cached, 0);
        assert_true(po_verdict_disturbed(&v));
        const po_reading *shown = po_verdict_shown(&v);
        assert_true(shown->threads == 2 && shown->by == 1);
        assert_true(shown->low > 1.25 && shown->low < 4. / 3 && shown->high > 4. / 3);
        assert_non_null(
            strstr(v.reason, "(1 thread, processor time: the machine was too busy for 2, "));
        assert_int_equal(v.n_readings, 2); /* one thread is not read once more */
        assert_true(m.calls <= 4);
    }
    /* No gain with one thread, and one that two threads under load contradict. */
    static const double same[] = {4e-3, 4e-3}, worse[] = {6e-3, 6.6e-3};
    m.alone = same;
    m.loaded = same;
    po_verdict v = choose_told(&f, &m, 2, false, true);
    assert_true(!v.cached && v.code == PO_VERDICT_NO_GAIN && po_verdict_disturbed(&v));
    m.alone = one;
    m.loaded = worse;
    v = choose_told(&f, &m, 2, false, true);
    assert_true(!v.cached && v.code == PO_VERDICT_NO_GAIN && po_verdict_disturbed(&v));
    assert_non_null(strstr(v.reason, "too busy to tell"));
    /* Who named the count gets what is faster by more. */
    static const double little[] = {4e-3, 3.85e-3};
    m.alone = m.loaded = little;
    v = choose_told(&f, &m, 2, false, true);
    assert_true(!v.cached && v.code == PO_VERDICT_FASTER);
    v = choose_told(&f, &m, 2, true, true);
    assert_true(!v.cached && v.code == PO_VERDICT_NO_GAIN && po_verdict_disturbed(&v));
    m.alone = m.loaded = one;
    v = choose_told(&f, &m, 2, true, true);
    assert_true(!v.cached && v.code == PO_VERDICT_FASTER);
    m.taken = 0;
    v = choose_told(&f, &m, 2, false, true);
    assert_int_equal(v.code, PO_VERDICT_FASTER);
    assert_false(po_verdict_disturbed(&v));
    /* A quiet machine's answer holds on a busy one, gain or none. */
    m.taken = 1;
    v = choose_told(&f, &m, 2, false, true);
    assert_true(v.cached && v.code == PO_VERDICT_FASTER);
    static const double slower[] = {2e-3, 3e-3};
    m = (noisy_machine){.alone = slower, .shared = slower, .placement = 0.005, .seed = 7};
    write_chain(f.b, 2, 2, "t", 0);
    v = choose_told(&f, &m, 2, false, true);
    assert_true(!v.cached && v.code == PO_VERDICT_NO_GAIN);
    v = choose_told(&f, &m, 2, false, true);
    assert_true(v.cached && v.code == PO_VERDICT_NO_GAIN);
    /* So does a loss that is beyond doubt on a busy one. */
    static const double half[] = {2e-3, 6e-3};
    m = (noisy_machine){.alone = half, .shared = half, .placement = 0.005, .taken = 1, .seed = 7};
    write_chain(f.b, 2, 3, "t", 0);
    v = choose_told(&f, &m, 2, false, true);
    assert_true(!v.cached && v.code == PO_VERDICT_NO_GAIN && !po_verdict_disturbed(&v));
    v = choose_told(&f, &m, 2, false, true);
    assert_true(v.cached && v.code == PO_VERDICT_NO_GAIN);
    test_rmtree(f.dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_one_is_taken),
        cmocka_unit_test(the_wrong_one_is_not_taken),
        cmocka_unit_test(copies_are_not_taken),
        cmocka_unit_test(what_other_threads_read),
        cmocka_unit_test(other_sizes_are_looked_at),
        cmocka_unit_test(a_busy_machine_decides_for_itself_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
