#!/usr/bin/env python3
"""petopt on models that others made: bench/fleet.txt, fetched by `scripts/deps.sh --bench`.

  bench/fleet.py [--build DIR] [--config NAME].. [--only TEXT].. [--work DIR] [--json FILE]
                 [--remeasure] [--fresh N] [--petopt-options TEXT] [--lock FILE] [--models DIR]

Configurations: open (as shipped, default options), pinned (the dims of the table), open-kernels and
pinned-kernels (the same with --kernels). A model of static dims has no "pinned". --models takes every
.onnx file below a folder in the table's place, and no dims.

Each run of petopt has a wall limit of its own (--limit), and each model that it writes is loaded and
compared on inputs that bench/fleet_check.py draws, with --fresh on N more that bench/fresh.py draws
at the dims of the table, and with --remeasure timed beside the original again. Prints a row each
and a last line that counts what must not be:

  crashed    petopt ended by a signal
  late       more than 120 s besides reading and writing, or cut by the wall limit
  refused    exit 2 or 3 for a model that ONNX Runtime takes
  no load    petopt's output, or a candidate on the way, that the runtime does not load
  different  the output, or a candidate on the way, computes something else
  slower     the output reads less than 0.97x when it is timed again
  fat        petopt and the processes that it starts held more than 3x the weights and 300 MB

Needs the Python of .deps/venv for the checks. Exit code 1 where anything was counted.
"""
import argparse
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONFIGS = ['open', 'pinned', 'open-kernels', 'pinned-kernels']
FAULTS = ['crashed', 'late', 'refused', 'no load', 'different', 'slower', 'fat']
PROMISED = 120.0     # seconds besides reading and writing
STARTING = 10.0      # of processes, and of reading and writing a small model
CHECKING = 600.0     # seconds, at most, for the comparison
SLOWER = 0.97
SPARE = 300e6
NO_LOAD = re.compile(r'load|session|cannot be run|could not be run|does not run|failed', re.I)
DIFFERENT = re.compile(r'differ|off by|limit|not equal|without its library', re.I)


class Model:
    def __init__(self, package, file, about, pins):
        self.package, self.file, self.about = package, file, about
        words = pins.split()
        self.shapes = [w for w in words if ':' in w]
        self.values = [w for w in words if ':' not in w and '=' in w]
        self.path = os.path.join(folder_of(package), file)
        self.name = package.split('==')[0] + '/' + os.path.basename(file).removesuffix('.onnx')


def deps():
    return os.path.realpath(os.path.join(ROOT, '.deps'))


def folder_of(package):
    if package == 'models':
        return os.path.join(deps(), 'models')
    if package == 'light':
        return os.path.join(deps(), 'onnx/test-data/light')
    if package == 'runtime':
        return glob.glob(os.path.join(
            deps(), "venv/lib/python3*/site-packages/onnxruntime"))[0]
    return os.path.join(deps(), 'fleet', package)


def table():
    rows = []
    with open(os.path.join(ROOT, 'bench', 'fleet.txt'), encoding='utf-8') as f:
        for line in f:
            if line.strip() and not line.startswith('#'):
                rows.append(Model(*[c.strip() for c in line.split('|')]))
    names = [m.name for m in rows]
    for m in rows:  # two of one name are told by their folders
        if names.count(m.name) > 1:
            folders = os.path.dirname(m.file).split('/')[-2:]
            m.name = m.name.replace('/', '/' + '/'.join(folders) + '/')
    return rows


def found(folder):
    """Every model below a folder; data files lie beside them."""
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, '**', '*.onnx'), recursive=True)):
        m = Model('', path, '', '')
        m.path = os.path.abspath(path)
        m.file = os.path.relpath(path, folder)
        rows.append(m)
    return rows


# --- one run of petopt -----------------------------------------------------------------------------

