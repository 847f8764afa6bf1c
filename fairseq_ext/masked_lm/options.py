"""Command-line options of masked language models, what the names of ``--arch`` set, and what they mean."""

from __future__ import annotations

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
)
from nas_core.layers.attention import LinearAttention
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


def add_arguments(parser: ArgumentParser) -> None:
    """Options that fairseq-train shows for these architectures; each has its default from the architecture. Those that
    fairseq's ``roberta`` has too mean the same."""
    add = parser.add_argument
    functions = [*ACTIVATIONS, *ACTIVATION_NAMES]
    add_shared(parser, "search-space", "subnet", *EXPERTS, "architecture-draw", *DROPOUTS)
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
    add_shared(parser, "linear-normalize", "linear-form", "tf32")


_DEFAULTS: dict[str, Any] = {
    **SHARED_DEFAULTS,
    "search_space": "roberta_base",
    "mos": "neuron",
    "attention_dropout": 0.1,
    "pooler_dropout": 0.0,
    "activation_fn": "gelu",
    "pooler_activation_fn": "tanh",
    "encoder_normalize_before": False,
    "untie_weights_roberta": False,
    "load_checkpoint_heads": False,
    "embedding_scale": 1.0,
    "layer_order": None,
    "linear_max_length": None,
}
_BERT = {"mos_encoding": "layers"}
"""Routers read the width of each layer (Mixture-of-Supernets, appendix A.3.1)."""
_NAMES: dict[str, dict[str, Any]] = {
    "mos_roberta": {"mos": "neuron"},
    "hat_roberta": {"mos": "none"},
    "mos_roberta_small": {"mos": "neuron", "search_space": "roberta_small"},
    "hat_roberta_small": {"mos": "none", "search_space": "roberta_small"},
    "mformer_roberta_small": {"mos": "none", "search_space": "mformer_roberta_small"},
    "mos_bert": {"mos": "neuron", "search_space": "bert_base", **_BERT},
    "hat_bert": {"mos": "none", "search_space": "bert_base", **_BERT},
    "supershaper_bert": {"mos": "none", "search_space": "supershaper_bert", **_BERT},
    "mos_bert_small": {"mos": "neuron", "search_space": "bert_small", **_BERT},
    "hat_bert_small": {"mos": "none", "search_space": "bert_small", **_BERT},
    "supershaper_bert_small": {"mos": "none", "search_space": "supershaper_bert_small", **_BERT},
}


def base_architecture(args: Namespace) -> None:
    """RoBERTa's form, at most its base network, neuron-wise experts."""
    fill_in(args, _DEFAULTS)
    fill_in(args, {"layernorm_embedding": not args.encoder_normalize_before})


def architectures() -> Iterator[tuple[str, Callable[[Namespace], None]]]:
    """Each name, and the function that fills in its options."""
    return named_architectures(_NAMES.items(), _complete)


def _complete(args: Namespace, values: dict[str, Any]) -> None:
    inherit(args, INHERITED)
    fill_in(args, values)
    base_architecture(args)


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
        mos=experts_config(args, static),
        linear=LinearAttention(args.linear_max_length, args.linear_normalize, args.linear_form),
        linear_length=args.linear_max_length,
    )
    return config.static() if static else config
