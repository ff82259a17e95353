/* cmocka with the headers that it wants first. */
#ifndef PO_TESTS_UNIT_H
#define PO_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
