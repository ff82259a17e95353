#!/usr/bin/env python3
"""The command line as a user meets it: exit codes, messages, what is left behind.

  cli.py --petopt PROGRAM --data FOLDER --models FOLDER [--only TEXT]

Each case runs in a scratch folder. A failing run must exit with the code it should, print one
sentence on standard error and nothing on standard output, and leave the folder as it was.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import cases
from cases import Wrong, expect

GIB = 1 << 30


class Bed(cases.Bed):
    """The models too."""

    def __init__(self, args, folder):
        super().__init__(args, folder)
        self.add = os.path.join(args.data, 'node', 'test_add', 'model.onnx')
        self.net = os.path.join(args.data, 'light', 'light_squeezenet.onnx')
        self.ocr = os.path.join(args.models, 'ch_PP-OCRv4_det_infer.onnx')

    def start(self, *words):
        return subprocess.Popen([self.args.petopt, *words], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)

    def run(self, *words, seconds=60, **more):
        return super().run(*words, seconds=seconds, **more)

    def refused(self, *words, code=2, says='', **more):
        before = snapshot(self.folder)
        got, out, err = self.run(*words, **more)
        name = ' '.join(map(repr, words))
        expect(got == code, f'{name}: exit {got}, not {code}: {(err or "").strip()}')
        if err is not None:
            expect(len(err.strip().splitlines()) == 1, f'{name}: not one sentence: {err!r}')
            expect(all(c.isprintable() for c in err.strip()), f'{name}: control characters: {err!r}')
            expect(says.lower() in err.lower(), f'{name}: "{says}" is not in {err!r}')
        expect(not out, f'{name}: standard output of a failing run: {out!r}')
        after = snapshot(self.folder)
        expect(before == after, f'{name}: left behind: {sorted(set(after) ^ set(before))}')

    def optimise(self, *words, model=None, out='out.onnx', **more):
        self.good(model or self.add, '-o', out, '--cost', 'model', '-q', *words, **more)
        return open(self.path(out) if isinstance(out, str) else out, 'rb').read()


def snapshot(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            found[path] = os.lstat(path).st_mtime_ns
    return found


# ---- use ----------------------------------------------------------------------------------------

def case_bad_use(bed):
    bed.refused()
    bed.refused(bed.add)
    bed.refused(bed.add, '-o')
    bed.refused(bed.add, '-o', 'out.onnx', '--no-such-option', says='--no-such-option')
    bed.refused(bed.add, bed.add, '-o', 'out.onnx')
    for words in (['-O4'], ['-O', 'x'], ['-O', '-1'], ['--threads', '0'], ['--threads', 'two'],
                  ['--threads', '-1'], ['--tolerance', '-1'], ['--tolerance', 'nan'],
                  ['--tolerance', '1x'], ['--time-limit', '-5'], ['--time-limit', 'soon'],
                  ['--opset', '0'], ['--opset', '1e1'], ['--opset', '99999999999999999999'],
                  ['--cost', 'guess'], ['--cost', 'replay:'], ['--cost', 'replay:x.db'],
                  ['--cost', 'record:x.db'], ['--accuracy', 'poor'], ['--target', 'tpu'],
                  ['--skip', 'no_such_stage'], ['--dump', 'no_such_stage'], ['--dump', 'blind'],
                  ['--input-shape', 'x'], ['--input-shape', 'x:'], ['--input-shape', 'x:0x3,4,5'],
                  ['--input-shape', 'x:3,4,-5'], ['--input-shape', 'x:3,,5'],
                  ['--sizes', 'x'], ['--sizes', 'nosuch:3,4,5'], ['--sizes', 'x:3,4'],
                  ['--sizes', 'x:3,4,6'], ['--input-shape', 'nosuch:3,4,5'], ['--input-shape', 'x:3,4'],
                  ['--input-shape', 'x:3,4,6'], ['--check-data', 'no_such_folder'],
                  ['--target', 'tpu'], ['--target', 'cuda', '--gpu', 'A1'], ['--gpu', 'A100'], ['--tf32', 'yes'],
                  ['--target', 'cuda', '--tf32', 'maybe']):
        bed.refused(bed.add, '-o', 'out.onnx', '--cost', 'model', *words)
    bed.refused('verify', bed.add)
    bed.refused('show')
    bed.refused('bench')


def case_help_and_version(bed):
    expect('-o' in bed.good('--help'), '--help does not name -o')
    expect('0.1' in bed.good('--version'), '--version does not tell the version')


def case_readme_names_every_option(bed):
    readme = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'README.md'),
                  encoding='utf-8').read()
    told = set(re.findall(r'--[a-z][a-z-]+', bed.good('--help'))) - {'--help', '--version', '--output'}
    used = readme[readme.index('## Use'):readme.index('## Library')]
    named = set(re.findall(r'--[a-z][a-z-]+', used))
    expect(told == named, f'README.md and --help differ: {sorted(told ^ named)}')


# ---- files --------------------------------------------------------------------------------------

def case_bad_input_files(bed):
    os.mkdir(bed.path('folder'))
    os.mkfifo(bed.path('fifo'))
    data = open(bed.add, 'rb').read()
    for name, content in (('empty.onnx', b''), ('text.onnx', b'this is not a model\n'),
                          ('zeros.onnx', bytes(1000)), ('half.onnx', data[:len(data) // 2]),
                          ('trailing.onnx', data + b'\xff\xff\xff')):
        with open(bed.path(name), 'wb') as f:
            f.write(content)
        bed.refused(name, '-o', 'out.onnx', '--cost', 'model', says=name)
        bed.refused('verify', name, bed.add)
        bed.refused('show', name)
    for name in ('missing.onnx', 'folder', 'fifo', '/dev/zero', '/dev/null'):
        bed.refused(name, '-o', 'out.onnx', '--cost', 'model')
    with open(bed.path('huge.onnx'), 'wb') as f:
        f.truncate(2 * GIB)
    bed.refused('huge.onnx', '-o', 'out.onnx', '--cost', 'model', says='external data')


def case_bad_output_places(bed):
    os.mkdir(bed.path('folder'))
    bed.refused(bed.add, '-o', 'folder', '--cost', 'model')
    bed.refused(bed.add, '-o', 'no/such/folder/out.onnx', '--cost', 'model')
    bed.refused(bed.add, '-o', '', '--cost', 'model')
    os.mkfifo(bed.path('fifo'))  # not a device: a rename would replace it for all of the machine
    bed.refused(bed.add, '-o', 'fifo', '--cost', 'model')
    if os.geteuid() != 0:
        os.chmod(bed.path('folder'), 0o500)
        bed.refused(bed.add, '-o', 'folder/out.onnx', '--cost', 'model')


def case_output_replaces_input(bed):
    calm = bed.optimise('-O1')
    shutil.copy(bed.add, bed.path('same.onnx'))
    expect(bed.optimise('-O1', model='same.onnx', out='same.onnx') == calm, 'OUT equal to IN')
    shutil.copy(bed.add, bed.path('target.onnx'))
    os.symlink('target.onnx', bed.path('link.onnx'))
    bed.optimise('-O1', model='target.onnx', out='link.onnx')
    expect(open(bed.path('link.onnx'), 'rb').read() == calm, 'OUT a link to IN')
    shutil.copy(bed.add, bed.path('real.onnx'))
    os.symlink('real.onnx', bed.path('in.onnx'))
    expect(bed.optimise('-O1', model='in.onnx') == calm, 'IN a symbolic link')


def case_odd_names(bed):
    calm = bed.optimise('-O1')
    for name in (b'caf\xe9 \xff.onnx', b'-dash.onnx', b'new\nline.onnx', b'"quotes" $(x).onnx',
                 b'x' * 250 + b'.onnx'):
        place = os.path.join(os.fsencode(bed.folder), name)
        shutil.copy(os.fsencode(bed.add), place)
        out = os.path.join(os.fsencode(bed.folder), b'o', name)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        try:
            expect(bed.optimise('-O1', model=place, out=out) == calm, f'{name!r}')
        except Wrong:
            # A name with no room for a temporary one beside it may be refused, cleanly.
            expect(len(name) > 250 and not os.listdir(os.path.dirname(out)), f'{name!r} is refused')
    bed.refused(b'no\nsuch\x1b[31m.onnx', '-o', 'out.onnx')


def case_read_only_input_folder(bed):
    os.mkdir(bed.path('ro'))
    shutil.copy(bed.add, bed.path('ro', 'm.onnx'))
    os.chmod(bed.path('ro'), 0o500)
    bed.optimise('-O1', model='ro/m.onnx')
    expect(os.listdir(bed.path('ro')) == ['m.onnx'], 'something was written beside IN')


def case_permissions_follow_umask(bed):
    bed.optimise(preexec_fn=lambda: os.umask(0o027))
    mode = os.stat(bed.path('out.onnx')).st_mode & 0o777
    expect(mode == 0o640, f'mode {mode:o} under umask 027')


# ---- environment --------------------------------------------------------------------------------

def case_same_bytes(bed):
    """Locale, time zone, threads, folder and a second run change nothing."""
    for model in (bed.add, bed.net, bed.ocr):
        shape = ['--input-shape', 'x:1,3,640,640'] if model == bed.ocr else []
        calm = bed.optimise('-O1', *shape, model=model)
        for words, env in ((['--threads', '1'], {'LC_ALL': 'tr_TR.UTF-8'}), ([], None),
                           (['--threads', '7'], {'LC_ALL': 'de_DE.UTF-8', 'TZ': 'Asia/Tokyo',
                                                 'HOME': '/nonexistent'})):
            env = {} if env is None else dict(os.environ, **env)
            got = bed.optimise('-O1', *shape, *words, model=model, out='again.onnx', env=env)
            expect(got == calm, f'{os.path.basename(model)} {words} {env and sorted(env)[:3]}: other bytes')


def case_standard_output_closed(bed):
    code, _, _ = bed.run(bed.add, '-o', 'out.onnx', '--cost', 'model', stdout=None,
                         preexec_fn=lambda: os.close(1))
    expect(code in (0, 3) and os.path.exists(bed.path('out.onnx')) == (code == 0),
           f'standard output closed: exit {code}')
    expect(code != 0 or open(bed.path('out.onnx'), 'rb').read() == bed.optimise(out='o2.onnx'),
           'standard output closed: other bytes')


def case_standard_output_full(bed):
    if os.path.exists('/dev/full'):
        with open('/dev/full', 'wb') as full:
            code, _, _ = bed.run('show', bed.add, stdout=full)
        expect(code in (2, 3), f'show onto a full disk: exit {code}')


def case_failing_runs_write_nothing(bed):
    """What is written beside the model fails: neither it nor the model is there; old files stay."""
    for name in ('out.onnx', 'r.json', 'r.html', 'out.onnx.cert'):
        with open(bed.path(name), 'w', encoding='utf-8') as f:
            f.write('old ' + name)
    words = [bed.net, '-o', 'out.onnx', '-O1', '--cost', 'model', '--cache', 'none']
    bed.refused(*words, '--json', 'no/such/r.json', says='no/such/r.json')
    bed.refused(*words, '--report', 'no/such/r.html', says='no/such/r.html')
    bed.refused(*words, '--json', 'out.onnx', says='two outputs')
    bed.refused(bed.net, '-o', 'no/such/out.onnx', '-O1', '--cost', 'model', says='no/such')
    if not os.path.exists('/dev/full'):
        return
    before = snapshot(bed.folder)
    with open('/dev/full', 'wb') as full:
        for more in ([], ['--json', 'r.json', '--report', 'r.html'], ['-q', '--dump', 'import']):
            code, _, err = bed.run(*words, *more, stdout=full)
            said = [line for line in err.strip().splitlines() if not line.startswith('petopt: [')]
            expect(code == 2 and len(said) == 1 and 'standard output' in said[0],
                   f'standard output full, {more}: exit {code}: {err!r}')
            expect(snapshot(bed.folder) == before, f'standard output full, {more}: something was written')
        code, _, _ = bed.run('verify', bed.add, bed.add, '--json', 'v.json', stdout=full)
        expect(code == 2 and snapshot(bed.folder) == before, f'verify: exit {code}, or something was written')


def with_data(bed, size):
    """A model whose weights, `size` bytes, are in m.data."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    n = int((size // 4) ** 0.5) // 4 * 4 - 2  # no blocks of channels: they stay as they are
    weights = np.random.default_rng(1).standard_normal((n, n), np.float32)
    io = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [1, n]) for v in ('x', 'y')]
    graph = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['p']), helper.make_node('Neg', ['p'], ['q']),
                               helper.make_node('Neg', ['q'], ['y'])], 'g', io[:1], io[1:],
                              [numpy_helper.from_array(weights, 'w')])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
    model.ir_version = 8
    onnx.save(model, bed.path('m.onnx'), save_as_external_data=True, location='m.data', size_threshold=0)


