"""A machine that runs PTX: each instruction as the manual of PTX has it, fragments of mma and matrices
of ldmatrix too, with which values go where written down from there and not from the emulator of this
folder. A block's threads run side by side, those that are furthest behind first; what a warp does
together faults where lanes have parted; copies land when they are waited for. Races are for the
emulator to find."""
import re

import numpy as np

SHARED, GLOBAL, GUARD = 1024, 1 << 32, 4096  # where memory begins; room that nobody may touch
FUNCTIONS, TYPES = {}, {
    'pred': np.bool_, 'b8': np.uint8, 'u8': np.uint8, 'b16': np.uint16, 'u16': np.uint16, 's16': np.int16,
    'b32': np.uint32, 'u32': np.uint32, 's32': np.int32, 'f32': np.float32, 'b64': np.uint64, 'u64': np.uint64,
    's64': np.int64}
CLASSES = {'p': np.bool_, 'rs': np.uint16, 'r': np.uint32, 'rd': np.uint64, 'f': np.float32}


class Fault(Exception):
    pass


def op(*names):
    def add(function):
        FUNCTIONS.update({name: function for name in names})
        return function
    return add


# --- texts ---

def split(text):
    """Operands, with {lists} and [addresses] whole."""
    return re.findall(r'\{[^}]*\}|\[[^\]]*\]|[^\s,]+', text)


class Kernel:
    def __init__(self, name, body):
        self.code, self.labels = [], {}
        self.params = {p: i for i, p in enumerate(re.findall(rf'\.param [^,)]*?({name}_param_\d+)', body))}
        body = body[body.index('{') + 1:]
        for line in body.split('\n'):
            line = line.split('//')[0].strip()
            for part in line.split(';'):
                part = part.strip()
                label = re.match(r'(\$\S+):', part)
                if label:
                    self.labels[label.group(1)] = len(self.code)
                    part = part[label.end():].strip()
                if part and part[0] not in '.{}':
                    self.code.append(self.parsed(part))

    @staticmethod
    def parsed(text):
        guard = re.match(r'@(!?)(%p\d+)\s+', text)
        words = text[guard.end():] if guard else text
        name, rest = re.match(r'(\S+)\s*(.*)', words, re.S).groups()
        parts = name.split('.')
        return (guard and (guard.group(2), bool(guard.group(1)))), parts, split(rest), text


def kernels(text):
    found = {}
    for m in re.finditer(r'\.entry (\w+)\(', text):
        end = text.index('\n}', m.end())
        found[m.group(1)] = Kernel(m.group(1), text[m.end():end])
    return found


# --- memory ---

class Memory:
    """Buffers with guards between them; bytes that are none's may not be touched."""

    def __init__(self, base, size):
        self.base = base
        self.data = np.full(size, 0xff, np.uint8)
        self.there = np.zeros(size, bool)

    def check(self, at, size, what):
        at = at.astype(np.int64) - self.base
        if ((at < 0) | (at + size > len(self.data))).any() or not self.there[at[:, None] + np.arange(size)].all():
            raise Fault(f'{what} outside of memory')
        if (at % size).any():
            raise Fault(f'{what} at an address that is not a multiple of {size}')
        return at[:, None] + np.arange(size)

    def load(self, at, size, what):
        return self.data[self.check(at, size, what)]

    def store(self, at, values, what):
        self.data[self.check(at, values.shape[1], what)] = values


# --- a block ---

