"""NAS-Bench-301: normal and reduction cell of DARTS in one graph.

Siems et al., "NAS-Bench-301 and the Case for Surrogate Benchmarks", 2020; Liu et al., "DARTS", ICLR 2019. A cell has
two inputs (0, 1) and four states (2 to 5). A state is the sum of two operations on an earlier state or input.

Each operation is a node. Unlike in NASLib, inputs and outputs have different operation indices in each cell, the normal
cell's output feeds the reduction cell, and the two operations of a state are sorted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nas_core.graph.graph import Graph, GraphError, operation_indices, whole_numbers
from nas_core.graph.graphs import with_operations

CHOICES = (
    "max_pool_3x3",
    "avg_pool_3x3",
    "skip_connect",
    "sep_conv_3x3",
    "sep_conv_5x5",
    "dil_conv_3x3",
    "dil_conv_5x5",
)
"""Operations in the order of NASLib."""
OPERATIONS = (
    "normal_input_0",
    "normal_input_1",
    *CHOICES,
    "normal_output",
    "reduction_input_0",
    "reduction_input_1",
    "reduction_output",
)
"""Names of the operation indices 0 to 12."""

_CELL = 11


def nasbench301_graph(compact: ArrayLike, connect: bool = True) -> Graph:
    """Return the graph of both cells.

    Args:
        compact: ``(2, 8, 2)``, as in NASLib. Normal and reduction cell have 8 pairs (source, operation) each; pairs 2k
            and 2k + 1 are summed to state k + 2. A source is 0 to k + 1, an operation an index into :data:`CHOICES`.
        connect: feed the normal cell's output to both inputs of the reduction cell.

    Returns:
        Graph of 22 nodes: normal cell, then reduction cell, each with input 0, input 1, eight operations, output.
    """
    cells = whole_numbers(compact, "cells")
    if cells.shape != (2, 8, 2):
        raise GraphError(f"cells have shape {cells.shape}; expected (2, 8, 2), 8 pairs (source, operation) per cell")
    operation_indices(cells[..., 1], len(CHOICES), "NAS-Bench-301")
    for state in range(4):
        sources = cells[:, 2 * state : 2 * state + 2, 0]
        if sources.min() < 0 or sources.max() > state + 1:
            raise GraphError(f"state {state + 2} has sources {sources.tolist()}; expected 0 to {state + 1}")
    ops: list[int] = []
    edges: list[tuple[int, int]] = []
    for cell, name in enumerate(("normal", "reduction")):
        offset = _CELL * cell
        pairs = [pair for k in range(0, 8, 2) for pair in sorted(cells[cell, k : k + 2].tolist())]
        ops += [OPERATIONS.index(f"{name}_input_{index}") for index in range(2)]
        ops += [OPERATIONS.index(CHOICES[operation]) for _, operation in pairs]
        ops.append(OPERATIONS.index(f"{name}_output"))
        for node, (source, _) in enumerate(pairs, offset + 2):
            predecessors = [source] if source < 2 else [2 * source - 2, 2 * source - 1]
            edges += [(offset + predecessor, node) for predecessor in predecessors]
            edges.append((node, offset + _CELL - 1))
    if connect:
        edges += [(_CELL - 1, _CELL), (_CELL - 1, _CELL + 1)]
    return with_operations(Graph(np.array(ops), edges), OPERATIONS)
