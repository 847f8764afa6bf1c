"""What is the integer programs' own: single changes, corrected budgets, proposals of one model after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nas_core.search import MILP, Constraint, MILPConfig
from nas_core.search.strategies.additive import Variables
from nas_core.space import Choice, SearchSpace
from nas_core.space.slots import Rows
from tests.contracts.strategy import SPACE, drive, limit, size

PLAIN = SearchSpace(
    "plain",
    [
        Choice.make("layers", [1, 2, 3, 4]),
        Choice.make("width", [8, 16, 32], "layers", 4),
        Choice.make("heads", [1, 2, 4], "layers", 4),
        Choice.make("channels", [16, 32]),
    ],
)
VARIABLES = Variables(PLAIN)
ALL = np.unique(PLAIN.sample_rows(np.random.default_rng(0), 60_000), axis=0)


def loss(rows: Rows) -> NDArray[np.float64]:
    result: NDArray[np.float64] = VARIABLES.of(rows) @ np.random.default_rng(4).standard_normal(VARIABLES.count)
    return result


def work(rows: Rows) -> NDArray[np.float64]:
    """No sum of parts: channels times the widths of all layers."""
    codes = PLAIN.slots.codes(rows).astype(np.float64)
    return codes[:, -1] * (1 + codes[:, 1:5].sum(1))


def searched(constraint: Constraint, config: MILPConfig) -> tuple[MILP, Rows]:
    strategy, evaluated = MILP(PLAIN, [constraint], config, seed=2), []
    while batch := strategy.ask(4):
        rows = PLAIN.rows(batch)
        evaluated.append(rows)
        for architecture, value in zip(batch, loss(rows), strict=True):
            strategy.tell(architecture, {"loss": float(value)})
    return strategy, np.concatenate(evaluated)


def test_the_largest_and_its_single_changes_are_asked_first() -> None:
    strategy = MILP(SPACE, (), MILPConfig(evaluations=100, single_changes=99))
    proposals = SPACE.rows(drive(strategy, strategy.insight().get("single_changes", 0) + 30))
    largest = SPACE.rows([SPACE.largest()])
    assert (proposals[:1] == largest).all()
    changes = strategy.insight()["single_changes"]
    lengths = {choice.name for choice in SPACE.choices if choice.name in SPACE.slots.depth_genes}
    depths = [SPACE.slots.depth_column(name) for name in sorted(lengths)]
    apart = proposals[1 : 1 + min(changes, 29)] != largest
    same_depth = ~apart[:, depths].any(1)
    assert same_depth.any() and (apart[same_depth].sum(1) == 1).all()
    assert (apart[~same_depth][:, depths].sum(1) == 1).all()


def test_additive_losses_are_solved_within_limits_that_do_not_add_up() -> None:
    bound = Constraint("work", 1000.0, work)
    strategy, proposals = searched(bound, MILPConfig(evaluations=60, single_changes=20, per_round=5, gap=0.0))
    within = np.sort(loss(ALL[work(ALL) <= 1000.0]))
    assert (work(proposals) <= 1000.0).all() and len({row.tobytes() for row in proposals}) == len(proposals) <= 60
    assert strategy.insight()["beyond_limits"] > 0
    best = strategy.best()
    place = np.searchsorted(within, best[1]) if best else len(within)
    assert place < 5 and len(within) > 1000


def test_the_reference_meets_every_limit() -> None:
    limits = [limit(3000.0), Constraint("other", 2.0, lambda rows: size(SPACE, rows) / 1000)]
    first = MILP(SPACE, limits, MILPConfig(evaluations=10, single_changes=3)).ask(1)
    assert 1500 < size(SPACE, SPACE.rows(first))[0] <= 2000


def test_results_beyond_the_limits_are_learned_from_and_never_asked_for() -> None:
    strategy = MILP(SPACE, [limit(3000.0)], MILPConfig(evaluations=30, single_changes=10, per_round=5))
    strategy.tell(SPACE.largest(), {"loss": -100.0})
    proposals = drive(strategy, 40)
    assert SPACE.largest() not in proposals and len(proposals) == 30
    assert (size(SPACE, SPACE.rows(proposals)) <= 3000.0).all()
    assert strategy.best() is not None and strategy.best()[0] != SPACE.largest()  # type: ignore[index]
