"""Accuracy models with NASLib's predictor interface."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError
from nas_core.predictor import ACCURACY_MODELS, AccuracyModel, NNFormerPredictor, StatisticsPredictor
from nas_core.predictor.recipes import Recipe, get_recipe
from nas_core.progress import slow_training
from naslib_ext.graphs import graph_of, space_of

INVALID = -1.0
"""Prediction for a cell that the benchmark lacks."""

_log = logging.getLogger(__name__)


def units_of(targets: NDArray[np.float64]) -> str:
    """Return the unit of targets ``(n,)`` by their range: ``fraction`` (0 to 1), ``percent`` (0 to 100) or ``any``."""
    if not len(targets) or targets.min() < 0 or targets.max() > 100:
        return "any"
    return "percent" if targets.max() > 1 else "fraction"


class AccuracyPredictor:
    """Accuracy model with NASLib's predictor interface; it predicts validation accuracy in the unit of the targets.

    Example:
        >>> evaluator = PredictorEvaluator(AccuracyPredictor(), config=config)

    Fits draw from numpy's global generator in addition to ``seed``; call NASLib's ``set_seed`` for repeatable results.
    Cells that NAS-Bench-101 lacks are predicted as -1.

    Args:
        ss_type: NASLib's name of the search space.
        encoding_type: not used.
        model: a name of ``nas_core.predictor.ACCURACY_MODELS``.
        hyperparameters: settings of the model, such as ``trees=4``; None is the default of a setting.

    Raises:
        ConfigError, UnknownChoiceError: the model or a setting is unknown.
    """

    def __init__(
        self,
        ss_type: str | None = None,
        encoding_type: Any = None,
        *,
        model: str = StatisticsPredictor.name,
        seed: int = 0,
        device: str = "cpu",
        **hyperparameters: Any,
    ) -> None:
        self.model, self.ss_type, self.encoding_type = model, ss_type, encoding_type
        self.seed, self.device = checked_seed(seed), usable_device(device)
        self.changes = {name: value for name, value in hyperparameters.items() if value is not None}
        self.default_hyperparams: dict[str, Any] = self._defaults()
        self.hyperparams: dict[str, Any] | None = None
        self._fitted: AccuracyModel | None = None
        self._units_per_target = 1.0

    def _defaults(self) -> dict[str, Any]:
        recipe = self._recipe({})
        return asdict(self._create({}, 0).config) if recipe is None else {"recipe": recipe.name, **self.changes}

    def _recipe(self, hyperparams: Mapping[str, Any]) -> Recipe | None:
        if self.model != NNFormerPredictor.name:
            return None
        settings = {"recipe": "paper", **self.changes, **hyperparams}
        return get_recipe(settings.pop("recipe")).with_changes(**settings)

    def _create(self, hyperparams: Mapping[str, Any], seed: int, units: str = "any") -> AccuracyModel:
        options: dict[str, Any] = {"seed": seed, "device": str(self.device), "unseen": "ignore"}
        recipe = self._recipe(hyperparams)
        if recipe is None:
            return ACCURACY_MODELS.get(self.model)(**options, **{**self.changes, **hyperparams})
        if _needs_fractions(recipe) and units == "any":
            recipe = recipe.with_changes(targets="mean")
        return NNFormerPredictor(recipe, **options)

    def set_ss_type(self, ss_type: str) -> None:
        space_of(ss_type)
        self.ss_type = ss_type

    def pre_process(self) -> None:
        pass

    def pre_compute(self, xtrain: Any, xtest: Any, unlabeled: Any = None) -> None:
        pass

    def get_data_reqs(self) -> dict[str, Any]:
        return {
            "requires_partial_lc": False,
            "metric": None,
            "requires_hyperparameters": False,
            "hyperparams": [],
            "unlabeled": False,
            "unlabeled_factor": 0,
        }

    def get_hpo_wrapper(self) -> bool:
        return False

    def reset_hyperparams(self) -> None:
        self.hyperparams = None

    def set_hyperparams(self, hyperparams: Mapping[str, Any] | None) -> None:
        if hyperparams is not None:
            self._create(hyperparams, self.seed)
        self.hyperparams = None if hyperparams is None else dict(hyperparams)

    def get_hyperparams(self) -> dict[str, Any] | None:
        return self.hyperparams

    @property
    def has_std(self) -> bool:
        return self._create(self.hyperparams or self.default_hyperparams, 0).has_std

    def fit(self, xtrain: Sequence[Any], ytrain: Sequence[float], train_info: Any = None) -> float:
        """Fit a new model; return its mean absolute error on the training data.

        Args:
            xtrain: architecture objects of NASLib, or their compact descriptions.
            ytrain: accuracies; those of cells that the benchmark lacks are ignored.
            train_info: not used.
        """
        if self.hyperparams is None:
            self.hyperparams = dict(self.default_hyperparams)
        targets = np.asarray(ytrain, np.float64)
        if targets.shape != (len(xtrain),):
            raise DataError(
                f"ytrain has shape {targets.shape} for {len(xtrain)} architectures; expected shape ({len(xtrain)},)"
            )
        graphs = [graph_of(architecture, self.ss_type) for architecture in xtrain]
        existing = [index for index, graph in enumerate(graphs) if graph is not None]
        if len(existing) < len(graphs):
            _log.info("skipped %d of %d cells: the benchmark lacks them", len(graphs) - len(existing), len(graphs))
        known = [graph for graph in graphs if graph is not None]
        units, recipe = units_of(targets[existing]), self._recipe(self.hyperparams)
        in_percent = units == "percent" and recipe is not None and _needs_fractions(recipe)
        units_per_target = 100.0 if in_percent else 1.0
        seeds = np.random.SeedSequence([self.seed, int(np.random.randint(2**31 - 1))])
        fitted = self._create(self.hyperparams, int(seeds.generate_state(1)[0]), units)
        fitted.fit(known, targets[existing] / units_per_target, progress=slow_training(f"training {self.model}"))
        self._fitted, self._units_per_target = fitted, units_per_target
        return float(np.abs(units_per_target * fitted.predict(known) - targets[existing]).mean())

    def query(self, xtest: Sequence[Any], info: Any = None) -> NDArray[np.float64]:
        """Return predictions ``(n,)`` in the unit of the training targets.

        Args:
            xtest: architecture objects of NASLib, or their compact descriptions.
            info: not used.
        """
        return self._query(xtest)[0]

    def query_with_std(self, xtest: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return predictions ``(n,)`` and their standard deviations ``(n,)``; see :meth:`query`."""
        if self._fitted is not None:
            self._fitted.require_std()
        return self._query(xtest)

    def _query(self, xtest: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self._fitted is None:
            raise ConfigError("the predictor is not fitted; call fit before query")
        graphs = [graph_of(architecture, self.ss_type) for architecture in xtest]
        predictions, deviations = np.full(len(graphs), INVALID), np.zeros(len(graphs))
        existing = [index for index, graph in enumerate(graphs) if graph is not None]
        means, std = self._fitted.predictions([graph for graph in graphs if graph is not None])
        predictions[existing] = self._units_per_target * means
        if std is not None:
            deviations[existing] = self._units_per_target * std
        return predictions, deviations


def _needs_fractions(recipe: Recipe) -> bool:
    return recipe.targets == "none" and recipe.train.loss == "mse"
