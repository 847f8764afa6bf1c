"""What of a language model may be sorted, so that a trained one can become the largest subnet of a supernet."""

from __future__ import annotations

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, Part, StackForm, stack_channels
from nas_core.models.language.net import LanguageNet


class _LanguageElastic(StackForm):
    """Heads and hidden units of each layer, and the channels of the whole network.

    Sinusoids that are computed have a meaning per channel, so that channels stay as they are: see ``positions`` of the
    network's settings.
    """

    def axes(self, net: LanguageNet) -> tuple[Axis, ...]:
        axes = self._layer_axes(net)
        if isinstance(net.positions, StoredPositions):
            axes.append(_channels(net))
        return tuple(axes)


LANGUAGE_ELASTIC = _LanguageElastic()
"""The form of every language model."""


def _channels(net: LanguageNet) -> Axis:
    own, read_by = stack_channels(net)
    parts = [Part("embedding.weight", 1), Part("positions.table", 1), *own]
    if net.norm is not None:
        parts += [Part("norm.weight", 0), Part("norm.bias", 0)]
    if net.output is not None:
        parts.append(Part("output.weight", 1))
    read_by.append("embedding.weight" if net.output is None else "output.weight")
    return Axis("channels", net.embedding.weight.shape[1], tuple(parts), 1, tuple(read_by))
