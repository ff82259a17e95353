#!/usr/bin/env python3
"""Whether a model that petopt wrote keeps its limit on inputs that petopt never saw.

  bench/fresh.py IN OUT [--count 200] [--seed 1] [--tolerance 1e-4] [--library LIB]
                 [--shape NAME:1,3,640,640].. [--value NAME=V].. [--threads 1]

Runs both in ONNX Runtime on --count sets of inputs, drawn here by kind and scale with a generator
of this file's own: noise, images, pages of text, ramps, constants and sparse ones at scales from
0.01 to 30. Integer inputs are drawn below --most; --value gives an input its elements. Of every
float output the largest difference is taken relative to the original's largest magnitude on that set (a sigmoid that is nearly 0 all over
may be off by its own rounding); integers must be the same. A set beyond the tolerance passes where
rounding alone moves the original's output by an eighth of it: seen where the original runs without
graph optimisation, where its inputs are off by their last bit, and, of small models, by what it is
off from float64. Prints a row for each kind, each set beyond the tolerance, and exits with 1 where
the limit is not kept.
"""
import argparse
import os
import sys

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to

import numpy as np
import onnx
import onnxruntime as ort

from fleet_check import exactly

SCALES = [0.01, 0.1, 0.3, 1, 3, 10, 30]
EXCUSE = 8  # times the original's own error
BOUNDED = ('Sigmoid', 'Softmax', 'Tanh', 'HardSigmoid', 'Softsign', 'Erf', 'Sin', 'Cos')
ROUNDING = 8 * 2.0 ** -24  # of such an operator, which works at magnitude 1


# --- inputs: each of unit size, to be scaled ---

def noise(rng, shape):
    return rng.standard_normal(shape)


def uniform(rng, shape):
    return rng.random(shape)


def plane_of(shape):
    """Rows and columns of the last two axes, as many as there are."""
    return ((1, 1) + tuple(shape))[-2:]


def smooth(rng, shape):
    """An image: a few waves and blobs of every width, the last two axes being its plane."""
    rows, columns = plane_of(shape)
    y, x = np.mgrid[0:rows, 0:columns]
    out = np.zeros(shape)
    for plane in out.reshape(-1, rows, columns) if out.size else []:
        for _ in range(6):
            fy, fx = rng.uniform(-9, 9, 2)
            plane += rng.uniform(0.1, 1) * np.sin(
                6.2832 * (fy * y / rows + fx * x / columns) + rng.uniform(0, 6.2832))
        for _ in range(4):
            cy, cx, r = rng.uniform(0, rows), rng.uniform(0, columns), rng.uniform(1, max(2, columns / 3))
            plane += rng.normal() * (np.hypot(y - cy, x - cx) < r)
    return out / 2


