"""NASWOT: how differently the activations of a network react to the samples of a batch.

Mellor et al., "Neural Architecture Search without Training", ICML 2021, section 3: each sample has a binary code, which
units are active; the kernel of two samples is how many units react alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.proxies.base import Proxy
from nas_core.proxies.functions import ACTIVATIONS, Called, Watching, argument
from nas_core.proxies.trial import Trial

LEAST = 1e-5
"""The least eigenvalue that counts: samples with the same code in all units would make the determinant 0."""


class _Nwot(Proxy):
    """The logarithm of the determinant of the kernel ``(B, B)``: units that react alike to two samples.

    A unit is active where the input of a ReLU is above 0; of GELU and the like its sign is taken as well. Units of all
    activations count, those of a cell's operations before their convolutions too. A network that answers every sample
    alike has no logarithm (published: minus infinity); eigenvalues count as 1e-5 at least, so that its score is finite
    and the lowest.
    """

    name = "nwot"
    purpose = "log-determinant of how alike units react to the samples of a batch"

    def score(self, trial: Trial) -> float:
        kernels: list[Tensor] = []

        def seen(function: Called, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
            before = argument(args, named)
            if before.dim() > 1 and len(before) % trial.batch == 0:
                kernels.append(alike((before.detach() > 0).reshape(trial.batch, -1)))
            return function(*args, **named)

        with torch.no_grad(), Watching(ACTIVATIONS, seen):
            trial.logits(trial.tensors())
        if not kernels:
            raise ConfigError(
                "nwot reads activations such as relu and gelu, and the network calls none; leave nwot out"
            )
        kernel = torch.stack(kernels).sum(0).cpu()
        return float(torch.linalg.eigvalsh(kernel).clamp(min=LEAST).log().sum())


def alike(codes: Tensor) -> Tensor:
    """In how many units two samples have the same code: ``(B, B)`` for codes ``(B, units)`` of True and False."""
    active = codes.float()
    both = active @ active.mT + (1 - active) @ (1 - active).mT
    return both if both.device.type == "mps" else both.double()


NWOT = _Nwot()
