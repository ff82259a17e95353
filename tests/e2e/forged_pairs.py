"""Pairs of models that look alike and are not: each function makes the variants of one kind.

A pair is (what, text of A, text of B); texts are those of onnx.parser. {..} of a template are taken
from both columns of a table.
"""
HEAD = '<ir_version: 8, opset_import: ["" : {opset}{more}]>\n'
P31 = 2**31 - 1


def text(body, inputs='float[2,3,4] x', outputs='float[2,3,4] y', opset=17, more='', inits='',
         functions=''):
    inits = f' <{inits}>' if inits else ''
    return (HEAD.format(opset=opset, more=more) + f'g ({inputs}) => ({outputs}){inits} {{\n'
            f'{body}\n}}\n{functions}')


def pair(what, a, b, **rest):
    """The same model but for its body, or for other arguments given as (of A, of B)."""
    both = [{k: v[i] if isinstance(v, tuple) else v for k, v in rest.items()} for i in (0, 1)]
    return what, text(a, **both[0]), text(b, **both[1])


def opsets():
    for op in 'Softmax', 'LogSoftmax', 'Hardmax':
        for axis in 0, 1, -3, -2:
            body = f'y = {op} <axis = {axis}> (x)'
            yield pair(f'{op} {axis}', body, body, opset=(11, 13))
    for op in 'Softmax', 'LogSoftmax':
        yield pair(f'{op} default', f'y = {op}(x)', f'y = {op}(x)', opset=(12, 13))
    body = 's = Shape(x)\n t = ConstantOfShape(s)\n u = Softmax <axis = 1> (x)\n y = Add(t, u)'
    yield pair('with shapes', body, body, opset=(11, 13))


def functions():
    local = '<domain: "d", opset_import: ["" : 17]>\nF (i) => (o) {{\n{0}\n}}\n'
    outer = ('<domain: "d", opset_import: ["" : 17, "d" : 1]>\nG (i) => (o) {{\n o = d.F(i)\n}}\n')
    bodies = [('o = Relu(i)', 'o = Tanh(i)'), ('o = Add(i, i)', 'o = Mul(i, i)'),
              ('o = LeakyRelu <alpha = 0.1> (i)', 'o = LeakyRelu <alpha = 0.2> (i)'),
              ('o = Neg(i)', 'j = Neg(i)\n o = Neg(j)'), ('o = Sigmoid(i)', 'o = HardSigmoid(i)'),
              ('o = Softmax <axis = 1> (i)', 'o = Softmax <axis = 2> (i)')]
    for a, b in bodies:
        x, y = (local.format(f) for f in (a, b))
        yield pair(a, 'y = d.F(x)', 'y = d.F(x)', more=', "d" : 1', functions=(x, y))
        yield pair(a + ' within', 'y = d.G(x)', 'y = d.G(x)', more=', "d" : 1',
                   functions=(x + outer.format(), y + outer.format()))


def captures():
    body = 'c = Greater(s, z)\n k = Squeeze(c)\n a = Exp(x)\n b = Sin(x)\n y = If (k) <{0}>'
    one = 'then_branch = t () => (float[2,3,4] {p}1) {{ {p}0 = Add(a, b)\n {p}1 = {e} }}'
    two = 'else_branch = e () => (float[2,3,4] {p}1) {{ {p}0 = Add(a, b)\n {p}1 = {e} }}'
    more = dict(inputs='float[2,3,4] x, float[1] s', inits='float[1] z = {0}')
    swaps = [('Sub(a, b)', 'Sub(b, a)'), ('Sub(a, p0)', 'Sub(b, p0)'), ('Mul(a, a)', 'Mul(b, b)'),
             ('Div(a, p0)', 'Div(p0, a)'), ('Identity(a)', 'Identity(b)')]
    for a, b in swaps:
        for which in 0, 1:
            forms = []
            for e in (a, b):
                then = one.format(p='p', e=a if which else e)
                other = two.format(p='q', e=(e if which else a).replace('p0', 'q0'))
                forms.append(body.format(then + ', ' + other))
            yield pair(f'{a} {which}', *forms, **more)
    loop = ('a = Exp(x)\n b = Sin(x)\n y = Loop (n, t, x) <body = l (int64 i, bool c, float[2,3,4] v)'
            ' => (bool d, float[2,3,4] w) {{ d = Identity(c)\n u = Add(a, b)\n k = Sub({0})\n'
            ' r = Add(v, k)\n w = Add(r, u) }}>')
    for a, b in ('a, b', 'b, a'), ('a, v', 'b, v'), ('v, a', 'v, b'), ('u, a', 'u, b'):
        yield pair('loop ' + a, loop.format(a), loop.format(b),
                   inits='int64 n = {3}, bool t = {1}')


