#!/usr/bin/env python3
"""Every model of the onnx backend tests through petopt, judged by ONNX Runtime.

  backend.py --petopt PROGRAM --data FOLDER [--level 0 --level 1] [--only TEXT] [--list FILE]
  backend.py --sabotage --data FOLDER

A model is good at a level if petopt exits 0, leaves OUT and nothing unexpected beside it, OUT has
the interface, IR version and opsets of the original (at -O0: is equal to it, field by field), the
runtime loads OUT where it loads the original, and the outputs agree on the test's own inputs: bit
for bit at -O0, within the tolerance at -O1; and OUT matches the test's expected outputs wherever
the original does. Workers are processes of their own: one that dies costs the model it was at.
"""
import argparse
import collections
import glob
import itertools
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time

from cases import faulty

LEAST_MODELS = 1914
LEAST_COMPARED = 1700
# What draws numbers is told by runs that differ: ten of Bernoulli are the same twice one time in sixty.
FURTHER_RUNS = 4
TIMEOUT_S = 240
TOLERANCE = 1e-4  # petopt's --tolerance: of the output's largest magnitude
RTOL, ATOL = 1e-3, 1e-7  # the backend tests' own, against expected outputs


# ---- one model, in a worker --------------------------------------------------------------------

def load_value(path, type_proto):
    """One input_K.pb or output_K.pb, as the value's type says."""
    import onnx
    from onnx import numpy_helper as nh
    data = open(path, 'rb').read()
    kind = type_proto.WhichOneof('value') if type_proto else 'tensor_type'
    if kind == 'sequence_type':
        p = onnx.SequenceProto()
        p.ParseFromString(data)
        return nh.to_list(p)
    if kind == 'optional_type':
        p = onnx.OptionalProto()
        p.ParseFromString(data)
        return nh.to_optional(p)
    if kind == 'map_type':
        p = onnx.MapProto()
        p.ParseFromString(data)
        return nh.to_dict(p)
    p = onnx.TensorProto()
    p.ParseFromString(data)
    value = nh.to_array(p)
    if value.dtype.name not in NATIVE:
        import onnxruntime as ort
        bits = {1: 'uint8', 2: 'uint16'}[value.dtype.itemsize]
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(bits), p.data_type)
    return value


NATIVE = {'float16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16',
          'uint32', 'uint64', 'bool', 'object', 'str'}


def data_sets(path, model):
    """(inputs by name, expected outputs) of each data set; made up for the light models."""
    import numpy as np
    graph = model.graph
    given = {i.name for i in graph.initializer}
    sets = sorted(glob.glob(os.path.join(os.path.dirname(path), 'test_data_set_*')))
    if os.path.basename(path) == 'model.onnx':
        for folder in sets:
            ins = {}
            for k, info in enumerate(graph.input):
                pb = os.path.join(folder, f'input_{k}.pb')
                if os.path.exists(pb):
                    ins[info.name] = load_value(pb, info.type)
            outs = []
            for k, info in enumerate(graph.output):
                pb = os.path.join(folder, f'output_{k}.pb')
                outs.append(load_value(pb, info.type) if os.path.exists(pb) else None)
            yield ins, outs
        return
    rng, ins = np.random.default_rng(1), {}
    for info in graph.input:
        if info.name not in given:
            shape = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
            ins[info.name] = rng.random(shape, np.float32)
    yield ins, []


class Runtime:
    """ONNX Runtime, one thread."""
    name = 'runtime'

    def __init__(self, path, library=None):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        if library:
            options.register_custom_ops_library(library)
        self.session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])

    def run(self, inputs):
        import onnxruntime as ort
        try:
            return self.session.run(None, inputs)
        except RuntimeError as e:
            if 'No corresponding Numpy type' not in str(e):
                raise
        values = {k: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v)
                  for k, v in inputs.items()}
        return self.session.run_with_ort_values(None, values)


