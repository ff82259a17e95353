#!/usr/bin/env python3
"""Models that can never run are refused, and only those: every node test of the onnx package, changed
in one place each, judged by ONNX Runtime.

  impossible.py --petopt PROGRAM --data FOLDER [--every N] [--offset K] [--seed S] [--list FILE]
  impossible.py --data FOLDER --sabotage

A change gives an input another dim, rank or element type, turns it into a constant with another
element, or changes an attribute or the counts of inputs and outputs. Where the runtime loads and
runs the changed model, petopt must take it: no exceptions. Where the runtime refuses to load it,
petopt must refuse it with exit 2 and one sentence in all but a few of a hundred cases. Whether a
model that loads but fails when it runs is refused depends on whether the reason shows before: those
are counted. The runtime works in processes of its own: one that dies costs the model it was at.
"""
import argparse
import collections
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

import backend

SECONDS = 60
LEAST_CHANGED = 1000  # at --every 1
LEAST_REFUSED = 0.95  # of what the runtime refuses to load

# The runtime's refusals that are no matter of the standard: values of attributes that its kernels do
# not have, types that it does not have.
OWN_LIMITS = ('Exception during initialization', 'MLDataType for')
# Operators that petopt keeps without looking inside (docs/operators.md), or whose bodies decide.
OPAQUE = ('ai_onnx_ml', 'tfidfvectorizer', 'regex', 'sequence', 'scan', 'optional', 'string')


# ---- changes ------------------------------------------------------------------------------------

def dims_of(info):
    return [d.dim_value for d in info.type.tensor_type.shape.dim]


def set_dims(info, dims):
    shape = info.type.tensor_type.shape
    del shape.dim[:]
    for d in dims:
        shape.dim.add().dim_value = d


def tensor_inputs(model, inputs):
    """The graph's inputs that are tensors of native types with a data set's value."""
    import numpy as np
    return [i for i in model.graph.input if i.type.HasField('tensor_type') and
            isinstance(inputs.get(i.name), np.ndarray) and inputs[i.name].dtype.kind in 'fiub']


def resized(value, dims):
    import numpy as np
    return np.resize(value, dims) if value.size else np.zeros(dims, value.dtype)


def change_dims(rng, model, inputs):
    info = rng.choice(tensor_inputs(model, inputs))
    value = inputs[info.name]
    dims = list(value.shape)
    kinds = ['wider', 'front', 'back'] + (['less', 'one', 'merge', 'more', 'more'] if dims else [])
    kind = rng.choice(kinds)
    at = rng.randrange(len(dims)) if dims else 0
    if kind == 'wider' and dims:
        dims[at] = dims[at] * 2 + 1
    elif kind == 'more':
        dims[at] += 1
    elif kind == 'less':
        dims[at] = max(dims[at] - 1, 0)
    elif kind == 'one':
        dims[at] = 1
    elif kind == 'merge':
        dims.pop(at)
    else:
        dims.insert(len(dims) if kind == 'back' else 0, rng.choice([1, 2]))
    if dims == list(value.shape):
        return None
    set_dims(info, dims)
    inputs[info.name] = resized(value, dims)
    return f'input {info.name} has dims {dims} for {list(value.shape)}'


def change_type(rng, model, inputs):
    import numpy as np
    from onnx import TensorProto
    info = rng.choice(tensor_inputs(model, inputs))
    to, dtype = rng.choice([(TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64),
                            (TensorProto.INT64, np.int64), (TensorProto.INT32, np.int32),
                            (TensorProto.UINT8, np.uint8), (TensorProto.BOOL, np.bool_)])
    if info.type.tensor_type.elem_type == to:
        return None
    info.type.tensor_type.elem_type = to
    with np.errstate(invalid='ignore'):
        inputs[info.name] = inputs[info.name].astype(dtype)
    return f'input {info.name} has type {TensorProto.DataType.Name(to)}'


def change_constant(rng, model, inputs):
    """An input becomes an initialiser, mostly with another element."""
    import numpy as np
    from onnx import numpy_helper as nh
    small = [i for i in tensor_inputs(model, inputs)
             if inputs[i.name].dtype in (np.int64, np.int32) and inputs[i.name].size < 64]
    info = rng.choice(small or tensor_inputs(model, inputs))
    value = np.array(inputs.pop(info.name))
    text = f'{info.name} is constant'
    if value.dtype.kind == 'i' and value.size:
        k, by = rng.randrange(value.size), rng.choice([-1, 1, 1, 2, 40, -40, 0])
        value.reshape(-1)[k] += by
        text += f', element {k} is {value.reshape(-1)[k]}'
    if value.ndim and rng.random() < 0.2:
        value = value[:-1]
        text += ', the last one is missing'
    model.graph.initializer.append(nh.from_array(value, info.name))
    model.graph.input.remove(info)
    return text