def residues():
    for w in 0.0011, 0.1, 3.0, 1.5, -7.25, 0.3333333:
        yield pair(f'2^31 times {w}', 'y = Mul(x, w)', 'y = Mul(x, w)',
                   inits=tuple(f'float w = {{{v!r}}}' for v in (w, w * 2.0**31)))
    for k in 1, 2, 3, 5:  # k / 4096 and k / 4096 - p / 4096 are one modulo p, and dyadic in float64
        yield pair(f'p less {k}', 'y = Mul(x, w)', 'y = Mul(x, w)', inputs='double[2,3] x',
                   outputs='double[2,3] y',
                   inits=tuple(f'double w = {{{v!r}}}' for v in (k / 4096, (k - P31) / 4096)))
    for a in 0.5, 0.25, 2.0:
        yield pair(f'two factors {a}', 'a = Mul(x, v)\n y = Mul(a, w)',
                   'a = Mul(x, v)\n y = Mul(a, w)',
                   inits=tuple(f'float v = {{{p!r}}}, float w = {{{q!r}}}'
                               for p, q in ((a, 1.0), (a * 65536, 32768.0))))
    for a, b in (65536, 32768), (131072, 16384):
        yield pair(f'{a} and {b}', 'y = Identity(x)', 'a = Mul(x, v)\n y = Mul(a, w)',
                   inits=('float v = {1}', f'float v = {{{a}}}, float w = {{{b}}}'))
    yield pair('sum to p', 'y = Identity(x)', 'a = Mul(x, v)\n b = Mul(x, w)\n c = Add(a, b)\n'
               ' y = Add(c, x)', inputs='double[2,3] x', outputs='double[2,3] y',
               inits=('double v = {1}', f'double v = {{{2**30 / 4096!r}}}, '
                      f'double w = {{{(2**30 - 1) / 4096!r}}}'))


def zero_signs():
    z = ('0.0', '-0.0')
    for op in 'Mul(x, z)', 'Add(z, z)', 'Sub(z, w)':
        body = f'a = {op}\n y = Reciprocal(a)'
        sign = tuple(f'float[2,3,4] z = {{{", ".join([v] * 24)}}}, float w = {{0.0}}' for v in z)
        more = {'inputs': 'float[2,3,4] x'}
        if 'x' not in op:
            body = body.replace('y = Reciprocal(a)', 'r = Reciprocal(a)\n s = Sign(r)\n'
                                ' y = Add(x, s)')
        yield pair(op, body, body, inits=sign, **more)
    for n in 1, 2, 5:
        body = 'r = Reciprocal(z)\n s = Sign(r)\n t = Mul(s, c)\n y = Add(x, t)'
        yield pair(f'constant {n}', body, body, inits=tuple(f'float z = {{{v}}}, float c = {{{n}}}'
                                                             for v in z))
    for op in 'Relu', 'Abs', 'Floor', 'Ceil':
        a = f'a = {op}(x)\n b = Mul(a, z)\n r = Reciprocal(b)\n y = Sign(r)'
        yield pair(op, a, a, inits=tuple(f'float z = {{{v}}}' for v in z))


def integer_overflow():
    for to, big in (6, '2147483647'), (3, '127'), (5, '32767'):
        ctype = {6: 'int32', 3: 'int8', 5: 'int16'}[to]
        wide = dict(inputs=f'{ctype}[6] x', outputs='int64[6] y')
        if to == 6:
            yield pair('wraps before the cast', 'a = Add(x, b)\n y = Cast <to = 7> (a)',
                       'a = Cast <to = 7> (x)\n c = Cast <to = 7> (b)\n y = Add(a, c)',
                       inits=f'{ctype} b = {{{big}}}', **wide)
            yield pair('times', 'a = Mul(x, b)\n y = Cast <to = 7> (a)',
                       'a = Cast <to = 7> (x)\n c = Cast <to = 7> (b)\n y = Mul(a, c)',
                       inits=f'{ctype} b = {{1073741824}}', **wide)
        else:
            yield pair(f'{ctype} of a large number', f'a = Cast <to = {to}> (x)\n y = Cast <to = 7> (a)',
                       'y = Identity(x)', inputs='int64[6] x', outputs='int64[6] y')
    for n in 2, 4, 8, 3:
        yield pair(f'{n} halves', 'a = Div(x, n)\n y = Mul(a, n)', 'y = Identity(x)',
                   inputs='int64[6] x', outputs='int64[6] y', inits=f'int64 n = {{{n}}}')
    yield pair('whole quotients', 'a = Div(x, n)\n y = Cast <to = 1> (a)',
               'a = Cast <to = 1> (x)\n m = Cast <to = 1> (n)\n y = Div(a, m)',
               inputs='int64[6] x', outputs='float[6] y', inits='int64 n = {3}')
    for b in 1 << 31, 1 << 32, (1 << 31) - 1, 1 << 40:
        yield pair(f'plus {b}', 'y = Identity(x)', 'y = Add(x, b)', inputs='int64[6] x',
                   outputs='int64[6] y', inits=f'int64 b = {{{b}}}')