def children_of(pid):
    pids, front = [pid], [pid]
    while front:
        p = front.pop()
        try:
            for task in os.listdir(f'/proc/{p}/task'):
                with open(f'/proc/{p}/task/{task}/children') as f:
                    kids = [int(k) for k in f.read().split()]
                pids += kids
                front += kids
        except OSError:
            continue
    return pids


def held_by(pid):
    """Bytes of a process; what it shares with others counts by its part."""
    try:
        with open(f'/proc/{pid}/smaps_rollup') as f:
            for line in f:
                if line.startswith('Pss:'):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def resident(pid):
    try:
        with open(f'/proc/{pid}/statm') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    except OSError:
        return 0


class Watch(threading.Thread):
    """The most memory that a process and those that it started held together."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.alone, self.ends = pid, 0, 0, threading.Event()

    def run(self):
        while not self.ends.wait(0.05):
            pids = children_of(self.pid)
            each = [resident(p) for p in pids]
            self.alone = max([self.alone, *each])
            if sum(each) > self.peak:  # shared pages are counted twice in this sum, so ask closely
                self.peak = max(self.peak, sum(held_by(p) for p in pids))

    def stop(self):
        self.ends.set()
        self.join()


def run_limited(command, limit):
    """(exit code or None where it was ended, output, errors, seconds, peak, peak of one process)"""
    start = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         errors='replace', start_new_session=True)
    watch = Watch(p.pid)
    watch.start()
    try:
        out, err = p.communicate(timeout=limit)
        code = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        code = None
    watch.stop()
    return code, out, err, time.monotonic() - start, watch.peak, watch.alone


def optimise(a, m, config, folder):
    out, report = os.path.join(folder, 'out.onnx'), os.path.join(folder, 'out.json')
    command = [a.petopt, m.path, '-o', out, '--json', report, '--cache', 'none', '-v',
               *a.petopt_options.split()]
    if 'kernels' in config:
        command += ['--kernels', os.path.join(folder, 'kernels')]
    if 'pinned' in config:
        command += [w for s in m.shapes for w in ('--input-shape', s)]
    code, text, err, wall, peak, alone = run_limited(command, a.limit)
    row = {'model': m.name, 'file': m.file, 'config': config, 'code': code, 'wall': wall,
           'peak': peak, 'alone': alone, 'faults': [], 'why': '', 'command': ' '.join(command)}
    with open(os.path.join(folder, 'log'), 'w', encoding='utf-8') as f:
        f.write(text + err)
    told = None
    if code == 0:
        with open(report, encoding='utf-8') as f:
            told = json.load(f)
    return row, told, out, err


# --- judging it ------------------------------------------------------------------------------------

def candidates(row, told, log):
    """What the report says of the candidates that were not taken."""
    for c in told['candidates']:
        v = c['verdict']
        if c['chosen'] or c['name'] == 'original' or not v:
            continue
        if re.search(r'faster|slower|fastest|time|estimated|the same (file|bytes)|equal to', v):
            continue
        kind = 'different' if DIFFERENT.search(v) else 'no load' if NO_LOAD.search(v) else None
        if kind:
            row['faults'].append(kind)
            row['why'] = f"{c['name']}: {v}"[:200]
    if 'ranking failed' in log:
        row['faults'].append('no load')
        row['why'] = row['why'] or re.search(r'ranking failed.*', log).group(0)[:200]


def kept_why(told):
    if 'kept' in told:
        return told['kept']
    best = [c for c in told['candidates'] if c['verdict']]
    return (told['notes'] or [best[0]['verdict'] if best else 'no candidate'])[0]


def compare_by(script, m, out, library, *words):
    """Runs a bench that compares two models, at the table's dims and values."""
    python = os.path.join(deps(), 'venv', 'bin', 'python3')
    command = [python, os.path.join(ROOT, 'bench', script), m.path, out, *words]
    command += [w for s in m.shapes for w in ('--shape', s)]
    command += [w for v in m.values for w in ('--value', v)]
    command += ['--library', library] if library else []
    return run_limited(command, CHECKING)


