"""Accuracy models by name in NASLib's search methods, by a wrapper of ``Ensemble.get_ensemble``."""

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
"""NASLib's own predictors."""
_TABLE = "_nas_ext_predictors"

_log = logging.getLogger(__name__)


def register(name: str = "nnformer", *, spread: bool = False, **hyperparameters: Any) -> None:
    """Let ``config.search.predictor_type = name`` mean an ensemble of one accuracy model, by default NN-Former.

    Use ``num_ensemble`` above 1: with one member NASLib's Thompson sampling has no deviation.

    Args:
        name: a name that NASLib lacks; "semi" in it would mean semi-supervised in NASLib.
        spread: members are quantiles of one model, so that NASLib's acquisition functions (its, ucb, ei) use its
            calibrated standard deviation, and each round fits one model. NASLib's ``ei`` divides it by 5.
        hyperparameters: arguments of :class:`AccuracyPredictor`.

    Raises:
        ConfigError: the name is in use, by NASLib or with other hyperparameters; an unknown setting.
        MissingHostError: NASLib cannot be imported.
    """
    if "semi" in name or name in NASLIB_NAMES:
        raise ConfigError(f"the name {name!r} has a meaning in NASLib; give another name, such as 'nnformer'")
    member, table = AccuracyPredictor(**hyperparameters), _table()
    if spread:
        member.require_std()
    settings = {**hyperparameters, **({"spread": True} if spread else {})}
    if name in table and table[name][0] != settings:
        raise ConfigError(
            f"predictor {name!r} is registered with {_shown(table[name][0])}; it cannot also have"
            f" {_shown(settings)}: give another name, or unregister it first"
        )
    if name not in table:
        table[name] = settings, member
        _log.info("predictor %r of NASLib's search methods: %s with %s", name, member.model, _shown(settings))


def unregister(name: str = "nnformer") -> None:
    """Remove a registered name, if any."""
    _table().pop(name, None)


def _table() -> dict[str, tuple[dict[str, Any], AccuracyPredictor]]:
    (module,) = load("naslib.predictors.ensemble")
    ensemble = module.Ensemble
    if not hasattr(ensemble, _TABLE):
        setattr(ensemble, _TABLE, {})
        ensemble.get_ensemble = _extended(ensemble.get_ensemble)
    table: dict[str, tuple[dict[str, Any], AccuracyPredictor]] = getattr(ensemble, _TABLE)
    return table


def _extended(method: Any) -> Any:
    @functools.wraps(method)
    def get_ensemble(self: Any) -> Any:
        registered = getattr(self, _TABLE).get(self.predictor_type)
        if registered is None:
            return method(self)
        shared = registered[0].get("spread", False)
        members = [copy.deepcopy(registered[1]) for _ in range(1 if shared else self.num_ensemble)]
        for member in members:
            member.ss_type, member.encoding_type = self.ss_type, self.encoding_type
        return members_of(members[0], self.num_ensemble) if shared else members

    return get_ensemble


def _shown(hyperparameters: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in sorted(hyperparameters.items())) or "default settings"


class EnsembleMember:
    """Quantile of a shared predictor as a member of NASLib's ensemble.

    numpy's ``mean`` and ``std`` over the members are the predictor's mean and standard deviation.

    Args:
        shared: predictor of all members; its other attributes are the member's.
        deviations: quantile, in standard deviations above the mean.
        first: member whose fit fits the shared predictor; None: this one.
    """

    def __init__(self, shared: AccuracyPredictor, deviations: float, first: EnsembleMember | None = None) -> None:
        self.shared, self.deviations, self.first = shared, deviations, first
        self.error = 0.0

    def fit(self, xtrain: Sequence[Any], ytrain: Sequence[float], train_info: Any = None) -> float:
        """Fit the shared predictor once."""
        if self.first is not None:
            return self.first.error
        self.error = self.shared.fit(xtrain, ytrain, train_info)
        return self.error

    def query(self, xtest: Sequence[Any], info: Any = None) -> NDArray[np.float64]:
        """Return the quantile ``(n,)``."""
        mean, deviation = self.shared.query_with_std(xtest, info)
        return mean + self.deviations * deviation

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "shared":  # of incomplete copies
            raise AttributeError(name)
        return getattr(self.shared, name)


def members_of(predictor: AccuracyPredictor, count: int) -> list[EnsembleMember]:
    if count < 2:
        raise ConfigError(f"num_ensemble is {count}, and spread=True shows the spread between members; give 2 or more")
    quantiles = ndtri((np.arange(count) + 0.5) / count)
    lowest, *others = (quantiles / quantiles.std()).tolist()
    first = EnsembleMember(predictor, lowest)
    return [first, *(EnsembleMember(predictor, deviations, first) for deviations in others)]
