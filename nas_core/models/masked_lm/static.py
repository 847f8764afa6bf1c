"""The weights of a static masked language model, taken out of a supernet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nas_core.layers.positions import StoredPositions
from nas_core.layers.weights import named_tensors
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.models.masked_lm.net import MaskedLMNet

__all__ = ["static_state"]

_TABLES = ("embedding", "output")


def static_state(net: MaskedLMNet, architecture: Architecture) -> dict[str, Tensor]:
    """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
    ``MaskedLMNet`` built from ``SearchSpace.of(architecture)`` without experts."""
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            subnet = net.select(architecture)
    finally:
        net.train(training)
    named = {name: tensor for name, tensor in named_tensors(subnet) if name not in _TABLES}
    named["embedding.weight"] = subnet.embedding
    if not net.config.share_embeddings:
        named["output.weight"] = subnet.output
    if isinstance(net.positions, StoredPositions):
        named["positions.table"] = net.positions.table[:, : subnet.embedding.shape[1]]
    named["reference_width"] = net.reference_width
    return {name: tensor.detach().clone().contiguous() for name, tensor in named.items()}
