"""The weights of a static translation network, taken out of a supernet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from nas_core.layers.positions import StoredPositions
from nas_core.layers.weights import named_tensors
from nas_core.models.static import copied, selected
from nas_core.models.translation.subnet import Subnet
from nas_core.space import Architecture

if TYPE_CHECKING:
    from nas_core.models.translation.net import TranslationNet


def static_state(net: TranslationNet, architecture: Architecture) -> dict[str, Tensor]:
    """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
    ``TranslationNet`` built from ``SearchSpace.of(architecture)`` without experts."""
    subnet: Subnet = selected(net, architecture)
    rest = named_tensors(subnet)
    state = copied((name, each) for name, each in rest if not name.endswith("embedding") and name != "output")
    if net.config.share_all_embeddings:
        source, target = subnet.source_embedding, subnet.target_embedding
        wider = source if source.shape[1] >= target.shape[1] else target
        state["embedding.weight"] = wider.detach().clone()
    else:
        state["source_embedding.weight"] = subnet.source_embedding.detach().clone()
        state["target_embedding.weight"] = subnet.target_embedding.detach().clone()
        if not net.config.share_decoder_embeddings:
            state["output.weight"] = subnet.output.detach().clone()
    for name, table in (("source", subnet.source_embedding), ("target", subnet.target_embedding)):
        positions = getattr(net, f"{name}_positions")
        if isinstance(positions, StoredPositions):
            state[f"{name}_positions.table"] = positions.table.detach()[:, : table.shape[1]].clone()
    state["reference_widths"] = net.reference_widths.clone()
    return state
