#!/usr/bin/env python3
"""What petopt records on a GPU (the emulated one) it gives again on a machine without one.

  replay.py PETOPT EMULATED

EMULATED: the folder of the emulated driver, NVRTC and fakes of the libraries, which petopt finds
through the loader's path.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(path, channels):
    r = np.random.default_rng(0)

    def weight(name, *dims):
        return numpy_helper.from_array((0.2 * r.standard_normal(dims)).astype('f'), name)
    norm = [numpy_helper.from_array((1 + 0.1 * np.arange(channels)).astype('f'), name)
            for name in ('scale', 'shift', 'mean', 'var')]
    weights = [weight('w1', channels, 3, 3, 3), weight('w2', channels, channels, 3, 3),
               weight('w3', channels, channels, 3, 3), weight('w4', channels, 5), *norm]
    nodes = [helper.make_node('Conv', ['x', 'w1'], ['a'], pads=[1, 1, 1, 1]),
             helper.make_node('BatchNormalization', ['a', 'scale', 'shift', 'mean', 'var'], ['b']),
             helper.make_node('Relu', ['b'], ['c']),
             helper.make_node('Conv', ['c', 'w2'], ['d'], pads=[1, 1, 1, 1]),
             helper.make_node('Conv', ['c', 'w3'], ['e'], pads=[1, 1, 1, 1]),
             helper.make_node('Add', ['d', 'e'], ['f']),
             helper.make_node('Relu', ['f'], ['g']),
             helper.make_node('GlobalAveragePool', ['g'], ['h']),
             helper.make_node('Flatten', ['h'], ['i']),
             helper.make_node('MatMul', ['i', 'w4'], ['j']),
             helper.make_node('Softmax', ['j'], ['o'])]
    graph = helper.make_graph(nodes, 'net',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 3, 12, 12])],
                              [helper.make_tensor_value_info('o', TensorProto.FLOAT, [1, 5])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), path)


def main():
    petopt, emulated = sys.argv[1:]
    work = tempfile.mkdtemp(prefix='petopt-replay-')
    os.chdir(work)

    def run(*words, gpu=False):
        env = {**os.environ, 'CUDA_VISIBLE_DEVICES': ''}  # only the emulated driver shows a GPU
        if gpu:
            env['LD_LIBRARY_PATH'] = emulated
        done = subprocess.run([petopt, *words, '--target', 'cuda', '--time-limit', '900'], env=env,
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect(right, what, said):
        if not right:
            print(f'{what}:\n{said}')
            sys.exit(1)

    model('net.onnx', 8)
    model('other.onnx', 6)
    code, said = run('net.onnx', '-o', 'out.onnx', '--cost', 'record:gpu.db', gpu=True)
    expect(code == 0 and 'as fast' in said and 'estimated' not in said, 'not recorded', said)
    before = open('gpu.db', 'rb').read()

    code, said = run('net.onnx', '-o', 'again.onnx', '--cost', 'replay:gpu.db', '--cache', 'none')
    expect(code == 0 and 'estimated' not in said, 'not replayed', said)
    expect(open('again.onnx', 'rb').read() == open('out.onnx', 'rb').read(), 'other bytes', said)
    expect(open('gpu.db', 'rb').read() == before, 'the recording was written to', said)

    code, said = run('other.onnx', '-o', 'other.out.onnx', '--cost', 'replay:gpu.db', '--cache', 'none')
    expect(code == 0 and 'gpu.db has no reading of' in said and 'estimated' in said,
           'what is missing is not told', said)

    code, said = run('net.onnx', '-o', 'no.onnx', '--cost', 'replay:none.db')
    expect(code != 0 and 'none.db: No such file' in said, 'no file', said)
    code, said = run('net.onnx', '-o', 'no.onnx', '--cost', 'replay:gpu.db', '--gpu', 'H100')
    expect(code != 0 and 'its readings are of NVIDIA A100' in said, 'another GPU', said)
    code, said = run('net.onnx', '-o', 'no.onnx', '--cost', 'record:a.db', '--gpu', 'H100', gpu=True)
    expect(code != 0 and 'this GPU is NVIDIA A100' in said, 'another GPU to record', said)
    expect(not os.path.exists('no.onnx'), 'something was written', said)
    shutil.rmtree(work)
    print('recorded, replayed, and told apart')


main()
