/* loads MODEL COUNT: loads, prints, optimises and frees a model so many times in one process, and
 * fails where memory grows: the resident set after a third of the runs and at the end may differ by
 * little. */
#include "petopt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 30, MOST_GROWTH_KB = 4096 };

static long resident_kb(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

static int failed(const char *what, const po_error *error) {
    fprintf(stderr, "%s: %s\n", what, error->message);
    return 1;
}

static int once(const char *path, const po_options *options) {
    po_error error = {0};
    po_model *model;
    po_result *result = NULL;
    char *text;
    if (po_model_load(path, &model, &error) != PO_OK)
        return failed("load", &error);
    if (po_model_text(model, &text, &error) != PO_OK)
        return failed("text", &error);
    po_string_free(text);
    if (po_optimise(model, options, NULL, &result, &error) != PO_OK)
        return failed("optimise", &error);
    po_result_free(result);
    po_model_free(model);
    /* And one that is refused. */
    if (po_model_load("/dev/null", &model, &error) == PO_OK)
        return failed("load", &error);
    return 0;
}

int main(int argc, char **argv) {
    int count = argc == 3 ? atoi(argv[2]) : 0;
    po_options *options;
    po_error error = {0};
    if (count < LEAST || po_options_create(&options) != PO_OK)
        return 2;
    static const char *const settings[][2] = {{"level", "1"}, {"cost", "model"}, {"cache", "none"}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (po_options_set(options, settings[i][0], settings[i][1], &error) != PO_OK)
            return failed(settings[i][0], &error);
    long early = 0;
    for (int i = 0; i < count; i++) {
        if (once(argv[1], options))
            return 1;
        if (i == count / 3)
            early = resident_kb();
    }
    long late = resident_kb();
    po_options_free(options);
    printf("%d loads, %ld KB after a third of them, %ld KB at the end\n", count, early, late);
    return early > 0 && late - early <= MOST_GROWTH_KB ? 0 : 1;
}