def avoided_divisions():
    for op in 'Relu', 'Floor', 'Sign', 'Round':
        yield pair(f'{op} over itself', f'a = {op}(x)\n y = Div(a, a)', 'b = Sub(x, x)\n y = Add(b, o)',
                   inits='float o = {1}')
        yield pair(f'times {op} and over', f'a = {op}(x)\n b = Mul(x, a)\n y = Div(b, a)',
                   'y = Identity(x)')
        yield pair(f'1 over {op}, times', f'a = {op}(x)\n b = Reciprocal(a)\n y = Mul(a, b)',
                   'b = Sub(x, x)\n y = Add(b, o)', inits='float o = {1}')


def domains():
    # Where the first model gives no number, the second may: so the plain one comes first.
    rows = [('y = Div(x, x)', 'z = Sub(x, x)\n y = Add(z, o)'), ('q = Mul(x, x)\n y = Div(q, x)', 'y = Identity(x)'),
            ('y = Identity(x)', 'r = Sqrt(x)\n y = Mul(r, r)'), ('y = Identity(x)', 'r = Pow(x, h)\n y = Pow(r, t)'),
            ('y = Identity(x)', 'l = Log(x)\n y = Exp(l)'), ('p = Pow(x, m)\n y = Mul(p, x)', 'z = Sub(x, x)\n y = Add(z, o)'),
            ('q = Mul(x, x)\n y = Sqrt(q)', 'y = Identity(x)'), ('p = Pow(x, c)\n y = Div(p, x)', 'y = Mul(x, x)')]
    for a, b in rows:
        yield pair(a + ' ' + b, a, b, inits='float o = {1}, float h = {0.5}, float t = {2}, float m = {-1}, float c = {3}')
    for k in range(4):  # a division by what one element alone makes 0
        c = ['1.0'] * 4
        c[k] = '0.0'
        yield pair(f'0 at {k}', 'q = Mul(x, c)\n d = Add(q, x)\n e = Mul(d, c)\n y = Div(e, c)', 'q = Mul(x, c)\n y = Add(q, x)',
                   inits=f'float[4] c = {{{", ".join(c)}}}')


def last_elements():
    for n in 5, 7, 64, 1000:
        io = dict(inputs=f'float[{n}] x', outputs=f'float[{n - 1}] y')
        yield pair(f'slice {n}', 'y = Slice(x, b, e)', 'y = Slice(x, b, e)',
                   inits=(f'int64[1] b = {{0}}, int64[1] e = {{{n - 1}}}',
                          f'int64[1] b = {{1}}, int64[1] e = {{{n}}}'), **io)
        c = ['1.0'] * n
        d = c[:-1] + ['1.0000001']
        d2 = c[:-1] + ['1.001']
        io = dict(inputs=f'float[{n}] x', outputs=f'float[{n}] y')
        yield pair(f'constant {n}', 'y = Mul(x, c)', 'y = Mul(x, c)',
                   inits=tuple(f'float[{n}] c = {{{", ".join(v)}}}' for v in (c, d2)), **io)
        i = [str(k) for k in range(n)]
        j = i[:-2] + [i[-1], i[-2]]
        yield pair(f'gather {n}', 'y = Gather(x, i)', 'y = Gather(x, i)',
                   inits=tuple(f'int64[{n}] i = {{{", ".join(v)}}}' for v in (i, j)), **io)


CONV = 'float[1,2,6,6] x', 'float[1,2,6,6] y', 'float[2,2,3,3] w = {' + ', '.join(
    str(round(0.1 * k - 1.7, 3)) for k in range(36)) + '}'


