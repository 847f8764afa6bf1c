"""The language model: an elastic decoder-only transformer, with or without experts.

One class serves as supernet (built from a search space) and as static subnet (built from ``SearchSpace.of``, the space
of one architecture). It computes with a :class:`LanguageSubnet`, the weights of one architecture; the module itself
remembers no architecture.

Shapes: B batch, T length, C channels, V vocabulary.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from nas_core.layers import ElasticLayerNorm
from nas_core.layers.transformer import LayerForm, norm
from nas_core.layers.weights import named_tensors
from nas_core.models.language.genes import GENES, check_language_space
from nas_core.models.language.subnet import LanguageCache, LanguageConfig, LanguageSubnet
from nas_core.models.stack import TokenStack
from nas_core.models.static import copied, selected
from nas_core.space import Architecture, SearchSpace


class LanguageNet(TokenStack):
    """Decoder-only transformer over the genes of :mod:`nas_core.space.language`.

    ``select(architecture)`` gives the weights of one architecture, mixing experts once; ``forward`` (all positions),
    or ``start`` (or ``read``, of a prompt) and ``step`` (one position at a time) compute with them.

    Raises:
        SpaceError: the space lacks a gene that this network has.
    """

    config: LanguageConfig

    def __init__(
        self,
        space: SearchSpace,
        vocab: int,
        config: LanguageConfig | None = None,
        reference_width: int | None = None,
    ) -> None:
        config = config or LanguageConfig()
        check_language_space(space)
        longest = space.largest().number("context_length")
        stored = config.first_position + longest
        super().__init__(space, vocab, config, reference_width, stored, not config.tied_output)
        self.context_length = longest
        kinds = GENES.layer_attention(space, config.linear, longest)
        form = LayerForm(config.norm_first, config.activation)
        self._build_layers(GENES.widest_layers(space), kinds, form, causal=True)
        self.norm = ElasticLayerNorm(self.embed_dim) if config.has_final_norm else None

    # -- weights of one architecture -----------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> LanguageSubnet:
        """The weights of ``architecture``: slices of the supernet's, experts mixed by the routers.

        Raises:
            ArchitectureError: the architecture lies outside the space.
        """
        layers, width = self._select_layers(architecture), architecture.number("embed_dim")
        return LanguageSubnet(
            *self._select_tables(width),
            layers,
            None if self.norm is None else self.norm.select(width),
            architecture,
        )

    def static_state(self, architecture: Architecture) -> dict[str, Tensor]:
        """The state dict of the static network of ``architecture``: what ``select`` gives, copied, under the names of a
        ``LanguageNet`` built from ``SearchSpace.of(architecture)`` without experts."""
        subnet = selected(self, architecture)
        rest = named_tensors(subnet._replace(embedding=None, output=None))
        return copied((*self._tables_of(subnet).items(), *rest, ("reference_width", self.reference_width)))

    # -- computing -----------------------------------------------------------------------------------------------------

    def positions_at(self, first: int, last: int, features: int) -> Tensor:
        """The vectors (last - first, features) of those positions, the first token's being 0."""
        offset = self.config.first_position
        found: Tensor = self.positions(offset + last, features)
        return found[offset + first :]

    def _embed(self, tokens: Tensor, table: Tensor, positions: Tensor) -> Tensor:
        x = F.embedding(tokens, table, self.config.padding_idx) * self.embedding_scale(table)
        return x + positions.to(table.dtype)

    def features(self, subnet: LanguageSubnet, tokens: Tensor) -> Tensor:
        """``tokens`` (B, T), padded on the right if at all, to features before the output projection (B, T, C)."""
        table = subnet.embedding
        drop = self._dropouts(table.shape[1])
        x = self._embed(tokens, table, self.positions_at(0, tokens.shape[1], table.shape[1]))
        x = F.dropout(x, drop.residual) if drop.residual else x
        for layer, weights in zip(self.layers, subnet.layers, strict=False):
            x = layer(x, weights, None, drop)
        return self._normed(subnet, x)

    def _normed(self, subnet: LanguageSubnet, x: Tensor) -> Tensor:
        return x if subnet.norm is None else norm(x, subnet.norm)

    def forward(self, subnet: LanguageSubnet, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) after each of ``tokens`` (B, T), each position reading only itself and earlier ones."""
        return F.linear(self.features(subnet, tokens), subnet.output)

    def start(self, subnet: LanguageSubnet) -> LanguageCache:
        """A cache for decoding from the first position on."""
        return LanguageCache([None] * len(subnet.layers))

    def read(self, subnet: LanguageSubnet, tokens: Tensor) -> tuple[Tensor, LanguageCache]:
        """A prompt (B, T) without padding, all positions at once: features (B, C) of the last, and the cache after
        it."""
        width, length = subnet.embedding.shape[1], tokens.shape[1]
        x = self._embed(tokens, subnet.embedding, self.positions_at(0, length, width))
        cache = self.start(subnet)
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x, cache.past[index] = layer.read(x, weights)
        cache.length = length
        return self._normed(subnet, x[:, -1]), cache

    def step(self, subnet: LanguageSubnet, tokens: Tensor, cache: LanguageCache) -> Tensor:
        """Logits (B, V) after the next token (B,) of each row; the cache moves one position on."""
        return F.linear(self.step_features(subnet, tokens, cache), subnet.output)

    def step_features(self, subnet: LanguageSubnet, tokens: Tensor, cache: LanguageCache) -> Tensor:
        """Do what :meth:`step` does, before the output projection: (B, C)."""
        table = subnet.embedding
        position = self.positions_at(cache.length, cache.length + 1, table.shape[1])
        return self.step_embedded(subnet, self._embed(tokens[:, None], table, position), cache)

    def step_embedded(self, subnet: LanguageSubnet, x: Tensor, cache: LanguageCache) -> Tensor:
        """Do what :meth:`step_features` does, from the token's embedding with its position ``x`` (B, 1, C)."""
        for index, (layer, weights) in enumerate(zip(self.layers, subnet.layers, strict=False)):
            x, cache.past[index] = layer.step(x, weights, cache.past[index])
        cache.length += 1
        return self._normed(subnet, x[:, 0])


def length_limit(space: SearchSpace, config: LanguageConfig) -> int | None:
    """The longest sequence that networks of the space can read, by their attention or their positions; None: any."""
    if config.positions == "sinusoidal" and not GENES.bounded(space):
        return None
    return space.largest().number("context_length")
