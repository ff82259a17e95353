#!/usr/bin/env python3
"""Red team of verify: pairs of models that look alike and are not, and pairs that are equal.

  forged.py --petopt PROGRAM [--only KIND] [--keep FOLDER] [--seeds N]
  forged.py --sabotage

No pair of forged_pairs.py may be called equal or proved; every pair of equal_pairs.py must be called
equal, and at least 95 % of them proved. --seeds: how many random models' outputs are among the equal
pairs.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import equal_pairs
import forged_pairs

LEAST_PAIRS, LEAST_KINDS, LEAST_PROVED = 200, 20, 0.95
Answer = collections.namedtuple('Answer', 'counts equal proved said')


def verify(petopt, a, b, folder):
    told = os.path.join(folder, 'verdict.json')
    try:
        p = subprocess.run([petopt, 'verify', a, b, '--json', told, '--threads', '1'], timeout=120,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')
    except subprocess.TimeoutExpired:
        return Answer(False, False, False, 'still running after 120 s')
    if p.returncode == 3 and 'outputs are random' in p.stderr:
        return Answer(True, False, False, p.stderr.strip()[:300])
    if p.returncode not in (0, 1) or not os.path.exists(told):
        return Answer(False, False, False, p.stderr.strip()[:300])
    with open(told, encoding='utf-8') as f:
        verdict = json.load(f)
    return Answer(True, verdict['equal'], verdict['proved'], p.stdout.strip().replace('\n', ' | ')[:400])


def run_pair(args, what, a, b):
    """Models are bytes; b may be a function that makes the second file from the first."""
    folder = tempfile.mkdtemp()
    try:
        paths = [os.path.join(folder, n) for n in ('a.onnx', 'b.onnx')]
        for path, model in zip(paths, (a, b)):
            if callable(model):
                why = model(args.petopt, paths[0], path)
                if why:
                    return what, Answer(False, False, False, why)
            else:
                with open(path, 'wb') as f:
                    f.write(model)
        answer = verify(args.petopt, *paths, folder)
        if args.keep:
            shutil.copytree(folder, os.path.join(args.keep, what.replace('/', '_').replace(' ', '_')),
                            dirs_exist_ok=True)
        return what, answer
    finally:
        shutil.rmtree(folder)


def pairs_of(kinds, args):
    for name, kind in kinds.items():
        if args.only in name:
            for what, a, b in kind():
                yield f'{name}: {what}', a, b


def run_all(args, kinds):
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        jobs = [pool.submit(run_pair, args, *p) for p in pairs_of(kinds, args)]
        return [j.result() for j in jobs]


def judge_forged(answers):
    wrong = [(w, a) for w, a in answers if a.proved or a.equal]
    counted = [w for w, a in answers if a.counts]
    kinds = {w.split(':')[0] for w in counted}
    for w, a in wrong:
        print(f'WRONG   {w}: {"equal" if a.equal else ""} {"proved" if a.proved else ""}: {a.said}')
    for w, a in answers:
        if not a.counts:
            print(f'uncounted {w}: {a.said}')
    print(f'forged: {len(counted)} pairs of {len(kinds)} kinds, {len(wrong)} wrong')
    return len(wrong), len(counted), len(kinds)


def judge_equal(answers):
    wrong = [(w, a) for w, a in answers if a.counts and not a.equal]
    counted = [(w, a) for w, a in answers if a.counts]
    proved = sum(a.proved for _, a in counted)
    for w, a in wrong:
        print(f'WRONG   {w}: {a.said}')
    for w, a in answers:
        if not a.counts or (a.equal and not a.proved):
            print(f'{"tested" if a.counts else "uncounted"} {w}: {a.said}')
    print(f'equal: {len(counted)} pairs, {len(wrong)} wrong, {proved} proved')
    return len(wrong), len(counted), proved


def sabotage():
    """Verdicts as a verifier that is fooled would give them."""
    good = [(f'k{i % 25}: {i}', Answer(True, False, False, '')) for i in range(220)]
    for bad in Answer(True, True, False, ''), Answer(True, False, True, ''):
        if judge_forged(good + [('k1: x', bad)])[0] != 1:
            return 'a fooled verifier was not seen'
    same = [(f'k: {i}', Answer(True, True, True, '')) for i in range(200)]
    if judge_equal(same + [('k: x', Answer(True, False, True, ''))])[0] != 1:
        return 'an equal pair that was refused was not seen'
    texts = list(pairs_of(forged_pairs.KINDS, argparse.Namespace(only='')))
    if any(a == b for _, a, b in texts) or len({w for w, _, _ in texts}) < len(texts):
        return 'a pair is no pair, or is there twice'
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt', type=os.path.abspath)
    parser.add_argument('--only', default='')
    parser.add_argument('--keep', type=os.path.abspath)
    parser.add_argument('--seeds', type=int, default=60)
    parser.add_argument('--sabotage', action='store_true')
    args = parser.parse_args()
    if args.sabotage:
        why = sabotage()
        print(why or 'sabotage: seen')
        sys.exit(1 if why else 0)
    wrong, pairs, kinds = judge_forged(run_all(args, forged_pairs.KINDS))
    refused, same, proved = judge_equal(run_all(args, equal_pairs.kinds(args.seeds)))
    few = not args.only and (pairs < LEAST_PAIRS or kinds < LEAST_KINDS or same < LEAST_PAIRS)
    if few:
        print(f'WRONG   too few pairs count ({LEAST_PAIRS} of {LEAST_KINDS} kinds are wanted)')
    if same and proved < LEAST_PROVED * same:
        print(f'WRONG   {proved} of {same} equal pairs are proved, {LEAST_PROVED:.0%} are wanted')
        few = True
    sys.exit(1 if wrong or refused or few else 0)


if __name__ == '__main__':
    main()
