/* Questions about integers, put to Z3. */
#include "mugraph/smt.h"

#include <z3.h>

enum { USUAL_LIMIT = 2000000 };

struct po_smt {
    po_arena *arena, *scratch; /* the second: from one restart to the next */
    uint32_t limit;
    Z3_context z3;
    Z3_solver solver;
    Z3_ast *expressions;
    uint32_t n, cap;
    bool failed; /* Z3 refused something: the answers are UNKNOWN from there on */
};

static void refused(Z3_context z3, Z3_error_code code) {
    (void)z3; /* looked at by `is_well` */
    (void)code;
}

static void free_smt(void *user) {
    po_smt *smt = user;
    if (smt->solver)
        Z3_solver_dec_ref(smt->z3, smt->solver);
    if (smt->z3)
        Z3_del_context(smt->z3);
    smt->solver = NULL;
    smt->z3 = NULL;
}

static bool is_well(const po_smt *smt) {
    return Z3_get_error_code(smt->z3) == Z3_OK;
}

static void set_limit(po_smt *smt, uint32_t limit) {
    Z3_params params = Z3_mk_params(smt->z3);
    if (!params)
        return;
    Z3_params_inc_ref(smt->z3, params);
    Z3_symbol name = Z3_mk_string_symbol(smt->z3, "rlimit");
    if (is_well(smt))
        Z3_params_set_uint(smt->z3, params, name, limit);
    if (is_well(smt))
        Z3_solver_set_params(smt->z3, smt->solver, params);
    Z3_params_dec_ref(smt->z3, params);
}

/* Where memory runs out Z3 gives NULL, which its next call would follow. */
static void set_up(po_smt *smt) {
    Z3_config config = Z3_mk_config();
    if (config)
        smt->z3 = Z3_mk_context(config);
    if (config)
        Z3_del_config(config);
    if (!smt->z3)
        return;
    Z3_set_error_handler(smt->z3, refused);
    Z3_symbol logic = Z3_mk_string_symbol(smt->z3, "QF_LIA");
    if (is_well(smt))
        smt->solver = Z3_mk_solver_for_logic(smt->z3, logic);
    if (!smt->solver)
        return;
    Z3_solver_inc_ref(smt->z3, smt->solver);
    set_limit(smt, smt->limit);
    if (is_well(smt))
        Z3_solver_push(smt->z3, smt->solver);
}

po_smt *po_smt_create(po_arena *arena, uint32_t limit) {
    po_smt *smt = PO_NEW(arena, po_smt);
    *smt = (po_smt){
        .arena = arena, .scratch = po_arena_child(arena), .limit = limit ? limit : USUAL_LIMIT};
    po_arena_own(arena, smt->scratch);
    po_arena_defer(arena, free_smt, smt);
    set_up(smt);
    if (!smt->solver || !is_well(smt))
        po_arena_exhausted(arena);
    return smt;
}

void po_smt_restart(po_smt *smt) {
    po_arena_reset(smt->scratch);
    smt->expressions = NULL;
    smt->n = smt->cap = 0;
    if (smt->failed || !is_well(smt)) {
        free_smt(smt);
        smt->failed = false;
        set_up(smt);
    } else {
        Z3_solver_reset(smt->z3, smt->solver);
        Z3_solver_push(smt->z3, smt->solver);
    }
    if (!smt->solver || !is_well(smt))
        po_arena_exhausted(smt->arena);
}

static uint32_t add(po_smt *smt, Z3_ast e) {
    smt->failed |= !e || Z3_get_error_code(smt->z3) != Z3_OK;
    PO_PUSH(smt->scratch, smt->expressions, smt->n, smt->cap, e);
    return smt->n - 1;
}

/* What Z3 is given it does not look at, and where memory runs out it gives nothing: once anything
 * failed it is asked no more. */
static bool well(po_smt *smt, uint32_t n, const Z3_ast *parts) {
    for (uint32_t i = 0; i < n; i++)
        smt->failed |= !parts[i];
    return !smt->failed;
}

