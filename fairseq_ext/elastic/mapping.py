"""Weights of fairseq's transformers under the names of this project's networks, and back.

Shapes: C channels, Q joint width of the queries.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor

from nas_core.layers.weights import named_tensors
from nas_core.supernet.elastic.kinds import with_kinds

__all__ = ["layer_state", "plain_layer", "positions_table", "translation_state"]

_PARTS = {
    "self_attn.in_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attn.out_proj": ("self_attn.out_proj",),
    "self_attn_norm": ("self_attn_layer_norm",),
    "cross_attn.q_proj": ("encoder_attn.q_proj",),
    "cross_attn.kv_proj": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attn.out_proj": ("encoder_attn.out_proj",),
    "cross_attn_norm": ("encoder_attn_layer_norm",),
    "ffn.fc1": ("fc1",),
    "ffn.fc2": ("fc2",),
    "ffn_norm": ("final_layer_norm",),
}
"""Part of one of this project's layers -> those of fairseq's that it joins, row by row."""


def layer_state(prefix: str, layer: Any) -> dict[str, Tensor]:
    """A layer of fairseq's encoder or decoder, with the joint projections of this project's layers.

    Args:
        prefix: of the names, with a dot at the end.
        layer: one of :mod:`fairseq.modules.transformer_layer`.
    """
    state: dict[str, Tensor] = {}
    reads_encoder = getattr(layer, "encoder_attn", None) is not None
    for name, parts in _PARTS.items():
        if reads_encoder or not name.startswith("cross_attn"):
            modules = [layer.get_submodule(part) for part in parts]
            for kind in ("weight", "bias"):
                state[f"{prefix}{name}.{kind}"] = torch.cat([getattr(module, kind) for module in modules]).detach()
    return state


def plain_layer(prefix: str, layer: Any) -> dict[str, Tensor]:
    """The way back: the weights of one of this project's layers under fairseq's names.

    Args:
        prefix: of the names, with a dot at the end.
        layer: of a subnet.
    """
    state: dict[str, Tensor] = {}
    for name, tensor in named_tensors(layer):
        owner, kind = name.rsplit(".", 1)
        parts = _PARTS[owner]
        for part, rows in zip(parts, tensor.chunk(len(parts)), strict=True):
            state[f"{prefix}{part}.{kind}"] = rows
    return state


def positions_table(positions: Any, length: int, width: int) -> Tensor:
    """The vectors (length, C) of the first positions, without those that fairseq keeps for padding; zeros for a network
    without positions."""
    if positions is None:
        return torch.zeros(length, width)
    sinusoids = isinstance(positions, SinusoidalPositionalEmbedding)
    table = positions.weights if sinusoids else positions.weight
    first = positions.padding_idx + 1
    if first + length > len(table) and sinusoids:
        table = positions.get_embedding(first + length, width, positions.padding_idx)
    found: Tensor = table[first : first + length].detach().float()
    return found


def translation_state(model: Any, net: Any) -> dict[str, Tensor]:
    """The weights of fairseq's ``transformer`` as the state of a :class:`nas_core.models.translation.TranslationNet`
    whose largest network it is."""
    encoder, decoder, config = model.encoder, model.decoder, net.config
    state: dict[str, Tensor] = {"reference_widths": net.reference_widths}
    for side, layers in (("encoder", encoder.layers), ("decoder", decoder.layers)):
        for index, layer in enumerate(layers):
            state |= layer_state(f"{side}_layers.{index}.", layer)
    for side, words, part in (("encoder", "source", encoder), ("decoder", "target", decoder)):
        if part.layer_norm is not None:
            state |= {f"{side}_norm.{kind}": getattr(part.layer_norm, kind) for kind in ("weight", "bias")}
        longest = config.stored_positions[("source", "target").index(words)]
        width = part.embed_tokens.embedding_dim
        state[f"{words}_positions.table"] = positions_table(part.embed_positions, longest, width)
        state["embedding.weight" if config.share_all_embeddings else f"{words}_embedding.weight"] = (
            part.embed_tokens.weight
        )
    state["output.weight"] = decoder.output_projection.weight
    return with_kinds(state, net)
