#!/usr/bin/env python3
"""Random models through petopt, judged by ONNX Runtime and by float64.

  random_models.py --petopt PROGRAM [--kind mixed|multilinear] [--count 1000] [--first 0]
                   [--keep FOLDER] [--level 1] [--kernels]
  random_models.py --sabotage

The models are those of random_graph.py, or of random_multilinear.py, for the seeds
FIRST .. FIRST+COUNT-1. The latter are evaluated in float64 too. A model counts where the
runtime, with and without its own optimisations, agrees with itself well within the tolerance. A
mismatch is cut down to the earliest value at which it shows; --keep writes that model and its inputs.
With --kernels open dims are pinned, and what is written runs with its library and without.
"""
import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import sys
import tempfile

import backend
import random_graph
import random_multilinear
import wide

FORK = multiprocessing.get_context('fork')
LEAST_PART = 0.9  # of the models must count
KINDS = {'mixed': random_graph, 'multilinear': random_multilinear}


def plain_run(path, inputs):
    """The runtime with its optimisations off."""
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=['CPUExecutionProvider']).run(None, inputs)


def reference(path, inputs, float64):
    """What backend.judge wants to know of an original, or why it does not count."""
    try:
        session = backend.Runtime(path)
        first, second, plain = session.run(inputs), session.run(inputs), plain_run(path, inputs)
    except Exception as e:
        return None, str(e).splitlines()[0][:200]
    for other in second, plain:  # 1.17 plans the memory of the second run, at times wrongly
        d = backend.difference(first, other, False)
        if d:
            return None, f'the runtime disagrees with itself: {d}'
    runs = [(inputs, [], first, True)]
    if float64:
        try:
            wide_outputs = wide.run(path, inputs)
        except Exception as e:
            return None, f'float64: {str(e).splitlines()[0][:200]}'
        d = backend.difference(first, wide_outputs, False)
        if d:
            return None, f'the runtime disagrees with float64: {d}'
        runs.append((inputs, [], wide_outputs, True))
    return (backend.Runtime, None, runs), None


def pin(model, inputs):
    """Open dims as they are given."""
    for info in model.graph.input:
        for dim, n in zip(info.type.tensor_type.shape.dim, inputs[info.name].shape
                          if info.name in inputs else ()):
            dim.dim_value = n


def judge_here(say, petopt, model, inputs, level, float64, kernels):
    import onnx
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.onnx')
        if kernels:
            pin(model, inputs)
        onnx.save(model, path)
        original, why = reference(path, inputs, float64)
        if original is None:
            say.send(('uncounted', why))
            return
        # Should the runtime die from here on, this is the verdict.
        say.send(('wrong', 'the runtime dies on the output'))
        say.send(backend.judge(petopt, path, level, original, kernels)[:2])


def judge(petopt, model, inputs, level, float64=False, kernels=False):
    """(verdict, detail), out of a process of its own: the runtime may die on a model."""
    hear, say = multiprocessing.Pipe(duplex=False)
    child = FORK.Process(target=judge_here, args=(say, petopt, model, inputs, level, float64, kernels))
    child.start()
    say.close()
    answer = 'uncounted', 'the runtime dies on the original'
    try:
        while True:
            answer = hear.recv()
    except EOFError:
        child.join()
    return answer


