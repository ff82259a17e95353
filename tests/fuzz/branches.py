#!/usr/bin/env python3
"""How many branches of the loader the tests take: reads llvm-cov's lcov text.

  llvm-cov export -format=lcov .. | branches.py FOLDER EXCEPTIONS

Fails below LEAST of the folder's branches that EXCEPTIONS does not list, and where no program
holds one of the folder's sources. Lines of EXCEPTIONS are FILE, a text that the source line holds,
and the reason, between bars.
"""
import collections
import os
import sys

LEAST = 0.98


def main():
    exceptions = []
    for line in open(sys.argv[2], encoding='utf-8'):
        if line.strip() and not line.startswith('#'):
            file, text, reason = (p.strip() for p in line.split('|'))
            exceptions.append((file, text))
            assert reason
    used, sources = set(), {}
    taken, path = collections.defaultdict(int), ''
    for line in sys.stdin:
        if line.startswith('SF:'):
            path = os.path.normpath(line[3:].strip())
            if not os.path.dirname(path).endswith(sys.argv[1]):
                path = ''
                continue
            sources.setdefault(path, open(path, encoding='utf-8').read().splitlines())
        elif line.startswith('BRDA:') and path:
            at, block, branch, count = line[5:].strip().split(',')
            taken[path, int(at), block, branch] += 0 if count == '-' else int(count)
    files, missed = collections.defaultdict(lambda: [0, 0]), []
    for (path, at, _, _), count in taken.items():
        name, text = os.path.basename(path), sources[path][at - 1]
        excepted = next((e for e in exceptions if e[0] == name and e[1] in text), None)
        if excepted and not count:
            used.add(excepted)
            continue
        files[name][0] += count > 0
        files[name][1] += 1
        if not count:
            missed.append((name, at, text.strip()))
    for name, at, text in sorted(set(missed)):
        print(f'never: {name}:{at}: {text}')
    for name, (hit, total) in sorted(files.items()):
        print(f'{name}: {hit} of {total} branches')
    for file, text in sorted(set(exceptions) - used):
        print(f'the exception is not needed: {file}: {text}')
    unseen = {f for f in os.listdir(sys.argv[1]) if f.endswith('.c')} - set(
        os.path.basename(path) for path in sources)
    for name in sorted(unseen):
        print(f'no program holds {name}')
    hit, total = (sum(n[k] for n in files.values()) for k in (0, 1))
    print(f'{hit} of {total} branches ({100 * hit / max(total, 1):.1f} %), {len(used)} exceptions')
    good = total and hit >= LEAST * total and used == set(exceptions) and not unseen
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
