"""An order of nodes that follows from the graph, not from the file that holds it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def canonical_order(keys: Sequence[Hashable], names: Sequence[str], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Which node stands at each place: by distance from the inputs, then by what the node, its ancestors and its
    descendants are, then by where its parents stand. Names decide between nodes that are alike in all of that.

    Args:
        keys: ``(N,)`` what a node is: tuples of numbers, whose hashes are the same in every process.
        names: ``(N,)``
        edges: ``(E,)`` source, target with source < target.
    """
    count = len(keys)
    parents: list[list[int]] = [[] for _ in range(count)]
    children: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        parents[target].append(source)
        children[source].append(target)
    above, below, depth = [0] * count, [0] * count, [0] * count
    for node in range(count):
        above[node] = hash((keys[node], *sorted([above[p] for p in parents[node]])))
        depth[node] = max([depth[p] + 1 for p in parents[node]], default=0)
    for node in reversed(range(count)):
        below[node] = hash((keys[node], *sorted([below[c] for c in children[node]])))
    levels: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node in range(count):
        levels[depth[node]].append(node)
    order: list[int] = []
    place = [0] * count
    for level in levels:
        if len(level) > 1:
            level.sort(key=lambda n: (above[n], below[n], sorted([place[p] for p in parents[n]]), names[n]))
        for node in level:
            place[node] = len(order)
            order.append(node)
    return order
