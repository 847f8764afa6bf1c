"""NN-Former as users hold it: an accuracy model with recipes, ensembles and a mixture with graph statistics."""

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
from nas_core.graph import FEATURES, Graph, Graphs
from nas_core.precision import check_precision
from nas_core.predictor.artifact import below
from nas_core.predictor.base import AccuracyModel, Array, within
from nas_core.predictor.mixture import FOLDS, Mixture, fold_of
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.precision import chosen_precision, usable_precision
from nas_core.predictor.prior import Prior, shipped_prior
from nas_core.predictor.proxy_inputs import Scores
from nas_core.predictor.recipes import Recipe, get_recipe, needed_by, recipe_types
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.operation_features import operation_features
from nas_core.predictor.targets import TargetScale, checked_targets
from nas_core.predictor.training.checkpoint import Checkpoint
from nas_core.predictor.training.progress import Losses, Progress
from nas_core.predictor.training.trainer import Trainer
from nas_core.random_streams import own_streams, seed_streams


@dataclass(frozen=True, eq=False)
class Fitted:
    """Networks, statistics and what is needed to predict with them."""

    recipe: Recipe
    """With the sizes that the graphs needed"""
    models: tuple[NNFormer, ...]
    statistics: StatisticsModel | None
    scale: TargetScale
    mixture: Mixture | None = None
    """What decides instead of the share, where shares are learned: of the networks as one part, and of each of the
    statistics' parts"""

    def __getstate__(self) -> dict[str, Any]:
        """All but the scorers, of which a copy makes its own: recorded passes belong to one memory."""
        return {name: value for name, value in self.__dict__.items() if name != "scorers"}

    @property
    def share(self) -> float:
        """Share of the statistics in the prediction."""
        if self.mixture is None:
            return self.recipe.statistics
        return 1.0 - self.mixture.shares[0] if self.models else 1.0

    @cached_property
    def scorers(self) -> list[Scorer]:
        given = self.recipe.train.precision
        return [Scorer(model, usable_precision(given, next(model.parameters()).device)) for model in self.models]

    def predict_with_spread(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` and, where there are several parts, their standard deviation ``(B,)``, in the units of
        the targets."""
        share = self.share
        if self.mixture is not None:
            return self.mixture.combine(self._parts(graphs), self.scale)
        rows = [scorer(graphs) for scorer in self.scorers]
        weights = [(1 - share) / len(rows) for _ in rows]
        if self.statistics is not None:
            kinds = self.statistics.predict(graphs)
            rows, weights = [*rows, *kinds], [*weights, *(share / len(kinds) for _ in kinds)]
        spread = np.stack([self.scale.restore(row) for row in rows]).std(0) if len(rows) > 1 else None
        return self.scale.restore(np.average(rows, axis=0, weights=weights)), spread

    def quantiles(self, graphs: Graphs, levels: Array) -> Array | None:
        """Quantiles ``(L, B)`` in the units of the targets, where shares and deviations were learned."""
        return (
            None if self.mixture is None else self.mixture.quantiles(self._parts(graphs), self.scale, levels.tolist())
        )

    def _parts(self, graphs: Graphs) -> Array:
        """What the networks, the processes and the trees say, ``(P, B)``."""
        rows = [scorer(graphs) for scorer in self.scorers]
        statistics = [] if self.statistics is None else list(self.statistics.predict(graphs))
        return np.stack([*([np.mean(rows, 0)] if rows else []), *statistics])

    def apart(self, graphs: Graphs) -> dict[str, Array]:
        """What each part says by itself, ``(B,)`` by name, in the units of the targets."""
        names = [*(["networks"] if self.models else []), *(() if self.statistics is None else self.statistics.parts)]
        return {name: self.scale.restore(row) for name, row in zip(names, self._parts(graphs), strict=True)}

    def mixed(self, graphs: Graphs, fold: NDArray[np.int64], held_out: Array, targets: Array) -> Fitted:
        """The same with shares and spread learned from graphs that the parts did not see.

        Args:
            graphs: the training graphs.
            fold: ``(G,)`` the fold of each; network i was not trained on fold i.
            held_out: ``(K, G)`` what statistics said of the graphs that they had not seen.
            targets: ``(G,)`` in the units of the user.
        """
        judged, parts = np.arange(len(graphs)), held_out
        prior = np.full(len(held_out), self.recipe.statistics / len(held_out))
        if self.models:
            judged = np.flatnonzero(fold < len(self.models))
            networks = np.zeros(len(graphs))
            for each, scorer in enumerate(self.scorers):
                unseen = np.flatnonzero(fold == each)
                networks[unseen] = scorer(graphs.take(unseen)) if len(unseen) else 0.0
            parts = np.concatenate([networks[None], held_out])
            prior = np.concatenate([[1 - self.recipe.statistics], prior])
        learned = self.scale.learn(targets[judged])
        mixture = Mixture.fit(parts[:, judged], learned, targets[judged], self.scale, prior.tolist())
        return replace(self, mixture=mixture)

    def tensors(self) -> dict[str, Tensor]:
        """Return all arrays by name."""
        named = {f"{i}.{name}": x for i, model in enumerate(self.models) for name, x in model.state_dict().items()}
        if self.statistics is not None:
            named |= {f"statistics.{name}": x for name, x in self.statistics.to_tensors().items()}
        return named

    @classmethod
    def restored(
        cls, recipe: Recipe, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device
    ) -> Fitted:
        """What a file's header and tensors hold of it, the inverse of :meth:`tensors`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        models = tuple(_model(recipe, below(f"{i}.", tensors), device) for i in range(recipe.members))
        statistics = None
        if recipe.statistics:
            parts = below("statistics.", tensors)
            statistics = StatisticsModel.from_tensors(parts, recipe.processes, recipe.trees)
        counts = (recipe.members > 0) + (0 if statistics is None else len(statistics.parts))
        mixture = Mixture.from_json(header["mixture"], counts) if recipe.learns_shares else None
        return cls(recipe, models, statistics, TargetScale.from_json(header["scale"]), mixture)


def _model(recipe: Recipe, weights: dict[str, Tensor], device: torch.device) -> NNFormer:
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        model = NNFormer(recipe.model)
    model.load_state_dict(weights, assign=True)
    return model.to(device).eval()


_log = logging.getLogger(__name__)


class NNFormerPredictor(AccuracyModel):
    """Predicts one number per graph (accuracy, latency) with NN-Former.

    Networks and, where the recipe has them, graph statistics read all features that the graphs have. Recipe ``best``
    is such a mixture: each of its networks leaves out some of the training graphs, and what all parts say of graphs
    that they did not see decides how much each counts; :attr:`network_share` and the log of :meth:`fit` say it.

    Example:
        >>> predictor = NNFormerPredictor("paper", seed=0).fit(graphs, accuracies)
        >>> predictor.predict(more_graphs)  # (B,)

    Args:
        recipe: a name of ``list_recipes()`` or a :class:`Recipe`.
        seed: of weights, dropout and batches; equal seeds on one device, a GPU too, give equal predictors.
        device: where to compute: ``cpu``, ``cuda``, ``cuda:1``. ``precision`` says in which numbers.
        unseen: what to do with an operation that no training graph has: ``error``, ``warn`` or ``ignore``.
        prior: what recipe ``prior`` knows, where it is not what comes with this package.
        changes: other values for single settings of the recipe (``epochs=600, dim=64, members=3``). What follows the
            data otherwise (``attributes, shapes, static, operations, max_nodes``, and where the recipe adapts
            ``statistics, batch_size``) stays as it is given here.

    Raises:
        ConfigError, UnknownChoiceError: a setting that does not exist or cannot be.
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
        if not isinstance(recipe, str | Recipe):
            raise ConfigError(f"recipe is a {type(recipe).__name__}; expected a name of list_recipes() or a Recipe")
        chosen = get_recipe(recipe) if isinstance(recipe, str) else recipe
        self._given = chosen.changed(**changes)
        if prior is not None and not self._given.from_prior:
            raise ConfigError(f"recipe {chosen.name!r} starts from no prior; expected recipe prior, or no prior")
        self._prior = prior
        self._fitted: Fitted | None = None
        self._room = 0
        super().__init__(seed=seed, device=device, unseen=unseen)

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        return {"recipe": str, **recipe_types()}

    def prepare(self, graphs: Graphs) -> dict[str, Any]:
        needed = needed_by(graphs, self._given)
        self._given = self._given.replaced(needed)
        return needed

    def make_room(self, nodes: int) -> None:
        self._room = nodes

    @property
    def networks(self) -> int:
        return self._given.members

    @property
    def has_spread(self) -> bool:
        recipe = self._given
        kinds = (recipe.processes > 0) + (recipe.trees > 0) if recipe.statistics else 0
        return recipe.learns_shares or recipe.members + kinds > 1

    @property
    def ready(self) -> bool:
        return self.fitted or self._given.from_prior

    @property
    def title(self) -> str:
        return self._given.name

    def remarks(self, graphs: Graphs) -> list[str]:
        return [f"recipe {self.title} on {len(graphs)} graphs: {self.recipe.mixture}"]

    def facts(self) -> dict[str, Any]:
        if not self.networks:
            return {}
        precision = chosen_precision(self._given.train.precision, self.device)
        return {"precision": precision, "device": device_name(self.device)}

    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        if self.networks:
            check_precision(chosen_precision(self._given.train.precision, self.device), self.device)
        whole = self._given.replaced(needed_by(graphs, self._given, self._room))
        recipe = whole.adapted(len(graphs))
        _log.info("recipe %s on %d graphs: %s", recipe.name, len(graphs), recipe.mixture)
        squared = recipe.train.loss == "mse"
        unscaled = recipe.targets == "none" and squared and recipe.members > 0
        values = checked_targets(targets, len(graphs), positive=not squared, unscaled=unscaled)
        scale = TargetScale.fitted(recipe.targets, values)
        learned = scale.learn(values)
        keeper = None if checkpoint is None else Checkpoint(checkpoint, self._begun(graphs, values))
        left_out = _folds(graphs, recipe, self.seed) if recipe.learns_shares else None
        statistics, held_out = None, None
        if recipe.statistics:
            numbers, prior = (recipe.processes, recipe.trees), self._known_before()
            if left_out is None:
                statistics = StatisticsModel.fit(graphs, learned, *numbers, self.seed, prior, scale)
            else:
                told = None if recipe.members else progress
                statistics, held_out = StatisticsModel.fit_judged(
                    graphs, learned, numbers, self.seed, left_out, told, prior, scale
                )
        with own_streams(device=self.device):
            models = tuple(
                self._fit_member(i, recipe, *_without(graphs, learned, left_out, i), progress, keeper)
                for i in range(recipe.members)
            )
        fitted = Fitted(whole, models, statistics, scale)
        if held_out is not None and left_out is not None:
            fitted = fitted.mixed(graphs, left_out, held_out, values)
            _log.info("of what decides each prediction, NN-Former has %.2f", 1 - fitted.share)
        self._fitted = fitted
        if keeper is not None:
            keeper.remove()

    def _fit_member(
        self,
        member: int,
        recipe: Recipe,
        graphs: Graphs,
        learned: Array,
        progress: Progress | None,
        keeper: Checkpoint | None,
    ) -> NNFormer:
        config = replace(recipe.train, seed=self.seed + 7919 * member)
        seed_streams(config.seed, self.device)
        model = NNFormer(recipe.model).to(self.device)
        if recipe.model.readout == "logarithm":
            model.logarithm.start(graphs, torch.from_numpy(learned))
        trainer = Trainer(model, graphs, learned, config)
        if keeper is not None:
            keeper.load(member, trainer)
        losses = Losses(progress, trainer.total * recipe.members, member * trainer.total + trainer.done)
        for loss in trainer.steps():
            losses.add(loss)
            if keeper is not None:
                keeper.save(member, trainer)
        losses.tell()
        trainer.settle()
        return trainer.model.eval()

    def _begun(self, graphs: Graphs, values: Array) -> dict[str, Any]:
        """What an interrupted fit must agree in to be continued."""
        digest = hashlib.sha256(values.tobytes())
        for array in (graphs.ops, graphs.edges, graphs.sizes, *(getattr(graphs, name) for name in FEATURES)):
            digest.update(b"" if array is None else array.tobytes())
        return {"recipe": self._given.to_dict(), "seed": self.seed, "data": digest.hexdigest()}

    @property
    def recipe(self) -> Recipe:
        """With the sizes that the training graphs needed, once it is fitted."""
        return self._given if self._fitted is None else self._fitted.recipe

    @property
    def models(self) -> tuple[NNFormer, ...]:
        return () if self._fitted is None else self._fitted.models

    @property
    def statistics(self) -> StatisticsModel | None:
        return None if self._fitted is None else self._fitted.statistics

    @property
    def network_share(self) -> float:
        """Return NN-Former's share of each prediction; graph statistics have the rest.

        Raises:
            ConfigError: nothing was fitted yet.
        """
        return 1.0 - self._whole("look at").share

    def _known_before(self) -> Prior | None:
        """What it starts from; None: nothing."""
        return None if not self._given.from_prior else self._prior or shipped_prior()

    def _whole(self, use: str) -> Fitted:
        self.require_fitted(use)
        assert self._fitted is not None
        return self._fitted

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)``: of a mixture as graphs left out told it, else
        that over the networks, the Gaussian processes as one and the trees as one, where there are several."""
        if not self.fitted:
            prior = self._known_before()
            assert prior is not None
            return prior.columns(operation_features(graphs))[:, 0], None
        return self._whole("predict with").predict_with_spread(self._within(graphs))

    def estimate_quantiles(self, graphs: Graphs, levels: Array) -> Array | None:
        if not self.fitted:
            return None
        found = self._whole("predict with").quantiles(self._within(graphs), levels)
        return super().estimate_quantiles(graphs, levels) if found is None else found

    def predict_parts(self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None) -> dict[str, Array]:
        """What each part of a mixture says by itself: ``networks``, ``described processes`` (on what operations do),
        ``processes``, ``trees``, ``additive``; ``(B,)`` each, in the units of the targets. Arguments and errors as of
        :meth:`predict`.
        """
        fitted, data = self._whole("predict with"), self._read(graphs, proxies)
        if data is None:
            return {}
        return fitted.apart(self._within(self._with_ends(data)))

    def _within(self, graphs: Graphs) -> Graphs:
        """Graphs that the networks have indices for."""
        known = self.known | {*(self._ends or ())}
        return within(graphs, self.recipe.model.operations, known) if self.models else graphs

    def tensors(self) -> dict[str, Tensor]:
        return self._whole("save").tensors()

    def header(self) -> dict[str, Any]:
        fitted = self._whole("save")
        return {
            "recipe": fitted.recipe.to_dict(),
            "mixture": None if fitted.mixture is None else fitted.mixture.to_json(),
            "scale": fitted.scale.to_json(),
        }

    @classmethod
    def made_of(cls, header: Mapping[str, Any], device: str) -> Self:
        return cls(Recipe.from_dict(header["recipe"]), seed=header["seed"], device=device, unseen=header["unseen"])

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._fitted = Fitted.restored(self._given, header, tensors, self.device)


def _folds(graphs: Graphs, recipe: Recipe, seed: int) -> NDArray[np.int64]:
    """The fold of each graph; as many as there are networks, of which each leaves one out."""
    return fold_of(graphs, seed, max(recipe.members, FOLDS) if recipe.members else None)


def _without(graphs: Graphs, learned: Array, left_out: NDArray[np.int64] | None, fold: int) -> tuple[Graphs, Array]:
    """The graphs of other folds, or all where none is left out."""
    if left_out is None:
        return graphs, learned
    rest = np.flatnonzero(left_out != fold)
    return graphs.take(rest), learned[rest]