class Block:
    def __init__(self, kernel, launch, params, place, memory):
        self.k, self.n, self.params, self.memory = kernel, launch['threads'], params, memory
        self.shared = Memory(SHARED, launch['shared'] + 16)
        self.shared.there[:launch['shared']] = True
        self.regs = {'%tid.x': np.arange(self.n, dtype=np.uint32)}
        for axis, at in zip('xyz', place):
            self.regs['%ctaid.' + axis] = np.full(self.n, at, np.uint32)
        self.pc = np.zeros(self.n, np.int64)
        self.over = np.zeros(self.n, bool)
        self.waits = np.zeros(self.n, bool)
        self.groups = np.zeros(self.n, np.int64)
        self.copies = []  # that are in flight: thread, group, to, from, size, bytes

    def run(self):
        while not self.over.all():
            ready = ~self.over & ~self.waits
            if not ready.any():  # all that are left have come to the barrier
                self.waits[:] = False
                continue
            at = self.pc[ready].min()
            self.on = ready & (self.pc == at)
            guard, parts, operands, text = self.k.code[at]
            if guard:
                p = self.regs[guard[0]]
                self.on &= ~p if guard[1] else p
                self.pc[ready & (self.pc == at) & ~self.on] += 1
            if not self.on.any():
                continue
            self.pc[self.on] += 1
            self.full = self.on.all()
            self.text = text
            if parts[0] not in FUNCTIONS:
                raise Fault(f'no instruction {text}')
            try:
                FUNCTIONS[parts[0]](self, parts, operands)
            except Fault as e:
                raise Fault(f'{text}: {e}') from None

    def get(self, name, dtype):
        """An operand of all threads, its bits as the type has them."""
        if name[0] == '%':
            v = self.regs.get(name)
            if v is None:
                v = self.regs[name] = np.zeros(self.n, CLASSES[re.match(r'%([a-z]+)', name).group(1)])
        elif name[:2] in ('0f', '0F'):
            v = np.full(self.n, int(name[2:], 16), np.uint32).view(np.float32)
        elif name == 'pc_dynamic':
            v = np.full(self.n, SHARED, np.uint64)
        else:
            size = np.dtype(dtype).itemsize
            return np.full(self.n, int(name.rstrip('U'), 0) % (1 << 8 * size), f'u{size}').view(dtype)
        if v.dtype == dtype:
            return v
        size = np.dtype(dtype).itemsize
        if v.dtype.itemsize == size:
            return v.view(dtype)
        return v.astype(f'u{v.dtype.itemsize}').astype(f'u{size}').view(dtype)

    def put(self, name, values):
        dtype = CLASSES[re.match(r'%([a-z]+)', name).group(1)]
        values = np.asarray(values)
        if values.dtype.itemsize == np.dtype(dtype).itemsize:
            values = values.view(dtype)
        elif values.dtype.kind == 'i':  # into a wider register
            values = values.astype(f'i{np.dtype(dtype).itemsize}').view(dtype)
        else:
            values = values.astype(dtype)
        if self.full or name not in self.regs:
            self.regs[name] = np.array(np.broadcast_to(values, self.n))
        else:
            self.regs[name][self.on] = np.broadcast_to(values, self.n)[self.on]

    def address(self, text):
        m = re.match(r'\[([^+\]]+)\+?(-?\d+)?\]', text)
        return self.get(m.group(1), np.uint64) + np.uint64(int(m.group(2) or 0) % (1 << 64))

    def space(self, parts):
        return self.shared if 'shared' in parts else self.memory

    def warps(self):
        """Numbers of threads by warp and lane; all lanes have to be here."""
        on = self.on.reshape(-1, 32)
        if (on.any(1) != on.all(1)).any():
            raise Fault('lanes have parted')
        return np.flatnonzero(self.on).reshape(-1, 32)


def f32(values):
    with np.errstate(all='ignore'):
        return np.asarray(values).astype(np.float32)


def down(values):
    """To the next lower f32."""
    near = f32(values)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def nearer_zero(values):
    """As tensor cores drop what does not fit."""
    near = f32(values)
    return np.where(np.abs(near) > np.abs(values), np.nextafter(near, np.float32(0)), near)


def to_bf16(f):
    u = f.view(np.uint32).astype(np.uint64)
    return np.where(np.isnan(f), 0x7fff, (u + 0x7fff + (u >> 16 & 1)) >> 16).astype(np.uint16)


def to_f16(f):
    with np.errstate(all='ignore'):
        return np.where(np.isnan(f), np.uint16(0x7fff), f.astype(np.float16).view(np.uint16))


def from_f16(h):
    return h.astype(np.uint16).view(np.float16).astype(np.float32)


def from_bf16(h):
    return (h.astype(np.uint32) << 16).view(np.float32)


# --- numbers ---

def two(name, function):
    def run(b, parts, o):
        dtype = TYPES[parts[-1]]
        with np.errstate(all='ignore'):
            b.put(o[0], function(b.get(o[1], dtype), b.get(o[2], dtype)))
    FUNCTIONS[name] = run


two('add', np.add)
two('sub', np.subtract)
two('and', np.bitwise_and)
two('or', np.bitwise_or)
two('xor', np.bitwise_xor)
two('div', np.divide)


