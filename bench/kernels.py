#!/usr/bin/env python3
"""Times printed kernels of common layers and checks them against float64.

  bench/kernels.py [--build DIR] [--isa avx512|avx2] [--parts N] [--only WORD] [--no-check]

Writes each layer as a muGraph (docs/mugraph.md) and runs DIR/petopt-kernels on it (ninja
petopt-kernels). GFLOP/s of Winograd are those of the direct algorithm.
"""
import argparse
import os
import subprocess
import tempfile
from fractions import Fraction as F


def times(a, b):
    out = [F(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


def toom(m, r, points):
    """B, G, A of the algorithm of m outputs and r taps by these points and infinity."""
    p, b, g = [F(x) for x in points], [], []
    for i, x in enumerate(p):
        q, d = [F(1)], F(1)
        for k, y in enumerate(p):
            if k != i:
                q, d = times(q, [-y, F(1)]), d * (x - y)
        b.append(q + [F(0)])
        g.append([x ** j / d for j in range(r)])
    q = [F(1)]
    for y in p:
        q = times(q, [-y, F(1)])
    b.append(q)
    g.append([F(0)] * (r - 1) + [F(1)])
    a = [[x ** j for x in p] + [F(1 if j == m - 1 else 0)] for j in range(m)]
    return b, g, a


def table(rows):
    return '{' + ', '.join(str(x) for row in rows for x in row) + '}'


def product(m, k, n, rows, vectors):
    p = 16 * vectors
    return f"""mugraph product {{
  label m {m} label b {n // p} label n {p} label k {k}
  tensor A input 0 [{m}, {k}]
  tensor B weight 0 [{n // p}, {k}, {p}]
  tensor Y output 0 [{m}, {n}]
  step "product" {{
    grid b by 1 {{
      Y[m, {p}*b+n] += A[m, k] * B[b, k, n] fresh tile m*{rows} n*{vectors} ahead B {k * p}
    }}
  }}
}}"""


def direct(c, k, h, stride, taps, rows, vectors):
    p, o = 16 * vectors, h // stride
    size = (o - 1) * stride + taps
    return f"""mugraph direct {{
  label y {o} label x {o} label r {taps} label s {taps} label c {c} label b {k // p} label k {p}
  tensor A input 0 [{size}, {size}, {c}]
  tensor W weight 0 [{k // p}, {taps}, {taps}, {c}, {p}]
  tensor bias weight 1 [{k}]
  tensor Y output 0 [{o}, {o}, {k}]
  step "convolution" {{
    grid b by 1 {{ grid y by {1 if o > 14 else o} {{
      register P [{o}, {o}, {k}]
      P[y, x, {p}*b+k] += A[{stride}*y+r, {stride}*x+s, c] * W[b, r, s, c, k] fresh tile x*{rows} k*{vectors} order b y r s c
      Y[y, x, {p}*b+k] = max(P[y, x, {p}*b+k] + bias[{p}*b+k], 0) fused
    }} }}
  }}
}}"""


def winograd(c, k, h, piece, m=4):
    b, g, a = toom(m, 3, {4: [0, F(7, 10), F(-7, 10), F(3, 2), F(-3, 2)], 2: [0, 1, -1]}[m])
    n, t1, p = m + 2, (h + m - 1) // m, 64
    t = t1 * t1
    vs, us, ms = t * (c + 16) + 16, piece * p + 16, t * p + 16
    return f"""mugraph winograd {{
  label ty {t1} label tx {t1} label t {t} label i {n} label j {n} label m {n} label n {n}
  label y {m} label x {m} label r 3 label s 3 label c {c} label b {k // p} label k {p}
  tensor A input 0 [{m * t1 + 2}, {m * t1 + 2}, {c}]
  tensor W weight 0 [{k // p}, {c}, 3, 3, {p}]
  tensor bias weight 1 [{k}]
  tensor Y output 0 [{h}, {h}, {k}]
  tensor BT table [{n}, {n}] {table(b)}
  tensor G table [{n}, 3] {table(g)}
  tensor AT table [{m}, {n}] {table(a)}
  tensor V device [{n}, {n}, {t}, {c}] stride [{n * vs}, {vs}, {c + 16}, 1]
  step "inputs" {{
    grid ty by 1 {{ for tx by 1 {{ lanes c {{
      register D [{t1}, {t1}, {n}, {n}, {c}]
      D[ty, tx, i, n, c] += BT[i, m] * A[{m}*ty+m, {m}*tx+n, c] fresh
      V[i, j, {t1}*ty+tx, c] += BT[j, n] * D[ty, tx, i, n, c] fresh
    }} }} }}
  }}
  step "products" {{
    grid b by 1 {{
      shared M [{k // p}, {n}, {n}, {t}, {p}] stride [1, {n * ms}, {ms}, {p}, 1]
      for c by {piece} {{
        shared U [{k // p}, {n}, {n}, {c}, {p}] stride [1, {n * us}, {us}, {p}, 1]
        lanes k {{
          register E [{k // p}, {n}, {c}, 3, {p}]
          E[b, i, c, s, k] += G[i, r] * W[b, c, r, s, k] fresh ahead W {9 * p * 4}
          U[b, i, j, c, k] += G[j, s] * E[b, i, c, s, k] fresh
        }}
        M[b, i, j, t, k] += V[i, j, t, c] * U[b, i, j, c, k] fresh tile t*6 k*4 order b i j c
      }}
      for ty by 1 {{ for tx by 1 {{ lanes k {{
        register Z [{k // p}, {t1}, {t1}, {m}, {n}, {p}]
        register R [{k // p}, {t1}, {t1}, {m}, {m}, {p}]
        Z[b, ty, tx, y, n, k] += AT[y, m] * M[b, m, n, {t1}*ty+tx, k] fresh
        R[b, ty, tx, y, x, k] += AT[x, n] * Z[b, ty, tx, y, n, k] fresh
        Y[{m}*ty+y, {m}*tx+x, {p}*b+k] = max(R[b, ty, tx, y, x, k] + bias[{p}*b+k], 0)
      }} }} }}
    }}
  }}
}}"""


def depthwise(c, h, rows, vectors):
    return f"""mugraph depthwise {{
  label y {h} label x {h} label c {c} label r 3 label s 3
  tensor A input 0 [{h + 2}, {h + 2}, {c}]
  tensor W weight 0 [3, 3, {c}]
  tensor bias weight 1 [{c}]
  tensor Y output 0 [{h}, {h}, {c}]
  step "depthwise" {{ grid y by 4 {{
    register P [{h}, {h}, {c}]
    P[y, x, c] += A[y+r, x+s, c] * W[r, s, c] fresh tile x*{rows} c*{vectors} order y r s
    Y[y, x, c] = min(max(P[y, x, c] + bias[c], 0), 6) fused
  }} }}
}}"""


def pool(c, h):
    return f"""mugraph pool {{
  label y {h // 2} label x {h // 2} label c {c} label r 3 label s 3
  tensor A input 0 [{h + 1}, {h + 1}, {c}]
  tensor Y output 0 [{h // 2}, {h // 2}, {c}]
  step "pool" {{ grid y by 4 {{ Y[y, x, c] max= A[2*y+r, 2*x+s, c] fresh tile x*1 c*4 order y r s }} }}
}}"""


def chain(expression):
    return f"""mugraph chain {{
  label i 160 label j 1536
  tensor X input 0 [160, 1536]
  tensor Y output 0 [160, 1536]
  step "chain" {{ grid i by 8 {{ Y[i, j] = {expression} tile i*1 j*4 }} }}
}}"""


def norm(rows, n):
    return f"""mugraph norm {{
  label i {rows} label j {n} label k {n} label l {n}
  tensor X input 0 [{rows}, {n}]
  tensor G weight 0 [{n}]
  tensor B weight 1 [{n}]
  tensor Y output 0 [{rows}, {n}]
  step "norm" {{ grid i by 4 {{
    shared M [{rows}] shared V [{rows}] shared Q [{rows}]
    M[i] += X[i, k] fresh tile i*4 k*4
    V[i] += (X[i, l] - M[i] * {1 / n!r}) * (X[i, l] - M[i] * {1 / n!r}) fresh tile i*4 l*4
    Q[i] = 1 / sqrt(V[i] * {1 / n!r} + 0.00001)
    Y[i, j] = (X[i, j] - M[i] * {1 / n!r}) * Q[i] * G[j] + B[j] tile i*1 j*4
  }} }}
}}"""


def softmax(rows, n):
    return f"""mugraph softmax {{
  label i {rows} label j {n} label k {n} label l {n}
  tensor X input 0 [{rows}, {n}]
  tensor Y output 0 [{rows}, {n}]
  step "softmax" {{ grid i by 4 {{
    shared M [{rows}] shared E [{rows}, {n}] shared S [{rows}]
    M[i] max= X[i, k] fresh tile i*4 k*4
    E[i, j] = exp(X[i, j] - M[i]) tile i*1 j*4
    S[i] += E[i, l] fresh tile i*4 l*4
    Y[i, j] = E[i, j] / S[i] tile i*1 j*4
  }} }}
}}"""


def turn(c, h, last):
    a, b = (f'[{c}, {h}, {h}]', f'[{h}, {h}, {c}]')
    if last:
        return f"""mugraph last {{
  label y {h} label x {h} label c {c}
  tensor X input 0 {a} tensor Y output 0 {b}
  step "channels last" {{ grid y by 8 {{ Y[y, x, c] = X[c, y, x] tile x*16 c*1 }} }}
}}"""
    return f"""mugraph first {{
  label y {h} label x {h} label c {c}
  tensor X input 0 {b} tensor Y output 0 {a}
  step "channels first" {{ grid y by 8 {{ Y[c, y, x] = X[y, x, c] tile c*16 x*1 }} }}
}}"""


def layers():
    """(name, muGraph, 10^9 operations or 0 for the muGraph's own)"""
    yield 'product 128x768x768', product(128, 768, 768, 6, 4), 0
    for c, h in ((64, 56), (128, 28), (256, 14), (512, 7)):
        rows, vectors = (6, 4) if h > 14 else (14, 2)
        yield f'3x3 {c}@{h}', direct(c, c, h, 1, 3, rows, vectors), 0
        yield f'1x1 {c}@{h}', direct(c, c, h, 1, 1, rows, vectors), 0
        if h > 7:
            yield f'3x3 stride 2 {c}@{h}', direct(c, 2 * c, h, 2, 3, 7, 2), 0
        yield f'winograd {c}@{h}', winograd(c, c, h, 32), 18e-9 * c * c * h * h
    yield 'depthwise 64@112', depthwise(64, 112, 7, 1), 0
    yield 'max pool 64@112', pool(64, 112), 0
    yield 'hard-swish', chain('X[i, j] * min(max(X[i, j] + 3, 0), 6) * 0.16666666666666666'), 0
    yield 'gelu', chain('X[i, j] * 0.5 * (1 + erf(X[i, j] * 0.7071067811865476))'), 0
    yield 'layer norm 128x768', norm(128, 768), 0
    yield 'softmax 1536x128', softmax(1536, 128), 0
    yield 'channels last 64@56', turn(64, 56, True), 0
    yield 'channels first 64@56', turn(64, 56, False), 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--isa', default='avx512')
    p.add_argument('--parts', default='1')
    p.add_argument('--only', default='')
    p.add_argument('--no-check', action='store_true')
    a = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text, gflop in layers():
            if a.only not in name:
                continue
            path = os.path.join(folder, name.replace(' ', '-') + '.mu')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            command = [os.path.join(a.build, 'petopt-kernels'), '--isa', a.isa, '--parts', a.parts,
                       '--gflop', str(gflop)] + ['--no-check'] * a.no_check + [path]
            failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == '__main__':
    raise SystemExit(main())
