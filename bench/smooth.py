#!/usr/bin/env python3
"""Convolutions of linearly interpolated maps: what smoothing behind them is worth, layer by layer.

  bench/smooth.py [--build DIR] [--threads N] [--work DIR] [--only TEXT]

A layer is pointwise, interpolated by a whole factor, convolved 3x3, pointwise again. Each is written
by petopt -O1, which reads its variants beside one another: `folded` has the law
(src/rewrite/upsample/smooth.c), `interpolated maps kept` all others. Needs onnx: .deps/venv/bin/python.
Prints a table in Markdown.
"""
import numpy as np
from onnx import helper, numpy_helper

import layers

# channels in, channels out, side of the small map, factor
CASES = [(64, 64, 64, 2), (128, 64, 40, 2), (128, 128, 16, 2), (256, 128, 32, 2), (512, 256, 16, 2),
         (96, 64, 20, 3), (32, 32, 40, 4), (64, 64, 32, 4), (128, 128, 32, 4), (256, 256, 32, 4),
         (256, 128, 16, 8)]


def layer(c, k, side, factor):
    draw = np.random.default_rng(1)

    def weight(*dims):
        return (draw.standard_normal(dims) / np.sqrt(np.prod(dims[1:]))).astype(np.float32)

    tensors = {'a': weight(c, 8, 1, 1), 'w': weight(k, c, 3, 3), 'b': weight(k, 1)[:, 0],
               'e': weight(8, k, 1, 1), 's': np.array([1, 1, factor, factor], np.float32)}
    nodes = [helper.make_node('Conv', ['x', 'a'], ['p']), helper.make_node('Relu', ['p'], ['z']),
             helper.make_node('Resize', ['z', '', 's'], ['u'], mode='linear',
                              coordinate_transformation_mode='pytorch_half_pixel'),
             helper.make_node('Conv', ['u', 'w', 'b'], ['q'], pads=[1, 1, 1, 1]),
             helper.make_node('Relu', ['q'], ['r']), helper.make_node('Conv', ['r', 'e'], ['y'])]
    graph = helper.make_graph(
        nodes, 'layer', [helper.make_tensor_value_info('x', 1, [1, 8, side, side])],
        [helper.make_tensor_value_info('y', 1, [1, 8, factor * side, factor * side])],
        [numpy_helper.from_array(t, n) for n, t in tensors.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def measure(args, case):
    run, read = layers.told(args, layer(*case), '_'.join(map(str, case)))
    cells = [f'{read[n]:.2f}x' if n in read else '-' for n in ('folded', 'interpolated maps kept')]
    won = run['winner'] if run['changed'] else 'original'
    ms = run['latency']['ms_before'] if run['latency'] else 0
    c, k, side, factor = case
    print(f'| {c} to {k}, {side} to {factor * side} | {ms:.2f} | {cells[0]} | {cells[1]} | {won} |',
          flush=True)


def main():
    args = layers.arguments(__doc__, 'smooth')
    print('| layer | original ms | with the law | without | won |\n|' + ' --- |' * 5, flush=True)
    for case in CASES:
        if args.only in '_'.join(map(str, case)):
            measure(args, case)


if __name__ == '__main__':
    main()
