"""NN-Former by name in NASLib's search methods.

Bananas, Npenas and BasePredictor take ``config.search.predictor_type`` and let ``Ensemble.get_ensemble`` make the
predictors from a table inside that function, which cannot be extended. It is wrapped once; names that are not ours go
on to NASLib.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from nas_core.errors import ConfigError
from naslib_ext.compat import load
from naslib_ext.predictor import NNFormerPredictor

__all__ = ["register", "unregister"]

NASLIB_NAMES = frozenset(
    (
        "bananas", "bayes_lin_reg", "bohamiann", "bonas", "dngo", "gcn", "gp", "gpwl", "lgb", "mlp", "nao", "ngb",
        "omni_ngb", "omni_seminas", "rf", "seminas", "sparse_gp", "var_sparse_gp", "xgb",
    )
)  # fmt: skip
"""The predictors of NASLib's own table."""
_TABLE = "_nas_ext_predictors"

_log = logging.getLogger(__name__)


def register(name: str = "nnformer", **hyperparameters: Any) -> None:
    """Let ``config.search.predictor_type = name`` mean an ensemble of NN-Formers.

    Take ``num_ensemble`` above 1: NASLib's BasePredictor averages over the architectures where there is one member
    only, and its Thompson sampling needs a spread.

    Args:
        name: new to NASLib; without "semi", by which NASLib recognises predictors that want unlabelled architectures.
        hyperparameters: of :class:`naslib_ext.predictor.NNFormerPredictor` (``recipe, seed, epochs, device, lr ...``).

    Raises:
        ConfigError: the name is taken, by NASLib or with other hyperparameters, or holds "semi"; an unknown setting.
        MissingHostError: NASLib cannot be imported.
    """
    if "semi" in name:
        raise ConfigError(f"the name {name!r} holds 'semi', which NASLib takes for semi-supervised; give another one")
    if name in NASLIB_NAMES:
        raise ConfigError(f"{name!r} is a predictor of NASLib's own; give another name, such as 'nnformer'")
    NNFormerPredictor(**hyperparameters)  # a wrong setting is told now, not in the middle of a search
    table = _table()
    if name in table and table[name] != hyperparameters:
        raise ConfigError(
            f"predictor {name!r} is registered with {_shown(table[name])}; it cannot also have"
            f" {_shown(hyperparameters)}: give another name, or unregister it first"
        )
    if name not in table:
        table[name] = hyperparameters
        _log.info("predictor %r of NASLib's search methods: NN-Former with %s", name, _shown(hyperparameters))


def unregister(name: str = "nnformer") -> None:
    """Forget a name; one that is not registered is left alone."""
    _table().pop(name, None)


def _table() -> dict[str, dict[str, Any]]:
    """Our names and their hyperparameters, kept by NASLib's class: there is one table, however we are imported."""
    (module,) = load("naslib.predictors.ensemble")
    ensemble = module.Ensemble
    if not hasattr(ensemble, _TABLE):
        setattr(ensemble, _TABLE, {})
        ensemble.get_ensemble = _extended(ensemble.get_ensemble)
    table: dict[str, dict[str, Any]] = getattr(ensemble, _TABLE)
    return table


def _extended(own: Any) -> Any:
    @functools.wraps(own)
    def get_ensemble(self: Any) -> Any:
        hyperparameters = getattr(self, _TABLE).get(self.predictor_type)
        if hyperparameters is None:
            return own(self)
        return [
            NNFormerPredictor(self.ss_type, self.encoding_type, **hyperparameters) for _ in range(self.num_ensemble)
        ]

    return get_ensemble


def _shown(hyperparameters: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in sorted(hyperparameters.items())) or "the recipe's settings"
