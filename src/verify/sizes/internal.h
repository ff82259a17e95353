/* Between the files of verify/sizes: classes of values, and parts of both models. */
#ifndef PO_VERIFY_SIZES_INTERNAL_H
#define PO_VERIFY_SIZES_INTERNAL_H

#include "verify/sizes/sizes.h"

enum { PO_CONE_NODES = 48, PO_CONE_LEAVES = 24 };

/* A value of either model that stands for its class. */
typedef struct po_size_class {
    uint32_t side;
    po_value_id value;
    uint32_t flat;    /* the class that it is another shape of; itself */
    uint32_t within;  /* a value of the original that it is with channels of zeros behind; none */
    int64_t channels; /* how many that has */
    bool original;    /* the original has it */
} po_size_class;

typedef struct po_recording {
    po_sizes *s;
    uint32_t side;
} po_recording;

/* One side of a part: nodes in order, the values that are its leaves. */
typedef struct po_cone {
    uint32_t n_nodes, n_leaves;
    po_node_id nodes[PO_CONE_NODES];
    po_value_id leaves[PO_CONE_LEAVES];
    uint32_t leaf[PO_CONE_LEAVES]; /* its number in the part */
    po_value_id target;
    int64_t channels; /* of the target that are compared, the others being 0; 0: all */
} po_cone;

/* Equal for any leaves, of these classes. */
typedef struct po_pieces {
    po_cone side[2];
    uint32_t n_leaves;
    uint32_t leaves[PO_CONE_LEAVES];
} po_pieces;

struct po_sizes {
    po_ctx *ctx;
    po_arena *arena;
    const po_inputs *plan;
    uint32_t size; /* the assignment at which the models are run */
    po_spacing spacing;
    po_names names;
    const po_graph *graph[2];
    po_sized sized[2];
    po_hash *prints[2];
    po_hash *trimmed; /* of the candidate's values that end in channels of zeros: without these */
    int64_t *channels;
    po_recording recording[2];
    uint32_t *class_of[2]; /* by value */
    uint32_t *place[2];    /* of nodes in the order */
    po_size_class *classes;
    uint32_t n_classes, cap_classes;
    po_hash_map *keys;    /* of nodes and what they take, to classes */
    po_hash_map *alike;   /* prints to the last value of the original that has it */
    uint32_t *next_alike; /* by value of the original */
    po_pieces *shown;
    uint32_t n_shown, cap_shown;
    po_oracle *oracle;
    bool found, hold;
    char why[240];
};

/* --- classes.c --- */

uint32_t po_sizes_new_class(po_sizes *s, uint32_t side, po_value_id value);
static inline const po_value *po_sizes_value(const po_sizes *s, uint32_t side, po_value_id v) {
    return &s->sized[side].open->values[v];
}
/* That of a value, PO_NONE where it has none yet: constants by their contents, what follows from
 * lengths by these, inputs by their names, the others as their nodes were given. */
uint32_t po_sizes_class(po_sizes *s, uint32_t side, po_value_id v);
bool po_sizes_same_type(const po_sizes *s, uint32_t x, po_value_id a, uint32_t y, po_value_id b);
/* The class of what is `flat` in the shape of a value; PO_NONE where that is not known. */
uint32_t po_sizes_view(po_sizes *s, uint32_t side, po_value_id v, uint32_t flat);
/* Whether the node only gives its input a shape, perhaps another. */
bool po_sizes_is_view(const po_sizes *s, uint32_t side, const po_node *node);
uint32_t po_sizes_class_of_view(po_sizes *s, uint32_t side, const po_node *node);
/* Of the operator, its attributes and the classes that go in. False: it is like no other node. */
bool po_sizes_key(po_sizes *s, po_prun *run, uint32_t side, const po_node *node, po_hash *key);
/* The channels of a value that are not zeros behind; 0: all. */
int64_t po_sizes_channels(const po_sizes *s, uint32_t side, po_value_id v);

/* --- parts.c --- */

/* What makes the target of a side, back to leaves: of the candidate's, values that the original has
 * too but for those of classes in `grown`, which are then the leaves of the original's. False where
 * it is too much, or begins at something else. */
bool po_cone_collect(po_sizes *s, po_arena *scratch, po_pieces *part, uint32_t side,
                     const bool *grown);
/* Whether both sides are the same for all lengths where they are at those tried; else why not. */
po_status po_pieces_same(po_sizes *s, po_arena *scratch, const po_pieces *part, bool *same,
                         char *why, size_t size);

/* --- taken.c --- */

/* Whether the candidate takes all lengths that the original takes, and no node makes of a length of
 * 0 what its expression does not say; else why not. */
bool po_sizes_taken(const po_sizes *s, char *why, size_t size);

/* --- typical.c --- */

/* The makeups of both targets, one after the other. */
typedef struct po_compared po_compared;
po_compared *po_compared_create(po_arena *arena, const po_names *names, const po_piece *part);
/* False: its axes are made of others than those of the first. */
bool po_compared_add(po_compared *compared, const po_makeup *makeup);
/* Whether the lengths that are tried tell all terms of both apart; else why not. */
bool po_compared_apart(po_compared *compared, const char **why);

/* --- varies.c --- */

/* Told of what the leaves and nodes of one side of a part are: whether what exponentials are added
 * up of along open axes differs along these. Of numbers the length would be a factor. Residues are
 * alike by chance as well, though not at the same places for other leaves. */
typedef struct po_met {
    po_value_id value;
    uint32_t place;
} po_met;
typedef struct po_varying {
    const po_graph *open;
    const po_cone *cone;
    po_arena *arena;
    po_met *met; /* elements that another one of their row is alike */
    uint32_t n_met, cap_met;
    bool same; /* more than chance makes, or what is not known */
} po_varying;
void po_varying_record(void *varying, po_value_id value, po_ptensor *tensor);
/* Whether some elements are alike in both evaluations. */
bool po_varying_same(po_varying *a, po_varying *b);

/* --- residues.c --- */

/* Whether both sides are equal for random leaves at the lengths tried; else why not. */
po_status po_pieces_evaluate(po_sizes *s, po_prun *run, const po_pgraph_spec *candidate,
                             const po_pieces *part, bool *same, char *why, size_t size);

#endif
