"""Heads, hidden units and channels of masked language models that can be reordered."""

from __future__ import annotations

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, StackForm, TensorDim, stack_channels
from nas_core.models.masked_lm.net import MaskedLMNet


class _MaskedLMElastic(StackForm):
    def axes(self, net: MaskedLMNet) -> tuple[Axis, ...]:
        axes = self._layer_axes(net)
        if isinstance(net.positions, StoredPositions):  # channels of sinusoids cannot be reordered
            axes.append(_channels(net))
        if not net.config.share_embeddings:
            axes.append(Axis("head", net.embed_dim, (*_HEAD, TensorDim("output.weight", 1)), 1, ("output.weight",)))
        for name, head in net.classification_heads.items():
            prefix = f"classification_heads.{name}"
            dims = (
                TensorDim(f"{prefix}.dense.weight", 0),
                TensorDim(f"{prefix}.dense.bias", 0),
                TensorDim(f"{prefix}.out_proj.weight", 1),
            )
            axes.append(Axis(prefix, head.inner, dims, 1, (f"{prefix}.out_proj.weight",)))
        return tuple(axes)


MASKED_LM_ELASTIC = _MaskedLMElastic()
# Outputs of the token head, along the embedding channels if input and output share a table.
_HEAD = tuple(TensorDim(f"head.{name}", 0) for name in ("dense.weight", "dense.bias", "norm.weight", "norm.bias"))


def _channels(net: MaskedLMNet) -> Axis:
    norms = [name for name in ("embedding_norm", "norm") if getattr(net, name) is not None]
    in_layers, layers_read = stack_channels(net)
    heads = [f"classification_heads.{name}.dense.weight" for name in net.classification_heads]
    dims = [TensorDim("embedding.weight", 1), TensorDim("positions.table", 1), TensorDim("head.dense.weight", 1)]
    dims += [TensorDim(f"{name}.{kind}", 0) for name in norms for kind in ("weight", "bias")]
    dims += [*in_layers, *(TensorDim(name, 1) for name in heads)]
    read_by = ["head.dense.weight", *layers_read, *heads]
    if net.config.share_embeddings:
        dims += _HEAD
        read_by.append("embedding.weight")
    return Axis("channels", net.embed_dim, tuple(dims), 1, tuple(read_by))
