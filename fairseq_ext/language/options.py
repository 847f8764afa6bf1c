"""Command-line options of language models, what the names of ``--arch`` set, and what they mean."""

from __future__ import annotations

import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator
from typing import Any

from fairseq_ext.inherit import inherit
from fairseq_ext.options import resolve_space
from nas_core.errors import ConfigError
from nas_core.layers import MoSConfig, mixtures
from nas_core.layers.attention import LinearAttention
from nas_core.layers.attention.cosformer import FORMS, NORMALIZE
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.positions import POSITIONS
from nas_core.models.language import LanguageConfig
from nas_core.models.language.genes import check_language_space
from nas_core.space import SearchSpace, space_to_dict
from nas_core.space.language import with_context

__all__ = ["INHERITED", "add_arguments", "architectures", "base_architecture", "network_config", "resolve_language"]

INHERITED = (
    "share_decoder_input_output_embed",
    "decoder_normalize_before",
    "activation_fn",
    "positions",
    "linear_normalize",
)
"""What a training that begins from a checkpoint takes from there unless it says otherwise."""

_DRAWS = ("gene", "architecture")


def add_arguments(parser: ArgumentParser) -> None:
    """Options that fairseq-train shows for these architectures; each has its default from the architecture. Those that
    fairseq's ``transformer_lm`` has too mean the same."""
    add = parser.add_argument
    add("--search-space", metavar="NAME|FILE", help="a space of 'nas-ext space list' or a YAML file")
    add("--context-length", type=int, metavar="N", help="longest sequence in tokens, and the scale of linear attention;"
        " part of the model; default: the space's")  # fmt: skip
    add("--subnet", metavar="ARCH.json", help="train this one architecture of the space as a static network")
    add("--mos", choices=mixtures(), help="experts of feed-forward layers: none, or mixed per layer, per neuron, ..")
    add("--mos-experts", type=int, metavar="M", help="experts per linear layer")
    add("--mos-router-hidden", type=int, metavar="N", help="width of the routers' hidden layers")
    add("--mos-router-layers", type=int, metavar="N", help="linear layers of a router")
    add("--mos-router-dropout", type=float, metavar="P", help="dropout in the routers' hidden layers")
    add("--mos-own-router", action="store_true", default=None, help="one router per linear where two could share one")
    add("--architecture-draw", choices=_DRAWS, help="draw each gene uniformly, or architectures")
    add("--dropout", type=float, metavar="P", help="after embeddings and sublayers, scaled by the subnet's width")
    add("--attention-dropout", type=float, metavar="P", help="on attention probabilities")
    add("--activation-dropout", type=float, metavar="P", help="on hidden units of feed-forward layers")
    add("--activation-fn", choices=ACTIVATIONS, help="function of the hidden units of feed-forward layers")
    add("--positions", choices=POSITIONS[:2], help="computed sinusoids, or a table that is trained")
    first = "layer norm before each sublayer and after the last layer, not after each sublayer"
    add("--decoder-normalize-before", action=BooleanOptionalAction, default=None, help=first)
    tied = "one table for input and output"
    add("--share-decoder-input-output-embed", action=BooleanOptionalAction, default=None, help=tied)
    add("--linear-normalize", choices=NORMALIZE, help="linear attention divides by weights, or normalises each head")
    add("--linear-form", choices=FORMS, help="how linear attention is computed, with the same results")
    add("--tf32", action="store_true", default=None, help="train with products of float32 numbers in TF32")


_DEFAULTS: dict[str, Any] = {
    "search_space": "language_base",
    "context_length": None,
    "mos": "neuron",
    "mos_experts": 2,
    "mos_router_hidden": 128,
    "mos_router_layers": 2,
    "mos_router_dropout": 0.0,
    "mos_own_router": False,
    "subnet": None,
    "architecture_draw": "gene",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "activation_fn": "relu",
    "positions": "sinusoidal",
    "decoder_normalize_before": True,
    "share_decoder_input_output_embed": True,
    "final_norm": None,
    "embedding_scale": None,
    "layer_order": None,
    "linear_normalize": "denominator",
    "linear_form": "auto",
    "tf32": False,
}


def _names() -> Iterator[tuple[str, dict[str, Any]]]:
    for size, own in (("", "base"), ("_small", "small")):
        yield f"mos_transformer_lm{size}", {"mos": "neuron", "search_space": f"language_{own}"}
        yield f"hat_transformer_lm{size}", {"mos": "none", "search_space": f"language_{own}"}
        yield f"mformer_lm{size}", {"mos": "none", "search_space": f"mformer_language_{own}"}
        yield f"mos_mformer_lm{size}", {"mos": "neuron", "search_space": f"mformer_language_{own}"}


def base_architecture(args: Namespace) -> None:
    """At most GPT-2 small's sizes, neuron-wise experts."""
    _fill(args, _DEFAULTS)


def _fill(args: Namespace, defaults: dict[str, Any]) -> None:
    for name, value in defaults.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def architectures() -> Iterator[tuple[str, Callable[[Namespace], None]]]:
    """Each name, and the function that fills in its options."""
    for name, values in _names():

        def fill(args: Namespace, values: dict[str, Any] = values) -> None:
            inherit(args, INHERITED)
            _fill(args, values)
            base_architecture(args)

        fill.__name__ = name
        yield name, fill


def resolve_language(args: Namespace) -> SearchSpace:
    """The space with the context that is asked for, written into ``args`` in full so that a checkpoint does not depend
    on a name or a file.

    Raises:
        SpaceError: it is no space of language models. ConfigError: training sequences are longer than its context.
    """
    known = hasattr(args, "search_space_json")
    space = resolve_space(args)
    check_language_space(space)
    if known:
        return space
    if args.context_length is not None:
        if args.context_length < 1:
            raise ConfigError(f"--context-length is {args.context_length}; expected at least 1")
        space = with_context(space, args.context_length)
        args.search_space_json = json.dumps(space_to_dict(space))
    context, tokens = space.largest().number("context_length"), getattr(args, "tokens_per_sample", None)
    if tokens and int(tokens) > context:
        raise ConfigError(
            f"--tokens-per-sample {tokens} is more than this network reads, {context} tokens (context_length of space"
            f" {space.name}); give --context-length {tokens}, or shorter sequences"
        )
    return space


def network_config(args: Namespace, padding_idx: int, static: bool) -> LanguageConfig:
    """The settings that are not searched; a static network has no experts.

    Raises:
        ConfigError: an option this network does not have.
    """
    config = LanguageConfig(
        tied_output=args.share_decoder_input_output_embed,
        dropout=args.dropout,
        attention_dropout=args.attention_dropout,
        activation_dropout=args.activation_dropout,
        norm_first=args.decoder_normalize_before,
        final_norm=args.final_norm,
        activation=args.activation_fn,
        positions=args.positions,
        embedding_scale=args.embedding_scale,
        layer_order=tuple(args.layer_order or ()),
        padding_idx=padding_idx,
        mos=MoSConfig(
            kind="none" if static else args.mos,
            experts=args.mos_experts,
            router_hidden=args.mos_router_hidden,
            router_layers=args.mos_router_layers,
            router_dropout=args.mos_router_dropout,
            share_router=False if args.mos_own_router else None,
        ),
        linear=LinearAttention(normalize=args.linear_normalize, form=args.linear_form),
    )
    return config.static() if static else config
