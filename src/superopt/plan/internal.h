/* What the parts of planning share (plan.c, readings.c, small.c, wide.c,
 * beside.c, row_fusion_choice.c). */
#ifndef PO_SUPEROPT_PLAN_PRIVATE_H
#define PO_SUPEROPT_PLAN_PRIVATE_H

#include "superopt/plan/plan.h"
#include "superopt/plan/row_fusion.h"
#include "superopt/plan/window.h"

typedef struct step {
    uint32_t plan, node; /* of its naive muGraph */
    uint32_t n;
    po_choice choices[PO_CHOICES_MAX];
    po_hash wide[PO_CHOICES_MAX];  /* with open sizes: the program, whatever the size at hand */
    uint32_t form[PO_CHOICES_MAX]; /* number among the distinct ones */
    uint32_t best;
    uint32_t band; /* that begins with it and is taken; PO_NONE */
} step;

/* Steps that follow one another, in bands, as a window, or one after the other to compare with. */
typedef struct band {
    po_row_fusion b;
    const po_plan_window *window; /* NULL: none */
    uint32_t plan, first;         /* of planning.steps */
    uint32_t form;
    uint32_t apart; /* the same steps one after the other: its number; itself: this is it */
    double gain;    /* seconds that it may save, or others of its steps */
} band;

typedef struct planning {
    po_ctx *ctx;
    po_arena *arena;   /* of what plans keep */
    po_arena *scratch; /* of all else */
    const po_plan_options *options;
    po_plan *plans;
    step *steps;
    uint32_t n_steps, cap_steps;
    po_timed_kernel *forms; /* distinct muGraphs of one step */
    double *seconds;        /* by form: read or estimated */
    po_hash *keys, *wide;   /* wide: as of steps; zero: none */
    uint32_t n_forms, cap_forms, cap_seconds, cap_keys, cap_wide;
    po_hash_map *known;
    po_step_values **last; /* for po_check_step */
    band *bands;
    uint32_t n_bands, cap_bands;
    double until;  /* of the readings under way; 0: no limit */
    double a_form; /* seconds that one took in the last batch, compiled and read; 0: not known */
    bool cut;      /* readings ended with their time */
    bool unread;   /* those of steps did */
} planning;

/* The number of a form, a new one where it is not known; spread as in po_timed_kernel.
 * lone: what it is compared with before it is timed; NULL: with nothing. */
uint32_t po_plan_add_variant(planning *p, const po_mu *mu, const po_standalone_step *lone,
                             int64_t spread);
/* Whether a tensor of a step by itself is one of the naive muGraph's, which the step reads or
 * writes, and not its own. opened.c */
bool po_plan_is_naive(const po_standalone_step *lone, uint32_t tensor);
/* Whether a program of one step, or of a band, has one for all sizes (which may widen its rings),
 * and what that is called; why it has none is logged. lone: of a step, whose own tensors are looked
 * at as well; NULL: a band of such steps. opened.c */
po_status po_plan_is_open(const planning *p, po_arena *scratch, po_mu *mu,
                          const po_standalone_step *lone, const char *name, bool *is,
                          po_hash *wide);
/* Reads or times what is not known yet of the forms that are wanted, those of most weight first
 * (NULL: all alike), each of so many steps. */
po_status po_plan_read(planning *p, bool *wanted, const double *weight, uint32_t steps);

/* readings.c: the cache's key of a form's reading, as the code of `isa`. */
po_hash po_plan_reading_key(const planning *p, uint32_t form, uint32_t isa);
/* What is known of a form, in this run or the cache, or of the same program at another size. */
bool po_plan_recall(const planning *p, uint32_t form, uint32_t isa, double *seconds);
/* Keeps what is known of all forms, and how it compares with their estimates. What was passed over
 * has 0 seconds. */
void po_plan_remember(planning *p, uint32_t isa);
/* The estimate of a form as those of this kind that were read had theirs. */
double po_plan_scaled(const planning *p, uint32_t form, const po_scheduler *how);

/* A plan's program: steps as they are worked, in their bands, or each in another choice (`choice`,
 * by number of the step; NULL: none) and other bands (`bands`, by that of the first step; NULL). */
void po_plan_schedule(const planning *p, po_arena *arena, uint32_t plan, const uint32_t *choice,
                      const uint32_t *bands, po_schedule *to);

/* Adds the program for small sizes to a plan that was built, where it is another. small.c */
void po_plan_add_small(planning *p, uint32_t plan);
/* The weights of another program of the plan, and the program with them: `mu` reads n that are
 * packed so, which the plan then has as well. small.c */
po_plan_other *po_plan_other_of(planning *p, uint32_t plan, po_mu *mu, const po_packed *packed,
                                uint32_t n);
/* The same for wide ones, by readings there or by estimate. wide.c */
po_status po_plan_add_wide(planning *p, uint32_t plan, bool measured);

/* Reads the steps of a plan that was built once more, with those of the plan beside it, where both
 * are steps by themselves and there is time. beside.c */
po_status po_plan_read_beside(planning *p, uint32_t plan);

/* Of a step's choices those that read weights as the plan that this one is to be like; all where
 * there are none. small.c */
void po_plan_keep_alike(const planning *p, step *s);

/* Lists what of a plan, which has been built without bands, may be worked in bands. */
po_status po_plan_candidates(planning *p, uint32_t plan);
/* Reads the candidates, each beside the same steps one after the other, and sets step.band of the
 * first step of those that are faster. */
po_status po_plan_row_fusions(planning *p);
/* Steps from one on, each in its best choice, one after the other. */
po_row_fusion po_plan_steps_of(const planning *p, uint32_t first, uint32_t n);
/* Adds one to the candidates; its number. apart: of the same steps one after the other, PO_NONE: it
 * is these. gain: seconds that it may save. */
uint32_t po_plan_add_band(planning *p, uint32_t first, const po_row_fusion *b,
                          const po_plan_window *w, int64_t spread, uint32_t apart, double gain);
/* Adds its steps to a schedule; by itself, to be timed. */
void po_plan_apply_band(po_schedule *to, const band *b);
po_mu *po_plan_standalone_band(po_arena *arena, const band *b, po_standalone_step *lone);
/* Lists windows of a plan, which has been built without bands, beside its bands. window_choice.c */
po_status po_plan_windows(planning *p, uint32_t plan, int64_t spread);
/* Takes none in a plan. */
void po_plan_part_row_fusions(planning *p, uint32_t plan);
/* The row of steps that are taken in bands, without their FLOPs. */
po_plan_step po_plan_row_fusion_row(const planning *p, po_arena *arena, const band *b);

#endif
