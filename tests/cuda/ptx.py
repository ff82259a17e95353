#!/usr/bin/env python3
"""Runs the PTX that NVRTC makes of printed kernels, and compares with float64.

  ptx.py CUDA_PTX_MAKE hand|plans|models 80|100 [NAME]

What the emulator of this folder replaces by C++ of its own is here the PTX itself, on the machine of
ptx_machine.py. Of `hand`, faults that are put into the PTX must be seen.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from ptx_machine import GLOBAL, GUARD, Block, Fault, Memory, from_bf16, from_f16, kernels

LIMIT, LOOSE, LOST = 16, 8, 50  # as in cuda_check.c
UNITS = [2.0 ** -24, 2.0 ** -11, 2.0 ** -8]


def read(folder, number):
    with open(f'{folder}/{number}.json', encoding='utf-8') as f:
        case = json.load(f)
    with open(f'{folder}/{number}.ptx', encoding='utf-8') as f:
        return case, f.read()


def run(folder, number, case, text):
    """What is wrong, and the largest error in u S."""
    code = kernels(text)
    sizes, at = {}, GUARD
    for place, n, kind, count in case['ports']:
        sizes[place, n] = (at, kind, count)
        at += (count * (4 if kind == 0 else 2) + 255) // 256 * 256 + GUARD
    sizes['device', 0] = (at, 0, 0)
    memory = Memory(GLOBAL, at + case['device'] + GUARD)
    memory.there[at:at + case['device']] = True
    for (place, n), (where, kind, count) in sizes.items():
        size = count * (4 if kind == 0 else 2)
        memory.there[where:where + size] = True
        if place in ('input', 'weight'):
            memory.data[where:where + size] = np.fromfile(f'{folder}/{number}.{place}{n}', np.uint8)
    for launch in case['launches']:
        params = [GLOBAL + sizes[place, n][0] + offset for place, n, offset in launch['args']]
        grid = launch['grid']
        for i in range(grid[0] * grid[1] * grid[2]):
            place = i % grid[0], i // grid[0] % grid[1], i // grid[0] // grid[1]
            try:
                Block(code[launch['symbol']], launch, params, place, memory).run()
            except Fault as e:
                return f'{launch["symbol"]}, block {place}: {e}', 0
    return compare_all(folder, number, case, sizes, memory)


def compare_all(folder, number, case, sizes, memory):
    unit = max(UNITS[case['type']], 2.0 ** -11 if case['tf32'] else 0)
    far = total = 0
    most = 0.0
    for (place, n), (where, kind, count) in sizes.items():
        if place != 'output':
            continue
        raw = memory.data[where:where + count * (4 if kind == 0 else 2)]
        got = raw.view(np.float32) if kind == 0 else (from_f16 if kind == 1 else from_bf16)(raw.view(np.uint16))
        want, s = (np.fromfile(f'{folder}/{number}.{name}{n}') for name in ('output', 'sum'))
        large = np.abs(want[np.isfinite(want)]).max()
        with np.errstate(all='ignore'):
            off = np.abs(got.astype(float) - want)
            told = np.isfinite(want) & np.isfinite(s)
            loose = told & (LIMIT * unit * s > large / LOOSE)
            tight = told & ~loose
            error = off[tight] / (unit * s[tight] + 2.0 ** -24)
        far += (~(off[loose] <= large / LOOSE)).sum()
        total += told.sum()
        most = max(most, error.max(initial=0))
        if not (error <= LIMIT).all():
            i = np.flatnonzero(tight)[np.argmax(np.where(np.isnan(error), np.inf, error))]
            return f'output {n}, element {i}: {got[i]} instead of {want[i]}', most
    return (f'{far} of {total} elements are far off' if far * LOST > total else None), most


# Of a case by hand: what is changed in its PTX, each time.
FAULTS = [('product f16', r'\.x4\.trans', '.x4'),
          ('product f16', r'(mma\S+ \{[^}]*\}, \{%r\d+),(%r\d+),(%r\d+)', r'\1,\3,\2'),
          ('product bf16', r'(mma\S+ \{[^}]*\}, \{[^}]*\}, )\{(%r\d+),(%r\d+)\}', r'\1{\3,\2}'),
          ('product tf32', r'(mma\S+ \{[^}]*\}, \{%r\d+),(%r\d+),(%r\d+)', r'\1,\3,\2'),
          ('product f16', r'wait_group \d', 'wait_group 9'),
          ('product f16', r'(cvt\.rn\.f16x2\.f32\s+%r\d+), (%f\d+), (%f\d+)', r'\1, \3, \2'),
          ('product_tails f16', r'(cp\.async\.ca\S+ \S+ \S+ 8), %r\d+', r'\1, 8'),
          ('softmax f32', r'shfl\.sync\.bfly(\S+\s+\S+ \S+) %r\d+', r'shfl.sync.bfly\1 0'),
          ('softmax f32', r'(?s)bar\.sync', 'ret; bar.sync')]


def unseen(folder, cases):
    missed = 0
    for name, pattern, instead in FAULTS:
        number, (case, text) = next((n, c) for n, c in cases.items() if c[0]['name'] == name)
        changed, times = re.subn(pattern, instead, text)
        if not times or run(folder, number, case, changed)[0] is None:
            print(f'{name}, {pattern}: ' + ('not seen' if times else 'not there'))
            missed += 1
    return missed


def main():
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.argv[1], folder, sys.argv[3], sys.argv[2], *sys.argv[4:]],
                              capture_output=True, text=True, check=False)
        if made.returncode == 77:
            print('skipped: there is no NVRTC: ' + made.stdout)
            return 0
        if made.returncode:
            print(made.stdout + made.stderr)
            return 1
        numbers = sorted(int(name[:-4]) for name in os.listdir(folder) if name.endswith('.ptx'))
        cases = {number: read(folder, number) for number in numbers}
        wrong, most = 0, 0.0
        for number, (case, text) in cases.items():
            why, error = run(folder, number, case, text)
            if why:
                print(f'{case["name"]}: {why}', flush=True)
            wrong += why is not None
            most = max(most, error)
        print(f'{len(numbers)} programs, {wrong} wrong, off by {most:.2f} u S at most')
        if sys.argv[2:] == ['hand', '80']:
            wrong += unseen(folder, cases)
    return 1 if wrong or not numbers else 0


if __name__ == '__main__':
    sys.exit(main())
