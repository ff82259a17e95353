#!/usr/bin/env python3
"""Libraries of CUDA kernels without a GPU: as operators of ONNX Runtime, where there is a driver and
where there is none, and as TensorRT plugins. Kernels are written by hand; they run in the emulator
of tests/cuda, which stands where the driver and NVRTC would.

  cuda.py --make DELIVERY_MAKE --drive DRIVE --petopt PETOPT --emulated FOLDER --declared FOLDER
"""
import ctypes
import json
import os
import subprocess
import sys
import threading

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
import cases
from cases import expect

os.environ['CUDA_VISIBLE_DEVICES'] = ''  # a real GPU is none of these tests'; the emulated driver does not look

LIBRARY = 'libpetopt_kernels.so'
TYPES = {'f32': (TensorProto.FLOAT, np.float32, 1e-5), 'f16': (TensorProto.FLOAT16, np.float16, 4e-3)}
BF16 = (TensorProto.BFLOAT16, None, 3e-2)  # of TensorRT alone: the runtime has no such product on the CPU
SIZES = [24, 40, 16]
ROWS = 6


def bits_of(values, kind):
    """As a tensor of the kind has them, bits of bf16 as integers."""
    if kind != 'bf16':
        return values.astype(TYPES[kind][1])
    u = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((u + 0x7fff + (u >> 16 & 1)) >> 16).astype(np.uint16)


def numbers_of(bits, kind):
    return (bits.astype(np.uint32) << 16).view(np.float32) if kind == 'bf16' else bits.astype(np.float32)


def constant(values, kind, name):
    bits = bits_of(values, kind)
    return helper.make_tensor(name, (TYPES | {'bf16': BF16})[kind][0], bits.shape, bits.tobytes(), raw=True)


def network(kind):
    """Two dense layers and an operator that has no kernel."""
    element = (TYPES | {'bf16': BF16})[kind][0]
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], 'x'
    for i, (a, b) in enumerate(zip(SIZES, SIZES[1:])):
        weights += [constant(rng.standard_normal((a, b)) / np.sqrt(a), kind, f'w{i}'),
                    constant(rng.standard_normal(b), kind, f'b{i}')]
        nodes += [helper.make_node('MatMul', [x, f'w{i}'], [f'p{i}']),
                  helper.make_node('Add', [f'p{i}', f'b{i}'], [f's{i}']),
                  helper.make_node('Relu', [f's{i}'], [f'y{i}'], name=f'dense{i}')]
        x = f'y{i}'
    nodes.append(helper.make_node('Softmax', [x], ['out']))
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', element, [ROWS, SIZES[0]])],
                              [helper.make_tensor_value_info('out', element, [ROWS, SIZES[-1]])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def feeds(kind, n=4):
    rng = np.random.default_rng(1)
    return [rng.standard_normal((ROWS, SIZES[0])).astype(TYPES[kind][1]) for _ in range(n)]


# --- in a process of its own: the driver is opened once in each ---

def session_of(ort, model, library, level=None):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if level is not None:
        options.graph_optimization_level = level
    if library:
        options.register_custom_ops_library(library)
    return options, lambda: ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])


def child(job):
    """What one process does: {'arch', 'model', 'library', 'feeds', 'out', 'threads', 'level'}."""
    import onnxruntime as ort
    if job.get('arch'):
        driver = ctypes.CDLL('libcuda.so.1')
        driver.emu_host(True)
        driver.emu_device(b'a device', job['arch'])
    levels = [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL]
    options, make = session_of(ort, job['model'], job['library'], levels[job.get('level', 1)])
    options.enable_profiling, options.profile_file_prefix = True, job['out']
    session = make()
    name = session.get_inputs()[0].name
    x = np.load(job['feeds'])
    out = [None] * len(x)

    out[0] = session.run(None, {name: x[0]})[0]

    def work(k):
        for i in range(k, len(x), job.get('threads', 1)):
            out[i] = session.run(None, {name: x[i]})[0]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(job.get('threads', 1))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    profile = session.end_profiling()
    with open(profile, encoding='utf-8') as f:
        ran = sorted({e['args']['op_name'] for e in json.load(f) if e.get('cat') == 'Node' and
                      'op_name' in e.get('args', {})})
    os.unlink(profile)
    np.save(job['out'], np.stack(out))
    print(json.dumps(ran))