@op('mul', 'mad')
def mul(b, parts, o):
    dtype = TYPES[parts[-1]]
    x, y = b.get(o[1], dtype), b.get(o[2], dtype)
    if dtype == np.float32:
        with np.errstate(all='ignore'):
            return b.put(o[0], x * y)
    size = np.dtype(dtype).itemsize
    wide = np.dtype(('i' if parts[-1][0] == 's' else 'u') + str(min(2 * size, 8)))
    v = x.astype(wide) * y.astype(wide)
    if parts[1] == 'hi':
        v = v >> wide.type(8 * size)
    if parts[1] != 'wide':
        v = v.astype(dtype)
    if parts[0] == 'mad':
        v = v + b.get(o[3], v.dtype.type)
    return b.put(o[0], v)


@op('fma')
def fma(b, parts, o):
    x, y, z = (b.get(name, np.float32).astype(np.float64) for name in o[1:])
    with np.errstate(all='ignore'):
        v = x * y + z
        b.put(o[0], down(v) if parts[1] == 'rm' else f32(v))


@op('min', 'max')
def least(b, parts, o):
    dtype = TYPES[parts[-1]]
    x, y = b.get(o[1], dtype), b.get(o[2], dtype)
    if dtype == np.float32:
        keeps = 'NaN' in parts
        f = {('min', True): np.minimum, ('max', True): np.maximum, ('min', False): np.fmin, ('max', False): np.fmax}
        return b.put(o[0], f[parts[0], keeps](x, y))
    return b.put(o[0], np.minimum(x, y) if parts[0] == 'min' else np.maximum(x, y))


@op('shl', 'shr')
def shift(b, parts, o):
    dtype = TYPES[parts[-1]]
    x, by, bits = b.get(o[1], dtype), b.get(o[2], np.uint32), 8 * np.dtype(dtype).itemsize
    gone = by >= bits
    by = np.minimum(by, bits - 1).astype(dtype)
    v = x << by if parts[0] == 'shl' else x >> by
    b.put(o[0], np.where(gone, v >> dtype(bits - 1) if np.dtype(dtype).kind == 'i' else dtype(0), v).astype(dtype))


@op('not')
def invert(b, parts, o):
    b.put(o[0], ~b.get(o[1], TYPES[parts[-1]]))


@op('neg', 'abs', 'sqrt', 'rcp', 'ex2', 'lg2')
def one(b, parts, o):
    x = b.get(o[1], TYPES[parts[-1]])
    with np.errstate(all='ignore'):
        b.put(o[0], {'neg': lambda: -x, 'abs': lambda: np.abs(x), 'sqrt': lambda: np.sqrt(x),
                     'rcp': lambda: np.float32(1) / x, 'ex2': lambda: f32(np.exp2(x.astype(float))),
                     'lg2': lambda: f32(np.log2(x.astype(float)))}[parts[0]]())


@op('copysign')
def copysign(b, _, o):
    b.put(o[0], np.copysign(b.get(o[2], np.float32), b.get(o[1], np.float32)))


@op('setp')
def compare(b, parts, o):
    dtype = TYPES[parts[-1]]
    x, y, how = b.get(o[1], dtype), b.get(o[2], dtype), parts[1]
    either = how[-1] == 'u' and len(how) == 3  # ltu: NaN too
    v = {'eq': np.equal, 'ne': np.not_equal, 'lt': np.less, 'le': np.less_equal, 'gt': np.greater,
         'ge': np.greater_equal}[how[:2]](x, y)
    if dtype == np.float32:
        unordered = np.isnan(x) | np.isnan(y)
        v = v | unordered if either else v & ~unordered
    b.put(o[0], v)


@op('selp')
def select(b, parts, o):
    dtype = TYPES[parts[-1]]
    b.put(o[0], np.where(b.get(o[3], np.bool_), b.get(o[1], dtype), b.get(o[2], dtype)))


@op('mov')
def move(b, parts, o):
    whole = TYPES[parts[1]]
    half, bits = (np.uint16, 16) if whole == np.uint32 else (np.uint32, 32)
    if o[0][0] == '{':  # the low half is the first; what has no % is not read again
        word = b.get(o[1], whole)
        for name, by in zip(split(o[0][1:-1]), (0, bits)):
            if name[0] == '%':
                b.put(name, (word >> whole(by)).astype(half))
    elif o[1][0] == '{':
        low, high = (b.get(name, half).astype(whole) for name in split(o[1][1:-1]))
        b.put(o[0], low | high << whole(bits))
    else:
        b.put(o[0], b.get(o[1], TYPES[parts[1]]))


@op('bfi')
def insert(b, _, o):
    what, into, at, bits = (b.get(name, np.uint32).astype(np.uint64) for name in o[1:])
    mask = ((np.uint64(1) << bits) - np.uint64(1)) << at
    b.put(o[0], ((into & ~mask | what << at & mask) & np.uint64(0xffffffff)).astype(np.uint32))


