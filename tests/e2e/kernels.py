#!/usr/bin/env python3
"""petopt with --kernels on a real model, as one who uses it meets it.

  kernels.py --petopt PROGRAM --models FOLDER [--only TEXT]
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import cases
from cases import expect
from open_models import attention, filters, gated_maps, open_graph, text_line

MODEL, SHAPE = 'ch_ppocr_mobile_v2.0_cls_infer.onnx', 'x:1,3,48,192'
LIBRARY = 'libpetopt_kernels.so'
MILDER = 'do without the algorithms that round worse'


class Bed(cases.Bed):
    def __init__(self, args, folder):
        super().__init__(args, folder)
        shutil.copy(os.path.join(args.models, MODEL), self.path('in.onnx'))

    def said(self, *words):
        code, out, err = self.run(*words)
        expect(code == 0, f'{" ".join(words)}: exit {code}: {err.strip()}')
        return out + err

    def written(self, model, folder):
        """Everything that a run leaves, by name; the README names the files of the run."""
        left = {n: self.read(folder, n) for n in sorted(os.listdir(self.path(folder)))}
        del left['README.md']
        return left | {'model': self.read(model), 'certificate': self.read(model + '.cert')}


def answers(path, feed, library=None, threads=1):
    """Outputs, and the operators that ran."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    options.enable_profiling, options.profile_file_prefix = True, path
    if library:
        options.register_custom_ops_library(library)
    session = ort.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    outputs = session.run(None, feed)
    profile = session.end_profiling()
    with open(profile, encoding='utf-8') as f:
        ran = {e['args']['op_name'] for e in json.load(f) if e.get('cat') == 'Node' and
               'op_name' in e.get('args', {})}
    os.unlink(profile)
    return outputs, ran


def off(outputs, right):
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(outputs, right))


