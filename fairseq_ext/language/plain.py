"""A subnet as a checkpoint of fairseq's own ``--arch transformer_lm``, which needs nothing of this project.

Shapes: C channels, V vocabulary.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_ext.checkpoint import plain_task, write_network
from fairseq_ext.elastic.mapping import plain_layer
from fairseq_ext.elastic.refusals import ACTIVATIONS
from fairseq_ext.language.checkpoint import TASK
from fairseq_ext.taught import without_teacher
from nas_core.errors import ConfigError
from nas_core.models.language import LanguageNet, LanguageSubnet
from nas_core.space import Architecture
from nas_core.space.stack import transformer_layers

__all__ = ["check_plain", "plain_state", "write_plain"]

_FIRST = 2
"""Position of the first token in fairseq: the numbers before are taken by padding."""


def write_plain(state: dict[str, Any], model: Any, architecture: Architecture, path: Path) -> int:
    """Write the checkpoint; the number of its parameters.

    Positions become tables that are trained further. Embeddings are multiplied by their scale, once, where it is not
    the root of their width; input and output then have a table each.

    Args:
        state: content of the supernet's checkpoint.
        model: a :class:`fairseq_ext.language.model.LanguageModel`.

    Raises:
        ConfigError: see :func:`check_plain`.
    """
    net: LanguageNet = model.net
    check_plain(architecture, net)
    training = net.training
    with torch.no_grad():
        subnet = net.eval().select(architecture)
        weights = plain_state(net, subnet)
    net.train(training)
    tied = "decoder.output_projection.weight" not in weights
    groups = _of_fairseq(copy.deepcopy(state["cfg"]), net.context_length)
    write_network(state, {**groups, "model": _settings(net, architecture, tied, groups["task"])}, weights, path)
    return sum(x.numel() for name, x in weights.items() if not name.endswith("version"))


def check_plain(architecture: Architecture, net: LanguageNet) -> None:
    """Whether fairseq's ``transformer_lm`` has such a network.

    Raises:
        ConfigError: a size differs between layers, heads do not fill the width, or a part is none of fairseq's.
    """
    layers = transformer_layers(architecture)
    for gene, values in (("ffn_dim", [each.ffn_dim for each in layers]), ("heads", [each.heads for each in layers])):
        if len(set(values)) > 1:
            raise _not_plain(f"{gene} is {', '.join(map(str, values))}, in fairseq all are equal")
    width, queries = architecture.number("embed_dim"), layers[0].qkv_dim
    if width != queries:
        raise _not_plain(f"queries are {queries} wide, its channels {width}; in fairseq both are equal")
    if set(kinds := [each.attention for each in layers]) != {"softmax"}:
        raise _not_plain(f"attention is {', '.join(kinds)}, in fairseq softmax")
    if net.config.activation not in ACTIVATIONS.values():
        raise _not_plain(f"fairseq has no activation {net.config.activation}")
    if net.config.has_final_norm and not net.config.norm_first:
        raise _not_plain("a layer norm follows the last layer, in fairseq only where norms stand before sublayers")


def _not_plain(reason: str) -> ConfigError:
    return ConfigError(f"this subnet is none of fairseq's own language models: {reason}; leave out --plain")


def plain_state(net: LanguageNet, subnet: LanguageSubnet) -> dict[str, Tensor]:
    """The weights of a subnet under fairseq's names; without an output projection where it is the embedding."""
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
    return {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}


def _settings(net: LanguageNet, architecture: Architecture, tied: bool, task: Mapping[str, Any]) -> dict[str, Any]:
    """Options of fairseq's ``transformer_lm``, as plain data."""
    width, first = architecture.number("embed_dim"), transformer_layers(architecture)[0]
    scale = width / int(net.reference_width)
    return {
        "_name": "transformer_lm",
        "activation_fn": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == net.config.activation),
        "dropout": net.config.dropout * scale,
        "attention_dropout": net.config.attention_dropout,
        "activation_dropout": net.config.activation_dropout * scale,
        "decoder_embed_dim": width,
        "decoder_input_dim": width,
        "decoder_output_dim": width,
        "decoder_ffn_embed_dim": first.ffn_dim,
        "decoder_layers": architecture.number("layers"),
        "decoder_attention_heads": first.heads,
        "decoder_normalize_before": net.config.norm_first,
        "no_decoder_final_norm": not net.config.has_final_norm,
        "decoder_learned_pos": True,
        "share_decoder_input_output_embed": tied,
        "add_bos_token": bool(task.get("add_bos_token")),
        "tokens_per_sample": task.get("tokens_per_sample"),
        "max_target_positions": net.context_length,
    }


def _of_fairseq(groups: dict[str, Any], context: int) -> dict[str, Any]:
    """Groups of settings without what this project added to them."""
    groups["task"] = {**plain_task(groups.get("task") or {}, TASK), "max_target_positions": context}
    without_teacher(groups, plain=True)
    if isinstance(groups.get("common"), dict):
        groups["common"]["user_dir"] = None
    return groups
