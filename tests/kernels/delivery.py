#!/usr/bin/env python3
"""Models that carry calls of kernels: with their library, without it, with another's, on several
threads, at every optimisation level, inside If, with wrong shapes, and through petopt again.

  delivery.py --make KERNELS_MAKE --petopt PETOPT [--only NAME]
"""
import argparse
import os
import subprocess
import sys
import tempfile
import threading

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import onnxruntime as ort

LEVELS = [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
          ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, ort.GraphOptimizationLevel.ORT_ENABLE_ALL]
DOMAIN = 'petopt.kernels'


def dense(rng, x, rows, inner, columns, tag, into, y=None):
    """Nodes of Relu(x w + b); initialisers are appended to `into`."""
    into.append(numpy_helper.from_array(
        rng.standard_normal((inner, columns)).astype(np.float32), f'w{tag}'))
    into.append(numpy_helper.from_array(
        rng.standard_normal(columns).astype(np.float32), f'b{tag}'))
    return [helper.make_node('MatMul', [x, f'w{tag}'], [f'p{tag}']),
            helper.make_node('Add', [f'p{tag}', f'b{tag}'], [f's{tag}']),
            helper.make_node('Relu', [f's{tag}'], [y or f'y{tag}'], name=f'dense{tag}')]


def chain(sizes, seed=1, ir=8, opset=17, rows=6):
    rng = np.random.default_rng(seed)
    weights, nodes, x = [], [], 'x'
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        nodes += dense(rng, x, rows, a, b, i, weights)
        x = f'y{i}'
    nodes.append(helper.make_node('Softmax', [x], ['out']))
    inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, [rows, sizes[0]])]
    if ir < 4:
        inputs += [helper.make_tensor_value_info(w.name, TensorProto.FLOAT, w.dims)
                   for w in weights]
    graph = helper.make_graph(
        nodes, 'chain', inputs,
        [helper.make_tensor_value_info('out', TensorProto.FLOAT, [rows, sizes[-1]])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=ir)


def branches():
    """A dense layer in each branch of an If, and one before it."""
    rng = np.random.default_rng(3)
    weights = []
    nodes = dense(rng, 'x', 4, 8, 8, 'a', weights)
    bodies = []
    for tag in ('t', 'e'):
        own = []
        body = dense(rng, 'ya', 4, 8, 5, tag, own, f'out_{tag}')
        bodies.append(helper.make_graph(
            body, f'branch_{tag}', [],
            [helper.make_tensor_value_info(f'out_{tag}', TensorProto.FLOAT, [4, 5])], own))
    nodes.append(helper.make_node('If', ['c'], ['out'], then_branch=bodies[0],
                                  else_branch=bodies[1]))
    graph = helper.make_graph(
        nodes, 'branches',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, 8]),
         helper.make_tensor_value_info('c', TensorProto.BOOL, [])],
        [helper.make_tensor_value_info('out', TensorProto.FLOAT, [4, 5])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


class Made:
    """A model and its dual-mode form with its library, in a folder."""

    def __init__(self, args, root, name, model, flags=None):
        self.folder = os.path.join(root, name)
        os.makedirs(self.folder)
        self.plain = os.path.join(self.folder, 'in.onnx')
        self.dual = os.path.join(self.folder, 'out.onnx')
        self.kernels = os.path.join(self.folder, 'kernels')
        self.library = os.path.join(self.kernels, 'libpetopt_kernels.so')
        onnx.save(model, self.plain)
        command = [args.make, self.plain, self.dual, self.kernels] + ([flags] if flags else [])
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.said = done.stdout


def session(path, library=None, level=LEVELS[-1], threads=1, profile=None, override=None, isa=None):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = level
    options.intra_op_num_threads = threads
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = profile
    for name, value in (override or {}).items():
        options.add_free_dimension_override_by_name(name, value)
    if isa:
        options.add_session_config_entry('petopt.isa', isa)
    if library:
        options.register_custom_ops_library(library)
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])


