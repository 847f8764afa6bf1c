"""A search in few lines: one strategy, one number per architecture, limits as functions, no folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError, ConstraintError
from nas_core.search import MultiObjectiveConfig, MultiObjectiveEvolution, RandomConfig, RandomSearch, search
from nas_core.space import Architecture
from tests.contracts.strategy import SPACE, quality, size

FEW = RandomConfig(evaluations=12, batch=6)


def latency_ms(architecture: Architecture) -> float:
    return float(size(SPACE, SPACE.rows([architecture]))[0])


def strategy(limit_ms: float = 3000.0) -> RandomSearch:
    return RandomSearch(SPACE, {"latency_ms": (latency_ms, limit_ms)}, FEW)


def test_one_strategy_and_one_number_are_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = search(strategy(), quality, progress=False)
    assert result.evaluations == 12
    assert result.winner == result.best["latency_ms<=3000"]
    assert result.winner.metrics["loss"] == quality(result.winner.architecture)
    assert result.winner.metrics["latency_ms"] <= 3000
    assert list(tmp_path.iterdir()) == []


def test_the_long_form_finds_the_same(tmp_path: Path) -> None:
    short = search(strategy(), quality, tmp_path / "short", progress=False)
    named = {"latency_ms<=3000": strategy()}
    long = search(named, lambda a: {"loss": quality(a)}, tmp_path / "long", progress=False)
    assert short.best == long.best
    assert (tmp_path / "short" / "journal.jsonl").read_bytes() == (tmp_path / "long" / "journal.jsonl").read_bytes()
    assert search([strategy()], quality, tmp_path / "short", progress=False).replayed == 12


def test_several_are_named_after_their_limits() -> None:
    result = search([strategy(3000), strategy(2500), RandomSearch(SPACE, config=FEW)], quality, progress=False)
    assert set(result.best) == {"latency_ms<=3000", "latency_ms<=2500", "unlimited"}
    with pytest.raises(ConfigError, match="best\\['latency_ms<=3000'\\] or best"):
        _ = result.winner
    with pytest.raises(ConfigError, match="same limits"):
        search([strategy(), strategy()], quality)
    with pytest.raises(ConfigError, match="no strategy"):
        search([], quality)


def test_one_number_is_not_enough_for_several_metrics() -> None:
    several = MultiObjectiveEvolution(SPACE, (), MultiObjectiveConfig.of(population=4, iterations=1))
    with pytest.raises(ConfigError, match="several metrics are minimised"):
        search(several, quality, progress=False)


def test_a_function_that_forgets_its_result_is_told() -> None:
    def forgetful(architecture: Architecture) -> Any:
        return None

    with pytest.raises(Exception, match="loss is None"):
        search(strategy(), forgetful, progress=False)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ("random", "'r' is no strategy"),
        (RandomSearch, "is no strategy; expected one that was made"),
        (None, "None is no strategy"),
        ({"a": "random"}, "'random' is no strategy"),
        ({8: None}, "None is no strategy"),
    ],
)
def test_what_is_no_strategy_is_told(wrong: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        search(wrong, quality, progress=False)


def test_names_are_texts_and_each_search_has_its_own_strategy() -> None:
    with pytest.raises(ConfigError, match="a strategy is named 8; expected a text"):
        search({8: strategy()}, quality, progress=False)  # type: ignore[dict-item]
    one = strategy()
    with pytest.raises(ConfigError, match="the same strategy is given twice"):
        search({"a": one, "b": one}, quality, progress=False)


def test_a_strategy_searches_once(tmp_path: Path) -> None:
    ended, interrupted, asked = strategy(), strategy(), strategy()
    search(ended, quality, progress=False)
    calls = iter([1.0])

    def once(architecture: Architecture) -> float:
        try:
            return next(calls)
        except StopIteration:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        search(interrupted, once, tmp_path / "run", progress=False)
    asked.ask()
    for one in (ended, interrupted, asked):
        with pytest.raises(ConfigError, match="'latency_ms<=3000' has searched before; make a new one"):
            search(one, quality, tmp_path / "run", progress=False)


@pytest.mark.parametrize("limits", [None, 3000, (latency_ms, 3000), {"latency_ms": (latency_ms, True)}, "latency_ms"])
def test_what_is_no_limit_is_told(limits: Any) -> None:
    with pytest.raises(ConstraintError, match=r"expected (constraints, or a dictionary: metric -> )?\(function"):
        RandomSearch(SPACE, limits, FEW)


@pytest.mark.parametrize("value", [None, "slow", [1.0, 2.0]])
def test_a_limited_function_gives_numbers(value: Any) -> None:
    with pytest.raises(ConstraintError, match=r"the function of latency_ms gave .*; expected a number"):
        search(RandomSearch(SPACE, {"latency_ms": (lambda a: value, 1.0)}, FEW), quality, progress=False)


def test_a_space_is_no_name() -> None:
    with pytest.raises(ConfigError, match="the space is 'hat_small'; expected a SearchSpace, as get_space"):
        RandomSearch("hat_small", (), FEW)  # type: ignore[arg-type]
