#!/usr/bin/env python3
"""The rules about the sources that no compiler checks.

  layers.py sources ROOT        layers, banned calls, banned words, file lengths
  layers.py globals LIB.a       no global mutable state in the library
  layers.py exports LIB.so H    the shared library exports what the header declares, and no more
  layers.py sabotage            every rule of `sources` catches a planted offence
  layers.py globals-sabotage CC the rule of `globals` catches a planted variable
"""
import os
import re
import subprocess
import sys
import tempfile

STAGES = ['import', 'simplify', 'split', 'mutate', 'correct', 'superopt', 'postopt', 'select',
          'export']
SIDE = ['cost', 'codegen', 'verify']  # the only ones that touch a compiler or a runtime
BELOW = ['base', 'ir', 'ops', 'boxes', 'mugraph']
LAWS = ['rewrite']  # above those, below the stages

# What each folder under src may include (besides itself).
MAY = {
    'base': ['petopt.h'],  # for po_status and po_error
    'ir': ['base'],
    'ops': ['base', 'ir'],
    'boxes': ['base', 'ir', 'ops'],
    'mugraph': ['base', 'ir', 'ops', 'boxes'],
    **{s: BELOW + [o for o in SIDE if o != s] for s in SIDE},
    'rewrite': ['base', 'ir', 'ops', 'boxes'],
    **{s: BELOW + LAWS + SIDE for s in STAGES},
    'pipeline': BELOW + LAWS + SIDE + STAGES + ['petopt.h'],
    'cli': ['base', 'petopt.h'],
    'onnx': ['base', 'ir'],
    'models': ['petopt.h'],
}
for stage in ('import', 'export'):
    MAY[stage] = MAY[stage] + ['onnx', 'onnx-ml.pb-c.h']
MAY['onnx'] = MAY['onnx'] + ['onnx-ml.pb-c.h']
for side in SIDE:
    MAY[side] = MAY[side] + ['onnxruntime_c_api.h']
ANYONE = {'po_config.h'}
# Single headers beyond that: numbers alone.
ALSO = {'rewrite': ['src/cost/machine.h']}

# Calls that would make results depend on anything but input, options and cost cache.
BANNED = [
    (r'\b(secure_)?getenv\s*\(', 'reads the environment', None),
    (r'\b(srand|srandom|rand|random|drand48|lrand48)\s*\(', 'uses a hidden random state', None),
    (r'\btime\s*\(\s*(NULL|0|nullptr)\s*\)', 'takes the clock for a value', None),
    (r'\bsetlocale\s*\(', 'changes the locale', None),
    (r'\b(gets|strcpy|strcat|sprintf|strtok)\s*\(', 'is an unbounded or stateful string call', None),
    (r'\b(dlopen|popen|system|posix_spawnp?)\s*\(', 'starts a program or a library', set(SIDE)),
    # The program begins itself anew where a run hangs.
    (r'\bexec[lv]p?e?\s*\(', 'starts a program', set(SIDE) | {'cli'}),
]
WORDS = r'\b(TODO|FIXME|XXX|HACK|stub(s|bed)?|not implemented|for now)\b'
LONGEST = 700
# Files outside of src/ops that name the convolution. Others ask po_conv_is, po_made_by_conv,
# po_read_by_conv and po_add_conv (ops/conv_view.h), a flag of the registry or the indexed sum: what
# an operator is to stand in one place. The number may only fall.
NAMES_CONV, MOST_NAMING = r'\bPO_OP_Conv\b', 3

TEXT = ('.c', '.h', '.def', '.py', '.sh', '.cmake', '.txt', '.md', '.in')


def code_only(text):
    """The text with comments and the insides of strings blanked, lines kept."""
    def blank(m):
        s = m.group(0)
        if s[0] in '"\'':
            return s[0] + ' ' * (len(s) - 2) + s[0]
        return re.sub(r'[^\n]', ' ', s)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text,
                  flags=re.S)


