/* The functions of a kernel: one for each phase, which is what a step runs between two meetings of
 * the parts, and the call that runs them in order. Names go by first use within a phase, so that
 * phases that do the same share one body. */
#include "codegen/cpu/tile.h"
#include "ir/size.h"

/* --- loops --- */

static po_status children(cg *g, uint32_t node);

static const char *extent_of(cg *g, uint32_t label) {
    return cg_length(g, g->open->extent[label]);
}

/* The start of a chunk is b_LABEL, its count n_LABEL where not every chunk is full. */
static void bind(cg *g, uint32_t loop) {
    const po_mu_node *n = &g->mu->nodes[loop];
    const int64_t extent = g->mu->labels[n->label].extent, chunk = po_mu_open_chunk(g->open, loop);
    const bool open = po_mu_open_label(g->open, n->label);
    const char *name = g->label[n->label];
    cg_span *span = &g->span[n->label];
    *span = (cg_span){.start = po_arena_printf(g->arena, "b_%s", name),
                      .full = chunk ? chunk : extent,
                      .tail = chunk ? extent % chunk : 0,
                      .open = open,
                      .grid = n->loop == PO_MU_GRID};
    if (chunk == 0)
        span->start = NULL;
    if (chunk == 0 && open)
        span->count = extent_of(g, n->label);
    if (chunk == 0 || chunk == 1 || (span->tail == 0 && !open))
        return;
    span->count = po_arena_printf(g->arena, "n_%s", name);
    if (open)
        cg_line(g, "const long n_%s = pk_least(%lld, %s - b_%s);", name, (long long)chunk,
                extent_of(g, n->label), name);
    else
        cg_line(g, "const long n_%s = b_%s + %lld <= %lld ? %lld : %lld;", name, name,
                (long long)chunk, (long long)extent, (long long)chunk, (long long)span->tail);
}

static void unbind(cg *g, uint32_t label) {
    const bool open = po_mu_open_label(g->open, label);
    g->span[label] = (cg_span){.full = g->mu->labels[label].extent,
                               .count = open ? extent_of(g, label) : NULL,
                               .open = open};
}

void cg_chunks(cg *g, uint32_t node) {
    const po_mu_node *n = &g->mu->nodes[node];
    const char *name = g->label[n->label];
    const int64_t chunk = po_mu_open_chunk(g->open, node);
    if (chunk == 0)
        cg_brace(g);
    else
        cg_open(g, "for (long b_%s = 0; b_%s < %s; b_%s += %lld)", name, name,
                extent_of(g, n->label), name, (long long)chunk);
    bind(g, node);
}

void cg_chunks_end(cg *g, uint32_t node) {
    unbind(g, g->mu->nodes[node].label);
    cg_close(g);
}

static po_status loop(cg *g, uint32_t node) {
    if (g->mu->nodes[node].loop == PO_MU_LANES)
        return cg_lanes(g, node);
    cg_chunks(g, node);
    PO_TRY(children(g, node));
    cg_chunks_end(g, node);
    return PO_OK;
}

static po_status piece(cg *g, uint32_t node, uint32_t *next);

static po_status one(cg *g, uint32_t node, uint32_t *next) {
    const po_mu_statement *s = &g->mu->nodes[node].statement;
    if (g->mu->nodes[node].kind == PO_MU_STATEMENT)
        return cg_led_by(g, node) != PO_NONE || (s->combine != PO_MU_SET && s->lane != PO_NONE)
                   ? piece(g, node, next)
                   : cg_group(g, node, next);
    *next = g->mu->nodes[node].next;
    return loop(g, node);
}

static po_status children(cg *g, uint32_t node) {
    for (uint32_t n = g->mu->nodes[node].first; n != PO_NONE;)
        PO_TRY(one(g, n, &n));
    return PO_OK;
}

/* --- phases: what of a step runs between two meetings of the parts --- */

/* What a phase uses, by first use. */
typedef struct used {
    uint32_t *tensors, *labels, n_tensors, n_labels;
} used;

static void use_access(const cg *g, used *u, const po_mu_access *access) {
    bool has = false;
    for (uint32_t i = 0; i < u->n_tensors; i++)
        has |= u->tensors[i] == access->tensor;
    if (!has)
        u->tensors[u->n_tensors++] = access->tensor;
    for (uint32_t a = 0; a < g->mu->tensors[access->tensor].rank; a++)
        for (uint32_t i = 0; i < access->axes[a].n; i++) {
            bool known = false;
            for (uint32_t l = 0; l < u->n_labels; l++)
                known |= u->labels[l] == access->axes[a].terms[i].label;
            if (!known)
                u->labels[u->n_labels++] = access->axes[a].terms[i].label;
        }
}

