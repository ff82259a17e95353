/* The numbers of recipes, and storing them with their constants. */
#include "ops/broadcast.h"
#include "ops/recipe/walk.h"
#include "ops/ref.h"
#include "ops/rewrite.h"

#include <math.h>

/* --- order --- */

void po_recipe_walk_init(po_recipe_walk *walk, po_arena *arena) {
    *walk = (po_recipe_walk){.arena = arena, .places = po_hash_map_create(arena)};
}

/* By identity: where it lands in the table shows nowhere. */
static po_hash key(const po_recipe *recipe) {
    return po_hash_u64((po_hash){0, 0}, (uint64_t)(uintptr_t)recipe);
}

uint32_t po_recipe_walk_place(const po_recipe_walk *walk, const po_recipe *recipe) {
    return po_hash_map_get(walk->places, key(recipe));
}

typedef struct visit {
    const po_recipe *recipe;
    uint32_t next; /* input to look at */
} visit;

uint32_t po_recipe_walk_add(po_recipe_walk *walk, const po_recipe *recipe,
                            bool (*stop)(const po_recipe *recipe)) {
    visit *stack = NULL;
    uint32_t n = 0, cap = 0;
    if (po_recipe_walk_place(walk, recipe) == PO_NONE)
        PO_PUSH(walk->arena, stack, n, cap, ((visit){recipe, 0}));
    while (n) {
        visit *top = &stack[n - 1];
        const po_recipe *r = top->recipe;
        uint32_t inputs = stop && stop(r) ? 0 : r->n_in;
        if (top->next < inputs) {
            const po_recipe *in = r->in[top->next++];
            if (in && po_recipe_walk_place(walk, in) == PO_NONE)
                PO_PUSH(walk->arena, stack, n, cap, ((visit){in, 0}));
            continue;
        }
        n--;
        if (po_recipe_walk_place(walk, r) == PO_NONE) {
            po_hash_map_put(walk->places, key(r), walk->n);
            PO_PUSH(walk->arena, walk->items, walk->n, walk->cap, r);
        }
    }
    return po_recipe_walk_place(walk, recipe);
}

/* --- evaluation --- */

/* Results of at least this many elements have memory of their own, given back after the last use;
 * views share it. */
enum { LARGE = 1 << 14 };

typedef struct memory {
    po_arena *arena;
    uint32_t users;
} memory;

typedef struct cell {
    po_array *array;
    memory *memory;   /* NULL: the caller's arena */
    uint32_t readers; /* that are still to come */
} cell;

static bool at_hand(const po_recipe *recipe) {
    return recipe->tensor != NULL;
}

static void release(cell *c) {
    if (c->memory && --c->memory->users == 0)
        po_arena_free(c->memory->arena);
    c->memory = NULL;
    c->array = NULL;
}

static bool overlaps(const po_array *view, const po_array *whole) {
    const char *at = view->f ? (const char *)view->f : (const char *)view->i;
    const char *from = whole->f ? (const char *)whole->f : (const char *)whole->i;
    return at && from && view->count > 0 && at >= from && at < from + whole->count * 8;
}

po_model *po_recipe_model(po_arena *arena, const po_model *model) {
    po_model *m = PO_NEW(arena, po_model);
    uint32_t n = model ? model->n_opsets : 0;
    m->ir_version = 10;
    m->opsets = PO_NEW_N(arena, po_opset, n + 1);
    m->opsets[m->n_opsets++] = (po_opset){"", po_recipe_opset(model)};
    for (uint32_t i = 0; i < n; i++)
        if (*model->opsets[i].domain && strcmp(model->opsets[i].domain, "ai.onnx") != 0)
            m->opsets[m->n_opsets++] = model->opsets[i];
    return m;
}

typedef struct evaluation {
    po_ctx *ctx;
    po_arena *arena;
    po_graph bare; /* holds the model */
    const po_recipe_walk *walk;
    cell *cells;
} evaluation;

static cell *cell_of(const evaluation *e, const po_recipe *r) {
    return &e->cells[po_recipe_walk_place(e->walk, r)];
}

/* Takes the memory of an input that has the same elements: *c is `array` in it. */
static void share(cell *c, const cell *base, po_array *array) {
    c->array = array;
    c->memory = base->memory;
    if (c->memory)
        c->memory->users++;
}

