"""Command-line options of language models, what the names of ``--arch`` set, and what they mean."""

from __future__ import annotations

import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator
from typing import Any

from fairseq_ext.inherit import inherit
from fairseq_ext.options import (
    DROPOUTS,
    EXPERTS,
    SHARED_DEFAULTS,
    add_shared,
    experts_config,
    fill_in,
    named_architectures,
    resolve_space,
)
from nas_core.errors import ConfigError
from nas_core.layers.attention import LinearAttention
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


def add_arguments(parser: ArgumentParser) -> None:
    """Options that fairseq-train shows for these architectures; each has its default from the architecture. Those that
    fairseq's ``transformer_lm`` has too mean the same."""
    add = parser.add_argument
    add_shared(parser, "search-space")
    add("--context-length", type=int, metavar="N", help="longest sequence in tokens, and the scale of linear attention;"
        " part of the model; default: the space's")  # fmt: skip
    add_shared(parser, "subnet", *EXPERTS, "architecture-draw", *DROPOUTS, "activation-fn", "positions")
    first = "layer norm before each sublayer and after the last layer, not after each sublayer"
    add("--decoder-normalize-before", action=BooleanOptionalAction, default=None, help=first)
    tied = "one table for input and output"
    add("--share-decoder-input-output-embed", action=BooleanOptionalAction, default=None, help=tied)
    add_shared(parser, "linear-normalize", "linear-form", "tf32")


_DEFAULTS: dict[str, Any] = {
    **SHARED_DEFAULTS,
    "search_space": "language_base",
    "context_length": None,
    "mos": "neuron",
    "activation_fn": "relu",
    "positions": "sinusoidal",
    "decoder_normalize_before": True,
    "share_decoder_input_output_embed": True,
    "final_norm": None,
    "embedding_scale": None,
    "layer_order": None,
}


def _names() -> Iterator[tuple[str, dict[str, Any]]]:
    for size, own in (("", "base"), ("_small", "small")):
        yield f"mos_transformer_lm{size}", {"mos": "neuron", "search_space": f"language_{own}"}
        yield f"hat_transformer_lm{size}", {"mos": "none", "search_space": f"language_{own}"}
        yield f"mformer_language_{own}", {"mos": "none", "search_space": f"mformer_language_{own}"}
        yield f"mos_mformer_language_{own}", {"mos": "neuron", "search_space": f"mformer_language_{own}"}


def base_architecture(args: Namespace) -> None:
    """At most GPT-2 small's sizes, neuron-wise experts."""
    fill_in(args, _DEFAULTS)


def architectures() -> Iterator[tuple[str, Callable[[Namespace], None]]]:
    """Each name, and the function that fills in its options."""
    return named_architectures(_names(), _complete)


def _complete(args: Namespace, values: dict[str, Any]) -> None:
    inherit(args, INHERITED)
    fill_in(args, values)
    base_architecture(args)


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
        mos=experts_config(args, static),
        linear=LinearAttention(normalize=args.linear_normalize, form=args.linear_form),
    )
    return config.static() if static else config