def case_classifier(bed):
    words = ['in.onnx', '--input-shape', SHAPE, '--threads', '1', '-O1', '--cache', 'c.db']
    os.mkdir(bed.path('k'))
    for name in ('notes.txt', 'other.c'):
        with open(bed.path('k', name), 'w', encoding='utf-8') as f:
            f.write('mine\n')
    said = bed.said(*words, '-o', 'out.onnx', '--kernels', 'k')
    expect('register_custom_ops_library("k/' + LIBRARY in said, f'not how to load it: {said[-900:]}')
    expect(MILDER not in said, f'fast algorithms were left out: {said}')
    for name in ('notes.txt', 'other.c'):
        expect(bed.read('k', name) == b'mine\n', f'{name} was touched')
        os.unlink(bed.path('k', name))
    onnx.checker.check_model(bed.path('out.onnx'))
    calls = {n.op_type for n in onnx.load(bed.path('out.onnx')).graph.node if n.domain == 'petopt.kernels'}
    expect(calls, 'no calls of kernels')

    # the same answers with the library and without it, by the kernels and by standard operators
    rng = np.random.default_rng(0)
    for feed in ({'x': rng.standard_normal((1, 3, 48, 192)).astype('f')},
                 {'x': np.zeros((1, 3, 48, 192), 'f')}, {'x': np.full((1, 3, 48, 192), 100, 'f')}):
        right, _ = answers(bed.path('in.onnx'), feed)
        for library in (None, bed.path('k', LIBRARY)):
            for threads in (1, 2):
                got, ran = answers(bed.path('out.onnx'), feed, library, threads)
                expect(off(got, right) < 1e-4, f'{library}: off by {off(got, right)}')
                expect(bool(calls & ran) == bool(library), f'{library}: {sorted(ran)} ran')
    code, out, err = bed.run('verify', 'in.onnx', 'out.onnx', '--input-shape', SHAPE, '--library',
                             os.path.join('k', LIBRARY))
    expect(code == 0 and 'proved' in out, f'verify: exit {code}: {out}{err}')

    # with the same cache: the same bytes, soon, whether recalled or chosen again
    first = bed.written('out.onnx', 'k')
    for i, more in enumerate(([], ['--recall', 'no'], [])):
        start = time.monotonic()
        said = bed.said(*words, '-o', f'out{i}.onnx', '--kernels', f'k{i}', '-v', *more)
        seconds = time.monotonic() - start
        expect(seconds < 20, f'{seconds:.1f} s with a warm cache')
        expect(('the same run is known: kernels' in said) == (not more), said[:400])
        expect('timing ' not in said.replace('timing 0', ''), f'timed again: {said[-400:]}')
        again = bed.written(f'out{i}.onnx', f'k{i}')
        expect(first.keys() == again.keys(), f'{first.keys()} and then {again.keys()}')
        for name, data in first.items():
            expect(again[name] == data or name == 'certificate', f'{name} has other bytes')
    bed.said(*words, '-o', 'plain.onnx', '-q')
    expect(not [n for n in onnx.load(bed.path('plain.onnx')).graph.node if n.domain == 'petopt.kernels'],
           'kernels that were not asked for')

    # what is told of the regions
    bed.said(*words, '-o', 'out.onnx', '--kernels', 'k', '-q', '--json', 'r.json', '--report', 'r.html')
    with open(bed.path('r.json'), encoding='utf-8') as f:
        told = json.load(f)
    expect(told['winner'] == 'kernels' and told['library'] == 'k/' + LIBRARY, told['winner'])
    expect(not any(c['different'] for c in told['candidates']), told['candidates'])
    expect(told['regions'] and not told['regions'][0]['why'], told['regions'])
    slow = [n for n in told['notes'] if 'where the library is not loaded' in n]
    expect(told['ratio_fallback'] > 0 and bool(slow) == (told['ratio_fallback'] < 0.98), told['notes'])
    flags = open('/proc/cpuinfo', encoding='utf-8').read().split()
    ran, unrun = (['avx512', 'avx2'], '') if 'avx512vl' in flags else (['avx2'], 'avx512')
    expect(told['kernels_compared'] == ', '.join(ran) and told['kernels_not_executed'] == unrun, told)
    for region in told['regions']:
        steps = region['steps']
        expect(abs(sum(s['ms'] for s in steps) - region['ms']) < 1e-6, 'steps do not add up')
        expect(all(s['ms'] > 0 and s['schedule'] and s['ms_roofline'] >= 0 for s in steps), steps)
    page = bed.read('r.html').decode()
    expect('<h2>Kernels</h2>' in page and told['regions'][0]['steps'][0]['schedule'] in page, 'report')
    said = bed.said('explain', *words, '--kernels', 'never')
    expect('by the roofline' in said and not os.path.exists(bed.path('never')), said[:400])


def case_other_code(bed):
    """Code that this processor would not pick is compared too: here it is compiled wrong."""
    if 'avx512vl' not in open('/proc/cpuinfo', encoding='utf-8').read().split():
        return
    with open(bed.path('cc'), 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\ncase "$*" in *_avx2.c*|*_avx2_[0-9]*.c*)' # a library may be in parts
                f' set -- "$@" -include {bed.path("wrong.h")};; esac\nexec cc "$@"\n')
    with open(bed.path('wrong.h'), 'w', encoding='utf-8') as f:
        f.write('#include <immintrin.h>\n#define _mm256_loadu_ps(p) (2 * _mm256_loadu_ps(p))\n')
    os.chmod(bed.path('cc'), 0o755)
    words = ['in.onnx', '--input-shape', SHAPE, '--threads', '1', '-O1', '--cache', 'c.db']
    told = ''
    try:
        bed.said(*words, '-o', 'out.onnx', '--kernels', 'k', '--cc', bed.path('cc'), '--json', 'r.json')
    except cases.Wrong as e:
        told = str(e)
    expect("'kernels': by the kernels' code for avx2" in told, f'not told as a fault: {told}')
    with open(bed.path('r.json'), encoding='utf-8') as f:
        told = json.load(f)
    expect(told['winner'] != 'kernels' and told['library'] is None, told['winner'])
    expect(any("dropped: by the kernels' code for avx2" in n for n in told['notes']), told['notes'])

    # the same by verify, of a library that is right and one that is not
    bed.said(*words, '-o', 'out.onnx', '--kernels', 'k')
    verify = ['verify', 'in.onnx', 'out.onnx', '--input-shape', SHAPE, '--library', 'k/' + LIBRARY]
    code, out, err = bed.run(*verify)
    expect(code == 0 and 'code for avx512; by the library\'s code for avx2' in out, f'{code}: {out}{err}')
    build = [w.strip() for w in bed.read('k', 'README.md').decode().splitlines() if w.startswith('    cc ')]
    for line in build:
        subprocess.run([bed.path('cc'), *line.split()[1:]], cwd=bed.path('k'), check=True)
    code, out, err = bed.run(*verify)
    expect(code == 1, f'exit {code}: {out}{err}')


