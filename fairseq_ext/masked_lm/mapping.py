"""Weights of fairseq's RoBERTa under the names of this project's network, and back.

Shapes: C channels, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_ext.elastic.mapping import layer_state, plain_layer, positions_table
from nas_core.errors import CheckpointError
from nas_core.layers.weights import named_tensors
from nas_core.models.masked_lm import MaskedLMNet, Subnet
from nas_core.supernet.elastic.kinds import with_kinds

__all__ = ["masked_lm_state", "plain_state"]

_ENCODER, _HEAD = "encoder.sentence_encoder.", "encoder.lm_head."


def masked_lm_state(model: Any, net: MaskedLMNet) -> dict[str, Tensor]:
    """The weights of fairseq's ``roberta`` as the state of a network whose largest subnet it is.

    Raises:
        CheckpointError: a classification head has more hidden units than the network has channels.
    """
    encoder, head = model.encoder.sentence_encoder, model.encoder.lm_head
    state: dict[str, Tensor] = {"reference_width": net.reference_width, "embedding.weight": encoder.embed_tokens.weight}
    state["positions.table"] = positions_table(encoder.embed_positions, len(net.positions.table), net.embed_dim)
    for index, layer in enumerate(encoder.layers):
        state |= layer_state(f"layers.{index}.", layer)
    modules = {"embedding_norm": encoder.layernorm_embedding, "norm": encoder.layer_norm}
    modules |= {"head.dense": head.dense, "head.norm": head.layer_norm}
    for name, found in model.classification_heads.items():
        if found.dense.out_features > net.embed_dim:
            raise CheckpointError(
                f"classification head {name} has {found.dense.out_features} hidden units, more than the network's"
                f" {net.embed_dim} channels, which has no elastic form; remove the head"
            )
        modules |= {f"classification_heads.{name}.dense": found.dense}
        modules |= {f"classification_heads.{name}.out_proj": found.out_proj}
    for name, module in modules.items():
        if module is not None:
            state |= {f"{name}.{kind}": getattr(module, kind) for kind in ("weight", "bias")}
    state["head.bias"] = head.bias
    if not net.config.share_embeddings:
        state["output.weight"] = head.weight
    return with_kinds({name: tensor.detach() for name, tensor in state.items()}, net)


def plain_state(net: MaskedLMNet, subnet: Subnet) -> dict[str, Tensor]:
    """The weights of a subnet whose layers are alike under the names of fairseq's ``roberta``."""
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
    return {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}
