#!/usr/bin/env python3
"""The registry's attribute tables against the schemas of the onnx package, for every opset version.

  schemas.py PRINT_ROWS            compares
  schemas.py PRINT_ROWS --sabotage checks that a wrong default, kind, range or count is seen
"""
import collections
import struct
import subprocess
import sys

from onnx import AttributeProto, defs

KINDS = {name: number for name, number in AttributeProto.AttributeType.items()}
KINDS['TYPE_PROTO'] = KINDS.get('TYPE_PROTO', 13)


def as_float(text):
    return struct.unpack('f', struct.pack('f', float(text)))[0]


def read_rows(text):
    """{name: (counts, [(attr, kind, since, until, required, default text)])}"""
    rows, current = {}, None
    for line in text.splitlines():
        fields = line.split('\t')
        if fields[0] == 'op':
            current = rows.setdefault((fields[1], fields[2]), ([int(f) for f in fields[3:7]], []))
        else:
            name, kind, since, until, required, default = fields[1:7]
            current[1].append((name, int(kind), int(since), int(until), required == '1', default))
    return rows


# Misprints of the schemas that no model means.
MISPRINTS = {'foward': 'forward'}


def default_of(attribute):
    value = attribute.default_value
    if value is None or not value.name:
        return None
    if value.type == AttributeProto.INT:
        return value.i
    if value.type == AttributeProto.FLOAT:
        return value.f
    if value.type == AttributeProto.STRING:
        return MISPRINTS.get(value.s.decode(), value.s.decode())
    return None  # lists have no default in the tables


def in_force(attrs, version):
    return {a[0]: a for a in attrs if a[2] <= version and (a[3] == 0 or version <= a[3])}


def check_default(kind, ours, theirs):
    if theirs is None:
        return ours == ''
    if kind == KINDS['FLOAT']:
        return ours != '' and as_float(ours) == as_float(theirs)
    return ours == ("'%s'" % theirs if isinstance(theirs, str) else str(theirs))


def compare(rows, schemas):
    wrong = []
    for (domain, name), (counts, attrs) in sorted(rows.items()):
        if domain:
            continue
        history = schemas.get(name)
        if not history:
            wrong.append('%s: no such operator' % name)
            continue
        live = [s for s in history if not s.deprecated]
        most = [max(s.max_input for s in live), max(s.max_output for s in live)]
        want = [min(s.min_input for s in live), -1 if most[0] > 1000 else most[0],
                min(s.min_output for s in live), -1 if most[1] > 1000 else most[1]]
        if counts != want:
            wrong.append('%s: counts %s, schema %s' % (name, counts, want))
        for i, schema in enumerate(history):
            if schema.deprecated:
                continue
            last = history[i + 1].since_version - 1 if i + 1 < len(history) else 10 ** 6
            for version in {schema.since_version, last}:
                ours = in_force(attrs, version)
                theirs = schema.attributes
                where = '%s at opset %d' % (name, version)
                for extra in sorted(set(ours) - set(theirs)):
                    wrong.append('%s: %s is not there' % (where, extra))
                for missing in sorted(set(theirs) - set(ours)):
                    wrong.append('%s: %s is missing' % (where, missing))
                for key in sorted(set(ours) & set(theirs)):
                    _, kind, _, _, required, default = ours[key]
                    kind_name = str(theirs[key].type).split('.')[-1]
                    if kind != KINDS[kind_name]:
                        wrong.append('%s: %s has kind %d, schema %s' % (where, key, kind, kind_name))
                    if required != theirs[key].required:
                        wrong.append('%s: %s required: %s' % (where, key, required))
                    if not check_default(kind, default, default_of(theirs[key])):
                        wrong.append('%s: %s defaults to %s, schema %r' %
                                     (where, key, default or 'nothing', default_of(theirs[key])))
    return wrong


def main():
    text = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    schemas = collections.defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == '':
            schemas[schema.name].append(schema)
    for history in schemas.values():
        history.sort(key=lambda s: s.since_version)
    if '--sabotage' in sys.argv:
        for before, after in [('attr\talpha\t1\t1\t0\t0\t0.00999999978', 'attr\talpha\t1\t1\t0\t0\t0.02'),
                              ('attr\tfmod\t2\t10', 'attr\tfmod\t1\t10'),
                              ('attr\tto\t2\t6\t0\t1', 'attr\tto\t2\t7\t0\t1'),
                              ('op\t\tWhere\t3\t3', 'op\t\tWhere\t2\t3')]:
            if before not in text:
                sys.exit('not found: %r' % before)
            if not compare(read_rows(text.replace(before, after)), schemas):
                sys.exit('not seen: %r' % after)
        print('every change was seen')
        return
    rows = read_rows(text)
    wrong = compare(rows, schemas)
    for line in wrong:
        print(line)
    print('%d rows, %d differences' % (len(rows), len(wrong)))
    sys.exit(1 if wrong or len(rows) < 200 else 0)


main()
