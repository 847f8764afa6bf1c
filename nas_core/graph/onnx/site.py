"""An operator and the sizes of what it reads and gives."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from nas_core.graph.onnx.network import Network, Operation, Shape


class Site(NamedTuple):
    """One operator in its network."""

    kind: str
    """Its ONNX operator type."""
    settings: dict[str, Any]
    ins: tuple[Shape | None, ...]
    """None where an optional input is absent."""
    outs: tuple[Shape, ...]
    """Shapes of the outputs that are used; the first one stands there unless only others are."""
    weight: tuple[bool, ...]
    """Which inputs are arrays of parameters: indices, masks, shapes and single numbers are none."""

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Equal for operators that are alike."""
        return (self.kind, self.ins, self.outs, self.weight, *self.settings.items())

    def given(self, place: int) -> Shape | None:
        """Shape of an input, None where it is absent."""
        return self.ins[place] if place < len(self.ins) else None

    def input(self, place: int = 0) -> Shape:
        """Shape of an input, () where it is absent."""
        return self.given(place) or ()

    @property
    def out(self) -> Shape:
        return self.outs[0] if self.outs else ()

    @property
    def out_size(self) -> int:
        return math.prod(self.out)

    def filters(self) -> Shape:
        """Weights of a convolution: (out, in / groups, *kernel); (in, out / groups, *kernel) of a transposed one."""
        return self.input(3 if self.kind == "QLinearConv" else 1)

    def axis(self, default: int) -> int:
        """The setting ``axis``, from 0."""
        rank = len(self.input())
        axis = int(self.settings.get("axis", default))
        return axis + rank if axis < 0 else axis


def site_of(op: Operation, network: Network) -> Site:
    """The operation with the shapes of what it reads and gives.

    Raises:
        GraphError: such a shape is not known.
    """
    shapes: list[Shape | None] = []
    weight: list[bool] = []
    for tensor in op.inputs:
        fixed = tensor in network.constants
        shape = network.shapes.get(tensor, ()) if fixed else network.shape(tensor) if tensor else None
        shapes.append(shape)
        weight.append(fixed and bool(shape) and tensor in network.weights)
    outs = tuple([network.shapes.get(output, ()) for output in op.outputs if output])
    return Site(op.kind, op.settings, tuple(shapes), outs, tuple(weight))


def pair_of(equation: str, site: Site) -> tuple[int, int]:
    """Two products of dimensions of an Einsum: of all, and of those that are summed over."""
    left, _, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    broadcast = 1
    for term, shape in zip(left.split(","), site.ins, strict=False):
        head, dots, tail = term.partition("...")
        shape = shape or ()
        sizes |= dict(zip(head, shape, strict=False))
        sizes |= dict(zip(reversed(tail), reversed(shape), strict=False))
        if dots:
            broadcast = max(broadcast, math.prod(shape[len(head) : len(shape) - len(tail)]))
    every = math.prod(sizes.values()) * broadcast
    if "->" not in equation:
        right = "".join(label for label in sizes if left.count(label) == 1)
    summed = math.prod(size for label, size in sizes.items() if label not in right)
    return every, summed
