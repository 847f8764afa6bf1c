"""What operations do: told by names, given by hand, kept by graphs."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from nas_core.errors import ConfigError, UnknownChoiceError
from nas_core.graph import (
    Graph,
    GraphError,
    Graphs,
    Operation,
    described,
    nasbench101_graph,
    nasbench201_graph,
    nasbench301_graph,
    operation_named,
    transnasbench_macro_graph,
    with_ends,
    with_static,
)

CHAIN = Graph([0, 1, 2], [(0, 1), (1, 2)])
NAMES = ["input", "conv3x3-bn-relu", "output"]


@pytest.mark.parametrize(
    ("name", "does"),
    [
        ("nor_conv_3x3", {"kernel": 3}),
        ("conv1x1-bn-relu", {"kernel": 1}),
        ("Conv_5x5", {"kernel": 5}),
        ("conv_7x1_1x7", {"kernel": 7}),
        ("conv5d2", {"kernel": 5, "dilation": 2}),
        ("sep_conv_5x5", {"kernel": 5, "groups": 0, "repeats": 2}),
        ("dil_conv_3x3", {"kernel": 3, "groups": 0, "dilation": 2}),
        ("k3_e6", {"kernel": 3, "groups": 0, "expansion": 6.0}),
        ("k5_e1_g2", {"kernel": 5, "groups": 0}),
    ],
)
def test_names_of_convolutions(name: str, does: dict[str, Any]) -> None:
    assert operation_named(name) == Operation("convolution", **does)


def test_names_of_other_operations() -> None:
    assert operation_named("max_pool_3x3") == operation_named("maxpool3x3") == Operation("pooling", 3)
    assert operation_named("avg_pool_5x5") == Operation("pooling", 5, average=True)
    assert operation_named("skip_connect") == operation_named(" identity ") == Operation("identity")
    assert operation_named("none") == Operation("none") and operation_named("linear") == Operation("linear")
    assert {operation_named(name) for name in ("input", "normal_input_0", "output")} == {Operation("end")}
    assert [operation_named(name) for name in ("", "conv", "normal", "xconv_3x3", "pool", "einput2")] == [None] * 6


def test_operations_that_cannot_be() -> None:
    for wrong in ({"kernel": 0}, {"stride": 0}, {"channels": 0.0}, {"groups": -1}, {"kernel": 2.5}):
        with pytest.raises(ConfigError, match=f"{next(iter(wrong))} of an operation"):
            Operation("convolution", **wrong)
    with pytest.raises(UnknownChoiceError, match=r"convolution.*pooling"):
        Operation("convolutoin")


def test_graphs_keep_what_their_operations_do() -> None:
    graph = described(CHAIN, NAMES)
    assert graph.operations == (Operation("end"), Operation("convolution", 3), Operation("end"))
    assert graph == CHAIN and hash(graph) == hash(CHAIN) and CHAIN.operations is None
    assert pickle.loads(pickle.dumps(graph)).operations == graph.operations
    many = described([CHAIN, CHAIN], NAMES)
    assert many.operations == graph.operations == Graphs.of([graph, graph]).operations
    kept = (many[0], many[:1], many.take([1]), graph.permuted([0, 1, 2]), with_static(many, [1.0, 2.0]))
    assert all(each.operations == graph.operations for each in kept)
    assert Graphs.of([graph, CHAIN]).operations == graph.operations


def test_graphs_of_one_set_do_not_contradict_each_other() -> None:
    other = described(CHAIN, ["input", "conv1x1", "output"])
    with pytest.raises(GraphError, match=r"operation 1 is .*kernel=\d.* in others .*kernel=\d"):
        Graphs.of([other, described(CHAIN, NAMES)])
    longer = described(CHAIN, [*NAMES, "conv5x5"])
    assert Graphs.of([described(CHAIN, NAMES), longer]).operations == longer.operations
    for wrong in (["conv3x3", "output"], (Operation("end"),), 3):
        with pytest.raises(GraphError, match="expected an Operation for each index up to 1"):
            Graph([0, 1], [(0, 1)], operations=wrong)  # type: ignore[arg-type]
    for nothing in (None, "input"):
        with pytest.raises(GraphError, match="expected a list, one for each operation index"):
            described(CHAIN, nothing)  # type: ignore[arg-type]


def test_ends_that_are_added_are_described() -> None:
    whole = with_ends(described(Graphs.of([CHAIN]), NAMES), 4, 5)
    assert whole.operations == (*described(CHAIN, NAMES).operations, *[Operation("end")] * 3)  # type: ignore[misc]


def test_names_that_say_nothing_and_indices_beyond() -> None:
    with pytest.raises(GraphError, match=r"'normal' is none whose name.*Operation\('convolution'"):
        described(CHAIN, ["input", "normal", "output"])
    with pytest.raises(GraphError, match="operation index 2 in a graph; 2 operations are described"):
        described(CHAIN, NAMES[:2])


def test_readers_of_benchmarks_describe() -> None:
    cell = np.triu(np.ones((3, 3)), 1)
    compact = [[(0, 5), (1, 5)] * 4, [(0, 0), (1, 2)] * 4]
    graphs = [
        nasbench101_graph(cell, ["input", "conv3x3-bn-relu", "output"]),
        nasbench201_graph("|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|avg_pool_3x3~2|"),
        nasbench301_graph(compact),
        transnasbench_macro_graph("1234"),
    ]
    for graph in graphs:
        assert graph.operations is not None and len(graph.operations) > int(graph.ops.max())
    assert graphs[3].operations[4] == Operation("convolution", 3, stride=2, channels=2.0, repeats=4)  # type: ignore[index]
