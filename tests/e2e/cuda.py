#!/usr/bin/env python3
"""petopt with --target cuda, without a GPU: what is written is a model that stock runtimes run, and
kernels that do the same, run by the emulated driver of tests/cuda.

  cuda.py --petopt PROGRAM --emulated FOLDER --declared FOLDER --shim LIBRARY
"""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import cases
from cases import expect

os.environ['CUDA_VISIBLE_DEVICES'] = ''  # a real GPU is none of these tests'; the emulated driver does not look

LIBRARY = 'libpetopt_kernels.so'


def tensor(name, values, dtype):
    return numpy_helper.from_array(np.asarray(values).astype(dtype), name)


def model_of(nodes, weights, inputs, outputs, dtype, opset=17):
    element = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info(n, element, s) for n, s in inputs],
                              [helper.make_tensor_value_info(n, element, s) for n, s in outputs], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8)


def norm_and_linear(rng):
    """RMSNorm and a linear layer, f16: y = (x / sqrt(mean(x x) + e) * g) w."""
    f = np.float16
    weights = [tensor('two', 2, f), tensor('e', 1e-3, f), tensor('g', rng.uniform(0.5, 1.5, 64), f),
               tensor('w', rng.standard_normal((64, 96)) / 8, f)]
    nodes = [helper.make_node('Pow', ['x', 'two'], ['s']),
             helper.make_node('ReduceMean', ['s'], ['m'], axes=[-1], keepdims=1),
             helper.make_node('Add', ['m', 'e'], ['a']), helper.make_node('Sqrt', ['a'], ['r']),
             helper.make_node('Div', ['x', 'r'], ['d']), helper.make_node('Mul', ['d', 'g'], ['n']),
             helper.make_node('MatMul', ['n', 'w'], ['y'])]
    return model_of(nodes, weights, [('x', [16, 64])], [('y', [16, 96])], f), 1e-2


def attention(rng):
    """softmax(q k / 4) v for each of four heads, f16."""
    f = np.float16
    nodes = [helper.make_node('Transpose', ['k'], ['t'], perm=[0, 2, 1]), helper.make_node('MatMul', ['q', 't'], ['p']),
             helper.make_node('Mul', ['p', 'scale'], ['c']), helper.make_node('Softmax', ['c'], ['s'], axis=-1),
             helper.make_node('MatMul', ['s', 'v'], ['y'])]
    shape = [4, 16, 16]
    return model_of(nodes, [tensor('scale', 0.25, f)], [(n, shape) for n in 'qkv'], [('y', shape)], f), 1e-2


def convolutions(rng):
    """A network with convolutions, which stay with cuDNN, and chains between them."""
    f = np.float32
    weights = [tensor('w0', rng.standard_normal((8, 3, 3, 3)) / 5, f), tensor('b0', rng.standard_normal(8), f),
               tensor('w1', rng.standard_normal((8, 8, 3, 3)) / 8, f), tensor('b1', rng.standard_normal(8), f),
               tensor('half', 0.5, f)]
    nodes = [helper.make_node('Conv', ['x', 'w0', 'b0'], ['c0'], pads=[1, 1, 1, 1]),
             helper.make_node('Sigmoid', ['c0'], ['g0']), helper.make_node('Mul', ['c0', 'g0'], ['y0']),
             helper.make_node('Conv', ['y0', 'w1', 'b1'], ['c1'], pads=[1, 1, 1, 1]),
             helper.make_node('Tanh', ['c1'], ['t1']), helper.make_node('Mul', ['t1', 'half'], ['h1']),
             helper.make_node('Add', ['h1', 'y0'], ['y'])]
    return model_of(nodes, weights, [('x', [1, 3, 12, 12])], [('y', [1, 8, 12, 12])], f), 1e-5


MODELS = {'norm_and_linear': norm_and_linear, 'attention': attention, 'convolutions': convolutions}


