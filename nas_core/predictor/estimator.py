"""The predictor as users hold it: fit on graphs and numbers, predict, save, load."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.graph import FEATURES, Graph, GraphError, Graphs
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.fitted import Fitted
from nas_core.predictor.nn_former.model import NNFormer
from nas_core.predictor.recipes import Recipe, get_recipe
from nas_core.predictor.settings import needed_by
from nas_core.predictor.statistics.model import StatisticsModel
from nas_core.predictor.targets import TargetScale, checked_targets
from nas_core.predictor.training.checkpoint import Checkpoint
from nas_core.predictor.training.streams import own_streams
from nas_core.predictor.training.trainer import Trainer

__all__ = ["UNSEEN", "NNFormerPredictor"]

KIND = "nn-former"
UNSEEN = ("error", "warn", "ignore")
Progress = Callable[[int, int, float], None]
"""Called with the step, the number of steps and the loss."""

_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading an altered file may raise"""

_log = logging.getLogger(__name__)


class NNFormerPredictor:
    """Predicts one number per graph (accuracy, latency) with NN-Former.

    The networks read all features that the graphs have; graph statistics, where the recipe has them, see operations
    and edges only. Recipe ``best`` is such a mixture: of up to a hundred graphs .10 of a prediction is NN-Former's,
    from 1,233 on .70; :attr:`network_share` and the log of :meth:`fit` say how much it is.

    Example:
        >>> predictor = NNFormerPredictor("paper", seed=0).fit(graphs, accuracies)
        >>> predictor.predict(more_graphs)  # (B,)

    Args:
        recipe: a name of ``list_recipes()`` or a :class:`Recipe`.
        seed: of weights, dropout and batches; equal seeds on one machine give equal predictors.
        device: where to compute.
        unseen: what to do with an operation that no training graph has: ``error``, ``warn`` or ``ignore``.
        changes: other values for single settings of the recipe (``epochs=600, dim=64, members=3``). What follows the
            data otherwise (``attributes, shapes, static, operations, max_nodes``, and where the recipe adapts
            ``statistics, batch_size``) stays as it is given here.

    Raises:
        ConfigError, UnknownChoiceError: a setting that does not exist or cannot be.
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
        if not isinstance(recipe, str | Recipe):
            raise ConfigError(f"recipe is a {type(recipe).__name__}; expected a name of list_recipes() or a Recipe")
        chosen = get_recipe(recipe) if isinstance(recipe, str) else recipe
        self._given = chosen.changed(**changes)
        self.seed = checked_seed(seed)
        self.device = usable_device(device)
        if unseen not in UNSEEN:
            raise unknown_choice("treatment of unseen operations", unseen, UNSEEN)
        self.unseen = unseen
        self._fitted: Fitted | None = None

    def fit(
        self,
        graphs: Iterable[Graph] | Graphs,
        targets: ArrayLike,
        *,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> NNFormerPredictor:
        """Learn from graphs and targets ``(G,)``, from new weights whatever was fitted before. What was fitted before
        stays until all is learned. The caller's random streams are left as they are.

        Args:
            progress: called after each step.
            checkpoint: a file that an interrupted fit continues from; removed at the end.

        Raises:
            DataError: too few graphs, a target that is no number, or not one that the recipe can learn.
            GraphError: a graph the model is not made for.
            ConfigError: training diverged.
        """
        data = Graphs.of(graphs)
        whole = self._given.replaced(needed_by(data, self._given))
        recipe = whole.adapted(max(1, len(data)))
        _log.info("recipe %s on %d graphs: %s", recipe.name, len(data), recipe.mixture)
        squared = recipe.train.loss == "mse"
        unscaled = recipe.targets == "none" and squared and recipe.members > 0
        values = checked_targets(targets, len(data), positive=not squared, unscaled=unscaled)
        scale = TargetScale.fitted(recipe.targets, values)
        learned = scale.learn(values)
        statistics = None
        if recipe.statistics:
            statistics = StatisticsModel.fit(data, learned, recipe.processes, recipe.trees, self.seed)
        keeper = None if checkpoint is None else Checkpoint(Path(checkpoint), self._begun(data, values))
        with own_streams(self.device):
            members = range(recipe.members)
            models = tuple(self._fit_member(i, recipe, data, learned, progress, keeper) for i in members)
        known = frozenset(int(op) for op in np.unique(data.ops))
        info = {"graphs": len(data), "largest": int(data.sizes.max())}
        self._fitted = Fitted(whole, models, statistics, recipe.statistics, scale, known, info)
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
        config = replace(recipe.train, seed=self.seed + 7919 * member)
        torch.manual_seed(config.seed)
        model = NNFormer(recipe.model).to(self.device)
        if recipe.model.readout == "logarithm":
            model.logarithm.start(graphs, torch.from_numpy(learned))
        trainer = Trainer(model, graphs, learned, config)
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
        for array in (graphs.ops, graphs.edges, graphs.sizes, *(getattr(graphs, name) for name in FEATURES)):
            digest.update(b"" if array is None else array.tobytes())
        return {"recipe": self._given.to_dict(), "seed": self.seed, "data": digest.hexdigest()}

    @property
    def fitted(self) -> bool:
        return self._fitted is not None

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

    @property
    def known(self) -> frozenset[int]:
        """Operations that training graphs have."""
        return frozenset() if self._fitted is None else self._fitted.known

    @property
    def info(self) -> dict[str, Any]:
        """Facts of the training that are saved along: ``graphs``, ``largest``, and what is added by ``info |= ..``."""
        return {} if self._fitted is None else self._fitted.info

    @info.setter
    def info(self, info: Mapping[str, Any]) -> None:
        self._fitted = replace(self._whole("describe"), info=dict(info))

    def _whole(self, use: str) -> Fitted:
        if self._fitted is None:
            raise ConfigError(f"this predictor was not fitted; there is nothing to {use}: call fit, or load one")
        return self._fitted

    def predict(self, graphs: Iterable[Graph] | Graphs) -> NDArray[np.float64]:
        """Predictions ``(B,)`` in the units of the targets.

        Raises:
            ConfigError: nothing was fitted yet.
            GraphError: a graph is larger than the model was built for, or has an operation it does not know.
        """
        return self.predict_with_spread(graphs)[0]

    def predict_with_spread(self, graphs: Iterable[Graph] | Graphs) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)`` over the networks and, where the recipe has them,
        the Gaussian processes as one and the trees as one; 0 where there is nothing to compare."""
        fitted, data = self._whole("predict with"), Graphs.of(graphs)
        if not len(data):
            return np.zeros(0), np.zeros(0)
        self._check(data)
        return fitted.predict_with_spread(data)

    def unseen_in(self, graphs: Graphs) -> dict[int, int]:
        """Operations that no training graph has, each with the first of these graphs that has it."""
        graph_of_node = np.repeat(np.arange(len(graphs)), graphs.sizes)
        ops, first = np.unique(graphs.ops, return_index=True)
        found = zip(ops.tolist(), graph_of_node[first].tolist(), strict=True)
        return {op: graph for op, graph in found if op not in self.known}

    def _check(self, graphs: Graphs) -> None:
        if self.unseen == "ignore" or not (new := self.unseen_in(graphs)):
            return
        message = f"no training graph has operation {', '.join(map(str, new))}; it knows {sorted(self.known)}"
        if self.unseen == "error":
            first = min(new.values())
            raise GraphError(
                f"{message}, and graph {first} (from 0) of these has it: fit on graphs that have it, or allow it with"
                " unseen='warn'"
            )
        _log.warning("%s: predictions for such graphs are guesses", message)

    def save(self, path: str | Path) -> None:
        """Write one ``.safetensors`` file: weights, and all else as JSON in its header.

        Raises:
            ConfigError: nothing was fitted yet.
            DataError: a weight is no finite number.
            NasExtError: the file cannot be written; a former one is kept.
        """
        write_artifact(path, KIND, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Header and tensors of the file, for files of several predictors.

        Raises:
            ConfigError: nothing was fitted yet. DataError: a weight is no finite number.
        """
        fitted = self._whole("save")
        return {"seed": self.seed, "unseen": self.unseen, **fitted.header()}, fitted.tensors()

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", unseen: str | None = None) -> NNFormerPredictor:
        """Read what :meth:`save` wrote.

        Args:
            unseen: as of the class; default: as it was saved.

        Raises:
            DataError: the file is missing, truncated, altered, of a newer version, or something else.
            ConfigError, UnknownChoiceError: an argument that cannot be.
        """
        cls(device=device, unseen=unseen or "error")  # refuses before the file is read
        header, tensors = read_artifact(path, KIND)
        try:
            return cls.restored(header, tensors, device, unseen)
        except (*_ALTERED, NasExtError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{path}: the predictor is damaged ({reason[:120]}); fit it anew") from None

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str = "cpu", unseen: str | None = None
    ) -> NNFormerPredictor:
        """Inverse of :meth:`contents`; arguments as of :meth:`load`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        fitted = Fitted.restored(header, tensors, usable_device(device))
        made = cls(fitted.recipe, seed=header["seed"], device=device, unseen=header["unseen"])
        made._fitted = fitted
        if unseen is not None:
            made.unseen = unseen
        return made
