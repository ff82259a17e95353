#!/usr/bin/env python3
"""Bugs planted in rewrites, one at a time: the test of the rules (rules.c) must see each.

  planted.py --build FOLDER --rules PROGRAM [--sample N] [--first N|now] [--rounds N] [--only TEXT]
  planted.py --build FOLDER --rules PROGRAM --sizes

A row replaces a piece of text in a source by another. The source is compiled so and linked before
the library, whose own object is then left out. Without --sample all are planted; FIRST turns the
sample, "now" by the hour; it is printed, to be given again. --sizes: bugs that show at some sizes
only: the law must fire and must not be called right for every size (every_size.c).
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEAST_ROWS = 60
MORE_ROUNDS = 8  # where the patterns are named

# (laws of src/rewrite/laws.def, source, what is there, what is planted[, the patterns that show it:
# all where they are left out])
PLANTED = [
    # simplify: constants, identities, duplicates, chains of moves
    ('KNOWN_SHAPE', 'rewrite/exact/fold.c', 'po_tensor_set_int(t, i, items[i]);',
     'po_tensor_set_int(t, i, items[i] + (i == 1));'),
    ('DROP_TIMES_ONE', 'rewrite/exact/identities.c', 'return beside(graph, n, 1);', 'return beside(graph, n, 0.5);'),
    ('DROP_PLUS_ZERO', 'rewrite/exact/identities.c', 'return beside(graph, n, 0);', 'return beside(graph, n, 1);'),
    ('DROP_TIMES_ONE DROP_PLUS_ZERO', 'rewrite/exact/identities.c', 'PO_OPF_COMMUTATIVE) ? 2 : 1;', 'PO_OPF_COMMUTATIVE) ? 2 : 2;'),
    ('DROP_TIMES_ONE DROP_PLUS_ZERO', 'rewrite/exact/identities.c', 'if (!c || po_rank_of(graph, x) < (int)c->rank)', 'if (!c)'),
    ('DROP_TRANSPOSE', 'rewrite/exact/identities.c', 'if (perm[i] != (int64_t)i)', 'if (perm[0] != 0)'),
    ('DROP_SLICE', 'rewrite/exact/identities.c', 'return !given || (t && po_all_equal(t, number));', 'return !given || t;'),
    ('DROP_PAD', 'rewrite/exact/identities.c', ': t && po_all_equal(t, 0);', ': t && po_tensor_int(t, 0) == 0;'),
    ('DROP_RELU', 'rewrite/exact/identities.c', 'return po_never_negative(graph, n->in[0]) ? n->in[0] : PO_NONE;',
     'return n->in[0];'),
    ('MERGE_NODES', 'rewrite/exact/duplicates.c', 'po_graph_replace_uses(graph, node->out[i], other->out[i]);',
     'po_graph_replace_uses(graph, node->out[i], other->out[0]);'),
    ('COMPOSE_TRANSPOSES', 'rewrite/exact/chains.c', 'composed[i] = p ? p[middle] : rank - 1 - middle;',
     'composed[i] = p ? p[i] : rank - 1 - middle;'),
    ('CANCEL_TRANSPOSES', 'rewrite/exact/chains.c', 'identity &= composed[i] == i;', 'identity &= composed[i] == i || i > 0;'),
    ('CANCEL_RESHAPES', 'rewrite/exact/chains.c', 'if (po_same_dims(graph, x, outer->out[0])) {',
     'if (po_rank_of(graph, x) == po_rank_of(graph, outer->out[0])) {'),
    ('MOVE_APART', 'rewrite/exact/chains.c', 'if (!po_dim_same(to->dims[i], graph->values[x].type.dims[perm[i]]))',
     'if (i > 3)'),
    ('MOVE_APART', 'rewrite/exact/chains.c', 'int64_t k = p ? p[i] : (int64_t)(n - 1 - i);', 'int64_t k = i;'),
    ('TAKE_BRANCH', 'rewrite/exact/branches.c', 'branch(node, condition != 0)', 'branch(node, condition == 0)'),
    ('STATE_PADS', 'rewrite/exact/pads.c', 'pads[i] = w.begin[i];', 'pads[i] = w.end[i];', 'padding in words'),
    ('STATE_PADS', 'rewrite/exact/pads.c', 'pads[w.n + i] = w.end[i];', 'pads[w.n + i] = w.begin[i];',
     'padding in words'),
    ('COPIED_LENGTHS', 'ops/rewrite.c', 'i < x->rank && i != but && po_dim_same(x->dims[i], y->dims[i]);', 'i < x->rank && i != but;',
     'lengths that are copied'),
    ('COPIED_LENGTHS', 'rewrite/exact/lengths.c', 'po_node_set_int(graph, id, "allowzero", 0);', 'po_node_set_int(graph, id, "allowzero", 1);',
     'lengths that are copied'),
    ('INPUT_LENGTHS', 'rewrite/exact/lengths.c', 'at = axis;', 'at = 0;', 'lengths that are copied elsewhere'),
    ('IN_ORDER', 'ops/indices.c', 'if (!is_one(index->dims[a]) && !po_dim_same(f.step[a], all))', 'if (!is_one(index->dims[a]) && is_zero(f.step[a]))',
     'a mask taken by sample and place'),
    ('KNOWN_CONDITION', 'ops/indices.c', 'po_size_plus(l->arena, y.base, more)', 'po_size_plus(l->arena, y.base, more - 1)',
     'conditions of positions'),
    ('KNOWN_CONDITION DROP_EXPAND', 'rewrite/exact/indices.c', 'if (value->n_outputs > 0 || depth == 0 || !note(w, v, type))', 'if (depth == 0 || !note(w, v, type))',
     'one row for all'),
    ('ONE_ROW', 'rewrite/exact/indices.c', 'po_recipe_slice(r->scratch, all, 0, row, row + 1)', 'po_recipe_slice(r->scratch, all, 0, 0, 1)',
     'one row for all'),
    ('DROP_EXPAND', 'rewrite/exact/indices.c', 'for (uint32_t i = 0; i < w->n; i++)\n        if (w->value[i] == v)', 'for (uint32_t i = 0; i < w->n && i < 1; i++)\n        if (w->value[i] == v)',
     'what is repeated by its readers'),
    ('DROP_EXPAND ONE_ROW', 'rewrite/exact/indices.c', 'if (same_shape(out, rank, dims))', 'if (same_shape(out, out->rank, out->dims))',
     'one row for all'),
    # what is taken, and what is repeated
    ('TAKE_LESS', 'rewrite/propagate/selections.c', 'part.axis = s->along[id][k];', 'part.axis = of->axis;', 'places taken'),
    ('TAKE_LESS', 'rewrite/propagate/selections.c', 's->made[v] != PO_NONE && same_part(&s->part[v], t))', 's->made[v] != PO_NONE)',
     'places taken of constants'),
    ('TAKE_LESS', 'rewrite/propagate/selections.c', 'po_add_i64s(g, NULL, 1, (int64_t[]){0});', 'n->in[1];', 'places taken'),
    ('TAKE_LESS', 'rewrite/propagate/selections.c', 'int64_t from = t->start < 0 ? t->start + whole : t->start;', 'int64_t from = t->start < 0 ? 0 : t->start;',
     'places taken of constants'),
    ('TAKE_LESS', 'ops/along.c', '(int64_t)axis >= first ||', '(int64_t)axis > first ||', 'places taken'),
    ('TAKE_LESS', 'rewrite/propagate/selections.c', 'const bool whole = in[k] == PO_WHOLE && second[k] == PO_WHOLE;', 'const bool whole = second[k] == PO_WHOLE;',
     'tokens picked'),
    ('TAKE_LESS', 'rewrite/propagate/selections.c', 'if (!whole && (in[k] != 0 || second[k] != 1 ||', 'if (!whole && (', 'tokens picked'),
    ('TAKE_LESS', 'ops/along.c', ' && po_places(from, x) == before)', ')', 'places taken of squares'),
    ('SHARE_REPEATED', 'rewrite/propagate/expansions.c', ': in[k] != PO_WHOLE)', ': false)', 'repeated heads'),
    ('SHARE_REPEATED', 'rewrite/propagate/expansions.c', 'heads_shape(g, a, heads / r->times, split)', 'heads_shape(g, a, r->times, split)',
     'repeated heads'),
    ('MASKS', 'rewrite/spelling/masks.c', 'ReduceMax[k](x), 70))', 'ReduceMax[k](x), 7))', 'what masks hide'),
    ('MASKS', 'rewrite/spelling/masks.c', "po_match_number(&m, 'k', rank - 1);", "po_match_number(&m, 'k', 0);", 'what masks hide'),
    # tiny weights
    ('TINY', 'ops/recipe/recipe.c', '.u.f = PO_RECIPE_TINY}};', '.u.f = 0.005f}};', 'weights that count'),
    # affine chains
    ('AFFINE_SCALE_AHEAD', 'rewrite/affine/fold_affine.c', 'po_affine_is_scale(&m) && m.nodes > 1)', 'm.nodes > 1)'),
    ('AFFINE_BACK', 'rewrite/affine/absorb.c', 'po_affine_is_scale(m) ? NULL : po_affine_shift(arena, m, 1, 0), &bias)))', 'NULL, &bias)))'),
    ('AFFINE_BACK', 'rewrite/affine/absorb.c', '!change_bias(graph, arena, &l, a,', '!change_bias(graph, arena, &l, NULL,'),
    ('AFFINE_AHEAD', 'rewrite/affine/absorb.c', 'po_node_float(n, "beta", 1) != 1.0f ||', 'false ||'),
    ('AFFINE_AHEAD', 'rewrite/affine/absorb.c', '!transposed && unpadded(n);', '!transposed;'),
    ('AFFINE_AHEAD', 'rewrite/affine/absorb.c', 'dims[at] = l->dims[at];', 'dims[at] = l->dims[at];\n    a = at == l->in_at ? po_recipe_neg(arena, a) : a;'),
    ('AFFINE_BACK', 'rewrite/affine/absorb.c', 'l->alpha != 1 ?', 'l->alpha == 1 ?'),
    ('AFFINE_AHEAD', 'rewrite/affine/absorb.c', 'po_recipe_transpose(arena, w, (const uint32_t[]){0, 2, 1, 3})', 
     'po_recipe_reshape(arena, w, 4, (const int64_t[]){group, l->out / group, per, taps})', 'affine chains and products'),
    ('AFFINE_MEAN', 'rewrite/affine/absorb.c', 'po_op_int(graph, n, "count_include_pad") == 0 &&',
     'true &&', 'means with and without'),
    ('AFFINE_SCALE_AHEAD', 'rewrite/affine/absorb.c', 'shift.a[i] = 1;', 'shift.a[i] = m->a[i];'),
    ('CLIPPED_LINE', 'rewrite/spelling/gates.c', 'beta=b/h}(x)', 'beta=b}(x)'),
    ('CLIPPED_LINE', 'rewrite/spelling/gates.c', '(Clip(x, 0, h:number) |', '(Clip(x, l:number, h:number) |'),
    ('HARD_SWISH_GATE', 'rewrite/spelling/gates.c', 'may_round,\n                                    "Mul(x, HardSigmoid{alpha=1/6, beta=0.5}(x))"', 'may_round,\n                                    "Mul(x, HardSigmoid{alpha=1/6, beta=0.25}(x))"'),
    # activations and norms
    ('GELU_ERF', 'rewrite/spelling/activations.c', 'Erf(line(sqrt(1/2), x, 0))', 'Erf(line(s, x, 0))'),
    ('GELU_TANH', 'rewrite/spelling/activations.c', '"Mul(Gelu{approximate=tanh}(x), 2*a*c)"', '"Mul(Gelu{approximate=tanh}(x), a*c)"'),
    ('GELU_TANH', 'rewrite/spelling/activations.c', '"Mul(Gelu{approximate=tanh}(x)', '"Mul(Gelu{approximate=none}(x)'),
    ('GATE_ARGUMENT SIGMOID', 'rewrite/spelling/activations.c', 'f.ra = po_recipe_neg(r->scratch, po_affine_scale(r->scratch, &f, 1, 0));', 'f.ra = po_affine_scale(r->scratch, &f, 1, 0);'),
    ('CLIP', 'rewrite/spelling/activations.c', 'Max(Min(x, b:number), a:number)', 'Max(Min(x, a:number), b:number)'),
    ('LEAKY', 'rewrite/spelling/activations.c', 'BOUNDS_SINCE && a >= 0 && a < 1;', 'BOUNDS_SINCE;'),
    ('PRELU', 'rewrite/spelling/activations.c', 'isfinite(a) && po_all_equal(slope, a);', 'isfinite(a);'),
    ('NORM', 'rewrite/spelling/norms.c', '"LayerNormalization{axis=-1, epsilon=e}(x, s, b)"', '"LayerNormalization{axis=-1}(x, s, b)"'),
    ('NORM_INNER', 'rewrite/spelling/norms.c', 'back[there[i]] = i;', 'back[i] = there[i];'),
    ('WRITE_POWER', 'rewrite/spelling/write_forms.c', '{-1, "Reciprocal(x)"}', '{-1, "Neg(x)"}', 'powers'),
    ('WRITE_POWER', 'rewrite/spelling/write_forms.c', '{3, "Mul(Mul(x, x), x)"}', '{3, "Mul(x, x)"}'),
    ('WRITE_PRELU', 'rewrite/spelling/write_forms.c', 'po_recipe_sub(arena, po_recipe_number(arena, 1), a)',
     'po_recipe_sub(arena, po_recipe_number(arena, 2), a)'),
    # linear algebra
    ('COMPOSE_CONVS', 'rewrite/conv/compose.c', ' || (shifted && po_conv_padded(&outer))', '', 'pointwise convolutions with'),
    ('COMPOSE_CONVS', 'rewrite/conv/compose.c', 'return b2 == PO_NONE ? b1 : po_mk_binary(d, PO_OP_Add, b2, b1);',
     'return b1;', 'pointwise convolutions with'),
    ('POOL_FIRST', 'rewrite/conv/compose.c', 'if (padded && c.bias)\n        return false;', '',
     'pools behind pointwise'),
    ('MEAN_POOL', 'rewrite/conv/compose.c', 'if (axis < 2 || axis > 3)\n            return false;', 'if (axis < 2)\n            continue;', 'means of maps'),
    ('GATED_RESIDUAL', 'rewrite/spelling/gates.c', 'po_write_instead(graph, id, &m, "Mul(x, Add(s, 1))")', 'po_write_instead(graph, id, &m, "Mul(x, Add(s, 2))")'),
    ('COMPOSE_CONVS', 'rewrite/conv/compose.c', '"omt,mis->oits"', '"omt,ims->oits"',
     'convolutions one behind the other'),
    ('TRANSPOSED_CONV', 'rewrite/upsample/depth_space.c', '"i o y x -> (y x o) i 1 1"', '"i o y x -> (x y o) i 1 1"'),
    ('SPACE_BEHIND_ACTIVATION SPACE_BEHIND_POINTWISE MERGE_SPACES', 'rewrite/upsample/depth_space.c', 'po_node_string_is(n, "mode", "DCR", "DCR")', 'true'),
    ('MERGE_SPACES', 'rewrite/upsample/depth_space.c', '"(p q s t o) i y x -> (p s q t o) i y x"',
     '"(p q s t o) i y x -> (p q s t o) i y x"'),
    ('UPSAMPLED_PHASES', 'rewrite/upsample/upsampled_phases.c', '- first) * kernel + t] = 1;', '- first) * kernel + kernel - 1 - t] = 1;'),
    ('UPSAMPLED_PHASES', 'rewrite/upsample/upsampled_phases.c', 'po_add_crop(d->g, d->place, y, shift, shift - f[0], type)',
     'po_add_crop(d->g, d->place, y, 0, -f[0], type)'),
    ('SMOOTH', 'rewrite/upsample/smooth.c', 'f % 2 || i == 0 || i == f ? 1 : 2;', 'f % 2 || i == 0 ? 1 : 2;',
     'interpolated maps'),
    ('SMOOTH', 'rewrite/upsample/smooth.c', '"mode", "edge")', '"mode", "constant")', 'interpolated maps'),
    ('SMOOTH', 'rewrite/upsample/smooth.c', 'const int64_t cut = s->f + s->p - s->f / 2;',
     'const int64_t cut = s->f + 0 * s->p - s->f / 2;', 'interpolated maps'),
    ('SMOOTH', 'rewrite/upsample/smooth.c', '(first ? like.after : like.before)',
     '(first ? like.before : like.after)', 'interpolated maps'),
    ('SMOOTH', 'rewrite/upsample/smooth.c', 'const int64_t rows = (2 * s->p + s->f - 1) / s->f + 1,',
     'const int64_t rows = 1,', 'interpolated maps'),
    ('SPLIT_CONCAT', 'rewrite/upsample/resized.c', 'po_value_id *in = po_arena_memdup(arena, &cat->in[first], (last - first) * sizeof *in);',
     'po_value_id *in = po_arena_memdup(arena, &cat->in[first], (last - first) * sizeof *in);\n    for (uint32_t i = 0; 2 * i < last - first; i++) { po_value_id t = in[i]; in[i] = in[last - first - 1 - i]; in[last - first - 1 - i] = t; }', 'joined maps of several sizes'),
    ('POINTWISE_FIRST', 'rewrite/upsample/resized.c', 'return po_resize_scales(g, n, RANK, scale) && one(scale[0]) && one(scale[CHANNEL_AXIS]);',
     'return true;', 'channels interpolated'),
    ('CUBIC', 'rewrite/upsample/interpolate.c', 'r = po_recipe_transpose(arena, r, (const uint32_t[]){1, 0});',
     'r = po_recipe_reshape(arena, r, 2, (const int64_t[]){op->dims[1], op->dims[0]});',
     'cubic interpolation'),
    ('CUBIC', 'ops/sem/resize.c', '{{-4, 8, -5, 1}', '{{-4, 8, -5, 2}', 'cubic interpolation'),
    ('HALF', 'rewrite/spelling/half.c', 'w->wide[y] = out[k];', 'w->wide[y] = out[0];', 'half precision'),
    ('HALF', 'rewrite/spelling/half.c', 'w->graph->values[node->out[0]].type.dtype == PO_F32', 'true', 'half precision'),
    ('HALF', 'rewrite/spelling/half.c', 'w->graph->values[made->in[0]].type.dtype == PO_F32', 'true', 'half precision'),
    ('HALF', 'rewrite/spelling/half.c', 'w->worked[y] ? po_add_cast(graph, id, wide, PO_F16) : wide', 'wide', 'half precision'),
    ('HALF', 'ops/signature.c', '(letter > 0 && !(taken >> (letter - \'A\') & 1))', 'false', 'half precision'),
    ('HALF', 'rewrite/spelling/half.c', 'po_recipe_doubles(w->graph, scratch, value)',
     'po_recipe_neg(scratch, po_recipe_doubles(w->graph, scratch, value))', 'half precision'),
    ('SPECTRUM', 'rewrite/conv/spectra.c', 'frame.stride[0] = step;', 'frame.stride[0] = 1;', 'spectra of frames'),
    ('SPECTRUM', 'rewrite/conv/spectra.c', 'conv, 3, (const int64_t[]){0, 2, 1}, NULL)', 'conv, 3, (const int64_t[]){0, 1, 2}, NULL)',
     'spectra of frames'),
    ('SPECTRUM', 'ops/sem/spectral.c', 's[i] = fraction(-sin(angle));', 's[i] = fraction(sin(angle));', 'spectra of frames'),
    ('CHANNELS', 'rewrite/conv/channels.c', 'x = po_add_transpose(g, id, x, TOKENS, tokens_to_first, NULL);', '', 'tokens as maps'),
    ('CHANNELS', 'rewrite/conv/channels.c', 'x = e.kind == RESHAPED_TURNED ? reshaped(g, id, x, &e, channels) : x;\n        x = po_add_transpose(g, id, x, RANK, to_first, NULL);',
     'x = po_add_transpose(g, id, x, RANK, to_first, NULL);', 'tokens as maps, turned behind'),
    ('TOKENS CHANNELS', 'rewrite/products/matrix.c', 'product->rows ? "o i', '!product->rows ? "o i', 'products of rows'),
    ('TOKENS', 'rewrite/layout/tokens.c', 't->count == t->dims[t->rank - 1] &&', '', 'vectors beside tokens'),
    ('TOKENS', 'rewrite/layout/tokens.c', 'perm[rank - 1] = h.perm[1];', 'perm[rank - 1] = h.perm[2], perm[1] = h.perm[1];',
     'heads joined to tokens'),
    ('FLATTENED', 'ops/rewrite.c', 'if (i != axis && !po_dim_same(t->dims[i], u->dims[i]))', 'if (t->rank > 9)', 'products of flattened tokens'),
    ('TOKENS', 'rewrite/products/matrix.c', 'gemm && po_op_int(graph, node, "transB");', 'gemm;', 'products of rows'),
    ('TOKENS_SPLIT', 'rewrite/layout/tokens.c', 'h.perm[i] == 1 ? (int64_t)rank - 1 : h.perm[i] - 1;',
     'h.perm[i] == 1 ? 1 : h.perm[i];', 'heads of tokens'),
    ('OVER_CONCAT', 'rewrite/conv/sums.c', 'k + 1 == n ? c->b : PO_NONE, c);', 'c->b, c);'),
    ('CONV_SUM GROUP_JOIN', 'ops/conv_view.c', 'memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0 &&\n           memcmp(a->before, b->before, sizeof a->before) == 0 &&\n           memcmp(a->after, b->after, sizeof a->after) == 0;', 'true;', 'sums of convolutions of two'),
    ('UPSAMPLED_PHASES', 'rewrite/upsample/upsampled_phases.c', 'po_up_to(c->to[i], f[i]) / f[i] - c->size[i]', 'c->to[i] / f[i] - c->size[i]'),
    ('FRAME_TAPS', 'rewrite/conv/frame_taps.c', 'po_value_id w = po_mk_slice(d, c->w, 2, k, 1, 1);',
     'po_value_id w = po_mk_slice(d, c->w, 2, taps - 1 - k, 1, 1);'),
    ('INNER_ROWS', 'rewrite/bilinear/inner_rows.c', 'po_mk_slice(d, p, 2, 0, left, 1) : p;',
     'po_mk_slice(d, p, 2, t->step - left, left, 1) : p;'),
    ('PRODUCTS_BATCH', 'rewrite/products/products.c', 'po_mk_reshape(d, po_mk_slice(d, y, 0, k, 1, 1), p[k].ry, p[k].dy));',
     'po_mk_reshape(d, po_mk_slice(d, y, 0, 0, 1, 1), p[k].ry, p[k].dy));'),
    ('SPLIT_OUTPUTS', 'rewrite/conv/split_outputs.c', 'po_recipe_slice(arena, all[i], 0, from[k], from[k + 1]));',
     'po_recipe_slice(arena, all[i], 0, from[0], from[1]));'),
    ('AFFINE_BACK AFFINE_AHEAD', 'rewrite/affine/affine.c', 'po_recipe_sub(arena, c[1], po_recipe_mul(arena, c[2], *p));',
     'po_recipe_sub(arena, c[1], c[2]);'),
    ('SPELL_RESIZE', 'rewrite/spelling/spelling.c', 'if (!stays && to[i].value < 2 && scale < 2)\n            return false;', '',
     'modes of Resize'),
    ('SPELL_RESIZE', 'rewrite/spelling/spelling.c', 'if (!po_repeats(graph, n, 4, factor) ||\n        po_node', 'if (po_node', 'modes of Resize'),
    ('SPLIT_CONCAT', 'rewrite/conv/sums.c', 'at += channels[k++])', 'at += channels[k++ * 0])', 'joined maps of several sizes'),
    ('FACTOR_UPSAMPLING SPELL_RESIZE', 'ops/rewrite.c', 'if ((double)factor[i] != s)', 'if (factor[i] == 0)', 'scales that are not whole'),
    ('DIFFERENCES', 'rewrite/upsample/differences.c', 'd < u->p - r ? -1 : 0', 'd < u->p - r ? 1 : 0'),
    ('DIFFERENCES', 'rewrite/upsample/differences.c', 'one[2] = {-1, 1}, two[4] = {1, -1, -1, 1}',
     'one[2] = {1, -1}, two[4] = {-1, 1, 1, -1}'),
    ('DIFFERENCES', 'rewrite/upsample/differences.c', 'output == u->f - 1 - (product - 1 - u->p)', 'output == product - 1 - u->p'),
    ('SPLIT_CONCAT SPLIT_SMOOTH PART_CONCAT', 'rewrite/conv/sums.c', 'k + 1 == n ? c->b : PO_NONE, c);', 'c->b, c);', 'joined maps of several sizes'),
    ('SPLIT_CONCAT PART_CONCAT', 'rewrite/conv/sums.c', 'at += channels[k++])', 'k++)', 'joined maps of several sizes'),
    ('GATE_BETWEEN GATE_BEFORE', 'rewrite/conv/gate_weights.c', '"o i y x -> (o y x) i"', '"o i y x -> (o x y) i"'),
    ('GATE_BETWEEN', 'rewrite/conv/gate_weights.c', 'po_value_id s = po_add_reshape(graph, at, g->s, 2, (int64_t[]){c->in, 1});',
     'po_value_id s = po_add_reshape(graph, at, g->s, 2, (int64_t[]){1, c->in});', 'gates between'),
    ('TABLE_ROWS', 'rewrite/products/embedding.c', 'const po_recipe *parts[] = {none, rows, rows, none};',
     'const po_recipe *parts[] = {rows, none, none, rows};'),
    ('TABLE_ROWS', 'rewrite/products/embedding.c', 'add_clip(g, id, indices, -depth - 1, depth)', 'add_clip(g, id, indices, -depth, depth)'),
    ('TABLE_ROWS', 'rewrite/products/embedding.c', 'if (first && (rows->in[1] != first->in[1] ||',
     'if (first && (false ||', 'rows of two tables'),
    ('FRAMES_MEAN', 'rewrite/bilinear/frames.c', 'mean[t] = 1.0 / (double)d[2];', 'mean[t] = 1.0;'),
    ('PLANES_PAD', 'rewrite/layout/planes.c', 'wide[4 + to] = po_tensor_int(t, RANK + i);', 'wide[4 + to] = po_tensor_int(t, i);'),
    ('PLANES', 'rewrite/layout/planes.c', 'widen(r, made, "dilations", 1, 1);', '', 'planes'),
    ('PLANES_TURN', 'rewrite/layout/planes.c', 'r->twin[n->in[0]], (const int64_t[]){0, 2, 3, 1});',
     'r->twin[n->in[0]], (const int64_t[]){0, 1, 2, 3});'),
    ('TILES', 'rewrite/bilinear/tiles.c', 'c->after[axis] + q + (m - 1) * d', 'c->after[axis] + q', 'tiles'),
    ('TILES', 'rewrite/bilinear/tiles.c', 'c->before[axis] - q', 'c->before[axis]', 'tiles, dilated'),
    ('TILES', 'rewrite/bilinear/products.c', 'const int64_t before = one * c->out,', 'const int64_t before = 0,', 'tiles'),
    ('TILES', 'rewrite/bilinear/tiles.c', "i % t->m[COLUMNS] * t->n[COLUMNS] + j / rows", "i % t->m[COLUMNS] * t->n[COLUMNS] + j % rows", 'tiles'),
    ('TILES', 'rewrite/bilinear/tiles.c', 'c->before[a] + c->after[a] - (c->kernel[a] - 1)', 'c->before[a] + c->after[a] - c->kernel[a]', 'tiles of any size'),
    ('PHASES', 'rewrite/bilinear/phases.c', 'r->x.count ? r->x.part[p] : x', 'r->x.count ? r->x.part[0] : x', 'phases of phases'),
    ('SPREAD_GATE', 'rewrite/spelling/spread_gates.c', '{1, 1, (double)d[2].value, (double)d[3].value}',
     '{1, 1, (double)d[3].value, (double)d[2].value}', 'gates spread'),
    # opsets
    ('', 'simplify/opset.c', 'po_graph_free_initialisers(g);', ';', 'initialisers among'),
    # mutants and their corrections
    ('STRIDE', 'rewrite/conv/stride.c', 'lead[i] = c.before[i] % s;', ''),
    ('STRIDE', 'rewrite/conv/stride.c', '"n c (h p)-b.. -> n (c p..) h.."', '"n c (p h)-b.. -> n (c p..) h.."'),
    ('DILATION', 'rewrite/conv/dilation.c', '-> n c (h p)=t.."', '-> n c (p h)=t.."'),
    ('DILATION', 'rewrite/conv/dilation.c', 'lead[i] = c.before[i] % p;', 'lead[i] = 0;'),
    ('TAPS KERNEL_BLOCKS', 'rewrite/conv/taps.c', 'at[i] * c.dilation[i], c.to[i], c.stride[i]);',
     'at[i], c.to[i], c.stride[i]);'),
    ('TAPS', 'rewrite/conv/taps.c', '"o c k.. -> (k.. o) c"', '"o c k.. -> (o k..) c"'),
    ('SUBPIXEL SELECTIVE_ADD', 'rewrite/conv/transposed.c', '{"b", c->before}', '{"b", c->after}', 'transposed convolutions'),
    ('SUBPIXEL SELECTIVE_ADD', 'rewrite/conv/transposed.c', '-> n c (h p)-b=t.."', '-> n c (p h)-b=t.."'),
    ('UPSAMPLED_PHASES', 'rewrite/upsample/upsampled_phases.c', '"n (p.. o) h.. -> n o (h p)-s=t.."', '"n (p.. o) h.. -> n o (p h)-s=t.."'),
    ('POOL_INTO_CONV', 'rewrite/make.c', 'lead *= i < axis ? dims[i] : 1;\n        tail *= i > axis ? dims[i] : 1;',
     'lead *= i > axis ? dims[i] : 1;\n        tail *= i < axis ? dims[i] : 1;'),
    ('SUBPIXEL', 'rewrite/conv/transposed.c', '(-j p)+l..', '(j p)..', 'transposed convolutions'),
    ('SELECTIVE_ADD', 'rewrite/conv/transposed.c', 'before[2 + i] = at[i];',
     'before[2 + i] = taps[i] - 1 - at[i];\n            at[i] = taps[i] - 1 - at[i];', 'transposed convolutions'),
    ('BATCH_TO_MAP', 'rewrite/conv/batch.c', 'int64_t gap = open ? 0 : po_larger(po_larger(c->before[i], reach), 0);',
     'int64_t gap = open ? 0 : po_larger(po_larger(c->before[i], reach) - 1, 0);', 'convolutions of batches'),
    ('POOL_AS_CONV', 'rewrite/conv/pool.c', 'bool even = counts_pads || !po_conv_padded(&c);',
     'bool even = true;', 'pools with padding'),
    ('POOL_INTO_CONV', 'rewrite/conv/pool.c', 'po_mk_scalar(d, (double)po_conv_taps(&p))',
     'po_mk_scalar(d, (double)po_conv_taps(&c))', 'pools of convolutions'),
    ('GROUP_SPLIT', 'rewrite/conv/groups.c', 'po_mk_split(d, c.b, 0, (uint32_t)parts, outs, b);',
     'for (int64_t k = 0; k < parts; k++)\n                b[k] = po_mk_slice(d, c.b, 0, 0, outs[k], 1);',
     'grouped convolutions'),
    ('PARALLEL CONV_SUM', 'rewrite/conv/parallel.c', 'before[i + 2] = (all->before[i] - c->before[i]) / all->dilation[i];',
     'before[i + 2] = 0;'),
    ('WINDOWS', 'rewrite/conv/windows.c', '+ at[i] * c->dilation[i] +', '+ at[i] +'),
    ('WINDOWS', 'rewrite/conv/windows.c', '+ at[c->n + i] * c->stride[i];', '+ at[c->n + i];'),
    ('POINT_AS_PRODUCT', 'rewrite/conv/point.c', '"n c h*s.. -> n c (h..)"', '"n c h.. -> n c (h..)"'),
    ('GROUP_MERGE', 'rewrite/conv/groups.c', 'unit[i * f + i] = 1;',
     'unit[i * f + (i + 1) % f] = 1;'),
    ('PRODUCTS_SIDE', 'rewrite/products/products.c', 'po_derive_replace(d, p[k].y, y[k]);',
     'po_derive_replace(d, p[k].y, y[n - 1 - k]);'),
    ('SUM_OF_PRODUCTS', 'rewrite/products/products.c', '"MatMul(x, Add(v, MatMul(a, b)))"', '"MatMul(x, Sub(v, MatMul(a, b)))"'),
    ('COMMON_WEIGHT', 'rewrite/products/products.c', '"MatMul(Add(a, b), w)"', '"MatMul(Sub(a, b), w)"'),
    ('COMMON_FACTOR', 'rewrite/spelling/gates.c', 'po_derive_text(d, id, &m, "Mul(x, Add(s, 1))")', 'po_derive_text(d, id, &m, "Mul(x, Add(s, 2))")'),
    ('STRASSEN', 'rewrite/products/products.c', '1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0,  1,  1};',
     '1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0,  1,  -1};'),
    ('OVER_ADD', 'rewrite/conv/sums.c', 'k ? c->b : PO_NONE, c);',
     'c->b, c);'),
    ('NESTED', 'rewrite/bilinear/nested.c', 'po_mk_slice(d, p, elements, 0, left, 1) : p;',
     'po_mk_slice(d, p, elements, t->step - left, left, 1) : p;'),
    ('GATED_SUM', 'rewrite/conv/gate_weights.c', 'const po_value_id parts[2] = {sum->in[k], sum->in[1 - k]};',
     'const po_value_id parts[2] = {sum->in[k], sum->in[k]};'),
    ('WRITE_SOFTMAX', 'rewrite/spelling/write_forms.c', 'Div(e, ReduceSum[k](e))', 'Div(e, ReduceMax[k](e))'),
    ('WRITE_MISH', 'rewrite/spelling/write_forms.c', 'Div(n, Add(n, 2))', 'Div(n, Add(n, 3))'),
    ('TABLE_FUNCTION', 'rewrite/products/embedding.c', 'in[k] = po_recipe_doubles(g, arena, rows ? rows->in[0] : n->in[k]);',
     'in[k] = po_recipe_neg(arena, po_recipe_doubles(g, arena, rows ? rows->in[0] : n->in[k]));'),
    ('FRAMES', 'rewrite/bilinear/frames.c', 'int64_t t = tile * m * c->stride + k - c->pad;',
     'int64_t t = tile * m * c->stride + k;'),
    ('MEAN_FIRST', 'rewrite/conv/compose.c', 'po_conv_add(graph, id, mean, &c, c.w, c.b);',
     'po_conv_add(graph, id, mean, &c, c.w, PO_NONE);'),
    # simplify again: what conditions say (patterns_conditions.txt)
    ('FOLD_NODE', 'rewrite/exact/fold.c', 'po_recipe_of_node(graph, scratch, node, i, tensors[i])',
     'po_recipe_of_node(graph, scratch, node, 0, tensors[i])', 'parts of constants'),
    ('ADOPT_CONSTANT', 'ir/graph.c', 'push_initializer(graph, value);\n    if (producer', 'if (producer',
     'Constant nodes'),
    ('DROP_IDENTITY', 'rewrite/exact/identities.c',
     'if (stuck && (node->op == PO_OP_Identity || graph->values[y].n_uses == 0))\n            continue;\n        po_substitute(graph, y, x);',
     '(void)stuck;\n        po_graph_replace_uses(graph, y, x);\n        po_graph_remove_node(graph, order[k]);',
     'outputs that are inputs'),
    ('DROP_CAST', 'rewrite/exact/identities.c', '(int64_t)from == po_op_int(graph, n, "to") ?',
     'po_dtype_class_of(from) == po_dtype_class_of((po_dtype)po_op_int(graph, n, "to")) ?', 'casts'),
    ('DROP_RESHAPE', 'rewrite/exact/identities.c', 'return same && po_same_dims(graph, n->in[0], n->out[0])',
     'return same && po_type_count(&graph->values[n->in[0]].type) == po_type_count(&graph->values[n->out[0]].type)',
     'shapes that are nearly'),
    ('DROP_RESHAPE DROP_SLICE', 'ops/rewrite.c',
     'if (!po_dim_same(t->dims[i], u->dims[i]))\n            return false;\n    return true;\n}\n\nbool po_same_dims_but',
     'if (!po_dim_same(t->dims[i], u->dims[i]) && i)\n            return false;\n    return true;\n}\n\nbool po_same_dims_but',
     'shapes that are nearly'),
    ('DROP_DROPOUT', 'rewrite/exact/identities.c', 'return tests && !mask && left_at(graph, n, 2, 0)',
     'return tests && !mask', 'noise'),
    ('DROP_DROPOUT', 'rewrite/exact/identities.c', 'po_op_int(graph, n, "is_test") != 0;',
     'po_node_int(n, "is_test", 1) != 0;', 'noise of old'),
    ('DROP_SINGLE', 'rewrite/exact/identities.c', 'all_of(n, "strides", 1) && all_of', 'all_of', 'windows of one'),
    ('DROP_SINGLE', 'rewrite/exact/identities.c',
     'po_node_attr(n, "kernel_shape") && all_of(n, "kernel_shape", 1) &&', 'po_node_attr(n, "kernel_shape") &&',
     'windows of one'),
    ('MERGE_CONSTANTS', 'rewrite/exact/duplicates.c', 'if (v->is_input || v->n_outputs ||', 'if (v->n_outputs ||',
     'constants that callers'),
    ('MERGE_NODES', 'rewrite/exact/duplicates.c', 'po_op_has(n->op, PO_OPF_RANDOM | PO_OPF_CONTROL)',
     'po_op_has(n->op, PO_OPF_CONTROL)', 'noise'),
    ('COMPOSE_RESHAPES', 'rewrite/exact/chains.c', 'zero |= po_tensor_int(shape, i) == 0;',
     'zero |= po_tensor_int(shape, i) == 0 && i > 0;', 'reshapes that copy'),
    ('SWEEP', 'ir/graph.c', 'if (!unused(graph, node->out[i]))', 'if (i == 0 && !unused(graph, node->out[i]))',
     'outputs of which'),
    ('SWEEP', 'ir/graph.c', 'if (v->outer == PO_NONE || v->n_uses || v->n_outputs)',
     'if (v->outer == PO_NONE || v->n_outputs)', 'outputs of which'),
    # norms, activations, gates again
    ('NORM_FUSED', 'rewrite/spelling/norms.c', 'const bool rows = !fused ||', 'const bool rows = true ||',
     'fused, of squares'),
    ('NORM_FUSED', 'rewrite/spelling/norms.c', 'Sub(b:const, Mul(&ReduceMean[k](x), r)))"',
     'Sub(b:const, Mul(&ReduceMean[j](x), r)))"', 'fused, of squares'),
    ('NORM_GROUP', 'rewrite/spelling/norms.c', 'return m->centred && m->scale == PO_NONE && m->shift == PO_NONE &&',
     'return m->centred &&', 'norms of groups, of other'),
    ('NORM_GROUP', 'rewrite/spelling/norms.c', 'return m->centred && m->scale == PO_NONE && m->shift == PO_NONE &&',
     'return m->scale == PO_NONE && m->shift == PO_NONE &&', 'norms of groups, of other'),
    ('MISH', 'rewrite/spelling/activations.c', 'Log(line(1, Exp(x), 1))', 'Log(line(1, Exp(x), o))', 'nearly Mish'),
    ('MISH', 'rewrite/spelling/activations.c', '"Mul(Mish(x), c)"', '"Mish(x)"', 'nearly Mish'),
    ('SOFTMAX', 'rewrite/spelling/activations.c',
     'return po_rearrangeable(graph, node->out[0]) &&\n           axis == po_rank_of',
     'return po_rearrangeable(graph, node->out[0]) ||\n           axis == po_rank_of', 'nearly Softmax'),
    ('SOFTMAX', 'rewrite/spelling/activations.c', '&ReduceMax[k](x)) | x)))"', '&ReduceMax[j](x)) | x)))"',
     'nearly Softmax'),
    ('RELU', 'rewrite/spelling/activations.c', '"Max(x, 0)", bounds', '"Max(x, a:number)", bounds', 'maxima'),
    ('RELU', 'rewrite/spelling/activations.c', '"Max(x, 0)", bounds', '"Max(x, 0)", NULL', 'maxima'),
    ('MOVE_SCALE', 'rewrite/spelling/gates.c', 'm.n != 1 || !po_affine_is_scale(&m) ||', 'm.n != 1 ||',
     'sums before products'),
    ('HARD_SWISH_NODE', 'rewrite/spelling/gates.c',
     'PO_LAW_HARD_SWISH_NODE, "Mul(x, HardSigmoid{alpha=1/6, beta=0.5}(x))"',
     'PO_LAW_HARD_SWISH_NODE, "Mul(x, HardSigmoid{alpha=1/6}(x))"', 'nearly HardSwish'),
    ('HARD_SWISH_NODE', 'rewrite/spelling/gates.c',
     'PO_LAW_HARD_SWISH_NODE, "Mul(x, HardSigmoid{alpha=1/6, beta=0.5}(x))"',
     'PO_LAW_HARD_SWISH_NODE, "Mul(v, HardSigmoid{alpha=1/6, beta=0.5}(x))"', 'nearly HardSwish'),
    ('WRITE_GELU', 'rewrite/spelling/write_forms.c', 'po_node_string_is(n, "approximate", "tanh", "none")',
     'po_node_string_is(n, "approximate", "none", "tanh")', 'GELU'),
    ('WRITE_NORM', 'rewrite/spelling/write_forms.c', '(double)po_node_float(n, "epsilon", 1e-5f)', '1e-5',
     'layer norms'),
    ('SPLIT_MOVES', 'rewrite/spelling/spelling.c', ' || !po_node_string_is(n, "mode", "DCR", "DCR")', '',
     'large DepthToSpace'),
    ('SPLIT_MOVES', 'rewrite/spelling/spelling.c', '{0, 1, 3, 4, 5, 2}', '{0, 2, 3, 4, 5, 1}', 'large DepthToSpace'),
    ('SUMS', 'rewrite/spelling/spelling.c', 'PO_OP_Sum, 2, (po_value_id[]){a, b}',
     'PO_OP_Sum, 2, (po_value_id[]){a, a}', 'sums before norms'),
    # affine chains again
    ('AFFINE_NOTHING', 'rewrite/affine/fold_affine.c',
     'po_affine_is_shift(&m) && po_affine_is_scale(&m) && m.nodes > 1', 'po_affine_is_shift(&m) && m.nodes > 1',
     'affine chains left over'),
    ('AFFINE_NOTHING', 'rewrite/affine/affine.c', '0x1p-25 : 1e-12', '0x1p-7 : 1e-12', 'affine chains along'),
    ('AFFINE_BACK AFFINE_AHEAD', 'rewrite/affine/absorb.c',
     't->count == l->out && (l->out == 1 || t->dims[t->rank - 1] == l->out)', 't->count == l->out', 'biases that are'),
    ('AFFINE_CONV', 'rewrite/affine/fold_affine.c', '(m->axis >= 0 && m->axis != 1) || po_affine_is_scale(m) ||',
     'po_affine_is_scale(m) ||', 'affine chains along'),
    ('AFFINE_SHORT', 'rewrite/affine/affine.c', 'if (q && affine->ra)', 'if (q && affine->ra && affine->rb)',
     'affine chains written'),
    ('AFFINE_SHORT', 'rewrite/affine/affine.c', '*p = s->constant_first ? po_recipe_number(arena, -1) : NULL;',
     '*p = NULL;', 'affine chains written'),
    ('PART_SUM', 'rewrite/conv/sums.c', 'k ? c->b : PO_NONE, c);', 'c->b, c);', 'upsampled twice and a gate'),
    # layouts again
    ('PLANES_POOL', 'rewrite/layout/planes.c', 'wide[2 * i + 1] = v[i];', 'wide[2 * i + 1] = v[pairs - 1 - i];',
     'pools of planes'),
    ('PLANES_CONCAT', 'rewrite/layout/planes.c', 'po_node_int(n, "axis", 0) != 1)', 'po_node_int(n, "axis", 0) < 1)',
     'planes joined'),
    ('TOKENS', 'rewrite/layout/tokens.c', '->weights[p->rows][p->matrix]', '->weights[0][p->matrix]',
     'products by a matrix and'),
    ('TOKENS', 'rewrite/layout/tokens.c', '&((token_layout *)r)->weights[p->rows][p->matrix]', '&r->twin[p->matrix]',
     'products and sums by'),
    ('SHORTEN_MOVES', 'ops/move/rt_node.c', 'graph->values[*root].output, &step', '0, &step', 'moves of parts'),
    ('PULL_MOVES', 'rewrite/layout/cancel_moves.c', 'if (!po_rt_is_bijection(end->rt) || end->nodes',
     'if (end->nodes', 'moves that lose'),
    ('BLOCKS', 'rewrite/conv/blocks.c',
     '(n->op == PO_OP_Mul || n->op == PO_OP_Add || n->op == PO_OP_Sub) && n->n_in == 2',
     '(n->op == PO_OP_Mul || n->op == PO_OP_Add || n->op == PO_OP_Sub || n->op == PO_OP_Div) && n->n_in == 2',
     'quotients of channels'),
    # what laws ask of values, weights and lengths
    ('AFFINE_BACK', 'rewrite/affine/absorb.c', 'id == PO_NONE || !po_read_once(graph, m->x) ||', 'id == PO_NONE ||',
     'affine chains and products'),
    ('DROP_RESHAPE', 'ir/type.c', 'return a.symbol && b.symbol && strcmp(a.symbol, b.symbol) == 0;', 'return true;',
     'shapes that are nearly'),
    ('POOL_FIRST MERGE_SPACES', 'rewrite/conv/conv.c', 'c.b != PO_NONE && (!c.bias || c.bias->dtype',
     'c.bias && (c.bias->dtype', 'biases that are given'),
    # mutants again
    ('HEIGHT_ONE', 'rewrite/conv/rank.c', 'po_mk_rearrange(d, c->w, to, 0, NULL), c->b, &wide)',
     'po_mk_rearrange(d, c->w, to, 0, NULL), PO_NONE, &wide)', 'convolutions along one'),
    ('FEWER_AXES', 'rewrite/conv/rank.c', '"(n a) c %s -> n c %s"', '"(a n) c %s -> n c %s"', 'with single taps'),
    ('MAP_TO_BATCH', 'rewrite/conv/batch.c', '"n c (f h).. -> (n f..) c h=t.."', '"n c (h f).. -> (n f..) c h=t.."',
     'convolutions of long maps'),
    ('CONV_SUM', 'rewrite/conv/sums.c', 'po_conv_same_windows(&a, &b) &&\n        po_same_dims(d->from, a.x, b.x)) {',
     'po_conv_same_windows(&a, &b)) {', 'sums of convolutions that broadcast'),
    ('BRACKET', 'rewrite/products/products.c', '||\n        !associative(d->from, &m))', ')', 'products by vectors'),
    ('BRACKET', 'rewrite/products/products.c', '"MatMul(a, &MatMul(b, c))", "MatMul(MatMul(a, b), c)"',
     '"MatMul(a, &MatMul(b, c))", "MatMul(MatMul(b, a), c)"', 'products by vectors'),
]


# Right at the sizes that are usual: (law, source, what is there, what is planted, verdicts that are
# allowed). The first is wrong for lengths of 0 alone.
NOT_ALL = ('sizes tried', 'of 32', 'not proved')
SIZES = [
    ('COPIED_LENGTHS', 'ops/rewrite.c', 'return left == 0 || (left == 1 && copies == 0);', 'return left <= 1;',
     ('from 1 on', *NOT_ALL)),
    ('DROP_SLICE', 'rewrite/exact/identities.c', 'return left_at(graph, n, 4, 1) ? keeps_shape(graph, n) : PO_NONE;',
     'const po_tensor *end = n->n_in > 2 ? po_graph_constant(graph, n->in[2]) : NULL;\n'
     '    return left_at(graph, n, 4, 1) && end && po_tensor_int(end, 0) >= 600 ? n->in[0] : PO_NONE;', NOT_ALL),
    ('STATE_PADS', 'ops/window.c',
     'if (size < 1 && w->stride[i] != 1)\n            return false;\n'
     '        if (po_window_out(w, i, PO_DIM(size < 1 ? LIMIT : size))',
     'if (po_window_out(w, i, PO_DIM(size < 1 ? 1 << 20 : size))', NOT_ALL),
    ('SPELL_RESIZE', 'rewrite/spelling/spelling.c', 'longer_than_one(graph, n)) {', 'true) {', NOT_ALL),
    ('TILES', 'rewrite/bilinear/tiles.c', 'c->after[axis] + q + (m - 1) * d;', 'c->after[axis] + q;', NOT_ALL),
]


def source_text(name):
    with open(os.path.join(ROOT, 'src', name), encoding='utf-8') as f:
        return f.read()


def replaced(text, row):
    if text.count(row[2]) != 1:
        sys.exit(f'{row[1]}: "{row[2]}" is there {text.count(row[2])} times: the table is out of date')
    return text.replace(row[2], row[3])


def planted_text(row):
    return replaced(source_text(row[1]), row)


def compile_command(build, source):
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
        for entry in json.load(f):
            if entry['file'] == source and 'petopt_objects' in entry['command']:
                return entry['directory'], shlex.split(entry['command'])
    sys.exit(f'{source}: no command compiles it')


def link_command(build, rules):
    """The program's own, before its first object a place for another one."""
    commands = subprocess.run(['ninja', '-C', build, '-t', 'commands', os.path.relpath(rules, build)],
                              capture_output=True, text=True, check=True).stdout.splitlines()
    line = re.sub(r'^: && | && :$', '', commands[-1])
    return shlex.split(line)


