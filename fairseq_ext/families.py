"""Families of models: their options, defaults and names for ``--arch``."""

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
from nas_core.layers.feed_forward import ACTIVATIONS
from nas_core.layers.mos import MIXTURES
from nas_core.layers.positions import POSITIONS
from nas_core.models.language import LanguageConfig
from nas_core.models.masked_lm import MaskedLMConfig
from nas_core.models.translation.net import TranslationConfig
from nas_core.space.mformer import published_translation
from nas_core.space.space import ENCODINGS
from nas_core.supernet.sampling import DRAWS, EXTREMES

SHARED: dict[str, dict[str, Any]] = {
    "search-space": {
        "metavar": "NAME|FILE",
        "help": "search space: a name of 'nas-ext lab space list', or a YAML file",
    },
    "subnet": {"metavar": "ARCH.json", "help": "architecture file; only this architecture is trained"},
    "mos": {"choices": MIXTURES, "help": "experts of the feed-forward layers: none, layer or neuron"},
    "mos-experts": {"type": int, "metavar": "M", "help": "number of experts per linear layer"},
    "mos-router-hidden": {"type": int, "metavar": "N", "help": "hidden units of a router"},
    "mos-router-layers": {"type": int, "metavar": "N", "help": "linear layers of a router"},
    "mos-router-temperature": {
        "type": float,
        "metavar": "T",
        "help": "divisor of a router's logits; large values mix experts evenly",
    },
    "mos-encoding": {
        "choices": ENCODINGS,
        "help": "encoding of an architecture as input of routers: summary (averages over layers), centred (averages"
        " from -1 to 1), layers (each layer), or onehot",
    },
    "dropout": {
        "type": float,
        "metavar": "P",
        "help": "dropout after embeddings and sublayers, scaled by the width of the subnet",
    },
    "attention-dropout": {"type": float, "metavar": "P", "help": "dropout on attention weights"},
    "activation-dropout": {"type": float, "metavar": "P", "help": "dropout on hidden units of feed-forward layers"},
    "activation-fn": {"choices": ACTIVATIONS, "help": "activation of feed-forward layers"},
    "positions": {"choices": POSITIONS[:2], "help": "position embeddings: sinusoidal, or learned"},
    "tf32": {
        "action": "store_true",
        "default": None,
        "help": "compute matrix products in TF32 (NVIDIA Ampere or later; 10 bits of mantissa); default: float32",
    },
}
"""Options of several families -> their argparse arguments."""

EXPERTS = tuple(name for name in SHARED if name.startswith("mos"))
DROPOUTS = ("dropout", "attention-dropout", "activation-dropout")
RANGES = {
    **dict.fromkeys(
        ("dropout", "attention_dropout", "activation_dropout", "pooler_dropout"), Range(0, 1, exclude=(1,))
    ),
    **dict.fromkeys(("max_positions", "max_source_positions", "max_target_positions", "context_length"), Range(1)),
    **dict.fromkeys(("linear_max_length", "linear_encoder_length"), Range(1)),
    "max_relative_length": Range(0),
}

SHARED_DEFAULTS: dict[str, Any] = {
    "mos_experts": 2,
    "mos_router_hidden": 128,
    "mos_router_layers": 2,
    "mos_router_temperature": 1.0,
    "mos_encoding": "summary",
    "subnet": None,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "tf32": False,
}

ACTIVATION_NAMES = {"gelu_accurate": "gelu_tanh", "gelu_fast": "gelu_tanh"}
"""fairseq's activation name -> this project's name."""

_FLAG: dict[str, Any] = {"action": "store_true", "default": None}
_SWITCH: dict[str, Any] = {"action": BooleanOptionalAction, "default": None}


