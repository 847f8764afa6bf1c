"""Settings of NN-Former."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError
from nas_core.graph.onnx.operators import KINDS

SIBLING_MASK = ("paper", "as_released")
READOUT = ("class_token", "sum", "logarithm")
_RANGES = {
    **{name: Range(1) for name in ("operations", "max_nodes", "dim", "depth", "heads", "ratio")},
    **{name: Range(0) for name in ("attributes", "shapes", "static", "layer_scale")},
    "dropout": Range(0, 1, exclude=(1,)),
}


@dataclass(frozen=True)
class NNFormerConfig:
    """Settings of NN-Former (Xu et al., 2025).

    The defaults are those of the paper's accuracy model (4,934,081 parameters).
    """

    operations: int = KINDS
    """Number of operation indices."""
    max_nodes: int = 32
    """Maximum number of nodes plus 1, with readout class_token."""
    attributes: int = 0
    """Number of attributes per operation, each encoded by 10 sinusoids."""
    shapes: int = 0
    """Number of dimensions of an output shape, each encoded by 20 sinusoids."""
    static: int = 0
    """Number of features of the whole network."""
    dim: int = 160
    """Number of channels."""
    depth: int = 12
    """Number of blocks."""
    heads: int = 4
    """Number of attention heads, a multiple of 4."""
    ratio: int = 4
    """Hidden channels of the feed-forward layer, as a multiple of the channels."""
    dropout: float = 0.1
    """Dropout of attention probabilities, of each branch, and of the hidden channels."""
    sibling_mask: str = field(default="paper", metadata={"choices": SIBLING_MASK})
    """paper: siblings have a common parent or child; as_released: as in the released code, where the tokens make all
    nodes siblings."""
    readout: str = field(default="class_token", metadata={"choices": READOUT})
    """class_token: linear function of the class token; sum: MLP of each node, sum, MLP; logarithm (not in the paper):
    as sum, with L2-normalised nodes, costs and static features, for small data sets."""
    bias: bool = False
    """True: linear layers of the blocks have biases."""
    embed_norm: bool = True
    """True: layer norm after the embedding (equation 4)."""
    layer_scale: float = 0.0
    """Initial value of a learned factor per channel on each residual branch; 0: no factor."""
    offset: float = 0.5
    """Constant added to the output with readout class_token."""

    def __post_init__(self) -> None:
        check_fields(self, "NN-Former", _RANGES)
        if self.dim % self.heads or self.heads % 4:
            raise ConfigError(f"heads is {self.heads}; expected a multiple of 4 that divides the {self.dim} channels")

    @classmethod
    def latency(cls, **changes: Any) -> NNFormerConfig:
        """Return the settings of the released latency model (10,104,321 parameters), with changes."""
        base = cls(
            attributes=8, shapes=4, static=4, dim=512, depth=2, dropout=0.05, readout="sum", bias=True,
            embed_norm=False, layer_scale=1e-4, offset=0.0,
        )  # fmt: skip
        return replace(base, **changes)
