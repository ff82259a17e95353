"""Random networks of linear operators, valid by construction, always the same for a seed: what PET's
mutations bear on. Several operators each, one to three spatial axes, odd sizes, dilations, strides,
groups, batches, parallel and consecutive operators, with a non-linear one here and there so that a
model is more than one subprogram. random_rules.py has the other operators."""
import math

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h

import random_rules
from random_making import Graph, Value


def weight(g, *shape, fan=None):
    return g.const(g.normal(*shape, scale=(fan or math.prod(shape[1:])) ** -0.5))


def maps(g, most=20000, ranks=(3, 4, 5)):
    return g.any(lambda v: v.rank in ranks and v.size <= most and min(v.shape) >= 1)


def spatial(x, kernel, stride, dilation, pads):
    n = x.rank - 2
    return [(d + pads[i] + pads[i + n] - (dilation[i] * (kernel[i] - 1) + 1)) // stride[i] + 1
            for i, d in enumerate(x.shape[2:])]


def convolve(g, x, cout, kernel, stride=None, dilation=None, pads=None, group=1, bias=None):
    n = x.rank - 2
    stride, dilation, pads = stride or [1] * n, dilation or [1] * n, pads or [0] * 2 * n
    dims = spatial(x, kernel, stride, dilation, pads)
    if min(dims) < 1:
        return None
    ins = [x, weight(g, cout, x.shape[1] // group, *kernel)]
    if g.chance(0.3) if bias is None else bias:
        ins.append(g.const(g.normal(cout, scale=0.5)))
    return g.emit('Conv', ins, [x.shape[0], cout, *dims], kernel_shape=kernel, strides=stride,
                  dilations=dilation, pads=pads, group=group)


def same(kernel, dilation):
    span = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return [s // 2 for s in span] + [s - s // 2 for s in span]


def conv(g):
    x = maps(g)
    if x is None:
        return None
    n, cin = x.rank - 2, x.shape[1]
    group = g.pick([d for d in (1, 1, 2, 3, 4, cin) if cin % d == 0])
    kernel = [int(g.pick([1, 2, 3, 3, 5])) for _ in range(n)]
    dilation = [int(g.pick([1, 1, 2, 3])) for _ in range(n)]
    stride = [int(g.pick([1, 1, 1, 2, 3])) for _ in range(n)]
    pads = same(kernel, dilation) if g.chance(0.6) else [int(g.rng.integers(0, 3)) for _ in range(2 * n)]
    return convolve(g, x, group * int(g.rng.integers(1, 4)), kernel, stride, dilation, pads, group)


def even_dilation(g):
    """The same dilation on every axis, as dilated networks have it."""
    x = maps(g)
    if x is None:
        return None
    n, d = x.rank - 2, int(g.pick([2, 2, 3, 4]))
    kernel, dilation = [3] * n, [d] * n
    return convolve(g, x, int(g.rng.integers(1, 7)), kernel, None, dilation, same(kernel, dilation))


def parallel(g):
    """Convolutions of one tensor, added, joined or both alive."""
    x = maps(g)
    if x is None:
        return None
    n, parts, alike = x.rank - 2, [], g.chance(0.4)
    cout = int(g.rng.integers(1, 5))
    for _ in range(int(g.rng.integers(2, 4))):
        k = 3 if alike else int(g.pick([1, 3, 5]))
        y = convolve(g, x, cout if alike else int(g.rng.integers(1, 5)), [k] * n, pads=[k // 2] * 2 * n)
        parts.append(y)
    if alike and g.chance(0.5):
        total = parts[0]
        for p in parts[1:]:
            total = g.emit('Add', [total, p], total.shape)
        return total
    if g.chance(0.7):
        c = sum(p.shape[1] for p in parts)
        return g.emit('Concat', parts, [x.shape[0], c, *x.shape[2:]], axis=1)
    g.values += parts[:-1]
    return parts[-1]


def groups_unequal(g):
    """A tensor split by channels, a convolution on each part."""
    x = maps(g)
    if x is None or x.shape[1] < 3:
        return None
    a = int(g.rng.integers(1, x.shape[1]))
    axes = g.ints([1])
    left = g.emit('Slice', [x, g.ints([0]), g.ints([a]), axes], [x.shape[0], a, *x.shape[2:]])
    right = g.emit('Slice', [x, g.ints([a]), g.ints([x.shape[1]]), axes],
                   [x.shape[0], x.shape[1] - a, *x.shape[2:]])
    n = x.rank - 2
    parts = [convolve(g, p, int(g.rng.integers(1, 4)), [3] * n, pads=[1] * 2 * n) for p in (left, right)]
    return g.emit('Concat', parts, [x.shape[0], sum(p.shape[1] for p in parts), *x.shape[2:]], axis=1)


def pointwise_chain(g):
    x = maps(g)
    if x is None:
        return None
    one = [1] * (x.rank - 2)
    y = convolve(g, x, int(g.rng.integers(2, 12)), one)
    return convolve(g, y, int(g.rng.integers(1, 6)), [3] * len(one) if g.chance(0.4) else one)


def over_concat(g):
    x = maps(g)
    y = x and g.any(lambda v: v.rank == x.rank and v.shape[0] == x.shape[0] and v.shape[2:] == x.shape[2:])
    if not y:
        return None
    c = x.shape[1] + y.shape[1]
    z = g.emit('Concat', [x, y], [x.shape[0], c, *x.shape[2:]], axis=1)
    k = int(g.pick([1, 3]))
    return convolve(g, z, int(g.rng.integers(1, 6)), [k] * (x.rank - 2), pads=[k // 2] * 2 * (x.rank - 2))


def upsampled(g):
    x = maps(g, 3000, (4,))
    if x is None:
        return None
    f = [int(g.pick([1, 2, 2, 3])) for _ in range(2)]
    roi = '' if g.opset >= 13 else g.const(np.zeros(0, np.float32))
    y = g.emit('Resize', [x, roi, g.const(np.asarray([1, 1, *f], np.float32))],
               [*x.shape[:2], x.shape[2] * f[0], x.shape[3] * f[1]], mode='nearest',
               coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    k = int(g.pick([1, 3, 3, 5]))
    return convolve(g, y, int(g.rng.integers(1, 6)), [k, k], pads=[k // 2] * 4)


def transposed(g):
    x = maps(g, 3000)
    if x is None:
        return None
    n, cin = x.rank - 2, x.shape[1]
    group = g.pick([d for d in (1, 1, 2, cin) if cin % d == 0])
    s = [int(g.pick([1, 2, 2, 3])) for _ in range(n)]
    k = [int(g.pick([s[i], s[i] + 1, 2 * s[i], 3])) for i in range(n)]
    pads = [int(g.rng.integers(0, min(2, k[i % n]))) for i in range(2 * n)]
    extra = [int(v > 1 and g.chance(0.2)) for v in s]
    dims = [(d - 1) * s[i] + k[i] - pads[i] - pads[i + n] + extra[i] for i, d in enumerate(x.shape[2:])]
    if min(dims) < 1:
        return None
    per = int(g.rng.integers(1, 4))
    ins = [x, weight(g, cin, per, *k, fan=cin * math.prod(k) / group)]
    if g.chance(0.3):
        ins.append(g.const(g.normal(per * group)))
    return g.emit('ConvTranspose', ins, [x.shape[0], per * group, *dims], strides=s, pads=pads,
                  kernel_shape=k, group=group, output_padding=extra)


def averaged(g):
    x = maps(g)
    if x is None:
        return None
    n = x.rank - 2
    if g.chance(0.2):
        return g.emit('GlobalAveragePool', [x], [*x.shape[:2], *[1] * n])
    k, s = int(g.pick([2, 3])), int(g.pick([1, 2]))
    pads = [int(g.chance(0.5))] * 2 * n
    dims = spatial(x, [k] * n, [s] * n, [1] * n, pads)
    if min(dims) < 1:
        return None
    y = g.emit('AveragePool', [x], [*x.shape[:2], *dims], kernel_shape=[k] * n, strides=[s] * n, pads=pads,
               count_include_pad=int(g.chance(0.5)))
    return convolve(g, y, int(g.rng.integers(1, 6)), [1] * n) if g.chance(0.4) else y


def products(g):
    """Matrix products of one tensor, added or joined: x W + (x A) B, and projections side by side."""
    x = g.any(lambda v: v.rank in (2, 3) and v.size <= 20000)
    if x is None:
        return None
    k, n, r = x.shape[-1], int(g.rng.integers(1, 12)), int(g.rng.integers(1, 4))
    y = g.emit('MatMul', [x, g.const(g.normal(k, n, scale=k ** -0.5))], [*x.shape[:-1], n])
    kind = g.pick(['low rank', 'joined', 'chain', 'both'])
    if kind == 'low rank':
        a = g.emit('MatMul', [x, g.const(g.normal(k, r, scale=k ** -0.5))], [*x.shape[:-1], r])
        b = g.emit('MatMul', [a, g.const(g.normal(r, n, scale=r ** -0.5))], y.shape)
        return g.emit('Add', [y, b], y.shape)
    if kind == 'chain':
        return g.emit('MatMul', [y, g.const(g.normal(n, r, scale=n ** -0.5))], [*x.shape[:-1], r])
    z = g.emit('MatMul', [x, g.const(g.normal(k, n, scale=k ** -0.5))], y.shape)
    if kind == 'joined':
        return g.emit('Concat', [y, z], [*x.shape[:-1], 2 * n], axis=x.rank - 1)
    g.values.append(y)
    return z


def batched(g):
    x = g.any(lambda v: v.rank == 3 and v.size <= 8000)
    if x is None:
        return None
    b, m, k = x.shape
    n = int(g.rng.integers(1, 9))
    return g.emit('MatMul', [x, g.const(g.normal(b, k, n, scale=k ** -0.5))], [b, m, n])


def summed(g):
    x = g.any()
    y = g.any(lambda v: v.shape == x.shape)
    return g.emit(g.pick(['Add', 'Sub']), [x, y], x.shape)


def scaled(g):
    x = g.any(lambda v: v.rank >= 3)
    if x is None:
        return None
    c = g.const(g.normal(x.shape[1], *[1] * (x.rank - 2)))
    return g.emit(g.pick(['Mul', 'Add']), [x, c], x.shape)


def bent(g):
    x = g.any()
    return g.emit(g.pick(['Relu', 'Relu', 'Sigmoid', 'Tanh']), [x], x.shape)


RULES = [(conv, 10), (even_dilation, 5), (parallel, 5), (groups_unequal, 3), (pointwise_chain, 4),
         (over_concat, 4), (upsampled, 4), (transposed, 5), (averaged, 4), (products, 5), (batched, 2),
         (summed, 3), (scaled, 3), (bent, 4), (random_rules.reshape, 2), (random_rules.transpose, 2),
         (random_rules.slice_op, 2), (random_rules.batch_norm, 3), (random_rules.split, 1)]
SHAPES = [(1, 4, 9, 9), (2, 3, 8, 10), (3, 6, 7, 5), (1, 16, 6, 6), (4, 2, 5, 7), (1, 6, 13, 11), (2, 5, 13),
          (1, 16, 12), (1, 8, 31), (1, 4, 5, 6, 7), (2, 2, 4, 5, 6), (1, 16, 4, 6, 6), (7, 12), (2, 6, 8)]


def build(seed):
    """(model, inputs, names of the rules used) of a seed."""
    g = Graph(seed)
    for _ in range(int(g.rng.integers(1, 3))):
        g.inputs.append(Value(g.name('x'), g.pick(SHAPES)))
    g.values += g.inputs
    rules, odds = zip(*RULES)
    odds = np.asarray(odds, float) / sum(odds)
    for _ in range(int(g.rng.integers(2, 10))):
        made = len(g.nodes), len(g.weights)
        rule = rules[int(g.rng.choice(len(rules), p=odds))]
        value = rule(g)
        if value is None or value.size > 100000:
            del g.nodes[made[0]:], g.weights[made[1]:]
            continue
        g.used[rule.__name__] = g.used.get(rule.__name__, 0) + 1
        g.values.append(value)
    known = {n for node in g.nodes for n in node.output}
    made = [v for v in g.values if v.name in known]
    if not made:
        made = [g.emit('Relu', [g.inputs[0]], g.inputs[0].shape)]
    outputs = made[-1:] + [v for v in made[:-1] if g.chance(0.1)]
    graph = h.make_graph(g.nodes, f'multilinear {seed}',
                         [h.make_tensor_value_info(v.name, T.FLOAT, v.shape) for v in g.inputs],
                         [h.make_tensor_value_info(o.name, T.FLOAT, None) for o in outputs], g.weights)
    model = h.make_model(graph, opset_imports=[h.make_opsetid('', g.opset)], ir_version=7)
    return model, {v.name: g.normal(*v.shape) for v in g.inputs}, g.used
