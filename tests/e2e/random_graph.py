"""Random ONNX graphs out of what exporters write and simplifiers get wrong (random_rules.py), always
the same for a seed. Values stay near one, so that a difference is an error and not cancellation."""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import random_rules as rules
from random_making import Graph, Value
from random_rules import TYPES

RULES = [(rules.affine, 8), (rules.binary, 4), (rules.activation, 5), (rules.activation_chain, 6),
         (rules.conv, 10), (rules.conv_transpose, 2), (rules.batch_norm, 5), (rules.channel_affine, 5),
         (rules.matmul, 5), (rules.attention, 1), (rules.layer_norm, 2), (rules.transpose, 3),
         (rules.reshape, 3), (rules.reshape_by_shape, 2), (rules.axes_op, 3), (rules.nothing, 6),
         (rules.slice_op, 2), (rules.concat, 2), (rules.split, 2), (rules.pad, 2), (rules.pool, 2),
         (rules.reduce, 2), (rules.resize, 1), (rules.softmax, 1), (rules.twice, 3), (rules.where, 1),
         (rules.branch, 1), (rules.quantised, 1), (rules.half, 1), (rules.shape_numbers, 2),
         (rules.shape_made, 1), (rules.number, 2), (rules.stretched, 3), (rules.odd_shape, 2),
         (rules.other_type, 2), (rules.dynamically_quantised, 1)]


def build(seed):
    """(model, inputs, names of the rules used) of a seed."""
    g = Graph(seed)
    rng = g.rng
    for _ in range(int(rng.integers(1, 3))):
        shape = g.pick([(1, 4, 9, 9), (2, 3, 8, 10), (1, 8, 7, 5), (1, 16, 6, 6), (2, 5, 12), (3, 8),
                        (1, 6, 8), (1, 2, 4, 5, 6)])
        g.inputs.append(Value(g.name('x'), shape))
    if g.chance(0.4):
        g.inputs.append(Value(g.name('x'), g.pick([(), (), (7,), (1,), (2, 1, 3, 1, 2, 4), (0,), (2, 0, 3)])))
    if g.chance(0.3):
        g.inputs.append(Value(g.name('x'), g.pick([(), (5,), (2, 3), (1, 4, 9, 9), (3, 0)]),
                              g.pick(list(TYPES))))
    g.values += g.inputs
    drawn, odds = zip(*RULES)
    odds = np.asarray(odds, float) / sum(odds)
    for _ in range(int(rng.integers(3, 25))):
        rule = drawn[int(rng.choice(len(drawn), p=odds))]
        made = len(g.nodes), len(g.weights)
        value = rule(g)
        if value is None:
            # What the rule had begun is dead: it stays, for the search for dead nodes.
            continue
        g.used[rule.__name__] = g.used.get(rule.__name__, 0) + 1
        if value.size > 200000:
            del g.nodes[made[0]:], g.weights[made[1]:]
            continue
        g.values.append(value)
    made = [v for v in g.values if v not in g.inputs and v.dtype == np.float32]
    if not made:
        made = [g.emit('Relu', [g.inputs[0]], g.inputs[0].shape)]
    outputs = made[-1:] + [v for v in made[:-1] if g.chance(0.12)]
    # A whole batch axis may be symbolic, and an initialiser may be an input that can be replaced.
    symbolic = g.chance(0.25)
    infos = []
    for v in g.inputs:
        dims = ['N' if symbolic and i == 0 and g.chance(0.8) else n for i, n in enumerate(v.shape)]
        infos.append(h.make_tensor_value_info(v.name, TYPES.get(v.dtype, T.FLOAT), dims))
    shown = {}
    if g.weights and g.chance(0.2):
        w = g.pick(g.weights)
        infos.append(h.make_tensor_value_info(w.name, w.data_type, list(w.dims)))
        if w.data_type == T.FLOAT and g.chance(0.5):
            shown[w.name] = np.asarray(nh.to_array(w) * np.float32(0.5), np.float32)
    graph = h.make_graph(g.nodes, f'random {seed}', infos,
                         [h.make_tensor_value_info(o.name, T.FLOAT, None) for o in outputs], g.weights)
    model = h.make_model(graph, opset_imports=[h.make_opsetid('', g.opset)], ir_version=7)
    ins = {v.name: np.asarray(g.normal(*v.shape) if np.issubdtype(v.dtype, np.floating)
                              else g.rng.integers(0, 5, v.shape), v.dtype) for v in g.inputs}
    if g.chance(0.3):
        model = onnx.shape_inference.infer_shapes(model)
    return model, {**ins, **shown}, g.used