def feed_of(model, seed=5):
    rng = np.random.default_rng(seed)
    return {i.name: rng.standard_normal([d.dim_value for d in i.type.tensor_type.shape.dim]).astype(
        np.float16 if i.type.tensor_type.elem_type == TensorProto.FLOAT16 else np.float32) for i in model.graph.input}


def answers(path, feed, library=None, ran=None):
    """Outputs; `ran`: a set for the operators that ran."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.enable_profiling, options.profile_file_prefix = ran is not None, path
    if library:
        options.register_custom_ops_library(library)
    session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    outputs = session.run(None, feed)
    if ran is not None:
        profile = session.end_profiling()
        with open(profile, encoding='utf-8') as f:
            ran |= {e['args']['op_name'] for e in json.load(f) if e.get('cat') == 'Node' and
                    'op_name' in e.get('args', {})}
        os.unlink(profile)
    return outputs


def off(outputs, right):
    return max(float(np.abs(a.astype(float) - b).max() / np.abs(b).max()) for a, b in zip(outputs, right))


class Bed(cases.Bed):
    words = ['--target', 'cuda', '--kernels', 'k', '--cache', 'none']

    def emulated(self, driver=False):
        """Where NVRTC is the emulated one, and the driver too where asked for."""
        folder = self.path('emulated')
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(self.args.emulated):
            link = os.path.join(folder, name)
            if 'nvrtc' in name and not os.path.lexists(link):
                os.symlink(os.path.join(self.args.emulated, name), link)
        return {**os.environ, 'LD_LIBRARY_PATH': self.args.emulated if driver else folder}

    def optimised(self, name, *more, out='out.onnx', driver=False):
        if not os.path.exists(self.path('in.onnx')):
            model, self.limit = MODELS[name](np.random.default_rng(0))
            onnx.save(model, self.path('in.onnx'))
        code, said, err = self.run('in.onnx', '-o', out, *self.words, *more, env=self.emulated(driver))
        expect(code == 0, f'{name}: exit {code}: {said}{err}')
        return said + err

    def calls(self, path='out.onnx'):
        return [n for n in onnx.load(self.path(path)).graph.node if n.domain == 'petopt.kernels']

    def by_kernels(self, feed):
        """Outputs of the delivered library, built by its README for the CPU's provider."""
        with open(self.path('k', 'README.md'), encoding='utf-8') as f:
            commands = [line.strip() for line in f if line.startswith('    cc ')]
        expect(len(commands) > 3, commands)
        for c in commands:
            c = c.replace(f'-o {LIBRARY}', '-o on_cpu.so').replace(' -c ', ' -DPK_ON_CPU -c ')
            p = subprocess.run(c, cwd=self.path('k'), shell=True, capture_output=True, text=True, timeout=300)
            expect(p.returncode == 0, f'{c}: {p.stderr}')
        np.savez(self.path('feed.npz'), **feed)
        code = ('import ctypes, json, sys, numpy as np, os; sys.path.insert(0, sys.argv[1]);\n'
                'ctypes.CDLL("libcuda.so.1").emu_host(True)\n'
                'import cuda\n'
                'ran = set()\n'
                'out = cuda.answers("out.onnx", dict(np.load("feed.npz")), "k/on_cpu.so", ran)\n'
                'np.savez("got.npz", *out); print(json.dumps(sorted(ran))); sys.stdout.flush(); os._exit(0)')
        p = subprocess.run([sys.executable, '-B', '-c', code, os.path.dirname(os.path.abspath(__file__))],
                           cwd=self.folder, env=self.emulated(True), capture_output=True, text=True, timeout=600)
        expect(p.returncode == 0, f'on the emulated driver: {p.stderr[-900:]}')
        expect({n.op_type for n in self.calls()} <= set(json.loads(p.stdout)), f'only {p.stdout} ran')
        return list(np.load(self.path('got.npz')).values())


