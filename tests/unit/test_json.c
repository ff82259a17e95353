/* JSON is whole or not made at all, whichever allocation fails. */
#include "base/json.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static struct { int calls, fails; /* the one that fails, from 1; 0: none */ } heap;

static void *counted(size_t size) {
    return ++heap.calls == heap.fails ? NULL : malloc(size);
}

/* Long enough that a text that grows does so at keys as well as at values. */
static json_t *made(void) {
    json_t *root = json_object();
    for (int i = 0; i < 120; i++) {
        char name[32];
        snprintf(name, sizeof name, "key %*d of many", i % 7, i);
        json_t *inner = json_object();
        po_json_put(&inner, name, json_integer(i));
        po_json_put(&inner, "other", json_string("value"));
        po_json_put(&root, name, inner);
    }
    return root;
}

static void text_is_whole_or_none(void **state) {
    (void)state;
    const size_t flags[] = {JSON_SORT_KEYS | JSON_COMPACT, JSON_INDENT(1) | JSON_SORT_KEYS,
                            JSON_INDENT(2) | JSON_PRESERVE_ORDER};
    json_t *root = made();
    json_set_alloc_funcs(counted, free);
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        heap.calls = heap.fails = 0;
        char *whole = po_json_text(root, flags[k]);
        assert_non_null(whole);
        int calls = heap.calls, none = 0;
        for (heap.fails = 1; heap.fails <= calls; heap.fails++) {
            heap.calls = 0;
            char *text = po_json_text(root, flags[k]);
            none += !text;
            if (text)
                assert_string_equal(text, whole);
            free(text);
        }
        assert_true(calls > 0);
        assert_int_equal(none, calls); /* each is needed */
        free(whole);
    }
    json_set_alloc_funcs(malloc, free);
    json_decref(root);
}

static void what_lost_a_part_is_none(void **state) {
    (void)state;
    json_t *object = json_object(), *array = json_array();
    po_json_put(&object, "a", json_integer(1));
    po_json_put(&object, "b", NULL);
    po_json_put(&object, "c", json_integer(1));
    assert_null(object);
    po_json_append(&array, object);
    po_json_append(&array, json_integer(1));
    assert_null(array);
    assert_null(po_json_text(NULL, JSON_COMPACT));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_whole_or_none),
        cmocka_unit_test(what_lost_a_part_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
