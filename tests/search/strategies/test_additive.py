"""Additive models: parts of a loss learned from results, and limited metrics linearised."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nas_core.search import Constraint
from nas_core.search.strategies.additive import AdditiveFit, LinearCosts, Variables
from nas_core.space.slots import ABSENT, Rows
from tests.contracts.strategy import SPACE

VARIABLES = Variables(SPACE)


def sums(rows: Rows, seed: int = 0) -> NDArray[np.float64]:
    result: NDArray[np.float64] = VARIABLES.of(rows) @ np.random.default_rng(seed).random(VARIABLES.count)
    return result


def test_additive_losses_are_learned() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(1), 400)
    fit = AdditiveFit(VARIABLES, rows[:300], sums(rows[:300]))
    learned, true = VARIABLES.of(rows[300:]) @ fit.parts, sums(rows[300:])
    assert np.corrcoef(learned, true)[0, 1] > 0.999
    assert (learned - learned.mean()) == pytest.approx(true - true.mean(), abs=0.02)


def test_drawn_parts_differ_less_where_more_is_known() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(1), 400)
    noisy = sums(rows) + 0.1 * np.random.default_rng(2).standard_normal(len(rows))
    rng = np.random.default_rng(3)
    spread = []
    for count in (20, 400):
        fit = AdditiveFit(VARIABLES, rows[:count], noisy[:count])
        spread.append(np.std([VARIABLES.of(rows[:50]) @ fit.drawn(rng) for _ in range(40)], axis=0).mean())
    assert spread[1] < 0.6 * spread[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_costs_that_add_up_are_linearised_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    anchor = SPACE.sample_rows(rng, 1)
    full = np.where(anchor == ABSENT, 0, anchor).astype(np.int16)
    costs = LinearCosts.around(VARIABLES, full, [Constraint("latency_ms", 3.0, sums)])
    rows = SPACE.sample_rows(rng, 50)
    results = [float(costs.values(chosen)[0]) for chosen in VARIABLES.of(rows)]
    assert results == pytest.approx(sums(rows).tolist())