def look_at_delivery(bed):
    names = set(os.listdir(bed.path('k')))
    calls = {n.op_type for n in bed.calls()}
    wanted = {LIBRARY, 'README.md', 'petopt_kernels.c', 'petopt_table.c', 'petopt_table.h', 'petopt_cuda.h',
              'petopt_ort_cuda.h', 'petopt_ort_api.h', 'petopt_region.h', 'ort_slots.def', 'tensorrt'}
    wanted |= {f'{c}{end}' for c in calls for end in ('.cu', '_images.c')}
    expect(wanted <= names, f'missing: {sorted(wanted - names)}')
    expect(not any(n.startswith('.') for n in names), f'left behind: {names}')
    expect(set(os.listdir(bed.path('k', 'tensorrt'))) == {'petopt_plugin.cpp', 'CMakeLists.txt'}, 'tensorrt')
    for n in bed.calls():
        attributes = {a.name: a.s for a in n.attribute}
        expect(attributes == {'plugin_version': b'1', 'plugin_namespace': b'petopt.kernels'}, attributes)
    for command in (['cmake', '-S', 'k/tensorrt', '-B', 'b', f'-DTENSORRT_INCLUDE={bed.args.declared}'],
                    ['cmake', '--build', 'b']):
        p = subprocess.run(command, cwd=bed.folder, capture_output=True, text=True, timeout=300)
        expect(p.returncode == 0, f'{command}: {p.stdout}{p.stderr}')
    expect(os.path.exists(bed.path('b', 'libpetopt_tensorrt.so')), 'no plugins')


def one_model(bed, name):
    said = bed.optimised(name, '--json', 'r.json')
    onnx.checker.check_model(bed.path('out.onnx'), full_check=True)
    with open(bed.path('r.json'), encoding='utf-8') as f:
        told = json.load(f)
    expect('estimated for NVIDIA H200, not measured' in said, said)
    expect(told['latency'] is None and told['latency_estimated']['ratio'] > 1, told['latency_estimated'])
    expect(told['target'] == 'cuda' and told['gpu'] == 'NVIDIA H200', told['gpu'])
    expect(told['winner'] == 'kernels' and told['library'] == 'k/' + LIBRARY, told['winner'])
    made = [r for r in told['regions'] if not r['why']]
    expect(made and all(r['ms_estimated'] < r['ms_nodes'] for r in made), told['regions'])
    expect(all('registers' in s['schedule'] or 'blocks' in s['schedule'] for r in made for s in r['steps']), made)
    expect(bed.calls(), 'no calls of kernels')
    look_at_delivery(bed)

    # a stock runtime without a GPU: with the library and without it, by the functions
    for seed in (5, 6):
        feed = feed_of(onnx.load(bed.path('in.onnx')), seed)
        right = answers(bed.path('in.onnx'), feed)
        for library in (None, bed.path('k', LIBRARY)):
            got = answers(bed.path('out.onnx'), feed, library)
            expect(off(got, right) <= bed.limit, f'{library}: off by {off(got, right)}')
        got = bed.by_kernels(feed)
        expect(off(got, right) <= bed.limit, f'by kernels: off by {off(got, right)}')
    code, out, err = bed.run('verify', 'in.onnx', 'out.onnx')
    expect(code == 0 and 'proved' in out, f'verify: exit {code}: {out}{err}')


def case_norm_and_linear(bed):
    one_model(bed, 'norm_and_linear')


def case_attention(bed):
    one_model(bed, 'attention')


def case_convolutions(bed):
    one_model(bed, 'convolutions')
    kinds = [n.op_type for n in onnx.load(bed.path('out.onnx')).graph.node]
    expect(kinds.count('Conv') == 2, f'convolutions belong to the library: {kinds}')


