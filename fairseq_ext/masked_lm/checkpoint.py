"""Subnets of masked language models as fairseq checkpoints: of this plug-in, and of fairseq's own ``roberta``."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairseq_ext.checkpoint import keep_layer_numbers, plain_task, write_network
from fairseq_ext.elastic.refusals import ACTIVATIONS
from fairseq_ext.masked_lm.mapping import plain_state
from fairseq_ext.taught import without_teacher
from nas_core.errors import ConfigError
from nas_core.models.masked_lm import MaskedLMConfig
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, joint_sizes, network_width

__all__ = ["STATIC", "check_plain", "write_plain", "write_subnet"]

STATIC = "hat_roberta"
"""The name of ``--arch`` of static networks; all options are stored, so that it adds none."""
_TASK, _SUPERNET_TASK = "masked_lm", "supernet_masked_lm"


def write_subnet(state: dict[str, Any], weights: dict[str, Tensor], architecture: Architecture, path: Path) -> None:
    """A checkpoint of the static subnet: the supernet's settings with this architecture and no experts, the collapsed
    weights, no optimizer state. ``fairseq-train --finetune-from-model`` trains on."""
    settings = _of_fairseq(state["cfg"])
    args = settings["model"]
    args.task = settings["task"]["_name"]
    vars(args).update(arch=STATIC, mos="none", subnet=None, subnet_json=json.dumps(architecture.to_dict()))
    keep_layer_numbers(args, architecture)
    write_network(state, settings, {f"net.{name}": tensor for name, tensor in weights.items()}, path)


def write_plain(state: dict[str, Any], model: Any, architecture: Architecture, path: Path) -> int:
    """A checkpoint of fairseq's own ``--arch roberta``, which needs nothing of this project; the number of its
    parameters.

    Args:
        state: content of the supernet's checkpoint.
        model: a :class:`fairseq_ext.masked_lm.model.MaskedLMModel`.

    Raises:
        ConfigError: see :func:`check_plain`.
    """
    net = model.net
    check_plain(architecture, net.config)
    training = net.training
    with torch.no_grad():
        weights = plain_state(net, net.eval().select(architecture))
    net.train(training)
    groups = {**_of_fairseq(state["cfg"]), "model": _settings(model.args, net, architecture)}
    if isinstance(groups.get("common"), dict):
        groups["common"]["user_dir"] = None
    write_network(state, groups, weights, path)
    left_out = ("encoder.sentence_encoder.version", "encoder.lm_head.weight" * net.config.share_embeddings)
    return sum(tensor.numel() for name, tensor in weights.items() if name not in left_out)


def check_plain(architecture: Architecture, config: MaskedLMConfig) -> None:
    """Whether fairseq's ``roberta`` has such a network.

    Raises:
        ConfigError: a size differs between layers, heads do not fill the width, or a part is none of fairseq's.
    """
    if joint_sizes(architecture):
        raise _not_plain("linear maps lie between its layers, in fairseq none")
    layers, width = encoder_layers(architecture), network_width(architecture)
    for gene in ("ffn_dim", "heads"):
        values = [getattr(layer, gene) for layer in layers]
        if len(set(values)) > 1:
            raise _not_plain(f"{gene} is {', '.join(map(str, values))}, in fairseq all are equal")
    if layers[0].qkv_dim != width:
        raise _not_plain(f"queries are {layers[0].qkv_dim} wide, channels {width}; in fairseq both are equal")
    kinds = [layer.attention for layer in layers]
    if set(kinds) != {"softmax"}:
        raise _not_plain(f"attention is {', '.join(kinds)}, in fairseq softmax")
    if config.positions != "learned" or config.first_position:
        raise _not_plain(f"its positions are {config.positions}, in fairseq learned")
    for activation in (config.activation, config.pooler_activation):
        if activation not in ACTIVATIONS.values():
            raise _not_plain(f"fairseq has no activation {activation}")
    if config.embedding_scale not in (None, 1.0, math.sqrt(width)):
        raise _not_plain("its embeddings are scaled as those of the largest network")


def _not_plain(reason: str) -> ConfigError:
    return ConfigError(f"this subnet is none of fairseq's own roberta networks: {reason}; leave out --plain")


def _settings(args: Any, net: Any, architecture: Architecture) -> dict[str, Any]:
    """Options of fairseq's ``roberta``, as plain data."""
    config, layers = net.config, encoder_layers(architecture)
    width = network_width(architecture)
    share = width / int(net.reference_width)
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    return {
        "_name": "roberta",
        "arch": "roberta",
        "encoder_layers": len(layers),
        "encoder_embed_dim": width,
        "encoder_ffn_embed_dim": layers[0].ffn_dim,
        "encoder_attention_heads": layers[0].heads,
        "encoder_normalize_before": config.norm_first,
        "layernorm_embedding": config.embedding_norm,
        "untie_weights_roberta": not config.share_embeddings,
        "no_scale_embedding": config.embedding_scale == 1.0,
        "activation_fn": names[config.activation],
        "pooler_activation_fn": names[config.pooler_activation],
        "dropout": config.dropout * share,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout * share,
        "pooler_dropout": config.pooler_dropout,
        "max_positions": int(args.max_positions),
        "load_checkpoint_heads": bool(args.load_checkpoint_heads),
    }


def _of_fairseq(groups: dict[str, Any]) -> dict[str, Any]:
    """A copy of the groups of settings, with the task that fairseq itself has and without a teacher."""
    groups = copy.deepcopy(groups)
    without_teacher(groups)
    if groups["task"].get("_name") == _SUPERNET_TASK:
        groups["task"] = plain_task(groups["task"], _TASK)
    return groups
