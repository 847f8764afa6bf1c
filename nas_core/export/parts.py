"""What is exported: modules of flat tensors, with the names, types and open dimensions of what they read and give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import NasExtError


class ExportError(NasExtError):
    """A model that cannot be exported, or whose exported files do not compute what torch does."""


def reason_of(error: Exception) -> str:
    """What torch, onnx or onnxruntime raised, in the beginning of one line."""
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:200]


@dataclass(frozen=True)
class OpenDim:
    """A dimension that each call may choose."""

    name: str
    """The name that shapes show."""
    smallest: int = 1
    """It is tried out."""
    largest: int | None = None
    """None: no limit."""

    def size(self, wanted: int) -> int:
        """The allowed number closest to ``wanted``."""
        return max(self.smallest, wanted if self.largest is None else min(wanted, self.largest))


@dataclass(frozen=True)
class Value:
    """A tensor that goes in or comes out."""

    name: str
    shape: tuple[int | str, ...]
    """Numbers, and names of open dimensions."""
    kind: str = "number"
    """number; positive: sums that are divided by; token: index below ``below``; sentence: rows of tokens with padding
    behind them; mask: True somewhere in each row."""
    below: int = 0
    """Size of the vocabulary, for tokens and sentences."""
    padding: int = -1
    """Index of the padding token, for sentences."""

    @property
    def dtype(self) -> str:
        return {"mask": "bool", "token": "int64", "sentence": "int64"}.get(self.kind, "float32")

    def describe(self) -> dict[str, Any]:
        """Describe the tensor as plain data."""
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}

    def example(self, sizes: Mapping[str, int], stream: torch.Generator) -> Tensor:
        """Random content, with these sizes of open dimensions."""
        shape = [dim if isinstance(dim, int) else sizes[dim] for dim in self.shape]
        if self.kind == "mask":
            mask = torch.rand(shape, generator=stream) < 0.7
            mask[..., :1] = True
            return mask
        if self.kind == "token":
            return torch.randint(self.below, shape, generator=stream)
        if self.kind == "sentence":
            tokens = torch.randint(self.below - 1, shape, generator=stream)
            tokens += (tokens >= self.padding).long()
            lengths = torch.randint(1, shape[-1] + 1, (*shape[:-1], 1), generator=stream)
            return tokens.masked_fill(torch.arange(shape[-1]) >= lengths, self.padding)
        return (
            torch.rand(shape, generator=stream) + 0.1
            if self.kind == "positive"
            else torch.randn(shape, generator=stream)
        )


@dataclass(frozen=True)
class Part:
    """One file's worth of a model."""

    name: str
    """Name of the file, without its ending."""
    module: nn.Module
    """From the tensors of ``inputs`` to a tuple of those of ``outputs``."""
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    dims: tuple[OpenDim, ...]
    """All open dimensions of the inputs."""

    def examples(self, size: int, seed: int = 0) -> tuple[Tensor, ...]:
        """Random inputs whose open dimensions are about ``size`` and differ; with 0 they are as small as can be."""
        sizes = {dim.name: dim.size(size + index if size else 0) for index, dim in enumerate(self.dims)}
        stream = torch.Generator().manual_seed(seed)
        return tuple(value.example(sizes, stream) for value in self.inputs)


@dataclass(frozen=True)
class Exportable:
    """A model as its parts, and what somebody who has only the files must know to use them."""

    parts: tuple[Part, ...]
    info: Mapping[str, Any]
    """Plain data: ``kind``, and what else a caller needs."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Further files by name, such as dictionaries."""
