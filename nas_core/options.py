"""Dataclasses of settings whose fields are command-line options, YAML keys and names in ``NAME=VALUE``.

An option has the type, the default and the docstring of its field.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, TypeVar, get_type_hints

from nas_core.checks import Range, checked_value
from nas_core.errors import ConfigError, unknown_choice

Config = TypeVar("Config")
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Option:
    """A command-line option or YAML key, made from a field of a dataclass."""

    name: str
    kind: Any
    """Type: bool, int, float, str, Path, a dataclass of nested settings, or dict for settings with any names"""
    default: Any
    """MISSING if the option is required"""
    help: str
    """Docstring under the field, as one line without markup"""
    choices: tuple[str, ...] = ()
    """Allowed texts, from ``metadata["choices"]`` of the field; empty: every text"""
    multiple: bool = False
    """True if the value is a tuple"""
    alone: str | None = None
    """Value if the command line has the option without a value, from ``metadata["alone"]``; None: an error"""

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def grouped(self) -> bool:
        """True if the value holds several settings, given as repeated ``NAME=VALUE``."""
        return self.kind is dict or is_dataclass(self.kind)

    @property
    def help_text(self) -> str:
        """Help text with the choices and the default."""
        choices = f"; one of {', '.join(self.choices)}" if self.choices else ""
        show_default = (
            "default:" not in self.help.lower()
            and not self.grouped
            and not any(self.default is hidden for hidden in (MISSING, None, False))
            and self.default not in ("", ())
        )
        required = " (required)" if self.default is MISSING else ""
        return self.help.rstrip(".") + choices + (f" (default: {self.default})" if show_default else required)

    def checked(self, value: Any) -> Any:
        """Validate a value from Python, YAML or the command line, and convert it to the type of the option."""
        if self.grouped:
            if self.kind is not dict and isinstance(value, self.kind):
                return value
            value = read_pairs(self.name, value) if isinstance(value, list) else value
            if not isinstance(value, Mapping):
                raise ConfigError(f"{self.name} is {value!r}; expected settings by name, such as {{seed: 1}}")
            return dict(value) if self.kind is dict else config_from(self.kind, value, f"setting of {self.name}")
        if not self.multiple:
            return checked_value(_convert(value, self.kind), self.kind, self.name, choices=self.choices)
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, Sequence):
            raise ConfigError(f"{self.name} is {value!r}; expected a list")
        return tuple(
            checked_value(_convert(item, self.kind), self.kind, self.name, choices=self.choices) for item in values
        )


def _convert(value: Any, kind: Any) -> Any:
    if not isinstance(value, str) or kind is str:
        return value
    try:
        return _WORDS[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        return value


def read_pairs(option: str, texts: Sequence[Any]) -> dict[str, Any]:
    """Parse ``["depth=2", "part.width=3"]`` into ``{"depth": "2", "part": {"width": "3"}}``.

    The value of a repeated name is a list. Error messages name ``option``.
    """
    pairs: dict[str, Any] = {}
    for text in texts:
        name, separator, value = (item.strip() for item in str(text).partition("="))
        *groups, last = name.split(".")
        if not separator or not last:
            raise ConfigError(f"{option} is {text!r}; expected NAME=VALUE")
        target = pairs
        for group in groups:
            target = target.setdefault(group, {})
            if not isinstance(target, dict):
                raise ConfigError(
                    f"{option} is {text!r}, but {group} is also set to a single value; remove one of them"
                )
        before = target.get(last)
        target[last] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    return pairs


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def check_ranges(options: Any, ranges: Mapping[str, Range]) -> None:
    """Validate the numeric attributes of parsed options that are in ``ranges`` and not None."""
    for name, allowed in ranges.items():
        if (value := getattr(options, name, None)) is not None:
            checked_value(value, int if isinstance(value, int) else float, flag_of(name), allowed)


def options_of(config_class: Any) -> tuple[Option, ...]:
    """Return an option for each field of a dataclass, in order."""
    hints, docs = get_type_hints(config_class), _docs(config_class)
    return tuple(_option(field, hints[field.name], docs.get(field.name, "")) for field in fields(config_class))


def config_from(config_class: type[Config], settings: Mapping[str, Any], noun: str) -> Config:
    """Return an instance of a dataclass from values by field name.

    Args:
        settings: values or texts; None means the default.
        noun: name of a setting in error messages, such as "option of evolution".
    """
    options = {option.name: option for option in options_of(config_class)}
    for name in settings:
        if name not in options:
            raise unknown_choice(noun, name, options)
    values = {name: options[name].checked(value) for name, value in settings.items() if value is not None}
    for option in options.values():
        if option.default is MISSING and option.name not in values:
            raise ConfigError(f"{noun} {option.name!r} is missing; give it")
    return config_class(**values)


@dataclass(frozen=True)
class NoSettings:
    """Dataclass without settings."""


class Configured:
    """Base class of registered classes, such as latency models, that have a dataclass of settings."""

    name: ClassVar[str]
    called: ClassVar[str]
    """Name of the type in error messages, such as "latency model\""""
    config_class: ClassVar[type] = NoSettings

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        hints = get_type_hints(cls.config_class)
        return {field.name: hints[field.name] for field in fields(cls.config_class)}

    @classmethod
    def check_settings(cls, names: Iterable[str]) -> None:
        for name in names:
            if name not in (settings := cls.setting_types()):
                raise unknown_choice(f"setting of {cls.called} {cls.name!r}", name, settings)


