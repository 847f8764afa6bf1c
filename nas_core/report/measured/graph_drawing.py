"""A small graph as text: its operations in their order, and from which others each takes its input."""

from __future__ import annotations

from collections.abc import Callable

from nas_core.graph import Graph

__all__ = ["graph_lines", "layers_of"]

_MOST = 60
"""Nodes that are told."""


def layers_of(graph: Graph) -> list[int]:
    """The layer of each node: 0 without inputs, else one more than the latest of those that feed it."""
    layer = [0] * len(graph)
    waiting = {node: 0 for node in range(len(graph))}
    for _, target in graph.edges.tolist():
        waiting[target] += 1
    after: dict[int, list[int]] = {}
    for source, target in graph.edges.tolist():
        after.setdefault(source, []).append(target)
    ready = [node for node, count in waiting.items() if not count]
    while ready:
        node = ready.pop()
        for target in after.get(node, ()):
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return layer


def graph_lines(graph: Graph, operation: Callable[[int], str]) -> dict[str, str]:
    """A line for each node: number, operation -> numbers of the nodes that it reads."""
    reads: dict[int, list[int]] = {}
    for source, target in graph.edges.tolist():
        reads.setdefault(target, []).append(source)
    lines = {
        f"{node}: {operation(op)}": f"reads {', '.join(map(str, reads[node]))}" if node in reads else "input"
        for node, op in enumerate(graph.ops.tolist()[:_MOST])
    }
    if len(graph) > _MOST:
        lines["further"] = f"{len(graph) - _MOST} operations"
    return lines
