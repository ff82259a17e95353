#!/usr/bin/env python3
"""What petopt's search finds for single operators: PET's cases, and shapes held for kernels.

  bench/operators.py [--build DIR] [--threads N] [--only TEXT] [--most N] [--work DIR] [--blind]

Needs onnx: .deps/venv/bin/python. Each model is explained twice: with -O2, which measures in ONNX
Runtime, and with -O3 --cost model, which times nothing, so its CPU time is that of the search, and
compares by boxes whatever the roofline calls faster. At last, and with --blind alone: PET's mutants at
their true sizes, found without derivations (what build/tests/units test_enumerate asserts). `equal` is what one of the two has shown to be.
Others agree at eight positions where they were measured, and need correction where the name says that
seams are open. FLOPs, how many times fewer, count transforms. Ratios in context are against the form
that petopt -O1 gives the operator; `written` is the gain of what would be written over the model as
given. Exit code 1: a mutant that a case asks for is missing.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def model(nodes, inputs, weights, outputs):
    draw = np.random.default_rng(1)
    tensors = [numpy_helper.from_array(
        (draw.standard_normal(d) / np.sqrt(np.prod(d[1:]))).astype(np.float32), n)
        for n, d in weights.items()]
    graph = helper.make_graph(
        nodes, 'case', [helper.make_tensor_value_info(n, 1, d) for n, d in inputs.items()],
        [helper.make_tensor_value_info(n, 1, None) for n in outputs], tensors)
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8))


def conv(x, w, pads, dilation=1):
    """A convolution whose map keeps its size."""
    node = helper.make_node('Conv', ['x', 'w'], ['y'], pads=pads + pads,
                            dilations=[dilation] * len(pads))
    return model([node], {'x': x}, {'w': w}, ['y'])


def pointwise(reads, joined=False):
    """Parallel 1x1 convolutions of maps [1,768,18,18]: (input, channels made) of each; joined: one
    Concat of all."""
    nodes = [helper.make_node('Conv', [x, f'w{i}'], [f'y{i}']) for i, (x, _) in enumerate(reads)]
    outputs = [f'y{i}' for i in range(len(reads))]
    if joined:
        nodes.append(helper.make_node('Concat', outputs, ['z'], axis=1))
        outputs = ['z']
    return model(nodes, {x: [1, 768, 18, 18] for x, _ in reads},
                 {f'w{i}': [n, 768, 1, 1] for i, (_, n) in enumerate(reads)}, outputs)


def products():
    nodes = [helper.make_node('MatMul', ['x', f'w{i}'], [f'y{i}']) for i in range(3)]
    return model(nodes, {'x': [512, 768]}, {f'w{i}': [768, 768] for i in range(3)},
                 [f'y{i}' for i in range(3)])


# name, model, and mutants that must be among those found (patterns of their names)
CASES = [
    ('PET conv: 5x5, 48 to 64 at 38x38', lambda: conv([1, 48, 38, 38], [64, 48, 5, 5], [2, 2]),
     ['map to batch', r'fast bilinear.*F\(2,5\)']),
    ('PET dilatedconv: 3x3 dilation 2, 512 to 256 at 14x14',
     lambda: conv([1, 512, 14, 14], [256, 512, 3, 3], [2, 2], 2),
     ['dilation to phases', r'fast bilinear: F\(4,3\).*F\(4,3\)']),
    ('PET groupconv: 1x1, 768 to 192, 192, 160, 160 of one map at 18x18',
     lambda: pointwise([('a', 192), ('a', 192), ('a', 160), ('a', 160)]),
     ['parallel convolutions merged']),
    ('PET groupconv: 1x1, 768 to 192, 160 of each of two maps at 18x18, concatenated',
     lambda: pointwise([('a', 192), ('b', 192), ('a', 160), ('b', 160)], True),
     ['parallel convolutions merged', 'convolutions joined as groups']),
    ('PET batchmatmul: 3 of [512,768] x [768,768]', products,
     ['parallel products merged', 'products batched']),
    ('dilated 3x3, 512 at 28x28', lambda: conv([1, 512, 28, 28], [512, 512, 3, 3], [2, 2], 2),
     ['dilation to phases', r'fast bilinear: F\(4,3\).*F\(4,3\)']),
    ('3x3, 64 at 56x56', lambda: conv([1, 64, 56, 56], [64, 64, 3, 3], [1, 1]),
     [r'fast bilinear: F\(4,3\).*F\(4,3\)']),
    ('1x7, 128 at 17x17', lambda: conv([1, 128, 17, 17], [128, 128, 1, 7], [0, 3]),
     [r'fast bilinear.*F\(2,7\)']),
    ('3x3x3, 64 at 8x56x56', lambda: conv([1, 64, 8, 56, 56], [64, 64, 3, 3, 3], [1, 1, 1]),
     [r'fast bilinear: F\(4,3\) along axis 1, F\(4,3\) along axis 2']),
]
FROM = {'derivation': 'derived', 'enumeration': 'blind', 'correction': 'corrected'}


def explain(args, path, *more):
    """The report, and the CPU seconds that it took."""
    report = path + '.json'
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([os.path.join(args.build, 'petopt'), 'explain', path, '-q', '--json', report,
                    '--threads', str(args.threads), '--cache', 'none', *more], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(report, encoding='utf-8') as f:
        told = json.load(f)
    return told, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def mutants_of(told):
    """By part and name; each with the part's own multiplications beside it."""
    found = {}
    for part in told['search']['subprograms']:
        for m in part['mutants']:
            m['equal'] = m['fate'] in ('equal', 'chosen')
            m['fewer'] = part['flops'] / m['flops'] if m['flops'] else 0
            m['title'] = re.sub(r'enumerated \(([^)]*)\): ', '', m['name'])
            old = found.get((part['name'], m['name']))
            if old is None or m['equal'] > old['equal']:
                found[part['name'], m['name']] = m
    return found