def case_data_cut_short(bed):
    """Weights that lose their end at any time: exit 2 in good order, or the whole output."""
    with_data(bed, 32 << 20)
    whole = bed.read('m.data')
    calm = bed.optimise('-O1', '--cache', 'none', model='m.onnx')
    data = [n for n in os.listdir(bed.folder) if re.fullmatch(r'out\.onnx\.[0-9a-f]{32}\.data', n)]
    expect(len(data) == 1 and bed.read(data[0])[:len(whole)] == whole, f'OUT has no data of its own: {data}')
    before, cut = set(os.listdir(bed.folder)), 0
    for wait in (0.0, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3):
        with open(bed.path('m.data'), 'wb') as f:
            f.write(whole)
        p = bed.start('m.onnx', '-o', 'out.onnx', '-O1', '--cost', 'model', '--cache', 'none', '-q')
        time.sleep(wait)
        os.truncate(bed.path('m.data'), 5000)
        _, err = p.communicate(timeout=60)
        expect(p.returncode in (0, 2), f'data cut after {wait} s: exit {p.returncode}: {err!r}')
        cut += p.returncode == 2
        expect(p.returncode == 0 or len(err.strip().splitlines()) == 1, f'not one sentence: {err!r}')
        expect(set(os.listdir(bed.folder)) == before, f'left behind: {set(os.listdir(bed.folder)) ^ before}')
        expect(bed.read('out.onnx') == calm and bed.read(data[0])[:len(whole)] == whole, 'OUT was touched')
    expect(cut > 0, 'the data was never cut in time')


