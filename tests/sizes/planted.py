#!/usr/bin/env python3
"""Obligations of the proof for every size, taken away one at a time: a planted pair must pass then.

  planted.py --build FOLDER --program PROGRAM [--sample N] [--first N|now] [--only TEXT] [--held]
             [ARGS..]

A row replaces a piece of a source in src/verify/sizes by another. It is compiled so and linked
before the library, like the bugs of tests/rules/planted.py. PROGRAM (size_judge) must then find a
pair of which more is said than holds. ARGS are the program's: with size_pairs in its place, random
pairs look for one. --held plants those that no pair is known to show. Without --sample all are
planted; FIRST turns the sample, "now" by the hour.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'rules'))
import planted as rules  # noqa: E402

# (what is no longer asked, source, what is there, what is there instead[, what else is taken away with
# it, since either would do for every pair that is known])
OBLIGATIONS = [
    # coefficients
    ('offsets are the same', 'makeup_sum.c', 'if (a->base[x] != b->base[x])', 'if (false)', 'integers are the same expressions'),
    ('coefficients are the same', 'makeup_sum.c',
     'if (po_index_coef(t, a, x, v) != po_index_coef(u, b, x, v))', 'if (false)', 'integers are the same expressions'),
    ('scales are the same', 'makeup_sum.c', 'return po_rational_equal(a, b);', 'return true;'),
    ('the same index of the output', 'makeup_sum.c', '!same_index(t, &t->out, u, &u->out))', 'false)'),
    ('the same index of factors', 'makeup_sum.c',
     'if (t->factor[i].operand != u->factor[i].operand ||\n            !same_index(t, &t->factor[i].at, u, &u->factor[i].at))',
     'if (t->factor[i].operand != u->factor[i].operand)', 'integers are the same expressions'),
    ('the same fixed lengths', 'makeup_sum.c', 'if (!r->open[v] && t->extent[v] != u->extent[v])', 'if (false)'),
    ('the same terms', 'makeup_sum.c', 'a->n_terms != b->n_terms', 'a->n_terms > b->n_terms'),
    ('the same kinds of operands', 'makeup_sum.c', 'if (x->kind != y->kind || x->rank != y->rank)',
     'if (x->rank != y->rank)'),
    ('the same inputs', 'makeup_sum.c', 'if (x->input != y->input || x->eps != y->eps)', 'if (false)'),
    ('the same tables', 'makeup_sum.c',
     'memcmp(x->table, y->table, (size_t)x->count * sizeof *x->table) != 0', 'false'),
    ('one open variable in an index', 'makeup_sum.c', 'if (*var != PO_NONE)\n                return false;', ''),
    # labels
    ('a label is moved by nothing else', 'makeup_sum.c',
     'at->base[axis] != 0 || moves_else(r, at, axis, var) ||', 'at->base[axis] != 0 ||'),
    ('a label begins at 0', 'makeup_sum.c', 'if (var == PO_NONE || at->base[axis] != 0 ||', 'if (var == PO_NONE ||'),
    ('a label goes by one', 'makeup_sum.c', 'po_index_coef(r->t[0], at, axis, var) != 1)', 'false)'),
    ('a label runs over all of the axis', 'makeup_sum.c', 'if (r->t[i]->extent[var] != length)', 'if (false)'),
    ('a label splits its axis as the output', 'makeup_sum.c',
     'if (!po_makeup_same_digits(f, from, to, r->out, own, end))', 'if (false)'),
    # guards
    ('what is read lies inside the operand', 'makeup_sum.c',
     'if (!itself && !po_bounds_hold(r->part->oracle, &g, times, plus, in))', 'if (false)'),
    ('what is read lies where the variable runs', 'makeup_sum.c',
     'return po_bounds_hold(r->part->oracle, &g, s.by, s.at, runs);', 'return true;'),
    ('the variable runs over an axis', 'makeup_sum.c', 'return out || in;', 'return true;'),
    ('an axis is the leaf\'s own', 'makeup_sum.c',
     'g.reads && po_read_is_itself(of->read) && po_dim_same(g.leaf, in)', 'g.reads && po_read_is_itself(of->read)'),
    ('a leaf\'s ends are not those of a function of it', 'makeup_sum.c', '.reads = !w->strict && of}', '.reads = of}'),
    ('ends are those of factors', 'makeup_sum.c', 'r->out->strict |= !ends;', ''),
    ('functions of factors have no ends', 'makeup_sum.c', '*strict = f->strict || op->kind != PO_OPERAND_INPUT;',
     '*strict = false;'),
    ('there is the place', 'makeup_sum.c',
     '!po_bounds_least(r->part->oracle, f->digit[from].size, place + 1) ||', ''),
    ('one place is read', 'makeup_sum.c', 'if (moves_else(r, at, axis, PO_NONE) || place < 0 ||', 'if (place < 0 ||'),
    ('what is outside is below or behind', 'guard.c', 'po_smt_require_any(a.smt, 2, outside);',
     'po_smt_require_any(a.smt, 1, outside);'),
    ('products are any number', 'guard.c', 'strpbrk(name, "(*") != NULL', 'false'),
    # sums
    ('open lengths move along open axes', 'makeup_sum.c',
     'return var == PO_NONE ? PO_OK : fail(r, "an open length moves along a fixed axis");', 'return PO_OK;'),
    ('all of an axis is added up', 'makeup_sum.c', 'if (!label || !po_makeup_tie_all(r->part',
     'if (!po_makeup_tie_all(r->part'),
    ('outputs have the sum\'s open axes', 'makeup_sum.c', '(var != PO_NONE) != axis_is_open(r->out, x))', 'false)'),
    ('no diagonal', 'makeup_sum.c', 'if (po_index_coef(t, &t->out, y, var) != 0)', 'if (false)'),
    ('no table is as long', 'makeup_sum.c', 'if (!open_variable(r, at, x, &var) || var != PO_NONE)\n                    return fail(r, "a table',
     'if (!open_variable(r, at, x, &var))\n                    return fail(r, "a table'),
    ('no numbers that are lengths', 'makeup_sum.c', 'if (f->sized)', 'if (false)'),
    ('what is added up differs', 'makeup_sum.c', 'if (r->bound[v] && !used[v] && !r->mean)', 'if (false)'),
    ('sums or means', 'typical.c', 'if (r->sums && r->means)', 'if (false)'),
    ('what is divided by is not counted', 'makeup_sum.c', ' && !(po_makeup_leaves(f) & r->poles)', ''),
    ('squares of numbers are not counted', 'makeup.c', '|| counts(node, f))', ')'),
    ('exponentials differ', 'residues.c', 'if (po_varying_same(&first[side], &second[side])) {', 'if (false) {'),
    ('of exponentials not one in a hundred is alike', 'varies.c', 'if (a->n_met == 0 || b->n_met == 0)', 'if (a->n_met < 1000 || b->n_met < 1000)'),
    # makeups of other nodes
    ('integers are the same expressions', 'makeup.c', 'if (!po_piece_follows_lengths(part, node) || !po_piece_pads', 'if (!po_piece_pads'),
    ('padding is the same', 'makeup.c', '|| !po_piece_pads_alike(part, node))', ')'),
    ('operands are as long', 'makeup.c', 'return po_dim_same(in->dims[at], out->dims[axis]) ? at : -2;', 'return at;'),
    ('operands are split alike', 'makeup.c',
     'if (taken && !po_makeup_same_digits(out, first, out->n_digits, f, from, to))', 'if (false)'),
    ('no numbers that are lengths, element by element', 'makeup.c',
     'if (f->sized)\n            return po_piece_fail(part, node, "it computes', 'if (false)\n            return po_piece_fail(part, node, "it computes'),
    ('functions are not 0 at ends', 'makeup.c', 'out->places *= d.itself;\n    out->strict = true;', 'out->places *= d.itself;'),
    ('all of an axis is taken', 'makeup.c',
     'if (along[x] && !po_makeup_tie_all(part, out, f, from, end, PO_EVERY_PLACE))', 'if (false)'),
    ('what is taken along an axis differs', 'makeup.c', 'if (!po_makeup_reads(f, from, end) || counts', 'if (counts'),
    ('norms go along fixed axes', 'makeup.c', 'if (t->dims[x].value < 0 && !is_soft(node->op))', 'if (false)'),
    ('scales are constants', 'makeup.c',
     'if (node->in[k] != PO_NONE && !is_constant(makeup_of(part, node->in[k])))', 'if (false)'),
    ('sets are reduced along open axes', 'makeup.c', 'if (t->dims[axes[i]].value < 0 && !takes_a_set(node->op))', 'if (false)'),
    ('what is left out is not tied', 'makeup.c', 'if (r->absent || (place', 'if ((place'),
    ('places are read one by one', 'makeup.c', '(place != PO_EVERY_PLACE && !po_read_is_itself(r->read))', 'false'),
    ('integers are by their lengths', 'makeup.c', 'sized |= !po_size_number(v->partial->items[i], &number);', ''),
    # shapes
    ('axes are whole runs of digits', 'makeup_shape.c', 'if (po_dim_same(product, dim))', 'if (true)'),
    ('all digits are used', 'makeup_shape.c', 'if (g.at < f->n_digits)\n        return NULL;', ''),
    ('another shape keeps its ends', 'makeup_shape.c', 'out->strict = f->strict;', ''),
    ('another shape of lengths is one of lengths', 'makeup_shape.c', 'out->sized = f->sized;', ''),
    # windows
    ('maxima lie over leaves', 'makeup_window.c', '''if (!po_read_is_itself(of->read) ||
            !po_dim_same(leaf->dims[of->leaf_axis], f->digit[digit].size))''', 'if (!leaf)'),
    ('pads are the same', 'makeup_window.c', ' || w.same || w.ceil)', ')'),
    # one assignment
    ('both are split alike', 'typical.c', 'if (!po_dim_same(digit[i], r->digit[i]))', 'if (false)'),
    ('leaves have room', 'typical.c', 'return (double)leaf_length(r, leaf, axis) >= needed + 4 * (double)margin;', 'return true;'),
    ('all that is read is inside', 'typical.c',
     'if (x < r->margin[i] || x >= leaf_length(r, a->leaf, a->leaf_axis) - r->margin[i])', 'if (false)'),
    ('nothing is read in two ways', 'typical.c', '(a->absent != b->absent || !po_read_along(a->read, b->read)))', 'false)'),
    ('there is a typical place', 'typical.c', 'if (length < 1 || !has_typical(r, d, length))', 'if (false)'),
    ('parts are equal', 'residues.c', '*same = same_targets(s, run, part, out);', '*same = true;'),
    ('makeups are compared', 'sizes.c', 'status = po_pieces_same(s, round, &part, &fits, last, sizeof last);', ';'),
    # classes
    ('types are the same', 'classes.c', 'if (!po_dim_same(p->dims[i], q->dims[i]))', 'if (false)'),
    ('constants are the same', 'classes.c', 'key = mixed(key, po_tensor_hash(value->constant));',
     'key = po_hash_u64(key, value->constant->count + 1000);'),
    ('integers are the same lengths', 'classes.c', '''key = po_hash_str(po_hash_u64(key, (uint64_t)value->partial->items[i].value),
                              value->partial->items[i].symbol);''',
     'key = po_hash_u64(key, (uint64_t)value->partial->items[i].value);'),
    ('shapes are the same', 'classes.c', 'h = po_hash_str(po_hash_u64(h, (uint64_t)t->dims[i].value), t->dims[i].symbol);', ''),
    ('nodes take the same', 'classes.c', '*key = po_hash_u64(*key, c);\n    }', '}'),
    ('attributes are the same', 'classes.c', '*key = po_pn_identity(&n);', '*key = (po_hash){node->op, n.opset};'),
    ('what is expanded is as large', 'classes.c', '*key = dims_hash(*key, &po_sizes_value(s, side, node->out[0])->type, &known);', ''),
    ('inputs are the same', 'classes.c', 'key = po_hash_str(key, value->name);', 'key = po_hash_u64(key, 77);'),
    ('lots are drawn anew', 'classes.c', 'if (po_op_has(node->op, PO_OPF_RANDOM) || has_captures(node) ||', 'if (has_captures(node) ||'),
    ('outputs are as long', 'sizes.c', 's->hold = po_sizes_same_type(s, 0, a, 1, b);', 's->hold = true;'),
    ('outputs are of one class', 'sizes.c', 'if (s->hold && (x == PO_NONE || x != y))', 'if (false)'),
    # lengths that are taken
    ('windows fit', 'taken.c', 'need(t, (po_room){in->dims[x], extent', 'if (false) need(t, (po_room){in->dims[x], extent'),
    ('windows of products fit where pools do not', 'taken.c', 'pool ? FITS : SURE', 'SURE'),
    ('pools take no empty map', 'taken.c', 'if (pool || same ||', 'if (same ||'),
    ('padded windows take empty maps', 'taken.c', 'if (pool || same || (!known && t->asks))', ''),
    ('whole maps are not empty', 'taken.c', 'if (takes_whole_maps(node->op))', 'if (false)'),
    ('pads are of something', 'taken.c', 'need(t, (po_room){in->dims[x], mirrors', 'if (false) need(t, (po_room){in->dims[x], mirrors'),
    ('a -1 stands beside no 0', 'taken.c', 'if (!rest[i])', 'if (false)'),
    ('dims that are copied are there', 'taken.c', 'i = in->rank; i < p->n; i++)', 'i = in->rank; i < 0; i++)'),
    ('Reshapes copy nothing', 'taken.c', '!copies_itself(t, item', 'false && !copies_itself(t, item'),
    ('means are of something', 'taken.c', 'if (node->op == PO_OP_ReduceMean || node->op', 'if (node->op'),
    ('the largest are of something', 'taken.c', 'node->op == PO_OP_ReduceMean || node->op == PO_OP_ReduceMax ||', 'node->op == PO_OP_ReduceMean ||'),
    ('the least are of something', 'taken.c', '|| node->op == PO_OP_ReduceMin)', ')'),
    # names
    ('lengths are apart', 'names.c', 'if (n->fixed[i] % p == 0)', 'if (false)'),
    ('lengths are large', 'names.c', 'const uint32_t most = n->n <= 2 ? 17', 'const uint32_t most = n->n <= 9 ? 6'),
]

# Of these another obligation is in the way of every pair that is known: no pair shows them alone.
# Where one does, it belongs above.
HELD = {
    'scales are the same',
    'the same index of the output',
    'the same fixed lengths',
    'the same terms',
    'the same kinds of operands',
    'the same inputs',
    'the same tables',
    'one open variable in an index',
    'a label is moved by nothing else',
    'a label begins at 0',
    'a label goes by one',
    'a label runs over all of the axis',
    'what is read lies inside the operand',
    'what is read lies where the variable runs',
    'the variable runs over an axis',
    "an axis is the leaf's own",
    "a leaf's ends are not those of a function of it",
    'there is the place',
    'one place is read',
    'what is outside is below or behind',
    'products are any number',
    'all of an axis is added up',
    "outputs have the sum's open axes",
    'no diagonal',
    'no table is as long',
    'no numbers that are lengths',
    'padding is the same',
    'operands are as long',
    'operands are split alike',
    'functions are not 0 at ends',
    'all of an axis is taken',
    'what is taken along an axis differs',
    'norms go along fixed axes',
    'scales are constants',
    'sets are reduced along open axes',
    'what is left out is not tied',
    'places are read one by one',
    'axes are whole runs of digits',
    'all digits are used',
    'another shape keeps its ends',
    'another shape of lengths is one of lengths',
    'maxima lie over leaves',
    'pads are the same',
    'both are split alike',
    'leaves have room',
    'nothing is read in two ways',
    'outputs are as long',
    'pads are of something',
    'lengths are apart',
    'lengths are large',
}


def source_of(row):
    return os.path.join('verify', 'sizes', row[1])


def fooled(args, rows, folder):
    """The pairs that are taken for more than they are, without the obligations of rows."""
    rows = [(r[0], source_of(r), r[2], r[3]) for r in rows]
    try:
        program = rules.built(args.build, args.program, rows, folder)
        p = subprocess.run([program] + args.args + (['--stop'] if len(rows) == 1 and not args.args else []), capture_output=True, text=True, errors='replace',
                           timeout=600, check=False)
    except subprocess.TimeoutExpired:
        return set()
    found = {line for line in p.stdout.splitlines() if 'fooled:' in line or 'every size, and' in line}
    return found if p.returncode >= 0 else {f'signal {-p.returncode}'}


def planted(args, row, folder):
    """The pairs that show it: of those that show what is taken away with it, none."""
    beside = [r for r in OBLIGATIONS if r[0] in row[4:]]
    found = fooled(args, [row] + beside, folder)
    return sorted(found - fooled(args, beside, folder) if beside and found else found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', required=True)
    parser.add_argument('--program', required=True)
    parser.add_argument('--sample', type=int)
    parser.add_argument('--first', default='0')
    parser.add_argument('--only', default='')
    parser.add_argument('--held', action='store_true')
    parser.add_argument('args', nargs='*')
    args = parser.parse_args()
    rows = [r for r in OBLIGATIONS if (args.only in r[0] or args.only == r[1]) and
            (r[0] in HELD) == args.held]
    for row in OBLIGATIONS:
        rules.planted_text((row[0], source_of(row), row[2], row[3]))
    first = int(time.time()) // 3600 if args.first == 'now' else int(args.first)
    if args.sample:
        rows = [rows[(first * args.sample + i) % len(rows)] for i in range(min(args.sample, len(rows)))]
    missed = 0
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            shown = planted(args, row, folder)
        missed += not shown
        print(f'{"caught" if shown else "MISSED"}  {row[1]}: {row[0]}\n        '
              f'{len(shown)}: {shown[0] if shown else "no pair"}', flush=True)
    print(f'{len(rows)} of {len(OBLIGATIONS)} obligations taken away, from {first}: {missed} missed')
    sys.exit(1 if missed else 0)


if __name__ == '__main__':
    main()