@dataclass(frozen=True)
class Family:
    """Family of models with common options."""

    model: str
    """Name under which the supernet is registered with fairseq."""
    static: str
    """``--arch`` of a static network, or of a supernet without experts."""
    task: str
    config: type[Any]
    """Class of the settings of the networks."""
    settings: Callable[[Namespace], Mapping[str, Any]]
    """Function from command-line options to the settings that only this family has."""
    options: Mapping[str, Mapping[str, Any]]
    """Option -> its argparse arguments, in addition to :data:`SHARED`; sorted as in the help."""
    defaults: Mapping[str, Any]
    """Option -> its default, or a function from the options to the default."""
    architectures: Mapping[str, Mapping[str, Any]]
    """Name for ``--arch`` -> options that differ from the defaults."""
    inherited: tuple[str, ...]
    """Options that are read from ``--finetune-from-model`` unless they are given."""
    sides: tuple[str, ...] = ("",)
    """``encoder`` and ``decoder`` of a network that has both, otherwise one empty name."""
    complete: Callable[[Namespace, dict[str, Any]], dict[str, Any]] = field(default=lambda args, values: values)
    """Function that changes the options of an ``--arch`` to suit the given options."""

    @property
    def orders(self) -> tuple[str, ...]:
        """Names of the options that store the layers in the order of their importance."""
        return tuple(f"{side or 'layer'}_order" for side in self.sides)

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name, settings in self.options.items():
            parser.add_argument(f"--{name}", **{**SHARED.get(name, {}), **settings})

    def fill_in(self, args: Namespace, values: Mapping[str, Any] | None = None) -> None:
        """Set each option that was not given to its entry in ``values``, or to its default."""
        for name, value in {**self.defaults, **(values or {})}.items():
            if getattr(args, name, None) is None:
                setattr(args, name, value(args) if callable(value) else value)

    def named_architectures(self) -> Iterator[tuple[str, Callable[[Namespace], None]]]:
        """Yield each name for ``--arch``, and a function that sets its options."""
        for name, values in self.architectures.items():

            def fill(args: Namespace, values: Mapping[str, Any] = values) -> None:
                inherit(args, self.inherited)
                self.fill_in(args, self.complete(args, dict(values)))

            fill.__name__ = name
            yield name, fill

    def network_config(self, args: Namespace, padding_idx: int, static: bool) -> Any:
        """Return the settings of a network that are not searched; ``static`` means without experts."""
        experts = MoSConfig(
            kind="none" if static else args.mos,
            experts=args.mos_experts,
            router_hidden=args.mos_router_hidden,
            router_layers=args.mos_router_layers,
            router_temperature=args.mos_router_temperature,
            encoding=args.mos_encoding,
        )
        config = self.config(
            dropout=args.dropout,
            attention_dropout=args.attention_dropout,
            activation_dropout=args.activation_dropout,
            activation=ACTIVATION_NAMES.get(args.activation_fn, args.activation_fn),
            padding_idx=padding_idx,
            mos=experts,
            linear=LinearAttention(getattr(args, "linear_max_length", None)),
            **{order: tuple(getattr(args, order) or ()) for order in self.orders},
            **self.settings(args),
        )
        return config.static() if static else config


def _select_options(*names: str) -> dict[str, Mapping[str, Any]]:
    return {name: {} for name in names}


# -- translation -------------------------------------------------------------------------------------------------------


