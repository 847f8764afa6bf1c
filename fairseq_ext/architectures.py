"""The names of ``--arch`` and what they set: options that a command does not give take these values.

``mos_/hat_transformer_wmt_en_de`` and ``_iwslt_de_en`` have what the code of HAT and of Mixture-of-Supernets trains
these tasks with (dropout, sharing of embeddings, smallest and largest subnet); the others share no embeddings unless
told to.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from fairseq_ext.inherit import inherit
from fairseq_ext.options import SHARED_DEFAULTS, fill_in, named_architectures
from nas_core.space import found_translation

__all__ = ["architectures", "base_architecture"]


def base_architecture(args: Namespace) -> None:
    """Base: HAT's WMT space, neuron-wise experts."""
    _defaults(args, search_space="hat_wmt14_en_de", mos="neuron")


def _defaults(args: Namespace, **values: Any) -> None:
    defaults = {
        **SHARED_DEFAULTS,
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
        **values,
    }
    fill_in(args, defaults)


_SIZES: dict[str, dict[str, Any]] = {
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


def _all_settings() -> Iterator[tuple[str, dict[str, Any]]]:
    for size, values in _SIZES.items():
        yield f"mos_transformer{size}", {"mos": "neuron", **values}
        yield f"hat_transformer{size}", {"mos": "none", **values}
    for name, values in _MFORMER.items():
        yield name, {"mos": "none", **values}
    for name in ("mformer_wmt14_en_de", "mformer_translation_small"):
        yield f"mos_{name}", {"mos": "neuron", **_MFORMER[name]}


def architectures() -> Iterator[tuple[str, Callable[[Namespace], None]]]:
    """Each name, and the function that fills in its options."""
    return named_architectures(_all_settings(), _complete)


def _complete(args: Namespace, values: dict[str, Any]) -> None:
    inherit(args)
    rest = dict(values)
    if getattr(args, "share_decoder_input_output_embed", None):
        rest.pop("share_all_embeddings", None)
    found = rest.pop("found", None)
    its_space = getattr(args, "search_space", None) in (None, values["search_space"])
    if found and its_space and not getattr(args, "subnet", None) and not getattr(args, "subnet_json", None):
        args.subnet_json = json.dumps(found_translation(found).to_dict())
    _defaults(args, **rest)
