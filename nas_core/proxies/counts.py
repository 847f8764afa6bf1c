"""Proxies that count: parameters, and FLOPs of one sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nas_core.proxies.base import Proxy
from nas_core.proxies.functions import Called, Watching
from nas_core.proxies.trial import Trial

_POOLS: frozenset[Any] = frozenset(
    {
        F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.max_pool1d, F.max_pool2d, F.max_pool3d,
        torch.max_pool1d, torch.max_pool2d, torch.max_pool3d,
    }
)  # fmt: skip
_SAMPLES = 2
"""A batch norm takes statistics of at least two."""


class _Params(Proxy):
    """The number of all parameters, those of unreachable operations included; one that is shared counts once."""

    name = "params"
    purpose = "number of parameters"

    def score(self, trial: Trial) -> float:
        return float(sum(parameter.numel() for parameter in trial.network.parameters()))


class _Flops(Proxy):
    """FLOPs of one sample, two for each multiply-add, as the formulas of the kinds of network count them.

    Counted are matrix products and convolutions and, where there are such, batch norms (a multiply-add for each number)
    and pooling (one for each number of a window). The formulas of translation and language leave out the output
    projection, which counts here. The published counts of NAS-Bench-201 are multiply-adds, of a batch norm two for each
    number and of a ReLU one; the order is the same.
    """

    name = "flops"
    purpose = "FLOPs of one sample"

    def score(self, trial: Trial) -> float:
        more: list[int] = []

        def seen(function: Called, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
            made: Tensor = function(*args, **named)
            more.append(made.numel() * (1 if function is F.batch_norm else _window(made.dim() - 2, args, named)))
            return made

        counter = FlopCounterMode(display=False)
        inputs = tuple(each[:_SAMPLES] for each in trial.inputs)
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter, Watching(_POOLS | {F.batch_norm}, seen):
            trial.logits(trial.tensors(), inputs)
        return (counter.get_total_flops() + 2 * sum(more)) / _SAMPLES


def _window(dimensions: int, args: Sequence[Any], named: Mapping[str, Any]) -> int:
    """How many numbers a pooling reads for each of its results."""
    given = args[1] if len(args) > 1 else named["kernel_size"]
    sizes = [given] if isinstance(given, int) else list(given)
    return math.prod(sizes * dimensions if len(sizes) == 1 else sizes)


PARAMS, FLOPS = _Params(), _Flops()
