"""Weights of one subnet as nested tuples, named like the parameters of its static model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nas_core.errors import CheckpointError


class Affine(NamedTuple):
    """Weight (O, I) and bias (O,) of a linear layer."""

    weight: Tensor
    bias: Tensor


class NormWeights(NamedTuple):
    """Weight and bias (C,) of a layer norm, and its epsilon."""

    weight: Tensor
    bias: Tensor
    eps: float = 1e-5


def check_finite(weights: Mapping[str, Any], path: str | Path) -> None:
    """Raise ``CheckpointError`` for NaN or infinite weights. ``path`` is the checkpoint, for the message."""
    for name, tensor in weights.items():
        if isinstance(tensor, Tensor) and tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"{path} has NaN or infinite values in {name}; the training diverged or the file is damaged, give an"
                " earlier checkpoint"
            )


def named_tensors(value: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield ``(name, tensor)`` of every tensor in nested tuples, lists, named tuples and dictionaries."""
    if isinstance(value, Tensor):
        yield prefix, value
        return
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, tuple | list):
        value = dict(enumerate(value))
    for name, item in value.items() if isinstance(value, dict) else ():
        yield from named_tensors(item, f"{prefix}.{name}" if prefix else str(name))
