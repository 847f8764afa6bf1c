"""Validation of settings: types, ranges, choices, finite numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_type_hints

from nas_core.errors import ConfigError, unknown_choice


@dataclass(frozen=True)
class Range:
    """Interval of allowed numbers, including both ends unless ``exclude`` excludes them."""

    low: float = -math.inf
    high: float = math.inf
    exclude: tuple[float, ...] = ()
    """Excluded ends"""

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value not in self.exclude

    def __str__(self) -> str:
        if self.low == -math.inf:
            return ""
        lower = f" above {self.low:g}" if self.low in self.exclude else f" from {self.low:g}"
        if self.high == math.inf:
            return lower if self.low in self.exclude else lower + " on"
        return f"{lower} to {'below ' if self.high in self.exclude else ''}{self.high:.12g}"


SEEDS = Range(0, 2**32 - 1)


def check_fields(config: Any, owner: str = "", ranges: Mapping[str, Range] | None = None) -> None:
    """Validate the bool, int, float and str fields of a dataclass and convert NumPy numbers to Python numbers.

    Call it in ``__post_init__``. The ``metadata["choices"]`` of a field are its allowed values.

    Args:
        owner: noun for error messages, such as "recipe".
        ranges: allowed numbers by field name; default: every finite number.

    Raises:
        ConfigError: a value has a wrong type, is not finite, or is out of range.
        UnknownChoiceError: a value is not in the choices.
    """
    hints = get_type_hints(type(config))
    for field in fields(config):
        value, hint = getattr(config, field.name), hints[field.name]
        kind = next((kind for kind in (bool, int, float, str) if hint in (kind, kind | None)), None)
        if kind is not None and (value is not None or hint is kind):
            name = f"{field.name} of {owner}" if owner else field.name
            allowed, choices = (ranges or {}).get(field.name, Range()), field.metadata.get("choices", ())
            object.__setattr__(config, field.name, checked_value(value, kind, name, allowed, choices))


def checked_seed(seed: Any) -> int:
    """Validate a random seed, an integer from 0 to 2**32 - 1, and return it as an int."""
    return int(checked_value(seed, int, "seed of a predictor", SEEDS))


def checked_value(
    value: Any, kind: type[Any], name: str, allowed: Range | None = None, choices: Sequence[str] = ()
) -> Any:
    """Validate a value and return it as a ``kind``: bool, int, float, str or Path.

    Args:
        name: name of the value in error messages.
        allowed: allowed range of a number; None: every finite number.
        choices: allowed values; empty: every value.
    """
    allowed = allowed or Range()
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind in (bool, str, Path):
        expected = "true or false" if kind is bool else "a text" if kind is str else "a path"
        fits = isinstance(value, (str, Path) if kind is Path else kind)
    else:
        expected = ("a whole number" if kind is int else "a number") + str(allowed)
        fits = number and math.isfinite(value) and value in allowed
    if not fits:
        raise ConfigError(f"{name} is {value!r}; expected {expected}")
    if choices and value not in choices:
        raise unknown_choice(name, value, choices)
    return kind(value)
