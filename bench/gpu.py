#!/usr/bin/env python3
"""All figures of a machine with an NVIDIA GPU, in one command.

  bench/gpu.py [--build DIR] [--work DIR] [--cache FILE] [--seconds S] [--libraries DIR]
               [--only blocks,trinity,runtime,operators,networks,sanitizer]
               [--batches 1,16] [--networks resnet18,csrnet]
               [--petopt-options "..."] [-- OPTIONS OF petopt-gpu]

blocks     Mirage's six blocks in f16 at batch 1, 8 and 16, by petopt-gpu: the composition of cuBLAS,
           cuDNN and a kernel an operator against regions as kernels; every program against float64;
           and PyTorch's best (bench/torch_blocks.py), where that is, in a process of its own
trinity    Trinity's six blocks in f16, likewise
runtime    Mirage's blocks in ONNX Runtime's CUDA provider, as they are and with petopt's kernels, by
           bench/cuda_ort.py, where that is
operators  PET's operator cases and those of bench/operators.py, like the networks; needs onnx
networks   PET's five networks at batch 1 and 16, by petopt --target cuda --cost record:FILE: FILE is a
           recording that --cost replay:FILE gives again on machines without a GPU
sanitizer  our kernels of the blocks once more under compute-sanitizer, memcheck and racecheck, where
           that is

NVIDIA's libraries are those of --libraries, of the system, of /usr/local/cuda, or else those that
pip has put beside this Python (nvidia-cuda-nvrtc, nvidia-cublas, nvidia-cudnn; PyTorch brings them).
Prints tables in Markdown. Ends with 1 where a kernel is wrong or a sanitizer complains, and with 3
where there is no GPU.
"""
import argparse
import ctypes
import glob
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NETWORKS = ['resnet18', 'csrnet', 'inception_v3', 'bert_base', 'resnet3d18']
TRINITY = ['vanilla', 'prenorm', 'qknorm', 'keyformer', 'roco', 'swiglu']
WHOLE = re.compile(r'^ {4}(libraries|regions).*?\s([\d.]+) us,\s+(\d+) steps, ([\d.]+)x '
                   r'\[([\d.]+), ([\d.]+)\](?:, error (\S+))?')
REACHED = re.compile(r'([\d.]+) us \(estimate ([\d.]+)\).*? (\d+) % of the copy rate')
TORCH = re.compile(r'(eager|compiled|attention) ([\d.]+) us')
LATENCY = re.compile(r'^latency\s+(\S+ \S+)\s+(\S+ \S+)\s+(.*)$', re.M)


TOOLKIT = '/usr/local/cuda'
LIBRARIES = [['libnvrtc.so.13', 'libnvrtc.so.12'], ['libcublasLt.so.13', 'libcublasLt.so.12'],
             ['libcudnn.so.9']]


def is_here(name):
    try:
        ctypes.CDLL(name)
    except OSError:
        return os.path.exists(f'{TOOLKIT}/lib64/{name}')
    return True


def folders_of_pip():
    """Of those libraries that are nowhere else."""
    found = []
    for names in LIBRARIES:
        paths = [p for name in names for site in {sysconfig.get_path('purelib'), *sys.path} if site
                 for p in glob.glob(f'{site}/nvidia/*/lib/{name}')]
        if paths and not any(map(is_here, names)):
            found.append(os.path.dirname(paths[0]))
    return list(dict.fromkeys(found))


