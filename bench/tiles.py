#!/usr/bin/env python3
"""Convolutions by tiles, layer by layer: chains of 3x3 convolutions and Relu of many sizes, with sizes
known, and with all of them open.

  bench/tiles.py [--build DIR] [--threads N] [--work DIR] [--only TEXT]

Each chain is written by petopt -O1, which reads its variants beside the original: `folded` has the
law (src/rewrite/bilinear/tiles.c). "-": the law promises no gain. Needs onnx:
.deps/venv/bin/python. Prints a table in Markdown.
"""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

import layers

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


def read(args, shape, opened):
    sizes = ['--sizes', f'x:1,{shape[0]},{shape[1]},{shape[2]}'] if opened else []
    name = '_'.join(map(str, shape)) + ('_open' if opened else '')
    _, ratios = layers.told(args, chain(*shape, opened), name, *sizes)
    return f'{ratios["folded"]:.2f}x' if 'folded' in ratios else '-'


def main():
    args = layers.arguments(__doc__, 'tiles')
    print('| channels, map | known | open |\n| --- | --- | --- |', flush=True)
    for shape in SHAPES:
        name = f'{shape[0]}, {shape[1]}x{shape[2]}' + (f', dilation {shape[3]}' if shape[3] > 1 else '')
        if args.only in name:
            print(f'| {name} | {read(args, shape, False)} | {read(args, shape, True)} |', flush=True)


if __name__ == '__main__':
    main()
