"""Whether inputs of linear attention have shapes, types and lengths that it can compute."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.attention.cosformer.normalize import NORMALIZE

__all__ = ["check"]


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    max_length: int | None,
    causal: bool,
    key_mask: Tensor | None,
    normalize: str,
    positions: tuple[Tensor | None, Tensor | None] = (None, None),
) -> None:
    """Raise a ConfigError for inputs that no form of the attention can compute."""
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
    if torch.compiler.is_exporting():  # lengths are open and positions have no values
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
        _check_positions(q, k, max_length, positions)


def _check_positions(q: Tensor, k: Tensor, max_length: int, positions: tuple[Tensor | None, Tensor | None]) -> None:
    for x, given in zip((q, k), positions, strict=True):
        if given is not None and given.shape not in (x.shape[2:3], (x.shape[0], x.shape[2])):
            raise ConfigError(f"positions {tuple(given.shape)} for {tuple(x.shape)}; expected (T,) or (B, T)")
        if given is not None and given.numel() and int(given.min()) < 0:
            raise ConfigError(f"a position is {int(given.min())}; expected 0 or more, below max_length {max_length}")
    if max_length < 1:
        raise ConfigError(f"max_length is {max_length}; expected at least 1")
    counts = (
        x.shape[2] if at is None or not at.numel() else int(at.max()) + 1
        for x, at in zip((q, k), positions, strict=True)
    )
    longest = max(counts)
    if longest > max_length:
        raise ConfigError(
            f"a sequence has {longest} positions, this linear attention was made for max_length {max_length}: beyond it"
            " weights turn negative; build the model with a larger max_length"
        )
