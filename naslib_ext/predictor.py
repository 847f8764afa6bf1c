"""NN-Former with NASLib's predictor interface. NASLib never checks types, so nothing of it is imported."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core import predictor as core
from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError
from nas_core.graph import Graph
from nas_core.predictor.recipes import Recipe, get_recipe
from naslib_ext.graphs import graph_of, space_of
from naslib_ext.targets import UNITS, units_of

__all__ = ["INVALID", "NNFormerPredictor"]

INVALID = -1.0
"""What is predicted for a cell that the benchmark does not have: NASLib's own value for it."""
REPORTED = ("epochs", "batch_size", "lr", "weight_decay", "rank_weight", "dropout", "dim", "depth")
"""Settings that are always among the hyperparameters, whether given or the recipe's."""
REMEMBERED = 16384
"""Predictions kept by graph until the next fit: acquisition functions ask for one architecture at a time, and
neighbourhoods overlap."""

_log = logging.getLogger(__name__)


class NNFormerPredictor:
    """Predicts validation accuracy in the units NASLib gives it; higher is better.

    Example:
        >>> evaluator = PredictorEvaluator(NNFormerPredictor(epochs=300), config=config)
        >>> ensemble = [copy.deepcopy(NNFormerPredictor(ss_type="nasbench201")) for _ in range(3)]

    NASLib makes ensembles by copying one object, so weights are drawn in :meth:`fit`: each fit takes one number from
    numpy's global stream, the one NASLib samples architectures from, and combines it with ``seed``. Members therefore
    differ, two fits of one object differ, and a run is repeated by seeding numpy, as NASLib's ``set_seed`` does.
    torch's global stream is left as it was.

    Cells that NAS-Bench-101 does not have are left out of training and predicted as -1.

    Args:
        ss_type: NASLib's name of the search space; its hosts set it by :meth:`set_ss_type`.
        encoding_type: kept for NASLib, not used: graphs are read from the architectures themselves.
        recipe: a name of ``nas_core.predictor.list_recipes()`` or a ``Recipe``.
        seed: combined with the number drawn in each fit.
        epochs: passes over the training architectures; None: the recipe's. ("paper" has 3000, for a GPU.)
        device: where to compute.
        units: of the targets: percent, fraction, any, or auto (see :func:`naslib_ext.targets.units_of`).
        hpo_wrapper: whether NASLib's evaluator shall search hyperparameters by cross-validation (it does where
            ``max_hpo_time`` is above 0; each trial is three fits).
        hyperparameters: other settings of the recipe by name (``lr=3e-4, dim=64, members=3``); None: the recipe's.

    Raises:
        ConfigError, UnknownChoiceError: a setting or recipe that does not exist.
    """

    def __init__(
        self,
        ss_type: str | None = None,
        encoding_type: Any = None,
        recipe: str | Recipe = "paper",
        seed: int = 0,
        epochs: int | None = None,
        *,
        device: str = "cpu",
        units: str = "auto",
        hpo_wrapper: bool = False,
        **hyperparameters: Any,
    ) -> None:
        if units not in UNITS:
            raise ConfigError(f"units of targets are {units!r}; expected one of {', '.join(UNITS)}")
        base = get_recipe(recipe) if isinstance(recipe, str) else recipe
        given = {name: value for name, value in {"epochs": epochs, **hyperparameters}.items() if value is not None}
        self.recipe = base.changed(**given)
        self.ss_type, self.encoding_type = ss_type, encoding_type
        self.seed, self.device = checked_seed(seed), usable_device(device)
        self.units, self.hpo_wrapper = units, hpo_wrapper
        flat = _flat(self.recipe)
        self.default_hyperparams: dict[str, Any] = {
            "recipe": self.recipe.name,
            **{name: flat[name] for name in dict.fromkeys((*REPORTED, *given))},
        }
        self.hyperparams: dict[str, Any] | None = None
        self._fitted: core.NNFormerPredictor | None = None
        self._units_per_target = 1.0
        self._predicted: dict[Graph, float] = {}

    # What NASLib's hosts call before a fit.

    def set_ss_type(self, ss_type: str) -> None:
        """Take the search space whose architectures will come.

        Raises:
            ConfigError, UnknownChoiceError: a search space that is not supported or not known.
        """
        space_of(ss_type)
        self.ss_type = ss_type

    def pre_process(self) -> None:
        """Nothing to prepare."""

    def pre_compute(self, xtrain: Any, xtest: Any, unlabeled: Any = None) -> None:
        """Nothing to prepare."""

    def get_data_reqs(self) -> dict[str, Any]:
        """Neither learning curves, hyperparameters of training nor unlabelled architectures."""
        return {
            "requires_partial_lc": False,
            "metric": None,
            "requires_hyperparameters": False,
            "hyperparams": [],
            "unlabeled": False,
            "unlabeled_factor": 0,
        }

    def set_pre_computations(
        self,
        unlabeled: Any = None,
        xtrain_zc_info: Any = None,
        xtest_zc_info: Any = None,
        unlabeled_zc_info: Any = None,
    ) -> None:
        """Zero-cost scores and unlabelled architectures are not used."""
        _log.info("NN-Former learns from graphs and accuracies alone: what was computed before is not used")

    # Hyperparameters: None stands for the default ones.

    def get_hpo_wrapper(self) -> bool:
        return self.hpo_wrapper

    def reset_hyperparams(self) -> None:
        self.hyperparams = None

    def set_hyperparams(self, hyperparams: Mapping[str, Any] | None) -> None:
        """Take other settings than the recipe's.

        Raises:
            ConfigError, UnknownChoiceError: a setting or recipe that does not exist.
        """
        if hyperparams is not None:
            self._recipe(hyperparams)
        self.hyperparams = None if hyperparams is None else dict(hyperparams)

    def get_hyperparams(self) -> dict[str, Any] | None:
        """Numbers and strings by name, those of the last fit; None where none were set and nothing was fitted."""
        return self.hyperparams

    def set_random_hyperparams(self) -> dict[str, Any]:
        """Set and return the default ones at first, then random ones, from numpy's global stream as NASLib's own."""
        chosen = dict(self.default_hyperparams)
        if self.hyperparams is not None:
            chosen |= {
                "lr": float(np.exp(np.random.uniform(np.log(3e-5), np.log(3e-3)))),
                "weight_decay": float(np.exp(np.random.uniform(np.log(1e-3), np.log(1e-1)))),
                "rank_weight": float(np.exp(np.random.uniform(np.log(0.05), np.log(1.0)))),
                "dropout": float(np.random.uniform(0.0, 0.2)),
                "batch_size": int(np.random.choice([16, 32, 64, 128])),
            }
        self.hyperparams = chosen
        return dict(chosen)

    # Learning and predicting.

    def fit(self, xtrain: Sequence[Any], ytrain: Sequence[float], train_info: Any = None) -> float:
        """Learn anew, whatever was fitted before.

        Args:
            xtrain: architecture objects of NASLib, or their descriptions.
            ytrain: as many accuracies; those of cells that do not exist are not looked at.
            train_info: not used.

        Returns:
            Mean absolute error on these architectures, in the units of ``ytrain``.

        Raises:
            GraphError: an architecture that does not belong to the search space.
            DataError: another number of targets, fewer than two architectures, a target that is no number.
        """
        if self.hyperparams is None:
            self.hyperparams = dict(self.default_hyperparams)
        recipe = self._recipe(self.hyperparams)
        targets = np.asarray(ytrain, np.float64)
        if targets.shape != (len(xtrain),):
            raise DataError(f"targets have shape {targets.shape} for {len(xtrain)} architectures; expected one each")
        graphs = [graph_of(architecture, self.ss_type) for architecture in xtrain]
        known = [index for index, graph in enumerate(graphs) if graph is not None]
        if len(known) < len(graphs):
            _log.info("%d of %d cells are not in the benchmark: left out", len(graphs) - len(known), len(graphs))
        learned = [graph for graph in graphs if graph is not None]
        units = units_of(targets[known]) if self.units == "auto" else self.units
        raw = recipe.targets == "none" and recipe.train.loss == "mse"
        if raw and units == "any":
            recipe = recipe.changed(targets="mean")
        units_per_target = 100.0 if raw and units == "percent" else 1.0
        drawn = np.random.SeedSequence([self.seed, int(np.random.randint(2**31 - 1))])
        fitted = core.NNFormerPredictor(
            recipe, seed=int(drawn.generate_state(1)[0]), device=str(self.device), unseen="ignore"
        )
        fitted.fit(learned, targets[known] / units_per_target)
        self._fitted, self._predicted, self._units_per_target = fitted, {}, units_per_target
        return float(np.abs(self._predict(learned) - targets[known]).mean())

    def query(self, xtest: Sequence[Any], info: Any = None) -> NDArray[np.float64]:
        """Predictions ``(n,)`` in the units of the targets; -1 for cells that the benchmark does not have.

        Raises:
            ConfigError: nothing was fitted yet.
            GraphError: an architecture that does not belong to the search space.
        """
        graphs = [graph_of(architecture, self.ss_type) for architecture in xtest]
        predictions = np.full(len(graphs), INVALID)
        known = [index for index, graph in enumerate(graphs) if graph is not None]
        predictions[known] = self._predict([graph for graph in graphs if graph is not None])
        return predictions

    def _predict(self, graphs: list[Graph]) -> NDArray[np.float64]:
        if self._fitted is None:
            raise ConfigError("this predictor was not fitted; call fit before query")
        new = [graph for graph in dict.fromkeys(graphs) if graph not in self._predicted]
        if new:
            scaled = self._fitted.predict(new) * self._units_per_target
            self._predicted |= zip(new, scaled.tolist(), strict=True)
        predictions = np.array([self._predicted[graph] for graph in graphs], np.float64)
        if len(self._predicted) > REMEMBERED:
            self._predicted = {}
        return predictions

    def _recipe(self, hyperparams: Mapping[str, Any]) -> Recipe:
        settings = dict(hyperparams)
        name = settings.pop("recipe", self.recipe.name)
        base = self.recipe if name == self.recipe.name else get_recipe(name)
        now = _flat(base)
        return base.changed(**{k: v for k, v in settings.items() if k not in now or now[k] != v})

    def __getstate__(self) -> dict[str, Any]:
        """Copies, of which NASLib makes many, do not take the predictions along."""
        return {**self.__dict__, "_predicted": {}}


def _flat(recipe: Recipe) -> dict[str, Any]:
    """All settings by name."""
    settings = recipe.to_dict()
    return {**settings, **settings["model"], **settings["train"]}
