"""Constraints and capped rejection sampling."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from nas_core.search import Constraint, InfeasibleError
from nas_core.search.constraints import constraints_of, violation
from nas_core.search.strategies.proposals import Proposals, row_keys
from nas_core.space import get_space
from nas_core.space.slots import Rows
from tests.contracts.strategy import SPACE, limit, size


def test_a_function_of_one_architecture_gives_the_same_values_once_each() -> None:
    calls = []

    def predict(architecture: object) -> float:
        calls.append(architecture)
        return float(size(SPACE, SPACE.rows([architecture]))[0])  # type: ignore[list-item]

    slow, fast = Constraint.per_architecture("latency_ms", 3000.0, SPACE, predict), limit(3000.0)
    rows = np.repeat(SPACE.sample_rows(np.random.default_rng(0), 20), 3, axis=0)
    assert np.array_equal(slow.values(rows), fast.values(rows))
    assert np.array_equal(slow.values(rows[::-1]), fast.values(rows[::-1]))
    assert len(calls) == 20


def test_violation_is_the_sum_of_relative_excess() -> None:
    first, second = limit(10.0), Constraint("params_m", 4.0, lambda rows: np.zeros(len(rows)))
    values = [np.array([5.0, 12.0, 5.0, 12.0, np.nan, -np.inf]), np.array([4.0, 4.0, 5.0, 5.0, 1.0, 1.0])]
    assert np.allclose(violation([first, second], values), [0, 0.2, 0.25, 0.45, np.inf, 0])
    assert violation([], []).shape == (0,)
    with pytest.raises(ValueError, match="shorter"):
        violation([first, second], values[:1])


def test_a_slow_predictor_is_asked_for_no_more_than_are_needed() -> None:
    evaluated: dict[int, list[int]] = {0: [], 16: []}
    results = {}
    for batch_size, sizes in evaluated.items():

        def predict(rows: Rows, sizes: list[int] = sizes) -> NDArray[np.float64]:
            sizes.append(len(rows))
            return size(SPACE, rows)

        proposals = Proposals(SPACE, [Constraint("latency_ms", 2500.0, predict, batch_size)])
        results[batch_size] = proposals.take(sampler(np.random.default_rng(0)), 20, set())  # type: ignore[arg-type]
    assert np.array_equal(results[0], results[16]) and len(results[0]) == 20
    assert max(evaluated[16]) == 16 and sum(evaluated[16]) < sum(evaluated[0]) / 4


def sampler(rng: np.random.Generator) -> object:
    return lambda count: SPACE.sample_rows(rng, count)


def test_taken_rows_are_distinct_feasible_and_remembered() -> None:
    bound = limit(2500.0)
    proposals = Proposals(SPACE, [bound])
    taken: set[bytes] = set()
    first = proposals.take(sampler(np.random.default_rng(0)), 100, taken)  # type: ignore[arg-type]
    repeated = proposals.take(sampler(np.random.default_rng(0)), 100, taken)  # type: ignore[arg-type]
    keys = row_keys(np.concatenate([first, repeated]))
    assert len(set(keys)) == 200
    assert taken == set(keys)
    assert (bound.values(np.concatenate([first, repeated])) <= 2500.0).all()
    assert 0 < proposals.accepted < proposals.tried


def test_several_constraints_hold_together_and_are_all_named_when_they_cannot() -> None:
    def small_decoder(rows: Rows) -> NDArray[np.float64]:
        return SPACE.slots.exists(rows).sum(1).astype(np.float64)

    constraints = [limit(2800.0), Constraint("slots", 14.0, small_decoder)]
    rows = Proposals(SPACE, constraints).initial(np.random.default_rng(0), 50, set())
    assert len(rows) == 50
    assert all((constraint.values(rows) <= constraint.limit).all() for constraint in constraints)
    with pytest.raises(InfeasibleError, match=r"latency_ms<=2800 and slots<=3") as caught:
        Proposals(SPACE, [constraints[0], Constraint("slots", 3.0, small_decoder)]).initial(
            np.random.default_rng(0), 50, set()
        )
    assert set(caught.value.bounds) == {"latency_ms", "slots"}
    assert constraints[0].values(SPACE.rows([caught.value.closest]))[0] <= 2800.0


def test_rare_feasible_regions_are_filled_by_small_mutations() -> None:
    """No random architecture of twenty thousand is this small; the population is full all the same."""
    space = get_space("hat_wmt14_en_de")
    random = size(space, space.sample_rows(np.random.default_rng(9), 20_000))
    smallest = size(space, space.rows([space.smallest()]))[0]
    bound = limit(float((random.min() + smallest) / 2), space)
    rows = Proposals(space, [bound]).initial(np.random.default_rng(0), 125, set())
    assert len(set(row_keys(rows))) == 125
    assert (bound.values(rows) <= bound.limit).all()


def test_limits_are_given_alone_or_as_functions() -> None:
    rows = SPACE.sample_rows(np.random.default_rng(0), 20)
    functions = constraints_of(SPACE, {"layers": (lambda a: len(a["encoder.ffn_dim"]), 4), "one": (lambda a: 1, 2.5)})
    assert [constraint.label for constraint in functions] == ["layers<=4", "one<=2.5"]
    layers = [len(architecture["encoder.ffn_dim"]) for architecture in SPACE.architectures(rows)]
    assert functions[0].values(rows).tolist() == layers
    alone = limit(3000.0)
    assert constraints_of(SPACE, alone) == constraints_of(SPACE, [alone]) == (alone,)
    assert constraints_of(SPACE, ()) == ()
