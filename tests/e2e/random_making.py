"""What random graphs are made of: values, constants in their many forms, nodes."""
import math

import numpy as np
from onnx import helper as h
from onnx import numpy_helper as nh


class Value:
    def __init__(self, name, shape, dtype=np.float32, positive=False):
        self.name, self.shape, self.dtype, self.positive = name, tuple(shape), dtype, positive

    rank = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))


class Graph:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.rng.choice([11, 12, 13, 14, 15, 17, 18, 19, 20, 21]))
        self.nodes, self.weights, self.inputs, self.values = [], [], [], []
        self.count = 0
        self.used = {}  # rule name -> times

    # -- making things

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def name(self, stem):
        self.count += 1
        return f'{stem}{self.count}'

    def const(self, array, stem='w'):
        """A constant: an initialiser, a Constant node, or one behind an Identity."""
        name, array = self.name(stem), np.asarray(array)
        if self.chance(0.75):
            self.weights.append(nh.from_array(array, name))
        else:
            self.nodes.append(h.make_node('Constant', [], [name], value=nh.from_array(array)))
        if self.chance(0.05):
            self.nodes.append(h.make_node('Identity', [name], [name + 'i']))
            name += 'i'
        return name

    def ints(self, numbers, stem='k'):
        return self.const(np.asarray(numbers, np.int64), stem)

    def normal(self, *shape, scale=1.0, dtype=np.float32):
        return (self.rng.standard_normal(shape) * scale).astype(dtype)

    def emit(self, op, ins, shape, dtype=np.float32, positive=False, **attrs):
        out = Value(self.name('t'), shape, dtype, positive)
        node_name = self.name('n') if self.chance(0.7) else ''
        self.nodes.append(h.make_node(op, [i.name if isinstance(i, Value) else i for i in ins],
                                      [out.name], name=node_name, **attrs))
        return out

    def channel_const(self, x, low=0.3, high=1.5, signed=True):
        """A constant that broadcasts over x: a scalar in its many shapes, a channel vector, a full
        tensor, or one of the numbers that simplifiers look for."""
        kind = self.rng.integers(7)
        shapes = [(), (1,), (1,) * x.rank, x.shape[1:2] + (1,) * (x.rank - 2) if x.rank > 1 else (1,),
                  (1,) + x.shape[1:2] + (1,) * (x.rank - 2) if x.rank > 1 else (1,), x.shape[-1:],
                  x.shape]
        values = self.rng.uniform(low, high, shapes[kind]) * (
            self.rng.choice([-1, 1], shapes[kind]) if signed else 1)
        if self.chance(0.15):
            values = np.full(shapes[kind], self.pick([1.0, 2.0, 0.5] + ([0.0, -1.0] if signed else [])))
        return self.const(np.asarray(values, x.dtype))

    def any(self, test=lambda v: True, dtype=np.float32, odd=False):
        """A value to build on, recent ones more often; None where there is none. Numbers (rank 0) and
        what is empty only for rules that say so."""
        fit = [v for v in self.values if v.dtype == dtype and (odd or v.rank and v.size) and test(v)]
        if not fit:
            return None
        back = min(int(self.rng.exponential(2.5)), len(fit) - 1)
        return fit[len(fit) - 1 - back]
