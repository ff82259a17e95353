/* A model whose weight is in a file beside it, in a folder of its own. */
#ifndef TEST_MODEL_SITE_H
#define TEST_MODEL_SITE_H

#include "import/import.h"
#include "onnx_build.h"

#include <limits.h>

enum { SITE_BYTES = 24 };

/* The folder has m/model.onnx once it is written (tm_model, whose weight w is 24 bytes of m/w.bin,
 * which holds the bytes 1 to 64), outside.bin with the same bytes, and what a case adds. */
typedef struct site {
    char folder[PATH_MAX];
    const char *model;
    po_ctx ctx;
    po_arena *a;
    Onnx__ModelProto *m;
    const char *location, *offset, *length; /* of w, to be changed before it is written */
} site;

void site_start(site *s);
void site_finish(site *s); /* nothing may be left open */
/* The path of a file in the folder. */
const char *site_at(site *s, const char *name);
/* Writes the model as it is, and the same with its weight w external as the site says. */
void site_put(site *s);
void site_write(site *s);
/* Imports the site's model; NULL where it was refused. */
po_model *site_read(site *s, const po_import_options *options);

#endif
