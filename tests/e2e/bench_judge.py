#!/usr/bin/env python3
"""The comparison that bench/fleet.py judges by (bench/fleet_check.py): what it must let pass, and
what it must not; and that the benches which share a list of models read it.

  bench_judge.py
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper as h, numpy_helper

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench', 'fleet_check.py')
W = np.linspace(-1, 1, 24, dtype='f4').reshape(6, 4)


def model(path, nodes, **weights):
    graph = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', TensorProto.FLOAT, [3, 6])],
                         [h.make_tensor_value_info('y', TensorProto.FLOAT, None)],
                         [numpy_helper.from_array(np.asarray(v, 'f4'), k) for k, v in weights.items()])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid('', 17)], ir_version=8), path)


def product(path, **weights):
    model(path, [h.make_node('MatMul', ['x', 'w'], ['y'])], **weights)


def offset(path, there):
    """x as it is, or by way of numbers that are far from 0."""
    steps = [('Add', 'x', 'k', 'a'), ('Sub', 'a', 'k', 'y')] if there else [('Mul', 'x', 'one', 'y')]
    model(path, [h.make_node(op, [a, b], [c]) for op, a, b, c in steps], k=1e5, one=1)


CASES = [  # name, the original, what is written, whether it is to pass
    ('the same', lambda p: product(p, w=W), lambda p: product(p, w=W), True),
    ('the last bit', lambda p: product(p, w=W), lambda p: product(p, w=np.nextafter(W, 2)), True),
    ('a weight a hundredth off', lambda p: product(p, w=W), lambda p: product(p, w=W * 1.01), False),
    ('one element off', lambda p: product(p, w=W),
     lambda p: product(p, w=W + 1e-3 * (np.arange(24).reshape(6, 4) == 5)), False),
    ('nearer to float64 than the original', lambda p: offset(p, True), lambda p: offset(p, False), True),
    ('farther from float64', lambda p: offset(p, False), lambda p: offset(p, True), False),
]


def starts(bench):
    """Up to the table: there is no model of that name."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, '-B', os.path.join(os.path.dirname(CHECK), bench), '--build', folder,
                              '--set', 'ocr', '--only', 'no such model'], capture_output=True, text=True)
    return run.returncode == 1 and '| control |' in run.stdout and not run.stderr


def main():
    wrong = 0
    for bench in 'run.py', 'ablate.py':
        good = starts(bench)
        wrong += not good
        print(f'{"ok" if good else "WRONG":8}{bench} starts')
    with tempfile.TemporaryDirectory() as folder:
        a, b = os.path.join(folder, 'a.onnx'), os.path.join(folder, 'b.onnx')
        for name, original, written, passes in CASES:
            original(a)
            written(b)
            run = subprocess.run([sys.executable, '-B', CHECK, a, b], capture_output=True, text=True)
            told = json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else {}
            good = bool(told) and told['compared'] > 3 and (not told['wrong']) == passes
            wrong += not good
            print(f'{"ok" if good else "WRONG":8}{name}: {told or run.stderr[-500:]}')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