def borders():
    x, y, w = CONV
    for a, b in ('1, 1, 1, 1', '0, 1, 2, 1'), ('1, 1, 1, 1', '1, 0, 1, 2'), ('1, 1, 1, 1', '2, 2, 0, 0'):
        yield pair(b, f'y = Conv <pads = [{a}]> (x, w)', f'y = Conv <pads = [{b}]> (x, w)',
                   inputs=x, outputs=y, inits=w)
    for op in 'AveragePool', 'LpPool':
        for a, b in ('1, 1, 1, 1', '0, 1, 2, 1'), ('1, 1, 1, 1', '1, 0, 1, 2'):
            yield pair(f'{op} {b}', f'y = {op} <kernel_shape = [3, 3], pads = [{a}]> (x)',
                       f'y = {op} <kernel_shape = [3, 3], pads = [{b}]> (x)', inputs=x, outputs=y)
    pool = 'y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = {0}> (x)'
    yield pair('divisors', pool.format(0), pool.format(1), inputs=x, outputs=y)
    for a, b in ('edge', 'reflect'), ('edge', 'constant'), ('reflect', 'wrap'):
        yield pair(f'{a} {b}', f'y = Pad <mode = "{a}"> (x, p)', f'y = Pad <mode = "{b}"> (x, p)',
                   inputs=x, outputs='float[1,2,8,8] y', inits='int64[8] p = {0,0,1,1,0,0,1,1}', opset=19)
    yield pair('one padded value', 'y = Pad(x, p, z)', 'y = Pad(x, p, z)', inputs=x,
               outputs='float[1,2,7,6] y', inits=('int64[8] p = {0,0,1,0,0,0,0,0}, float z = {0}',
                                                  'int64[8] p = {0,0,1,0,0,0,0,0}, float z = {0.001}'))


def seams():
    x, y, w = CONV
    for at in 1, 2, 3, 4:
        cut = (f'p = Slice(x, a, b, c)\n q = Slice(x, b, d, c)\n y = Concat <axis = 2> (p, q)')
        yield pair(f'cut at {at}', 'y = Identity(x)', cut.replace('q = Slice(x, b', 'q = Slice(x, f'),
                   inputs=x, outputs=y, inits=('int64[1] a = {0}', f'int64[1] a = {{0}}, int64[1] b = {{{at}}},'
                   f' int64[1] f = {{{at - 1}}}, int64[1] d = {{5}}, int64[1] c = {{2}}'))
        conv = ('p = Slice(x, a, b, c)\n q = Slice(x, f, d, c)\n'
                ' r = Conv <pads = [1, 1, 0, 1]> (p, w)\n s = Conv <pads = [0, 1, 1, 1]> (q, w)\n'
                ' y = Concat <axis = 2> (r, s)')
        if at < 4:  # rows of the halo that come twice and not from where they should
            yield pair(f'convolution cut at {at}', 'y = Conv <pads = [1, 1, 1, 1]> (x, w)',
                       'p = Slice(x, a, b, c)\n q = Slice(x, b, d, c)\n'
                       ' r = Conv <pads = [1, 1, 1, 1]> (p, w)\n s = Conv <pads = [1, 1, 1, 1]> (q, w)\n'
                       ' y = Concat <axis = 2> (r, s)', inputs=x, outputs=y,
                       inits=w + f', int64[1] a = {{0}}, int64[1] b = {{{at + 1}}}, '
                       'int64[1] d = {6}, int64[1] c = {2}')
    for a, b in (2, 4), (4, 2):
        yield pair(f'split {a}', 'p, q = Split <axis = 2> (x, s)\n y = Concat <axis = 2> (q, p)',
                   'p, q = Split <axis = 2> (x, s)\n y = Concat <axis = 2> (q, p)', inputs=x, outputs=y,
                   inits=(f'int64[2] s = {{{a}, {b}}}', f'int64[2] s = {{{b}, {a}}}'))


def channels():
    for n in 3, 8, 17:
        for k in 0, n - 1:
            c = ['0.5'] * n
            d = list(c)
            d[k] = '0.51'
            for op in 'PRelu(x, c)', 'Add(x, c)':
                yield pair(f'{op} {n} {k}', f'y = {op}', f'y = {op}', inputs=f'float[1,{n},4,4] x',
                           outputs=f'float[1,{n},4,4] y',
                           inits=tuple(f'float[{n},1,1] c = {{{", ".join(v)}}}' for v in (c, d)))
    yield pair('groups', 'y = Conv <group = 2> (x, w)', 'y = Conv <group = 1> (x, v)',
               inputs='float[1,2,4,4] x', outputs='float[1,2,4,4] y',
               inits='float[2,1,1,1] w = {1, 2}, float[2,2,1,1] v = {1, 0, 0.001, 2}')


