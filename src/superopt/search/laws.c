/* What programs of the search may differ in from the steps themselves, and what each does to their
 * rounding. */
#include "superopt/search/internal.h"

static const struct {
    const char *name;
    po_rounding rounding;
} laws[SEARCH_LAWS] = {
    [SEARCH_LAW_STEPS] = {"the steps' own operations, in one kernel", PO_KEEPS_BITS},
    [SEARCH_LAW_PARTS] = {"sums in parts, of a loop or of blocks", PO_ORDERS_SUMS},
    [SEARCH_LAW_ALGEBRA] = {"sums, products, quotients and exponentials exchanged", PO_ROUNDS},
    [SEARCH_LAW_RESCALED] = {"sums rescaled by a running maximum", PO_ROUNDS},
    [SEARCH_LAW_SHORT] = {"products of numbers rounded to TF32", PO_ROUNDS},
};

const char *search_law_name(search_law law) {
    return laws[law].name;
}

po_rounding search_law_rounding(search_law law) {
    return laws[law].rounding;
}

bool search_admits(const search_problem *p, search_law law) {
    return !p->strict || laws[law].rounding != PO_ROUNDS;
}
