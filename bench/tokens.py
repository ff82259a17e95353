#!/usr/bin/env python3
"""Layers of a transformer by products of tokens, and by pointwise convolutions of their maps.

  bench/tokens.py [--threads N] [--rounds N]

Builds encoders in both spellings, as src/rewrite/layout/tokens.c writes the second, checks that they
agree, and runs them in turn, in random order: medians, and what the second gains. "control" is the
first against a second session of itself. Residual sums are Sum in both: the runtime joins Add with
the norm behind it, and that kernel is slower than both. With one thread it is CPU time, which other work on the
machine disturbs least. Needs the Python of .deps/venv (scripts/deps.sh).
"""
import argparse
import os
import random
import time

import numpy as np
os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

# batch, tokens, channels, hidden channels, heads, layers
SHAPES = [(1, 128, 768, 3072, 12, 3), (1, 197, 192, 768, 3, 6), (1, 16, 384, 1536, 12, 6),
          (1, 64, 384, 1536, 12, 6), (1, 512, 384, 1536, 12, 3), (8, 32, 384, 1536, 12, 3),
          (2, 16, 384, 1536, 12, 6),
          (1, 1, 384, 1536, 6, 6), (4, 1, 384, 1536, 6, 6), (1, 64, 64, 256, 4, 6),
          (1, 64, 32, 128, 4, 6), (1, 1024, 64, 256, 1, 2), (1, 4096, 64, 256, 1, 1)]


class Writer:
    """Nodes and constants of a graph, named as they come."""

    def __init__(self):
        self.nodes, self.constants, self.rng = [], {}, np.random.default_rng(0)

    def op(self, kind, *inputs, **attributes):
        name = f'v{len(self.nodes)}'
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value):
        name = f'c{len(self.constants)}'
        self.constants[name] = np.ascontiguousarray(value)
        return name

    def numbers(self, *dims):
        return (self.rng.standard_normal(dims) * 0.02).astype(np.float32)

    def shape(self, *dims):
        return self.constant(np.array(dims, np.int64))


def encoder(maps, batch, tokens, channels, hidden, heads, layers):
    w = Writer()
    each = channels // heads

    def product(x, n_in, n_out):
        matrix, bias = w.numbers(n_in, n_out), w.constant(w.numbers(n_out))
        if maps:
            return w.op('Conv', x, w.constant(matrix.T[:, :, None, None]), bias)
        return w.op('Add', w.op('MatMul', x, w.constant(matrix)), bias)

    def enter(x):
        if not maps:
            return x
        rows = w.op('Reshape', x, w.shape(1, -1, 1, channels))
        return w.op('Transpose', rows, perm=[0, 3, 1, 2])

    def leave(x):
        if not maps:
            return x
        return w.op('Reshape', w.op('Transpose', x, perm=[0, 2, 3, 1]),
                    w.shape(batch, tokens, channels))

    # Heads are taken off the map of one sample; of several they lie apart behind the map.
    def head(x, turned):
        if maps and batch > 1:
            x = leave(x)
        elif maps:
            x = w.op('Reshape', x, w.shape(batch, heads, each, tokens))
            return x if turned else w.op('Transpose', x, perm=[0, 1, 3, 2])
        x = w.op('Reshape', x, w.shape(batch, tokens, heads, each))
        return w.op('Transpose', x, perm=[0, 2, 3, 1] if turned else [0, 2, 1, 3])

    def joined(x):
        if maps and batch > 1:
            rows = w.op('Reshape', w.op('Transpose', x, perm=[0, 2, 1, 3]),
                        w.shape(1, -1, 1, channels))
            return w.op('Transpose', rows, perm=[0, 3, 1, 2])
        if maps:
            return w.op('Reshape', w.op('Transpose', x, perm=[0, 1, 3, 2]),
                        w.shape(batch, channels, tokens, 1))
        return w.op('Reshape', w.op('Transpose', x, perm=[0, 2, 1, 3]),
                    w.shape(batch, tokens, channels))

    def norm(x):
        return w.op('LayerNormalization', x, w.constant(1 + w.numbers(channels)),
                    w.constant(w.numbers(channels)), axis=-1)

    x = 'x'
    for _ in range(layers):
        m = enter(x)
        q, k, v = (head(product(m, channels, channels), i == 1) for i in range(3))
        scores = w.op('Mul', w.op('MatMul', q, k), w.constant(np.float32(each**-0.5)))
        context = w.op('MatMul', w.op('Softmax', scores, axis=-1), v)
        x = norm(w.op('Sum', leave(product(joined(context), channels, channels)), x))
        m = w.op('Gelu', product(enter(x), channels, hidden))
        x = norm(w.op('Sum', leave(product(m, hidden, channels)), x))
    w.nodes.append(helper.make_node('Identity', [x], ['y']))
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, tokens, channels])
            for n in 'xy']
    graph = helper.make_graph(w.nodes, 'g', info[:1], info[1:],
                              [numpy_helper.from_array(v, k) for k, v in w.constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=9)


def session(model, threads):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 3
    return ort.InferenceSession(model.SerializeToString(), o)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--rounds', type=int, default=31)
    a = p.parse_args()
    clock = time.thread_time if a.threads == 1 else time.perf_counter
    print(f'ONNX Runtime {ort.__version__}, {a.threads} threads\n')
    print('| tokens | channels | heads, layers | products ms | maps ms | gain | control |')
    print('| --- | --- | --- | --- | --- | --- | --- |')
    for shape in SHAPES:
        batch, tokens, channels, hidden, heads, layers = shape
        runs = [session(encoder(maps, *shape), a.threads) for maps in (False, True, False)]
        feed = {'x': np.random.default_rng(1).standard_normal(shape[:3]).astype(np.float32)}
        y = [s.run(None, feed)[0] for s in runs]
        assert np.abs(y[0] - y[1]).max() <= 1e-4 * np.abs(y[0]).max()
        times = [[] for _ in runs]
        for _ in range(a.rounds):
            for i in random.sample(range(len(runs)), len(runs)):
                start = clock()
                runs[i].run(None, feed)
                times[i].append(clock() - start)
        first, second, again = (1000 * float(np.median(t)) for t in times)
        print(f'| {batch} x {tokens} | {channels}, {hidden} | {heads}, {layers} | {first:.2f} | '
              f'{second:.2f} | {first / second:.3f}x | {first / again:.3f} |', flush=True)


if __name__ == '__main__':
    main()
