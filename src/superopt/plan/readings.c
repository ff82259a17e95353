/* What is known of schedules: readings of this run and of the cache, and how they compare with
 * estimates. */
#include "superopt/plan/internal.h"

enum { KINDS = 8 };

struct po_plan_readings {
    po_arena *arena;
    po_hash_map *known; /* by po_plan_reading_key: number of the reading */
    double *seconds;
    uint32_t n, cap;
    po_hash_map *wide; /* by program for all sizes, likewise: */
    double *part;      /* of its estimate, at the size that it was read at; below 0: it was wrong */
    uint32_t n_wide, cap_wide;
    struct {
        const po_scheduler *how;
        double read, guessed; /* sums over the same schedules */
    } kinds[KINDS];
    uint32_t n_kinds;
};

po_plan_readings *po_plan_readings_create(po_arena *arena) {
    po_plan_readings *r = PO_NEW(arena, po_plan_readings);
    *r = (po_plan_readings){
        .arena = arena, .known = po_hash_map_create(arena), .wide = po_hash_map_create(arena)};
    return r;
}

/* The number of a scheduler among the kinds; PO_NONE: there is no room. */
static uint32_t kind_of(po_plan_readings *r, const po_scheduler *how) {
    for (uint32_t i = 0; i < r->n_kinds; i++)
        if (r->kinds[i].how == how)
            return i;
    if (r->n_kinds == KINDS)
        return PO_NONE;
    r->kinds[r->n_kinds].how = how;
    return r->n_kinds++;
}

po_hash po_plan_reading_key(const planning *p, uint32_t form, uint32_t isa) {
    po_hash key = po_hash_u64(po_hash_u64(p->options->key, p->keys[form].lo), p->keys[form].hi);
    return po_hash_u64(key, PO_KERNEL_READING * PO_ISAS + isa);
}

static bool has_wide(const planning *p, uint32_t form) {
    return p->options->readings && !po_hash_equal(p->wide[form], (po_hash){0, 0});
}

/* The key of the readings' programs for all sizes: by machine and code, as
 * po_plan_reading_key. */
static po_hash wide_key(const planning *p, uint32_t form, uint32_t isa) {
    return po_hash_u64(po_hash_u64(p->wide[form], p->wide[form].hi), isa);
}

bool po_plan_recall(const planning *p, uint32_t form, uint32_t isa, double *seconds) {
    const po_plan_readings *r = p->options->readings;
    po_hash key = po_plan_reading_key(p, form, isa);
    uint32_t i = r ? po_hash_map_get(r->known, key) : PO_NONE;
    if (i != PO_NONE)
        *seconds = r->seconds[i];
    if (i != PO_NONE || (p->options->cache && po_cache_get_fixed(p->options->cache, "kernel", key,
                                                                 seconds, sizeof *seconds)))
        return true;
    i = has_wide(p, form) ? po_hash_map_get(r->wide, wide_key(p, form, isa)) : PO_NONE;
    if (i == PO_NONE)
        return false;
    *seconds = r->part[i] < 0 ? -1 : r->part[i] * po_plan_estimated(p->forms[form].mu);
    return true;
}

static void remember_wide(const planning *p, uint32_t form, uint32_t isa) {
    po_plan_readings *r = p->options->readings;
    const double estimated = po_plan_estimated(p->forms[form].mu), seconds = p->seconds[form];
    if (!has_wide(p, form) || seconds == 0 || !(estimated > 0) ||
        po_hash_map_get(r->wide, wide_key(p, form, isa)) != PO_NONE)
        return;
    po_hash_map_put(r->wide, wide_key(p, form, isa), r->n_wide);
    PO_PUSH(r->arena, r->part, r->n_wide, r->cap_wide, seconds < 0 ? -1 : seconds / estimated);
}

/* Whether it is news: it was not known, or passed over so far. */
static bool remember_one(const planning *p, uint32_t form, uint32_t isa) {
    po_plan_readings *r = p->options->readings;
    const po_hash key = po_plan_reading_key(p, form, isa);
    const double seconds = p->seconds[form];
    const uint32_t at = po_hash_map_get(r->known, key);
    if (at != PO_NONE && (r->seconds[at] != 0 || seconds == 0))
        return false;
    po_hash_map_put(r->known, key, r->n);
    PO_PUSH(r->arena, r->seconds, r->n, r->cap, seconds);
    return true;
}

void po_plan_remember(planning *p, uint32_t isa) {
    po_plan_readings *r = p->options->readings;
    for (uint32_t i = 0; r && i < p->n_steps; i++)
        for (uint32_t k = 0; k < p->steps[i].n; k++) {
            const uint32_t form = p->steps[i].form[k];
            const double seconds = p->seconds[form];
            remember_wide(p, form, isa);
            if (!remember_one(p, form, isa))
                continue;
            uint32_t kind = kind_of(r, p->steps[i].choices[k].how);
            if (seconds <= 0 || kind == PO_NONE)
                continue;
            r->kinds[kind].read += seconds;
            r->kinds[kind].guessed += po_plan_estimated(p->forms[form].mu);
        }
    /* Bands, and steps at another size. */
    for (uint32_t i = 0; r && i < p->n_forms; i++)
        if (p->seconds[i] != 0)
            remember_one(p, i, isa);
}

double po_plan_scaled(const planning *p, uint32_t form, const po_scheduler *how) {
    po_plan_readings *r = p->options->readings;
    uint32_t kind = r ? kind_of(r, how) : PO_NONE;
    bool scaled = kind != PO_NONE && r->kinds[kind].guessed > 0;
    return po_plan_estimated(p->forms[form].mu) *
           (scaled ? r->kinds[kind].read / r->kinds[kind].guessed : 1);
}