def ask_check(m, config, out, library):
    p = compare_by('fleet_check.py', m, out, library, *(['--pinned'] if 'pinned' in config else []))
    try:
        return json.loads(p[1].splitlines()[-1])
    except (IndexError, ValueError):
        return {'loads': False, 'compared': 0, 'worst': 0, 'wrong': [],
                'why': f'the check ended with {p[0]}: {p[2].strip()[-160:]}'}


def ask_fresh(m, count, out, library):
    """The last line of bench/fresh.py, and whether the limit was kept; None: it draws no such inputs."""
    code, text = compare_by('fresh.py', m, out, library, '--count', str(count))[:2]
    last = (text.strip().splitlines() or [''])[-1]
    return (last, code == 0) if ' sets: worst ' in last else (None, True)


def remeasure(a, m, out, library):
    """The written model's speed by the original's, as petopt bench reads it; None: not to be had."""
    report, ratio = out + '.bench.json', None
    command = [a.petopt, 'bench', m.path, out, '-q', '--json', report]
    command += ['--library', library] if library else []
    command += [w for s in m.shapes for w in ('--input-shape', s)]
    for _ in range(2):  # one reading below may be the machine's
        if run_limited(command, a.limit)[0] != 0:
            return ratio
        with open(report, encoding='utf-8') as f:
            r = json.load(f)['models'][1]['ratio']
        ratio = r if ratio is None else max(ratio, r)
        if ratio >= SLOWER:
            break
    return ratio


def judge(a, m, row, told, out, err):
    if row['code'] is None:
        row['faults'].append('late')
        row['why'] = f'ended after {a.limit} s: ' + (err.strip().splitlines() or [''])[-1][:120]
        return
    if row['code'] < 0:
        row['faults'].append('crashed')
        row['why'] = f"signal {-row['code']}: " + (err.strip().splitlines() or [''])[-1][:120]
        return
    if row['code'] != 0:
        row['why'] = (err.strip().splitlines() or [''])[-1][:240]
        takes = ask_check(m, row['config'], m.path, None)
        row['faults'] += ['refused'] if takes.get('original', True) and takes['loads'] else []
        row['runtime'] = takes['why']
        return
    row['seconds'], row['changed'], row['winner'] = told['seconds'], told['changed'], told['winner']
    row['latency'], row['error'], row['weights'] = told['latency'], told['error'], told['weights_before']
    row['proved'], row['proof'], row['kernels'] = told['proved'], told['proof'], told['kernels']
    late = row['wall'] > PROMISED + STARTING + told['load_seconds'] + row['weights'] / 50e6
    if told['seconds'] > PROMISED or late:
        row['faults'].append('late')
    if row['peak'] > 3 * row['weights'] + SPARE:
        row['faults'].append('fat')
    candidates(row, told, err)
    row['why'] = row['why'] or ('' if told['changed'] else kept_why(told))
    checked = ask_check(m, row['config'], out, told['library'])
    row['check'] = checked
    if checked.get('original', True) is False:
        return  # the runtime has nothing to say of this model
    if not checked['loads']:
        row['faults'].append('no load')
    if checked['wrong']:
        row['faults'].append('different')
    if (not checked['loads'] or checked['wrong']) and not row['why']:
        row['why'] = '; '.join([checked['why'], *checked['wrong']]).strip('; ')[:200]
    if a.fresh and told['changed']:
        row['fresh'], kept = ask_fresh(m, a.fresh, out, told['library'])
        row['faults'] += [] if kept else ['different']
        row['why'] = row['why'] or ('' if kept else row['fresh'])
    if a.remeasure and told['changed']:
        row['again'] = remeasure(a, m, out, told['library'])
        row['faults'] += ['slower'] if row['again'] and row['again'] < SLOWER else []


# --- printing --------------------------------------------------------------------------------------

HEAD = ['model', 'configuration', 'gained', 'again', 'error', 'proof', 's', 'MB', 'kept because, or fault']


