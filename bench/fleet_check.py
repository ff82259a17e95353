#!/usr/bin/env python3
"""Whether two ONNX models compute the same in ONNX Runtime: inputs and comparison of its own.

  bench/fleet_check.py ORIGINAL WRITTEN [--library FILE] [--shape NAME:D,D,..].. [--value NAME=V]..
                       [--sets N] [--seconds S] [--tolerance T]

For bench/fleet.py, in a process of its own, since a runtime may crash. It shares no code with petopt:
what it draws and how it judges are written again here. Open dims are drawn at the sizes of --shape,
and at others where the original runs with them. A float output may be off by the tolerance of its
largest magnitude, or by eight times what the original moves by when the runtime's own rewrites are
off or its inputs change in their last bit, the most of five draws, or by what it is off from float64
(of small models, by the evaluator of the package onnx); integers, booleans and strings must be equal,
but for elements that the original itself gives otherwise then. Prints one line of JSON.
"""
import argparse
import json
import os
import signal
import time

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to

import numpy as np
import onnx
import onnx.reference
import onnx.reference.op_run
import onnxruntime as ort

TYPES = {'float': 'f4', 'double': 'f8', 'float16': 'f2', 'int64': 'i8', 'int32': 'i4', 'int16': 'i2',
         'int8': 'i1', 'uint8': 'u1', 'uint16': 'u2', 'uint32': 'u4', 'uint64': 'u8', 'bool': '?',
         'string': 'U'}
IDS = [30000, 1000, 100, 20, 4, 2, 1]  # bounds of integers, the largest that the original takes
KINDS = ['normal', 'uniform', 'image', 'ramp', 'zeros', 'sparse', 'large']


def session(path, library=None, optimised=True):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = 1, 4
    if not optimised:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if library:
        o.register_custom_ops_library(library)
    return ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])


def floats(r, kind, dims):
    n = int(np.prod(dims))
    x = {'normal': lambda: r.standard_normal(n), 'uniform': lambda: r.uniform(-1, 1, n),
         'image': lambda: r.integers(0, 256, n) / 255, 'ramp': lambda: np.linspace(-2, 2, n),
         'zeros': lambda: np.zeros(n), 'large': lambda: 20 * r.standard_normal(n),
         'sparse': lambda: r.standard_normal(n) * (r.random(n) < 0.05)}[kind]()
    return x.reshape(dims)


def sizes(inputs, pins, grow):
    """Dims of each input: as pinned; an open dim grows, the same for one symbol. None: not known."""
    seen, dims = {}, {}
    for i in inputs:
        pin, made = pins.get(i.name), []
        for k, d in enumerate(i.shape):
            if isinstance(d, int) and d > 0:
                made.append(d)
                continue
            size = pin[k] if pin else seen.get(d, 1)
            if isinstance(d, str) and d:
                seen.setdefault(d, size)
            made.append(size + grow if size > 1 else size)
        dims[i.name] = made
    return dims


def feed_of(inputs, dims, values, kind, ids, seed):
    r, feed = np.random.default_rng(seed), {}
    for i in inputs:
        of = i.type[len('tensor('):-1]
        shape = dims[i.name]
        if i.name in values:
            feed[i.name] = np.full(shape, values[i.name], TYPES[of])
        elif of == 'bool':
            feed[i.name] = r.random(shape) < (0.2 if kind == 'sparse' else 0.8)
        elif of == 'string':
            feed[i.name] = np.array(r.integers(0, 10, shape)).astype(str)
        elif of in ('float', 'double', 'float16'):
            feed[i.name] = np.asarray(floats(r, kind, shape)).astype(TYPES[of])
        else:
            most = min(ids, 127 if of == 'int8' else ids)
            if len(shape) < 2 and np.prod(shape) <= 8:  # perhaps a shape, a count, an axis
                most = min(most, 5)
            feed[i.name] = r.integers(0, most, shape).astype(TYPES[of])
    return feed


def numbers(x):
    """Arrays of what an output holds: tensors, and the keys and values of sequences and maps."""
    if isinstance(x, np.ndarray):
        return [x]
    if isinstance(x, dict):
        return [np.array(list(x.keys())), np.array(list(x.values()))]
    if isinstance(x, (list, tuple)):
        return [a for e in x for a in numbers(e)]
    return [np.array(x)]


