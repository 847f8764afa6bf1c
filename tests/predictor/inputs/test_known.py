"""Operations that a network has no index for."""

from __future__ import annotations

from nas_core.graph import Graph, Graphs
from nas_core.predictor.inputs.known import within


def test_an_unknown_operation_is_none_of_the_known_ones() -> None:
    graphs = Graphs.of([Graph([0, 9, 4], [(0, 1), (1, 2)]), Graph([0, 1], [(0, 1)])])
    assert within(graphs, 10, {0, 1, 4}) is graphs
    assert within(graphs, 5, {0, 1, 4}).ops.tolist() == [0, 2, 4, 0, 1]
    assert within(graphs, 5, range(5)).ops.tolist() == [0, 4, 4, 0, 1]
    assert within(graphs, 5, {0}).ops.dtype == graphs.ops.dtype