class Reference:
    """The onnx package's evaluator, for what the runtime does not run."""
    name = 'reference'

    def __init__(self, path):
        import onnx.reference
        self.evaluator = onnx.reference.ReferenceEvaluator(path)

    def run(self, inputs):
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return self.evaluator.run(None, inputs)


def raw(value):
    """A runtime's tensor as arrays: type, shape and bytes where numpy does not have its type
    (bfloat16, float8, int4, ...)."""
    import ctypes
    import numpy as np
    kind = value.data_type().removeprefix('tensor(').removesuffix(')')
    count = int(np.prod(value.shape()))
    bits = next((b for r, b in (('bfloat16', 16), ('u?int2', 2), ('u?int4|float4.*', 4),
                                ('float8.*', 8)) if re.fullmatch(r, kind)), None)
    if bits is None:
        return [np.asarray(value.numpy())]
    size = (count * bits + 7) // 8
    data = np.frombuffer(ctypes.string_at(value.data_ptr(), size), np.uint8)
    return [np.asarray(kind), np.asarray(value.shape()), data]


def flat(value):
    """A value of any type as a list of arrays and strings."""
    import numpy as np
    import onnxruntime as ort
    if isinstance(value, ort.OrtValue):
        return raw(value)
    if isinstance(value, dict):
        return [x for k in sorted(value) for x in [np.asarray(k), *flat(value[k])]]
    if isinstance(value, (list, tuple)):
        return [np.asarray(len(value)), *(x for v in value for x in flat(v))]
    if value is None:
        return [np.asarray('none')]
    return [np.asarray(value)]


def difference(got, want, exact):
    """None where the values agree, else what differs."""
    import numpy as np
    got, want = flat(got), flat(want)
    if len(got) != len(want):
        return f'{len(got)} parts for {len(want)}'
    for g, w in zip(got, want):
        if g.dtype != w.dtype and not (g.dtype.kind in 'OU' and w.dtype.kind in 'OU'):
            return f'type {g.dtype} for {w.dtype}'
        if g.shape != w.shape:
            return f'shape {list(g.shape)} for {list(w.shape)}'
        if g.dtype.kind not in 'fc' or exact:
            same = g == w
            if g.dtype.kind in 'fc':
                same = same | (np.isnan(g) & np.isnan(w))
            if not np.all(same):
                return f'{int(np.size(same) - np.sum(same))} of {np.size(same)} elements differ'
            continue
        odd = ~np.isfinite(w)
        if not np.array_equal(g[odd], w[odd], equal_nan=True) or not np.all(np.isfinite(g[~odd])):
            return 'NaN or infinity at other places'
        g, w, eps = g[~odd].astype('f8'), w[~odd].astype('f8'), np.finfo(g.dtype).eps
        if w.size:
            scale = np.max(np.abs(w))
            worst = np.max(np.abs(g - w))
            if worst > max(TOLERANCE, 2 * float(eps)) * scale:
                return f'error {worst:.3g}, largest magnitude {scale:.3g}'
    return None


def meets(got, expected):
    """Whether the outputs are the test's expected ones, by the backend tests' own rule."""
    import numpy as np
    for g, w in zip(got, expected):
        if w is None:
            continue
        for a, b in zip(flat(g), flat(w)):
            if a.shape != b.shape:
                return False
            if a.dtype.kind in 'fc':
                if not np.allclose(a, b.astype(a.dtype), RTOL, ATOL, equal_nan=True):
                    return False
            elif not np.array_equal(a, b):
                return False
    return True


