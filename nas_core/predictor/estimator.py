"""NN-Former as users hold it: an accuracy model with recipes, ensembles and a mixture with graph statistics."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
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
from nas_core.predictor.base import AccuracyModel, Array, Progress
from nas_core.predictor.fitted import Fitted
from nas_core.predictor.inputs.known import within
from nas_core.predictor.inputs.proxies import Scores
from nas_core.predictor.mixture import FOLDS, fold_of
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.precision import chosen_precision
from nas_core.predictor.prior import Prior, shipped_prior
from nas_core.predictor.recipes import Recipe, get_recipe
from nas_core.predictor.settings import needed_by, recipe_types
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.statistics.operation_features import operation_features
from nas_core.predictor.targets import TargetScale, checked_targets
from nas_core.predictor.training.checkpoint import Checkpoint
from nas_core.predictor.training.telling import Losses
from nas_core.predictor.training.trainer import Trainer
from nas_core.random_streams import own_streams, seed_streams

__all__ = ["NNFormerPredictor"]

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
        fitted = Fitted(whole, models, statistics, recipe.statistics, scale)
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

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        fitted = self._whole("save")
        header = {
            "seed": self.seed,
            "unseen": self.unseen,
            "recipe": fitted.recipe.to_dict(),
            "share": fitted.share,
            **({} if fitted.mixture is None else {"mixture": fitted.mixture.to_json()}),
            "scale": fitted.scale.to_json(),
            **self._common(),
        }
        return header, self.tensors()

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
