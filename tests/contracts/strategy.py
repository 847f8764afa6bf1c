"""What every search strategy must satisfy.

``tests/search/strategies/test_contract.py`` runs it for each registered one; a new strategy gives its settings there.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from nas_core.errors import ConfigError
from nas_core.options import config_from
from nas_core.search import Constraint, InfeasibleError, Strategy
from nas_core.space import Architecture, Choice, SearchSpace, get_space
from nas_core.space.slots import Rows
from tests.toys import ROOT

SPACE = get_space("hat_small")
TINY = SearchSpace(
    "tiny",
    [Choice.make("layers", [1, 2]), Choice.make("width", [8, 16, 32], "layers", 2), Choice.make("heads", [1, 2])],
)


def size(space: SearchSpace, rows: Rows) -> NDArray[np.float64]:
    """A stand-in for latency: grows with every gene and with depth."""
    return space.slots.codes(rows).sum(1).astype(np.float64)


def limit(value: float, space: SearchSpace = SPACE) -> Constraint:
    return Constraint("latency_ms", value, lambda rows: size(space, rows))


def quality(architecture: Architecture) -> float:
    """A known objective with one optimum inside the space and an interaction."""
    codes = SPACE.encode(architecture, "layers")[0]
    target = np.linspace(0.3, 0.9, len(codes))
    return float(((codes - target) ** 2).sum() + 0.5 * abs(codes[0] - codes[-1]))


def drive(strategy: Strategy, evaluations: int, together: int = 1) -> list[Architecture]:
    """Evaluate at most a number of architectures, ``together`` at a time; return them in the order of proposal."""
    evaluated: list[Architecture] = []
    while len(evaluated) < evaluations:
        batch = strategy.ask(min(together, evaluations - len(evaluated)))
        if not batch:
            break
        for architecture in batch:
            strategy.tell(architecture, {"loss": quality(architecture)})
        evaluated += batch
    return evaluated


def trajectory(contract: StrategyContract, seed: int = 5) -> list[str]:
    return [architecture.key for architecture in drive(contract.make(SPACE, [limit(3000.0)], seed), 150)]


def tell_all(strategy: Strategy, losses: Mapping[Architecture, float], order: Sequence[int] | None = None) -> None:
    pairs = list(losses.items())
    for index in range(len(pairs)) if order is None else order:
        strategy.tell(pairs[index][0], {"loss": pairs[index][1]})


class StrategyContract:
    """Subclass it with a name that starts with ``Test``."""

    strategy: ClassVar[type[Strategy]]
    small: ClassVar[Mapping[str, Any]] = {}
    """Options with which it asks for 200 to 400 architectures."""

    def make(self, space: SearchSpace, constraints: Sequence[Constraint], seed: int, **options: Any) -> Strategy:
        config = config_from(self.strategy.config_class, {**self.small, **options}, "option")
        strategy: Strategy = self.strategy.create(space, constraints, config, ["loss", "latency_ms"], seed=seed)
        return strategy

    def test_asks_nothing_infeasible_nothing_twice_and_at_most_as_often_as_it_says(self) -> None:
        bound = limit(3000.0)
        strategy = self.make(SPACE, [bound], 0)
        proposals = drive(strategy, 10_000, together=7)
        assert 150 <= len(proposals) <= strategy.budget
        assert len(set(proposals)) == len(proposals)
        assert (bound.values(SPACE.rows(proposals)) <= bound.limit).all()

    @pytest.mark.parametrize("evaluations", [10, 37, 500])
    def test_settings_for_a_number_of_evaluations(self, evaluations: int) -> None:
        if not hasattr(self.strategy.config_class, "evaluations") and "settings_for" not in vars(self.strategy):
            with pytest.raises(ConfigError, match="no setting evaluations"):
                self.strategy.settings_for(evaluations)
            return
        settings = self.strategy.settings_for(evaluations)
        config = config_from(self.strategy.config_class, settings, "option")
        budget = self.strategy.create(SPACE, [], config, ["loss", "latency_ms"], seed=0).budget
        assert 0.8 * evaluations <= budget <= evaluations

    def test_a_seed_has_one_trajectory_in_any_process(self) -> None:
        """The other process has another hash seed."""
        test, first = type(self), trajectory(self)
        code = (
            f"import json; from tests.contracts.strategy import trajectory; from {test.__module__} import"
            f" {test.__name__}; print(json.dumps(trajectory({test.__name__}())))"
        )
        other = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True, timeout=240)
        assert json.loads(other) == first
        assert trajectory(self, seed=6) != first

    @pytest.mark.parametrize("evaluations", [0, 110, 10_000])
    def test_replayed_results_continue_identically(self, evaluations: int) -> None:
        strategy, other = (self.make(SPACE, [limit(3000.0)], 3) for _ in range(2))
        proposals = drive(strategy, evaluations)
        other.replay({architecture: {"loss": quality(architecture)} for architecture in proposals})
        untold = strategy.ask(3)
        assert other.ask(3) == untold
        for continued in (strategy, other):
            tell_all(continued, {architecture: quality(architecture) for architecture in untold})
        assert drive(other, 100) == drive(strategy, 100)
        assert (other.best(), other.cache_hits, other.proposed) == (
            strategy.best(),
            strategy.cache_hits,
            strategy.proposed,
        )

    def test_order_of_results_does_not_matter(self) -> None:
        first, other = (self.make(SPACE, [limit(3000.0)], 1) for _ in range(2))
        rng = np.random.default_rng(0)
        for _ in range(4):
            proposals = first.ask(60)
            assert proposals == other.ask(60)
            values = {architecture: round(quality(architecture)) for architecture in proposals}  # many are equal
            tell_all(first, values)
            tell_all(other, values, [int(index) for index in rng.permutation(len(proposals))])
        assert first.ask(10) == other.ask(10)
        assert first.best() == other.best()

    def test_failed_results_are_survived(self) -> None:
        strategy = self.make(SPACE, [limit(3000.0)], 2)
        failures: list[Any] = [None, {}, {"loss": math.nan}, {"loss": None}, {"loss": "x"}, {"loss": -math.inf}]
        evaluated = []
        for index in range(140):
            (architecture,) = strategy.ask(1)
            evaluated.append(architecture)
            strategy.tell(architecture, failures[index % 6] if index % 3 else {"loss": quality(architecture)})
        good = evaluated[::3]
        best = strategy.best()
        assert best == min(((a, quality(a)) for a in good), key=lambda pair: pair[1])

    def test_lost_work_is_asked_again(self) -> None:
        strategy = self.make(SPACE, [limit(3000.0)], 2)
        lost = strategy.ask(5)
        assert strategy.waiting == lost
        strategy.requeue()
        assert strategy.ask(5) == lost

    def test_infeasible_limits_end_within_seconds_with_the_facts(self) -> None:
        smallest = float(size(SPACE, SPACE.rows([SPACE.smallest()]))[0])
        strategy = self.make(SPACE, [limit(smallest / 2)], 0)
        start = time.perf_counter()
        with pytest.raises(InfeasibleError) as caught:
            strategy.ask(1)
        assert time.perf_counter() - start < 5
        error = caught.value
        assert error.acceptance == 0.0
        assert error.bounds == {"latency_ms": smallest}
        assert error.closest == SPACE.smallest()
        for fact in ("acceptance rate 0.00%", f"latency_ms {smallest:.4g}", "closest candidate", "decoder.layers=1"):
            assert fact in str(error)
        assert "\n" not in str(error)

    def test_exhausted_spaces_end(self) -> None:
        """The tiny space has 24 architectures, 10 within the limit: they are found, once each, and the search ends."""
        bound = limit(35.0, TINY)
        strategy = self.make(TINY, [bound], 0)
        evaluated = []
        while batch := strategy.ask(4):
            evaluated += batch
            for architecture in batch:
                strategy.tell(architecture, {"loss": float(size(TINY, TINY.rows([architecture]))[0])})
        all_architectures = TINY.architectures(np.unique(TINY.sample_rows(np.random.default_rng(0), 1000), axis=0))
        assert set(evaluated) == {a for a in all_architectures if bound.values(TINY.rows([a]))[0] <= 35.0}
        assert len(evaluated) == len(set(evaluated)) > 5
        assert strategy.finished
