"""Things of one kind by name: the project's own, those of other distributions, and those registered in a program.

A member of the project is one line, ``name: "module:object"``, imported when it is first asked for. Another
distribution offers a member as an entry point of the registry's group, under the member's name. A program calls
:meth:`Registry.register`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from nas_core.errors import ConfigError, MissingHostError, unknown_choice

__all__ = ["Registry"]

Member = TypeVar("Member")


class Registry(Generic[Member]):
    """Members by name, in the order of the project's lines, then the others by name.

    Args:
        what: what a member is, as messages call it ("search strategy").
        group: entry points of other distributions.
        own: name -> "module:object" of the project's members.
    """

    def __init__(self, what: str, group: str, own: Mapping[str, str]) -> None:
        self.what, self.group = what, group
        self._own = dict(own)
        self._registered: dict[str, Member] = {}
        self._loaded: dict[str, tuple[str, Member]] = {}

    def register(self, name: str, member: Member) -> Member:
        """Make a member known in this process and return it. The same object again changes nothing.

        Raises:
            ConfigError: another member holds the name.
        """
        if name in self._origins() and self.get(name) is not member:
            holder = self._origins()[name]
            raise ConfigError(f"{self.what} {name!r} is {holder} already; {_origin(member)} needs another name")
        self._registered.setdefault(name, member)
        return member

    def unregister(self, name: str) -> None:
        """Forget what :meth:`register` made known; other names are left alone."""
        self._registered.pop(name, None)

    def names(self) -> list[str]:
        """Every name, whether its member can be imported or not."""
        return list(self._origins())

    def get(self, name: str) -> Member:
        """The member of that name.

        Raises:
            UnknownChoiceError: there is none; the message lists all. ConfigError: two distributions offer the name.
            MissingHostError: it does not import.
        """
        if name in self._registered:
            return self._registered[name]
        origins = self._origins()
        if name not in origins:
            raise unknown_choice(self.what, name, origins)
        target = self._own.get(name) or origins[name]
        if name not in self._loaded or self._loaded[name][0] != target:
            self._loaded[name] = (target, self._imported(name, target))
        return self._loaded[name][1]

    def items(self) -> Iterator[tuple[str, Member]]:
        """Every member that can be imported, with its name."""
        for name in self.names():
            try:
                yield name, self.get(name)
            except MissingHostError:
                continue

    def _origins(self) -> dict[str, str]:
        """Name -> where its member comes from."""
        found = dict(self._own)
        for entry in sorted(_entries(self.group, tuple(sys.path)), key=lambda entry: entry.name):
            if found.setdefault(entry.name, entry.value) != entry.value:
                raise ConfigError(
                    f"{self.what} {entry.name!r} is {found[entry.name]} and {entry.value}; uninstall one of them"
                )
        for name, member in self._registered.items():
            found.setdefault(name, _origin(member))
        return found

    def _imported(self, name: str, target: str) -> Member:
        module, _, attribute = target.partition(":")
        try:
            member = importlib.import_module(module)
            for part in attribute.split("."):
                member = getattr(member, part)
        except MissingHostError:
            raise
        except (ImportError, AttributeError) as error:
            raise MissingHostError(
                f"{self.what} {name!r} ({target}) does not import: {error}; see 'nas-ext doctor'"
            ) from None
        return cast(Member, member)


@lru_cache
def _entries(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of a group, looked up once for each ``sys.path``."""
    return tuple(entry_points(group=group))


def _origin(member: object) -> str:
    """Where a member is defined, as far as it says so."""
    owner = member if hasattr(member, "__qualname__") else type(member)
    return f"{owner.__module__}.{getattr(owner, '__qualname__', '')}"
