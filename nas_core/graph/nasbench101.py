"""NAS-Bench-101: cells of at most 7 nodes and 9 edges, with operations on the nodes.

Ying et al., "NAS-Bench-101: Towards Reproducible Neural Architecture Search", ICML 2019.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from nas_core.errors import unknown_choice
from nas_core.graph.graph import Graph, GraphError, operation_indices
from nas_core.graph.graphs import Graphs, with_operations
from nas_core.graph.pruning import compact, on_paths

OPERATIONS = ("input", "conv1x1-bn-relu", "conv3x3-bn-relu", "maxpool3x3", "output")
"""Names of the operation indices 0 to 4, as in NN-Former."""
NODES, EDGES = 7, 9
"""Largest size of a pruned cell."""


class AbsentCellError(GraphError):
    """A cell that is not in the benchmark: it is too large, or has no path from input to output."""


def nasbench101_graph(matrix: ArrayLike, ops: Sequence[str], prune: bool = False) -> Graph:
    """Return the graph of a cell, from the arguments of ``ModelSpec`` in the benchmark's code.

    Args:
        matrix: ``(N, N)``, non-zero at ``[i, j]`` for an edge i -> j.
        ops: N names of operations, ``input`` first and ``output`` last.
        prune: remove nodes that are on no path from input to output.

    Raises:
        AbsentCellError: the cell has more than 7 nodes or 9 edges, or no path from input to output.
    """
    if unknown := [name for name in ops if name not in OPERATIONS]:
        raise unknown_choice("operation of NAS-Bench-101", unknown[0], OPERATIONS)
    graph = Graph.from_adjacency(matrix, [OPERATIONS.index(name) for name in ops])
    cells = Graphs.of([graph])
    _check(cells)
    if not prune:
        return _small(cells)[0]
    adjacency = graph.adjacency[None]
    keep = on_paths(adjacency)
    if not keep.any():
        raise AbsentCellError("cell has no path from input to output and is not in NAS-Bench-101; skip it")
    return _small(compact(graph.ops[None], adjacency, keep))[0]


def nasbench101_graphs(matrices: ArrayLike, ops: ArrayLike, sizes: ArrayLike | None = None) -> Graphs:
    """Return the graphs of many pruned cells.

    Args:
        matrices: ``(G, N, N)``, padded.
        ops: ``(G, N)`` indices into :data:`OPERATIONS`.
        sizes: ``(G,)`` numbers of nodes before padding. Default: N.
    """
    graphs = Graphs.from_dense(ops, matrices, sizes)
    _check(graphs)
    return _small(graphs)


def _check(graphs: Graphs) -> None:
    operation_indices(graphs.ops, len(OPERATIONS), "NAS-Bench-101")
    last = np.cumsum(graphs.sizes) - 1
    first = last - graphs.sizes + 1
    output = len(OPERATIONS) - 1
    for kind, nodes in ((0, first), (output, last)):
        expected = np.zeros(len(graphs.ops), np.bool_)
        expected[nodes] = True
        if len(invalid := np.flatnonzero((graphs.ops == kind) != expected)):
            cell = int(np.searchsorted(last, invalid[0]))
            names = [OPERATIONS[index] for index in graphs.ops[first[cell] : last[cell] + 1]]
            raise GraphError(
                f"cell {cell} has operations {names}; expected exactly one 'input' first and one 'output' last"
            )
    last_node = np.repeat(graphs.sizes - 1, graphs.edge_counts)
    backward = (graphs.edges[:, 1] == 0) | (graphs.edges[:, 0] == last_node)
    if len(invalid := np.flatnonzero(backward)):
        cell = int(np.searchsorted(np.cumsum(graphs.edge_counts), invalid[0], side="right"))
        edge = " -> ".join(map(str, graphs.edges[invalid[0]]))
        raise GraphError(f"cell {cell} has edge {edge} into its input or out of its output; remove it")


def _small(graphs: Graphs) -> Graphs:
    if len(too_large := np.flatnonzero((graphs.sizes > NODES) | (graphs.edge_counts > EDGES))):
        cell = int(too_large[0])
        raise AbsentCellError(
            f"cell {cell} has {graphs.sizes[cell]} nodes and {graphs.edge_counts[cell]} edges; expected at most {NODES}"
            f" and {EDGES} as in NAS-Bench-101, skip it or create a Graph"
        )
    return with_operations(graphs, OPERATIONS)
