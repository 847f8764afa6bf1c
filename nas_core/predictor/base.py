"""Accuracy models: fitted to graphs and numbers, they predict with a standard deviation, and are saved and loaded."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from torch import Tensor

from nas_core.checks import checked_seed
from nas_core.device import usable_device
from nas_core.errors import ConfigError, DataError, NasExtError, unknown_choice
from nas_core.graph import Graph, GraphError, Graphs, common_ends, lacking_ends, topological, with_ends
from nas_core.options import Configured, parsed_settings
from nas_core.predictor.artifact import read_artifact, write_artifact
from nas_core.predictor.proxy_inputs import ProxyInputs, Scores
from nas_core.predictor.targets import checked_levels, checked_targets
from nas_core.predictor.training.progress import Progress, training_bar
from nas_core.registry import Registry

Array = NDArray[np.float64]
UNSEEN = ("error", "warn", "ignore")
"""What may be done with an operation that no training graph has."""
MOST = 0.5
"""Share of graphs without one input and one output, above which all get them."""
WITH_SPREAD = (
    "those that have one are recipes best and statistics, models statistics, gaussian-process and boosted-trees, and"
    " any recipe with members=2 or more"
)
_ALTERED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What reading an altered file may raise."""

_log = logging.getLogger(__name__)


class AccuracyModel(Configured, ABC):
    """A model that predicts one number per graph: an accuracy, or another one that graphs were given with.

    A subclass defines :meth:`learn`, :meth:`estimate`, :meth:`tensors` and :meth:`restore`.

    Args:
        seed: of all that is drawn; equal seeds on one machine give equal models and files.
        device: where to compute, for models that use torch.
        unseen: what to do with an operation that no training graph has: ``error``, ``warn`` or ``ignore``.
        settings: fields of the model's ``config_class``.

    Raises:
        ConfigError, UnknownChoiceError: a setting that does not exist or cannot be.
    """

    called = "accuracy model"
    seed: int
    unseen: str

    def __init__(self, *, seed: int = 0, device: str = "cpu", unseen: str = "error", **settings: Any) -> None:
        self.check_settings(settings)
        self.config: Any = self.config_class(**settings)
        self.seed, self.device, self.unseen = checked_seed(seed), usable_device(device), _checked_unseen(unseen)
        self._known: frozenset[int] = frozenset()
        self._ends: tuple[int, int] | None = None  # operations of an input and an output put around each graph
        self._common_ends: tuple[int, int] | None = None  # those that training graphs had
        self._proxies: ProxyInputs | None = None
        self._info: dict[str, Any] = {}

    # -- defined by a subclass -----------------------------------------------------------------------------------------

    @abstractmethod
    def learn(self, graphs: Graphs, targets: Array, progress: Progress | None, checkpoint: Path | None) -> None:
        """Learn from graphs and finite targets ``(G,)``, at least two. What was learned replaces what was before at the
        very end, all at once.

        Args:
            progress: as of :meth:`fit`, as is ``checkpoint``; of use for models that learn step by step.
        """

    @abstractmethod
    def estimate(self, graphs: Graphs) -> tuple[Array, Array | None]:
        """Predictions ``(B,)`` for some graphs, and their standard deviation ``(B,)`` where the model has one."""

    def estimate_quantiles(self, graphs: Graphs, levels: Array) -> Array | None:
        """Quantiles ``(L, B)`` at levels ``(L,)``, where the model has a spread; by default those of a normal
        distribution."""
        mean, spread = self.estimate(graphs)
        return None if spread is None else mean + ndtri(levels)[:, None] * spread

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All arrays that were learned."""

    def header(self) -> dict[str, Any]:
        """Return what was learned that is no array, for JSON."""
        return {}

    @abstractmethod
    def restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave and :meth:`header` holds. Contents that were altered may raise any error;
        one that only wrong predictions would show must."""

    @classmethod
    def made_of(cls, header: Mapping[str, Any], device: str) -> Self:
        return cls(seed=header["seed"], device=device, unseen=header["unseen"], **header["settings"])

    def prepare(self, graphs: Graphs) -> dict[str, Any]:
        """Make room for graphs of which only some will be learned; settings that this changed."""
        return {}

    def make_room(self, nodes: int) -> None:
        """Be ready for so many nodes and operations more than a person's limits allow: the ends of graphs."""

    @property
    def networks(self) -> int:
        """How many networks it trains step by step, one after the other; 0: it has no learning curve."""
        return 0

    def facts(self) -> dict[str, Any]:
        """What is worth keeping of how a fit computes, for :attr:`info`."""
        return {}

    def remarks(self, graphs: Graphs) -> list[str]:
        """What is worth saying about a fit to these graphs."""
        return []

    @property
    def ready(self) -> bool:
        """Whether it predicts: it has learned, or knows something before."""
        return self.fitted

    @property
    def has_spread(self) -> bool:
        """Whether predictions have a standard deviation, as far as that is known before a fit."""
        return True

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name

    # -- fitting and predicting ----------------------------------------------------------------------------------------

    def fit(
        self,
        graphs: Iterable[Graph] | Graphs,
        targets: ArrayLike,
        *,
        proxies: Scores | None = None,
        progress: Progress | bool | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from graphs and targets ``(G,)``, anew whatever was fitted before, which stays until all is learned.
        The caller's random streams are left as they are.

        Args:
            proxies: scores of zero-cost proxies (or other numbers of whole networks) as further inputs: ``{"nwot":
                (G,), ..}``, or for each graph what :func:`nas_core.proxies.zero_cost` gives. To predict takes them too.
            progress: called for each step; on accelerators for some steps at a time, so that none waits. True: a bar
                is drawn, as the command line does.
            checkpoint: a file that an interrupted fit continues from; removed at the end.

        Raises:
            DataError: too few graphs, a target that is no number, or not one that can be learned.
            GraphError: a graph the model is not made for.
            ConfigError: training diverged, or the device does not compute in the precision.
        """
        data = topological(Graphs.of(graphs))
        values = checked_targets(targets, len(data))
        inputs = None if proxies is None else ProxyInputs.fit(proxies, len(data))
        data = data if inputs is None else inputs.put(data, proxies)
        known = frozenset(int(op) for op in np.unique(data.ops))
        info = {"graphs": len(data), "largest": int(data.sizes.max()), **self.facts()}
        common = common_ends(data)
        ends = _missing_ends(data, common)
        with training_bar() if progress is True else nullcontext(progress or None) as told:
            whole = data if ends is None else with_ends(data, *ends)
            self.make_room(0 if ends is None else len(ends))
            self.learn(whole, values, told, None if checkpoint is None else Path(checkpoint))
        self._known, self._info, self._proxies = known, info, inputs
        self._ends, self._common_ends = ends, common
        return self

    @property
    def fitted(self) -> bool:
        """Whether it has learned."""
        return bool(self._known)

    @property
    def known(self) -> frozenset[int]:
        """Operations that training graphs have."""
        return self._known

    @property
    def proxies(self) -> tuple[str, ...]:
        """Names of the zero-cost proxies that it reads; none where it was fitted without."""
        return () if self._proxies is None else self._proxies.names

    @property
    def info(self) -> dict[str, Any]:
        """Facts of the training that are saved along: ``graphs``, ``largest``, of networks the ``precision``
        and the ``device`` by name, and what is added by ``info |= ..``."""
        return self._info

    @info.setter
    def info(self, info: Mapping[str, Any]) -> None:
        self.require_fitted("describe")
        self._info = dict(info)

    def require_spread(self) -> None:
        """Insist that its predictions have a standard deviation, before work begins.

        Raises:
            ConfigError: they have none.
        """
        if not self.has_spread:
            self._there(None)

    def require_fitted(self, use: str) -> None:
        """Insist that it has learned.

        Args:
            use: what it is needed for, for the message.

        Raises:
            ConfigError: it has not.
        """
        if not self.fitted:
            raise ConfigError(f"this predictor was not fitted; there is nothing to {use}: call fit, or load one")

    def predict(self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None) -> Array:
        """Predictions ``(B,)`` in the units of the targets.

        Args:
            proxies: scores as of :meth:`fit`, where it was fitted with them; others than its own are passed over.

        Raises:
            ConfigError: nothing was fitted yet, or proxies are missing.
            GraphError: a graph is larger than the model was built for, or has an operation it does not know.
        """
        return self.predictions(graphs, proxies=proxies)[0]

    def predict_with_spread(
        self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None
    ) -> tuple[Array, Array]:
        """Predictions ``(B,)`` and their standard deviation ``(B,)``, in the units of the targets; arguments as of
        :meth:`predict`.

        Raises:
            ConfigError: the model has no standard deviation; others as of :meth:`predict`.
        """
        predicted, spread = self.predictions(graphs, proxies=proxies)
        return predicted, self._there(spread)

    def predict_quantiles(
        self, graphs: Iterable[Graph] | Graphs, levels: Sequence[float], *, proxies: Scores | None = None
    ) -> Array:
        """Values ``(L, B)`` below which that of a graph lies with these probabilities, in the units of the targets.

        Example:
            >>> low, median, high = predictor.predict_quantiles(graphs, [0.1, 0.5, 0.9])

        Args:
            levels: ``(L,)`` probabilities between 0 and 1. proxies: as of :meth:`predict`.

        Raises:
            ConfigError: a level that is none, or the model has no spread; others as of :meth:`predict`.
        """
        wanted = checked_levels(levels)
        data = self._read(graphs, proxies)
        if data is None:
            return np.zeros((len(wanted), 0))
        return self._there(self.estimate_quantiles(self._with_ends(data), wanted))

    def predictions(
        self, graphs: Iterable[Graph] | Graphs, *, proxies: Scores | None = None
    ) -> tuple[Array, Array | None]:
        """Predict as :meth:`predict_with_spread` does, with None in place of a spread that the model does not have."""
        data = self._read(graphs, proxies)
        return (np.zeros(0), np.zeros(0)) if data is None else self.estimate(self._with_ends(data))

    def _read(self, graphs: Iterable[Graph] | Graphs, proxies: Scores | None) -> Graphs | None:
        """Graphs with all that was learned from, but their ends; None: there are none."""
        if not self.ready:
            self.require_fitted("predict with")
        data = topological(Graphs.of(graphs))
        if not len(data):
            return None
        if self.fitted:
            self._check(data)
            if self._ends is None and lacking_ends(data, self._common_ends).mean() > MOST:
                _log.warning(
                    "most of these graphs have several nodes that nothing feeds, or several that feed nothing, where"
                    " most training graphs had one input and one output: predictions are guesses"
                )
        return data if self._proxies is None else self._proxies.put(data, proxies)

    def _with_ends(self, graphs: Graphs) -> Graphs:
        if self._ends is None:
            return graphs
        taken = np.isin(graphs.ops, self._ends)  # by operations that no training graph has
        if taken.any():
            graphs = replace(graphs, ops=np.where(taken, max(self._ends) + 1, graphs.ops).astype(graphs.ops.dtype))
        return with_ends(graphs, *self._ends)

    def _there(self, spread: Array | None) -> Array:
        if spread is None:
            raise ConfigError(
                f"{self.title!r} has no spread{'' if self.fitted else ' before a fit'}: nothing judged how far off it"
                f" is; {WITH_SPREAD}"
            )
        return spread

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

    # -- files ---------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write one ``.safetensors`` file: arrays, and all else as JSON in its header.

        Raises:
            ConfigError: nothing was fitted yet.
            DataError: a weight is no finite number.
            NasExtError: the file cannot be written; a former one is kept.
        """
        write_artifact(path, self.name, *self.contents())

    def contents(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return header and tensors of the file, for files of several predictors. Errors as of :meth:`save`."""
        self.require_fitted("save")
        common = {
            "seed": self.seed, "unseen": self.unseen, "settings": asdict(self.config), "known": sorted(self._known),
            "info": self._info, "ends": self._ends, "common_ends": self._common_ends,
            "proxies": None if self._proxies is None else self._proxies.to_json(),
        }  # fmt: skip
        return {**common, **self.header()}, self.tensors()

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu", unseen: str | None = None) -> Self:
        """Read what :meth:`save` of this model wrote; :func:`nas_core.predictor.load_accuracy_model` reads any model's.

        Args:
            unseen: as of the class; default: as it was saved.

        Raises:
            DataError: the file is missing, truncated, altered, of a newer version, or something else.
            ConfigError, UnknownChoiceError: an argument that cannot be.
        """
        return cls.opened(path, *read_artifact(path, cls.name), device, unseen)

    @classmethod
    def opened(
        cls, path: str | Path, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str, unseen: str | None
    ) -> Self:
        """Return the model of a file of that name that was read already. Errors as of :meth:`load`."""
        usable_device(device)
        if unseen is not None:
            _checked_unseen(unseen)
        try:
            return cls.restored(header, tensors, device, unseen)
        except (*_ALTERED, NasExtError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"{path}: the predictor is damaged ({reason[:120]}); fit it anew") from None

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str = "cpu", unseen: str | None = None
    ) -> Self:
        """Return the model of such a header and tensors, the inverse of :meth:`contents`; arguments as of :meth:`load`.

        Raises:
            Exception: of many kinds, where something is missing or was altered.
        """
        model = cls.made_of(header, device)
        model.restore(header, tensors)
        model._known, model._info = frozenset(header["known"]), dict(header["info"])
        ends = (header["ends"], header["common_ends"])
        model._ends, model._common_ends = (None if pair is None else (pair[0], pair[1]) for pair in ends)
        proxies = header.get("proxies")
        model._proxies = None if proxies is None else ProxyInputs.from_json(proxies)
        if unseen is not None:
            model.unseen = unseen
        return model


def within(graphs: Graphs, operations: int, known: Collection[int]) -> Graphs:
    """The same graphs where every operation index is below ``operations``: one that is not becomes an index that no
    training graph has, so that it is none of the operations it was taught; where there is none, the last.

    Args:
        known: operation indices of the training graphs.
    """
    if int(graphs.ops.max(initial=0)) < operations:
        return graphs
    spare = next((index for index in range(operations) if index not in known), operations - 1)
    return replace(graphs, ops=np.where(graphs.ops < operations, graphs.ops, spare).astype(graphs.ops.dtype))


def _missing_ends(graphs: Graphs, common: tuple[int, int] | None) -> tuple[int, int] | None:
    """Operation indices of an input and an output to put around graphs, most of which have not one of either; None
    where most have.

    Args:
        common: operations at the ends of graphs that have them.
    """
    apart = lacking_ends(graphs, common)
    if apart.mean() <= MOST:
        if apart.any():
            _log.warning(
                "%d of %d graphs have several nodes that nothing feeds, or several that feed nothing, the first of them"
                " graph %d (from 0): they are taken as they are; with_ends of nas_core.graph gives all the same ends",
                apart.sum(), len(apart), apart.argmax(),
            )  # fmt: skip
        return None
    first = max(int(graphs.ops.max()) + 1, len(graphs.operations or ()))
    _log.info(
        "most graphs have several nodes that nothing feeds, or several that feed nothing: each gets an input before and"
        " an output behind it"
    )
    return first, first + 1


def _checked_unseen(unseen: str) -> str:
    """That treatment of unseen operations, if there is such.

    Raises:
        UnknownChoiceError: there is none.
    """
    if unseen not in UNSEEN:
        raise unknown_choice("treatment of unseen operations", unseen, UNSEEN)
    return unseen


ACCURACY_MODELS: Registry[type[AccuracyModel]] = Registry(
    "accuracy model",
    "nas_ext.accuracy_models",
    {
        "nn-former": "nas_core.predictor.estimator:NNFormerPredictor",
        "statistics": "nas_core.predictor.statistics.predictor:StatisticsPredictor",
        "gaussian-process": "nas_core.predictor.statistics.predictor:GaussianProcessPredictor",
        "boosted-trees": "nas_core.predictor.statistics.predictor:BoostedTreesPredictor",
    },
    AccuracyModel,
    of_classes=True,
)
"""A new one is a file of its own and a line here; its class is an :class:`AccuracyModel`."""


def load_accuracy_model(path: str | Path, device: str = "cpu", unseen: str | None = None) -> AccuracyModel:
    """Read what the ``save`` of any accuracy model wrote.

    Args:
        device: where to compute.
        unseen: what to do with operations that no training graph has; default: as it was saved.

    Raises:
        DataError: the file is missing, truncated, altered, of a newer version, or something else.
        ConfigError, UnknownChoiceError: an argument that cannot be.
    """
    header, tensors = read_artifact(path, ACCURACY_MODELS.names())
    return ACCURACY_MODELS.get(header["kind"]).opened(path, header, tensors, device, unseen)


def parsed_accuracy_settings(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """``["epochs=20"]`` as settings of that model, each of the type of its field.

    Raises:
        ConfigError, UnknownChoiceError: no such model or setting, no ``NAME=VALUE``, or a value of another type.
    """
    return parsed_settings(texts, ACCURACY_MODELS.get(name).setting_types(), f"accuracy model {name!r}")
