"""How large a model becomes once its functions stand in place of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nas_core.graph.graph import GraphError

MOST_OPERATORS = 30_000
"""How many operators a model may have once its functions are written out; the largest networks have some thousand."""


def check_operators(model: Any, name: str) -> None:
    """Refuse a ``ModelProto`` whose functions call themselves, or that has too many operators once functions stand in
    place of their calls.

    Args:
        name: of the model, for the message.

    Raises:
        GraphError: it is such.
    """
    bodies = {(function.domain, function.name): function.node for function in model.functions}
    sizes: dict[tuple[str, str], int] = {}
    begun: list[tuple[str, str]] = []
    waiting = list(bodies)
    while waiting:
        key = waiting[-1]
        calls = [call for node in _all(bodies[key]) if (call := (node.domain, node.op_type)) in bodies]
        if missing := [call for call in dict.fromkeys(calls) if call not in sizes]:
            if key in begun:
                raise GraphError(f"{name}: function {key[1]!r} calls itself; expected a network without such")
            begun.append(key)
            waiting += missing
        else:
            sizes.setdefault(key, _written_out(bodies[key], sizes))
            begun = [each for each in begun if each != key]
            waiting.pop()
    if (count := _written_out(model.graph.node, sizes)) > MOST_OPERATORS:
        raise GraphError(f"{name} has {count} operators, functions written out; expected {MOST_OPERATORS} at most")


def _written_out(nodes: Iterable[Any], sizes: dict[tuple[str, str], int]) -> int:
    return sum(sizes.get((node.domain, node.op_type), 1) for node in _all(nodes))


def _all(nodes: Iterable[Any]) -> Iterator[Any]:
    """The operators and those in bodies of If, Loop and Scan."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _all(body.node)
