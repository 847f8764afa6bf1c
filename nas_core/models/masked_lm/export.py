"""Export of a masked language model.

Shapes: B batch, T length, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

from torch import Tensor

from nas_core.export.parts import ExportModule, OpenDim, Value
from nas_core.layers.positions import SinusoidalPositions
from nas_core.models.masked_lm.net import MaskedLMNet, length_limit
from nas_core.models.static import SubnetModule
from nas_core.space import Architecture, SearchSpace


class MaskedLMModel(SubnetModule):
    """Module from tokens ``(B, T)`` to features ``(B, T, C)`` and logits of tokens or classes."""

    def __init__(self, net: MaskedLMNet, architecture: Architecture, head: str | None = None) -> None:
        super().__init__(net, architecture)
        self.head = head

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        subnet = self.net.select(self.architecture)
        features = self.net.encode(subnet, tokens)
        return features, self.net.logits(subnet, features, self.head)


def static_net(net: MaskedLMNet, architecture: Architecture, max_length: int | None = None) -> MaskedLMNet:
    """Return the static network in evaluation mode, with sinusoidal positions for ``max_length`` tokens."""
    static = net.static(architecture)
    if max_length and isinstance(static.positions, SinusoidalPositions):
        rows = static.config.first_position + max_length
        static.positions.table = static.positions(rows, static.positions.width)[:rows].clone()
    return static


def encoder_part(net: MaskedLMNet, architecture: Architecture, head: str | None, max_length: int) -> ExportModule:
    """Return a subnet as the part ``encoder`` of an export.

    Args:
        head: name of a classification head. None means the token head.
        max_length: largest number of tokens. Attention may lower it.
    """
    limit = length_limit(SearchSpace.of(architecture, like=net.space), net.config)
    max_length = max_length if limit is None else min(limit, max_length)
    module = MaskedLMModel(static_net(net, architecture, max_length), architecture, head)
    vocabulary, channels = module.net.embedding.weight.shape
    tokens = Value("tokens", ("batch", "length"), "sentence", vocabulary, net.config.padding_idx)
    if head is None:
        logits = Value("logits", ("batch", "length", vocabulary))
    else:
        logits = Value("logits", ("batch", module.net.classification_heads[head].classes))
    outputs = (Value("features", ("batch", "length", channels)), logits)
    return ExportModule("encoder", module, (tokens,), outputs, (OpenDim("batch"), OpenDim("length", 1, max_length)))
