"""NN-Former as an accuracy model, alone or averaged with models on graph statistics."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nas_core.device import device_name
from nas_core.errors import ConfigError
from nas_core.graph import Graph, Graphs
from nas_core.graph.graph import FEATURES
from nas_core.precision import check_precision
from nas_core.predictor.artifact import below
from nas_core.predictor.base import AccuracyModel, Array
from nas_core.predictor.device import chosen_precision, usable_precision
from nas_core.predictor.mixture import FOLDS, Mixture, fold_of
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.prior import Prior, shipped_prior
from nas_core.predictor.progress import Checkpoint, Losses, Progress
from nas_core.predictor.recipes import Recipe, get_recipe, recipe_types, required_settings
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.operation_features import operation_features
from nas_core.predictor.targets import TargetScale, checked_targets
from nas_core.predictor.training import Trainer
from nas_core.random_streams import own_streams, seed_streams


@dataclass(frozen=True, eq=False)
class FittedState:
    """Fitted networks, regressions on graph statistics, and weights of their predictions."""

    recipe: Recipe
    models: tuple[NNFormer, ...]
    statistics: StatisticsModel | None
    scale: TargetScale
    mixture: Mixture | None = None
    """Learned weights of the networks together and of each regression; None without regressions"""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "scorers"}

    @property
    def network_share(self) -> float:
        if self.mixture is None:
            return 1.0
        return self.mixture.shares[0] if self.models else 0.0

    @cached_property
    def scorers(self) -> list[Scorer]:
        precision = self.recipe.train.precision
        return [Scorer(model, usable_precision(precision, next(model.parameters()).device)) for model in self.models]

    def predict_with_std(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Return predictions ``(B,)`` and their standard deviation ``(B,)``, or None for a single network.

        With regressions, the standard deviation is fitted to out-of-fold errors. Otherwise, it is that of the
        predictions of all networks.
        """
        if self.mixture is not None:
            return self.mixture.combine(self._model_predictions(graphs), self.scale)
        rows = np.stack([scorer(graphs) for scorer in self.scorers])
        deviation = np.stack([self.scale.inverse_transform(row) for row in rows]).std(0) if len(rows) > 1 else None
        return self.scale.inverse_transform(rows.mean(0)), deviation

    def _model_predictions(self, graphs: Graphs) -> Array:
        rows = [scorer(graphs) for scorer in self.scorers]
        statistics = [] if self.statistics is None else list(self.statistics.predict(graphs))
        return np.stack([*([np.mean(rows, 0)] if rows else []), *statistics])

    def predict_components(self, graphs: Graphs) -> dict[str, Array]:
        names = [
            *(["networks"] if self.models else []),
            *(() if self.statistics is None else self.statistics.components),
        ]
        return {
            name: self.scale.inverse_transform(row)
            for name, row in zip(names, self._model_predictions(graphs), strict=True)
        }

    def with_mixture(self, graphs: Graphs, fold: NDArray[np.int64], held_out: Array, targets: Array) -> FittedState:
        """Fit the weights and the standard deviation to out-of-fold predictions.

        Args:
            fold: ``(G,)`` fold of each training graph; network i was not trained on fold i.
            held_out: ``(K, G)`` out-of-fold predictions of the regressions.
        """
        rows, predictions = np.arange(len(graphs)), held_out
        prior = np.full(len(held_out), self.recipe.statistics / len(held_out))
        if self.models:
            rows = np.flatnonzero(fold < len(self.models))
            network_predictions = np.zeros(len(graphs))
            for i, scorer in enumerate(self.scorers):
                unseen = np.flatnonzero(fold == i)
                network_predictions[unseen] = scorer(graphs.take(unseen))
            predictions = np.concatenate([network_predictions[None], held_out])
            prior = np.concatenate([[1 - self.recipe.statistics], prior])
        learned = self.scale.transform(targets[rows])
        mixture = Mixture.fit(predictions[:, rows], learned, targets[rows], self.scale, prior.tolist())
        return replace(self, mixture=mixture)

    def tensors(self) -> dict[str, Tensor]:
        named = {f"{i}.{name}": x for i, model in enumerate(self.models) for name, x in model.state_dict().items()}
        if self.statistics is not None:
            named |= {f"statistics.{name}": x for name, x in self.statistics.to_tensors().items()}
        return named

    @classmethod
    def restored(
        cls, recipe: Recipe, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> FittedState:
        """Return the fitted state from the header and tensors of a file."""
        models = []
        for i in range(recipe.members):
            with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
                model = NNFormer(recipe.model)
            model.load_state_dict(below(f"{i}.", tensors), assign=True)
            models.append(model.to(device).eval())
        statistics = None
        if recipe.statistics:
            statistics_tensors = below("statistics.", tensors)
            statistics = StatisticsModel.from_tensors(statistics_tensors, recipe.processes, recipe.trees)
        counts = (recipe.members > 0) + (0 if statistics is None else len(statistics.components))
        mixture = None if statistics is None else Mixture.from_json(header["mixture"], counts)
        return cls(recipe, tuple(models), statistics, TargetScale.from_json(header["scale"]), mixture)


_log = logging.getLogger(__name__)


class NNFormerPredictor(AccuracyModel):
    """NN-Former, which predicts one number per graph, such as accuracy or latency.

    Example:
        >>> predictor = NNFormerPredictor("paper", seed=0).fit(graphs, accuracies)
        >>> predictor.predict(more_graphs)  # (B,)

    Args:
        recipe: name of a recipe or a :class:`Recipe`, such as ``best``, which also uses graph statistics.
        device: torch device, such as ``cuda:1``.
        unseen: what to do with operations that no training graph has: ``error``, ``warn`` or ``ignore``.
        prior: prior for recipe ``prior``; None: the shipped one.
        changes: changed settings of the recipe, such as ``epochs=600, members=3``. A changed setting does not adapt to
            the data.

    Raises:
        ConfigError, UnknownChoiceError: a setting is unknown or invalid.
    """

    name: ClassVar[str] = "nn-former"

    def __init__(
        self,
        recipe: str | Recipe = "paper",
        *,
        seed: int = 0,
        device: str = "cpu",
        unseen: str = "error",
        prior: Prior | None = None,
        **changes: Any,
    ) -> None:
        base = get_recipe(recipe) if isinstance(recipe, str) else recipe
        self._recipe = base.with_changes(**changes)
        if prior is not None and not self._recipe.from_prior:
            raise ConfigError(f"recipe {base.name!r} does not use a prior; give recipe prior, or no prior")
        self._prior = prior
        self._fitted: FittedState | None = None
        super().__init__(seed=seed, device=device, unseen=unseen)

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        return {"recipe": str, **recipe_types()}

    def prepare(self, graphs: Graphs) -> dict[str, Any]:
        needed = required_settings(graphs, self._recipe)
        self._recipe = self._recipe.replace(needed)
        return needed

    @property
    def has_std(self) -> bool:
        return self._recipe.statistics > 0 or self._recipe.members > 1

    @property
    def ready(self) -> bool:
        return self.fitted or self._recipe.from_prior

    @property
    def title(self) -> str:
        return self._recipe.name

    @property
    def mixture(self) -> str:
        return self.recipe.mixture

    def facts(self) -> dict[str, Any]:
        if not self._recipe.members:
            return {}
        precision = chosen_precision(self._recipe.train.precision, self.device)
        return {"precision": precision, "device": device_name(self.device)}

    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        if self._recipe.members:
            check_precision(chosen_precision(self._recipe.train.precision, self.device), self.device)
        full_recipe = self._recipe.replace(required_settings(graphs, self._recipe, self._added_nodes))
        recipe = full_recipe.adapt(len(graphs))
        _log.info("recipe %s on %d graphs: %s", recipe.name, len(graphs), recipe.mixture)
        squared = recipe.train.loss == "mse"
        unscaled = recipe.targets == "none" and squared and recipe.members > 0
        values = checked_targets(targets, len(graphs), positive=not squared, unscaled=unscaled)
        scale = TargetScale.fit(recipe.targets, values)
        learned = scale.transform(values)
        saver = None if checkpoint is None else Checkpoint(checkpoint, self._resume_settings(graphs, values))
        statistics, held_out = None, np.zeros((0, len(graphs)))
        fold = np.full(len(graphs), -1)  # in no fold: all networks are trained on the graph
        if recipe.statistics:  # one fold for each network
            fold = fold_of(graphs, self.seed, max(recipe.members, FOLDS) if recipe.members else None)
            report = None if recipe.members else progress
            statistics, held_out = StatisticsModel.fit(
                graphs, learned, recipe.processes, recipe.trees, self.seed, fold, report, self._initial_prior(), scale
            )
        models = []
        with own_streams(device=self.device):
            for i in range(recipe.members):
                rows = np.flatnonzero(fold != i)
                trainer = self._fit_member(i, recipe, graphs.take(rows), learned[rows], progress, saver)
                models.append(trainer.model.eval())
        fitted = FittedState(full_recipe, tuple(models), statistics, scale)
        if recipe.statistics:
            fitted = fitted.with_mixture(graphs, fold, held_out, values)
            _log.info("NN-Former has the weight %.2f in each prediction", fitted.network_share)
        self._fitted = fitted
        if saver is not None:
            saver.remove()

    def _fit_member(
        self,
        member: int,
        recipe: Recipe,
        graphs: Graphs,
        learned: Array,
        progress: Progress | None,
        saver: Checkpoint | None,
    ) -> Trainer:
        config = replace(recipe.train, seed=self.seed + 7919 * member)
        seed_streams(config.seed, self.device)
        model = NNFormer(recipe.model).to(self.device)
        if recipe.model.readout == "logarithm":
            model.logarithm.set_scale(graphs, torch.from_numpy(learned))
        trainer = Trainer(model, graphs, learned, config)
        if saver is not None:
            saver.load(member, trainer.restore)
        losses = Losses(progress, trainer.total * recipe.members, member * trainer.total + trainer.done)
        for loss in trainer.steps():
            losses.add(loss)
            if saver is not None:
                saver.save(member, trainer.state, trainer.finished)
        losses.report()
        trainer.settle()
        return trainer

    def _resume_settings(self, graphs: Graphs, values: Array) -> dict[str, Any]:
        digest = hashlib.sha256(values.tobytes())
        for array in (graphs.ops, graphs.edges, graphs.sizes, *(getattr(graphs, name) for name in FEATURES)):
            digest.update(b"" if array is None else array.tobytes())
        return {"recipe": self._recipe.to_dict(), "seed": self.seed, "data": digest.hexdigest()}

    @property
    def recipe(self) -> Recipe:
        """Recipe of the predictor; after a fit, adapted to the training graphs."""
        return self._recipe if self._fitted is None else self._fitted.recipe

    @property
    def models(self) -> tuple[NNFormer, ...]:
        return () if self._fitted is None else self._fitted.models

    @property
    def statistics(self) -> StatisticsModel | None:
        return None if self._fitted is None else self._fitted.statistics

    @property
    def network_share(self) -> float:
        """Weight of NN-Former in each prediction; graph statistics have the rest."""
        return self._state.network_share

    def _initial_prior(self) -> Prior | None:
        return None if not self._recipe.from_prior else self._prior or shipped_prior()

    @property
    def _state(self) -> FittedState:
        self.require_fitted()
        assert self._fitted is not None
        return self._fitted

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        if not self.fitted:
            prior = self._initial_prior()
            assert prior is not None
            return prior.columns(operation_features(graphs))[:, 0], None
        return self._state.predict_with_std(self._map_unsupported(graphs))

    def predict_components(self, graphs: Iterable[Graph] | Graphs) -> dict[str, Array]:
        """Return the predictions ``(B,)`` of each averaged model, in the units of the targets.

        Models are ``networks`` (NN-Former), ``processes`` (Gaussian processes on graph statistics), ``described
        processes`` (Gaussian processes on features with one meaning in all search spaces), ``trees`` (boosted trees)
        and ``additive`` (ridge regression on operation counts).
        """
        fitted, data = self._state, self._read(graphs)
        return {} if data is None else fitted.predict_components(self._map_unsupported(self._with_ends(data)))

    def _map_unsupported(self, graphs: Graphs) -> Graphs:
        """Replace operation indices that the networks do not support by one that the training graphs do not use."""
        operations = self.recipe.model.operations
        if not self.models or int(graphs.ops.max(initial=0)) < operations:
            return graphs
        known_operations = self.known_operations | {*(self._ends or ())}
        spare = next((index for index in range(operations) if index not in known_operations), operations - 1)
        return replace(graphs, ops=np.where(graphs.ops < operations, graphs.ops, spare).astype(graphs.ops.dtype))

    def tensors(self) -> dict[str, Tensor]:
        return self._state.tensors()

    def header(self) -> dict[str, Any]:
        fitted = self._state
        return {
            "recipe": fitted.recipe.to_dict(),
            "mixture": None if fitted.mixture is None else fitted.mixture.to_json(),
            "scale": fitted.scale.to_json(),
        }

    @classmethod
    def from_header(cls, header: Mapping[str, Any], device: str) -> Self:
        return cls(Recipe.from_dict(header["recipe"]), seed=header["seed"], device=device, unseen=header["unseen"])

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._fitted = FittedState.restored(self._recipe, header, tensors, self.device)
