"""The topological order of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nas_core.graph.graph import GraphError
from nas_core.graph.onnx.network import Operation


def sort_nodes(graph: Any, listed: list[Operation], name: str) -> list[Operation]:
    """The operators in topological order; the nodes of the ``GraphProto`` are brought into it too.

    Raises:
        GraphError: a cycle, a tensor made twice, or one that nothing makes.
    """
    given = {tensor.name for part in (graph.input, graph.initializer) for tensor in part}
    makers = _makers(listed, given, name)
    sources = [{makers[tensor] for tensor in op.inputs if tensor and tensor not in given} for op in listed]
    if all(source < place for place, group in enumerate(sources) for source in group):
        return listed
    order = _order(sources)
    if len(order) < len(listed):
        stuck = listed[min(set(range(len(listed))) - set(order))]
        raise GraphError(
            f"{name}: {len(listed) - len(order)} of {len(listed)} operators wait for each other in a cycle, "
            f"{stuck.kind} that gives {stuck.outputs[0]!r} among them; expected an acyclic graph"
        )
    nodes = list(graph.node)
    copies = [type(nodes[place]).FromString(nodes[place].SerializeToString()) for place in order]
    del graph.node[:]
    graph.node.extend(copies)
    return [listed[place] for place in order]


def _makers(listed: Sequence[Operation], given: set[str], name: str) -> dict[str, int]:
    """Which operator makes a tensor."""
    made: dict[str, int] = {}
    for place, op in enumerate(listed):
        for output in op.outputs:
            if output in made or output in given:
                raise GraphError(f"{name}: tensor {output!r} is made twice; expected one operator for each tensor")
            if output:
                made[output] = place
    for op in listed:
        for tensor in op.inputs:
            if tensor and tensor not in made and tensor not in given:
                raise GraphError(
                    f"{name}: {op.kind} reads tensor {tensor!r}, which nothing makes; the file is damaged or a part of "
                    "a model"
                )
    return made


def _order(sources: Sequence[set[int]]) -> list[int]:
    """Shorter than the operators where there is a cycle."""
    readers: list[list[int]] = [[] for _ in sources]
    waiting = [len(group) for group in sources]
    for place, group in enumerate(sources):
        for source in group:
            readers[source].append(place)
    order = [place for place, count in enumerate(waiting) if not count]
    for place in order:  # grows while it is read; each operator enters once
        for reader in readers[place]:
            waiting[reader] -= 1
            if not waiting[reader]:
                order.append(reader)
    return order
