/* R/T as text: "n c (h 2) w -> (2 n) c h w". */
#include "base/scan.h"
#include "ops/move/rt.h"
#include "ops/move/rt_internal.h"

#include <stdio.h>

/* --- printing --- */

typedef struct printer {
    po_text *text;
    const po_rt *rt;
    bool extents;
    char name[PO_RT_MAX_DIGITS][24];
    bool literal[PO_RT_MAX_DIGITS]; /* named by its extent */
} printer;

static const char *const axis_names[][6] = {
    {"n"}, {"n", "c"}, {"n", "c", "w"}, {"n", "c", "h", "w"}, {"n", "c", "d", "h", "w"},
};

/* Digits of an axis, from the largest step down. */
static uint32_t digits_of(const po_rt *rt, bool out, uint32_t axis, uint32_t *order) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < rt->n; i++) {
        const po_rt_digit *d = &rt->digits[i];
        if ((out ? d->out_axis : d->in_axis) != axis)
            continue;
        int64_t c = out ? d->out_coef : d->in_coef < 0 ? -d->in_coef : d->in_coef;
        uint32_t k = n++;
        for (; k; k--) {
            const po_rt_digit *e = &rt->digits[order[k - 1]];
            int64_t other = out ? e->out_coef : e->in_coef < 0 ? -e->in_coef : e->in_coef;
            if (other >= c)
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    return n;
}

/* The digit of an axis that bears the axis' name: the longest. */
static uint32_t longest(const po_rt *rt, const uint32_t *order, uint32_t n) {
    uint32_t best = order[0];
    for (uint32_t k = 1; k < n; k++)
        if (rt->digits[order[k]].extent > rt->digits[best].extent)
            best = order[k];
    return best;
}

static void name_digits(printer *p) {
    const po_rt *rt = p->rt;
    for (uint32_t x = 0; x < rt->in_rank; x++) {
        uint32_t order[PO_RT_MAX_DIGITS], n = digits_of(rt, false, x, order), number = 1;
        char axis[2] = {(char)('a' + x), 0};
        const char *name = rt->in_rank <= 5 ? axis_names[rt->in_rank - 1][x] : axis;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t i = order[k];
            bool taken = rt->digits[i].in_coef < 0;
            for (uint32_t j = 0; j < rt->n; j++)
                taken |= p->literal[j] && rt->digits[j].extent == rt->digits[i].extent;
            if (i == longest(rt, order, n)) {
                snprintf(p->name[i], sizeof p->name[i], "%s", name);
            } else if (!taken) {
                p->literal[i] = true;
                snprintf(p->name[i], sizeof p->name[i], "%lld", (long long)rt->digits[i].extent);
            } else {
                snprintf(p->name[i], sizeof p->name[i], "%s%u", name, ++number);
            }
        }
    }
}

static void print_axis(const printer *p, bool out, uint32_t x) {
    const po_rt *rt = p->rt;
    uint32_t order[PO_RT_MAX_DIGITS], n = digits_of(rt, out, x, order);
    int64_t base = out ? rt->out_base[x] : rt->in_base[x];
    int64_t dim = out ? rt->out_dims[x] : rt->in_dims[x], product = 1, end = base + 1;
    bool plain = base == 0;
    for (uint32_t k = n; k-- > 0;) {
        const po_rt_digit *d = &rt->digits[order[k]];
        plain &= (out ? d->out_coef : d->in_coef) == product;
        product *= d->extent;
        if (out || d->in_coef > 0)
            end += (out ? d->out_coef : d->in_coef) * (d->extent - 1);
    }
    plain &= product == dim;
    uint32_t unstated = n && plain && !p->extents ? longest(rt, order, n) : PO_NONE;
    if (n > 1)
        po_text_puts(p->text, "(");
    for (uint32_t k = 0; k < n; k++) {
        const po_rt_digit *d = &rt->digits[order[k]];
        int64_t c = out ? d->out_coef : d->in_coef, natural = 1;
        if (k + 1 < n) {
            const po_rt_digit *e = &rt->digits[order[k + 1]];
            natural = (out ? e->out_coef : e->in_coef) * e->extent;
        }
        po_text_printf(p->text, "%s%s%s", k ? " " : "", c < 0 ? "-" : "", p->name[order[k]]);
        if (!out && !p->literal[order[k]] && order[k] != unstated)
            po_text_printf(p->text, ":%lld", (long long)d->extent);
        if ((c < 0 ? -c : c) != (natural < 0 ? -natural : natural))
            po_text_printf(p->text, "*%lld", (long long)(c < 0 ? -c : c));
    }
    po_text_puts(p->text, n > 1 ? ")" : n ? "" : "1");
    if (base)
        po_text_printf(p->text, "%+lld", (long long)base);
    if (dim != end && (out || p->extents))
        po_text_printf(p->text, "=%lld", (long long)dim);
}

