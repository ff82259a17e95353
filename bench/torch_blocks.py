#!/usr/bin/env python3
"""Latency of ONNX models as PyTorch runs them.

  bench/torch_blocks.py [--device cuda|cpu] [--takes N] MODEL.onnx ...

Each model becomes a function of torch operators, node by node, and is timed as it is (eager), by
torch.compile (compiled), and, where a product, a scale, a softmax and a product stand in a row, with
torch's scaled_dot_product_attention in their place (attention). On a GPU each is captured as a CUDA
graph and timed by events, in random order, weights and inputs as the GPU's caches have them; the
figure is a median. Prints a line a model, in microseconds, and how far the results are from float64,
as a part of its largest value. Needs torch, onnx and numpy. Exits with 3 where there is no such
device.
"""
import argparse
import os
import random
import statistics
import sys
import time

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper

ONNX_TYPES = {1: torch.float32, 10: torch.float16, 16: torch.bfloat16, 11: torch.float64}


def attributes(node):
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def plain(by):
    return lambda *_: by


def reduction(by):
    """The axes: an attribute, or since opset 13 and 18 an input."""
    def make(given, constants):
        axes = list(given['axes'] if 'axes' in given else constants[1].tolist())
        keep = bool(given.get('keepdims', 1))
        return lambda x, *_: by(x, axes, keep)
    return make


def softmax(given, _):
    axis = given.get('axis', -1)
    return lambda x: torch.softmax(x, axis)


def concat(given, _):
    axis = given['axis']
    return lambda *xs: torch.cat(xs, axis)


def transpose(given, _):
    perm = list(given['perm'])
    return lambda x: x.permute(perm)


def reshape(_, constants):
    dims = constants[1].tolist()
    return lambda x, *_: x.reshape([d or x.shape[i] for i, d in enumerate(dims)])


def cast(given, _):
    to = ONNX_TYPES[given['to']]
    return lambda x: x if x.dtype == torch.float64 else x.to(to)  # the reference is all float64


# What makes a function of tensors, of a node's attributes and of those of its inputs that are
# constants.
OPERATORS = {
    'Add': plain(lambda a, b: a + b),
    'Sub': plain(lambda a, b: a - b),
    'Mul': plain(lambda a, b: a * b),
    'Div': plain(lambda a, b: a / b),
    'Pow': plain(lambda a, b: a ** b),
    'MatMul': plain(lambda a, b: a @ b),
    'Sqrt': plain(torch.sqrt),
    'Reciprocal': plain(lambda a: 1 / a),
    'Sigmoid': plain(torch.sigmoid),
    'Relu': plain(torch.relu),
    'Tanh': plain(torch.tanh),
    'Exp': plain(torch.exp),
    'Softmax': softmax,
    'ReduceMean': reduction(torch.mean),
    'ReduceSum': reduction(torch.sum),
    'ReduceL2': reduction(lambda x, axes, keep: torch.sqrt(torch.sum(x * x, axes, keep))),
    'Concat': concat,
    'Transpose': transpose,
    'Reshape': reshape,
    'Cast': cast,
}


class Attention:
    """Product, scale, softmax and product as one call."""
    op_type = 'attention'

    def __init__(self, q, k, v, scale, y):
        self.input, self.output, self.scale = [q, k, v], [y], scale

    def call(self):
        scale = self.scale

        def attend(q, k, v):
            wide = [x[None] if x.dim() == 3 else x for x in (q, k.transpose(-1, -2), v)]
            y = torch.nn.functional.scaled_dot_product_attention(*wide, scale=scale)
            return y[0] if q.dim() == 3 else y
        return attend


def with_attention(nodes, constants, outputs):
    """The nodes with each chain replaced; None: there is none."""
    users = {}
    for n in nodes:
        for name in n.input:
            users.setdefault(name, []).append(n)
    made, gone = {}, set()

    def only(name, kinds):
        found = users.get(name, [])
        return found[0] if len(found) == 1 and found[0].op_type in kinds and name not in outputs \
            else None
    for n in nodes:
        if n.op_type != 'MatMul':
            continue
        scale = only(n.output[0], ('Mul', 'Div'))
        factor = constants.get(scale.input[1]) if scale is not None else None
        if factor is None or factor.numel() != 1:
            continue
        soft = only(scale.output[0], ('Softmax',))
        last = only(soft.output[0], ('MatMul',)) if soft is not None else None
        if last is None or last.input[0] != soft.output[0]:
            continue
        value = float(factor) if scale.op_type == 'Mul' else 1 / float(factor)
        made[last.output[0]] = Attention(n.input[0], n.input[1], last.input[1], value,
                                         last.output[0])
        gone |= {n.output[0], scale.output[0], soft.output[0]}
    return [made.get(n.output[0], n) for n in nodes if n.output[0] not in gone] if made else None


