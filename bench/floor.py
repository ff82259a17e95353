#!/usr/bin/env python3
"""How far rewriting can go at all: the multiplications of a model against what this machine multiplies.

  bench/floor.py MODEL [--shape NAME:D,D,..] [--threads N]

Counts the multiply-adds of Conv, ConvTranspose, MatMul and Gemm, measures the rate of ONNX Runtime's
best case (a large MatMul, and a 1x1 convolution in its blocked layout), and prints the time that the
multiplications alone would take at that rate beside the time of the model. A graph with the same
multiplications cannot be faster than that, whatever else is folded away. Needs the Python of
.deps/venv (scripts/deps.sh).
"""
import argparse
import math
import os
import time

import numpy as np
import onnx
os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper


def session(model, threads):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 3
    return ort.InferenceSession(model.SerializeToString(), o)


def median_seconds(s, feed, threads, least=2.0):
    # One thread: its CPU time, which other work on the machine disturbs least.
    clock = time.thread_time if threads == 1 else time.perf_counter
    s.run(None, feed)
    times, end = [], time.perf_counter() + least
    while time.perf_counter() < end or len(times) < 5:
        start = clock()
        s.run(None, feed)
        times.append(clock() - start)
    return float(np.median(times))


def one_node(op, x, w, y):
    r = np.random.default_rng(0)
    weights = numpy_helper.from_array(r.standard_normal(w).astype('f'), 'w')
    g = helper.make_graph([helper.make_node(op, ['x', 'w'], ['y'])], 'g',
                          [helper.make_tensor_value_info('x', TensorProto.FLOAT, x)],
                          [helper.make_tensor_value_info('y', TensorProto.FLOAT, y)], [weights])
    return helper.make_model(g, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)


def best_rate(threads):
    r = np.random.default_rng(0)
    cases = [(one_node('MatMul', [512, 512], [512, 512], [512, 512]), [512, 512], 512**3),
             (one_node('Conv', [1, 256, 40, 40], [256, 256, 1, 1], [1, 256, 40, 40]),
              [1, 256, 40, 40], 256 * 256 * 1600)]
    return max(2 * m / median_seconds(session(model, threads),
                                      {'x': r.standard_normal(x).astype('f')}, threads)
               for model, x, m in cases)


def multiplications(model):
    shapes, total = {}, 0
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for v in list(inferred.graph.value_info) + list(inferred.graph.input) + list(inferred.graph.output):
        shapes[v.name] = [d.dim_value for d in v.type.tensor_type.shape.dim]
    for t in inferred.graph.initializer:
        shapes[t.name] = list(t.dims)
    for n in inferred.graph.node:
        if n.op_type == 'Constant':
            for a in n.attribute:
                if a.name == 'value':
                    shapes[n.output[0]] = list(a.t.dims)
        out, ins = shapes.get(n.output[0], []), [shapes.get(i, []) for i in n.input]
        if n.op_type == 'Conv':
            total += math.prod(out) * math.prod(ins[1][1:])
        elif n.op_type == 'ConvTranspose':
            total += math.prod(ins[0]) * math.prod(ins[1][1:])
        elif n.op_type in ('MatMul', 'Gemm'):
            total += math.prod(out) * (ins[0][-1] if ins[0] else 0)
    return total


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('model')
    p.add_argument('--shape', action='append', default=[])
    p.add_argument('--threads', type=int, default=1)
    a = p.parse_args()
    model = onnx.load(a.model)
    for pin in a.shape:
        name, dims = pin.split(':')
        for i in model.graph.input:
            if i.name == name:
                for d, v in zip(i.type.tensor_type.shape.dim, dims.split(',')):
                    d.dim_value = int(v)
    del model.graph.value_info[:]
    s = session(model, a.threads)
    r = np.random.default_rng(0)
    feed = {i.name: r.standard_normal(i.shape).astype('f') for i in s.get_inputs()}
    rate, now = best_rate(a.threads), median_seconds(s, feed, a.threads, 4)
    m = multiplications(model)
    floor = 2 * m / rate
    print(f'{a.model.split("/")[-1]}: {2e-9 * m:.2f} GFLOP, best rate {1e-9 * rate:.0f} GFLOP/s, '
          f'{a.threads} thread, ONNX Runtime {ort.__version__}')
    print(f'runtime {1e3 * now:.1f} ms, multiplications alone {1e3 * floor:.1f} ms: '
          f'at most {now / floor:.2f}x without fewer of them')


if __name__ == '__main__':
    main()