/* Of nodes [from, to) of one parent and all inside them. */
static used used_by(cg *g, uint32_t from, uint32_t to) {
    const po_mu *mu = g->mu;
    used u = {PO_NEW_N(g->arena, uint32_t, mu->n_tensors + 1),
              PO_NEW_N(g->arena, uint32_t, mu->n_labels + 1), 0, 0};
    for (uint32_t top = from; top != to; top = mu->nodes[top].next)
        for (uint32_t n = top; n != PO_NONE && po_mu_inside(mu, n, top); n = po_mu_next(mu, n)) {
            const po_mu_statement *s = &mu->nodes[n].statement;
            bool known = false;
            for (uint32_t l = 0; l < u.n_labels; l++)
                known |= u.labels[l] == mu->nodes[n].label;
            if (mu->nodes[n].kind == PO_MU_LOOP && !known)
                u.labels[u.n_labels++] = mu->nodes[n].label;
            if (mu->nodes[n].kind != PO_MU_STATEMENT)
                continue;
            for (uint32_t i = 0; i < s->n_in; i++)
                use_access(g, &u, &s->in[i]);
            use_access(g, &u, &s->out);
            const uint32_t filler = cg_filler_of(g, n);
            if (filler != PO_NONE) {
                const po_mu_access fetched = cg_filled_from(g, n, filler);
                use_access(g, &u, &fetched);
            }
        }
    return u;
}

/* Names that two phases have in common where they do the same: labels without the numbers at their
 * ends, tensors by what they are. */
static void give_names(cg *g, const used *u) {
    static const char *const kinds[] = {
        [PO_MU_INPUT] = "in",    [PO_MU_OUTPUT] = "out", [PO_MU_WEIGHT] = "weight",
        [PO_MU_TABLE] = "table", [PO_MU_DEVICE] = "map", [PO_MU_SHARED] = "block",
        [PO_MU_REGISTER] = "r"};
    for (uint32_t i = 0; i < u->n_tensors; i++) {
        cg_tensor *t = &g->tensor[u->tensors[i]];
        t->number = i;
        t->name = po_arena_printf(g->arena, "%s_%u", kinds[g->mu->tensors[u->tensors[i]].place], i);
    }
    for (uint32_t i = 0; i < u->n_labels; i++) {
        const char *name = g->mu->labels[u->labels[i]].name;
        size_t n = strlen(name);
        while (n > 1 && name[n - 1] >= '0' && name[n - 1] <= '9')
            n--;
        uint32_t again = 0;
        for (uint32_t j = 0; j < i; j++) {
            const char *other = g->mu->labels[u->labels[j]].name;
            size_t m = strlen(other);
            while (m > 1 && other[m - 1] >= '0' && other[m - 1] <= '9')
                m--;
            again += m == n && memcmp(name, other, n) == 0;
        }
        g->label[u->labels[i]] = again
                                     ? po_arena_printf(g->arena, "%.*s%u", (int)n, name, again + 1)
                                     : po_arena_printf(g->arena, "%.*s", (int)n, name);
    }
}

/* Where a tensor is, as the call has it. */
static const char *place_of(cg *g, uint32_t tensor) {
    const po_mu_tensor *t = &g->mu->tensors[tensor];
    const char *offset =
        g->tensor[tensor].open
            ? g->tensor[tensor].open
            : po_arena_printf(g->arena, "%lld", (long long)g->tensor[tensor].offset);
    switch (t->place) {
    case PO_MU_INPUT:
        return po_arena_printf(g->arena, "(float *)call->in[%u]", t->number);
    case PO_MU_WEIGHT:
        return po_arena_printf(g->arena, "(float *)call->weight[%u]",
                               g->weight ? g->weight[t->number] : t->number);
    case PO_MU_OUTPUT:
        return po_arena_printf(g->arena, "call->out[%u]", t->number);
    case PO_MU_DEVICE:
        return po_arena_printf(g->arena, "call->device + %s", offset);
    case PO_MU_SHARED:
        return po_arena_printf(g->arena, "scratch + %s", offset);
    case PO_MU_TABLE:
        return po_arena_printf(g->arena, "(float *)%s_table%u", g->symbol, tensor);
    case PO_MU_REGISTER:
        break;
    }
    return "NULL";
}

