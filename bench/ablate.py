#!/usr/bin/env python3
"""What each part of the search is worth: petopt with all of it, and with each part left out in turn.

  bench/ablate.py [--build DIR] [--threads N] [--set NAME].. [--only TEXT] [--work DIR]
                  [--model FILE[=INPUT:SHAPE]].. [--part NAME].. [--kernels] [--open-batch]
                  [--petopt-options TEXT]

Sets are those of bench/run.py; --model adds a file of one's own; --part leaves out these alone. Every model is written once with
everything and once with each part of `--skip`; what comes out is timed by one `petopt bench`,
interleaved in random order with the original. A cell is the time without the part over the time with
it: above 1 the part is worth that much; "=" is the same file. Where the whole search changes nothing
its parts are not run. --kernels: petopt makes kernels too, and since a session takes one library each
file is timed by bench/beside.py. Prints a table in Markdown.
"""
import argparse
import hashlib
import json
import os
import platform
import sys

import run

SEARCH = 'mutate'
PARTS = ['derived', 'blind', 'corrected', 'seams']  # of the search
OTHERS = ['combined', 'partly', 'postopt']


def digest(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()


def written(args, path, shapes, stem, part):
    """(file, winner, library) without the part; None: with all."""
    out = f'{stem}.without_{part}.onnx' if part else f'{stem}.onnx'
    options = args.petopt_options
    args.petopt_options = f'{options} --skip {part}' if part else options
    told, failed = run.optimise(args, path, shapes, out)
    args.petopt_options = options
    if failed:
        raise RuntimeError(f'{os.path.basename(path)} without {part}: {failed}')
    return out, told['winner'] if told['changed'] else 'original', told['library']


def timed(args, path, files, shapes):
    """What the original and each (file, library) read beside one another."""
    if not any(library for _, library in files):
        read, failed = run.bench(args, [path] + [f for f, _ in files], shapes, args.threads[0], None)
        if failed:
            raise RuntimeError(failed)
        return read
    words = [f'{f}={library or ""}' for f, library in [(path, None), *files]]
    words += [w for s in shapes for w in ('--shape', s)]
    p = run.run([os.path.join(run.deps(), 'venv', 'bin', 'python'),
                 os.path.join(run.ROOT, 'bench', 'beside.py'), '--json', '--threads',
                 str(args.threads[0]), *words])
    if p.returncode != 0:
        raise RuntimeError(p.stderr.strip())
    *models, control = json.loads(p.stdout)
    return {'models': models, 'control': control['ratio'], 'runtime': 'ONNX Runtime',
            'cpu': platform.processor() or platform.machine()}


def measure(args, path, shapes, name):
    stem = os.path.join(args.work, name.replace(' ', '_'))
    whole, won, library = written(args, path, shapes, stem, None)
    same, files = {digest(whole)}, {}
    for part in args.part:
        if part in PARTS and SEARCH in args.part and SEARCH not in files:
            continue
        out, _, of_part = written(args, path, shapes, stem, part)
        if digest(out) not in same:
            files[part] = (out, of_part)
    read = timed(args, path, [(whole, library), *files.values()], shapes)
    full, rest = read['models'][1], read['models'][2:]
    worth = {p: full['ratio'] / m['ratio'] for p, m in zip(files, rest)}
    row = [name, f'{full["ratio"]:.3f}x ({full["ratio_low"]:.3f} to {full["ratio_high"]:.3f})', won]
    row += [f'{worth[p]:.3f}' if p in worth else '=' for p in args.part]
    return row + [f'{read["control"]:.3f}'], f'{read["runtime"]}, {read["cpu"]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(run.ROOT, 'build'))
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--set', action='append', choices=run.SETS, default=[])
    parser.add_argument('--only', default='')
    parser.add_argument('--model', action='append', default=[])
    parser.add_argument('--work', default=None)
    parser.add_argument('--part', action='append', choices=[SEARCH] + PARTS + OTHERS, default=[])
    parser.add_argument('--kernels', action='store_true', help='petopt makes kernels too')
    parser.add_argument('--open-batch', action='store_true', help='the batch of every model is open')
    parser.add_argument('--petopt-options', default='')
    args = parser.parse_args()
    args.threads = [args.threads]
    args.part = args.part or [SEARCH] + PARTS + OTHERS
    args.work = os.path.abspath(args.work or os.path.join(args.build, 'ablate'))
    args.petopt = os.path.join(args.build, 'petopt')
    os.makedirs(args.work, exist_ok=True)
    models = run.suite(args)
    for m in args.model:
        path, _, shape = m.partition('=')
        models.append((os.path.basename(path)[:-len('.onnx')], path, [shape] if shape else []))
    head = ['model', 'all', 'won', *args.part, 'control']
    print('| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head), flush=True)
    machine, failures = None, []
    for name, path, shapes in models:
        try:
            row, machine = measure(args, path, shapes, name)
        except RuntimeError as e:
            failures.append(str(e))
            continue
        print('| ' + ' | '.join(row) + ' |', flush=True)
    print(f'\n{machine}, {args.threads[0]} thread(s)')
    for f in failures:
        print('failed: ' + f)
    sys.exit(1 if failures or machine is None else 0)


if __name__ == '__main__':
    main()
