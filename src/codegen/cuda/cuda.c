/* The CUDA printer: kernels, loops, launches. */
#include "codegen/cuda/internal.h"

#include "codegen/delivery/shipped.h"

enum { DEFAULT_LIMIT = 99 * 1024, MOST_BLOCKS_YZ = 65535, PART = 32 /* floats of partial sums */ };

/* --- names --- */

static const char *sane(cu *c, const char *prefix, uint32_t number, const char *name) {
    char *text = po_arena_printf(c->arena, "%s%u_%s", prefix, number, name);
    for (char *at = text; *at != '\0'; at++)
        if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') &&
            !(*at >= '0' && *at <= '9'))
            *at = '_';
    return text;
}

/* --- statements --- */

void cu_wait(cu *c) {
    if (c->pending)
        cg_line(&c->g, "pc_wait<0>();");
    c->pending = false;
}

static void barrier(cu *c, const char *reason) {
    cu_wait(c);
    cg_line(&c->g, "pc_barrier(); /* %s */", cg_comment(&c->g, reason));
}

static void about(cu *c, uint32_t node) {
    const po_mu_statement *s = &c->mu->nodes[node].statement;
    static const char *const signs[] = {
        [PO_MU_SET] = "=", [PO_MU_ADD] = "+=", [PO_MU_MAXIMUM] = "max="};
    po_text text;
    po_text_init(&text, c->arena);
    for (uint32_t k = 0; k < s->n_in; k++)
        po_text_printf(&text, "%s%s", k ? ", " : " of ", c->mu->tensors[s->in[k].tensor].name);
    cg_line(&c->g, "/* %s %s%s */", cg_comment(&c->g, c->mu->tensors[s->out.tensor].name),
            signs[s->combine], cg_comment(&c->g, text.data == NULL ? "" : text.data));
}

static po_status statement(cu *c, uint32_t node) {
    const cu_node *n = &c->node[node];
    if (n->pipelined)
        return PO_OK;
    po_text_puts(c->g.out, "\n");
    if (n->barrier)
        barrier(c, n->reason);
    about(c, node);
    switch (n->work) {
    case CU_MAP:
        return cu_print_map(c, node);
    case CU_COPY:
        return cu_print_copy(c, node, NULL);
    case CU_PRODUCT:
        return cu_print_product(c, node);
    case CU_FRAGMENT:
        return cu_print_fragment(c, node);
    case CU_TILE_SUM:
        return cu_print_tile_sum(c, node);
    case CU_TILE_ROW:
        return cu_print_tile_row(c, node);
    case CU_THREAD:
    case CU_ROWS:
    case CU_BLOCK:
    case CU_ONE:
        break;
    }
    return cu_print_rows(c, node);
}

/* --- loops --- */

static po_status children(cu *c, uint32_t parent);

/* `full`: the chunk is none that ends early. */
static void bind(cu *c, uint32_t loop, bool full) {
    const po_mu_label *label = &c->mu->labels[c->mu->nodes[loop].label];
    int64_t chunk = po_mu_chunk(c->mu, loop);
    c->value[c->mu->nodes[loop].label].start = po_arena_printf(c->arena, "b_%s", label->name);
    if (label->extent % chunk != 0 && full)
        cg_line(&c->g, "const int n_%s = %lld;", label->name, (long long)chunk);
    else if (label->extent % chunk != 0)
        cg_line(&c->g, "const int n_%s = min(%lld, %lld - b_%s);", label->name, (long long)chunk,
                (long long)label->extent, label->name);
}

/* Whether a copy is the loop's first one into its tensor: parts of it may come from several. */
static bool is_first_copy(const cu *c, uint32_t loop, uint32_t copy) {
    const po_mu_node *nodes = c->mu->nodes;
    uint32_t k = nodes[loop].first;
    while (k != copy && (nodes[k].kind != PO_MU_STATEMENT || !c->node[k].pipelined ||
                         nodes[k].statement.out.tensor != nodes[copy].statement.out.tensor))
        k = nodes[k].next;
    return k == copy;
}

