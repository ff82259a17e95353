#!/usr/bin/env python3
"""The table of laws (src/rewrite/laws.def): its page, and that every law has its tests.

  laws.py check              docs/rewrites.md has the table as it is, and each law a golden pair or
                             unit test, a random pattern and a planted error
  laws.py docs               writes the table into docs/rewrites.md
  laws.py fires RULES [N]    the laws fire in the patterns that laws.txt names, in N rounds (RULES is
                             the program of this folder)
  laws.py every RULES [write]
                             every law is proved for the sizes that every_size.txt says, no less and
                             no more; `write` writes it anew
  laws.py sabotage           every way to break the rules of `check` is caught
"""
import importlib.util
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = 'tests/rules/'
PAGE = 'docs/rewrites.md'
EVERY_FILE = HERE + 'every_size.txt'
BEGIN, END = '<!-- laws: written by tests/rules/laws.py -->\n', '<!-- end of the laws -->\n'
CLASSES = {'KEEPS_BITS': 'every bit', 'ROUNDS': 'rounds', 'PARTLY_RIGHT': 'partly right'}
PROOFS = {'SAME': 'the same numbers', 'FIELD': 'modulo primes', 'NAMED': 'a law of the proof'}
GRAPHS = '3'  # of a pattern on open dims, at most
MORE = 6  # times as many rounds
# Of laws on open dims (every_size.c), and how the page says it.
EVERY = {'every size': 'every', 'from 1 on': 'from 1 on', 'of 32': 'multiples of 32',
         'sizes tried': 'tried alone', 'no time': 'too large', 'not proved': 'not proved',
         'does not fire': 'known alone'}
HELPS = {'RUNTIME': 'R', 'KERNELS': 'K', 'GPU': 'G'}


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def strings(text):
    """The text's C strings, those side by side joined."""
    return [''.join(re.findall(r'"((?:\\.|[^"\\])*)"', s))
            for s in re.findall(r'(?:"(?:\\.|[^"\\])*"\s*)+', text)]


def laws(text):
    """Rows of laws.def under its headings."""
    rows, heading = [], ''
    for m in re.finditer(r'/\* --- (.*?) --- \*/|^LAW\((\w+),(.*?)\)\)?\s*$(?=\n(?:LAW|/\*|\n|\Z))', text,
                         flags=re.S | re.M):
        if m.group(1):
            heading = m.group(1)
            continue
        name, law, condition = strings(m.group(3))[:3]
        words = re.sub(r'"(?:\\.|[^"\\])*"', '', m.group(3))
        _, kind, helps, proof, _ = [w.strip() for w in re.sub(r'\s+', ' ', words).rsplit(',', 4)]
        rows.append({'id': m.group(2), 'name': name, 'law': law, 'condition': condition,
                     'class': kind, 'helps': helps.split(' | '), 'proof': proof,
                     'heading': heading})
    return rows


def table(rows, every):
    out, heading = [], None
    for r in rows:
        if r['heading'] != heading:
            heading = r['heading']
            out.append(f'\n**{heading[0].upper() + heading[1:]}**\n\n'
                       '| law | in symbols | where | class | proof | sizes | helps |\n'
                       '| --- | --- | --- | --- | --- | --- | --- |\n')
        symbols = r['law'].replace('|', '\\|').replace('*', '\\*')
        helps = ' '.join(HELPS[h] for h in r['helps'])
        out.append(f'| {r["name"]} | {symbols} | {r["condition"].replace("|", chr(92) + "|")} | '
                   f'{CLASSES[r["class"]]} | {PROOFS[r["proof"]]} | '
                   f'{EVERY.get(every.get(r["id"], ("",))[0], "?")} | {helps} |\n')
    counts = {c: sum(r['class'] == c for r in rows) for c in CLASSES}
    head = (f'{len(rows)} laws: {counts["KEEPS_BITS"]} keep every bit, {counts["ROUNDS"]} round, '
            f'{counts["PARTLY_RIGHT"]} are partly right. R: standard operators on a CPU; K: generated '
            'kernels; G: GPUs.\n\n')
    said = {v: sum(every.get(r['id'], ('',))[0] == v for r in rows) for v in EVERY}
    head += ('Sizes: the lengths of open dims that a law by itself is proved for (docs/proof.md). '
             + ', '.join(f'{EVERY[v]} {n}' for v, n in said.items() if n) + '. '
             'Known alone: it does not fire on open dims.\n')
    return head + ''.join(out) + '\n'


