"""Supported model families of ``transformers``, and the names of their layers and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """Names of modules that the models of a family have in common."""

    layers: str = "encoder.layer"
    """Name of the list of layers in the base model."""
    heads: Mapping[str, int] = field(
        default_factory=lambda: {
            "attention.self.query": 0,
            "attention.self.key": 0,
            "attention.self.value": 0,
            "attention.output.dense": 1,
        }
    )
    """Linear layer with attention heads -> dimension of its weight along the heads."""
    offset: int = 0
    """Number of position embeddings that are reserved and never used by a token."""


FAMILIES: dict[str, Family] = {
    "bert": Family(),
    "roberta": Family(offset=2),
    "xlm-roberta": Family(offset=2),
    "camembert": Family(offset=2),
}
"""Families by the ``model_type`` of ``config.json``."""

SIZES = {
    "layers": "num_hidden_layers",
    "embed_dim": "hidden_size",
    "ffn_dim": "intermediate_size",
}
"""Gene -> setting in ``config.json``."""
