#!/usr/bin/env python3
"""What a machine may do to a run: places that are full, read-only or run nothing, little memory, two
runs at once, signals at any time.

  environment.py --petopt PROGRAM [--only TEXT] [--all] [--offset N]

Whatever happens a run ends with a documented code and at most one sentence; OUT is the old one or the
new one, whole, with its own weights and its own certificate or none; and nothing lies beside it. CI
runs a sample that begins at another place every day (the offset is printed, and repeats it); --all
runs every point.
"""
import hashlib
import json
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cases
from cases import expect

LIBRARY = 'libpetopt_kernels.so'
DATA = re.compile(rb'out\.onnx\.[0-9a-f]{32}\.data')
HOME = pwd.getpwuid(os.getuid()).pw_dir


def make_model(path, seed, n=400, external=True):
    """Weights in a file of their own, and two Negs that simplify goes without."""
    weights = numpy_helper.from_array(np.random.default_rng(seed).standard_normal((n, n)).astype('f') / n, 'w')
    io = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [8, n]) for v in ('x', 'y')]
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['a']), helper.make_node('Neg', ['a'], ['b']),
             helper.make_node('Neg', ['b'], ['c']), helper.make_node('Relu', ['c'], ['y'])]
    model = helper.make_model(helper.make_graph(nodes, 'g', io[:1], io[1:], [weights]),
                              opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    if external:
        onnx.save(model, path, save_as_external_data=True, location=os.path.basename(path) + '.w', size_threshold=0)
    else:
        onnx.save(model, path)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Bed(cases.Bed):
    """Two models of the same shapes, and what their outputs are where nothing disturbs the run."""

    def __init__(self, args, folder):
        super().__init__(args, folder)
        make_model(self.path('a.onnx'), 1)
        make_model(self.path('b.onnx'), 2)
        make_model(self.path('small.onnx'), 3, n=48, external=False)
        self.words = ['-O1', '--cost', 'model', '-q']

    def place(self, name):
        os.mkdir(self.path(name))
        return self.path(name, 'out.onnx')

    def calm(self, model, name):
        """(seconds, OUT) of an undisturbed run."""
        out, start = self.place(name), time.monotonic()
        self.good(model, '-o', out, *self.words, '--cache', 'none')
        return time.monotonic() - start, self.read(out)

    def check(self, folder, outs, what, killed=False):
        """OUT is one of `outs`; its weights and its certificate are its own; nothing else is there."""
        names = set(os.listdir(folder))
        out = self.read(folder, 'out.onnx')
        expect(out in outs, f'{what}: OUT is none of the models that it may be')
        named = {n.decode() for n in DATA.findall(out)}
        for name in named:
            expect(name in names, f'{what}: OUT names {name}, which is not there')
            expect(sha256(self.read(folder, name)).startswith(name.split('.')[-2]), f'{what}: {name} has other content')
        if 'out.onnx.cert' in names:
            told = json.loads(self.read(folder, 'out.onnx.cert'))['out'][0]['sha256']
            expect(told == sha256(out), f'{what}: the certificate is another model\'s')
        extra = names - named - {'out.onnx', 'out.onnx.cert', 'k'}
        if killed:  # what had no name yet, and weights that no model named yet or names any more
            extra = {n for n in extra if not n.endswith('.tmp') and not DATA.fullmatch(n.encode())}
        expect(not extra, f'{what}: left behind: {sorted(extra)}')

    def sentence(self, code, err, codes, what):
        expect(code in codes, f'{what}: exit {code}: {err.strip()[-300:]}')
        lines = err.strip().splitlines()
        expect(len(lines) == (1 if code in (2, 3) else 0), f'{what}: exit {code} with {err!r} on standard error')

    def points(self, most, few):
        """0..most-1, or `few` of them from a place that the offset decides."""
        if self.args.all or few >= most:
            return range(most)
        return sorted({(self.args.offset + i * most // few) % most for i in range(few)})


# ---- the judge ----------------------------------------------------------------------------------

def case_judge(bed):
    """Bed.check and Bed.sentence find what they are there to find."""
    _, out = bed.calm('a.onnx', 'calm')
    _, other = bed.calm('b.onnx', 'other')
    data = [n for n in os.listdir(bed.path('calm')) if DATA.fullmatch(n.encode())][0]
    bed.check(bed.path('calm'), [out], 'whole')

    def spoilt(what, spoil, killed=False):
        shutil.copytree(bed.path('calm'), bed.path('spoilt'))
        spoil(bed.path('spoilt'))
        try:
            bed.check(bed.path('spoilt'), [out, other], what, killed)
        except cases.Wrong:
            shutil.rmtree(bed.path('spoilt'))
            return
        raise cases.Wrong(f'not found out: {what}')

    def write(name, content):
        def spoil(folder):
            with open(os.path.join(folder, name), 'wb') as f:
                f.write(content)
        return spoil
    spoilt('half an OUT', write('out.onnx', out[:-10]), killed=True)
    spoilt('another model beside the weights', write('out.onnx', other), killed=True)
    spoilt('other weights', write(data, b'x' * 640000), killed=True)
    spoilt('no weights', lambda folder: os.unlink(os.path.join(folder, data)), killed=True)
    spoilt('another certificate', write('out.onnx.cert', bed.read('other', 'out.onnx.cert')), killed=True)
    spoilt('a temporary file', write('.out.onnx.1-0.tmp', b''))
    spoilt('old weights', write(f'out.onnx.{"0" * 32}.data', b''))
    for code, err in ((139, ''), (2, ''), (2, 'a\nb\n'), (0, 'a\n')):
        try:
            bed.sentence(code, err, (0, 2, 3), 'sentence')
        except cases.Wrong:
            continue
        raise cases.Wrong(f'exit {code} with {err!r} was taken')


# ---- places -------------------------------------------------------------------------------------

def mounts_allowed():
    return os.getuid() == 0 and subprocess.run(
        ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro tmpfs /tmp'], stderr=subprocess.DEVNULL).returncode == 0


def in_places(bed, name, mounts, *words):
    """A run of its own folder while tmpfs lies over others."""
    bed.place(name)
    for model in ('small.onnx', 'a.onnx', 'a.onnx.w'):
        shutil.copy(bed.path(model), bed.path(name, model))
    # The folder is reached by another name: /tmp itself may be what is covered.
    script = f'mount --bind "{bed.path(name)}" /mnt && '
    script += ''.join(f'mount -t tmpfs -o {options} tmpfs {where} && ' for where, options in mounts)
    script += 'cd /mnt && exec "$0" "$@"'
    p = subprocess.run(['unshare', '-m', 'sh', '-c', script, bed.args.petopt, *words], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=120)
    return p.returncode, p.stdout, p.stderr


def case_places(bed):
    """/tmp and the home folder full, read-only, without programs: kernels are made all the same; where
    there is no place at all only they are dropped."""
    if not mounts_allowed() or bed.args.petopt.startswith((HOME + '/', '/tmp/')):
        print('skipped: mounts need root, and the program outside /tmp and the home folder')
        return
    kinds = ['ro', 'size=4k', 'noexec', 'size=1m,noexec']
    rows = [(f'{where} {kind}', [(where, kind)], True) for kind in kinds for where in ('/tmp', HOME)]
    rows.append(('nowhere', [(w, 'ro') for w in ('/tmp', '/var/tmp', '/dev/shm', HOME)], False))
    for i in sorted({*bed.points(len(rows), 3), len(rows) - 1}):
        what, mounts, kernels = rows[i]
        name = f'places{i}'
        code, out, err = in_places(bed, name, mounts, 'small.onnx', '-o', 'out.onnx', '-O1', '--cost', 'model',
                                   '--kernels', 'k')
        expect(code == 0, f'{what}: exit {code}: {err.strip()[-300:]}')
        made = os.path.exists(bed.path(name, 'k', LIBRARY))
        expect(made == kernels, f'{what}: kernels: {made}: {out[-600:]}')
        expect(kernels or 'no temporary folder' in out, f'{what}: not told why there are no kernels: {out}')
        for model in ('small.onnx', 'a.onnx', 'a.onnx.w'):
            os.unlink(bed.path(name, model))
        bed.check(bed.path(name), [bed.read(name, 'out.onnx')], what)


def case_full_disk(bed):
    """The folder of OUT is full, at every size: exit 2 and the old files, or the new ones."""
    if not mounts_allowed() or bed.args.petopt.startswith('/mnt/'):
        print('skipped: mounts need root')
        return
    seen = set()
    for i in bed.points(40, 8):
        room = 8 + 24 * i  # kB; the weights have 640
        script = (f'mount -t tmpfs -o size={room}k tmpfs /mnt && echo old > /mnt/out.onnx && "$@"; code=$?; '
                  'ls -A /mnt >&2; exit $code')
        p = subprocess.run(['unshare', '-m', 'sh', '-c', script, 'sh', bed.args.petopt, bed.path('a.onnx'), '-o',
                            '/mnt/out.onnx', *bed.words, '--cache', 'none'], capture_output=True, text=True)
        lines = p.stderr.strip().splitlines()
        seen.add(p.returncode)
        if p.returncode == 0:
            expect(len(lines) == 3, f'{room} kB: {p.stderr}')
        else:
            expect(p.returncode in (2, 3) and lines[0].startswith('petopt: ') and lines[1:] == ['out.onnx'],
                   f'{room} kB: exit {p.returncode}: {p.stderr}')
    expect(2 in seen, 'no disk was full')


# ---- memory -------------------------------------------------------------------------------------

def case_address_space(bed):
    for i in bed.points(61, 4):
        size = (64 + 16 * i) << 20
        out = bed.place(f'memory{i}')
        with open(out, 'wb') as f:
            f.write(b'old')
        level = ['-O1', '-O2'][i % 2]
        code, _, err = bed.run('a.onnx', '-o', out, level, '--cost', 'model', '-q', '--cache', bed.path(f'c{i}.db'),
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
        what = f'{size >> 20} MiB, {level}'
        bed.sentence(code, err, (0, 2, 3), what)
        bed.check(os.path.dirname(out), [bed.read(out)] if code == 0 else [b'old'], what)


# ---- two at once --------------------------------------------------------------------------------

def case_races(bed):
    """Two runs write one OUT with one cache: what is there in the end is one of the two."""
    outs = [bed.calm(m, 'calm-' + m)[1] for m in ('a.onnx', 'b.onnx')]
    out = bed.place('race')
    for i in range(200 if bed.args.all else 12):
        runs = []
        for model in ('a.onnx', 'b.onnx', 'a.onnx')[:2 + i % 2]:
            runs.append(subprocess.Popen([bed.args.petopt, model, '-o', out, *bed.words, '--cache', 'c.db'],
                                         cwd=bed.folder, stderr=subprocess.PIPE, text=True))
            time.sleep(0.003 * (i % 5))
        for p in runs:
            err = p.communicate(timeout=120)[1]
            bed.sentence(p.returncode, err, (0,), f'race {i}')
        bed.check(os.path.dirname(out), outs, f'race {i}')


def case_races_of_kernels(bed):
    """Two runs write one OUT and one folder of kernels; two models do not share one."""
    out, runs = bed.place('race'), []
    words = ['-o', out, *bed.words, '--kernels', os.path.join(os.path.dirname(out), 'k'), '--cache', 'c.db']
    for i in range(10 if bed.args.all else 1):
        runs = [subprocess.Popen([bed.args.petopt, 'small.onnx', *words], cwd=bed.folder, stderr=subprocess.PIPE,
                                 text=True) for _ in range(2)]
        for p in runs:
            bed.sentence(p.wait(120), p.stderr.read(), (0,), f'race {i}')
        bed.check(os.path.dirname(out), [bed.read(out)], f'race {i}')
        told = json.loads(bed.read(out + '.cert'))['library']
        expect(told == sha256(bed.read('race', 'k', LIBRARY)), 'the library is not the one of the certificate')
    before = {n: bed.read('race', 'k', n) for n in os.listdir(bed.path('race', 'k'))}
    words[1] = bed.path('race', 'other.onnx')
    code, _, err = bed.run('small.onnx', *words)
    bed.sentence(code, err, (2,), 'another model')
    expect('out.onnx' in err and not os.path.exists(words[1]), f'another model: {err!r}')
    expect(before == {n: bed.read('race', 'k', n) for n in os.listdir(bed.path('race', 'k'))}, 'kernels were touched')


# ---- signals ------------------------------------------------------------------------------------

def case_signals(bed):
    """Signals at 50 points of a run: the old OUT, the best so far or the new one, never a mixture."""
    seconds, _ = bed.calm('a.onnx', 'calm')
    codes = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGKILL: -signal.SIGKILL}
    for i in bed.points(50, 10):
        for number, code in codes.items():
            out = bed.place(f'signal{i}-{number}')
            for name in os.listdir(bed.path('calm')):  # an older result, with its weights
                shutil.copy(bed.path('calm', name), os.path.join(os.path.dirname(out), name))
            old = bed.read(out)
            p = subprocess.Popen([bed.args.petopt, 'b.onnx', '-o', out, *bed.words, '--cache', 'none'],
                                 cwd=bed.folder, stderr=subprocess.PIPE, text=True)
            time.sleep(1.2 * seconds * i / 50)
            p.send_signal(number)
            err, what = p.communicate(timeout=60)[1], f'signal {number} at {i}/50'
            # Before the program has set itself up, the signal simply ends it.
            expect(p.returncode in (0, code, -number), f'{what}: exit {p.returncode}: {err}')
            fresh = bed.read(out)
            bed.check(os.path.dirname(out), [old, fresh], what, killed=number == signal.SIGKILL)
            if fresh != old:
                bed.good('show', out, stdout=subprocess.DEVNULL)


if __name__ == '__main__':
    cases.main(sys.modules[__name__], Bed, ['petopt'], sampled=True)
