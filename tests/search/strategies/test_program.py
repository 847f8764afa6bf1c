"""Integer programs over a space: the best within budgets, as by trying all."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.search.strategies.additive import Variables
from nas_core.search.strategies.milp import Program
from tests.contracts.strategy import TINY

VARIABLES = Variables(TINY)
ALL = np.unique(TINY.sample_rows(np.random.default_rng(0), 2000), axis=0)


@pytest.mark.parametrize("seed", range(3))
def test_solutions_are_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts, costs = rng.standard_normal(VARIABLES.count), rng.random((2, VARIABLES.count))
    chosen = VARIABLES.of(ALL)
    budgets = np.quantile(chosen @ costs.T, 0.6, axis=0)
    within = (chosen @ costs.T <= budgets).all(1)
    order = [index for index in np.argsort(chosen @ parts) if within[index]]
    program, without = Program(VARIABLES, nodes=1000, gap=0.0), list[np.ndarray]()
    for place in range(4):
        row = program.solve(parts, costs, budgets, without)
        assert row is not None and (row[0] == ALL[order[place]]).all()
        without.append(VARIABLES.of(row)[0])


def test_what_no_budget_allows_has_no_solution() -> None:
    program = Program(VARIABLES, nodes=1000, gap=0.0)
    costs = np.ones((1, VARIABLES.count))
    assert program.solve(np.ones(VARIABLES.count), costs, np.array([1.0]), []) is None
    assert program.solve(np.ones(VARIABLES.count), costs[:0], np.zeros(0), list(VARIABLES.of(ALL))) is None
