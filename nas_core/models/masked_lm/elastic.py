"""What a masked language model that becomes the largest subnet of a supernet is cut along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, Part, channel_parts, layer_axes
from nas_core.models.masked_lm.net import MaskedLMNet
from nas_core.models.masked_lm.subnet import Subnet

__all__ = ["MASKED_LM_ELASTIC"]

_SIDE = ""
"""There is one stack of layers, which needs no name."""


class _MaskedLMElastic:
    """Heads and hidden units of each layer, the channels of the whole network, and hidden units of its heads."""

    def sides(self, net: MaskedLMNet) -> dict[str, int]:
        """One stack of layers."""
        return {_SIDE: len(net.layers)}

    def axes(self, net: MaskedLMNet) -> tuple[Axis, ...]:
        """Where input and output share a table, the channels that the last head writes are those of the embedding;
        channels of computed positions cannot change their order."""
        head_dim = net.space.largest().number("head_dim")
        axes = [
            axis
            for index, layer in enumerate(net.layers)
            for axis in layer_axes(f"layers.{index}", f"layers.{index}.", layer, head_dim)
        ]
        if isinstance(net.positions, StoredPositions):
            axes.append(_channels(net))
        if not net.config.share_embeddings:
            parts = (*_written_by_head(), Part("output.weight", 1))
            axes.append(Axis("head", net.embed_dim, parts, 1, ("output.weight",)))
        for name, head in net.classification_heads.items():
            at = f"classification_heads.{name}"
            parts = (Part(f"{at}.dense.weight", 0), Part(f"{at}.dense.bias", 0), Part(f"{at}.out_proj.weight", 1))
            axes.append(Axis(at, head.inner, parts, 1, (f"{at}.out_proj.weight",)))
        return tuple(axes)

    def running(self, net: MaskedLMNet, subnet: Subnet, kept: Mapping[str, Sequence[int]]) -> Subnet:
        """The subnet with those of its layers alone."""
        if _SIDE not in kept:
            return subnet
        return subnet._replace(layers=tuple(subnet.layers[index] for index in sorted(kept[_SIDE])))

    def set_order(self, net: MaskedLMNet, order: Mapping[str, Sequence[int]]) -> None:
        """Let shallower networks keep the first layers of this order longest."""
        if _SIDE in order:
            net.config = replace(net.config, layer_order=tuple(order[_SIDE]))


MASKED_LM_ELASTIC = _MaskedLMElastic()
"""The form of every masked language model."""


def _channels(net: MaskedLMNet) -> Axis:
    parts = [Part("embedding.weight", 1), Part("positions.table", 1), Part("head.dense.weight", 1)]
    read_by = ["head.dense.weight"]
    parts += [Part(f"{name}.{kind}", 0) for name in _norms(net) for kind in ("weight", "bias")]
    for index, layer in enumerate(net.layers):
        own, read = channel_parts(f"layers.{index}.", layer)
        parts += own
        read_by += read
    for name in net.classification_heads:
        parts.append(Part(f"classification_heads.{name}.dense.weight", 1))
        read_by.append(parts[-1].name)
    if net.config.share_embeddings:
        parts += _written_by_head()
        read_by.append("embedding.weight")
    return Axis("channels", net.embed_dim, tuple(parts), 1, tuple(read_by))


def _norms(net: MaskedLMNet) -> list[str]:
    return [name for name in ("embedding_norm", "norm") if getattr(net, name) is not None]


def _written_by_head() -> tuple[Part, ...]:
    return tuple(Part(f"head.{name}", 0) for name in ("dense.weight", "dense.bias", "norm.weight", "norm.bias"))
