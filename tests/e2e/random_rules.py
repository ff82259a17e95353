"""What random_graph.py draws from: what exporters write and simplifiers get wrong, a function each.
It takes the graph and returns a new value, or None where nothing fits."""
import math

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from random_making import Value


def affine(g):
    x = g.any()
    op = g.pick(['Add', 'Mul', 'Sub', 'Div'])
    c = g.channel_const(x, signed=op != 'Div')
    ins = [x, c] if op == 'Div' or g.chance(0.6) else [c, x]
    return g.emit(op, ins, x.shape)


def binary(g):
    x = g.any()
    y = g.any(lambda v: v.shape == x.shape)
    return g.emit(g.pick(['Add', 'Sub', 'Max', 'Min']), [x, y], x.shape)


def activation(g):
    x = g.any(odd=True)
    op = g.pick(['Relu', 'Sigmoid', 'Tanh', 'LeakyRelu', 'HardSigmoid', 'Elu', 'Softplus', 'Erf', 'Abs',
                 'Neg', 'Clip', 'HardSwish', 'Softsign'])
    if op == 'Clip':
        low, high = g.pick([(0, 6), (-1, 1), (0, None), (None, 2), (None, None)])
        ins = [x] + ['' if b is None else g.const(np.float32(b)) for b in (low, high)]
        while ins and ins[-1] == '':
            ins.pop()
        return g.emit('Clip', ins, x.shape)
    if op == 'HardSwish' and g.opset < 14:
        op = 'Relu'
    attrs = {}
    if op in ('LeakyRelu', 'Elu'):
        attrs = {'alpha': float(g.pick([0.01, 0.1, 1.0]))} if g.chance(0.7) else {}
    if op == 'HardSigmoid' and g.chance(0.7):
        attrs = {'alpha': g.pick([1 / 6, 0.2, 0.25]), 'beta': 0.5}
    return g.emit(op, [x], x.shape, **attrs)


def activation_chain(g):
    """Activations as exporters spell them out."""
    x = g.any(odd=True)
    c = lambda v: g.const(np.asarray(v, np.float32).reshape(g.pick([(), (1,)]) if x.rank else ()))
    kind = g.pick(['hardswish', 'hardswish_div', 'hardsigmoid', 'silu', 'gelu', 'gelu_tanh', 'mish',
                   'square', 'swish_hs'])
    g.used[kind] = g.used.get(kind, 0) + 1
    e = lambda op, *ins, **a: g.emit(op, list(ins), x.shape, **a)
    if kind.startswith('hardswish') or kind == 'hardsigmoid':
        clip = e('Clip', e('Add', x, c(3)), g.const(np.float32(0)), g.const(np.float32(6)))
        if kind == 'hardswish_div':
            return e('Div', e('Mul', x, clip), c(6))
        part = e('Div', clip, c(6)) if g.chance(0.5) else e('Mul', clip, c(1 / 6))
        return part if kind == 'hardsigmoid' else e('Mul', x, part)
    if kind == 'swish_hs':
        return e('Mul', e('HardSigmoid', x, alpha=1 / 6, beta=0.5), x)
    if kind == 'silu':
        return e('Mul', *g.pick([[x, e('Sigmoid', x)], [e('Sigmoid', x), x]]))
    if kind == 'gelu':
        inner = e('Add', e('Erf', e('Div', x, c(math.sqrt(2)))), c(1))
        return e('Mul', e('Mul', x, inner), c(0.5)) if g.chance(0.5) else e('Mul', e('Mul', x, c(0.5)), inner)
    if kind == 'gelu_tanh':
        cube = e('Mul', e('Mul', x, x), x) if g.chance(0.5) else e('Pow', x, c(3))
        t = e('Tanh', e('Mul', e('Add', x, e('Mul', cube, c(0.044715))), c(math.sqrt(2 / math.pi))))
        return e('Mul', e('Mul', x, c(0.5)), e('Add', t, c(1)))
    if kind == 'mish':
        return e('Mul', x, e('Tanh', e('Softplus', x)))
    return e('Mul', x, x) if g.chance(0.5) else e('Pow', x, c(2))