def built(build, program, rows, folder):
    """The program with the sources of rows in the place of the library's own."""
    texts = {}
    for row in rows:
        text = texts.get(row[1]) or source_text(row[1])
        texts[row[1]] = replaced(text, row)
    made, link = os.path.join(folder, 'program'), link_command(build, program)
    at = link.index('-o')
    link[at + 1] = made
    for name, text in texts.items():
        out = os.path.join(folder, os.path.basename(name) + '.o')
        compile_planted(build, name, text, out)
        link.insert(at, out)
    subprocess.run(link, cwd=build, check=True)
    return made


def compile_planted(build, name, text, out):
    source = os.path.join(ROOT, 'src', name)
    directory, command = compile_command(build, source)
    bad = out[:-2]
    with open(bad, 'w', encoding='utf-8') as f:
        f.write(text)
    command = [bad if a == source else a for a in command]
    command[command.index('-o') + 1] = out
    command = [a for a in command if a not in ('-Werror', '-MD')]
    for flag in ('-MT', '-MF'):
        if flag in command:
            del command[command.index(flag):command.index(flag) + 2]
    subprocess.run(command + ['-w', '-I' + os.path.dirname(source)], cwd=directory, check=True)


def plant(args, row, folder):
    """What the test says of it."""
    program = built(args.build, args.rules, [row], folder)
    try:
        rounds = args.rounds * (MORE_ROUNDS if len(row) > 4 else 1)  # few graphs each
        p = subprocess.run([program, '--stop', '--count', str(rounds)] +
                           (['--only', row[4]] if len(row) > 4 else []),
                           capture_output=True, text=True, errors='replace', timeout=300)
    except subprocess.TimeoutExpired:
        return None, 'still running'
    if p.returncode == 0:
        return False, ''
    lines = p.stdout.strip().splitlines()
    return True, (lines[0] if lines else f'exit {p.returncode}')[:150]