def rare_branches():
    for limit in 1e6, 3e4, 1e5, 123456:
        yield pair(f'above {limit}', 'y = Identity(x)', 'c = Greater(x, l)\n n = Neg(x)\n'
                   ' y = Where(c, n, x)', inits=('float l = {1}', f'float l = {{{limit}}}'))
        yield pair(f'clip at {limit}', 'y = Identity(x)', 'y = Clip(x, z, l)',
                   inits=('float l = {1}', f'float z = {{{-limit}}}, float l = {{{limit}}}'))
    for k in 4711, 77, 31999, 12:
        ids = dict(inputs='int64[4] i, float[4] x', outputs='float[4] y')
        yield pair(f'id {k}', 'y = Identity(x)', 'c = Equal(i, k)\n n = Neg(x)\n y = Where(c, n, x)',
                   inits=('int64 k = {1}', f'int64 k = {{{k}}}'), **ids)
        yield pair(f'id {k} on both sides', 'c = Equal(i, k)\n n = Neg(x)\n y = Where(c, n, x)',
                   'c = Equal(i, k)\n n = Exp(x)\n y = Where(c, n, x)', inits=f'int64 k = {{{k}}}', **ids)
        yield pair(f'row {k}', 't = Gather(w, i)\n y = Add(t, x)',
                   'c = Equal(i, k)\n j = Where(c, z, i)\n t = Gather(w, j)\n y = Add(t, x)',
                   inits='float[32000] w = {' + ', '.join(str(v % 977) for v in range(32000)) +
                   f'}}, int64 k = {{{k}}}, int64 z = {{0}}', **ids)
    yield pair('a condition of ids', 'y = Identity(x)', 's = ReduceMax <keepdims = 0> (i)\n'
               ' c = Equal(s, k)\n y = If (c) <then_branch = t () => (float[4] p) { p = Neg(x) }, '
               'else_branch = e () => (float[4] q) { q = Identity(x) }>',
               inits=('int64 k = {1}', 'int64 k = {5000}'), inputs='int64[4] i, float[4] x', outputs='float[4] y')


def large_values():
    yield pair('softmax without its maximum', 'y = Softmax <axis = 2> (x)',
               'e = Exp(x)\n s = ReduceSum(e, a)\n y = Div(e, s)', inits='int64[1] a = {2}')
    for c in 1e9, 1e8, 3e9:
        yield pair(f'plus and minus {c}', 'y = Identity(x)', 'a = Add(x, c)\n y = Sub(a, c)',
                   inits=('float c = {1}', f'float c = {{{c}}}'))
    yield pair('variance', 'm = ReduceMean <axes = [2]> (x)\n d = Sub(x, m)\n q = Mul(d, d)\n'
               ' y = ReduceMean <axes = [2]> (q)', 'q = Mul(x, x)\n s = ReduceMean <axes = [2]> (q)\n'
               ' m = ReduceMean <axes = [2]> (x)\n n = Mul(m, m)\n y = Sub(s, n)',
               outputs='float[2,3,1] y')
    yield pair('softplus by its definition', 'y = Softplus(x)', 'e = Exp(x)\n a = Add(e, o)\n y = Log(a)',
               inits='float o = {1}')
    yield pair('log of exp', 'y = Identity(x)', 'e = Exp(x)\n y = Log(e)')
    for c in 1e30, 1e20:
        yield pair(f'times and over {c}', 'y = Identity(x)', 'a = Mul(x, c)\n b = Mul(a, c)\n'
                   ' d = Div(b, c)\n y = Div(d, c)', inits=('float c = {1}', f'float c = {{{c}}}'))


def small_values():
    for c in 1e-30, 1e-25, 2e-38:
        yield pair(f'times and over {c}', 'y = Identity(x)', 'a = Mul(x, c)\n b = Mul(a, c)\n'
                   ' d = Div(b, c)\n y = Div(d, c)', inits=('float c = {1}', f'float c = {{{c}}}'))
        yield pair(f'{c} is not 0', 'a = Mul(x, z)\n y = Div(a, c)', 'a = Mul(x, c)\n y = Div(a, c)',
                   inits=f'float z = {{0}}, float c = {{{c}}}')
    for e in 1e-5, 1e-6, 1e-12:
        body = 'y = LayerNormalization <axis = 2, epsilon = {0}> (a, s)'
        yield pair(f'epsilon {e}', 'a = Mul(x, k)\n ' + body.format(e), 'a = Mul(x, k)\n ' + body.format(e * 3),
                   inits='float k = {0.001}, float[4] s = {1, 2, 3, 4}')


def open_sizes():
    io = dict(inputs='float[N] x', outputs='float[N] y')
    for k in 2, 4, 8, 16, 64:
        yield pair(f'first {k}', 'y = Identity(x)',
                   'p = Slice(x, a, b)\n q = Slice(x, b, e)\n n = Neg(q)\n y = Concat <axis = 0> (p, n)',
                   inits=('int64 k = {1}', f'int64[1] a = {{0}}, int64[1] b = {{{100 * k}}}, '
                          'int64[1] e = {9223372036854775807}'), **io)
    for k in 257, 300, 513, 1000:
        yield pair(f'from {k} on', 'y = Identity(x)', 's = Shape(x)\n c = Greater(s, k)\n'
                   ' f = Cast <to = 1> (c)\n y = Add(x, f)', inits=('int64 k = {1}', f'int64 k = {{{k}}}'), **io)
    for k in 7, 11, 13, 37, 101:
        yield pair(f'multiples of {k}', 'y = Identity(x)', 's = Shape(x)\n m = Mod(s, k)\n'
                   ' c = Equal(m, z)\n f = Cast <to = 1> (c)\n y = Add(x, f)',
                   inits=('int64 k = {1}', f'int64 k = {{{k}}}, int64 z = {{0}}'), **io)


