"""Bad graphs and operations are rejected in one line that names the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, NasExtError, UnknownChoiceError
from nas_core.graph import Graph, GraphError, Graphs, Operation, with_operations
from nas_core.graph.nasbench101 import AbsentCellError, nasbench101_graphs
from nas_core.graph.nasbench201 import nasbench201_graphs

CHAIN = Graph([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3)])
PAIR = Graph([0, 1], [(0, 1)])
CELL = {"matrices": np.eye(3, k=1)[None], "ops": [[0, 1, 4]]}
ARRAYS = {
    "ops": np.zeros(3, int),
    "edges": np.array([[0, 1]]),
    "sizes": np.array([2, 1]),
    "edge_counts": np.array([1, 0]),
}


def chain(**changes: Any) -> Callable[[], Graph]:
    return lambda: Graph(**{"ops": CHAIN.ops, "edges": CHAIN.edges, **changes})


def arrays(**changes: Any) -> Callable[[], Graphs]:
    return lambda: Graphs.from_arrays({**ARRAYS, **{name: np.asarray(values) for name, values in changes.items()}})


@pytest.mark.parametrize(
    ("call", "error", "value"),
    [
        (chain(edges=[(0, 0)]), GraphError, "cycle through 1 of its 4"),
        (chain(edges=[(1, 2), (2, 1), (2, 3)]), GraphError, "cycle through 2 of its 4"),
        (chain(edges=[(0, 4)]), GraphError, "node 4"),
        (chain(edges=[(0, 1, 2)]), GraphError, "(1, 3)"),
        (chain(edges=[(0, 1), (0,)]), GraphError, "unequal length"),
        (chain(edges=[(0, 1.5)]), GraphError, "float64"),
        (chain(ops=[]), GraphError, "0 nodes"),
        (chain(ops=[0, 40000, 0, 0]), GraphError, "32767"),
        (chain(attributes=[[1], [2]]), GraphError, "(2, 1)"),
        (chain(attributes=[[1], [2, 3], [4], [5]]), GraphError, "not a table"),
        (chain(shapes=[[1, 2, 3]] * 4), GraphError, "(4, 3)"),
        (chain(shapes=[[1, 2, 3, np.nan]] * 4), GraphError, "NaN or infinite"),
        (chain(costs=[[1, 2, -3]] * 4), GraphError, "-3"),
        (chain(static=["large"]), GraphError, "not a table"),
        (lambda: Graph.from_adjacency(np.zeros((3, 3)), [0, 1]), GraphError, "(3, 3)"),
        (lambda: Graph.from_dict({"ops": [0], "edges": [], "colour": 1}), GraphError, "colour"),
        (lambda: Graphs.from_dense([0, 1], [[0, 1], [0, 0]]), GraphError, "(2,)"),
        (lambda: Graphs.from_dense([[0, 1]], [[[0, 1], [1, 0]]]), GraphError, "cycle"),
        (lambda: Graphs.from_dense([[0, 70000]], [[[0, 1], [0, 0]]]), GraphError, "70000"),
        (lambda: Graphs.from_dense([[0, 1]], [[[0, 1], [0, 0]]], [1]), GraphError, "is not in its graph"),
        (lambda: Graphs.from_dense([[0, 1]], [[[0, 1], [0, 0]]], [3]), GraphError, "3 nodes"),
        (arrays(ops=[0]), GraphError, "3 nodes and 1 edges"),
        (arrays(edges=[[0, 2]]), GraphError, "is not in its graph"),
        (arrays(sizes=[3, 0]), GraphError, "3 nodes"),
        (arrays(static=[[1.0]]), GraphError, "(1, 1)"),
        (lambda: Graphs.of([PAIR, Graph([0], [], static=[1])]), GraphError, "static"),
        (lambda: with_operations(PAIR, ["input", "normal"]), GraphError, "'normal'"),
        (lambda: with_operations(CHAIN, ["input", "conv3x3"]), GraphError, "operation index 3"),
        (
            lambda: Graphs.of([with_operations(PAIR, ["input", name]) for name in ("conv1x1", "conv3x3")]),
            GraphError,
            "operation 1",
        ),
        (lambda: Operation("convolution", kernel=0), ConfigError, "0"),
        (lambda: Operation("convolutoin"), UnknownChoiceError, "'convolutoin'"),
        (lambda: nasbench101_graphs(**{**CELL, "ops": [[0, 5, 4]]}), UnknownChoiceError, "5"),
        (lambda: nasbench101_graphs(**{**CELL, "ops": [[0, 4, 4]]}), GraphError, "cell 0"),
        (lambda: nasbench101_graphs(**{**CELL, "matrices": np.eye(3, k=-1)[None]}), GraphError, "1 -> 0"),
        (lambda: nasbench101_graphs(np.eye(8, k=1)[None], [[0, *[1] * 6, 4]]), AbsentCellError, "8 nodes"),
        (lambda: nasbench201_graphs([[0, 0, 0, 0, 0, 7]]), UnknownChoiceError, "7"),
        (lambda: nasbench201_graphs([0] * 6), GraphError, "(6,)"),
    ],
)
def test_calls(call: Callable[[], Any], error: type[NasExtError], value: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
