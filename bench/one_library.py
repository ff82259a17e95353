#!/usr/bin/env python3
"""One library for every size beside libraries that were made for one.

  bench/one_library.py MODEL [--build DIR] [--batch N].. [--at "NAME:D,D,.. NAME:.."].. [--shape NAME:N,D,..]..
                       [--threads N] [--work DIR] [--petopt-options WORDS]

MODEL's sizes must be open, or its batch is left so by --shape (as petopt's --input-shape). petopt makes kernels
with them open, and for each size with the inputs pinned to it: those of --at, and each --batch with all else as
--shape has it (batches 1, 2, 3, 5 and 8 where neither is given). The original, the open library twice (the second time
as a control) and the pinned one run in one process, in random order; medians are compared. Prints a table in Markdown,
and the geometric mean and the lowest of "open over pinned".
"""
import argparse
import os
import random
import statistics
import sys
import time

import onnx
import onnxruntime

import rivals
import run

SECONDS, MOST, LEAST = 40, 60, 10  # of a size; rounds


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


def measured(args, made, pins):
    """Median ms of the original and of each of `made`, read in turns."""
    files = [(args.model, None), *made]
    sessions = [rivals.session_of(*f) for f in files]
    feeds, read = rivals.made_up(sessions[0], rivals.shapes(pins)), [[] for _ in files]
    end, turns = time.perf_counter() + SECONDS, list(range(len(files)))
    for n in range(MOST + 2):  # the first two warm up
        random.shuffle(turns)
        for i in turns:
            start = time.perf_counter()
            sessions[i].run(None, feeds)
            if n >= 2:
                read[i].append(1000 * (time.perf_counter() - start))
        if n >= LEAST and time.perf_counter() > end:
            break
    return [statistics.median(r) for r in read]


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
    onnxruntime.set_global_thread_pool_sizes(args.threads[0], 1)
    shapes = shapes_of(args.model, args.shape)
    one = optimised(args, 'open', at(shapes, 'N') if args.shape else [])
    if not one:
        sys.exit('no kernels for open sizes were faster')
    sizes = [words.split() for words in args.at]
    sizes += [at(shapes, n) for n in args.batch or ([] if sizes else [1, 2, 3, 5, 8])]
    print(f'ONNX Runtime {onnxruntime.__version__}, {args.threads[0]} thread(s)\n')
    columns = ['size', 'original ms', 'open', 'pinned', 'open over pinned', 'open over itself']
    print('| ' + ' | '.join(columns) + ' |\n' + '| --- ' * len(columns) + '|')
    quotients = []
    for number, pins in enumerate(sizes):
        alone = optimised(args, f'size{number}', pins)
        ms = measured(args, [one, one] + ([alone] if alone else []), pins)
        name = ' '.join(p.rsplit(':', 1)[1].replace(',', 'x') for p in pins)
        if alone:
            quotients.append(ms[3] / ms[1])
        print(f'| {name} | {ms[0]:.2f} | {ms[0] / ms[1]:.2f}x | ' +
              (f'{ms[0] / ms[3]:.2f}x | {quotients[-1]:.3f}' if alone else 'no kernels | -') +
              f' | {ms[2] / ms[1]:.2f} |', flush=True)
    if quotients:
        print(f'\nopen over pinned: geometric mean {run.geomean(quotients):.3f}, lowest {min(quotients):.3f}')


if __name__ == '__main__':
    main()