def with_table(page, rows, every):
    a, b = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:a] + table(rows, every) + page[b:]


def tests_of(text):
    """laws.txt: {law: (tests, patterns)}."""
    tests = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line[0] == '#':
            continue
        parts = [p.strip() for p in line.split('|')]
        if len(parts) != 3:
            sys.exit(f'{HERE}laws.txt:{number}: not LAW | tests | patterns')
        tests[parts[0]] = (parts[1].split(), [p for p in parts[2].split('; ') if p])
    return tests


def every_of(text):
    """every_size.txt, or what the program prints: {law: (verdict, what resists)}."""
    rows = {}
    for line in text.splitlines():
        parts = [p.strip() for p in line.split(' | ')]
        if line and line[0] != '#' and len(parts) > 1:
            rows[parts[0]] = (parts[1], parts[-1] if len(parts) > 2 else '')
    return rows


def planted_laws():
    spec = importlib.util.spec_from_file_location('planted', os.path.join(ROOT, HERE, 'planted.py'))
    planted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(planted)
    return {law for row in planted.PLANTED for law in row[0].split()}


def pattern_names():
    text = ''.join(read(HERE + f'patterns{kind}.txt') for kind in ('', '_linear', '_conditions', '_open'))
    return set(re.findall(r'^% (.*?)(?: / \d+)?$', text, flags=re.M))


def check(rows, page, claims, planted, patterns, exists, every):
    found, ids = [], [r['id'] for r in rows]
    found += [f'{law}: {HERE}every_size.txt says nothing of it' for law in ids if law not in every]
    found += [f'{law} is no law' for law in every if law not in ids]
    found += [f'{law}: no such verdict: {v}' for law, (v, _) in every.items() if v not in EVERY]
    if page != with_table(page, rows, every):
        found.append(f'{PAGE}: the table of laws is out of date: laws.py docs')
    tests = tests_of(claims)
    for what in [*tests, *planted]:
        if what not in ids:
            found.append(f'{what} is no law')
    for law, (units, named) in tests.items():
        found += [f'{law}: no such test: {u}' for u in units if not exists(u)]
        found += [f'{law}: no such pattern: {p}' for p in named if p not in patterns]
    has = {'test': {law for law, t in tests.items() if t[0]},
           'pattern': {law for law, t in tests.items() if t[1]}, 'planted': planted}
    for kind, those in has.items():
        found += [f'{law} lacks a {kind}' for law in ids if law not in those]
    return found


def exists(unit):
    return os.path.exists(os.path.join(ROOT, 'tests', unit))


def everything():
    return (laws(read('src/rewrite/laws.def')), read(PAGE), read(HERE + 'laws.txt'), planted_laws(),
            pattern_names(), exists, every_of(read(EVERY_FILE)))


def fires(program, rounds):
    rows = {r['id']: r for r in laws(read('src/rewrite/laws.def'))}
    wanted = {}
    for law, (_, patterns) in tests_of(read(HERE + 'laws.txt')).items():
        for p in patterns:
            wanted.setdefault(p, []).append(law)
    wrong = 0
    for pattern, ids in wanted.items():
        # What a draw decides may take more of them.
        for n in (int(rounds), MORE * int(rounds)):
            out = subprocess.run([program, '--only', pattern, '--count', str(n), '--table'],
                                 capture_output=True, text=True).stdout
            fired = {m.group(1) for m in re.finditer(r'^ *[1-9]\d*  \w+: (.*)$', out, flags=re.M)}
            missing = [law for law in ids if rows[law]['name'] not in fired]
            if not missing:
                break
        for law in missing:
            wrong += 1
            print(f'{law} does not fire in "{pattern}"')
    print(f'{len(wanted)} patterns, {wrong} laws that do not fire')
    return wrong


def differences(said, found):
    """What the program finds and the file does not say."""
    return [f'{law}: {found.get(law, ("nothing",))[0]}, and {EVERY_FILE} says '
            f'{said.get(law, ("nothing",))[0]} ({found.get(law, ("", ""))[1]})'
            for law in sorted({*said, *found})
            if said.get(law, ('',))[0] != found.get(law, ('',))[0]]


