"""Conversion of NNI samples (label -> value) to graphs; unknown labels are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nas_core.errors import unknown_choice
from nas_core.graph import Graph, GraphError
from nas_core.graph.nasbench101 import OPERATIONS, nasbench101_graph
from nas_core.graph.nasbench201 import STATES, nasbench201_graph

Sample = Mapping[str, Any]
"""Sample of an NNI model space: label -> value."""

_HUB_201 = ("none", "skip_connect", "conv_1x1", "conv_3x3", "avg_pool_3x3")
"""NNI's names for the operations of NAS-Bench-201, in the benchmark's order."""


def nasbench101_sample(sample: Sample) -> Graph:
    """Return the graph of a sample of ``nni.nas.hub.pytorch.NasBench101``, without unused operations.

    Raises:
        GraphError: the benchmark lacks the cell.
    """
    nodes = _value(sample, "cell/num_nodes")
    inner = OPERATIONS[1:-1]
    matrix = np.zeros((nodes, nodes), np.int64)
    ops = ["input", *(_operation(sample, f"cell/op{node}", "101", inner) for node in range(1, nodes - 1)), "output"]
    for node in range(1, nodes):
        matrix[_inputs(sample, node), node] = 1
    return nasbench101_graph(matrix, ops, prune=True)


def nasbench201_sample(sample: Sample) -> Graph:
    """Return the graph of a sample of ``nni.nas.hub.pytorch.NasBench201``, without unused operations."""
    return nasbench201_graph(_ops_201(sample))


def nasbench201_unpruned_sample(sample: Sample) -> Graph:
    """Return the graph of a NAS-Bench-201 sample with unused operations, whose latency counts too."""
    return nasbench201_graph(_ops_201(sample), prune=False)


def _ops_201(sample: Sample) -> list[int]:
    names = [_operation(sample, f"cell/{source}_{target}", "201", _HUB_201) for source, target in STATES]
    return [_HUB_201.index(name) for name in names]


def _value(sample: Sample, label: str) -> Any:
    if label not in sample:
        raise GraphError(
            f"the sample has no label {label!r}, only {', '.join(map(str, list(sample)[:20])) or 'none'}; give a sample"
            " of the model space"
        )
    return sample[label]


def _operation(sample: Sample, label: str, benchmark: str, names: tuple[str, ...]) -> str:
    name = _value(sample, label)
    if name not in names:
        raise unknown_choice(f"operation {label!r} of NAS-Bench-{benchmark}", name, names)
    return name


def _inputs(sample: Sample, node: int) -> list[int]:
    label = f"cell/input{node}"
    if label not in sample and f"{label}/0" in sample:
        return [source for source in range(node) if _value(sample, f"{label}/{source}")]
    return [int(source) for source in _value(sample, label)]
