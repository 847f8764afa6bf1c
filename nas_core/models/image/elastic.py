"""Heads, hidden units and channels of image networks that can be reordered."""

from __future__ import annotations

from nas_core.models.elastic import Axis, StackForm, TensorDim, stack_channels
from nas_core.models.image.net import VisionNet

# Tensors outside the layers, and their channel dimension.
_CHANNELS = {"patch_embed.weight": 0, "patch_embed.bias": 0, "class_token": 0, "registers": 1, "positions": 1,
             "embedding_norm.weight": 0, "embedding_norm.bias": 0, "norm.weight": 0, "norm.bias": 0,
             "head.weight": 1}  # fmt: skip


class _ImageElastic(StackForm):
    def axes(self, net: VisionNet) -> tuple[Axis, ...]:
        axes = self._layer_axes(net)
        if net.head is None:  # the channels are the output, whose order must stay
            return tuple(axes)
        state = dict(net.named_parameters())
        in_layers, read_by = stack_channels(net)
        dims = [*(TensorDim(name, dim) for name, dim in _CHANNELS.items() if name in state), *in_layers]
        return Axis("channels", net.embed_dim, tuple(dims), 1, ("head.weight", *read_by)), *axes


IMAGE_ELASTIC = _ImageElastic()
