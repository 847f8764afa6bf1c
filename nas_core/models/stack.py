"""Base class of language models and masked language models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from nas_core.errors import CheckpointError
from nas_core.layers.depth import check_order, kept_layers
from nas_core.layers.linear import ElasticEmbedding
from nas_core.layers.positions import StoredPositions, positions_of
from nas_core.layers.transformer import AttentionConfig, ElasticEncoderLayer, EncoderLayerWeights, LayerForm
from nas_core.layers.weights import named_tensors
from nas_core.models.static import copy_state, encoding_size, router_encoding, select_eval
from nas_core.space import Architecture, SearchSpace
from nas_core.space.bert import encoder_layers, layer_widths, network_width


class TokenStack(nn.Module):
    """Embeddings of tokens, positions, and one stack of elastic layers.

    Args:
        reference_width: width C of positions and of the dropout scale. Default: the space's largest.
        stored: number of stored positions.
        own_output: use a separate table for the output projection.
    """

    reference_width: Tensor

    def __init__(
        self,
        space: SearchSpace,
        vocabulary: int,
        config: Any,
        reference_width: int | None,
        stored: int,
        own_output: bool,
    ) -> None:
        super().__init__()
        self.space, self.config = space, config
        self.embed_dim = width = network_width(space.largest())
        self.register_buffer("reference_width", torch.tensor(reference_width or width))
        self.embedding = ElasticEmbedding(vocabulary, width, config.padding_idx)
        self.output = ElasticEmbedding(vocabulary, width, config.padding_idx) if own_output else None
        self.positions = positions_of(config.positions, reference_width or width, stored, width)

    def _build_layers(
        self,
        widest: list[tuple[int, int]],
        attention: list[AttentionConfig],
        form: LayerForm,
        causal: bool = False,
        widths: Sequence[int] | None = None,
    ) -> None:
        features, mos = encoding_size(self.space, self.config.mos), self.config.mos
        widths = widths or [self.embed_dim] * len(widest)
        self.layers: list[ElasticEncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            ElasticEncoderLayer(width, ffn, qkv, features, mos, form, kinds, causal=causal)
            for width, (ffn, qkv), kinds in zip(widths, widest, attention, strict=True)
        )
        check_order(self.config.layer_order, len(self.layers))

    def _select_tables(self, width: int) -> tuple[Tensor, Tensor]:
        table = self.embedding.select(width)
        return table, table if self.output is None else self.output.select(width)

    def _select_layers(self, architecture: Architecture) -> tuple[EncoderLayerWeights, ...]:
        encoding = router_encoding(self.space, architecture, self.config.mos, self.reference_width.device)
        sizes = zip(layer_widths(architecture), encoder_layers(architecture), strict=True)
        return tuple(
            layer.select(width, genes.ffn_dim, genes.heads, encoding, genes.attention, genes.qkv_dim)
            for layer, (width, genes) in zip(self.kept_layers(architecture), sizes, strict=True)
        )

    def kept_layers(self, architecture: Architecture) -> list[ElasticEncoderLayer]:
        return kept_layers(self.layers, architecture.number("layers"), self.config.layer_order)

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """Return the state dict of the static subnet."""
        subnet = select_eval(self, architecture)
        tables = {"embedding.weight": subnet.embedding, "reference_width": self.reference_width}
        if self.output is not None:
            tables["output.weight"] = subnet.output
        if isinstance(self.positions, StoredPositions):
            tables["positions.table"] = self.positions.table[:, : subnet.embedding.shape[1]]
        return copy_state((*tables.items(), *named_tensors(subnet._replace(embedding=None, output=None))))

    def static(self, architecture: Architecture) -> Self:
        """Return the static network of an architecture in evaluation mode."""
        space = SearchSpace.of(architecture, like=self.space)
        static = type(self)(space, len(self.embedding.weight), self.config.static())  # type: ignore[call-arg]
        static.load_state_dict(self.static_state(architecture))
        return static.eval()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """Restore the width of the supernet, on which position embeddings and dropout depend."""
        width = state_dict.get(prefix + "reference_width")
        if width is not None:
            if width.ndim:
                raise CheckpointError(
                    f"tensor {prefix}reference_width of the checkpoint has shape {tuple(width.shape)}; expected one"
                    " number; give an undamaged copy"
                )
            self.positions.resize(int(width))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def embedding_scale(self, table: Tensor) -> float:
        fixed: float | None = self.config.embedding_scale
        return math.sqrt(table.shape[1]) if fixed is None else fixed
