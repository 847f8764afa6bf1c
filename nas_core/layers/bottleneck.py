"""Linear maps between layers of unequal width.

SuperShaper (Ganesan et al. 2021) puts one before each layer and one behind it, so that layers of any width hand on what
is as wide as the network. Nothing lies between the map out of a layer and the one into the next: for a fixed
architecture both are one matrix, which is computed once per architecture and step, and once for all at extraction.

Shapes: C channels of the network, D of a layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import nn

from nas_core.layers.linear import ElasticLinear
from nas_core.layers.weights import Affine


class ElasticBottlenecks(nn.Module):
    """For each layer the map into it ``(D, C)`` and out of it ``(C, D)``, both elastic in D.

    They begin as the identity on the first D channels, as in the code of Mixture-of-Supernets: a network of full width
    begins as one without them.
    """

    def __init__(self, outer: int, widths: Iterable[int]) -> None:
        super().__init__()
        self.outer = outer
        widths = tuple(widths)
        enter = _identities((outer, width) for width in widths)
        leave = _identities((width, outer) for width in widths)
        self.enter: list[ElasticLinear] = nn.ModuleList(enter)  # type: ignore[assignment]
        self.leave: list[ElasticLinear] = nn.ModuleList(leave)  # type: ignore[assignment]

    def select(self, kept: Sequence[int], widths: Sequence[int]) -> tuple[Affine, ...]:
        """The maps before, between and behind the layers.

        Args:
            kept: the indices of the layers that run, in their order.
            widths: D of each.
        """
        enter = [self.enter[at].select(self.outer, width) for at, width in zip(kept, widths, strict=True)]
        leave = [self.leave[at].select(width, self.outer) for at, width in zip(kept, widths, strict=True)]
        between = (joined(out, into) for out, into in zip(leave, enter[1:], strict=False))
        return (enter[0], *between, leave[-1])


class Joints(nn.ModuleList):
    """The maps before, between and behind the layers of a static network, one matrix each; begun as those of
    :class:`ElasticBottlenecks`."""

    def __init__(self, sizes: Iterable[tuple[int, int]]) -> None:
        super().__init__(_identities(sizes))

    def select(self, kept: Sequence[int], widths: Sequence[int]) -> tuple[Affine, ...]:
        """All of them, as of :class:`ElasticBottlenecks`."""
        return tuple(Affine(*joint.parameters()) for joint in self)


def joined(first: Affine, second: Affine) -> Affine:
    """One map that computes what ``second`` makes of the output of ``first``."""
    return Affine(second.weight @ first.weight, second.weight @ first.bias + second.bias)


def _identities(sizes: Iterable[tuple[int, int]]) -> list[ElasticLinear]:
    made = [ElasticLinear(into, out) for into, out in sizes]
    for linear in made:
        nn.init.eye_(linear.weight)
    return made
