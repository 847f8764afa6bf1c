"""Static features that are put to graphs that others made."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.graph import Graph, GraphError, nasbench201_graphs, with_static


def test_numbers_are_put_behind_those_that_are_there() -> None:
    graphs = nasbench201_graphs([[1] * 6, [2] * 6, [3] * 6])
    one = with_static(graphs, [1.0, 2.0, 3.0])
    two = with_static(one, np.arange(6).reshape(3, 2))
    assert graphs.static is None and one.static is not None and two.static is not None
    assert one.static.tolist() == [[1], [2], [3]] and two.static.tolist() == [[1, 0, 1], [2, 2, 3], [3, 4, 5]]
    assert two[1].ops.tolist() == graphs[1].ops.tolist() and two.take([2]).static.tolist() == [[3, 4, 5]]  # type: ignore[union-attr]
    values = np.ones((1, 2), np.float32)
    with_static([Graph([0], [])], values)
    values[0, 0] = 5  # the caller's array stays writeable


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0], r"shape \(1, 1\); expected \(2, F\)"),
        ([[1.0], [float("inf")]], "no number"),
        ([["a"], ["b"]], "no table of numbers"),
        ([[[1.0]], [[2.0]]], "expected"),
        ([[1.0], [2.0, 3.0]], "no table of numbers"),
    ],
)
def test_wrong_numbers(values: object, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        with_static([Graph([0], []), Graph([1], [])], values)  # type: ignore[arg-type]