def cut(model, name):
    """The model with one value as its only output, and no node that it does not need."""
    import onnx
    from onnx import TensorProto
    small = onnx.ModelProto()
    small.CopyFrom(model)
    need, keep = {name}, []
    for node in reversed(model.graph.node):
        if need & set(node.output):
            keep.append(node)
            need |= set(node.input)
            for a in node.attribute:
                if a.HasField('g'):
                    need |= {i for n in a.g.node for i in n.input}
    del small.graph.node[:], small.graph.output[:]
    small.graph.node.extend(reversed(keep))
    weights = [w for w in model.graph.initializer if w.name in need]
    del small.graph.initializer[:]
    small.graph.initializer.extend(weights)
    small.graph.output.append(onnx.helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return small


def shrink(petopt, model, inputs, level, verdict, kernels):
    """The smallest cut of the model that earns the same verdict, with its detail."""
    for node in model.graph.node:
        small = cut(model, node.output[0])
        used = {i.name for i in small.graph.input}
        got, detail = judge(petopt, small, {k: v for k, v in inputs.items() if k in used}, level,
                            kernels=kernels)
        if got == verdict:
            return small, detail
    return model, None


def one(petopt, seed, level, keep, kind='mixed', kernels=False):
    """(seed, verdict, detail, rules used)"""
    import onnx
    import onnxruntime as ort
    from onnx import numpy_helper as nh
    ort.set_default_logger_severity(4)
    model, inputs, used = KINDS[kind].build(seed)
    verdict, detail = judge(petopt, model, inputs, level, kind == 'multilinear', kernels)
    if verdict in ('good', 'uncounted'):
        return seed, verdict, detail, used
    small, sharper = shrink(petopt, model, inputs, level, verdict, kernels)
    text = f'{sharper or detail}; {len(small.graph.node)} nodes, last ' + ', '.join(
        n.op_type for n in small.graph.node[-6:])
    if keep:
        data = os.path.join(keep, f'{seed}', 'test_data_set_0')
        os.makedirs(data, exist_ok=True)
        onnx.save(small, os.path.join(keep, f'{seed}', 'model.onnx'))
        for k, info in enumerate(small.graph.input):
            if info.name in inputs:
                with open(os.path.join(data, f'input_{k}.pb'), 'wb') as f:
                    f.write(nh.from_array(inputs[info.name], info.name).SerializeToString())
    return seed, verdict, text, used


# Stand-ins for petopt with one mistake each, of the kind that rewrites make.
MISTAKES = {
    'the padding of a convolution lost':
        "[n.attribute.remove(a) for n in m.graph.node if n.op_type == 'Conv' "
        "for a in list(n.attribute) if a.name == 'pads']",
    'an activation taken for another':
        "[setattr(n, 'op_type', 'Tanh') for n in m.graph.node if n.op_type == 'Sigmoid']",
    'a permutation lost':
        "[n.ClearField('attribute') for n in m.graph.node if n.op_type == 'Transpose']",
    'a weight off by a thousandth':
        "[w.CopyFrom(h.from_array(h.to_array(w) * np.float32(1.001), w.name)) "
        "for w in m.graph.initializer if w.data_type == 1]",
}


def sabotage():
    """Whether each mistake is found in a few models, and a plain copy passes."""
    missed = 0
    for what, edit in {'': 'None', **MISTAKES}.items():
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, 'petopt')
            with open(program, 'w', encoding='utf-8') as f:
                f.write(f'#!{sys.executable}\nimport sys\nimport numpy as np\nimport onnx\n'
                        f'from onnx import numpy_helper as h\nm = onnx.load(sys.argv[1])\n{edit}\n'
                        f'onnx.save(m, sys.argv[3])\n')
            os.chmod(program, 0o700)
            wrong = next((s for s in range(40 if what else 8) if one(program, s, 1, None)[1] not in ('good', 'uncounted')),
                         None)
        if (wrong is not None) != bool(what):
            missed += 1
            print(f'{what or "a plain copy"}: found wrong in model {wrong}')
    print(f'{len(MISTAKES)} mistakes, {missed} misjudged')
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt')
    parser.add_argument('--count', type=int, default=1000)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--level', type=int, default=1)
    parser.add_argument('--kind', choices=KINDS, default='mixed')
    parser.add_argument('--kernels', action='store_true')
    parser.add_argument('--keep', help='folder for the models that went wrong, cut down')
    parser.add_argument('--sabotage', action='store_true')
    args = parser.parse_args()
    if args.sabotage:
        sys.exit(1 if sabotage() else 0)
    verdicts, rules, why = collections.Counter(), collections.Counter(), collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(one, args.petopt, seed, args.level, args.keep, args.kind, args.kernels)
                for seed in range(args.first, args.first + args.count)]
        for job in jobs:
            seed, verdict, detail, used = job.result()
            verdicts[verdict] += 1
            rules.update(used)
            why.update([detail[:60]] if verdict == 'uncounted' else [])
            if verdict not in ('good', 'uncounted'):
                print(f'seed {seed} {verdict}: {detail}', flush=True)
    kinds = KINDS[args.kind].RULES
    rare = min(rules[r.__name__] for r, _ in kinds)
    print(f'-O{args.level}{" with kernels" * args.kernels}: {args.count} random models, {args.kind}: ' +
          ', '.join(f'{n} {v}' for v, n in sorted(verdicts.items())) +
          f'; the rarest of {len(kinds)} kinds of nodes came {rare} times')
    for text, n in why.most_common(12):
        print(f'uncounted {n}: {text}')
    bad = sum(n for v, n in verdicts.items() if v not in ('good', 'uncounted'))
    sys.exit(1 if bad or verdicts['good'] < LEAST_PART * args.count else 0)


if __name__ == '__main__':
    main()
