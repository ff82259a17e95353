#!/usr/bin/env python3
"""Failing memory, disks, reads, maps, threads and streams, and a killed process, over whole runs.

  faults.py --petopt PROGRAM --shim LIBRARY --data FOLDER [--seconds S] [--all] [--offset N] [--only TEXT]
  faults.py --sabotage CC --shim LIBRARY --data FOLDER

For each configuration, with calls counted by the preloaded shim (fault.c): the run with the Nth call
of a kind failing, with the Nth and all later ones failing, with a SIGKILL at the Nth. The folder of
OUT holds an older result. A run may only
- succeed, and leave what an undisturbed run leaves, or, where candidates could not be tried, what -O0
  leaves, or
- exit 2 or 3 with one sentence on standard error, every old file as it was and nothing beside them;
and a killed run leaves the old OUT or the new one, whole, with its own weights and its own certificate
or none. CI takes the points that --seconds allow, from a place that is another every day (--offset
repeats it); --all takes every one.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PLACE = 'destination'
OUT, CERT, KERNELS = PLACE + '.onnx', PLACE + '.onnx.cert', 'k'
DATA = re.compile(PLACE + r'\.onnx\.[0-9a-f]{32}\.data')
OLD_DATA = f'{OUT}.{hashlib.sha256(b"old weights").hexdigest()[:32]}.data'
OLD = {OUT: b'an old model \x12' + bytes([len(OLD_DATA)]) + OLD_DATA.encode(),
       OLD_DATA: b'old weights', CERT: b'{\n "digest": "of the old model"}\n'}
# Calls that cannot fail unnoticed; what merely speeds up a copy has another way.
MATTERS = {'write', 'pwrite', 'writev', 'pwritev', 'fsync', 'fdatasync', 'ftruncate', 'close', 'rename',
           'renameat', 'renameat2'}
# Of each kind: once, from there on, killed there.
KINDS = {'alloc': ['', '+'], 'io': ['', '+', '!'], 'rename': ['', '+', '!'], 'read': ['', '+'],
         'map': ['', '+'], 'task': ['', '+'], 'stdio': ['', '+'], 'cut': ['']}


class Config:
    """A model, options, and what an undisturbed run and one of -O0 leave."""

    def __init__(self, name, model, options, warm=False, loose=False):
        self.name, self.model, self.options = name, model, options
        self.warm = warm    # with the cache of the undisturbed run: nothing is compiled or timed again
        self.loose = loose  # timed: without its cache it may choose something else
        self.cache, self.good = None, []

    def settle(self, args, say):
        self.cache, self.good = None, []
        calm = Run(args, self, '')
        if calm.code != 0 or calm.left.get(OUT) in (None, OLD[OUT]):
            say(f'{self.name} undisturbed: exit {calm.code}: {calm.stderr.strip()}')
            return False
        plain = Run(args, self, '', ['-O0'])
        for run in (calm, plain):
            if mixed(run.left):
                say(f'{self.name} undisturbed: {mixed(run.left)}')
                return False
        self.good = [calm.left, plain.left]
        if KERNELS in self.options:
            without = [o for o in self.options if o not in ('--kernels', KERNELS)]
            self.good.append(Run(args, self, '', without).left)
        if self.warm:
            self.cache = calm.cache
        return True


def configurations(args, folder):
    rows = [Config(n, os.path.join(args.data, n), o + ['--cost', 'model']) for n, o in (
        ('node/test_add/model.onnx', ['-O0']), ('node/test_if/model.onnx', ['-O1']),
        ('node/test_loop13_seq/model.onnx', ['-O1']), ('light/light_squeezenet.onnx', ['-O1']))]
    if args.sabotage:
        return rows[:1]
    import environment
    data, small = os.path.join(folder, 'a.onnx'), os.path.join(folder, 'small.onnx')
    environment.make_model(data, 1)
    environment.make_model(small, 2, n=48, external=False)
    big = os.path.join(folder, 'big.onnx')
    environment.make_model(big, 3, n=1100)  # of more than 4 MiB: its weights are mapped
    rows += [Config('data', data, ['-O1', '--cost', 'model']),
             Config('mapped data', big, ['-O1', '--cost', 'model']),
             Config('search', data, ['-O2', '--cost', 'model']),
             Config('kernels', small, ['-O1', '--cost', 'model', '--kernels', KERNELS], warm=True)]
    if args.ort:
        rows.append(Config('cost ort', small, ['-O1', '--threads', '1'], warm=True, loose=True))
    return [r for r in rows if args.only in r.name]


def contents(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, 'rb') as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def end_left_behind(folder):
    """Compilers that a killed run started and that go on writing: they are told by where they run."""
    for _ in range(1000):
        alive = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if os.readlink(f'/proc/{pid}/cwd') == folder:
                    os.kill(int(pid), signal.SIGKILL)
                    alive.append(pid)
            except OSError:  # ended meanwhile
                pass
        if not alive:
            return
        time.sleep(0.01)
    raise RuntimeError(f'processes {alive} run on in {folder}')


class Run:
    """One run of petopt in a scratch folder that holds an older result."""

    def __init__(self, args, config, fault, options=None):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, PLACE)
            os.mkdir(folder)
            for name, content in OLD.items():
                with open(os.path.join(folder, name), 'wb') as f:
                    f.write(content)
            count, cache, model = (os.path.join(root, n) for n in ('count', 'cache', 'in.onnx'))
            for more in ('', '.w'):  # weights are found by the model's own name
                if os.path.exists(config.model + more):
                    name = os.path.basename(config.model) + more if more else 'in.onnx'
                    shutil.copy(config.model + more, os.path.join(root, name))
            if config.cache:
                with open(os.open(cache, os.O_WRONLY | os.O_CREAT, 0o600), 'wb') as f:
                    f.write(config.cache)
            env = dict(os.environ, LD_PRELOAD=args.shim, FAULT=fault, FAULT_COUNT=count,
                       FAULT_CUT=os.path.join(root, os.path.basename(config.model) + '.w'))
            words = list(config.options) if options is None else options
            if KERNELS in words:
                words[words.index(KERNELS)] = os.path.join(PLACE, KERNELS)
            command = [args.petopt, model, '-o', os.path.join(PLACE, OUT), '-q', '--cache', cache, *words]
            try:
                p = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                   timeout=120, cwd=root)
                self.code, self.stderr = p.returncode, p.stderr.decode(errors='replace')
            except subprocess.TimeoutExpired:
                self.code, self.stderr = 'hang', ''
            if self.code in ('hang', -signal.SIGKILL):
                end_left_behind(os.path.realpath(root))
            self.left = contents(folder)
            self.cache = contents(root).get('cache')
            # Another candidate, where the best could not be tried: then it is right all the same. A
            # process that tries one has its own count, and may be the first that is killed.
            self.equal = self.code in (0, -signal.SIGKILL) and config.good and \
                self.left.get(OUT) not in [OLD[OUT]] + [g[OUT] for g in config.good] and \
                subprocess.run([args.petopt, 'verify', model, os.path.join(folder, OUT)], capture_output=True,
                               timeout=120).returncode == 0
            told = open(count).read().split(' ') if os.path.exists(count) else []
            self.calls = int(told[0]) if told else None
            # The call that failed, where it served OUT: a run can do without its cache, and without
            # a candidate that could not be handed to the runtime.
            self.failed = told[1] if told and PLACE in told[2] and KERNELS + '/' not in told[2] else ''


def mixed(left):
    """What of a model is not its own, or None."""
    out = left.get(OUT)
    if out is None:
        return 'there is no OUT'
    for name in DATA.findall(out.decode('latin-1')):
        if name not in left:
            return f'OUT names {name}, which is not there'
        if not hashlib.sha256(left[name]).hexdigest().startswith(name.split('.')[-2]):
            return f'{name} has other content'
    if CERT not in left:
        return None
    if left[CERT] == OLD[CERT]:
        return None if out == OLD[OUT] else 'the certificate is the old model\'s'
    try:
        of = json.loads(left[CERT])['out'][0]['sha256']
    except (ValueError, LookupError):
        return 'half a certificate'
    return None if of == hashlib.sha256(out).hexdigest() else 'the certificate is another model\'s'


def is_other(left):
    """A model with what is its own, and nothing else."""
    named = set(DATA.findall(left[OUT].decode('latin-1')))
    return not mixed(left) and set(left) - named <= {OUT, CERT, OLD_DATA}


def is_new(left, config):
    """Nothing but what an undisturbed run leaves; the certificate says more than the model. That the old
    weights could not be removed is no failure of the run."""
    left = {n: c for n, c in left.items() if n != OLD_DATA}
    if config.loose and OUT in left and left[OUT] != OLD[OUT]:
        return is_other(left)
    return not mixed(left) and any({**left, CERT: b''} == {**good, CERT: b''} for good in config.good)


def complaint(run, config, fault):
    """What is wrong with a disturbed run, or None."""
    if fault.endswith('!') and run.code == -9:
        if run.left.get(OUT) not in [OLD[OUT]] + [g[OUT] for g in config.good] and not run.equal and \
                not config.loose:
            return 'killed: OUT is none of the files that it may be'
        return mixed(run.left) and f'killed: {mixed(run.left)}'
    if run.code == 0:
        if run.failed in MATTERS and not fault.startswith('cut'):
            return f'exit 0 although {run.failed} failed'
        return None if is_new(run.left, config) or (run.equal and is_other(run.left)) else \
            f'exit 0, but what is left is not that of an undisturbed run, nor the original: {sorted(run.left)}'
    if run.code not in (2, 3):
        return f'exit {run.code}: {run.stderr.strip()[-200:]}'
    if len(run.stderr.strip().splitlines()) != 1:
        return f'exit {run.code} with {run.stderr!r} on standard error, not one sentence'
    # Where no name can be changed any more, nothing can be put back either: nothing is lost, nor mixed.
    stuck = fault.endswith('+') and fault.split(':')[0] in ('io', 'rename') and not mixed(run.left) and \
        all(n.endswith('.old.tmp') or n in {*OLD, *(n for g in config.good for n in g)} for n in run.left)
    if run.left != OLD and not stuck:
        changed = sorted(n for n in {*run.left, *OLD} if run.left.get(n) != OLD.get(n))
        return f'exit {run.code}, but not as it was: {changed}'
    return None


def points(count, offset):
    """1..count, each once, such that any first part of it lies evenly; from the offset on."""
    step = max(1, int(count * 0.618))
    while count > 1 and any(step % p == 0 and count % p == 0 for p in range(2, step + 1)):
        step += 1
    return [1 + (offset + i * step) % count for i in range(count)]


def sweep(args, say):
    """All the faults on all the configurations; how many runs went wrong."""
    wrong, workers = 0, os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool, tempfile.TemporaryDirectory() as folder:
        rows = configurations(args, folder)
        kinds = {k: m for k, m in KINDS.items() if k != 'cut'}
        slots = len(rows) * sum(map(len, kinds.values()))
        until = time.monotonic() + args.seconds
        for config in rows:
            if not config.settle(args, say):
                wrong += 1
                slots -= sum(map(len, kinds.values()))
                continue
            cut = {'cut': KINDS['cut']} if config.name == 'mapped data' else {}
            for kind, marks in {**kinds, **cut}.items():
                calls = Run(args, config, f'{kind}:0').calls or 0
                for mark in marks:
                    left = (until - time.monotonic()) / max(slots, 1)
                    slots -= 1
                    wrong += take(args, config, kind, mark, calls, left, pool, workers, say)
    say(f'{wrong} wrong')
    return wrong


def take(args, config, kind, mark, calls, seconds, pool, workers, say):
    """The points of one kind that there is time for, at least a few; how many went wrong."""
    todo = [f'{kind}:{n}{mark}' for n in points(calls, args.offset)] if calls else []
    start, done, wrong, outcomes = time.monotonic(), 0, 0, {}
    while done < len(todo) and (args.all or done < workers or time.monotonic() - start < seconds):
        some = todo[done:done + workers]
        done += len(some)
        for fault, run in zip(some, pool.map(lambda f: Run(args, config, f), some)):
            bad = complaint(run, config, fault)
            outcomes[run.code] = outcomes.get(run.code, 0) + 1
            if bad:
                wrong += 1
                say(f'WRONG   {config.name} FAULT={fault}: {bad}')
    told = ', '.join(f'{n} with exit {c}' for c, n in sorted(outcomes.items(), key=str))
    say(f'{config.name}, {kind}{mark}: {done} of {calls} calls; {told}')
    return wrong


def sabotage(args):
    """Whether a careful copier passes and copiers with one mistake each are found out."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'copier.c')
    missed = 0
    with tempfile.TemporaryDirectory() as root:
        for bug in range(8):
            args.petopt = os.path.join(root, f'copier{bug}')
            subprocess.run([args.sabotage, '-D_GNU_SOURCE', f'-DBUG={bug}', source, '-o',
                            args.petopt], check=True)
            lines = []
            wrong = sweep(args, lines.append)
            if (wrong == 0) != (bug == 0):
                missed += 1
                print(f'copier with bug {bug}:', *lines, sep='\n  ')
    print(f'8 copiers, {missed} misjudged')
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt', type=os.path.abspath)
    parser.add_argument('--sabotage', metavar='CC')
    parser.add_argument('--shim', required=True, type=os.path.abspath)
    parser.add_argument('--data', required=True, type=os.path.abspath)
    parser.add_argument('--seconds', type=float, default=90, help='for all of it, about')
    parser.add_argument('--all', action='store_true', help='every call, however long it takes')
    parser.add_argument('--ort', action='store_true', help='measured in ONNX Runtime as well')
    parser.add_argument('--only', default='', help='configurations whose name has this in it')
    parser.add_argument('--offset', type=int, default=int(time.time() // 86400),
                        help='where the sample begins; another every day')
    args = parser.parse_args()
    args.ort |= args.all
    print('every call' if args.all else f'a sample of {args.seconds:.0f} s, --offset {args.offset}', flush=True)
    sys.exit(1 if (sabotage(args) if args.sabotage else sweep(args, lambda line: print(line, flush=True))) else 0)


if __name__ == '__main__':
    main()
