"""Extraction of subnets as checkpoints of this package or of fairseq's models."""

from __future__ import annotations

import copy
import json
import math
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from torch import Tensor

from fairseq_ext.checkpoint import write_network
from fairseq_ext.compat import options_in
from fairseq_ext.elastic.mapping import language_weights, masked_lm_weights, translation_weights
from fairseq_ext.elastic.settings import ACTIVATIONS
from fairseq_ext.families import LANGUAGE, MASKED_LM, TRANSLATION, Family, family_of
from fairseq_ext.task import SupernetTaskConfig
from nas_core.errors import ConfigError
from nas_core.layers.torch_modes import evaluating
from nas_core.space import Architecture
from nas_core.space.bert import encoder_layers, joint_sizes, network_width
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of

TASK_OPTIONS = frozenset(field.name for field in fields(SupernetTaskConfig)) - {"_name"}
"""Task options used only in supernet training."""
_CRITERIA = {
    "fused_label_smoothed_cross_entropy": "label_smoothed_cross_entropy",
    "distilled_label_smoothed_cross_entropy": "label_smoothed_cross_entropy",
    "distilled_cross_entropy": "cross_entropy",
    "distilled_masked_lm": "masked_lm",
}
"""Criterion of this package -> fairseq's equivalent without a teacher."""
_SHARED_TABLES = {
    "share_decoder_input_output_embed": "decoder.output_projection.weight",
    "share_all_embeddings": "decoder.embed_tokens.weight",
    "tied": "encoder.lm_head.weight",
}
"""Setting of fairseq's model -> name of a weight that equals another weight."""


# -- fairseq's own models ----------------------------------------------------------------------------------------------


def _translation_mismatches(architecture: Architecture, config: Any) -> list[str]:
    reasons = []
    for side in ("encoder", "decoder"):
        for name in ("ffn_dim", "self_heads", "cross_heads"):
            if (gene := f"{side}.{name}") in architecture:
                reasons += _equality_reasons(gene, architecture.numbers(gene))
    heads = ("decoder.self_heads", "decoder.cross_heads")
    reasons += _equality_reasons(" and ".join(heads), [architecture.numbers(gene)[0] for gene in heads])
    for side in ("encoder", "decoder"):
        queries, width = qkv_dims(architecture, f"{side}.self_heads")[0], architecture.number(f"{side}.embed_dim")
        reasons += _width_reasons(f"{side} queries", queries, width)
    reads = [READ_LAYERS[int(option)] for option in architecture.numbers("decoder.arbitrary_cross")]
    if set(reads) != {1}:
        reasons.append(f"its decoder layers attend to {reads} encoder layers, in fairseq to one")
    for gene in ATTENTION_GENES:
        reasons += _softmax_reasons(gene, attention_of(architecture, gene))
    if config.relative_length:
        reasons.append("it has relative positions (--max-relative-length), in fairseq there are none")
    return reasons


def _stack_mismatches(architecture: Architecture, config: Any) -> list[str]:
    if joint_sizes(architecture):
        return ["it has linear maps between layers, in fairseq there are none"]
    layers = encoder_layers(architecture)
    return [
        *_equality_reasons("ffn_dim", [layer.ffn_dim for layer in layers]),
        *_equality_reasons("heads", [layer.heads for layer in layers]),
        *_width_reasons("queries", layers[0].qkv_dim, network_width(architecture)),
        *_softmax_reasons("attention", [layer.attention for layer in layers]),
    ]


def _language_mismatches(architecture: Architecture, config: Any) -> list[str]:
    reasons = _stack_mismatches(architecture, config)
    if config.has_final_norm and not config.norm_first:
        reasons.append("it has a layer norm after the last layer, in fairseq only with norms before sublayers")
    return reasons


def _masked_lm_mismatches(architecture: Architecture, config: Any) -> list[str]:
    reasons = _stack_mismatches(architecture, config)
    if config.positions != "learned" or config.first_position:
        reasons.append(f"its positions are {config.positions}, in fairseq they are learned")
    if config.embedding_scale not in (None, 1.0, math.sqrt(network_width(architecture))):
        reasons.append(f"its embeddings are scaled by {config.embedding_scale:g}, in fairseq by the root of the width")
    return reasons


def _equality_reasons(gene: str, values: Any) -> list[str]:
    return [f"{gene} is {', '.join(map(str, values))}, in fairseq all are equal"] if len(set(values)) > 1 else []


