"""Eight numbers of an operator in the corrected encoding, each with one meaning for all operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nas_core.graph.onnx.network import Shape
from nas_core.graph.onnx.operators import CORRECTED
from nas_core.graph.onnx.site import Site, pair_of

ATTRIBUTES = ("kernel_depth", "kernel_height", "kernel_width", "stride", "padding", "dilation", "groups", "summed")
"""Columns of ``Graph.attributes``; 0 where an operator has no such number.

kernel: of convolutions and pooling, the last axis as width; of global pooling its whole input. stride: product over the
axes; padding: sum of all elements added; dilation: the largest. groups: of convolutions and group normalisation, heads
of an attention, tensors joined or made by Concat and Split. summed: how many numbers go into one: input channels /
groups, the inner dimension of a product, keys of an attention, what softmax, a normalisation or a reduction runs over.
A Transpose has its permutation in these columns instead, as in the released encoding.
"""


def attributes_of(site: Site, kind: int | None) -> Sequence[int]:
    """One value for each of :data:`ATTRIBUTES`."""
    name = "other" if kind is None else CORRECTED[kind]
    if site.kind == "Transpose":
        perm = site.settings.get("perm", tuple(reversed(range(len(site.input())))))
        return [*perm, *[0] * 8][:8]
    if name in ("conv", "conv_transpose") and len(site.filters()) > 2:
        channels = site.input()[1] // max(1, _groups(site)) if len(site.input()) > 1 else 0
        return [*_window(site, site.filters()[2:]), _groups(site), channels]
    if name in ("max_pool", "average_pool") and "kernel_shape" in site.settings:
        return [*_window(site, site.settings["kernel_shape"]), 0, 0]
    if name == "global_pool":
        return [*_window(site, site.input()[2:]), 0, 0]
    return [0, 0, 0, 0, 0, 0, *_groups_and_sum(site, name)]


def four_dims(shape: Shape) -> Shape:
    """A shape with zeros behind it; of more than four dimensions the first ones as their product."""
    if len(shape) > 4:
        return (math.prod(shape[:-3]), *shape[-3:])
    return (*shape, 0, 0, 0, 0)[:4]


def _groups(site: Site) -> int:
    return int(site.settings.get("group", 1))


def _window(site: Site, kernel: Sequence[int]) -> list[int]:
    """Kernel, stride, padding, dilation."""
    rank = len(kernel)
    strides = site.settings.get("strides", (1,) * rank)
    dilations = site.settings.get("dilations", (1,) * rank)
    padding = sum(site.settings.get("pads", ()))
    if str(site.settings.get("auto_pad", "")).startswith("SAME") and site.kind != "ConvTranspose":
        axes = zip(site.input()[2:], site.out[2:], kernel, strides, dilations, strict=False)
        padding = sum(max(0, (out - 1) * s + (k - 1) * d + 1 - size) for size, out, k, s, d in axes)
    last = list(kernel)[-3:]
    return [*[0] * (3 - len(last)), *last, math.prod(strides), max(0, padding), max(dilations, default=1)]


def _groups_and_sum(site: Site, name: str) -> tuple[int, int]:
    shape, settings = site.input(), site.settings
    if name == "gemm" and shape:
        return 0, shape[0 if settings.get("transA") else -1]
    if site.kind == "Einsum":
        return 0, pair_of(str(settings.get("equation", "")), site)[1]
    if name == "matmul" and shape:
        return 0, shape[-1]
    if name == "attention":
        heads = shape[1] if len(shape) == 4 else int(settings.get("q_num_heads", settings.get("num_heads", 1)))
        keys = site.input(1) if len(site.input(1)) >= 3 else shape
        return heads, keys[-2] if len(keys) > 1 else 0
    if name == "recurrent" and shape:
        return 2 if settings.get("direction") == "bidirectional" else 1, shape[-1]
    if name == "layer_norm" and shape:
        return 0, math.prod(shape[site.axis(-1) :])
    if name == "group_norm" and len(shape) > 1:
        groups = int(settings.get("num_groups", settings.get("groups", shape[1])))
        return groups, math.prod(shape[1:]) // max(1, groups)
    if name == "softmax" and shape:
        return 0, shape[site.axis(-1)] if site.axis(-1) < len(shape) else 0
    if name == "reduce" and site.out_size:
        return 0, math.prod(shape) // site.out_size
    if site.kind in ("Concat", "Sum", "Mean", "Max", "Min"):
        return len(site.ins), 0
    if site.kind in ("Split", "SplitToSequence"):
        return len(site.outs), 0
    return 0, 0