/* Declares the tensors of a phase that some of its nodes use. */
static void pointers(cg *g, const used *some) {
    for (uint32_t i = 0; i < g->n_at; i++) {
        po_mu_place place = g->mu->tensors[g->at[i]].place;
        bool constant = place == PO_MU_INPUT || place == PO_MU_WEIGHT || place == PO_MU_TABLE;
        bool has = false;
        for (uint32_t k = 0; k < some->n_tensors; k++)
            has |= some->tensors[k] == g->at[i];
        if (place != PO_MU_REGISTER && has)
            cg_line(g, "%sfloat *const restrict %s = at[%u];", constant ? "const " : "",
                    g->tensor[g->at[i]].name, i);
    }
}

typedef struct function {
    uint32_t number;
    const char *sizes; /* what is passed as its z */
} function;

/* A function of its own for a text; one that was printed before where it is the same. */
static function function_of(cg *g, const char *kind, const char *parameters, const po_text *text) {
    function f = {0, NULL};
    const char *own = cg_own_sizes(g, text->data, &f.sizes);
    const char *whole = po_arena_printf(g->arena, "(%s) {\n%s}\n\n", parameters, own);
    po_codegen_file *all = g->shared;
    po_bytes bytes = {whole, strlen(whole)};
    for (; f.number < all->n; f.number++)
        if (all->functions[f.number].size == bytes.size &&
            memcmp(all->functions[f.number].data, whole, bytes.size) == 0)
            return f;
    PO_PUSH(all->arena, all->functions, all->n, all->cap, bytes);
    po_text_printf(g->file, "%s void %s_body%u", kind, all->first, f.number);
    po_text_add(g->file, whole, bytes.size);
    return f;
}

/* A statement that reduces, as a function: within a larger one the compiler keeps constants of
 * other statements in registers, and accumulators in memory. */
static po_status piece(cg *g, uint32_t node, uint32_t *next) {
    po_text *out = g->out, text, parameters, arguments;
    uint32_t depth = g->depth, led = cg_led_by(g, node);
    uint32_t to = g->mu->nodes[led == PO_NONE ? node : led].next;
    while (to != PO_NONE && g->mu->nodes[to].kind == PO_MU_STATEMENT &&
           g->mu->nodes[to].statement.fused)
        to = g->mu->nodes[to].next;
    used some = used_by(g, node, to);
    po_text_init(&text, g->arena);
    po_text_init(&parameters, g->arena);
    po_text_init(&arguments, g->arena);
    po_text_puts(&parameters, "float *const *at, const long *restrict z");
    po_text_puts(&arguments, "");
    for (uint32_t i = 0; i < some.n_labels; i++) {
        const cg_span *span = &g->span[some.labels[i]];
        const char *name = g->label[some.labels[i]];
        if (span->start != NULL) {
            po_text_printf(&parameters, ", long %s", span->start);
            po_text_printf(&arguments, ", %s", span->start);
        }
        if (span->start != NULL && span->count != NULL) {
            po_text_printf(&parameters, ", long n_%s", name);
            po_text_printf(&arguments, ", n_%s", name);
        }
    }
    cg_offsets offsets = {0};
    g->out = &text;
    g->depth = 1;
    g->offsets = &offsets;
    cg_line(g, "(void)z;");
    pointers(g, &some);
    po_status status = cg_group(g, node, next);
    g->out = out;
    g->depth = depth;
    g->offsets = NULL;
    PO_TRY(status);
    for (uint32_t i = 0; i < offsets.n; i++) {
        po_text_printf(&parameters, ", long o_%u", i);
        po_text_printf(&arguments, ", 0%s", offsets.list[i].text);
    }
    const function f = function_of(g, "PK_BIG", parameters.data, &text);
    cg_line(g, "%s_body%u(at, %s%s);", g->shared->first, f.number, f.sizes, arguments.data);
    return PO_OK;
}

