/* Laws in text: what a law looks for and what it writes, close to how it reads.
 *
 *     "Add(x, Mul(x, s))"   ->   "Mul(x, Add(s, 1))"
 *
 * A letter stands for a value, or for a number where the text says so: the same wherever it is met.
 * A pattern is
 *
 *     Op(a, b)            the operator on what the patterns between the parentheses match; operands
 *                         of Add, Mul, Max, Min in either order
 *     Op{alpha=0.5}(a)    with a float attribute of this number (or its default)
 *     Op[k](a)            a reduction over the single axis k, kept with length 1
 *     x  x:const          any value; a constant
 *     sqrt(1/2)  c:number a scalar constant: this number, to six digits; any
 *     e=Op(..)            a value that the pattern has several times, then as e
 *     (p | q)             p, else q
 *     line(a, p, b)       a p + b with numbers a and b, however it is spelled; p itself too
 *     product(c, p, q)    c p q with a number c, however it is spelled (the root alone)
 *     cubic(x, a, b, c, d)  a + b x + c x^2 + d x^3, of an x that is known already
 *
 * What lies between the root and the letters is read by the match alone, so that the whole may go;
 * with & in front (&Op(a)) others may read it too. Before opset 7, where operators broadcast by
 * attributes, nothing matches.
 *
 * What is written is such a text without alternatives, forms and marks. Operands may be numbers:
 * 2, c, 2*a/c; a product by 1 is not written. Parts that are read twice are named first:
 * "e = Exp(x); Div(e, Add(e, 1))". Attributes are numbers or words, Op[k](a) is a reduction over an
 * axis, spelled for the opset, and so is Clip(x, low, high). */
#ifndef PO_REWRITE_PATTERN_H
#define PO_REWRITE_PATTERN_H

#include "rewrite/passes.h"

/* What the letters stand for: nothing, a value or a number. */
typedef struct po_bound {
    po_value_id value;
    double number;
    bool is_value, is_number;
    bool own;       /* made by a node of the pattern: nothing else may read it, */
    uint32_t reads; /* which has it so often */
} po_bound;

typedef struct po_match {
    po_bound letter['z' - 'a' + 1];
} po_match;

/* Whether the node's output is what the text says. *match is set where it is. */
bool po_matches(const po_graph *graph, po_arena *scratch, const po_node *node, const char *text,
                po_match *match);

/* PO_NONE, and 0, where the letter is not in the match. */
static inline po_value_id po_matched(const po_match *match, char letter) {
    const po_bound *b = &match->letter[letter - 'a'];
    return b->is_value ? b->value : PO_NONE;
}
static inline double po_matched_number(const po_match *match, char letter) {
    return match->letter[letter - 'a'].number;
}
static inline void po_match_value(po_match *match, char letter, po_value_id value) {
    match->letter[letter - 'a'] = (po_bound){.value = value, .is_value = value != PO_NONE};
}
static inline void po_match_number(po_match *match, char letter, double number) {
    match->letter[letter - 'a'] = (po_bound){.number = number, .is_number = true};
}

/* --- reading a text --- */

enum { PO_TEXT_OPERANDS = 3 };

/* Behind the part that begins here: at one of these marks outside of brackets, or at the end. */
const char *po_text_skip(const char *p, const char *marks);
/* The parts between the parentheses that p opens; how many. */
uint32_t po_text_operands(const char *p, const char *part[PO_TEXT_OPERANDS]);
bool po_text_starts(const char *p, const char *word);
bool po_text_letter(const char *p);
/* Products and quotients of decimals, letters, sqrt(..), pi, inf. */
double po_text_number(const char *p, const po_match *match);

/* --- writing (write.c) --- */

/* Adds the nodes of the text beside `place`, types inferred; returns what they make. Numbers are of
 * the dtype of the place's first output. */
po_value_id po_write(po_graph *graph, po_node_id place, const po_match *match, const char *text);
/* The same in the place of a value, and of the node's output. True. */
bool po_write_for(po_graph *graph, po_node_id place, po_value_id y, const po_match *match,
                  const char *text);
bool po_write_instead(po_graph *graph, po_node_id id, const po_match *match, const char *text);

/* A law in text. `where` may give more letters numbers. */
typedef struct po_text_law {
    po_law_id law;
    const char *from;
    bool (*where)(const po_graph *graph, const po_node *node, po_match *match); /* NULL: any */
    const char *to;
} po_text_law;
/* Rewrites the node by the first of n laws that holds there, and counts it. */
bool po_rewrite_by_text(po_rewriting *r, po_graph *graph, po_node_id id, const po_text_law *laws,
                        size_t n);

#endif
