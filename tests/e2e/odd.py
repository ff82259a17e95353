#!/usr/bin/env python3
"""Odd models, as producers and people write them: what ONNX Runtime takes petopt takes, what no
runtime takes it refuses, and what it writes at -O1 loads and computes the same.

  odd.py --petopt PROGRAM

ALLOWED lists the models where petopt and the runtime differ, each with its reason.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import backend
import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

# --- models ---------------------------------------------------------------------------------------

CASES = {}
STD = h.make_opsetid('', 17)
WITH_D = [STD, h.make_opsetid('d', 1)]
CONDITION = [h.make_tensor_value_info('c', T.BOOL, [])]
IMAGE = [h.make_tensor_value_info('x', T.FLOAT, (1, 3, 8, 8)),
         h.make_tensor_value_info('w', T.FLOAT, (4, 5, 3, 3))]
N = h.make_node


def info(name, dims=(2, 3), dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, dims)


def weight(name='w', value=1., dims=(2, 3)):
    return nh.from_array(np.full(dims, value, np.float32), name)


def sparse(name='w'):
    values, at = np.ones(2, np.float32), np.array([1, 4], np.int64)
    return h.make_sparse_tensor(nh.from_array(values, name), nh.from_array(at), [2, 3])


def relu(a='x', b='y', **more):
    return N('Relu', [a], [b], **more)


def neg(a='x', b='y'):
    return N('Neg', [a], [b])


def add(a='x', b='w', out='y'):
    return N('Add', [a, b], [out])


def case(name, nodes, change=None, ins=None, outs=None, inits=(), opsets=(STD,), functions=(),
         **more):
    graph = h.make_graph(nodes, 'g', [info('x')] if ins is None else ins,
                         [info('y')] if outs is None else outs, list(inits), **more)
    model = h.make_model(graph, opset_imports=list(opsets), functions=list(functions))
    model.ir_version = 9
    if change:
        change(model)
    assert name not in CASES
    CASES[name] = model


def setting(path, value):
    """A change that sets a field: 'graph.name'."""
    def change(model):
        *at, last = path.split('.')
        for name in at:
            model = getattr(model, name)
        setattr(model, last, value)
    return change


def without(path, index=0):
    """A change that clears a field; lists on the way are taken at `index`."""
    def change(model):
        *at, last = path.split('.')
        for name in at:
            model = getattr(model, name)
            if hasattr(model, 'add'):
                model = model[index]
        model.ClearField(last)
    return change


def body(nodes, out, name='b', inits=(), ins=()):
    return h.make_graph(nodes, name, list(ins), [info(out)], list(inits))


def conditional(name, then, other, before=(), after=(), out='y', ins=(), outs=None):
    case(name, [*before, N('If', ['c'], [out], then_branch=then, else_branch=other), *after],
         ins=[info('x'), *CONDITION, *ins], outs=outs)


def loop(name, nodes, ins=('i', 'k', 's'), outs=('k2', 's2'), before=()):
    b = h.make_graph(nodes, 'b', [info(ins[0], [], T.INT64), info(ins[1], [], T.BOOL), info(ins[2])],
                     [info(outs[0], [], T.BOOL), info(outs[1])])
    case(name, [*before, N('Loop', ['n', '', 'x'], ['y'], body=b)],
         inits=[nh.from_array(np.array(2), 'n')])


def function(nodes, opsets=(STD,), name='f', domain='d', ins=('a',), outs=('b',)):
    return h.make_function(domain, name, list(ins), list(outs), nodes, list(opsets))


def call(name, *functions, opsets=tuple(WITH_D), node=None):
    case(name, [node or N('f', ['x'], ['y'], domain='d')], opsets=opsets, functions=functions)


def header_cases():
    plain = [relu()]
    case('plain', plain)
    case('no IR version', plain, without('ir_version'))
    for version in (0, 2, 13, 14):
        case(f'IR version {version}', plain, setting('ir_version', version))
    case('no operator set', plain, without('opset_import'))
    case('an operator set twice', plain, opsets=[STD, STD])
    case('an operator set twice, by its alias', plain, opsets=[STD, h.make_opsetid('ai.onnx', 17)])
    case('an operator set in two versions', plain, opsets=[STD, h.make_opsetid('', 13)])
    case('only by its alias', plain, opsets=[h.make_opsetid('ai.onnx', 17)])
    case('a node by the alias', [relu(domain='ai.onnx')])
    case('an operator set that nothing uses', plain, opsets=[STD, h.make_opsetid('com.foo', 1)])
    case('operator set 0', plain, opsets=[h.make_opsetid('', 0)])
    case('an operator set without version', plain, without('opset_import.version'))
    case('no graph name', plain, without('graph.name'))
    case('metadata twice', plain, lambda m: [m.metadata_props.add(key='a', value=v) for v in '12'])


def graph_cases():
    case('out of order', [relu('t', 'y'), relu('x', 't')])
    case('out of order, three', [relu('b', 'y'), relu('a', 'b'), relu('x', 'a')])
    case('a cycle', [add('x', 'b', 'a'), relu('a', 'b'), relu('b', 'y')])
    case('a weight twice', [add()], inits=[weight(), weight()])
    case('a weight twice, others', [add()], inits=[weight(), weight(value=2.)])
    case('a weight twice, other dims', [add()], inits=[weight(), weight(dims=(1, 3))])
    case('a weight without name', [relu()], inits=[weight('')])
    case('a sparse weight without name', [relu()], sparse_initializer=[sparse('')])
    case('a sparse weight of an empty name', [relu()], sparse_initializer=[sparse()],
         change=lambda m: setattr(m.graph.sparse_initializer[0].values, 'name', ''))
    case('a sparse weight', [add()], sparse_initializer=[sparse()])
    case('a sparse weight twice', [add()], sparse_initializer=[sparse(), sparse()])
    case('a weight that a node makes', [relu('x', 'w'), add()], inits=[weight()])
    case('a weight that is an input', [add()], ins=[info('x'), info('w')], inits=[weight()])
    case('a weight that is a sequence', [relu()], inits=[weight()],
         ins=[info('x'), h.make_tensor_sequence_value_info('w', T.FLOAT, None)])
    case('of other dims', [add()], ins=[info('x'), info('w', (1, 3))], inits=[weight()])
    case('of another type', [add()], ins=[info('x'), info('w', (2, 3), T.DOUBLE)], inits=[weight()])
    case('an output that is an input', [relu()], outs=[info('x'), info('y')])
    case('an output that is a weight', [relu()], outs=[info('w'), info('y')], inits=[weight()])
    case('no nodes', [], outs=[info('x')])
    case('an output twice', [relu()], outs=[info('y'), info('y')])
    case('an input twice', [relu()], ins=[info('x'), info('x')])
    case('a tensor made twice', [relu(), relu()])
    case('an output that nothing makes', [relu()], outs=[info('y'), info('nope')])
    case('an input that nothing makes', [add()])
    case('the same of a dead node', [relu(), relu('nope', 'd')])
    case('a dim of -1', [relu()], ins=[info('x', (-1, 3))], outs=[info('y', (-1, 3))])
    case('a dim of 0', [relu()], ins=[info('x', (0, 3))], outs=[info('y', (0, 3))])
    case('names in UTF-8', [relu('x', 'é'), relu('é', 'y')])
    case('a node name twice', [relu('x', 'a', name='n'), relu('a', 'y', name='n')])


def type_cases():
    two = [relu('x', 't'), relu('t', 'y')]
    for what, field in (('output', 'graph.output'), ('input', 'graph.input')):
        case(f'an {what} without type', [relu()], without(f'{field}.type'))
        case(f'an {what} without element type', [relu()],
             without(f'{field}.type.tensor_type.elem_type'))
        case(f'an {what} without shape', [relu()], without(f'{field}.type.tensor_type.shape'))
    case('an input without type that nothing uses', [relu()], lambda m: m.graph.input.add(name='q'))
    case('a tensor without type', two, without('graph.value_info.type'), value_info=[info('t')])
    case('a tensor declared with other dims', two, value_info=[info('t', (5, 7))])
    case('with another rank', two, value_info=[info('t', (5,))])
    case('with another type', two, value_info=[info('t', (2, 3), T.INT64)])
    case('twice', two, value_info=[info('t'), info('t')])
    case('a declaration of nothing', [relu()], value_info=[info('zzz')])
    case('an input declared again', [relu()], value_info=[info('x', (5, 7))])
    case('an output declared with other dims', [relu()], outs=[info('y', (5, 7))])
    case('an output declared with another rank', [relu()], outs=[info('y', (5,))])
    case('an output declared with another type', [relu()], outs=[info('y', (2, 3), T.INT64)])


def node_cases():
    case('no operator', [N('', ['x'], ['y'])])
    case('an attribute too many', [N('Relu', ['x'], ['y'], foo=3)])
    case('an attribute twice', [N('LeakyRelu', ['x'], ['y'], alpha=.1)],
         lambda m: m.graph.node[0].attribute.append(h.make_attribute('alpha', .2)))
    case('an unknown operator', [N('Frobnicate', ['x'], ['y'])])
    case('an unknown domain', [N('Frob', ['x'], ['y'], domain='foo')])
    case('the runtime\'s domain, not imported', [N('Gelu', ['x'], ['y'], domain='com.microsoft')])
    case('the other domain of ONNX, not imported',
         [N('Scaler', ['x'], ['y'], domain='ai.onnx.ml', offset=[0.], scale=[1.])])
    case('empty names at the end', [N('Clip', ['x', '', ''], ['y'])])
    case('an empty name too many', [N('Relu', ['x', ''], ['y'])])
    case('an output left out', [N('Dropout', ['x'], ['y', ''])])
    case('an output too many', [N('Relu', ['x'], ['y', ''])])
    case('an input left out that is wanted', [N('Add', ['x', ''], ['y'])])
    case('an attribute without type', [N('LeakyRelu', ['x'], ['y'], alpha=.1)],
         lambda m: m.graph.node[0].attribute[0].ClearField('type'))


def impossible_cases():
    shape = nh.from_array(np.array([4, 2]), 's')
    case('Transpose, perm out of range', [N('Transpose', ['x'], ['y'], perm=[0, 5])])
    case('Conv, channels', [N('Conv', ['x', 'w'], ['y'])], ins=IMAGE, outs=[info('y', None)])
    case('MatMul, inner dims', [N('MatMul', ['x', 'x'], ['y'])])
    case('Add, types', [N('Add', ['x', 'i'], ['y'])], ins=[info('x'), info('i', (2, 3), T.INT64)])
    case('And, floats', [N('And', ['x', 'x'], ['y'])])
    case('Reshape, elements', [N('Reshape', ['x', 's'], ['y'])], inits=[shape],
         outs=[info('y', None)])
    case('a dead node, Transpose', [relu(), N('Transpose', ['x'], ['d'], perm=[0, 5])])
    case('a dead node, MatMul', [relu(), N('MatMul', ['x', 'x'], ['d'])])
    case('open dims that may fit', [N('MatMul', ['x', 'x'], ['y'])], ins=[info('x', ('a', 'b'))],
         outs=[info('y', None)])


def body_cases():
    conditional('If', body([relu('x', 's')], 's'), body([neg('x', 't')], 't'))
    conditional('If, bodies of the same names', body([relu('x', 't')], 't'), body([neg('x', 't')], 't'))
    conditional('If, a body\'s output has the node\'s name', body([relu('x', 'y')], 'y'),
                body([neg('x', 'y')], 'y'))
    conditional('a node hides', body([relu('x', 'a')], 'a'), body([neg('x', 'b')], 'b'),
                [relu('x', 'a')])
    conditional('a weight hides', body([relu('a', 'b')], 'b', inits=[weight('a', -2.)]),
                body([neg('a', 'd')], 'd'), [relu('x', 'a')])
    conditional('a sparse weight hides', h.make_graph([relu('a', 'b')], 'b', [], [info('b')],
                                                      sparse_initializer=[sparse('a')]),
                body([neg('a', 'd')], 'd'), [relu('x', 'a')])
    conditional('a body hides what comes later', body([relu('x', 'a')], 'a'), body([relu('x', 'b')], 'b'),
                out='q', after=[relu('q', 'a'), relu('a', 'y')])
    conditional('a body captures what comes later', body([relu('z', 't')], 't'),
                body([relu('x', 't')], 't'), after=[relu('x', 'z')])
    conditional('a body out of order', body([relu('s', 't'), relu('x', 's')], 't'),
                body([neg('x', 't')], 't'))
    conditional('a body gives what is around it', body([], 'x'), body([neg('x', 't')], 't'))
    conditional('an impossible branch', body([N('Transpose', ['x'], ['t'], perm=[0, 5])], 't'),
                body([neg('x', 't')], 't'))
    conditional('a branch that cannot run', body([N('Conv', ['i', 'w'], ['d'])], 'd'),
                body([neg('i', 't')], 't'), outs=[info('y', None)],
                ins=[info('i', (1, 3, 8, 8)), info('w', (4, 5, 3, 3))])
    k = N('Identity', ['k'], ['k2'])
    loop('Loop', [k, relu('s', 's2')])
    loop('Loop, an input hides', [k, add('x', 'x', 's2')], ins=('i', 'k', 'x'))
    loop('Loop, an input hides a node', [k, add('a', 'a', 's2')], ins=('i', 'k', 'a'),
         before=[relu('x', 'a')])
    loop('Loop, an output hides', [k, relu('s', 'a')], outs=('k2', 'a'), before=[relu('x', 'a')])


def function_cases():
    plain = function([relu('a', 'b')])
    call('a function', plain)
    call('of a domain that is not imported', plain, opsets=[STD])
    call('written for another operator set', function([relu('a', 'b')], [h.make_opsetid('', 13)]))
    call('without operator set', function([relu('a', 'b')], []))
    call('with one twice', function([relu('a', 'b')], [STD, STD]))
    call('nodes out of order', function([relu('c', 'b'), relu('a', 'c')]))
    call('there twice', plain, function([relu('a', 'b')]))
    call('there twice, unused', plain, function([relu('a', 'b')]), node=relu())
    call('uses a domain that it does not import', function([N('g', ['a'], ['b'], domain='d')]),
         function([relu('a', 'b')], name='g'))
    call('gives its input', function([], outs=('a',)))
    call('that cannot run', function([N('Transpose', ['a'], ['b'], perm=[0, 5])]))
    inner, wide = function([relu('a', 'b')], name='g'), [N('g', ['a', 'a'], ['b'], domain='d')]
    call('with a call too wide', function(wide, WITH_D), inner)
    call('with a call too wide, unused', function(wide, WITH_D), inner, node=relu())
    call('makes no output', function([relu('a', 'c')]))
    call('broken, unused', function([relu('zz', 'c')]), node=relu())
    call('calls itself, unused', function([N('f', ['a'], ['b'], domain='d')], WITH_D), node=relu())
    call('called with too many inputs', plain, node=N('f', ['x', 'x'], ['y'], domain='d'))
    call('named like an operator', function([neg('a', 'b')], name='Relu', domain=''), node=relu())


# Where the answers differ, and why.
ALLOWED = {
    'an operator set in two versions': 'which of them holds is for nobody to guess',
    'an unknown operator': 'newer or registered elsewhere: kept (docs/import.md)',
    'an unknown domain': 'registered elsewhere: kept (docs/import.md)',
    'an attribute without type': 'old exporters leave it out, and the field that is there tells it',
    'a body gives what is around it': 'ONNX allows it, ONNX Runtime does not',
    'an impossible branch': 'a branch may never be executed: bodies are not judged',
    'a node hides': 'renamed: with one name of its own each, OUT loads',
    'Loop, an output hides': 'renamed: with one name of its own each, OUT loads',
    'a node name twice': 'renamed: OUT loads',
    'gives its input': 'ONNX allows it, ONNX Runtime does not',
    'that cannot run': 'functions are judged where they are called, which may be never',
}
# Those of them that load once petopt has written them.
MENDED = {'a node hides', 'Loop, an output hides', 'a node name twice', 'an attribute without type'}


# --- the test -------------------------------------------------------------------------------------

KINDS = {'tensor(float)': np.float32, 'tensor(int64)': np.int64, 'tensor(bool)': np.bool_,
         'tensor(double)': np.float64}


def run(path):
    """('takes', outputs of two draws) or ('refuses' | 'fails', why)"""
    try:
        session = backend.Runtime(path).session
    except Exception as e:
        return 'refuses', ' '.join(str(e).split())[-160:]
    results = []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        feeds = {}
        for i in session.get_inputs():
            dims = [d if isinstance(d, int) and d >= 0 else 2 for d in i.shape] or [2, 3]
            dims = [] if i.name == 'c' else dims
            feeds[i.name] = (rng.standard_normal(dims) * 4).astype(KINDS[i.type])
            if i.type == 'tensor(bool)':
                feeds[i.name] = np.array(seed == 1)
        try:
            results.append(session.run(None, feeds))
        except Exception as e:
            return 'fails', ' '.join(str(e).split())[-160:]
    return 'takes', results


def judge(petopt, name, model, folder):
    """What is wrong, or None."""
    path, out = os.path.join(folder, 'm.onnx'), os.path.join(folder, 'out.onnx')
    with open(path, 'wb') as f:
        f.write(model.SerializeToString())
    verdict, first = run(path)
    p = subprocess.run([petopt, path, '-o', out, '-O1', '--cost', 'model', '-q', '--cache', 'none'],
                       capture_output=True, text=True, timeout=120, check=False)
    if p.returncode not in (0, 2) or (p.returncode == 2 and len(p.stderr.splitlines()) != 1):
        return f'exit {p.returncode}: {p.stderr.strip()}'
    if os.path.exists(out) != (p.returncode == 0):
        return 'exit code and OUT do not fit'
    loose = verdict == 'fails' and name == 'a branch that cannot run'
    differs = (verdict == 'takes') != (p.returncode == 0) and not loose
    if differs != (name in ALLOWED):
        return f'the runtime {verdict}, petopt exits with {p.returncode}: {p.stderr.strip() or first}'
    if p.returncode == 0 and (verdict == 'takes' or name in MENDED):
        again, second = run(out)
        if again != 'takes':
            return f'OUT: the runtime {again}: {second}'
        d = next((d for a, b in zip(first, second) for d in [backend.difference(b, a, False)] if d),
                 None) if verdict == 'takes' else None
        if d:
            return f'OUT differs: {d}'
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--petopt', required=True, type=os.path.abspath)
    parser.add_argument('--only', default='')
    args = parser.parse_args()
    for make in (header_cases, graph_cases, type_cases, node_cases, impossible_cases, body_cases,
                 function_cases):
        make()
    assert set(ALLOWED) <= set(CASES)
    names = [n for n in CASES if args.only in n]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for left in os.listdir(folder):
                os.remove(os.path.join(folder, left))
            why = judge(args.petopt, name, CASES[name], folder)
            if why:
                wrong += 1
                print(f'WRONG   {name}: {why}')
    print(f'{len(names)} models, {wrong} wrong')
    sys.exit(1 if wrong or not names else 0)


if __name__ == '__main__':
    main()