@op('prmt')
def permute(b, _, o):
    x, y, how = (b.get(name, np.uint32).astype(np.uint64) for name in o[1:])
    both, v = x | y << np.uint64(32), np.zeros(b.n, np.uint64)
    for i in range(4):
        choice = how >> np.uint64(4 * i)
        byte = both >> (choice & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        sign = np.where(byte >> np.uint64(7), np.uint64(255), np.uint64(0))
        v |= np.where(choice & np.uint64(8), sign, byte) << np.uint64(8 * i)
    b.put(o[0], v.astype(np.uint32))


@op('dp2a', 'dp4a')
def dot(b, parts, o):
    x, y, z = (b.get(name, np.uint32) for name in o[1:])
    if parts[0] == 'dp4a':
        return b.put(o[0], z + sum((x >> i & 0xff) * (y >> i & 0xff) for i in (0, 8, 16, 24)))
    return b.put(o[0], z + (x & 0xffff) * (y & 0xff) + (x >> 16) * (y >> 8 & 0xff))


@op('cvt')
def convert(b, parts, o):
    to, of = parts[-2:]
    if of == 'f16':
        return b.put(o[0], from_f16(b.get(o[1], np.uint16)))
    if of == 'f32':
        f = b.get(o[1], np.float32)
        if to == 'tf32':  # ties away from zero
            u = f.view(np.uint32)
            return b.put(o[0], np.where(np.isfinite(f), u + 0x1000 & 0xffffe000, u).astype(np.uint32))
        if to == 'f32' and 'sat' in parts:
            return b.put(o[0], np.where(np.isnan(f), np.float32(0), np.clip(f, 0, 1)))
        if to in ('f16', 'bf16'):
            return b.put(o[0], to_f16(f) if to == 'f16' else to_bf16(f))
        if to in ('f16x2', 'bf16x2'):  # the first operand is the upper half
            turn = to_f16 if to == 'f16x2' else to_bf16
            return b.put(o[0], turn(f).astype(np.uint32) << 16 | turn(b.get(o[2], np.float32)))
        raise Fault('no such conversion')
    v = b.get(o[1], TYPES[of]).astype(TYPES[to])
    return b.put(o[0], v)


# --- control ---

@op('bra')
def branch(b, _, o):
    b.pc[b.on] = b.k.labels[o[0]]


@op('ret', 'exit')
def end(b, *_):
    b.over |= b.on


@op('bar', 'barrier')
def barrier(b, *_):
    b.waits |= b.on


# --- memory ---

@op('cvta')
def generic(b, parts, o):
    b.put(o[0], b.get(o[1], np.uint64))


@op('ld')
def load(b, parts, o):
    dtype = TYPES[parts[-1]]
    if 'param' in parts:
        name = o[1][1:-1]
        return b.put(o[0], np.full(b.n, b.params[b.k.params[name]], np.uint64))
    names, size = split(o[0][1:-1]) if o[0][0] == '{' else [o[0]], np.dtype(dtype).itemsize
    at = b.address(o[1])[b.on]
    raw = b.space(parts).load(at, size * len(names), 'a load')
    for i, name in enumerate(names):
        values = np.zeros(b.n, dtype)
        values[b.on] = np.ascontiguousarray(raw[:, i * size:(i + 1) * size]).view(dtype)[:, 0]
        b.put(name, values)
    return None


@op('st')
def store(b, parts, o):
    dtype = TYPES[parts[-1]]
    names = split(o[1][1:-1]) if o[1][0] == '{' else [o[1]]
    rows = np.stack([b.get(name, dtype)[b.on] for name in names], 1)
    b.space(parts).store(b.address(o[0])[b.on], np.ascontiguousarray(rows).view(np.uint8), 'a store')


@op('cp')
def copy(b, parts, o):
    if parts[2] == 'commit_group':
        b.groups[b.on] += 1
    elif parts[2] == 'wait_group':
        left = []
        for c in b.copies:
            lands = b.on[c[0]] & (c[1] + int(o[0]) < b.groups[c[0]])
            thread, group, to, of, size, count = c
            for i in np.flatnonzero(lands):
                row = np.zeros(size, np.uint8)
                if count[i]:
                    row[:count[i]] = b.memory.load(of[i:i + 1], size, 'a copy')[0, :count[i]]
                b.shared.store(to[i:i + 1], row[None], 'a copy')
            if not lands.all():
                left.append((thread[~lands], group[~lands], to[~lands], of[~lands], size, count[~lands]))
        b.copies = left
    else:
        to, of, size = b.address(o[0])[b.on], b.address(o[1])[b.on], int(o[2])
        if (parts[2] == 'cg') != (size == 16):
            raise Fault(f'{size} bytes by .{parts[2]}')
        count = b.get(o[3], np.uint32)[b.on] if len(o) > 3 else np.full(len(to), size)
        if (count > size).any() or (of % np.uint64(size))[count > 0].any():
            raise Fault('too many bytes, or from an odd place')
        b.shared.store(to, np.full((len(to), size), 0xff, np.uint8), 'a copy')  # until it lands
        b.copies.append((np.flatnonzero(b.on), b.groups[b.on], to, of, size, count))


# --- what a warp does together ---

@op('shfl')
def shuffle(b, parts, o):
    if (parts[2] not in ('bfly', 'idx') or (b.get(o[3], np.uint32)[b.on] != 31).any() or
            (b.get(o[4], np.uint32)[b.on] != 0xffffffff).any()):
        raise Fault('a shuffle of another kind')
    b.warps()
    x, by = b.get(o[1], np.uint32).reshape(-1, 32), b.get(o[2], np.uint32).reshape(-1, 32)
    lanes = np.arange(32)
    of = lanes ^ by if parts[2] == 'bfly' else by & 31
    b.put(o[0].split('|')[0], np.take_along_axis(x, of.astype(np.int64), 1).reshape(-1))


@op('ldmatrix')
def ldmatrix(b, parts, o):
    names = split(o[0][1:-1])
    at = b.address(o[1])
    for warp in b.warps():
        for i, name in enumerate(names):
            rows = b.shared.load(at[warp[8 * i:8 * i + 8]], 16, 'a row of ldmatrix')
            matrix = np.ascontiguousarray(rows).view(np.uint16).reshape(8, 8).astype(np.uint32)
            if 'trans' in parts:
                matrix = matrix.T
            values = b.get(name, np.uint32).copy()
            values[warp] = (matrix[:, 0::2] | matrix[:, 1::2] << 16).reshape(-1)  # lane 4 r + c
            b.regs[name] = values


def fragments():
    """Of each kind: row and column of what a lane has, in order."""
    group, within = np.arange(32)[:, None] // 4, np.arange(32)[:, None] % 4
    i = np.arange(8)[None]
    sixteen = {'a': (group + np.where(i // 2 % 2 == 1, 8, 0), within * 2 + i % 2 + np.where(i >= 4, 8, 0)),
               'b': ((within * 2 + i % 2 + np.where(i >= 2, 8, 0))[:, :4], group + 0 * i[:, :4])}
    eight = {'a': ((group + 8 * (i % 2))[:, :4], (within + 4 * (i // 2))[:, :4]),
             'b': ((within + 4 * i)[:, :2], group + 0 * i[:, :2])}
    result = ((group + 8 * (i // 2))[:, :4], (within * 2 + i % 2)[:, :4])
    return sixteen, eight, result


SIXTEEN, EIGHT, RESULT = fragments()


@op('mma')
def mma(b, parts, o):
    shape, kind = parts[3], parts[7]
    names = [split(text[1:-1]) for text in o]
    place = SIXTEEN if shape == 'm16n8k16' else EIGHT
    depth = 16 if place is SIXTEEN else 8
    if parts[4:6] != ['row', 'col'] or (kind == 'tf32') != (place is EIGHT):
        raise Fault('no such mma')
    for warp in b.warps():
        def side(which, n):
            words = np.stack([b.get(name, np.uint32)[warp] for name in n], 1)
            if kind == 'tf32':
                return (words & 0xffffe000).view(np.float32)
            halves = np.stack([words & 0xffff, words >> 16], 2).reshape(32, -1)
            return from_f16(halves) if kind == 'f16' else from_bf16(halves)
        a, c = np.zeros((16, depth)), np.zeros((16, 8))
        w = np.zeros((depth, 8))
        a[place['a']] = side('a', names[1])
        w[place['b']] = side('b', names[2])
        c[RESULT] = np.stack([b.get(name, np.float32)[warp] for name in names[3]], 1)
        with np.errstate(all='ignore'):
            d = nearer_zero(c + a @ w)[RESULT].astype(np.float32)
        for i, name in enumerate(names[0]):
            values = b.get(name, np.float32).copy()
            values[warp] = d[:, i]
            b.regs[name] = values
