/* What a step is: its places, as a hash that records go by, and in words. */
#include "cost/cuda/cost.h"

enum { STEP_LAYOUT = 1 };

/* --- places --- */

po_cuda_places po_cuda_step_places(po_arena *arena, po_cuda_step *step) {
    uint32_t n_args = step->kind == PO_CUDA_KERNEL ? step->u.kernel.launch->n_args : 0;
    po_cuda_places p = {.list = PO_NEW_N(arena, po_cuda_place *, n_args + 5)};
    if (step->kind == PO_CUDA_KERNEL) {
        po_cuda_place *args = PO_NEW_N(arena, po_cuda_place, n_args + 1);
        for (uint32_t i = 0; i < n_args; i++) {
            args[i] = step->u.kernel.args[i];
            p.list[i] = &args[i];
        }
        step->u.kernel.args = args;
        p.n = p.needed = n_args;
    } else if (step->kind == PO_CUDA_MATMUL) {
        po_cuda_matmul *m = &step->u.matmul;
        p.list[0] = &m->a, p.list[1] = &m->b, p.list[2] = &m->y;
        p.list[3] = &m->bias, p.list[4] = &m->c;
        p.n = 5, p.needed = 3;
    } else if (step->kind == PO_CUDA_CONV) {
        po_cuda_conv *c = &step->u.conv;
        p.list[0] = &c->x, p.list[1] = &c->w, p.list[2] = &c->y;
        p.list[3] = &c->bias, p.list[4] = &c->z;
        p.n = 5, p.needed = 3;
    } else {
        p.list[0] = &step->u.copy.from, p.list[1] = &step->u.copy.to;
        p.n = p.needed = 2;
    }
    return p;
}

/* --- a hash --- */

static po_hash mix(po_hash h, const int64_t *values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        h = po_hash_u64(h, (uint64_t)values[i]);
    return h;
}

/* Nothing, memory that steps pass on, or data that the plan brings. */
static po_hash mix_place(po_hash h, const po_cuda_plan *plan, po_cuda_place p) {
    return po_hash_u64(h, p.buffer == PO_NONE ? 0 : plan->buffers[p.buffer].data ? 2 : 1);
}

static po_hash matmul(po_hash h, const po_cuda_plan *plan, const po_cuda_matmul *m) {
    const int64_t values[] = {m->type,
                              m->type == PO_MU_F32 && m->tf32,
                              m->turn_a,
                              m->turn_b,
                              m->m,
                              m->n,
                              m->k,
                              m->batch,
                              m->apart_a,
                              m->apart_b,
                              m->apart_y,
                              m->batch > 1 ? m->step_a : 0,
                              m->act,
                              m->batch > 1 ? m->step_b : 0,
                              m->batch > 1 ? m->step_y : 0};
    h = mix(h, values, sizeof values / sizeof values[0]);
    h = mix_place(mix_place(h, plan, m->a), plan, m->b);
    if (m->c.buffer != PO_NONE)
        h = mix(h, (const int64_t[]){m->apart_c, m->batch > 1 ? m->step_c : 0}, 2);
    return mix_place(mix_place(h, plan, m->c), plan, m->bias);
}

static po_hash conv(po_hash h, const po_cuda_plan *plan, const po_cuda_conv *c) {
    const int64_t values[] = {c->type,    c->type == PO_MU_F32 && c->tf32,
                              c->spatial, c->channels_last,
                              c->n,       c->c,
                              c->k,       c->groups,
                              c->act};
    h = mix(h, values, sizeof values / sizeof values[0]);
    const int64_t *const each[] = {c->in,       c->kernel, c->out,  c->stride,
                                   c->dilation, c->before, c->after};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        h = mix(h, each[i], c->spatial);
    h = mix_place(mix_place(h, plan, c->x), plan, c->w);
    return mix_place(mix_place(h, plan, c->bias), plan, c->z);
}

static po_hash kernel(po_hash h, const po_cuda_plan *plan, const po_cuda_call *k) {
    const po_cuda_launch *l = k->launch;
    h = po_hash_u64(po_hash_u64(h, k->source.lo), k->source.hi);
    const int64_t values[] = {l->grid[0], l->grid[1], l->grid[2], l->threads, l->shared, l->n_args};
    h = mix(h, values, sizeof values / sizeof values[0]);
    for (uint32_t i = 0; i < l->n_args; i++)
        h = mix_place(h, plan, k->args[i]);
    return h;
}

