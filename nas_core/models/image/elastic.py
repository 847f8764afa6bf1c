"""Image networks as networks of which smaller ones use the first heads, hidden units and channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nas_core.layers.depth import check_order
from nas_core.models.elastic import Axis, Part, StackForm, stack_channels
from nas_core.models.image.net import VisionNet

_CHANNELS = {"patch_embed.weight": 0, "patch_embed.bias": 0, "class_token": 0, "registers": 1, "positions": 1,
             "embedding_norm.weight": 0, "embedding_norm.bias": 0, "norm.weight": 0, "norm.bias": 0,
             "head.weight": 1}  # fmt: skip
"""Tensors outside the layers, and the dimension along which their channels lie."""


class _ImageElastic(StackForm):
    """The :class:`nas_core.models.elastic.ElasticForm` of :class:`VisionNet`; it has one side, whose name is empty."""

    def axes(self, net: VisionNet) -> tuple[Axis, ...]:
        """Channels of the whole network, if a classifier reads them; hidden units and heads of each layer."""
        state = dict(net.named_parameters())
        axes = self._layer_axes(net)
        if net.head is None:  # then the channels are the output, whose order must stay
            return tuple(axes)
        own, read_by = stack_channels(net)
        parts = [*(Part(name, dim) for name, dim in _CHANNELS.items() if name in state), *own]
        return Axis("channels", net.embed_dim, tuple(parts), 1, ("head.weight", *read_by)), *axes

    def set_order(self, net: VisionNet, order: Mapping[str, Sequence[int]]) -> None:
        """Set the order of the layers.

        Raises:
            ConfigError: it does not name each layer once.
        """
        net.config = replace(net.config, layer_order=check_order(order.get("", ()), len(net.layers)))


IMAGE_ELASTIC = _ImageElastic()