static po_status copies(cu *c, uint32_t loop, const char *stage) {
    for (uint32_t k = c->mu->nodes[loop].first; k != PO_NONE; k = c->mu->nodes[k].next) {
        if (c->mu->nodes[k].kind != PO_MU_STATEMENT || !c->node[k].pipelined)
            continue;
        uint32_t tensor = c->mu->nodes[k].statement.out.tensor;
        const cu_tensor *t = &c->tensor[tensor];
        const char *at = po_arena_printf(c->arena, "%s_in", t->name);
        if (is_first_copy(c, loop, k))
            cg_line(&c->g, "%s *const %s = %s_all + (%s) * %lld;",
                    cu_c_type(c->mu->tensors[tensor].type), at, t->name, stage,
                    (long long)t->elements);
        PO_TRY(cu_print_copy(c, k, at));
    }
    cg_line(&c->g, "pc_commit();");
    return PO_OK;
}

static void buffers(cu *c, uint32_t loop, const char *stage) {
    for (uint32_t k = c->mu->nodes[loop].first; k != PO_NONE; k = c->mu->nodes[k].next) {
        if (c->mu->nodes[k].kind != PO_MU_STATEMENT || !c->node[k].pipelined)
            continue;
        uint32_t tensor = c->mu->nodes[k].statement.out.tensor;
        const cu_tensor *t = &c->tensor[tensor];
        if (is_first_copy(c, loop, k))
            cg_line(&c->g, "const %s *const %s = %s_all + %s * %lld;",
                    cu_c_type(c->mu->tensors[tensor].type), t->name, t->name, stage,
                    (long long)t->elements);
    }
}

static po_status loop(cu *c, uint32_t node) {
    const po_mu_node *n = &c->mu->nodes[node];
    const po_mu_label *label = &c->mu->labels[n->label];
    const char *name = label->name;
    long long extent = label->extent, chunk = po_mu_chunk(c->mu, node);
    uint32_t stages = c->node[node].stages;
    bool ahead = c->node[node].n_copies > 0 && stages > 1;
    po_text_puts(c->g.out, "\n");
    if (c->node[node].barrier)
        barrier(c, c->node[node].reason);
    if (ahead) {
        cg_brace(&c->g);
        cg_line(&c->g, "/* copies run %u chunks of %s ahead, in %u buffers */", stages - 1, name,
                stages);
        cg_line(&c->g, "#pragma unroll");
        cg_open(&c->g, "for (int stage = 0; stage < %u; stage++)", stages - 1);
        cg_line(&c->g, "const int b_%s = stage * %lld;", name, chunk);
        bind(c, node, true); /* there are more chunks than buffers ahead */
        PO_TRY(copies(c, node, "stage"));
        cg_close(&c->g);
        cg_line(&c->g, "int stage_%s = 0;", name);
    }
    cg_open(&c->g, "for (int b_%s = 0; b_%s < %lld; b_%s += %lld)", name, name, extent, name,
            chunk);
    if (ahead) {
        cg_line(&c->g, "pc_wait<%u>();", stages - 2);
        cg_line(&c->g,
                "pc_barrier(); /* this chunk's copies are there; the oldest buffer is free */");
        c->pending = false;
        cg_brace(&c->g);
        cg_line(&c->g, "const int next = b_%s + %lld;", name, (stages - 1) * chunk);
        cg_line(&c->g, "const int stage = stage_%s == 0 ? %u : stage_%s - 1;", name, stages - 1,
                name);
        cg_open(&c->g, "if (next < %lld)", extent);
        cg_line(&c->g, "const int b_%s = next;", name);
        bind(c, node, false);
        PO_TRY(copies(c, node, "stage"));
        c->g.depth--;
        cg_open(&c->g, "} else");
        cg_line(&c->g, "pc_commit();");
        cg_close(&c->g);
        cg_close(&c->g);
        bind(c, node, false);
        buffers(c, node, po_arena_printf(c->arena, "stage_%s", name));
    } else {
        bind(c, node, false);
        if (c->node[node].n_copies > 0) {
            if (extent > chunk)
                cg_line(&c->g, "pc_barrier(); /* the last chunk's copies were read */");
            PO_TRY(copies(c, node, "0"));
            cg_line(&c->g, "pc_wait<0>();");
            cg_line(&c->g, "pc_barrier(); /* the copies are there */");
            c->pending = false;
            buffers(c, node, "0");
        }
    }
    bool before = c->pending;
    PO_TRY(children(c, node));
    /* What the end of a chunk copies, the next one may read first of all. */
    if (c->pending && !before)
        cg_line(&c->g, "pc_wait<0>();");
    if (ahead)
        cg_line(&c->g, "stage_%s = stage_%s + 1 == %u ? 0 : stage_%s + 1;", name, name, stages,
                name);
    cg_close(&c->g);
    if (ahead)
        cg_close(&c->g);
    c->value[n->label].start = NULL;
    return PO_OK;
}

