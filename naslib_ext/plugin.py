"""Accuracy models by name in NASLib's search methods.

Bananas, Npenas and BasePredictor take ``config.search.predictor_type`` and let ``Ensemble.get_ensemble`` make the
predictors from a table inside that function, which cannot be extended. It is wrapped once; names that are not ours go
on to NASLib.
"""

from __future__ import annotations

import copy
import functools
import logging
from typing import Any

from nas_core import predictor as core
from nas_core.errors import ConfigError
from naslib_ext.compat import load
from naslib_ext.nn_former import NNFormerPredictor
from naslib_ext.predictor import AccuracyPredictor
from naslib_ext.spread import members_of

NASLIB_NAMES = frozenset(
    (
        "bananas", "bayes_lin_reg", "bohamiann", "bonas", "dngo", "gcn", "gp", "gpwl", "lgb", "mlp", "nao", "ngb",
        "omni_ngb", "omni_seminas", "rf", "seminas", "sparse_gp", "var_sparse_gp", "xgb",
    )
)  # fmt: skip
"""The predictors of NASLib's own table."""
_TABLE = "_nas_ext_predictors"

_log = logging.getLogger(__name__)


def made_predictor(model: str = core.NNFormerPredictor.name, **hyperparameters: Any) -> AccuracyPredictor:
    """The predictor of an accuracy model by its name.

    Args:
        model: a name of ``nas_core.predictor.ACCURACY_MODELS``.
        hyperparameters: of :class:`naslib_ext.nn_former.NNFormerPredictor`, or of
            :class:`naslib_ext.predictor.AccuracyPredictor` for other models.

    Raises:
        ConfigError, UnknownChoiceError: a model or a setting that does not exist.
    """
    if model == core.NNFormerPredictor.name:
        return NNFormerPredictor(**hyperparameters)
    return AccuracyPredictor(model=model, **hyperparameters)


def register(name: str = "nnformer", *, spread: bool = False, **hyperparameters: Any) -> None:
    """Let ``config.search.predictor_type = name`` mean an ensemble of one accuracy model, by default NN-Former.

    Take ``num_ensemble`` above 1: NASLib's BasePredictor averages over the architectures where there is one member
    only, and its Thompson sampling needs a spread.

    Args:
        name: new to NASLib; without "semi", by which NASLib recognises predictors that want unlabelled architectures.
        spread: members are quantiles of one model instead of models of their own: NASLib's acquisition functions (its,
            ucb, ei) then see its calibrated spread, and each round fits one model. It is for models that have a spread;
            NASLib's ``ei`` divides what it sees by 5.
        hyperparameters: of :func:`made_predictor`: ``model``, and that model's (``recipe, seed, epochs, device ...``).

    Raises:
        ConfigError: the name is taken, by NASLib or with other hyperparameters, or holds "semi"; an unknown setting.
        MissingHostError: NASLib cannot be imported.
    """
    if "semi" in name:
        raise ConfigError(f"the name {name!r} holds 'semi', which NASLib takes for semi-supervised; give another one")
    if name in NASLIB_NAMES:
        raise ConfigError(f"{name!r} is a predictor of NASLib's own; give another name, such as 'nnformer'")
    member, table = made_predictor(**hyperparameters), _table()
    if spread:
        member.require_spread()
    given = {**hyperparameters, **({"spread": True} if spread else {})}
    if name in table and table[name][0] != given:
        raise ConfigError(
            f"predictor {name!r} is registered with {_shown(table[name][0])}; it cannot also have"
            f" {_shown(given)}: give another name, or unregister it first"
        )
    if name not in table:
        table[name] = given, member
        _log.info("predictor %r of NASLib's search methods: %s with %s", name, member.model, _shown(given))


def unregister(name: str = "nnformer") -> None:
    """Forget a name; one that is not registered is left alone."""
    _table().pop(name, None)


def _table() -> dict[str, tuple[dict[str, Any], AccuracyPredictor]]:
    """Our names with their hyperparameters and a first member, kept by NASLib's class: there is one table, however we
    are imported."""
    (module,) = load("naslib.predictors.ensemble")
    ensemble = module.Ensemble
    if not hasattr(ensemble, _TABLE):
        setattr(ensemble, _TABLE, {})
        ensemble.get_ensemble = _extended(ensemble.get_ensemble)
    table: dict[str, tuple[dict[str, Any], AccuracyPredictor]] = getattr(ensemble, _TABLE)
    return table


def _extended(own: Any) -> Any:
    @functools.wraps(own)
    def get_ensemble(self: Any) -> Any:
        registered = getattr(self, _TABLE).get(self.predictor_type)
        if registered is None:
            return own(self)
        shared = registered[0].get("spread", False)
        members = [copy.deepcopy(registered[1]) for _ in range(1 if shared else self.num_ensemble)]
        for member in members:
            member.ss_type, member.encoding_type = self.ss_type, self.encoding_type
        return members_of(members[0], self.num_ensemble) if shared else members

    return get_ensemble


def _shown(hyperparameters: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in sorted(hyperparameters.items())) or "default settings"
