/* Indexed sums of operators that keep the data and change the shape. An element's flat position is
 * written in mixed-radix digits so that both shapes' indices are affine in them. Where the radices
 * do not nest (6x4 to 4x6) the positions are cut, once for each period, at every multiple of the
 * radices in question; each piece is a term. */
#include "base/num.h"
#include "ops/sem/rules_sem.h"

enum { MOST_WEIGHTS = 2 * PO_MAX_RANK + 2, MOST_PIECES = 256 };

/* Positions from weight a to weight b: a digit of extent b/a; or, where other weights lie between,
 * pieces [start, end) of each period. */
typedef struct block {
    int64_t a, b, period; /* period: b where there is none to speak of */
    uint32_t n_pieces;    /* 0: a digit */
    int64_t start[MOST_PIECES], end[MOST_PIECES];
} block;

static uint32_t add_weights(int64_t *weights, uint32_t n, uint32_t rank, const int64_t *dims) {
    int64_t w = 1;
    for (uint32_t i = rank + 1; i-- > 0;) {
        uint32_t k = n;
        for (; k && weights[k - 1] > w; k--)
            ;
        if (!k || weights[k - 1] != w) {
            memmove(&weights[k + 1], &weights[k], (n - k) * sizeof *weights);
            weights[k] = w;
            n++;
        }
        if (i)
            w *= dims[i - 1];
    }
    return n;
}

static bool is_anchor(const int64_t *weights, uint32_t n, uint32_t at) {
    for (uint32_t i = 0; i < n; i++)
        if (i < at ? weights[at] % weights[i] : weights[i] % weights[at])
            return false;
    return true;
}

/* The pieces between two anchors with the weights `middle` between them. */
static bool cut_block(block *b, const int64_t *middle, uint32_t n) {
    int64_t period = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t x = period, y = middle[i];
        while (y) {
            int64_t r = x % y;
            x = y;
            y = r;
        }
        /* It divides b, which is a multiple of each weight: no overflow. */
        period = period / x * middle[i];
    }
    b->period = period;
    for (int64_t at = 0; at < period;) {
        int64_t next = period;
        for (uint32_t i = 0; i < n; i++) {
            int64_t multiple = (at / middle[i] + 1) * middle[i];
            next = multiple < next ? multiple : next;
        }
        if (b->n_pieces == MOST_PIECES)
            return false;
        b->start[b->n_pieces] = at;
        b->end[b->n_pieces++] = next;
        at = next;
    }
    return true;
}

/* What a variable of weight `weight` in a block, from position `start` of the period, does to the
 * index of a tensor. */
static void place(po_term *t, po_index *index, const int64_t *dims, const block *b, uint32_t var,
                  int64_t weight, int64_t start) {
    int64_t w = 1;
    for (uint32_t x = index->rank; x-- > 0; w *= dims[x]) {
        int64_t above = w * dims[x];
        if (w >= b->b || dims[x] == 1)
            continue;
        index->base[x] += start / w % dims[x];
        if (w <= weight && above > weight)
            po_index_add(t, index, x, weight / w, var);
    }
}

static void add_term(po_sum *sum, uint32_t operand, const block *blocks, uint32_t n,
                     const uint32_t *piece) {
    po_term *t = po_sum_term(sum, 2 * n);
    po_index *in = po_term_factor(sum, t, operand);
    const int64_t *dims = sum->operands[operand].dims;
    for (uint32_t i = n; i-- > 0;) {
        const block *b = &blocks[i];
        if (b->period < b->b) {
            uint32_t v = po_term_var(t, NULL, b->b / b->period);
            place(t, &t->out, sum->dims, b, v, b->period, 0);
            place(t, in, dims, b, v, b->period, 0);
        }
        int64_t start = b->n_pieces ? b->start[piece[i]] : 0;
        int64_t end = b->n_pieces ? b->end[piece[i]] : b->b;
        uint32_t v = po_term_var(t, NULL, (end - start) / b->a);
        place(t, &t->out, sum->dims, b, v, b->a, start);
        place(t, in, dims, b, v, b->a, start);
    }
}

po_status po_sem_reshape(po_sem *sem) {
    const po_sem_tensor *in = &sem->in[0];
    po_sum *sum = po_sem_begin(sem, 0);
    uint32_t operand = po_sem_operand(sem, sum, 0);
    if (sum->count != sum->operands[operand].count || in->dtype == PO_STR)
        return PO_UNSUPPORTED;
    if (sum->count == 0)
        return PO_OK;
    int64_t weights[MOST_WEIGHTS];
    uint32_t n = add_weights(weights, 0, sum->rank, sum->dims);
    n = add_weights(weights, n, in->rank, in->dims);
    block *blocks = PO_NEW_N(sem->arena, block, n);
    uint32_t n_blocks = 0, last = 0, pieces = 1;
    for (uint32_t i = 1; i < n; i++) {
        if (!is_anchor(weights, n, i))
            continue;
        block *b = &blocks[n_blocks++];
        *b = (block){.a = weights[last], .b = weights[i], .period = weights[i]};
        if (i > last + 1 && !cut_block(b, &weights[last + 1], i - last - 1))
            return PO_UNSUPPORTED;
        pieces *= b->n_pieces ? b->n_pieces : 1;
        if (pieces > MOST_PIECES)
            return PO_UNSUPPORTED;
        last = i;
    }
    uint32_t *piece = PO_NEW_N(sem->arena, uint32_t, n_blocks);
    for (uint32_t k = 0; k < pieces; k++) {
        uint32_t rest = k;
        for (uint32_t i = 0; i < n_blocks; i++) {
            uint32_t choices = blocks[i].n_pieces ? blocks[i].n_pieces : 1;
            piece[i] = rest % choices;
            rest /= choices;
        }
        add_term(sum, operand, blocks, n_blocks, piece);
    }
    return PO_OK;
}