void po_rt_print(po_text *text, const po_rt *rt, bool extents) {
    printer p = {text, rt, extents, {{0}}, {false}};
    name_digits(&p);
    for (uint32_t x = 0; x < rt->in_rank; x++) {
        print_axis(&p, false, x);
        po_text_puts(text, " ");
    }
    po_text_puts(text, "->");
    for (uint32_t x = 0; x < rt->out_rank; x++) {
        po_text_puts(text, " ");
        print_axis(&p, true, x);
    }
}

/* --- parsing --- */

typedef struct item {
    const char *name; /* NULL: a 1, no digit */
    int64_t extent;   /* 0: not stated */
    int64_t coef;     /* its sign counts; 0: as the items below it give */
    bool negative;
    uint32_t axis;
    uint32_t partner; /* on the right: the digit's number on the left */
} item;

typedef struct half {
    item items[PO_RT_MAX_VARS];
    uint32_t n, rank, first[PO_RT_MAX_RANK + 1]; /* items of axis x: first[x] .. first[x + 1] */
    int64_t base[PO_RT_MAX_RANK], dim[PO_RT_MAX_RANK]; /* 0: not stated */
} half;

static po_status parse_positive(po_scan *scan, int64_t *value) {
    PO_TRY(po_scan_i64(scan, value));
    return *value >= 1 && *value <= po_rt_most ? PO_OK
                                               : po_scan_fail(scan, "a number must be from 1 on");
}

static bool digit_next(po_scan *scan) {
    char c = po_scan_peek(scan);
    return c >= '0' && c <= '9';
}

static po_status parse_item(po_scan *scan, half *h) {
    if (h->n == PO_RT_MAX_VARS)
        return po_scan_fail(scan, "too many digits (limit %d)", PO_RT_MAX_VARS);
    item *i = &h->items[h->n];
    *i = (item){.axis = h->rank};
    i->negative = po_scan_take(scan, "-");
    bool number = digit_next(scan);
    const char *start = scan->at;
    if (number)
        PO_TRY(parse_positive(scan, &i->extent));
    else
        PO_TRY(po_scan_name(scan, &i->name));
    if (number && i->extent > 1)
        i->name = po_arena_printf(scan->arena, "%lld", (long long)i->extent);
    if (number && i->negative)
        return po_scan_fail(scan, "a digit that runs backwards needs a name");
    if (scan->at == start)
        return po_scan_fail(scan, "expected a digit");
    if (!number && po_scan_take(scan, ":"))
        PO_TRY(parse_positive(scan, &i->extent));
    if (po_scan_take(scan, "*"))
        PO_TRY(parse_positive(scan, &i->coef));
    if (i->name)
        h->n++;
    return PO_OK;
}

static bool at_base(po_scan *scan) {
    if (po_scan_is(scan, "+"))
        return true;
    if (!po_scan_is(scan, "-") || po_scan_is(scan, "->"))
        return false;
    return scan->at[1] >= '0' && scan->at[1] <= '9';
}

static po_status parse_axis(po_scan *scan, half *h) {
    if (h->rank == PO_RT_MAX_RANK)
        return po_scan_fail(scan, "too many axes (limit %d)", PO_RT_MAX_RANK);
    h->first[h->rank] = h->n;
    if (po_scan_take(scan, "(")) {
        while (!po_scan_take(scan, ")"))
            PO_TRY(parse_item(scan, h));
    } else {
        PO_TRY(parse_item(scan, h));
    }
    if (at_base(scan)) {
        bool negative = po_scan_take(scan, "-");
        int64_t base;
        if (!negative)
            po_scan_take(scan, "+");
        PO_TRY(parse_positive(scan, &base));
        h->base[h->rank] = negative ? -base : base;
    }
    if (po_scan_take(scan, "="))
        PO_TRY(parse_positive(scan, &h->dim[h->rank]));
    h->first[++h->rank] = h->n;
    return PO_OK;
}

static po_status parse_half(po_scan *scan, half *h, const char *end) {
    while (end ? !po_scan_is(scan, end) : !po_scan_at_end(scan))
        PO_TRY(parse_axis(scan, h));
    return PO_OK;
}

/* The extent that is not stated, from the axis' length. */
static po_status solve_extent(po_scan *scan, const half *h, uint32_t axis, item *missing) {
    int64_t product = 1, base = h->base[axis], dim = h->dim[axis];
    if (!dim)
        return po_scan_fail(scan, "the extent of '%s' is not stated", missing->name);
    uint32_t n = h->first[axis + 1] - h->first[axis];
    for (uint32_t k = h->first[axis]; k < h->first[axis + 1]; k++) {
        const item *i = &h->items[k];
        if (n > 1 && (i->coef || i->negative))
            return po_scan_fail(scan, "the extent of '%s' is not stated", missing->name);
        if (i != missing && !po_mul_i64(product, i->extent, &product))
            return po_scan_fail(scan, "extents overflow");
    }
    if (n == 1) {
        int64_t step = missing->coef ? missing->coef : 1;
        missing->extent = (missing->negative ? base : dim - 1 - base) / step + 1;
        if (base < 0 || base >= dim)
            return po_scan_fail(scan, "the extent of '%s' is not stated", missing->name);
        return PO_OK;
    }
    if (base || dim % product)
        return po_scan_fail(scan, "%lld is no multiple of %lld", (long long)dim,
                            (long long)product);
    missing->extent = dim / product;
    return PO_OK;
}

