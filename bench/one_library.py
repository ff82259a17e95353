#!/usr/bin/env python3
"""One library for every size beside libraries that were made for one.

  bench/one_library.py MODEL [--build DIR] [--batch N].. [--at "NAME:D,D,.. NAME:.."].. [--shape NAME:N,D,..]..
                       [--threads N] [--work DIR] [--petopt-options WORDS]

MODEL's sizes must be open, or its batch is left so by --shape (as petopt's --input-shape). petopt makes kernels
with them open, and for each size with the inputs pinned to it: those of --at, and each --batch with all else as
--shape has it (batches 1, 2, 3, 5 and 8 where neither is given). Both are measured beside the original at that
size, each by a `petopt bench` of its own, interleaved with the original: ratios, not times, are compared. Prints a
table in Markdown, and the geometric mean and the lowest of "open over pinned".
"""
import argparse
import math
import os
import sys

import onnx

import run


def shapes_of(path, given):
    """By input: its dims; -1 for the batch."""
    named = {s.rsplit(':', 1)[0]: s.rsplit(':', 1)[1].split(',') for s in given}
    graph = onnx.load(path, load_external_data=False).graph
    weights = {w.name for w in graph.initializer}
    shapes = {}
    for info in graph.input:
        if info.name in weights:
            continue
        dims = named.get(info.name) or [d.dim_value if d.HasField('dim_value') else 'N'
                                        for d in info.type.tensor_type.shape.dim]
        shapes[info.name] = [int(d) if str(d).isdigit() else -1 for d in dims]
    return shapes


def at(shapes, batch):
    """As --input-shape takes them."""
    return [name + ':' + ','.join(str(batch if d < 0 else d) for d in dims) for name, dims in shapes.items()]


def or_end(told, failed):
    if failed:
        sys.exit(failed)
    return told


def optimised(args, name, shapes):
    """(model, library); None without kernels."""
    out = os.path.join(args.work, name + '.onnx')
    library = or_end(*run.optimise(args, args.model, shapes, out))['library']
    return (out, library) if library else None


def measured(args, made, shapes):
    """ms of the original, and how much faster `made` is."""
    told = or_end(*run.bench(args, [args.model, made[0]], shapes, args.threads[0], made[1]))
    return told['models'][0]['ms'], told['models'][1]['ratio']


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('model')
    parser.add_argument('--build', default=os.path.join(run.ROOT, 'build'))
    parser.add_argument('--batch', type=int, action='append')
    parser.add_argument('--at', action='append', default=[])
    parser.add_argument('--shape', action='append', default=[])
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--work', default=None)
    parser.add_argument('--petopt-options', default='-O1')
    args = parser.parse_args()
    args.petopt, args.threads, args.kernels = os.path.join(args.build, 'petopt'), [args.threads], True
    args.work = args.work or os.path.splitext(args.model)[0] + '.one_library'
    os.makedirs(args.work, exist_ok=True)
    shapes = shapes_of(args.model, args.shape)
    one = optimised(args, 'open', at(shapes, 'N') if args.shape else [])
    if not one:
        sys.exit('no kernels for open sizes were faster')
    sizes = [words.split() for words in args.at]
    sizes += [at(shapes, n) for n in args.batch or ([] if sizes else [1, 2, 3, 5, 8])]
    print('| size | original ms | open | pinned | open over pinned |\n| --- | --- | --- | --- | --- |')
    quotients = []
    for number, pins in enumerate(sizes):
        ms, any_size = measured(args, one, pins)
        alone = optimised(args, f'size{number}', pins)
        pinned = measured(args, alone, pins)[1] if alone else None
        if pinned:
            quotients.append(any_size / pinned)
        name = ' '.join(p.rsplit(':', 1)[1].replace(',', 'x') for p in pins)
        print(f'| {name} | {ms:.2f} | {any_size:.2f}x | ' +
              (f'{pinned:.2f}x | {any_size / pinned:.3f} |' if pinned else 'no kernels | - |'), flush=True)
    if quotients:
        mean = math.exp(sum(map(math.log, quotients)) / len(quotients))
        print(f'\nopen over pinned: geometric mean {mean:.3f}, lowest {min(quotients):.3f}; {args.threads[0]} thread(s)')


if __name__ == '__main__':
    main()
