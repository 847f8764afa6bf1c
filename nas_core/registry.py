"""Registries of objects or classes by name.

The members of this project are ``"module:object"`` texts, imported on first use. Other packages add members as entry
points, and programs by :meth:`Registry.register`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from nas_core.errors import ConfigError, MissingHostError, unknown_choice

Member = TypeVar("Member")


class Registry(Generic[Member]):
    """Registry of objects or classes by name.

    Args:
        noun: name of a member in error messages, such as "search strategy".
        group: entry-point group in which other packages add members; empty: none.
        built_in: ``"module:object"`` of each member of this project, by name.
        base: class of every member.
        of_classes: True if the members are subclasses of ``base``, False if they are instances.
        offered: function that returns more members in the form of ``built_in``.
    """

    def __init__(
        self,
        noun: str,
        group: str,
        built_in: Mapping[str, str],
        base: type = object,
        of_classes: bool = False,
        offered: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.noun, self.group, self._base, self._of_classes = noun, group, base, of_classes
        self._own, self._offered = dict(built_in), offered
        self._registered: dict[str, Member] = {}
        self._loaded: dict[str, Member] = {}

    def register(self, name: str, member: Member) -> Member:
        """Add a member in this process and return it; raise a ConfigError if another member has the name."""
        if name in self.names() and self.get(name) is not member:
            raise ConfigError(f"{self.noun} {name!r} exists already; give the new one another name")
        return self._registered.setdefault(name, member)

    def unregister(self, name: str) -> None:
        self._registered.pop(name, None)

    def names(self) -> list[str]:
        """Return the names of all members, including those that cannot be imported."""
        return list(dict.fromkeys([*self._targets(), *self._registered]))

    def get(self, name: str) -> Member:
        """Return a member by name.

        Raises:
            UnknownChoiceError: no member has the name.
            MissingHostError: the member cannot be imported, or two packages add the name.
            ConfigError: another package adds the name of a member of this project.
        """
        return self._member(name, self._targets())

    def _member(self, name: str, targets: Mapping[str, Sequence[str]]) -> Member:
        if name in self._registered:
            return self._registered[name]
        if name not in targets:
            raise unknown_choice(self.noun, name, self.names())
        if len(targets[name]) > 1:
            error = ConfigError if name in self._own else MissingHostError
            raise error(f"{self.noun} {name!r} is defined by {' and '.join(targets[name])}; uninstall one of them")
        (target,) = targets[name]
        if target not in self._loaded:
            self._loaded[target] = self._imported(name, target)
        return self._loaded[target]

    def items(self) -> Iterator[tuple[str, Member]]:
        targets = self._targets()
        for name in dict.fromkeys([*targets, *self._registered]):
            try:
                yield name, self._member(name, targets)
            except MissingHostError:
                continue

    def _targets(self) -> dict[str, list[str]]:
        targets = {name: [target] for name, target in {**self._own, **self._offered()}.items()}
        for entry in _entries(self.group, tuple(sys.path)):
            claims = targets.setdefault(entry.name, [])
            if entry.value not in claims:
                claims.append(entry.value)
        return targets

    def _imported(self, name: str, target: str) -> Member:
        description, base = f"{self.noun} {name!r} ({target})", self._base
        member = import_object(f"{self.noun} {name!r}", target)
        is_class = isinstance(member, type)
        if is_class != self._of_classes or not (issubclass(member, base) if is_class else isinstance(member, base)):
            kind = "a class" if is_class else f"an object of {type(member).__name__}"
            expected = f"a subclass of {base.__name__}" if self._of_classes else f"an object of {base.__name__}"
            raise MissingHostError(f"{description} is {kind}; expected {expected}")
        if getattr(member, "name", name) != name:
            raise MissingHostError(f"{description} has the attribute name={member.name!r}; expected {name!r}")
        return cast(Member, member)


def import_object(description: str, target: str) -> Any:
    """Import ``"module:object"``, or raise a MissingHostError that starts with ``description``."""
    try:
        return EntryPoint("", target, "").load()
    except MissingHostError:
        raise
    except Exception as error:  # the import of another distribution may raise anything
        raise MissingHostError(
            f"{description} ({target}) cannot be imported: {first_line(error)}; repair or uninstall its package"
        ) from None


def first_line(error: BaseException) -> str:
    line = str(error).strip().partition("\n")[0]
    if isinstance(error, ImportError | AttributeError) and line:
        return line
    return f"{type(error).__name__}: {line}".removesuffix(": ")


@lru_cache
def _entries(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda entry: entry.name)) if group else ()
