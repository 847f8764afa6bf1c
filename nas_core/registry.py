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
from typing import Any, Generic, TypeVar, cast

from nas_core.errors import ConfigError, MissingHostError, unknown_choice

Member = TypeVar("Member")


class Registry(Generic[Member]):
    """Members by name, in the order of the project's lines, then the others by name.

    Args:
        what: what a member is, as messages call it ("search strategy").
        group: entry points of other distributions.
        own: name -> "module:object" of the project's members.
        base: what every member is an object of. What another distribution offers is checked: something else, or
            a member that calls itself by another name, counts as one that does not import.
        of_classes: members are subclasses of ``base``.
    """

    def __init__(
        self, what: str, group: str, own: Mapping[str, str], base: type = object, of_classes: bool = False
    ) -> None:
        self.what, self.group, self._base, self._of_classes = what, group, base, of_classes
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
            UnknownChoiceError: there is none; the message lists all. ConfigError: another distribution offers the name
            of one of the project's. MissingHostError: two others offer it, it does not import, or is no such member.
        """
        if name in self._registered:
            return self._registered[name]
        origins = self._origins()
        if name not in origins:
            raise unknown_choice(self.what, name, origins)
        claims = self._claims()[name]
        if len(claims) > 1:
            error = ConfigError if name in self._own else MissingHostError
            raise error(f"{self.what} {name!r} is {' and '.join(claims)}; uninstall one of them")
        target = claims[0]
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
        found = {name: " and ".join(claims) for name, claims in self._claims().items()}
        for name, member in self._registered.items():
            found.setdefault(name, _origin(member))
        return found

    def _claims(self) -> dict[str, list[str]]:
        """Name -> the "module:object" of each member that claims it: one, unless distributions collide."""
        found = {name: [target] for name, target in self._own.items()}
        for entry in sorted(_entries(self.group, tuple(sys.path)), key=lambda entry: entry.name):
            claims = found.setdefault(entry.name, [])
            if entry.value not in claims:
                claims.append(entry.value)
        return found

    def _imported(self, name: str, target: str) -> Member:
        module, _, attribute = target.partition(":")
        try:
            member: Any = importlib.import_module(module)
            for part in attribute.split("."):
                member = getattr(member, part)
        except MissingHostError:
            raise
        except Exception as error:  # what another distribution does at its import is not ours
            raise MissingHostError(
                f"{self.what} {name!r} ({target}) does not import: {first_line(error)}; mend or uninstall it"
            ) from None
        base = self._base
        fits = isinstance(member, type) == self._of_classes
        if not fits or not (issubclass(member, base) if isinstance(member, type) else isinstance(member, base)):
            found = "a class" if isinstance(member, type) else f"an object of {type(member).__name__}"
            expected = f"a subclass of {base.__name__}" if self._of_classes else f"an object of {base.__name__}"
            raise MissingHostError(f"{self.what} {name!r} ({target}) is {found}; expected {expected}")
        if getattr(member, "name", name) != name:
            raise MissingHostError(
                f"{self.what} {name!r} ({target}) calls itself {member.name!r}; both names must be one"
            )
        return cast(Member, member)


def first_line(error: BaseException) -> str:
    """What an import that failed says, in one line."""
    said = str(error).strip().partition("\n")[0]
    if isinstance(error, ImportError | AttributeError) and said:
        return said
    return f"{type(error).__name__}: {said}".removesuffix(": ")


@lru_cache
def _entries(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Entry points of a group, looked up once for each ``sys.path``."""
    return tuple(entry_points(group=group))


def _origin(member: object) -> str:
    """Where a member is defined, as far as it says so."""
    owner = member if hasattr(member, "__qualname__") else type(member)
    return f"{owner.__module__}.{getattr(owner, '__qualname__', '')}"
