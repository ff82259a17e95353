/* The test of every rewrite without the net: what a rule makes is compared with what it was given
 * by the float64 reference, element by element; nothing chooses among results. */
#ifndef PO_TESTS_RULES_H
#define PO_TESTS_RULES_H

#include "ops/op.h"

/* What a rewrite promises of its outputs. */
typedef enum rules_promise {
    PROMISE_BITS, /* every bit, each operator rounded to its type; but the sign of a zero */
    PROMISE_REAL, /* equal over the reals: derived weights unrounded, float64 throughout */
    PROMISE_FORM  /* the same but for constants that are recognised, and written as attributes */
} rules_promise;

/* A rule's firings that were compared. */
typedef struct rule_row {
    const char *name; /* "postopt: ..." */
    uint64_t fired;
} rule_row;

typedef struct tally {
    rule_row *rows;
    uint32_t n, cap;
    uint64_t graphs, rewrites, compared, unsupported, wrong;
} tally;

/* Makes sure that there is a row of the name, and adds to it. */
void tally_add(tally *t, const char *stage, const char *name, uint64_t times);

/* --- compare.c --- */

typedef struct original original; /* a graph, inputs for it, and what it computes of them */

/* NULL where the reference does not take the graph. The original's memory is the arena's. */
original *original_of(po_ctx *ctx, po_arena *arena, const po_graph *graph, uint64_t seed);
typedef enum judged { JUDGED_EQUAL, JUDGED_DIFFERENT, JUDGED_UNSUPPORTED } judged;
/* Whether the reference takes the graph with normal inputs. */
bool original_runs(po_ctx *ctx, const po_graph *graph);
/* Where it is different, *why says at which output, element and inputs. */
judged original_judge(original *o, const po_graph *after, rules_promise promise, const char **why);

/* --- rewrites.c, mutants.c: everything that rewrites, on one graph --- */

typedef struct subject {
    po_ctx *ctx;
    po_arena *arena;
    const po_graph *graph; /* types inferred */
    const char *name;      /* for reports: how it is made again */
    uint64_t seed;
    tally *tally;
} subject;

void rewrites_names(tally *t);
void rewrites_try(const subject *s);
void mutants_names(tally *t);
void mutants_try(const subject *s);
/* Judges what a rewrite made, counts the rules in `fired` that it stands for, and reports. */
bool subject_judge(const subject *s, original *o, const po_graph *after, rules_promise promise,
                   const char *rewrite);

/* --- opening.c --- */

typedef struct opening opening; /* names for the dims of a graph's inputs */
const opening *opening_of(po_ctx *ctx, po_arena *arena, const po_graph *graph);
po_ctx *opening_ctx(const opening *o);
uint32_t opening_names(const opening *o); /* 31 at most are used */
/* Sets of names are bits. As many of them as the graph runs with at other lengths. */
uint32_t opening_most(const opening *o, const po_graph *graph);
/* A clone in which dims are called so, types inferred; NULL where they contradict one another. */
po_graph *opening_graph(const opening *o, const po_graph *graph, uint32_t names);
/* A clone with these lengths for the names, types not inferred. */
po_graph *opening_at(const opening *o, const po_graph *graph, uint32_t names,
                     const int64_t *lengths);

/* --- templates.c --- */

typedef struct templates templates;
templates *templates_create(po_arena *arena);
/* Adds the patterns of a file; ends the program where that is no list of patterns. What a pattern
 * draws depends on its place among all. */
void templates_read(templates *t, po_arena *arena, const char *path);
uint32_t templates_count(const templates *t);
/* How many graphs are made of others for one of this pattern: 1, or more for what is slow. */
uint32_t templates_rarity(const templates *t, uint32_t pattern);
const char *templates_name(const templates *t, uint32_t pattern);
/* The text of a graph: parameters drawn by the seed. */
const char *templates_fill(const templates *t, po_arena *arena, uint32_t pattern, uint64_t seed);

/* --- every_size.c --- */

typedef struct every_size_options {
    const char *only;    /* laws in whose name it is; NULL: all */
    uint32_t seeds;      /* graphs of a pattern, at most */
    uint32_t first_open; /* pattern of patterns_open.txt */
    bool tell;           /* of every proof */
} every_size_options;
/* What is known of every law on open dims, a line for each: LAW | verdict | instances | what
 * resists. False where something that is proved is wrong. */
bool every_size_report(const templates *t, const every_size_options *options);

#endif
