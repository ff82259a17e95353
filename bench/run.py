#!/usr/bin/env python3
"""petopt beside the original, onnxsim, OnnxSlim and OpenVINO, on real and built models.

  bench/run.py [--build DIR] [--threads N].. [--kernels] [--set NAME].. [--only TEXT] [--work DIR]
               [--no-rivals] [--open-batch]

Sets: ocr (the three models of rapidocr-onnxruntime), nets (models/: the networks), blocks
(models/: Mirage's six), trinity (models/: Trinity's six), zoo (models/: other kinds of networks), light (the nine of the onnx tests, with their made-up weights). Rivals need
`scripts/deps.sh --bench`. Latencies of ONNX files come from one `petopt bench` each, interleaved in
ONNX Runtime; its control is what the original reads against itself. OpenVINO is timed in turns with
ONNX Runtime in a process of its own. Prints a table in Markdown.

--kernels: petopt makes kernels too (--kernels WORK/NAME.kernels), and its output is measured with
the library loaded, in ONNX Runtime beside the original and the other tools' outputs, and in turns
with OpenVINO; at one thread and at all where --threads is not given. petopt runs once, for the
first thread count. "over the best" is against whatever of the original and the rivals is fastest. A
second table says where the kernels' time goes against the roofline (docs/measuring.md).

--open-batch: the first dim of inputs and outputs is open (bench/open_batch.py).
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys

os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NETS = ['resnet18', 'inception_v3', 'csrnet', 'bert_base', 'resnet3d18_8', 'resnet3d18']
FARTHEST = 3  # steps of a network that are told with their distance from the roofline
BLOCKS = ['gqa', 'qknorm', 'rmsnorm_linear', 'lora', 'gated_mlp', 'ntrans']
TRINITY = ['trinity_' + n for n in ['vanilla', 'prenorm', 'qknorm', 'keyformer', 'roco', 'swiglu']]
SETS = ['ocr', 'nets', 'blocks', 'trinity', 'zoo', 'light']
ZOO = ['bytes', 'tcn', 'conformer', 'wav2vec', 'convnext', 'yolo', 'unet', 'line',
       'mobilenet_v2', 'resnext50', 'dcgan', 'segformer', 'upscale', 'densenet121', 'u2net', 'upernet',
       'deeplab', 'hrnet_head', 'midas_head']
OCR = [('ocr detector', 'ch_PP-OCRv4_det_infer', 'x:1,3,640,640'),
       ('ocr recogniser', 'ch_PP-OCRv4_rec_infer', 'x:1,3,48,320'),
       ('ocr classifier', 'ch_ppocr_mobile_v2.0_cls_infer', 'x:1,3,48,192')]


def deps():
    """.deps of this tree, or of the main work tree that it is linked to."""
    here = os.path.join(ROOT, '.deps')
    if not os.path.isdir(here):
        common = subprocess.run(['git', '-C', ROOT, 'rev-parse', '--path-format=absolute',
                                 '--git-common-dir'], capture_output=True, text=True).stdout.strip()
        here = os.path.join(os.path.dirname(common), '.deps')
    return here


def suite(args):
    """(name, path, pinned shapes) of each model."""
    rows = []
    if 'ocr' in args.set:
        rows += [(n, os.path.join(deps(), 'models', f + '.onnx'), [s]) for n, f, s in OCR]
    wanted = (NETS if 'nets' in args.set else []) + (BLOCKS if 'blocks' in args.set else [])
    wanted += TRINITY if 'trinity' in args.set else []
    wanted += ZOO if 'zoo' in args.set else []
    wanted = [n for n in wanted if args.only in n]
    folder = os.path.join(args.work, 'models')
    missing = [n for n in wanted if not os.path.exists(os.path.join(folder, n + '.onnx'))]
    if missing:
        subprocess.run([os.path.join(args.build, 'petopt-models'), folder, *missing], check=True,
                       stdout=subprocess.DEVNULL)
    rows += [(n, os.path.join(folder, n + '.onnx'), []) for n in wanted]
    if 'light' in args.set:
        rows += [(os.path.basename(p)[:-5], p, [])
                 for p in sorted(glob.glob(os.path.join(deps(), 'onnx/test-data/light/*.onnx')))]
    rows = [r for r in rows if args.only in r[0]]
    return [opened(args, *r) for r in rows] if args.open_batch else rows


def opened(args, name, path, shapes):
    out = os.path.join(args.work, name.replace(' ', '_') + '.open.onnx')
    subprocess.run([os.path.join(deps(), 'venv', 'bin', 'python3'),
                    os.path.join(ROOT, 'bench', 'open_batch.py'), path, out], check=True)
    return name, out, shapes


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


class Rivals:
    def __init__(self, on):
        self.python = os.path.join(deps(), 'bench', 'bin', 'python3')
        self.script = os.path.join(ROOT, 'bench', 'rivals.py')
        self.on = on and os.path.exists(self.python)
        self.versions = self.ask('versions') if self.on else None

    def ask(self, *words):
        try:
            p = run([self.python, self.script, *map(str, words)], timeout=900)
        except subprocess.TimeoutExpired:
            return None
        return p.stdout.strip() if p.returncode == 0 else None


def optimise(args, path, shapes, out):
    report = out + '.json'
    command = [args.petopt, path, '-o', out, '-q', '--json', report,
               '--threads', str(args.threads[0]), '--cache', os.path.join(args.work, 'cost.db'), *args.petopt_options.split()]
    if args.kernels:
        command += ['--kernels', out[:-len('.onnx')] + '.kernels']
    for s in shapes:
        command += ['--input-shape', s]
    p = run(command)
    if p.returncode != 0:
        return None, p.stderr.strip()
    with open(report, encoding='utf-8') as f:
        return json.load(f), None


def bench(args, files, shapes, threads, library):
    report = os.path.join(args.work, 'bench.json')
    command = [args.petopt, 'bench', *files, '-q', '--json', report, '--threads', str(threads)]
    command += ['--library', library] if library else []
    for s in shapes:
        command += ['--input-shape', s]
    p = run(command)
    if p.returncode != 0:
        return None, p.stderr.strip()
    with open(report, encoding='utf-8') as f:
        return json.load(f), None


def times(x):
    return '-' if x is None else f'{x:.2f}x'


def beside_openvino(args, rivals, path, out, shapes, threads, library):
    """Medians in ms: onnxruntime (the original), openvino, petopt; None without OpenVINO."""
    words = ['--threads', threads, '--beside', out] + (['--library', library] if library else [])
    told = rivals.ask('openvino', path, *shapes, *words) if rivals.on else None
    return json.loads(told.splitlines()[-1]) if told else None


def standard(told):
    """The best gain that was read of what has no kernels, where petopt chose between them."""
    gains = [c['ratio'] for c in told['candidates'] if c['ratio'] and not c['name'].startswith('kernels')]
    return max([1, *gains])


def measure_at(args, rivals, name, told, files, shapes, threads):
    """A row at one thread count; files: (column, path), the original's and petopt's first."""
    library = told['library']
    paths = [p for _, p in files]
    read, failed = bench(args, paths, shapes, threads, library)
    if failed:
        return None, f'{name}: {failed}'
    gain = {c: m['ratio'] for (c, _), m in zip(files, read['models'])}
    vino = beside_openvino(args, rivals, paths[0], paths[1], shapes, threads, library)
    ours = read['models'][1]
    over = [ours['ratio'] / max(gain[c] for c, _ in files if c != 'petopt')]
    over += [vino['openvino'] / vino['petopt']] if vino else []
    error = '0' if not told['changed'] else '?' if told['error'] is None else f'{told["error"]:.1e}'
    row = [name] + ([str(threads)] if len(args.threads) > 1 else [])
    row += [f'{read["models"][0]["ms"]:.2f}', f'{ours["ms"]:.2f}',
            f'{ours["ratio"]:.3f}x ({ours["ratio_low"]:.3f} to {ours["ratio_high"]:.3f})']
    row += [times(standard(told))] if args.kernels else []
    row += [times(gain.get('onnxsim')), times(gain.get('onnxslim')),
            times(vino['onnxruntime'] / vino['openvino'] if vino else None), times(min(over)),
            f'{read["control"]:.3f}', f'{told["nodes_before"]} to {told["nodes_after"]}', error,
            told['winner']]
    line = roofline(name, told, ours['ms']) if args.kernels and threads == 1 else None
    return (row, line, read, ours['ratio'], min(over)), None


def measure(args, rivals, name, path, shapes):
    """Yields (row, roofline, what was read, gain, gain over the best), or what failed, by thread count."""
    stem = os.path.join(args.work, name.replace(' ', '_'))
    told, failed = optimise(args, path, shapes, stem + '.onnx')
    if failed:
        yield None, f'{name}: {failed}'
        return
    files = [('original', path), ('petopt', stem + '.onnx')]
    for tool in ('onnxsim', 'onnxslim'):
        other = f'{stem}.{tool}.onnx'
        if rivals.on and rivals.ask(tool, path, other, *shapes) is not None:
            files.append((tool, other))
    for threads in args.threads:
        yield measure_at(args, rivals, name, told, files, shapes, threads)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def roofline(name, told, ms):
    """Where the time of the kernels goes: None where none won."""
    regions = [r for r in told['regions'] if not r['why']]
    steps = [s for r in regions for s in r['steps'] if s['ms']]
    if not told['library'] or not steps:
        return None
    total, least = sum(s['ms'] for s in steps), sum(s['ms_roofline'] for s in steps)
    work = sum(s['flops'] for s in steps)
    kinds = {}  # steps of one form are one
    for s in steps:
        kind = kinds.setdefault((s['name'], s['schedule'], s['ms']), [0, 0, 0])
        for i, x in enumerate((1, s['ms'], s['ms_roofline'])):
            kind[i] += x
    far = sorted(kinds.items(), key=lambda k: k[1][2] - k[1][1])[:FARTHEST]
    tell = [f'{k[0]} ({k[1]}){f" x{n}" if n > 1 else ""}: {a:.3f}, {b:.3f}'.replace('|', '/')
            for k, (n, a, b) in far]
    return [name, f'{ms:.2f}', f'{total:.2f}', f'{least:.2f}', f'{100 * least / total:.0f} %',
            f'{work / total / 1e6:.0f}', '; '.join(tell)]


def header(args):
    return (['model'] + (['threads'] if len(args.threads) > 1 else []) +
            ['original ms', 'petopt ms', 'petopt (95 %)'] +
            (['standard operators'] if args.kernels else []) +
            ['onnxsim', 'OnnxSlim', 'OpenVINO', 'over the best', 'control', 'operators', 'error',
             'won'])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--threads', type=int, action='append', help='may be given again')
    parser.add_argument('--kernels', action='store_true', help='petopt makes kernels too')
    parser.add_argument('--set', action='append', choices=SETS)
    parser.add_argument('--only', default='')
    parser.add_argument('--work', default=None, help='kept between runs: models, outputs, cache')
    parser.add_argument('--no-rivals', action='store_true')
    parser.add_argument('--open-batch', action='store_true', help='the batch of every model is open')
    parser.add_argument('--petopt-options', default='', help='passed on to petopt')
    args = parser.parse_args()
    args.set = args.set or SETS
    cores = len(os.sched_getaffinity(0))
    args.threads = args.threads or ([1, cores] if args.kernels and cores > 1 else [1])
    args.work = os.path.abspath(args.work or os.path.join(args.build, 'bench'))
    args.petopt = os.path.join(args.build, 'petopt')
    os.makedirs(args.work, exist_ok=True)
    rivals = Rivals(not args.no_rivals)
    head = header(args)
    print('| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head), flush=True)
    failures, machine, gains, lines = [], None, {}, []
    for name, path, shapes in suite(args):
        for got, failed in measure(args, rivals, name, path, shapes):
            if failed:
                failures.append(failed)
                continue
            row, line, read, *gain = got
            lines += [line] if line else []
            machine = f'{read["runtime"]}, {read["cpu"]}'
            gains.setdefault(read['threads'], []).append(gain)
            print('| ' + ' | '.join(row) + ' |', flush=True)
    print(f'\n{machine}; {rivals.versions or "no rivals installed"}')
    for threads, all_of in sorted(gains.items()):
        over = [g[1] for g in all_of]
        print(f'{threads} thread(s): lowest {times(min(g[0] for g in all_of))}, geometric mean '
              f'{times(geomean([g[0] for g in all_of]))}; over the best {times(min(over))}, '
              f'{times(geomean(over))}')
    if lines:
        head = ['model, one thread', 'ms', 'sum of steps', 'roofline', 'reached', 'GFLOP/s',
                'farthest from the roofline: ms, by it']
        print('\n| ' + ' | '.join(head) + ' |\n|' + ' --- |' * len(head))
        print('\n'.join('| ' + ' | '.join(line) + ' |' for line in lines))
    for f in failures:
        print('failed: ' + f)
    sys.exit(1 if failures or machine is None else 0)


if __name__ == '__main__':
    main()
