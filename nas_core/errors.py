"""Errors for wrong input, with one base class and messages of one line.

Commands print them without a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

_MAX_LISTED = 40


class NasExtError(Exception):
    """Base class of errors for wrong input. Line breaks in the message become spaces.

    Args:
        command_line: message that a command prints instead; None: ``message``.
    """

    def __init__(self, message: str, *, command_line: str | None = None) -> None:
        super().__init__(_one_line(message))
        self.command_line = str(self) if command_line is None else _one_line(command_line)


def _one_line(message: str) -> str:
    return " ".join(line.strip() for line in str(message).splitlines() if line.strip())


class UnknownChoiceError(NasExtError):
    """A name or value that is not one of the allowed ones."""


class SpaceError(NasExtError):
    """A search space that is contradictory or unreadable."""


class ArchitectureError(NasExtError):
    """An architecture that is malformed or outside its search space."""


class CheckpointError(NasExtError):
    """A checkpoint that is damaged or belongs to another model."""


class ConstraintError(NasExtError):
    """A limit on a cost, such as latency, that almost no architecture meets."""


class DataError(NasExtError):
    """A data file or corpus that is missing, empty or malformed."""


class MissingHostError(NasExtError):
    """An optional package that is missing or cannot be imported."""


class ConfigError(NasExtError):
    """An invalid option or combination of options."""


class UnsupportedError(ConfigError):
    """An operation that a framework, type of network or layer does not support."""


def unknown_choice(kind: str, value: object, choices: Iterable[object]) -> UnknownChoiceError:
    """Return the error for an unknown name. Its message lists the choices and suggests the closest one.

    Args:
        kind: noun for the message, such as "search space".
    """
    allowed = list(choices)
    if not allowed:
        return UnknownChoiceError(f"unknown {kind} {value!r}: none is available")
    closest = _closest(value, allowed)
    hint = "" if closest is None else f" Did you mean {closest!r}?"
    names = ", ".join(str(choice) for choice in allowed[:_MAX_LISTED])
    if len(allowed) > _MAX_LISTED:
        names += f", ... ({len(allowed)} in all)"
    return UnknownChoiceError(f"unknown {kind} {value!r}: expected one of {names}.{hint}")


def check_choice(kind: str, value: object, choices: Collection[object]) -> None:
    """Raise the error of :func:`unknown_choice` unless ``value`` is one of the choices."""
    if value not in choices:
        raise unknown_choice(kind, value, choices)


def _closest(value: object, choices: Sequence[object]) -> object | None:
    if isinstance(value, int | float):
        numbers = [choice for choice in choices if isinstance(choice, int | float)]
        return min(numbers, key=lambda number: abs(number - value), default=None)
    by_text = {str(choice).casefold(): choice for choice in choices}
    matches = difflib.get_close_matches(str(value).casefold(), by_text, n=1, cutoff=0.5)
    return by_text[matches[0]] if matches else None
