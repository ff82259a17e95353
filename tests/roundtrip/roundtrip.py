#!/usr/bin/env python3
"""Import and export of every real model at hand, compared message by message.

  roundtrip.py --program ROUNDTRIP --data FOLDER --models FOLDER
  roundtrip.py --program ROUNDTRIP --sabotage

Equal means: the same messages, unknown fields included. Only the order in which the fields of one
message are written may differ. The external variant compares after the weights were loaded.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import onnx
from onnx import external_data_helper as edh

LEAST_MODELS = 1914
LEAST_REAL = 3


def canonical(model):
    return model.SerializeToString(deterministic=True)


def same(a, b):
    return canonical(a) == canonical(b)


def load(path):
    return onnx.load(path, load_external_data=False)


def run_batch(program, pairs, *options):
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
        f.writelines(f'{a}\t{b}\n' for a, b in pairs)
        f.flush()
        done = subprocess.run([program, *options, '-b', f.name], capture_output=True, text=True)
    sys.stdout.write(done.stdout)
    return done.returncode == 0


def strip_external(model):
    """Weights back inside, as they were before -x, but in raw_data whatever the field was."""
    for t in edh._get_all_tensors(model):
        del t.external_data[:]
        t.ClearField('data_location')
        if not t.HasField('raw_data') and t.data_type != onnx.TensorProto.STRING:
            raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t)).raw_data
            for field in ('float_data', 'int32_data', 'int64_data', 'double_data', 'uint64_data'):
                t.ClearField(field)
            t.raw_data = raw
    return model


def check(program, paths, work):
    wrong = 0
    pairs = [(p, os.path.join(work, f'{i}.onnx')) for i, p in enumerate(paths)]
    if not run_batch(program, pairs):
        return 1
    for a, b in pairs:
        if not os.path.exists(b):
            print(f'{a}: nothing was written')
            wrong += 1
        elif not same(load(a), load(b)):
            print(f'{a}: differs')
            wrong += 1
        elif os.path.exists(b + '.data') != any(
                t.data_location == onnx.TensorProto.EXTERNAL
                for t in edh._get_all_tensors(load(a))):
            print(f'{a}: external data does not match')
            wrong += 1
    return wrong


def check_external(program, paths, work):
    """The same with the weights outside."""
    wrong, moved = 0, 0
    pairs = [(p, os.path.join(work, f'x{i}.onnx')) for i, p in enumerate(paths)]
    if not run_batch(program, pairs, '-x'):
        wrong += 1
    for a, b in pairs:
        data = glob.glob(b + '.*.data')  # named by its content
        if not data:
            continue
        moved += 1
        before, after = load(a), load(b)
        for t in edh._get_all_tensors(after):
            if t.data_location == onnx.TensorProto.EXTERNAL:
                info = edh.ExternalDataInfo(t)
                if info.offset % 4096 or info.location != os.path.basename(data[0]) or len(data) > 1:
                    print(f'{a}: bad place {info.location} {info.offset}')
                    wrong += 1
        edh.load_external_data_for_model(after, work)
        if not same(strip_external(before), strip_external(after)):
            print(f'{a}: differs with external data')
            wrong += 1
    print(f'{moved} models with external data')
    return wrong + (moved == 0)


def function_model():
    """Functions within functions, in a branch, with defaults, optional inputs, constants that two
    calls share by name, and bodies."""
    from onnx import helper, TensorProto
    value, node, opset = helper.make_tensor_value_info, helper.make_node, helper.make_opsetid

    def reference(n, name, kind):
        n.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=name, type=kind))
        return n
    sets = [opset('', 17), opset('d', 1)]
    leaky = helper.make_function(
        'd', 'Leaky', ['a'], ['b'], [reference(node('LeakyRelu', ['a'], ['b']), 'alpha', 1)], sets,
        attributes=[], attribute_protos=[helper.make_attribute('alpha', 0.25)])
    branch = [helper.make_graph([node(op, ['t'], ['r'], name=op)], op, [],
                                [value('r', TensorProto.FLOAT, None)]) for op in ('Neg', 'Abs')]
    both = helper.make_function(
        'd', 'Both', ['p', 'q', 'flag'], ['u', 'v'],
        [node('Constant', [], ['c'], value_float=2.0), node('Mul', ['p', 'c'], ['t'], name='twice'),
         node('Clip', ['t', '', 'q'], ['k']),
         node('If', ['flag'], ['u'], then_branch=branch[0], else_branch=branch[1]),
         reference(node('Leaky', ['k'], ['v'], domain='d'), 'alpha', 1)], sets, attributes=['alpha'])
    late = helper.make_function('d', 'Late', ['a'], ['b'], [node('Relu', ['a'], ['b'])],
                                [opset('', 13)])
    outs = ['u0', 'v0', 'v1', 'z', 'l']
    nodes = [node('Both', ['x', '', 'f'], ['u0', 'v0'], domain='d', name='one', alpha=.5),
             node('Both', ['v0', 'm', 'f'], ['', 'v1'], domain='d', name='two'),
             node('If', ['f'], ['z'],
                  then_branch=helper.make_graph([node('Leaky', ['v1'], ['o'], domain='d')], 'a', [],
                                                [value('o', TensorProto.FLOAT, None)]),
                  else_branch=helper.make_graph([node('Neg', ['x'], ['o'])], 'b', [],
                                                [value('o', TensorProto.FLOAT, None)])),
             node('Late', ['x'], ['l'], domain='d')]
    graph = helper.make_graph(
        nodes, 'g', [value('x', TensorProto.FLOAT, [2, 3]), value('f', TensorProto.BOOL, [])],
        [value(o, TensorProto.FLOAT, None) for o in outs],
        [helper.make_tensor('m', TensorProto.FLOAT, [], [0.75])])
    model = helper.make_model(graph, functions=[leaky, both, late], opset_imports=sets)
    model.ir_version = 10
    return model


def check_inlining(program, work):
    """The runtime must compute the same with the calls inlined, and none but Late may be left."""
    import numpy as np
    import onnxruntime as ort
    before, after = os.path.join(work, 'f.onnx'), os.path.join(work, 'inlined.onnx')
    onnx.save(function_model(), before)
    done = subprocess.run([program, '-i', before, after], capture_output=True, text=True)
    sys.stdout.write(done.stdout + done.stderr)
    if done.returncode or '5 calls inlined' not in done.stdout:
        return 1
    wrong = 0
    model = onnx.load(after)
    calls = [n.op_type for n in model.graph.node if n.domain == 'd']
    if calls != ['Late'] or len(model.functions) != 3:
        print(f'calls left: {calls}')
        wrong += 1
    for flag in (False, True):
        x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
        a, b = (ort.InferenceSession(p, providers=['CPUExecutionProvider']).run(
            None, {'x': x, 'f': np.array(flag)}) for p in (before, after))
        for i, (p, q) in enumerate(zip(a, b)):
            if p.shape != q.shape or not (p == q).all():
                print(f'output {i} differs')
                wrong += 1
    return wrong


def sabotage(program):
    """Every kind of change that a lossy import or export makes must be seen."""
    from onnx import helper, TensorProto
    value = helper.make_tensor_value_info
    node = helper.make_node('Add', ['x', 'w'], ['y'], name='a', doc_string='d')
    graph = helper.make_graph([node], 'g', [value('x', 1, ['n', 2])], [value('y', 1, ['n', 2])],
                              [helper.make_tensor('w', 1, [2], [1.0, 2.0])])
    model = helper.make_model(graph, producer_name='p')
    helper.set_model_props(model, {'k': 'v'})
    changes = [
        lambda m: m.ClearField('producer_name'),
        lambda m: m.metadata_props.pop(),
        lambda m: m.graph.node[0].ClearField('doc_string'),
        lambda m: setattr(m.graph.node[0], 'name', 'b'),
        lambda m: setattr(m.graph.node[0], 'domain', ''),
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], 'dim_param', 'm'),
        lambda m: m.graph.initializer[0].float_data.__setitem__(0, 1.5),
        lambda m: setattr(m, 'ir_version', m.ir_version - 1),
        lambda m: setattr(m.opset_import[0], 'version', 7),
        lambda m: m.graph.node[0].input.append(''),
        lambda m: setattr(m.graph, 'doc_string', ''),
    ]
    wrong = 0 if same(model, model) else 1
    for i, change in enumerate(changes):
        other = onnx.ModelProto()
        other.CopyFrom(model)
        change(other)
        if same(model, other):
            print(f'sabotage: change {i} was not seen')
            wrong += 1
    print(f'{len(changes)} changes, {wrong} not seen')
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--program', required=True)
    p.add_argument('--data')
    p.add_argument('--models')
    p.add_argument('--sabotage', action='store_true')
    a = p.parse_args()
    if a.sabotage:
        return 1 if sabotage(a.program) else 0
    models = sorted(glob.glob(os.path.join(a.data, '**', '*.onnx'), recursive=True))
    real = sorted(glob.glob(os.path.join(a.models, '*.onnx')))
    with tempfile.TemporaryDirectory() as work:
        wrong = check(a.program, models + real, work)
        wrong += check_external(a.program, real, work)
        wrong += check_inlining(a.program, work)
    print(f'{len(models)} backend models, {len(real)} real ones, {wrong} wrong')
    if len(models) < LEAST_MODELS or len(real) < LEAST_REAL:
        print('too few models')
        wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
