/* The program petopt with points at which it can be made to hang or to become slow. The linker puts
 * these functions in the place of the library's own (--wrap), which they call; PETOPT_HUNG says
 * where and how: hang PLACE N    from the Nth time that PLACE is come to on, for ever, asking
 * nobody for the time slow PLACE N    from then on everything between two looks at the time takes
 * 100 times as long child WHAT N    the Nth child process that does WHAT says nothing, for ever */
#include "base/ctx.h"
#include "cost/isolate.h"
#include "mugraph/prove.h"
#include "mutate/mutate.h"
#include "pipeline/candidates.h"
#include "pipeline/kernels/variants.h"
#include "pipeline/pipeline.h"
#include "pipeline/recall.h"
#include "pipeline/variants.h"
#include "postopt/postopt.h"
#include "select/rank.h"
#include "select/select.h"
#include "simplify/simplify.h"
#include "verify/proof/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double times = 100;

typedef struct order {
    char how[8], place[64];
    int left; /* until it is time */
    bool slow;
    double looked;
} order;

static order *the_order(void) {
    static order o;
    const char *text = getenv("PETOPT_HUNG");
    if (o.left == 0 && !o.slow && text && sscanf(text, "%7s %63s %d", o.how, o.place, &o.left) != 3)
        o.left = -1;
    return &o;
}

static void at(const char *place) {
    order *o = the_order();
    if (o->left < 1 || strcmp(o->place, place) != 0 || --o->left > 0)
        return;
    o->left = -1;
    unsetenv("PETOPT_HUNG"); /* once: not in what takes over */
    fprintf(stderr, "hung: %s %s\n", o->how, o->place);
    o->slow = strcmp(o->how, "slow") == 0;
    o->looked = po_now();
    while (strcmp(o->how, "hang") == 0)
        pause();
}

/* clang-format off */
#define PLACE(name, parameters, arguments)                                                         \
    po_status __real_##name parameters; /* NOLINT */                                               \
    po_status __wrap_##name parameters; /* NOLINT */                                               \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(__real_##name)),      \
                   #name " has other parameters");                                                 \
    po_status __wrap_##name parameters { /* NOLINT */                                              \
        at(#name);                                                                                 \
        return __real_##name arguments;                                                            \
    }
/* clang-format on */
#include "hung.def"
#undef PLACE

/* --- looks at the time --- */

po_status __real_po_ctx_poll(po_ctx *ctx);  /* NOLINT */
po_status __wrap_po_ctx_poll(po_ctx *ctx);  /* NOLINT */
po_status __wrap_po_ctx_poll(po_ctx *ctx) { /* NOLINT */
    order *o = the_order();
    if (o->slow) {
        double more = (times - 1) * (po_now() - o->looked);
        struct timespec t = {(time_t)more, (long)(1e9 * (more - (double)(time_t)more))};
        nanosleep(&t, NULL);
        o->looked = po_now();
    }
    return __real_po_ctx_poll(ctx);
}

/* --- children --- */

static po_status say_nothing(po_ctx *ctx, po_arena *arena, po_reply *reply, void *user) {
    (void)arena, (void)reply, (void)user;
    while (ctx)
        pause();
    return PO_OK;
}

po_status __real_po_isolate(po_ctx *ctx, po_arena *arena, const char *what, /* NOLINT */
                            double seconds, po_child_fn fn, void *user, po_bytes *data);
po_status __wrap_po_isolate(po_ctx *ctx, po_arena *arena, const char *what, /* NOLINT */
                            double seconds, po_child_fn fn, void *user, po_bytes *data);
po_status __wrap_po_isolate(po_ctx *ctx, po_arena *arena, const char *what, /* NOLINT */
                            double seconds, po_child_fn fn, void *user, po_bytes *data) {
    order *o = the_order();
    char name[64];
    snprintf(name, sizeof name, "%s", what);
    for (char *p = name; *p; p++)
        *p = *p == ' ' ? '_' : *p;
    at(name);
    bool mute = strcmp(o->how, "child") == 0 && o->left == -1 && strcmp(o->place, name) == 0;
    return __real_po_isolate(ctx, arena, what, seconds, mute ? say_nothing : fn, user, data);
}