def _translation_settings(args: Namespace) -> dict[str, Any]:
    if str(getattr(args, "left_pad_target", False)).lower() in ("true", "1", "y", "yes"):
        raise ConfigError("--left-pad-target is not supported, since targets are padded on the right; leave it out")
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
        args.subnet_json = json.dumps(published_translation(preset).to_dict())
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
"""Suffix of ``--arch`` -> options; for WMT and IWSLT those in the code of HAT and Mixture-of-Supernets."""
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
        **_select_options("search-space", "subnet", *EXPERTS),
        "architecture-draw": {
            "choices": DRAWS,
            "help": "sample each gene uniformly, or the same sequence as HAT's code",
        },
        "extremes": {
            "choices": EXTREMES,
            "help": "smallest and largest subnet in sandwich sampling and validation: those of the search space, or as"
            " in the code of HAT and MoS (decoder layers that attend to two encoder layers)",
        },
        **_select_options(*DROPOUTS, "activation-fn", "positions"),
        "normalize-before": {**_FLAG, "help": "apply layer norms before sublayers instead of after them"},
        "share-all-embeddings": {
            **_SWITCH,
            "help": "share the embeddings of source, target and output; needs a joined dictionary",
        },
        "share-decoder-input-output-embed": {**_FLAG, "help": "share the embeddings of target and output"},
        "max-relative-length": {
            "type": int,
            "metavar": "R",
            "help": "relative positions up to distance R in softmax self-attention; 0: none",
        },
        "linear-max-length": {
            "type": int,
            "metavar": "M",
            "help": "longest sentence in tokens, and length scale, of linear attention in the decoder; default: the"
            " longest training sentence, rounded up",
        },
        "linear-encoder-length": {
            "type": int,
            "metavar": "M",
            "help": "length scale of linear attention in the encoder; default: the length of each sentence",
        },
        "max-source-positions": {"type": int, "metavar": "N", "help": "longest source sentence in tokens"},
        "max-target-positions": {"type": int, "metavar": "N", "help": "longest target sentence in tokens"},
        **_select_options("tf32"),
    },
    defaults={
        **SHARED_DEFAULTS,
        "search_space": "hat_wmt14_en_de",
        "mos": "neuron",
        "architecture_draw": "gene",
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
        **_select_options("search-space"),
        "context-length": {
            "type": int,
            "metavar": "N",
            "help": "longest sequence in tokens, and length scale of linear attention; default: that of --search-space",
        },
        **_select_options("subnet", *EXPERTS, *DROPOUTS, "activation-fn", "positions"),
        "decoder-normalize-before": {
            **_SWITCH,
            "help": "apply layer norms before sublayers and after the last layer, instead of after sublayers",
        },
        "share-decoder-input-output-embed": {**_SWITCH, "help": "share the embeddings of input and output"},
        **_select_options("tf32"),
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
    ),
)


# -- masked language models --------------------------------------------------------------------------------------------

_FUNCTIONS = [*ACTIVATIONS, *ACTIVATION_NAMES]
_BERT = {"mos_encoding": "layers"}
"""Options of BERT supernets in Mixture-of-Supernets (appendix A.3.1)."""

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
        **_select_options("search-space", "subnet", *EXPERTS, *DROPOUTS),
        "pooler-dropout": {"type": float, "metavar": "P", "help": "dropout in classification heads"},
        "activation-fn": {
            "choices": _FUNCTIONS,
            "help": "activation of feed-forward layers and of the head that predicts tokens",
        },
        "pooler-activation-fn": {"choices": _FUNCTIONS, "help": "activation of classification heads"},
        "encoder-normalize-before": {**_FLAG, "help": "apply layer norms before sublayers instead of after them"},
        "layernorm-embedding": {**_SWITCH, "help": "apply a layer norm after the embedding"},
        "untie-weights-roberta": {**_FLAG, "help": "do not share the embeddings of input and output"},
        "max-positions": {
            "type": int,
            "metavar": "N",
            "help": "longest sequence in tokens; default: that of the task",
        },
        "load-checkpoint-heads": {**_FLAG, "help": "load all classification heads of the checkpoint"},
        "linear-max-length": {
            "type": int,
            "metavar": "M",
            "help": "longest sequence in tokens, and length scale, of linear attention; default: the scale is the"
            " length of each sequence",
        },
        **_select_options("tf32"),
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
    ),
)

FAMILIES = {family.model: family for family in (TRANSLATION, LANGUAGE, MASKED_LM)}


def family_of(args: Any) -> Family:
    return FAMILIES[ARCH_MODEL_NAME_REGISTRY.get(args.arch, TRANSLATION.model)]