def run_original(path):
    """What becomes of the original: (engine that runs it or None, why not, list of (inputs,
    expected outputs, outputs, whether further runs give the same))."""
    import onnx
    why = 'no data set'
    for engine in (Runtime, Reference):
        try:
            model, runs = onnx.load(path), []
            for ins, expected in data_sets(path, model):
                if engine is Reference:
                    ins = {k: v for k, v in ins.items() if not is_ort_value(v)}
                first, again = engine(path).run(ins), engine(path)
                same = all(difference(again.run(ins), first, True) is None
                           for _ in range(FURTHER_RUNS))
                runs.append((ins, expected, first, same))
            if runs:
                return engine, None, runs
        except Exception as e:  # refusals come as many types
            why = (str(e).splitlines() or [type(e).__name__])[0][:200]
    return None, why, []


def is_ort_value(value):
    import onnxruntime as ort
    return isinstance(value, ort.OrtValue)


def interface(model, kernels=False):
    """Generated kernels need IR version 8 and a domain of their own, and nothing else."""
    if kernels:
        return ([i.name for i in model.graph.input], [o.name for o in model.graph.output],
                sorted((o.domain, o.version) for o in model.opset_import if 'petopt' not in o.domain))
    return ([(i.name, i.type.SerializeToString(deterministic=True)) for i in model.graph.input],
            [(o.name, o.type.SerializeToString(deterministic=True)) for o in model.graph.output],
            model.ir_version, sorted((o.domain, o.version) for o in model.opset_import))


def checker_passes(model):
    import onnx
    try:
        onnx.checker.check_model(model)
        return True
    except Exception:
        return False


def judge(petopt, path, level, original, kernels=False):
    """(verdict, detail, outputs compared): verdict is good, refused, crashed or wrong. With kernels
    OUT is run with its library and without."""
    import onnx
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as built:
        out = os.path.join(folder, 'out.onnx')
        command = [petopt, path, '-o', out, f'-O{level}', '--cost', 'model', '-q']
        told = os.path.join(built, 'told.json')
        command += ['--json', told] + (['--kernels', built, '--cache', 'none'] if kernels else [])
        try:
            p = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=TIMEOUT_S, errors='replace')
        except subprocess.TimeoutExpired:
            return 'crashed', f'still running after {TIMEOUT_S} s', 0
        last = (p.stderr.strip().splitlines() or [''])[-1][:300]
        if p.returncode < 0 or p.returncode >= 126 or 'Sanitizer' in p.stderr:
            return 'crashed', f'exit {p.returncode}: {last}', 0
        if p.returncode != 0:
            return 'refused', f'exit {p.returncode}: {last}', 0
        odd = sorted(set(os.listdir(folder)) - {'out.onnx', 'out.onnx.cert', 'out.cert'})
        if odd or not os.path.exists(out):
            return 'wrong', f'left behind: {odd}', 0
        fault = faulty(told)
        if fault:
            return 'wrong', fault, 0
        before, after = onnx.load(path), onnx.load(out)
        if level == 0 and before != after:
            return 'wrong', 'the file is not equal to the original field by field', 0
        if interface(before, kernels) != interface(after, kernels):
            return 'wrong', 'inputs, outputs, IR version or opsets changed', 0
        if checker_passes(before) and not checker_passes(after):
            return 'wrong', 'onnx.checker refuses the output but not the original', 0
        compared = 0
        engine, _, runs = original
        library = os.path.join(built, 'libpetopt_kernels.so')
        ways = [(), (library,)] if os.path.exists(library) else [()]
        try:
            loaded = [engine(out, *way) for way in ways] if engine else []
            for (ins, expected, first, stable), session in itertools.product(runs, loaded):
                got = session.run(ins)
                if not stable:
                    continue
                d = difference(got, first, level == 0)
                if d:
                    return 'wrong', f'{d} ({engine.name})', compared
                if meets(first, expected) and not meets(got, expected):
                    return 'wrong', "the test's expected outputs are no longer met", compared
                compared += 1
        except Exception as e:
            return 'wrong', f'the {engine.name}: ' + str(e).splitlines()[0][:200], compared
        return 'good', '', compared


