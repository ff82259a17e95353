"""What petopt -O1 says of a single layer: what bench/smooth.py and bench/tiles.py read."""
import argparse
import json
import os
import subprocess

import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def arguments(text, name):
    """--build, --threads, --work and --only; the work folder is there afterwards."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--work', default=None)
    parser.add_argument('--only', default='')
    args = parser.parse_args()
    args.work = os.path.abspath(args.work or os.path.join(args.build, 'bench', name))
    os.makedirs(args.work, exist_ok=True)
    return args


def told(args, model, name, *options):
    """(the run's JSON, what its variants read over the original in the first reading)."""
    path = os.path.join(args.work, name + '.onnx')
    onnx.save(model, path)
    subprocess.run([os.path.join(args.build, 'petopt'), path, '-o', path + '.out', '-O1', '-q',
                    '--json', path + '.json', '--threads', str(args.threads), '--cache', 'none', *options],
                   check=True)
    with open(path + '.json', encoding='utf-8') as f:
        run = json.load(f)
    return run, {c['name']: c['ratio'] for c in run['candidates'] if c['ratio']}
