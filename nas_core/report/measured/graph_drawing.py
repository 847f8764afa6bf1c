"""A small graph as text: its operations in their order, and from which others each takes its input."""

from __future__ import annotations

from collections.abc import Callable

from nas_core.graph import Graph

_MOST = 60
"""Nodes that are told."""


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