def limited(which, value):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(which, (value, value))
    return limit


def case_disk_full(bed):
    for model, size in ((bed.add, 10), (bed.ocr, 4096), (bed.ocr, 1 << 20), (bed.ocr, 3 << 20)):
        before = set(os.listdir(bed.folder))
        code, _, err = bed.run(model, '-o', 'out.onnx', '-O0', '--cost', 'model', '-q',
                               preexec_fn=limited(resource.RLIMIT_FSIZE, size))
        expect(code in (2, 3) and len(err.strip().splitlines()) == 1,
               f'{size} bytes of room: exit {code}: {err!r}')
        expect(set(os.listdir(bed.folder)) == before, f'{size} bytes of room: left behind')


def case_memory_limit(bed):
    for size in (24 << 20, 48 << 20, 96 << 20, GIB):
        before = set(os.listdir(bed.folder))
        code, _, err = bed.run(bed.ocr, '-o', 'out.onnx', '-O1', '--cost', 'model', '-q',
                               preexec_fn=limited(resource.RLIMIT_AS, size))
        if code == 0:
            os.unlink(bed.path('out.onnx'))
            continue
        if code == 127 and size < 64 << 20:  # not even the libraries fit
            continue
        expect(code in (2, 3) and len(err.strip().splitlines()) == 1,
               f'{size >> 20} MiB of memory: exit {code}: {err!r}')
        expect(set(os.listdir(bed.folder)) == before, f'{size >> 20} MiB of memory: left behind')


