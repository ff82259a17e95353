/* Which schedules of a step are read (superopt/plan/worth.h). */
#include "superopt/plan/worth.h"
#include "unit.h"

static int64_t family(const po_choice *choice) {
    return choice->n[0];
}

static const po_scheduler one = {.name = "one", .family = family},
                          other = {.name = "other", .family = family};

/* Three of a family, two of another, one of another scheduler with the same number. */
static const po_choice choices[] = {{.how = &one, .n = {4}}, {.how = &one, .n = {4}},
                                    {.how = &one, .n = {4}}, {.how = &one, .n = {2}},
                                    {.how = &one, .n = {2}}, {.how = &other, .n = {4}}};
enum { N = sizeof choices / sizeof choices[0] };

static void expect(const bool *read, const char *text) {
    char found[N + 1] = {0};
    for (uint32_t i = 0; text[i]; i++)
        found[i] = read[i] ? 'x' : '.';
    assert_string_equal(found, text);
}

static void test_first(void **state) {
    (void)state;
    const double near[N] = {1, 1, 1, 1.4, 1.4, 1.2}, far[N] = {1, 1, 1, 1.4, 1.4, 1.6};
    const double late[N] = {2, 1, 1, 1, 1, 1}, seconds[N] = {0};
    bool read[N];
    po_worth_step s = {N, choices, near, seconds, 0.5};
    po_worth_first(&s, read);
    expect(read, "x..x.x");
    s.estimates = far;
    po_worth_first(&s, read);
    expect(read, "x..x..");
    s.estimates = late;
    po_worth_first(&s, read);
    expect(read, ".x.x.x");
}

static void test_first_of_one_family(void **state) {
    (void)state;
    const double estimates[N] = {1, 1, 2}, seconds[N] = {0};
    bool read[N];
    po_worth_step s = {3, choices, estimates, seconds, 0.5};
    po_worth_first(&s, read);
    expect(read, "xx.");
    s.part = 0.001;
    po_worth_first(&s, read);
    expect(read, "x..");
}

static void test_then(void **state) {
    (void)state;
    const double estimates[N] = {1, 1, 1, 1, 1, 1};
    const double clear[N] = {2, 0, 0, 1, 0, 3}, near[N] = {1.01, 0, 0, 1, 0, 3};
    const double wrong[N] = {-1, 0, 0, 1, 0, 0}, none[N] = {-1, 0, 0, -1, 0, 0};
    bool read[N];
    po_worth_step s = {N, choices, estimates, clear, 0.5};
    po_worth_then(&s, read);
    expect(read, "...xx.");
    s.seconds = near;
    po_worth_then(&s, read);
    expect(read, "xxxxx.");
    s.seconds = wrong;
    po_worth_then(&s, read);
    expect(read, "...xx.");
    s.part = 0.001;
    po_worth_then(&s, read);
    expect(read, "......");
    s.seconds = none; /* nothing is right: all that there is */
    po_worth_then(&s, read);
    expect(read, "xxxxxx");
}

static void test_taken(void **state) {
    (void)state;
    const double seconds[] = {0, 1.02, -1, 1, 1.04, 1.029}, held[] = {1, 5, 1, 9, 2, 5};
    assert_int_equal(po_worth_taken(seconds, NULL, 6), 3);
    assert_int_equal(po_worth_taken(seconds, held, 6), 1); /* alike: the faster */
    assert_int_equal(po_worth_taken(seconds, held, 5), 1);
    const double least[] = {1, 5, 1, 4, 2, 5};
    assert_int_equal(po_worth_taken(seconds, least, 6), 3);
    const double none[] = {0, -1};
    assert_int_equal(po_worth_taken(none, held, 2), PO_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_first_of_one_family),
        cmocka_unit_test(test_then),
        cmocka_unit_test(test_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