def case_tied_weights(bed):
    """A weight that is read in two orders is an input of its kernel twice."""
    rng = np.random.default_rng(1)
    weight = numpy_helper.from_array((rng.standard_normal((256, 256)) / 16).astype('f'), 'w')
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['m']), helper.make_node('Tanh', ['m'], ['t']),
             helper.make_node('Gemm', ['t', 'w'], ['g'], transB=1), helper.make_node('Tanh', ['g'], ['y'])]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [64, 256])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [64, 256])], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              bed.path('in.onnx'))
    bed.said('in.onnx', '--threads', '1', '-O1', '--cache', 'none', '--kernels', 'k', '-o', 'out.onnx', '--json',
             'r.json')
    with open(bed.path('r.json'), encoding='utf-8') as f:
        told = json.load(f)
    expect([r['why'] for r in told['regions']] == [''], told['regions'])
    tried = {c['name']: c for c in told['candidates']}
    expect(tried['kernels']['measured'], tried['kernels'])
    if told['library']:
        call, = onnx.load(bed.path('out.onnx')).graph.node
        expect(len(call.input) == 3 == len(set(call.input)), call.input)
        feed = {'x': rng.standard_normal((64, 256)).astype('f')}
        right, _ = answers(bed.path('in.onnx'), feed)
        for library in (bed.path('k', LIBRARY), None):
            got, _ = answers(bed.path('out.onnx'), feed, library)
            expect(off(got, right) < 1e-4, f'off by {off(got, right)}')


