"""Graphs with a word on what their operations do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import overload

from nas_core.graph.graph import Graph, GraphError
from nas_core.graph.graphs import Graphs
from nas_core.graph.operation import Operation, operation_named


@overload
def described(graphs: Graph, operations: Sequence[Operation | str]) -> Graph: ...
@overload
def described(graphs: Graphs | Iterable[Graph], operations: Sequence[Operation | str]) -> Graphs: ...
def described(graphs: Graph | Graphs | Iterable[Graph], operations: Sequence[Operation | str]) -> Graph | Graphs:
    """The same graphs with a word on what their operations do; readers of benchmarks give it with theirs.

    Args:
        operations: of each operation index, from 0: an :class:`Operation`, or a name of :func:`operation_named`.

    Raises:
        GraphError: a name that says nothing, or operation indices beyond those described.
    """
    table = described_by(operations)
    if isinstance(graphs, Graph):
        return described([graphs], table)[0]
    made = Graphs.of(graphs)
    if len(made.ops) and int(made.ops.max()) >= len(table):
        raise GraphError(f"operation index {int(made.ops.max())} in a graph; {len(table)} operations are described")
    return replace(made, operations=table)


def described_by(operations: Iterable[Operation | str]) -> tuple[Operation, ...]:
    """Operations, of which some may be given by names."""
    table = []
    if isinstance(operations, str) or not isinstance(operations, Iterable):
        raise GraphError(f"operations are {operations!r}; expected a list, one for each operation index")
    for each in operations:
        found = operation_named(each) if isinstance(each, str) else each
        if not isinstance(found, Operation):
            raise GraphError(
                f"operation {each!r} is none whose name says what it does; describe it: Operation('convolution',"
                " kernel=3)"
            )
        table.append(found)
    return tuple(table)
