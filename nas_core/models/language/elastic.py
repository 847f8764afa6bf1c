"""Heads, hidden units and channels of language models that can be reordered."""

from __future__ import annotations

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, StackForm, TensorDim, stack_channels
from nas_core.models.language.net import LanguageNet


class _LanguageElastic(StackForm):
    def axes(self, net: LanguageNet) -> tuple[Axis, ...]:
        axes = self._layer_axes(net)
        if not isinstance(net.positions, StoredPositions):  # channels of sinusoids cannot be reordered
            return tuple(axes)
        in_layers, read_by = stack_channels(net)
        dims = [TensorDim("embedding.weight", 1), TensorDim("positions.table", 1), *in_layers]
        if net.norm is not None:
            dims += [TensorDim("norm.weight", 0), TensorDim("norm.bias", 0)]
        if net.output is not None:
            dims.append(TensorDim("output.weight", 1))
        read_by.append("embedding.weight" if net.output is None else "output.weight")
        return *axes, Axis("channels", net.embedding.weight.shape[1], tuple(dims), 1, tuple(read_by))


LANGUAGE_ELASTIC = _LanguageElastic()
