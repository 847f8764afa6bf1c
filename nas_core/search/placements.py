"""Baselines with another kind of attention in some layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from nas_core.errors import ConfigError
from nas_core.space import Architecture, SearchSpace
from nas_core.space.architecture import Gene
from nas_core.supernet.elastic.kinds import attention_choices

Place = Callable[[int, int], bool]
"""Function ``(layer, number of layers)`` that returns True if the layer's attention is replaced."""


def placements(space: SearchSpace) -> dict[str, Architecture]:
    """Return the largest network with another kind of attention in some layers, by name (``linear in the first 2``).

    Raises:
        ConfigError: the search space has only one kind of attention.
    """
    choices, largest = attention_choices(space), space.largest()
    if not choices:
        raise ConfigError(f"search space {space.name!r} has only one kind of attention; leave out option placements")
    kinds = dict.fromkeys(str(kind) for choice in choices for row in choice.options for kind in row)
    places: dict[str, Place] = {
        "in every layer": lambda layer, layers: True,
        "in every second layer": lambda layer, layers: layer % 2 == 1,
    }
    for count in range(1, max(len(choice.options) for choice in choices)):
        places[f"in the first {count}"] = partial(lambda count, layer, layers: layer < count, count)
        places[f"in the last {count}"] = partial(lambda count, layer, layers: layer >= layers - count, count)
    names: dict[Architecture, str] = {largest: ""}
    for kind in kinds:
        for name, place in places.items():
            genes: dict[str, Gene] = dict(largest)
            for choice in choices:
                trained = largest[choice.name]
                assert isinstance(trained, tuple)
                genes[choice.name] = tuple(
                    kind if place(layer, len(trained)) and kind in choice.options[layer] else option
                    for layer, option in enumerate(trained)
                )
            names.setdefault(Architecture(genes), f"{kind} {name}")
    return {name: architecture for architecture, name in names.items() if name}
