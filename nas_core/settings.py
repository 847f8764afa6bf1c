"""Settings as a command line gives them: ``NAME=VALUE``, each of the type of its field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, get_type_hints

from nas_core.errors import ConfigError, unknown_choice

_SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class NoSettings:
    """The settings of what has none."""


class Configured:
    """What has settings by name: the fields of a dataclass, which a command line gives as ``NAME=VALUE``."""

    name: ClassVar[str]
    """By which it is known in its registry."""
    called: ClassVar[str]
    """What it is, as messages call it: "latency model"."""
    config_class: ClassVar[type] = NoSettings
    """A frozen dataclass of its settings."""

    @classmethod
    def setting_types(cls) -> dict[str, type]:
        """Settings by name and their types."""
        return setting_types(cls.config_class)

    @classmethod
    def check_settings(cls, names: Iterable[str]) -> None:
        """Refuse settings that it does not have.

        Raises:
            ConfigError: there is one; the message lists those it has.
        """
        known = cls.setting_types()
        if unknown := set(names) - known.keys():
            raise ConfigError(
                f"{cls.called} {cls.name!r} has no setting {', '.join(sorted(unknown))}; it has:"
                f" {', '.join(known) or 'none'}"
            )


def setting_types(config_class: type) -> dict[str, type]:
    """Fields of a configuration dataclass and their types."""
    types = get_type_hints(config_class)
    return {field.name: types[field.name] for field in fields(config_class)}


def parsed_settings(texts: Iterable[str], types: Mapping[str, type], what: str = "a predictor") -> dict[str, Any]:
    """``["dim=64", "lr=1e-3"]`` as values by name, each of the type of its setting.

    Args:
        types: the settings there are, and their types.
        what: whose settings they are, for messages.

    Raises:
        ConfigError: no ``NAME=VALUE``, a name twice, or a value of another type.
        UnknownChoiceError: no such setting.
    """
    changes: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise ConfigError(f"setting {text!r}: expected NAME=VALUE, such as dim=64")
        if name not in types:
            raise unknown_choice(f"setting of {what}", name, types)
        if name in changes:
            raise ConfigError(f"setting {name!r} is given twice; give it once")
        changes[name] = _typed(name, value, types[name])
    return changes


def _typed(name: str, value: str, kind: type) -> Any:
    try:
        return _SWITCH[value.lower()] if kind is bool else kind(value)
    except (KeyError, ValueError):
        expected = {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, kind.__name__)
        raise ConfigError(f"setting {name} is {value!r}; expected {expected}") from None
