"""Model families of this plug-in: options, defaults and names of ``--arch``."""

from __future__ import annotations

import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairseq.models import ARCH_MODEL_NAME_REGISTRY

from fairseq_ext.inherit import inherit
from nas_core.checks import Range
from nas_core.errors import ConfigError
from nas_core.layers import MoSConfig
from nas_core.layers.attention import LinearAttention
from nas_core.layers.attention.cosformer.common import NORMALIZE
from nas_core.layers.attention.cosformer.forms import FORMS
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.mos import EXPERT_INITS, mixtures
from nas_core.layers.positions import POSITIONS
from nas_core.models.language import LanguageConfig
from nas_core.models.masked_lm import MaskedLMConfig
from nas_core.models.translation.net import TranslationConfig
from nas_core.space.mformer import found_translation
from nas_core.space.space import ENCODINGS
from nas_core.supernet.sampling import DRAWS, EXTREMES

SHARED: dict[str, dict[str, Any]] = {
    "search-space": {"metavar": "NAME|FILE", "help": "a space of 'nas-ext lab space list' or a YAML file"},
    "subnet": {"metavar": "ARCH.json", "help": "train this one architecture of the space as a static network"},
    "mos": {"help": "experts of feed-forward layers: none, or mixed per layer, per neuron, .."},
    "mos-experts": {"type": int, "metavar": "M", "help": "experts per linear layer"},
    "mos-router-hidden": {"type": int, "metavar": "N", "help": "width of the routers' hidden layers"},
    "mos-router-layers": {"type": int, "metavar": "N", "help": "linear layers of a router"},
    "mos-router-dropout": {"type": float, "metavar": "P", "help": "dropout in the routers' hidden layers"},
    "mos-router-temperature": {
        "type": float,
        "metavar": "T",
        "help": "divisor of a router's logits; less makes mixtures differ more",
    },
    "mos-own-router": {
        "action": "store_true",
        "default": None,
        "help": "one router per linear where two could share one",
    },
    "mos-encoding": {
        "choices": ENCODINGS,
        "help": "input of routers: genes averaged over layers (centred: -1 to 1), genes of each layer, or indicators",
    },
    "mos-start": {
        "choices": EXPERT_INITS,
        "help": "initialise experts independently, as equal or as near copies",
    },
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
        "help": "algorithm of linear attention, with the same results: auto chooses by device, precision and length",
    },
    "tf32": {
        "action": "store_true",
        "default": None,
        "help": "train with products of float32 numbers in TF32: faster on NVIDIA GPUs from Ampere on, with 10"
        " bits of mantissa; default: float32",
    },
}
"""Options of several families and their argparse arguments."""

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

