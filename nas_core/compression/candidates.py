"""Candidates for a compressed network: fewer layers, heads, hidden units or channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.elastic.spaces import rounding

WIDTHS = {"embed_dim": "channels", "heads": "heads", "ffn_dim": "hidden units"}
"""End of the name of a gene -> description."""
PROFILES = (("heads", "ffn_dim"), ("ffn_dim",), ("embed_dim", "heads", "ffn_dim"))
"""Ends of the names of the genes that are reduced together."""
SPACED = "evenly spaced layers"
"""Name of the candidate that keeps evenly spaced layers."""
_DEPTHS = 8
"""Largest number of depths for which widths are reduced, because each is measured."""
_STEPS = 16
"""Widths are multiples of 1 / 16 of the trained width, at least 2 / 16."""

Kept = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Candidate:
    """Network within the latency limit."""

    name: str
    architecture: Architecture
    layers: dict[str, tuple[int, ...]]
    """Side (encoder, decoder) -> indices of the trained network's layers that are kept."""
    share: float
    """Latency as a fraction of the trained network's."""
    is_drop: bool = False
    """True if only layers were removed."""


def pruned(
    space: SearchSpace,
    kept: Kept,
    profile: tuple[str, ...] = ("ffn_dim",),
    share: float = 1.0,
    multiples: Mapping[str, int] = MappingProxyType({}),
) -> Architecture:
    """Return the architecture with the kept layers and with a fraction of the trained widths.

    Args:
        kept: side (encoder, decoder) -> indices of kept layers.
        profile: reduced genes, one of :data:`PROFILES`.
        share: fraction of the widths.
        multiples: gene -> divisor of its reduced values; other values are rounded by
            :func:`nas_core.supernet.elastic.spaces.rounding`.
    """
    genes = space.largest().to_dict()
    depths = {f"{side}.layers" if side else "layers": side for side in kept}
    for gene, value in genes.items():
        if gene in depths:
            genes[gene] = len(kept[depths[gene]])
            continue
        side = gene.rpartition(".")[0]
        if isinstance(value, list):
            value = [value[index] for index in kept[side]]
        if gene.endswith(profile):
            multiple = multiples.get(gene)
            value = (
                [_reduce_size(v, share, multiple) for v in value]
                if isinstance(value, list)
                else _reduce_size(value, share, multiple)
            )
        genes[gene] = value
    return Architecture(genes)


def _reduce_size(size: int, share: float, multiple: int | None) -> int:
    multiple = multiple or rounding(size)
    return max(multiple, round(size * share / multiple) * multiple)


def plain_drops(depth: int, count: int) -> dict[str, tuple[int, ...]]:
    """Return rule (``without the last layers``, ..) -> indices of the ``count`` kept layers of ``depth``."""
    spaced = tuple(sorted({round(index * (depth - 1) / max(count - 1, 1)) for index in range(count)}))
    return {
        SPACED: spaced if count > 1 else (0,),
        "without the first layers": tuple(range(depth - count, depth)),
        "without the last layers": tuple(range(count)),
    }


def depths(sides: Mapping[str, int]) -> list[list[dict[str, int]]]:
    """Return sequences of side -> number of layers, from deep to shallow: all ``sides`` (those of the trained network)
    reduced equally and, if there are several, only the last side reduced."""
    last = list(sides)[-1]
    counts = range(sides[last], 0, -1)
    equal = [{side: max(1, round(depth * count / sides[last])) for side, depth in sides.items()} for count in counts]
    only_last = [{**sides, last: count} for count in counts[1:]] if len(sides) > 1 else []
    return [equal, only_last] if only_last else [equal]


class Fitting:
    """Reduction of widths and depths until the latency meets a limit.

    Args:
        measure: function that returns an architecture's latency as a fraction of the trained network's.
        limit: largest allowed fraction.
        multiples: as for :func:`pruned`.
    """

    def __init__(
        self,
        space: SearchSpace,
        measure: Callable[[Architecture], float],
        limit: float,
        multiples: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.space, self.share, self.limit, self.multiples = space, measure, limit, multiples

    def widest(self, layers: Kept, profile: tuple[str, ...]) -> Architecture | None:
        """Return the widest :func:`pruned` architecture within the latency limit; None if there is none."""
        low, high = _STEPS // 8 - 1, _STEPS + 1
        best = None
        while high - low > 1:
            steps = (low + high) // 2
            architecture = pruned(self.space, layers, profile, steps / _STEPS, self.multiples)
            if self.share(architecture) <= self.limit:
                low, best = steps, architecture
            else:
                high = steps
            if steps == _STEPS and best is not None:
                break
        return best

    def drops(self, sides: Mapping[str, int]) -> list[Candidate]:
        """Return the candidates with the most layers within the latency limit, without reduced widths.

        Args:
            sides: as for :meth:`mixed`.
        """
        candidates: dict[tuple[object, ...], Candidate] = {}
        for options, suffix in zip(depths(sides), ("", f" of the {list(sides)[-1]}"), strict=False):
            for option in options:
                rules = {side: plain_drops(depth, option[side]) for side, depth in sides.items()}
                architecture = pruned(self.space, {side: kept[SPACED] for side, kept in rules.items()})
                if (share := self.share(architecture)) <= self.limit:
                    for rule in next(iter(rules.values())):
                        layers = {side: kept[rule] for side, kept in rules.items()}
                        name = "all layers" if option == sides else rule + suffix
                        candidates.setdefault(tuple(layers.items()), Candidate(name, architecture, layers, share, True))
                    break
        return list(candidates.values())

    def mixed(self, sides: Mapping[str, int], orders: Mapping[str, Sequence[int]]) -> list[Candidate]:
        """Return candidates of each depth, with widths reduced to the limit.

        Args:
            sides: side (encoder, decoder) -> number of trained layers.
            orders: side -> indices of layers, the most important first.
        """
        candidates: dict[tuple[object, ...], Candidate] = {}
        for options in depths(sides):
            for option in options[:: -(-len(options) // _DEPTHS)]:
                layer_sets = [{side: tuple(sorted(orders[side][: option[side]])) for side in sides}]
                layer_sets.append({side: plain_drops(depth, option[side])[SPACED] for side, depth in sides.items()})
                for profile in PROFILES:
                    if (architecture := self.widest(layer_sets[0], profile)) is None:
                        continue
                    for kept in layer_sets:
                        layers = ", ".join(f"{side} {len(k)} of {sides[side]}".strip() for side, k in kept.items())
                        name, share = f"{layers} layers{self._reduced(architecture)}", self.share(architecture)
                        key = architecture, tuple(kept.items())
                        candidates.setdefault(key, Candidate(name, architecture, kept, share))
                if self.share(pruned(self.space, layer_sets[0])) <= self.limit:
                    break  # shallower networks only lose more
        return list(candidates.values())

    def _reduced(self, architecture: Architecture) -> str:
        """Return the reduced widths as text, such as ``, fewer heads and hidden units``; empty for full widths."""
        trained = self.space.largest().to_dict()
        below = [gene for gene, value in architecture.to_dict().items() if _largest(value) < _largest(trained[gene])]
        names = [name for end, name in WIDTHS.items() if any(gene.endswith(end) for gene in below)]
        *first, last = names or [""]
        return f", fewer {', '.join(first)}{' and ' * bool(first)}{last}" if names else ""


def _largest(value: Any) -> Any:
    return max(value) if isinstance(value, list) else value
