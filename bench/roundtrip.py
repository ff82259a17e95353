#!/usr/bin/env python3
"""What reading and writing a model costs, without anything in between.

  roundtrip.py --program build/tests/roundtrip/roundtrip [--only bert|large|nodes] [--folder DIR]

  bert    a BERT-like model of 340 MB in one file, beside `cp` with fsync
  large   5 GB of external data
  nodes   graphs of 10,000, 30,000, 100,000 and 1,000,000 nodes

Times are medians of interleaved runs. Memory is the largest amount of private (anonymous) memory
seen while the program ran, sampled every 2 ms; mapped files are not counted.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

MIB = 1 << 20


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def tensor(name, array):
    return helper.make_tensor(name, TensorProto.FLOAT, array.shape, array.tobytes(), raw=True)


def bert(path, layers=12, width=768, inner=3072):
    """The matrices of BERT-base's layers (85 million weights), seeded."""
    rng = np.random.default_rng(1)
    nodes, weights, x = [], [], 'x'

    def dense(x, name, n, m):
        weights.append(tensor(f'{name}.w', rng.standard_normal((n, m), dtype=np.float32) * .02))
        weights.append(tensor(f'{name}.b', np.zeros(m, np.float32)))
        nodes.append(helper.make_node('MatMul', [x, f'{name}.w'], [f'{name}.m'], f'{name}.matmul'))
        nodes.append(helper.make_node('Add', [f'{name}.m', f'{name}.b'], [name], f'{name}.add'))
        return name
    for i in range(layers):
        q, k, v = (dense(x, f'l{i}.{n}', width, width) for n in 'qkv')
        nodes.append(helper.make_node('Transpose', [k], [f'l{i}.kt'], perm=[0, 2, 1]))
        nodes.append(helper.make_node('MatMul', [q, f'l{i}.kt'], [f'l{i}.s']))
        nodes.append(helper.make_node('Softmax', [f'l{i}.s'], [f'l{i}.p'], axis=-1))
        nodes.append(helper.make_node('MatMul', [f'l{i}.p', v], [f'l{i}.c']))
        o = dense(f'l{i}.c', f'l{i}.o', width, width)
        up = dense(o, f'l{i}.up', width, inner)
        nodes.append(helper.make_node('Relu', [up], [f'l{i}.r']))
        x = dense(f'l{i}.r', f'l{i}.down', inner, width)
    graph = helper.make_graph(nodes, 'bert', [value('x', ['n', 's', width])],
                              [value(x, ['n', 's', width])], weights)
    onnx.save(helper.make_model(graph), path)


def large(path, gigabytes=5):
    """A chain of additions whose operands lie in one file of external data."""
    count, rows = gigabytes * 16, 1 << 24
    rng = np.random.default_rng(2)
    nodes, weights = [], []
    with open(path + '.bin', 'wb') as f:
        for i in range(count):
            block = rng.standard_normal(MIB, dtype=np.float32)
            for k in range(rows // MIB):
                f.write((block + np.float32(k)).tobytes())
            t = TensorProto(name=f'w{i}', data_type=TensorProto.FLOAT, dims=[rows],
                            data_location=TensorProto.EXTERNAL)
            for key, v in (('location', os.path.basename(path) + '.bin'), ('offset', 4 * rows * i),
                           ('length', 4 * rows)):
                t.external_data.add(key=key, value=str(v))
            weights.append(t)
            nodes.append(helper.make_node('Add', [f't{i}', f'w{i}'], [f't{i + 1}']))
    graph = helper.make_graph(nodes, 'large', [value('t0', [rows])], [value(f't{count}', [rows])],
                              weights)
    onnx.save(helper.make_model(graph), path)


def chain(path, n):
    """n small nodes with attributes, names and declared types."""
    nodes = []
    for i in range(n):
        if i % 3 == 0:
            node = helper.make_node('Add', [f't{i}', f't{max(i - 1, 0)}'], [f't{i + 1}'], f'n{i}')
        elif i % 5 == 0:
            node = helper.make_node('Transpose', [f't{i}'], [f't{i + 1}'], f'n{i}', perm=[0, 1])
        else:
            node = helper.make_node('Relu', [f't{i}'], [f't{i + 1}'], f'n{i}')
        nodes.append(node)
    graph = helper.make_graph(nodes, 'chain', [value('t0', [2, 2])], [value(f't{n}', [2, 2])],
                              value_info=[value(f't{i}', [2, 2]) for i in range(1, n)])
    onnx.save(helper.make_model(graph), path)


def run(*command):
    """(seconds, largest private memory in MiB)"""
    start, most = time.monotonic(), 0
    p = subprocess.Popen(command)
    while p.poll() is None:
        try:
            with open(f'/proc/{p.pid}/status') as f:
                for line in f:
                    if line.startswith('RssAnon'):
                        most = max(most, int(line.split()[1]))
        except OSError:
            pass
        time.sleep(.002)
    if p.returncode:
        raise SystemExit(f'{command}: failed')
    return time.monotonic() - start, most / 1024


def copy_and_sync(source, target):
    start = time.monotonic()
    subprocess.run(['cp', source, target], check=True)
    fd = os.open(target, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    return time.monotonic() - start


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--program', required=True)
    p.add_argument('--only')
    p.add_argument('--folder')
    p.add_argument('--runs', type=int, default=7)
    a = p.parse_args()
    work = tempfile.mkdtemp(prefix='petopt-bench-', dir=a.folder)
    source, target = os.path.join(work, 'in.onnx'), os.path.join(work, 'out.onnx')
    try:
        if a.only in (None, 'bert'):
            bert(source)
            ours, cp, most = [], [], 0
            for _ in range(a.runs):
                cp.append(copy_and_sync(source, target))
                os.remove(target)
                seconds, memory = run(a.program, source, target)
                ours.append(seconds)
                most = max(most, memory)
                os.remove(target)
            ours, cp = statistics.median(ours), statistics.median(cp)
            print(f'bert, {os.path.getsize(source) / 1e6:.0f} MB: {ours:.2f} s, cp and fsync '
                  f'{cp:.2f} s, ratio {ours / cp:.2f}, private memory {most:.0f} MiB')
        if a.only in (None, 'nodes'):
            for n in (10000, 30000, 100000, 1000000):
                chain(source, n)
                runs = [run(a.program, source, target) for _ in range(3)]
                print(f'{n} nodes: {statistics.median(r[0] for r in runs):.2f} s, private memory '
                      f'{max(r[1] for r in runs):.0f} MiB')
        if a.only in (None, 'large'):
            large(source)
            seconds, memory = run(a.program, source, target)
            size = os.path.getsize(source + '.bin')
            same = subprocess.run(['cmp', source + '.bin', target + '.data']).returncode == 0
            print(f'large, {size / 1e9:.1f} GB outside: {seconds:.1f} s, private memory '
                  f'{memory:.0f} MiB, data {"the same" if same else "differs"}')
    finally:
        shutil.rmtree(work)


if __name__ == '__main__':
    main()