class Bed(cases.Bed):
    def emulated(self):
        return {**os.environ, 'LD_LIBRARY_PATH': self.args.emulated}

    def made(self, kind, name='k', flags='-DPK_ON_CPU'):
        """The library that runs on the CPU's provider, made by the emulated compiler."""
        onnx.save(network(kind), self.path('in.onnx'))
        p = subprocess.run([self.args.make, 'in.onnx', 'out.onnx', name, flags], cwd=self.folder, env=self.emulated(),
                           capture_output=True, text=True, timeout=300)
        expect(p.returncode == 0, f'make: {p.stderr}')

    def outputs(self, kind, library='k/' + LIBRARY, driver=True, says=None, x=None, **job):
        """Outputs and the operators that ran; `says`: how it fails."""
        x = feeds(kind) if x is None else x
        np.save(self.path('x.npy'), np.stack(x))
        job = {'model': 'out.onnx', 'library': library, 'feeds': 'x.npy', 'out': 'y.npy', **job}
        env = self.emulated() if driver else {k: v for k, v in os.environ.items() if k != 'LD_LIBRARY_PATH'}
        p = subprocess.run([sys.executable, '-B', os.path.abspath(__file__), '--child', json.dumps(job)],
                           cwd=self.folder, env=env, capture_output=True, text=True, timeout=300)
        self.said = p.stderr
        if says is not None:
            expect(p.returncode != 0 and says in p.stderr, f'not refused by "{says}": {p.stdout}{p.stderr[-600:]}')
            return None, []
        expect(p.returncode == 0, f'{job}: {p.stderr[-900:]}')
        return np.load(self.path('y.npy')), json.loads(p.stdout.splitlines()[-1])

    def right(self, kind):
        return self.outputs(kind, None, False, model='in.onnx')[0]


def close(a, b, limit):
    a, b = a.astype(float), b.astype(float)
    return np.abs(a - b).max() <= limit * np.abs(b).max()


def kernels(ran):
    return [o for o in ran if o.startswith('Test_')]


# --- cases ---

def case_runs_by_kernels(bed):
    for kind, (_, _, limit) in TYPES.items():
        bed.made(kind, 'k' + kind)
        right = bed.right(kind)
        for job in ({'level': 0}, {'level': 1}, {'threads': 4, 'x': feeds(kind, 16)}):
            wanted = right if 'x' not in job else None
            got, ran = bed.outputs(kind, f'k{kind}/{LIBRARY}', arch=80, **job)
            expect(len(kernels(ran)) == 2, f'{kind}: {ran} ran')
            if wanted is None:
                wanted, _ = bed.outputs(kind, None, False, model='in.onnx', x=job['x'])
            expect(close(got, wanted, limit), f'{kind}, {sorted(job)}: off by {np.abs(got - wanted).max()}')


def case_same_arithmetic_on_every_architecture(bed):
    """Machine code of the same major number, the latest that fits; PTX for what is later."""
    bed.made('f32')
    first, _ = bed.outputs('f32', arch=80)
    for arch in (86, 87, 89, 90, 100, 103, 120, 121):
        got, ran = bed.outputs('f32', arch=arch)
        expect(len(kernels(ran)) == 2 and np.array_equal(got, first), f'{arch}: {ran}')


def case_without_a_gpu_that_fits(bed):
    """Nothing is registered: the functions run."""
    bed.made('f32')
    right = bed.right('f32')
    for what, job in (('no driver', {'driver': False}), ('7.5', {'arch': 75}), ('no library', {'library': None})):
        got, ran = bed.outputs('f32', **{'driver': True, **job})
        expect(not kernels(ran) and np.array_equal(got, right), f'{what}: {ran} ran')
        why = 'petopt.kernels are not used: no machine code for a GPU of compute capability 7.5\n'
        expect(bed.said.count(why) == (what == '7.5'), f'{what}: {bed.said}')


