#!/usr/bin/env python3
"""The model with the first dim of its inputs and outputs open, as most exporters leave it.

  bench/open_batch.py IN OUT

A model that holds its batch elsewhere (a Reshape to a fixed one) takes that one alone. Needs the
Python of .deps/venv.
"""
import sys

import onnx


def main():
    model = onnx.load(sys.argv[1])
    weights = {w.name for w in model.graph.initializer}
    for info in [*model.graph.input, *model.graph.output]:
        dims = info.type.tensor_type.shape.dim
        if info.name not in weights and len(dims) > 1:
            dims[0].ClearField('dim_value')
            dims[0].dim_param = 'batch'
    del model.graph.value_info[:]
    onnx.save(model, sys.argv[2])


if __name__ == '__main__':
    main()