def open_block(_):
    """A layer of a transformer whose batch is open; attention over a mask of each sample's own."""
    rng, f = np.random.default_rng(0), np.float32
    nodes, weights = [], []

    def weight(values):
        weights.append(tensor(f'w{len(weights)}', values, f))
        return weights[-1].name

    def make(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, list(inputs), [f't{len(nodes)}'], **attributes))
        return nodes[-1].output[0]

    def norm(x):
        return make('LayerNormalization', x, weight(rng.uniform(0.5, 1.5, 32)), weight(rng.standard_normal(32)), axis=-1)

    n = norm('x')
    q, k, v = (make('Transpose', make('Reshape', make('MatMul', n, weight(rng.standard_normal((32, 32)) / 5)), 'heads'),
                    perm=[0, 2, 1, 3]) for _ in range(3))
    p = make('Mul', make('MatMul', q, make('Transpose', k, perm=[0, 1, 3, 2])), weight(0.35))
    s = make('Softmax', make('Add', p, 'mask'), axis=-1)
    o = make('Reshape', make('Transpose', make('MatMul', s, v), perm=[0, 2, 1, 3]), 'flat')
    r = make('Add', 'x', o)
    nodes.append(helper.make_node('Tanh', [norm(r)], ['y']))
    weights.append(numpy_helper.from_array(np.array([0, 8, 4, 8]), 'heads'))
    weights.append(numpy_helper.from_array(np.array([0, 8, 32]), 'flat'))
    return model_of(nodes, weights, [('x', ['N', 8, 32]), ('mask', ['N', 1, 1, 8])], [('y', ['N', 8, 32])], f), 1e-5


def case_open_batch(bed):
    """Kernels of a model whose batch is open take any, and the model keeps it open."""
    onnx.save(open_block(None)[0], bed.path('in.onnx'))
    said = bed.optimised('open_block')
    expect('the batch is open' in said and 'won: kernels' in said, said)
    onnx.checker.check_model(bed.path('out.onnx'), full_check=True)
    for name in ('input', 'output'):
        values = [getattr(onnx.load(bed.path(p)).graph, name) for p in ('in.onnx', 'out.onnx')]
        expect(list(values[0]) == list(values[1]), f'another {name}')
    expect(len(bed.calls()) > 0, 'no calls of kernels')
    for seed, n in enumerate((1, 2, 5, 3, 0, 9)):
        rng = np.random.default_rng(seed)
        feed = {'x': rng.standard_normal((n, 8, 32)).astype(np.float32),
                'mask': np.where(rng.random((n, 1, 1, 8)) < 0.3, -1e4, 0).astype(np.float32)}
        right = answers(bed.path('in.onnx'), feed)
        for got in (answers(bed.path('out.onnx'), feed), bed.by_kernels(feed)):
            expect(got[0].shape == (n, 8, 32), got[0].shape)
            expect(n == 0 or off(got, right) <= 1e-5, f'{n} samples: off by {n and off(got, right)}')
    code, out, err = bed.run('verify', 'in.onnx', 'out.onnx')
    expect(code == 0 and 'proved' in out, f'verify: exit {code}: {out}{err}')


def case_open_and_mixed(bed):
    """Samples that have to do with one another get no kernel that takes them apart."""
    f = np.float32
    nodes = [helper.make_node('ReduceMean', ['x'], ['m'], axes=[0], keepdims=1),
             helper.make_node('Sub', ['x', 'm'], ['d']), helper.make_node('Exp', ['d'], ['e']),
             helper.make_node('Tanh', ['e'], ['t']), helper.make_node('Mul', ['t', 'x'], ['y'])]
    onnx.save(model_of(nodes, [], [('x', ['N', 64])], [('y', ['N', 64])], f), bed.path('in.onnx'))
    bed.optimised('mixed')
    for n in (1, 4, 7):
        feed = {'x': np.random.default_rng(n).standard_normal((n, 64)).astype(f)}
        right = answers(bed.path('in.onnx'), feed)
        for got in (answers(bed.path('out.onnx'), feed), bed.by_kernels(feed) if bed.calls() else right):
            expect(off(got, right) <= 1e-5, f'{n} samples: off by {off(got, right)}')
    # other open dims than the batch
    onnx.save(model_of(nodes[2:], [], [('d', ['N', 'length']), ('x', ['N', 'length'])], [('y', ['N', 'length'])], f),
              bed.path('in.onnx'))
    said = bed.optimised('mixed', out='open.onnx')
    expect('static shapes but for the batch' in said, said)


