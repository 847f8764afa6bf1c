"""Settings of NN-Former, with the ablations of its paper."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph.onnx.operators import KINDS

ATTENTION = ("siblings", "global")
FEED_FORWARD = ("bidirectional", "vanilla")
SIBLING_MASK = ("paper", "as_released")
READOUT = ("class_token", "sum", "logarithm")
_RANGES = {
    **{name: Range(1) for name in ("operations", "max_nodes", "dim", "depth", "heads", "ratio")},
    **{name: Range(0) for name in ("attributes", "shapes", "static", "layer_scale")},
    "dropout": Range(0, 1, without=(1,)),
}


@dataclass(frozen=True)
class NNFormerConfig:
    """Settings of NN-Former (Xu et al., 2025); :meth:`accuracy` and :meth:`latency` are the paper's models."""

    operations: int = KINDS
    """Length of the one-hot code of an operation index."""
    max_nodes: int = 32
    """Largest graph with a class token, and length of the one-hot code of its size."""
    attributes: int = 0
    """Scalars per operation, each coded by 10 sinusoids."""
    shapes: int = 0
    """Dimensions of an output shape, each coded by 20 sinusoids."""
    static: int = 0
    """Scalars of the whole network: 10 sinusoids each with readout ``sum``, logarithms with ``logarithm``, linear with
    ``class_token``."""
    dim: int = 160
    """Channels."""
    depth: int = 12
    """Blocks."""
    heads: int = 4
    """Attention heads; the masks need a multiple of 4."""
    ratio: int = 4
    """Hidden channels of the feed-forward per channel."""
    dropout: float = 0.1
    """Dropout of attention probabilities, of each branch, and of the hidden channels."""
    attention: str = field(default="siblings", metadata={"choices": ATTENTION})
    """Masks of the heads (Table 6): siblings (A, Aᵀ, AᵀA, AAᵀ; ASMA) or global."""
    sibling_mask: str = field(default="paper", metadata={"choices": SIBLING_MASK})
    """paper: products of A over operations alone; as_released: over the tokens too, which are linked to all nodes, so
    that every pair is a sibling and those heads are global. Recipes ``paper`` and ``best`` use as_released, as the code
    of the published results does."""
    feed_forward: str = field(default="bidirectional", metadata={"choices": FEED_FORWARD})
    """Table 6: bidirectional (BGIFFN), or vanilla without the sums over parents and children."""
    readout: str = field(default="class_token", metadata={"choices": READOUT})
    """class_token: linear on that token; sum: node-wise MLP, sum over nodes, MLP, softplus. Not in the paper:
    logarithm, for few networks, which also reads the nodes' costs, and logarithms of sums and static features."""
    bias: bool = False
    """Biases of the blocks' linear layers."""
    embed_norm: bool = True
    """Layer norm after the embedding (equation 4)."""
    layer_scale: float = 0.0
    """Initial value of a learned factor per channel on each branch; 0: none."""
    offset: float = 0.5
    """Constant added to the class token's output."""

    def __post_init__(self) -> None:
        check_fields(self, "NN-Former", _RANGES)
        if self.dim % self.heads or self.heads % 4:
            raise ConfigError(f"{self.heads} heads for {self.dim} channels; expected a multiple of 4 that divides them")

    @classmethod
    def accuracy(cls, **changes: Any) -> NNFormerConfig:
        """Return the accuracy model, 12 x 160: 4,934,081 parameters."""
        return cls(**changes)

    @classmethod
    def latency(cls, **changes: Any) -> NNFormerConfig:
        """Return the latency model as released, 2 x 512: 10,104,321 parameters."""
        base = cls(
            attributes=8, shapes=4, static=4, dim=512, depth=2, dropout=0.05, readout="sum", bias=True,
            embed_norm=False, layer_scale=1e-4, offset=0.0,
        )  # fmt: skip
        return replace(base, **changes)
