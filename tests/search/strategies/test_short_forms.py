"""A search in few lines: one strategy, one number per architecture, limits as functions, no folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from nas_core.errors import ConfigError
from nas_core.search import RandomConfig, RandomSearch, search
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
    assert result.best == result.best_by_search["latency_ms<=3000"]
    assert result.best.metrics["loss"] == quality(result.best.architecture)
    assert result.best.metrics["latency_ms"] <= 3000
    assert list(tmp_path.iterdir()) == []


def test_several_are_named_after_their_limits() -> None:
    result = search([strategy(3000), strategy(2500), RandomSearch(SPACE, config=FEW)], quality, progress=False)
    assert set(result.best_by_search) == {"latency_ms<=3000", "latency_ms<=2500", "unlimited"}
    with pytest.raises(ConfigError, match="best_by_search\\['latency_ms<=3000'\\] or best"):
        _ = result.best
    with pytest.raises(ConfigError, match="same limits"):
        search([strategy(), strategy()], quality)
    with pytest.raises(ConfigError, match="no strategy"):
        search([], quality)
