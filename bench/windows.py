#!/usr/bin/env python3
"""What the search finds for windows of steps, beside the steps one after the other.

  bench/windows.py MODEL.. [--threads N] [--encoders]

Runs petopt with kernels on each model, cold, and prints for each window for which programs were found
(docs/superopt.md) how often the best is in the kernels that are written, and its reading and that of
its steps, one after the other, which petopt takes in one process. --encoders adds encoders of two layers as bench/tokens.py builds them, of 128, 197, 512
and 1500 tokens. Run it with nothing else at work. Runs in .deps/venv.
"""
import argparse
import os
import re
import subprocess
import tempfile

LINE = re.compile(r'window, estimate ([0-9.]+): ([0-9.]+) ms, ([0-9.]+) one after the other(, taken)?: '
                  r'(.*? \.\. .*?): (.*); (kernel.*)')
STEP = re.compile(r'region [0-9]+, .*: found: ')
# tokens, channels, hidden channels, heads
ENCODERS = [(128, 768, 3072, 12), (197, 768, 3072, 12), (512, 768, 3072, 12), (1500, 384, 1536, 6)]


def build_encoders(folder):
    import onnx
    import tokens
    for n, channels, hidden, heads in ENCODERS:
        path = os.path.join(folder, f'encoder{n}.onnx')
        onnx.save(tokens.encoder(False, 1, n, channels, hidden, heads, 2), path)
        yield path


def windows_of(petopt, path, threads):
    """Steps, how often what was found is in the kernels, milliseconds, those of the steps, loops."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([petopt, path, '-o', os.path.join(folder, 'out.onnx'), '--kernels',
                              os.path.join(folder, 'k'), '--threads', str(threads), '--cache', 'none',
                              '--skip', 'select', '-v'], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f'{path}: {run.stderr.strip().splitlines()[-1]}')
    best = {}
    for line in run.stderr.splitlines():
        found = LINE.search(line)
        if not found or float(found[2]) <= 0 or float(found[3]) <= 0:
            continue
        ms, steps, taken, what, program, loops = (float(found[2]), float(found[3]), bool(found[4]),
                                                  found[5], found[6], found[7])
        before = best.get(what)
        if not before or taken or (not before[2] and ms < before[0]):
            best[what] = (ms, steps, taken, program, loops)
    alike = {}
    for what, (ms, before, taken, program, loops) in best.items():
        alike.setdefault((ms, before, taken, program, loops), what)
    steps = [line for line in run.stderr.splitlines() if STEP.search(line)]
    return [(what, sum(f'{program}; {loops}' in line for line in steps) if taken else 0, ms, before, loops)
            for (ms, before, taken, program, loops), what in alike.items()]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('models', nargs='*', metavar='MODEL')
    p.add_argument('--encoders', action='store_true')
    p.add_argument('--threads', type=int, default=1)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    p.add_argument('--petopt', default=os.path.join(root, 'build', 'petopt'))
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = a.models + (list(build_encoders(folder)) if a.encoders else [])
        print('| model | window | times | steps ms | found ms | found over steps | loops |')
        print('| --- | --- | --- | --- | --- | --- | --- |')
        for path in models:
            name = os.path.splitext(os.path.basename(path))[0]
            for what, count, ms, steps, loops in windows_of(a.petopt, path, a.threads):
                print(f'| {name} | {what} | {count} | {steps:.3f} | {ms:.3f} | {ms / steps:.2f} | {loops} |',
                      flush=True)


if __name__ == '__main__':
    main()
