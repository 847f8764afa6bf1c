"""Gradient-boosted trees on graph statistics, by LightGBM: rules with thresholds, where a process is smooth."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.errors import DataError

if TYPE_CHECKING:
    import lightgbm  # takes a second where scikit-learn is installed, so it is imported where it is used

Array = NDArray[np.float64]
ROUNDS = 200
_NUMBERED = re.compile(r"^Tree=\d+\n", re.MULTILINE)
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
    def fit(
        cls, statistics: Array, targets: Array, seed: int = 0, weights: Array | None = None, **changes: Any
    ) -> BoostedTrees:
        """From statistics ``(G, F)`` and targets ``(G,)``.

        Args:
            weights: ``(G,)`` how much each graph counts.
            changes: other values of :data:`SETTINGS`, by LightGBM's names.
        """
        import lightgbm

        data = lightgbm.Dataset(statistics, targets, weight=weights, free_raw_data=True)
        text = lightgbm.train({**SETTINGS, "seed": seed, **changes}, data, ROUNDS).model_to_string()
        return cls.from_text(text)

    def predict(self, statistics: Array) -> Array:
        """``(B,)`` from statistics ``(B, F)``, on as many threads as torch uses."""
        if not len(statistics):
            return np.zeros(0)
        return np.asarray(self.booster.predict(statistics, num_threads=torch.get_num_threads()), np.float64)

    def to_tensor(self) -> Tensor:
        """The text as bytes."""
        return torch.frombuffer(bytearray(self.text.encode()), dtype=torch.uint8)

    @classmethod
    def from_text(cls, text: str) -> BoostedTrees:
        """Read what LightGBM wrote.

        Raises:
            DataError: the text is no model.
        """
        import lightgbm

        try:
            return cls(text, lightgbm.Booster(model_str=text))
        except lightgbm.basic.LightGBMError as error:
            raise DataError(f"the trees of a predictor cannot be read: {str(error).splitlines()[0]}") from None

    @classmethod
    def from_tensor(cls, tensor: Tensor) -> BoostedTrees:
        """Invert :meth:`to_tensor`; errors as of :meth:`from_text`."""
        return cls.from_text(tensor.numpy().tobytes().decode())


@dataclass(frozen=True)
class Forest:
    """Several boosted models as one of LightGBM's, for few graphs: asking it takes longer than what it computes."""

    booster: lightgbm.Booster
    models: int

    @classmethod
    def of(cls, models: Sequence[BoostedTrees]) -> Forest:
        """From at least one model."""
        import lightgbm

        heads, bodies, rest = zip(*(_parts(each.text) for each in models), strict=True)
        numbers = itertools.count()
        trees = _NUMBERED.sub(lambda _: f"Tree={next(numbers)}\n", "".join(bodies))
        head = re.sub(r"^tree_sizes=.*\n", "", heads[0], flags=re.MULTILINE)  # without them it reads tree after tree
        return cls(lightgbm.Booster(model_str=head + trees + rest[0]), len(models))

    def predict(self, statistics: Array) -> Array:
        """Mean of the models' predictions, ``(B,)`` from statistics ``(B, F)``."""
        return np.asarray(self.booster.predict(statistics, num_threads=1), np.float64) / self.models


def _parts(text: str) -> tuple[str, str, str]:
    """What stands before the trees, the trees, and what stands behind them."""
    first, last = text.index("\nTree=0\n") + 1, text.index("end of trees")
    return text[:first], text[first:last], text[last:]