typedef Z3_ast (*binary)(Z3_context z3, Z3_ast a, Z3_ast b);

static Z3_ast both(po_smt *smt, binary fn, Z3_ast a, Z3_ast b) {
    return well(smt, 2, (Z3_ast[]){a, b}) ? fn(smt->z3, a, b) : NULL;
}

static Z3_ast number(po_smt *smt, int64_t v) {
    return smt->failed ? NULL : Z3_mk_int64(smt->z3, v, Z3_mk_int_sort(smt->z3));
}

static void require(po_smt *smt, Z3_ast claim) {
    if (well(smt, 1, &claim))
        Z3_solver_assert(smt->z3, smt->solver, claim);
}

uint32_t po_smt_variable(po_smt *smt, int64_t least, int64_t most) {
    if (smt->failed)
        return add(smt, NULL);
    Z3_ast v =
        Z3_mk_const(smt->z3, Z3_mk_int_symbol(smt->z3, (int)smt->n), Z3_mk_int_sort(smt->z3));
    /* Ranges hold for all questions: below the scope that a question ends. */
    Z3_solver_pop(smt->z3, smt->solver, 1);
    require(smt, both(smt, Z3_mk_ge, v, number(smt, least)));
    require(smt, both(smt, Z3_mk_le, v, number(smt, most)));
    Z3_solver_push(smt->z3, smt->solver);
    return add(smt, v);
}

uint32_t po_smt_sum(po_smt *smt, int64_t offset, uint32_t n, const po_smt_term *terms) {
    Z3_ast *parts = PO_NEW_N(smt->scratch, Z3_ast, n + 1);
    parts[n] = number(smt, offset);
    for (uint32_t i = 0; i < n; i++) {
        Z3_ast factors[2] = {number(smt, terms[i].coef), smt->expressions[terms[i].of]};
        parts[i] = well(smt, 2, factors) ? Z3_mk_mul(smt->z3, 2, factors) : NULL;
    }
    return add(smt, well(smt, n + 1, parts) ? Z3_mk_add(smt->z3, n + 1, parts) : NULL);
}

uint32_t po_smt_quotient(po_smt *smt, uint32_t of, int64_t by) {
    return add(smt, both(smt, Z3_mk_div, smt->expressions[of], number(smt, by)));
}

uint32_t po_smt_rest(po_smt *smt, uint32_t of, int64_t by) {
    return add(smt, both(smt, Z3_mk_mod, smt->expressions[of], number(smt, by)));
}

static Z3_ast claim_of(po_smt *smt, po_smt_claim c) {
    Z3_ast a = smt->expressions[c.a], b = smt->expressions[c.b];
    if (c.relation == PO_SMT_LESS)
        return both(smt, Z3_mk_lt, a, b);
    Z3_ast equal = both(smt, Z3_mk_eq, a, b);
    return c.relation == PO_SMT_EQUAL || !equal ? equal : Z3_mk_not(smt->z3, equal);
}

void po_smt_require(po_smt *smt, po_smt_claim claim) {
    require(smt, claim_of(smt, claim));
}

void po_smt_require_any(po_smt *smt, uint32_t n, const po_smt_claim *claims) {
    Z3_ast *parts = PO_NEW_N(smt->scratch, Z3_ast, n + 1);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = claim_of(smt, claims[i]);
    require(smt, well(smt, n, parts) ? Z3_mk_or(smt->z3, n, parts) : NULL);
}

po_smt_answer po_smt_ask(po_smt *smt) {
    if (smt->failed)
        return PO_SMT_UNKNOWN;
    Z3_lbool found = Z3_solver_check(smt->z3, smt->solver);
    bool well = !smt->failed && Z3_get_error_code(smt->z3) == Z3_OK;
    Z3_solver_pop(smt->z3, smt->solver, 1);
    Z3_solver_push(smt->z3, smt->solver);
    if (!well || found == Z3_L_UNDEF)
        return PO_SMT_UNKNOWN;
    return found == Z3_L_TRUE ? PO_SMT_SOME : PO_SMT_NEVER;
}
