"""Modules of an exported model, one file each, with named and typed inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from nas_core.errors import NasExtError


class ExportError(NasExtError):
    """A model that cannot be exported, or exported files whose outputs differ from PyTorch."""


def reason_of(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:200]


@dataclass(frozen=True)
class OpenDim:
    """A dimension of an exported model whose size is chosen at run time."""

    name: str
    smallest: int = 1
    largest: int | None = None
    """Largest allowed size. None means no limit."""

    def size(self, requested: int) -> int:
        """Return the allowed size closest to ``requested``."""
        return max(self.smallest, requested if self.largest is None else min(requested, self.largest))


@dataclass(frozen=True)
class Value:
    """Description of an input or output tensor of an exported model."""

    name: str
    shape: tuple[int | str, ...]
    """Size of each dimension, or the name of its :class:`OpenDim`."""
    kind: str = "number"
    """Content: ``number``, ``positive`` number, ``token`` index, ``sentence`` (padded tokens), ``mask`` (boolean) or
    ``padding`` (1 for tokens, then 0).
    """
    below: int = 0
    """Vocabulary size, for tokens and sentences."""
    padding: int = -1
    """Index of the padding token, for sentences."""

    @property
    def dtype(self) -> str:
        integers = dict.fromkeys(("token", "sentence", "padding"), "int64")
        return {"mask": "bool", **integers}.get(self.kind, "float32")

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}

    def example(self, sizes: Mapping[str, int], stream: torch.Generator) -> Tensor:
        """Return a random tensor with ``sizes`` for the open dimensions."""
        shape = [dim if isinstance(dim, int) else sizes[dim] for dim in self.shape]
        if self.kind == "mask":
            mask = torch.rand(shape, generator=stream) < 0.7
            mask[..., :1] = True
            return mask
        if self.kind == "token":
            return torch.randint(self.below, shape, generator=stream)
        if self.kind in ("sentence", "padding"):
            lengths = torch.randint(1, shape[-1] + 1, (*shape[:-1], 1), generator=stream)
            present = torch.arange(shape[-1]) < lengths
            if self.kind == "padding":
                return present.long()
            tokens = torch.randint(self.below - 1, shape, generator=stream)
            tokens += (tokens >= self.padding).long()
            return tokens.masked_fill(~present, self.padding)
        return (
            torch.rand(shape, generator=stream) + 0.1
            if self.kind == "positive"
            else torch.randn(shape, generator=stream)
        )


@dataclass(frozen=True)
class ExportModule:
    """A module of an exported model, saved to one file."""

    name: str
    """File name without suffix."""
    module: nn.Module
    """Module that maps ``inputs`` to a tuple of ``outputs``."""
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    dims: tuple[OpenDim, ...]
    """Dimensions of the inputs whose size is chosen at run time."""

    @property
    def input_names(self) -> list[str]:
        return [value.name for value in self.inputs]

    @property
    def output_names(self) -> list[str]:
        return [value.name for value in self.outputs]

    def examples(self, size: int, seed: int = 0) -> tuple[Tensor, ...]:
        """Return random inputs: open dimension ``i`` has size ``size + i``, or its smallest if ``size`` is 0."""
        sizes = {dim.name: dim.size(size + index if size else 0) for index, dim in enumerate(self.dims)}
        stream = torch.Generator().manual_seed(seed)
        return tuple(value.example(sizes, stream) for value in self.inputs)


@dataclass(frozen=True)
class Exportable:
    """A model to export: its modules, and entries of ``model.json``."""

    parts: tuple[ExportModule, ...]
    info: Mapping[str, Any]
    """Entries of ``model.json``, such as the network kind."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Additional text files by name, such as dictionaries."""
