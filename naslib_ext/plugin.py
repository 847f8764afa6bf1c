"""Registration of accuracy models as predictors of NASLib's search methods."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from nas_core.errors import ConfigError
from naslib_ext.compat import load
from naslib_ext.predictor import AccuracyPredictor

NASLIB_NAMES = frozenset(
    (
        "bananas", "bayes_lin_reg", "bohamiann", "bonas", "dngo", "gcn", "gp", "gpwl", "lgb", "mlp", "nao", "ngb",
        "omni_ngb", "omni_seminas", "rf", "seminas", "sparse_gp", "var_sparse_gp", "xgb",
    )
)  # fmt: skip
"""Names of NASLib's own predictors."""
_TABLE = "_nas_ext_predictors"

_log = logging.getLogger(__name__)


def register(name: str = "statistics", **hyperparameters: Any) -> None:
    """Register an accuracy model, by default ``statistics``, for ``config.search.predictor_type = name``.

    Set NASLib's ``num_ensemble`` above 1; its acquisition functions need the standard deviation between members. If the
    model has a standard deviation, a round fits one model, whose members are quantiles of its predictive distribution
    (``ei`` divides the standard deviation by 5). Otherwise, each member is a model of its own.

    Args:
        name: a name that NASLib does not use and that does not contain "semi".
        hyperparameters: arguments of :class:`AccuracyPredictor`.

    Raises:
        ConfigError: the name is used by NASLib or registered with other hyperparameters, or a setting is unknown.
        MissingHostError: NASLib cannot be imported.
    """
    if "semi" in name or name in NASLIB_NAMES:
        raise ConfigError(f"predictor name {name!r} is used by NASLib; give another name, such as 'statistics'")
    member, table = AccuracyPredictor(**hyperparameters), _table()
    if name in table and table[name][0] != hyperparameters:
        raise ConfigError(
            f"predictor {name!r} is already registered with {_format(table[name][0])}, not with"
            f" {_format(hyperparameters)}; give another name"
        )
    if name not in table:
        table[name] = hyperparameters, member
        _log.info("registered predictor %r in NASLib: model %s with %s", name, member.model, _format(hyperparameters))


def _table() -> dict[str, tuple[dict[str, Any], AccuracyPredictor]]:
    (module,) = load("naslib.predictors.ensemble")
    ensemble = module.Ensemble
    if not hasattr(ensemble, _TABLE):
        setattr(ensemble, _TABLE, {})
        ensemble.get_ensemble = _extend(ensemble.get_ensemble)
    table: dict[str, tuple[dict[str, Any], AccuracyPredictor]] = getattr(ensemble, _TABLE)
    return table


def _extend(method: Any) -> Any:
    @functools.wraps(method)
    def get_ensemble(self: Any) -> Any:
        registered = getattr(self, _TABLE).get(self.predictor_type)
        if registered is None:
            return method(self)
        shared = registered[1].has_std and self.num_ensemble > 1
        members = [copy.deepcopy(registered[1]) for _ in range(1 if shared else self.num_ensemble)]
        for member in members:
            member.ss_type, member.encoding_type = self.ss_type, self.encoding_type
        return members_of(members[0], self.num_ensemble) if shared else members

    return get_ensemble


def _format(hyperparameters: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in sorted(hyperparameters.items())) or "default settings"


class EnsembleMember:
    """Member of a NASLib ensemble that predicts one quantile of a shared predictor.

    The mean and standard deviation over all members are those of the shared predictor.

    Args:
        deviations: the quantile, in standard deviations above the mean.
        first: member that fits the shared predictor; None if this member does.
    """

    def __init__(self, shared: AccuracyPredictor, deviations: float, first: EnsembleMember | None = None) -> None:
        self.shared, self.deviations, self.first = shared, deviations, first
        self.error = 0.0

    def fit(self, xtrain: Sequence[Any], ytrain: Sequence[float], train_info: Any = None) -> float:
        if self.first is not None:
            return self.first.error
        self.error = self.shared.fit(xtrain, ytrain, train_info)
        return self.error

    def query(self, xtest: Sequence[Any], info: Any = None) -> NDArray[np.float64]:
        mean, deviation = self.shared.query_with_std(xtest)
        return mean + self.deviations * deviation

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "shared":  # of incomplete copies
            raise AttributeError(name)
        return getattr(self.shared, name)


def members_of(predictor: AccuracyPredictor, count: int) -> list[EnsembleMember]:
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    lowest, *others = (quantiles / quantiles.std()).tolist()
    first = EnsembleMember(predictor, lowest)
    return [first, *(EnsembleMember(predictor, deviations, first) for deviations in others)]