/* A wider type holds the same numbers. */
static bool widen(evaluation *e, const po_recipe *r, cell *c) {
    if (r->op != PO_OP_Cast || r->dtype != PO_F64 || r->n_in != 1 || !r->in[0])
        return false;
    const cell *base = cell_of(e, r->in[0]);
    if (!base->array->f)
        return false;
    po_array *view = po_array_view(e->arena, base->array, base->array->rank, base->array->dims);
    view->dtype = PO_F64;
    share(c, base, view);
    return true;
}

#define IN_PLACE(expression)                                                                       \
    while (po_bcast_next(&bc, &row)) {                                                             \
        double *to = base->array->f + row.at;                                                      \
        const double *from = other->f + row.from[1];                                               \
        for (int64_t k = 0; k < row.n; k++) {                                                      \
            const double a = to[k], b = from[k * row.step[1]];                                     \
            to[k] = (expression);                                                                  \
        }                                                                                          \
    }

/* Arithmetic on a large array that nothing else reads is done where it lies: weights take half the
 * memory. One operation an element, so the order is that of the reference. */
static bool run_in_place(evaluation *e, const po_recipe *r, cell *c) {
    const cell *base = r->n_in == 2 && r->in[0] && r->in[1] ? cell_of(e, r->in[0]) : NULL;
    if (!base || r->dtype != PO_F64 || r->in[0] == r->in[1] || !base->memory ||
        base->memory->users != 1 || base->readers != 1 || base->array->dtype != PO_F64)
        return false;
    const po_array *other = cell_of(e, r->in[1])->array;
    const po_array *const both[2] = {base->array, other};
    po_bcast bc;
    po_bcast_row row = {0};
    if (other->dtype != PO_F64 || !po_bcast_init(&bc, 2, both) ||
        bc.out_rank != base->array->rank || bc.count != base->array->count)
        return false;
    switch ((po_op)r->op) {
    case PO_OP_Mul:
        IN_PLACE(a * b)
        break;
    case PO_OP_Add:
        IN_PLACE(a + b)
        break;
    case PO_OP_Sub:
        IN_PLACE(a - b)
        break;
    case PO_OP_Div:
        IN_PLACE(a / b)
        break;
    default:
        return false;
    }
    share(c, base, base->array);
    return true;
}

static po_status run(evaluation *e, const po_recipe *r, cell *c) {
    if (widen(e, r, c) || run_in_place(e, r, c))
        return PO_OK;
    const po_array **in = PO_NEW_N(e->arena, const po_array *, r->n_in);
    po_array **out = PO_NEW_N(e->arena, po_array *, r->n_out);
    po_value_id *ids = PO_NEW_N(e->arena, po_value_id, r->n_in + r->n_out);
    bool large = r->count >= LARGE;
    for (uint32_t i = 0; i < r->n_in; i++) {
        ids[i] = r->in[i] ? 0 : PO_NONE;
        in[i] = r->in[i] ? cell_of(e, r->in[i])->array : NULL;
        large |= in[i] && in[i]->count >= LARGE;
    }
    const po_op_row *row = po_op_row_of(r->op);
    const po_node node = {.op = r->op,
                          .op_type = row->name,
                          .domain = row->domain,
                          .overload = "",
                          .name = "",
                          .n_in = r->n_in,
                          .n_out = r->n_out,
                          .n_attr = r->n_attr,
                          .in = ids,
                          .out = ids + r->n_in,
                          .attr = (po_attr *)(uintptr_t)r->attr};
    if (large) {
        c->memory = PO_NEW(e->arena, memory);
        *c->memory = (memory){po_arena_child(e->arena), 1};
    }
    po_arena *arena = large ? c->memory->arena : e->arena;
    po_status status = po_ref_node(e->ctx, arena, &e->bare, &node, in, out);
    const po_array *made = status == PO_OK ? out[r->output] : NULL;
    if (!made || (r->dtype != PO_DT_NONE && made->dtype != r->dtype) || made->s)
        return status == PO_OK ? PO_UNSUPPORTED : status;
    c->array = po_array_view(e->arena, made, made->rank, made->dims);
    /* A small view may lie in the memory of what was cut from a large array. */
    for (uint32_t i = 0; i < r->n_in; i++)
        if (in[i] && overlaps(made, in[i])) {
            if (large)
                po_arena_free(arena);
            share(c, cell_of(e, r->in[i]), c->array);
            break;
        }
    return PO_OK;
}

static po_status load(evaluation *e, const po_tensor *tensor, cell *c) {
    po_arena *arena = e->arena;
    if (tensor->count >= LARGE) {
        c->memory = PO_NEW(e->arena, memory);
        *c->memory = (memory){po_arena_child(e->arena), 1};
        arena = c->memory->arena;
    }
    return po_ref_fits(tensor->rank, tensor->dims)
               ? po_array_from_tensor(e->ctx, arena, tensor, &c->array)
               : PO_UNSUPPORTED;
}

