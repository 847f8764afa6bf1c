"""Gradient-boosted trees on graph statistics, by LightGBM: rules with thresholds, where a process is smooth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError
from nas_core.predictor.statistics.tree_text import checked_trees

if TYPE_CHECKING:
    import lightgbm  # takes a second where scikit-learn is installed, so it is imported where it is used

__all__ = ["BoostedTrees"]

Array = NDArray[np.float64]
ROUNDS = 200
SETTINGS = {
    "objective": "l2",
    "learning_rate": 0.05,
    "feature_fraction_bynode": 0.3,  # many statistics count nearly the same
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "min_data_in_leaf": 5,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,  # a hundred graphs are too few for more
    "verbose": -1,
}
"""Chosen on validation accuracies of NAS-Bench-101 and -201 with 100 to 4,236 training graphs."""


@dataclass(frozen=True)
class BoostedTrees:
    """One boosted model; :meth:`fit` makes it."""

    text: str
    """The model in LightGBM's own format."""
    booster: lightgbm.Booster

    @classmethod
    def fit(cls, statistics: Array, targets: Array, seed: int = 0) -> BoostedTrees:
        """From statistics ``(G, F)`` and targets ``(G,)``."""
        import lightgbm

        data = lightgbm.Dataset(statistics, targets, free_raw_data=True)
        return cls.from_text(lightgbm.train({**SETTINGS, "seed": seed}, data, ROUNDS).model_to_string())

    def predict(self, statistics: Array) -> Array:
        """``(B,)`` from statistics ``(B, F)``, on as many threads as torch uses."""
        if not len(statistics):
            return np.zeros(0)
        return np.asarray(self.booster.predict(statistics, num_threads=torch.get_num_threads()), np.float64)

    def to_tensor(self) -> Tensor:
        """The text as bytes."""
        return torch.frombuffer(bytearray(self.text.encode()), dtype=torch.uint8)

    @classmethod
    def from_text(cls, text: str, features: int | None = None) -> BoostedTrees:
        """From what LightGBM wrote, which is looked at before LightGBM is given it.

        Args:
            features: how many statistics the model must read; None: any number.

        Raises:
            DataError: the text is no model, an altered one, or one of other statistics.
        """
        try:
            checked = checked_trees(text, features)
        except DataError as error:
            raise DataError(f"the trees of a predictor cannot be read: {error}") from None
        import lightgbm

        try:
            return cls(text, lightgbm.Booster(model_str=checked))
        except lightgbm.basic.LightGBMError as error:
            raise DataError(f"the trees of a predictor cannot be read: {str(error).splitlines()[0]}") from None

    @classmethod
    def from_tensor(cls, tensor: Tensor, features: int | None = None) -> BoostedTrees:
        """Inverse of :meth:`to_tensor`; arguments and errors as of :meth:`from_text`."""
        if tensor.dtype != torch.uint8 or tensor.ndim != 1:
            shape = tuple(tensor.shape)
            raise DataError(f"the trees of a predictor are {tensor.dtype} of shape {shape}; expected bytes")
        try:
            text = tensor.numpy().tobytes().decode("ascii")
        except UnicodeDecodeError:
            raise DataError("the trees of a predictor cannot be read: they are no text") from None
        return cls.from_text(text, features)