def case_regions(bed):
    """What has no kernel in the middle: two regions, each of which may stay with the runtime."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [numpy_helper.from_array(np.array(0), 'axis')], 'x'
    for k in range(4):
        w = (rng.standard_normal((256, 256)) / 16).astype('f')
        weights.append(numpy_helper.from_array(w, f'w{k}'))
        nodes += [helper.make_node('MatMul', [x, f'w{k}'], [f'm{k}']), helper.make_node('Tanh', [f'm{k}'], [f't{k}'])]
        x = f't{k}'
        if k == 1:
            nodes.append(helper.make_node('CumSum', [x, 'axis'], ['sums']))
            x = 'sums'
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [64, 256])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, [64, 256])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              bed.path('in.onnx'))
    words = ['in.onnx', '--threads', '1', '-O1', '--cache', 'c.db', '--kernels']
    bed.said(*words, 'k', '-o', 'out.onnx', '--json', 'r.json')
    with open(bed.path('r.json'), encoding='utf-8') as f:
        told = json.load(f)
    expect(not any(c['different'] for c in told['candidates']), told['candidates'])
    names = [c['name'] for c in told['candidates']]
    expect({'kernels', 'kernels, not of region 0', 'kernels, not of region 1'} <= set(names), names)
    expect(len(told['regions']) == 2, told['regions'])
    bed.said(*words, 'k2', '-o', 'out2.onnx', '-v')
    expect(bed.read('out.onnx') == bed.read('out2.onnx'), 'another answer with the same cache')
    if told['library']:
        feed = {'x': rng.standard_normal((64, 256)).astype('f')}
        got, _ = answers(bed.path('out.onnx'), feed, bed.path('k', LIBRARY))
        right, _ = answers(bed.path('in.onnx'), feed)
        expect(off(got, right) < 1e-4, f'off by {off(got, right)}')
        expect(bed.read('k', LIBRARY) == bed.read('k2', LIBRARY), 'another library with the same cache')


def case_products_in_a_row(bed):
    """Three products of one row in one kernel, two of them with what follows done in registers."""
    r = np.random.default_rng(3)
    weights = {'w1': (784, 64), 'b1': (64,), 'w2': (64, 64), 'b2': (64,), 'w3': (64, 10)}
    nodes = [helper.make_node('MatMul', ['x', 'w1'], ['p']), helper.make_node('Add', ['p', 'b1'], ['q']),
             helper.make_node('MatMul', ['q', 'w2'], ['u']), helper.make_node('Add', ['u', 'b2'], ['v']),
             helper.make_node('MatMul', ['v', 'w3'], ['y'])]
    g = helper.make_graph(
        nodes, 'row', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 784])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array((r.standard_normal(d) / 8).astype('f'), n)
         for n, d in weights.items()])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid('', 13)], ir_version=8),
              bed.path('row.onnx'))
    said = bed.said('row.onnx', '-o', 'out.onnx', '--kernels', 'row', '--cost', 'model',
                    '--cache', 'none', '--threads', '1')
    expect('won: kernels' in said, said)
    feed = {'x': r.standard_normal((1, 784)).astype('f')}
    got, _ = answers(bed.path('out.onnx'), feed, bed.path('row', LIBRARY))
    right, _ = answers(bed.path('row.onnx'), feed)
    expect(off(got, right) < 1e-4, f'off by {off(got, right)}')


def case_long_means(bed):
    """Means are no chains of additions: over large maps each would be off, and equal numbers round the
    same way each time."""
    r = np.random.default_rng(5)
    for name, shape, axes in (('maps', [1, 64, 160, 160], [2, 3]), ('map', [1, 64, 12, 96], [2, 3]),
                              ('rows', [64, 200], [1]), ('columns', [300, 64], [0])):
        nodes = [helper.make_node('Relu', ['x'], ['p']),
                 helper.make_node('ReduceMean', ['p'], ['m'], axes=axes, keepdims=1),
                 helper.make_node('Sigmoid', ['m'], ['s']), helper.make_node('Mul', ['p', 's'], ['z'])]
        g = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info('m', TensorProto.FLOAT, None),
                               helper.make_tensor_value_info('z', TensorProto.FLOAT, shape)])
        onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid('', 13)], ir_version=8),
                  bed.path(f'{name}.onnx'))
        said = bed.said(f'{name}.onnx', '-o', 'out.onnx', '-O1', '--threads', '1', '--kernels', name, '--cost',
                        'model', '--cache', 'none')
        expect('won: kernels' in said, said)
        for x in ((1 + r.random(shape)).astype('f'), np.full(shape, 1.1, 'f'), np.full(shape, 0.7, 'f')):
            got, ran = answers(bed.path('out.onnx'), {'x': x}, bed.path(name, LIBRARY))
            expect(ran, f'{name}: no kernel ran')
            error = off(got[:1], [x.mean(axis=tuple(axes), keepdims=True, dtype='d')])
            expect(error < 5e-7, f'{name}: off by {error}')


def sessions(bed, model, library, feeds, wanted):
    """What sessions make of feeds: on one thread and two, and by each code that this machine runs."""
    flags = open('/proc/cpuinfo', encoding='utf-8').read().split()
    for isa in [None] + [i for i, f in (('avx512', 'avx512vl'), ('avx2', 'avx2')) if f in flags] + ['none']:
        for threads in (1, 2):
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            options.log_severity_level = 3
            if isa:
                options.add_session_config_entry('petopt.isa', isa)
            options.register_custom_ops_library(library)
            session = ort.InferenceSession(bed.path(model), options, providers=['CPUExecutionProvider'])
            for feed, right in zip(feeds, wanted):
                shapes = {n: x.shape for n, x in feed.items()}
                got = session.run(None, feed)
                expect([g.shape for g in got] == [w.shape for w in right], f'{isa}, {shapes}: {got[0].shape}')
                error = off(got, right) if got[0].size else 0
                expect(error < 2e-5, f'{isa}, {threads} threads, {shapes}: off by {error}')


def open_kernels(bed, model, feeds, *more, outside=()):
    """Kernels of a model with open sizes, at many of them; one session takes all, in any order. How many."""
    onnx.save(model, bed.path('open.onnx'))
    said = bed.said('open.onnx', '-o', 'out.onnx', '-O1', '--threads', '1', '--kernels', 'k', '--cost', 'model',
                    '--cache', 'none', *more)
    expect('won: kernels' in said, said)
    written = onnx.load(bed.path('out.onnx')).graph
    expect(all(n.domain == 'petopt.kernels' or n.op_type in outside for n in written.node),
           [n.op_type for n in written.node])
    for of in ('input', 'output'):
        dims = [[[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in getattr(g, of)]
                for g in (model.graph, written)]
        expect(dims[0] == dims[1], f'{of}s: {dims}')
    wanted = [answers(bed.path('open.onnx'), feed)[0] for feed in feeds]
    sessions(bed, 'out.onnx', bed.path('k', LIBRARY), feeds, wanted)
    code, out, err = bed.run('verify', 'open.onnx', 'out.onnx', '--library', os.path.join('k', LIBRARY))
    expect(code == 0 and 'proved' in out, f'verify: exit {code}: {out}{err}')
    return sum(n.domain == 'petopt.kernels' for n in written.node)


def case_open_maps(bed):
    """Heights and widths are open: windows with pads and strides, pools, means, and maps that meet again."""
    r = np.random.default_rng(8)
    w = filters(r)
    model = open_graph(
        [('Conv', ['x', 'k', 'c'], 'a', {'pads': [1] * 4, 'strides': [2, 2]}), ('Relu', ['a'], 'b', {}),
         ('Conv', ['b', 'd'], 'e', {'pads': [2] * 4, 'group': 24}),
         ('MaxPool', ['e'], 'p', {'kernel_shape': [3, 3], 'strides': [2, 2], 'pads': [1] * 4}),
         ('Conv', ['p', 'f'], 'g', {}), ('GlobalAveragePool', ['g'], 'm', {}), ('Conv', ['m', 'h'], 'n', {}),
         ('Sigmoid', ['n'], 's', {}), ('Mul', ['g', 's'], 'y', {})],
        {'x': ['N', 3, 'H', 'W']}, {'y': ['N', 40, 'h', 'w']},
        {'k': w(24, 3, 3, 3), 'c': w(24), 'd': w(24, 1, 5, 5), 'f': w(40, 24, 1, 1), 'h': w(40, 40, 1, 1)})
    sizes = [(1, 64, 80), (2, 33, 47), (1, 1, 1), (3, 2, 70), (1, 100, 7), (0, 31, 32), (5, 18, 18), (1, 224, 224)]
    open_kernels(bed, model, [{'x': r.standard_normal((n, 3, h, v)).astype('f')} for n, h, v in sizes])
    # the same, one part upsampled onto the other: of some sizes alone, which others are told
    model = open_graph(
        [('Conv', ['x', 'k', 'c'], 'a', {'pads': [1] * 4}), ('Relu', ['a'], 'b', {}),
         ('Conv', ['b', 'd'], 'e', {'pads': [1] * 4, 'strides': [2, 2]}), ('Relu', ['e'], 'p', {}),
         ('Resize', ['p', '', 'scales'], 'u', {'mode': 'nearest', 'coordinate_transformation_mode': 'asymmetric',
                                               'nearest_mode': 'floor'}),
         ('Concat', ['b', 'u'], 'j', {'axis': 1}), ('Conv', ['j', 'f'], 'y', {})],
        {'x': ['N', 3, 'H', 'W']}, {'y': ['N', 8, 'H', 'W']},
        {'k': w(16, 3, 3, 3), 'c': w(16), 'd': w(16, 16, 3, 3), 'f': w(8, 32, 1, 1),
         'scales': np.array([1, 1, 2, 2], 'f')})
    sizes = [(1, 64, 80), (2, 34, 46), (1, 2, 70), (0, 32, 32), (1, 640, 320)]
    open_kernels(bed, model, [{'x': r.standard_normal((n, 3, h, v)).astype('f')} for n, h, v in sizes])
    for library, says in ((None, 'Concat'), (bed.path('k', LIBRARY), 'at lengths [33,64] shapes do not fit')):
        try:
            answers(bed.path('out.onnx'), {'x': np.zeros((1, 3, 33, 64), 'f')}, library)
            expect(False, 'an odd height')
        except Exception as e: # pylint: disable=broad-except
            expect(says in str(e) or library is None, str(e))


def case_open_wide(bed):
    """Where maps are larger than those at hand another program runs, which keeps less at a time."""
    r = np.random.default_rng(41)
    w = filters(r)
    model = open_graph(
        [('Conv', ['x', 'k', 'c'], 'a', {'pads': [1] * 4}), ('Relu', ['a'], 'b', {}),
         ('Conv', ['b', 'l'], 'm', {'pads': [1] * 4}), ('Add', ['m', 'x'], 'n', {}), ('Relu', ['n'], 'y', {})],
        {'x': [1, 64, 28, 'W']}, {'y': [1, 64, 28, 'W']}, {'k': w(64, 64, 3, 3), 'c': w(64), 'l': w(64, 64, 3, 3)})
    feeds = [{'x': r.standard_normal((1, 64, 28, n)).astype('f')} for n in (28, 200, 1, 63, 401, 78, 79, 90)]
    open_kernels(bed, model, feeds, '--sizes', 'x:1,64,28,28')
    source = ''.join(bed.read('k', f).decode() for f in os.listdir(bed.path('k')) if '_avx512' in f and
                     f.endswith('.c'))
    expect('_wide(' in source, 'there is no program for large maps')
    least = {int(n) for n in re.findall(r' >= (\d{4,})l', source)}
    expect(len(least) == 1 and 64 * 28 * 28 < min(least) < 64 * 28 * 200, f'it runs from {least} elements on')


def case_open_line(bed):
    """Few rows are left, as many as windows have; of smaller maps a mean is over what there is."""
    r = np.random.default_rng(21)
    sizes = [(1, 48, 320), (2, 64, 101), (1, 80, 9), (3, 32, 32), (1, 17, 40), (1, 33, 3), (5, 48, 64), (1, 1, 1)]
    open_kernels(bed, text_line(r), [{'x': r.standard_normal((n, 3, h, v)).astype('f')} for n, h, v in sizes],
                 outside=('AveragePool',))


def case_open_gates(bed):
    """A gate goes into a kernel's weights, which hold for its sample alone, not into what is delivered."""
    r = np.random.default_rng(13)
    sizes = [(1, 64, 80), (2, 34, 46), (3, 128, 32), (0, 64, 64), (5, 48, 48)]
    for model, taken in ((gated_maps(r), sizes), (gated_maps(r, 48, 64), [(n, 48, 64) for n in (1, 2, 3, 0)])):
        open_kernels(bed, model, [{'x': r.standard_normal((n, 3, h, v)).astype('f')} for n, h, v in taken])
        said = bed.said('open.onnx', '-o', 'again.onnx', '-O1', '--kernels', 'k2', '--cost', 'model', '--cache', 'none',
                        '-v')
        best = [line for line in said.splitlines() if ' ms: affine maps folded; ' in line]
        expect('proved with one sample' in said and 'gates in weights' in best[0], best)
        body = onnx.load(bed.path('again.onnx')).functions[0]
        expect(sum(n.op_type == 'Mul' for n in body.node) == 1, 'the function has no gate')


