"""Encoding of ONNX operators of the published latency models.

Each output of an operator is a node, and so is each constant, except weights of convolutions, linear layers and batch
normalisations. Only the first number of kernel, stride, padding and dilation is used. Shapes are cut after four
dimensions. Costs are sums over known operators; MatMul is unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.costs import Cost
from nas_core.graph.onnx.encoding import FREE, Encoded, batch_of
from nas_core.graph.onnx.network import WEIGHTS, Network, Operation, Shape, Site, check_fit, site_of
from nas_core.graph.onnx.operators import RELEASED

_NONE = len(RELEASED) - 1
_CODES = {name: index for index, name in enumerate(RELEASED[:-4])}
# Operators whose weights are not nodes.
_HELD = ("Conv", "ConvTranspose", "Gemm", "BatchNormalization")


def encode_released(network: Network) -> Encoded:
    encoded = Encoded(batch_of(network))
    read = {op.outputs: _read(op, network) for op in network.operations}
    consumed = {tensor for tensors in read.values() for tensor in tensors}
    for tensor in (*network.inputs, *sorted(network.stored)):
        if tensor in consumed:
            encoded.add(tensor, "Input", _NONE, (0,) * 8, _first_four(network.shapes.get(tensor, ())))
    unknown: Counter[str] = Counter()
    total = FREE
    for op in network.operations:
        if not read[op.outputs]:
            continue
        site = site_of(op, network)
        check_fit(site, network.name)
        cost = _cost(site) if op.kind in _CODES else FREE
        total = Cost(*(a + b for a, b in zip(total, cost, strict=True)))
        if op.kind not in _CODES:
            unknown[op.kind] += 1
        sources = {encoded.nodes[tensor] for tensor in read[op.outputs] if tensor in encoded.nodes}
        for tensor in filter(None, op.outputs):
            shape = _first_four(network.shape(tensor, op.kind))
            encoded.add(tensor, op.kind, _CODES.get(op.kind, _NONE), _attributes(site), shape, cost)
            encoded.edges.extend((source, encoded.nodes[tensor]) for source in sources)
            cost = FREE
    if not encoded.edges:
        raise GraphError(f"{network.name} has no operator with an input; expected a network")
    encoded.total, encoded.unknown = total, dict(unknown)
    return encoded


def _read(op: Operation, network: Network) -> list[str]:
    held = WEIGHTS[op.kind] if op.kind in _HELD else ()
    return [t for place, t in enumerate(op.inputs) if t and not (place in held and t in network.stored)]


def _first_four(shape: Shape) -> Shape:
    return (*shape, 0, 0, 0, 0)[:4]


def _attributes(site: Site) -> tuple[int, ...]:
    kind = site.kind
    settings = site.settings
    bias = int(site.shape_of(2) is not None)

    def first(name: str, default: int) -> int:
        return int((settings.get(name) or (default,))[0])

    kernel = first("kernel_shape", site.input(1)[2] if "Conv" in kind and len(site.input(1)) > 2 else 0)
    window = (kernel, first("strides", 1), first("pads", 0))
    convolution = (*window, first("dilations", 1), int(settings.get("group", 1)), bias)
    attributes: dict[str, tuple[int, ...]] = {
        "Conv": convolution,
        "ConvTranspose": (*convolution, first("output_padding", 0)),
        "MaxPool": window,
        "AveragePool": window,
        "Gemm": (bias,),
        "Transpose": tuple(settings.get("perm", ())),
    }
    return (*attributes.get(kind, ()), *(0,) * 8)[:8]


def _cost(site: Site) -> Cost:
    flops, params = _COSTS[site.kind](site) if site.kind in _COSTS else (0, 0)
    return Cost(flops, params, sum(math.prod(shape) for shape in site.outs) + params)


def _conv(site: Site) -> tuple[int, int]:
    weights, bias = site.input(1), int(site.shape_of(2) is not None)
    per_filter = math.prod(weights[1:])
    params = (weights[0] if weights else 0) * (per_filter + bias)
    return math.prod(site.out[1:]) * (2 * per_filter - 1 + bias), params


def _gemm(site: Site) -> tuple[int, int]:
    last = site.input(1)[-2:]
    into, out = reversed(last) if site.settings.get("transB") else last
    bias = int(site.shape_of(2) is not None)
    return out * (2 * into - 1 + bias), out * (into + bias)


def _batch_norm(site: Site) -> tuple[int, int]:
    times = 4 if len(site.ins) > 1 else 2
    return times * math.prod(site.input()), times * site.input()[1]


def _average(site: Site) -> tuple[int, int]:
    if site.kind == "AveragePool":
        return math.prod(site.out[1:]) * math.prod(site.settings.get("kernel_shape", (1,))), 0
    return math.prod(site.out[1:]) * (site.input()[-1] // max(1, site.out[-1])), 0


def _softmax(site: Site) -> tuple[int, int]:
    return 3 * (len(site.input()) // max(1, site.input()[0])) - 1, 0


_COSTS: dict[str, Callable[[Site], tuple[int, int]]] = {
    **dict.fromkeys(
        ("Add", "Mul", "Sub", "Div", "Pow", "Sqrt", "Sigmoid", "Tanh", "ReduceMean"), lambda site: (site.out_size, 0)
    ),
    **dict.fromkeys(("Conv", "ConvTranspose"), _conv),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool"), _average),
    "Gemm": _gemm,
    "BatchNormalization": _batch_norm,
    "Softmax": _softmax,
}