po_hash po_cuda_step_hash(const po_cuda_plan *plan, const po_cuda_step *step) {
    po_hash h = po_hash_u64((po_hash){STEP_LAYOUT, 0}, (uint64_t)step->kind);
    switch (step->kind) {
    case PO_CUDA_KERNEL:
        return kernel(h, plan, &step->u.kernel);
    case PO_CUDA_MATMUL:
        return matmul(h, plan, &step->u.matmul);
    case PO_CUDA_CONV:
        return conv(h, plan, &step->u.conv);
    case PO_CUDA_COPY:
        break;
    }
    h = mix_place(mix_place(h, plan, step->u.copy.from), plan, step->u.copy.to);
    return po_hash_u64(h, (uint64_t)step->u.copy.bytes);
}

/* --- words --- */

static const char *type_text(po_mu_type type, bool tf32) {
    return type == PO_MU_F16 ? "f16" : type == PO_MU_BF16 ? "bf16" : tf32 ? "TF32" : "f32";
}

static void dims(po_text *t, int64_t a, int64_t b, const int64_t *more, uint32_t n) {
    po_text_printf(t, "[%lld,%lld", (long long)a, (long long)b);
    for (uint32_t i = 0; i < n; i++)
        po_text_printf(t, ",%lld", (long long)more[i]);
    po_text_puts(t, "]");
}

static void numbers(po_text *t, const char *name, const int64_t *values, uint32_t n,
                    int64_t usual) {
    bool shown = false;
    for (uint32_t i = 0; i < n; i++)
        shown |= values[i] != usual;
    for (uint32_t i = 0; i < n && shown; i++)
        po_text_printf(t, "%s%lld", i ? "," : name, (long long)values[i]);
}

static const char *act_text(po_cuda_act act) {
    return act == PO_CUDA_RELU ? ", relu" : act == PO_CUDA_GELU_TANH ? ", gelu" : "";
}

const char *po_cuda_step_text(po_arena *arena, const po_cuda_step *step) {
    po_text t;
    po_text_init(&t, arena);
    po_text_puts(&t, step->what);
    if (step->kind == PO_CUDA_MATMUL) {
        const po_cuda_matmul *m = &step->u.matmul;
        po_text_puts(&t, ", ");
        if (m->batch > 1)
            po_text_printf(&t, "%lld times ", (long long)m->batch);
        dims(&t, m->m, m->k, NULL, 0);
        po_text_puts(&t, m->turn_a ? " turned by " : " by ");
        dims(&t, m->k, m->n, NULL, 0);
        po_text_printf(&t, "%s in %s%s%s", m->turn_b ? " turned" : "", type_text(m->type, m->tf32),
                       m->bias.buffer != PO_NONE ? ", bias" : "", act_text(m->act));
    } else if (step->kind == PO_CUDA_CONV) {
        const po_cuda_conv *c = &step->u.conv;
        po_text_puts(&t, ", ");
        dims(&t, c->n, c->c, c->in, c->spatial);
        po_text_puts(&t, " by ");
        dims(&t, c->k, c->groups > 0 ? c->c / c->groups : c->c, c->kernel, c->spatial);
        numbers(&t, " stride ", c->stride, c->spatial, 1);
        numbers(&t, " dilation ", c->dilation, c->spatial, 1);
        po_text_printf(&t, " in %s%s%s", type_text(c->type, c->tf32),
                       c->bias.buffer != PO_NONE ? ", bias" : "", act_text(c->act));
    } else if (step->kind == PO_CUDA_KERNEL) {
        const po_cuda_launch *l = step->u.kernel.launch;
        po_text_printf(&t, " (kernel %s, %u x %u x %u blocks of %u threads)", l->symbol, l->grid[0],
                       l->grid[1], l->grid[2], l->threads);
    } else {
        po_text_printf(&t, " (%lld bytes)", (long long)step->u.copy.bytes);
    }
    return t.data;
}