SHARED_DEFAULTS: dict[str, Any] = {
    "mos_experts": 2,
    "mos_router_hidden": 128,
    "mos_router_layers": 2,
    "mos_router_dropout": 0.0,
    "mos_router_temperature": 1.0,
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

ACTIVATION_NAMES = {"gelu_accurate": "gelu_tanh", "gelu_fast": "gelu_tanh"}
"""fairseq's activation name -> this project's name."""

_FLAG: dict[str, Any] = {"action": "store_true", "default": None}
_SWITCH: dict[str, Any] = {"action": BooleanOptionalAction, "default": None}


@dataclass(frozen=True)
class Family:
    """A family of models; the name of ``--arch`` sets options that the command omits."""

    model: str
    """fairseq's registered name of the supernets."""
    static: str
    """``--arch`` of a static network, or of a supernet without experts."""
    task: str
    config: type[Any]
    settings: Callable[[Namespace], Mapping[str, Any]]
    """Function that returns this family's own settings."""
    options: Mapping[str, Mapping[str, Any]]
    """Options in help order; their argparse arguments extend :data:`SHARED`."""
    defaults: Mapping[str, Any]
    """Default values, or functions of the other options."""
    architectures: Mapping[str, Mapping[str, Any]]
    """Names of ``--arch`` and their differences from the defaults."""
    inherited: tuple[str, ...]
    """Options inherited from an initial checkpoint unless the command sets them."""
    sides: tuple[str, ...] = ("",)
    """Sides of the network; one empty name for a single side."""
    complete: Callable[[Namespace, dict[str, Any]], dict[str, Any]] = field(default=lambda args, values: values)
    """Function that adapts an architecture's values to the command's options."""

    @property
    def orders(self) -> tuple[str, ...]:
        """Options with the order in which layers are dropped."""
        return tuple(f"{side or 'layer'}_order" for side in self.sides)

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name, settings in self.options.items():
            choices = {"choices": mixtures()} if name == "mos" else {}  # routers are registered also after this import
            parser.add_argument(f"--{name}", **{**SHARED.get(name, {}), **settings, **choices})

    def fill_in(self, args: Namespace, values: Mapping[str, Any] | None = None) -> None:
        """Set missing options to these values, else to the defaults."""
        for name, value in {**self.defaults, **(values or {})}.items():
            if getattr(args, name, None) is None:
                setattr(args, name, value(args) if callable(value) else value)

    def named_architectures(self) -> Iterator[tuple[str, Callable[[Namespace], None]]]:
        """Yield each name of ``--arch`` and the function that fills in its options."""
        for name, values in self.architectures.items():

            def fill(args: Namespace, values: Mapping[str, Any] = values) -> None:
                inherit(args, self.inherited)
                self.fill_in(args, self.complete(args, dict(values)))

            fill.__name__ = name
            yield name, fill

    def network_config(self, args: Namespace, padding_idx: int, static: bool) -> Any:
        """Return the settings that are not searched; a static network has no experts."""
        experts = MoSConfig(
            kind="none" if static else args.mos,
            experts=args.mos_experts,
            router_hidden=args.mos_router_hidden,
            router_layers=args.mos_router_layers,
            router_dropout=args.mos_router_dropout,
            router_temperature=args.mos_router_temperature,
            share_router=False if args.mos_own_router else None,
            encoding=args.mos_encoding,
            start=args.mos_start,
            rank=args.mos_rank,
        )
        config = self.config(
            dropout=args.dropout,
            attention_dropout=args.attention_dropout,
            activation_dropout=args.activation_dropout,
            activation=ACTIVATION_NAMES.get(args.activation_fn, args.activation_fn),
            padding_idx=padding_idx,
            mos=experts,
            linear=LinearAttention(getattr(args, "linear_max_length", None), args.linear_normalize, args.linear_form),
            **{order: tuple(getattr(args, order) or ()) for order in self.orders},
            **self.settings(args),
        )
        return config.static() if static else config


def _shown(*names: str) -> dict[str, Mapping[str, Any]]:
    return {name: {} for name in names}


# -- translation -------------------------------------------------------------------------------------------------------


def _translation_settings(args: Namespace) -> dict[str, Any]:
    if str(getattr(args, "left_pad_target", False)).lower() in ("true", "1", "y", "yes"):
        raise ConfigError("--left-pad-target is set; this decoder expects padding on the right of the target, drop it")
    scale = args.embedding_scale
    return {
        "share_all_embeddings": args.share_all_embeddings,
        "share_decoder_embeddings": args.share_decoder_input_output_embed,
        "norm_first": args.normalize_before,
        "positions": args.positions,
        "stored_positions": (args.max_source_positions, args.max_target_positions),
        "embedding_scale": None if scale is None else (float(scale[0]), float(scale[1])),
        "linear_encoder_length": args.linear_encoder_length,
        "relative_length": args.max_relative_length,
    }


def _complete_translation(args: Namespace, values: dict[str, Any]) -> dict[str, Any]:
    if getattr(args, "share_decoder_input_output_embed", None):
        values.pop("share_all_embeddings", None)
    preset = values.pop("found", None)
    same_space = getattr(args, "search_space", None) in (None, values["search_space"])
    if preset and same_space and not getattr(args, "subnet", None) and not getattr(args, "subnet_json", None):
        args.subnet_json = json.dumps(found_translation(preset).to_dict())
    return values


_HAT: dict[str, dict[str, Any]] = {
    "": {"search_space": "hat_wmt14_en_de"},
    "_wmt_en_de": {
        "search_space": "hat_wmt14_en_de",
        "dropout": 0.3,
        "attention_dropout": 0.1,
        "share_all_embeddings": True,
        "extremes": "hat",
    },
    "_iwslt_de_en": {"search_space": "hat_iwslt14_de_en", "dropout": 0.375, "extremes": "hat"},
    "_small": {"search_space": "hat_small", "dropout": 0.1},
}
"""``_wmt_en_de`` and ``_iwslt_de_en`` use these tasks' settings in HAT's and Mixture-of-Supernets' code (dropout,
shared embeddings, smallest and largest subnet). The others share no embeddings by default."""
_POSITIONS = {"max_source_positions": 512, "max_target_positions": 512}
_WMT = {"dropout": 0.1, "activation_dropout": 0.1, "max_relative_length": 8, **_POSITIONS}
_MFORMER: dict[str, dict[str, Any]] = {
    "mformer_wmt14_en_de": {"search_space": "mformer_wmt14_en_de", **_WMT},
    "cosformer_wmt14_en_de": {"search_space": "cosformer_wmt14_en_de", **_WMT},
    "mformer_translation_small": {"search_space": "mformer_translation_small", **_POSITIONS},
    "mformer_found_wmt14_en_de": {"search_space": "mformer_wmt14_en_de", "found": "mformer", **_WMT},
    "cosformer_found_wmt14_en_de": {"search_space": "cosformer_wmt14_en_de", "found": "cosformer", **_WMT},
    "transformer_found_wmt14_en_de": {"search_space": "mformer_wmt14_en_de", "found": "transformer", **_WMT},
}

TRANSLATION = Family(
    model="mos_transformer",
    static="hat_transformer",
    task="translation",
    config=TranslationConfig,
    settings=_translation_settings,
    sides=("encoder", "decoder"),
    complete=_complete_translation,
    options={
        **_shown("search-space", "subnet", *EXPERTS),
        "architecture-draw": {
            "choices": DRAWS,
            "help": "draw each gene uniformly, or architectures, or HAT's random stream",
        },
        "extremes": {
            "choices": EXTREMES,
            "help": "smallest and largest subnet of sandwich sampling and of validation: of the space, whose decoder"
            " layers read one and three encoder layers, or as in HAT's and MoS's code, which read two in both",
        },
        **_shown(*DROPOUTS, "activation-fn", "positions"),
        "normalize-before": {**_FLAG, "help": "layer norm before each sublayer, not after it"},
        "share-all-embeddings": {
            **_SWITCH,
            "help": "one table for source, target and output; needs a joined dictionary",
        },
        "share-decoder-input-output-embed": {**_FLAG, "help": "one table for target and output"},
        "max-relative-length": {
            "type": int,
            "metavar": "R",
            "help": "softmax self-attention tells distances up to R apart",
        },
        "linear-max-length": {
            "type": int,
            "metavar": "M",
            "help": "scale and longest sentence of linear attention in the decoder, part of the model; default: the"
            " longest training sentence, rounded up. In the encoder the scale is each sentence's own length",
        },
        "linear-encoder-length": {
            "type": int,
            "metavar": "M",
            "help": "one scale for the encoder's linear attention instead",
        },
        **_shown("linear-normalize", "linear-form"),
        "max-source-positions": {"type": int, "metavar": "N", "help": "longest source in tokens"},
        "max-target-positions": {"type": int, "metavar": "N", "help": "longest target in tokens"},
        **_shown("tf32"),
    },
    defaults={
        **SHARED_DEFAULTS,
        "search_space": "hat_wmt14_en_de",
        "mos": "neuron",
        "extremes": "space",
        "normalize_before": False,
        "activation_fn": "relu",
        "positions": "sinusoidal",
        "embedding_scale": None,
        "encoder_order": None,
        "decoder_order": None,
        "share_all_embeddings": False,
        "share_decoder_input_output_embed": False,
        "max_relative_length": 0,
        "linear_max_length": None,
        "linear_encoder_length": None,
        "max_source_positions": 1024,
        "max_target_positions": 1024,
    },
    architectures={
        **{f"mos_transformer{size}": values for size, values in _HAT.items()},
        **{f"hat_transformer{size}": {"mos": "none", **values} for size, values in _HAT.items()},
        **{name: {"mos": "none", **values} for name, values in _MFORMER.items()},
        **{f"mos_{name}": _MFORMER[name] for name in ("mformer_wmt14_en_de", "mformer_translation_small")},
    },
    inherited=(
        "share_all_embeddings",
        "share_decoder_input_output_embed",
        "normalize_before",
        "activation_fn",
        "positions",
        "max_relative_length",
        "linear_max_length",
        "linear_encoder_length",
        "linear_normalize",
        "max_source_positions",
        "max_target_positions",
    ),
)


# -- language models ---------------------------------------------------------------------------------------------------

LANGUAGE = Family(
    model="mos_transformer_lm",
    static="hat_transformer_lm",
    task="language_modeling",
    config=LanguageConfig,
    settings=lambda args: {
        "tied_output": args.share_decoder_input_output_embed,
        "norm_first": args.decoder_normalize_before,
        "final_norm": args.final_norm,
        "positions": args.positions,
        "embedding_scale": args.embedding_scale,
    },
    options={
        **_shown("search-space"),
        "context-length": {
            "type": int,
            "metavar": "N",
            "help": "longest sequence in tokens, and the scale of linear attention; part of the model; default: the"
            " space's",
        },
        **_shown("subnet", *EXPERTS, "architecture-draw", *DROPOUTS, "activation-fn", "positions"),
        "decoder-normalize-before": {
            **_SWITCH,
            "help": "layer norm before each sublayer and after the last layer, not after each sublayer",
        },
        "share-decoder-input-output-embed": {**_SWITCH, "help": "one table for input and output"},
        **_shown("linear-normalize", "linear-form", "tf32"),
    },
    defaults={
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
    },
    architectures={
        name: {"mos": mos, "search_space": space}
        for size, suffix in (("base", ""), ("small", "_small"))
        for name, mos, space in (
            (f"mos_transformer_lm{suffix}", "neuron", f"language_{size}"),
            (f"hat_transformer_lm{suffix}", "none", f"language_{size}"),
            (f"mformer_language_{size}", "none", f"mformer_language_{size}"),
            (f"mos_mformer_language_{size}", "neuron", f"mformer_language_{size}"),
        )
    },
    inherited=(
        "share_decoder_input_output_embed",
        "decoder_normalize_before",
        "activation_fn",
        "positions",
        "linear_normalize",
    ),
)


# -- masked language models --------------------------------------------------------------------------------------------

_FUNCTIONS = [*ACTIVATIONS, *ACTIVATION_NAMES]
_BERT = {"mos_encoding": "layers"}
"""Routers read the width of each layer (Mixture-of-Supernets, appendix A.3.1)."""

MASKED_LM = Family(
    model="mos_roberta",
    static="hat_roberta",
    task="masked_lm",
    config=MaskedLMConfig,
    settings=lambda args: {
        "share_embeddings": not args.untie_weights_roberta,
        "norm_first": args.encoder_normalize_before,
        "embedding_norm": args.layernorm_embedding,
        "stored_positions": args.max_positions,
        "embedding_scale": args.embedding_scale,
        "pooler_activation": ACTIVATION_NAMES.get(args.pooler_activation_fn, args.pooler_activation_fn),
        "pooler_dropout": args.pooler_dropout,
        "linear_length": args.linear_max_length,
    },
    options={
        **_shown("search-space", "subnet", *EXPERTS, "architecture-draw", *DROPOUTS),
        "pooler-dropout": {"type": float, "metavar": "P", "help": "in classification heads"},
        "activation-fn": {
            "choices": _FUNCTIONS,
            "help": "of feed-forward layers and of the head that predicts tokens",
        },
        "pooler-activation-fn": {"choices": _FUNCTIONS, "help": "of classification heads"},
        "encoder-normalize-before": {**_FLAG, "help": "layer norm before each sublayer"},
        "layernorm-embedding": {**_SWITCH, "help": "layer norm after the embedding"},
        "untie-weights-roberta": {**_FLAG, "help": "tokens are predicted by a table of its own"},
        "max-positions": {"type": int, "metavar": "N", "help": "longest sequence in tokens; default: the task's"},
        "load-checkpoint-heads": {**_FLAG, "help": "also classification heads that the task does not have"},
        "linear-max-length": {
            "type": int,
            "metavar": "M",
            "help": "scale and longest sequence of linear attention; default: the scale is each sequence's own length",
        },
        **_shown("linear-normalize", "linear-form", "tf32"),
    },
    defaults={
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
        "max_positions": None,
        "layernorm_embedding": lambda args: not args.encoder_normalize_before,
    },
    architectures={
        "mos_roberta": {},
        "hat_roberta": {"mos": "none"},
        "mos_roberta_small": {"search_space": "roberta_small"},
        "hat_roberta_small": {"mos": "none", "search_space": "roberta_small"},
        "mformer_roberta_small": {"mos": "none", "search_space": "mformer_roberta_small"},
        "mos_bert": {"search_space": "bert_base", **_BERT},
        "hat_bert": {"mos": "none", "search_space": "bert_base", **_BERT},
        "supershaper_bert": {"mos": "none", "search_space": "supershaper_bert", **_BERT},
        "mos_bert_small": {"search_space": "bert_small", **_BERT},
        "hat_bert_small": {"mos": "none", "search_space": "bert_small", **_BERT},
        "supershaper_bert_small": {"mos": "none", "search_space": "supershaper_bert_small", **_BERT},
    },
    inherited=(
        "encoder_normalize_before",
        "layernorm_embedding",
        "untie_weights_roberta",
        "activation_fn",
        "pooler_activation_fn",
        "max_positions",
        "linear_max_length",
        "linear_normalize",
    ),
)

FAMILIES = {family.model: family for family in (TRANSLATION, LANGUAGE, MASKED_LM)}


def family_of(args: Any) -> Family:
    return FAMILIES[ARCH_MODEL_NAME_REGISTRY.get(args.arch, TRANSLATION.model)]
