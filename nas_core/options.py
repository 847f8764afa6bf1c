"""Options of a command line or of a YAML file, derived from a frozen dataclass of settings.

Each field is one option, with the field's name everywhere: its type, its default, and the docstring under it as help.
This module knows no command line but argparse's; the command ``nas-ext`` takes its options by
:mod:`nas_core.cli.options`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from nas_core.checks import Range, checked_value
from nas_core.errors import ConfigError, unknown_choice

Config = TypeVar("Config")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Option:
    """One setting, as people give it."""

    name: str
    """The field's name; so it is called in YAML and from Python."""
    kind: Any
    """bool, int, float, str or Path; a dataclass where the option is itself a group of settings by name; dict for any
    names with texts."""
    default: Any
    """MISSING where one has to be given."""
    help: str
    """The docstring under the field, as one line without markup."""
    choices: tuple[str, ...] = ()
    """All texts that are allowed, from ``metadata={"choices": ..}`` of the field; empty: any."""
    many: bool = False
    """Whether it takes several values, a tuple of them."""
    alone: str | None = None
    """For argparse: its value where it is given without one, from ``metadata={"alone": ..}``; None: it needs one."""

    @property
    def flag(self) -> str:
        """Its name on a command line."""
        return flag_of(self.name)

    @property
    def grouped(self) -> bool:
        """Whether its value is settings by name; ``NAME=VALUE``, repeated, on a command line."""
        return self.kind is dict or is_dataclass(self.kind)

    @property
    def described(self) -> str:
        """The help with what may be chosen, and the default where the help does not tell one."""
        one_of = f"; one of {', '.join(self.choices)}" if self.choices else ""
        untold = (
            "default:" not in self.help.lower()
            and not self.grouped
            and not any(self.default is untellable for untellable in (MISSING, None, False))
            and self.default not in ("", ())
        )
        required = " (required)" if self.default is MISSING else ""
        return self.help.rstrip(".") + one_of + (f" (default: {self.default})" if untold else required)

    def checked(self, value: Any) -> Any:
        """A value of YAML or Python, made a plain one of the option's kind.

        Raises:
            ConfigError, UnknownChoiceError: it is none.
        """
        if self.grouped:
            if self.kind is not dict and isinstance(value, self.kind):
                return value
            if not isinstance(value, Mapping):
                raise ConfigError(f"{self.name} is {value!r}; expected settings by name, such as {{seed: 1}}")
            return dict(value) if self.kind is dict else config_from(self.kind, value, f"setting of {self.name}")
        if self.many:
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise ConfigError(f"{self.name} is {value!r}; expected a list")
            return tuple(checked_value(one, self.kind, self.name, choices=self.choices) for one in value)
        return checked_value(value, self.kind, self.name, choices=self.choices)

    def read(self, text: Any) -> Any:
        """A value from what was typed: a text, a list of texts, or what a parser has already made of it.

        Of a group, ``part.depth=2`` is the setting ``depth`` of its part; a name that is given again has all its
        values.

        Raises:
            ConfigError: it is none of the option's kind.
        """
        if self.grouped:
            given = (
                text if isinstance(text, Mapping) else read_pairs(self.name, [text] if isinstance(text, str) else text)
            )
            return dict(given) if self.kind is dict else read_texts(self.kind, given)
        if self.many:
            return tuple(self._one(one) for one in ([text] if isinstance(text, str) else text))
        return self._one(text)

    def _one(self, text: Any) -> Any:
        if isinstance(text, list) and not self.many:
            text = text[-1]  # given again: the last one holds, as on any command line
        if not isinstance(text, str) or self.kind is str:
            return text
        try:
            return _WORDS[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            return text  # refused as what it is when it is checked


def read_texts(config_class: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that were typed, each of the kind of its field; those of unknown names stay as they are.

    Raises:
        ConfigError: a group is not given as ``NAME=VALUE``.
    """
    known = {option.name: option for option in options_of(config_class)}
    return {name: known[name].read(value) if name in known else value for name, value in given.items()}


def read_pairs(what: str, texts: Sequence[Any]) -> dict[str, Any]:
    """Return ``["depth=2", "part.width=3"]`` as ``{"depth": "2", "part": {"width": "3"}}``.

    Args:
        what: what is given, for messages.

    Raises:
        ConfigError: one is no ``NAME=VALUE``.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in str(text).partition("="))
        *groups, last = name.split(".")
        if not equals or not last:
            raise ConfigError(f"{what} is {text!r}; expected NAME=VALUE")
        place = found
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise ConfigError(f"{what} is {text!r}, but {group} is a value by itself; give one of the two")
        if last in place:
            before = place[last]
            place[last] = [*(before if isinstance(before, list) else [before]), value]
        else:
            place[last] = value
    return found


def flag_of(name: str) -> str:
    """A field's name on a command line."""
    return f"--{name.replace('_', '-')}"


def check_ranges(options: Any, ranges: Mapping[str, Range]) -> None:
    """Check numbers that were given as options; None and fields that are absent have their own meaning.

    Args:
        options: has the numbers as attributes.
        ranges: of the numbers by field.

    Raises:
        ConfigError: one is not finite or outside its range; the message names the option.
    """
    for name, allowed in ranges.items():
        if (value := getattr(options, name, None)) is not None:
            checked_value(value, int if isinstance(value, int) else float, flag_of(name), allowed)


def options_of(config_class: type[Any]) -> tuple[Option, ...]:
    """The options of a dataclass of settings, in the order of its fields.

    Raises:
        ConfigError: it is none, or a field is of a type that no option has.
    """
    if not is_dataclass(config_class):
        raise ConfigError(f"{config_class.__name__} is no dataclass; expected one with a field for each setting")
    hints, docs = get_type_hints(config_class), _docs(config_class)
    return tuple(
        _option(field, hints[field.name], docs.get(field.name, ""), config_class) for field in fields(config_class)
    )


def config_from(config_class: type[Config], given: Mapping[str, Any], what: str) -> Config:
    """Settings of which only some are given, by the names of their fields; None is the default too.

    Where the class has a method ``of``, it makes the rest of what is given; otherwise the rest are defaults.

    Args:
        what: what one of them is, as messages call it ("option of evolution").

    Raises:
        UnknownChoiceError: no setting of that name; the message lists all. ConfigError: a value of another type, out
            of range, or missing.
    """
    known = {option.name: option for option in options_of(config_class)}
    for name in given:
        if name not in known:
            raise unknown_choice(what, name, known)
    values = {name: known[name].checked(value) for name, value in given.items() if value is not None}
    for option in known.values():
        if option.default is MISSING and option.name not in values:
            raise ConfigError(f"{what} {option.name!r} is missing; give it")
    config: Config = getattr(config_class, "of", config_class)(**values)
    return config


def add_options(parser: argparse.ArgumentParser, config_class: type[Any]) -> None:
    """Give an argparse parser the options of a dataclass of settings."""
    for option in options_of(config_class):
        text = option.described.replace("%", "%%")
        if option.kind is bool and not option.default:
            parser.add_argument(option.flag, action="store_true", help=text)
        elif option.kind is bool:
            parser.add_argument(option.flag, action=argparse.BooleanOptionalAction, default=True, help=text)
        elif option.grouped:
            parser.add_argument(option.flag, action="append", metavar="NAME=VALUE", help=text)
        else:
            parser.add_argument(
                option.flag,
                type=option.kind,
                nargs="+" if option.many else None if option.alone is None else "?",
                const=option.alone,
                required=option.default is MISSING,
                metavar=option.kind.__name__.upper(),
                help=text,
            )


def read_options(config_class: type[Config], parsed: argparse.Namespace) -> Config:
    """The settings that a parser with :func:`add_options` has read.

    Raises:
        NasExtError: as :func:`config_from`.
    """
    typed = {option.name: getattr(parsed, option.name) for option in options_of(config_class)}
    given = {name: value for name, value in typed.items() if value is not None}
    return config_from(config_class, read_texts(config_class, given), "option")


def arguments_of(config: Any) -> list[str]:
    """The arguments from which a parser with :func:`add_options` reads equal settings; defaults are left out."""
    found: list[str] = []
    for option in options_of(type(config)):
        value = getattr(config, option.name)
        if value == option.default:
            continue
        if option.kind is bool:
            found.append(option.flag if value else f"--no-{option.flag.removeprefix('--')}")
        elif option.grouped:
            group = asdict(value) if is_dataclass(value) and not isinstance(value, type) else dict(value)
            found += [part for key, one in group.items() for part in (option.flag, f"{key}={one}")]
        else:
            found += [option.flag, *map(str, value if option.many else [value])]
    return found


def _option(field: Field[Any], hint: Any, doc: str, owner: type[Any]) -> Option:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        hint = kinds[0] if len(kinds) == 1 else hint
    many = typing.get_origin(hint) is tuple
    kind = typing.get_args(hint)[0] if many else dict if typing.get_origin(hint) in (dict, Mapping) else hint
    if kind not in (bool, int, float, str, Path, dict) and not is_dataclass(kind):
        raise ConfigError(f"{field.name} of {owner.__name__} is of type {hint}, which no option has; give it another")
    choices, alone = tuple(field.metadata.get("choices", ())), field.metadata.get("alone")
    return Option(field.name, kind, default, _plain(doc), choices, many, alone)


@cache
def _docs(config_class: Any) -> dict[str, str]:
    """The docstring under each field, those of bases included; none where there is no source."""
    docs: dict[str, str] = {}
    each: Any
    for each in filter(is_dataclass, reversed(config_class.__mro__)):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        except (OSError, TypeError):
            continue
        assert isinstance(body, ast.ClassDef)
        for field, doc in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
                docs[field.target.id] = str(ast.literal_eval(doc.value))
    return docs


def _plain(doc: str) -> str:
    """A docstring as one line without markup."""
    without_roles = re.sub(r":\w+:`~?([^`]*)`", r"\1", doc)
    return " ".join(without_roles.replace("``", "").split())
