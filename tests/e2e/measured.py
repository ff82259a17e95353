#!/usr/bin/env python3
"""Runs that measure in ONNX Runtime, and what they report.

  measured.py --petopt PROGRAM --models PROGRAM --shim LIBRARY [--only TEXT]
"""
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import cases
from cases import expect

HOSTILE = 'a"><script>alert(1)</script>\x1b[31m\u202e\'&\n'


def affine_model(path, channels=32, size=64, hostile=False, batch=1):
    """Convolutions whose scale and shift stand apart, which ONNX Runtime leaves apart."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], 'x'
    for k in range(4):
        w = rng.standard_normal((channels, channels, 3, 3)).astype('f') / channels
        weights += [numpy_helper.from_array(w, f'w{k}'),
                    numpy_helper.from_array(rng.uniform(0.5, 1, (1, channels, 1, 1)).astype('f'), f's{k}'),
                    numpy_helper.from_array(rng.uniform(-1, 1, (1, channels, 1, 1)).astype('f'), f'b{k}')]
        name = HOSTILE + str(k) if hostile else f'y{k}'
        nodes += [helper.make_node('Conv', [x, f'w{k}'], [f'c{k}'], pads=[1] * 4),
                  helper.make_node('Mul', [f'c{k}', f's{k}'], [f'm{k}'], name=HOSTILE if hostile else ''),
                  helper.make_node('Add', [f'm{k}', f'b{k}'], [f'a{k}']),
                  helper.make_node('Relu', [f'a{k}'], [name])]
        x = name
    shape = [batch, channels, size, size]
    graph = helper.make_graph(nodes, 'affine',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7), path)


class Page(html.parser.HTMLParser):
    """Tags must nest; scripts and what is fetched from elsewhere are not wanted."""
    ALONE = {'meta', 'br', 'hr', 'img', 'input', 'link'}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        for name, value in attrs:
            expect(not name.startswith('on') and name not in ('src', 'href'), f'<{tag} {name}={value}>')
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        expect(self.open and self.open[-1] == tag, f'</{tag}> inside of {self.open[-3:]}')
        self.open.pop()


OPTIMISE = {'schema', 'petopt', 'command', 'in', 'out', 'level', 'runtime', 'cpu', 'threads', 'stopped',
            'changed', 'winner', 'kept', 'nodes_before', 'nodes_after', 'weights_before', 'weights_after',
            'latency', 'error', 'error_reference', 'error_excused', 'inputs',
            'inputs_fresh', 'tolerance', 'load_seconds', 'seconds', 'operators',
            'stages', 'rewrites', 'candidates', 'notes', 'proved', 'proof', 'search',
            'library', 'ratio_fallback', 'kernels', 'kernels_compared', 'kernels_not_executed',
            'regions', 'target', 'gpu', 'latency_estimated', 'sizes'}
CANDIDATE = {'name', 'nodes', 'measured', 'ms', 'ratio', 'ratio_low', 'ratio_high', 'error', 'refused',
             'different', 'chosen', 'verdict'}


def case_measured_run(bed):
    """A model that folding makes smaller: the reports agree with the files, and the cache answers."""
    affine_model(bed.path('in.onnx'))
    words = ['in.onnx', '--threads', '1', '--cache', 'c.db']
    out = bed.good(*words, '-o', 'out.onnx', '--json', 'r.json', '--report', 'r.html')
    told = json.load(open(bed.path('r.json'), encoding='utf-8'))
    expect(set(told) == OPTIMISE, f'members: {set(told) ^ OPTIMISE}')
    expect(told['runtime'].startswith('ONNX Runtime') and told['runtime'] in out, out)
    expect(told['candidates'] and all(set(c) == CANDIDATE for c in told['candidates']), told['candidates'])
    expect(any(c['measured'] for c in told['candidates']), 'nothing was measured')
    expect(told['latency'] and told['latency']['ms_before'] > 0, told['latency'])
    clock = {k: told['latency'][k] for k in ('threads', 'clock', 'by')}
    expect(clock == {'threads': 1, 'clock': 'processor', 'by': ''}, clock)
    after = onnx.load(bed.path('out.onnx'))
    expect(len(after.graph.node) == told['nodes_after'], 'nodes_after is not that of the file')
    expect(sum(o['after'] for o in told['operators']) == told['nodes_after'], 'operators do not add up')
    expect(told['changed'] == any(c['chosen'] for c in told['candidates']), 'changed without a choice')
    if told['changed']:
        expect(told['error'] <= told['tolerance'], f'error {told["error"]}')
        expect(told['latency']['ratio_low'] > 1, f'written without a gain: {told["latency"]}')
    start = time.monotonic()
    code, _, err = bed.run(*words, '-o', 'again.onnx', '-v')
    warm = time.monotonic() - start
    expect(code == 0 and 'the same run is known' in err, f'not recalled: {err[-400:]}')
    expect('candidates in' not in err and not re.search(r'thread(s|), normal', err), f'timed again: {err[-400:]}')
    expect(open(bed.path('again.onnx'), 'rb').read() == open(bed.path('out.onnx'), 'rb').read(),
           'another answer with the same cache')
    expect(warm < 5, f'{warm:.1f} s with a warm cache')
    for more, known in ((['--recall', 'no'], False), (['--tolerance', '3e-4'], False), ([], True)):
        code, _, err = bed.run(*words, '-o', 'third.onnx', '-v', *more)
        expect(code == 0 and ('the same run is known' in err) == known, f'{more}: recalled or not')
    code, _, err = bed.run('verify', 'in.onnx', 'out.onnx', '--json', 'v.json')
    expect(code == 0, f'verify: exit {code}: {err}')
    expect(json.load(open(bed.path('v.json'), encoding='utf-8'))['equal'] is True, 'verify.json')


def case_nothing_elsewhere(bed):
    """Neither petopt nor the runtime under it writes anywhere else, or calls anybody: the runtime's own
    builds keep an identifier and a queue of events in the user's cache unless they are told not to."""
    affine_model(bed.path('in.onnx'))
    os.mkdir(bed.path('home'))
    suppress = {'ORT_DISABLE_TELEMETRY', 'ORT_TELEMETRY_DISABLED', 'CI', 'GITHUB_ACTIONS', 'TF_BUILD'}
    env = {k: v for k, v in os.environ.items() if k not in suppress}
    env |= {'HOME': bed.path('home'), 'XDG_CACHE_HOME': bed.path('home', 'cache')}
    before = set(os.listdir(bed.folder))
    bed.good('in.onnx', '-o', 'out.onnx', '--cache', 'none', '--threads', '1', '-q', env=env)
    bed.good('verify', 'in.onnx', 'out.onnx', env=env)
    bed.good('bench', 'in.onnx', 'out.onnx', '--threads', '1', env=env)
    new = set(os.listdir(bed.folder)) - before
    expect(new <= {'out.onnx', 'out.onnx.cert'}, new)
    left = [os.path.join(f, n) for f, _, names in os.walk(bed.path('home')) for n in names]
    expect(not left, left)


