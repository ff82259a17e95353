#!/usr/bin/env python3
"""What the operators of every opset version take and give: src/ops/signatures.def, made from the
schemas of the onnx package.

  signatures.py ROOT             compares the file with what the package says
  signatures.py ROOT --write     makes it anew
  signatures.py ROOT --sabotage  checks that changed lines are seen
"""
import os
import re
import sys

from onnx import TensorProto, defs

HEAD = '''/* Inputs and outputs of the standard operators, a row for each opset version in which they change:
 * operator, version, inputs, outputs, and for each letter the element types that it may stand for,
 * bit by bit (bit 0: what is no tensor). One letter, one type; ? may be left out, * repeats with one
 * type, + repeats with any. "-": the version withdrew the operator.
 * Made by tests/ops/signatures.py --write from the schemas of onnx; the test `signatures` compares. */
'''


def rows_of(root):
    text = open(os.path.join(root, 'src/ops/ops.def'), encoding='utf-8').read()
    return re.findall(r'^PO_OP_ROW\((\w+), "(\w+)", ""', text, re.M)


def mask_of(types):
    mask = 0
    for t in types:
        m = re.fullmatch(r'tensor\((\w+)\)', t)
        mask |= 1 << TensorProto.DataType.Value(m[1].upper()) if m else 1
    return mask


def params_of(params, constraints, letters, masks):
    text = ''
    for p in params:
        key = p.type_str
        if key not in letters:
            letters[key] = chr(ord('A') + len(letters))
            masks.append(mask_of(constraints.get(key, [key])))
        option = str(p.option).rsplit('.', maxsplit=1)[-1]
        text += letters[key] + {'Single': '', 'Optional': '?',
                                'Variadic': '*' if p.is_homogeneous else '+'}[option]
    return text


def signature(schema):
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    letters, masks = {}, []
    ins = params_of(schema.inputs, constraints, letters, masks)
    outs = params_of(schema.outputs, constraints, letters, masks)
    return f'"{ins}", "{outs}"' + ''.join(f', 0x{m:x}' for m in masks or [0])


def make(root):
    history = {}
    for s in defs.get_all_schemas_with_history():
        if s.domain == '':
            history.setdefault(s.name, []).append(s)
    lines = [HEAD, f'PO_NEWEST_OPSET({defs.onnx_opset_version()})\n']
    for identifier, name in rows_of(root):
        last = None
        for s in sorted(history.get(name, []), key=lambda s: s.since_version):
            text = '"-", "-", 0x0' if s.deprecated else signature(s)
            if text != last:
                lines.append(f'PO_SIGNATURE({identifier}, {s.since_version}, {text})\n')
            last = text
    return ''.join(lines)


def differences(text, made):
    want = made.splitlines()
    got = text.splitlines()
    return [line for line in got if line not in want] + [line for line in want if line not in got]


def main():
    root = sys.argv[1]
    path, made = os.path.join(root, 'src/ops/signatures.def'), make(root)
    if '--write' in sys.argv:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(made)
        return
    text = open(path, encoding='utf-8').read()
    if '--sabotage' in sys.argv:
        for before, after in [('"AA", "A"', '"AA", "B"'), ('A?', 'A'), ('0x2', '0x4')]:
            if before not in text or not differences(text.replace(before, after, 1), made):
                sys.exit(f'not seen: {after!r} for {before!r}')
        print('every change was seen')
        return
    wrong = differences(text, made)
    for line in wrong:
        print(line)
    print(f'{made.count("PO_SIGNATURE")} signatures, {len(wrong)} lines differ')
    sys.exit(1 if wrong or text != made else 0)


if __name__ == '__main__':
    main()
