#!/usr/bin/env python3
"""Convolutions by tiles, layer by layer: chains of 3x3 convolutions and Relu of many sizes, and what
the runtime makes of them with sizes known, and with all of them open.

  bench/tiles.py [--build DIR] [--threads N] [--only TEXT]

Each chain is written by `petopt --cost model`, which measures nothing: what is used is what the law
promises (src/rewrite/bilinear/tiles.c), won or lost. Then `petopt bench` times it beside the
original. "kept": the law promises no gain. Needs the Python of .deps/venv (scripts/deps.sh).
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# channels, rows, columns, dilation of the rows and columns
SHAPES = [(32, 80, 80, 1), (48, 80, 80, 1), (64, 28, 28, 1), (64, 56, 56, 1), (64, 128, 128, 1),
          (96, 40, 40, 1), (128, 14, 14, 1), (128, 28, 28, 1), (128, 64, 64, 1), (256, 7, 7, 1),
          (256, 14, 14, 1), (256, 28, 28, 1), (512, 14, 14, 1), (512, 28, 28, 1), (64, 56, 56, 2),
          (256, 28, 28, 2)]
LAYERS = 3


def chain(channels, rows, columns, dilation, opened):
    rng = np.random.default_rng(0)
    shape = ['N', channels, 'H', 'W'] if opened else [1, channels, rows, columns]
    nodes, weights, x = [], [], 'x'
    for i in range(LAYERS):
        w = rng.standard_normal((channels, channels, 3, 3)) * (2 / (9 * channels))**0.5
        weights.append(numpy_helper.from_array(w.astype('f'), f'w{i}'))
        nodes.append(helper.make_node('Conv', [x, f'w{i}'], [f'c{i}'], pads=[dilation] * 4,
                                      dilations=[dilation] * 2))
        nodes.append(helper.make_node('Relu', [f'c{i}'], ['y' if i == LAYERS - 1 else f'r{i}']))
        x = f'r{i}'
    graph = helper.make_graph(nodes, 'chain',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, shape)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def tile(model):
    """Outputs and products of a tile; None where there are no tiles."""
    graph = onnx.load(model).graph
    sums = next((n.input[0] for n in graph.node if n.op_type == 'MatMul'), None)
    table = next((i for i in graph.initializer if i.name == sums), None)
    return table and f'{table.dims[0]} of {table.dims[1]}'


def read(petopt, folder, shape, opened, threads):
    before, after = os.path.join(folder, 'before.onnx'), os.path.join(folder, 'after.onnx')
    onnx.save(chain(*shape, opened), before)
    sizes = ['--sizes', f'x:1,{shape[0]},{shape[1]},{shape[2]}'] if opened else []
    common = ['--threads', str(threads)] + sizes
    subprocess.run([petopt, before, '-o', after, '-O1', '-q', '--cost', 'model', '--cache', 'none', '--time-limit', '60',
                    *common],
                   check=True)
    used = tile(after)
    if not used:
        return 'kept'
    found = os.path.join(folder, 'bench.json')
    subprocess.run([petopt, 'bench', before, after, '-q', '--json', found, *common], check=True)
    with open(found, encoding='utf-8') as f:
        models = json.load(f)['models']
    return f'{models[1]["ratio"]:.2f}x ({used})'


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('--build', default=os.path.join(ROOT, 'build'))
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--only', default='')
    a = p.parse_args()
    print('| channels, map | known | open |\n| --- | --- | --- |')
    for shape in SHAPES:
        name = f'{shape[0]}, {shape[1]}x{shape[2]}' + (f', dilation {shape[3]}' if shape[3] > 1 else '')
        if a.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            row = [read(os.path.join(a.build, 'petopt'), folder, shape, opened, a.threads)
                   for opened in (False, True)]
        print(f'| {name} | {" | ".join(row)} |', flush=True)


main()
