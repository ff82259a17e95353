#!/usr/bin/env python3
"""Every stage hung, and slowed 100 times, in turn: the run ends by its limit all the same.

  hung.py --petopt PROGRAM [--every N] [--offset K] [--at-once N] [--only TEXT]
  hung.py --sabotage

PROGRAM is petopt with points at which it hangs (hung.c). Each row names one. The run must end within
its limit and ten seconds, with code 0 (130 where it was interrupted), leave OUT, which the runtime
loads and which computes what the model does, and nothing else; what was accepted before is what is
written. --every N takes every Nth row, from K on; the full table is for scripts/soak.sh. --sabotage
judges programs that do wrong.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper
import onnxruntime

# Options with which a place is come to soon.
SEARCH, KERNELS, PLAIN = [], ['-O1', '--kernels', 'k'], ['-O1']
UNTIMED = ['-O1', '--cost', 'model']

# Stages, functions (hung.def) and what children do.
PLACES = {
    'po_stage_import': PLAIN, 'po_stage_simplify': PLAIN, 'po_stage_split': SEARCH,
    'po_stage_mutate': SEARCH, 'po_stage_correct': SEARCH, 'po_stage_superopt': KERNELS,
    'po_stage_choose': SEARCH, 'po_stage_postopt': PLAIN, 'po_stage_select': PLAIN,
    'po_simplify': PLAIN, 'po_derive': SEARCH, 'po_enumerate': SEARCH, 'po_postopt': PLAIN,
    'po_kernel_variants': KERNELS, 'po_mu_prove': KERNELS, 'po_candidate_write': PLAIN,
    'po_rank': PLAIN, 'po_select': PLAIN, 'po_prove': UNTIMED}
MANY = ['po_postopt', 'po_candidate_write'] # are come to more than once
CHILDREN = {'looking_for_ONNX_Runtime': PLAIN, 'timing': PLAIN, 'comparing': PLAIN,
            'comparing_with_float64': PLAIN, 'timing_kernels': KERNELS, 'the_proof': UNTIMED}

# Name, PETOPT_HUNG, options, whether it is interrupted.
ROWS = ([(f'{how} {p}', f'{how} {p} 1', words, False) for p, words in PLACES.items()
         for how in ('hang', 'slow')] +
        [(f'{how} {p}, later', f'{how} {p} 3', PLACES[p], False) for p in MANY
         for how in ('hang', 'slow')] +
        [(f'child {c}', f'child {c} 1', words, False) for c, words in CHILDREN.items()] +
        [('child timing, later', 'child timing 4', PLAIN, False)] +
        [(f'child timing, number {n}', f'child timing {n}', SEARCH, False) for n in (7, 8, 9)] +
        [('compiler', 'none none 1', [*KERNELS, '--cc', './mute-cc'], False)] +
        [(f'interrupted, hang {p}', f'hang {p} 1', PLACES[p], True)
         for p in ('po_stage_simplify', 'po_select')])

LIMIT, GRACE = 8, 10 # seconds

# Programs that do wrong, and what must be said of them.
SABOTAGE = {
    'did not end': 'sleep 60',
    'late': 'sleep 3; cp in.onnx out.onnx',
    'exit 3': 'exit 3',
    'nothing was written': 'exit 0',
    'left behind': 'cp in.onnx out.onnx; touch rest',
    'what was written computes something else': 'cp other.onnx out.onnx',
    'what was read was lost':
        'cp in.onnx out.onnx; echo "6 candidates in 2 processes; first readings were cut" >&2',
    'what was accepted was not written':
        'cp in.onnx out.onnx; echo hung: child the_proof >&2; echo won: original'}


def write_model(path, seed=1):
    """Sixteen channels to sixty-four and back: one product does it. Hard-swish has several forms."""
    rng = np.random.default_rng(seed)

    def weight(name, *shape):
        data = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        return helper.make_tensor(name, TensorProto.FLOAT, shape, data.tobytes(), raw=True)

    nodes = [helper.make_node('Conv', ['x', 'a'], ['p'], pads=[1] * 4),
             helper.make_node('Conv', ['p', 'b'], ['q']),
             helper.make_node('Add', ['q', 'three'], ['q3']),
             helper.make_node('Clip', ['q3', 'zero', 'six'], ['gate']),
             helper.make_node('Mul', ['q', 'gate'], ['r6']),
             helper.make_node('Div', ['r6', 'six'], ['r']),
             helper.make_node('Conv', ['r', 'c'], ['s']),
             helper.make_node('Conv', ['s', 'd'], ['y'])]
    weights = [weight('a', 64, 16, 3, 3), weight('b', 16, 64, 1, 1), weight('c', 64, 16, 1, 1),
               weight('d', 16, 64, 1, 1)]
    weights += [helper.make_tensor(n, TensorProto.FLOAT, [], [x])
                for n, x in (('zero', 0), ('three', 3), ('six', 6))]
    shape = [1, 16, 40, 40]
    graph = helper.make_graph(nodes, 'g',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, shape)],
                              weights)
    onnx.save(helper.make_model(graph, ir_version=8,
                                opset_imports=[helper.make_opsetid('', 15)]), path)


def outputs(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    x = np.random.default_rng(2).standard_normal((1, 16, 40, 40)).astype(np.float32)
    return session.run(None, {'x': x})[0]


def wrong_with(petopt, row):
    """What is wrong, how long it took, and whether the place was come to."""
    folder = tempfile.mkdtemp()
    try:
        return look(petopt, *row[1:], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def look(petopt, hung, words, interrupt, folder):
    write_model(os.path.join(folder, 'in.onnx'))
    write_model(os.path.join(folder, 'other.onnx'), 2)
    mute = os.path.join(folder, 'mute-cc')
    with open(mute, 'w', encoding='utf-8') as f: # says what version it is, and no more
        f.write('#!/bin/sh\ncase "$*" in *version*) exec cc --version;; esac\n'
                'trap "" TERM\nwhile :; do sleep 1; done\n')
    os.chmod(mute, os.stat(mute).st_mode | stat.S_IXUSR)
    before = set(os.listdir(folder))
    start = time.monotonic()
    run = subprocess.Popen([petopt, 'in.onnx', '-o', 'out.onnx', '--cache', 'none', '-v',
                            '--time-limit', '60' if interrupt else str(LIMIT), *words], cwd=folder,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, start_new_session=True, env={**os.environ, 'PETOPT_HUNG': hung})
    try:
        if interrupt:
            for line in run.stderr:
                if line.startswith('hung:'):
                    break
            else:
                return 'was not come to', 0, False
            start = time.monotonic() - LIMIT
            run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=LIMIT + 10 * GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        return 'did not end', time.monotonic() - start, True
    seconds = time.monotonic() - start
    what = judge(run, out, err, seconds, interrupt, hung, before, folder)
    there = interrupt or 'hung:' in err or './mute-cc' in words
    if 'po_prove' in hung: # in a child, which is not heard
        there = 'proof' in out and 'won: original' not in out
    return what, seconds, there


def judge(run, out, err, seconds, interrupt, hung, before, folder):
    left = glob.glob(f'/tmp/petopt-{run.pid}-*')
    code = 130 if interrupt else 0
    if run.returncode != code:
        return f'exit {run.returncode}: {err[-300:]}'
    for path in left:
        return f'left behind: {path}'
    made = set(os.listdir(folder)) - before - {'out.onnx', 'out.onnx.cert', 'k'}
    if made:
        return f'left behind: {sorted(made)}'
    if not os.path.exists(os.path.join(folder, 'out.onnx')):
        return 'nothing was written'
    a, b = (outputs(os.path.join(folder, m)) for m in ('in.onnx', 'out.onnx'))
    if np.abs(a - b).max() > 1e-4 * np.abs(a).max():
        return 'what was written computes something else'
    if 'the_proof' in hung and 'hung:' in err and 'won: original' in out:
        return 'what was accepted was not written'
    ranked = ' candidates in ' in err and 'first readings were cut' in err
    if ranked and not re.search(r'ms, [\d.]+x \(', err):
        return 'what was read was lost'
    return '' if seconds < LIMIT + GRACE else 'late'


def sabotage():
    global LIMIT, GRACE # pylint: disable=global-statement
    LIMIT, GRACE = 1, 1
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, does) in enumerate(SABOTAGE.items()):
            program = os.path.join(folder, str(number))
            with open(program, 'w', encoding='utf-8') as f:
                f.write(f'#!/bin/sh\n{does}\n')
            os.chmod(program, 0o755)
            said, _, _ = wrong_with(program, ('', 'child the_proof 1', PLAIN, False))
            missed += not said.startswith(what)
            print(f'{"ok" if said.startswith(what) else "MISSED":6} {what}: {said.strip()}')
    sys.exit(1 if missed else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt', type=os.path.abspath)
    parser.add_argument('--sabotage', action='store_true')
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--offset', type=int, default=0)
    parser.add_argument('--at-once', type=int, default=4)
    parser.add_argument('--only', default='')
    args = parser.parse_args()
    if args.sabotage:
        sabotage()
    if not args.petopt:
        parser.error('--petopt or --sabotage')
    rows = [r for r in ROWS if args.only in r[0]][args.offset % args.every::args.every]
    wrong = reached = 0
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        for row, (what, seconds, there) in zip(
                rows, pool.map(lambda r: wrong_with(args.petopt, r), rows)):
            wrong += what != ''
            reached += there
            print(f'{"WRONG" if what else "ok":6} {seconds:5.1f} s  {row[0]}'
                  f'{"" if there else " (not come to)"}{": " + what if what else ""}', flush=True)
    print(f'{len(rows)} of {len(ROWS)} places, {reached} come to in time, limit {LIMIT} s, '
          f'{wrong} wrong')
    sys.exit(1 if wrong or 2 * reached < len(rows) else 0)


if __name__ == '__main__':
    main()
