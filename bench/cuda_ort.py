#!/usr/bin/env python3
"""What petopt's kernels gain in ONNX Runtime's CUDA provider.

  bench/cuda_ort.py [--build DIR] [--work DIR] [--rounds N] [--petopt-options "..."]
                    [--again] MODEL.onnx ...

Each model goes through petopt --target cuda --kernels, and is then run in one process: as it was, as
it was once more (the pair of equals), and as it was written with its library, in rounds of random
order, inputs and outputs on the GPU, without and with the provider's CUDA graph. A figure is a
median of medians; the error is against the model as it was, as a part of the largest value. Which of
our operators ran is read from a profile. Needs onnxruntime with the CUDA provider
(onnxruntime-gpu of PyPI), onnx, numpy and a C compiler. Ends with 1 where a result is wrong or a
kernel of a written library did not run, with 3 where there is no CUDA provider.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

from rivals import made_up

LIMIT = {'tensor(float16)': 2e-2, 'tensor(float)': 1e-4}


class Way:
    """A session whose inputs and outputs stay on the GPU."""

    def __init__(self, ort, path, feed, library=None, graph=False, profile=None):
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.enable_profiling = profile is not None
        if profile:
            options.profile_file_prefix = profile
        if library:
            options.register_custom_ops_library(library)
        provider = {'use_tf32': '0', 'enable_cuda_graph': '1' if graph else '0'}
        self.session = ort.InferenceSession(path, options,
                                            providers=[('CUDAExecutionProvider', provider)])
        self.binding = self.session.io_binding()
        self.given = {n: ort.OrtValue.ortvalue_from_numpy(a, 'cuda', 0) for n, a in feed.items()}
        for name, value in self.given.items():
            self.binding.bind_ortvalue_input(name, value)
        self.out = [o.name for o in self.session.get_outputs()]
        for name in self.out:
            self.binding.bind_output(name, 'cuda', 0)
        if graph:  # a graph keeps its addresses: the outputs of a first run are bound
            plain = Way(ort, path, feed, library)
            plain.run()
            self.kept = plain.binding.get_outputs()
            for name, value in zip(self.out, self.kept):
                self.binding.bind_ortvalue_output(name, value)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def results(self):
        self.run()
        return [v.numpy().astype(np.float64) for v in self.binding.get_outputs()]

    def seconds(self, least=0.02):
        n, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < least:
            self.run()
            n += 1
        return spent / n


def measure(before, after, library, rounds):
    import onnxruntime as ort
    if 'CUDAExecutionProvider' not in ort.get_available_providers():
        sys.exit(3)
    plain = ort.InferenceSession(before, providers=['CPUExecutionProvider'])
    feed, kind = made_up(plain, {}), plain.get_outputs()[0].type
    profiled = Way(ort, after, feed, library, profile=after)
    profiled.run()
    name = profiled.session.end_profiling()
    with open(name, encoding='utf-8') as f:
        ran = [e['args']['op_name'] for e in json.load(f)
               if e.get('cat') == 'Node' and 'op_name' in e.get('args', {})]
    os.unlink(name)
    kernels = {n.op_type for n in onnx.load(after, load_external_data=False).graph.node
               if n.domain not in ('', 'ai.onnx', 'ai.onnx.ml', 'com.microsoft')}
    told = {'ort': ort.__version__, 'nodes': len(ran), 'ran': sorted(set(ran)),
            'ours': sorted(kernels & set(ran)), 'given': sorted(kernels)}
    for graph in (False, True):
        made = [Way(ort, before, feed, graph=graph), Way(ort, before, feed, graph=graph),
                Way(ort, after, feed, library, graph=graph)]
        want, _, got = [w.results() for w in made]
        told['error'] = max([told.get('error', 0)] + [
            float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in zip(got, want)])
        for w in made:
            w.seconds(0.2)
        takes = [[] for _ in made]
        for _ in range(rounds):
            order = list(range(len(made)))
            random.shuffle(order)
            for k in order:
                takes[k].append(made[k].seconds())
        told['graph' if graph else 'plain'] = [1e6 * statistics.median(t) for t in takes]
    told['right'] = told['error'] <= LIMIT.get(kind, 1e-4)
    print(json.dumps(told))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--work')
    p.add_argument('--rounds', type=int, default=15)
    p.add_argument('--petopt-options', default='')
    p.add_argument('--again', action='store_true', help='measure what is in --work already')
    p.add_argument('--measure', nargs=3, help=argparse.SUPPRESS)
    p.add_argument('models', nargs='*')
    args = p.parse_args()
    if args.measure:
        return measure(*args.measure, args.rounds)
    work, failed = args.work or tempfile.mkdtemp(prefix='petopt-cuda-'), []
    print('| model | as it is, us | with kernels, us | gain | equals | in CUDA graphs, us | with '
          'kernels, us | gain | equals | kernels | error |\n' + '| --- ' * 11 + '|')
    for path in args.models:
        name = os.path.basename(path)[:-5]
        folder = os.path.join(work, name)
        os.makedirs(folder, exist_ok=True)
        out, kernels = os.path.join(folder, 'out.onnx'), os.path.join(folder, 'kernels')
        command = [os.path.join(args.build, 'petopt'), path, '-o', out, '--target', 'cuda',
                   '--kernels', kernels, *args.petopt_options.split()]
        if args.again and os.path.exists(out):
            command = ['true']
        done = subprocess.run(command, capture_output=True, text=True)
        library = os.path.join(kernels, 'libpetopt_kernels.so')
        if done.returncode or not os.path.exists(library):
            print(f'| {name} | ' + ('no kernels' if not done.returncode else 'failed') +
                  ' |' * 10, flush=True)
            print((done.stdout + done.stderr)[-1500:], file=sys.stderr)
            failed += [name] * bool(done.returncode)
            continue
        child = subprocess.run([sys.executable, __file__, '--rounds', str(args.rounds),
                                '--measure', path, out, library], capture_output=True, text=True)
        if child.returncode == 3:
            print('no CUDA provider', file=sys.stderr)
            return 3
        try:
            told = json.loads(child.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            print(f'| {name} | failed' + ' |' * 10, flush=True)
            print(child.stderr[-2000:], file=sys.stderr)
            failed.append(name)
            continue
        cells = []
        for way in ('plain', 'graph'):
            was, again, now = told[way]
            cells += [f'{was:.1f}', f'{now:.1f}', f'{was / now:.2f}x', f'{was / again:.2f}']
        print(f'| {name} | ' + ' | '.join(cells) + f' | {", ".join(told["ours"]) or "none"} | '
              f'{told["error"]:.1e} |', flush=True)
        print(f'{name}: ORT {told["ort"]}, {told["nodes"]} nodes ran: {told["ran"]}',
              file=sys.stderr)
        if child.stderr.strip():
            print(child.stderr[-1500:], file=sys.stderr)
        if not told['right'] or told['ours'] != told['given']:
            failed.append(name)
    if failed:
        print('not right: ' + ', '.join(failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
