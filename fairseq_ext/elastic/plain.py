"""A subnet as a checkpoint of fairseq's own ``--arch transformer``, which needs nothing of this project.

Shapes: C channels, Q joint width of the queries.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks.translation import TranslationConfig as TaskConfig
from torch import Tensor

from fairseq_ext.checkpoint import write_network
from fairseq_ext.elastic.mapping import plain_layer
from fairseq_ext.elastic.refusals import ACTIVATIONS
from fairseq_ext.taught import without_teacher
from nas_core.errors import ConfigError
from nas_core.layers.weights import NormWeights
from nas_core.models.translation.subnet import Subnet
from nas_core.space import Architecture
from nas_core.space.hat import READ_LAYERS, qkv_dims
from nas_core.space.mformer import ATTENTION_GENES, attention_of

__all__ = ["check_plain", "plain_state", "write_plain"]

_FIRST = 2
"""Position of the first token in fairseq: the numbers before are taken by padding."""
_PER_LAYER = ("ffn_dim", "self_heads", "cross_heads")


def write_plain(state: dict[str, Any], model: Any, architecture: Architecture, path: Path) -> int:
    """Write the checkpoint; the number of its parameters.

    Positions become tables that are trained further, of the sinusoids' channels that the subnet reads. Embeddings
    whose scale is not the root of their width are multiplied by what is missing, once, and the last layer norm before
    a shared output divided by it.

    Args:
        state: content of the supernet's checkpoint.
        model: a :class:`fairseq_ext.model.TranslationModel`.

    Raises:
        ConfigError: see :func:`check_plain`.
    """
    net = model.net
    check_plain(architecture, net.config)
    training = net.training
    with torch.no_grad():
        subnet = net.eval().select(architecture)
        weights = plain_state(net, subnet, (int(model.args.max_source_positions), int(model.args.max_target_positions)))
    net.train(training)
    groups = {**copy.deepcopy(state["cfg"]), "model": _settings(model.args, net, architecture)}
    write_network(state, _of_fairseq(groups), weights, path)
    shared = {"decoder.output_projection.weight"} if groups["model"]["share_decoder_input_output_embed"] else set()
    shared |= {"decoder.embed_tokens.weight"} if groups["model"]["share_all_embeddings"] else set()
    return sum(x.numel() for name, x in weights.items() if name not in shared and not name.endswith("version"))


def check_plain(architecture: Architecture, config: Any) -> None:
    """Whether fairseq's ``transformer`` has such a network.

    Raises:
        ConfigError: a size differs between layers, heads do not fill the width, or a part is none of fairseq's.
    """
    for side in ("encoder", "decoder"):
        for name in _PER_LAYER:
            if (gene := f"{side}.{name}") in architecture:
                _same(gene, architecture.numbers(gene))
    heads = {gene: architecture.numbers(gene)[0] for gene in ("decoder.self_heads", "decoder.cross_heads")}
    _same(" and ".join(heads), tuple(heads.values()))
    for gene in ("encoder.self_heads", "decoder.self_heads"):
        side, queries = gene.split(".")[0], qkv_dims(architecture, gene)[0]
        width = architecture.number(f"{side}.embed_dim")
        if queries != width:
            raise _not_plain(f"{side} queries are {queries} wide, its channels {width}; in fairseq both are equal")
    reads = [READ_LAYERS[int(option)] for option in architecture.numbers("decoder.arbitrary_cross")]
    if set(reads) != {1}:
        raise _not_plain(f"decoder layers read {reads} encoder layers, in fairseq one")
    for gene in ATTENTION_GENES:
        kinds = attention_of(architecture, gene)
        if set(kinds) != {"softmax"}:
            raise _not_plain(f"{gene} is {', '.join(kinds)}, in fairseq softmax")
    if config.relative_length:
        raise _not_plain("its attention tells distances apart (--max-relative-length)")
    if config.activation not in ACTIVATIONS.values():
        raise _not_plain(f"fairseq has no activation {config.activation}")


def _same(gene: str, values: Iterable[int]) -> None:
    if len(set(values)) > 1:
        raise _not_plain(f"{gene} is {', '.join(map(str, values))}, in fairseq all are equal")


def _not_plain(reason: str) -> ConfigError:
    return ConfigError(f"this subnet is none of fairseq's own transformers: {reason}; leave out --plain")


def _shares(net: Any, subnet: Subnet) -> tuple[bool, bool]:
    """Whether source and target, and whether target and output have one table."""
    config = net.config
    every = config.share_all_embeddings and subnet.source_embedding.shape == subnet.target_embedding.shape
    return every, config.share_all_embeddings or config.share_decoder_embeddings


def plain_state(net: Any, subnet: Subnet, longest: tuple[int, int]) -> dict[str, Tensor]:
    """The weights of a subnet under fairseq's names; ``longest`` source and target in tokens."""
    state: dict[str, Tensor] = {}
    for side, layers in (("encoder", subnet.encoder_layers), ("decoder", subnet.decoder_layers)):
        for index, layer in enumerate(layers):
            state |= plain_layer(f"{side}.layers.{index}.", layer)
    factors = []
    tables = (subnet.source_embedding, subnet.target_embedding)
    for number, (side, table) in enumerate(zip(("encoder", "decoder"), tables, strict=True)):
        width = table.shape[1]
        factors.append(net.embedding_scale(number, table) / math.sqrt(width))
        state[f"{side}.embed_tokens.weight"] = table * factors[-1]
        positions = net.positions(number, longest[number], width).to(table)
        state[f"{side}.embed_positions.weight"] = torch.cat([positions.new_zeros(_FIRST, width), positions])
        state[f"{side}.version"] = torch.tensor([3.0])
    for side, found in (("encoder", subnet.encoder_norm), ("decoder", subnet.decoder_norm)):
        if isinstance(found, NormWeights):
            state |= {f"{side}.layer_norm.weight": found.weight, f"{side}.layer_norm.bias": found.bias}
    tied = _shares(net, subnet)[1]
    state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"] if tied else subnet.output
    if tied:
        last = f"decoder.layers.{len(subnet.decoder_layers) - 1}.final_layer_norm"
        last = last if subnet.decoder_norm is None else "decoder.layer_norm"
        state |= {f"{last}.{kind}": state[f"{last}.{kind}"] / factors[1] for kind in ("weight", "bias")}
    return {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}


