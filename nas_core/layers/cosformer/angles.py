"""Angles of positions, the checks of shapes and lengths, and what happens to the sums in the end."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from nas_core.errors import ConfigError, unknown_choice

__all__ = ["EPS", "NORMALIZE", "Turns", "check", "finished", "turns", "working_dtype"]

EPS = 1e-6
"""Smallest denominator: a query without any positive channel gets 0."""
NORMALIZE = ("denominator", "rms", "layer")
"""Of the weighted sum: by the sum of the weights (cosFormer, equation 10), or by RMSNorm or LayerNorm over each head's
channels instead, whose gradients are bounded (NormAttention; Qin et al. 2022, "The Devil in Linear Transformer")."""


class Turns(NamedTuple):
    """Sines and cosines of positions, ``(T, 1)`` or, where positions differ between sequences, ``(B, 1, T, 1)``."""

    sin: Tensor
    cos: Tensor

    def block(self, start: int, stop: int) -> Turns:
        return Turns(self.sin[..., start:stop, :], self.cos[..., start:stop, :])


def turns(positions: Tensor, max_length: int, dtype: torch.dtype) -> Turns:
    """Of positions ``(T,)`` or ``(B, T)``: the angle is pi/2 * position / max_length, computed in float64."""
    angles = positions.double() * (math.pi / 2 / max_length)
    angles = angles[:, None, :, None] if positions.ndim == 2 else angles[:, None]
    return Turns(angles.sin().to(dtype), angles.cos().to(dtype))


def working_dtype(x: Tensor) -> torch.dtype:
    """float32, or float64 for float64 inputs: sums over thousands of positions do not fit into halves."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def finished(sums: Tensor, weights: Tensor | None, normalize: str, eps: float) -> Tensor:
    """From weighted sums ``(..., D)`` and the sums of the weights ``(..., 1)`` to outputs ``(..., D)``."""
    if normalize == "denominator":
        assert weights is not None
        return sums / weights.clamp(min=eps)
    if normalize == "layer":
        sums = sums - sums.mean(-1, keepdim=True)
    return sums * (sums.square().mean(-1, keepdim=True) + eps).rsqrt()


def check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    max_length: int,
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
    if torch.compiler.is_exporting():  # lengths are open and positions have no values
        return
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
    if causal and q.shape[2] != k.shape[2]:
        raise ConfigError(
            f"{q.shape[2]} queries and {k.shape[2]} keys in causal attention; expected equal lengths (to decode step by"
            " step, keep a CosformerState)"
        )
    if key_mask is not None and (key_mask.dtype != torch.bool or key_mask.shape != (k.shape[0], k.shape[2])):
        raise ConfigError(
            f"key mask is {key_mask.dtype} {tuple(key_mask.shape)}; expected bool {(k.shape[0], k.shape[2])}, True at"
            " tokens"
        )