def case_open_parts(bed):
    """Behind what has no kernel a region reads maps of which no axis is a name of the model."""
    r = np.random.default_rng(10)
    w = filters(r)
    model = open_graph(
        [('Conv', ['x', 'k', 'c'], 'a', {'pads': [1] * 4, 'strides': [2, 2]}), ('Relu', ['a'], 'b', {}),
         ('CumSum', ['b', 'along'], 'z', {}), ('Conv', ['z', 'd'], 'e', {'pads': [1] * 4}), ('Relu', ['e'], 'p', {}),
         ('Conv', ['p', 'f'], 'g', {'pads': [1] * 4, 'strides': [2, 2]}), ('Add', ['g', 'h'], 'y', {})],
        {'x': ['N', 3, 'H', 'W']}, {'y': ['N', 40, 'h', 'w']},
        {'k': w(24, 3, 3, 3), 'c': w(24), 'd': w(24, 24, 3, 3), 'f': w(40, 24, 3, 3), 'h': w(40, 1, 1),
         'along': np.array(1)})
    sizes = [(1, 64, 80), (2, 33, 47), (1, 1, 1), (3, 2, 70), (1, 100, 7), (0, 31, 32), (1, 224, 224)]
    kernels = open_kernels(bed, model, [{'x': r.standard_normal((n, 3, h, v)).astype('f')} for n, h, v in sizes],
                           outside=('CumSum',))
    expect(kernels == 2, f'{kernels} kernels')


