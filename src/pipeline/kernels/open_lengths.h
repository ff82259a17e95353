/* Open lengths told apart by their numbers: every length of a model's values, and every product of
 * neighbouring ones, of which kernels make one axis and means have a part. */
#ifndef PO_PIPELINE_OPEN_LENGTHS_H
#define PO_PIPELINE_OPEN_LENGTHS_H

#include "codegen/delivery/library.h"
#include "ir/graph.h"

/* Lengths of every name that the model takes: what is the same at these is the same. */
typedef struct po_open_samples {
    uint32_t usual; /* what it is meant for, of those it takes: an assignment (verify/inputs) */
    int64_t *length;
    uint32_t n;
} po_open_samples;

/* One of them. */
typedef struct po_open_length {
    po_dim is;
    int64_t always; /* the number that it is at all samples; -1: it is several */
    bool sampled;   /* it is a number at all of them: which, as a hash */
    po_hash samples;
    bool product;
    bool weak; /* a product of an open length and a number: it need not be told apart */
} po_open_length;

typedef struct po_open_lengths {
    po_arena *arena;
    uint32_t n_names;
    const char *const *names;
    const po_open_samples *samples;
    po_map *at; /* expression to its number */
    po_open_length *list;
    uint32_t n, cap;
    bool *taken; /* small numbers that are lengths at all sizes */
    /* of the size that was looked at last */
    po_mu_number *known;
    po_size_pair *equal; /* those with one number */
    int64_t *untold;     /* numbers of weak products that something else has, too */
    uint32_t n_known, n_equal, n_untold;
} po_open_lengths;

/* A value that some node makes, or the model is given. */
bool po_open_is_live(const po_graph *graph, po_value_id v);
/* The type of one that is a tensor; NULL: the value is none. */
const po_type *po_open_live_type(const po_graph *graph, po_value_id v);

/* Lengths over these names; the samples must outlive them. */
void po_open_lengths_init(po_open_lengths *l, po_arena *arena, const char *const *names,
                          uint32_t n_names, const po_open_samples *samples);
/* Those of a graph that are not there yet. */
void po_open_lengths_collect(po_open_lengths *l, const po_graph *named);
/* Whether at these lengths of the names each is a number that nothing else is, but what is the same
 * at all samples. */
bool po_open_lengths_tell(po_open_lengths *l, const int64_t *lengths);
/* Whether means of the graph at the size looked at last are over numbers that are told apart: what
 * a sum is divided by is known by its number alone. */
bool po_open_lengths_tell_means(const po_open_lengths *l, po_ctx *ctx, const po_graph *here);

/* What a length is where the names have these lengths; false where that is not known. */
bool po_open_lengths_at(po_arena *arena, const char *const *names, uint32_t n_names,
                        const int64_t *lengths, po_dim dim, int64_t *number);
/* Whether two lengths are the same at all samples, where each name has another one. */
bool po_open_lengths_same(po_arena *arena, const char *const *names, uint32_t n_names,
                          const po_open_samples *samples, po_dim a, po_dim b);

#endif
