/* From muGraphs to what the library of a model holds. */
#include "codegen/delivery/library.h"

#include <inttypes.h>

static po_hash hash_ports(po_hash hash, const po_kernel_port *ports, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < ports[i].rank; d++) {
            hash = po_hash_u64(hash, (uint64_t)ports[i].dims[d]);
            if (ports[i].open[d].symbol)
                hash = po_hash_str(hash, ports[i].open[d].symbol);
        }
    return hash;
}

static bool any_open(const po_kernel_port *ports, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t d = 0; d < ports[i].rank; d++)
            if (ports[i].dims[d] < 0 || ports[i].open[d].symbol)
                return true;
    return false;
}

static po_hash hash_part(po_hash hash, const po_kernel_part *part) {
    const po_kernel_ports *ports = &part->ports;
    if (!part->open)
        return hash;
    const po_hash mu = po_mu_hash(part->open->mu);
    hash = po_hash_u64(po_hash_u64(hash, mu.lo), mu.hi);
    hash = hash_ports(hash_ports(hash, ports->in, ports->n_in), ports->out, ports->n_out);
    for (uint32_t i = 0; i < ports->n_in; i++)
        hash = po_hash_u64(hash, part->from[i]);
    for (uint32_t i = 0; i < part->n_meant; i++) {
        const po_size_range *r = &part->meant[i];
        hash = po_hash_str(hash, r->of.symbol);
        hash = po_hash_u64(po_hash_u64(hash, (uint64_t)r->least), (uint64_t)r->most);
    }
    return hash;
}

/* The name of the region that these muGraphs make, one for each instruction set (NULL: none); the
 * same one may stand for both. */
static const char *kernel_name(po_arena *arena, const po_kernel_print_spec *spec) {
    const po_kernel_ports *ports = spec->ports;
    const po_mu_open *const *mu = spec->mu;
    po_hash hash = {PO_KERNEL_ABI, PO_KERNEL_DOMAIN_VERSION};
    if (ports && (any_open(ports->in, ports->n_in) || any_open(ports->out, ports->n_out)))
        hash = hash_ports(hash_ports(hash, ports->in, ports->n_in), ports->out, ports->n_out);
    for (uint32_t i = 0; i < PO_ISAS; i++) {
        po_hash one = mu[i] ? po_mu_hash(mu[i]->mu) : (po_hash){0};
        hash = po_hash_u64(po_hash_u64(hash, one.lo), one.hi);
    }
    for (uint32_t k = 0; spec->others && k < spec->others->n; k++) {
        const po_kernel_other *other = &spec->others->program[k];
        po_hash one = po_mu_hash(other->open->mu);
        hash = po_hash_u64(po_hash_u64(hash, one.lo), one.hi);
        hash = po_hash_u64(po_hash_u64(hash, (uint64_t)other->least), (uint64_t)other->most);
        for (uint32_t i = 0; i < other->n_weights; i++)
            hash = po_hash_u64(hash, other->weight[i]);
    }
    if (spec->batched)
        hash = hash_part(hash_part(hash, &spec->batched->head), &spec->batched->rest);
    return po_arena_printf(arena, "R%016" PRIx64 "%08" PRIx64, hash.lo, hash.hi >> 32);
}

/* Tensors of a place by number; ones that a muGraph does not use are ports all the same. */
static uint32_t count(const po_mu *mu, po_mu_place place) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == place && mu->tensors[i].number >= n)
            n = mu->tensors[i].number + 1;
    return n;
}

static const po_kernel_port *ports(po_arena *arena, const po_mu *mu, po_mu_place place,
                                   uint32_t n) {
    po_kernel_port *list = PO_NEW_N(arena, po_kernel_port, n);
    for (uint32_t i = 0; i < mu->n_tensors; i++) {
        const po_mu_tensor *t = &mu->tensors[i];
        if (t->place != place)
            continue;
        list[t->number].rank = t->rank;
        memcpy(list[t->number].dims, t->dims, t->rank * sizeof *t->dims);
    }
    return list;
}

