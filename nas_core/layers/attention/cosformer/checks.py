"""Whether inputs of linear attention have shapes, types and lengths that it can compute."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.attention.cosformer.normalize import NORMALIZE
from nas_core.layers.modes import is_exporting


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    max_length: int | None,
    causal: bool,
    key_mask: Tensor | None,
    normalize: str,
    positions: tuple[Tensor | None, Tensor | None] = (None, None),
    bounded: bool = False,
) -> None:
    """Raise a ConfigError for inputs that no form of the attention can compute.

    The values of positions are read on the CPU alone, and not if they are ``bounded``, promised to lie in 0 ..
    ``max_length`` - 1.
    """
    if (
        not q.ndim == k.ndim == v.ndim == 4
        or k.shape != (*q.shape[:2], k.shape[-2], q.shape[-1])
        or v.shape[:3] != k.shape[:3]
    ):
        raise ConfigError(
            f"queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}; expected (B, H, T, D),"
            " (B, H, S, D) and (B, H, S, Dv)"
        )
    if not q.dtype == k.dtype == v.dtype or not q.is_floating_point():
        raise ConfigError(f"queries are {q.dtype}, keys {k.dtype}, values {v.dtype}; expected one floating type")
    if normalize not in NORMALIZE:
        raise unknown_choice("normalisation of linear attention", normalize, NORMALIZE)
    if max_length is None and (causal or any(given is not None for given in positions)):
        raise ConfigError(
            "max_length is None, each sequence's own length; expected a number where attention is causal or positions"
            " are given, since decoding does not know the length beforehand"
        )
    if is_exporting():  # lengths are open and positions have no values
        return
    if key_mask is not None and (key_mask.dtype != torch.bool or key_mask.shape != (k.shape[0], k.shape[2])):
        raise ConfigError(
            f"key mask is {key_mask.dtype} {tuple(key_mask.shape)}; expected bool {(k.shape[0], k.shape[2])}, True at"
            " tokens"
        )
    if (causal or max_length is None) and q.shape[2] != k.shape[2]:
        raise ConfigError(
            f"{q.shape[2]} queries and {k.shape[2]} keys in {'causal attention' if causal else 'self-attention'};"
            " expected equal lengths"
            + (" (to decode step by step, keep a CosformerState)" if causal else " (give max_length to read another)")
        )
    if max_length is not None:
        if max_length < 1:
            raise ConfigError(f"max_length is {max_length}; expected at least 1")
        for x, given in zip((q, k), positions, strict=True):
            _check_positions(x, given, max_length, bounded)


def _check_positions(x: Tensor, given: Tensor | None, max_length: int, bounded: bool) -> None:
    if given is None:
        check_length(x.shape[2], max_length)
        return
    if given.shape not in (x.shape[2:3], (x.shape[0], x.shape[2])):
        raise ConfigError(f"positions {tuple(given.shape)} for {tuple(x.shape)}; expected (T,) or (B, T)")
    if bounded or given.device.type != "cpu" or not given.numel():
        return
    if (first := int(given.min())) < 0:
        raise ConfigError(f"a position is {first}; expected 0 or more, below max_length {max_length}")
    check_length(int(given.max()) + 1, max_length)


def check_length(length: int, max_length: int) -> None:
    """Raise a ConfigError for more positions than linear attention was made for."""
    if length > max_length:
        raise ConfigError(
            f"a sequence has {length} positions, this linear attention was made for max_length {max_length}: beyond it"
            " weights turn negative; build the model with a larger max_length"
        )
