#!/usr/bin/env python3
"""ONNX files beside one another in ONNX Runtime, each with a library of kernels of its own.

  bench/beside.py FILE[=LIBRARY] FILE[=LIBRARY].. [--threads N] [--rounds N] [--shape NAME:D,D,..]

`petopt bench` loads one library for all. Here every file has a session of its own, the first one two:
what they read against one another is the control. Each round runs all of them in random order, the
first run of each untimed, three timed in processor time of the process, of which the least counts. Ratios are the
first file's time over another's, round by round: their median, and the 95 % interval of that median
by drawing rounds anew. Prints a table in Markdown, or JSON. Runs in .deps/venv.
"""
import argparse
import json
import os
import random
import statistics
import time

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to

from rivals import made_up, session_of, shapes

DRAWS = 400


def interval(ratios, draw):
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    return medians[DRAWS // 40], medians[-1 - DRAWS // 40]


def read(files, threads, rounds, words):
    """The least milliseconds of each round, by file; the first file's second session is last."""
    import onnxruntime
    onnxruntime.set_global_thread_pool_sizes(threads, 1)
    sessions = [session_of(f, library or None) for f, library in [*files, files[0]]]
    feed = made_up(sessions[0], shapes(words))
    order, times = random.Random(1), [[] for _ in sessions]
    for _ in range(rounds):
        for i in order.sample(range(len(sessions)), len(sessions)):
            sessions[i].run(None, feed)
            took = []
            for _ in range(3):
                start = time.process_time()
                sessions[i].run(None, feed)
                took.append(1000 * (time.process_time() - start))
            times[i].append(min(took))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=30)
    parser.add_argument('--shape', action='append', default=[])
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    files = [(f.partition('=')[0], f.partition('=')[2]) for f in args.files]
    times, draw, rows = read(files, args.threads, args.rounds, args.shape), random.Random(2), []
    for name, own in zip([f for f, _ in files] + ['control'], times):
        ratios = [a / b for a, b in zip(times[0], own)]
        low, high = interval(ratios, draw)
        rows.append({'file': name, 'ms': statistics.median(own), 'ratio': statistics.median(ratios),
                     'ratio_low': low, 'ratio_high': high})
    if args.json:
        print(json.dumps(rows))
        return
    print('| file | ms | ratio (95 %) |\n| --- | --- | --- |')
    for r in rows:
        print(f'| {os.path.basename(r["file"])} | {r["ms"]:.2f} | {r["ratio"]:.3f}x '
              f'({r["ratio_low"]:.3f} to {r["ratio_high"]:.3f}) |')


if __name__ == '__main__':
    main()