class Model:
    def __init__(self, path, device):
        model = onnx.load(path)
        graph = model.graph
        self.constants = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy())
                          for t in graph.initializer}
        for n in graph.node:
            if n.op_type == 'Constant':
                value = numpy_helper.to_array(attributes(n)['value']).copy()
                self.constants[n.output[0]] = torch.from_numpy(value)
        self.outputs = [o.name for o in graph.output]
        self.nodes = [n for n in graph.node if n.op_type != 'Constant']
        unknown = {n.op_type for n in self.nodes} - OPERATORS.keys()
        if unknown:
            raise ValueError(f'{path}: no torch operator for {", ".join(sorted(unknown))}')
        rng = np.random.default_rng(0)
        self.inputs = {}
        for i in graph.input:
            if i.name not in self.constants:
                t = i.type.tensor_type
                dims = [d.dim_value for d in t.shape.dim]
                self.inputs[i.name] = torch.from_numpy(
                    rng.uniform(-1, 1, dims)).to(ONNX_TYPES[t.elem_type])
        self.device = device

    def function(self, nodes, dtype=None):
        """A function of the inputs, in order; dtype: all floats in this one, on the CPU."""
        device = 'cpu' if dtype else self.device
        steps, held = [], {}
        for n in nodes:
            if isinstance(n, Attention):
                steps.append((n.call(), tuple(n.input), n.output[0]))
                continue
            constants = [self.constants.get(name) for name in n.input]
            steps.append((OPERATORS[n.op_type](attributes(n), constants),
                          tuple(name for name in n.input if name), n.output[0]))
        for name, t in self.constants.items():
            t = t.to(dtype) if dtype and t.is_floating_point() else t
            held[name] = t.to(device)
        names, wanted = list(self.inputs), self.outputs

        def run(*inputs):
            values = dict(held)
            for name, x in zip(names, inputs):
                values[name] = x
            for call, sources, target in steps:
                values[target] = call(*[values[name] for name in sources])
            return [values[name] for name in wanted]
        return run

    def reference(self):
        return self.function(self.nodes, torch.float64)(
            *[t.double() for t in self.inputs.values()])


def error(results, reference):
    return max(float((a.cpu().double() - b).abs().max() / b.abs().max())
               for a, b in zip(results, reference))


def gpu_timer(run, inputs):
    """Captured once; a call gives the seconds of so many launches, by events."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run(*inputs)

    def take(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(times):
            graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3
    return take


def cpu_timer(run, inputs):
    def take(times):
        start = time.perf_counter()
        for _ in range(times):
            run(*inputs)
        return time.perf_counter() - start
    return take


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--device', default='cuda', choices=['cuda', 'cpu'])
    p.add_argument('--takes', type=int, default=51)
    p.add_argument('models', nargs='+', metavar='MODEL.onnx')
    args = p.parse_args()
    gpu = args.device == 'cuda'
    if gpu and not torch.cuda.is_available():
        sys.stderr.write('torch finds no GPU\n')
        return 3
    where = torch.cuda.get_device_name() if gpu else 'the CPU'
    print(f'torch {torch.__version__} on {where}, median of {args.takes}')
    order = random.Random(1)
    for path in args.models:
        try:
            model = Model(path, args.device)
        except ValueError as e:  # an operator that torch has not
            print(e, file=sys.stderr)
            continue
        inputs = [t.to(args.device) for t in model.inputs.values()]
        ways = {'eager': model.function(model.nodes)}
        ways['compiled'] = torch.compile(ways['eager'], fullgraph=True)
        fused = with_attention(model.nodes, model.constants, model.outputs)
        if fused:
            ways['attention'] = model.function(fused)
        reference, worst, timers = model.reference(), {}, {}
        with torch.no_grad():
            for name, run in ways.items():
                worst[name] = error(run(*inputs), reference)
                timers[name] = (gpu_timer if gpu else cpu_timer)(run, inputs)
            times = {}
            for name, take in timers.items():
                one = max(take(3) / 3, 1e-7)
                times[name] = max(1, min(200, int(2e-3 / one)))
            takes = {name: [] for name in timers}
            for _ in range(args.takes):
                for name in order.sample(list(timers), len(timers)):
                    takes[name].append(timers[name](times[name]) / times[name])
        print(os.path.basename(path)[:-5] + ': ' +
              ', '.join(f'{name} {1e6 * statistics.median(t):.2f} us (error {worst[name]:.1e})'
                        for name, t in takes.items()), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
