"""Command-line options of the models, and what they mean."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from nas_core.checks import Range
from nas_core.errors import CheckpointError
from nas_core.files import parse_json
from nas_core.layers import MoSConfig
from nas_core.layers.attention.cosformer import FORMS, NORMALIZE
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.mos import STARTS
from nas_core.layers.positions import POSITIONS
from nas_core.space import Architecture, SearchSpace, get_space, space_from_dict, space_to_dict
from nas_core.space.space import ENCODINGS

SHARED: dict[str, dict[str, Any]] = {
    "search-space": {"metavar": "NAME|FILE", "help": "a space of 'nas-ext lab space list' or a YAML file"},
    "subnet": {"metavar": "ARCH.json", "help": "train this one architecture of the space as a static network"},
    "mos": {"help": "experts of feed-forward layers: none, or mixed per layer, per neuron, .."},
    "mos-experts": {"type": int, "metavar": "M", "help": "experts per linear layer"},
    "mos-router-hidden": {"type": int, "metavar": "N", "help": "width of the routers' hidden layers"},
    "mos-router-layers": {"type": int, "metavar": "N", "help": "linear layers of a router"},
    "mos-router-dropout": {"type": float, "metavar": "P", "help": "dropout in the routers' hidden layers"},
    "mos-own-router": {
        "action": "store_true",
        "default": None,
        "help": "one router per linear where two could share one",
    },
    "mos-encoding": {
        "choices": ENCODINGS,
        "help": "what routers read of an architecture: layers averaged, each layer, or an indicator for each option",
    },
    "mos-start": {"choices": STARTS, "help": "experts begin independent, as equal copies, or as copies that are near"},
    "mos-rank": {
        "type": int,
        "metavar": "R",
        "help": "experts but the first differ from it by a matrix of rank R; 0: all are full",
    },
    "architecture-draw": {"choices": ("gene", "architecture"), "help": "draw each gene uniformly, or architectures"},
    "dropout": {"type": float, "metavar": "P", "help": "after embeddings and sublayers, scaled by the subnet's width"},
    "attention-dropout": {"type": float, "metavar": "P", "help": "on attention probabilities"},
    "activation-dropout": {"type": float, "metavar": "P", "help": "on hidden units of feed-forward layers"},
    "activation-fn": {"choices": ACTIVATIONS, "help": "function of the hidden units of feed-forward layers"},
    "positions": {"choices": POSITIONS[:2], "help": "computed sinusoids, or a table that is trained"},
    "linear-normalize": {"choices": NORMALIZE, "help": "linear attention divides by weights, or normalises each head"},
    "linear-form": {
        "choices": FORMS,
        "help": "how linear attention is computed, with the same results: auto chooses by device, precision and length",
    },
    "tf32": {
        "action": "store_true",
        "default": None,
        "help": "train with products of float32 numbers in TF32: faster on NVIDIA GPUs from Ampere on, with 10"
        " bits of mantissa; default: float32",
    },
}
"""Options that models of several families have, and what the parser is told of them."""

EXPERTS = tuple(name for name in SHARED if name.startswith("mos"))
DROPOUTS = ("dropout", "attention-dropout", "activation-dropout")
RANGES = {
    **dict.fromkeys(
        ("dropout", "attention_dropout", "activation_dropout", "pooler_dropout"), Range(0, 1, without=(1,))
    ),
    **dict.fromkeys(("max_positions", "max_source_positions", "max_target_positions", "context_length"), Range(1)),
    **dict.fromkeys(("linear_max_length", "linear_encoder_length"), Range(1)),
    "max_relative_length": Range(0),
}
"""Ranges of the models' numeric options; those of experts are checked with their other settings."""

SHARED_DEFAULTS: dict[str, Any] = {
    "mos_experts": 2,
    "mos_router_hidden": 128,
    "mos_router_layers": 2,
    "mos_router_dropout": 0.0,
    "mos_own_router": False,
    "mos_encoding": "summary",
    "mos_start": "independent",
    "mos_rank": 0,
    "subnet": None,
    "architecture_draw": "gene",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "linear_normalize": "denominator",
    "linear_form": "auto",
    "tf32": False,
}
"""What they are unless an architecture says otherwise."""


def resolve_space(args: Namespace) -> SearchSpace:
    """The space, written into ``args`` in full so that a checkpoint does not depend on a name or a file."""
    stored = getattr(args, "search_space_json", None) or vars(args).pop("inherited_space_json", None)
    space = space_in(stored) if stored else get_space(args.search_space)
    args.search_space_json = json.dumps(space_to_dict(space))
    return space


def space_in(stored: Any) -> SearchSpace:
    """The space that a checkpoint's options hold.

    Raises:
        CheckpointError: they hold none.
    """
    try:
        return space_from_dict(parse_json(stored), "checkpoint")
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"the checkpoint's search space is damaged ({error}); give another checkpoint") from None


def _architecture_in(stored: Any) -> Architecture:
    try:
        return Architecture(dict(parse_json(stored)))
    except (TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"the checkpoint's architecture is damaged ({error}); give another checkpoint") from None


def resolve_subnet(args: Namespace, space: SearchSpace) -> Architecture | None:
    """The one architecture of a static network, or None for a supernet; written into ``args`` like the space.

    Raises:
        ArchitectureError: the file is none, or its architecture lies outside the space.
    """
    stored = getattr(args, "subnet_json", None)
    if stored:
        return _architecture_in(stored)
    if not args.subnet:
        return None
    architecture = space.validate(Architecture.load(args.subnet))
    args.subnet_json = json.dumps(architecture.to_dict())
    return architecture


def experts_config(args: Namespace, static: bool) -> MoSConfig:
    """The experts that are asked for; a static network has none."""
    return MoSConfig(
        kind="none" if static else args.mos,
        experts=args.mos_experts,
        router_hidden=args.mos_router_hidden,
        router_layers=args.mos_router_layers,
        router_dropout=args.mos_router_dropout,
        share_router=False if args.mos_own_router else None,
        encoding=args.mos_encoding,
        start=args.mos_start,
        rank=args.mos_rank,
    )


def model_arguments(state: dict[str, Any], path: str) -> Namespace:
    """The model's options inside a loaded fairseq checkpoint.

    Raises:
        CheckpointError: the checkpoint was not written by this plug-in.
    """
    settings = state.get("cfg") or {}
    args = settings.get("model") if hasattr(settings, "get") else None
    if not isinstance(args, Namespace) or not hasattr(args, "search_space_json"):
        raise CheckpointError(
            f"{path} is no checkpoint of --arch mos_transformer*/hat_transformer*/mformer_*; give one of those"
        )
    return args