static po_status children(cu *c, uint32_t parent) {
    const po_mu *mu = c->mu;
    for (uint32_t t = 0; t < mu->n_tensors; t++) {
        uint32_t scope = mu->tensors[t].scope;
        if (c->tensor[t].fragment != 0 && mu->tensors[t].place == PO_MU_SHARED &&
            (scope == parent || (scope == PO_NONE && mu->nodes[parent].kind == PO_MU_STEP)))
            cu_declare_fragment(c, t);
    }
    for (uint32_t n = mu->nodes[parent].first; n != PO_NONE; n = mu->nodes[n].next) {
        if (mu->nodes[n].kind == PO_MU_STATEMENT)
            PO_TRY(statement(c, n));
        else
            PO_TRY(loop(c, n));
    }
    return PO_OK;
}

/* --- kernels --- */

typedef struct used {
    uint32_t n, tensor[64];
    bool written[64];
    bool many; /* more than there is room for */
} used;

static used used_by(const cu *c, uint32_t step) {
    used u = {0};
    const po_mu *mu = c->mu;
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n)) {
        const po_mu_statement *s = &mu->nodes[n].statement;
        if (mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        for (uint32_t k = 0; k <= s->n_in; k++) {
            uint32_t t = po_mu_touched(s, k), i = 0;
            while (i < u.n && u.tensor[i] != t)
                i++;
            if (i == 64) {
                u.many = true;
                continue;
            }
            u.n += i == u.n;
            u.tensor[i] = t;
            u.written[i] |= k == s->n_in;
        }
    }
    return u;
}

/* Blocks of a sample follow one another, and samples do. */
static const char *first_axis(const cu *c) {
    return c->options->batched ? "pc_block" : "blockIdx.x";
}

static const char *axis_name(const cu *c, uint32_t axis) {
    static const char *const names[] = {NULL, "blockIdx.y", "blockIdx.z"};
    return axis ? names[axis] : first_axis(c);
}

/* Tensors of the sample that the block works at. */
static void samples(cu *c, const used *u, uint32_t blocks) {
    if (!c->options->batched)
        return;
    cg_line(&c->g, "const unsigned pc_block = blockIdx.x %% %uu;", blocks);
    cg_line(&c->g, "const size_t pc_sample = blockIdx.x / %uu;", blocks);
    for (uint32_t i = 0; i < u->n; i++) {
        const po_mu_tensor *t = &c->mu->tensors[u->tensor[i]];
        const char *name = c->tensor[u->tensor[i]].name;
        if ((t->place == PO_MU_INPUT && c->options->batched[t->number]) || t->place == PO_MU_OUTPUT)
            cg_line(&c->g, "%s += pc_sample * %lld;", name, (long long)po_mu_elements(t));
        else if (t->place == PO_MU_DEVICE)
            cg_line(&c->g, "%s += pc_sample * %lld;", name,
                    (long long)(c->device / po_mu_bytes(t->type)));
    }
}

/* GRID loops: blockIdx by axes where they fit, else one number taken apart. The node whose children
 * are the block's. */
static uint32_t grid(cu *c, uint32_t step, const used *u, po_cuda_launch *launch) {
    const po_mu *mu = c->mu;
    uint32_t nest[PO_MU_MAX_DEPTH + CU_LABELS], n = 0, at = step;
    int64_t count[PO_MU_MAX_DEPTH + CU_LABELS], all = 1;
    while (mu->nodes[at].first != PO_NONE && mu->nodes[mu->nodes[at].first].kind == PO_MU_LOOP &&
           mu->nodes[mu->nodes[at].first].loop == PO_MU_GRID && n < PO_MU_MAX_DEPTH + CU_LABELS) {
        at = mu->nodes[at].first;
        count[n] = po_ceil_div(mu->labels[mu->nodes[at].label].extent, po_mu_chunk(mu, at));
        all = all * count[n] > INT32_MAX ? INT64_C(1) << 31 : all * count[n];
        nest[n++] = at;
    }
    launch->grid[0] = launch->grid[1] = launch->grid[2] = 1;
    bool axes = n <= 3;
    for (uint32_t i = 0; i + 1 < n; i++)
        axes &= count[i] <= MOST_BLOCKS_YZ;
    samples(c, u, axes ? (n ? (uint32_t)count[n - 1] : 1) : all > INT32_MAX ? 1 : (uint32_t)all);
    if (!axes)
        cg_line(&c->g, "int block = %s;", first_axis(c));
    for (uint32_t i = n; i-- > 0;) {
        const char *name = mu->labels[mu->nodes[nest[i]].label].name;
        long long chunk = po_mu_chunk(mu, nest[i]);
        uint32_t axis = n - 1 - i;
        if (axes) {
            launch->grid[axis] = (uint32_t)count[i];
            cg_line(&c->g, "const int b_%s = %s * %lld;", name, axis_name(c, axis), chunk);
        } else {
            cg_line(&c->g, "const int b_%s = block %% %lld * %lld;", name, (long long)count[i],
                    chunk);
            if (i > 0)
                cg_line(&c->g, "block /= %lld;", (long long)count[i]);
        }
        bind(c, nest[i], false);
    }
    if (!axes)
        launch->grid[0] = all > INT32_MAX ? 0 : (uint32_t)all;
    return at;
}

