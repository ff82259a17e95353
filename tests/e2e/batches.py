#!/usr/bin/env python3
"""petopt with --kernels on models of which the batch is open: samples one by one, and several at once.

  batches.py --petopt PROGRAM --models FOLDER [--only TEXT]
"""
import os
import re
import shutil
import sys

import numpy as np
import onnx
import onnxruntime as ort

import cases
from cases import expect
from kernels import LIBRARY, Bed, answers, off, open_kernels
from open_models import filters, open_graph


def case_open_batch(bed):
    """Kernels of one sample are called for each: maps, tokens in rows of their own, a mask, any number."""
    r = np.random.default_rng(6)
    model = open_graph(
        [('Conv', ['x', 'k', 'c'], 'a', {'pads': [1] * 4}), ('Relu', ['a'], 'b', {}),
         ('Reshape', ['b', 'flat'], 'f', {}), ('Transpose', ['f'], 't', {'perm': [0, 2, 1]}),
         ('Reshape', ['t', 'rows'], 'u', {}), ('MatMul', ['u', 'w'], 'v', {}), ('Tanh', ['v'], 'rows_out', {}),
         ('Reshape', ['rows_out', 'back'], 'z', {}), ('Add', ['z', 'mask'], 'n', {}),
         ('Softmax', ['n'], 's', {'axis': 1}), ('ReduceMean', ['s'], 'y', {'axes': [2], 'keepdims': 0})],
        {'x': ['N', 8, 20, 20], 'mask': ['N', 1, 32]}, {'y': ['N', 400], 'rows_out': ['M', 32]},
        {'k': (r.standard_normal((24, 8, 3, 3)) / 8).astype('f'), 'c': r.standard_normal(24).astype('f'),
         'w': (r.standard_normal((24, 32)) / 5).astype('f'), 'flat': np.array([0, 24, -1]),
         'rows': np.array([-1, 24]), 'back': np.array([-1, 400, 32])})
    onnx.save(model, bed.path('in.onnx'))
    said = bed.said('in.onnx', '-o', 'out.onnx', '-O1', '--threads', '1', '--kernels', 'k', '--cost', 'model',
                    '--cache', 'none')
    expect('won: kernels' in said and 'proved: for every size' in said, said)
    written = onnx.load(bed.path('out.onnx')).graph
    expect([v.type.tensor_type.shape.dim[0].dim_param for v in (*written.input, *written.output)] ==
           ['N', 'N', 'N', 'M'], 'the batch is not open any more')
    calls = {n.op_type for n in written.node if n.domain == 'petopt.kernels'}
    for n in (1, 2, 3, 8, 1, 0):
        feed = {'x': r.standard_normal((n, 8, 20, 20)).astype('f'), 'mask': r.standard_normal((n, 1, 32)).astype('f')}
        for threads in (1, 2):
            right, _ = answers(bed.path('in.onnx'), feed) if n else ([np.zeros((0, 400)), np.zeros((0, 32))], None)
            got, ran = answers(bed.path('out.onnx'), feed, bed.path('k', LIBRARY), threads)
            expect(calls & ran and [g.shape for g in got] == [g.shape for g in right], f'{n}: {ran}, {got[0].shape}')
            expect(n == 0 or off(got, right) < 1e-5, f'{n} samples: off by {n and off(got, right)}')
            if n:
                got, _ = answers(bed.path('out.onnx'), feed, None, threads)
                expect(off(got, right) < 1e-5, f'{n} samples without the library: off by {off(got, right)}')
    code, out, err = bed.run('verify', 'in.onnx', 'out.onnx', '--library', os.path.join('k', LIBRARY))
    expect(code == 0 and 'proved' in out, f'verify: exit {code}: {out}{err}')
    # more is open, and nothing says that the batches are the same: the user does
    for i, v in enumerate(model.graph.input):
        for d in v.type.tensor_type.shape.dim:
            if i == 0 or not d.dim_value:
                d.Clear()
    onnx.save(model, bed.path('wide.onnx'))
    words = ['wide.onnx', '-o', 'named.onnx', '-O1', '--kernels', 'named', '--cost', 'model', '--cache', 'none']
    said = bed.said(*words)
    expect('with its lengths open' in said, said)
    said = bed.said(*words, '--input-shape', 'x:N,8,20,20', '--input-shape', 'mask:N,1,32')
    expect('won: kernels' in said, said)
    expect([[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in onnx.load(bed.path('named.onnx')).graph.input] == [['N', 8, 20, 20], ['N', 1, 32]], 'other dims')
    right, _ = answers(bed.path('wide.onnx'), feed := {
        'x': r.standard_normal((3, 8, 20, 20)).astype('f'), 'mask': r.standard_normal((3, 1, 32)).astype('f')})
    got, ran = answers(bed.path('named.onnx'), feed, bed.path('named', LIBRARY))
    expect(off(got, right) < 1e-5 and any(o.startswith('R') and len(o) == 25 for o in ran), f'{off(got, right)}, {ran}')

    # inputs that hold another number of samples each
    wrong = {'x': np.zeros((2, 8, 20, 20), 'f'), 'mask': np.zeros((3, 1, 32), 'f')}
    try:
        answers(bed.path('out.onnx'), wrong, bed.path('k', LIBRARY))
        expect(False, 'two and three samples at once')
    except ort.capi.onnxruntime_pybind11_state.InvalidArgument as e:
        expect('has the shape [3,1,32], its kernel was made for [N,1,32]' in str(e), str(e))


def case_several_at_once(bed):
    """Large maps with few weights are worked sample by sample, then small ones with many for all at once."""
    r = np.random.default_rng(31)
    w = filters(r)
    large = [('Conv', ['x', 'k', 'c'], 'a', {'pads': [1] * 4}), ('Relu', ['a'], 'b', {}),
             ('Conv', ['b', 'l'], 'm', {'pads': [1] * 4}), ('Relu', ['m'], 'n', {}),
             ('MaxPool', ['n'], 'p', {'kernel_shape': [3, 3], 'strides': [2, 2], 'pads': [1] * 4})]
    small = [('Conv', ['p', 'd'], 'e', {'pads': [1] * 4, 'strides': [4, 4]}), ('Relu', ['e'], 'f', {}),
             ('Conv', ['f', 'g'], 'h', {'pads': [1] * 4, 'strides': [2, 2]}), ('Relu', ['h'], 's', {}),
             ('GlobalAveragePool', ['s'], 'y', {})]
    weights = {'k': w(16, 3, 3, 3), 'c': w(16), 'l': w(16, 16, 3, 3), 'd': w(160, 16, 3, 3), 'g': w(160, 160, 3, 3)}
    batches = (1, 2, 3, 5, 8, 9, 17, 0, 24, 1)
    deep = [('Conv', ['p', 'q'], 'h', {'pads': [1] * 4, 'strides': [8, 8]}), *small[3:]]
    for nodes, given, held, dims, made, sizes in (
            (large + small, 'x', weights, [3, 'H', 'W'], 160, ((64, 64), (49, 77), (9, 13))),
            (large + small, 'x', weights, [3, 64, 65], 160, ((64, 65),)),
            (deep, 'p', {'q': w(640, 16, 3, 3)}, [16, 'H', 'W'], 640, ((32, 33), (20, 45), (3, 5)))):
        model = open_graph(nodes, {given: ['N', *dims]}, {'y': ['N', made, 1, 1]}, held)
        feeds = [{given: r.standard_normal((n, dims[0], *size)).astype('f')} for size in sizes for n in batches]
        at = f'{given}:1,{dims[0]},64,64' if nodes != deep else 'p:1,16,32,32'
        open_kernels(bed, model, feeds, *(['--sizes', at] if 'H' in dims else []))
        source = bed.read('k', 'petopt_kernels.c').decode()
        expect('_rest_avx512' in source and ('_head_avx512' in source) == (nodes != deep), f'{dims}: other parts')
        least = int(re.findall(r' >= ([2-9])\b', source)[0])
        expect(least <= 3, f'from {least} samples on')
    # without weights to speak of nothing is gained by that
    model = open_graph([('Conv', ['x', 'k'], 'a', {'pads': [1] * 4}), ('Relu', ['a'], 'y', {})],
                       {'x': ['N', 8, 'H', 'W']}, {'y': ['N', 8, 'H', 'W']}, {'k': w(8, 8, 3, 3)})
    open_kernels(bed, model, [{'x': r.standard_normal((n, 8, 96, 96)).astype('f')} for n in (1, 3, 9)])
    expect('_rest_' not in bed.read('k', 'petopt_kernels.c').decode(), 'a program that promises nothing')


def case_batch_that_mixes(bed):
    """What mixes samples has kernels of which their number is a length; what lies between samples has none."""
    r = np.random.default_rng(7)
    words = ['-O1', '--threads', '1', '--kernels', 'k', '--cost', 'model', '--cache', 'none', '-o', 'out.onnx']
    w = {'w': (r.standard_normal((64, 64)) / 8).astype('f')}
    onnx.save(open_graph([('MatMul', ['x', 'w'], 'a', {}), ('ReduceMean', ['a'], 'm', {'axes': [0], 'keepdims': 1}),
                          ('Sub', ['a', 'm'], 'd', {}), ('Tanh', ['d'], 'y', {})],
                         {'x': ['N', 64]}, {'y': ['N', 64]}, w), bed.path('mixed.onnx'))
    said = bed.said('mixed.onnx', *words, '-v')
    expect('won: kernels' in said and 'are made at N = ' in said, said)
    for n in (2, 7, 40):
        feed = {'x': r.standard_normal((n, 64)).astype('f')}
        right, _ = answers(bed.path('mixed.onnx'), feed)
        got, ran = answers(bed.path('out.onnx'), feed, bed.path('k', LIBRARY))
        expect(ran, f'{n} samples: no kernel ran')
        expect(off(got, right) < 1e-5, f'{n} samples: off by {off(got, right)}')
    shutil.rmtree(bed.path('k'))
    onnx.save(open_graph([('MatMul', ['x', 'w'], 'a', {}), ('Tanh', ['a'], 'b', {}),
                          ('Transpose', ['b'], 't', {'perm': [1, 0, 2]}), ('CumSum', ['t', 'first'], 's', {}),
                          ('Transpose', ['s'], 'o', {'perm': [1, 0, 2]}), ('MatMul', ['o', 'w'], 'c', {}),
                          ('Tanh', ['c'], 'd', {}), ('MatMul', ['d', 'w'], 'y', {})],
                         {'x': ['N', 50, 64]}, {'y': ['N', 50, 64]}, w | {'first': np.array(0)}),
              bed.path('turned.onnx'))
    said = bed.said('turned.onnx', *words, '-v')
    expect('won: kernels' in said and '2 regions with 5 of 8 nodes' in said, said)
    for n in (1, 4):
        feed = {'x': r.standard_normal((n, 50, 64)).astype('f')}
        right, _ = answers(bed.path('turned.onnx'), feed)
        library = bed.path('k', LIBRARY)
        got, _ = answers(bed.path('out.onnx'), feed, library if os.path.exists(library) else None)
        expect(off(got, right) < 1e-5, f'{n} samples: off by {off(got, right)}')


if __name__ == '__main__':
    cases.main(sys.modules[__name__], Bed, ['petopt', 'models'])
