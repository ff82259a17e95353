#!/usr/bin/env python3
"""Models raised to later opsets: the result must fit the schemas of its opset (onnx.checker) and
compute what the original computes in ONNX Runtime.

  opset.py --program RAISE --rules                          one model for each rule of the table
  opset.py --program RAISE --data FOLDER --models FOLDER    the backend tests and the real models
  opset.py --petopt PETOPT                                  --opset on the command line
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TARGETS = (13, 17, 18, 21, 24)
LEAST_RAISED = 1500


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def dtype_of(kind):
    return {'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(int64)': np.int64,
            'tensor(int32)': np.int32, 'tensor(bool)': np.bool_, 'tensor(float16)': np.float16,
            'tensor(uint8)': np.uint8, 'tensor(int8)': np.int8}.get(kind)


def made_up(s):
    rng, feeds = np.random.default_rng(5), {}
    for i in s.get_inputs():
        dtype = dtype_of(i.type)
        shape = [d if isinstance(d, int) else 2 for d in i.shape]
        if dtype is None:
            return None
        feeds[i.name] = (rng.standard_normal(shape).astype(dtype) if np.dtype(dtype).kind == 'f'
                         else rng.integers(0, 2, shape).astype(dtype))
    return feeds


def given(path, s):
    """The data of a backend test, else random inputs."""
    feeds = {}
    for k, i in enumerate(s.get_inputs()):
        pb = os.path.join(os.path.dirname(path), 'test_data_set_0', f'input_{k}.pb')
        if not os.path.exists(pb) or dtype_of(i.type) is None:
            return made_up(s)
        t = TensorProto()
        with open(pb, 'rb') as f:
            t.ParseFromString(f.read())
        feeds[i.name] = numpy_helper.to_array(t)
    return feeds


def difference(a, b):
    if len(a) != len(b):
        return float('inf')
    worst = 0.0
    for x, y in zip(a, b):
        if not isinstance(x, np.ndarray):
            continue
        if x.shape != y.shape or x.dtype != y.dtype:
            return float('inf')
        if x.dtype.kind != 'f':
            worst = max(worst, 0.0 if np.array_equal(x, y) else float('inf'))
            continue
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if not same.all():
            d = np.abs(x.astype(np.float64) - y)[~same]
            scale = max(1e-30, float(np.abs(x[np.isfinite(x)]).max(initial=0)))
            worst = max(worst, float(d.max()) / scale)
    return worst


def judge(path, raised, opset, expected=None):
    """None where the raised model is good, 'skip' where the original does not run, else why not."""
    model = onnx.load(raised)
    for out in model.graph.output:
        # Outputs stay declared as they were, here without a shape, which the checker asks for but
        # does not compare with anything.
        if out.type.HasField('tensor_type'):
            out.type.tensor_type.shape.SetInParent()
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as e:
        try:
            onnx.checker.check_model(onnx.load(path))
        except onnx.checker.ValidationError:
            return 'skip'
        return 'does not fit the schemas: ' + str(e).splitlines()[0]
    versions = {o.domain: o.version for o in model.opset_import}
    if versions.get('') != opset:
        return f'says opset {versions}'
    try:
        before = session(raised if expected else path)
        feeds = given(path, before)
        if feeds is None:
            return 'skip'
        want = expected(**feeds) if expected else before.run(None, feeds)
    except Exception as e:
        return f'not run: {e}' if expected else 'skip'
    try:
        found = session(raised).run(None, feeds)
    except Exception as e:
        if 'NOT_IMPLEMENTED' in str(e):
            return 'skip'
        return 'does not run: ' + str(e).splitlines()[0]
    d = difference(want, found)
    return None if d < 2e-6 else f'differs by {d:g}'


# ---- one model for each rule -------------------------------------------------------------------

def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(opset, nodes, inputs, outputs, constants=()):
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants]
    graph = helper.make_graph(nodes, 'g', inputs, [value(o, None) for o in outputs], tensors)
    for o in graph.output:
        o.type.tensor_type.ClearField('shape')
        o.type.tensor_type.elem_type = {'i': TensorProto.INT64, 'm': TensorProto.BOOL}.get(
            o.name, TensorProto.FLOAT)
    return helper.make_model(graph, ir_version=4, opset_imports=[helper.make_opsetid('', opset)])


def one(opset, op, shape, constants=(), outputs=('y',), dtype=TensorProto.FLOAT, **attributes):
    names = ['x'] + [f'c{i}' for i in range(len(constants))]
    node = helper.make_node(op, names, list(outputs), name='node', **attributes)
    if dtype != TensorProto.FLOAT:
        return model(opset, [node], [value('x', shape, dtype)], outputs,
                     list(zip(names[1:], constants)))
    return model(opset, [node], [value('x', shape)], outputs, list(zip(names[1:], constants)))


def f32(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def inside_if():
    branch = [helper.make_node('Squeeze', ['x'], ['s'], axes=[0]),
              helper.make_node('Softmax', ['s'], ['t'])]
    other = [helper.make_node('ReduceMean', ['x'], ['u'], axes=[0], keepdims=0)]
    node = helper.make_node(
        'If', ['b'], ['y'],
        then_branch=helper.make_graph(branch, 'then', [], [value('t', [3, 4, 5])]),
        else_branch=helper.make_graph(other, 'else', [], [value('u', [3, 4, 5])]))
    return model(11, [node], [value('x', [1, 3, 4, 5]), value('b', [], TensorProto.BOOL)], ['y'])


GOOD = {
    'broadcast by axis': lambda: one(6, 'Add', [2, 3, 4, 5], [f32(3)], broadcast=1, axis=1),
    'broadcast of a suffix': lambda: one(6, 'Mul', [2, 3, 4, 5], [f32(4, 5)], broadcast=1),
    'broadcast of an input': lambda: model(
        6, [helper.make_node('Sub', ['x', 'z'], ['y'], broadcast=1, axis=1)],
        [value('x', [2, 3, 4, 5]), value('z', [3, 4])], ['y']),
    'BatchNormalization': lambda: one(
        6, 'BatchNormalization', [2, 3, 4, 4], [f32(3), f32(3), f32(3), np.abs(f32(3))], is_test=1),
    'Dropout': lambda: one(6, 'Dropout', [2, 3], is_test=1, ratio=0.3),
    'Gemm': lambda: one(6, 'Gemm', [2, 3], [f32(3, 4), f32(4)], broadcast=1),
    'PRelu': lambda: one(6, 'PRelu', [2, 3, 4, 4], [f32(3)]),
    'Upsample nearest 7': lambda: one(7, 'Upsample', [1, 2, 3, 3], scales=[1.0, 1.0, 2.0, 3.0]),
    'Upsample linear 9': lambda: one(
        9, 'Upsample', [1, 2, 3, 3], [np.array([1, 1, 2, 1.5], np.float32)], mode='linear'),
    'Resize 10': lambda: one(10, 'Resize', [1, 2, 5, 5], [np.array([1, 1, 2, 1.7], np.float32)]),
    'Slice': lambda: one(9, 'Slice', [4, 6, 5], starts=[1, -4], ends=[9, -1], axes=[0, 1]),
    'Slice without axes': lambda: one(9, 'Slice', [4, 6], starts=[1, 0], ends=[3, 2]),
    'TopK': lambda: one(9, 'TopK', [3, 7], outputs=('y', 'i'), k=2, axis=1),
    'Clip': lambda: one(10, 'Clip', [3, 4], min=-0.5, max=0.25),
    'Clip with one bound': lambda: one(10, 'Clip', [3, 4], max=0.25),
    'Pad': lambda: one(10, 'Pad', [3, 4], pads=[1, 0, 2, 1], value=1.5),
    'Pad reflect': lambda: one(10, 'Pad', [3, 4], pads=[1, 0, 2, 1], mode='reflect'),
    'Scatter': lambda: one(
        10, 'Scatter', [3, 3], [np.array([[1, 0, 2]]), f32(1, 3)], axis=0),
    'Dropout 10': lambda: one(10, 'Dropout', [3, 4], ratio=0.4),
    'Softmax of rank 4': lambda: one(12, 'Softmax', [2, 3, 4, 5]),
    'Softmax of the last axis': lambda: one(12, 'Softmax', [2, 3, 4], axis=2),
    'Softmax of channels': lambda: one(12, 'Softmax', [2, 7, 1, 1]),
    'Softmax of a dynamic map': lambda: one(12, 'LogSoftmax', ['n', 3, 'h'], axis=1),
    'Hardmax': lambda: one(12, 'Hardmax', [2, 3, 4], axis=-2),
    'Squeeze': lambda: one(12, 'Squeeze', [2, 1, 4, 1], axes=[1, 3]),
    'Squeeze of all': lambda: one(12, 'Squeeze', [2, 1, 4, 1]),
    'Unsqueeze': lambda: one(12, 'Unsqueeze', [2, 4], axes=[0, 2]),
    'ReduceSum': lambda: one(12, 'ReduceSum', [2, 3, 4], axes=[-1, 0], keepdims=0),
    'ReduceSum of all': lambda: one(12, 'ReduceSum', [2, 3, 4]),
    'Split': lambda: one(12, 'Split', [6, 3], outputs=('y', 'z'), split=[2, 4]),
    'Split equally': lambda: one(12, 'Split', [6, 3], outputs=('y', 'z', 'w')),
    'BatchNormalization 9': lambda: one(
        9, 'BatchNormalization', [2, 3, 4], [f32(3), f32(3), f32(3), np.abs(f32(3))]),
    'RoiAlign': lambda: one(
        10, 'RoiAlign', [1, 2, 8, 8],
        [np.array([[0, 0, 6, 6], [1, 2, 7, 5]], np.float32), np.array([0, 0])],
        output_height=3, output_width=3, sampling_ratio=2),
    'ReduceMean': lambda: one(17, 'ReduceMean', [2, 3, 4], axes=[1]),
    'ReduceMax': lambda: one(11, 'ReduceMax', [2, 3, 4], axes=[1, 2]),
    'ReduceL2': lambda: one(10, 'ReduceL2', [2, 3, 4], axes=[2], keepdims=0),
    'DFT': lambda: one(17, 'DFT', [1, 8, 4, 1], axis=1),
    'GridSample': lambda: one(16, 'GridSample', [1, 1, 4, 4], [f32(1, 3, 3, 2)], mode='bicubic'),
    'GridSample by default': lambda: one(16, 'GridSample', [1, 1, 4, 4], [f32(1, 3, 3, 2)]),
    'MaxPool with ceil': lambda: one(
        10, 'MaxPool', [1, 2, 7, 7], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
    'AveragePool': lambda: one(7, 'AveragePool', [1, 2, 7, 7], kernel_shape=[3, 3], pads=[1] * 4),
    'a body': inside_if,
}

# ONNX Runtime begins with opset 7: what came before is compared with numpy.
EXPECTED = {
    'broadcast by axis': lambda x: [x + f32(3).reshape(3, 1, 1)],
    'broadcast of a suffix': lambda x: [x * f32(4, 5)],
    'broadcast of an input': lambda x, z: [x - z[..., None]],
    'BatchNormalization': lambda x: [
        (x - f32(3).reshape(3, 1, 1)) / np.sqrt(np.abs(f32(3)) + 1e-5).reshape(3, 1, 1)
        * f32(3).reshape(3, 1, 1) + f32(3).reshape(3, 1, 1)],
    'Dropout': lambda x: [x],
    'Gemm': lambda x: [x @ f32(3, 4) + f32(4)],
    'PRelu': lambda x: [np.where(x < 0, x * f32(3).reshape(3, 1, 1), x)],
}

# Name to model and what the refusal must say.
REFUSED = {
    'training Dropout': (lambda: one(6, 'Dropout', [2, 3]), 'node', 'training'),
    'training BatchNormalization': (
        lambda: one(6, 'BatchNormalization', [2, 3, 4],
                    [f32(3), f32(3), f32(3), np.abs(f32(3))]), 'node', 'training'),
    'statistics of positions': (
        lambda: one(7, 'BatchNormalization', [2, 3], [f32(3)] * 4, spatial=0), 'node', 'position'),
    'nearest that shrinks': (
        lambda: one(9, 'Upsample', [1, 2, 4, 4], [np.array([1, 1, .5, 2], np.float32)]), 'node',
        'smaller'),
    'run-time scales': (
        lambda: model(10, [helper.make_node('Resize', ['x', 's'], ['y'], name='node')],
                      [value('x', [1, 1, 2, 2]), value('s', [4])], ['y']), 'node', 'constant'),
    'Softmax of unknown rank': (
        lambda: model(12, [helper.make_node('Reshape', ['x', 's'], ['r']),
                           helper.make_node('Softmax', ['r'], ['y'], name='node')],
                      [value('x', [4, 6]), value('s', [None], TensorProto.INT64)], ['y']), 'node',
        'rank'),
    'a used mask': (
        lambda: one(10, 'Dropout', [2, 3], outputs=('y', 'm')), 'node', 'mask'),
    'group norm': (
        lambda: one(18, 'GroupNormalization', [1, 4, 3], [f32(2), f32(2)], num_groups=2), 'node',
        'group'),
    'an operator not known': (lambda: one(9, 'Unheard', [2, 3]), 'node', 'not known'),
    'too old': (lambda: one(5, 'Relu', [2, 3]), 'opset 5', 'from 6 on'),
}


def rules(program, work):
    wrong = 0
    for name, make in GOOD.items():
        path, out = os.path.join(work, 'a.onnx'), os.path.join(work, 'b.onnx')
        m = make()
        onnx.save(m, path)
        for opset in TARGETS:
            if opset <= m.opset_import[0].version:
                continue
            done = subprocess.run([program, str(opset), path, out], capture_output=True, text=True)
            why = (judge(path, out, opset, EXPECTED.get(name)) if done.returncode == 0
                   else done.stdout.strip())
            if why and not (why == 'skip' and name == 'RoiAlign'):
                print(f'{name} to {opset}: {why}')
                wrong += 1
    for name, (make, *words) in REFUSED.items():
        path, out = os.path.join(work, 'a.onnx'), os.path.join(work, 'c.onnx')
        onnx.save(make(), path)
        done = subprocess.run([program, '24', path, out], capture_output=True, text=True)
        if done.returncode != 1 or os.path.exists(out) or not all(w in done.stdout for w in words):
            print(f'{name}: not refused as it should: {done.returncode} {done.stdout.strip()}')
            wrong += 1
    # A model whose opset was changed by hand, its nodes left alone, must not pass as raised.
    seen = 0
    for name in ('Softmax of rank 4', 'Clip', 'Squeeze', 'RoiAlign', 'Upsample nearest 7'):
        m = onnx.shape_inference.infer_shapes(GOOD[name]())
        path, out = os.path.join(work, 'a.onnx'), os.path.join(work, 'b.onnx')
        onnx.save(m, path)
        m.opset_import[0].version = 17
        onnx.save(m, out)
        seen += judge(path, out, 17) not in (None, 'skip')
    if seen < 5:
        print(f'only {seen} of 5 models with a wrong opset were noticed')
        wrong += 1
    print(f'{len(GOOD)} rules, {len(REFUSED)} refusals, {wrong} wrong')
    return wrong


# ---- backend tests and real models -------------------------------------------------------------

def opset_of(path):
    """The standard domain's version; 0 where the model cannot be read."""
    try:
        m = onnx.load(path, load_external_data=False)
    except Exception:
        return 0
    return max([o.version for o in m.opset_import if o.domain in ('', 'ai.onnx')], default=0)