/* The body of a phase: a function of where its tensors are. */
static po_status body(cg *g, const used *u, uint32_t from, uint32_t to, bool grid) {
    for (uint32_t i = 0; i < g->mu->n_labels; i++)
        unbind(g, i);
    pointers(g, u);
    for (uint32_t i = 0; i < u->n_tensors; i++) {
        const po_mu_tensor *t = &g->mu->tensors[u->tensors[i]];
        if (t->place != PO_MU_SHARED || !po_mu_has_ring(t))
            continue;
        po_text value;
        po_text_init(&value, g->arena);
        cg_number(&value, t->fill);
        cg_line(g, "for (long i = 0; i < %s; i++)", cg_length(g, g->open->floats[u->tensors[i]]));
        cg_line(g, "    %s[i] = %s;", g->tensor[u->tensors[i]].name, value.data);
    }
    uint32_t braces = 0;
    if (grid) {
        uint32_t nest[PO_MU_MAX_DEPTH];
        const uint32_t n = cg_deal(g, from, nest, &braces);
        for (uint32_t i = 0; i < n; i++)
            bind(g, nest[i]);
        PO_TRY(children(g, nest[n - 1]));
    } else {
        for (uint32_t n = from; n != to;)
            PO_TRY(one(g, n, &n));
    }
    while (braces-- > 0)
        cg_close(g);
    return PO_OK;
}

/* Floats from the first to the last of n steps along an axis; what lies between two steps may be
 * another tensor's behind the last. */
static const char *span_of(cg *g, uint32_t tensor, uint32_t axis, int64_t n) {
    const po_mu_tensor *t = &g->mu->tensors[tensor];
    const po_dim *dim = g->open->dim[tensor], *stride = g->open->stride[tensor];
    cg_terms sum = cg_terms_start(g);
    cg_terms_add(g, &sum, 1, PO_DIM(1));
    cg_terms_add(g, &sum, n - 1, stride[axis]);
    for (uint32_t a = axis + 1; a < t->rank; a++) {
        cg_terms_add(g, &sum, 1, po_size_mul(g->arena, dim[a], stride[a]));
        cg_terms_add(g, &sum, t->before[a] + t->after[a] - 1, stride[a]);
    }
    return po_arena_printf(g->arena, "(size_t)(0%s)", cg_terms_text(g, &sum));
}

/* Fills n steps from that behind `dims` of the axis and `from` more. */
static void fill(cg *g, uint32_t tensor, uint32_t axis, bool behind, int64_t n, const char *at) {
    const po_mu_tensor *t = &g->mu->tensors[tensor];
    const po_dim stride = g->open->stride[tensor][axis];
    po_text value;
    po_text_init(&value, g->arena);
    cg_number(&value, t->fill);
    cg_terms from = cg_terms_start(g);
    if (behind) {
        cg_terms_add(g, &from, t->before[axis], stride);
        cg_terms_add(g, &from, 1, po_size_mul(g->arena, g->open->dim[tensor][axis], stride));
    }
    if (n > 0)
        cg_line(g, "pk_fill(%s%s, %s, %s);", at, cg_terms_text(g, &from),
                span_of(g, tensor, axis, n), value.data);
}

/* Fills what lies round a tensor: whole spans of memory, outer axes first. Part by part along the
 * first axis that has some length; what lies outside of that is the first part's. */
static function ring(cg *g, uint32_t tensor) {
    const po_mu_tensor *t = &g->mu->tensors[tensor];
    po_text *out = g->out, text;
    const char *at = "t";
    bool dealt = false;
    uint32_t last = t->rank - 1;
    while (t->before[last] == 0 && t->after[last] == 0)
        last--;
    po_text_init(&text, g->arena);
    po_text_puts(&text, "    (void)part, (void)parts, (void)z;\n");
    g->out = &text;
    g->depth = 1;
    for (uint32_t a = 0; a <= last; a++) {
        const char *dim = cg_length(g, g->open->dim[tensor][a]);
        const bool many = strcmp(dim, "1") != 0 && strcmp(dim, "0") != 0;
        bool alone = !dealt && (t->before[a] > 0 || t->after[a] > 0);
        if (alone)
            cg_open(g, "if (part == 0)");
        fill(g, tensor, a, false, t->before[a], at);
        fill(g, tensor, a, true, t->after[a], at);
        if (alone)
            cg_close(g);
        if (a == last)
            break;
        bool deal = !dealt && many;
        if (deal)
            cg_open(g,
                    "for (size_t i%u = (size_t)%s * part / parts; i%u < (size_t)%s * (part + 1) / "
                    "parts; i%u++)",
                    a, dim, a, dim, a);
        else
            cg_open(g, "for (size_t i%u = 0; i%u < (size_t)%s; i%u++)", a, a, dim, a);
        dealt |= deal;
        at = po_arena_printf(g->arena, "%s + (i%u + %lldul) * (size_t)%s", at, a,
                             (long long)t->before[a], cg_length(g, g->open->stride[tensor][a]));
    }
    while (g->depth > 1)
        cg_close(g);
    g->out = out;
    g->depth = 0;
    return function_of(g, "PK_OWN", "float *t, const long *restrict z, size_t part, size_t parts",
                       &text);
}