def case_open_mean(bed):
    """Means over 3 rows of W/4 columns, of which at a usual width there are as many as channels."""
    r = np.random.default_rng(11)
    w = filters(r)
    model = open_graph(
        [('Conv', ['x', 'k', 'c'], 'a', {'strides': [4, 4]}), ('Relu', ['a'], 'b', {}),
         ('GlobalAveragePool', ['b'], 'm', {}), ('Conv', ['m', 'd'], 'e', {}), ('Sigmoid', ['e'], 's', {}),
         ('Conv', ['b', 'f'], 'g', {}), ('Mul', ['g', 's'], 'y', {})],
        {'x': ['N', 3, 12, 'W']}, {'y': ['N', 240, 3, 'w']},
        {'k': w(16, 3, 4, 4), 'c': w(16), 'd': w(240, 16, 1, 1), 'f': w(240, 16, 1, 1)})
    open_kernels(bed, model, [{'x': r.standard_normal((n, 3, 12, v)).astype('f') + 1}
                              for n, v in [(1, 320), (2, 321), (1, 4), (3, 50), (0, 64), (1, 96), (1, 1000)]])


def case_open_tokens(bed):
    """The length is open: attention over it, at lengths that fill no vector, one, and none of samples."""
    r = np.random.default_rng(9)
    sizes = [(1, 128), (1, 1), (2, 7), (3, 63), (1, 100), (0, 16), (1, 333), (2, 2)]
    open_kernels(bed, attention(r, 96, 4),
                 [{'x': r.standard_normal((n, t, 96)).astype('f')} for n, t in sizes])
    # many threads, each with lengths of its own, on one session
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.register_custom_ops_library(bed.path('k', LIBRARY))
    session = ort.InferenceSession(bed.path('out.onnx'), options, providers=['CPUExecutionProvider'])
    feeds = [{'x': r.standard_normal((1, t, 96)).astype('f')} for t in (5, 17, 64, 130)]
    wanted = [answers(bed.path('open.onnx'), feed)[0] for feed in feeds]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for k, got in enumerate(pool.map(lambda k: session.run(None, feeds[k % 4]), range(64))):
            expect(off(got, wanted[k % 4]) < 2e-5, f'call {k}: off by {off(got, wanted[k % 4])}')
    for wrong in (np.zeros((1, 4, 95), 'f'), np.zeros((4, 96), 'f')):
        try:
            session.run(None, {'x': wrong})
            expect(False, f'a wrong shape: {wrong.shape}')
        except Exception as e: # pylint: disable=broad-except
            expect('x' in str(e), str(e))


