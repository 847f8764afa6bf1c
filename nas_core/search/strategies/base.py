"""Base class of search strategies."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.options import NoSettings, options_of
from nas_core.search.constraints import Constraint, Limits
from nas_core.search.journal import plain_metrics
from nas_core.search.strategies.proposals import Proposals, row_keys
from nas_core.space import Architecture, SearchSpace
from nas_core.space.slots import Rows

SPARE_PARENTS, SPARE_MUTATION = 10, 0.3
"""Number of best architectures that are mutated for idle workers, and mutation probability per gene."""

PATIENCE = 3
"""Number of consecutive generations without a new architecture after which a search ends."""


class Strategy(ABC):
    """Search strategy: proposes architectures and learns from their metrics; it never evaluates.

    :meth:`ask` returns each architecture once; :meth:`tell` accepts metrics in any order. A generation is proposed
    after all results of the previous one, unless ``barrier`` is False. A missing, NaN or infinite metric is a failure.
    Only the first result of an architecture counts.

    A subclass defines :attr:`budget` and :meth:`_propose`. If it learns more than the metric, it overrides
    :meth:`_learn`.

    Args:
        constraints: limits of all proposed architectures, such as ``{"latency_ms": (function, 30)}``.
        config: instance of :attr:`config_class`.
        metric: metric to minimise.
    """

    name: ClassVar[str] = ""
    purpose: ClassVar[str] = ""
    """One-line description for users."""
    config_class: ClassVar[type[Any]] = NoSettings
    """Frozen dataclass of the strategy's options."""
    multi_objective: ClassVar[bool] = False
    """True if several metrics are minimised, not only the first."""
    max_objectives: ClassVar[int | None] = None
    """Largest number of metrics if several are minimised; None: any."""
    budget_formula: ClassVar[str] = ""
    """Formula of :attr:`budget`, such as ``{samples} x {rounds}``."""
    barrier: ClassVar[bool] = True
    uses_prior: ClassVar[bool] = False
    """True if the class has an argument ``prior``, a function that scores architectures."""

    def __init__(
        self,
        space: SearchSpace,
        constraints: Limits = (),
        config: Any = None,
        *,
        seed: int = 0,
        metric: str = "loss",
    ) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ConfigError(f"seed is {seed!r}; expected an integer of at least 0")
        if config is not None and not isinstance(config, self.config_class):
            raise ConfigError(f"config is {config!r}; expected a {self.config_class.__name__}")
        self.space = space
        self.config = self.config_class() if config is None else config
        self.metric = metric
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.proposals = Proposals(space, constraints)
        self.generation = 0
        self.proposed = 0
        """Number of architectures in all generations, with repetitions."""
        self.cache_hits = 0
        """Number of proposed architectures that had a result."""
        self._scores: dict[bytes, float] = {}
        self._members: dict[bytes, None] = {}
        self._queue: dict[bytes, None] = {}
        self._waiting: dict[bytes, None] = {}
        self._stale = 0
        self._ended = False

    # -- defined by each strategy ------------------------------------------------------------------------------------

    @abstractmethod
    def _propose(self) -> Rows | None:
        """Return the next generation ``(n, slots)``, which may repeat architectures; None ends the search."""

    @property
    @abstractmethod
    def budget(self) -> int:
        """Largest number of evaluations."""

    @classmethod
    def settings_for(cls, evaluations: int) -> dict[str, Any]:
        """Return the settings with which at most ``evaluations`` (>= 10) architectures are evaluated.

        Raises:
            ConfigError: the strategy has no setting ``evaluations`` and does not define this method.
        """
        if "evaluations" not in {option.name for option in options_of(cls.config_class)}:
            raise ConfigError(
                f"strategy {cls.name} has no setting evaluations; give its own settings instead:"
                f" {', '.join(option.name for option in options_of(cls.config_class)) or 'none'}"
            )
        return {"evaluations": evaluations}

    @classmethod
    def create(
        cls,
        space: SearchSpace,
        constraints: Sequence[Constraint],
        config: Any,
        objectives: Sequence[str],
        seed: int,
        **options: Any,
    ) -> Any:
        """Create a strategy with the objectives of a command line or a host framework.

        Args:
            objectives: metrics to minimise; only the first for a single objective.
            options: further arguments of the class, such as the prior of RankNAS.
        """
        return cls(space, constraints, config, metric=objectives[0], seed=seed, **options)

    @property
    def objectives(self) -> tuple[str, ...]:
        """Minimised metrics, :attr:`metric` first."""
        return (self.metric,)

    def _learn(self, key: bytes, metrics: Mapping[str, Any]) -> float:
        """Return the score of a new result, smaller is better; infinity for a failure."""
        score = plain_metrics({self.metric: metrics.get(self.metric)})[self.metric]
        return math.inf if score is None else score

    def describe(self) -> dict[str, Any]:
        """Return all settings as JSON types."""
        return {
            "strategy": self.name or type(self).__name__,
            "seed": self.seed,
            "metric": self.metric,
            "constraints": {constraint.name: float(constraint.limit) for constraint in self.proposals.constraints},
            **asdict(self.config),
        }

    def insight(self) -> dict[str, Any]:
        """Return what was learned, such as the importance of genes, as JSON types; by default empty."""
        return {}

    # -- ask and tell ------------------------------------------------------------------------------------------------

    @property
    def asked_all(self) -> bool:
        """True if no architecture is left to ask for."""
        return self._ended and not self._queue

    @property
    def finished(self) -> bool:
        """True if no architecture is left to ask for and all have a result."""
        return self.asked_all and not self._waiting

    @property
    def waiting(self) -> list[Architecture]:
        """Architectures without a result, oldest first."""
        return self._values(self._waiting)

    def start(self) -> None:
        """Propose the first generation.

        Raises:
            ConstraintError: no architecture meets the limits.
        """
        if not self.generation:
            self._refill()

    def ask(self, n: int = 1) -> list[Architecture]:
        """Return at most ``n`` new architectures; none at the end, or while the next generation awaits results.

        Raises:
            ConstraintError: no architecture meets the limits.
        """
        keys: list[bytes] = []
        while len(keys) < n and (self._queue or self._refill()):
            key = next(iter(self._queue))
            del self._queue[key]
            self._waiting[key] = None
            keys.append(key)
        return self._values(keys)

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        """Record the metrics of an architecture; None is a failure."""
        key = self.space.row(architecture).tobytes()
        if key in self._scores:
            return
        self._scores[key] = self._learn(key, metrics or {})
        if key in self._queue:
            del self._queue[key]
            self.cache_hits += 1
        self._waiting.pop(key, None)
        if self.generation and not self._queue and not self._waiting:
            self._refill()

    def spare(self, rng: np.random.Generator, excluded: Iterable[Architecture] = ()) -> Architecture | None:
        """Return a new architecture within the limits for an idle worker, without effect on the search.

        Args:
            rng: random generator other than the strategy's.
        """
        keys = {*self._members, *self._scores, *(self.space.row(architecture).tobytes() for architecture in excluded)}
        best = sorted((score, key) for key, score in self._scores.items() if math.isfinite(score))[:SPARE_PARENTS]
        parents = self._rows(key for _, key in best)

        def draw(k: int) -> Rows:
            if not len(parents):
                return self.space.sample_rows(rng, k)
            half = self.space.mutate_rows(parents[rng.integers(len(parents), size=k // 2)], SPARE_MUTATION, rng)
            return np.concatenate([half, self.space.sample_rows(rng, k - k // 2)])

        rows = self.proposals.take(draw, 1, keys)
        return self.space.architecture(rows[0]) if len(rows) else None

    def requeue(self) -> None:
        """Return architectures without a result to the front of the queue."""
        self._queue = {**self._waiting, **self._queue}
        self._waiting = {}

    def replay(self, results: Mapping[Architecture, Mapping[str, Any] | None]) -> None:
        """Add the results of an earlier run in the order of its proposals; the search then continues identically."""
        missing = dict(results)
        while missing and (proposed := self.ask(1)):
            if proposed[0] in missing:
                self.tell(proposed[0], missing.pop(proposed[0]))
        for architecture, metrics in missing.items():
            self.tell(architecture, metrics)
        self.requeue()

    def best(self) -> tuple[Architecture, float] | None:
        """Return the proposed architecture with the smallest score, and the score; None without a result."""
        finite = [key for key in self._members if math.isfinite(self._scores.get(key, math.inf))]
        key = min(finite, key=self._scores.__getitem__, default=None)
        return None if key is None else (self._values([key])[0], self._scores[key])

    def _refill(self) -> bool:
        while not self._ended and not self._queue and not (self.barrier and self._waiting):
            rows = self._propose()
            if rows is None:
                self._ended = True
                break
            keys = row_keys(rows)
            fresh = [key for key in keys if key not in self._scores and key not in self._waiting]
            self.generation += 1
            self.proposed += len(keys)
            self.cache_hits += len(keys) - len(fresh)
            self._members.update(dict.fromkeys(keys))
            self._queue.update(dict.fromkeys(fresh))
            self._stale = 0 if fresh else self._stale + 1
            self._ended = self._stale == PATIENCE
        return bool(self._queue)

    def _rows(self, keys: Iterable[bytes]) -> Rows:
        return np.frombuffer(b"".join(keys), np.int16).reshape(-1, self.space.slots.count)

    def _values(self, keys: Iterable[bytes]) -> list[Architecture]:
        return self.space.architectures(self._rows(keys))

    def _mutated(self, parents: Rows, k: int, probability: float) -> Rows:
        return self.space.mutate_rows(parents[self.rng.integers(len(parents), size=k)], probability, self.rng)

    def _crossed(self, parents: Rows, k: int) -> Rows:
        first = self.rng.integers(len(parents), size=k)
        second = (first + self.rng.integers(1, len(parents), size=k)) % len(parents)
        return self.space.crossover_rows(parents[first], parents[second], self.rng)

    # -- for strategies that fit a model to all results --------------------------------------------------------------

    def _evaluated(self) -> tuple[Rows, NDArray[np.float64]]:
        """Return architectures ``(n, slots)`` and scores ``(n,)`` of successful evaluations."""
        others = sorted(key for key in self._scores if key not in self._members)
        keys = [key for key in (*self._members, *others) if math.isfinite(self._scores.get(key, math.inf))]
        return self._rows(keys), np.array([self._scores[key] for key in keys])

    def _best_first(self) -> list[bytes]:
        finite = (key for key, score in self._scores.items() if math.isfinite(score))
        return sorted(finite, key=lambda key: (self._scores[key], key))

    def _with_children(self, rows: Rows, count: int, excluded: set[bytes], parents: int, mutation_prob: float) -> Rows:
        """Extend ``rows`` to ``count`` with mutants of the best evaluated architectures, then with random ones.

        Args:
            excluded: keys of rows; those of new rows are added.
            parents: number of mutated architectures.
        """
        best = self._rows(self._best_first()[:parents])
        children = self.proposals.take(lambda k: self._mutated(best, k, mutation_prob), count - len(rows), excluded)
        missing = count - len(rows) - len(children)
        others = self.proposals.take(lambda k: self.space.sample_rows(self.rng, k), missing, excluded)
        return np.concatenate([rows, children, others])
