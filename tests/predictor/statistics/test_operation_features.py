"""Features of what operations do: of small networks by hand, equal in every space."""

from __future__ import annotations

import numpy as np
import pytest

from nas_core.graph import Graph, GraphError, Graphs, Operation, described, nasbench101_graph, nasbench201_graph
from nas_core.predictor.statistics.operation_features import FEATURES, operation_features

PATHS = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]
"""input -> 1 -> 2 -> output, input -> 3 -> output"""


def features(graph: Graph) -> dict[str, float]:
    return dict(zip(FEATURES, operation_features(Graphs.of([graph]))[0].tolist(), strict=True))


def two_ways(*names: str | Operation) -> dict[str, float]:
    return features(described(Graph([0, 1, 2, 3, 4], PATHS), ["input", *names, "output"]))


def test_sums_along_the_ways() -> None:
    found = two_ways("conv3x3", "conv1x1", "max_pool_3x3")
    assert found["sum of convolutions"] == 2 and found["sum of weights"] == 10 and found["sum of spatial"] == 1
    assert found["mean of convolutions"] == 1 and found["most convolutions"] == 2 and found["least convolutions"] == 0
    assert found["mean of pooling"] == found["walks' mean of pooling"] == 0.5 and found["ends at pooling"] == 0.5
    assert found["log ways"] == pytest.approx(np.log(3)) and found["operations"] == 3 and found["connected"] == 1
    assert found["least receptive field"] == found["most receptive field"] == pytest.approx(np.log1p(2))
    assert found["ways without pooling"] == found["ways without spatial"] == 0.5
    assert found["ends after spatial"] == 0.5 and found["ends at convolutions"] == 0.5
    assert found["longest way by convolutions"] == 3 and found["shortest way by pooling"] == 0.5
    assert found["shortest way by identity"] == 0
    assert found["log FLOPs"] == found["log parameters"] == pytest.approx(np.log(10.5))
    assert found["log activations"] == pytest.approx(np.log(2.5))


def test_resolution_and_channels() -> None:
    halved = two_ways(Operation("convolution", 3, stride=2, channels=2.0), "conv3x3", "identity")
    assert halved["log parameters"] == pytest.approx(np.log(9 * 2 + 9 * 4 + 0.5))
    assert halved["log FLOPs"] == pytest.approx(np.log((9 * 2 + 9 * 4) / 4 + 0.5))
    assert halved["log activations"] == pytest.approx(np.log(2 * 2 / 4 + 0.5))
    grouped, plain = (
        two_ways(Operation("convolution", 3, groups=3), "linear", "identity"),
        two_ways("sep_conv_3x3", "linear", "identity"),
    )
    assert grouped["sum of weights"] == 4 and plain["sum of weights"] == pytest.approx(2 * (9 / 32 + 1) + 1)
    assert plain["sum of convolutions"] == 3 and two_ways("k3_e6", "linear", "none")["sum of weights"] == pytest.approx(
        6 * 9 / 32 + 13
    )


def test_equal_networks_of_different_spaces_have_equal_features() -> None:
    cell = np.zeros((4, 4))
    cell[[0, 1, 2], [1, 2, 3]] = 1
    one = nasbench101_graph(cell, ["input", "conv3x3-bn-relu", "conv1x1-bn-relu", "output"])
    other = nasbench201_graph("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|nor_conv_1x1~1|none~2|")
    assert features(one) == features(other)


def test_networks_with_several_inputs_and_without_a_way() -> None:
    table = ["input", "conv3x3", "output"]
    several = described(Graph([0, 0, 1, 1, 2], [(0, 2), (1, 3), (2, 4), (3, 4)]), table)
    assert features(several)["log ways"] == pytest.approx(np.log(3)) and features(several)["connected"] == 1
    apart = described(Graph([0, 1, 2], []), table)
    assert np.isfinite(list(features(apart).values())).all()
    both = operation_features(Graphs.of([several, apart, several]))
    assert np.array_equal(both[0], both[2]) and np.array_equal(both[1], operation_features(Graphs.of([apart]))[0])
    assert operation_features(Graphs.of([several]).take([])).shape == (0, len(FEATURES))


def test_graphs_that_say_nothing() -> None:
    with pytest.raises(GraphError, match=r"nothing says what the operations.*described\(graphs"):
        operation_features(Graphs.of([Graph([0, 1], [(0, 1)])]))