def operators(s):
    """Names of the operators that ran, from the runtime's own profile."""
    import json
    with open(s.end_profiling(), encoding='utf-8') as f:
        events = json.load(f)
    return [e['args']['op_name'] for e in events
            if e.get('cat') == 'Node' and 'op_name' in e.get('args', {})]


def feed_of(s, seed=5):
    rng = np.random.default_rng(seed)
    feed = {}
    for i in s.get_inputs():
        shape = [d if isinstance(d, int) else 6 for d in i.shape]
        feed[i.name] = (np.array(True) if i.type == 'tensor(bool)'
                        else rng.standard_normal(shape).astype(np.float32))
    return feed


def close(a, b):
    return np.abs(a - b).max() <= 1e-5 * max(1e-30, np.abs(a).max())


def ran(made, feed, library, profile, isa=None):
    s = session(made.dual, library, profile=os.path.join(made.folder, profile), isa=isa)
    out = s.run(None, feed)[0]
    names = operators(s)
    return out, sum(n.startswith('Test_') for n in names), sum(n == 'MatMul' or 'Gemm' in n
                                                               for n in names)


# --- the tests: each takes what it makes files with, and asserts ---

def test_stock_and_kernels(args, root):
    """The checker passes; at every level stock and kernels give the original's answer."""
    made = Made(args, root, 'levels', chain([10, 7, 16, 5]))
    model = onnx.load(made.dual)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 8 and len(model.functions) == 3
    assert {o.domain: o.version for o in model.opset_import} == {'': 17, DOMAIN: 1}
    feed = feed_of(session(made.plain))
    want = session(made.plain).run(None, feed)[0]
    for level in LEVELS:
        assert close(want, session(made.dual, None, level).run(None, feed)[0])
        assert close(want, session(made.dual, made.library, level).run(None, feed)[0])
    out, kernels, products = ran(made, feed, made.library, 'with')
    assert close(want, out) and kernels == 3 and products == 0, (kernels, products)
    out, kernels, products = ran(made, feed, None, 'without')
    assert close(want, out) and kernels == 0 and products == 3, (kernels, products)
    names = sorted(os.listdir(made.kernels))
    assert 'README.md' in names and 'libpetopt_kernels.so' in names
    assert all(n.endswith(('.c', '.h', '.def', '.so', '.md')) for n in names), names


def test_other_library(args, root):
    """The library of another model leaves the fallback in place; both at once do not disturb."""
    a = Made(args, root, 'a', chain([10, 7, 16, 5]))
    b = Made(args, root, 'b', chain([12, 9, 3], seed=2))
    for made, other in ((a, b), (b, a)):
        feed = feed_of(session(made.plain))
        want = session(made.plain).run(None, feed)[0]
        out, kernels, products = ran(made, feed, other.library, 'other')
        assert close(want, out) and kernels == 0 and products > 0


def test_instruction_sets(args, root):
    """Each instruction set alone; none: the fallback."""
    made = Made(args, root, 'isa', chain([10, 7, 5]))
    feed = feed_of(session(made.plain))
    want = session(made.plain).run(None, feed)[0]
    flags = open('/proc/cpuinfo', encoding='utf-8').read()
    for isa, expected in ((None, 2), ('avx512', 2), ('avx2', 2), ('none', 0)):
        out, kernels, _ = ran(made, feed, made.library, f'isa_{isa}', isa)
        if isa == 'avx512' and 'avx512vl' not in flags:
            expected = 0
        assert close(want, out) and kernels == expected, (isa, kernels)
    try:
        session(made.dual, made.library, isa='sse2')
        raise AssertionError('an instruction set that is not there was taken')
    except ort.capi.onnxruntime_pybind11_state.InvalidArgument as e:
        assert 'petopt.isa' in str(e), e