def case_hostile_names_in_reports(bed):
    affine_model(bed.path('in.onnx'), channels=4, size=8, hostile=True)
    bed.good('in.onnx', '-o', 'out.onnx', '--cost', 'model', '--json', 'r.json', '--report', 'r.html')
    text = open(bed.path('r.html'), encoding='utf-8').read()
    page = Page()
    page.feed(text)
    expect(not page.open, f'left open: {page.open}')
    expect('svg' in page.seen and 'script' not in page.seen, page.seen)
    expect(not re.search('[\x00-\x08\x0b-\x1f\x7f\u202e]', text), 'control characters in the page')
    json.load(open(bed.path('r.json'), encoding='utf-8'))
    code, out, _ = bed.run('show', 'in.onnx')
    expect(code == 0 and '\x1b' not in out, 'show passes terminal escapes on')


def case_no_runtime(bed):
    affine_model(bed.path('in.onnx'), channels=4, size=8)
    env = dict(os.environ, LD_PRELOAD=bed.args.shim)
    before = sorted(os.listdir(bed.folder))
    code, out, err = bed.run('in.onnx', '-o', 'out.onnx', '--cache', 'none', env=env)
    expect(code == 3, f'exit {code} without a runtime: {err}')
    expect(not out and len(err.strip().splitlines()) == 1, f'not one sentence: {err!r}')
    expect(sorted(os.listdir(bed.folder)) == before, 'left behind')
    bed.good('in.onnx', '-o', 'out.onnx', '--cost', 'model', '-q', env=env)
    code, out, err = bed.run('verify', 'in.onnx', 'out.onnx', env=env)
    expect(code == 0 and 'reference' in out, f'verify by the reference: exit {code}: {out}{err}')
    bed.good('in.onnx', '-o', 'plain.onnx', '-O0', '-q', env=env)


