"""Accuracy models with NASLib's predictor interface. NASLib never checks types, so nothing of it is imported."""

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
from nas_core.graph import Graph
from nas_core.predictor import ACCURACY_MODELS, AccuracyModel
from nas_core.progress import slow_training
from naslib_ext.graphs import graph_of, space_of
from naslib_ext.targets import UNITS, units_of

INVALID = -1.0
"""What is predicted for a cell that the benchmark does not have: NASLib's own value for it."""
REMEMBERED = 16384
"""Predictions kept by graph until the next fit: acquisition functions ask for one architecture at a time, and
neighbourhoods overlap."""

_log = logging.getLogger(__name__)


class AccuracyPredictor:
    """Any accuracy model of ``nas_core`` by name; predicts validation accuracy in NASLib's units, higher is better.

    Example:
        >>> evaluator = PredictorEvaluator(AccuracyPredictor(model="boosted-trees"), config=config)

    NASLib makes ensembles by copying one object, so what is random is drawn in :meth:`fit`: each fit takes one number
    from numpy's global stream, the one NASLib samples architectures from, and combines it with ``seed``. Members
    therefore differ, two fits of one object differ, and a run is repeated by seeding numpy, as NASLib's ``set_seed``
    does. torch's global stream is left as it was.

    Cells that NAS-Bench-101 does not have are left out of training and predicted as -1.

    Args:
        ss_type: NASLib's name of the search space; its hosts set it by :meth:`set_ss_type`.
        encoding_type: kept for NASLib, not used: graphs are read from the architectures themselves.
        model: a name of ``nas_core.predictor.ACCURACY_MODELS``.
        seed: combined with the number drawn in each fit.
        device: where to compute.
        units: of the targets: percent, fraction, any, or auto (see :func:`naslib_ext.targets.units_of`).
        hpo_wrapper: whether NASLib's evaluator shall search hyperparameters by cross-validation (it does where
            ``max_hpo_time`` is above 0; each trial is three fits).
        hyperparameters: settings of the model by name; None: its default.

    Raises:
        ConfigError, UnknownChoiceError: a model or a setting that does not exist.
    """

    def __init__(
        self,
        ss_type: str | None = None,
        encoding_type: Any = None,
        *,
        model: str,
        seed: int = 0,
        device: str = "cpu",
        units: str = "auto",
        hpo_wrapper: bool = False,
        **hyperparameters: Any,
    ) -> None:
        if units not in UNITS:
            raise ConfigError(f"units of targets are {units!r}; expected one of {', '.join(UNITS)}")
        self.model = model
        self.ss_type, self.encoding_type = ss_type, encoding_type
        self.seed, self.device = checked_seed(seed), usable_device(device)
        self.units, self.hpo_wrapper = units, hpo_wrapper
        given = {name: value for name, value in hyperparameters.items() if value is not None}
        self.default_hyperparams: dict[str, Any] = self._defaults(given)
        self.hyperparams: dict[str, Any] | None = None
        self._fitted: AccuracyModel | None = None
        self._units_per_target = 1.0
        self._predicted: dict[tuple[Graph, tuple[float, ...]], tuple[float, float]] = {}
        self._zero_cost: dict[str, list[Mapping[str, float]]] = {}

    # What differs between models.

    def _defaults(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The hyperparameters that NASLib is told, with those that were given."""
        return asdict(self._made(given, 0).config)

    def _made(self, hyperparams: Mapping[str, Any], seed: int, units: str = "any") -> AccuracyModel:
        """A new model with these hyperparameters, for targets in these units."""
        return ACCURACY_MODELS.get(self.model)(seed=seed, device=str(self.device), unseen="ignore", **hyperparams)

    def _units_of(self, hyperparams: Mapping[str, Any], units: str) -> float:
        """By how much targets in these units are divided before they are learned."""
        return 1.0

    def _random(self) -> dict[str, Any]:
        """Random values of some hyperparameters, from numpy's global stream."""
        return {}

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
        """Take zero-cost scores of the architectures of the next fit, and of those of the next query where it comes
        without; they are read beside the graphs. Unlabelled architectures are not used."""
        given = {"fit": xtrain_zc_info, "query": xtest_zc_info}
        found = {use: (info or {}).get("zero_cost_scores") for use, info in given.items()}
        self._zero_cost |= {use: list(scores) for use, scores in found.items() if scores is not None}
        if unlabeled is not None or unlabeled_zc_info is not None:
            _log.info("the model learns from labelled architectures alone: others are not used")

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
            self._made(hyperparams, self.seed)
        self.hyperparams = None if hyperparams is None else dict(hyperparams)

    def get_hyperparams(self) -> dict[str, Any] | None:
        """Numbers and strings by name, those of the last fit; None where none were set and nothing was fitted."""
        return self.hyperparams

    def set_random_hyperparams(self) -> dict[str, Any]:
        """Set and return the default ones at first, then random ones, from numpy's global stream as NASLib's own."""
        chosen = dict(self.default_hyperparams)
        if self.hyperparams is not None:
            chosen |= self._random()
        self.hyperparams = chosen
        return dict(chosen)

    def require_spread(self) -> None:
        """Insist that the model has a standard deviation, before it is fitted.

        Raises:
            ConfigError: it has none.
        """
        self._made(self.hyperparams or self.default_hyperparams, 0).require_spread()

    # Learning and predicting.

    def fit(self, xtrain: Sequence[Any], ytrain: Sequence[float], train_info: Any = None) -> float:
        """Learn anew, whatever was fitted before. A training that takes long reports how far it is on standard error.

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
        targets = np.asarray(ytrain, np.float64)
        if targets.shape != (len(xtrain),):
            raise DataError(f"targets have shape {targets.shape} for {len(xtrain)} architectures; expected one each")
        graphs = [graph_of(architecture, self.ss_type) for architecture in xtrain]
        known = [index for index, graph in enumerate(graphs) if graph is not None]
        if len(known) < len(graphs):
            _log.info("%d of %d cells are not in the benchmark: left out", len(graphs) - len(known), len(graphs))
        learned = [graph for graph in graphs if graph is not None]
        units = units_of(targets[known]) if self.units == "auto" else self.units
        units_per_target = self._units_of(self.hyperparams, units)
        drawn = np.random.SeedSequence([self.seed, int(np.random.randint(2**31 - 1))])
        fitted = self._made(self.hyperparams, int(drawn.generate_state(1)[0]), units)
        zero_cost = self._zero_cost.pop("fit", None)
        if zero_cost is not None and len(zero_cost) != len(xtrain):
            raise DataError(f"zero-cost scores of {len(zero_cost)} architectures for {len(xtrain)}; expected one each")
        proxies = None if zero_cost is None else [zero_cost[index] for index in known]
        progress = slow_training(f"training {self.model}")
        fitted.fit(learned, targets[known] / units_per_target, proxies=proxies, progress=progress)
        self._fitted, self._predicted, self._units_per_target = fitted, {}, units_per_target
        return float(np.abs(self._predict(learned, proxies)[0] - targets[known]).mean())

    def query(self, xtest: Sequence[Any], info: Any = None) -> NDArray[np.float64]:
        """Predictions ``(n,)`` in the units of the targets; -1 for cells that the benchmark does not have.

        Args:
            xtest: as of :meth:`fit`.
            info: for each architecture ``{"zero_cost_scores": {..}}``, where it was fitted with such scores.

        Raises:
            ConfigError: nothing was fitted yet, or zero-cost scores are missing.
            GraphError: an architecture that does not belong to the search space.
        """
        return self._queried(xtest, info)[0]

    def query_with_spread(
        self, xtest: Sequence[Any], info: Any = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict as :meth:`query` does, and give the standard deviation ``(n,)`` of each prediction, 0 for cells that
        do not exist. ``register(.., spread=True)`` gives it to NASLib's acquisition functions.

        Raises:
            ConfigError: the model has no standard deviation; others as of :meth:`query`.
        """
        if self._fitted is not None:
            self._fitted.require_spread()
        return self._queried(xtest, info)

    def _queried(self, xtest: Sequence[Any], info: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        graphs = [graph_of(architecture, self.ss_type) for architecture in xtest]
        predictions, spread = np.full(len(graphs), INVALID), np.zeros(len(graphs))
        known = [index for index, graph in enumerate(graphs) if graph is not None]
        scores = (
            [each["zero_cost_scores"] for each in info] if _has_scores(info) else self._zero_cost.pop("query", None)
        )
        proxies = None if scores is None or len(scores) != len(graphs) else [scores[index] for index in known]
        predictions[known], spread[known] = self._predict([each for each in graphs if each is not None], proxies)
        return predictions, spread

    def _predict(
        self, graphs: list[Graph], proxies: list[Mapping[str, float]] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self._fitted is None:
            raise ConfigError("this predictor was not fitted; call fit before query")
        names = self._fitted.proxies
        if names and graphs and proxies is None:
            raise ConfigError(
                f"this predictor was fitted with zero-cost scores; query with info=[{{'zero_cost_scores': ..}}] of"
                f" {', '.join(names)}"
            )
        rows = [tuple(float(each.get(name, np.nan)) for name in names) for each in proxies or [{}] * len(graphs)]
        keys = list(zip(graphs, rows, strict=True))
        if new := [key for key in dict.fromkeys(keys) if key not in self._predicted]:
            scores = [dict(zip(names, row, strict=True)) for _, row in new] if names else None
            predicted, spread = self._fitted.predictions([graph for graph, _ in new], proxies=scores)
            pairs = np.stack([predicted, np.zeros(len(new)) if spread is None else spread], 1) * self._units_per_target
            self._predicted |= zip(new, map(tuple, pairs.tolist()), strict=True)
        found = np.array([self._predicted[key] for key in keys], np.float64).reshape(-1, 2)
        if len(self._predicted) > REMEMBERED:
            self._predicted = {}
        return found[:, 0], found[:, 1]

    def __getstate__(self) -> dict[str, Any]:
        """Copies, of which NASLib makes many, do not take the predictions along."""
        return {**self.__dict__, "_predicted": {}}


def _has_scores(info: Any) -> bool:
    return isinstance(info, list) and bool(info) and all("zero_cost_scores" in each for each in info)