static po_status solve_extents(po_scan *scan, half *left) {
    for (uint32_t x = 0; x < left->rank; x++) {
        item *missing = NULL;
        for (uint32_t k = left->first[x]; k < left->first[x + 1]; k++) {
            item *i = &left->items[k];
            if (i->extent)
                continue;
            if (missing)
                return po_scan_fail(scan, "the extents of '%s' and '%s' are not stated",
                                    missing->name, i->name);
            missing = i;
        }
        if (missing)
            PO_TRY(solve_extent(scan, left, x, missing));
    }
    return PO_OK;
}

/* Steps that are not stated, and lengths. */
static po_status solve_steps(po_scan *scan, half *h) {
    for (uint32_t x = 0; x < h->rank; x++) {
        int64_t next = 1, end = h->base[x] + 1, reach;
        for (uint32_t k = h->first[x + 1]; k-- > h->first[x];) {
            item *i = &h->items[k];
            if (!i->coef)
                i->coef = next;
            if (i->coef > po_rt_most || i->extent > po_rt_most ||
                !po_mul_i64(i->coef, i->extent, &next) ||
                !po_mul_i64(i->coef, i->extent - 1, &reach) ||
                !po_add_i64(end, i->negative ? 0 : reach, &end))
                return po_scan_fail(scan, "a step is too large");
            if (i->negative)
                i->coef = -i->coef;
        }
        if (!h->dim[x])
            h->dim[x] = end;
        if (h->dim[x] < 1)
            return po_scan_fail(scan, "axis %u is empty", x);
    }
    return PO_OK;
}

static po_status pair(po_scan *scan, half *left, half *right, po_rt_digit *digits) {
    bool used[PO_RT_MAX_VARS] = {false};
    if (left->n != right->n)
        return po_scan_fail(scan, "the two sides have %u and %u digits", left->n, right->n);
    for (uint32_t i = 0; i < left->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(left->items[i].name, left->items[k].name) == 0)
                return po_scan_fail(scan, "'%s' stands twice on the left", left->items[i].name);
    for (uint32_t k = 0; k < right->n; k++) {
        item *r = &right->items[k];
        uint32_t found = PO_NONE;
        for (uint32_t i = 0; i < left->n && found == PO_NONE; i++)
            if (!used[i] && strcmp(left->items[i].name, r->name) == 0)
                found = i;
        if (found == PO_NONE)
            return po_scan_fail(scan, "'%s' does not stand on the left", r->name);
        item *l = &left->items[found];
        if (r->extent && r->extent != l->extent)
            return po_scan_fail(scan, "'%s' has two extents", r->name);
        used[found] = true;
        r->extent = l->extent;
        digits[found] = (po_rt_digit){l->extent, l->axis, r->axis, l->coef, 0};
        r->partner = found;
    }
    return PO_OK;
}

static po_status parse_sides(po_scan *scan, half *left, half *right, uint32_t rank,
                             const int64_t *dims, po_rt_digit *digits) {
    PO_TRY(parse_half(scan, left, "->"));
    PO_TRY(po_scan_need(scan, "->"));
    PO_TRY(parse_half(scan, right, NULL));
    if (dims && left->rank != rank)
        return po_scan_fail(scan, "the input has %u axes, not %u", rank, left->rank);
    for (uint32_t x = 0; dims && x < rank; x++) {
        if (left->dim[x] && left->dim[x] != dims[x])
            return po_scan_fail(scan, "axis %u has length %lld, not %lld", x, (long long)dims[x],
                                (long long)left->dim[x]);
        left->dim[x] = dims[x];
    }
    PO_TRY(solve_extents(scan, left));
    PO_TRY(solve_steps(scan, left));
    return pair(scan, left, right, digits);
}

po_status po_rt_parse(po_ctx *ctx, po_arena *arena, const char *text, uint32_t rank,
                      const int64_t *dims, const po_rt **rt) {
    po_rt_digit digits[PO_RT_MAX_VARS];
    po_scan scan;
    half *left = PO_NEW(arena, half), *right = PO_NEW(arena, half);
    po_scan_init(&scan, ctx, arena, text);
    PO_TRY(parse_sides(&scan, left, right, rank, dims, digits));
    PO_TRY(solve_steps(&scan, right));
    for (uint32_t k = 0; k < right->n; k++)
        digits[right->items[k].partner].out_coef = right->items[k].coef;
    *rt = po_rt_create(arena, &(po_rt){left->rank, right->rank, left->n, left->dim, right->dim,
                                       left->base, right->base, digits});
    return *rt ? PO_OK : po_scan_fail(&scan, "this moves nothing, or two elements to one place");
}