def case_interrupted_while_measuring(bed):
    affine_model(bed.path('in.onnx'), channels=64, size=96)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        p = subprocess.Popen([bed.args.petopt, 'in.onnx', '-o', 'out.onnx', '--threads', '1', '--cache',
                              'none', '-v'], cwd=bed.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while b'postopt:' not in p.stderr.readline():
            expect(p.poll() is None, 'it ended before anything was timed')
        time.sleep(0.3)
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
        expect(p.returncode == code, f'exit {p.returncode}: {err!r}')
        expect(b'interrupted' in out, out)
        onnx.checker.check_model(bed.path('out.onnx'))
        expect(sorted(os.listdir(bed.folder)) == ['in.onnx', 'out.onnx'], os.listdir(bed.folder))
        os.unlink(bed.path('out.onnx'))


def case_deep_search(bed):
    """-O3 writes what it has shown to be equal and faster, keeps a time limit and Ctrl-C."""
    affine_model(bed.path('in.onnx'), channels=16, size=24)
    words = ['in.onnx', '-o', 'out.onnx', '-O3', '--threads', '1', '--cache', 'none']
    for limit in (None, '8'):
        start = time.monotonic()
        bed.good(*words, '--json', 'r.json', *(['--time-limit', limit] if limit else []))
        told = json.load(open(bed.path('r.json'), encoding='utf-8'))
        expect(told['level'] == 3 and told['search']['subprograms'], 'nothing was searched')
        expect(not limit or time.monotonic() - start < 20, 'the limit is not kept')
        if told['changed']:
            expect(told['latency']['ratio_low'] > 1 and told['error'] <= told['tolerance'],
                   f'written without a gain: {told["latency"]}')
        code, out, err = bed.run('verify', 'in.onnx', 'out.onnx')
        expect(code == 0 and ('proved' in out or not told['proved']), f'verify: exit {code}: {out}{err}')
    p = subprocess.Popen([bed.args.petopt, *words], cwd=bed.folder, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    time.sleep(2)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    expect(p.returncode in (0, 130), f'exit {p.returncode}: {err!r}')
    onnx.checker.check_model(bed.path('out.onnx'))


def case_time_limit(bed):
    affine_model(bed.path('in.onnx'), channels=64, size=96)
    start = time.monotonic()
    out = bed.good('in.onnx', '-o', 'out.onnx', '--threads', '1', '--cache', 'none', '--time-limit', '2')
    expect(time.monotonic() - start < 15, 'the limit is not kept')
    expect('time limit' in out, out)
    onnx.checker.check_model(bed.path('out.onnx'))


def case_lengths(bed):
    """A model that takes multiples of 64 alone: readings are at the first that it takes, with a time
    limit too."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((64, 64)).astype('f') / 8, 'w'),
               numpy_helper.from_array(np.array([-1, 64]), 'rows'),
               numpy_helper.from_array(np.float32(0.5), 'half'), numpy_helper.from_array(np.float32(2), 'two')]
    nodes = [helper.make_node('Reshape', ['x', 'rows'], ['r']), helper.make_node('MatMul', ['r', 'w'], ['m']),
             helper.make_node('Mul', ['m', 'half'], ['h']), helper.make_node('Div', ['h', 'two'], ['d']),
             helper.make_node('Tanh', ['d'], ['y'])]
    value = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, 'rows', [value('x', 'len')], [value('y', None, 64)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7),
              bed.path('in.onnx'))
    for words in ([], ['--time-limit', '20']):
        code, out, err = bed.run('in.onnx', '-o', 'out.onnx', '--threads', '1', '--cache', 'none', '-v', *words)
        expect(code == 0, err)
        expect('ranking failed' not in err and 'refused' not in err, err[-2000:])
        expect(re.search(r'1 thread, normal x:\d*(64|128|256|512)', err), err[-2000:])


def case_open_batch(bed):
    """The search works on a model whose batch is open, which stays open, and any batch is computed."""
    import onnxruntime as ort
    affine_model(bed.path('in.onnx'), batch='batch')
    out = bed.good('in.onnx', '-o', 'out.onnx', '--cost', 'model', '--skip', 'select', '--json', 'r.json')
    told = json.load(open(bed.path('r.json'), encoding='utf-8'))
    expect(told['search'] and told['search']['subprograms'], 'nothing was searched')
    made = onnx.load(bed.path('out.onnx'))
    expect([i.type.tensor_type.shape.dim[0].dim_param for i in [*made.graph.input, *made.graph.output]]
           == ['batch', 'batch'], 'the batch is not open any more')
    expect(len(made.graph.node) != told['nodes_before'] and told['proved'], out)
    before, after = (ort.InferenceSession(bed.path(f), providers=['CPUExecutionProvider'])
                     for f in ('in.onnx', 'out.onnx'))
    for n in (1, 2, 3, 7):
        x = {'x': np.random.default_rng(n).standard_normal((n, 32, 64, 64)).astype('f')}
        a, b = before.run(None, x)[0], after.run(None, x)[0]
        expect(a.shape == b.shape and np.abs(a - b).max() <= 1e-4 * np.abs(a).max(), f'{n} samples differ')


def case_sizes(bed):
    """What is timed is timed at the sizes that were asked for, and the table says so."""
    affine_model(bed.path('in.onnx'), batch='batch')
    words = ['in.onnx', '-o', 'out.onnx', '--threads', '1', '--sizes', 'x:3,32,64,64',
             '--sizes', 'x:1,32,64,64', '--json', 'r.json', '--cache', 'c.db']
    out = bed.good(*words)
    told = json.load(open(bed.path('r.json'), encoding='utf-8'))
    if told['changed']:
        expect([s['inputs'] for s in told['sizes']] == ['x:3x32x64x64', 'x:1x32x64x64'], told['sizes'])
        expect('at x:3x32x64x64' in out and 'at x:1x32x64x64' in out, out)


def case_room(bed):
    """Large maps and small weights: forms are read in groups that a process has room for."""
    rng, shape = np.random.default_rng(0), [1, 8, 1024, 1024]
    weights = [numpy_helper.from_array(np.float32(v), n) for n, v in
               (('three', 3), ('none', 0), ('six', 6), ('scale', 0.7), ('shift', 0.2))]
    nodes, x = [], 'x'
    for k in range(3):
        weights.append(numpy_helper.from_array(rng.standard_normal((8, 8, 3, 3)).astype('f') / 8, f'w{k}'))
        nodes += [helper.make_node('Conv', [x, f'w{k}'], [f'c{k}'], pads=[1] * 4),
                  helper.make_node('Add', [f'c{k}', 'three'], [f'a{k}']),
                  helper.make_node('Clip', [f'a{k}', 'none', 'six'], [f'k{k}']),
                  helper.make_node('Mul', [f'c{k}', f'k{k}'], [f'm{k}']),
                  helper.make_node('Div', [f'm{k}', 'six'], [f'h{k}']),
                  helper.make_node('Mul', [f'h{k}', 'scale'], [f's{k}']),
                  helper.make_node('Add', [f's{k}', 'shift'], [f'y{k}'])]
        x = f'y{k}'
    graph = helper.make_graph(nodes, 'maps', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=7),
              bed.path('in.onnx'))
    for seconds in ('15', '60'):  # beside other work no forms are left to be read after 15 s
        code, _, err = bed.run('in.onnx', '-o', 'out.onnx', '-O1', '--threads', '1', '--cache', 'none', '-v',
                               '--time-limit', seconds)
        if 'a process has room for' in err:
            break
    expect(code == 0 and 'a process has room for' in err, err[-2000:])
    onnx.checker.check_model(bed.path('out.onnx'))


def case_check_data(bed):
    affine_model(bed.path('in.onnx'), channels=4, size=8)
    os.makedirs(bed.path('data', 'set_0'))
    good = np.ones((1, 4, 8, 8), 'f')
    for array, code in ((good, 0), (good.astype('d'), 2), (good[:, :2], 2)):
        with open(bed.path('data', 'set_0', 'input_0.pb'), 'wb') as f:
            f.write(numpy_helper.from_array(array, 'x').SerializeToString())
        got, _, err = bed.run('in.onnx', '-o', 'out.onnx', '--cost', 'model', '--check-data', 'data')
        expect(got == code, f'{array.dtype}{array.shape}: exit {got}: {err}')
    with open(bed.path('data', 'set_0', 'input_0.pb'), 'wb') as f:
        f.write(b'no tensor at all')
    got, _, err = bed.run('in.onnx', '-o', 'out.onnx', '--cost', 'model', '--check-data', 'data')
    expect(got == 2 and 'input_0.pb' in err, f'exit {got}: {err}')


def case_bench(bed):
    affine_model(bed.path('a.onnx'))
    shutil.copy(bed.path('a.onnx'), bed.path('b.onnx'))
    affine_model(bed.path('large.onnx'), size=192)
    out = bed.good('bench', 'a.onnx', 'b.onnx', '--threads', '1', '--json', 'b.json')
    told = json.load(open(bed.path('b.json'), encoding='utf-8'))
    expect([m['file'] for m in told['models']] == ['a.onnx', 'b.onnx'], told)
    expect('a.onnx' in out and 'against itself' in out, out)
    expect(0.8 < told['models'][1]['ratio'] < 1.25, f'a copy reads {told["models"][1]}')
    expect(bed.run('bench', 'missing.onnx')[0] == 2, 'a missing file')
    expect(bed.run('bench', *['a.onnx'] * 8)[0] == 2, 'too many models')


def case_kept(bed):
    """One line says why the original stays; nothing where it does not."""
    def told(*words):
        out = bed.good('in.onnx', '-o', 'out.onnx', '--cache', 'none', '--json', 'k.json', *words)
        with open(bed.path('k.json'), encoding='utf-8') as f:
            report = json.load(f)
        expect((report['kept'] == '') == report['changed'], report['kept'])
        expect(report['changed'] or ('kept' in out and report['kept'] in out), out)
        expect('\n' not in report['kept'], report['kept'])
        return report
    graph = helper.make_graph([helper.make_node('Relu', ['x'], ['y'])], 'g',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              bed.path('in.onnx'))
    expect(told()['kept'].startswith('no rewrite'), 'nothing to change')
    expect('-O0' in told('-O0')['kept'], 'level 0')
    graph.node[0].output[0] = 'r'  # what the runtime leaves out itself gains nothing
    graph.node.append(helper.make_node('Identity', ['r'], ['i']))
    graph.node.append(helper.make_node('MatMul', ['i', 'w'], ['y']))
    graph.initializer.append(helper.make_tensor('w', TensorProto.FLOAT, [4, 4], [0.5, 2, 3, -1] * 4))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
              bed.path('in.onnx'))
    words = ['in.onnx', '-o', 'out.onnx', '--cache', 'c.db', '--threads', '1']
    first, again = (re.search('kept +(.*)', bed.good(*words)).group(1) for _ in range(2))
    expect('not faster' in first and again == f'as an earlier run found: {first}', f'{first} / {again}')
    affine_model(bed.path('in.onnx'), channels=4, size=8)
    expect(told('--cost', 'model')['changed'], 'a model with something to change')
    report = told('--time-limit', '0.001')
    expect(report['changed'] or 'time' in report['kept'], report['kept'])


def case_shapes_that_do_not_fit(bed):
    """A branch for other lengths: with the dims pinned no runtime loads the model. They stay open
    where another branch takes these lengths; where none does, none is written."""
    import onnx
    from onnx import helper as h
    floats = lambda name, *dims: h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
    weight = h.make_tensor('w', onnx.TensorProto.FLOAT, [4, 3], [0.5] * 12)
    then = h.make_graph([h.make_node('Relu', ['x'], ['r'])], 'then', [], [floats('r', 1, None)])
    other = h.make_graph([h.make_node('MatMul', ['x', 'w'], ['m'])], 'else', [], [floats('m', 1, None)], [weight])
    rate = h.make_tensor('rate', onnx.TensorProto.INT64, [], [16000])  # one number of all takes that branch
    graph = h.make_graph([h.make_node('Equal', ['sr', 'rate'], ['c']),
                          h.make_node('If', ['c'], ['y'], then_branch=then, else_branch=other)], 'branches',
                         [h.make_tensor_value_info('sr', onnx.TensorProto.INT64, []), floats('x', 1, 'n')],
                         [floats('y', 1, None)], [rate])
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid('', 13)], ir_version=8), bed.path('if.onnx'))
    words = ['if.onnx', '-o', 'out.onnx', '--threads', '1', '-q']
    length = lambda: onnx.load(bed.path('out.onnx')).graph.input[1].type.tensor_type.shape.dim[1]
    bed.good(*words, '--cache', 'none', '--input-shape', 'x:1,4')
    expect(length().dim_value == 4, length())
    for again in range(2):  # the answer is kept
        bed.good(*words, '--cache', 'c.db', '--input-shape', 'x:1,5', '--json', 'r.json')
        expect(length().dim_param == 'n', length())
        notes = ' '.join(json.load(open(bed.path('r.json'), encoding='utf-8'))['notes'])
        expect('stay open' in notes, notes)
    os.remove(bed.path('out.onnx'))
    for branch in graph.node[1].attribute:
        branch.g.CopyFrom(other)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid('', 13)], ir_version=8), bed.path('if.onnx'))
    code, _, err = bed.run(*words, '--cache', 'none', '--input-shape', 'x:1,5')
    expect(code == 2 and 'does not take the model with these shapes' in err, f'{code}: {err}')
    expect(not os.path.exists(bed.path('out.onnx')), 'written all the same')


def case_nothing_but_rounding(bed):
    """Rows of one number, less their mean: 0 in one order of sums, and in another what rounding makes of
    it, which the inputs' last bits make as well. More than that is a difference."""
    def save(name, nodes, **weights):
        graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [3, 8])],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, [3, 8])],
                                  [numpy_helper.from_array(np.asarray(v, 'f'), k) for k, v in weights.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
                  bed.path(name))
    node, eighth = helper.make_node, np.full((8, 8), 0.125)
    part, less = node('Div', ['x', 'w'], ['t']), node('Sub', ['t', 'r'], ['y'])
    save('a.onnx', [part, node('ReduceMean', ['t'], ['r'], axes=[-1]), less], w=0.86152196)
    save('b.onnx', [part, node('MatMul', ['t', 'k'], ['r']), less], w=0.86152196, k=eighth)
    save('c.onnx', [part, node('MatMul', ['t', 'k'], ['r']), less], w=0.86152196, k=eighth * (1 + 3e-6))
    code, said, err = bed.run('verify', 'a.onnx', 'b.onnx')
    expect(code == 0 and said.startswith('equal'), f'{code}: {said}{err}')
    code, said, err = bed.run('verify', 'a.onnx', 'c.onnx')
    expect(code == 1, f'{code}: {said}{err}')


