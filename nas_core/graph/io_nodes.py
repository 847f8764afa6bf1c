"""Topological order, and input and output nodes of graphs."""

from __future__ import annotations

from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.graphs import Graphs
from nas_core.graph.operation import Operation

_END = Operation("end")
_SOURCE, _TARGET = 0, 1


def topological(graphs: Graphs) -> Graphs:
    """Return graphs with nodes in topological order. Graphs that have one already stay as they are."""
    graph_of_edge = np.repeat(np.arange(len(graphs)), graphs.edge_counts)
    backward = np.unique(graph_of_edge[graphs.edges[:, _SOURCE] >= graphs.edges[:, _TARGET]])
    if not len(backward):
        return graphs
    items = list(graphs)
    for index in backward.tolist():
        items[index] = items[index].permuted(_order(items[index].edges, len(items[index])))
    return Graphs.of(items)


def _order(edges: NDArray[np.int32], nodes: int) -> list[int]:
    sorter: TopologicalSorter[int] = TopologicalSorter({node: () for node in range(nodes)})
    for source, target in edges.tolist():
        sorter.add(target, source)
    return list(sorter.static_order())


def open_ended(graphs: Graphs) -> NDArray[np.bool_]:
    """Return a boolean mask ``(G,)`` of graphs with several nodes without a parent, or several without a child."""
    several = [np.bincount(_end_nodes(graphs, side)[1], minlength=len(graphs)) > 1 for side in (_TARGET, _SOURCE)]
    return np.asarray(several[0] | several[1])


def common_ends(graphs: Graphs) -> tuple[int, int] | None:
    """Return the operation indices of the input and output nodes, if they are the same in all graphs, or None.

    Graphs with several inputs or outputs are ignored.
    """
    single = ~open_ended(graphs)
    ends = [_end_nodes(graphs, side) for side in (_TARGET, _SOURCE)]
    inputs, outputs = (np.unique(graphs.ops[nodes][single[owners]]).tolist() for nodes, owners in ends)
    return (inputs[0], outputs[0]) if len(inputs) == len(outputs) == 1 else None


def missing_ends(graphs: Graphs, common: tuple[int, int] | None) -> NDArray[np.bool_]:
    """Return a boolean mask ``(G,)`` of graphs with several inputs or outputs that lack an end of ``common``.

    Args:
        common: operation indices of input and output. Other ends of a graph with both are dead branches.
    """
    open_graphs = open_ended(graphs)
    if common is None:
        return open_graphs
    complete = np.ones(len(graphs), np.bool_)
    for side, operation in zip((_TARGET, _SOURCE), common, strict=True):
        nodes, owners = _end_nodes(graphs, side)
        complete &= np.isin(np.arange(len(graphs)), owners[graphs.ops[nodes] == operation])
    return np.asarray(open_graphs & ~complete)


def with_ends(graphs: Graphs, first: int, last: int) -> Graphs:
    """Add an input node and an output node to graphs.

    The input is connected to all nodes without a parent, and all nodes without a child to the output. Attributes,
    shapes and costs of the new nodes are 0.

    Args:
        graphs: graphs in topological order.
        first, last: operation indices of input and output.
    """
    count, sizes = len(graphs), graphs.sizes
    graph_of_node = np.repeat(np.arange(count), sizes)
    position = np.arange(len(graphs.ops)) - (np.cumsum(sizes) - sizes)[graph_of_node] + 1  # within the new graph
    inner = np.arange(len(graphs.ops)) + 1 + 2 * graph_of_node
    output_nodes = np.cumsum(sizes + 2) - 1
    input_nodes = output_nodes - sizes - 1

    def widen(values: NDArray[Any], ends: tuple[float, float]) -> NDArray[Any]:
        result = np.zeros((len(graphs.ops) + 2 * count, *values.shape[1:]), values.dtype)
        result[inner], result[input_nodes], result[output_nodes] = values, *ends
        return result

    (starts, start_owners), (stops, stop_owners) = (_end_nodes(graphs, side) for side in (_TARGET, _SOURCE))
    edges = np.concatenate(
        [
            graphs.edges + 1,
            np.stack([np.zeros(len(starts), np.int64), position[starts]], 1),
            np.stack([position[stops], sizes[stop_owners] + 1], 1),
        ]
    ).astype(np.int32)
    owner = np.concatenate([np.repeat(np.arange(count), graphs.edge_counts), start_owners, stop_owners])
    order = np.lexsort((edges[:, 1], edges[:, 0], owner))
    features: dict[str, Any] = {
        name: widen(values, (0, 0))
        for name in ("attributes", "shapes", "costs")
        if (values := getattr(graphs, name)) is not None
    }
    if graphs.operations is not None:
        table = dict(enumerate(graphs.operations)) | dict.fromkeys((first, last), _END)
        features["operations"] = tuple(table.get(index, _END) for index in range(max(table) + 1))
    return replace(
        graphs, ops=widen(graphs.ops, (first, last)), edges=edges[order], sizes=sizes + 2,
        edge_counts=np.bincount(owner, minlength=count), **features,
    )  # fmt: skip


def _end_nodes(graphs: Graphs, side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    first_node = np.cumsum(graphs.sizes) - graphs.sizes
    connected = np.zeros(len(graphs.ops), np.bool_)
    connected[np.repeat(first_node, graphs.edge_counts) + graphs.edges[:, side]] = True
    nodes = np.flatnonzero(~connected)
    return nodes, np.repeat(np.arange(len(graphs)), graphs.sizes)[nodes]
