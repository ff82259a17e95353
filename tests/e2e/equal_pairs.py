"""Pairs of models that are equal: the forms that exporters and optimisers write for one function, and
random models with what petopt makes of them."""
import os
import subprocess

from forged_pairs import models, pair

F = 'float[2,3,4] x', 'float[2,3,4] y'


def activations():
    rows = [
        ('Relu(x)', 'y = Max(x, z)'), ('Relu(x)', 'y = Clip(x, z)'),
        ('Sigmoid(x)', 'n = Neg(x)\n e = Exp(n)\n a = Add(e, o)\n y = Reciprocal(a)'),
        ('Sigmoid(x)', 'n = Neg(x)\n e = Exp(n)\n a = Add(e, o)\n y = Div(o, a)'),
        ('Tanh(x)', 'd = Mul(x, t)\n s = Sigmoid(d)\n m = Mul(s, t)\n y = Sub(m, o)'),
        ('HardSwish(x)', 'a = Add(x, c3)\n b = Clip(a, z, c6)\n d = Mul(x, b)\n y = Div(d, c6)'),
        ('HardSwish(x)', 'a = Add(x, c3)\n b = Clip(a, z, c6)\n d = Div(b, c6)\n y = Mul(x, d)'),
        ('HardSwish(x)', 'a = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x)\n y = Mul(a, x)'),
        ('LeakyRelu <alpha = 0.1> (x)', 'm = Mul(x, c01)\n y = Max(x, m)'),
        ('Neg(x)', 'y = Mul(x, m1)'), ('Neg(x)', 'y = Sub(z, x)'), ('Abs(x)', 'n = Neg(x)\n y = Max(x, n)'),
        ('Softsign(x)', 'a = Abs(x)\n b = Add(a, o)\n y = Div(x, b)'),
        ('Mul(x, x)', 'y = Pow(x, t)'),
    ]
    inits = ('float z = {0}, float o = {1}, float t = {2}, float c3 = {3}, float c6 = {6}, float c01 = {0.1},'
             ' float m1 = {-1}')
    for a, b in rows:
        yield pair(b.replace('\n', ';'), 'y = ' + a, b, inits=inits)


def gelus():
    whole = 'y = Gelu(x)', 'y = Gelu <approximate = "tanh"> (x)'
    erf = ['d = Div(x, r)\n e = Erf(d)\n a = Add(e, o)\n m = Mul(x, a)\n y = Mul(m, h)',
           'd = Div(x, r)\n e = Erf(d)\n a = Add(e, o)\n m = Mul(a, h)\n y = Mul(x, m)',
           'd = Mul(x, i)\n e = Erf(d)\n a = Add(o, e)\n b = Mul(x, h)\n y = Mul(a, b)']
    inits = ('float r = {1.4142135}, float i = {0.70710677}, float o = {1}, float h = {0.5}, '
             'float k = {0.7978846}, float c = {0.044715}, float t = {3}')
    for i, b in enumerate(erf):
        yield pair(f'erf {i}', whole[0], b, inits=inits, opset=20)
    yield pair('tanh', whole[1], 'p = Pow(x, t)\n m = Mul(p, c)\n a = Add(x, m)\n b = Mul(a, k)\n'
               ' e = Tanh(b)\n f = Add(e, o)\n g = Mul(x, f)\n y = Mul(g, h)', inits=inits, opset=20)


