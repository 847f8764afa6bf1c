"""Registry of network families.

An adapter lists its :class:`~nas_core.latency.by_graph.families.family.Family` objects as ``network_families``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nas_core.adapters import adapter_parts
from nas_core.errors import ConfigError, MissingHostError, unknown_choice
from nas_core.latency.by_graph.families.family import Family
from nas_core.latency.by_graph.families.images import ALEXNET, GOOGLENET, NASBENCH201, SQUEEZENET, VGG
from nas_core.latency.by_graph.families.translation import ENCODER, TRANSLATION
from nas_core.registry import import_object

CORE = (ALEXNET, VGG, SQUEEZENET, GOOGLENET, NASBENCH201, ENCODER, TRANSLATION)


def network_families() -> dict[str, Family | MissingHostError]:
    """Return all families by name, or the error of an adapter under its name.

    Raises:
        ConfigError: two families share a name.
    """
    found: dict[str, Family | MissingHostError] = {}
    register_all(found, CORE, "nas_core")
    for name, target in sorted(adapter_parts("network_families").items()):
        try:
            families = import_object(f"families of {name!r}", target)
            if not all(isinstance(family, Family) for family in families):
                raise MissingHostError(f"families of {name!r} ({target}) are no sequence of Family objects")
            register_all(found, families, target)
        except MissingHostError as error:
            found[name] = error
    return found


def register_all(known: dict[str, Family | MissingHostError], families: Iterable[Family], origin: str) -> None:
    for family in families:
        if known.setdefault(family.name, family) is not family:
            raise ConfigError(f"family {family.name!r} of {origin} has the name of another one; rename it")


def chosen_families(names: str | Sequence[str] = "all") -> list[Family]:
    """Return the families of those names (``all``, comma-separated, or a list), in the order of
    :func:`network_families`.

    ``all`` omits those of adapters whose host is not installed.

    Raises:
        UnknownChoiceError: there is no such family.
    """
    known = network_families()
    usable = {name: family for name, family in known.items() if isinstance(family, Family)}
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    if wanted == ["all"]:
        return list(usable.values())
    if absent := [name for name in wanted if name not in usable]:
        reasons = [str(error) for error in known.values() if isinstance(error, MissingHostError)]
        error = unknown_choice("family of networks", absent[0], ["all", *usable])
        raise type(error)(" ".join([str(error), *(f"({reason})" for reason in reasons)]))
    return [family for name, family in usable.items() if name in wanted]
