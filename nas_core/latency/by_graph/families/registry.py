"""Registry of network families.

An adapter lists its :class:`~nas_core.latency.by_graph.families.family.Family` objects as ``network_families``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nas_core.adapters import adapter_parts
from nas_core.errors import MissingHostError, unknown_choice
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.images import ALEXNET, GOOGLENET, NASBENCH201, SQUEEZENET, VGG
from nas_core.latency.by_graph.families.translation import ENCODER, TRANSLATION
from nas_core.registry import import_object

CORE = (ALEXNET, VGG, SQUEEZENET, GOOGLENET, NASBENCH201, ENCODER, TRANSLATION)


def network_families() -> dict[str, Family | MissingHostError]:
    """Return all families by name; an adapter that cannot be imported has an error under its own name."""
    families: dict[str, Family | MissingHostError] = {family.name: family for family in CORE}
    for name, target in sorted(adapter_parts("network_families").items()):
        try:
            families |= {family.name: family for family in import_object(f"families of {name!r}", target)}
        except MissingHostError as error:
            families[name] = error
    return families


def chosen_families(names: str | Sequence[str] = "all") -> list[Family]:
    """Return network families by name.

    Args:
        names: names in a list or separated by commas; ``all``: every family whose framework is installed.
    """
    families = network_families()
    usable = {name: family for name, family in families.items() if isinstance(family, Family)}
    requested = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    if requested == ["all"]:
        return list(usable.values())
    if absent := [name for name in requested if name not in usable]:
        reasons = [f"({error})" for error in families.values() if isinstance(error, MissingHostError)]
        error = unknown_choice("family of networks", absent[0], ["all", *usable])
        raise type(error)(" ".join([str(error), *reasons]))
    return [family for name, family in usable.items() if name in requested]