def models(program, paths, work):
    wrong, raised, skipped = 0, 0, 0
    reasons = collections.Counter()
    opsets = {p: opset_of(p) for p in paths}
    for opset in (17, 24):
        pairs = [(p, os.path.join(work, f'{opset}_{i}.onnx')) for i, p in enumerate(paths)
                 if 6 <= opsets[p] < opset]
        with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
            f.writelines(f'{a}\t{b}\n' for a, b in pairs)
            f.flush()
            done = subprocess.run([program, str(opset), '-b', f.name], capture_output=True,
                                  text=True)
        wrong += done.returncode != 0
        for line in done.stdout.splitlines():
            reasons[re.sub(r"'[^']*'", "'..'", line.split(': ', 1)[1])] += 1
        for a, b in pairs:
            if not os.path.exists(b):
                continue
            why = judge(a, b, opset)
            raised += why is None
            skipped += why == 'skip'
            if why not in (None, 'skip'):
                print(f'{a} to {opset}: {why}')
                wrong += 1
            os.remove(b)
    for reason, n in reasons.most_common():
        print(f'{n:5} refused: {reason}')
    print(f'{raised} raised, {skipped} not run, {sum(reasons.values())} refused, {wrong} wrong')
    if raised < LEAST_RAISED:
        print('too few models')
        wrong += 1
    return wrong