def plant_sizes(args, row, folder):
    """Whether the law fires and is not called right for every size; what is said of it."""
    p = subprocess.run([built(args.build, args.rules, [row], folder), '--every-size', '--only', row[0], '--count', '3'],
                       capture_output=True, text=True, errors='replace', timeout=300)
    said = [line for line in p.stdout.splitlines() if line.split(' | ')[0] == row[0]]
    verdict = said[0].split(' | ')[1] if said else f'exit {p.returncode}'
    return verdict in row[4], (said or [verdict])[0][:150]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', required=True)
    parser.add_argument('--rules', required=True)
    parser.add_argument('--sample', type=int)
    parser.add_argument('--first', default='0')
    parser.add_argument('--rounds', type=int, default=6)
    parser.add_argument('--only', default='')
    parser.add_argument('--sizes', action='store_true')
    args = parser.parse_args()
    table = SIZES if args.sizes else PLANTED
    rows = [r for r in table if args.only in r[1] or args.only in r[0].split()]
    if len(PLANTED) < LEAST_ROWS:
        sys.exit(f'{len(PLANTED)} rows, at least {LEAST_ROWS} expected')
    for row in PLANTED + SIZES:
        planted_text(row)
    first = int(time.time()) // 3600 if args.first == 'now' else int(args.first)
    if args.sample:
        rows = [rows[(first * args.sample + i) % len(rows)] for i in range(args.sample)]
    missed = 0
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            caught, how = (plant_sizes if args.sizes else plant)(args, row, folder)
        missed += not caught
        what = ' '.join((row[3] or 'nothing for ' + row[2]).split())[:60]
        print(f'{"caught" if caught else "MISSED"}  {row[1]}: {what}\n        {how}', flush=True)
    print(f'{len(rows)} of {len(table)} planted bugs, from {first}: {missed} missed')
    sys.exit(1 if missed else 0)


if __name__ == '__main__':
    main()
