"""NASLib's architecture objects become the graphs that the benchmarks' own descriptions give."""

import itertools

import numpy as np
import pytest

from nas_core.graph.nasbench101 import nasbench101_graph
from nas_core.graph.nasbench201 import nasbench201_graph
from nas_core.graph.nasbench301 import nasbench301_graph
from nas_core.graph.transnasbench import transnasbench_macro_graph, transnasbench_micro_graph
from naslib_ext.graphs import graph_of
from tests.naslib_ext.fakes import WithOpIndices, WithSpec, nasbench101, sampled

NAMES_201 = ["skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3"]


def official_string(op_indices):
    """NASLib's order is that of nested loops over source, then target; the string's is by target, then source."""
    edges = dict(zip(itertools.combinations(range(4), 2), op_indices, strict=True))
    parts = ["|".join(f"{NAMES_201[edges[i, j]]}~{i}" for i in range(j)) for j in (1, 2, 3)]
    return "+".join(f"|{part}|" for part in parts)


def test_nasbench201_order_of_all_cells_against_a_conversion_by_strings():
    assert official_string([2, 1, 0, 3, 4, 2]) == (
        "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|nor_conv_3x3~2|"
    )
    cells = list(itertools.product(range(5), repeat=6))
    for ops in cells[::7]:
        assert graph_of(ops, "nasbench201") == nasbench201_graph(official_string(ops)), ops


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_descriptions_are_taken_in_any_form(form):
    ops = [2, 1, 0, 3, 4, 2]
    assert graph_of(form(ops), "nasbench201") is graph_of(WithOpIndices(form(ops)), "nasbench201")
    assert graph_of(official_string(ops), "nasbench201") == graph_of(ops, "nasbench201")


def test_nasbench101_is_pruned():
    matrix = np.zeros((7, 7), int)
    matrix[0, 1] = matrix[1, 6] = matrix[0, 2] = matrix[3, 6] = 1  # nodes 2 and 3 are dead ends, 4 and 5 alone
    ops = ["input", "maxpool3x3", *["conv3x3-bn-relu"] * 4, "output"]
    small = nasbench101_graph(np.diag([1, 1], 1), ["input", "maxpool3x3", "output"])
    assert graph_of(WithSpec({"matrix": matrix, "ops": ops}), "nasbench101") == small


def test_nasbench101_rows_of_the_table_padded_to_seven_nodes():
    """NASLib moves the output to the last of seven nodes and fills up with unlinked convolutions."""
    row = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    ops = ["input", "conv1x1-bn-relu", "maxpool3x3", "output"]
    padded = np.zeros((7, 7), np.int8)
    padded[:4, :3], padded[:4, 6] = row[:, :3], row[:, 3]
    names = [*ops[:3], *["conv3x3-bn-relu"] * 3, "output"]
    assert graph_of({"matrix": padded, "ops": names}, "nasbench101") == nasbench101_graph(row, ops)
    assert graph_of({"matrix": row.tolist(), "ops": ops}, "nasbench101") == nasbench101_graph(row, ops)


def test_nasbench101_tuples():
    codes = ["input", "output", "maxpool3x3", "conv1x1-bn-relu", "conv3x3-bn-relu"]
    for architecture in sampled("nasbench101", 5):
        spec = architecture.get_spec()
        flat = (*spec["matrix"].flatten(), *(codes.index(op) for op in spec["ops"]))
        assert graph_of(flat, "nasbench101") == graph_of(architecture, "nasbench101")


def test_cells_that_nasbench101_does_not_have():
    ops = ["input", *["conv3x3-bn-relu"] * 5, "output"]
    apart = np.zeros((7, 7), int)
    apart[0, 1] = apart[2, 6] = 1
    assert graph_of({"matrix": apart, "ops": ops}, "nasbench101") is None
    dense = np.triu(np.ones((7, 7), int), 1)
    assert graph_of({"matrix": dense, "ops": ops}, "nasbench101") is None
    aside = dense.copy()
    aside[0, 1:6] = 0  # 16 edges, of which one is on a way
    assert len(graph_of({"matrix": aside, "ops": ops}, "nasbench101")) == 2
    nine = nasbench101(np.random.default_rng(0))
    assert graph_of(nine, "nasbench101") is not None


def test_nasbench301():
    for architecture in sampled("nasbench301", 3):
        compact = np.array(architecture.get_compact())
        assert graph_of(architecture, "nasbench301") == nasbench301_graph(compact)
        assert graph_of(compact.tolist(), "nasbench301") == nasbench301_graph(compact)


def test_transnasbench_numbers_are_those_of_the_official_strings():
    """NASLib asks its table with '64-41414-{}_{}{}_{}{}{}' and '64-{}-basic' of the same numbers."""
    for architecture in sampled("transbench101_micro", 5):
        string = "64-41414-{}_{}{}_{}{}{}".format(*architecture.get_op_indices())
        assert graph_of(architecture, "transbench101_micro") == transnasbench_micro_graph(string)
    for architecture in sampled("transbench101_macro", 5):
        digits = "".join(str(digit) for digit in architecture.get_op_indices() if digit)
        assert graph_of(architecture, "transbench101_macro") == transnasbench_macro_graph(f"64-{digits}-basic")