def conv(g):
    x = g.any(lambda v: v.rank in (3, 4, 5) and v.size <= 60000)
    if x is None:
        return None
    dims, cin = x.rank - 2, x.shape[1]
    group = g.pick([d for d in (1, 1, 1, 2, 4, cin) if cin % d == 0])
    cout = group * int(g.rng.integers(1, max(2, 9 // group)))
    if group == cin and g.chance(0.5):
        cout = cin
    kernel = [int(g.pick([1, 1, 2, 3, 3, 5])) for _ in range(dims)]
    stride = [int(g.pick([1, 1, 2])) for _ in range(dims)]
    dilation = [int(g.pick([1, 1, 1, 2])) for _ in range(dims)]
    attrs, spans = {}, [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    style = g.pick(['pads', 'pads', 'none', 'same'])
    if style == 'same':
        dilation = [1] * dims
        attrs['auto_pad'] = g.pick(['SAME_UPPER', 'SAME_LOWER'])
        spatial = [-(-n // s) for n, s in zip(x.shape[2:], stride)]
    else:
        pads = [int(g.rng.integers(0, s)) for s in spans * 2] if style == 'pads' else [0] * 2 * dims
        if style == 'pads' and g.chance(0.5):
            pads = [s // 2 for s in spans] * 2
        spatial = [(n + pads[i] + pads[i + dims] - spans[i]) // stride[i] + 1
                   for i, n in enumerate(x.shape[2:])]
        if style == 'pads':
            attrs['pads'] = pads
    if min(spatial) < 1:
        return None
    if stride != [1] * dims or g.chance(0.3):
        attrs['strides'] = stride
    if dilation != [1] * dims:
        attrs['dilations'] = dilation
    if group != 1:
        attrs['group'] = group
    if g.chance(0.7):
        attrs['kernel_shape'] = kernel
    fan = cin // group * math.prod(kernel)
    ins = [x, g.const(g.normal(cout, cin // group, *kernel, scale=fan ** -0.5))]
    if g.chance(0.5):
        ins.append(g.const(g.normal(cout, scale=0.5)))
    return g.emit('Conv', ins, [x.shape[0], cout, *spatial], **attrs)


def conv_transpose(g):
    x = g.any(lambda v: v.rank == 4 and v.size <= 6000)
    if x is None:
        return None
    cin = x.shape[1]
    group = g.pick([d for d in (1, 1, 2, cin) if cin % d == 0])
    per, k, s, p = int(g.rng.integers(1, 4)), int(g.pick([1, 2, 3, 4])), int(g.pick([1, 2])), 0
    if k > 2 and g.chance(0.5):
        p = 1
    extra = int(s > 1 and g.chance(0.3))
    spatial = [(n - 1) * s + k - 2 * p + extra for n in x.shape[2:]]
    if min(spatial) < 1:
        return None
    ins = [x, g.const(g.normal(cin, per, k, k, scale=(cin * k * k / group) ** -0.5))]
    if g.chance(0.5):
        ins.append(g.const(g.normal(per * group, scale=0.5)))
    return g.emit('ConvTranspose', ins, [x.shape[0], per * group, *spatial], strides=[s, s],
                  pads=[p] * 4, group=group, **({'output_padding': [extra] * 2} if extra else {}))


def batch_norm(g):
    x = g.any(lambda v: v.rank >= 2)
    if x is None:
        return None
    c = x.shape[1]
    stats = [g.rng.uniform(0.5, 1.5, c) * g.rng.choice([-1, 1], c), g.normal(c), g.normal(c, scale=0.3),
             g.rng.uniform(0.5, 2, c)]
    attrs = {'epsilon': g.pick([1e-5, 1e-3])} if g.chance(0.6) else {}
    return g.emit('BatchNormalization', [x] + [g.const(s.astype(np.float32)) for s in stats], x.shape,
                  **attrs)


def channel_affine(g):
    """Mul and Add by a channel vector, as scale layers are exported; often after a convolution."""
    x = g.any(lambda v: v.rank == 4)
    if x is None:
        return None
    shape = g.pick([(x.shape[1], 1, 1), (1, x.shape[1], 1, 1)])
    y = g.emit('Mul', [x, g.const(g.rng.uniform(0.5, 1.5, shape).astype(np.float32))], x.shape)
    return g.emit('Add', [y, g.const(g.normal(*shape))], x.shape) if g.chance(0.7) else y


def matmul(g):
    x = g.any(lambda v: v.rank >= 2 and v.size <= 60000)
    if x is None:
        return None
    k, n = x.shape[-1], int(g.rng.integers(1, 9))
    w = g.normal(k, n, scale=k ** -0.5)
    if x.rank == 2 and g.chance(0.5):
        a, b, tb = g.pick([1.0, 0.5]), g.pick([1.0, 2.0]), int(g.chance(0.5))
        ins = [x, g.const(w.T.copy() if tb else w)]
        if g.chance(0.7):
            ins.append(g.const(g.normal(*g.pick([(n,), (1, n), (1,), (x.shape[0], n), (x.shape[0], 1)]))))
        return g.emit('Gemm', ins, [x.shape[0], n], alpha=a, beta=b, transB=tb)
    y = g.emit('MatMul', [x, g.const(w)], [*x.shape[:-1], n])
    if g.chance(0.5):
        y = g.emit('Add', g.pick([[y, g.const(g.normal(n))], [g.const(g.normal(n)), y]]), y.shape)
    return y


def attention(g):
    x = g.any(lambda v: v.rank == 3 and v.size <= 8000)
    if x is None:
        return None
    perm = g.emit('Transpose', [x], [x.shape[0], x.shape[2], x.shape[1]], perm=[0, 2, 1])
    scores = g.emit('MatMul', [x, perm], [x.shape[0], x.shape[1], x.shape[1]])
    scores = g.emit('Div', [scores, g.const(np.float32(math.sqrt(x.shape[2])))], scores.shape)
    return g.emit('MatMul', [g.emit('Softmax', [scores], scores.shape, axis=2), x], x.shape)


def layer_norm(g):
    x = g.any(lambda v: v.rank in (2, 3) and v.shape[-1] > 2)
    if x is None:
        return None
    less = [*x.shape[:-1], 1]
    def mean(v):
        if g.opset < 18:
            return g.emit('ReduceMean', [v], less, axes=[-1])
        return g.emit('ReduceMean', [v, g.ints([-1])], less)
    two = g.const(np.float32(2))
    d = g.emit('Sub', [x, mean(x)], x.shape)
    var = mean(g.emit('Pow', [d, two], x.shape))
    std = g.emit('Sqrt', [g.emit('Add', [var, g.const(np.float32(1e-5))], less)], less)
    y = g.emit('Div', [d, std], x.shape)
    if g.chance(0.8):
        y = g.emit('Mul', [y, g.const(g.normal(x.shape[-1]))], x.shape)
        y = g.emit('Add', [y, g.const(g.normal(x.shape[-1]))], x.shape)
    return y


def transpose(g):
    x = g.any()
    perm = [int(p) for p in g.rng.permutation(x.rank)]
    y = g.emit('Transpose', [x], [x.shape[p] for p in perm], perm=perm)
    if g.chance(0.5):
        back = [int(p) for p in np.argsort(perm)]
        mid = g.emit('Relu', [y], y.shape) if g.chance(0.4) else y
        y = g.emit('Transpose', [mid], x.shape, perm=back)
    return y


def reshape(g):
    x = g.any()
    target = list(x.shape)
    for _ in range(int(g.rng.integers(1, 3))):
        if len(target) > 1 and g.chance(0.5):
            i = int(g.rng.integers(len(target) - 1))
            target[i:i + 2] = [target[i] * target[i + 1]]
        else:
            i = int(g.rng.integers(len(target)))
            parts = [p for p in (2, 3, 4) if target[i] % p == 0]
            if parts and len(target) < 5:
                p = g.pick(parts)
                target[i:i + 1] = [target[i] // p, p]
    spelled = list(target)
    if g.chance(0.5):
        spelled[int(g.rng.integers(len(spelled)))] = -1
    for i, (a, b) in enumerate(zip(target, x.shape)):
        if a == b and g.chance(0.3):
            spelled[i] = 0
    return g.emit('Reshape', [x, g.ints(spelled)], target)


def reshape_by_shape(g):
    """Reshape to a shape computed from Shape, as PyTorch exports view(x.size(0), -1)."""
    x = g.any(lambda v: v.rank >= 2)
    if x is None:
        return None
    rank = [x.rank]
    shape = g.emit('Shape', [x], rank, np.int64)
    keep = int(g.rng.integers(1, x.rank))
    if g.chance(0.5):
        dims = g.emit('Slice', [shape, g.ints([0]), g.ints([keep]), g.ints([0])], [keep], np.int64)
        whole = g.emit('Concat', [dims, g.ints([-1])], [keep + 1], np.int64, axis=0)
    else:
        parts = []
        for i in range(keep):
            one = g.emit('Gather', [shape, g.ints(i)], [], np.int64, axis=0)
            parts.append(unsqueeze_int(g, one))
        whole = g.emit('Concat', [*parts, g.ints([-1])], [keep + 1], np.int64, axis=0)
    return g.emit('Reshape', [x, whole], [*x.shape[:keep], math.prod(x.shape[keep:])])


def unsqueeze_int(g, v):
    if g.opset < 13:
        return g.emit('Unsqueeze', [v], [1], np.int64, axes=[0])
    return g.emit('Unsqueeze', [v, g.ints([0])], [1], np.int64)


def axes_op(g):
    x = g.any()
    axis = int(g.rng.integers(x.rank + 1))
    shape = [*x.shape[:axis], 1, *x.shape[axis:]]
    if x.rank > 4:
        return None
    axes = {'axes': [axis]} if g.opset < 13 else {}
    more = [] if g.opset < 13 else [g.ints([axis])]
    y = g.emit('Unsqueeze', [x, *more], shape, **axes)
    if g.chance(0.6):
        mid = g.emit('Sigmoid', [y], shape) if g.chance(0.4) else y
        y = g.emit('Squeeze', [mid, *more], x.shape, **axes)
    elif g.chance(0.3):
        y = g.emit('Flatten', [y], [math.prod(shape[:1]), math.prod(shape[1:])])
    return y


def nothing(g):
    """Operators that do nothing, or nearly."""
    x = g.any()
    kind = g.pick(['Identity', 'Dropout', 'Cast', 'slice', 'pad', 'concat', 'expand', 'transpose', 'pow',
                   'reshape', 'tile', 'times_zero', 'minus_self'])
    if kind in ('Identity', 'Dropout'):
        return g.emit(kind, [x], x.shape)
    if kind == 'Cast':
        return g.emit('Cast', [x], x.shape, to=T.FLOAT)
    if kind == 'slice':
        ends = [int(g.pick([n, n + 5, 2 ** 31 - 1, 2 ** 63 - 1])) for n in x.shape]
        return g.emit('Slice', [x, g.ints([0] * x.rank), g.ints(ends)], x.shape)
    if kind == 'pad':
        return g.emit('Pad', [x, g.ints([0] * 2 * x.rank)], x.shape)
    if kind == 'concat':
        return g.emit('Concat', [x], x.shape, axis=int(g.rng.integers(-x.rank, x.rank)))
    if kind == 'expand':
        return g.emit('Expand', [x, g.ints([1] * x.rank)], x.shape)
    if kind == 'transpose':
        return g.emit('Transpose', [x], x.shape, perm=list(range(x.rank)))
    if kind == 'pow':
        return g.emit('Pow', [x, g.const(np.float32(1))], x.shape)
    if kind == 'reshape':
        return g.emit('Reshape', [x, g.ints(x.shape)], x.shape)
    if kind == 'tile':
        return g.emit('Tile', [x, g.ints([1] * x.rank)], x.shape)
    if kind == 'times_zero':
        return g.emit('Mul', [x, g.const(np.float32(0))], x.shape)
    return g.emit('Sub', [x, x], x.shape)


def slice_op(g):
    x = g.any(lambda v: max(v.shape) > 2)
    if x is None:
        return None
    axis = int(g.pick([i for i, n in enumerate(x.shape) if n > 2]))
    n, step = x.shape[axis], int(g.pick([1, 1, 2, -1]))
    a, b = sorted(int(i) for i in g.rng.choice(n + 1, 2, replace=False))
    start, end = (a, b) if step > 0 else (b - 1, a - 1 if a else -n - 1)
    if step > 0 and g.chance(0.4):
        start, end = a - n, (b - n if b < n else 2 ** 31 - 1)
    length = len(range(n)[a:b][::step])
    shape = [*x.shape[:axis], length, *x.shape[axis + 1:]]
    return g.emit('Slice', [x, g.ints([start]), g.ints([end]), g.ints([axis - g.pick([0, x.rank])]),
                            g.ints([step])], shape)


def concat(g):
    x = g.any()
    axis = int(g.rng.integers(x.rank))
    fits = lambda v: v.rank == x.rank and all(i == axis or a == b for i, (a, b) in
                                              enumerate(zip(v.shape, x.shape)))
    parts = [x, g.any(fits)] + ([x] if g.chance(0.2) else [])
    if g.chance(0.3):
        parts.append(g.const(g.normal(*x.shape)))
    total = sum(p.shape[axis] if isinstance(p, Value) else x.shape[axis] for p in parts)
    y = g.emit('Concat', parts, [*x.shape[:axis], total, *x.shape[axis + 1:]], axis=axis)
    return y if y.size < 60000 else None


def split(g):
    x = g.any(lambda v: any(n % 2 == 0 for n in v.shape))
    if x is None:
        return None
    axis = g.pick([i for i, n in enumerate(x.shape) if n % 2 == 0])
    shape = [*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1:]]
    a, b = Value(g.name('t'), shape), Value(g.name('t'), shape)
    half = x.shape[axis] // 2
    more, attrs = [], {'axis': axis}
    if g.opset < 13:
        attrs['split'] = [half, half]
    elif g.opset < 18 or g.chance(0.5):
        more = [g.ints([half, half])]
    else:
        attrs['num_outputs'] = 2
    g.nodes.append(h.make_node('Split', [x.name, *more], [a.name, b.name], **attrs))
    if g.chance(0.4):
        return g.emit('Concat', [a, b], x.shape, axis=axis)
    g.values.append(a)
    return b


def pad(g):
    x = g.any(lambda v: v.rank == 4 and v.size <= 20000)
    if x is None:
        return None
    mode = g.pick(['constant', 'constant', 'edge', 'reflect'])
    room = min(x.shape[2:]) - 1
    p = [int(g.rng.integers(0, min(3, room + 1))) for _ in range(4)]
    ins = [x, g.ints([0, 0, p[0], p[1], 0, 0, p[2], p[3]])]
    if mode == 'constant' and g.chance(0.6):
        ins.append(g.const(np.float32(g.pick([0.0, 0.0, 1.5]))))
    return g.emit('Pad', ins, [*x.shape[:2], x.shape[2] + p[0] + p[2], x.shape[3] + p[1] + p[3]], mode=mode)


def pool(g):
    x = g.any(lambda v: v.rank == 4)
    if x is None:
        return None
    op = g.pick(['MaxPool', 'AveragePool', 'GlobalAveragePool', 'GlobalMaxPool'])
    if op.startswith('Global'):
        return g.emit(op, [x], [*x.shape[:2], 1, 1])
    k, s = int(g.pick([1, 2, 3])), int(g.pick([1, 2]))
    p = int(k > 1 and g.chance(0.5))
    spatial = [(n + 2 * p - k) // s + 1 for n in x.shape[2:]]
    if min(spatial) < 1:
        return None
    more = {'count_include_pad': int(g.chance(0.5))} if op == 'AveragePool' else {}
    return g.emit(op, [x], [*x.shape[:2], *spatial], kernel_shape=[k, k], strides=[s, s], pads=[p] * 4, **more)


def reduce(g):
    x = g.any(lambda v: v.rank >= 2)
    if x is None:
        return None
    op, axis, keep = g.pick(['ReduceMean', 'ReduceMax', 'ReduceSum', 'ReduceMin']), int(
        g.rng.integers(x.rank)), int(g.chance(0.7))
    shape = [*x.shape[:axis], *([1] if keep else []), *x.shape[axis + 1:]]
    as_input = g.opset >= (13 if op == 'ReduceSum' else 18)
    ins, attrs = ([x, g.ints([axis])], {}) if as_input else ([x], {'axes': [axis - g.pick([0, x.rank])]})
    y = g.emit(op, ins, shape, keepdims=keep, **attrs)
    if op == 'ReduceSum':  # back to the size of its parts
        y = g.emit('Mul', [y, g.const(np.float32(1 / x.shape[axis]))], shape)
    return y


def resize(g):
    x = g.any(lambda v: v.rank == 4 and v.size <= 4000)
    if x is None:
        return None
    mode = g.pick(['nearest', 'nearest', 'linear'])
    attrs = {'mode': mode, 'coordinate_transformation_mode': 'asymmetric'}
    if mode == 'nearest':
        attrs['nearest_mode'] = 'floor'
    roi = '' if g.opset >= 13 else g.const(np.zeros(0, np.float32))
    return g.emit('Resize', [x, roi, g.const(np.asarray([1, 1, 2, 2], np.float32))],
                  [*x.shape[:2], 2 * x.shape[2], 2 * x.shape[3]], **attrs)


def softmax(g):
    x = g.any()
    return g.emit(g.pick(['Softmax', 'LogSoftmax']), [x], x.shape, axis=x.rank - 1)


def twice(g):
    """The same node again, for the search for duplicates."""
    fit = [n for n in g.nodes if len(n.output) == 1 and any(v.name == n.output[0] for v in g.values)]
    if not fit:
        return None
    node = onnx.NodeProto()
    node.CopyFrom(g.pick(fit))
    old = next(v for v in g.values if v.name == node.output[0])
    node.output[0], node.name = g.name('t'), ''
    g.nodes.append(node)
    again = Value(node.output[0], old.shape, old.dtype)
    if old.dtype != np.float32:
        return again
    return g.emit('Add', [old, again], old.shape)


def where(g):
    x = g.any(odd=True)
    y = g.any(lambda v: v.shape == x.shape, odd=True)
    if g.chance(0.3):
        cond = g.const(np.asarray(g.chance(0.5)))
    else:
        cond = g.emit('Greater', [x, g.const(np.float32(0.1))], x.shape, np.bool_)
    return g.emit('Where', [cond, x, y], x.shape)


def branch(g):
    """An If whose branches use outer values; the condition a constant or computed."""
    x = g.any()
    if g.chance(0.4):
        cond = g.const(np.asarray(g.chance(0.5)))
    else:
        total = g.emit('ReduceMax', [x], [], keepdims=0)
        cond = g.emit('Greater', [total, g.const(np.float32(0.2))], [], np.bool_)
    def body(op):
        out, c = g.name('b'), g.name('bc')
        nodes = [h.make_node('Constant', [], [c], value=nh.from_array(np.asarray(0.5, np.float32))),
                 h.make_node('Mul', [x.name, c], [c + 'm']), h.make_node('Identity', [c + 'm'], [c + 'j']),
                 h.make_node(op, [c + 'j', x.name], [out])]
        return h.make_graph(nodes, g.name('g'), [], [h.make_tensor_value_info(out, T.FLOAT, x.shape)])
    return g.emit('If', [cond], x.shape, then_branch=body('Add'), else_branch=body('Sub'))


def quantised(g):
    x = g.any()
    scale, zero = g.const(np.float32(0.02)), g.const(np.asarray(3, np.int8))
    q = g.emit('QuantizeLinear', [x, scale, zero], x.shape, np.int8)
    return g.emit('DequantizeLinear', [q, scale, zero], x.shape)


def half(g):
    x = g.any(odd=True)
    f16 = g.emit('Cast', [x], x.shape, np.float16, to=T.FLOAT16)
    y = g.emit(g.pick(['Add', 'Mul']), [f16, g.const(np.float16(0.5))], x.shape, np.float16)
    return g.emit('Cast', [y], x.shape, to=T.FLOAT)


def shape_numbers(g):
    """Integer arithmetic on dims, ending as a factor."""
    x = g.any(lambda v: v.rank >= 2)
    if x is None:
        return None
    shape = g.emit('Shape', [x], [x.rank], np.int64)
    one = g.emit('Gather', [shape, g.ints([int(g.rng.integers(x.rank))])], [1], np.int64, axis=0)
    op = g.pick(['Add', 'Mul', 'Sub', 'Div', 'Mod'])
    if op == 'Mod':
        one = g.emit(op, [one, g.ints([3])], [1], np.int64)
    else:
        one = g.emit(op, [one, g.ints([2])], [1], np.int64)
    f = g.emit('Cast', [one], [1], to=T.FLOAT)
    f = g.emit('Mul', [f, g.const(np.float32(0.1))], [1])
    return g.emit('Mul', [x, f], x.shape)


def shape_made(g):
    """A constant tensor made of a shape."""
    x = g.any()
    shape = g.emit('Shape', [x], [x.rank], np.int64)
    kind = g.pick(['fill', 'expand'])
    if kind == 'fill':
        fill = g.emit('ConstantOfShape', [shape], x.shape, value=nh.from_array(np.asarray([0.5], np.float32)))
    else:
        fill = g.emit('Expand', [g.const(np.float32([0.25])), shape], x.shape)
    return g.emit('Add', [x, fill], x.shape)


def number(g):
    """All of a value as one number, and what is made of it."""
    x = g.any()
    y = g.emit(g.pick(['ReduceMean', 'ReduceMax', 'ReduceMin']), [x], [], keepdims=0)
    for _ in range(int(g.rng.integers(3))):
        y = g.emit(g.pick(['Mul', 'Add', 'Sub']), [y, g.const(np.float32(g.rng.uniform(0.5, 1.5)))], [])
    return y


def stretched(g):
    """Two values of different ranks: numbers, rows, what is empty."""
    x = g.any(odd=True)
    fits = lambda v: v is not x and v.rank <= x.rank and all(
        a in (1, b) for a, b in zip(v.shape[::-1], x.shape[::-1]))
    y = g.any(fits, odd=True)
    if y is None:
        return None
    return g.emit(g.pick(['Add', 'Mul', 'Sub', 'Max']), g.pick([[x, y], [y, x]]), x.shape)


def odd_shape(g):
    """What is empty, or a number, or of many dims, made of something else."""
    x = g.any()
    kind = g.pick(['none', 'none', 'one', 'many', 'sum of none'])
    if kind == 'one':
        first = g.emit('Slice', [x, g.ints([0] * x.rank), g.ints([1] * x.rank)], [1] * x.rank)
        return g.emit('Reshape', [first, g.ints(np.zeros(0, np.int64))], [])
    if kind == 'many':
        shape = [1] * int(g.rng.integers(0, 8 - x.rank)) + list(x.shape) + [1]
        return g.emit('Reshape', [x, g.ints(shape)], shape)
    axis = int(g.rng.integers(x.rank))
    shape = [0 if i == axis else n for i, n in enumerate(x.shape)]
    y = g.emit('Slice', [x, g.ints([1]), g.ints([1]), g.ints([axis])], shape)
    if kind == 'none':
        return g.emit('Concat', [x, y], x.shape, axis=axis) if g.chance(0.5) else y
    axes = {'axes': [axis]} if g.opset < 13 else {}
    y = g.emit('ReduceSum', [y] if axes else [y, g.ints([axis])], [1 if i == axis else n
               for i, n in enumerate(x.shape)], **axes)
    return g.emit('Add', [x, y], x.shape)


TYPES = {np.int32: T.INT32, np.int64: T.INT64, np.float16: T.FLOAT16, np.float64: T.DOUBLE,
         np.bool_: T.BOOL, np.uint8: T.UINT8, np.int8: T.INT8, np.int16: T.INT16, np.uint16: T.UINT16,
         np.uint32: T.UINT32, np.uint64: T.UINT64}


def other_type(g):
    """There and back by way of another type, or of an input of it."""
    dtype = g.pick(list(TYPES))
    y = g.any(dtype=dtype, odd=True) if g.chance(0.7) else None
    if y is None:
        x = g.any(odd=True)
        # Not where a hair's breadth tells one integer from the next.
        c = lambda v: g.const(np.float32(v))
        x = g.emit('Add', [g.emit('Abs', [x], x.shape), c(0.37)], x.shape)
        y = g.emit('Cast', [x], x.shape, dtype, to=TYPES[dtype])
    if dtype is np.bool_:
        y = g.emit('Not', [y], y.shape, dtype)
    elif dtype in (np.int32, np.int64, np.float16, np.float64):
        y = g.emit(g.pick(['Add', 'Mul', 'Sub']), [y, g.const(dtype(2))], y.shape, dtype)
    else:
        y = g.emit('Identity', [y], y.shape, dtype)
    g.values.append(y)
    return g.emit('Cast', [y], y.shape, to=T.FLOAT)


def dynamically_quantised(g):
    x = g.any(lambda v: v.rank <= 3 and v.size <= 20000)
    if x is None:
        return None
    names = [g.name('t') for _ in range(3)]
    g.nodes.append(h.make_node('DynamicQuantizeLinear', [x.name], names))
    w = g.const(g.rng.integers(-9, 9, (x.shape[-1], 4)).astype(np.int8))
    y = g.emit('MatMulInteger', [names[0], w, names[2]], [*x.shape[:-1], 4], np.int32)
    y = g.emit('Cast', [y], y.shape, to=T.FLOAT)
    scale = g.emit('Mul', [names[1], g.const(np.float32(0.01))], [])
    return g.emit('Mul', [y, scale], y.shape)