def change_attribute(rng, model, inputs):
    from onnx import AttributeProto as A
    node = rng.choice(model.graph.node)
    found = [a for a in node.attribute if a.type in (A.INT, A.INTS, A.STRING, A.FLOATS)]
    if not found:
        return None
    a = rng.choice(found)
    name = f'attribute {a.name} of {node.op_type}'
    if rng.random() < 0.1:
        node.attribute.remove(a)
        return f'{name} is missing'
    if a.type == A.INT:
        a.i = a.i + rng.choice([-1, 1, 2, 5, -5]) if rng.random() < 0.9 else -a.i
        return f'{name} is {a.i}'
    if a.type == A.STRING:
        a.s = rng.choice([b'', b'odd', a.s.upper(), a.s + b' '])
        return f'{name} is {a.s.decode()!r}'
    items = a.ints if a.type == A.INTS else a.floats
    kind = rng.choice(['add', 'drop', 'item', 'item', 'item'])
    if kind == 'add' or not items:
        items.append(rng.choice([0, 1, 2]))
    elif kind == 'drop':
        items.pop()
    else:
        k = rng.randrange(len(items))
        items[k] = int(items[k]) + rng.choice([-1, 1, 3, -3, 20])
    return f'{name} is {list(items)}'


def change_counts(rng, model, inputs):
    node = rng.choice(model.graph.node)
    kind = rng.choice(['drop', 'blank', 'repeat', 'output'])
    if kind == 'output':
        node.output.append('one_more')
        return f'{node.op_type} has an output more'
    if not node.input:
        return None
    if kind == 'drop':
        del node.input[-1]
        return f'{node.op_type} lacks its last input'
    if kind == 'blank':
        k = rng.randrange(len(node.input))
        node.input[k] = ''
        return f'{node.op_type} lacks input {k}'
    node.input.append(node.input[-1])
    return f'{node.op_type} has its last input twice'


CHANGES = [change_dims, change_dims, change_dims, change_type, change_constant, change_constant,
           change_attribute, change_attribute, change_attribute, change_counts]


def without_output_shapes(model):
    """What is declared of outputs is no part of the question."""
    import onnx
    del model.graph.value_info[:]
    for o in model.graph.output:
        if o.type.HasField('tensor_type'):
            o.type.tensor_type.ClearField('shape')
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for o in bare.graph.output:
        o.ClearField('type')
    return bare


def changed(path, rng, count):
    """(what was changed, model, inputs), `count` at most."""
    import onnx
    base = onnx.load(path)
    sets = list(backend.data_sets(path, base))
    if not sets or not base.graph.node:
        return
    for _ in range(count):
        model, inputs = onnx.ModelProto(), dict(sets[0][0])
        model.CopyFrom(base)
        change = rng.choice(CHANGES)
        if change in (change_dims, change_type, change_constant) and not tensor_inputs(model, inputs):
            continue
        try:
            text = change(rng, model, inputs)
        except (OverflowError, ValueError):  # the field cannot hold it
            continue
        if text:
            yield text, without_output_shapes(model), inputs


# ---- the runtime, in a worker --------------------------------------------------------------------

def verdict_of(path, inputs):
    """('runs' | 'fails' | 'refused' | 'lacking', why): lacking says that the runtime has no
    implementation, which is no fault of the model."""
    try:
        session = backend.Runtime(path)
    except Exception as e:
        text = ' '.join(str(e).split())
        lacking = any(w in text for w in ('NOT_IMPLEMENTED', *OWN_LIMITS))
        return 'lacking' if lacking else 'refused', text[:300]
    try:
        session.run(inputs)
        return 'runs', ''
    except Exception as e:
        text = ' '.join(str(e).split())
        return 'lacking' if 'NOT_IMPLEMENTED' in text or 'mplemented' in text else 'fails', text[:300]


def judge(petopt, path, count, seed):
    """Lines [what, runtime's verdict, why, petopt's exit, its message] of a model's changes."""
    import onnx
    rng = random.Random(f'{seed} {os.path.basename(os.path.dirname(path))}')
    with tempfile.TemporaryDirectory() as folder:
        at, out = os.path.join(folder, 'm.onnx'), os.path.join(folder, 'out.onnx')
        for text, model, inputs in changed(path, rng, count):
            try:
                onnx.save(model, at)
            except Exception:
                continue
            p = subprocess.run([petopt, at, '-o', out, '-O0', '-q', '--cache', 'none'],
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                               errors='replace')
            message = p.stderr.strip()
            if p.returncode == 2 and os.path.exists(out):
                p.returncode, message = -1, 'refused, but something was written'
            # Should the runtime die from here on, this is the verdict.
            yield [text, 'dies', '', p.returncode, message]
            yield [text, *verdict_of(at, inputs), p.returncode, message]
            if os.path.exists(out):
                os.remove(out)


def worker(args):
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    for line in sys.stdin:
        path = json.loads(line)
        if verdict_of_original(path):
            for row in judge(args.petopt, path, args.count, args.seed):
                print(json.dumps(row), flush=True)
        print('null', flush=True)


def verdict_of_original(path):
    import onnx
    sets = list(backend.data_sets(path, onnx.load(path)))
    return bool(sets) and verdict_of(path, sets[0][0])[0] == 'runs'


