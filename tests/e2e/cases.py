"""What scripts that run petopt in cases share: a scratch folder for each, and a verdict."""
import argparse
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Wrong(Exception):
    pass


def expect(truth, what):
    if not truth:
        raise Wrong(what)


def faulty(path):
    """What a run's JSON says of candidates, or of mutants in them, that the runtime refused or that
    computed something else: selection left them out, and yet each is a fault. None: of none."""
    if not os.path.exists(path):
        return None  # a stand-in for petopt
    with open(path, encoding='utf-8') as f:
        run = json.load(f)
    rows = [c for c in run.get('candidates', []) if c['refused'] or c['different']]
    rows += [m for s in (run.get('search') or {}).get('subprograms', []) for m in s['mutants']
             if m['fate'] == 'refused']
    return '; '.join(f"candidate '{c['name']}': {c.get('verdict') or c.get('why')}" for c in rows) or None


class Bed:
    """A scratch folder and the program."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def read(self, *names):
        with open(self.path(*names), 'rb') as f:
            return f.read()

    def run(self, *words, seconds=400, **more):
        """(exit code, standard output, standard error)"""
        settings = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                        cwd=self.folder, text=True, errors='replace')
        settings.update(more)
        try:
            p = subprocess.run([self.args.petopt, *words], timeout=seconds, **settings)
        except subprocess.TimeoutExpired:
            raise Wrong(f'{" ".join(map(str, words))}: still running after {seconds} s') from None
        if p.returncode == 0 and '--json' in words[:-1]:
            fault = faulty(self.path(words[words.index('--json') + 1]))
            expect(fault is None, fault)
        return p.returncode, p.stdout, p.stderr

    def good(self, *words, **more):
        code, out, err = self.run(*words, **more)
        expect(code == 0, f'{" ".join(map(str, words))}: exit {code}: {(err or "").strip()}')
        return out


def main(script, bed, paths, sampled=False):
    """Runs the functions case_NAME of a script; `paths` are the options that it must be given. A
    sampled one takes part of its points, from an offset that is printed, or all of them."""
    parser = argparse.ArgumentParser(description=script.__doc__.splitlines()[0])
    for name in paths:
        parser.add_argument('--' + name, required=True, type=os.path.abspath)
    parser.add_argument('--only', default='')
    if sampled:
        parser.add_argument('--all', action='store_true', help='every point')
        parser.add_argument('--offset', type=int, default=int(time.time() // 86400),
                            help='where the sample begins; another every day')
    args = parser.parse_args()
    if sampled:
        print('all points' if args.all else f'a sample, --offset {args.offset}')
    cases = [(n[5:], f) for n, f in inspect.getmembers(script, inspect.isfunction)
             if n.startswith('case_') and args.only in n]
    wrong = 0
    for name, case in cases:
        folder, start = tempfile.mkdtemp(), time.monotonic()
        try:
            case(bed(args, folder))
            print(f'ok      {name} ({time.monotonic() - start:.1f} s)', flush=True)
        except (Wrong, OSError, ValueError, subprocess.SubprocessError) as e:
            wrong += 1
            print(f'WRONG   {name}: {e}', flush=True)
        finally:
            subprocess.run(['chmod', '-R', 'u+rwX', folder], check=False)
            shutil.rmtree(folder)
    print(f'{len(cases)} cases, {wrong} wrong')
    sys.exit(1 if wrong or not cases else 0)