/* Whether one of the nodes [from, to) is the first to write a tensor whose ring is to be filled. */
static bool starts_inside(const cg *g, uint32_t tensor, uint32_t from, uint32_t to) {
    uint32_t writer = g->tensor[tensor].filled_by;
    for (uint32_t n = from; writer != PO_NONE && n != to; n = g->mu->nodes[n].next)
        if (po_mu_inside(g->mu, writer, n))
            return true;
    return false;
}

static po_status phase(cg *g, uint32_t number, uint32_t from, uint32_t to, bool grid) {
    used u = used_by(g, from, to);
    give_names(g, &u);
    g->at = u.tensors;
    g->n_at = u.n_tensors;
    po_text *out = g->file = g->out, text;
    po_text_init(&text, g->arena);
    po_text_puts(&text, "    (void)part, (void)parts, (void)z;\n");
    g->out = &text;
    g->depth = 1;
    po_status status = body(g, &u, from, to, grid);
    g->out = out;
    g->depth = 0;
    PO_TRY(status);
    po_text_puts(out, "\n");
    const function f = function_of(g, "PK_OWN",
                                   "float *const *at, const long *restrict z, size_t part, "
                                   "size_t parts",
                                   &text);
    function *rings = PO_NEW_N(g->arena, function, u.n_tensors + 1);
    for (uint32_t i = 0; i < u.n_tensors; i++)
        if (starts_inside(g, u.tensors[i], from, to))
            rings[i] = ring(g, u.tensors[i]);
    const char *parts = grid ? "call->parts" : "1";
    cg_open(g, "PK_OWN void %s_%u(void *arg, size_t part)", g->symbol, number);
    cg_line(g, "/* %s */", cg_comment(g, g->step));
    cg_line(g, "const %s_call *const call = arg;", g->symbol);
    cg_line(g, "const long *const z = call->z;");
    cg_line(g, "float *const scratch = call->scratch + part * (size_t)z[1];");
    cg_line(g, "(void)scratch, (void)z;");
    cg_line(g, "float *const at[] = {");
    for (uint32_t i = 0; i < u.n_tensors; i++)
        if (g->mu->tensors[u.tensors[i]].place == PO_MU_REGISTER)
            cg_line(g, "    NULL,");
        else
            cg_line(g, "    %s, /* %s */", place_of(g, u.tensors[i]),
                    cg_comment(g, g->mu->tensors[u.tensors[i]].name));
    cg_line(g, "};");
    for (uint32_t i = 0; i < u.n_tensors; i++)
        if (rings[i].sizes != NULL)
            cg_line(g, "%s_body%u(%s, %s, part, %s);", g->shared->first, rings[i].number,
                    place_of(g, u.tensors[i]), rings[i].sizes, parts);
    cg_line(g, "%s_body%u(at, %s, part, %s);", g->shared->first, f.number, f.sizes, parts);
    cg_close(g);
    return PO_OK;
}

static bool is_grid(const po_mu *mu, uint32_t node) {
    return mu->nodes[node].kind == PO_MU_LOOP && mu->nodes[node].loop == PO_MU_GRID;
}

/* Phases of fewer cycles ask the file's own limit, PK_LEAST. */
enum { MOST_SMALL = 1000000 };

