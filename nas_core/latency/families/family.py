"""What a family of networks is, and how families are found.

An adapter offers a sequence of :class:`Family` under the entry-point group ``nas_ext.network_families``; another
distribution's adapter plugs in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nas_core.errors import ConfigError, MissingHostError, unknown_choice

__all__ = ["GROUP", "Built", "Family", "Settings", "chosen_families", "image", "network_families", "register_all"]

GROUP = "nas_ext.network_families"

Settings = Mapping[str, Any]
"""What distinguishes a network from the others of its family, as JSON-able data."""
Built = tuple[nn.Module, tuple[Tensor, ...]]
"""A network in evaluation mode, and the inputs of one pass: batch 1."""


@dataclass(frozen=True)
class Family:
    """Networks of one kind that differ in widths, depths, kernels and resolution."""

    name: str
    description: str
    """One line for the list of families: what varies."""
    sample: Callable[[np.random.Generator], Settings]
    """Random settings."""
    build: Callable[[Settings], Built]
    """The network of such settings, with random weights."""

    def network(self, settings: Settings) -> Built:
        """The same weights and inputs each time; the caller's random draws are untouched."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network, inputs = self.build(settings)
        return network.eval().requires_grad_(False), inputs


def network_families() -> dict[str, Family | MissingHostError]:
    """All families by name, those of the core first; under an adapter's name, why it cannot be used.

    Raises:
        ConfigError: two families have one name.
    """
    from nas_core.latency.families import CORE

    found: dict[str, Family | MissingHostError] = {}
    register_all(found, CORE, "nas_core")
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            register_all(found, entry.load(), entry.value)
        except MissingHostError as error:
            found[entry.name] = error
        except ImportError as error:
            found[entry.name] = MissingHostError(
                f"families of {entry.name!r} do not import: {error}; run 'nas-ext doctor'"
            )
    return found


def register_all(known: dict[str, Family | MissingHostError], families: Iterable[Family], origin: str) -> None:
    """Add families to those known.

    Raises:
        ConfigError: another family has the name.
    """
    for family in families:
        if known.setdefault(family.name, family) is not family:
            raise ConfigError(f"family {family.name!r} of {origin} has the name of another one; rename it")


def chosen_families(names: str | Sequence[str] = "all") -> list[Family]:
    """The families of those names (``all``, a text with commas, or a list), in the order of :func:`network_families`.

    ``all`` leaves out those of adapters whose host is not installed.

    Raises:
        UnknownChoiceError: there is no such family. ConfigError: no name at all, or one twice.
    """
    known = network_families()
    usable = {name: family for name, family in known.items() if isinstance(family, Family)}
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    if wanted == ["all"]:
        return list(usable.values())
    if not any(wanted):
        raise ConfigError(f"no family of networks was given; expected some of {', '.join(usable)}, or all")
    if len(set(wanted)) < len(wanted):
        raise ConfigError(f"families {', '.join(wanted)}: one stands there twice; give each once")
    if absent := [name for name in wanted if name not in usable]:
        reasons = [str(error) for error in known.values() if isinstance(error, MissingHostError)]
        error = unknown_choice("family of networks", absent[0], ["all", *usable])
        raise type(error)(" ".join([str(error), *(f"({reason})" for reason in reasons)]))
    return [family for name, family in usable.items() if name in wanted]


def image(resolution: int) -> tuple[Tensor]:
    """One random square image ``(1, 3, resolution, resolution)``."""
    return (torch.randn(1, 3, resolution, resolution),)
