#!/usr/bin/env python3
"""What the search finds for the six blocks of the Mirage paper, and how fast that is.

  bench/fused.py DIR [BLOCK...] [--petopt build/petopt] [--cache FILE]

DIR holds gqa.onnx, qknorm.onnx, rmsnorm_linear.onnx, lora.onnx, gated_mlp.onnx and ntrans.onnx (the
builders of models/ write them). For each block: seconds of search and states a second, the best
kernel's reading (alone, one thread, weights from memory) beside the readings of the steps one by
one, ONNX Runtime's time for the original on one thread, and the roofline: the greater of the bytes
of inputs, outputs and weights at the measured bandwidth, and the multiplications at the measured
rate. Then the program and the loops that won. Needs the Python of .deps/venv (scripts/deps.sh).
"""
import argparse
import os
import re
import subprocess
import tempfile
import time

import numpy as np
import onnx

from floor import best_rate, median_seconds, multiplications, session

BLOCKS = ["rmsnorm_linear", "gated_mlp", "lora", "ntrans", "qknorm", "gqa"]


def bandwidth(size):
    """Bytes a second of one thread that reads so many bytes over and over."""
    a = np.ones(max(int(size), 4096) // 4, dtype=np.float32)
    times = []
    for _ in range(max(5, int(2e8 / a.nbytes))):
        start = time.thread_time()
        a.max()
        times.append(time.thread_time() - start)
    return a.nbytes / float(np.median(times))


def port_bytes(model):
    dims = [[d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in list(model.graph.input) + list(model.graph.output)]
    ports = sum(4 * int(np.prod(d)) for d in dims)
    return ports + sum(4 * int(np.prod(t.dims)) for t in model.graph.initializer)


def feeds(model):
    r = np.random.default_rng(0)
    constants = {t.name for t in model.graph.initializer}
    return {v.name: r.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim]).astype("f")
            for v in model.graph.input if v.name not in constants}


def searched(petopt, path, cache):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([petopt, path, "-o", os.path.join(folder, "out.onnx"), "-O1", "-v",
                              "--kernels", os.path.join(folder, "kernels"), "--cache", cache],
                             capture_output=True, text=True, check=False)
    text = run.stdout + run.stderr
    found = re.search(r"search: ([\d.]+) s, ([\d.]+) million states a second \((\d+)\)", text)
    if not found:
        raise SystemExit(f"{path}: no search in the output of petopt\n{text}")
    readings = [(float(ms), what) for ms, what in
                re.findall(r"search: ([\d.]+) ms \(estimate [\d.]+\): (.*)", text) if float(ms) > 0]
    won = re.search(r"region 0, found: (.*); ([\d.]+) ms, [\d.]+ GFLOP/s, \d+ tried", text)
    steps = re.search(r"region 0: \d+ nodes, \d+ steps, ([\d.]+) ms in all", text)
    return (float(found[1]), float(found[2]), int(found[3]), min(readings, default=(0, "-")),
            bool(won), float(steps[1]) if steps else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("blocks", nargs="*", default=BLOCKS)
    parser.add_argument("--petopt", default="build/petopt")
    parser.add_argument("--cache", default="none")
    args = parser.parse_args()
    rate = best_rate(1)
    print(f"{'block':16} {'search s':>8} {'M states/s':>10} {'found ms':>9} {'ORT ms':>8} "
          f"{'ORT/found':>9} {'roof ms':>8} {'of roof':>7}")
    for block in args.blocks or BLOCKS:
        path = os.path.join(args.folder, block + ".onnx")
        model = onnx.load(path)
        seconds, states, _, (ms, what), won, all_ms = searched(args.petopt, path, args.cache)
        original = 1e3 * median_seconds(session(model, 1), feeds(model), 1)
        size = port_bytes(model)
        roof = 1e3 * max(size / bandwidth(size), 2 * multiplications(model) / rate)
        best = ms if won else all_ms
        print(f"{block:16} {seconds:8.2f} {states:10.2f} {best:9.3f} {original:8.3f} "
              f"{original / best if best else 0:9.2f} {roof:8.3f} {roof / best if best else 0:7.0%}")
        print(f"    {'won' if won else 'the steps one by one won; best found'}: {what}")


if __name__ == "__main__":
    main()