/* Shape mistakes must not pass as values: where a recipe states its dims they hold. */
static bool as_stated(const po_recipe *r, const po_array *a) {
    return !r->dims || (a->rank == r->rank &&
                        (a->rank == 0 || memcmp(a->dims, r->dims, a->rank * sizeof *r->dims) == 0));
}

static po_status run_all(evaluation *e, uint32_t root) {
    for (uint32_t k = 0; k <= root; k++) {
        const po_recipe *r = e->walk->items[k];
        cell *c = &e->cells[k];
        PO_TRY(r->tensor ? load(e, r->tensor, c) : run(e, r, c));
        if (!as_stated(r, c->array))
            return PO_UNSUPPORTED;
        for (uint32_t i = 0; !r->tensor && i < r->n_in; i++)
            if (r->in[i]) {
                cell *used = cell_of(e, r->in[i]);
                if (--used->readers == 0)
                    release(used);
            }
    }
    return PO_OK;
}

/* The result in the caller's arena: its memory goes along where it has some of its own. */
static po_array *hand_over(po_arena *arena, cell *root) {
    if (!root->memory)
        return po_array_copy(arena, root->array);
    po_array *a = po_array_view(arena, root->array, root->array->rank, root->array->dims);
    po_arena_own(arena, root->memory->arena);
    root->memory = NULL;
    return a;
}

po_status po_recipe_eval(po_ctx *ctx, po_arena *arena, const po_model *model,
                         const po_recipe *recipe, po_array **array) {
    po_recipe_walk walk;
    po_arena *scratch = po_arena_child(arena);
    po_recipe_walk_init(&walk, scratch);
    uint32_t root = po_recipe_walk_add(&walk, recipe, at_hand);
    evaluation e = {.ctx = ctx,
                    .arena = scratch,
                    .bare = {.model = po_recipe_model(scratch, model)},
                    .walk = &walk,
                    .cells = PO_NEW_N(scratch, cell, walk.n)};
    for (uint32_t k = 0; k < walk.n; k++)
        for (uint32_t i = 0; !walk.items[k]->tensor && i < walk.items[k]->n_in; i++)
            if (walk.items[k]->in[i])
                e.cells[po_recipe_walk_place(&walk, walk.items[k]->in[i])].readers++;
    e.cells[root].readers = 1;
    po_status status = run_all(&e, root);
    if (status == PO_OK)
        *array = hand_over(arena, &e.cells[root]);
    for (uint32_t k = 0; k < walk.n; k++)
        release(&e.cells[k]);
    po_arena_free(scratch);
    return status;
}

/* --- storing --- */

static bool is_kept(const po_recipe *recipe) {
    return recipe->kept;
}

/* A copy in the graph's arena of what does not lie in one yet. */
static const po_recipe *keep(po_graph *graph, const po_recipe *recipe) {
    if (recipe->kept)
        return recipe;
    po_recipe_walk walk;
    po_arena *scratch = po_arena_child(graph->arena);
    po_recipe_walk_init(&walk, scratch);
    po_recipe_walk_add(&walk, recipe, is_kept);
    const po_recipe **copies = PO_NEW_N(scratch, const po_recipe *, walk.n);
    for (uint32_t k = 0; k < walk.n; k++) {
        const po_recipe *r = walk.items[k];
        copies[k] = r;
        if (r->kept)
            continue;
        po_recipe *copy = po_arena_memdup(graph->arena, r, sizeof *r);
        copy->kept = true;
        copy->dims = po_arena_memdup(graph->arena, r->dims, r->rank * sizeof *r->dims);
        if (r->kind == PO_RECIPE_LITERAL) {
            po_tensor *t = po_arena_memdup(graph->arena, r->tensor, sizeof *t);
            t->dims = copy->dims;
            t->data = po_arena_memdup(graph->arena, t->data, t->size);
            copy->tensor = t;
        }
        po_attr *attr = po_arena_memdup(graph->arena, r->attr, r->n_attr * sizeof *attr);
        for (uint32_t i = 0; i < r->n_attr; i++) {
            if (attr[i].kind == PO_ATTR_INTS)
                attr[i].u.ints = po_arena_memdup(graph->arena, attr[i].u.ints,
                                                 attr[i].n * sizeof *attr[i].u.ints);
            else if (attr[i].kind == PO_ATTR_STRING)
                attr[i].u.s.data =
                    po_arena_memdup(graph->arena, attr[i].u.s.data, attr[i].u.s.size);
        }
        const po_recipe **in = PO_NEW_N(graph->arena, const po_recipe *, r->n_in);
        for (uint32_t i = 0; i < r->n_in; i++)
            in[i] = r->in[i] ? copies[po_recipe_walk_place(&walk, r->in[i])] : NULL;
        copy->attr = attr;
        copy->in = in;
        copies[k] = copy;
    }
    const po_recipe *kept = copies[walk.n - 1];
    po_arena_free(scratch);
    return kept;
}