def case_exact_by_luck(bed):
    """A norm of equal numbers: 0 where their mean is exact, which it is in the original, and what rounding
    leaves of them where it is a seventh of seven times as much: of floats, and of integers with a scale. A
    mean that is off by more is found out."""
    def save(name, first, mean, **weights):
        node = helper.make_node
        nodes = [*first, *mean, node('Sub', ['x', 'm'], ['d']), node('Mul', ['d', 'd'], ['q']),
                 node('ReduceMean', ['q'], ['v'], axes=[-1]), node('Add', ['v', 'e'], ['s']),
                 node('Sqrt', ['s'], ['r']), node('Div', ['d', 'r'], ['n']), node('Add', ['n', 'b'], ['y'])]
        weights.update(e=1e-5, b=0.37)
        ports = [helper.make_tensor_value_info('i' if first else 'x', TensorProto.INT8 if first else TensorProto.FLOAT,
                                               [3, 24]),
                 helper.make_tensor_value_info('y', TensorProto.FLOAT, [3, 24])]
        graph = helper.make_graph(nodes, 'g', ports[:1], ports[1:],
                                  [numpy_helper.from_array(np.asarray(v, 'f'), k) for k, v in weights.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
                  bed.path(name))
    for first in ([], [helper.make_node('DequantizeLinear', ['i', 'scale'], ['x'])]):
        more = {'scale': 0.0172} if first else {}
        save('a.onnx', first, [helper.make_node('ReduceMean', ['x'], ['m'], axes=[-1])], **more)
        for name, part in ('b.onnx', 1 / 7), ('c.onnx', (1 + 3e-5) / 7):
            save(name, first, [helper.make_node('Mul', ['x', 'seven'], ['t']),
                               helper.make_node('ReduceMean', ['t'], ['u'], axes=[-1]),
                               helper.make_node('Mul', ['u', 'k'], ['m'])], seven=7, k=part, **more)
        code, said, err = bed.run('verify', 'a.onnx', 'b.onnx')
        expect(code == 0 and said.startswith('equal'), f'{code}: {said}{err}')
        code, said, err = bed.run('verify', 'a.onnx', 'c.onnx')
        expect(code == 1, f'{code}: {said}{err}')


def case_dump_and_skip(bed):
    affine_model(bed.path('in.onnx'), channels=4, size=8)
    words = ['in.onnx', '-o', 'out.onnx', '--cost', 'model', '-q']
    first = bed.good(*words, '--dump', 'simplify')
    expect(first.startswith('pir ') and 'Mul(' in first, first[:200])
    whole = bed.good(*words, '--dump', 'split')
    expect(whole.startswith(first) and '\n# subprogram 1 of ' in whole and ': sum (' in whole, whole[len(first):])
    folded = bed.good(*words, '--dump', 'postopt')
    expect('Mul(' not in folded, 'postopt left the scale apart')
    bed.good(*words, '--skip', 'postopt')
    expect('Mul' in [n.op_type for n in onnx.load(bed.path('out.onnx')).graph.node], 'postopt ran')
    bed.good('in.onnx', '-o', 'out.onnx', '--skip', 'select', '--cache', 'none', '-q')
    expect('Mul' not in [n.op_type for n in onnx.load(bed.path('out.onnx')).graph.node], 'not taken')


def case_many_nodes(bed):
    """Time grows with the number of nodes, and no faster."""
    seconds = {}
    for count in (25000, 100000):
        nodes, x = [], 'x'
        for k in range(count // 4):
            nodes += [helper.make_node('Relu', [x], [f'a{k}']), helper.make_node('Identity', [f'a{k}'], [f'b{k}']),
                      helper.make_node('Neg', [f'b{k}'], [f'c{k}']), helper.make_node('Add', [f'c{k}', x], [f'd{k}'])]
            x = f'd{k}'
        graph = helper.make_graph(nodes, 'many', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [2])],
                                  [helper.make_tensor_value_info(x, TensorProto.FLOAT, [2])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
                  bed.path('in.onnx'))
        start = time.monotonic()
        bed.good('in.onnx', '-o', 'out.onnx', '--cost', 'model', '--json', 'r.json', '-q')
        seconds[count] = time.monotonic() - start
        told = json.load(open(bed.path('r.json'), encoding='utf-8'))
        expect(told['nodes_after'] == count * 3 // 4, told['nodes_after'])
    print(f'        {seconds}')
    expect(seconds[100000] < 20, f'{seconds}')
    expect(seconds[100000] < 4 * 2.5 * max(seconds[25000], 0.3), f'not linear: {seconds}')


def case_benchmark_models(bed):
    import onnxruntime as ort
    names = ['lora', 'gqa', 'qknorm', 'ntrans']
    subprocess.run([bed.args.models, bed.path('m'), *names], check=True, stdout=subprocess.DEVNULL)
    expect(sorted(os.listdir(bed.path('m'))) == sorted(n + '.onnx' for n in names), 'files')
    for n in names:
        path = bed.path('m', n + '.onnx')
        onnx.checker.check_model(path, full_check=True)
        session = ort.InferenceSession(path)
        rng = np.random.default_rng(0)
        feed = {i.name: rng.standard_normal(i.shape).astype('f') for i in session.get_inputs()}
        expect(np.isfinite(session.run(None, feed)[0]).all(), n)
    for words in ([], [bed.path('m'), 'no_such'], ['/no/such/folder/at/all', 'lora']):
        p = subprocess.run([bed.args.models, *words], capture_output=True)
        expect(p.returncode == 2, f'{words}: exit {p.returncode}')


if __name__ == '__main__':
    cases.main(sys.modules[__name__], cases.Bed, ['petopt', 'models', 'shim'])