def apart(a, b):
    """(largest difference, as a part of the largest magnitude; how many elements differ; of all)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float('inf'), a.size, max(a.size, 1)
    if a.dtype.kind != 'f':
        n = int(np.sum(a != b))
        return 0.0, n, max(a.size, 1)
    a, b = a.astype('f8'), b.astype('f8')
    same = np.isfinite(a) & np.isfinite(b)
    odd = ~same & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if odd.any():
        return float('inf'), int(odd.sum()), a.size
    if not same.any():
        return 0.0, 0, max(a.size, 1)
    top = np.max(np.abs(a[same]))
    return float(np.max(np.abs(a[same] - b[same])) / (top if top > 0 else 1)), 0, a.size


MOVES = 4  # one draw of an error says little of how large it is


def moved(feed, number):
    """The same inputs, floats off by their last bit: all of them up, or either way."""
    r, to = np.random.default_rng(number), {}
    for name, x in feed.items():
        to[name] = x
        if x.dtype.kind == 'f' and x.any():
            end = np.where(r.random(x.shape) < 0.5, -np.inf, np.inf) if number else np.inf
            to[name] = np.asarray(np.nextafter(x, np.asarray(end).astype(x.dtype)))
    return to


EXACT_BYTES, EXACT_SECONDS = 20 << 20, 90  # a detector at 640 x 640 takes 31


def widen(graph):
    """Makes the graph's floats doubles, in its branches too."""
    tensors = list(graph.initializer)
    for node in graph.node:
        for a in node.attribute:
            if node.op_type == 'Cast' and a.name == 'to' and a.i == onnx.TensorProto.FLOAT:
                a.i = onnx.TensorProto.DOUBLE
            tensors += [a.t] if a.type == onnx.AttributeProto.TENSOR else []
            for g in [a.g] if a.type == onnx.AttributeProto.GRAPH else []:
                widen(g)
    for t in tensors:
        if t.data_type == onnx.TensorProto.FLOAT:
            t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t).astype('f8'), t.name))


class GlobalMaxPool(onnx.reference.op_run.OpRun):
    """The evaluator's own takes the wrong axes of what has one behind its channels."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


class OneHot(onnx.reference.op_run.OpRun):
    """The evaluator's own takes no depth of rank 1."""

    def _run(self, indices, depth, values, axis=None):
        n = int(np.asarray(depth).reshape(-1)[0])
        at = indices.astype('i8')
        at = np.expand_dims(np.where(at < 0, at + n, at), -1) == np.arange(n)
        axis = -1 if axis is None else axis
        return (np.moveaxis(np.where(at, values[1], values[0]).astype(values.dtype), -1, axis),)