def case_same_bytes(bed):
    """Model and sources of two runs are the same."""
    for i in range(2):
        bed.optimised('norm_and_linear', out=f'out{i}.onnx')
        os.rename(bed.path('k'), bed.path(f'k{i}'))
    expect(bed.read('out0.onnx') == bed.read('out1.onnx'), 'another model')
    names = [sorted(os.listdir(bed.path(f'k{i}'))) for i in range(2)]
    expect(names[0] == names[1], names)
    for name in names[0]:
        if name in ('tensorrt', 'README.md', LIBRARY) or name.endswith('_images.c'):
            continue  # the emulated compiler's images hold names of temporary files
        expect(bed.read('k0', name) == bed.read('k1', name), f'{name} has other bytes')


def case_real_compiler(bed):
    """With the machine's own NVRTC, where there is one: every byte is the same, and nothing spills."""
    words = ['in.onnx', '--target', 'cuda', '--gpu', 'A100', '--kernels']
    model, _ = norm_and_linear(np.random.default_rng(0))
    onnx.save(model, bed.path('in.onnx'))
    for i in range(2):
        code, out, err = bed.run(*words, f'k{i}', '-o', f'out{i}.onnx', '--cache', 'none', '--json', 'r.json')
        if code == 2 and 'NVRTC' in err:
            print('        (no NVRTC here)')
            return
        expect(code == 0, f'exit {code}: {out}{err}')
    for name in sorted(os.listdir(bed.path('k0'))):
        if name not in ('tensorrt', 'README.md'):
            expect(bed.read('k0', name) == bed.read('k1', name), f'{name} has other bytes')
    with open(bed.path('r.json'), encoding='utf-8') as f:
        told = json.load(f)
    expect(told['gpu'] == 'NVIDIA A100', told['gpu'])
    for region in told['regions']:
        for step in region['steps']:
            expect(step['schedule'].count('registers, 0 bytes spilled') == 5, step['schedule'])


def case_no_gain(bed):
    """One operator: the original stays, and nothing is written beside it."""
    model = model_of([helper.make_node('Relu', ['x'], ['y'])], [], [('x', [4, 4])], [('y', [4, 4])], np.float32)
    onnx.save(model, bed.path('in.onnx'))
    said = bed.optimised('norm_and_linear')
    expect('won: original' in said and 'no kernels are written' in said, said)
    expect(not os.path.exists(bed.path('k')), 'a folder for nothing')


def case_refusals(bed):
    """One sentence, exit 2, and nothing is left behind."""
    onnx.save(attention(None)[0], bed.path('in.onnx'))
    before = sorted(os.listdir(bed.folder))
    for words, env, says in (
            (['--kernels', 'k'], {**os.environ, 'LD_PRELOAD': bed.args.shim}, 'NVRTC, which was not found'),
            (['--kernels', 'k', '--gpu', 'X1'], None, 'not a known GPU'),
            (['--kernels', 'in.onnx'], None, 'no folder')):
        code, out, err = bed.run('in.onnx', '-o', 'out.onnx', '--target', 'cuda', *words, env=env)
        expect(code == 2 and not out, f'{words}: exit {code}: {out}{err}')
        expect(len(err.strip().splitlines()) == 1 and says in err, f'{words}: {err!r}')
        expect(sorted(os.listdir(bed.folder)) == before, f'{words}: left {os.listdir(bed.folder)}')


if __name__ == '__main__':
    cases.main(sys.modules[__name__], Bed, ['petopt', 'emulated', 'declared', 'shim'])