def case_open_masks(bed):
    """Rows that are masked as a whole are no numbers behind the softmax, and zeros behind their guard."""
    r = np.random.default_rng(12)
    feeds = []
    for n, t in [(1, 128), (2, 7), (3, 63), (1, 1), (0, 16), (2, 100)]:
        hidden = (r.random((n, 1, t, t)) < 0.3) | (np.arange(t) % 3 == 1)[:, None]
        feeds.append({'x': r.standard_normal((n, t, 96)).astype('f'),
                      'mask': np.where(hidden, -np.inf, 0).astype('f')})
    kernels = open_kernels(bed, attention(r, 96, 4, guarded=True), feeds)
    expect(kernels == 1, f'{kernels} kernels')


def case_milder(bed):
    """Where the rounding of Winograd's algorithm is too much, the kernels do without it: sums of small
    integers have none of their own."""
    r = np.random.default_rng(4)
    shape = [1, 64, 56, 56]
    weights = [numpy_helper.from_array(r.integers(-2, 3, (64, 64, 3, 3)).astype('f'), 'w'),
               numpy_helper.from_array(np.array(0.01, 'f'), 'part')]
    nodes = [helper.make_node('Round', ['x'], ['i']), helper.make_node('Conv', ['i', 'w'], ['c'], pads=[1] * 4),
             helper.make_node('Round', ['c'], ['n']), helper.make_node('Sub', ['c', 'n'], ['zero']),
             helper.make_node('Mul', ['x', 'part'], ['p']), helper.make_node('Add', ['zero', 'p'], ['y'])]
    g = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                          [helper.make_tensor_value_info('y', TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid('', 13)], ir_version=8),
              bed.path('exact.onnx'))
    said = bed.said('exact.onnx', '-o', 'out.onnx', '-O1', '--threads', '1', '--kernels', 'k', '--cache', 'none', '-v')
    # What is fastest of the rest is for the machine to say.
    expect(MILDER in said, f'not milder: {said}')
    expect("'kernels' was dropped" not in said, f'still off: {said}')