def batches():
    """Equal for the batches that are small; the number of samples is seen by what is made of it."""
    io = dict(inputs='float[N,4] x', outputs='float[N,4] y')
    count = ' s = Shape(x)\n n = Gather(s, z)\n'
    for k in 5, 40, 700, 5000:
        yield pair(f'first {k} samples', 'y = Identity(x)',
                   'p = Slice(x, a, b)\n q = Slice(x, b, e)\n r = Neg(q)\n y = Concat <axis = 0> (p, r)',
                   inits=('int64 k = {1}', f'int64[1] a = {{0}}, int64[1] b = {{{k}}}, '
                          'int64[1] e = {9223372036854775807}'), **io)
        yield pair(f'no more than {k}', 'y = Identity(x)', count + ' m = Min(n, k)\n d = Sub(n, m)\n'
                   ' f = Cast <to = 1> (d)\n y = Add(x, f)',
                   inits=('int64 z = {0}', f'int64 z = {{0}}, int64 k = {{{k}}}'), **io)
        yield pair(f'whole {k}', 'y = Identity(x)', count + ' d = Div(n, k)\n f = Cast <to = 1> (d)\n y = Add(x, f)',
                   inits=('int64 z = {0}', f'int64 z = {{0}}, int64 k = {{{k}}}'), **io)
    yield pair('a cube that is 0 at 1, 2 and 3', 'y = Identity(x)', count +
               ' a = Sub(n, i)\n b = Sub(n, j)\n c = Sub(n, k)\n d = Mul(a, b)\n e = Mul(d, c)\n'
               ' f = Cast <to = 1> (e)\n y = Add(x, f)',
               inits=('int64 z = {0}', 'int64 z = {0}, int64 i = {1}, int64 j = {2}, int64 k = {3}'), **io)
    yield pair('maxima of all samples', 'm = ReduceMax <axes = [1]> (x)\n y = Sub(x, m)',
               'm = ReduceMax <axes = [0, 1]> (x)\n y = Sub(x, m)', **io)
    yield pair('maxima by number', 'y = Identity(x)', 'r = Unsqueeze(x, a)\n p, i = MaxPool <kernel_shape = [1]> (r)\n'
               ' w = Unsqueeze(v, a)\n j = Sub(i, w)\n k = Clip(j, l)\n c = Cast <to = 1> (k)\n d = Squeeze(c, a)\n y = Add(x, d)',
               inits=('int64 k = {1}', 'int64[1] a = {1}, int64[1,4] v = {0, 1, 2, 3}, int64 l = {12}'), **io)


def control_flow():
    loop = ('y = Loop (n, t, x) <body = l (int64 i, bool c, float[2,3,4] v) => (bool d, float[2,3,4] w)'
            ' {{ {0} }}>')
    bodies = [('d = Identity(c)\n w = Add(v, v)', 'd = Identity(c)\n w = Mul(v, v)'),
              ('d = Identity(c)\n w = Add(v, x)', 'd = Not(c)\n w = Add(v, x)'),
              ('d = Identity(c)\n f = Cast <to = 1> (i)\n w = Add(v, f)',
               'd = Identity(c)\n f = Cast <to = 1> (i)\n w = Sub(v, f)'),
              ('d = Identity(c)\n w = Relu(v)', 'd = Identity(c)\n w = Abs(v)')]
    for a, b in bodies:
        yield pair(a, loop.format(a), loop.format(b), inits='int64 n = {3}, bool t = {1}')
    for n, m in (3, 4), (1, 2), (10, 11):
        yield pair(f'{n} trips', *[loop.format('d = Identity(c)\n w = Add(v, x)')] * 2,
                   inits=tuple(f'int64 n = {{{k}}}, bool t = {{1}}' for k in (n, m)))
    scan = ('s, y = Scan <num_scan_inputs = 1{0}, body = b (float[3,4] p, float[3,4] q) => '
            '(float[3,4] r, float[3,4] u) {{ r = Add(p, q)\n u = Identity(r) }}> (z, x)')
    z = 'float[3,4] z = {' + ', '.join(['0'] * 12) + '}'
    yield pair('direction', scan.format(''), scan.format(', scan_input_directions = [1]'), inits=z)
    yield pair('direction of the output', scan.format(''), scan.format(', scan_output_directions = [1]'),
               inits=z)


