/* Into which panels the outputs of a product are cut, where they are none of whole vectors. */
#include "planned.h"
#include "superopt/schedule/internal.h"
#include "unit.h"

#include <stdio.h>

/* How many of its choices are told so; *first: the first of all. */
static uint32_t count(uint32_t lanes, uint32_t isa, const char *told, bool *first) {
    test_planned f;
    po_choice choices[PO_CHOICES_MAX];
    uint32_t found = 0;
    const char *graph =
        "graph g (x: f32[40,24]) -> (y) {\n y = MatMul(x, w: f32[24,%u] random 1)\n}";
    char text[128];
    (void)snprintf(text, sizeof text, graph, lanes);
    test_planned_start(&f, text, false);
    const po_mu *naive = f.plan.lowered.mu;
    const uint32_t n = po_choices_of(naive, naive->first, &po_isas[isa], 1, choices);
    for (uint32_t i = 0; i < n; i++) {
        po_text is;
        po_text_init(&is, f.arena);
        choices[i].how->tell(&choices[i], &is);
        found += strcmp(is.data, told) == 0;
        if (i == 0)
            *first = found > 0;
    }
    test_planned_end(&f);
    return found;
}

static void outputs_that_are_no_vectors_are_cut(void **state) {
    (void)state;
    static const struct {
        uint32_t lanes;
        uint32_t isa;
        const char *told;
        uint32_t times;
        bool first;
    } cases[] = {
        /* What registers hold in one part, and a rest. */
        {6625, PO_ISA_AVX2, "direct, tile 14x16", 1, true},
        {1001, PO_ISA_AVX2, "direct, tile 14x16", 1, true},
        {6625, PO_ISA_AVX512, "direct, tile 14x32", 1, true},
        {6625, PO_ISA_AVX512, "direct, tile 8x48", 1, false},
        /* In one piece. */
        {6625, PO_ISA_AVX512, "direct, tile 6x64", 1, false},
        /* 53 parts of 125 are padded to 128: read beside it. */
        {6625, PO_ISA_AVX2, "direct, tile 6x125", 1, false},
        {1000, PO_ISA_AVX512, "direct, tile 6x125", 1, false},
        /* A prime has no parts. */
        {1009, PO_ISA_AVX2, "direct, tile 14x16", 1, true},
        /* Few panels: a rest is no small part of them. */
        {116, PO_ISA_AVX2, "direct, tile 14x16", 0, false},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bool first;
        const uint32_t n = count(cases[c].lanes, cases[c].isa, cases[c].told, &first);
        if (n != cases[c].times || first != cases[c].first)
            fail_msg("%u outputs, '%s': %u times", cases[c].lanes, cases[c].told, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_that_are_no_vectors_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