def parsed_settings(texts: Iterable[str], types: Mapping[str, type], owner: str = "a predictor") -> dict[str, Any]:
    """Parse ``["dim=64", "lr=1e-3"]`` into values by name.

    Args:
        types: type of each allowed setting.
        owner: owner of the settings in error messages.
    """
    values = read_pairs("setting", list(texts))
    for name, value in values.items():
        if name not in types:
            raise unknown_choice(f"setting of {owner}", name, types)
        values[name] = checked_value(_convert(value, types[name]), types[name], f"setting {name}")
    return values


def add_options(parser: argparse.ArgumentParser, config_class: type[Any]) -> None:
    for option in options_of(config_class):
        keywords: dict[str, Any] = {"help": option.help_text.replace("%", "%%")}
        if option.kind is bool:
            keywords |= {"action": argparse.BooleanOptionalAction, "default": True} if option.default else {
                "action": "store_true"
            }  # fmt: skip
        elif option.grouped:
            keywords |= {"action": "append", "metavar": "NAME=VALUE"}
        else:
            keywords |= {
                "type": option.kind,
                "nargs": "+" if option.multiple else None if option.alone is None else "?",
                "const": option.alone,
                "required": option.default is MISSING,
                "metavar": option.kind.__name__.upper(),
            }
        parser.add_argument(option.flag, **keywords)


def read_options(config_class: type[Config], parsed: argparse.Namespace) -> Config:
    """Return the settings from the parsed arguments of a parser with :func:`add_options`."""
    return config_from(
        config_class, {option.name: getattr(parsed, option.name) for option in options_of(config_class)}, "option"
    )


def arguments_of(config: Any) -> list[str]:
    """Return the command-line arguments for settings, without those that equal the default."""
    arguments: list[str] = []
    for option in options_of(type(config)):
        value = getattr(config, option.name)
        if value == option.default:
            continue
        if option.kind is bool:
            arguments.append(option.flag if value else f"--no-{option.flag.removeprefix('--')}")
        elif option.grouped:
            group = asdict(value) if is_dataclass(value) and not isinstance(value, type) else dict(value)
            arguments += [argument for name, item in group.items() for argument in (option.flag, f"{name}={item}")]
        else:
            arguments += [option.flag, *map(str, value if option.multiple else [value])]
    return arguments


def _option(field: Field[Any], hint: Any, doc: str) -> Option:
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        hint = kinds[0] if len(kinds) == 1 else hint
    is_tuple = typing.get_origin(hint) is tuple
    kind = typing.get_args(hint)[0] if is_tuple else dict if typing.get_origin(hint) in (dict, Mapping) else hint
    text = " ".join(re.sub(r":\w+:`~?([^`]*)`", r"\1", doc).replace("``", "").split())
    choices, alone = tuple(field.metadata.get("choices", ())), field.metadata.get("alone")
    return Option(field.name, kind, default, text, choices, is_tuple, alone)


@cache
def _docs(config_class: Any) -> dict[str, str]:
    """Return the docstring below each field of a dataclass and its base classes; empty if there is no source file."""
    docs: dict[str, str] = {}
    owner: Any
    for owner in filter(is_dataclass, reversed(config_class.__mro__)):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        except (OSError, TypeError):
            continue
        assert isinstance(body, ast.ClassDef)
        for field, doc in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(doc, ast.Expr):
                docs[field.target.id] = str(ast.literal_eval(doc.value))
    return docs