static void shared_pointers(cu *c, const used *u, uint32_t step) {
    const po_mu *mu = c->mu;
    for (uint32_t i = 0; i < u->n; i++) {
        const cu_tensor *t = &c->tensor[u->tensor[i]];
        const po_mu_tensor *m = &mu->tensors[u->tensor[i]];
        if (m->place != PO_MU_SHARED || t->fragment != 0)
            continue;
        bool copied = false;
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n))
            copied |= mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].pipelined &&
                      mu->nodes[n].statement.out.tensor == u->tensor[i];
        const char *type = cu_c_type(m->type);
        cg_line(&c->g, "%s *const %s%s = (%s *)(shared + %lld);", type, t->name,
                copied ? "_all" : "", type, (long long)t->offset);
    }
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(mu, n, step); n = po_mu_next(mu, n))
        if (mu->nodes[n].kind == PO_MU_STATEMENT && c->node[n].work == CU_BLOCK) {
            cg_line(&c->g, "float *const partial_%u = (float *)(shared + %lld);", n,
                    (long long)c->shared);
            c->shared += PART * INT64_C(4);
        }
    int64_t sums = cu_gather_bytes(c, step);
    if (sums > 0)
        cg_line(&c->g, "float *const sums = (float *)(shared + %lld);", (long long)c->shared);
    c->shared += sums;
}

/* The arguments of a kernel, and its parameters in the text. */
static void parameters(cu *c, const used *u, po_arena *arena, po_cuda_launch *launch) {
    po_cuda_arg *args = PO_NEW_N(arena, po_cuda_arg, u->n + 1);
    for (uint32_t i = 0; i < u->n; i++) {
        const po_mu_tensor *t = &c->mu->tensors[u->tensor[i]];
        po_cuda_arg arg = {.number = t->number};
        if (!cu_is_global(t))
            continue;
        arg.kind = t->place == PO_MU_INPUT    ? PO_CUDA_INPUT
                   : t->place == PO_MU_OUTPUT ? PO_CUDA_OUTPUT
                   : t->place == PO_MU_WEIGHT ? PO_CUDA_WEIGHT
                                              : PO_CUDA_DEVICE;
        if (arg.kind == PO_CUDA_DEVICE) {
            arg.number = 0;
            arg.offset = c->tensor[u->tensor[i]].offset;
        }
        po_text_printf(c->g.out, "%s%s%s *__restrict__ %s", launch->n_args ? ", " : "",
                       u->written[i] ? "" : "const ", cu_c_type(t->type),
                       c->tensor[u->tensor[i]].name);
        args[launch->n_args++] = arg;
    }
    launch->args = args;
}