def _width_reasons(name: str, queries: int, width: int) -> list[str]:
    if queries == width:
        return []
    return [f"{name} are {queries} wide, channels {width}; in fairseq both are equal"]


def _softmax_reasons(gene: str, kinds: Any) -> list[str]:
    return [f"{gene} is {', '.join(kinds)}, in fairseq softmax"] if set(kinds) != {"softmax"} else []


def _translation_settings(net: Any, architecture: Architecture, weights: Any, args: Any, task: Any) -> dict[str, Any]:
    config, tables = net.config, [weights[f"{side}.embed_tokens.weight"] for side in ("encoder", "decoder")]
    source, target = config.stored_positions
    settings = {
        "share_all_embeddings": config.share_all_embeddings and tables[0].shape == tables[1].shape,
        "share_decoder_input_output_embed": config.share_all_embeddings or config.share_decoder_embeddings,
        "max_source_positions": int(source),
        "max_target_positions": int(target),
    }
    for side in ("encoder", "decoder"):
        sizes = [architecture.numbers(f"{side}.{gene}")[0] for gene in ("ffn_dim", "self_heads")]
        layers, width = architecture.number(f"{side}.layers"), architecture.number(f"{side}.embed_dim")
        settings |= {**_side(side, net, layers, width, *sizes), f"{side}_learned_pos": True}
    return settings


def _language_settings(net: Any, architecture: Architecture, weights: Any, args: Any, task: Any) -> dict[str, Any]:
    task["max_target_positions"] = net.context_length
    return {
        **_stack("decoder", net, architecture),
        "decoder_input_dim": network_width(architecture),
        "decoder_output_dim": network_width(architecture),
        "no_decoder_final_norm": not net.config.has_final_norm,
        "decoder_learned_pos": True,
        "share_decoder_input_output_embed": "decoder.output_projection.weight" not in weights,
        "add_bos_token": bool(task.get("add_bos_token")),
        "tokens_per_sample": task.get("tokens_per_sample"),
        "max_target_positions": net.context_length,
    }


def _masked_lm_settings(net: Any, architecture: Architecture, weights: Any, args: Any, task: Any) -> dict[str, Any]:
    config = net.config
    return {
        **_stack("encoder", net, architecture),
        "arch": "roberta",
        "layernorm_embedding": config.embedding_norm,
        "untie_weights_roberta": not config.share_embeddings,
        "no_scale_embedding": config.embedding_scale == 1.0,
        "pooler_activation_fn": _activation(config.pooler_activation),
        "pooler_dropout": config.pooler_dropout,
        "max_positions": int(args.max_positions),
        "load_checkpoint_heads": bool(args.load_checkpoint_heads),
    }


def _stack(side: str, net: Any, architecture: Architecture) -> dict[str, Any]:
    layers = encoder_layers(architecture)
    return _side(side, net, len(layers), network_width(architecture), layers[0].ffn_dim, layers[0].heads)


def _side(side: str, net: Any, layers: int, width: int, hidden: int, heads: int) -> dict[str, Any]:
    return {
        f"{side}_layers": layers,
        f"{side}_embed_dim": width,
        f"{side}_ffn_embed_dim": hidden,
        f"{side}_attention_heads": heads,
        f"{side}_normalize_before": net.config.norm_first,
    }


def _activation(name: str) -> str:
    return next(fairseq_name for fairseq_name, own_name in ACTIVATIONS.items() if own_name == name)


@dataclass(frozen=True)
class PlainModel:
    """Model of fairseq to which subnets can be extracted."""

    title: str
    """Plural name for messages."""
    name: str
    """fairseq's name of the model."""
    weights: Callable[[Any, Any], dict[str, Tensor]]
    """Function from a network and a subnet to fairseq's weights."""
    settings: Callable[..., dict[str, Any]]
    """Function that returns fairseq's model options."""
    mismatches: Callable[[Architecture, Any], list[str]]
    """Function that returns the features of an architecture that fairseq's model does not support."""


PLAIN_MODELS = {
    TRANSLATION.model: PlainModel(
        "transformers", "transformer", translation_weights, _translation_settings, _translation_mismatches
    ),
    LANGUAGE.model: PlainModel(
        "language models", "transformer_lm", language_weights, _language_settings, _language_mismatches
    ),
    MASKED_LM.model: PlainModel(
        "roberta networks", "roberta", masked_lm_weights, _masked_lm_settings, _masked_lm_mismatches
    ),
}
"""fairseq's name of a supernet -> model of fairseq for its subnets."""