HEAD = """# For which lengths of open dims every law by itself is proved, and what resists: LAW | verdict | why.
# Written by: python3 tests/rules/laws.py every build/tests/rules/rules write
"""


def every_size(program, write):
    p = subprocess.run([program, '--every-size', '--count', GRAPHS], capture_output=True, text=True)
    found = every_of(p.stdout)
    said = every_of(read(EVERY_FILE)) if os.path.exists(os.path.join(ROOT, EVERY_FILE)) else {}
    if write and p.returncode == 0:
        lines = [' | '.join([law, *row]).rstrip(' |') + '\n' for law, row in found.items()]
        with open(os.path.join(ROOT, EVERY_FILE), 'w', encoding='utf-8') as f:
            f.write(HEAD + ''.join(lines))
        said = found
    wrong = differences(said, found)
    print('\n'.join([line for line in p.stdout.splitlines() if ' | ' not in line] + wrong))
    counts = {v: sum(row[0] == v for row in found.values()) for v in EVERY}
    print(f'{len(found)} laws: ' + ', '.join(f'{n} {v}' for v, n in counts.items() if n))
    return len(wrong) + (p.returncode != 0)


def sabotage():
    rows, page, claims, planted, patterns, there, every = everything()
    law = rows[-1]['id']
    cases = [
        ('nothing', {}, None),
        ('a law that is not in the page', {'rows': rows + [{**rows[0], 'id': 'NEW'}]}, 'out of date'),
        ('a law without tests', {'rows': rows + [{**rows[0], 'id': 'NEW'}]}, 'NEW lacks a pattern'),
        ('a law without a planted error', {'planted': planted - {'TILES'}}, 'TILES lacks a planted'),
        ('a pattern that is not there', {'claims': claims + f'{law} | | nowhere\n'}, 'no such pattern'),
        ('a test that is not there', {'claims': claims + f'{law} | unit/none.c | \n'}, 'no such test'),
        ('a law without a unit test', {'claims': claims + f'{law} | | \n'}, f'{law} lacks a test'),
        ('a law that is none', {'claims': claims + 'NONE | | \n'}, 'is no law'),
        ('a law of no size', {'every': {k: v for k, v in every.items() if k != law}}, 'says nothing'),
        ('a law of other sizes', {'every': {**every, law: ('every size', '')}}, 'out of date'),
        ('a verdict that is none', {'every': {**every, law: ('all', '')}}, 'no such verdict')]
    wrong = 0
    for what, change, expected in cases:
        given = {'rows': rows, 'page': page, 'claims': claims, 'planted': planted,
                 'patterns': patterns, 'exists': there, 'every': every, **change}
        found = check(**given)
        if not (any(expected in f for f in found) if expected else not found):
            wrong += 1
            print(f'sabotage: {what}: found {found}')
    fewer, more = {**every, 'TINY': ('sizes tried', '')}, {**every, law: ('every size', '')}
    for what, said, found in (('a law that is proved no more', every, fewer),
                              ('a law that is proved by now', every, more)):
        if len(differences(said, found)) != 1 or differences(found, found):
            wrong += 1
            print(f'sabotage: {what}')
    print(f'{len(cases) + 2} cases, {wrong} wrong answers')
    return wrong


def main(argv):
    if argv[1:] == ['docs']:
        rows, page, *_, every = everything()
        text = with_table(page, rows, every)
        with open(os.path.join(ROOT, PAGE), 'w', encoding='utf-8') as f:
            f.write(text)
        return 0
    if argv[1:] == ['check']:
        found = check(*everything())
        print('\n'.join(found + [f'{len(everything()[0])} laws, {len(found)} findings']))
        return 1 if found else 0
    if argv[1:] == ['sabotage']:
        return 1 if sabotage() else 0
    if argv[1:2] == ['every'] and (len(argv) == 3 or argv[3:] == ['write']):
        return 1 if every_size(argv[2], len(argv) == 4) else 0
    if len(argv) in (3, 4) and argv[1] == 'fires':
        return 1 if fires(argv[2], argv[3] if len(argv) > 3 else '6') else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv))
