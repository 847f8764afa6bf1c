"""Families of models: names of their sizes and of the tensors along their heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """Names in the configuration and the weights of a family.

    A static network is the same model class with a smaller configuration. Its tensors have the shapes to which the
    supernet's are cut, so that a family needs no further table.
    """

    layers: str = "encoder.layer"
    """List of layers in the base model."""
    heads: Mapping[str, int] = field(
        default_factory=lambda: {
            "attention.self.query": 0,
            "attention.self.key": 0,
            "attention.self.value": 0,
            "attention.output.dense": 1,
        }
    )
    """Linear layer of a layer -> dimension of its weight along the heads."""
    offset: int = 0
    """Stored positions that no token has."""


FAMILIES: dict[str, Family] = {
    "bert": Family(),
    "roberta": Family(offset=2),
    "xlm-roberta": Family(offset=2),
    "camembert": Family(offset=2),
}
"""Families by ``model_type``."""

SIZES = {
    "layers": "num_hidden_layers",
    "embed_dim": "hidden_size",
    "ffn_dim": "intermediate_size",
}
"""Gene -> setting in ``config.json``."""
