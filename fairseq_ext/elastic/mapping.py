"""Conversion of weights between fairseq's transformers and networks of :mod:`nas_core.models`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor

from nas_core.errors import CheckpointError
from nas_core.layers.weights import named_tensors
from nas_core.supernet.elastic.kinds import with_kinds

_ENCODER, _HEAD = "encoder.sentence_encoder.", "encoder.lm_head."
_FIRST_POSITION = 2
"""Index of the first token in fairseq's table of positions."""

_FAIRSEQ_NAMES = {
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
"""Weight of a layer of ``nas_core`` -> weights of fairseq's layer that it concatenates."""


def _state(modules: Mapping[str, Any]) -> dict[str, Tensor]:
    named = ((f"{name}.{kind}", module, kind) for name, module in modules.items() for kind in ("weight", "bias"))
    return {name: getattr(module, kind) for name, module, kind in named if module is not None}


def _layers_state(prefix: str, layers: Any) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for index, layer in enumerate(layers):
        reads_encoder = getattr(layer, "encoder_attn", None) is not None
        for name, sources in _FAIRSEQ_NAMES.items():
            if reads_encoder or not name.startswith("cross_attn"):
                modules = [layer.get_submodule(source) for source in sources]
                for kind in ("weight", "bias"):
                    state[f"{prefix}{index}.{name}.{kind}"] = torch.cat([getattr(module, kind) for module in modules])
    return state


def _plain_layers(prefix: str, layers: Any) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for index, layer in enumerate(layers):
        for name, tensor in named_tensors(layer):
            owner, kind = name.rsplit(".", 1)
            targets = _FAIRSEQ_NAMES[owner]
            for target, chunk in zip(targets, tensor.chunk(len(targets)), strict=True):
                state[f"{prefix}{index}.{target}.{kind}"] = chunk
    return state


def positions_table(positions: Any, length: int, width: int) -> Tensor:
    """Return position embeddings (length, width) without those of padding; zeros if ``positions`` is None."""
    if positions is None:
        return torch.zeros(length, width)
    sinusoids = isinstance(positions, SinusoidalPositionalEmbedding)
    table = positions.weights if sinusoids else positions.weight
    first = positions.padding_idx + 1
    if first + length > len(table) and sinusoids:
        table = positions.get_embedding(first + length, width, positions.padding_idx)
    return table[first : first + length].detach().float()  # type: ignore[no-any-return]


def translation_state(model: Any, net: Any) -> dict[str, Tensor]:
    """Convert the weights of fairseq's ``transformer`` to a state dict of the supernet ``net``."""
    config = net.config
    state = {"reference_widths": net.reference_widths, "output.weight": model.decoder.output_projection.weight}
    sides = (("encoder", "source", model.encoder), ("decoder", "target", model.decoder))
    for (side, language, stack), max_length in zip(sides, config.stored_positions, strict=True):
        table = stack.embed_tokens.weight
        state |= _layers_state(f"{side}_layers.", stack.layers) | _state({f"{side}_norm": stack.layer_norm})
        state[f"{language}_positions.table"] = positions_table(stack.embed_positions, max_length, table.shape[1])
        state["embedding.weight" if config.share_all_embeddings else f"{language}_embedding.weight"] = table
    return _add_kinds(state, net)


def language_state(model: Any, net: Any) -> dict[str, Tensor]:
    """Convert the weights of fairseq's ``transformer_lm`` to a state dict of the supernet ``net``."""
    decoder, table = model.decoder, model.decoder.embed_tokens.weight
    state = {
        "reference_width": net.reference_width,
        "embedding.weight": table,
        "output.weight": decoder.output_projection.weight,
        "positions.table": positions_table(decoder.embed_positions, net.context_length, table.shape[1]),
    }
    return _add_kinds(state | _layers_state("layers.", decoder.layers) | _state({"norm": decoder.layer_norm}), net)


def _add_kinds(state: Mapping[str, Tensor], net: Any) -> dict[str, Tensor]:
    return with_kinds({name: tensor.detach() for name, tensor in state.items()}, net)


def masked_lm_state(model: Any, net: Any) -> dict[str, Tensor]:
    """Convert the weights of fairseq's ``roberta`` to a state dict of the supernet ``net``."""
    encoder, head = model.encoder.sentence_encoder, model.encoder.lm_head
    state = {
        "reference_width": net.reference_width,
        "embedding.weight": encoder.embed_tokens.weight,
        "positions.table": positions_table(encoder.embed_positions, len(net.positions.table), net.embed_dim),
        "head.bias": head.bias,
    }
    modules = {"embedding_norm": encoder.layernorm_embedding, "norm": encoder.layer_norm}
    modules |= {"head.dense": head.dense, "head.norm": head.layer_norm}
    for name, classifier in model.classification_heads.items():
        if classifier.dense.out_features > net.embed_dim:
            raise CheckpointError(
                f"classification head {name} has {classifier.dense.out_features} hidden units, more than the"
                f" {net.embed_dim} channels of the network, which is not supported; remove the head"
            )
        modules |= {f"classification_heads.{name}.{part}": getattr(classifier, part) for part in ("dense", "out_proj")}
    if not net.config.share_embeddings:
        state["output.weight"] = head.weight
    return _add_kinds(state | _layers_state("layers.", encoder.layers) | _state(modules), net)


def translation_weights(net: Any, subnet: Any) -> dict[str, Tensor]:
    """Convert the weights of a subnet to those of fairseq's ``transformer``."""
    # If the output shares a scaled embedding table, the last layer norm is divided by the scale.
    state: dict[str, Tensor] = {}
    scale = 1.0
    sides = (
        ("encoder", subnet.encoder_layers, subnet.encoder_norm, subnet.source_embedding),
        ("decoder", subnet.decoder_layers, subnet.decoder_norm, subnet.target_embedding),
    )
    for index, (side, layers, norm, table) in enumerate(sides):
        width = table.shape[1]
        scale = net.embedding_scale(index, table) / math.sqrt(width)
        positions = net.positions(index, net.config.stored_positions[index], width).to(table)
        state |= _plain_layers(f"{side}.layers.", layers) | _state({f"{side}.layer_norm": norm})
        state[f"{side}.embed_tokens.weight"] = table * scale
        state[f"{side}.embed_positions.weight"] = _add_padding(positions, _FIRST_POSITION)
        state[f"{side}.version"] = torch.tensor([3.0])
    tied = net.config.share_all_embeddings or net.config.share_decoder_embeddings
    state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"] if tied else subnet.output
    if tied:
        last = f"decoder.layers.{len(subnet.decoder_layers) - 1}.final_layer_norm"
        last = last if subnet.decoder_norm is None else "decoder.layer_norm"
        state |= {f"{last}.{kind}": state[f"{last}.{kind}"] / scale for kind in ("weight", "bias")}
    return state


def language_weights(net: Any, subnet: Any) -> dict[str, Tensor]:
    """Convert the weights of a subnet to those of fairseq's ``transformer_lm``."""
    # The output does not share a scaled embedding.
    width = subnet.embedding.shape[1]
    scale = net.embedding_scale(subnet.embedding) / math.sqrt(width)
    positions = net.positions_at(0, net.context_length, width).to(subnet.embedding)
    state = {
        "decoder.version": torch.tensor([3.0]),
        "decoder.embed_tokens.weight": subnet.embedding * scale,
        "decoder.embed_positions.weight": _add_padding(positions, _FIRST_POSITION),
    }
    if net.output is not None or scale != 1.0:
        state["decoder.output_projection.weight"] = subnet.output
    return state | _plain_layers("decoder.layers.", subnet.layers) | _state({"decoder.layer_norm": subnet.norm})


def masked_lm_weights(net: Any, subnet: Any) -> dict[str, Tensor]:
    """Convert the weights of a subnet with equal layers to those of fairseq's ``roberta``."""
    positions = net.positions.table[:, : subnet.embedding.shape[1]].detach()
    state = {
        f"{_ENCODER}version": torch.tensor([3.0]),
        f"{_ENCODER}embed_tokens.weight": subnet.embedding,
        f"{_ENCODER}embed_positions.weight": _add_padding(positions, net.config.padding_idx + 1),
        f"{_HEAD}weight": subnet.output,
        f"{_HEAD}bias": subnet.head.bias,
    }
    modules = {f"{_HEAD}dense": subnet.head.dense, f"{_HEAD}layer_norm": subnet.head.norm}
    modules |= {f"{_ENCODER}layernorm_embedding": subnet.embedding_norm, f"{_ENCODER}layer_norm": subnet.norm}
    modules |= {f"classification_heads.{name}": head for name, head in subnet.classification_heads.items()}
    for name, module in modules.items():
        state |= {f"{name}.{kind}": tensor for kind, tensor in named_tensors(module)}
    return state | _plain_layers(f"{_ENCODER}layers.", subnet.layers)


def _add_padding(positions: Tensor, rows: int) -> Tensor:
    return torch.cat([positions.new_zeros(rows, positions.shape[1]), positions])