def page(rng, shape):
    """Dark strokes in lines on light paper, the same in all planes; normalised as images are."""
    rows, columns = plane_of(shape)
    plane = np.full((rows, columns), rng.uniform(0.7, 1.2))
    line, top = rng.integers(6, 40), rng.integers(0, 20)
    while top < rows:
        left = int(rng.integers(0, columns // 8 + 1))
        while left < columns - columns // 8:
            width = int(rng.integers(1, max(2, line // 3)))
            height = int(rng.integers(1, line))
            if rng.random() < 0.8:
                plane[top:top + height, left:left + width] = rng.uniform(-1.2, -0.8)
            left += width + int(rng.integers(1, max(2, line // 4)))
        top += int(line * rng.uniform(1.1, 2))
    return np.broadcast_to(plane, (1, 1)[len(shape):] + tuple(shape)).reshape(shape).copy()


def ramp(rng, shape):
    t = np.zeros(shape)
    for axis, n in enumerate(shape):
        step = np.linspace(-1, 1, n) * rng.normal() if n > 1 else np.zeros(n)
        t += step.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return t


def constant(rng, shape):
    return np.full(shape, rng.normal())


def sparse(rng, shape):
    return rng.standard_normal(shape) * (rng.random(shape) < rng.choice([0.001, 0.01, 0.1]))


KINDS = [noise, smooth, page, uniform, ramp, constant, sparse]


# --- the models ---

DTYPES = {'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(float16)': np.float16,
          'tensor(int64)': np.int64, 'tensor(int32)': np.int32, 'tensor(uint8)': np.uint8,
          'tensor(int8)': np.int8, 'tensor(bool)': np.bool_}


def session(path, args, library=None, plain=False):
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.log_severity_level = 3
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if library:
        options.register_custom_ops_library(library)
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def shape_of(port, shapes):
    if port.name in shapes:
        return shapes[port.name]
    if any(not isinstance(d, int) for d in port.shape):
        sys.exit(f"the input '{port.name}' has open dims: give --shape {port.name}:...")
    return list(port.shape)


def draw(rng, port, shapes, kind, scale, most):
    shape, dtype = shape_of(port, shapes), DTYPES[port.type]
    if dtype == np.bool_ or 'mask' in port.name:
        keep = rng.integers(1, shape[-1] + 1) if shape else 1
        return np.broadcast_to(np.arange(shape[-1] if shape else 1) < keep, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        top = min(most, np.iinfo(dtype).max)
        return rng.integers(0, top + 1, shape).astype(dtype)
    return (kind(rng, shape or [1]).reshape(shape) * scale).astype(dtype)


def moved(feed, rng):
    """The same inputs, every float32 off by its last bit."""
    return {k: v * (1 + np.where(rng.random(v.shape) < 0.5, -1, 1).astype(v.dtype) * np.float32(2**-23))
            if v.dtype == np.float32 else v for k, v in feed.items()}


def own_errors(models, feed, rng, expected):
    """How far rounding alone moves each output of the original: run as it was exported, and with
    inputs off by their last bit, both ways several times."""
    names = [o.name for o in models[0].get_outputs()]
    runs = [models[1].run(names, feed)] + [models[0].run(names, moved(feed, rng)) for _ in range(3)]
    return [max(d for d, _ in column) for column in zip(*(compare(expected, r) for r in runs))]


def roundings(path, names):
    """By output: what its operator rounds by, whatever comes out; 0 where that is not known."""
    made = {o: n.op_type for n in onnx.load(path, load_external_data=False).graph.node
            for o in n.output}
    return [ROUNDING if made.get(name) in BOUNDED else 0 for name in names]


def compare(expected, got, rounding=None):
    """(largest absolute difference, the original's largest magnitude) of each output; differences
    that are no more than its operator's rounding are none."""
    out = []
    for a, b, least in zip(expected, got, rounding or [0] * len(got)):
        if a.shape != b.shape or a.dtype != b.dtype:
            out.append((np.inf, 1))
        elif not np.issubdtype(a.dtype, np.floating):
            out.append((0 if np.array_equal(a, b) else np.inf, 1))
        else:
            x, y = a.astype(np.float64), b.astype(np.float64)
            finite = np.isfinite(x)
            if not np.all(np.isfinite(y[finite])):
                out.append((np.inf, 1))
                continue
            x, y = x[finite], y[finite]
            worst = float(np.max(np.abs(x - y), initial=0))
            out.append((worst if worst > least else 0, float(np.max(np.abs(x), initial=0))))
    return out


def is_beyond(found, own, tolerance):
    return any(d > max(tolerance * m, EXCUSE * o) for (d, m), o in zip(found, own))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('original')
    parser.add_argument('optimised')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--tolerance', type=float, default=1e-4)
    parser.add_argument('--library', help='of kernels, for OUT')
    parser.add_argument('--shape', action='append', default=[], metavar='NAME:DIMS')
    parser.add_argument('--value', action='append', default=[], metavar='NAME=V',
                        help='of all elements of an input')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--most', type=int, default=999, help='largest integer drawn')
    args = parser.parse_args()
    shapes = {s.rpartition(':')[0]: [int(d) for d in s.rpartition(':')[2].split(',')]
              for s in args.shape}
    values = {v.partition('=')[0]: float(v.partition('=')[2]) for v in args.value}
    a, b = session(args.original, args), session(args.optimised, args, args.library)
    plain = None
    names = [o.name for o in a.get_outputs()]
    rng = np.random.default_rng(args.seed)
    rounding = roundings(args.original, names)
    rows, beyond, excused = [], 0, 0
    for i in range(args.count):
        kind, scale = KINDS[i % len(KINDS)], SCALES[(i // len(KINDS)) % len(SCALES)]
        feed = {p.name: draw(rng, p, shapes, kind, scale, args.most) for p in a.get_inputs()}
        feed |= {p.name: np.full(feed[p.name].shape, values[p.name], DTYPES[p.type])
                 for p in a.get_inputs() if p.name in values}
        expected, got = a.run(names, feed), b.run(names, feed)
        found = compare(expected, got, rounding)
        worst = max((d / m if m > 0 else np.inf if d > 0 else 0) for d, m in found)
        if worst > args.tolerance:
            plain = plain or session(args.original, args, plain=True)
            own = own_errors((a, plain), feed, rng, expected)
            bad = is_beyond(found, own, args.tolerance)
            for exact in exactly(args.original, feed, expected) if bad else []:
                own = [max(o, d) for o, (d, _) in zip(own, compare(expected, exact))]
                bad = is_beyond(found, own, args.tolerance)
            beyond, excused = beyond + bad, excused + (not bad)
            print(f"{'beyond' if bad else 'excused'}: set {i}, {kind.__name__} x {scale}: off by "
                  f'{max(d for d, _ in found):.2e}, {worst:.2e} of the largest; rounding alone: '
                  f'{max(own):.2e}', flush=True)
        rows.append((worst, kind.__name__, scale))
    print('| kind | sets | worst | at scale |\n| --- | --- | --- | --- |')
    for kind in KINDS:
        of_kind = [r for r in rows if r[1] == kind.__name__]
        if of_kind:
            top = max(of_kind)
            print(f'| {kind.__name__} | {len(of_kind)} | {top[0]:.2e} | {top[2]:g} |')
    print(f'{args.count} sets: worst {max(rows)[0]:.2e} ({max(rows)[1]} x {max(rows)[2]:g}), '
          f'limit {args.tolerance:.0e}, {beyond} beyond it, {excused} excused by '
          'rounding alone')
    return 1 if beyond else 0


if __name__ == '__main__':
    sys.exit(main())
