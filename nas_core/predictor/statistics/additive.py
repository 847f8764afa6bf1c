"""Ridge regression on which operation stands where: networks whose layers add up, as latencies of chains do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.predictor.targets import TargetScale

__all__ = ["Additive"]

Array = NDArray[np.float64]
PENALTIES = np.logspace(-4, 4, 33)
"""In mean squares of the columns, times the number of graphs"""


@dataclass(frozen=True)
class Additive:
    """A weight for each kind of operation at each value of an attribute, learned in the units of the targets: ranks of
    sums are no sums."""

    weights: Tensor
    """``(F,)``"""
    offset: Tensor
    """``()``"""
    points: Tensor
    """``(2, P)`` of the scale between targets and what other parts learn; P is 0 where both are the same"""

    @classmethod
    def fit(cls, counts: Array, learned: Array, scale: TargetScale) -> tuple[Additive, Array]:
        """From counts ``(G, F)`` and what is to be learned ``(G,)``; beside it what it says of each graph when that one
        and all of equal counts are left out, ``(G,)`` in the same units. The penalty is the one with which graphs that
        are left out are predicted best, which has a closed form (Golub, Heath and Wahba 1979)."""
        distinct, of, times = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        of, roots = of.reshape(-1), np.sqrt(times)
        targets = np.bincount(of, scale.restore(learned)) / times
        mean, middle = times @ distinct / times.sum(), float(times @ targets / times.sum())
        basis, singular, rows = np.linalg.svd((distinct - mean) * roots[:, None], full_matrices=False)
        off = (targets - middle) * roots
        inner = basis.T @ off
        unit = float((singular**2).sum()) / max(counts.shape[1], 1) or 1.0
        best, weights, left_out = np.inf, np.zeros(counts.shape[1]), targets
        for penalty in PENALTIES * unit:
            kept = singular**2 / (singular**2 + penalty)
            reach = (basis**2 @ kept) + times / times.sum()
            missed = (off - basis @ (kept * inner)) / np.maximum(1 - reach, 1e-9)
            if (error := float(np.mean(missed**2))) < best:
                best, weights = error, rows.T @ (singular / (singular**2 + penalty) * inner)
                left_out = targets - missed / roots
        points = torch.tensor([scale.targets, scale.learned], dtype=torch.float64)
        offset = torch.tensor(middle - float(mean @ weights), dtype=torch.float64)
        return cls(torch.from_numpy(weights), offset, points), scale.learn(left_out[of])

    def predict(self, counts: Array) -> Array:
        """``(B,)`` in the units that the other parts learn, from counts ``(B, F)``."""
        targets, learned = (tuple(side) for side in self.points.tolist())
        return TargetScale(targets, learned).learn(counts @ self.weights.numpy() + float(self.offset))

    def to_tensors(self) -> dict[str, Tensor]:
        """By name; :meth:`from_tensors` is the inverse."""
        return {name: getattr(self, name) for name in ("weights", "offset", "points")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], columns: int) -> Additive:
        """The inverse of :meth:`to_tensors`, for so many columns.

        Raises:
            KeyError: a tensor is missing.
            DataError: they do not fit together, or hold what is no number.
        """
        made = cls(*(tensors[name] for name in ("weights", "offset", "points")))
        shapes = {"weights": (columns,), "offset": (), "points": (2, made.points.shape[-1] if made.points.ndim else 0)}
        for name, tensor in made.to_tensors().items():
            if (
                tensor.dtype != torch.float64
                or tuple(tensor.shape) != shapes[name]
                or not bool(tensor.isfinite().all())
            ):
                raise DataError(f"{name} of additive weights do not fit the {columns} columns, or are no numbers")
        TargetScale(*(tuple(side) for side in made.points.tolist()))
        return made