/* What the value is made of, its own tensor as the numbers at hand. */
static void attach(po_graph *graph, po_value_id value, const po_recipe *recipe) {
    po_value *v = &graph->values[value];
    if (recipe->kind == PO_RECIPE_OP && !recipe->tensor) {
        po_recipe *stored = po_arena_memdup(graph->arena, recipe, sizeof *recipe);
        stored->tensor = v->constant;
        recipe = stored;
    }
    v->recipe = recipe;
}

void po_set_recipe(po_graph *graph, po_value_id value, const po_recipe *recipe) {
    attach(graph, value, keep(graph, recipe));
}

po_value_id po_add_reshaped(po_graph *graph, po_value_id constant, uint32_t rank,
                            const int64_t *dims) {
    const po_recipe *from = po_recipe_of(graph, graph->arena, constant);
    po_tensor *t = po_arena_memdup(graph->arena, po_graph_constant(graph, constant), sizeof *t);
    t->rank = rank;
    t->dims = po_arena_memdup(graph->arena, dims, rank * sizeof *dims);
    t->origin = NULL; /* the message it was read from has the old dims */
    po_value_id value = po_graph_add_constant(graph, NULL, t);
    po_set_recipe(graph, value, po_recipe_reshape(graph->arena, from, rank, dims));
    return value;
}

void po_name_sources(po_graph *graph) {
    po_arena *scratch = po_arena_child(graph->arena);
    for (po_value_id i = 0; i < graph->n_values; i++) {
        const po_value *v = &graph->values[i];
        if (v->constant && !v->recipe && v->outer == PO_NONE)
            po_set_recipe(graph, i, po_recipe_of(graph, scratch, i));
    }
    po_arena_free(scratch);
}

static bool all_finite(const po_array *a, po_dtype dtype) {
    for (int64_t i = 0; i < a->count; i++)
        if (!isfinite(dtype == PO_F32 ? (double)(float)a->f[i] : a->f[i]))
            return false;
    return true;
}

/* Its numbers, rounded to dtype; NULL: they cannot be had, or one is not finite. */
static const po_tensor *numbers_of(po_graph *graph, po_arena *scratch, po_dtype dtype,
                                   const po_recipe *recipe) {
    po_ctx *ctx = po_arena_ctx(graph->arena);
    const po_tensor *moved = dtype == PO_F32 ? po_recipe_moved(ctx, graph->arena, recipe) : NULL;
    po_array *array;
    po_tensor *tensor;
    if (moved)
        return moved;
    if (po_recipe_eval(ctx, scratch, graph->model, recipe, &array) != PO_OK || !array->f ||
        !all_finite(array, dtype))
        return NULL;
    array->dtype = dtype;
    return po_array_to_tensor(ctx, graph->arena, array, &tensor) == PO_OK ? tensor : NULL;
}

po_value_id po_add_recipe(po_graph *graph, const char *name, po_dtype dtype,
                          const po_recipe *recipe) {
    po_arena *scratch = po_arena_create(po_arena_ctx(graph->arena));
    const po_tensor *tensor = numbers_of(graph, scratch, dtype, recipe);
    po_value_id value = PO_NONE;
    const po_attr to = {.name = "to", .kind = PO_ATTR_INT, .n = 1, .u.i = dtype};
    if (tensor) {
        if (recipe->dtype != dtype)
            recipe = po_recipe_op(scratch, &(po_recipe_spec){.op = PO_OP_Cast,
                                                             .n_in = 1,
                                                             .in = &recipe,
                                                             .n_attr = 1,
                                                             .attr = &to,
                                                             .dtype = dtype,
                                                             .rank = tensor->rank,
                                                             .dims = tensor->dims});
        value = po_graph_add_constant(graph, name, tensor);
        po_set_recipe(graph, value, recipe);
    }
    po_arena_free(scratch);
    return value;
}
