/* Tests of derivations: the mutants of a subprogram written as text. */
#ifndef TEST_DERIVING_H
#define TEST_DERIVING_H

#include "mutate/mutate.h"

/* Runs every derivation on the graph, whose first inputs are activations and the others weights.
 * True where mutants whose names start with `name` are at least so many (0: none), and every
 * mutant, of whatever derivation, computes the same in float64, unless its name says that seams are
 * open. What is wrong is printed. */
bool test_derivation(const char *name, const char *text, uint32_t activations, int mutants);

/* Calls `see` with every mutant that derivations make of the graph. */
void test_each_mutant(const char *text, uint32_t activations,
                      void (*see)(void *user, po_ctx *ctx, const po_graph *from,
                                  const po_mutant *mutant),
                      void *user);

#endif
