"""TransNAS-Bench-101: micro cells as those of NAS-Bench-201, macro chains."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from nas_core.errors import UnknownChoiceError
from nas_core.graph import (
    Graph,
    GraphError,
    nasbench201_graph,
    transnasbench_macro_graph,
    transnasbench_micro_graph,
    transnasbench_micro_graphs,
)
from nas_core.graph.transnasbench import MICRO_CHOICES
from tests.contracts.graph_reader import GraphReaderContract

OFFICIAL = "64-41414-1_02_333"


class TestMicroReader(GraphReaderContract):
    name = "transnasbench_micro"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [(OFFICIAL,), ("3_33_333",), ([0, 0, 0, 0, 0, 0],), (np.array([1, 2, 3, 1, 2, 3]),)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "like '64-41414-1_02_333'": ("64-1234-basic",),
            "index of TransNAS-Bench-101 4": ("64-41414-1_02_334",),
            "index of TransNAS-Bench-101 -1": ([0, 0, 0, 0, 0, -1],),
            "expected six indices": ([0] * 5,),
            "operations are of type float64; expected whole numbers": ([0.5] * 6,),
            "unknown operation of TransNAS-Bench-101 'avg_pool_3x3'": ([0] * 6, ("none", "avg_pool_3x3")),
        }


class TestMacroReader(GraphReaderContract):
    name = "transnasbench_macro"

    def inputs(self) -> list[tuple[Any, ...]]:
        return [("64-1234-basic",), ([2, 3, 1, 1, 0, 0],), (np.array([4, 1, 4, 1, 4]),), ("111143",)]

    def wrong(self) -> dict[str, tuple[Any, ...]]:
        return {
            "like '64-1234-basic'": (OFFICIAL,),
            "4 to 6 numbers": ("64-123-basic",),
            "got modules [1, 1, 1, 1, 1, 1, 1]": ([1] * 7,),
            "unknown module of TransNAS-Bench-101 5: expected one of 1, 2, 3, 4.": ("64-12345-basic",),
            "module of TransNAS-Bench-101 -2": ([1, -2, 1, 1],),
            "got modules [[1, 2, 3, 4]]": ([[1, 2, 3, 4]],),
            "modules are of type float64; expected whole numbers": ([1.5] * 4,),
        }


def test_the_example_of_the_readme() -> None:
    """node 1 = skip(0); node 2 = none(0) + conv1x1(1); node 3 = conv3x3(0) + conv3x3(1) + conv3x3(2)."""
    same = nasbench201_graph("|skip_connect~0|+|none~0|nor_conv_1x1~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|")
    assert transnasbench_micro_graph(OFFICIAL) == same
    assert transnasbench_micro_graph([1, 0, 2, 3, 3, 3]) == same


def test_all_cells_at_once() -> None:
    ops = np.array(list(itertools.product(range(4), repeat=6)))
    graphs = transnasbench_micro_graphs(ops)
    assert len(graphs) == 4096
    for row in range(0, 4096, 41):
        text = "64-41414-{}_{}{}_{}{}{}".format(*ops[row])
        assert graphs[row] == transnasbench_micro_graph(text) == transnasbench_micro_graph(ops[row])


def test_another_order_of_operations() -> None:
    order = ("skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1")
    official = [1, 0, 2, 3, 3, 3]
    renamed = [order.index(MICRO_CHOICES[index]) for index in official]
    assert transnasbench_micro_graph(renamed, order) == transnasbench_micro_graph(official)
    with pytest.raises(UnknownChoiceError, match="index of TransNAS-Bench-101 3"):
        transnasbench_micro_graph(official, order[:3])
    with pytest.raises(GraphError, match=r"expected \(G, 6\)"):
        transnasbench_micro_graphs([0] * 6)


def test_chains() -> None:
    chain = Graph([0, 1, 2, 3, 4, 5], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    for same in ("64-1234-basic", "1234", [1, 2, 3, 4], np.array([1, 2, 3, 4, 0, 0])):
        assert transnasbench_macro_graph(same) == chain


def test_every_macro_architecture_of_the_benchmark_is_read() -> None:
    """Channels double once to three times, the resolution halves once to four times: 3,256 chains."""
    chains = set()
    for modules in itertools.chain.from_iterable(itertools.product((1, 2, 3, 4), repeat=depth) for depth in (4, 5, 6)):
        doubled, halved = (sum(m in kinds for m in modules) for kinds in ((2, 4), (3, 4)))
        if 1 <= doubled <= 3 and 1 <= halved <= 4:
            chains.add(transnasbench_macro_graph(modules))
    assert len(chains) == 3256
