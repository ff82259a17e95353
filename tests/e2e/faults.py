#!/usr/bin/env python3
"""Failing memory, a failing disk and a killed process, over whole runs.

  faults.py --petopt PROGRAM --shim LIBRARY --data FOLDER [--most N]
  faults.py --sabotage CC --shim LIBRARY --data FOLDER

For each of a few models, with calls counted by the preloaded shim: the run with the Nth allocation
failing, with the Nth and all later ones failing, the same for every call that writes, and a SIGKILL
at every call that writes. A run may only
- succeed, with the very bytes of an undisturbed run, or, where candidates could not be tried, those
  of -O0, or
- exit 2 or 3 with one sentence on standard error, the old OUT untouched and nothing beside it;
a killed run leaves the old OUT or the new one, whole.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

OLD, PLACE = b'the old output', 'destination'
# Calls that cannot fail unnoticed; what merely speeds up a copy has another way.
MATTERS = {'write', 'pwrite', 'writev', 'pwritev', 'fsync', 'fdatasync', 'ftruncate', 'close', 'rename',
           'renameat', 'renameat2'}
MODELS = [
    # path under the data, options, part of --most: a network takes a hundred times longer
    ('node/test_add/model.onnx', ['-O0'], 1),
    ('node/test_if/model.onnx', ['-O1'], 1),
    ('node/test_loop13_seq/model.onnx', ['-O1'], 1),
    ('light/light_squeezenet.onnx', ['-O1'], 0.4),
]


class Run:
    """One run of petopt in a scratch folder that holds an old OUT."""

    def __init__(self, args, path, options, fault):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, PLACE)
            os.mkdir(folder)
            out, count = os.path.join(folder, PLACE + '.onnx'), os.path.join(root, 'count')
            with open(out, 'wb') as f:
                f.write(OLD)
            env = dict(os.environ, LD_PRELOAD=args.shim, FAULT=fault, FAULT_COUNT=count)
            command = [args.petopt, path, '-o', out, '--cost', 'model', '-q',
                       '--cache', os.path.join(root, 'cache'), *options]
            try:
                p = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                   timeout=60)
                self.code, self.stderr = p.returncode, p.stderr.decode(errors='replace')
            except subprocess.TimeoutExpired:
                self.code, self.stderr = 'hang', ''
            self.left = sorted(os.listdir(folder))
            self.out = open(out, 'rb').read() if os.path.exists(out) else None
            told = open(count).read().split(' ') if os.path.exists(count) else []
            self.calls = int(told[0]) if told else None
            # The call that failed, where it served OUT: a run can do without its cache, and without
            # a candidate that could not be handed to the runtime.
            self.failed = told[1] if told and PLACE in told[2] else ''


def complaint(run, good, plain, killed):
    """What is wrong with a disturbed run, or None."""
    if killed and run.code == -9:
        return None if run.out in (OLD, good, plain) else 'killed: OUT is none of the files that it may be'
    if run.code == 0:
        if run.failed in MATTERS:
            return f'exit 0 although {run.failed} failed'
        if run.out not in (good, plain):
            return 'exit 0, but OUT is not that of an undisturbed run, nor the original'
        extra = [f for f in run.left if not f.startswith(PLACE)]
        return f'exit 0, left behind: {extra}' if extra else None
    if run.code not in (2, 3):
        return f'exit {run.code}: {run.stderr.strip()[-200:]}'
    if len(run.stderr.strip().splitlines()) != 1:
        return f'exit {run.code} with {run.stderr!r} on standard error, not one sentence'
    whole = run.failed == 'fsync_folder' and run.out in (good, plain)  # with its certificate
    if run.left != [PLACE + '.onnx'] and not (whole and run.left == [PLACE + '.onnx', PLACE + '.onnx.cert']):
        return f'exit {run.code}, left behind: {run.left}'
    if run.out != OLD and not whole:
        return f'exit {run.code}, but OUT was touched'
    return None


def numbers(count, most):
    """1..count, thinned evenly to at most `most`, both ends kept."""
    if count <= most:
        return list(range(1, count + 1))
    return sorted({1 + i * (count - 1) // (most - 1) for i in range(most)})


def sweep(args, models, say):
    """All the faults on all the models; how many runs went wrong."""
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, options, part in models:
            path = os.path.join(args.data, name)
            for kind in ('alloc', 'io'):
                calm = Run(args, path, options, f'{kind}:0')
                if calm.code != 0 or calm.out in (None, OLD) or not calm.calls:
                    say(f'{name} undisturbed: exit {calm.code}, {calm.calls} calls of {kind}: '
                        f'{calm.stderr.strip()}')
                    wrong += 1
                    continue
                plain = Run(args, path, ['-O0'], f'{kind}:0').out
                marks = ['', '+'] if kind == 'alloc' else ['', '+', '!']
                faults = [f'{kind}:{n}{m}' for m in marks for n in numbers(calm.calls, int(args.most * part))]
                outcomes = {}
                for fault, run in zip(faults, pool.map(
                        lambda f: Run(args, path, options, f), faults)):
                    bad = complaint(run, calm.out, plain, fault.endswith('!'))
                    outcomes[run.code] = outcomes.get(run.code, 0) + 1
                    if bad:
                        wrong += 1
                        say(f'{name} {" ".join(options)} FAULT={fault}: {bad}')
                told = ', '.join(f'{n} with exit {c}' for c, n in sorted(outcomes.items(), key=str))
                say(f'{name} {" ".join(options)}: {calm.calls} calls of {kind}; {told}')
                if not any(c != 0 for c in outcomes):
                    say(f'{name}: no fault of kind {kind} had any effect')
                    wrong += 1
    say(f'{wrong} wrong')
    return wrong


def sabotage(args):
    """Whether a careful copier passes and copiers with one mistake each are found out."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'copier.c')
    missed = 0
    with tempfile.TemporaryDirectory() as root:
        for bug in range(6):
            args.petopt = os.path.join(root, f'copier{bug}')
            subprocess.run([args.sabotage, '-D_GNU_SOURCE', f'-DBUG={bug}', source, '-o',
                            args.petopt], check=True)
            lines = []
            wrong = sweep(args, MODELS[:1], lines.append)
            if (wrong == 0) != (bug == 0):
                missed += 1
                print(f'copier with bug {bug}:', *lines, sep='\n  ')
    print(f'6 copiers, {missed} misjudged')
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt')
    parser.add_argument('--sabotage', metavar='CC')
    parser.add_argument('--shim', required=True)
    parser.add_argument('--data', required=True)
    parser.add_argument('--most', type=int, default=100, help='runs a model and kind of fault')
    args = parser.parse_args()
    sys.exit(1 if (sabotage(args) if args.sabotage else sweep(args, MODELS, print)) else 0)


if __name__ == '__main__':
    main()
