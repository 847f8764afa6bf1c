"""A search in few lines: one strategy, one number per architecture, limits as functions, no folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nas_core.errors import ConfigError
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


def test_a_search_without_a_folder_does_not_promise_to_continue(capsys: pytest.CaptureFixture[str]) -> None:
    search(strategy(), quality)
    told = capsys.readouterr().err
    assert "Ctrl-C ends it" in told
    assert "continues" not in told


def test_a_function_that_forgets_its_result_is_told() -> None:
    def forgetful(architecture: Architecture) -> Any:
        return None

    with pytest.raises(Exception, match="loss is None"):
        search(strategy(), forgetful, progress=False)
