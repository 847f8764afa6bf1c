"""Whether the numbers that a model computes shapes with stay few: onnx follows them without a bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MOST_NUMBERS = 100_000
"""In one tensor of shapes; a network has some dozen."""
_RANK = 64
"""Numbers of a tensor that no Concat has put together: the sizes of a tensor, or a small constant."""


def values_stay_small(nodes: Iterable[Any]) -> bool:
    """Whether no tensor of shapes can become long: nothing counts up to a number, no chain of Concat doubles.

    Args:
        nodes: ``NodeProto`` messages in topological order.
    """
    lengths: dict[str, int] = {}
    waiting = [iter(nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        if node.op_type == "Range":
            return False
        read = [lengths.get(tensor, _RANK) for tensor in node.input]
        length = sum(read) if node.op_type == "Concat" else max(read, default=_RANK)
        if length > MOST_NUMBERS:
            return False
        lengths.update(dict.fromkeys(node.output, length))
        waiting += [iter(body.node) for attribute in node.attribute for body in (attribute.g, *attribute.graphs)]
    return True