# -- checkpoints -------------------------------------------------------------------------------------------------------


def write_subnet(state: dict[str, Any], weights: dict[str, Tensor], architecture: Architecture, path: Path) -> None:
    """Write a static subnet as a checkpoint for ``fairseq-generate`` and ``fairseq-train --finetune-from-model``."""
    settings = copy.deepcopy(state["cfg"])
    args: Namespace = settings["model"]
    family = family_of(args)
    same_size = f"{family.static}{args.arch.removeprefix('mos_transformer').removeprefix('hat_transformer')}"
    exists = family.static == "hat_transformer" and same_size in ARCH_MODEL_REGISTRY
    arch = same_size if exists else family.static
    vars(args).update(arch=arch, mos="none", subnet=None, subnet_json=json.dumps(architecture.to_dict()))
    vars(args).update(dict.fromkeys(family.orders))
    args.task = _plain_groups(settings, family, plain=False)
    write_network(state, settings, {f"net.{name}": tensor for name, tensor in weights.items()}, path)


def write_plain(state: dict[str, Any], model: Any, architecture: Architecture, path: Path) -> int:
    """Write a subnet as a checkpoint of fairseq's own model; return its number of parameters."""
    family, plain, net = model.family, PLAIN_MODELS[model.family.model], model.net
    check_plain(family, architecture, net.config)
    with evaluating(net), torch.no_grad():
        weights = plain_weights(family, net, net.select(architecture))
    groups = copy.deepcopy(state["cfg"])
    _plain_groups(groups, family, plain=True)
    config = net.config
    settings = plain.settings(net, architecture, weights, model.args, groups["task"])
    widths = [settings[name] for name in ("encoder_embed_dim", "decoder_embed_dim") if name in settings]
    references = net.reference_widths if len(widths) > 1 else [net.reference_width]
    share = max(width / int(reference) for width, reference in zip(widths, references, strict=True))
    groups["model"] = {
        "_name": plain.name,
        "activation_fn": _activation(config.activation),
        "dropout": config.dropout * share,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout * share,
        **settings,
    }
    write_network(state, groups, weights, path)
    tied = {**settings, "tied": not settings.get("untie_weights_roberta", True)}
    shared = {name for setting, name in _SHARED_TABLES.items() if tied.get(setting)}
    return sum(x.numel() for name, x in weights.items() if name not in shared and not name.endswith("version"))


def plain_weights(family: Family, net: Any, subnet: Any) -> dict[str, Tensor]:
    weights = PLAIN_MODELS[family.model].weights(net, subnet)
    return {name: tensor.detach().clone().contiguous() for name, tensor in weights.items()}


def check_plain(family: Family, architecture: Architecture, config: Any) -> None:
    plain = PLAIN_MODELS[family.model]
    reasons = plain.mismatches(architecture, config)
    for name in (config.activation, getattr(config, "pooler_activation", "tanh")):
        if name not in ACTIVATIONS.values():
            reasons.append(f"fairseq has no activation {name}")
    if reasons:
        raise ConfigError(f"fairseq's {plain.title} cannot represent the subnet: {reasons[0]}; leave --plain out")


def _plain_groups(groups: dict[str, Any], family: Family, plain: bool) -> str:
    """Remove options of supernets and teachers from ``groups``; return the name of the task."""
    name = str(groups["task"]["_name"])
    name = family.task if name == f"supernet_{family.task}" else name
    task = {option: value for option, value in groups["task"].items() if option not in TASK_OPTIONS}
    groups["task"] = {**task, "_name": name}
    # fairseq keeps the options of all groups in that of the model
    for options, key in ((options_in(groups.get("criterion")), "_name"), (options_in(groups["model"]), "criterion")):
        criterion = str(options.get(key))
        if criterion in _CRITERIA and (plain or criterion.startswith("distilled_")):
            options[key] = _CRITERIA[criterion]
        for option in [option for option in options if option.startswith(("teacher", "distill_"))]:
            del options[option]  # it may name a file that does not exist
    if plain:
        options_in(groups.get("common"))["user_dir"] = None
    return name
