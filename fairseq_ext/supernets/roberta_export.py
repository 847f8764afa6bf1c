"""fairseq's RoBERTa as one part of plain tensor operations for exporters.

fairseq's own forward branches on whether a batch has padding, which ``torch.export`` does not support. Weights and
values are the same.

Shapes: B batch, T length, H heads, D head dim, C channels, V vocabulary, K classes.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models.roberta import RobertaModel
from fairseq.models.transformer import TransformerEncoder
from fairseq.modules import LearnedPositionalEmbedding
from fairseq.modules.transformer_layer import TransformerEncoderLayerBase
from torch import Tensor, nn
from torch.nn import functional as F

from nas_core.errors import ConfigError
from nas_core.export.parts import OpenDim, Part, Value

_OFF = {
    "quant_noise_pq": 0,
    "quant_noise_scalar": 0,
    "spectral_norm_classification_head": False,
    "xformers_att_config": None,
    "mha_heads_to_keep": -1,
    "ffn_blocks_to_remove": -1,
}
"""Options that change the modules of a network, and their values that do not."""


class EncoderLayer(nn.Module):
    """A layer of ``x`` (B, T, C); ``padding`` (B, 1, 1, T) is True at keys without attention."""

    def __init__(self, layer: TransformerEncoderLayerBase) -> None:
        super().__init__()
        attention = layer.self_attn
        self.heads, self.scaling = int(attention.num_heads), float(attention.scaling)
        self.norm_first, self.activation = bool(layer.normalize_before), layer.activation_fn
        self.q, self.k, self.v = attention.q_proj, attention.k_proj, attention.v_proj
        self.out, self.attention_norm = attention.out_proj, layer.self_attn_layer_norm
        self.fc1, self.fc2, self.ffn_norm = layer.fc1, layer.fc2, layer.final_layer_norm

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self._attend(self.attention_norm(x), padding)
            return x + self.fc2(self.activation(self.fc1(self.ffn_norm(x))))
        x = self.attention_norm(x + self._attend(x, padding))
        return self.ffn_norm(x + self.fc2(self.activation(self.fc1(x))))  # type: ignore[no-any-return]

    def _attend(self, x: Tensor, padding: Tensor) -> Tensor:
        q, k, v = (proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for proj in (self.q, self.k, self.v))
        scores = (q * self.scaling) @ k.transpose(-1, -2)  # (B, H, T, T)
        scores = scores.masked_fill(padding, torch.finfo(scores.dtype).min)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class TokenHead(nn.Module):
    """Logits (B, T, V) of features (B, T, C); the ``table`` (V, C) is the embedding's unless weights are untied."""

    def __init__(self, head: nn.Module, tied: bool) -> None:
        super().__init__()
        self.dense, self.activation, self.norm = head.dense, head.activation_fn, head.layer_norm
        self.bias, self.weight = head.bias, None if tied else head.weight

    def forward(self, features: Tensor, table: Tensor) -> Tensor:
        x = self.norm(self.activation(self.dense(features)))
        return F.linear(x, table if self.weight is None else self.weight) + self.bias


class ClassHead(nn.Module):
    """Logits (B, K) of the first token of features (B, T, C)."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.dense, self.activation, self.out = head.dense, head.activation_fn, head.out_proj

    def forward(self, features: Tensor, table: Tensor) -> Tensor:
        return self.out(self.activation(self.dense(features[:, 0])))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Features (B, T, C) and the logits of a head for tokens (B, T) with padding anywhere."""

    def __init__(self, model: RobertaModel, head: str | None) -> None:
        super().__init__()
        encoder = model.encoder.sentence_encoder
        self.padding_idx, self.scale = int(encoder.padding_idx), float(encoder.embed_scale)
        self.embedding, self.positions = encoder.embed_tokens, encoder.embed_positions
        self.embedding_norm, self.norm = encoder.layernorm_embedding, encoder.layer_norm
        self.layers = nn.ModuleList(EncoderLayer(layer) for layer in encoder.layers)
        tied = model.encoder.lm_head.weight is encoder.embed_tokens.weight
        heads = model.classification_heads
        self.head = TokenHead(model.encoder.lm_head, tied) if head is None else ClassHead(heads[head])

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        padding = tokens == self.padding_idx
        positions = (~padding).long().cumsum(1) + self.padding_idx  # any at padding, which is set to 0 below
        x = self.scale * self.embedding(tokens) + F.embedding(positions, self.positions.weight)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        x = x.masked_fill(padding[..., None], 0)
        for layer in self.layers:
            x = layer(x, padding[:, None, None])
        if self.norm is not None:
            x = self.norm(x)
        return x, self.head(x, self.embedding.weight)


def check_supported(model: Any) -> None:
    """Check that :class:`Encoder` supports the network."""
    for option, off in _OFF.items():
        if (value := getattr(model.args, option, off)) not in (off, None):
            raise ConfigError(
                f"the network was trained with --{option.replace('_', '-')} {value}, which is not exported;"
                " expected one trained without it"
            )
    encoder = model.encoder.sentence_encoder
    if not len(getattr(encoder, "layers", ())):
        raise ConfigError("the network has no layers; expected --encoder-layers 1 or more")
    expected = [(model, RobertaModel), (encoder, TransformerEncoder), (encoder.embed_tokens, nn.Embedding)]
    expected += [(encoder.embed_positions, LearnedPositionalEmbedding)]
    expected += [(layer, TransformerEncoderLayerBase) for layer in encoder.layers]
    for module, kind in expected:
        if type(module) is not kind:
            raise ConfigError(
                f"the network has a {type(module).__name__} where fairseq's RoBERTa has a {kind.__name__};"
                " only --arch roberta* with learned positions is exported"
            )


def encoder_part(model: RobertaModel, head: str | None, longest: int) -> Part:
    """Return the part ``encoder`` of a network.

    Args:
        head: name of a classification head; None for the head of the masked language model.
    """
    module = Encoder(model, head).eval()
    vocabulary, channels = module.embedding.weight.shape
    tokens = Value("tokens", ("batch", "length"), "sentence", vocabulary, module.padding_idx)
    if head is None:
        logits = Value("logits", ("batch", "length", vocabulary))
    else:
        logits = Value("logits", ("batch", model.classification_heads[head].out_proj.out_features))
    outputs = (Value("features", ("batch", "length", channels)), logits)
    return Part("encoder", module, (tokens,), outputs, (OpenDim("batch"), OpenDim("length", 1, longest)))