def reorderings():
    ops = ['a = Exp(x)', 'b = Sin(x)', 'c = Relu(x)', 'd = Sigmoid(x)']
    tail = '\n p = Add(a, b)\n q = Add(c, d)\n y = Mul(p, q)'
    for k in range(1, 4):
        yield pair(f'turned {k}', '\n '.join(ops) + tail, '\n '.join(ops[k:] + ops[:k]) + tail)
    for i, body in enumerate(('p = Add(b, a)\n q = Add(d, c)\n y = Mul(q, p)',
                              'u = Add(a, b)\n q = Add(c, d)\n y = Mul(u, q)',
                              's = Mul(a, c)\n t = Mul(a, d)\n u = Mul(b, c)\n v = Mul(b, d)\n'
                              ' m = Add(s, t)\n n = Add(u, v)\n y = Add(m, n)')):
        yield pair(f'sums {i}', '\n '.join(ops) + tail, '\n '.join(ops) + '\n ' + body)
    chain = ['Add(a, b)', 'Add(b, c)', 'Add(a, c)']
    for i, first in enumerate(chain[1:]):
        rest = 'a' if i == 0 else 'b'
        yield pair(f'associated {i}', '\n '.join(ops[:3]) + '\n p = Add(a, b)\n y = Add(p, c)',
                   '\n '.join(ops[:3]) + f'\n p = {first}\n y = Add(p, {rest})')


def renamings():
    for op in 'Exp', 'Relu', 'Sigmoid', 'Tanh', 'Erf', 'Floor', 'Softmax', 'Sin', 'Elu', 'Selu':
        yield pair(op, f'a = {op}(x)\n y = Add(a, x)', f'long_name_{op} = {op}(x)\n y = Add(long_name_{op}, x)')
        yield pair(op + ' again', f'a = {op}(x)\n y = Add(a, a)',
                   f'a = {op}(x)\n b = {op}(x)\n c = Identity(b)\n y = Add(a, c)')


def folded_numbers():
    for a, b in (2.0, 3.0), (0.5, 0.25), (1.5, 4.0), (0.1, 10.0), (0.125, -8.0), (3.0, 7.0), (0.2, 5.0):
        yield pair(f'{a} {b}', 'p = Mul(x, a)\n y = Mul(p, b)', 'y = Mul(x, c)', inits=(
            f'float a = {{{a}}}, float b = {{{b}}}', f'float c = {{{a * b}}}'))
        yield pair(f'{a} plus {b}', 'p = Add(x, a)\n y = Add(p, b)', 'y = Add(x, c)', inits=(
            f'float a = {{{a}}}, float b = {{{b}}}', f'float c = {{{a + b}}}'))
    for d in 2.0, 4.0, 3.0, 10.0, 8.0, 5.0:
        yield pair(f'over {d}', 'y = Div(x, a)', 'y = Mul(x, c)', inits=(
            f'float a = {{{d}}}', f'float c = {{{1 / d}}}'))


def moves():
    rows = [
        ('y = Identity(x)', 'a = Transpose <perm = [1, 2, 0]> (x)\n y = Transpose <perm = [2, 0, 1]> (a)'),
        ('y = Identity(x)', 'a = Reshape(x, s)\n y = Reshape(a, t)'),
        ('y = Identity(x)', 'a = Unsqueeze(x, i)\n y = Squeeze(a, i)'),
        ('y = Identity(x)', 'a, b = Split <axis = 2, num_outputs = 2> (x)\n y = Concat <axis = 2> (a, b)'),
        ('y = Identity(x)', 'a = Flatten <axis = 1> (x)\n y = Reshape(a, t)'),
        ('y = Exp(x)', 'a = Transpose <perm = [2, 1, 0]> (x)\n b = Exp(a)\n y = Transpose <perm = [2, 1, 0]> (b)'),
        ('y = Exp(x)', 'a = Reshape(x, s)\n b = Exp(a)\n y = Reshape(b, t)'),
        ('y = Relu(x)', 'a, b = Split <axis = 2, num_outputs = 2> (x)\n c = Relu(a)\n d = Relu(b)\n'
         ' y = Concat <axis = 2> (c, d)'),
        ('y = Identity(x)', 'y = Slice(x, b0, e0)'), ('y = Identity(x)', 'y = Expand(x, t)'),
        ('y = Identity(x)', 'y = Dropout(x)'), ('y = Identity(x)', 'y = Tile(x, o)'),
    ]
    inits = ('int64[2] s = {6, 4}, int64[3] t = {2, 3, 4}, int64[1] i = {1}, int64[3] b0 = {0, 0, 0}, '
             'int64[3] e0 = {2, 3, 4}, int64[3] o = {1, 1, 1}')
    for n, (a, b) in enumerate(rows):
        yield pair(f'{n}', a, b, inits=inits, opset=18)


