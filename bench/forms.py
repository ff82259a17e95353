#!/usr/bin/env python3
"""Times spellings of the same function in ONNX Runtime, side by side.

    python3 bench/forms.py [--rounds N] [--threads N] [GROUP...]

Each group is one function in one context (what stands before and behind it decides what the runtime
fuses). The runs of a group are interleaved in random order; a row gives the median time, the ratio
of the first spelling's time to it (above 1: faster), the largest difference from the first
spelling relative to its largest output, and the operators that the runtime was left with.
docs/forms.md keeps the results."""
import argparse
import collections
import os
import random
import statistics
import tempfile
import time

import numpy as np
import onnx
os.environ['ORT_DISABLE_TELEMETRY'] = '1'  # its own builds call home unless told not to
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

SQRT2 = 2**0.5


class Graph:
    """Nodes are added by method calls: g.Mul(x, 0.5) gives the name of the product."""

    def __init__(self, opset):
        self.opset, self.nodes, self.constants, self.count = opset, [], [], 0
        self.weights = 0

    def constant(self, value):
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape):
        self.weights += 1
        rng = np.random.default_rng(self.weights)
        fan = float(np.prod(shape[1:])) if len(shape) > 2 else float(shape[0])
        return self.constant((rng.standard_normal(shape) / fan**0.5).astype(np.float32))

    def __getattr__(self, op):
        def add(*inputs, **attributes):
            self.count += 1
            name = f"t{self.count}"
            inputs = [self.constant(i) for i in inputs]
            self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
            return name

        return add

    def mean(self, x, axes):
        if self.opset < 18:
            return self.ReduceMean(x, axes=axes, keepdims=1)
        return self.ReduceMean(x, np.array(axes, np.int64), keepdims=1)

    def model(self, shape, y):
        graph = helper.make_graph(
            self.nodes + [helper.make_node("Identity", [y], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            self.constants,
        )
        return helper.make_model(
            graph, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)]
        )


# --- contexts: what stands around the form ---


def alone(g, x, form):
    return form(g, x)


def dense(inner, width):
    """MatMul, bias, form, MatMul."""

    def build(g, x, form):
        h = g.Add(g.MatMul(x, g.weight(inner, width)), g.weight(width))
        return g.MatMul(form(g, h), g.weight(width, inner))

    return build


