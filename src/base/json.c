/* JSON that is whole or not made at all. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>

/* After a step that failed, or on what was lost before. */
static void settle(json_t **whole, json_t *value, int failed) {
    if (!*whole) {
        json_decref(value);
    } else if (failed) {
        json_decref(*whole);
        *whole = NULL;
    }
}

void po_json_put(json_t **object, const char *name, json_t *value) {
    settle(object, value, *object && json_object_set_new(*object, name, value) != 0);
}

void po_json_append(json_t **array, json_t *value) {
    settle(array, value, *array && json_array_append_new(*array, value) != 0);
}

/* Into memory of its length: json_dumps() grows its own, and where that fails at a sorted object's
 * key the key is left out and nothing said (jansson 2.14). */
char *po_json_text(const json_t *value, size_t flags) {
    size_t size = json_dumpb(value, NULL, 0, flags);
    char *text = size > 0 ? malloc(size + 1) : NULL;
    if (text && json_dumpb(value, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    if (text)
        text[size] = '\0';
    return text;
}

json_t *po_json_number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}
