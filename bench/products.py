#!/usr/bin/env python3
"""Single products of tokens and weights as kernels, beside ONNX Runtime: what the widths, heights and
depths of products do to them.

  bench/products.py [MxKxN ...] [--build DIR] [--threads N] [--rounds N]

Each is a model of its own, MatMul and Relu, of which petopt makes a kernel that is taken as it is
(`--skip select`). The ratio and the control are those of bench/beside.py. Needs .deps/bench
(scripts/deps.sh --bench). Prints a table in Markdown.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = ['40x120x6625', '64x256x1001', '128x768x3002', '128x768x10007', '128x768x3072']


def product(rows, terms, columns):
    weight = np.random.default_rng(0).standard_normal((terms, columns)) / terms**0.5
    graph = helper.make_graph(
        [helper.make_node('MatMul', ['x', 'w'], ['p']), helper.make_node('Relu', ['p'], ['y'])],
        'product', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [rows, terms])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [rows, columns])],
        [numpy_helper.from_array(weight.astype('f'), 'w')])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def read(args, shape, folder):
    """The schedule, and what bench/beside.py says: of the runtime, the kernel, the control."""
    path = os.path.join(folder, shape)
    onnx.save(product(*map(int, shape.split('x'))), path + '.onnx')
    told = subprocess.run([os.path.join(args.build, 'petopt'), path + '.onnx', '-o', path + '.out.onnx',
                           '--kernels', path + '.kernels', '--threads', str(args.threads), '--cache',
                           'none', '--skip', 'select', '-v'],
                          capture_output=True, text=True, check=True).stderr
    schedule = re.search(r'region 0, .*?: (.*?); [\d.]+ ms', told)
    library = os.path.join(path + '.kernels', 'libpetopt_kernels.so')
    rows = json.loads(subprocess.run(
        [sys.executable, '-B', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'beside.py'),
         path + '.onnx', f'{path}.out.onnx={library}', '--threads', str(args.threads), '--rounds',
         str(args.rounds), '--json'], capture_output=True, text=True, check=True).stdout)
    return schedule.group(1) if schedule else '-', rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('shapes', nargs='*', default=SHAPES, metavar='MxKxN')
    p.add_argument('--build', default='build')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--rounds', type=int, default=15)
    args = p.parse_args()
    print('| product | schedule | runtime ms | kernel ms | ratio (95 %) | control |\n'
          '| --- | --- | --- | --- | --- | --- |', flush=True)
    for shape in args.shapes:
        with tempfile.TemporaryDirectory() as folder:
            schedule, (own, its, control) = read(args, shape, folder)
        print(f'| {shape.replace("x", " x ")} | {schedule} | {own["ms"]:.2f} | {its["ms"]:.2f} | '
              f'{its["ratio"]:.2f}x ({its["ratio_low"]:.2f} to {its["ratio_high"]:.2f}) | '
              f'{control["ratio"]:.2f} |', flush=True)


if __name__ == '__main__':
    main()
