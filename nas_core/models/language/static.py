"""The weights of a static language model, taken out of a supernet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from nas_core.layers.positions import StoredPositions
from nas_core.layers.weights import named_tensors
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.models.language.net import LanguageNet

__all__ = ["static_state"]


def static_state(net: LanguageNet, architecture: Architecture) -> dict[str, Tensor]:
    """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
    ``LanguageNet`` built from ``SearchSpace.of(architecture)`` without experts."""
    training = net.training
    net.eval()
    try:
        with torch.no_grad():
            subnet = net.select(architecture)
    finally:
        net.train(training)
    tables = {"embedding.weight": subnet.embedding}
    if net.output is not None:
        tables["output.weight"] = subnet.output
    if isinstance(net.positions, StoredPositions):
        tables["positions.table"] = net.positions.table[:, : subnet.embedding.shape[1]]
    rest = subnet._replace(embedding=None, output=None)  # type: ignore[arg-type]
    state = {name: tensor.detach().clone().contiguous() for name, tensor in (*tables.items(), *named_tensors(rest))}
    state["reference_width"] = net.reference_width.clone()
    return state
