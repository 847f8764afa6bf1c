"""What a masked language model that becomes the largest subnet of a supernet is cut along."""

from __future__ import annotations

from nas_core.layers.positions import StoredPositions
from nas_core.models.elastic import Axis, Part, StackForm, stack_channels
from nas_core.models.masked_lm.net import MaskedLMNet


class _MaskedLMElastic(StackForm):
    """Heads and hidden units of each layer, the channels of the whole network, and hidden units of its heads."""

    def axes(self, net: MaskedLMNet) -> tuple[Axis, ...]:
        """Where input and output share a table, the channels that the last head writes are those of the embedding;
        channels of computed positions cannot change their order."""
        axes = self._layer_axes(net)
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


MASKED_LM_ELASTIC = _MaskedLMElastic()
"""The form of every masked language model."""


def _channels(net: MaskedLMNet) -> Axis:
    parts = [Part("embedding.weight", 1), Part("positions.table", 1), Part("head.dense.weight", 1)]
    read_by = ["head.dense.weight"]
    parts += [Part(f"{name}.{kind}", 0) for name in _norms(net) for kind in ("weight", "bias")]
    own, read = stack_channels(net)
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
