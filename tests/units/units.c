/*
 * All unit tests in one file: runs the program that is named, of it the tests that fit a pattern.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    int (*run)(void);
} unit;

#define UNITS_TABLE
#include "units.h" /* made by tests/CMakeLists.txt */

int main(int argc, char **argv) {
    const size_t count = sizeof units / sizeof *units;
    if (argc == 3)
        cmocka_set_test_filter(argv[2]);
    for (size_t i = 0; i < count; i++)
        if ((argc == 2 || argc == 3) && !strcmp(argv[1], units[i].name))
            return units[i].run();
    fprintf(stderr, "usage: units PROGRAM [TESTS]\n");
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "  %s\n", units[i].name);
    return 2;
}