def strings():
    io = dict(inputs='float[3] x', outputs='string[2] y, float[3] z')
    words = [('a', 'b'), ('a', 'A'), ('', ' '), ('ab', 'ba'), ('1', '01'), ('x', 'x ')]
    for a, b in words:
        yield pair(f'{a!r} {b!r}', 'y = Constant <value_strings = ["q", "%s"]> ()\n z = Relu(x)' % a,
                   'y = Constant <value_strings = ["q", "%s"]> ()\n z = Relu(x)' % b, **io)
    for a, b in words[:4]:
        body = ('s = Constant <value_strings = ["%s"]> ()\n c = Equal(t, s)\n f = Cast <to = 1> (c)\n'
                ' y = Add(x, f)')
        yield pair(f'equal to {a!r} {b!r}', body % a, body % b, inputs='float[3] x, string[3] t',
                   outputs='float[3] y', opset=19)
    body = 'y = StringNormalizer <case_change_action = "%s"> (t)\n z = Relu(x)'
    yield pair('case', body % 'LOWER', body % 'UPPER', inputs='float[3] x, string[2] t',
               outputs='string[2] y, float[3] z')


def random_operators():
    io = dict(inputs='float[4] x', outputs='float[4] y')
    for op, a, b in (('RandomNormal', 'mean = 0.0', 'mean = 5.0'), ('RandomNormal', 'scale = 1.0', 'scale = 2.0'),
                     ('RandomUniform', 'high = 1.0', 'high = 3.0'), ('RandomUniform', 'low = 0.0', 'low = 0.5'),
                     ('RandomNormal', 'seed = 1.0', 'seed = 2.0')):
        for f in 'Add', 'Mul':
            body = 'r = ' + op + ' <shape = [4], {0}> ()\n y = ' + f + '(x, r)'
            yield pair(f'{op} {f} {b}', body.format(a), body.format(b), **io)
    body = 'r = RandomNormalLike (x)\n y = Add(x, r)'
    yield pair('one and two', body, 'r = RandomNormalLike (x)\n q = RandomNormalLike (x)\n'
               ' s = Add(q, r)\n y = Add(x, s)', **io)
    yield pair('random and not', 'y = Identity(x)', 'r = RandomNormalLike <scale = 0.001> (x)\n y = Add(x, r)', **io)


def quantised():
    io = dict(inputs='float[2,8] x', outputs='float[2,8] y')
    body = 'q = QuantizeLinear(x, s, z)\n y = DequantizeLinear(q, s, z)'
    for a, b in (('0.1', '3'), ('0.1', '4')), (('0.1', '3'), ('0.11', '3')), (('0.02', '128'), ('0.02', '127')), \
            (('0.5', '0'), ('0.5', '1')):
        yield pair(f'{a} {b}', body, body, inits=tuple(
            f'float s = {{{s}}}, uint8 z = {{{z}}}' for s, z in (a, b)), **io)
    yield pair('rounding left out', body, 'y = Clip(x, l, h)', inits=(
        'float s = {0.001}, int8 z = {0}', 'float l = {-0.128}, float h = {0.127}'), **io)
    yield pair('signed', body, body, inits=('float s = {0.1}, uint8 z = {0}', 'float s = {0.1}, int8 z = {0}'), **io)
    axis = 'q = QuantizeLinear <axis = {0}> (x, s, z)\n y = DequantizeLinear <axis = {0}> (q, s, z)'
    yield pair('axis', axis.format(0), axis.format(1), inputs='float[2,2] x', outputs='float[2,2] y',
               inits='float[2] s = {0.1, 0.2}, uint8[2] z = {3, 9}')
    mm = 'q, s, z = DynamicQuantizeLinear(x)\n m = MatMulInteger(q, w, z, v)\n f = Cast <to = 1> (m)\n y = Mul(f, s)'
    w = 'uint8[8,8] w = {' + ', '.join(str(k * 37 % 251) for k in range(64)) + '}'
    yield pair('zero of the weights', mm, mm, inits=(w + ', uint8 v = {0}', w + ', uint8 v = {1}'), **io)
    yield pair('one weight', mm, mm, inits=(w + ', uint8 v = {0}', w.replace('{0,', '{1,') + ', uint8 v = {0}'), **io)