def case_interrupted(bed):
    """Ctrl-C at any time: exit 130 with the best so far or nothing, never a torn or stray file."""
    calm = bed.optimise('-O1', model=bed.ocr)
    early = 0
    for wait in (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            p = bed.start(bed.ocr, '-o', 'cut.onnx', '-O1', '--cost', 'model', '-q')
            time.sleep(wait)
            p.send_signal(number)
            try:
                p.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                p.kill()
                raise Wrong(f'{number!s} after {wait} s is not heeded') from None
            # Before the program has set itself up, the signal simply ends it.
            expect(p.returncode in (0, code, -number), f'{number!s} after {wait} s: exit {p.returncode}')
            early += p.returncode != 0
            extra = set(os.listdir(bed.folder)) - {'out.onnx', 'cut.onnx', 'out.onnx.cert',
                                                   'cut.onnx.cert', 'out.cert', 'cut.cert'}
            expect(not extra, f'{number!s} after {wait} s: left behind: {extra}')
            if os.path.exists(bed.path('cut.onnx')):
                bed.good('show', 'cut.onnx')
                expect(p.returncode != 0 or open(bed.path('cut.onnx'), 'rb').read() == calm,
                       'exit 0 with other bytes')
                os.unlink(bed.path('cut.onnx'))
    expect(early > 0, 'no signal came in time to test anything')


# ---- sub-commands and reports -------------------------------------------------------------------

def case_verify(bed):
    import onnx
    model = onnx.load(bed.add)
    bed.optimise('-O1', model=bed.net)
    bed.good('verify', bed.net, 'out.onnx')
    bed.good('verify', bed.add, bed.add)
    model.graph.node[0].op_type = 'Sub'
    onnx.save(model, bed.path('sub.onnx'))
    code, _, _ = bed.run('verify', bed.add, 'sub.onnx')
    expect(code == 1, f'verify of Add against Sub: exit {code}')
    code, _, _ = bed.run('verify', bed.add, bed.net)
    expect(code in (1, 2), f'verify of models with other inputs: exit {code}')


def case_declared_shapes(bed):
    """What a model says of its values' shapes goes where a rewrite has given them others: the runtime
    believes it, and refuses what is written."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import helper as h
    weight = lambda name, *dims: onnx.numpy_helper.from_array(
        np.random.default_rng(1).standard_normal(dims, np.float32) / 8, name)
    conv = lambda x, w, y, **more: h.make_node('Conv', [x, w], [y], **more)
    floats = lambda name, *dims: h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)
    nodes = [conv('x', 'w', 'c'), h.make_node('Relu', ['c'], ['r']),
             h.make_node('GlobalAveragePool', ['r'], ['g']), conv('g', 'u', 's'),
             h.make_node('Relu', ['s'], ['t']), conv('t', 'p', 'e'), h.make_node('Sigmoid', ['e'], ['k']),
             h.make_node('Mul', ['r', 'k'], ['m']), h.make_node('Add', ['r', 'm'], ['a']), conv('a', 'z', 'y')]
    weights = [weight('w', 24, 8, 1, 1), weight('u', 6, 24, 1, 1), weight('p', 24, 6, 1, 1),
               weight('z', 7, 24, 1, 1)]
    graph = h.make_graph(nodes, 'gated', [floats('x', 1, 8, 6, 5)], [floats('y', 1, 7, 6, 5)], weights)
    model = onnx.shape_inference.infer_shapes(
        h.make_model(graph, opset_imports=[h.make_opsetid('', 11)], ir_version=8))
    expect(len(model.graph.value_info) == 9, 'value_info of the model')
    onnx.save(model, bed.path('gated.onnx'))
    bed.good('gated.onnx', '-o', 'out.onnx', '--cost', 'model', '--json', 'r.json', '-q')
    written = onnx.load(bed.path('out.onnx'))
    found = {v.name: v.type for v in onnx.shape_inference.infer_shapes(
        onnx.load(bed.path('out.onnx')), strict_mode=True).graph.value_info}
    dims = {w.name: w.dims[0] for w in written.graph.initializer if w.dims}
    widths = [dims[n.input[1]] for n in written.graph.node if n.op_type == 'Conv']
    expect(any(w % 16 == 0 for w in widths), f'no channels were padded: {widths}')
    expect(all(v.type == found[v.name] for v in written.graph.value_info), 'a shape is declared wrong')
    ort.InferenceSession(bed.path('out.onnx'), providers=['CPUExecutionProvider'])


def case_show(bed):
    text = bed.good('show', bed.add)
    expect('Add(' in text and 'graph' in text, 'show does not show the node')
    expect(text == bed.good('show', bed.add), 'show differs from run to run')


def case_json_and_html(bed):
    import json
    bed.good(bed.net, '-o', 'out.onnx', '-O1', '--cost', 'model', '-q', '--json', 'r.json',
             '--report', 'r.html')
    json.load(open(bed.path('r.json'), encoding='utf-8'))
    html = open(bed.path('r.html'), encoding='utf-8').read().lower()
    expect('<html' in html and '</html>' in html, 'the report is not an HTML page')
    expect('http://' not in html.replace('http://www.w3.org', '') and 'https://' not in html,
           'the report fetches something')


def case_explain(bed):
    import json
    text = bed.good('explain', bed.net, '-O2', '--cost', 'model', '--cache', 'none', '--json', 'e.json',
                    '--report', 'e.html')
    expect('roofline' in text and 'would be written' in text, 'explain does not print the search')
    found = json.load(open(bed.path('e.json'), encoding='utf-8'))
    parts = found['search']['subprograms']
    expect(found['command'] == 'explain' and found['out'] is None, 'explain says that it wrote')
    expect(any(p['mutants'] for p in parts), 'no part of the model has mutants')
    for m in (m for p in parts for m in p['mutants']):
        known = re.fullmatch(r'equal|equal in \d+ of \d+ boxes|differs|not compared', m['agrees'])
        expect(known and (not m['chosen'] or m['agrees'] == 'equal'),
               f"mutant {m['name']} is {m['fate']} and agrees: {m['agrees']}")
    html = open(bed.path('e.html'), encoding='utf-8').read()
    expect(parts[0]['name'] in html and '<svg' in html, 'the report does not draw the search')
    bed.refused('explain', bed.net, '-o', 'out.onnx', says='explain')


def case_quiet(bed):
    code, out, err = bed.run(bed.net, '-o', 'out.onnx', '-O1', '--cost', 'model', '-q')
    expect(code == 0 and not err, f'-q: exit {code}, standard error {err!r}')
    out = bed.good(bed.net, '-o', 'out.onnx', '-O1', '--cost', 'model')
    expect(out and 'operators' in out.lower(), 'there is no closing table')


if __name__ == '__main__':
    cases.main(sys.modules[__name__], Bed, ['petopt', 'data', 'models'])
