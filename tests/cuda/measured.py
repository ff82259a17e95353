#!/usr/bin/env python3
"""A run that measures on a GPU, on the emulated one: measured.py PETOPT EMULATED

EMULATED is the folder of the emulated driver and NVRTC and of the libraries' fakes. What is timed
there says nothing of a GPU; the test is that each step of a measured run is taken, that the figures
are kept, and that the same run without a GPU decides by them.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PETOPT, EMULATED = sys.argv[1], sys.argv[2]


def chain(path, cast=False):
    """Six launches where one does; cast: of integers, which no step makes floats of."""
    nodes, value = [], 'x'
    if cast:
        nodes.append(helper.make_node('Cast', ['x'], ['c'], name='cast', to=TensorProto.FLOAT))
        value = 'c'
    for i, op in enumerate(['Tanh', 'Sigmoid', 'Exp', 'Abs', 'Sqrt', 'Neg']):
        nodes.append(helper.make_node(op, [value], [f't{i}'], name=f'{op}{i}'))
        value = f't{i}'
    graph = helper.make_graph(
        nodes, 'chain', [helper.make_tensor_value_info(
            'x', TensorProto.INT64 if cast else TensorProto.FLOAT, [4, 32])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [4, 32])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              path)


def sine(path):
    """No step for it on a GPU."""
    graph = helper.make_graph(
        [helper.make_node('Sin', ['x'], ['s'], name='wave'), helper.make_node('Tanh', ['s'], ['t']),
         helper.make_node('Add', ['t', 'c'], ['y'])], 'sine',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, 32])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [4, 32])],
        [numpy_helper.from_array(np.ones(32, dtype=np.float32), 'c')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              path)


def petopt(*args, code=0):
    run = subprocess.run([PETOPT, *args, '--threads', '1'], capture_output=True, text=True,
                         check=False)
    assert run.returncode == code, f'{args}: {run.returncode}\n{run.stdout}{run.stderr}'
    return run


def told(path, *args):
    petopt(*args, '--json', path)
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def main():
    with tempfile.TemporaryDirectory() as folder:
        def at(name):
            return os.path.join(folder, name)
        gpu = ['--target', 'cuda', '--cuda-libraries', EMULATED]
        chain(at('in.onnx'))
        measured = told(at('r.json'), at('in.onnx'), '-o', at('out.onnx'), *gpu, '--kernels',
                        at('k'), '--cost', f"record:{at('cost.db')}")
        assert 'A100' in measured['gpu'], measured['gpu']
        assert measured['winner'] == 'kernels', measured
        latency = measured['latency']
        assert latency['ratio'] > 1 and latency['ratio_low'] > 1, latency
        assert measured['latency_estimated'] is None, measured
        assert [n.domain for n in onnx.load(at('out.onnx')).graph.node] == ['petopt.kernels']

        # By the record alone: another machine, without a GPU.
        again = told(at('r.json'), at('in.onnx'), '-o', at('again.onnx'), '--target', 'cuda',
                     '--kernels', at('k2'), '--cost', f"replay:{at('cost.db')}")
        assert again['winner'] == 'kernels', again
        with open(at('out.onnx'), 'rb') as a, open(at('again.onnx'), 'rb') as b:
            assert a.read() == b.read(), 'the record leads to another model'

        # An operator that no step does is read as a copy, before and after.
        chain(at('cast.onnx'), cast=True)
        cast = told(at('r.json'), at('cast.onnx'), '-o', at('cast.out.onnx'), *gpu, '--kernels',
                    at('k3'), '--cost', f"record:{at('cast.db')}")
        assert cast['winner'] == 'kernels' and cast['latency']['ratio_low'] > 1, cast
        assert any('as copies of what they make' in n for n in cast['notes']), cast['notes']
        assert [n.op_type for n in onnx.load(at('cast.out.onnx')).graph.node][0] == 'Cast'

        # What is not in the record is said, and the model stays as it is.
        sine(at('sine.onnx'))
        run = petopt(at('sine.onnx'), '-o', at('sine.out.onnx'), '--target', 'cuda', '--cost',
                     f"replay:{at('cost.db')}", '-v')
        assert 'won: original' in run.stdout + run.stderr, run.stdout + run.stderr

        # Libraries that are not there, and an option that needs the target.
        run = petopt(at('in.onnx'), '-o', at('no.onnx'), '--cuda-libraries', EMULATED, code=2)
        assert '--cuda-libraries is for --target cuda' in run.stderr, run.stderr
        assert not os.path.exists(at('no.onnx'))
    print('measured, recorded, and decided by the record')


main()
