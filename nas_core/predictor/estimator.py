"""NN-Former as an accuracy model."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from nas_core.device import device_name
from nas_core.graph import Graphs
from nas_core.graph.graph import FEATURES
from nas_core.precision import check_precision
from nas_core.predictor.artifact import below
from nas_core.predictor.base import AccuracyModel, Array
from nas_core.predictor.device import chosen_precision, usable_precision
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.progress import Checkpoint, Losses, Progress
from nas_core.predictor.recipes import Recipe, get_recipe, recipe_types, required_settings
from nas_core.predictor.targets import TargetScale, checked_targets
from nas_core.predictor.training import Trainer
from nas_core.random_streams import own_streams, seed_streams


@dataclass(frozen=True, eq=False)
class FittedState:
    """Fitted networks, and the scale of their targets."""

    recipe: Recipe
    models: tuple[NNFormer, ...]
    scale: TargetScale

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "scorers"}

    @cached_property
    def scorers(self) -> list[Scorer]:
        precision = self.recipe.train.precision
        return [Scorer(model, usable_precision(precision, next(model.parameters()).device)) for model in self.models]

    def predict_with_std(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Return predictions ``(B,)`` and the standard deviation ``(B,)`` of the networks; None for a single one."""
        rows = np.stack([scorer(graphs) for scorer in self.scorers])
        deviation = np.stack([self.scale.inverse_transform(row) for row in rows]).std(0) if len(rows) > 1 else None
        return self.scale.inverse_transform(rows.mean(0)), deviation

    def tensors(self) -> dict[str, Tensor]:
        return {f"{i}.{name}": x for i, model in enumerate(self.models) for name, x in model.state_dict().items()}

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
        return cls(recipe, tuple(models), TargetScale.from_json(header["scale"]))


_log = logging.getLogger(__name__)


class NNFormerPredictor(AccuracyModel):
    """NN-Former, which predicts one number per graph, such as accuracy or latency.

    Example:
        >>> predictor = NNFormerPredictor("paper", seed=0).fit(graphs, accuracies)
        >>> predictor.predict(more_graphs)  # (B,)

    Args:
        recipe: name of a recipe or a :class:`Recipe`: ``paper``, ``ensemble``, ``latency``, ``network-latency``.
        device: torch device, such as ``cuda:1``.
        unseen: what to do with operations that no training graph has: ``error``, ``warn`` or ``ignore``.
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
        **changes: Any,
    ) -> None:
        base = get_recipe(recipe) if isinstance(recipe, str) else recipe
        self._recipe = base.with_changes(**changes)
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
        return self._recipe.members > 1

    def facts(self) -> dict[str, Any]:
        precision = chosen_precision(self._recipe.train.precision, self.device)
        return {"precision": precision, "device": device_name(self.device)}

    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        check_precision(chosen_precision(self._recipe.train.precision, self.device), self.device)
        full_recipe = self._recipe.replace(required_settings(graphs, self._recipe, self._added_nodes))
        recipe = full_recipe.adapt(len(graphs))
        _log.info("recipe %s on %d graphs: %d networks", recipe.name, len(graphs), recipe.members)
        squared = recipe.train.loss == "mse"
        unscaled = recipe.targets == "none" and squared
        values = checked_targets(targets, len(graphs), positive=not squared, unscaled=unscaled)
        scale = TargetScale.fit(recipe.targets, values)
        learned = scale.transform(values)
        saver = None if checkpoint is None else Checkpoint(checkpoint, self._resume_settings(graphs, values))
        models = []
        with own_streams(device=self.device):
            for i in range(recipe.members):
                models.append(self._fit_member(i, recipe, graphs, learned, progress, saver).eval())
        self._fitted = FittedState(full_recipe, tuple(models), scale)
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
    ) -> NNFormer:
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
        return model

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
    def _state(self) -> FittedState:
        self.require_fitted()
        assert self._fitted is not None
        return self._fitted

    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        return self._state.predict_with_std(self._map_unsupported(graphs))

    def _map_unsupported(self, graphs: Graphs) -> Graphs:
        """Replace operation indices that the networks do not support by one that the training graphs do not use."""
        operations = self.recipe.model.operations
        if int(graphs.ops.max(initial=0)) < operations:
            return graphs
        known_operations = self.known_operations | {*(self._ends or ())}
        spare = next((index for index in range(operations) if index not in known_operations), operations - 1)
        return replace(graphs, ops=np.where(graphs.ops < operations, graphs.ops, spare).astype(graphs.ops.dtype))

    def tensors(self) -> dict[str, Tensor]:
        return self._state.tensors()

    def header(self) -> dict[str, Any]:
        return {"recipe": self._state.recipe.to_dict(), "scale": self._state.scale.to_json()}

    @classmethod
    def from_header(cls, header: Mapping[str, Any], device: str) -> Self:
        return cls(Recipe.from_dict(header["recipe"]), seed=header["seed"], device=device, unseen=header["unseen"])

    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        self._fitted = FittedState.restored(self._recipe, header, tensors, self.device)
