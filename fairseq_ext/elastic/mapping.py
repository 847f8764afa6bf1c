"""Mapping of weights between fairseq's transformers and this project's networks.

Shapes: C channels, V vocabulary.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor

from nas_core.errors import CheckpointError
from nas_core.layers.weights import NormWeights, named_tensors
from nas_core.supernet.elastic.kinds import with_kinds

_ENCODER, _HEAD = "encoder.sentence_encoder.", "encoder.lm_head."
_FIRST = 2
"""fairseq's position of the first token, after padding."""

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
"""Part of this project's layers -> parts of fairseq's layers that it concatenates."""


def layer_state(prefix: str, layer: Any) -> dict[str, Tensor]:
    """Convert the weights of fairseq's layer; the names start with ``prefix``."""
    state: dict[str, Tensor] = {}
    reads_encoder = getattr(layer, "encoder_attn", None) is not None
    for name, parts in _PARTS.items():
        if reads_encoder or not name.startswith("cross_attn"):
            modules = [layer.get_submodule(part) for part in parts]
            for kind in ("weight", "bias"):
                state[f"{prefix}{name}.{kind}"] = torch.cat([getattr(module, kind) for module in modules]).detach()
    return state


def plain_layer(prefix: str, layer: Any) -> dict[str, Tensor]:
    """Convert the weights of a subnet's layer to fairseq's; the names start with ``prefix``."""
    state: dict[str, Tensor] = {}
    for name, tensor in named_tensors(layer):
        owner, kind = name.rsplit(".", 1)
        parts = _PARTS[owner]
        for part, rows in zip(parts, tensor.chunk(len(parts)), strict=True):
            state[f"{prefix}{part}.{kind}"] = rows
    return state


def positions_table(positions: Any, length: int, width: int) -> Tensor:
    """Return position vectors (length, C) without fairseq's padding; zeros if there are none."""
    if positions is None:
        return torch.zeros(length, width)
    sinusoids = isinstance(positions, SinusoidalPositionalEmbedding)
    table = positions.weights if sinusoids else positions.weight
    first = positions.padding_idx + 1
    if first + length > len(table) and sinusoids:
        table = positions.get_embedding(first + length, width, positions.padding_idx)
    return table[first : first + length].detach().float()  # type: ignore[no-any-return]


def translation_state(model: Any, net: Any) -> dict[str, Tensor]:
    """Convert fairseq's ``transformer`` to the elastic network's state."""
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


def language_state(model: Any, net: Any) -> dict[str, Tensor]:
    """Convert fairseq's ``transformer_lm`` to the elastic network's state."""
    decoder, table = model.decoder, model.decoder.embed_tokens.weight
    state: dict[str, Tensor] = {"reference_width": net.reference_width, "embedding.weight": table}
    state["output.weight"] = decoder.output_projection.weight
    state["positions.table"] = positions_table(decoder.embed_positions, net.context_length, table.shape[1])
    for index, layer in enumerate(decoder.layers):
        state |= layer_state(f"layers.{index}.", layer)
    if decoder.layer_norm is not None:
        state |= {f"norm.{kind}": getattr(decoder.layer_norm, kind) for kind in ("weight", "bias")}
    return with_kinds(state, net)


def masked_lm_state(model: Any, net: Any) -> dict[str, Tensor]:
    """Convert fairseq's ``roberta`` to the elastic network's state."""
    encoder, head = model.encoder.sentence_encoder, model.encoder.lm_head
    state: dict[str, Tensor] = {"reference_width": net.reference_width, "embedding.weight": encoder.embed_tokens.weight}
    state["positions.table"] = positions_table(encoder.embed_positions, len(net.positions.table), net.embed_dim)
    for index, layer in enumerate(encoder.layers):
        state |= layer_state(f"layers.{index}.", layer)
    modules = {"embedding_norm": encoder.layernorm_embedding, "norm": encoder.layer_norm}
    modules |= {"head.dense": head.dense, "head.norm": head.layer_norm}
    for name, classifier in model.classification_heads.items():
        if classifier.dense.out_features > net.embed_dim:
            raise CheckpointError(
                f"classification head {name} has {classifier.dense.out_features} hidden units, more than the network's"
                f" {net.embed_dim} channels, which has no elastic form; remove the head"
            )
        modules |= {f"classification_heads.{name}.dense": classifier.dense}
        modules |= {f"classification_heads.{name}.out_proj": classifier.out_proj}
    for name, module in modules.items():
        if module is not None:
            state |= {f"{name}.{kind}": getattr(module, kind) for kind in ("weight", "bias")}
    state["head.bias"] = head.bias
    if not net.config.share_embeddings:
        state["output.weight"] = head.weight
    return with_kinds({name: tensor.detach() for name, tensor in state.items()}, net)


