"""Command-line options of masked language models, what the names of ``--arch`` set, and what they mean."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator
from typing import Any

from fairseq_ext.inherit import inherit
from nas_core.layers import MoSConfig, mixtures
from nas_core.layers.attention import LinearAttention
from nas_core.layers.attention.cosformer import FORMS, NORMALIZE
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.models.masked_lm import MaskedLMConfig

__all__ = ["ACTIVATION_NAMES", "INHERITED", "add_arguments", "architectures", "base_architecture", "network_config"]

INHERITED = (
    "encoder_normalize_before",
    "layernorm_embedding",
    "untie_weights_roberta",
    "activation_fn",
    "pooler_activation_fn",
    "max_positions",
    "linear_max_length",
    "linear_normalize",
)
"""What a training that begins from a checkpoint takes from there unless it says otherwise."""

ACTIVATION_NAMES = {"gelu_accurate": "gelu_tanh", "gelu_fast": "gelu_tanh"}
"""fairseq's names of activations that have another one here."""

_DRAWS = ("gene", "architecture")


def add_arguments(parser: ArgumentParser) -> None:
    """Options that fairseq-train shows for these architectures; each has its default from the architecture. Those that
    fairseq's ``roberta`` has too mean the same."""
    add = parser.add_argument
    functions = [*ACTIVATIONS, *ACTIVATION_NAMES]
    add("--search-space", metavar="NAME|FILE", help="a space of 'nas-ext space list' or a YAML file")
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
    add("--pooler-dropout", type=float, metavar="P", help="in classification heads")
    add("--activation-fn", choices=functions, help="of feed-forward layers and of the head that predicts tokens")
    add("--pooler-activation-fn", choices=functions, help="of classification heads")
    add("--encoder-normalize-before", action="store_true", default=None, help="layer norm before each sublayer")
    add("--layernorm-embedding", action=BooleanOptionalAction, default=None, help="layer norm after the embedding")
    add("--untie-weights-roberta", action="store_true", default=None, help="tokens are predicted by a table of its own")
    add("--max-positions", type=int, metavar="N", help="longest sequence in tokens; default: the task's")
    add("--load-checkpoint-heads", action="store_true", default=None, help="also classification heads that the task"
        " does not have")  # fmt: skip
    add("--linear-max-length", type=int, metavar="M", help="scale and longest sequence of linear attention; default:"
        " the scale is each sequence's own length")  # fmt: skip
    add("--linear-normalize", choices=NORMALIZE, help="linear attention divides by weights, or normalises each head")
    add("--linear-form", choices=FORMS, help="how linear attention is computed, with the same results")
    add("--tf32", action="store_true", default=None, help="train with products of float32 numbers in TF32")


_DEFAULTS: dict[str, Any] = {
    "search_space": "roberta_base",
    "mos": "neuron",
    "mos_experts": 2,
    "mos_router_hidden": 128,
    "mos_router_layers": 2,
    "mos_router_dropout": 0.0,
    "mos_own_router": False,
    "subnet": None,
    "architecture_draw": "gene",
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "activation_dropout": 0.0,
    "pooler_dropout": 0.0,
    "activation_fn": "gelu",
    "pooler_activation_fn": "tanh",
    "encoder_normalize_before": False,
    "untie_weights_roberta": False,
    "load_checkpoint_heads": False,
    "embedding_scale": 1.0,
    "layer_order": None,
    "linear_max_length": None,
    "linear_normalize": "denominator",
    "linear_form": "auto",
    "tf32": False,
}
_NAMES: dict[str, dict[str, Any]] = {
    "mos_roberta": {"mos": "neuron"},
    "hat_roberta": {"mos": "none"},
    "mos_roberta_small": {"mos": "neuron", "search_space": "roberta_small"},
    "hat_roberta_small": {"mos": "none", "search_space": "roberta_small"},
    "mformer_roberta_small": {"mos": "none", "search_space": "mformer_roberta_small"},
}


def base_architecture(args: Namespace) -> None:
    """RoBERTa's form, at most its base network, neuron-wise experts."""
    _fill(args, _DEFAULTS)
    _fill(args, {"layernorm_embedding": not args.encoder_normalize_before})


def _fill(args: Namespace, defaults: dict[str, Any]) -> None:
    for name, value in defaults.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def architectures() -> Iterator[tuple[str, Callable[[Namespace], None]]]:
    """Each name, and the function that fills in its options."""
    for name, values in _NAMES.items():

        def fill(args: Namespace, values: dict[str, Any] = values) -> None:
            inherit(args, INHERITED)
            _fill(args, values)
            base_architecture(args)

        fill.__name__ = name
        yield name, fill


def network_config(args: Namespace, padding_idx: int, static: bool) -> MaskedLMConfig:
    """The settings that are not searched; a static network has no experts.

    Raises:
        ConfigError: an option this network does not have.
    """
    config = MaskedLMConfig(
        share_embeddings=not args.untie_weights_roberta,
        dropout=args.dropout,
        attention_dropout=args.attention_dropout,
        activation_dropout=args.activation_dropout,
        norm_first=args.encoder_normalize_before,
        embedding_norm=args.layernorm_embedding,
        activation=ACTIVATION_NAMES.get(args.activation_fn, args.activation_fn),
        stored_positions=args.max_positions,
        embedding_scale=args.embedding_scale,
        layer_order=tuple(args.layer_order or ()),
        padding_idx=padding_idx,
        pooler_activation=ACTIVATION_NAMES.get(args.pooler_activation_fn, args.pooler_activation_fn),
        pooler_dropout=args.pooler_dropout,
        mos=MoSConfig(
            kind="none" if static else args.mos,
            experts=args.mos_experts,
            router_hidden=args.mos_router_hidden,
            router_layers=args.mos_router_layers,
            router_dropout=args.mos_router_dropout,
            share_router=False if args.mos_own_router else None,
        ),
        linear=LinearAttention(args.linear_max_length, args.linear_normalize, args.linear_form),
        linear_length=args.linear_max_length,
    )
    return config.static() if static else config
