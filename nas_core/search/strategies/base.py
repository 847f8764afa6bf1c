"""The interface of search strategies: ask for architectures, tell their metrics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from nas_core.differences import check_same_settings
from nas_core.errors import ConfigError
from nas_core.search.constraints import Limits
from nas_core.search.journal import plain_metrics
from nas_core.search.strategies.description import StrategyDescription
from nas_core.search.strategies.proposals import Proposals, row_keys
from nas_core.space import Architecture, SearchSpace, space_to_dict
from nas_core.space.slots import ABSENT, Rows

SPARE_PARENTS, SPARE_MUTATION = 10, 0.3
"""Spare architectures are children of so many of the best, each gene replaced with this probability."""

PATIENCE = 3
"""A search ends after so many generations in a row that hold nothing new: the feasible architectures are used up."""


class Strategy(StrategyDescription, ABC):
    """Proposes architectures and learns from their metrics; it never evaluates and knows no process or device.

    ``ask`` hands out architectures, each once; ``tell`` takes results in any order, at any time. A generation is
    proposed when the whole one before it was told (a barrier), so the same results lead to the same search whatever
    their order; meanwhile ``ask`` returns fewer architectures than wanted, or none. A strategy whose proposals do not
    depend on results may set ``barrier = False``.

    A result that is missing, NaN or infinite counts as failed: the architecture stays in the population as its worst
    member and becomes no parent. For an architecture told twice the first result stays. A result for an architecture
    that was never asked for is kept, and saves the evaluation if the architecture is proposed later.

    A new strategy says what :class:`StrategyDescription` lists and writes :attr:`budget`, :meth:`_propose`; where more
    of a result than one score is learned from, :meth:`_learn`; where it is kept, :meth:`_state` and :meth:`_restore`.

    Args:
        space: the search space.
        constraints: hard limits, ``{"latency_ms": (function, 30)}``; nothing that violates one is ever asked for.
        config: the strategy's settings; default: all of :attr:`config_class`'s.
        seed: of the strategy's own random generator.
        metric: the metric to minimise.
        max_tries: cap of each rejection sampling, in candidates.
    """

    barrier: ClassVar[bool] = True

    def __init__(
        self,
        space: SearchSpace,
        constraints: Limits = (),
        config: Any = None,
        *,
        seed: int = 0,
        metric: str = "loss",
        max_tries: int = 20_000,
    ) -> None:
        for name, value, least in (("seed", seed, 0), ("max_tries", max_tries, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"{name} is {value!r}; expected a whole number of at least {least}")
        if config is not None and not isinstance(config, self.config_class):
            raise ConfigError(f"config is {config!r}; expected a {self.config_class.__name__}")
        self.space = space
        self.config = self.config_class() if config is None else config
        self.metric = metric
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.proposals = Proposals(space, constraints, max_tries)
        self.generation = 0
        """Generations proposed so far."""
        self.proposed = 0
        """Members of all generations so far: what a search without memory would evaluate."""
        self.saved = 0
        """Those of them whose result was known already."""
        self._scores: dict[bytes, float] = {}
        self._members: dict[bytes, None] = {}
        self._queue: dict[bytes, None] = {}
        self._waiting: dict[bytes, None] = {}
        self._stale = 0
        self._ended = False

    # -- written by each strategy ------------------------------------------------------------------------------------

    @abstractmethod
    def _propose(self) -> Rows | None:
        """All members of the next generation ``(n, slots)``, known ones included; None when the search is over."""

    @property
    @abstractmethod
    def budget(self) -> int:
        """Evaluations this search can ask for at most."""

    @property
    def objectives(self) -> tuple[str, ...]:
        """The metrics that a result must have, :attr:`metric` first; all are minimised."""
        return (self.metric,)

    def _learn(self, key: bytes, metrics: Mapping[str, Any]) -> float:
        """The score of a new result, infinity if it failed; a strategy that keeps more of it does so here."""
        score = plain_metrics({self.metric: metrics.get(self.metric)})[self.metric]
        return math.inf if score is None else score

    def describe(self) -> dict[str, Any]:
        """All settings as plain data; two strategies with equal descriptions behave equally."""
        return {
            "strategy": self.name or type(self).__name__,
            "seed": self.seed,
            "metric": self.metric,
            "max_tries": self.proposals.max_tries,
            "constraints": {constraint.name: float(constraint.limit) for constraint in self.proposals.constraints},
            **asdict(self.config),
        }

    def insight(self) -> dict[str, Any]:
        """What was learned so far, as plain data, for whoever watches."""
        return {}

    def _state(self) -> dict[str, Any]:
        """What the strategy remembers beyond results, plain too."""
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take over what :meth:`_state` gave."""

    # -- ask and tell ------------------------------------------------------------------------------------------------

    @property
    def asked_all(self) -> bool:
        """True when nothing more will be asked, whatever is told; a barrier lets it be known after the last result."""
        return self._ended and not self._queue

    @property
    def finished(self) -> bool:
        """True when everything asked for was told and nothing more will be asked."""
        return self.asked_all and not self._waiting

    @property
    def waiting(self) -> list[Architecture]:
        """Asked for and not told yet, oldest first."""
        return self._values(self._waiting)

    def start(self) -> None:
        """Propose the first generation now; ``ask`` does it otherwise.

        Raises:
            ConstraintError: nothing meets the limits.
        """
        if not self.generation:
            self._refill()

    def ask(self, n: int = 1) -> list[Architecture]:
        """At most ``n`` architectures to evaluate, none of which was handed out before.

        Empty when results must be told first, or when the search is :attr:`finished`.

        Raises:
            ConstraintError: nothing meets the limits.
        """
        asked: list[bytes] = []
        while len(asked) < n and (self._queue or self._refill()):
            key = next(iter(self._queue))
            del self._queue[key]
            self._waiting[key] = None
            asked.append(key)
        return self._values(asked)

    def tell(self, architecture: Architecture, metrics: Mapping[str, Any] | None) -> None:
        """The metrics of one architecture; None, or no usable value of :attr:`metric`, means that it failed.

        Raises:
            ArchitectureError: it lies outside the space.
        """
        key = self.space.row(architecture).tobytes()
        if key in self._scores:
            return
        self._scores[key] = self._learn(key, metrics or {})
        if key in self._queue:
            del self._queue[key]
            self.saved += 1
        self._waiting.pop(key, None)
        if self.generation and not self._queue and not self._waiting:
            self._refill()

    def spare(self, rng: np.random.Generator, taken: Iterable[Architecture] = ()) -> Architecture | None:
        """A feasible architecture that is new, for an engine whose workers must not idle while results are awaited: a
        child of one of the best so far, or a random one. None if none is found.

        It is no member of the search, whose course it does not change; once told, its result is kept as that of any
        architecture never asked for. Its randomness comes from ``rng``, not from the strategy's own.
        """
        known = {*self._members, *self._scores, *(self.space.row(one).tobytes() for one in taken)}
        best = sorted((score, key) for key, score in self._scores.items() if math.isfinite(score))[:SPARE_PARENTS]
        parents = self._rows(key for _, key in best)

        def draw(k: int) -> Rows:
            if not len(parents):
                return self.space.sample_rows(rng, k)
            half = self.space.mutate_rows(parents[rng.integers(len(parents), size=k // 2)], SPARE_MUTATION, rng)
            return np.concatenate([half, self.space.sample_rows(rng, k - k // 2)])

        rows = self.proposals.take(draw, 1, known)
        return self.space.architecture(rows[0]) if len(rows) else None

    def requeue(self) -> None:
        """Ask again for what was asked and never told, as after losing the workers; it comes first."""
        self._queue = {**self._waiting, **self._queue}
        self._waiting = {}

    def best(self) -> tuple[Architecture, float] | None:
        """The member with the least score so far, the earliest proposed among equals; None while there is none."""
        good = [key for key in self._members if math.isfinite(self._scores.get(key, math.inf))]
        key = min(good, key=self._scores.__getitem__, default=None)
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
            self.saved += len(keys) - len(fresh)
            self._members.update(dict.fromkeys(keys))
            self._queue.update(dict.fromkeys(fresh))
            self._stale = 0 if fresh else self._stale + 1
            self._ended = self._stale == PATIENCE
        return bool(self._queue)

    def _rows(self, keys: Iterable[bytes]) -> Rows:
        return np.frombuffer(b"".join(keys), np.int16).reshape(-1, self.space.slots.count)

    def _values(self, keys: Iterable[bytes]) -> list[Architecture]:
        return self.space.architectures(self._rows(keys))

    # -- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to continue, in types that JSON holds; architectures are rows of option indices."""
        return {
            "settings": self.describe(),
            "space": space_to_dict(self.space),
            "rng": self.rng.bit_generator.state,
            "generation": self.generation,
            "proposed": self.proposed,
            "saved": self.saved,
            "stale": self._stale,
            "ended": self._ended,
            "members": self._rows(self._members).tolist(),
            "queue": self._rows(self._queue).tolist(),
            "waiting": self._rows(self._waiting).tolist(),
            "told": self._rows(self._scores).tolist(),
            "scores": [score if math.isfinite(score) else None for score in self._scores.values()],
            **self._state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where :meth:`state_dict` was taken, with the same asks and the same results to come.

        Raises:
            ConfigError: the state belongs to other settings or another space, or is incomplete.
        """
        try:
            advice = "use the same settings, or start without the state"
            check_same_settings("the state was saved by a search with", state["settings"], self.describe(), advice)
            if state["space"] != space_to_dict(self.space):
                raise ConfigError(
                    f"the state was saved in space {state['space'].get('name')!r} with other choices than"
                    f" {self.space.name!r}; use the same space, or start without the state"
                )
            self.rng.bit_generator.state = state["rng"]
            self.generation, self.proposed = state["generation"], state["proposed"]
            self.saved, self._stale, self._ended = state["saved"], state["stale"], state["ended"]
            self._members, self._queue, self._waiting = (
                dict.fromkeys(self._keys(state[name])) for name in ("members", "queue", "waiting")
            )
            scores = [math.inf if score is None else float(score) for score in state["scores"]]
            self._scores = dict(zip(self._keys(state["told"]), scores, strict=True))
            self._restore(state)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ConfigError(f"not the state of a search ({error}); start without it") from None

    def _keys(self, rows: Sequence[Sequence[int]]) -> list[bytes]:
        if (given := np.array(rows)).size and given.dtype.kind != "i":
            raise ValueError("options that are no whole numbers")
        given = given.astype(np.int64).reshape(-1, self.space.slots.count)
        known = np.clip(given, ABSENT, self.space.slots.sizes - 1).astype(np.int16)
        if (known != given).any() or ((known == ABSENT) == self.space.slots.exists(known)).any():
            raise ValueError(f"options that space {self.space.name!r} does not have")
        return row_keys(known)
