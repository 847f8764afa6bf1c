"""Fields of a settings dataclass, checked when it is made: types, ranges, choices, no infinities."""

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


def check_fields(config: Any, owner: str = "", ranges: Mapping[str, Range] | None = None) -> None:
    """Check switches, whole numbers, numbers and texts of a frozen dataclass, and make numbers of numpy plain ones.

    A field whose ``metadata`` has ``choices`` takes only these.

    Args:
        config: in its ``__post_init__``.
        owner: what the fields are settings of; empty where their names tell.
        ranges: of numbers by field; any number is allowed in other fields.

    Raises:
        ConfigError: a value of another type, not finite, or outside its range. UnknownChoiceError: none of the choices.
    """
    hints = get_type_hints(type(config))
    for field in fields(config):
        if hints[field.name] in (bool, int, float, str):
            value = checked_value(
                getattr(config, field.name),
                hints[field.name],
                f"{field.name} of {owner}" if owner else field.name,
                (ranges or {}).get(field.name, Range()),
                field.metadata.get("choices", ()),
            )
            object.__setattr__(config, field.name, value)


def checked_seed(seed: Any) -> int:
    """A seed as a plain number.

    Raises:
        ConfigError: it is none.
    """
    return int(checked_value(seed, int, "seed of a predictor", SEEDS))


def checked_value(
    value: Any, kind: type[Any], what: str, allowed: Range | None = None, choices: Sequence[str] = ()
) -> Any:
    """A value as a plain one of its kind: bool, int, float, str or Path.

    Args:
        what: whose value it is, for the message.
        allowed: of a number; default: any.
        choices: of a text; default: any.

    Raises:
        ConfigError: it is none. UnknownChoiceError: a text, but none of the choices.
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
        raise ConfigError(f"{what} is {value!r}; expected {expected}")
    if choices and value not in choices:
        raise unknown_choice(what, value, choices)
    return kind(value)
