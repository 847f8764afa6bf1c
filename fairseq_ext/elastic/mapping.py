"""Weights of fairseq's transformers under the names of this project's networks.

Shapes: C channels, Q joint width of the queries.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor, nn

from nas_core.supernet.elastic.kinds import with_kinds

__all__ = ["layer_state", "positions_table", "translation_state"]


def layer_state(prefix: str, layer: Any) -> dict[str, Tensor]:
    """A layer of fairseq's encoder or decoder, with the joint projections of this project's layers.

    Args:
        prefix: of the names, with a dot at the end.
        layer: one of :mod:`fairseq.modules.transformer_layer`.
    """
    state: dict[str, Tensor] = {}
    modules = {"self_attn_norm": layer.self_attn_layer_norm, "ffn_norm": layer.final_layer_norm}
    modules |= {"ffn.fc1": layer.fc1, "ffn.fc2": layer.fc2, "self_attn.out_proj": layer.self_attn.out_proj}
    joined = {"self_attn.in_proj": _projections(layer.self_attn, "qkv")}
    if (across := getattr(layer, "encoder_attn", None)) is not None:
        modules |= {"cross_attn_norm": layer.encoder_attn_layer_norm, "cross_attn.out_proj": across.out_proj}
        joined |= {"cross_attn.q_proj": _projections(across, "q"), "cross_attn.kv_proj": _projections(across, "kv")}
    for name, module in modules.items():
        state |= {f"{prefix}{name}.{kind}": getattr(module, kind) for kind in ("weight", "bias")}
    for name, parts in joined.items():
        for kind in ("weight", "bias"):
            state[f"{prefix}{name}.{kind}"] = torch.cat([getattr(part, kind) for part in parts])
    return {name: tensor.detach() for name, tensor in state.items()}


def _projections(attention: Any, which: str) -> list[nn.Module]:
    return [getattr(attention, f"{letter}_proj") for letter in which]


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
