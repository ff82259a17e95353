/* The readings of machine.h. */
#include "cost/machine.h"

const po_machine_numbers po_numbers = {
    .flops = 60e9,
    .bytes = 8e9,
    .start = 2e-6,
    .rows = {.product = 70,
             .map = 40,
             .gather = 17,
             .far = 350,
             .cached_elements = 1 << 21,
             .table = 10,
             .weight = 22,
             .cached_weights = 1 << 17,
             .nodes = 5e6,
             .gain = 1.08},
    .phases = {.sum = 50, .whole = 130, .weight = 8, .node = 5e5, .gain = 1.1},
    .differences = {.element = 15, .product = 70, .part = 90, .gain = 1.2},
    .frames = {.worth = 0.84, .worth_eight = 0.9},
    .cubic = 3500,
    .unblocked_speed = 0.65,
};