class STFT(onnx.reference.op_run.OpRun):
    """The evaluator's own takes no signal of rank 2."""

    def _run(self, signal, step, window=None, length=None, onesided=None):
        x = np.asarray(signal).reshape(signal.shape[0], -1)  # real ones alone
        n = int(np.asarray(length)) if length is not None else len(window)
        at = np.arange(0, x.shape[1] - n + 1, int(np.asarray(step)))
        frames = x[:, at[:, None] + np.arange(n)] * (1 if window is None else window)
        y = np.fft.fft(frames)[..., :n // 2 + 1 if onesided in (None, 1) else n]
        return (np.stack([y.real, y.imag], -1).astype(x.dtype),)


def exactly(path, feed, w):
    """The original's outputs in float64, floats again; none where that takes too long or fails."""
    def stop(*_):
        raise TimeoutError

    if os.path.getsize(path) > EXACT_BYTES:
        return []
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(EXACT_SECONDS)
    try:
        m = onnx.load(path)
        widen(m.graph)
        f8 = {n: x.astype('f8') if x.dtype == np.float32 else x for n, x in feed.items()}
        found = onnx.reference.ReferenceEvaluator(m, new_ops=[GlobalMaxPool, OneHot, STFT]).run(None, f8)
        return [[np.asarray(g).astype(x.dtype) if isinstance(x, np.ndarray) and x.dtype.kind == 'f' else x
                 for g, x in zip(found, w)]]
    except Exception:
        return []
    finally:
        signal.alarm(0)


def compare(names, want, got, rerun, tolerance):
    """The worst error, and a sentence for each output that differs. rerun(): the original's outputs
    when it is run otherwise, asked for where something is off."""
    worst, wrong, others = 0.0, [], None
    for at, (name, w, g) in enumerate(zip(names, want, got)):
        ws, gs = numbers(w), numbers(g)
        if len(ws) != len(gs):
            wrong.append(f'{name}: {len(gs)} parts, not {len(ws)}')
            continue
        for k, (a, b) in enumerate(zip(ws, gs)):
            error, n, of = apart(a, b)
            unit = 2 * float(np.finfo(a.dtype).eps) if a.dtype.kind == 'f' else 0
            if error <= max(tolerance, unit) and n == 0:
                worst = max(worst, error)
                continue
            others = others or rerun()
            ps = [numbers(o[at]) for o in others]
            owns = [apart(a, p[k]) for p in ps if len(p) == len(ws)]
            own, ties = (max(o[0] for o in owns), max(o[1] for o in owns)) if owns else (1, of)
            if error <= max(tolerance, unit) or error > 8 * own:  # else the original's own is as large
                worst = max(worst, error)
            if error > max(tolerance, unit, 8 * own) or (n > 2 * ties and n > 0):
                wrong.append(f'{name}: off by {error:.1e}' if n == 0 else f'{name}: {n} of {of}')
    return worst, wrong


def widest_ids(run, inputs, dims, values):
    """The largest bound of integers that the original takes."""
    if not any('int' in i.type and i.name not in values for i in inputs):
        return IDS[0]
    for ids in IDS:
        try:
            for seed in range(2):
                run.run(None, feed_of(inputs, dims, values, 'normal', ids, seed))
            return ids
        except Exception:  # whatever the runtime says of an id that is too large
            continue
    return None


def check(a, pins, values):
    told = {'loads': False, 'compared': 0, 'worst': 0.0, 'wrong': [], 'why': ''}
    try:
        want, plain = session(a.original), session(a.original, optimised=False)
    except Exception as e:
        told['why'] = 'the original does not load: ' + str(e).splitlines()[0][:160]
        told['original'] = False
        return told
    try:
        got = session(a.written, a.library)
        told['loads'] = True
    except Exception as e:
        told['why'] = 'does not load: ' + str(e).splitlines()[0][:200]
        return told
    until = time.monotonic() + a.seconds
    inputs, names = want.get_inputs(), [o.name for o in want.get_outputs()]
    if [(i.name, i.type) for i in got.get_inputs()] != [(i.name, i.type) for i in inputs]:
        told['wrong'].append('the inputs are not the same')
        return told
    told['sizes'] = 0
    for grow in [0] if a.pinned else [0, 1, 32]:
        dims = sizes(inputs, pins, grow)
        if grow and dims == sizes(inputs, pins, 0):
            break
        ids = widest_ids(want, inputs, dims, values)
        if ids is None:
            if grow == 0:
                told['why'] = 'the original takes none of the inputs that were drawn'
            continue
        told['sizes'] += 1
        for seed in range(a.sets if grow == 0 else 2):
            if told['compared'] >= 3 and time.monotonic() > until:
                break
            kind = KINDS[seed % len(KINDS)]
            feed = feed_of(inputs, dims, values, kind, ids, 1000 * grow + seed + 77)
            try:
                w = want.run(None, feed)
                again = want.run(None, feed)
            except Exception:
                continue  # what the original refuses says nothing of the other
            if any(apart(x, y)[0] > 0 or apart(x, y)[1] > 0
                   for x, y in zip(numbers(w), numbers(again))):
                continue  # random
            try:
                g = got.run(None, feed)
            except Exception as e:
                told['wrong'].append(f'fails ({kind}): ' + str(e).splitlines()[0][:160])
                return told
            rerun = lambda: ([plain.run(None, feed)] + exactly(a.original, feed, w)
                             + [want.run(None, moved(feed, k)) for k in range(MOVES)])
            worst, wrong = compare(names, w, g, rerun, a.tolerance)
            told['compared'] += 1
            told['worst'] = max(told['worst'], worst)
            told['wrong'] += [f'{x} ({kind}, {grow:+d})' for x in wrong]
    return told


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('original')
    p.add_argument('written')
    p.add_argument('--library')
    p.add_argument('--shape', action='append', default=[])
    p.add_argument('--value', action='append', default=[])
    p.add_argument('--pinned', action='store_true', help='no other sizes than those of --shape')
    p.add_argument('--sets', type=int, default=14)
    p.add_argument('--seconds', type=float, default=60, help='no more sets after them, of three')
    p.add_argument('--tolerance', type=float, default=1e-4)
    a = p.parse_args()
    pins = {s.rpartition(':')[0]: [int(d) for d in s.rpartition(':')[2].split(',')] for s in a.shape}
    values = {v.split('=')[0]: float(v.split('=')[1]) for v in a.value}
    told = check(a, pins, values)
    told['wrong'] = told['wrong'][:4]
    print(json.dumps(told))


if __name__ == '__main__':
    main()
