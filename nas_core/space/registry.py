"""Registry of search spaces."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from nas_core.errors import SpaceError, check_choice
from nas_core.space.files import load_space
from nas_core.space.space import SearchSpace

# Modules of this package that register spaces.
_PRESETS = ("bert", "hat", "image", "language", "masked_lm", "mformer")
_SPACES: dict[str, Callable[[], SearchSpace]] = {}


def register_space(build: Callable[[], SearchSpace]) -> Callable[[], SearchSpace]:
    """Register a function that returns a search space, under its name."""
    name = build.__name__
    registered = _SPACES.setdefault(name, build)
    if (registered.__module__, registered.__qualname__) != (build.__module__, build.__qualname__):
        raise SpaceError(
            f"space {name!r} of {build.__module__} is already registered by {registered.__module__}; rename one of them"
        )
    return build


def list_spaces() -> list[str]:
    """List the names of all registered spaces."""
    return sorted(_registered())


def get_space(name: str | Path) -> SearchSpace:
    """Return a registered search space, or read one from a file that ends in .yml or .yaml."""
    if str(name).endswith((".yml", ".yaml")):
        return load_space(name)
    spaces = _registered()
    check_choice("search space", str(name), sorted(spaces))
    return spaces[str(name)]()


def _registered() -> dict[str, Callable[[], SearchSpace]]:
    for module in _PRESETS:
        importlib.import_module(f"nas_core.space.{module}")
    return _SPACES
