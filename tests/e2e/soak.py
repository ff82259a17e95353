#!/usr/bin/env python3
"""The parts of scripts/soak.sh, each in its share of the time, and their table.

  soak.py --hours H --state DIR --build BUILD --fuzz BUILD --old PYTHON [--only PART] [--keep]

--keep puts the grown corpus, minimised, in the place of tests/fuzz/corpus. Two jobs run at a time.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(ROOT, 'tests', 'fuzz', 'corpus')
SHARES = {'fuzz': 0.4, 'models': 0.4, 'threads': 0.1, 'suites': 0.1}
MOST_BYTES = 4096  # of an input that is kept
BATCH = 50         # random models a process
JOBS = 2


class Row:
    """A line of the table."""

    def __init__(self, part, what, count, found, detail=''):
        self.part, self.what, self.count, self.found, self.detail = part, what, count, found, detail
        self.seconds = 0.0


def run(command, seconds, **more):
    """(exit code or None where the time ran out, all that it printed)"""
    settings = dict(cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, errors='replace')
    settings.update(more)
    try:
        p = subprocess.run(command, timeout=seconds, check=False, **settings)
        return p.returncode, p.stdout
    except subprocess.TimeoutExpired as e:
        out = e.stdout or b''
        return None, out.decode(errors='replace') if isinstance(out, bytes) else out


def timed(row_of, *args):
    start = time.monotonic()
    row = row_of(*args)
    row.seconds = time.monotonic() - start
    print(f'soak: {row.part} {row.what}: {row.count}, {row.found} found {row.detail}', flush=True)
    return row


# ---- fuzzing -------------------------------------------------------------------------------------

def edges_of(text):
    return max([int(n) for n in re.findall(r'\bcov: (\d+)', text)] or [0])


def fuzz_one(args, target, seconds):
    """One target from the kept corpus and what earlier soaks added to it."""
    name = target.removeprefix('fuzz_')
    kept, grown = os.path.join(CORPUS, name), os.path.join(args.state, 'corpus', name)
    crashes = os.path.join(args.state, 'crashes', '')
    os.makedirs(grown, exist_ok=True)
    os.makedirs(crashes, exist_ok=True)
    before = len(os.listdir(grown))
    program = os.path.join(args.fuzz, 'tests', 'fuzz', target)
    code, text = run([program, f'-max_total_time={max(int(seconds), 1)}', '-timeout=20',
                      '-rss_limit_mb=2048', '-print_final_stats=1', '-entropic=0', f'-max_len={MOST_BYTES}',
                      f'-artifact_prefix={crashes}{name}-', grown, kept], seconds + 120)
    runs = re.search(r'number_of_executed_units: (\d+)', text)
    new = len(os.listdir(grown)) - before
    found = code != 0
    if found:
        print(text[-4000:], flush=True)
    return Row('fuzz', name, f'{runs[1] if runs else "?"} runs, {edges_of(text)} edges, {new} new',
               int(found), next((l for l in text.splitlines() if 'SUMMARY' in l), ''))


def keep_corpus(args, target):
    """The smallest set of small inputs that reaches what kept and grown ones do."""
    name = target.removeprefix('fuzz_')
    kept, grown = os.path.join(CORPUS, name), os.path.join(args.state, 'corpus', name)
    program = os.path.join(args.fuzz, 'tests', 'fuzz', target)
    with tempfile.TemporaryDirectory(dir=args.state) as folder:
        small = os.path.join(folder, 'small')
        os.makedirs(small)
        for path in glob.glob(os.path.join(grown, '*')):
            if os.path.getsize(path) <= MOST_BYTES:
                shutil.copy(path, small)
        # What is kept already stays: the merge adds what it lacks.
        run([program, '-merge=1', '-rss_limit_mb=2048', f'-max_len={MOST_BYTES}', kept, small], 900)


def fuzz(args, seconds):
    targets = sorted(os.path.basename(p)[:-2]
                     for p in glob.glob(os.path.join(ROOT, 'tests', 'fuzz', 'fuzz_*.c')))
    each = seconds * JOBS / len(targets)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        rows = list(pool.map(lambda t: timed(fuzz_one, args, t, each), targets))
        if args.keep:
            list(pool.map(lambda t: keep_corpus(args, t), targets))
    return rows


# ---- random models -------------------------------------------------------------------------------

def next_batch(args):
    """The number of the first model of a batch, and the number is used up."""
    path = os.path.join(args.state, 'next')
    first = int(open(path, encoding='utf-8').read()) if os.path.exists(path) else 1000000
    with open(path, 'w', encoding='utf-8') as f:
        f.write(str(first + BATCH))
    return first


# Level, kernels, kind and runtime by the number of the batch: half at -O2, a tenth with kernels, the
# oldest and the newest runtime in turn.
def settings_of(k):
    return dict(level=2 if k % 2 else 1, kernels=k % 10 == 9,
                kind='multilinear' if k % 3 == 2 else 'mixed', old=k // 2 % 2 == 1)


def models(args, seconds):
    start, done, rows = time.monotonic(), collections.Counter(), []
    wrong, failed = collections.Counter(), []

    def batch(k, first):
        s = settings_of(k)
        python = args.old if s['old'] else sys.executable
        command = [python, '-B', os.path.join(ROOT, 'tests/e2e/random_models.py'), '--petopt',
                   args.petopt, '--first', str(first), '--count', str(BATCH), '--level',
                   str(s['level']), '--kind', s['kind'], '--keep',
                   os.path.join(args.state, 'models')]
        code, text = run(command + (['--kernels'] if s['kernels'] else []), 3600)
        return s, code, text

    numbers = iter(range(10 ** 9))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # the script itself uses both cores
        while time.monotonic() - start < seconds:
            s, code, text = pool.submit(batch, next(numbers), next_batch(args)).result()
            what = f'-O{s["level"]} {"oldest" if s["old"] else "newest"} runtime' + \
                (' kernels' if s['kernels'] else '')
            done[what] += BATCH
            bad = len(re.findall(r'^seed \d+ (?:wrong|crashed|refused)', text, re.M))
            wrong[what] += max(bad, int(code is None or code < 0))
            if bad:
                failed.append(text[-2000:])
    for what in sorted(done):
        rows.append(Row('models', what, f'{done[what]} models', wrong[what]))
    for text in failed:
        print(text)
    return rows


# ---- the rest ------------------------------------------------------------------------------------

def threads(args, seconds):
    def one():
        code, text = run(['bash', 'scripts/check.sh', 'thread-sanitize', 'build/tsan'], seconds)
        tests = re.findall(r'tests passed, (\d+) tests failed out of (\d+)', text)
        if code is None:
            return Row('threads', 'units', 'cut off by the time', 0)
        if code:
            print(text[-3000:])
        return Row('threads', 'units', f'{sum(int(n) for _, n in tests)} tests', int(code != 0))
    return [timed(one)]


# Whole runs of what CI samples: a name, a program and what a pass leaves in its output.
def suite_commands(args):
    test_data = os.path.join(ROOT, '.deps', 'onnx', 'test-data')
    python = [sys.executable, '-B']

    def script(name, *words):
        path = os.path.join(ROOT, 'tests', 'e2e', name)
        return name.removesuffix('.py'), [*python, path, *words], os.path.exists(path)

    petopt = ['--petopt', args.petopt]
    seed = str(int(time.time()) % 100000)
    loads = os.path.join(args.build, 'tests', 'e2e', 'loads')
    rules = os.path.join(args.build, 'tests', 'rules', 'rules')
    sizes = os.path.join(args.build, 'tests', 'sizes', 'size_pairs')
    model = os.path.join(test_data, 'node', 'test_attention_4d_expanded', 'model.onnx')
    return [
        ('loads', [loads, model, '1000'], os.path.exists(loads)),
        ('sanitize', ['env', 'SANITIZE_ALL=1', 'bash', 'scripts/check.sh', 'sanitize', 'build/sanitize'],
         True),
        script('odd.py', *petopt),
        script('impossible.py', *petopt, '--data', test_data, '--seed', seed, '--count', '8'),
        script('hung.py', '--petopt', os.path.join(args.build, 'tests', 'e2e', 'petopt-hung'),
               '--at-once', '2'),
        script('forged.py', *petopt, '--seeds', '300'),
        ('rules', [rules, '--first', seed, '--count', '200', '--table'], os.path.exists(rules)),
        ('planted rules', [sys.executable, '-B', os.path.join(ROOT, 'tests', 'rules', 'planted.py'),
                           '--build', args.build, '--rules', rules], os.path.exists(rules)),
        ('size pairs', [sizes, '--first', seed, '--count', '3000', '--at', '40'], os.path.exists(sizes)),
        script('environment.py', *petopt, '--all'),
        script('faults.py', *petopt, '--data', test_data, '--all', '--ort', '--shim',
               os.path.join(args.build, 'tests', 'e2e', 'libfault.so')),
    ]


def suites(args, seconds):
    rows, left = [], time.monotonic() + seconds
    for name, command, there in suite_commands(args):
        if not there:
            rows.append(Row('suites', name, 'not there', 0))
            continue

        def one(name=name, command=command):
            code, text = run(command, max(left - time.monotonic(), 60))
            if code is None:
                return Row('suites', name, 'cut off by the time', 0)
            if code:
                print(text[-3000:])
            last = (text.strip().splitlines() or [''])[-1]
            return Row('suites', name, last[:60], int(code != 0))
        rows.append(timed(one))
    return rows


PARTS = {'fuzz': fuzz, 'models': models, 'threads': threads, 'suites': suites}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hours', type=float, default=1)
    for name in ('state', 'build', 'fuzz', 'old'):
        parser.add_argument('--' + name, required=True, type=os.path.abspath)
    parser.add_argument('--only', choices=PARTS, action='append')
    parser.add_argument('--keep', action='store_true')
    args = parser.parse_args()
    args.petopt = os.path.join(args.build, 'petopt')
    os.makedirs(args.state, exist_ok=True)
    chosen = args.only or list(PARTS)
    share = sum(SHARES[p] for p in chosen)
    rows = [r for p in chosen for r in PARTS[p](args, args.hours * 3600 * SHARES[p] / share)]
    print('| part | what | count | seconds | found |\n| --- | --- | --- | --- | --- |')
    for r in rows:
        print(f'| {r.part} | {r.what} | {r.count} | {r.seconds:.0f} | {r.found} {r.detail} |')
    sys.exit(1 if any(r.found for r in rows) else 0)


if __name__ == '__main__':
    main()
