"""Models with open sizes, for the tests of kernels: their batch is open, or more."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def open_graph(nodes, inputs, outputs, weights):
    """A model of which the batch is open; outputs by name: their shapes."""
    def infos(shapes):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    g = helper.make_graph([helper.make_node(op, i, [o], **more) for op, i, o, more in nodes], 'g', infos(inputs),
                          infos(outputs), [numpy_helper.from_array(w, n) for n, w in weights.items()])
    return helper.make_model(g, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def filters(r):
    """Draws weights [out, in, ..] of which sums stay as large as what is summed."""
    return lambda *dims: (r.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))).astype('f')


def gated_maps(r, height='H', width='W'):
    """A detector's neck: a few channels are widened and gated, a coarser map is added, and a window of 3x3 reads
    the sum."""
    w = filters(r)
    nodes = [('Conv', ['x', 'k'], 'a', {'pads': [1] * 4}), ('Relu', ['a'], 'b', {}),
             ('Conv', ['b', 'd'], 'c', {'pads': [1] * 4, 'strides': [2, 2]}), ('Tanh', ['c'], 'z', {}),
             ('Resize', ['z', '', 'scales'], 'u', {'mode': 'nearest', 'coordinate_transformation_mode': 'asymmetric',
                                                   'nearest_mode': 'floor'}),
             ('GlobalAveragePool', ['b'], 'm', {}), ('Conv', ['m', 'p'], 's', {}), ('Sigmoid', ['s'], 't', {}),
             ('Conv', ['b', 'w'], 'e', {}), ('Mul', ['e', 't'], 'f', {}), ('Add', ['f', 'u'], 'g', {}),
             ('Conv', ['g', 'v', 'c0'], 'y', {'pads': [1] * 4})]
    return open_graph(nodes, {'x': ['N', 3, height, width]}, {'y': ['N', 16, height, width]},
                      {'k': w(12, 3, 3, 3), 'd': w(48, 12, 3, 3), 'p': w(48, 12, 1, 1), 'w': w(48, 12, 1, 1),
                       'v': w(16, 48, 3, 3), 'c0': w(16), 'scales': np.array([1, 1, 2, 2], 'f')})


def text_line(r):
    """A recogniser of lines of text: of 33 to 80 rows few are left, as many as windows have, and then one."""
    w = filters(r)
    nodes, last, weights = [], 'x', {'k0': w(16, 3, 3, 3)}
    for i, (channels, strides) in enumerate([(16, [2, 2]), (16, [2, 1]), (16, [2, 2]), (16, [2, 1])]):
        if i:
            weights[f'd{i}'], weights[f'p{i}'] = w(16, 1, 5, 5), w(channels, 16, 1, 1)
            nodes += [('Conv', [last, f'd{i}'], f'a{i}', {'pads': [2] * 4, 'strides': strides, 'group': 16}),
                      ('Conv', [f'a{i}', f'p{i}'], f'b{i}', {})]
        else:
            nodes += [('Conv', [last, 'k0'], 'b0', {'pads': [1] * 4, 'strides': strides})]
        nodes += [('Relu', [f'b{i}'], f'r{i}', {})]
        last = f'r{i}'
    nodes += [('AveragePool', [last], 'm', {'kernel_shape': [3, 2], 'strides': [3, 2]}),
              ('Conv', ['m', 'v'], 'n', {'pads': [0, 1, 0, 1]}), ('Tanh', ['n'], 'o', {}),
              ('Squeeze', ['o', 'two'], 's', {}), ('Transpose', ['s'], 't', {'perm': [0, 2, 1]}),
              ('MatMul', ['t', 'w'], 'z', {}), ('Softmax', ['z'], 'y', {'axis': 2})]
    weights |= {'v': w(24, 16, 1, 3), 'two': np.array([2]), 'w': w(97, 24).T.copy()}
    return open_graph(nodes, {'x': ['N', 3, 'H', 'W']}, {'y': ['N', 'T', 97]}, weights)


def attention(r, width, heads, guarded=False):
    """One block of an encoder of which batch and length are open; guarded: rows that a mask hides as a whole
    are zeros, as exporters of torch's attention write it."""
    def w(*dims):
        return (r.standard_normal(dims) / np.sqrt(dims[0])).astype('f')
    each = width // heads
    nodes, weights = [], {'split': np.array([0, 0, heads, each]), 'join': np.array([0, 0, width]),
                          'scale': np.array(1 / np.sqrt(each), 'f'), 'one': np.ones(width, 'f'),
                          'nothing': np.zeros(width, 'f')}
    for n in 'qkv':
        weights['w' + n] = w(width, width)
        weights['b' + n] = w(width)
        nodes += [('MatMul', ['x', 'w' + n], n + '0', {}), ('Add', [n + '0', 'b' + n], n + '1', {}),
                  ('Reshape', [n + '1', 'split'], n + '2', {}),
                  ('Transpose', [n + '2'], n + '3', {'perm': [0, 2, 3, 1] if n == 'k' else [0, 2, 1, 3]})]
    weights |= {'wo': w(width, width), 'bo': w(width), 'w1': w(width, 4 * width), 'w2': w(4 * width, width)}
    nodes += [('MatMul', ['q3', 'k3'], 's0', {}), ('Mul', ['s0', 'scale'], 's1', {})]
    seen = 's2'
    if guarded:
        weights['zero'] = np.array(0, 'f')
        nodes += [('Add', ['s1', 'mask'], 'm1', {}), ('Softmax', ['m1'], 's2', {'axis': -1}), ('IsNaN', ['s2'], 'n', {}),
                  ('Where', ['n', 'zero', 's2'], 's3', {})]
        seen = 's3'
    else:
        nodes += [('Softmax', ['s1'], 's2', {'axis': -1})]
    nodes += [('MatMul', [seen, 'v3'], 'o0', {}),
              ('Transpose', ['o0'], 'o1', {'perm': [0, 2, 1, 3]}), ('Reshape', ['o1', 'join'], 'o2', {}),
              ('MatMul', ['o2', 'wo'], 'o3', {}), ('Add', ['o3', 'bo'], 'o4', {}), ('Add', ['o4', 'x'], 'o5', {}),
              ('LayerNormalization', ['o5', 'one', 'nothing'], 'o6', {'axis': -1}),
              ('MatMul', ['o6', 'w1'], 'f0', {}), ('Tanh', ['f0'], 'f1', {}), ('MatMul', ['f1', 'w2'], 'f2', {}),
              ('Add', ['f2', 'o6'], 'y', {})]
    return open_graph(nodes, {'x': ['N', 'T', width]} | ({'mask': ['N', 1, 'T', 'T']} if guarded else {}),
                      {'y': ['N', 'T', width]}, weights)