def test_threads(args, root):
    """Eight threads on one session give the bits of one; so do pools of other sizes."""
    made = Made(args, root, 'threads', chain([64, 48, 32, 40], rows=64))
    one = session(made.dual, made.library)
    feeds = [feed_of(one, seed) for seed in range(8)]
    want = [one.run(None, f)[0] for f in feeds]
    for threads in (1, 2, 5):
        s = session(made.dual, made.library, threads=threads)
        wrong = []

        def work(i):
            for _ in range(200):
                if not np.array_equal(s.run(None, feeds[i])[0], want[i]):
                    wrong.append(i)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        assert not wrong, (threads, wrong)


def test_wrong_shape(args, root):
    """A call with other shapes than the kernel's fails, saying so, and the next one works."""
    model = chain([10, 7, 5])
    made = Made(args, root, 'shape', model)
    dual = onnx.load(made.dual)
    dual.graph.input[0].type.tensor_type.shape.dim[0].dim_param = 'rows'
    dual.graph.output[0].type.tensor_type.shape.dim[0].dim_param = 'rows'
    path = os.path.join(made.folder, 'open.onnx')
    onnx.save(dual, path)
    s = session(path, made.library)
    right = np.ones((6, 10), np.float32)
    want = s.run(None, {'x': right})[0]
    for rows in (1, 5, 7, 600):
        try:
            s.run(None, {'x': np.ones((rows, 10), np.float32)})
            raise AssertionError(f'{rows} rows were taken')
        except Exception as e:
            assert 'petopt.kernels' in str(e) and f'[{rows},10]' in str(e), e
    assert np.array_equal(want, s.run(None, {'x': right})[0])
    # A weight of the wrong size is found when the session is made.
    for w in dual.graph.initializer:
        if w.name.startswith('packed'):
            w.CopyFrom(numpy_helper.from_array(np.ones((1, 2, 4), np.float32), w.name))
            break
    onnx.save(dual, path)
    try:
        session(path, made.library)
        raise AssertionError('a weight of the wrong size was taken')
    except Exception as e:
        assert 'elements' in str(e), e


def test_branches(args, root):
    """Calls inside the branches of an If, and inside another function."""
    made = Made(args, root, 'branches', branches())
    assert '3 calls, 2 kernels' in made.said, made.said
    onnx.checker.check_model(onnx.load(made.dual), full_check=True)
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    for c in (True, False):
        feed = {'x': x, 'c': np.array(c)}
        want = session(made.plain).run(None, feed)[0]
        for level in LEVELS:
            assert close(want, session(made.dual, None, level).run(None, feed)[0])
            assert close(want, session(made.dual, made.library, level).run(None, feed)[0])
        s = session(made.dual, made.library, profile=os.path.join(made.folder, 'p'))
        s.run(None, feed)
        assert sum(n.startswith('Test_') for n in operators(s)) == 2
    nested = Made(args, root, 'nested', chain([10, 7, 5]))
    model = onnx.load(nested.dual)
    call = next(n for n in model.graph.node if n.domain == DOMAIN)
    outer = helper.make_function(
        'user.own', 'Wrapped', list(call.input), list(call.output), [call],
        [helper.make_opsetid('', 17), helper.make_opsetid(DOMAIN, 1)])
    model.functions.append(outer)
    model.opset_import.append(helper.make_opsetid('user.own', 1))
    wrapped = helper.make_node('Wrapped', list(call.input), list(call.output), domain='user.own')
    at = list(model.graph.node).index(call)
    model.graph.node.remove(call)
    model.graph.node.insert(at, wrapped)
    path = os.path.join(nested.folder, 'nested.onnx')
    onnx.save(model, path)
    feed = feed_of(session(nested.plain))
    want = session(nested.plain).run(None, feed)[0]
    for library in (None, nested.library):
        s = session(path, library, profile=os.path.join(nested.folder, 'n'))
        assert close(want, s.run(None, feed)[0])
        assert sum(n.startswith('Test_') for n in operators(s)) == (2 if library else 0)


