"""Costs of ONNX operators: floating-point operations, parameters, memory access.

FLOPs with n output elements, and two per multiply-add:

* convolution: 2 n * (input channels / groups) * kernel, + n with a bias; transposed: n counts input elements
* Gemm, MatMul: 2 n * (summed dimension), + n with a bias; Einsum: 2 * product of all dimensions
* attention: 2 B H S T (Dk + Dv), softmax, and projections of the operator
* recurrent: 2 T B * (elements of the weights)
* pooling: n * kernel; global pooling and reductions: input elements
* per element: normalisation 7 (batch 2, root mean square 4), softmax 5, Gelu 5, HardSwish and Mish 4, HardSigmoid 3,
  Swish and Softplus 2, linear resize 8, cubic resize 32, sums of k tensors k - 1, other arithmetic 1, moving data 0

Parameters are the elements of constant arrays. Memory access is the number of elements that are written and read, 0 for
views.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from nas_core.graph.onnx.network import Site, einsum_sizes
from nas_core.graph.onnx.operators import KIND_NAMES, VIEWS, flops_per_element, operator_kind


class Cost(NamedTuple):
    """FLOPs, parameters and memory access (in elements) of an operator."""

    flops: int
    params: int
    access: int


def cost_of(site: Site) -> Cost:
    """Return the costs of an operator. Unknown operators have 0 FLOPs."""
    kind = operator_kind(site.kind)
    params = sum(math.prod(s) for s, weight in zip(site.ins, site.weight, strict=True) if weight and s)
    flops = 0 if kind is None else _flops(site, KIND_NAMES[kind])
    return Cost(flops, params, _access(site))


_PER_KIND = {"layer_norm": 7, "group_norm": 7, "softmax": 5, "gelu": 5}
_FREE = {"input", "reshape", "transpose", "concat", "slice", "gather", "cast", "other"}
_PARTIAL = ("Slice", "Split", "Gather", "GatherElements", "GatherND", "Compress", "SplitToSequence")


def _flops(site: Site, kind: str) -> int:
    if kind in _FLOPS:
        return _FLOPS[kind](site)
    per_element = flops_per_element(site.kind)
    if per_element is None and site.kind in ("Resize", "Upsample"):
        per_element = {"linear": 8, "bilinear": 8, "cubic": 32}.get(str(site.settings.get("mode", "nearest")), 0)
    if per_element is None and site.kind in ("Sum", "Mean", "Max", "Min"):
        per_element = max(1, len(site.ins) - 1)
    if per_element is None:
        per_element = 0 if kind in _FREE else _PER_KIND.get(kind, 1)
    return per_element * site.out_size


def _access(site: Site) -> int:
    if site.kind in VIEWS:
        return 0
    written = sum(math.prod(shape) for shape in site.outs)
    read = [math.prod(shape) for shape in site.ins if shape is not None]
    if read and site.kind in _PARTIAL:
        read[0] = min(read[0], written)
    return written + sum(read)


def _conv(site: Site) -> int:
    bias_input = {"QLinearConv": 8, "DeformConv": 3}.get(site.kind, 2)
    bias = site.kind != "ConvInteger" and site.shape_of(bias_input) is not None
    return site.out_size * (2 * math.prod(site.filters()[1:]) + bias)


def _conv_transpose(site: Site) -> int:
    if site.kind == "Col2Im":
        return math.prod(site.input())
    return 2 * math.prod(site.input()) * math.prod(site.filters()[1:]) + site.out_size * (site.shape_of(2) is not None)


def _gemm(site: Site) -> int:
    summed = site.input()[0 if site.settings.get("transA") else -1]
    return site.out_size * (2 * summed + (site.shape_of(2) is not None))


def _matmul(site: Site) -> int:
    if site.kind == "Einsum":
        return max(1, len(site.ins)) * einsum_sizes(site)[0]
    return 2 * site.out_size * (site.input()[-1] if site.input() else 0)


def _attention(site: Site) -> int:
    query, key = site.input(0), site.input(1)  # (B, S, H D) or (B, H, S, D)
    if len(query) < 3:
        return site.out_size
    projections = 0
    if site.kind == "com.microsoft.Attention":
        projections = 2 * math.prod(query) * (key[-1] if key else 0)
        key = ()
    settings = site.settings
    heads = query[1] if len(query) == 4 else int(settings.get("q_num_heads", settings.get("num_heads", 1)))
    batch, steps = query[0], query[-2]
    keys = key[-2] if len(key) >= 3 else steps
    if len(site.outs) > 1 and len(site.outs[1]) == 4 and "com.microsoft" not in site.kind:
        keys = site.outs[1][2]
    width = query[-1] * (heads if len(query) == 4 else 1)
    value_width = math.prod(site.out) // max(1, batch * steps)
    return projections + batch * steps * keys * (2 * width + 2 * value_width + 5 * heads)


def _recurrent(site: Site) -> int:
    steps_and_batch = math.prod(site.input()[:2])
    return 2 * steps_and_batch * (math.prod(site.input(1)) + math.prod(site.input(2)))


def _pool(site: Site) -> int:
    kernel: tuple[int, ...] = site.settings.get("kernel_shape", ())
    return site.out_size * math.prod(kernel)


def _whole_input(site: Site) -> int:
    return math.prod(site.input())


_FLOPS: dict[str, Callable[[Site], int]] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "gemm": _gemm,
    "matmul": _matmul,
    "attention": _attention,
    "recurrent": _recurrent,
    "max_pool": _pool,
    "average_pool": _pool,
    "global_pool": _whole_input,
    "reduce": _whole_input,
}
