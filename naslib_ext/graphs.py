"""Conversion of NASLib's architecture objects to graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nas_core.errors import ConfigError, unknown_choice
from nas_core.graph import Graph, GraphError
from nas_core.graph.nasbench101 import AbsentCellError, nasbench101_graph
from nas_core.graph.nasbench201 import CHOICES, STATES, nasbench201_graph, nasbench201_ops
from nas_core.graph.nasbench301 import nasbench301_graph
from nas_core.graph.transnasbench import transnasbench_macro_graph, transnasbench_micro_graph

NASBENCH101_OPS = ("input", "output", "maxpool3x3", "conv1x1-bn-relu", "conv3x3-bn-relu")
"""Operations of NAS-Bench-101 in the order of NASLib's indices."""
NASBENCH201_OPS = ("skip_connect", "none", "nor_conv_3x3", "nor_conv_1x1", "avg_pool_3x3")
"""Operations of NAS-Bench-201 in the order of NASLib's indices."""
NASBENCH201_EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
"""Edges of NAS-Bench-201 in NASLib's order, sorted by source; the official order is sorted by target."""
CACHED = 16384
"""Number of cached graphs, about 25 MB; enough for all of NAS-Bench-201."""


@dataclass(frozen=True)
class Space:
    """Converter from the architectures of a search space of NASLib to graphs."""

    name: str
    """Name of the space, as NASLib's ``get_type()`` returns it."""
    getter: str
    """Method of an architecture object that returns its compact description."""
    plain: Callable[[Any], Hashable]
    """Function from a compact description to a hashable value."""
    read: Callable[[Any], Graph | None]
    """Function from the hashable value to a graph."""


def graph_of(architecture: Any, ss_type: str | None) -> Graph | None:
    """Return the graph of an architecture object of NASLib, or of its compact description.

    Args:
        ss_type: NASLib's name of the search space.

    Returns:
        None for a cell that NAS-Bench-101 lacks (no path from input to output, or more than 9 edges).

    Raises:
        UnknownChoiceError, ConfigError: the search space is not supported.
        GraphError: the architecture is missing or malformed.
    """
    space = space_of(ss_type)
    description = architecture
    if hasattr(architecture, space.getter):
        description = getattr(architecture, space.getter)()
        if description is None:
            raise GraphError(f"the {ss_type} object has no architecture; call its sample_random_architecture first")
    return _read(space.name, space.plain(description))


def space_of(ss_type: str | None) -> Space:
    if ss_type is None:
        raise ConfigError("ss_type, NASLib's name of the search space, is None; give one, such as 'nasbench201'")
    if ss_type not in SPACES:
        raise unknown_choice("search space of NASLib", ss_type, SPACES)
    return SPACES[ss_type]


@lru_cache(CACHED)
def _read(ss_type: str, description: Hashable) -> Graph | None:
    return SPACES[ss_type].read(description)


def _numbers(description: Any) -> Hashable:
    if isinstance(description, np.ndarray):
        description = description.tolist()
    if isinstance(description, list | tuple):
        return tuple(_numbers(item) for item in description)
    plain = description.item() if isinstance(description, np.generic) else description
    if isinstance(plain, int | str):
        return plain
    raise GraphError(
        f"the architecture contains {type(plain).__name__} {str(plain)[:80]!r}; expected integers or strings"
    )


def _plain_nasbench101(description: Any) -> Hashable:
    """Return the matrix and the operations of ``{"matrix": .., "ops": ..}``, or of NASLib's flat tuple of both."""
    if isinstance(description, Mapping):
        if not {"matrix", "ops"} <= set(description):
            raise GraphError(
                f"the NAS-Bench-101 cell has keys {sorted(map(str, description))}; expected 'matrix' and 'ops'"
            )
        return _numbers(description["matrix"]), tuple(str(op) for op in description["ops"])
    flat = _numbers(description)
    nodes = math.isqrt(len(flat)) if isinstance(flat, tuple) else 0
    if not isinstance(flat, tuple) or not nodes or len(flat) != nodes * nodes + nodes:
        raise GraphError(
            f"the NAS-Bench-101 cell is {str(description)[:80]!r}; expected a dict with 'matrix' and 'ops'"
        )
    codes = flat[nodes * nodes :]
    rows = tuple(flat[row * nodes : (row + 1) * nodes] for row in range(nodes))
    return rows, tuple(NASBENCH101_OPS[code] for code in codes)


def _read_nasbench101(cell: tuple[Any, Any]) -> Graph | None:
    matrix, ops = cell
    try:
        return nasbench101_graph(matrix, ops, prune=True)
    except AbsentCellError:
        return None


def _read_nasbench201(ops: Any) -> Graph:
    if isinstance(ops, str):
        return nasbench201_graph(nasbench201_ops(ops))
    if not isinstance(ops, tuple) or len(ops) != len(NASBENCH201_EDGES):
        raise GraphError(
            f"the NAS-Bench-201 cell is {str(ops)[:80]!r}; expected six of NASLib's operation indices (0 to 4)"
        )
    op_of_edge = dict(zip(NASBENCH201_EDGES, ops, strict=True))
    return nasbench201_graph([CHOICES.index(NASBENCH201_OPS[op_of_edge[edge]]) for edge in STATES])


SPACES: dict[str, Space] = {
    space.name: space
    for space in (
        Space("nasbench101", "get_spec", _plain_nasbench101, _read_nasbench101),
        Space("nasbench201", "get_op_indices", _numbers, _read_nasbench201),
        Space("nasbench301", "get_compact", _numbers, nasbench301_graph),
        # NASLib writes these numbers into the official strings with which it asks the table.
        Space("transbench101_micro", "get_op_indices", _numbers, transnasbench_micro_graph),
        Space("transbench101_macro", "get_op_indices", _numbers, transnasbench_macro_graph),
    )
}
"""Supported search spaces by NASLib's names."""
