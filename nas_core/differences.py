"""Comparison of the settings of an earlier run with the current ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nas_core.errors import ConfigError

_ABSENT = "nothing"


def first_difference(before: Mapping[str, Any], current: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the first setting that differs as ``(name, before, current)``, or None if all are equal.

    Names of nested settings are joined by dots. Tuples equal lists. A missing setting has the value ``'nothing'``.
    """
    old, new = _flat(before), _flat(current)
    for name in [*new, *old]:
        if old.get(name, _ABSENT) != new.get(name, _ABSENT):
            return name, old.get(name, _ABSENT), new.get(name, _ABSENT)
    return None


def check_same_settings(subject: str, before: Mapping[str, Any], current: Mapping[str, Any], advice: str) -> None:
    """Raise a ConfigError if a setting differs, as compared by :func:`first_difference`.

    Args:
        subject: start of the error message, such as "runs/a holds a search with".
        advice: end of the error message: what to do.
    """
    if difference := first_difference(before, current):
        name, old, new = difference
        raise ConfigError(f"{subject} {name} = {old!r}, now it is {new!r}; {advice}")


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return flat