def case_refusals(bed):
    """One sentence, exit 2, and nothing is left behind."""
    words = ['in.onnx', '-o', 'out.onnx', '--input-shape', SHAPE, '--cost', 'model', '--cache', 'none']
    with open(bed.path('file'), 'w', encoding='utf-8') as f:
        f.write('mine\n')
    os.mkdir(bed.path('project'))
    with open(bed.path('project', 'README.md'), 'w', encoding='utf-8') as f:
        f.write('# My project\n')
    before = sorted(os.listdir(bed.folder))
    for more, what in ((['--kernels', 'k', '--cc', '/nonexistent'], '/nonexistent'),
                       (['--kernels', 'k', '--cc', bed.path('file')], 'file'),
                       (['--kernels', 'file'], 'no folder'),
                       (['--kernels', 'file/k'], 'file/k'),
                       (['--kernels', 'not/there'], 'not/there'),
                       (['--kernels', 'project'], 'README.md')):
        code, out, err = bed.run(*words, *more)
        expect(code == 2 and not out, f'{more}: exit {code}: {out}{err}')
        expect(len(err.strip().splitlines()) == 1 and what in err, f'{more}: {err!r}')
        expect(sorted(os.listdir(bed.folder)) == before, f'{more}: left {os.listdir(bed.folder)}')
    expect(os.listdir(bed.path('project')) == ['README.md'], 'written beside another README')
    # The kernels of another model: as this version's README tells it, and as the first ones did.
    for told in ('# Kernels for `a.onnx`\n\n<!-- made for ../a.onnx -->\n', '# Kernels for `a.onnx`\n\nold\n'):
        with open(bed.path('project', 'README.md'), 'w', encoding='utf-8') as f:
            f.write(told)
        code, out, err = bed.run(*words, '--kernels', 'project')
        expect(code == 2 and not out and 'a.onnx' in err, f'kernels of another model: exit {code}: {err}')
        expect(bed.read('project', 'README.md') == told.encode(), 'the README of another model was touched')


def case_compiler_that_fails(bed):
    """One that starts and then compiles nothing: the model is written without kernels."""
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((32, 32)).astype('f'), 'w')
    graph = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['a']),
                               helper.make_node('Relu', ['a'], ['y'])], 'g',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, [8, 32])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [8, 32])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              bed.path('in.onnx'))
    with open(bed.path('cc'), 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\nfor a; do [ "$a" = --version ] && exit 0; done\necho no licence >&2\nexit 1\n')
    os.chmod(bed.path('cc'), 0o755)
    said = bed.said('in.onnx', '-o', 'out.onnx', '--cost', 'model', '--cache', 'none', '--kernels', 'k',
                    '--cc', bed.path('cc'))
    expect('no kernels are written' in said and 'no licence' in said, said)
    expect(not os.path.exists(bed.path('k')), 'a folder for nothing')
    onnx.checker.check_model(bed.path('out.onnx'))


if __name__ == '__main__':
    cases.main(sys.modules[__name__], Bed, ['petopt', 'models'])
