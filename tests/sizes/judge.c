/* Whether the proof says more than what holds of any planted pair: the names of those; for
 * planted.py.
 *
 *   size_judge [--table] [--stop]
 *
 * --stop: at the first. */
#include "size_pairs.h"

#include <stdio.h>
#include <string.h>

static void show_line(void *user, const char *line) {
    (void)user;
    printf("  %s\n", line);
}

int main(int argc, char **argv) {
    bool whole = false, stop = false;
    for (int i = 1; i < argc; i++) {
        whole |= strcmp(argv[i], "--table") == 0;
        stop |= strcmp(argv[i], "--stop") == 0;
    }
    po_ctx ctx;
    uint32_t fooled = 0, n = 0;
    po_ctx_init(&ctx);
    if (whole)
        ctx.log = show_line;
    for (size_table table = SIZES_EQUAL; table < SIZE_TABLES; table++)
        for (uint32_t i = 0; i < size_pairs_of(table).n && !(stop && fooled); i++, n++) {
            const size_pair *p = &size_pairs_of(table).row[i];
            const po_proof_report r = size_pair_prove(&ctx, p, p->in);
            const bool wrong = size_pair_fooled(table, &r);
            fooled += wrong;
            if (wrong)
                printf("fooled: %s\n", p->name);
            else if (whole)
                printf("%s: %s%s\n", p->name, r.proved ? "at those tried" : "no: ", r.why);
        }
    printf("%u of %u pairs are taken for more than they are\n", fooled, n);
    return fooled > 0;
}
