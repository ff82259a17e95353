/* JSON that is whole or not made at all. */
#include "base/json.h"

#include <math.h>

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

json_t *po_json_number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}
