#!/usr/bin/env python3
"""What models with open dims gain in standard ONNX, beside the same models with their dims pinned.

  bench/open_pinned.py [--build DIR] [--models DIR] [--work DIR] [--only TEXT] [--skip TEXT]..
                       [--options "--threads 1"]

The models are those of bench/every_size.py. petopt runs twice on each, one run after the other: as it
comes, and with its dims pinned to the first size that the run before was read at. Both say what was
gained over the original at that size, in one run each. Prints a table in Markdown and the geometric
mean of what open dims get of what pinned ones get.
"""
import argparse
import json
import math
import os
import re
import subprocess
import tempfile

from every_size import models
from run import ROOT


def run(args, path, name, *words):
    report = os.path.join(args.work, name + '.json')
    p = subprocess.run([os.path.join(args.build, 'petopt'), path, '-o', os.path.join(args.work, name),
                        '--json', report, '--cache', 'none', '-q', *args.options.split(), *words],
                       capture_output=True, text=True, check=False)
    if p.returncode:
        raise SystemExit(f'{path}: {p.stderr.strip()}')
    with open(report, encoding='utf-8') as f:
        return json.load(f)


def read_at(told):
    """The inputs that the first reading was at; of a model that is kept, those of its reason."""
    text = told['sizes'][0]['inputs'] if told['sizes'] else told['kept'] or ''
    return re.findall(r'[^\s:(]+:[0-9]+(?:x[0-9]+)*', text)


def gain(told):
    return told['latency']['ratio'] if told['changed'] and told['latency'] else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--models', default='', help='a folder of more models (bench/exports.py)')
    parser.add_argument('--work', default='')
    parser.add_argument('--only', default='')
    parser.add_argument('--skip', action='append', default=[])
    parser.add_argument('--options', default='--threads 1')
    args = parser.parse_args()
    args.work = args.work or tempfile.mkdtemp()
    parts = []
    print('| model | at | open | pinned | open over pinned |\n| --- | --- | --- | --- | --- |')
    for name, path in models(args):
        if args.only not in name or any(t in name for t in args.skip):
            continue
        told = run(args, path, name + '.as_it_is.onnx')
        at = read_at(told)
        if not at:
            print(f'| {name} | - | {told["kept"]} | | |', flush=True)
            continue
        pins = [w for one in at
                for w in ('--input-shape', re.sub(r'[^:]*$', lambda m: m[0].replace('x', ','), one))]
        pinned = run(args, path, name + '.pinned.onnx', *pins)
        parts.append(gain(told) / gain(pinned))
        print(f'| {name} | {" ".join(at)} | {gain(told):.2f}x, {told["winner"]} | {gain(pinned):.2f}x, '
              f'{pinned["winner"]} | {parts[-1]:.2f} |', flush=True)
    mean = math.exp(sum(math.log(p) for p in parts) / len(parts)) if parts else 0
    print(f'\n{len(parts)} models, geometric mean {mean:.3f}')


if __name__ == '__main__':
    main()
