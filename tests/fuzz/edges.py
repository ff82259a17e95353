#!/usr/bin/env python3
"""How much of each fuzz target its kept corpus reaches.

  edges.py corpus BUILD  fails below 98 % of what tests/fuzz/edges.txt says, and where an input fails
  edges.py edges BUILD   writes that file
  edges.py sabotage BUILD  checks that one input of each in the corpus' place is too few
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, 'edges.txt')
LEAST = 0.98


def reached(build, name, folder=None):
    """libFuzzer's count of covered edges after one run of each input."""
    p = subprocess.run([os.path.join(build, 'tests', 'fuzz', 'fuzz_' + name), '-runs=0', '-timeout=20',
                        '-rss_limit_mb=2048', folder or os.path.join(HERE, 'corpus', name)], check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
    if p.returncode:
        sys.exit(f'{p.stdout[-3000:]}\n{name}: exit {p.returncode}')
    return max(int(n) for n in re.findall(r'\bcov: (\d+)', p.stdout))


def reached_by_one(build, name):
    kept = os.path.join(HERE, 'corpus', name)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(kept, min(os.listdir(kept))), folder)
        return reached(build, name, folder)


def main():
    what, build = sys.argv[1:]
    kept = {}
    if os.path.exists(KEPT):
        with open(KEPT, encoding='utf-8') as f:
            kept = {line.split()[0]: int(line.split()[1]) for line in f if line[0] != '#'}
    names = sorted(f[5:-2] for f in os.listdir(HERE) if re.fullmatch(r'fuzz_\w+\.c', f))
    found = {}
    if what == 'sabotage':
        enough = [n for n in names if reached_by_one(build, n) >= LEAST * kept[n]]
        sys.exit(f'one input is enough for {", ".join(enough)}' if enough else 0)
    for name in names:
        found[name] = reached(build, name)
        print(f'{name}: {found[name]} edges, {kept.get(name, 0)} written down', flush=True)
    if what == 'edges':
        with open(KEPT, 'w', encoding='utf-8') as f:
            f.write('# Edges that the kept corpus of each target reaches: scripts/check.sh edges\n')
            f.writelines(f'{name} {n}\n' for name, n in found.items())
        return
    bad = [n for n in names if n not in kept or found[n] < LEAST * kept[n]]
    sys.exit(f'fewer edges than written down: {", ".join(bad)}' if bad else 0)


if __name__ == '__main__':
    main()