def times(x):
    return '-' if x is None else f'{x:.2f}x'


def best(mutants, by):
    return max((m for m in mutants if m[by] is not None), key=lambda m: m[by], default=None)


def rows_of(mutants, wanted, most):
    """What was asked for, the best by roofline and the best measured, each name once."""
    kept = []
    for w in wanted:
        m = best([m for m in mutants if re.search(w, m['name'])], 'ratio_estimated')
        kept += [m] if m and m not in kept else []
    asked = len(kept)
    for by in ('ratio_estimated', 'ratio'):
        known = [m for m in mutants if m[by] is not None]
        for m in sorted(known, key=lambda m: (-m['equal'], -m[by])):
            same = [k for k in kept if (k['title'], k['from']) == (m['title'], m['from'])]
            if not same and len(kept) < asked + most * (1 + (by == 'ratio')):
                kept.append(m)
    return sorted(kept, key=lambda m: -m['ratio_estimated'])


def measure(args, name, make, wanted):
    path = os.path.join(args.work, re.sub(r'\W+', '_', name) + '.onnx')
    onnx.save(make(), path)
    timed, _ = explain(args, path, '-O2')
    judged, cpu = explain(args, path, '-O3', '--cost', 'model')
    found = mutants_of(timed)
    for key, m in mutants_of(judged).items():
        if key in found:
            found[key]['equal'] |= m['equal']
    mutants = list(found.values())
    count = {w: sum(m['from'] == f for m in mutants) for f, w in FROM.items()}
    equal = [m for m in mutants if m['equal']]
    gain = timed['latency']['ratio'] if timed['changed'] and timed['latency'] else 1
    print(f'### {name}\n\n| mutant | from | judged | measured | roofline | FLOPs |\n'
          '| --- | --- | --- | --- | --- | --- |')
    for m in rows_of(mutants, wanted, args.most):
        print(f'| {m["title"]} | {FROM[m["from"]]} | {"equal" if m["equal"] else m["fate"]} | '
              f'{times(m["ratio"])} | {times(m["ratio_estimated"])} | {times(m["fewer"])} |')
    measured, roofline = best(mutants, 'ratio'), best(equal, 'ratio_estimated')
    missing = [w for w in wanted if not any(re.search(w, m['name']) for m in mutants)]
    for w in missing:
        print(f'\nmissing: {w}')
    print(flush=True)
    return [name, *map(str, count.values()), str(len(equal)),
            f'{measured["title"]}, {times(measured["ratio"])}' if measured else '-',
            f'{roofline["title"]}, {times(roofline["ratio_estimated"])}, '
            f'{times(roofline["fewer"])} fewer FLOPs' if roofline else '-',
            f'{cpu:.1f}', times(gain)], missing


def blind(args):
    """PET's table, found blind; false where a mutant is missing."""
    run = subprocess.run([os.path.join(args.build, 'tests', 'units'), 'test_enumerate', 'test_paper'],
                         capture_output=True, text=True, check=False)
    print("### PET's table, found blind\n\n| mutant | rounds | depth | candidate | becomes | CPU s | "
          'agrees | corrected by |\n' + '|' + ' --- |' * 8)
    for line in run.stdout.splitlines():
        m = re.match(r'(.*?): (enumerated .*); ([\d.]+) s, (\d+)% agree; (.*)$', line)
        if m:
            steps = re.findall(r'enumerated \(depth (\d+), candidate (\d+)\): (.*?)(?:; then |$)', m[2])
            depth, candidate, becomes = steps[-1]
            print(f'| {m[1]} | {len(steps)} | {depth} | {int(candidate):,} | {becomes} | {m[3]} | '
                  f'{m[4]} % | {m[5]} |')
    print(flush=True)
    if run.returncode:
        print(run.stderr)
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--only', default='')
    parser.add_argument('--most', type=int, default=3, help='rows by roofline, and measured ones')
    parser.add_argument('--work', default=None, help='kept between runs: models and reports')
    parser.add_argument('--blind', action='store_true', help="PET's table alone")
    args = parser.parse_args()
    if args.blind:
        sys.exit(0 if blind(args) else 1)
    args.work = os.path.abspath(args.work or os.path.join(args.build, 'bench', 'operators'))
    os.makedirs(args.work, exist_ok=True)
    rows, failed = [], False
    for name, make, wanted in CASES:
        if args.only in name:
            row, missing = measure(args, name, make, wanted)
            rows.append(row)
            failed |= bool(missing)
    head = ['case', *FROM.values(), 'equal', 'best measured', 'best by roofline', 'CPU s', 'written']
    print('### In short\n\n| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head))
    for row in rows:
        print('| ' + ' | '.join(row) + ' |')
    print()
    failed |= not blind(args)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
