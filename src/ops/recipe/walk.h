/* The recipes that one is made of, each once, inputs before what reads them. Without recursion: a
 * model may fold long chains. */
#ifndef PO_OPS_RECIPE_WALK_H
#define PO_OPS_RECIPE_WALK_H

#include "ops/recipe/recipe.h"

typedef struct po_recipe_walk {
    po_arena *arena;
    const po_recipe **items; /* in order; their inputs come first */
    uint32_t n, cap;
    po_hash_map *places;
} po_recipe_walk;

void po_recipe_walk_init(po_recipe_walk *walk, po_arena *arena);
/* Adds the recipe and what it is made of. What `stop` is true for counts as a leaf; may be NULL.
 * Returns the recipe's place in `items`. */
uint32_t po_recipe_walk_add(po_recipe_walk *walk, const po_recipe *recipe,
                            bool (*stop)(const po_recipe *recipe));
/* The place of one that was added, or PO_NONE. */
uint32_t po_recipe_walk_place(const po_recipe_walk *walk, const po_recipe *recipe);

/* moves.c: what an f32 weight comes to where the recipe does nothing but move its elements, bit for
 * bit as evaluation, rounded to f32, has it; the arena's. NULL: it does more, or an element is not
 * finite. */
const po_tensor *po_recipe_moved(po_ctx *ctx, po_arena *arena, const po_recipe *recipe);

#endif
