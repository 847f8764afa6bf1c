"""Candidates of a compression: networks of the trained one's layers, heads and hidden units at a limit on latency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.elastic.spaces import rounding

PROFILES: dict[str, tuple[str, ...]] = {
    "heads and hidden units": ("heads", "ffn_dim"),
    "hidden units": ("ffn_dim",),
    "channels, heads and hidden units": ("embed_dim", "heads", "ffn_dim"),
}
"""Ends of the names of the genes that shrink together."""
SPACED = "evenly spaced layers"
"""Name of the plain drop of every second layer, or of every third one."""
_STEPS = 16
"""Shares of a width are multiples of 1 / 16, from a quarter to all."""

Kept = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Candidate:
    """A network within the limit."""

    name: str
    architecture: Architecture
    kept: dict[str, tuple[int, ...]]
    """The trained network's layers in it, by side."""
    share: float
    """Latency relative to the trained network's."""
    is_drop: bool = False
    """A plain drop of layers."""


def pruned(space: SearchSpace, kept: Kept, profile: str = "hidden units", share: float = 1.0) -> Architecture:
    """Return the largest architecture of a space with some layers and with a share of some widths."""
    genes = space.largest().to_dict()
    depths = {f"{side}.layers" if side else "layers": side for side in kept}
    for gene, value in genes.items():
        if gene in depths:
            genes[gene] = len(kept[depths[gene]])
            continue
        side = gene.rpartition(".")[0]
        if isinstance(value, list):
            value = [value[index] for index in kept[side]]
        if gene.endswith(PROFILES[profile]):
            value = [_part(v, share) for v in value] if isinstance(value, list) else _part(value, share)
        genes[gene] = value
    return Architecture(genes)


def _part(size: int, share: float) -> int:
    multiple = rounding(size)
    return max(multiple, round(size * share / multiple) * multiple)


def plain_drops(depth: int, count: int) -> dict[str, tuple[int, ...]]:
    """Return the ``count`` layers that stay of ``depth``, by the name of the network."""
    spaced = tuple(sorted({round(index * (depth - 1) / max(count - 1, 1)) for index in range(count)}))
    return {
        SPACED: spaced if count > 1 else (0,),
        "without the first layers": tuple(range(depth - count, depth)),
        "without the last layers": tuple(range(count)),
    }


def depths(sides: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield numbers of layers of all sides, in equal shares, and of the last side alone, from deep to shallow."""
    last = list(sides)[-1]
    options = []
    for count in range(sides[last], 0, -1):
        equal = {side: max(1, round(depth * count / sides[last])) for side, depth in sides.items()}
        options += [equal, {**sides, last: count}]
    yield from {tuple(option.items()): option for option in options}.values()


class Fitting:
    """Fitting of widths and depths to a limit on latency.

    Args:
        measure: latency of an architecture relative to the trained network's.
        limit: largest relative latency.
    """

    def __init__(self, space: SearchSpace, measure: Callable[[Architecture], float], limit: float) -> None:
        self.space, self.limit = space, limit
        self._measure = measure
        self.shares: dict[Architecture, float] = {}
        """Measured relative latencies."""

    def share(self, architecture: Architecture) -> float:
        if architecture not in self.shares:
            self.shares[architecture] = self._measure(architecture)
        return self.shares[architecture]

    def widest(self, kept: Kept, profile: str) -> Architecture | None:
        """Return the widest network with these layers within the limit, or None."""
        low, high = _STEPS // 4 - 1, _STEPS + 1
        best = None
        while high - low > 1:
            middle = (low + high) // 2
            architecture = pruned(self.space, kept, profile, middle / _STEPS)
            if self.share(architecture) <= self.limit:
                low, best = middle, architecture
            else:
                high = middle
            if middle == _STEPS and best is not None:
                break
        return best

    def drops(self, sides: Mapping[str, int]) -> list[Candidate]:
        """Return the plain drops of layers: the deepest networks within the limit."""
        for option in depths(sides):
            kept = {side: plain_drops(depth, option[side]) for side, depth in sides.items()}
            architecture = pruned(self.space, {side: next(iter(ways.values())) for side, ways in kept.items()})
            if (share := self.share(architecture)) <= self.limit:
                names = dict.fromkeys(name for ways in kept.values() for name in ways)
                every = {name: {side: ways[name] for side, ways in kept.items()} for name in names}
                distinct = {tuple(layers.items()): name for name, layers in reversed(every.items())}
                return [Candidate(name, architecture, dict(layers), share, True) for layers, name in distinct.items()]
        return []

    def mixed(self, sides: Mapping[str, int], orders: Mapping[str, Sequence[int]]) -> list[Candidate]:
        """Return networks of each depth, with widths that fit the limit.

        Args:
            orders: layers of each side, the one kept longest first.
        """
        candidates: dict[tuple[object, ...], Candidate] = {}
        for option in depths(sides):
            ways = [{side: tuple(sorted(orders[side][: option[side]])) for side in sides}]
            ways.append({side: plain_drops(depth, option[side])[SPACED] for side, depth in sides.items()})
            for profile in PROFILES:
                if (architecture := self.widest(ways[0], profile)) is None:
                    continue
                for kept in ways:
                    layers = ", ".join(f"{side} {len(k)} of {sides[side]}".strip() for side, k in kept.items())
                    name, share = f"{layers} layers, fewer {profile}", self.share(architecture)
                    key = architecture, tuple(kept.items())
                    candidates.setdefault(key, Candidate(name, architecture, kept, share))
            if self.share(pruned(self.space, ways[0])) <= self.limit:
                break  # shallower networks only lose more
        return list(candidates.values())