static po_status kernel(cu *c, uint32_t step, uint32_t number, po_arena *arena, po_text *source,
                        po_cuda_launch *launch) {
    used u = used_by(c, step);
    if (u.many)
        return po_fail(c->ctx, PO_UNSUPPORTED, "step '%s': more than 64 tensors", c->step);
    po_text text;
    po_text_init(&text, c->arena);
    launch->symbol = po_arena_printf(arena, "%s_%u", c->symbol, number);
    launch->what = po_arena_strdup(arena, c->step);
    launch->threads = c->threads;
    launch->n_args = 0;
    c->g.out = &text;
    c->g.depth = 1;
    c->pending = false;
    memset(c->value, 0, (c->mu->n_labels + 1) * sizeof *c->value);
    for (uint32_t i = 0; i < u.n; i++) {
        const po_mu_tensor *t = &c->mu->tensors[u.tensor[i]];
        c->tensor[u.tensor[i]].name =
            t->place == PO_MU_TABLE
                ? po_arena_printf(c->arena, "%s_table%u", c->symbol, u.tensor[i])
                : sane(c, c->tensor[u.tensor[i]].fragment ? "r" : "t", u.tensor[i], t->name);
    }
    uint32_t inner = grid(c, step, &u, launch);
    if (launch->grid[0] == 0)
        return po_fail(c->ctx, PO_UNSUPPORTED, "step '%s': more than 2^31 blocks", c->step);
    shared_pointers(c, &u, step);
    PO_TRY(children(c, inner));
    launch->shared = (uint32_t)c->shared;
    c->g.out = source;
    c->g.depth = 0;
    po_text_printf(source,
                   "\n/* %s */\nextern \"C\" __global__ void __launch_bounds__(PC_BOUNDS(%u)) %s(",
                   cg_comment(&c->g, c->step), c->threads, launch->symbol);
    parameters(c, &u, arena, launch);
    po_text_puts(source, ") {\n");
    if (c->shared > 0)
        po_text_puts(source, "    PC_SHARED(shared);\n");
    if (c->n_fragments > 0)
        po_text_puts(source, "    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;\n");
    po_text_puts(source, text.data == NULL ? "" : text.data);
    po_text_puts(source, "}\n");
    return PO_OK;
}

/* --- all --- */

static void tables(cu *c, po_text *source) {
    for (uint32_t i = 0; i < c->mu->n_tensors; i++) {
        const po_mu_tensor *t = &c->mu->tensors[i];
        if (t->place != PO_MU_TABLE)
            continue;
        int64_t n = po_mu_elements(t);
        po_text_printf(source, "\nstatic __device__ const float %s_table%u[] = {", c->symbol, i);
        for (int64_t k = 0; k < n; k++) {
            po_text_puts(source, k % 8 == 0 ? "\n    " : " ");
            po_text_printf(source, "%s,", cu_literal(c, po_rational_f64(t->table[k])));
        }
        po_text_puts(source, "\n};\n");
    }
}

/* Plans a step with as many buffers as fit: few bytes, so that two blocks share a processor. */
static bool fits(cu *c, uint32_t step) {
    static const int64_t most[] = {[4] = INT64_C(64) * 1024, [3] = INT64_C(80) * 1024};
    for (c->stages = CU_STAGES;; c->stages--) {
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step);
             n = po_mu_next(c->mu, n))
            c->node[n] = (cu_node){0};
        for (uint32_t t = 0; t < c->mu->n_tensors; t++)
            if (c->mu->tensors[t].place == PO_MU_SHARED &&
                (c->mu->tensors[t].scope == PO_NONE ||
                 po_mu_step_of(c->mu, c->mu->tensors[t].scope) == step)) {
                c->tensor[t].fragment = 0;
                cu_layout(c, t);
            }
        cu_plan_step(c, step);
        cu_memory_shared(c, step);
        int64_t partial = cu_gather_bytes(c, step);
        for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step);
             n = po_mu_next(c->mu, n))
            partial += c->node[n].work == CU_BLOCK ? PART * 4 : 0;
        int64_t limit = c->stages > 2 && most[c->stages] < c->limit ? most[c->stages] : c->limit;
        if (c->shared + partial <= limit)
            return true;
        if (c->stages <= 1) {
            c->shared += partial;
            return false;
        }
    }
}

/* Statements of more labels than there is room for. */
static po_status labels(cu *c, uint32_t step) {
    for (uint32_t n = step; n != PO_NONE && po_mu_inside(c->mu, n, step);
         n = po_mu_next(c->mu, n)) {
        uint32_t n_kept, n_reduced, *kept, *reduced, run = 0, sums = 0;
        if (c->mu->nodes[n].kind != PO_MU_STATEMENT)
            continue;
        po_mu_labels_of(c->mu, &c->mu->nodes[n].statement, c->arena, &n_kept, &kept, &n_reduced,
                        &reduced);
        for (uint32_t i = 0; i < n_kept; i++)
            run += cu_count(c, n, kept[i]) > 1;
        for (uint32_t i = 0; i < n_reduced; i++)
            sums += cu_count(c, n, reduced[i]) > 1;
        if (run > CU_LABELS || sums > CU_LABELS)
            return po_fail(c->ctx, PO_UNSUPPORTED, "step '%s': a statement of %u labels, of %d",
                           c->step, run > sums ? run : sums, CU_LABELS);
    }
    return PO_OK;
}