void po_kernel_set_ports(po_arena *arena, const po_mu *mu, po_kernel *region) {
    region->what = mu->name;
    region->n_in = count(mu, PO_MU_INPUT);
    region->n_out = count(mu, PO_MU_OUTPUT);
    region->n_weights = count(mu, PO_MU_WEIGHT);
    region->in = ports(arena, mu, PO_MU_INPUT, region->n_in);
    region->out = ports(arena, mu, PO_MU_OUTPUT, region->n_out);
    int64_t *floats = PO_NEW_N(arena, int64_t, region->n_weights);
    for (uint32_t i = 0; i < mu->n_tensors; i++)
        if (mu->tensors[i].place == PO_MU_WEIGHT)
            floats[mu->tensors[i].number] = po_mu_elements(&mu->tensors[i]);
    region->weight_floats = floats;
}

/* What the model has at the kernel's borders, and what is open of it. */
static po_status take_ports(po_ctx *ctx, const po_kernel_ports *ports, const po_mu_open *open,
                            po_kernel *region) {
    if (ports->n_in != region->n_in || ports->n_out != region->n_out)
        return po_fail(ctx, PO_INTERNAL, "kernel %s: its ports are not those of its muGraph",
                       region->name);
    region->in = ports->in;
    region->out = ports->out;
    if (ports->given) {
        region->given = ports->given;
        region->n_given = open->n_names;
        region->names = open->names;
        region->equal = ports->equal;
        region->n_equal = ports->n_equal;
    }
    return PO_OK;
}

static const char *part_name(po_arena *arena, const po_kernel *region, bool rest) {
    return po_arena_printf(arena, "%s_%s", region->name, rest ? "rest" : "head");
}

/* The whole's programs and those of its parts in one file: most of a head is in the whole too. */
static po_status print_code(po_ctx *ctx, po_arena *arena, const po_kernel_print_spec *spec,
                            uint32_t isa, po_kernel *region) {
    po_codegen_file file = {.arena = po_arena_create(ctx)};
    po_text text;
    po_text_init(&text, arena);
    po_codegen_prelude(&po_isas[isa], &text);
    const char *symbol = po_arena_printf(arena, "%s_%s", region->name, po_isas[isa].name);
    po_status status =
        po_codegen_kernel(ctx, spec->mu[isa], spec->others, &po_isas[isa], symbol, &file, &text);
    for (int rest = 0; rest < 2 && spec->batched && status == PO_OK; rest++) {
        const po_kernel_part *part = rest ? &spec->batched->rest : &spec->batched->head;
        symbol = po_arena_printf(arena, "%s_%s", part_name(arena, region, rest), po_isas[isa].name);
        if (part->open)
            status = po_codegen_kernel(ctx, part->open, NULL, &po_isas[isa], symbol, &file, &text);
    }
    po_arena_free(file.arena);
    region->code[isa] = text.data;
    return status;
}

/* A kernel of its own, for the instruction sets that the whole has. */
static po_status print_part(po_ctx *ctx, po_arena *arena, const po_kernel_part *part, bool rest,
                            const po_kernel *whole, const po_kernel **out) {
    if (!part->open)
        return PO_OK;
    po_kernel *k = PO_NEW(arena, po_kernel);
    *k = (po_kernel){.name = part_name(arena, whole, rest),
                     .meant = part->meant,
                     .n_meant = part->n_meant,
                     .from = part->from};
    memcpy(k->code, whole->code, sizeof k->code);
    po_kernel_set_ports(arena, part->open->mu, k);
    k->n_weights = whole->n_weights;
    k->weight_floats = whole->weight_floats;
    *out = k;
    return take_ports(ctx, &part->ports, part->open, k);
}

po_status po_kernel_print(po_ctx *ctx, po_arena *arena, const po_kernel_print_spec *spec,
                          po_kernel *region) {
    const po_mu_open *const *mu = spec->mu, *first = NULL;
    *region = (po_kernel){.name = kernel_name(arena, spec)};
    for (uint32_t i = 0; i < PO_ISAS; i++) {
        if (!mu[i])
            continue;
        first = first ? first : mu[i];
        PO_TRY(print_code(ctx, arena, spec, i, region));
    }
    if (!first)
        return po_fail(ctx, PO_INTERNAL, "a kernel without a muGraph");
    po_kernel_set_ports(arena, first->mu, region);
    if (spec->weights) {
        region->weight_floats = spec->weights;
        region->n_weights = spec->n_weights;
    }
    if (spec->ports)
        PO_TRY(take_ports(ctx, spec->ports, first, region));
    if (!spec->batched)
        return PO_OK;
    PO_TRY(print_part(ctx, arena, &spec->batched->head, false, region, &region->head));
    return print_part(ctx, arena, &spec->batched->rest, true, region, &region->rest);
}
