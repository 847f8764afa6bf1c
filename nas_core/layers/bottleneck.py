"""Linear maps around layers of different widths, as in SuperShaper (Ganesan et al. 2021).

Shapes: C width of the network, D width of a layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import nn

from nas_core.layers.linear import ElasticLinear
from nas_core.layers.weights import Affine


class ElasticBottlenecks(nn.Module):
    """Linear maps from width C to each layer's width D and back, elastic in D.

    They are initialised to the identity on the first D channels, as in the Mixture-of-Supernets code.

    Args:
        outer: C.
        widths: largest D of each layer.
    """

    def __init__(self, outer: int, widths: Iterable[int]) -> None:
        super().__init__()
        self.outer = outer
        widths = tuple(widths)
        enter = _identities((outer, width) for width in widths)
        leave = _identities((width, outer) for width in widths)
        self.enter: list[ElasticLinear] = nn.ModuleList(enter)  # type: ignore[assignment]
        self.leave: list[ElasticLinear] = nn.ModuleList(leave)  # type: ignore[assignment]

    def select(self, layers: Sequence[int], widths: Sequence[int]) -> tuple[Affine, ...]:
        """Return the linear maps before, between and after the layers.

        Args:
            layers: indices of the used layers.
            widths: width D of each used layer.
        """
        enter = [self.enter[index].select(self.outer, width) for index, width in zip(layers, widths, strict=True)]
        leave = [self.leave[index].select(width, self.outer) for index, width in zip(layers, widths, strict=True)]
        between = (compose(first, second) for first, second in zip(leave, enter[1:], strict=False))
        return (enter[0], *between, leave[-1])


class Joints(nn.ModuleList):
    """Linear maps before, between and after the layers of a static network, of these (input, output) widths."""

    def __init__(self, sizes: Iterable[tuple[int, int]]) -> None:
        super().__init__(_identities(sizes))

    def select(self, layers: Sequence[int], widths: Sequence[int]) -> tuple[Affine, ...]:
        return tuple(Affine(*joint.parameters()) for joint in self)


def compose(first: Affine, second: Affine) -> Affine:
    """Return the composition ``second(first(x))`` as one linear map."""
    return Affine(second.weight @ first.weight, second.weight @ first.bias + second.bias)


def _identities(sizes: Iterable[tuple[int, int]]) -> list[ElasticLinear]:
    linears = [ElasticLinear(in_features, out_features) for in_features, out_features in sizes]
    for linear in linears:
        nn.init.eye_(linear.weight)
    return linears
