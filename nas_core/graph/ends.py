"""The order of nodes, and the ends of a network: what predictors expect of graphs, brought about where it lacks."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nas_core.graph.graphs import Graphs
from nas_core.graph.operation import Operation

_END = Operation("end")


def topological(graphs: Graphs) -> Graphs:
    """The same networks with nodes in an order in which every edge leads forward (Kahn 1962).

    Graphs that are in such an order already are left as they are; of several nodes that may come next the first does.
    """
    graph_of_edge = np.repeat(np.arange(len(graphs)), graphs.edge_counts)
    wrong = np.unique(graph_of_edge[graphs.edges[:, 0] >= graphs.edges[:, 1]])
    if not len(wrong):
        return graphs
    parts = list(graphs)
    for index in wrong.tolist():
        parts[index] = parts[index].permuted(_order(parts[index].edges, len(parts[index])))
    return Graphs.of(parts)


def _order(edges: NDArray[np.int32], nodes: int) -> list[int]:
    children: list[list[int]] = [[] for _ in range(nodes)]
    waiting = np.bincount(edges[:, 1], minlength=nodes).tolist()
    for source, target in edges.tolist():
        children[source].append(target)
    ready = [node for node in range(nodes) if not waiting[node]]
    found = []
    while ready:
        node = heapq.heappop(ready)
        found.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, child)
    return found


def open_ended(graphs: Graphs) -> NDArray[np.bool_]:
    """``(G,)``: graphs that have several nodes without a parent, or several without a child, and so no one input and
    output."""
    return _open_ended([_ends(graphs, side) for side in (1, 0)], len(graphs))


def common_ends(graphs: Graphs) -> tuple[int, int] | None:
    """Operation indices with which all graphs that have one input and one output begin and end; None where these
    differ, or no graph has."""
    ends = [_ends(graphs, side) for side in (1, 0)]
    whole = ~_open_ended(ends, len(graphs))
    found = [np.unique(operations[whole[owners]]).tolist() for owners, operations in ends]
    return (found[0][0], found[1][0]) if len(found[0]) == len(found[1]) == 1 else None


def lacking_ends(graphs: Graphs, common: tuple[int, int] | None) -> NDArray[np.bool_]:
    """``(G,)``: graphs of :func:`open_ended` but for those that have an input and an output of these operations, and
    dead branches beside them: cells of NAS-Bench-201 with ``none`` on an edge.

    Args:
        common: of :func:`common_ends`.
    """
    ends = [_ends(graphs, side) for side in (1, 0)]
    apart = _open_ended(ends, len(graphs))
    if common is None:
        return apart
    having = [
        np.isin(np.arange(len(graphs)), owners[operations == end])
        for (owners, operations), end in zip(ends, common, strict=True)
    ]
    return np.asarray(apart & ~(having[0] & having[1]))


Ends = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]
"""Graph and operation of each node at an end."""


def _ends(graphs: Graphs, side: int) -> Ends:
    node = np.concatenate([[0], np.cumsum(graphs.sizes)])
    graph_of_edge = np.repeat(np.arange(len(graphs)), graphs.edge_counts)
    found = _without(graphs, node, graph_of_edge, side)
    return np.repeat(np.arange(len(graphs)), graphs.sizes)[found], graphs.ops[found]


def _open_ended(ends: list[Ends], count: int) -> NDArray[np.bool_]:
    several = [np.bincount(owners, minlength=count) > 1 for owners, _ in ends]
    return np.asarray(several[0] | several[1])


def with_ends(graphs: Graphs, first: int, last: int) -> Graphs:
    """The same networks between two more nodes: one that feeds all nodes without a parent, and one that all nodes
    without a child feed. What nodes have (attributes, shapes, costs) is 0 for them.

    Args:
        graphs: in topological order.
        first: operation index of the node before, ``last`` of the one behind.
    """
    count, sizes = len(graphs), graphs.sizes
    node = np.concatenate([[0], np.cumsum(sizes)])
    graph_of_edge = np.repeat(np.arange(count), graphs.edge_counts)
    graph_of_node = np.repeat(np.arange(count), sizes)
    inner = np.arange(len(graphs.ops)) + 1 + 2 * graph_of_node  # where each node comes to stand
    before, behind = node[:-1] + 2 * np.arange(count), node[1:] + 1 + 2 * np.arange(count)

    def widened(values: NDArray[Any], ends: tuple[float, float]) -> NDArray[Any]:
        found = np.zeros((len(graphs.ops) + 2 * count, *values.shape[1:]), values.dtype)
        found[inner], found[before], found[behind] = values, *ends
        return found

    starts, stops = (_without(graphs, node, graph_of_edge, side) for side in (1, 0))
    within = np.arange(len(graphs.ops)) - node[graph_of_node] + 1
    edges = np.concatenate(
        [
            graphs.edges + 1,
            np.stack([np.zeros(len(starts), np.int64), within[starts]], 1),
            np.stack([within[stops], sizes[graph_of_node[stops]] + 1], 1),
        ]
    ).astype(np.int32)
    owner = np.concatenate([graph_of_edge, graph_of_node[starts], graph_of_node[stops]])
    order = np.lexsort((edges[:, 1], edges[:, 0], owner))
    features: dict[str, Any] = {
        name: widened(values, (0, 0))
        for name in ("attributes", "shapes", "costs")
        if (values := getattr(graphs, name)) is not None
    }
    if graphs.operations is not None:  # described up to the new ends
        table = {index: operation for index, operation in enumerate(graphs.operations)} | dict.fromkeys(
            (first, last), _END
        )
        features["operations"] = tuple(table.get(index, _END) for index in range(max(table) + 1))
    return replace(
        graphs, ops=widened(graphs.ops, (first, last)), edges=edges[order], sizes=sizes + 2,
        edge_counts=np.bincount(owner, minlength=count), **features,
    )  # fmt: skip


def _without(graphs: Graphs, node: NDArray[np.int64], graph_of_edge: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Nodes that stand on no edge's side, numbered through all graphs."""
    has = np.zeros(len(graphs.ops), np.bool_)
    has[node[graph_of_edge] + graphs.edges[:, side]] = True
    return np.flatnonzero(~has)
