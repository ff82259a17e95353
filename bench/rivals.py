#!/usr/bin/env python3
"""What bench/run.py asks of the tools that petopt is compared with; runs in .deps/bench.

  rivals.py versions
  rivals.py onnxsim|onnxslim IN OUT [NAME:D,D,..]
  rivals.py openvino IN [--beside OUT [--library FILE]] --threads N --seconds S [NAME:D,D,..]

openvino prints JSON: the median latency in ms of OpenVINO and of ONNX Runtime on the same file and
inputs, in blocks that take turns in random order, the first run of a block untimed. --beside adds
"petopt": OUT in ONNX Runtime, with a library of kernels where one is given. All sessions of ONNX
Runtime share their threads."""
import argparse
import json
import os
import random
import statistics
import sys
import time

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to


def shapes(words):
    return {w.rpartition(':')[0]: [int(d) for d in w.rpartition(':')[2].split(',')] for w in words}


def simplify(tool, source, target, words):
    import onnx
    model = onnx.load(source)
    if tool == 'onnxsim':
        import onnxsim
        done, _ = onnxsim.simplify(model, overwrite_input_shapes=shapes(words) or None)
    else:
        import onnxslim
        done = onnxslim.slim(model, input_shapes=words or None)
    onnx.save(done, target)


def made_up(session, pinned):
    """Inputs by name: floats normal, integers 0 or 1, masks all 1."""
    import numpy as np
    rng = np.random.default_rng(1)
    feed = {}
    for i in session.get_inputs():
        dims = pinned.get(i.name) or [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        if 'float' in i.type:
            kind = np.float16 if '16' in i.type else np.float64 if 'double' in i.type else np.float32
            feed[i.name] = rng.standard_normal(dims).astype(kind)
        elif 'mask' in i.name:
            feed[i.name] = np.ones(dims, np.int64)
        else:
            feed[i.name] = rng.integers(0, 2, dims).astype(
                bool if 'bool' in i.type else np.int32 if 'int32' in i.type else np.int64)
    return feed


def session_of(source, library):
    """With the threads of the process; a library of kernels may be given."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.use_per_session_threads, options.log_severity_level = False, 4
    if library:
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(source, options, providers=['CPUExecutionProvider'])


def openvino(source, words, threads, seconds, beside, library):
    import onnxruntime
    import openvino as ov
    onnxruntime.set_global_thread_pool_sizes(threads, 1)
    session = session_of(source, None)
    pinned = shapes(words)
    feed = made_up(session, pinned)
    core = ov.Core()
    model = core.read_model(source)
    model.reshape({name: value.shape for name, value in feed.items()})
    compiled = core.compile_model(model, 'CPU', {
        'INFERENCE_NUM_THREADS': threads, 'INFERENCE_PRECISION_HINT': 'f32',
        'PERFORMANCE_HINT': 'LATENCY', 'NUM_STREAMS': 1})
    request = compiled.create_infer_request()
    runs = {'onnxruntime': lambda: session.run(None, feed), 'openvino': lambda: request.infer(feed)}
    if beside:
        ours = session_of(beside, library)
        runs['petopt'] = lambda: ours.run(None, feed)
    times, order = {k: [] for k in runs}, random.Random(1)
    for run in runs.values():
        run()
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times['openvino']) < 10:
        for name in order.sample(sorted(runs), len(runs)):
            runs[name]()
            for _ in range(3):
                start = time.perf_counter()
                runs[name]()
                times[name].append(1000 * (time.perf_counter() - start))
    print(json.dumps({k: statistics.median(v) for k, v in times.items()}))


def versions():
    from importlib.metadata import version
    print(', '.join(f'{n} {version(n)}' for n in ('onnxruntime', 'onnxsim', 'onnxslim', 'openvino')))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('what')
    parser.add_argument('words', nargs='*')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=5)
    parser.add_argument('--beside')
    parser.add_argument('--library')
    args = parser.parse_args()
    if args.what == 'versions':
        versions()
    elif args.what == 'openvino':
        openvino(args.words[0], args.words[1:], args.threads, args.seconds, args.beside,
                 args.library)
    elif args.what in ('onnxsim', 'onnxslim'):
        simplify(args.what, args.words[0], args.words[1], args.words[2:])
    else:
        sys.exit(f'unknown: {args.what}')


if __name__ == '__main__':
    main()
