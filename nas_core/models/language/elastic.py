"""What of a language model may be sorted, so that a trained one can become the largest subnet of a supernet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, Part, channel_parts, layer_axes
from nas_core.models.language.net import LanguageNet
from nas_core.models.language.subnet import LanguageSubnet

__all__ = ["LANGUAGE_ELASTIC"]

_SIDE = ""
"""There is one stack of layers, which needs no name."""


class _LanguageElastic:
    """Heads and hidden units of each layer, and the channels of the whole network.

    Sinusoids that are computed have a meaning per channel, so that channels stay as they are: see ``positions`` of the
    network's settings.
    """

    def sides(self, net: LanguageNet) -> dict[str, int]:
        return {_SIDE: len(net.layers)}

    def axes(self, net: LanguageNet) -> tuple[Axis, ...]:
        head_dim = net.space.largest().number("head_dim")
        axes = [
            axis
            for index, layer in enumerate(net.layers)
            for axis in layer_axes(f"layers.{index}", f"layers.{index}.", layer, head_dim)
        ]
        if isinstance(net.positions, StoredPositions):
            axes.append(_channels(net))
        return tuple(axes)

    def running(self, net: LanguageNet, subnet: LanguageSubnet, kept: Mapping[str, Sequence[int]]) -> LanguageSubnet:
        if _SIDE not in kept:
            return subnet
        return subnet._replace(layers=tuple(subnet.layers[index] for index in sorted(kept[_SIDE])))

    def set_order(self, net: LanguageNet, order: Mapping[str, Sequence[int]]) -> None:
        if _SIDE in order:
            net.config = replace(net.config, layer_order=tuple(order[_SIDE]))


LANGUAGE_ELASTIC = _LanguageElastic()
"""The form of every language model."""


def _channels(net: LanguageNet) -> Axis:
    parts, read_by = [Part("embedding.weight", 1), Part("positions.table", 1)], list[str]()
    for index, layer in enumerate(net.layers):
        own, read = channel_parts(f"layers.{index}.", layer)
        parts += own
        read_by += read
    if net.norm is not None:
        parts += [Part("norm.weight", 0), Part("norm.bias", 0)]
    if net.output is not None:
        parts.append(Part("output.weight", 1))
    read_by.append("embedding.weight" if net.output is None else "output.weight")
    return Axis("channels", net.embedding.weight.shape[1], tuple(parts), 1, tuple(read_by))
