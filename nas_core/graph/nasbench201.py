"""NAS-Bench-201 and NATS-Bench's topology space: cells with operations on the six edges between four states.

Dong & Yang, "NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search", ICLR 2020. In graphs, each
operation is a node, as in NN-Former, and ``none`` is removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nas_core.errors import unknown_choice
from nas_core.graph.graph import Graph, GraphError, operation_indices
from nas_core.graph.graphs import Graphs, with_operations
from nas_core.graph.pruning import compact, on_paths

OPERATIONS = ("input", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3", "skip_connect", "none", "output")
"""Names of the operation indices 0 to 6. Graphs never contain ``none``."""
CHOICES = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
"""Operations in the order of the benchmark, for the six indices of an architecture."""
STATES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
"""Source and target state of the six operations, in the order of the architecture string. NASLib has another order."""

_STRING = "|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|"
_PATTERN = re.compile(re.escape(_STRING).replace(r"\{\}", "([^|~]+)"))
_KINDS = np.array([OPERATIONS.index(name) for name in CHOICES])


def nasbench201_graph(architecture: str | Sequence[int] | NDArray[np.integer], prune: bool = True) -> Graph:
    """Return the graph of a cell.

    Args:
        architecture: ``|nor_conv_3x3~0|+|none~0|skip_connect~1|+|..~0|..~1|..~2|``, or six indices into
            :data:`CHOICES`.
        prune: remove operations that are on no path from input to output. Keep them for latency, as a device computes
            all.
    """
    ops = nasbench201_ops(architecture) if isinstance(architecture, str) else architecture
    return nasbench201_graphs(np.array([ops]), prune)[0]


def nasbench201_unpruned(architecture: str | Sequence[int] | NDArray[np.integer]) -> Graph:
    """Return the unpruned graph of a cell, for latency predictors."""
    return nasbench201_graph(architecture, prune=False)


def nasbench201_graphs(ops: ArrayLike, prune: bool = True) -> Graphs:
    """Return the graphs of many cells.

    Args:
        ops: ``(G, 6)`` indices into :data:`CHOICES`, in the order of :data:`STATES`.
        prune: see :func:`nasbench201_graph`.
    """
    indices = operation_indices(ops, len(CHOICES), "NAS-Bench-201")
    if indices.shape[1:] != (6,):
        raise GraphError(f"operations have shape {indices.shape}; expected (G, 6), six operations per cell")
    kinds = np.zeros((len(indices), 8), np.int64)
    kinds[:, 1:7] = _KINDS[indices]
    kinds[:, 7] = OPERATIONS.index("output")
    active = kinds != OPERATIONS.index("none")
    adjacency = _links() & active[:, :, None] & active[:, None, :]
    keep = on_paths(adjacency) if prune else active
    keep[:, [0, 7]] = True
    return with_operations(compact(kinds, adjacency, keep), OPERATIONS)


def nasbench201_ops(architecture: str) -> tuple[int, ...]:
    """Return the six indices into :data:`CHOICES` of an architecture string."""
    match = _PATTERN.fullmatch(architecture.strip())
    if match is None:
        raise GraphError(f"got architecture {architecture!r}; expected {_STRING.format(*['operation'] * 6)}")
    if unknown := [name for name in match.groups() if name not in CHOICES]:
        raise unknown_choice("operation of NAS-Bench-201", unknown[0], CHOICES)
    return tuple(CHOICES.index(name) for name in match.groups())


def nasbench201_string(ops: Sequence[int] | NDArray[np.integer]) -> str:
    """Return the architecture string of six indices into :data:`CHOICES`."""
    return _STRING.format(*(CHOICES[index] for index in ops))


def _links() -> NDArray[np.bool_]:
    source, target = np.array([(-1, 0), *STATES, (3, -1)]).T
    links: NDArray[np.bool_] = target[:, None] == source[None, :]
    links[7] = False
    return links
