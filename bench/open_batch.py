#!/usr/bin/env python3
"""The model with the first dim of its inputs and outputs open, as most exporters leave it.

  bench/open_batch.py IN OUT [NAME:AXIS=SYMBOL[,AXIS=SYMBOL].. ..]

With names of inputs, these dims are open, and those of the outputs are what follows. A model that
holds a length elsewhere (a Reshape to a fixed one) takes that one alone. Needs the Python of
.deps/venv.
"""
import sys

import onnx


def open_first(model):
    weights = {w.name for w in model.graph.initializer}
    for info in [*model.graph.input, *model.graph.output]:
        dims = info.type.tensor_type.shape.dim
        if info.name not in weights and len(dims) > 1:
            dims[0].ClearField('dim_value')
            dims[0].dim_param = 'batch'


def open_dims(model, wanted):
    inputs = {i.name: i.type.tensor_type.shape.dim for i in model.graph.input}
    for text in wanted:
        name, dims = text.split(':')
        for axis, symbol in (d.split('=') for d in dims.split(',')):
            inputs[name][int(axis)].ClearField('dim_value')
            inputs[name][int(axis)].dim_param = symbol
    for output in model.graph.output:
        output.type.tensor_type.ClearField('shape')


def main():
    model = onnx.load(sys.argv[1])
    if len(sys.argv) > 3:
        open_dims(model, sys.argv[3:])
    else:
        open_first(model)
    del model.graph.value_info[:]
    if len(sys.argv) > 3:
        inferred = onnx.shape_inference.infer_shapes(model)
        for output, seen in zip(model.graph.output, inferred.graph.output):
            output.CopyFrom(seen)
    onnx.save(model, sys.argv[2])


if __name__ == '__main__':
    main()
