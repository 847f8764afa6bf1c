"""Models of cheap trainings, each an input of the next: what makes a predictor learn from several fidelities."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import DataError
from nas_core.graph import Graphs, with_static
from nas_core.predictor.artifact import below as tensors_below
from nas_core.predictor.fidelity.levels import LEAST, Levels
from nas_core.predictor.fidelity.link import Link
from nas_core.predictor.training.bar import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from nas_core.predictor.base import AccuracyModel

__all__ = ["Chain"]

Array = NDArray[np.float64]
FOLDS = 5
"""Most models that tell the next fidelity's inputs; each leaves out at most this part of what it could learn."""
STEPS = 1000
"""Steps that each fit is told to have: those of fits of different lengths do not add up."""
_PREFIX = "fidelity."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Chain:
    """A model for each fidelity but the highest, and how each follows from the one below.

    The score that one predicts is a static input of the next (auto-regressive, Kennedy and O'Hagan 2000; recursive, Le
    Gratiet and Garnier 2014). There, cheap values are exact and known wherever an expensive one is; here, they are
    noisy, and a graph's own is mostly unknown when it is predicted. So what the next fidelity learns from is told by
    models that have not seen that graph.
    """

    models: tuple[AccuracyModel, ...]
    """One for each fidelity but the highest, the lowest first"""
    links: tuple[Link, ...]
    """One more, the last of the highest fidelity"""

    @classmethod
    def fit(
        cls, model: AccuracyModel, graphs: Graphs, targets: Array, levels: Levels, told: Progress | None
    ) -> tuple[Chain, Graphs, Array, Progress | None]:
        """Learn all fidelities but the highest.

        Args:
            model: of whose copies the chain is made; it gets room for operations of any fidelity, which it knows from
                those below.
            targets: ``(G,)``.
            told: called with the step, the number of steps and the loss of all fits together, that of the highest
                fidelity too.

        Returns:
            The chain; graphs of the highest fidelity with the input from below, what is to be learned of them, and the
            progress of doing so.
        """
        model.prepare(graphs)
        group = graphs.distinct()[1]
        folds = [_folds(group, levels, each, model.seed) for each in range(len(levels.values) - 1)]
        teacher = _Teacher(model, _Parts(told, sum(1 + len(each) for each in folds) + 1))
        models, links = list[Any](), list[Link]()
        data, below = graphs, None
        for each, left_out in enumerate(folds):
            rows, later = np.flatnonzero(levels.of == each), np.flatnonzero(levels.of > each)
            link = Link.fit(targets[rows], _of(below, rows))
            wanted = link.wanted(targets[rows], _of(below, rows))
            models.append(teacher.taught(data, rows, wanted))
            links.append(link)
            found = np.zeros(len(graphs))
            found[later] = models[-1].predict(data.take(later))
            for apart in left_out:
                kept, asked = ~np.isin(group[rows], apart), later[np.isin(group[later], apart)]
                judge = teacher.taught(data, rows[kept], wanted[kept]) if kept.sum() >= LEAST else models[-1]
                found[asked] = judge.predict(data.take(asked))
            below = link.score(found, below)
            data = with_static(graphs, below)
        assert below is not None
        top = levels.highest
        link = Link.fit(targets[top], below[top])
        _log.info("fidelities: %s; slopes of scores %s", levels, [round(each.slope, 2) for each in (*links[1:], link)])
        chain = cls(tuple(models), (*links, link))
        return chain, data.take(top), link.wanted(targets[top], below[top]), teacher.parts.next()

    def put(self, graphs: Graphs) -> Graphs:
        """Graphs with the input that the model of the highest fidelity reads."""
        below, data = None, graphs
        for model, link in zip(self.models, self.links[:-1], strict=True):
            below = link.score(model.predict(data), below)
            data = with_static(graphs, below)
        return data

    def restored_values(self, rows: Array, graphs: Graphs) -> Array:
        """What the model of the highest fidelity says of graphs of :meth:`put`, ``(.., B)``, in the units of the
        targets; predictions and quantiles alike."""
        return self.links[-1].values(rows, _input(graphs))

    def restored(self, predicted: Array, spread: Array | None, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)`` of graphs of :meth:`put`, in the units of the
        targets."""
        link, below = self.links[-1], _input(graphs)
        wide = None if spread is None else link.spread(predicted, spread, below)
        return link.values(predicted, below), wide

    def added_to(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], Any]:
        """A file's header and tensors with the chain in them."""
        contents = [model.contents() for model in self.models]
        about = {"models": [own for own, _ in contents], "links": [link.to_json() for link in self.links]}
        more = {f"{_PREFIX}{i}.{name}": x for i, (_, own) in enumerate(contents) for name, x in own.items()}
        return {**header, "fidelity": about}, {**tensors, **more}

    @classmethod
    def taken_from(
        cls, kind: type[Any], header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str
    ) -> tuple[Chain | None, dict[str, Tensor]]:
        """The chain that a file holds, None where there is none, and the tensors beside it; the inverse of
        :meth:`added_to`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        own = {name: tensor for name, tensor in tensors.items() if not name.startswith(_PREFIX)}
        about = header.get("fidelity")  # absent where nothing was said of fidelities, and in files before there were
        if about is None:
            return None, dict(tensors)
        links = tuple(Link.from_json(each) for each in about["links"])
        if len(links) != len(about["models"]) + 1 or len(links) < 2:
            raise DataError(f"{len(about['models'])} models and {len(links)} links of fidelities")
        parts: Sequence[Mapping[str, Tensor]] = [
            tensors_below(f"{_PREFIX}{i}.", tensors) for i in range(len(about["models"]))
        ]
        models = (
            kind.restored(each, part, device, "ignore") for each, part in zip(about["models"], parts, strict=True)
        )
        return cls(tuple(models), links), own


class _Teacher:
    """Fits copies of a model."""

    def __init__(self, model: AccuracyModel, parts: _Parts) -> None:
        self.model, self.parts = model, parts

    def taught(self, graphs: Graphs, rows: NDArray[np.int64], wanted: Array) -> AccuracyModel:
        """A copy that learned these of the graphs, and takes all of them."""
        made = copy.deepcopy(self.model)
        made.unseen = "ignore"  # whether a graph may be guessed at is decided once, of the whole chain
        made.prepare(graphs)
        return made.fit(graphs.take(rows), wanted, progress=self.parts.next())


class _Parts:
    """The progress of several fits as that of one."""

    def __init__(self, told: Progress | None, fits: int) -> None:
        self.told, self.fits, self.begun = told, fits, 0

    def next(self) -> Progress | None:
        """The progress of the next fit."""
        told, before = self.told, self.begun
        self.begun += 1
        if told is None:
            return None
        return lambda step, steps, loss: told(
            STEPS * before + round(STEPS * step / max(steps, 1)), STEPS * self.fits, loss
        )


def _folds(group: NDArray[np.int64], levels: Levels, each: int, seed: int) -> list[NDArray[np.int64]]:
    """Groups of equal graphs that a model of a fidelity is fitted without, to tell inputs of later ones: all that have
    a later one, in as few parts as leave most of the graphs to learn from."""
    own = group[levels.of == each]
    shared = np.intersect1d(own, group[levels.of > each])
    if not len(shared):
        return []
    parts = -(-FOLDS * int(np.isin(own, shared).sum()) // len(own))
    order = np.random.default_rng([seed, 11, each]).permutation(shared)
    return [order[part :: min(parts, len(shared))] for part in range(min(parts, len(shared)))]


def _of(below: Array | None, rows: NDArray[np.int64]) -> Array | None:
    return None if below is None else below[rows]


def _input(graphs: Graphs) -> Array:
    assert graphs.static is not None
    return graphs.static[:, -1].astype(np.float64)