def cells(row):
    if row['code'] != 0:
        return [row['model'], row['config'], '-', '-', '-', '-', f"{row['wall']:.0f}",
                f"{row['peak'] / 1e6:.0f}", f"{' '.join(row['faults'])}: {row['why']}"]
    t = row['latency']
    gained = 'kept'
    if row['changed']:
        gained = (f"{t['ratio']:.2f}x ({t['ratio_low']:.2f}-{t['ratio_high']:.2f})" if t
                  else 'not measured')
    proof = 'proved' if row['proved'] else 'tested only' if row['changed'] else '-'
    again = f"{row['again']:.2f}x" if row.get('again') else '-'
    error = f"{max(row['error'] or 0, row['check']['worst']):.1e}" if row['changed'] else '-'
    faults = ' '.join(dict.fromkeys(row['faults']))
    return [row['model'], row['config'], gained, again, error, proof, f"{row['seconds']:.0f}",
            f"{row['peak'] / 1e6:.0f}", f'{faults}: {row["why"]}' if faults else row['why']]


def line(words):
    return '| ' + ' | '.join(w.replace('|', '\\|').replace('\n', ' ') for w in words) + ' |'


def one(a, m, config):
    folder = os.path.join(a.work, re.sub(r'[^\w.-]', '_', m.name + '-' + m.file)[-120:], config)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    row, told, out, err = optimise(a, m, config, folder)
    judge(a, m, row, told, out, err)
    if not row['faults'] and not a.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('--build', default=os.path.join(ROOT, 'build'))
    p.add_argument('--config', action='append', choices=CONFIGS)
    p.add_argument('--only', action='append', default=[])
    p.add_argument('--work', default='/tmp/petopt-fleet')
    p.add_argument('--json', help='rows as JSON, one a line; rows that it has already are not run again')
    p.add_argument('--remeasure', action='store_true')
    p.add_argument('--fresh', type=int, default=0, help='more inputs for what was written')
    p.add_argument('--petopt-options', default='')
    p.add_argument('--limit', type=float, default=300.0, help='wall seconds of one run')
    p.add_argument('--lock', help='a file that is locked while a model runs, for timings beside others')
    p.add_argument('--models', help='a folder of models in the place of the table')
    p.add_argument('--keep', action='store_true', help='keep what was written for each row')
    a = p.parse_args()
    a.petopt = os.path.join(a.build, 'petopt')
    models = [m for m in (found(a.models) if a.models else table())
              if not a.only or any(t in m.name or t in m.file for t in a.only)]
    rows = []
    if a.json and os.path.exists(a.json):
        with open(a.json, encoding='utf-8') as f:
            rows = [json.loads(x) for x in f if x.strip()]
    done = {(r['model'], r['file'], r['config']) for r in rows}
    missing = [m for m in models if not os.path.exists(m.path)]
    print(line(HEAD), line(['---'] * len(HEAD)), sep='\n', flush=True)
    for r in rows:
        print(line(cells(r)))
    for m in models:
        for config in a.config or CONFIGS:
            pinned = 'pinned' in config and not m.shapes
            if m in missing or pinned or (m.name, m.file, config) in done:
                continue
            lock = open(a.lock, 'w', encoding='utf-8') if a.lock else None
            if lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
            row = one(a, m, config)
            if lock:
                lock.close()
            rows.append(row)
            print(line(cells(row)), flush=True)
            if a.json:
                with open(a.json, 'a', encoding='utf-8') as f:
                    f.write(json.dumps(row) + '\n')
    counts = {k: sum(k in r['faults'] for r in rows) for k in FAULTS}
    print(f'\n{len(rows)} runs of {len({(r["model"], r["file"]) for r in rows})} models: '
          + ', '.join(f'{n} {k}' for k, n in counts.items()))
    for m in missing:
        print(f'not there: {m.path} (scripts/deps.sh --bench)')
    return 1 if any(counts.values()) or missing else 0


if __name__ == '__main__':
    sys.exit(main())
