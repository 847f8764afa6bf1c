"""One model in the place of NASLib's ensemble, whose members' mean and deviation are its prediction and spread.

NASLib's acquisition functions know no standard deviation but that between the members of an ensemble. Here the members
share one fitted model and say different quantiles of what it predicts, placed so that numpy's ``mean`` and ``std`` over
them are its prediction and its standard deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError
from naslib_ext.predictor import AccuracyPredictor


class SpreadMember:
    """A member that predicts so many standard deviations above the mean; what else it is asked for, the shared
    predictor answers.

    Args:
        shared: the predictor of all members.
        deviations: how many.
        first: the member whose fit fits the shared predictor; None: this one. NASLib fits one after another.
    """

    def __init__(self, shared: AccuracyPredictor, deviations: float, first: SpreadMember | None = None) -> None:
        self.shared, self.deviations, self.first = shared, deviations, first
        self.error = 0.0

    def fit(self, xtrain: Sequence[Any], ytrain: Sequence[float], train_info: Any = None) -> float:
        """Fit the shared predictor, once; arguments and errors as of :meth:`AccuracyPredictor.fit`."""
        if self.first is not None:
            return self.first.error
        self.error = self.shared.fit(xtrain, ytrain, train_info)
        return self.error

    def query(self, xtest: Sequence[Any], info: Any = None) -> NDArray[np.float64]:
        """``(n,)``; arguments and errors as of :meth:`AccuracyPredictor.query_with_spread`."""
        mean, spread = self.shared.query_with_spread(xtest, info)
        return mean + self.deviations * spread

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "shared":  # asked for by copies that are not filled yet
            raise AttributeError(name)
        return getattr(self.shared, name)


def members_of(predictor: AccuracyPredictor, count: int) -> list[SpreadMember]:
    """So many members of one predictor.

    Raises:
        ConfigError: fewer than two, which have no deviation.
    """
    if count < 2:
        raise ConfigError(f"num_ensemble is {count}, and spread=True shows the spread between members; give 2 or more")
    deviations = ndtri((np.arange(count) + 0.5) / count)
    lowest, *others = (deviations / deviations.std()).tolist()
    first = SpreadMember(predictor, lowest)
    return [first, *(SpreadMember(predictor, each, first) for each in others)]
