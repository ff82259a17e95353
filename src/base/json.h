/* JSON that is whole or not made at all: a value that could not be made spoils what would hold it,
 * which is NULL from then on. */
#ifndef PO_BASE_JSON_H
#define PO_BASE_JSON_H

#include <jansson.h>

/* Both take the value over, whatever comes of it. */
void po_json_put(json_t **object, const char *name, json_t *value);
void po_json_append(json_t **array, json_t *value);

/* The value as text of jansson's JSON_ flags, to be freed; NULL where there was no memory for all
 * of it, or no value. */
char *po_json_text(const json_t *value, size_t flags);

/* JSON has no infinities and no NaN: null. */
json_t *po_json_number(double x);

#endif