static po_status steps(cu *c, const po_mu *mu, po_arena *arena, po_text *source, bool *unstaged,
                       uint32_t *again, po_cuda_program *program) {
    PO_TRY(cu_normal(c, mu));
    uint32_t n = 0, ordinal = 0;
    c->n_staged = 0;
    for (uint32_t s = c->mu->first; s != PO_NONE; s = c->mu->nodes[s].next, n++)
        if (n >= 4096 || !unstaged[n])
            cu_stage(c, s);
    c->node = PO_NEW_N(c->arena, cu_node, c->mu->n_nodes + 1);
    c->tensor = PO_NEW_N(c->arena, cu_tensor, c->mu->n_tensors + 1);
    c->value = PO_NEW_N(c->arena, cu_value, c->mu->n_labels + 1);
    for (uint32_t t = 0; t < c->mu->n_tensors; t++)
        cu_layout(c, t);
    for (uint32_t i = 0; i < c->n_staged; i++)
        c->tensor[c->staged[i]].staged = true;
    PO_TRY(cu_memory_device(c));
    po_cuda_launch *launches = PO_NEW_N(arena, po_cuda_launch, n + 1);
    tables(c, source);
    for (uint32_t s = c->mu->first; s != PO_NONE; s = c->mu->nodes[s].next, ordinal++) {
        c->step = c->mu->nodes[s].name == NULL ? "" : c->mu->nodes[s].name;
        if (c->mu->nodes[s].first == PO_NONE)
            continue;
        PO_TRY(labels(c, s));
        if (!fits(c, s)) {
            if (ordinal < 4096 && !unstaged[ordinal]) {
                *again = ordinal;
                return PO_OK;
            }
            return po_fail(c->ctx, PO_UNSUPPORTED,
                           "step '%s': a block keeps %lld bytes, of %lld that it may", c->step,
                           (long long)c->shared, (long long)c->limit);
        }
        cu_barriers(c, s);
        PO_TRY(kernel(c, s, program->n_launches, arena, source, &launches[program->n_launches]));
        program->n_launches++;
    }
    program->launches = launches;
    program->device = c->device;
    return PO_OK;
}

/* Every sample's tensors must be aligned as the first one's are. */
static po_status check_samples(po_ctx *ctx, const po_mu *mu, const bool *batched) {
    enum { ALIGN = 16 };
    for (uint32_t i = 0; i < mu->n_tensors && batched; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        int64_t bytes = po_mu_elements(t) * po_mu_bytes(t->type);
        bool each = t->place == PO_MU_OUTPUT || (t->place == PO_MU_INPUT && batched[t->number]);
        if (each && bytes % ALIGN != 0)
            return po_fail(ctx, PO_UNSUPPORTED, "a sample of '%s' is %lld bytes, no multiple of %d",
                           t->name, (long long)bytes, ALIGN);
    }
    return PO_OK;
}

po_status po_codegen_cuda(po_ctx *ctx, po_arena *arena, const po_mu *mu, const char *symbol,
                          const po_cuda_print_options *options, po_cuda_program *program) {
    PO_TRY(check_samples(ctx, mu, options->batched));
    po_arena *own = po_arena_child(arena);
    bool *unstaged = PO_NEW_N(own, bool, 4096);
    po_status status = PO_OK;
    for (uint32_t again = 0; again != PO_NONE && status == PO_OK;) {
        po_text source, graph;
        po_text_init(&source, arena);
        po_text_init(&graph, own);
        cu c = {.ctx = ctx, .arena = own, .options = options, .symbol = symbol};
        c.g.arena = own;
        c.g.ctx = ctx;
        c.limit = options->shared_limit > 0 ? options->shared_limit : DEFAULT_LIMIT;
        *program = (po_cuda_program){0};
        po_mu_print(&graph, mu);
        po_text_puts(&source, po_shipped_cuda_prelude_cu);
        po_text_printf(&source, "\n/* %s */\n",
                       cg_comment(&c.g, graph.data == NULL ? "" : graph.data));
        again = PO_NONE;
        status = steps(&c, mu, arena, &source, unstaged, &again, program);
        if (again != PO_NONE)
            unstaged[again] = true;
        program->source = source.data;
    }
    po_arena_free(own);
    return status;
}