def worker(petopt, levels):
    """Reads a model's path a line; answers with JSON lines: one when the original has been run (so
    that a death before it is the runtime's own), one for each level."""
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    for line in sys.stdin:
        path, run = json.loads(line)
        original = run_original(path) if run else (None, 'the runtime dies on the original', [])
        name = original[0].name if original[0] else None
        print(json.dumps(['original', name, original[1]]), flush=True)
        for level in levels:
            print(json.dumps([level, *judge(petopt, path, level, original)]), flush=True)


# ---- all models, in the parent ------------------------------------------------------------------

class Worker:
    def __init__(self, args):
        self.command = [sys.executable, '-B', os.path.abspath(__file__), '--worker', '--petopt',
                        args.petopt, '--data', args.data]
        for level in args.level:
            self.command += ['--level', str(level)]
        self.process = None

    def ask(self, path, levels, run=True):
        """{'original': [engine, why not], level: [verdict, detail, outputs compared]}"""
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdin.write(json.dumps([path, run]) + '\n')
        self.process.stdin.flush()
        answer = {}
        for _ in range(1 + len(levels)):
            line = self.process.stdout.readline()
            if not line:
                self.process.wait()
                self.process = None
                if 'original' not in answer and run:
                    return self.ask(path, levels, run=False)
                for level in levels:
                    answer.setdefault(level, ['wrong', 'the runtime dies on the output', 0])
                return answer
            key, *rest = json.loads(line)
            answer[key] = rest
        return answer

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def judge_all(args, models):
    results, lock, left = {}, threading.Lock(), list(reversed(models))

    def loop():
        w = Worker(args)
        while True:
            with lock:
                if not left:
                    break
                path = left.pop()
            answer = w.ask(path, args.level)
            with lock:
                results[path] = answer
        w.close()

    threads = [threading.Thread(target=loop) for _ in range(os.cpu_count() or 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def report(args, models, results):
    """Prints the counts and the models that are not good; whether all are."""
    ok = True
    for level in args.level:
        verdicts = collections.Counter(results[m][level][0] for m in models)
        compared = collections.Counter(results[m]['original'][0] for m in models
                                       if results[m][level][2] > 0)
        for m in models:
            verdict, detail, _ = results[m][level]
            if verdict != 'good':
                print(f'-O{level} {verdict}: {os.path.relpath(m, args.data)}: {detail}')
        print(f'-O{level}: {verdicts["good"]} good, {verdicts["refused"]} refused, '
              f'{verdicts["crashed"]} crashed, {verdicts["wrong"]} wrong of {len(models)} models; '
              f'outputs compared for {compared["runtime"]} in ONNX Runtime and '
              f'{compared["reference"]} in the onnx evaluator')
        ok &= verdicts['good'] == len(models)
        ok &= compared['runtime'] >= (0 if args.only else LEAST_COMPARED // args.every)
    return ok


def find_models(args):
    models = sorted(glob.glob(os.path.join(args.data, '**', '*.onnx'), recursive=True))
    if args.only:
        return [m for m in models if re.search(args.only, m)]
    if len(models) < LEAST_MODELS:
        sys.exit(f'{len(models)} models under {args.data} (at least {LEAST_MODELS} expected)')
    if args.every > 1:
        print(f'every {args.every}th model, --offset {args.offset}', flush=True)
    return models[args.offset % args.every::args.every]


# ---- sabotage: programs that do wrong must be found out ----------------------------------------

EDIT = '"$PY" -c "import onnx, sys; m = onnx.load(sys.argv[1]); {}; onnx.save(m, sys.argv[2])" "$1" "$3"'
# (what the verdict must say, level, shell script that stands in for petopt)
SABOTAGE = [
    ('good', 0, 'cp "$1" "$3"'),
    ('good', 1, EDIT.format("m.graph.node[0].name='other'")),
    ('refused', 0, 'echo "cannot" >&2; exit 2'),
    ('crashed', 0, 'kill -SEGV $$'),
    ('left behind', 0, 'cp "$1" "$3"; : >"$3.tmp"'),
    ('left behind', 0, 'exit 0'),
    ('not equal', 0, EDIT.format("m.doc_string='x'")),
    ("candidate 'folded': off", 1, 'cp "$1" "$3"; echo \'{"candidates": [{"name": "folded", '
     '"refused": false, "different": true, "verdict": "off"}]}\' >"$9"'),
    ('opsets changed', 1, EDIT.format('m.ir_version+=1')),
    ('onnx.checker', 1, EDIT.format("m.graph.node[0].op_type='NoSuch'")),
    ('error', 1, EDIT.format("m.graph.node[0].op_type='Sub'")),
    ("candidate 'mutants': Mul", 1, 'cp "$1" "$3"; echo \'{"candidates": [{"name": "mutants", '
     '"refused": true, "different": false, "verdict": "Mul of 3 by 4"}]}\' >"$9"'),
]


def sabotage(args):
    import numpy as np
    wrong = 0
    path = os.path.join(args.data, 'node', 'test_add', 'model.onnx')
    original = run_original(path)
    if original[0] is not Runtime:
        sys.exit(f'{path}: {original[1]}')
    for expect, level, script in SABOTAGE:
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, 'petopt')
            with open(program, 'w', encoding='utf-8') as f:
                f.write(f'#!/bin/sh\nPY={sys.executable}\n{script}\n')
            os.chmod(program, stat.S_IRWXU)
            verdict, detail, _ = judge(program, path, level, original)
        if expect not in f'{verdict} {detail}' or (verdict == 'good') != (expect == 'good'):
            wrong += 1
            print(f'sabotage "{expect}": {verdict} {detail}')
    f, nan = np.float32, np.float32('nan')
    one = np.ones(1000, f)
    border = one.copy()
    border[-1] += 2e-4
    pairs = [(one, one, 1, True), (one + f(5e-5), one, 1, True), (border, one, 1, False),
             (one + f(1e-6), one, 0, False), (one * nan, one, 1, False), (one * nan, one * nan, 1, True),
             (one * f('inf'), one * f('-inf'), 1, False), (one[:-1], one, 1, False),
             (one.astype('f8'), one, 1, False), ([1, 2], [1, 3], 1, False), ([1], [1, 1], 1, False),
             (['a'], ['b'], 1, False), (None, 0.0, 1, False), ([np.asarray(['a', 'b'])] * 2,
                                                               [np.asarray(['a', 'b'])] * 2, 1, True)]
    for k, (got, want, level, same) in enumerate(pairs):
        if (difference(got, want, level == 0) is None) != same:
            wrong += 1
            print(f'pair {k}: {difference(got, want, level == 0)}')
    print(f'{len(SABOTAGE)} programs and {len(pairs)} pairs of outputs, {wrong} wrong answers')
    return wrong == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt')
    parser.add_argument('--data', required=True)
    parser.add_argument('--level', type=int, action='append')
    parser.add_argument('--only', help='a regular expression on the path')
    parser.add_argument('--every', type=int, default=1, metavar='N', help='every Nth model')
    parser.add_argument('--offset', type=int, default=int(time.time() // 86400),
                        help='where every Nth begins; another every day')
    parser.add_argument('--list', help='write each verdict to this file (JSON)')
    parser.add_argument('--worker', action='store_true')
    parser.add_argument('--sabotage', action='store_true')
    args = parser.parse_args()
    args.level = args.level or [0, 2]
    if args.sabotage:
        sys.exit(0 if sabotage(args) else 1)
    if args.worker:
        worker(args.petopt, args.level)
        return
    models = find_models(args)
    results = judge_all(args, models)
    if args.list:
        with open(args.list, 'w', encoding='utf-8') as f:
            json.dump({os.path.relpath(m, args.data): results[m] for m in models}, f, indent=1)
    sys.exit(0 if report(args, models, results) else 1)


if __name__ == '__main__':
    main()