def test_load_and_unload(args, root):
    """Sessions come and go, in a process of their own, which then ends well."""
    made = Made(args, root, 'unload', chain([10, 7, 5]))
    code = '''
import sys, gc, numpy as np, onnxruntime as ort
for _ in range(3):
    two = []
    for k in range(2):
        o = ort.SessionOptions()
        o.register_custom_ops_library(sys.argv[2])
        two.append(ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider']))
    for s in two:
        s.run(None, {'x': np.ones((6, 10), np.float32)})
    del s, o, two
    gc.collect()
    mapped = 'libpetopt_kernels' in open('/proc/self/maps').read()
    print('mapped' if mapped else 'gone')
'''
    done = subprocess.run([sys.executable, '-c', code, made.dual, made.library],
                          capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert len(done.stdout.split()) == 3, done.stdout


def test_old_models(args, root):
    """The IR version rises to 8 where it is lower; inputs that are weights leave the list."""
    for ir, opset, inputs in ((3, 9, 1), (4, 9, 1), (7, 13, 1), (9, 19, 1)):
        made = Made(args, root, f'ir{ir}', chain([10, 7, 5], ir=ir, opset=opset))
        model = onnx.load(made.dual)
        onnx.checker.check_model(model, full_check=True)
        assert model.ir_version == max(ir, 8), model.ir_version
        assert len(model.graph.input) == inputs, [i.name for i in model.graph.input]
        x = np.random.default_rng(1).standard_normal((6, 10)).astype(np.float32)
        want = session(made.plain).run(None, {'x': x})[0]
        for library in (None, made.library):
            assert close(want, session(made.dual, library).run(None, {'x': x})[0])


def petopt(args, *words):
    return subprocess.run([args.petopt, *words], capture_output=True, text=True)


def test_old_model_through_petopt(args, root):
    """What lists its weights as inputs gets kernels, and reads back as what was meant."""
    before, after = (os.path.join(root, name) for name in ('old.onnx', 'new.onnx'))
    onnx.save(chain([24, 64, 48], ir=3, opset=9), before)
    done = petopt(args, before, '-o', after, '--kernels', os.path.join(root, 'k'), '--skip',
                  'postopt', '--skip', 'select', '--cost', 'model', '--cache', 'none')
    assert done.returncode == 0 and 'won: kernels' in done.stdout, done.stdout + done.stderr
    assert 'IR version rises from 3 to 8' in done.stdout, done.stdout


def test_through_petopt(args, root):
    """petopt sees through the calls: it proves the model, measures it, and optimises it again."""
    made = Made(args, root, 'again', chain([10, 7, 16, 5]))
    done = petopt(args, 'verify', made.plain, made.dual)
    assert done.returncode == 0 and 'equal' in done.stdout, done.stdout + done.stderr
    assert '\nproved:' in done.stdout, done.stdout
    done = petopt(args, 'verify', made.plain, made.dual, '--library', made.library)
    assert done.returncode == 0 and '\nproved:' in done.stdout, done.stdout + done.stderr
    done = petopt(args, 'bench', made.plain, made.dual, '--library', made.library, '--threads', '1')
    assert done.returncode == 0, done.stderr
    again = os.path.join(made.folder, 'again.onnx')
    done = petopt(args, made.dual, '-o', again, '-O1', '--cost', 'model', '--cache', 'none')
    assert done.returncode == 0, done.stderr
    feed = feed_of(session(made.plain))
    want = session(made.plain).run(None, feed)[0]
    assert close(want, session(again).run(None, feed)[0])
    model = onnx.load(again)
    if not any(n.domain == DOMAIN for n in model.graph.node):
        assert not any(f.domain == DOMAIN for f in model.functions)
        assert not any(o.domain == DOMAIN for o in model.opset_import)


def test_wrong_kernel(args, root):
    """A library whose kernel computes something else is found out."""
    made = Made(args, root, 'wrong', chain([10, 7, 5]))
    done = petopt(args, 'verify', made.plain, made.dual, '--library', made.library)
    assert done.returncode == 0
    text = open(os.path.join(made.kernels, 'README.md'), encoding='utf-8').read()
    commands = [l.strip() for l in text.splitlines() if l.startswith('    cc ')]
    for name in os.listdir(made.kernels):
        if name.startswith('Test_'):
            path = os.path.join(made.kernels, name)
            code = open(path, encoding='utf-8').read()
            assert 'sum[n % P] > 0' in code
            open(path, 'w', encoding='utf-8').write(code.replace('sum[n % P] > 0',
                                                                 'sum[n % P] > 0.5f'))
    for c in commands:  # as the README says
        subprocess.run(c, shell=True, check=True, cwd=made.kernels)
    done = petopt(args, 'verify', made.plain, made.dual, '--library', made.library)
    assert done.returncode == 1 and 'not equal' in done.stdout, done.stdout + done.stderr


def convolutions(ir=7):
    """Small, with static shapes, of what petopt makes kernels for."""
    rng = np.random.default_rng(4)
    weights = [numpy_helper.from_array(
        rng.standard_normal(shape).astype(np.float32) / 10, name)
        for name, shape in (('w0', (24, 3, 3, 3)), ('b0', (24,)), ('w1', (20, 24, 3, 3)))]
    nodes = [helper.make_node('Conv', ['x', 'w0', 'b0'], ['c0'], pads=[1, 1, 1, 1]),
             helper.make_node('Relu', ['c0'], ['r0']),
             helper.make_node('Conv', ['r0', 'w1'], ['c1'], pads=[1, 1, 1, 1], strides=[2, 2]),
             helper.make_node('Relu', ['c1'], ['out'])]
    graph = helper.make_graph(
        nodes, 'convolutions', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info('out', TensorProto.FLOAT, [1, 20, 8, 8])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=ir)


def test_generated(args, root):
    """The whole way: petopt --kernels, its message followed to the letter, verify, certificate."""
    onnx.save(convolutions(), os.path.join(root, 'in.onnx'))

    def run(*words):
        return subprocess.run([args.petopt, *words], capture_output=True, text=True, cwd=root)

    done = run('in.onnx', '-o', 'out.onnx', '--kernels', 'dir', '--skip', 'postopt', '--skip',
               'select', '--cache', 'none', '--json', 'run.json')
    assert done.returncode == 0, done.stderr
    assert 'won: kernels' in done.stdout and 'IR version rises from 7 to 8' in done.stdout, done
    library = os.path.join('dir', 'libpetopt_kernels.so')
    import json
    told = json.load(open(os.path.join(root, 'run.json'), encoding='utf-8'))
    assert told['library'] == library and told['kernels'] >= 1
    assert sorted(os.listdir(root)) == ['dir', 'in.onnx', 'out.onnx', 'out.onnx.cert', 'run.json']
    lines = done.stdout.splitlines()
    python = [l.strip() for l in lines[lines.index('Python:') + 1:lines.index('C:')]]
    code = '\n'.join(['import onnxruntime, numpy', *python,
                      "x = numpy.ones((1, 3, 16, 16), numpy.float32)",
                      "print(repr(float(session.run(None, {'x': x})[0].sum())))"])
    ran_so = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=root)
    assert ran_so.returncode == 0, ran_so.stderr
    x = np.ones((1, 3, 16, 16), np.float32)
    want = session(os.path.join(root, 'in.onnx')).run(None, {'x': x})[0]
    assert abs(float(ran_so.stdout) - want.sum()) <= 1e-4 * np.abs(want).sum()
    onnx.checker.check_model(onnx.load(os.path.join(root, 'out.onnx')), full_check=True)
    for words in ([], ['--library', library]):
        done = run('verify', 'in.onnx', 'out.onnx', *words)
        assert done.returncode == 0 and '\nproved:' in done.stdout, done.stdout + done.stderr
    with open(os.path.join(root, library), 'ab') as f:
        f.write(b'more')
    done = run('verify', 'in.onnx', 'out.onnx', '--library', library)
    assert 'not of this library' in done.stdout, done.stdout