def files(root, tops):
    for top in tops:
        for where, dirs, names in os.walk(os.path.join(root, top)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith(TEXT):
                    path = os.path.join(where, name)
                    yield os.path.relpath(path, root), open(path, encoding='utf-8').read()


def includes(root, path, text):
    """(line, target) of each #include "...": the folder or file that it names."""
    for number, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if not m:
            continue
        name = m.group(1)
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if os.path.exists(os.path.join(root, beside)):
            name = beside
        elif os.path.exists(os.path.join(root, 'src', name)):
            name = 'src/' + name
        elif os.path.exists(os.path.join(root, 'include', name)):
            name = 'include/' + name
        yield number, name


def folder_of(path):
    parts = path.split('/')
    if parts[0] == 'src' and len(parts) > 2:
        return parts[1]
    return parts[0] if parts[0] in ('onnx', 'models') else None


def check_layers(root, path, text, found):
    me = folder_of(path)
    if path.startswith('src/') and me not in MAY:
        found.append(f'{path}:1: no layer is known for this folder')
        return
    if me is None:
        return
    if me not in ('import', 'export', 'onnx') and re.search(r'protobuf-c/', text):
        found.append(f'{path}:1: only import, export and onnx know protobuf-c')
    for line, name in includes(root, path, text):
        if name.startswith('include/'):
            target = os.path.basename(name)
        else:
            target = folder_of(name) or os.path.basename(name)
        guarded = (name.startswith(('src/', 'include/', 'onnx/', 'models/')) or
                   target in ('onnx-ml.pb-c.h', 'onnxruntime_c_api.h'))
        known = target == me or target in MAY[me] or target in ANYONE or name in ALSO.get(me, [])
        if guarded and not known:
            found.append(f'{path}:{line}: {me} may not include {target} ("{name}")')


def defined_types(text):
    """(line, name) of each type po_.. that the text defines, not only names."""
    code = code_only(text)
    for m in re.finditer(r'\b(?:struct|union|enum)\s+(po_\w+)\s*\{|^\}\s*(po_\w+)\s*;|'
                         r'\btypedef\b[^;{}]*\(\*(po_\w+)\)\s*\(', code, flags=re.M):
        yield code.count('\n', 0, m.start()) + 1, m.group(1) or m.group(2) or m.group(3)


def check_types(types):
    """A type has one definition: two headers that give a name to two things can never meet."""
    found = []
    for name, places in sorted(types.items()):
        if len({path for path, _ in places}) > 1:
            where = ', '.join(f'{path}:{line}' for path, line in places[1:])
            found.append(f'{places[0][0]}:{places[0][1]}: {name} is defined elsewhere, too: {where}')
    return found


def check_docs(root):
    """Links between the documents lead somewhere, and the index names every page."""
    found = []
    folder = os.path.join(root, 'docs')
    pages = sorted(f for f in os.listdir(folder) if f.endswith('.md')) if os.path.isdir(folder) else []
    texts = {f'docs/{f}': open(os.path.join(folder, f), encoding='utf-8').read() for f in pages}
    readme = os.path.join(root, 'README.md')
    if os.path.exists(readme):
        texts['README.md'] = open(readme, encoding='utf-8').read()
    for path, text in texts.items():
        for link in re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', text):
            if not os.path.exists(os.path.join(root, os.path.dirname(path), link)):
                found.append(f'{path}:1: no such page: {link}')
    for page in pages:
        if page != 'README.md' and f']({page})' not in texts.get('docs/README.md', ''):
            found.append(f'docs/README.md:1: does not name {page}')
    return found


def check_sources(root):
    found, seen, types = check_docs(root), 0, {}
    naming = []
    for path, text in files(root, ['include', 'src', 'onnx', 'models', 'tests', 'scripts', 'bench',
                                   'cmake', 'docs']):
        seen += 1
        mine = path.startswith('tests/layers/')
        if path.endswith(('.c', '.h', '.def')):
            check_layers(root, path, text, found)
            lines = text.count('\n')
            if lines > LONGEST:
                found.append(f'{path}:{lines}: {lines} lines (at most {LONGEST}): split it')
            if path.startswith(('src/', 'onnx/', 'models/')):
                code = code_only(text)
                if folder_of(path) != 'ops' and re.search(NAMES_CONV, code):
                    naming.append(path)
                for line, name in defined_types(text):
                    types.setdefault(name, []).append((path, line))
                for pattern, what, allowed in BANNED:
                    for m in re.finditer(pattern, code):
                        if not (allowed and folder_of(path) in allowed):
                            line = code.count('\n', 0, m.start()) + 1
                            found.append(f'{path}:{line}: {m.group(0).strip()}...) {what}')
        if not mine:
            for m in re.finditer(WORDS, text):
                line = text.count('\n', 0, m.start()) + 1
                found.append(f'{path}:{line}: unfinished: "{m.group(0)}"')
    if len(naming) > MOST_NAMING:
        found.append(f'{naming[-1]}:1: {len(naming)} files name PO_OP_Conv (at most {MOST_NAMING})')
    return found + check_types(types), seen


# Mutable symbols that the library may hold, each with its reason.
GLOBALS_ALLOWED = {}


def check_globals(lib):
    out = subprocess.run(['nm', '-f', 'sysv', '--defined-only', lib], check=True, text=True,
                         capture_output=True).stdout
    found, member, seen = [], '?', 0
    for line in out.splitlines():
        m = re.match(r'(?:Symbols from )?.*\[(.*)\]:$', line)
        if m:
            member = m.group(1)
            seen += 1
            continue
        cols = [c.strip() for c in line.split('|')]
        if len(cols) != 7 or cols[0] == 'Name' or member.startswith('onnx-ml.pb-c'):
            continue
        name, section = cols[0], cols[6]
        if re.match(r'(\.data|\.bss|\.tdata|\.tbss|\*COM\*)', section) and \
                not section.startswith('.data.rel.ro') and name not in GLOBALS_ALLOWED:
            found.append(f'{member}: {name} is mutable global state ({section})')
    return found, seen


def check_exports(lib, header):
    out = subprocess.run(['nm', '-D', '--defined-only', lib], check=True, text=True,
                         capture_output=True).stdout
    exported = {line.split()[-1].split('@')[0] for line in out.splitlines() if line.split()}
    text = code_only(open(header, encoding='utf-8').read())
    text = re.sub(r'^\s*#.*(\\\n.*)*', '', text, flags=re.M)
    declared = set(re.findall(r'PO_API\b[^;{(]*?(\w+)\s*\(', text))
    found = [f'{name} is exported but not declared in {header}' for name in exported - declared]
    found += [f'{name} is declared but not exported' for name in declared - exported]
    return sorted(found), len(exported | declared)


PLANTED = [
    ('src/base/a.c', '#include "ir/g.h"\n', 'base may not include ir'),
    ('src/ops/a.c', '#include "../boxes/b.h"\n', 'ops may not include boxes'),
    ('src/simplify/a.c', '#include "postopt/p.h"\n', 'simplify may not include postopt'),
    ('src/mutate/a.c', '#include "pipeline/p.h"\n', 'mutate may not include pipeline'),
    ('src/rewrite/a.c', '#include "postopt/p.h"\n', 'rewrite may not include postopt'),
    ('src/rewrite/a.c', '#include "cost/c.h"\n', 'rewrite may not include cost'),
    ('src/boxes/a.c', '#include "rewrite/r.h"\n', 'boxes may not include rewrite'),
    ('src/verify/a.c', '#include "rewrite/r.h"\n', 'verify may not include rewrite'),
    ('src/ops/a.h', 'typedef struct po_once { int a; } po_once;\n', 'po_once is defined elsewhere'),
    ('src/ops/a.c', 'struct po_hidden {\n    int b;\n};\n', 'po_hidden is defined elsewhere'),
    ('src/ops/a.h', 'typedef int (*po_call_fn)(int);\n', 'po_call_fn is defined elsewhere'),
    ('src/verify/a.c', '#include "select/s.h"\n', 'verify may not include select'),
    ('src/cli/a.c', '#include "ir/g.h"\n', 'cli may not include ir'),
    ('src/select/a.c', '#include "petopt.h"\n', 'select may not include petopt.h'),
    ('models/a.c', '#include "base/b.h"\n', 'models may not include base'),
    ('src/ops/a.c', '#include "onnx-ml.pb-c.h"\n', 'ops may not include onnx-ml.pb-c.h'),
    ('src/ops/a.c', '#include <protobuf-c/protobuf-c.h>\n', 'know protobuf-c'),
    ('src/select/a.c', '#include <onnxruntime_c_api.h>\n', 'may not include onnxruntime_c_api.h'),
    ('src/odd/a.c', 'int x;\n', 'no layer is known'),
    ('src/base/a.c', 'const char *h(void) { return getenv("HOME"); }\n', 'environment'),
    ('src/base/a.c', 'void s(void) { srand(1); }\n', 'random state'),
    ('src/base/a.c', 'long s(void) { return time(NULL); }\n', 'the clock'),
    ('src/export/a.c', 'void *s(void) { return dlopen("x", 1); }\n', 'starts a program'),
    ('src/export/a.c', 'void s(char **a) { execv("x", a); }\n', 'starts a program'),
    ('src/base/a.c', '/* FIXME: later */\n', 'unfinished'),
    ('src/base/a.c', 'int x;\n' * (LONGEST + 1), 'split it'),
    ('src/postopt/c.c', 'int c = PO_OP_Conv;\n', 'files name PO_OP_Conv'),
    ('docs/b.md', '', 'does not name b.md'),
    ('docs/a.md', '[b](nowhere.md)\n', 'no such page'),
]
CLEAN = [
    ('src/base/b.h', '#include <stdio.h>\n/* getenv( in a comment */\n'),
    ('src/base/c.c', '#include "b.h"\n#include "base/b.h"\nstatic const char *s = "srand(1)";\n'),
    ('src/ir/g.h', '#include "base/b.h"\nstruct po_hidden;\ntypedef struct po_hidden po_hidden;\n'
     'typedef struct po_once {\n    int a;\n} po_once;\ntypedef void (*po_call_fn)(void);\n'),
    ('src/ir/h.c', 'struct po_hidden {\n    po_once *o;\n};\n'),
    ('src/ops/o.h', '#include "ir/g.h"\nint c = PO_OP_Conv;\n'),
    *[(f'src/mutate/c{i}.c', 'int c = PO_OP_Conv;\n') for i in range(MOST_NAMING)],
    ('src/mutate/t.c', 'int t = PO_OP_ConvTranspose; /* PO_OP_Conv */\n'),
    ('src/boxes/b.h', ''), ('src/cost/machine.h', ''),
    ('src/rewrite/r.h', '#include "boxes/b.h"\n#include "cost/machine.h"\n'),
    ('src/postopt/p.h', '#include "rewrite/r.h"\n'), ('src/pipeline/p.h', ''),
    ('src/select/s.h', '#include "cost/c.h"\n'),
    ('src/cost/c.h', '#include <onnxruntime_c_api.h>\n'),
    ('src/import/i.c', '#include "onnx-ml.pb-c.h"\n'),
    ('src/cli/m.c', '#include "petopt.h"\n#include "po_config.h"\n'),
    ('include/petopt.h', ''),
    ('docs/README.md', '[a](a.md)\n'), ('docs/a.md', '[index](README.md)\n'),
]


def plant(root, path, text):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def sabotage():
    wrong = 0
    for bad in [None] + PLANTED:
        with tempfile.TemporaryDirectory() as root:
            for path, text in CLEAN:
                plant(root, path, text)
            if bad:
                plant(root, bad[0], bad[1])
            found, _ = check_sources(root)
            ok = any(bad[2] in f for f in found) if bad else not found
            if not ok:
                wrong += 1
                print(f'sabotage: {bad[:1] if bad else "the clean tree"}: found {found}')
    print(f'{len(PLANTED)} planted offences, {wrong} wrong answers')
    return wrong


def globals_sabotage(cc):
    wrong = 0
    cases = [('int counter;', True), ('static int n = 3; int *p(void) { return &n; }', True),
             ('int f(void) { static int k; return ++k; }', True),
             ('_Thread_local int t;', True),
             ('const int table[2] = {1, 2};', False),
             ('static const char *const names[] = {"a", "b"};\n'
              'const char *const *g(void) { return names; }', False)]
    with tempfile.TemporaryDirectory() as root:
        for i, (text, bad) in enumerate(cases):
            plant(root, f'c{i}.c', text + '\n')
            obj, lib = f'{root}/c{i}.o', f'{root}/c{i}.a'
            subprocess.run([cc, '-fPIC', '-c', f'{root}/c{i}.c', '-o', obj], check=True)
            subprocess.run(['ar', 'rcs', lib, obj], check=True)
            found, seen = check_globals(lib)
            if bool(found) != bad or seen != 1:
                wrong += 1
                print(f'globals-sabotage: {text!r}: found {found}, {seen} members')
        header = 'PO_API int f(void);\nPO_API void *g(int a,\n    int b);\n'
        for text, bad in [('int f(void){return 0;} void *g(int a, int b){(void)a;(void)b;return 0;}',
                           None), ('int f(void){return 0;}', 'g is declared'),
                          ('int f, g, h;', 'h is exported')]:
            plant(root, 'e.c', text + '\n')
            plant(root, 'e.h', header)
            subprocess.run([cc, '-fPIC', '-shared', f'{root}/e.c', '-o', f'{root}/e.so'], check=True)
            found, _ = check_exports(f'{root}/e.so', f'{root}/e.h')
            cases.append(text)
            if not (any(f.startswith(bad) for f in found) if bad else not found):
                wrong += 1
                print(f'globals-sabotage: exports of {text!r}: found {found}')
    print(f'{len(cases)} cases, {wrong} wrong answers')
    return wrong


def main(argv):
    if argv[1:] == ['sabotage']:
        return 1 if sabotage() else 0
    if len(argv) == 3 and argv[1] == 'globals-sabotage':
        return 1 if globals_sabotage(argv[2]) else 0
    checks = {'sources': (check_sources, 1), 'globals': (check_globals, 1),
              'exports': (check_exports, 2)}
    if len(argv) > 1 and argv[1] in checks and len(argv) == 2 + checks[argv[1]][1]:
        found, seen = checks[argv[1]][0](*argv[2:])
        for line in found:
            print(line)
        print(f'{seen} checked, {len(found)} findings')
        return 1 if found or not seen else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv))