def translation_weights(net: Any, subnet: Any) -> dict[str, Tensor]:
    """Convert a subnet to the weights of fairseq's ``transformer``.

    If the output shares a scaled embedding table, the last layer norm is divided by the scale.
    """
    state: dict[str, Tensor] = {}
    factors = []
    sides = (
        ("encoder", subnet.encoder_layers, subnet.encoder_norm, subnet.source_embedding),
        ("decoder", subnet.decoder_layers, subnet.decoder_norm, subnet.target_embedding),
    )
    for number, (side, layers, norm, table) in enumerate(sides):
        for index, layer in enumerate(layers):
            state |= plain_layer(f"{side}.layers.{index}.", layer)
        width = table.shape[1]
        factors.append(net.embedding_scale(number, table) / math.sqrt(width))
        state[f"{side}.embed_tokens.weight"] = table * factors[-1]
        positions = net.positions(number, net.config.stored_positions[number], width).to(table)
        state[f"{side}.embed_positions.weight"] = torch.cat([positions.new_zeros(_FIRST, width), positions])
        state[f"{side}.version"] = torch.tensor([3.0])
        if isinstance(norm, NormWeights):
            state |= {f"{side}.layer_norm.weight": norm.weight, f"{side}.layer_norm.bias": norm.bias}
    tied = net.config.share_all_embeddings or net.config.share_decoder_embeddings
    state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"] if tied else subnet.output
    if tied:
        last = f"decoder.layers.{len(subnet.decoder_layers) - 1}.final_layer_norm"
        last = last if subnet.decoder_norm is None else "decoder.layer_norm"
        state |= {f"{last}.{kind}": state[f"{last}.{kind}"] / factors[1] for kind in ("weight", "bias")}
    return state


def language_weights(net: Any, subnet: Any) -> dict[str, Tensor]:
    """Convert a subnet to the weights of fairseq's ``transformer_lm``; the output does not share a scaled embedding."""
    state: dict[str, Tensor] = {"decoder.version": torch.tensor([3.0])}
    for index, layer in enumerate(subnet.layers):
        state |= plain_layer(f"decoder.layers.{index}.", layer)
    width = subnet.embedding.shape[1]
    factor = net.embedding_scale(subnet.embedding) / math.sqrt(width)
    state["decoder.embed_tokens.weight"] = subnet.embedding * factor
    positions = net.positions_at(0, net.context_length, width).to(subnet.embedding)
    state["decoder.embed_positions.weight"] = torch.cat([positions.new_zeros(_FIRST, width), positions])
    if subnet.norm is not None:
        state |= {f"decoder.layer_norm.{kind}": getattr(subnet.norm, kind) for kind in ("weight", "bias")}
    if net.output is not None or factor != 1.0:
        state["decoder.output_projection.weight"] = subnet.output
    return state


def masked_lm_weights(net: Any, subnet: Any) -> dict[str, Tensor]:
    """Convert a subnet with equal layers to the weights of fairseq's ``roberta``."""
    width, first = subnet.embedding.shape[1], net.config.padding_idx + 1
    positions = net.positions.table[:, :width].detach()
    state = {
        f"{_ENCODER}version": torch.tensor([3.0]),
        f"{_ENCODER}embed_tokens.weight": subnet.embedding,
        f"{_ENCODER}embed_positions.weight": torch.cat([positions.new_zeros(first, width), positions]),
        f"{_HEAD}weight": subnet.output,
        f"{_HEAD}bias": subnet.head.bias,
    }
    parts = {f"{_HEAD}dense": subnet.head.dense, f"{_HEAD}layer_norm": subnet.head.norm}
    parts |= {f"{_ENCODER}layernorm_embedding": subnet.embedding_norm, f"{_ENCODER}layer_norm": subnet.norm}
    parts |= {f"classification_heads.{name}": head for name, head in subnet.classification_heads.items()}
    for name, part in parts.items():
        state |= {f"{name}.{kind}": tensor for kind, tensor in named_tensors(part)}
    for index, layer in enumerate(subnet.layers):
        state |= plain_layer(f"{_ENCODER}layers.{index}.", layer)
    return state