def test_faults(args, root):
    """What cannot be done is said in one sentence before the work, and nothing is left behind."""
    onnx.save(convolutions(), os.path.join(root, 'in.onnx'))
    with open(os.path.join(root, 'file'), 'w', encoding='utf-8') as f:
        f.write('x')
    half = os.path.join(root, 'half.sh')
    with open(half, 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "sorry: no"\nexit 1\n')
    os.chmod(half, 0o755)
    before = sorted(os.listdir(root))

    def run(*words):
        return subprocess.run([args.petopt, 'in.onnx', '--skip', 'postopt', '--skip', 'select',
                               '--cache', 'none', '-q', *words], capture_output=True, text=True, cwd=root)

    for words, says in ((['--kernels', 'dir', '--cc', '/nonexistent'], '/nonexistent'),
                        (['--kernels', 'dir', '--cc', 'false'], "'false'"),
                        (['--kernels', 'file'], 'no folder'),
                        (['--kernels', 'file/dir'], 'file/dir'),
                        (['--kernels', 'nowhere/dir'], 'nowhere/dir'),
                        (['--kernels', ''], '--kernels')):
        done = run('-o', 'out.onnx', *words)
        assert done.returncode == 2, (words, done)
        assert done.stderr.count('\n') == 1 and says in done.stderr, done.stderr
        assert sorted(os.listdir(root)) == before, os.listdir(root)
    # A compiler that fails takes the kernels with it, and nothing else.
    done = run('-o', 'out.onnx', '--kernels', 'dir', '--cc', half)
    assert done.returncode == 0 and not done.stderr, done
    assert sorted(os.listdir(root)) == before + ['out.onnx'], os.listdir(root)
    os.remove(os.path.join(root, 'out.onnx'))
    # Nothing to make kernels of (as many columns as there are numbers above 0), and none asked for.
    model = helper.make_model(helper.make_graph(
        [helper.make_node('NonZero', ['x'], ['i']),
         helper.make_node('Cast', ['i'], ['f'], to=TensorProto.FLOAT), helper.make_node('Exp', ['f'], ['y'])],
        'open', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, 'rows'])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [2, 'found'])]),
        opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.save(model, os.path.join(root, 'open.onnx'))
    for words, says in ((['open.onnx', '--cost', 'model'], 'lengths open'),
                        (['in.onnx', '-O0'], '-O0')):
        done = subprocess.run([args.petopt, *words, '-o', 'out.onnx', '--kernels', 'dir', '--cache',
                               'none'], capture_output=True, text=True, cwd=root)
        assert done.returncode == 0 and 'no kernels are written' in done.stdout, done
        assert says in done.stdout and not os.path.exists(os.path.join(root, 'dir')), done.stdout
    for name in ('open.onnx', 'out.onnx', 'out.onnx.cert'):
        if os.path.exists(os.path.join(root, name)):
            os.remove(os.path.join(root, name))
    # The model cannot be written: nor is the library.
    done = run('-o', 'nowhere/out.onnx', '--kernels', 'dir')
    assert done.returncode == 2 and sorted(os.listdir(root)) == before, (done, os.listdir(root))
    # The library cannot be written: nor is the model.
    os.makedirs(os.path.join(root, 'dir', 'README.md'))
    done = run('-o', 'out.onnx', '--kernels', 'dir')
    assert done.returncode == 2 and done.stderr.count('\n') == 1, done
    assert not os.path.exists(os.path.join(root, 'out.onnx'))
    assert os.listdir(os.path.join(root, 'dir')) == ['README.md']


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--make', required=True)
    p.add_argument('--petopt', required=True)
    p.add_argument('--only')
    args = p.parse_args()
    tests = [(n[5:], f) for n, f in sorted(globals().items()) if n.startswith('test_')]
    failed = 0
    for name, fn in tests:
        if args.only and args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as root:
            try:
                fn(args, root)
                print(f'ok    {name}')
            except Exception as e:
                failed += 1
                print(f'FAIL  {name}: {type(e).__name__}: {e}')
    print(f'{len(tests)} tests, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
