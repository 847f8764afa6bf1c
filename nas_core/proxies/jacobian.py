"""The covariance of a network's Jacobians: how differently its outputs depend on the samples of a batch.

Mellor et al., "Neural Architecture Search without Training", first version (2020); as ``jacob_cov`` in Abdelfattah et
al. 2021, section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.errors import ConfigError
from nas_core.proxies.base import Proxy
from nas_core.proxies.functions import Called, Watching, argument
from nas_core.proxies.trial import Trial, gradients_of

SMALL = 1e-5
"""k of the paper, which keeps an eigenvalue of 0 from having an infinite score."""


class _Jacov(Proxy):
    """Minus the sum of ``log(v + k) + 1 / (v + k)`` over the eigenvalues v of the correlations of Jacobians.

    The Jacobian of a sample is the gradient of the sum of all outputs of the batch for the sample's input: through
    batch norms, which take the statistics of the batch, samples act on each other. Tokens have no gradient; in their
    place stand their embeddings. Samples whose Jacobian is the same number everywhere correlate fully with all, so that
    a network that answers every input alike has the lowest score (published: -1e8). Without correlation it is nearly
    -B; published values of good cells lie there so close together that another draw of weights orders them anew.
    """

    name = "jacov"
    purpose = "how little the gradients of the outputs for the samples' inputs correlate"

    def score(self, trial: Trial) -> float:
        tensors, read = trial.tensors(), list[Tensor]()
        inputs = tuple(each.detach().clone().requires_grad_(each.is_floating_point()) for each in trial.inputs)
        tokens = [id(each) for each in inputs if not each.is_floating_point()]

        def seen(function: Called, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
            embedded = function(*args, **named)
            if id(argument(args, named)) in tokens and embedded.requires_grad:
                read.append(embedded)
            return embedded

        with Watching(frozenset({F.embedding}), seen):
            logits = trial.logits(tensors, inputs)
        read += [each for each in inputs if each.is_floating_point()]
        if not read:
            raise ConfigError(
                "jacov reads gradients for images or embedded tokens, and the network has none; leave jacov out"
            )
        rows = [gradient.reshape(trial.batch, -1) for gradient in gradients_of(logits.sum(), read)]
        return _score(torch.cat(rows, 1).cpu().double())


def _score(rows: Tensor) -> float:
    """Score the Jacobians ``(B, numbers)`` of a batch."""
    centred = rows - rows.mean(1, keepdim=True)
    norms = centred.norm(dim=1, keepdim=True)
    unit = centred / norms.clamp(min=torch.finfo(rows.dtype).tiny)
    constant = (norms == 0) | (norms == 0).mT
    correlations = torch.where(constant, 1.0, unit @ unit.mT)
    values = torch.linalg.eigvalsh(correlations).clamp(min=0) + SMALL
    return -float((values.log() + 1 / values).sum())


JACOV = _Jacov()