def case_for_the_cuda_provider(bed):
    """The library as it is delivered: its operators belong to the CUDA provider, which is not here."""
    bed.made('f32', flags='')
    got, ran = bed.outputs('f32', driver=False)
    expect(not kernels(ran) and np.array_equal(got, bed.right('f32')), f'{ran} ran')
    bed.outputs('f32', arch=80, says='Test_6_24_40_f32_v1')


def case_wrong_shape(bed):
    bed.made('f32')
    model = onnx.load(bed.path('out.onnx'))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = 'n'
    for o in model.graph.output:
        o.type.tensor_type.shape.dim[0].dim_param = 'n'
    del model.graph.value_info[:]
    onnx.save(model, bed.path('out.onnx'))
    bed.outputs('f32', arch=80, x=[np.zeros((5, SIZES[0]), 'f')],
                says='input 0 has the shape [5,24], its kernel was made for [6,24]')


def case_proved_and_checked(bed):
    bed.made('f16')
    onnx.checker.check_model(bed.path('out.onnx'), full_check=True)
    for node in onnx.load(bed.path('out.onnx')).graph.node:
        if node.domain == 'petopt.kernels':
            attributes = {a.name: a.s for a in node.attribute}
            expect(attributes == {'plugin_version': b'1', 'plugin_namespace': b'petopt.kernels'}, attributes)
    code, out, err = bed.run('verify', 'in.onnx', 'out.onnx')
    expect(code == 0 and 'proved' in out, f'verify: {out}{err}')


def case_readme_builds_it_again(bed):
    """The commands of README.md make a library that does the same."""
    bed.made('f32')
    first, _ = bed.outputs('f32', arch=80)
    with open(bed.path('k', 'README.md'), encoding='utf-8') as f:
        commands = [line.strip() for line in f if line.startswith('    cc ')]
    expect(len(commands) > 4, commands)
    os.unlink(bed.path('k', LIBRARY))
    for c in commands:
        p = subprocess.run(c, cwd=bed.path('k'), shell=True, capture_output=True, text=True, timeout=300)
        expect(p.returncode == 0, f'{c}: {p.stderr}')
    again, ran = bed.outputs('f32', arch=80)
    expect(len(kernels(ran)) == 2 and np.array_equal(first, again), 'another library')


def case_tensorrt(bed):
    """Built by the CMakeLists.txt that is delivered, driven as TensorRT would."""
    for kind, (_, _, limit) in (TYPES | {'bf16': BF16}).items():
        bed.made(kind)
        for command in (['cmake', '-S', 'k/tensorrt', '-B', 'b', f'-DTENSORRT_INCLUDE={bed.args.declared}'],
                        ['cmake', '--build', 'b']):
            p = subprocess.run(command, cwd=bed.folder, capture_output=True, text=True, timeout=300)
            expect(p.returncode == 0, f'{command}: {p.stdout}{p.stderr}')
        raw = {i.name: i.raw_data for i in onnx.load(bed.path('in.onnx')).graph.initializer}
        x = bits_of(np.random.default_rng(1).standard_normal((ROWS, SIZES[0])), kind)
        for i, (a, b) in enumerate(zip(SIZES, SIZES[1:])):
            x.tofile(bed.path('x.bin'))
            for name in (f'w{i}', f'b{i}'):
                with open(bed.path(name), 'wb') as f:
                    f.write(raw[name])
            p = subprocess.run([bed.args.drive, 'b/libpetopt_tensorrt.so', f'Test_{ROWS}_{a}_{b}_{kind}_v1',
                                f'in:{kind}:{ROWS},{a}:x.bin', f'weight:{kind}:{a},{b}:w{i}',
                                f'weight:{kind}:{b}:b{i}', f'out:{kind}:{ROWS},{b}:y.bin'],
                               cwd=bed.folder, env=bed.emulated(), capture_output=True, text=True, timeout=300)
            expect(p.returncode == 0, f'drive: {p.stdout}{p.stderr}')
            got = np.fromfile(bed.path('y.bin'), x.dtype).reshape(ROWS, b)
            w, bias = (numbers_of(np.frombuffer(raw[n], x.dtype), kind) for n in (f'w{i}', f'b{i}'))
            right = np.maximum(numbers_of(x, kind).astype(float) @ w.reshape(a, b) + bias, 0)
            expect(close(numbers_of(got, kind), right, limit), f'{kind}: off by {np.abs(numbers_of(got, kind) - right).max()}')
            x = got
        subprocess.run(['rm', '-r', 'b', 'k'], cwd=bed.folder, check=True)