static po_status phases(cg *g, po_text *calls) {
    uint32_t number = 0;
    for (uint32_t step = g->mu->first; step != PO_NONE; step = g->mu->nodes[step].next) {
        g->step = g->mu->nodes[step].name == NULL ? "" : g->mu->nodes[step].name;
        for (uint32_t from = g->mu->nodes[step].first; from != PO_NONE;) {
            bool grid = is_grid(g->mu, from);
            uint32_t to = g->mu->nodes[from].next;
            while (!grid && to != PO_NONE && !is_grid(g->mu, to))
                to = g->mu->nodes[to].next;
            PO_TRY(phase(g, number, from, to, grid));
            double cycles = cg_cycles(g, from, to);
            if (grid && cycles < MOST_SMALL)
                po_text_printf(calls,
                               "    if (%.0f < PK_LEAST)\n        %s_%u(&one, 0);\n    else\n    ",
                               cycles, g->symbol, number);
            if (grid)
                po_text_printf(calls, "    pool->run(pool->self, %s_%u, &call);\n", g->symbol,
                               number);
            else
                po_text_printf(calls, "    %s_%u(&call, 0);\n", g->symbol, number);
            number++;
            from = to;
        }
    }
    return PO_OK;
}

/* --- the file's text --- */

static void tables(cg *g) {
    for (uint32_t i = 0; i < g->mu->n_tensors; i++) {
        const po_mu_tensor *t = &g->mu->tensors[i];
        if (t->place != PO_MU_TABLE)
            continue;
        int64_t n = po_mu_elements(t);
        po_text_printf(g->out, "\nstatic const float %s_table%u[] = {", g->symbol, i);
        for (int64_t k = 0; k < n; k++) {
            po_text_puts(g->out, k % 8 == 0 ? "\n    " : " ");
            cg_number(g->out, po_rational_f64(t->table[k]));
            po_text_puts(g->out, ",");
        }
        po_text_puts(g->out, "\n};\n");
    }
}

static bool is_first_at(const cg *g, uint32_t tensor) {
    for (uint32_t i = 0; i < tensor; i++)
        if (g->mu->tensors[i].place == PO_MU_DEVICE && cg_same_place(g, i, tensor) &&
            g->mu->tensors[i].floats != 0)
            return false;
    return true;
}

static void start(cg *g) {
    po_text_printf(g->out,
                   "\nvoid %s_start(float *device, const long *z);\n"
                   "void %s_start(float *device, const long *z) {\n",
                   g->symbol, g->symbol);
    po_text_puts(g->out, "    (void)device, (void)z;\n");
    for (uint32_t i = 0; i < g->mu->n_tensors; i++) {
        const po_mu_tensor *t = &g->mu->tensors[i];
        if (t->place != PO_MU_DEVICE || !po_mu_has_ring(t) || g->tensor[i].filled_by != PO_NONE ||
            !is_first_at(g, i))
            continue;
        const char *offset =
            g->tensor[i].open ? g->tensor[i].open
                              : po_arena_printf(g->arena, "%lld", (long long)g->tensor[i].offset);
        po_text_printf(g->out, "    for (long i = 0; i < %s; i++)\n        device[%s + i] = ",
                       cg_length(g, g->open->floats[i]), offset);
        cg_number(g->out, t->fill);
        po_text_puts(g->out, ";\n");
    }
    po_text_puts(g->out, "}\n");
}

const char cg_parameters[] = "const float *const *in, const float *const *weight, "
                             "float *const *out,\n          float *device, float *scratch, "
                             "const long *z, const pk_pool *pool";

po_status cg_program(cg *g) {
    po_text graph, calls;
    po_text_init(&graph, g->arena);
    po_text_init(&calls, g->arena);
    po_text_puts(&calls, "");
    po_mu_print(&graph, g->mu);
    po_text_puts(g->out, "\n/* ");
    po_text_puts(g->out, cg_comment(g, graph.data == NULL ? "" : graph.data));
    po_text_puts(g->out, " */\n");
    po_text_printf(g->out,
                   "typedef struct %s_call {\n"
                   "    const float *const *in, *const *weight;\n"
                   "    float *const *out;\n"
                   "    float *device, *scratch;\n"
                   "    const long *z;\n"
                   "    size_t parts;\n"
                   "} %s_call;\n",
                   g->symbol, g->symbol);
    tables(g);
    PO_TRY(phases(g, &calls));
    start(g);
    po_text_printf(g->out,
                   "\nvoid %s(%s);\nvoid %s(%s) {\n"
                   "    %s_call call = {in, weight, out, device, scratch, z, pool->parts}, one = "
                   "call;\n    one.parts = 1;\n    (void)call, (void)one;\n%s}\n",
                   g->symbol, cg_parameters, g->symbol, cg_parameters, g->symbol,
                   calls.data == NULL ? "" : calls.data);
    return PO_OK;
}
