"""Placements of attention that need no search, with which found ones are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nas_core.errors import ConfigError
from nas_core.space import Architecture, Gene, SearchSpace
from nas_core.supernet.elastic.kinds import attention_choices

Place = Callable[[int, int], bool]
"""Whether a layer, of so many, gets the other attention."""


def placements(space: SearchSpace) -> dict[str, Architecture]:
    """Name -> the largest network with other attention in every layer, in every second one, in the first ones and in
    the last ones, for each other kind and each number of layers; the same in every gene that chooses attention.

    Raises:
        ConfigError: the space chooses no attention.
    """
    choices, largest = attention_choices(space), space.largest()
    if not choices:
        raise ConfigError(f"space {space.name!r} chooses no attention; there are no placements to compare with")
    kinds = dict.fromkeys(str(kind) for choice in choices for row in choice.options for kind in row)
    depth = max(len(choice.options) for choice in choices)
    places: dict[str, Place] = {"in every layer": lambda layer, layers: True, "in every second layer": _second}
    for count in range(1, depth):
        places[f"in the first {count}"] = partial(_first, count)
        places[f"in the last {count}"] = partial(_last, count)
    found: dict[Architecture, str] = {largest: ""}
    for kind in kinds:
        for name, place in places.items():
            genes: dict[str, Gene] = dict(largest)
            for choice in choices:
                trained = largest[choice.name]
                assert isinstance(trained, tuple)
                genes[choice.name] = tuple(
                    kind if place(layer, len(trained)) and kind in choice.options[layer] else own
                    for layer, own in enumerate(trained)
                )
            found.setdefault(Architecture(genes), f"{kind} {name}")
    return {name: architecture for architecture, name in found.items() if name}


def _second(layer: int, layers: int) -> bool:
    return layer % 2 == 1


def _first(count: int, layer: int, layers: int) -> bool:
    return layer < count


def _last(count: int, layer: int, layers: int) -> bool:
    return layer >= layers - count