# ---- all models ---------------------------------------------------------------------------------

class Worker:
    def __init__(self, args):
        self.command = [sys.executable, '-B', os.path.abspath(__file__), '--worker', '--petopt',
                        args.petopt, '--data', args.data, '--count', str(args.count), '--seed',
                        str(args.seed)]
        self.process = None

    def ask(self, path):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdin.write(json.dumps(path) + '\n')
        self.process.stdin.flush()
        rows = []
        while True:
            watchdog = threading.Timer(2 * SECONDS, self.process.kill)  # a kernel may run for ever
            watchdog.start()
            line = self.process.stdout.readline()
            watchdog.cancel()
            if not line:
                self.process.wait()
                self.process = None
                break
            row = json.loads(line)
            if row is None:
                break
            if rows and rows[-1][1] == 'dies' and row[1] != 'dies':
                rows.pop()
            rows.append(row)
        return rows

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def judge_all(args, models):
    rows, lock, left = {}, threading.Lock(), list(reversed(models))

    def loop():
        w = Worker(args)
        while True:
            with lock:
                if not left:
                    break
                path = left.pop()
            answer = w.ask(path)
            with lock:
                rows[path] = answer
        w.close()

    threads = [threading.Thread(target=loop) for _ in range(os.cpu_count() or 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return rows


MISSED = 'took what no runtime loads'


def fault_of(name, verdict, code, message):
    """What is wrong with petopt's answer, or None."""
    if code not in (0, 2) or 'Sanitizer' in message:
        return 'crashed'
    if code == 2 and (not message or len(message.splitlines()) != 1):
        return 'not one sentence'
    if code == 2 and verdict == 'runs':
        return 'refused what runs'
    if code == 0 and verdict == 'refused' and not any(o in name for o in OPAQUE):
        return MISSED
    return None


def report(args, models, rows):
    """Prints the counts and what is wrong; whether all is well."""
    verdicts, faults = collections.Counter(), collections.Counter()
    with open(args.list or os.devnull, 'w', encoding='utf-8') as f:
        for path in models:
            name = os.path.basename(os.path.dirname(path))
            for text, verdict, why, code, message in rows[path]:
                fault = fault_of(name, verdict, code, message)
                verdicts[verdict, code] += 1
                print(json.dumps([fault, name, text, verdict, why, code, message]), file=f)
                if fault:
                    faults[fault] += 1
                    print(f'{fault}: {name}: {text}: {message or why}')
    for (verdict, code), n in sorted(verdicts.items()):
        print(f'{n} where the runtime\'s verdict is "{verdict}": exit {code}')
    total, missed = sum(verdicts.values()), faults.pop(MISSED, 0)
    refused = sum(n for (verdict, _), n in verdicts.items() if verdict == 'refused')
    print(f'{total} changed models, {sum(faults.values())} judged wrong, {missed} of {refused} that '
          'no runtime loads taken')
    return not faults and total >= LEAST_CHANGED // args.every and \
        missed <= (1 - LEAST_REFUSED) * refused


# Stand-ins for petopt: the options are IN -o OUT, and the verdict is taken as theirs.
STAND_INS = {
    'takes everything': 'import shutil, sys; shutil.copy(sys.argv[1], sys.argv[3])',
    'refuses everything': 'import sys; sys.exit("no") if False else (print("no", file=sys.stderr), '
                          'sys.exit(2))',
    'refuses in silence': 'import sys; sys.exit(2)',
    'dies': 'import os; os.abort()',
}


def sabotage(args, models):
    missed = 0
    for what, code in STAND_INS.items():
        with tempfile.TemporaryDirectory() as folder:
            args.petopt = os.path.join(folder, 'petopt')
            with open(args.petopt, 'w', encoding='utf-8') as f:
                f.write(f'#!{sys.executable} -S\n{code}\n')
            os.chmod(args.petopt, 0o700)
            print(f'--- {what}')
            missed += report(args, models, judge_all(args, models))
    print(f'{len(STAND_INS)} stand-ins, {missed} passed')
    return missed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt', default='')
    parser.add_argument('--data', required=True)
    parser.add_argument('--every', type=int, default=1)
    parser.add_argument('--offset', type=int, default=0)
    parser.add_argument('--count', type=int, default=4, help='changes of each model')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--only', default='')
    parser.add_argument('--list', help='writes every row to this file')
    parser.add_argument('--worker', action='store_true')
    parser.add_argument('--sabotage', action='store_true')
    args = parser.parse_args()
    args.petopt = os.path.abspath(args.petopt)
    if args.worker:
        worker(args)
        return
    models = sorted(glob.glob(os.path.join(args.data, '*', '*', 'model.onnx')))
    models = [m for m in models if args.only in m][args.offset::args.every]
    if args.sabotage:
        args.every = 100
        sys.exit(0 if sabotage(args, models[::100]) else 1)
    sys.exit(0 if report(args, models, judge_all(args, models)) else 1)


if __name__ == '__main__':
    main()