def conv(c, kernel=1):
    """Convolution, form, convolution."""

    def build(g, x, form):
        pads = [kernel // 2] * 4
        h = g.Conv(x, g.weight(c, c, kernel, kernel), g.weight(c), pads=pads)
        return g.Conv(form(g, h), g.weight(c, c, kernel, kernel), g.weight(c), pads=pads)

    return build


def residual(width):
    """Residual addition, form, MatMul."""

    def build(g, x, form):
        h = g.Add(x, g.Add(g.MatMul(x, g.weight(width, width)), g.weight(width)))
        return g.Add(h, g.MatMul(form(g, h), g.weight(width, width)))

    return build


# --- forms ---


def erf_of(g, x, how):
    return g.Erf(g.Div(x, SQRT2) if how == "div" else g.Mul(x, 1 / SQRT2))


GELU = [
    ("Mul(1/sqrt2); (x*(erf+1))*0.5", lambda g, x: g.Mul(g.Mul(x, g.Add(erf_of(g, x, "mul"), 1.0)), 0.5)),
    ("Mul(1/sqrt2); (x*0.5)*(erf+1)", lambda g, x: g.Mul(g.Mul(x, 0.5), g.Add(erf_of(g, x, "mul"), 1.0))),
    ("Div(sqrt2); (x*(erf+1))*0.5", lambda g, x: g.Mul(g.Mul(x, g.Add(erf_of(g, x, "div"), 1.0)), 0.5)),
    ("Div(sqrt2); (x*0.5)*(erf+1)", lambda g, x: g.Mul(g.Mul(x, 0.5), g.Add(erf_of(g, x, "div"), 1.0))),
    ("Div(sqrt2); (erf+1)*(0.5*x)", lambda g, x: g.Mul(g.Add(1.0, erf_of(g, x, "div")), g.Mul(0.5, x))),
    ("Div(sqrt2); x*(0.5*(erf+1))", lambda g, x: g.Mul(x, g.Mul(g.Add(erf_of(g, x, "div"), 1.0), 0.5))),
    ("Div(sqrt2); x*(0.5*erf+0.5)", lambda g, x: g.Mul(x, g.Add(g.Mul(erf_of(g, x, "div"), 0.5), 0.5))),
]
GELU20 = GELU[2:4] + [("Gelu", lambda g, x: g.Gelu(x))]


def tanh_gelu(g, x, cube):
    inner = g.Mul(g.Add(x, g.Mul(cube(g, x), 0.044715)), (2 / np.pi) ** 0.5)
    return g.Mul(g.Mul(x, 0.5), g.Add(g.Tanh(inner), 1.0))


def tanh_fast(g, x):
    inner = g.Mul(g.Mul(x, 0.7978845608), g.Add(1.0, g.Mul(g.Mul(x, 0.044715), x)))
    return g.Mul(g.Mul(x, 0.5), g.Add(1.0, g.Tanh(inner)))


TANH = [
    ("Pow 3", lambda g, x: tanh_gelu(g, x, lambda g, x: g.Pow(x, 3.0))),
    ("Mul(Mul(x, x), x)", lambda g, x: tanh_gelu(g, x, lambda g, x: g.Mul(g.Mul(x, x), x))),
    ("x*(1 + 0.044715*x*x)", tanh_fast),
]
TANH20 = TANH + [("Gelu tanh", lambda g, x: g.Gelu(x, approximate="tanh"))]
SILU = [
    ("x*Sigmoid(x)", lambda g, x: g.Mul(x, g.Sigmoid(x))),
    ("Sigmoid(x)*x", lambda g, x: g.Mul(g.Sigmoid(x), x)),
    ("x*Sigmoid(x*1.0)", lambda g, x: g.Mul(x, g.Sigmoid(g.Mul(x, np.ones(1, np.float32))))),
    ("x/(1 + Exp(-x))", lambda g, x: g.Div(x, g.Add(g.Exp(g.Neg(x)), 1.0))),
    ("x*Reciprocal(1 + Exp(-x))", lambda g, x: g.Mul(x, g.Reciprocal(g.Add(g.Exp(g.Neg(x)), 1.0)))),
]
SWISH24 = SILU[:1] + [("Swish", lambda g, x: g.Swish(x))]
QUICK = [
    ("x*Sigmoid(1.702*x)", lambda g, x: g.Mul(x, g.Sigmoid(g.Mul(x, 1.702)))),
    ("Sigmoid(x*1.702)*x", lambda g, x: g.Mul(g.Sigmoid(g.Mul(1.702, x)), x)),
    ("x*Sigmoid(x*[1.702])", lambda g, x: g.Mul(x, g.Sigmoid(g.Mul(x, np.full(1, 1.702, np.float32))))),
    ("x*Sigmoid(x/0.5875)", lambda g, x: g.Mul(x, g.Sigmoid(g.Div(x, 1 / 1.702)))),
]
SIGMOID = [
    ("Sigmoid", lambda g, x: g.Sigmoid(x)),
    ("1/(1 + Exp(-x))", lambda g, x: g.Div(1.0, g.Add(g.Exp(g.Neg(x)), 1.0))),
    ("Reciprocal(1 + Exp(-x))", lambda g, x: g.Reciprocal(g.Add(g.Exp(g.Neg(x)), 1.0))),
]
SOFTPLUS = [
    ("Log(1 + Exp(x))", lambda g, x: g.Log(g.Add(g.Exp(x), 1.0))),
    ("Softplus", lambda g, x: g.Softplus(x)),
]
def clipped(g, x, how):
    z = g.Add(x, 3.0)
    if how == "clip":
        return g.Clip(z, 0.0, 6.0)
    if how == "minmax":
        return g.Min(g.Max(z, 0.0), 6.0)
    return g.Min(g.Relu(z), 6.0)


HSWISH = [
    ("(x*Clip(x + 3, 0, 6))/6", lambda g, x: g.Div(g.Mul(x, clipped(g, x, "clip")), 6.0)),
    ("(x*Min(Max(x + 3, 0), 6))/6", lambda g, x: g.Div(g.Mul(x, clipped(g, x, "minmax")), 6.0)),
    ("(x*Min(Relu(x + 3), 6))/6", lambda g, x: g.Div(g.Mul(x, clipped(g, x, "relu")), 6.0)),
    ("x*HardSigmoid(x; 1/6, 1/2)", lambda g, x: g.Mul(x, g.HardSigmoid(x, alpha=1 / 6, beta=0.5))),
    ("HardSwish", lambda g, x: g.HardSwish(x)),
]
HSIGMOID = [
    ("Clip(x + 3, 0, 6)/6", lambda g, x: g.Div(clipped(g, x, "clip"), 6.0)),
    ("Min(Max(x + 3, 0), 6)/6", lambda g, x: g.Div(clipped(g, x, "minmax"), 6.0)),
    ("HardSigmoid", lambda g, x: g.HardSigmoid(x, alpha=1 / 6, beta=0.5)),
]
RELU6 = [
    ("Min(Max(x, 0), 6)", lambda g, x: g.Min(g.Max(x, 0.0), 6.0)),
    ("Min(Relu(x), 6)", lambda g, x: g.Min(g.Relu(x), 6.0)),
    ("Clip(x, 0, 6)", lambda g, x: g.Clip(x, 0.0, 6.0)),
    ("Max(x, 0) alone", lambda g, x: g.Max(x, 0.0)),
    ("Relu alone", lambda g, x: g.Relu(x)),
]
LEAKY = [
    ("Max(x, 0.1*x)", lambda g, x: g.Max(x, g.Mul(x, 0.1))),
    ("LeakyRelu", lambda g, x: g.LeakyRelu(x, alpha=0.1)),
    ("PRelu one slope", lambda g, x: g.PRelu(x, np.full((1, 1, 1), 0.1, np.float32))),
]


def prelu(c):
    a = np.linspace(0.1, 0.4, c).astype(np.float32).reshape(c, 1, 1)

    def depthwise(g, x, w):
        return g.Conv(x, w.reshape(c, 1, 1, 1), np.zeros(c, np.float32), group=c, kernel_shape=[1, 1])

    return [
        ("PRelu", lambda g, x: g.PRelu(x, a)),
        ("Relu(x) + a*Min(x, 0)", lambda g, x: g.Add(g.Relu(x), g.Mul(g.Min(x, 0.0), a))),
        ("Relu(x) - a*Relu(-x)", lambda g, x: g.Sub(g.Relu(x), g.Mul(g.Relu(g.Neg(x)), a))),
        ("Max(x, a*x)", lambda g, x: g.Max(x, g.Mul(x, a))),
        ("a*x + (1-a)*Relu(x)", lambda g, x: g.Add(g.Mul(x, a), g.Mul(g.Relu(x), 1 - a))),
        ("the same by depthwise convolutions", lambda g, x: g.Add(depthwise(g, x, a), depthwise(g, g.Relu(x), 1 - a))),
    ]


SOFTPLUSES = [
    ("Softplus", lambda g, x: g.Softplus(x)),
    ("Max(x, Log(1 + Exp(Min(x, 20))))", lambda g, x: g.Max(x, g.Log(g.Add(g.Exp(g.Min(x, 20.0)), 1.0)))),
    ("Relu(x) + Log(1 + Exp(-|x|))", lambda g, x: g.Add(g.Relu(x), g.Log(g.Add(g.Exp(g.Neg(g.Abs(x))), 1.0)))),
]


def mish_clip(g, x, clip):
    e = g.Exp(clip(g, x))
    n = g.Mul(e, g.Add(e, 2.0))
    return g.Mul(x, g.Div(n, g.Add(n, 2.0)))


def mish_q(g, x):
    q = g.Sigmoid(g.Neg(x))
    q = g.Mul(q, q)
    return g.Mul(x, g.Div(g.Sub(1.0, q), g.Add(1.0, q)))


MISHES = [
    ("Mish", lambda g, x: g.Mish(x)),
    ("x*Tanh(Softplus(x))", lambda g, x: g.Mul(x, g.Tanh(g.Softplus(x)))),
    ("x*Tanh(Log(1 + Exp(x)))", lambda g, x: g.Mul(x, g.Tanh(g.Log(g.Add(g.Exp(x), 1.0))))),
    ("x*n/(n + 2), e = Exp(Min(x, 20))", lambda g, x: mish_clip(g, x, lambda g, x: g.Min(x, 20.0))),
    ("x*n/(n + 2), e = Exp(Clip(x; max 20))", lambda g, x: mish_clip(g, x, lambda g, x: g.Clip(x, "", 20.0))),
    ("x*(1 - q*q)/(1 + q*q), q = Sigmoid(-x)", mish_q),
]
SOFTMAX = [
    ("Exp(x - max)/sum", lambda g, x: (lambda e: g.Div(e, g.ReduceSum(e, np.array([-1]), keepdims=1)))(g.Exp(g.Sub(x, g.ReduceMax(x, axes=[-1], keepdims=1))))),
    ("Softmax", lambda g, x: g.Softmax(x, axis=-1)),
]
TANHS = [
    ("x*(1 + 0.044715*x*x)", tanh_fast),
    ("x*(0.7978846 + 0.0356774*x*x)", lambda g, x: g.Mul(g.Mul(x, 0.5), g.Add(1.0, g.Tanh(g.Mul(x, g.Add(g.Mul(g.Mul(x, x), 0.0356774), 0.7978845608)))))),
    ("0.044715*x*x*x", lambda g, x: g.Mul(g.Mul(x, 0.5), g.Add(1.0, g.Tanh(g.Mul(g.Add(x, g.Mul(g.Mul(g.Mul(x, 0.044715), x), x)), 0.7978845608))))),
    ("Pow 3; x*(0.5*(t + 1))", lambda g, x: g.Mul(x, g.Mul(0.5, g.Add(1.0, g.Tanh(g.Mul(g.Add(x, g.Mul(g.Pow(x, 3.0), 0.044715)), 0.7978845608)))))),
    ("Pow 3; (x*(t + 1))*0.5", lambda g, x: g.Mul(0.5, g.Mul(x, g.Add(1.0, g.Tanh(g.Mul(g.Add(x, g.Mul(g.Pow(x, 3.0), 0.044715)), 0.7978845608)))))),
    ("Pow 3; (t + 1)*(0.5*x)", lambda g, x: g.Mul(g.Add(1.0, g.Tanh(g.Mul(0.7978845608, g.Add(g.Mul(0.044715, g.Pow(x, 3.0)), x)))), g.Mul(0.5, x))),
]
ELUS = [
    ("Elu", lambda g, x: g.Elu(x)),
    ("Relu + Min(Exp(x)-1, 0)", lambda g, x: g.Add(g.Relu(x), g.Sub(g.Exp(g.Min(x, 0.0)), 1.0))),
]
SQUARE = [
    ("Pow 2", lambda g, x: g.Pow(x, 2.0)),
    ("Mul(x, x)", lambda g, x: g.Mul(x, x)),
]
CUBE = [
    ("Pow 3", lambda g, x: g.Pow(x, 3.0)),
    ("Mul(Mul(x, x), x)", lambda g, x: g.Mul(g.Mul(x, x), x)),
]
ROOT = [
    ("Pow 0.5", lambda g, x: g.Pow(g.Abs(x), 0.5)),
    ("Sqrt", lambda g, x: g.Sqrt(g.Abs(x))),
]
INVERSE = [
    ("Pow -1", lambda g, x: g.Pow(x, -1.0)),
    ("Reciprocal", lambda g, x: g.Reciprocal(x)),
    ("1/x", lambda g, x: g.Div(1.0, x)),
]
RSQRT = [
    ("Pow -0.5", lambda g, x: g.Pow(g.Abs(x), -0.5)),
    ("Reciprocal(Sqrt)", lambda g, x: g.Reciprocal(g.Sqrt(g.Abs(x)))),
    ("1/Sqrt", lambda g, x: g.Div(1.0, g.Sqrt(g.Abs(x)))),
]
POW4 = [
    ("Pow 4", lambda g, x: g.Pow(x, 4.0)),
    ("Mul(s, s), s = Mul(x, x)", lambda g, x: (lambda s: g.Mul(s, s))(g.Mul(x, x))),
]


# --- norms ---


def layer_norm(width, square="pow", close="div", axes=(-1,), eps=1e-5, shape=None):
    def form(g, x):
        centred = g.Sub(x, g.mean(x, list(axes)))
        if square == "pow":
            sq = g.Pow(centred, 2.0)
        elif square == "twice":
            sq = g.Pow(g.Sub(x, g.mean(x, list(axes))), 2.0)
        else:
            sq = g.Mul(centred, centred)
        var = g.Add(g.mean(sq, list(axes)), eps)
        if close == "reciprocal":
            n = g.Mul(centred, g.Reciprocal(g.Sqrt(var)))
        elif close == "pow":
            n = g.Div(centred, g.Pow(var, 0.5))
        else:
            n = g.Div(centred, g.Sqrt(var))
        s = shape or (width,)
        scale, shift = g.weight(width), g.weight(width)
        if shape:
            for i in range(2):
                g.constants[-1 - i].dims[:] = shape
        return g.Add(g.Mul(n, scale), shift)

    return form


def layer_norm_op(width, eps=1e-5):
    return lambda g, x: g.LayerNormalization(x, g.weight(width), g.weight(width), axis=-1, epsilon=eps)


def layer_norms(width):
    return [
        ("Pow 2, Div by Sqrt", layer_norm(width)),
        ("Mul(d, d), Div by Sqrt", layer_norm(width, "mul")),
        ("d computed twice", layer_norm(width, "twice")),
        ("Pow 2, Reciprocal of Sqrt, Mul", layer_norm(width, close="reciprocal")),
        ("Pow 2, Pow 0.5", layer_norm(width, close="pow")),
        ("LayerNormalization", layer_norm_op(width)),
    ]


def parts(width, scaled, shifted):
    """A layer norm that lacks its scale or shift."""

    def form(g, x):
        d = g.Sub(x, g.mean(x, [-1]))
        n = g.Div(d, g.Sqrt(g.Add(g.mean(g.Pow(d, 2.0), [-1]), 1e-5)))
        if scaled is not None:
            n = g.Mul(n, np.full(width, scaled, np.float32))
        return n if shifted is None else g.Add(n, np.full(width, shifted, np.float32))

    return form


def rms_parts(width, scaled):
    def form(g, x):
        n = g.Div(x, g.Sqrt(g.Add(g.mean(g.Pow(x, 2.0), [-1]), 1e-6)))
        return n if scaled is None else g.Mul(n, np.full(width, scaled, np.float32))

    return form


PARTS = [
    ("no scale, no shift", parts(768, None, None)),
    ("scale of ones alone", parts(768, 1, None)),
    ("shift of zeros alone", parts(768, None, 0)),
    ("scale of ones, shift of zeros", parts(768, 1, 0)),
]
RMS_PARTS = [("no scale", rms_parts(768, None)), ("scale of ones", rms_parts(768, 1))]


def channels_first(c):
    """LayerNorm over axis 1 of a map."""

    def by_axis(square, close="div"):
        return layer_norm(c, square, close, axes=(1,), eps=1e-6, shape=(c, 1, 1))

    def by_transpose(norm):
        return lambda g, x: g.Transpose(norm(g, g.Transpose(x, perm=[0, 2, 3, 1])), perm=[0, 3, 1, 2])

    def by_reshape(norm):
        def form(g, x):
            flat = g.Transpose(g.Reshape(x, np.array([0, 0, -1])), perm=[0, 2, 1])
            back = g.Transpose(norm(g, flat), perm=[0, 2, 1])
            return g.Reshape(back, np.array([1, c, SIDE, SIDE]))

        return form

    return [
        ("axis 1, Pow 2, Div by Sqrt", by_axis("pow")),
        ("axis 1, Mul(d, d), Div by Sqrt", by_axis("mul")),
        ("axis 1, Reciprocal", by_axis("pow", "reciprocal")),
        ("Transpose, decomposed, Transpose", by_transpose(layer_norm(c, eps=1e-6))),
        ("Transpose, LayerNormalization, Transpose", by_transpose(layer_norm_op(c, 1e-6))),
        ("Reshape, Transpose, LayerNormalization, back", by_reshape(layer_norm_op(c, 1e-6))),
    ]


SIDE = 56


def rms(width, square="pow", close="div", order="scale last"):
    def form(g, x):
        sq = g.Pow(x, 2.0) if square == "pow" else g.Mul(x, x)
        root = g.Sqrt(g.Add(g.mean(sq, [-1]), 1e-6))
        if close == "div":
            n = g.Div(x, root)
        elif close == "reciprocal":
            n = g.Mul(x, g.Reciprocal(root))
        elif close == "one over":
            n = g.Mul(x, g.Div(1.0, root))
        else:
            n = g.Mul(x, g.Pow(g.Add(g.mean(sq, [-1]), 1e-6), -0.5))
        w = g.weight(width)
        return g.Mul(w, n) if order == "first" else g.Mul(n, w)

    return form


def rms_norms(width):
    return [
        ("Pow 2, x*Reciprocal(Sqrt)", rms(width, close="reciprocal")),
        ("Pow 2, x*(1/Sqrt)", rms(width, close="one over")),
        ("Pow 2, x*Pow -0.5", rms(width, close="pow")),
        ("Mul(x, x), x/Sqrt", rms(width, "mul")),
        ("Pow 2, x/Sqrt", rms(width)),
        ("Pow 2, x/Sqrt, scale first", rms(width, order="first")),
    ]


def rms_op(width):
    return [
        ("Pow 2, x/Sqrt", rms(width)),
        ("RMSNormalization", lambda g, x: g.RMSNormalization(x, g.weight(width), axis=-1, epsilon=1e-6)),
    ]


def group_norms(c, side, groups):
    def instance(g, x):
        h = g.Reshape(x, np.array([0, groups, -1]))
        h = g.InstanceNormalization(h, np.ones(groups, np.float32), np.zeros(groups, np.float32))
        h = g.Reshape(h, np.array([1, c, side, side]))
        return g.Add(g.Mul(h, scale(g)), shift(g))

    def scale(g):
        return g.constant(np.linspace(0.5, 1.5, c).astype(np.float32).reshape(c, 1, 1))

    def shift(g):
        return g.constant(np.linspace(-1, 1, c).astype(np.float32).reshape(c, 1, 1))

    def decomposed(norm):
        def form(g, x):
            h = norm(g, g.Reshape(x, np.array([0, groups, -1])))
            return g.Add(g.Mul(g.Reshape(h, np.array([1, c, side, side])), scale(g)), shift(g))

        return form

    def plain(g, h):
        d = g.Sub(h, g.mean(h, [-1]))
        return g.Div(d, g.Sqrt(g.Add(g.mean(g.Pow(d, 2.0), [-1]), 1e-5)))

    n = c // groups * side * side
    ones = lambda g, h: g.LayerNormalization(h, np.ones(n, np.float32), axis=-1, epsilon=1e-5)

    def folded(g, x):
        h = g.Reshape(x, np.array([0, groups, -1]))
        mean = g.mean(h, [-1])
        d = g.Sub(h, mean)
        r = g.Sqrt(g.Add(g.mean(g.Mul(d, d), [-1]), 1e-5))
        return g.Add(g.Mul(g.Reshape(g.Div(d, r), np.array([1, c, side, side])), scale(g)), shift(g))

    return [
        ("Reshape, InstanceNormalization, Reshape, Mul, Add", instance),
        ("the same, decomposed", decomposed(plain)),
        ("the same, LayerNormalization without scale", decomposed(ones)),
    ]


GROUPS = {
    "gelu-bert": (17, (1, 128, 64), dense(64, 3072), GELU),
    "gelu-bert-768": (17, (1, 128, 768), dense(768, 3072), GELU),
    "gelu-bert20": (20, (1, 128, 64), dense(64, 3072), GELU20),
    "gelu-conv": (17, (1, 96, 56, 56), conv(96), GELU),
    "gelu-conv20": (20, (1, 96, 56, 56), conv(96), GELU20),
    "gelu-alone": (17, (1, 128, 3072), alone, GELU),
    "tanh-gelu": (17, (1, 128, 64), dense(64, 3072), TANH),
    "tanh-gelu20": (20, (1, 128, 64), dense(64, 3072), TANH20),
    "silu-conv": (17, (1, 64, 80, 80), conv(64), SILU),
    "silu-dense": (17, (1, 128, 64), dense(64, 3072), SILU),
    "swish24-conv": (24, (1, 64, 80, 80), conv(64), SWISH24),
    "quick-gelu": (17, (1, 50, 64), dense(64, 3072), QUICK),
    "quick-gelu-conv": (17, (1, 64, 80, 80), conv(64), QUICK),
    "sigmoid": (17, (1, 128, 64), dense(64, 3072), SIGMOID),
    "sigmoid-conv": (17, (1, 64, 80, 80), conv(64), SIGMOID),
    "softplus": (17, (1, 128, 64), dense(64, 3072), SOFTPLUS),
    "softplus-conv": (17, (1, 64, 80, 80), conv(64), SOFTPLUS),
    "hswish": (17, (1, 64, 80, 80), conv(64), HSWISH),
    "hsigmoid": (17, (1, 64, 80, 80), conv(64), HSIGMOID),
    "relu6": (17, (1, 64, 80, 80), conv(64), RELU6),
    "relu6-dense": (17, (1, 128, 64), dense(64, 3072), RELU6),
    "prelu": (17, (1, 64, 56, 56), conv(64), prelu(64)),
    "prelu3": (17, (1, 64, 56, 56), conv(64, 3), prelu(64)),
    "softplus-op": (17, (1, 64, 80, 80), conv(64), SOFTPLUSES),
    "mish": (18, (1, 64, 80, 80), conv(64), MISHES),
    "softmax": (17, (1, 12, 128, 128), alone, SOFTMAX),
    "tanh-gelu-order": (17, (1, 128, 64), dense(64, 3072), TANHS),
    "elus": (17, (1, 64, 80, 80), conv(64), ELUS),
    "leaky": (17, (1, 64, 80, 80), conv(64), LEAKY),
    "square": (17, (1, 128, 768), alone, SQUARE),
    "cube": (17, (1, 128, 768), alone, CUBE),
    "root": (17, (1, 128, 768), alone, ROOT),
    "inverse": (17, (1, 128, 768), alone, INVERSE),
    "rsqrt": (17, (1, 128, 768), alone, RSQRT),
    "pow4": (17, (1, 128, 768), alone, POW4),
    "layernorm": (17, (1, 128, 768), residual(768), layer_norms(768)),
    "layernorm12": (12, (1, 128, 768), residual(768), layer_norms(768)[:-1]),
    "layernorm-alone": (17, (1, 128, 768), alone, layer_norms(768)),
    "layernorm18": (18, (1, 128, 768), alone, layer_norms(768)),
    "layernorm-parts": (17, (1, 128, 768), alone, PARTS),
    "rmsnorm-parts": (17, (1, 128, 768), alone, RMS_PARTS),
    "convnext12": (12, (1, 96, 56, 56), conv(96), channels_first(96)[:4]),
    "convnext-alone": (17, (1, 96, 56, 56), alone, channels_first(96)),
    "convnext": (17, (1, 96, 56, 56), conv(96), channels_first(96)),
    "rmsnorm": (17, (1, 128, 768), residual(768), rms_norms(768)),
    "rmsnorm-alone": (17, (1, 128, 768), alone, rms_norms(768)),
    "rmsnorm23": (23, (1, 128, 768), alone, rms_op(768)),
    "groupnorm": (17, (1, 64, 64, 64), conv(64, 3), group_norms(64, 64, 32)),
    "groupnorm-wide": (17, (1, 320, 32, 32), conv(320), group_norms(320, 32, 32)),
}


class Session:
    def __init__(self, model, threads, x):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        with tempfile.TemporaryDirectory() as folder:
            options.optimized_model_filepath = os.path.join(folder, "o.onnx")
            self.run_ = ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            left = onnx.load(options.optimized_model_filepath)
        counts = collections.Counter(n.op_type for n in left.graph.node)
        self.operators = " ".join(
            f"{k}*{v}" if v > 1 else k for k, v in sorted(counts.items())
        )
        self.x, self.times = {"x": x}, []

    def run(self):
        return self.run_.run(None, self.x)[0]


def measure(group, rounds, threads):
    opset, shape, context, forms = GROUPS[group]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    sessions = []
    for name, form in forms:
        g = Graph(opset)
        sessions.append(Session(g.model(shape, context(g, "x", form)), threads, x))
    first = sessions[0].run().astype(np.float64)
    order, rng = list(sessions), random.Random(1)
    start = time.perf_counter()
    sessions[0].run()
    repeat = max(1, int(0.004 / max(1e-6, time.perf_counter() - start)))
    for _ in range(rounds):
        rng.shuffle(order)
        for s in order:
            s.run()
            start = time.perf_counter()
            for _ in range(repeat):
                s.run()
            s.times.append((time.perf_counter() - start) / repeat)
    print(f"{group}: opset {opset}, x {list(shape)}, {threads} thread(s)")
    for (name, _), s in zip(forms, sessions):
        ratio = statistics.median(a / b for a, b in zip(sessions[0].times, s.times))
        same = np.abs(s.run() - first).max() / np.abs(first).max()
        ms = statistics.median(s.times) * 1e3
        print(f"  {name:44} {ms:8.3f} ms {ratio:5.2f}x  {same:.0e}  {s.operators}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("group", nargs="*")
    args = parser.parse_args()
    for group in args.group or GROUPS:
        measure(group, args.rounds, args.threads)


if __name__ == "__main__":
    main()