# ---- the command line --------------------------------------------------------------------------

def gelu_chain():
    """GELU by Mul(1/sqrt 2) and the square of a norm as a product: both win in another form."""
    def scalar(v):
        return np.array(v, np.float32)
    n = helper.make_node
    nodes = [n('Mul', ['x', 'r'], ['a']), n('Erf', ['a'], ['b']), n('Add', ['b', 'one'], ['c']),
             n('Mul', ['c', 'half'], ['d']), n('Mul', ['x', 'd'], ['e']),
             n('ReduceMean', ['e'], ['f'], axes=[-1]), n('Sub', ['e', 'f'], ['g']),
             n('Mul', ['g', 'g'], ['h']), n('ReduceMean', ['h'], ['i'], axes=[-1]),
             n('Add', ['i', 'eps'], ['j']), n('Sqrt', ['j'], ['k']), n('Div', ['g', 'k'], ['y'])]
    return model(12, nodes, [value('x', [64, 768])], ['y'],
                 [('r', scalar(0.70710678)), ('one', scalar(1)), ('half', scalar(0.5)),
                  ('eps', scalar(1e-5))])


def command_line(petopt, work):
    path, out = os.path.join(work, 'a.onnx'), os.path.join(work, 'b.onnx')
    wrong = 0

    def run(m, *options):
        onnx.save(onnx.shape_inference.infer_shapes(m), path)
        if os.path.exists(out):
            os.remove(out)
        return subprocess.run([petopt, path, '-o', out, '-q', '--cache', work + '/cache', *options],
                              capture_output=True, text=True)

    for options, versions in ((['--opset', '20'], (12, 20)), ([], (12,)),
                              (['--opset', '20', '-O0'], (12,))):
        done = run(gelu_chain(), *options)
        version = onnx.load(out).opset_import[0].version if done.returncode == 0 else None
        if version not in versions or judge(path, out, version):
            print(f'{options}: exit {done.returncode}, opset {version}: {done.stderr.strip()}')
            wrong += 1
    for options, words in ((['--opset', '30'], '30'), (['--opset', '11'], '11')):
        done = run(gelu_chain(), *options)
        if done.returncode != 2 or words not in done.stderr or os.path.exists(out):
            print(f'{options}: exit {done.returncode}: {done.stderr.strip()}')
            wrong += 1
    done = run(REFUSED['nearest that shrinks'][0](), '--opset', '17')
    if done.returncode != 2 or "'node'" not in done.stderr or os.path.exists(out):
        print(f'a refused node: exit {done.returncode}: {done.stderr.strip()}')
        wrong += 1
    print(f'6 command lines, {wrong} wrong')
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--program')
    p.add_argument('--petopt')
    p.add_argument('--rules', action='store_true')
    p.add_argument('--data')
    p.add_argument('--models')
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as work:
        if a.petopt:
            return 1 if command_line(a.petopt, work) else 0
        if a.rules:
            return 1 if rules(a.program, work) else 0
        paths = sorted(glob.glob(os.path.join(a.data, '**', '*.onnx'), recursive=True))
        paths += sorted(glob.glob(os.path.join(a.models, '*.onnx')))
        return 1 if models(a.program, paths, work) else 0


if __name__ == '__main__':
    sys.exit(main())