class Bench:
    def __init__(self, args):
        self.args, self.failed = args, []
        self.work = args.work or tempfile.mkdtemp(prefix='petopt-gpu-')
        os.makedirs(self.work, exist_ok=True)
        self.rest = ['--libraries', args.libraries] * bool(args.libraries) + args.rest
        self.petopt_words = (['--cuda-libraries', args.libraries] * bool(args.libraries) +
                             args.petopt_options.split())
        folders = [] if args.libraries else folders_of_pip()
        if folders:
            before = os.environ.get('LD_LIBRARY_PATH')
            os.environ['LD_LIBRARY_PATH'] = ':'.join([before] * bool(before) + folders)
            print('libraries of ' + ', '.join(folders))

    def batches(self, *usual):
        asked = self.args.batches
        return [int(b) for b in asked.split(',')] if asked else usual

    def tool(self, name):
        return os.path.join(self.args.build, name)

    def models(self, *words):
        done = subprocess.run([self.tool('petopt-models'), *words[:-1], self.work, *words[-1]],
                              capture_output=True, text=True, check=True)
        return done.stdout.split()

    def run(self, path):
        """What petopt-gpu says of one model."""
        done = subprocess.run([self.tool('petopt-gpu'), '--seconds', str(self.args.seconds),
                               *self.rest, path], capture_output=True, text=True)
        if done.returncode == 3:
            sys.stderr.write(done.stderr)
            sys.exit(3)
        if done.returncode:
            self.failed.append(os.path.basename(path))
            sys.stderr.write(done.stdout + done.stderr)
        return done.stdout

    def torch(self, paths):
        """(microseconds, way) of PyTorch's fastest for each model that it runs, by file name."""
        done = subprocess.run([sys.executable, os.path.join(HERE, 'torch_blocks.py'), *paths],
                              capture_output=True, text=True)
        if done.stderr:
            print('torch_blocks.py: ' + done.stderr.strip().splitlines()[-1], file=sys.stderr)
        rows = [line.split(': ', 1) for line in done.stdout.splitlines() if TORCH.search(line)]
        return {name: min((float(us), way) for way, us in TORCH.findall(row)) for name, row in rows}

    def table(self, title, paths):
        print(f'\n{title}\n\n| model | libraries, us | torch, us | regions, us | over libraries | '
              'over the best | error | best kernel, % of copy rate |\n' + '| --- ' * 8 + '|')
        gains, over, found = [], [], self.torch(paths)
        for path in paths:
            text = self.run(path)
            rows = [m for m in map(WHOLE.match, text.splitlines()) if m]
            if len(rows) < 2:
                print(f'| {os.path.basename(path)[:-5]} ' + '| - ' * 7 + '|', flush=True)
                continue
            base, best = rows[0], min(rows[1:], key=lambda m: float(m.group(2)))
            torch = found.get(os.path.basename(path)[:-5])
            gains.append(float(best.group(4)))
            over.append(min(gains[-1], torch[0] / float(best.group(2)) if torch else math.inf))
            reached = [(float(m.group(1)), m.group(3)) for m in REACHED.finditer(text)]
            print(f'| {os.path.basename(path)[:-5]} | {base.group(2)} | '
                  f'{f"{torch[0]:.2f} ({torch[1]})" if torch else "-"} | {best.group(2)} | '
                  f'{gains[-1]:.2f}x [{best.group(5)}, {best.group(6)}] | {over[-1]:.2f}x | '
                  f'{best.group(7)} | {min(reached)[1] if reached else "-"} |', flush=True)
        if gains:
            cells = [f'{math.exp(sum(map(math.log, g)) / len(g)):.2f}x, least {min(g):.2f}x'
                     for g in (gains, over)]
            print(f'| geomean of {len(gains)} | | | | {cells[0]} | {cells[1]} | | |')

    def blocks(self):
        for batch in self.batches(1, 8, 16):
            self.table(f'Mirage\'s blocks, f16, batch {batch}',
                       self.models('--f16', '--batch', str(batch), []))

    def trinity(self):
        self.table('Trinity\'s blocks, f16',
                   self.models('--f16', ['trinity_' + name for name in TRINITY]))

    def runtime(self):
        print('\nONNX Runtime\'s CUDA provider\n', flush=True)
        code = subprocess.run([sys.executable, os.path.join(HERE, 'cuda_ort.py'), '--build',
                               self.args.build, '--work', self.work,
                               f'--petopt-options={" ".join(self.petopt_words)}',
                               *self.models('--f16', '--batch', '8', [])]).returncode
        if code not in (0, 3):
            self.failed.append('runtime')

    def recorded(self, title, paths):
        """petopt itself, whose readings are kept."""
        print(f'\n{title}, -O2, against the same executor without mutation\n\n'
              '| model | before | after | |\n| --- | --- | --- | --- |')
        cache = self.args.cache or os.path.join(self.work, 'gpu.db')
        for path in paths:
            done = subprocess.run([self.tool('petopt'), path, '-o', path + '.out.onnx', '--target',
                                   'cuda', '--cost', 'record:' + cache, *self.petopt_words],
                                  capture_output=True, text=True)
            row = LATENCY.search(done.stdout + done.stderr)
            name = os.path.basename(path)[:-5]
            kept = not done.returncode and 'won: original' in done.stdout + done.stderr
            if done.returncode or not (row or kept):
                self.failed.append(name)
                sys.stderr.write(done.stdout + done.stderr)
            cells = row.groups() if row else ('-', '-', 'the original stays' if kept else 'failed')
            print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)
        print(f'\nrecorded in {cache}')

    def operators(self):
        try:
            import onnx
            from operators import CASES
        except ImportError as e:
            print(f'\nOperator cases: left out, {e}')
            return
        paths = []
        for i, (name, make, _) in enumerate(CASES):
            paths.append(os.path.join(self.work, f'{i} {name.split(":")[0]}.onnx'))
            onnx.save(make(), paths[-1])
        self.recorded('Operator cases', paths)

    def networks(self):
        for batch in self.batches(1, 16):
            self.recorded(f'PET\'s networks, batch {batch}',
                          self.models('--batch', str(batch), self.args.networks.split(',')))

    def sanitizer(self):
        program = shutil.which('compute-sanitizer') or TOOLKIT + '/bin/compute-sanitizer'
        if not os.path.exists(program):
            print('\ncompute-sanitizer is not here')
            return
        # What NVIDIA's libraries try and are refused, and their kernels, are not ours to judge.
        options = ['--target-processes', 'all', '--kernel-name', 'kernel_substring=petopt',
                   '--report-api-errors', 'no', '--error-exitcode', '9']
        print('\n| model | memcheck | racecheck |\n| --- | --- | --- |')
        for path in self.models('--f16', '--batch', '1', []):
            told = []
            for kind in ('memcheck', 'racecheck'):
                done = subprocess.run([program, '--tool', kind, *options, self.tool('petopt-gpu'),
                                       '--no-models', '--seconds', '0.02', *self.rest, path],
                                      capture_output=True, text=True)
                text = done.stdout + done.stderr
                told += re.findall(r'(?:ERROR|RACECHECK) SUMMARY: (.*)', text)[:1] or \
                    [f'ended with {done.returncode}']
                if done.returncode:
                    self.failed.append(f'{os.path.basename(path)[:-5]} under {kind}')
                    sys.stderr.write('\n'.join(text.splitlines()[-60:]) + '\n')
            print(f'| {os.path.basename(path)[:-5]} | ' + ' | '.join(told) + ' |', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--work')
    p.add_argument('--cache')
    p.add_argument('--libraries')
    p.add_argument('--only', default='blocks,trinity,runtime,operators,networks,sanitizer')
    p.add_argument('--batches', default='', help='of blocks and networks, instead of the usual')
    p.add_argument('--networks', default=','.join(NETWORKS))
    p.add_argument('--petopt-options', default='')
    p.add_argument('--seconds', type=float, default=4)
    p.add_argument('rest', nargs='*')
    bench = Bench(p.parse_args())
    for part in bench.args.only.split(','):
        getattr(bench, part)()
    if bench.failed:
        print('\nnot right: ' + ', '.join(bench.failed))
    return 1 if bench.failed else 0


if __name__ == '__main__':
    sys.exit(main())