def _settings(args: Any, net: Any, architecture: Architecture) -> dict[str, Any]:
    """Options of fairseq's ``transformer``, as plain data."""
    every, tied = _shares(net, net.select(architecture))
    widths = [architecture.number(f"{side}.embed_dim") for side in ("encoder", "decoder")]
    scale = max(width / int(own) for width, own in zip(widths, net.reference_widths, strict=True))
    settings: dict[str, Any] = {
        "_name": "transformer",
        "activation_fn": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == net.config.activation),
        "dropout": net.config.dropout * scale,
        "attention_dropout": net.config.attention_dropout,
        "activation_dropout": net.config.activation_dropout * scale,
        "share_all_embeddings": every,
        "share_decoder_input_output_embed": tied,
        "max_source_positions": int(args.max_source_positions),
        "max_target_positions": int(args.max_target_positions),
    }
    for side, width in zip(("encoder", "decoder"), widths, strict=True):
        settings |= {
            f"{side}_embed_dim": width,
            f"{side}_layers": architecture.number(f"{side}.layers"),
            f"{side}_ffn_embed_dim": architecture.numbers(f"{side}.ffn_dim")[0],
            f"{side}_attention_heads": architecture.numbers(f"{side}.self_heads")[0],
            f"{side}_normalize_before": net.config.norm_first,
            f"{side}_learned_pos": True,
        }
    return settings


def _of_fairseq(groups: dict[str, Any]) -> dict[str, Any]:
    """Groups of settings without what this project added to them."""
    task = groups.get("task")
    if isinstance(task, dict):
        known = {field.name for field in dataclasses.fields(TaskConfig)}
        groups["task"] = {**{name: value for name, value in task.items() if name in known}, "_name": "translation"}
    without_teacher(groups, plain=True)
    if isinstance(groups.get("common"), dict):
        groups["common"]["user_dir"] = None
    return groups
