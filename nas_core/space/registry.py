"""Spaces by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nas_core.errors import SpaceError, unknown_choice
from nas_core.space.files import load_space
from nas_core.space.space import SearchSpace

_SPACES: dict[str, Callable[[], SearchSpace]] = {}


def register_space(build: Callable[[], SearchSpace]) -> Callable[[], SearchSpace]:
    """Decorator: the function's name becomes the space's name. Registering the same function again changes nothing.

    Raises:
        SpaceError: another function holds the name.
    """
    name = build.__name__
    known = _SPACES.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (build.__module__, build.__qualname__):
        raise SpaceError(
            f"space {name!r} of {build.__module__} is already registered by {known.__module__}; rename one of them"
        )
    _SPACES[name] = build
    return build


def list_spaces() -> list[str]:
    """List the names of all registered spaces."""
    return sorted(_SPACES)


def get_space(name: str | Path) -> SearchSpace:
    """A registered space, or one from a YAML file when ``name`` ends in .yml or .yaml.

    Raises:
        UnknownChoiceError: no such name; the message lists them.
    """
    if str(name).endswith((".yml", ".yaml")):
        return load_space(name)
    if str(name) not in _SPACES:
        raise unknown_choice("search space", str(name), list_spaces())
    return _SPACES[str(name)]()