def open_chain():
    """Norms, a product and a softmax of each sample, f32."""
    rng, element = np.random.default_rng(3), onnx.TensorProto.FLOAT
    weights = {'w': rng.standard_normal((32, 32)) / 4, 'g': rng.uniform(0.5, 1.5, 32), 'b': rng.standard_normal(32)}
    nodes = [helper.make_node('LayerNormalization', ['x', 'g', 'b'], ['n'], axis=-1),
             helper.make_node('MatMul', ['n', 'w'], ['p']), helper.make_node('Softmax', ['p'], ['s'], axis=-1),
             helper.make_node('Tanh', ['s'], ['t']), helper.make_node('Mul', ['t', 'x'], ['m']),
             helper.make_node('Exp', ['m'], ['e']), helper.make_node('Sub', ['e', 'n'], ['d']),
             helper.make_node('LayerNormalization', ['d', 'b', 'g'], ['y'], axis=-1)]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', element, ['N', 4, 32])],
                              [helper.make_tensor_value_info('y', element, ['N', 4, 32])],
                              [numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


def case_open_batch_in_tensorrt(bed):
    """One plugin for any number of samples."""
    import onnxruntime as ort
    onnx.save(open_chain(), bed.path('in.onnx'))
    code, out, err = bed.run('in.onnx', '-o', 'out.onnx', '--target', 'cuda', '--kernels', 'k', '--cost', 'model',
                             '--cache', 'none', env=bed.emulated())
    expect(code == 0 and 'the batch is open' in out + err, f'exit {code}: {out}{err}')
    model = onnx.load(bed.path('out.onnx'))
    calls = [n for n in model.graph.node if n.domain == 'petopt.kernels']
    expect(len(calls) == len(model.graph.node) == 1, [n.op_type for n in model.graph.node])
    for command in (['cmake', '-S', 'k/tensorrt', '-B', 'b', f'-DTENSORRT_INCLUDE={bed.args.declared}'],
                    ['cmake', '--build', 'b']):
        p = subprocess.run(command, cwd=bed.folder, capture_output=True, text=True, timeout=300)
        expect(p.returncode == 0, f'{command}: {p.stdout}{p.stderr}')
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    session = ort.InferenceSession(bed.path('in.onnx'), providers=['CPUExecutionProvider'])
    for n in (1, 7):
        x = np.random.default_rng(n).standard_normal((n, 4, 32)).astype(np.float32)
        tensors = []
        for name in calls[0].input:
            values = weights.get(name, x)
            values.tofile(bed.path(f'{name}.bin'))
            tensors.append(f'{"weight" if name in weights else "in"}:f32:{",".join(map(str, values.shape))}:{name}.bin')
        p = subprocess.run([bed.args.drive, 'b/libpetopt_tensorrt.so', calls[0].op_type, *tensors,
                            f'out:f32:{n},4,32:y.bin'], cwd=bed.folder, env=bed.emulated(), capture_output=True,
                           text=True, timeout=300)
        expect(p.returncode == 0, f'{n} samples: {p.stdout}{p.stderr}')
        got, right = np.fromfile(bed.path('y.bin'), np.float32).reshape(x.shape), session.run(None, {'x': x})[0]
        expect(close(got, right, 1e-5), f'{n} samples: off by {np.abs(got - right).max()}')


if __name__ == '__main__':
    if sys.argv[1:2] == ['--child']:
        child(json.loads(sys.argv[2]))
        sys.stdout.flush()
        os._exit(0)  # what was loaded need not be taken down in order
    cases.main(sys.modules[__name__], Bed, ['make', 'drive', 'petopt', 'emulated', 'declared'])
