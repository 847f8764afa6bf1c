"""Requests that timm's models know and ours answer otherwise or not at all, each told in a sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice

MISFITS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What building a network raises, timm's or ours, where a damaged file gives it arguments of other kinds."""
_ARCHITECTURE = ("depth", "embed_dim", "head_dim", "mlp_ratio", "num_heads", "num_layers", "patch_size")
_INSTEAD = {
    **dict.fromkeys(_ARCHITECTURE, "the architecture decides it; give subnet= or search_space="),
    "dynamic_img_pad": "images must divide into patches; pad or resize them before",
    "output_stride": "every layer has the stride of a patch; leave it out",
}
_FEATURES = "give features_only=True, with out_indices= and no feature_cls=, or call model.forward_intermediates"


def check_arguments(given: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse arguments of timm's models that cannot be met.

    Raises:
        ConfigError: an argument of timm's models that means nothing here. UnknownChoiceError: one that nobody knows.
    """
    for name, value in given.items():
        if name in _INSTEAD:
            raise ConfigError(f"{name}={value!r} of an image model of timm_ext: {_INSTEAD[name]}")
        raise unknown_choice("argument of an image model", name, known)


def check_feature_class(given: Any) -> None:
    """Refuse ways to take features that need another model.

    Raises:
        ConfigError: a way to take features (``feature_cls=``) that needs another structure of the model.
    """
    name = str(getattr(given, "__name__", given)).lower()
    if not any(part in name for part in ("getter", "hook")):
        raise ConfigError(f"feature_cls={name!r} cannot take an image model of timm_ext apart; {_FEATURES}")


def check_traceable(x: Tensor) -> None:
    """Refuse to be traced by torch.fx.

    Raises:
        ConfigError: torch.fx asks for a graph, as timm's ``create_feature_extractor`` and ``AttentionExtract`` do.
    """
    if isinstance(x, torch.fx.Proxy):
        raise ConfigError(
            "torch.fx cannot trace an image model of timm_ext, which slices its weights in each pass; for features"
            f" {_FEATURES}, for attention AttentionExtract(model, method='hook')"
        )


def taken_layers(count: int, indices: int | Collection[int] | None) -> tuple[list[int], int]:
    """The layers that ``indices`` mean (the last n, or those listed, from the end if below 0; default all), and the
    deepest of them.

    Raises:
        ConfigError: there is no such layer.
    """
    wanted = (
        range(-(count if indices is None else indices), 0) if indices is None or isinstance(indices, int) else indices
    )
    outside = [index for index in wanted if not -count <= index < count]
    if outside or not wanted:
        raise ConfigError(
            f"layers {indices!r} of a model with {count}; expected how many of the last (1 to {count}), or indices from"
            f" {-count} to {count - 1}"
        )
    taken = [index % count for index in wanted]
    return taken, max(taken)
