#!/usr/bin/env python3
"""What a session of a model with kernels costs beside the original's: memory, start, and speed.

  bench/serving.py ORIGINAL WRITTEN LIBRARY [--name NAME] [--shape INPUT:D,D,..] [--rounds N]
                   [--threads N]

Starts a process of its own for each session, by turns: the original, what petopt wrote with its
library, and the same without. Each makes a session, runs it a few times, says how much memory it
then holds (resident, less what the process held before it made the session), and times it. Prints a
row of a table in Markdown: memory and seconds of making the session by the original's (the least of
all rounds), and the original's latency by that of the file without library (the median of the
rounds). --header prints the head. Needs the Python of .deps/venv (scripts/deps.sh).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to

HEAD = ['model', 'held by the original', 'with library', 'without', 'session made in',
        'with library', 'without', 'speed without library']


def resident():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def serve(model, library, shapes, threads):
    """Run in a process of its own: one session."""
    import numpy as np
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = threads, 3
    if library:
        o.register_custom_ops_library(library)
    before, start = resident(), time.perf_counter()
    session = ort.InferenceSession(model, o)
    made = time.perf_counter() - start
    pins = dict((s.split(':')[0], [int(d) for d in s.split(':')[1].split(',')]) for s in shapes)
    r, feed = np.random.default_rng(0), {}
    for i in session.get_inputs():
        dims = pins.get(i.name, i.shape)
        feed[i.name] = (r.standard_normal(dims).astype('f') if i.type == 'tensor(float)'
                        else np.ones(dims, {'tensor(int64)': 'int64', 'tensor(int32)': 'int32',
                                            'tensor(bool)': 'bool'}[i.type]))
    for _ in range(3):
        session.run(None, feed)
    held = resident() - before
    # One thread: its CPU time, which other work on the machine disturbs least.
    clock = time.thread_time if threads == 1 else time.perf_counter
    times, end = [], time.perf_counter() + 1.0
    while len(times) < 5 or time.perf_counter() < end:
        start = clock()
        session.run(None, feed)
        times.append(clock() - start)
    print(json.dumps({'made': made, 'held': held, 'run': statistics.median(times)}))


def ask(a, model, library):
    command = [sys.executable, os.path.abspath(__file__), '--serve', model, model, library or '']
    command += ['--threads', str(a.threads)] + [x for s in a.shape for x in ('--shape', s)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('original')
    p.add_argument('written')
    p.add_argument('library')
    p.add_argument('--name')
    p.add_argument('--shape', action='append', default=[])
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--header', action='store_true')
    p.add_argument('--serve', action='store_true', help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a.original, a.library, a.shape, a.threads)
    kinds = [(a.original, None), (a.written, a.library), (a.written, None)]
    rows = [[ask(a, *k) for k in kinds] for _ in range(a.rounds)]
    least = [{k: min(row[i][k] for row in rows) for k in ('made', 'held')} for i in range(3)]
    held = [f'{least[0]["held"] / 2**20:.0f} MiB'] + [
        f'{x["held"] / 2**20:.0f} MiB, {x["held"] / least[0]["held"]:.2f}x' for x in least[1:]]
    made = [f'{least[0]["made"]:.2f} s'] + [
        f'{x["made"]:.2f} s, {x["made"] / least[0]["made"]:.2f}x' for x in least[1:]]
    speed = statistics.median(row[0]['run'] / row[2]['run'] for row in rows)
    name = a.name or os.path.splitext(os.path.basename(a.original))[0]
    if a.header:
        print('| ' + ' | '.join(HEAD) + ' |\n|' + ' --- |' * len(HEAD))
    print('| ' + ' | '.join([name] + held + made + [f'{speed:.3f}x']) + ' |')


if __name__ == '__main__':
    main()
