"""The predictor as users hold it: fit on graphs and numbers, predict, save, load."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError, unknown_choice
from nas_core.graph import Graph, GraphError, Graphs
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.checkpoint import Checkpoint
from nas_core.predictor.inference import Scorer
from nas_core.predictor.model import NNFormer
from nas_core.predictor.recipes import Recipe, get_recipe
from nas_core.predictor.statistics_model import StatisticsModel
from nas_core.predictor.targets import TargetScale, checked_targets
from nas_core.predictor.trainer import Trainer

__all__ = ["NNFormerPredictor"]

KIND = "nn-former"
UNSEEN = ("error", "warn", "ignore")
Progress = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""

_log = logging.getLogger(__name__)


class NNFormerPredictor:
    """Predicts one number per graph (accuracy, latency) with NN-Former.

    Example:
        >>> predictor = NNFormerPredictor("paper", seed=0).fit(graphs, accuracies)
        >>> predictor.predict(more_graphs)  # (B,)

    Args:
        recipe: a name of ``list_recipes()`` or a :class:`Recipe`.
        seed: of weights, dropout and batches; equal seeds on one machine give equal predictors.
        device: where to compute.
        unseen: what to do with an operation that no training graph has: ``error``, ``warn`` or ``ignore``.
        changes: other values for single settings of the recipe (``epochs=600, dim=64, members=3``).
    """

    def __init__(
        self,
        recipe: str | Recipe = "paper",
        *,
        seed: int = 0,
        device: str = "cpu",
        unseen: str = "error",
        **changes: Any,
    ) -> None:
        chosen = get_recipe(recipe) if isinstance(recipe, str) else recipe
        self.recipe = chosen.changed(**changes)
        self.seed = seed
        self.device = usable_device(device)
        if unseen not in UNSEEN:
            raise unknown_choice("treatment of unseen operations", unseen, UNSEEN)
        self.unseen = unseen
        self.models: list[NNFormer] = []
        self.statistics: StatisticsModel | None = None
        self._ready: list[Scorer] = []
        self.scale = TargetScale((), ())
        self.known: frozenset[int] = frozenset()
        self.info: dict[str, Any] = {}

    def fit(
        self,
        graphs: Sequence[Graph] | Graphs,
        targets: ArrayLike,
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> NNFormerPredictor:
        """Learn from graphs and targets ``(G,)``, from new weights whatever was fitted before.

        Args:
            progress: called after each step.
            checkpoint: a file that an interrupted fit continues from; removed at the end.

        Raises:
            DataError: too few graphs, or a target that is no number.
            GraphError: a graph the model is not made for.
        """
        data = Graphs.of(graphs)
        recipe = self.recipe.adapted(max(1, len(data)))
        values = checked_targets(targets, len(data), positive=recipe.train.loss == "relative")
        self.scale = TargetScale.fitted(recipe.targets, values)
        self.known = frozenset(int(op) for op in np.unique(data.ops))
        learned = self.scale.learn(values)
        self.statistics = _statistics(recipe, data, learned, self.seed)
        keeper = None if checkpoint is None else Checkpoint(Path(checkpoint), self._begun(data, values))
        self._ready = []
        self.models = [self._fit_member(i, recipe, data, learned, progress, keeper) for i in range(recipe.members)]
        self.info = {"graphs": len(data), "largest": int(data.sizes.max())}
        if keeper is not None:
            keeper.remove()
        return self

    def _fit_member(
        self,
        member: int,
        recipe: Recipe,
        graphs: Graphs,
        learned: NDArray[np.float64],
        progress: Progress | None,
        keeper: Checkpoint | None,
    ) -> NNFormer:
        config = recipe.changed(seed=self.seed + 7919 * member).train
        torch.manual_seed(config.seed)
        trainer = Trainer(NNFormer(recipe.model).to(self.device), graphs, learned, config)
        if keeper is not None:
            keeper.load(member, trainer)
        for loss in trainer.steps():
            if progress is not None:
                progress(trainer.done + member * trainer.total, trainer.total * recipe.members, float(loss))
            if keeper is not None:
                keeper.save(member, trainer)
        trainer.settle()
        return trainer.model.eval()

    def _begun(self, graphs: Graphs, values: NDArray[np.float64]) -> dict[str, Any]:
        """What an interrupted fit must agree in to be continued."""
        digest = hashlib.sha256(values.tobytes())
        for array in (graphs.ops, graphs.edges, graphs.sizes, graphs.attributes, graphs.shapes, graphs.static):
            digest.update(b"" if array is None else array.tobytes())
        return {"recipe": self.recipe.to_dict(), "seed": self.seed, "data": digest.hexdigest()}

    @property
    def fitted(self) -> bool:
        return bool(self.known)

    def predict(self, graphs: Sequence[Graph] | Graphs) -> NDArray[np.float64]:
        """Predictions ``(B,)`` in the units of the targets.

        Raises:
            ConfigError: nothing was fitted yet.
            GraphError: a graph is larger than the model was built for, or has an operation it does not know.
        """
        return self.predict_with_spread(graphs)[0]

    def predict_with_spread(self, graphs: Sequence[Graph] | Graphs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)`` over the networks and, where the recipe has them,
        the Gaussian processes as one and the trees as one; 0 where there is nothing to compare."""
        if not self.fitted:
            raise ConfigError("this predictor was not fitted; call fit, or load one from a file")
        data = Graphs.of(graphs)
        if not len(data):
            return np.zeros(0), np.zeros(0)
        self._check(data)
        share = self.recipe.adapted(self.info["graphs"]).statistics
        rows = [scorer(data) for scorer in self._scorers()]
        weights = [(1 - share) / len(rows) for _ in rows]
        if self.statistics is not None:
            kinds = self.statistics.predict(data)
            rows, weights = [*rows, *kinds], [*weights, *(share / len(kinds) for _ in kinds)]
        spread = np.stack([self.scale.restore(row) for row in rows]).std(0)
        return self.scale.restore(np.average(rows, axis=0, weights=weights)), spread

    def _scorers(self) -> list[Scorer]:
        if len(self._ready) < len(self.models):
            self._ready = [Scorer(model, self.recipe.train.precision) for model in self.models]
        return self._ready

    def _check(self, graphs: Graphs) -> None:
        if self.unseen == "ignore":
            return
        new = sorted({int(op) for op in np.unique(graphs.ops)} - self.known)
        if not new:
            return
        message = f"no training graph has operation {', '.join(map(str, new))}; it knows {sorted(self.known)}"
        if self.unseen == "error":
            raise GraphError(message + "; fit on graphs that have it, or allow it with unseen='warn'")
        _log.warning("%s: predictions for such graphs are guesses", message)

    def save(self, path: str | Path) -> None:
        """Write one ``.safetensors`` file: weights, and all else as JSON in its header.

        Raises:
            ConfigError: nothing was fitted yet.
            NasExtError: the file cannot be written; a former one is kept.
        """
        if not self.fitted:
            raise ConfigError("this predictor was not fitted; there is nothing to save")
        tensors = {f"{i}.{name}": x for i, model in enumerate(self.models) for name, x in model.state_dict().items()}
        if self.statistics is not None:
            tensors |= {f"statistics.{name}": x for name, x in self.statistics.to_tensors().items()}
        header = {
            "recipe": self.recipe.to_dict(),
            "seed": self.seed,
            "unseen": self.unseen,
            "known": sorted(self.known),
            "scale": [list(self.scale.targets), list(self.scale.learned)],
            "info": self.info,
        }
        write_artifact(path, KIND, header, tensors)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> NNFormerPredictor:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: the file is missing, truncated, of a newer version, or something else.
        """
        header, tensors = read_artifact(path, KIND)
        try:
            recipe = Recipe.from_dict(header["recipe"])
            made = cls(recipe, seed=int(header["seed"]), device=device, unseen=header["unseen"])
            made.known = frozenset(int(op) for op in header["known"])
            made.scale = TargetScale(*(tuple(float(x) for x in side) for side in header["scale"]))
            made.info = dict(header["info"])
            for member in range(recipe.members):
                model = NNFormer(recipe.model)
                model.load_state_dict(_below(f"{member}.", tensors))
                made.models.append(model.to(made.device).eval())
            if recipe.statistics:
                parts = _below("statistics.", tensors)
                made.statistics = StatisticsModel.from_tensors(parts, recipe.processes, recipe.trees)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{path}: the predictor is damaged ({reason[:120]}); fit it anew") from None
        return made


def _statistics(recipe: Recipe, graphs: Graphs, learned: NDArray[np.float64], seed: int) -> StatisticsModel | None:
    if not recipe.statistics:
        return None
    return StatisticsModel.fit(graphs, learned, recipe.processes, recipe.trees, seed)


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
