"""Models in float64: the onnx package's evaluator, with convolutions, means and batch normalisation
of our own, since some of its versions fail on some shapes."""
import itertools
import math

import numpy as np
import onnx
import onnx.reference.ops._op_list  # 200 modules: once here, not in every process forked later
from onnx import numpy_helper as nh
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


def settings(rank, kernel, strides, dilations, pads):
    n = rank - 2
    return kernel, strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n


def widened(x, pads, fill=0.0):
    n = x.ndim - 2
    return np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + n]) for i in range(n)], constant_values=fill)


def taps(padded, kernel, strides, dilations):
    """(tap, the elements of the padded map that it meets at every output position)"""
    dims = [(d - (k - 1) * e - 1) // s + 1 for d, k, s, e in zip(padded.shape[2:], kernel, strides, dilations)]
    for tap in itertools.product(*map(range, kernel)):
        at = tuple(slice(t * e, t * e + (d - 1) * s + 1, s)
                   for t, e, d, s in zip(tap, dilations, dims, strides))
        yield tap, padded[(slice(None), slice(None), *at)]


class Conv(OpRun):
    op_domain = ''

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None,
             pads=None, strides=None):
        assert auto_pad in (None, 'NOTSET')
        kernel, s, e, p = settings(x.ndim, w.shape[2:], strides, dilations, pads)
        g, y = group or 1, 0
        w = w.reshape(g, w.shape[0] // g, *w.shape[1:])
        for tap, part in taps(widened(x, p), kernel, s, e):
            part = part.reshape(part.shape[0], g, part.shape[1] // g, *part.shape[2:])
            y = y + np.einsum('ngc...,gkc->ngk...', part, w[(..., *tap)])
        y = y.reshape(y.shape[0], -1, *y.shape[3:])
        return (y if bias is None else y + bias.reshape(-1, *[1] * (x.ndim - 2)),)


class ConvTranspose(OpRun):
    op_domain = ''

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None,
             output_padding=None, output_shape=None, pads=None, strides=None):
        assert auto_pad in (None, 'NOTSET') and not output_shape
        kernel, s, e, p = settings(x.ndim, w.shape[2:], strides, dilations, pads)
        n, g = x.ndim - 2, group or 1
        extra = output_padding or [0] * n
        full = [(d - 1) * s[i] + (kernel[i] - 1) * e[i] + 1 for i, d in enumerate(x.shape[2:])]
        y = np.zeros((x.shape[0], g, w.shape[1], *[f + o for f, o in zip(full, extra)]))
        xg = x.reshape(x.shape[0], g, x.shape[1] // g, *x.shape[2:])
        wg = w.reshape(g, w.shape[0] // g, *w.shape[1:])
        for tap in itertools.product(*map(range, kernel)):
            at = tuple(slice(t * e[i], t * e[i] + (d - 1) * s[i] + 1, s[i])
                       for i, (t, d) in enumerate(zip(tap, x.shape[2:])))
            y[(slice(None), slice(None), slice(None), *at)] += np.einsum('ngc...,gck->ngk...', xg, wg[(..., *tap)])
        y = y.reshape(y.shape[0], -1, *y.shape[3:])
        y = y[(slice(None), slice(None), *[slice(p[i], f + extra[i] - p[i + n]) for i, f in enumerate(full)])]
        return (y if bias is None else y + bias.reshape(-1, *[1] * n),)


class AveragePool(OpRun):
    op_domain = ''

    def _run(self, x, auto_pad=None, ceil_mode=None, count_include_pad=None, dilations=None,
             kernel_shape=None, pads=None, strides=None):
        assert auto_pad in (None, 'NOTSET') and not ceil_mode
        kernel, s, e, p = settings(x.ndim, kernel_shape, strides, dilations, pads)
        total = sum(part for _, part in taps(widened(x, p), kernel, s, e))
        if count_include_pad:
            return (total / math.prod(kernel),)
        return (total / sum(part for _, part in taps(widened(np.ones_like(x), p), kernel, s, e)),)


class BatchNormalization(OpRun):
    op_domain = ''

    def _run(self, x, scale, shift, mean, var, epsilon=None, momentum=None, training_mode=None):
        assert not training_mode
        scale, shift, mean, var = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, shift, mean, var))
        return ((x - mean) / np.sqrt(var + (epsilon or 1e-5)) * scale + shift,)


def run(path, inputs):
    """The outputs, rounded to float32 at the end."""
    model = onnx.load(path)
    exact = {i for n in model.graph.node if n.op_type == 'Resize' for i in n.input[1:]}
    tensors = [(t.name, t) for t in model.graph.initializer]
    tensors += [(n.output[0], a.t) for n in model.graph.node if n.op_type == 'Constant' for a in n.attribute]
    for name, t in tensors:
        if t.data_type == onnx.TensorProto.FLOAT and name not in exact:
            t.CopyFrom(nh.from_array(nh.to_array(t).astype(np.float64), t.name))
    evaluator = ReferenceEvaluator(model, new_ops=[Conv, ConvTranspose, AveragePool, BatchNormalization])
    return [np.asarray(v).astype(np.float32)
            for v in evaluator.run(None, {k: v.astype(np.float64) for k, v in inputs.items()})]
