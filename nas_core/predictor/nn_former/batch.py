"""Padded graphs, and their attention masks and neighbour sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from nas_core.graph import Graphs
from nas_core.predictor.device import to_device
from nas_core.predictor.nn_former.attend import attend
from nas_core.predictor.nn_former.config import NNFormerConfig

TOKENS = 2  # number of tokens before the nodes: class token and depth token


@dataclass(frozen=True)
class Batch:
    """B graphs padded to N nodes."""

    ops: Tensor
    """``(B, N)`` int64 operation indices, 0 for padding"""
    adjacency: Tensor
    """``(B, N, N)`` bool, True at ``[i, j]`` for an edge i -> j"""
    sizes: Tensor
    """``(B,)`` int64"""
    attributes: Tensor | None = None
    """``(B, N, K)``"""
    shapes: Tensor | None = None
    """``(B, N, 4)``"""
    costs: Tensor | None = None
    """``(B, N, 3)``"""
    static: Tensor | None = None
    """``(B, F)``"""
    largest: int = 0
    """Largest operation index"""
    most_nodes: int = 0
    """Number of nodes of the largest graph"""

    @classmethod
    def of(cls, graphs: Graphs, indices: ArrayLike | None = None, device: torch.device | str = "cpu") -> Batch:
        """Pad graphs, by default all, to the largest of them."""
        selected = graphs if indices is None else graphs.take(indices)
        dense = selected.dense()
        present = np.arange(dense.ops.shape[1]) < dense.sizes[:, None]

        def padded(values: np.ndarray | None) -> Tensor | None:
            if values is None:
                return None
            table = np.zeros((*present.shape, values.shape[1]), np.float32)
            table[present] = values
            return to_device(table, device)

        return cls(
            to_device(dense.ops, device).long(),
            to_device(dense.adjacency, device),
            to_device(dense.sizes, device),
            padded(selected.attributes),
            padded(selected.shapes),
            padded(selected.costs),
            None if selected.static is None else to_device(selected.static, device),
            int(selected.ops.max(initial=0)),
            int(selected.sizes.max(initial=0)),
        )

    def take(self, index: Tensor | slice) -> Batch:
        tensors: dict[str, Any] = {
            name: value[index] for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **tensors)

    def total(self, nodes: Tensor) -> Tensor:
        """Sum over the nodes of each graph: ``(B, N, C)`` -> ``(B, C)``."""
        return (nodes * self.present[:, :, None]).sum(1)

    @property
    def present(self) -> Tensor:
        """``(B, N)`` bool, False for padding."""
        return torch.arange(self.ops.shape[1], device=self.ops.device) < self.sizes[:, None]


@dataclass(frozen=True)
class Topology:
    """Attention masks and neighbour sums of padded graphs.

    The L positions are tokens (class and depth), if used, then nodes.
    """

    masks: Tensor
    """``(B, 4, L, L)`` bool, True where each quarter of the heads attends from query i to key j"""
    splits: tuple[Tensor, Tensor]
    """``(B, L, L)`` matrices that sum over children and over parents (equations 12 and 13)"""

    @classmethod
    def of(cls, batch: Batch, config: NNFormerConfig, dtype: torch.dtype = torch.float32) -> Topology:
        tokens = TOKENS if config.readout == "class_token" else 0
        present = torch.nn.functional.pad(batch.present, (tokens, 0), value=True)
        adjacency = torch.nn.functional.pad(batch.adjacency, (tokens, 0, tokens, 0))
        return cls(_masks(adjacency, present, config, tokens), (adjacency.to(dtype), adjacency.mT.to(dtype)))

    def take(self, index: Tensor) -> Topology:
        children, parents = self.splits
        return Topology(self.masks[index], (children[index], parents[index]))

    def attend(self, projected: Tensor, heads: int, dropout: float) -> Tensor:
        """Apply masked attention ``(B, L, 3 C)`` -> ``(B, L, C)``."""
        masks = self.masks if heads == 4 else self.masks.repeat_interleave(heads // 4, 1)
        return attend(projected, heads, masks, dropout)

    def sums(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the sums of ``(B, L, C)`` over children and over parents."""
        return tuple(matrix.to(x.dtype) @ x for matrix in self.splits)


def _masks(adjacency: Tensor, present: Tensor, config: NNFormerConfig, tokens: int) -> Tensor:
    """Return the masks of equations 7 to 10, A, Aᵀ, AᵀA and AAᵀ, for the adjacency matrix A."""
    both_present = present[:, :, None] & present[:, None, :]
    itself = torch.eye(adjacency.shape[1], dtype=torch.bool, device=adjacency.device)
    token_mask = torch.zeros_like(adjacency)
    token_mask[:, :tokens], token_mask[:, :, :tokens] = True, True
    token_mask &= both_present
    released = config.sibling_mask == "as_released"
    base = adjacency | token_mask if released else adjacency
    number = base.float()
    heads = [base, base.mT, number.mT @ number > 0, number @ number.mT > 0]
    return torch.stack([head | token_mask | itself for head in heads], 1)
