"""Fields of a settings dataclass, checked when it is made: types, ranges, no infinities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, get_type_hints

from nas_core.errors import ConfigError

__all__ = ["SEEDS", "Range", "check_fields", "checked_seed"]


@dataclass(frozen=True)
class Range:
    """Numbers that are allowed."""

    low: float = -math.inf
    high: float = math.inf
    without: tuple[float, ...] = ()
    """Ends that do not belong to it"""

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and value not in self.without

    def __str__(self) -> str:
        if self.low == -math.inf:
            return ""
        start = f" above {self.low:g}" if self.low in self.without else f" from {self.low:g}"
        if self.high == math.inf:
            return start if self.low in self.without else start + " on"
        return f"{start} to {'below ' if self.high in self.without else ''}{self.high:.12g}"


SEEDS = Range(0, 2**32 - 1)


def check_fields(config: Any, owner: str, ranges: Mapping[str, Range]) -> None:
    """Check switches, whole numbers, numbers and texts of a frozen dataclass, and make numbers of numpy plain ones.

    Args:
        config: in its ``__post_init__``.
        owner: what the fields are settings of.
        ranges: of numbers by field; any number is allowed in other fields.

    Raises:
        ConfigError: a value of another type, not finite, or outside its range.
    """
    for name, kind in get_type_hints(type(config)).items():
        if kind in (bool, int, float, str):
            value = _plain(getattr(config, name), kind, ranges.get(name, Range()), f"{name} of {owner}")
            object.__setattr__(config, name, value)


def checked_seed(seed: Any) -> int:
    """A seed as a plain number.

    Raises:
        ConfigError: it is none.
    """
    return int(_plain(seed, int, SEEDS, "seed of a predictor"))


def _plain(value: Any, kind: type, allowed: Range, what: str) -> Any:
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind in (bool, str):
        expected = "true or false" if kind is bool else "a text"
        fits = isinstance(value, kind)
    else:
        expected = ("a whole number" if kind is int else "a number") + str(allowed)
        fits = number and math.isfinite(value) and value in allowed
    if not fits:
        raise ConfigError(f"{what} is {value!r}; expected {expected}")
    return kind(value)