def products():
    w = 'float[4,5] w = {' + ', '.join(str(round(0.07 * (k % 17) - 0.5, 3)) for k in range(20)) + '}'
    v = 'float[5,4] v = {' + ', '.join(str(round(0.07 * ((k % 4 * 5 + k // 4) % 17) - 0.5, 3)) for k in range(20)) + '}'
    b = 'float[5] b = {0.1, -0.2, 0.3, -0.4, 0.5}'
    io = dict(inputs='float[3,4] x', outputs='float[3,5] y')
    yield pair('gemm', 'm = MatMul(x, w)\n y = Add(m, b)', 'y = Gemm(x, w, b)', inits=f'{w}, {b}', **io)
    yield pair('turned gemm', 'm = MatMul(x, w)\n y = Add(b, m)', 'y = Gemm <transB = 1> (x, v, b)',
               inits=(f'{w}, {b}', f'{v}, {b}'), **io)
    yield pair('einsum', 'y = MatMul(x, w)', 'y = Einsum <equation = "ij,jk->ik"> (x, w)', inits=w, **io)
    yield pair('turned', 'y = MatMul(x, w)', 't = Transpose <perm = [1, 0]> (v)\n y = MatMul(x, t)', inits=(w, v), **io)
    yield pair('both turned', 'y = MatMul(x, w)', 't = Transpose <perm = [1, 0]> (x)\n'
               ' u = Transpose <perm = [1, 0]> (w)\n p = MatMul(u, t)\n y = Transpose <perm = [1, 0]> (p)', inits=w, **io)
    yield pair('halves', 'y = MatMul(x, w)', 'p, q = Split <axis = 1> (x)\n r, s = Split <axis = 0> (w)\n'
               ' m = MatMul(p, r)\n n = MatMul(q, s)\n y = Add(m, n)', inits=w, **io)
    yield pair('scaled', 'm = MatMul(x, w)\n y = Mul(m, h)', 'n = Mul(x, h)\n y = MatMul(n, w)',
               inits=w + ', float h = {0.5}', **io)
    for n in 2, 4:
        yield pair(f'batched {n}', 'y = MatMul(x, w)', f'a = Reshape(x, s)\n m = MatMul(a, w)\n y = Reshape(m, t)',
                   inits=f'{w}, int64[2] s = {{{3 * n}, 4}}, int64[3] t = {{{n}, 3, 5}}',
                   inputs=f'float[{n},3,4] x', outputs=f'float[{n},3,5] y')


def convolutions():
    w = 'float[2,2,3,3] w = {' + ', '.join(str(round(0.1 * k - 1.7, 3)) for k in range(36)) + '}'
    io = dict(inputs='float[1,2,6,6] x', outputs='float[1,2,6,6] y')
    conv = 'Conv <pads = [1, 1, 1, 1]> '
    b = ', float[2] b = {0.5, -0.25}, float[2,1,1] c = {0.5, -0.25}'
    yield pair('bias', f'y = {conv}(x, w, b)', f'a = {conv}(x, w)\n y = Add(a, c)', inits=w + b, **io)
    yield pair('padded before', f'y = {conv}(x, w)', 'a = Pad(x, p)\n y = Conv(a, w)',
               inits=w + ', int64[8] p = {0,0,1,1,0,0,1,1}', **io)
    yield pair('names', f'y = {conv}(x, w)', 'y = Conv <auto_pad = "SAME_UPPER"> (x, w)', inits=w, **io)
    yield pair('groups', 'y = Conv <group = 2> (x, u)', 'y = Mul(x, v)', inits=(
        'float[2,1,1,1] u = {2, 3}', 'float[2,1,1] v = {2, 3}'), **io)
    yield pair('pointwise', 'y = Conv(x, u)', 'a = Reshape(x, s)\n m = MatMul(v, a)\n y = Reshape(m, t)', inits=(
        'float[2,2,1,1] u = {1, 2, 3, 4}', 'float[2,2] v = {1, 2, 3, 4}, int64[2] s = {2, 36}, '
        'int64[4] t = {1, 2, 6, 6}'), **io)
    yield pair('mean pool', 'y = GlobalAveragePool(x)', 'y = ReduceMean <axes = [2, 3]> (x)',
               inputs=io['inputs'], outputs='float[1,2,1,1] y')
    yield pair('pool of all', 'y = GlobalMaxPool(x)', 'y = MaxPool <kernel_shape = [6, 6]> (x)',
               inputs=io['inputs'], outputs='float[1,2,1,1] y')
    yield pair('pool as convolution', 'y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (x)',
               'y = Conv <group = 2, strides = [2, 2]> (x, q)', inits=(
                   'float u = {1}', 'float[2,1,2,2] q = {' + ', '.join(['0.25'] * 8) + '}'),
               inputs=io['inputs'], outputs='float[1,2,3,3] y')
    for at in 2, 3, 4:
        yield pair(f'in parts at {at}', f'y = {conv}(x, w)', 'p = Slice(x, a, b, c)\n q = Slice(x, f, d, c)\n'
                   ' r = Conv <pads = [1, 1, 0, 1]> (p, w)\n s = Conv <pads = [0, 1, 1, 1]> (q, w)\n'
                   ' y = Concat <axis = 2> (r, s)', inits=w + f', int64[1] a = {{0}}, int64[1] b = {{{at + 1}}}, '
                   f'int64[1] f = {{{at - 1}}}, int64[1] d = {{6}}, int64[1] c = {{2}}', **io)


def norms():
    ln = 'y = LayerNormalization <axis = 2, epsilon = 0.001> (x, s, b)'
    parts = ['m = ReduceMean <axes = [2]> (x)\n d = Sub(x, m)\n {q}\n v = ReduceMean <axes = [2]> (q)\n'
             ' a = Add(v, e)\n r = Sqrt(a)\n {n}\n k = Mul(n, s)\n y = Add(k, b)']
    inits = ('float[4] s = {1, 2, 3, 4}, float[4] b = {0.1, 0.2, 0.3, 0.4}, float e = {0.001}, float t = {2}, '
             'float h = {0.5}')
    for i, q in enumerate(('q = Mul(d, d)', 'q = Pow(d, t)')):
        for k, n in enumerate(('n = Div(d, r)', 'i = Reciprocal(r)\n n = Mul(d, i)')):
            yield pair(f'layer {i} {k}', ln, parts[0].format(q=q, n=n), inits=inits)
    bn = 'y = BatchNormalization <epsilon = 0.001> (x, s, b, m, v)'
    inits = ('float[3] s = {1, 2, 0.5}, float[3] b = {0.1, 0.2, 0.3}, float[3] m = {0.5, 0.25, -1}, '
             'float[3] v = {1, 2, 3}, float[3,1] s1 = {1, 2, 0.5}, float[3,1] b1 = {0.1, 0.2, 0.3}, '
             'float[3,1] m1 = {0.5, 0.25, -1}, float[3,1] v1 = {1, 2, 3}, float e = {0.001}')
    yield pair('batch', bn, 'd = Sub(x, m1)\n a = Add(v1, e)\n r = Sqrt(a)\n n = Div(d, r)\n k = Mul(n, s1)\n'
               ' y = Add(k, b1)', inits=inits)
    for axis in 1, 2:
        yield pair(f'softmax {axis}', f'y = Softmax <axis = {axis}> (x)',
                   f'm = ReduceMax <axes = [{axis}]> (x)\n d = Sub(x, m)\n e = Exp(d)\n s = ReduceSum(e, i)\n'
                   ' y = Div(e, s)', inits=f'int64[1] i = {{{axis}}}')
        yield pair(f'log of softmax {axis}', f'y = LogSoftmax <axis = {axis}> (x)',
                   f'm = ReduceMax <axes = [{axis}]> (x)\n d = Sub(x, m)\n l = ReduceLogSumExp <axes = [{axis}]> (d)\n'
                   ' y = Sub(d, l)')


def reductions():
    for axes, shape in ('[1]', '2,1,4'), ('[2]', '2,3,1'), ('[1, 2]', '2,1,1'):
        n = {'[1]': 3, '[2]': 4, '[1, 2]': 12}[axes]
        io = dict(outputs=f'float[{shape}] y')
        yield pair(f'mean {axes}', f'y = ReduceMean <axes = {axes}> (x)', 's = ReduceSum(x, a)\n y = Div(s, n)',
                   inits=f'int64[{len(axes.split(","))}] a = {{{axes[1:-1]}}}, float n = {{{n}}}', **io)
        yield pair(f'squares {axes}', f'y = ReduceSumSquare <axes = {axes}> (x)', 'q = Mul(x, x)\n y = ReduceSum(q, a)',
                   inits=f'int64[{len(axes.split(","))}] a = {{{axes[1:-1]}}}', **io)
        yield pair(f'lengths {axes}', f'y = ReduceL2 <axes = {axes}> (x)',
                   f'q = ReduceSumSquare <axes = {axes}> (x)\n y = Sqrt(q)', **io)
        yield pair(f'least {axes}', f'y = ReduceMin <axes = {axes}> (x)',
                   f'n = Neg(x)\n m = ReduceMax <axes = {axes}> (n)\n y = Neg(m)', **io)


def bodies():
    local = '<domain: "d", opset_import: ["" : 17]>\nF (i) => (o) {\n %s\n}\n'
    for f in 'o = Relu(i)', 'o = Exp(i)', 'j = Exp(i)\n o = Relu(j)', 'j = Softmax <axis = 1> (i)\n o = Add(i, j)':
        yield pair(f, 'y = d.F(x)', f.replace('(i', '(x').replace('o = ', 'y = '), more=', "d" : 1',
                   functions=(local % f, ''))
        yield pair(f + ' renamed', 'y = d.F(x)', 'y = d.F(x)', more=', "d" : 1',
                   functions=(local % f, local.replace('F (i)', 'F (k)') % f.replace('(i', '(k')))
    for c in 0, 1:
        branch = ['p = Exp(x)', 'q = Sin(x)']
        yield pair(f'a known condition {c}', 'y = If (c) <then_branch = t () => (float[2,3,4] p) { p = Exp(x) }, '
                   'else_branch = e () => (float[2,3,4] q) { q = Sin(x) }>',
                   'y = ' + branch[1 - c][4:], inits=f'bool c = {{{c}}}')
    choice = ('s = ReduceSum <keepdims = 0> (x)\n c = %s\n d = If (c) <then_branch = t () => (float[2,3,4] p) '
              '{ p = %s }, else_branch = e () => (float[2,3,4] q) { q = %s }>\n y = %s')
    for c in 'LessOrEqual(s, l)', 'Not(b)':
        yield pair(f'a choice by floats {c}', choice % ('Greater(s, l)', 'Exp(x)', 'Sin(x)', 'Relu(d)'),
                   choice.replace('c = ', 'b = Greater(s, l)\n c = ') % (c, 'Sin(x)', 'Exp(x)', 'Relu(d)'),
                   inits='float l = {0.5}')
    yield pair('twice the same choice', choice % ('Identity(b)', 'Identity(x)', 'Neg(x)', 'Mul(d, d)'),
               'y = Mul(x, x)', inputs='float[2,3,4] x, bool b')
    loop = ('y = Loop (n, t, x) <body = l (int64 i, bool c, float[2,3,4] v) => (bool d, float[2,3,4] w)'
            ' { d = Identity(c)\n w = Add(v, %s) }>')
    for a in 'x', 'k':
        yield pair(f'before a loop {a}', 'k = Exp(x)\n ' + loop % a, 'e = Exp(x)\n k = Identity(e)\n ' + loop % a,
                   inits='int64 n = {3}, bool t = {1}')


def integers():
    io = dict(inputs='int64[2,3] i', outputs='float[2,3,4] y')
    w = 'float[7,4] w = {' + ', '.join(str(round(0.1 * k, 2)) for k in range(28)) + '}'
    yield pair('rows, then a function', 't = Gather(w, i)\n y = Relu(t)', 'r = Relu(w)\n y = Gather(r, i)',
               inits=w, **io)
    yield pair('reshaped', 'y = Gather(w, i)', 'f = Reshape(i, s)\n t = Gather(w, f)\n y = Reshape(t, u)',
               inits=w + ', int64[1] s = {-1}, int64[3] u = {2, 3, 4}', **io)
    mask = dict(inputs='int64[2,4] m, float[2,4] x', outputs='float[2,4] y')
    body = 'f = Cast <to = 1> (m)\n r = Sub(o, f)\n n = Mul(r, l)\n y = Add(x, n)'
    yield pair('mask', body, 'f = Cast <to = 1> (m)\n r = Sub(f, o)\n n = Mul(r, k)\n y = Add(n, x)',
               inits='float o = {1}, float l = {-1000}, float k = {1000}', **mask)
    yield pair('mask by Where', 'c = Equal(m, z)\n y = Where(c, l, x)', 'c = Equal(m, z)\n n = Not(c)\n'
               ' y = Where(n, x, l)', inits='int64 z = {0}, float l = {-1000}', **mask)
    yield pair('counted', 's = Add(i, o)\n f = Cast <to = 1> (s)\n y = Neg(f)',
               'f = Cast <to = 1> (i)\n s = Add(f, p)\n y = Neg(s)', inits='int64 o = {1}, float p = {1}',
               inputs='int64[4] i', outputs='float[4] y')


def open_shapes():
    rows = [('y = Identity(x)', 'a = Transpose <perm = [1, 0]> (x)\n y = Transpose <perm = [1, 0]> (a)'),
            ('y = Relu(x)', 's = Shape(x)\n a = Reshape(x, m)\n b = Relu(a)\n y = Reshape(b, s)'),
            ('a = Exp(x)\n y = Add(a, x)', 'a = Exp(x)\n y = Add(x, a)'),
            ('y = MatMul(x, w)', 'a = MatMul(x, w)\n y = Identity(a)'),
            ('y = Softmax(x)', 'a = Sub(x, o)\n y = Softmax(a)')]
    inits = 'int64[1] m = {-1}, float o = {1}, float[4,4] w = {' + ', '.join(str(k) for k in range(16)) + '}'
    for i, (a, b) in enumerate(rows):
        yield pair(f'{i}', a, b, inits=inits, inputs='float[N,4] x', outputs='float[N,4] y')


def optimised(seeds):
    """Random models against what petopt makes of them."""
    import random_graph

    def second(petopt, a, b):
        p = subprocess.run([petopt, a, '-o', b, '-O1', '--cost', 'model', '--cache', 'none', '-q'], timeout=300,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')
        if p.returncode or not os.path.exists(b):
            return f'exit {p.returncode}: {p.stderr.strip()[:200]}'
        return None

    def made():
        for seed in range(seeds):
            model = random_graph.build(seed)[0]
            yield f'{seed}', model.SerializeToString(), second
    return made


def kinds(seeds):
    fixed = {f.__name__: models(f) for f in (
        activations, gelus, reorderings, renamings, folded_numbers, moves, products, convolutions, norms,
        reductions, bodies, integers, open_shapes)}
    return fixed | {'optimised': optimised(seeds)}