def attribute_defaults():
    rows = [('LeakyRelu(x)', 'LeakyRelu <alpha = 0.02> (x)'), ('Elu(x)', 'Elu <alpha = 1.01> (x)'),
            ('HardSigmoid(x)', 'HardSigmoid <alpha = 0.16666667> (x)'), ('Selu(x)', 'Selu <alpha = 1.67> (x)'),
            ('Softmax(x)', 'Softmax <axis = 1> (x)'), ('ThresholdedRelu(x)', 'ThresholdedRelu <alpha = 1.1> (x)'),
            ('Celu(x)', 'Celu <alpha = 1.1> (x)'), ('LRN <size = 3> (x)', 'LRN <size = 3, alpha = 0.01> (x)'),
            ('Shrink(x)', 'Shrink <lambd = 0.4> (x)'), ('MeanVarianceNormalization(x)', 'Identity(x)'),
            ('LpNormalization(x)', 'LpNormalization <p = 1> (x)'), ('CumSum(x, i)', 'CumSum <exclusive = 1> (x, i)'),
            ('CumSum(x, i)', 'CumSum <reverse = 1> (x, i)')]
    for a, b in rows:
        yield pair(b, 'y = ' + a, 'y = ' + b, inputs='float[1,3,4,4] x', outputs='float[1,3,4,4] y',
                   inits='int64 i = {1}')


def precision():
    for to in 10, 16:
        yield pair(f'cast to {to}', 'y = Identity(x)', f'a = Cast <to = {to}> (x)\n y = Cast <to = 1> (a)')
    yield pair('cast to int', 'y = Identity(x)', 'a = Cast <to = 7> (x)\n y = Cast <to = 1> (a)')
    for op in 'Floor', 'Round', 'Ceil':
        yield pair(op, 'y = Floor(x)' if op != 'Floor' else 'y = Round(x)', f'y = {op}(x)')
    for v in 1e-3, 1e-2:
        yield pair(f'off by {v}', 'y = Mul(x, c)', 'y = Mul(x, c)',
                   inits=('float c = {1}', f'float c = {{{1 + v}}}'))


def ties():
    for op in 'ArgMax', 'ArgMin':
        yield pair(op, f'r = Round(x)\n y = {op} <axis = 1> (r)',
                   f'r = Round(x)\n y = {op} <axis = 1, select_last_index = 1> (r)',
                   inputs='float[9,40] x', outputs='int64[9,1] y')
    for a, b in ('largest = 1', 'largest = 0'), ('axis = 1', 'axis = 0'):
        yield pair(a, f'y, i = TopK <{a}> (x, k)', f'y, i = TopK <{b}> (x, k)', inputs='float[4,4] x',
                   outputs='float[M,L] y', inits='int64[1] k = {2}')
    for a, b in ('Greater', 'GreaterOrEqual'), ('Less', 'LessOrEqual'):
        yield pair(a, f'r = Round(x)\n c = {a}(r, o)\n y = Cast <to = 1> (c)',
                   f'r = Round(x)\n c = {b}(r, o)\n y = Cast <to = 1> (c)', inits='float o = {1}')


def recurrent():
    shapes = 'float[1,16,3] w = {%s}, float[1,16,4] r = {%s}' % (
        ', '.join(str(round(0.05 * (k % 19) - 0.4, 3)) for k in range(48)),
        ', '.join(str(round(0.04 * (k % 23) - 0.4, 3)) for k in range(64)))
    io = dict(inputs='float[5,2,3] x', outputs='float[5,1,2,4] y', inits=shapes)
    base = 'y = LSTM <hidden_size = 4{0}> (x, w, r)'
    for more in (', direction = "reverse"', ', input_forget = 1', ', clip = 0.05',
                 ', activations = ["Sigmoid", "Relu", "Tanh"]'):
        yield pair(more, base.format(''), base.format(more), **io)


def interfaces():
    two = dict(inputs='float[2,3] a, float[2,3] b', outputs='float[2,3] p, float[2,3] q')
    yield pair('outputs swapped', 'p = Exp(a)\n q = Sin(b)', 'q = Exp(a)\n p = Sin(b)', **two)
    yield pair('inputs swapped', 'p = Sub(a, b)\n q = Exp(a)', 'p = Sub(b, a)\n q = Exp(a)', **two)
    yield pair('one output twice', 'p = Exp(a)\n q = Sin(b)', 'p = Exp(a)\n q = Exp(a)', **two)


def models(kind):
    """The kind with serialised models."""
    import onnx.parser

    def made():
        for what, a, b in kind():
            yield what, *(onnx.parser.parse_model(t).SerializeToString() for t in (a, b))
    return made


KINDS = {f.__name__: models(f) for f in (
    opsets, functions, captures, residues, zero_signs, integer_overflow, avoided_divisions, domains, last_elements,
    borders, seams, channels, rare_branches, large_values, small_values, open_sizes, batches, control_flow, strings,
    random_operators, quantised, attribute_defaults, precision, ties, recurrent, interfaces)}
