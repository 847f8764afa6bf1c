"""Additive models: effects of options on a metric, learned from results."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nas_core.search.strategies.additive import Variables, additive_effects
from nas_core.space.slots import Rows
from tests.contracts.strategy import SPACE

VARIABLES = Variables(SPACE)


def sums(rows: Rows) -> NDArray[np.float64]:
    result: NDArray[np.float64] = VARIABLES.of(rows) @ np.random.default_rng(0).random(VARIABLES.count)
    return result


def test_additive_metrics_are_learned() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(1), 400)
    effects = additive_effects(VARIABLES, rows[:300], sums(rows[:300]))
    learned, true = VARIABLES.of(rows[300:]) @ effects, sums(rows[300:])
    assert np.corrcoef(learned, true)[0, 1] > 0.999
    assert (learned - learned.mean()) == pytest.approx(true - true.mean(), abs=0.02)
