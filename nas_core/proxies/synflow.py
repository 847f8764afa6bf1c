"""SynFlow: how much of a signal of ones reaches the output through absolute weights, without data and without labels.

Tanaka et al., "Pruning neural networks without any data by iteratively conserving synaptic flow", NeurIPS 2020, as a
score of networks in Abdelfattah et al. 2021, section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from nas_core.proxies.base import Proxy
from nas_core.proxies.functions import NORMS, Called, Watching, argument
from nas_core.proxies.trial import Trial, gradients_of

_SOFTMAX: frozenset[Any] = frozenset({F.softmax, torch.softmax, Tensor.softmax, F.scaled_dot_product_attention})
LEAST = 1e-300
"""A network through which nothing flows has the logarithm of this."""


class _Synflow(Proxy):
    """The logarithm of the sum over all weights of ``|w| * dR/d|w|``; R is the sum of the outputs for an input of ones.

    All parameters and buffers are taken without sign and as doubles; norms give what they get. That matters: with norms
    the signal has the same size after every layer. Tokens cannot be ones: of a network that reads them, the first row
    of the batch is the input. What a softmax gives counts as constant, so that values flow through attention, queries
    and keys do not: unnormed scores are so large that their gradients would be rounding errors times all else. (Torch
    runs ``nn.MultiheadAttention`` as one function, inside of which this is not done.) Published values are the same
    logarithms, but 0 for a cell through which nothing flows.
    """

    name = "synflow"
    purpose = "flow of ones through absolute weights to the output, as a logarithm"

    def score(self, trial: Trial) -> float:
        exact = torch.float32 if trial.inputs[0].device.type == "mps" else torch.float64  # mps has no doubles
        tensors = {name: _unsigned(tensor) for name, tensor in trial.tensors(exact).items()}
        inputs = tuple(
            torch.ones_like(each[:1], dtype=exact) if each.is_floating_point() else each[:1] for each in trial.inputs
        )
        with sdpa_kernel(SDPBackend.MATH), Watching(NORMS | _SOFTMAX, _linear):  # fused gradients overflow
            reached = trial.logits(tensors, inputs).sum()
            weights = trial.weights(tensors)
            flows = [
                (weight.detach() * flow).abs().sum()
                for weight, flow in zip(weights, gradients_of(reached, weights), strict=True)
            ]
        total = float(torch.stack(flows).sum()) if flows else 0.0
        return math.log(max(total, LEAST))


def _unsigned(tensor: Tensor) -> Tensor:
    found = tensor.detach().abs() if tensor.is_floating_point() else tensor
    return found.requires_grad_(tensor.requires_grad)


def _linear(function: Called, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What norms get; what a softmax gives, as a constant, and of attention with it the sum of values so weighted."""
    if function in NORMS:
        return argument(args, named)
    values = 2 if function is F.scaled_dot_product_attention else None
    fixed = [each if place == values else _detached(each) for place, each in enumerate(args)]
    return function(*fixed, **{name: each if name == "value" else _detached(each) for name, each in named.items()})


def _detached(given: Any) -> Any:
    return given.detach() if isinstance(given, Tensor) else given


SYNFLOW = _Synflow()
