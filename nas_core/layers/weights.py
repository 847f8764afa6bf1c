"""The weights of one subnet, as nested tuples whose field names are the parameter names of its static model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nas_core.errors import CheckpointError


class Affine(NamedTuple):
    """Weight and bias of a linear layer, ``(O, I), (O,)``."""

    weight: Tensor
    bias: Tensor


class NormWeights(NamedTuple):
    """Weight and bias (C,) of a layer norm, and what is added to its variance."""

    weight: Tensor
    bias: Tensor
    eps: float = 1e-5


def check_finite(weights: Mapping[str, Any], path: str | Path) -> None:
    """Reject weights that hold NaN or an infinite number.

    Args:
        path: of their checkpoint, for the message.

    Raises:
        CheckpointError: they do.
    """
    for name, tensor in weights.items():
        if isinstance(tensor, Tensor) and tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"{path} holds NaN or infinite numbers in {name}; its training diverged or the file is damaged, give an"
                " earlier checkpoint"
            )


def named_tensors(value: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """``(name, tensor)`` of every tensor in nested tuples, lists, named tuples and dictionaries; other values are
    passed over."""
    if isinstance(value, Tensor):
        yield prefix, value
        return
    fields: Iterator[tuple[Any, Any]]
    if hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)
    elif isinstance(value, tuple | list):
        fields = iter(enumerate(value))
    elif isinstance(value, dict):
        fields = iter(value.items())
    else:
        return
    for name, item in fields:
        yield from named_tensors(item, f"{prefix}.{name}" if prefix else str(name))
