"""The errors a user can cause, rooted in one class.

Every message is one line with three parts: what was got, what was expected, what to do. The command line prints it as
it is, without a traceback; anything that is not a `NasExtError` is a defect of ours and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_MAX_LISTED = 40


class NasExtError(Exception):
    """Root of all errors a wrong input can raise. Line breaks in the message are folded into spaces.

    Args:
        message: for who called from Python.
        command_line: the same for who typed a command, where the advice differs; default: ``message``.
    """

    def __init__(self, message: str, *, command_line: str | None = None) -> None:
        super().__init__(_one_line(message))
        self.command_line = str(self) if command_line is None else _one_line(command_line)


def _one_line(message: str) -> str:
    return " ".join(line.strip() for line in str(message).splitlines() if line.strip())


class UnknownChoiceError(NasExtError):
    """A name or value outside a closed list; build it with `unknown_choice`."""


class SpaceError(NasExtError):
    """A search space that contradicts itself or cannot be read."""


class ArchitectureError(NasExtError):
    """An architecture that is malformed or lies outside its search space."""


class CheckpointError(NasExtError):
    """A checkpoint that is damaged, foreign, or made for another model."""


class ConstraintError(NasExtError):
    """A bound on latency, parameters or FLOPs that no (or hardly any) architecture meets."""


class DataError(NasExtError):
    """A data file or corpus that is missing, empty or malformed."""


class MissingHostError(NasExtError):
    """An optional package that a feature needs is absent or does not import."""


class ConfigError(NasExtError):
    """An option, or a combination of options, that cannot work."""


class UnsupportedError(ConfigError):
    """A capability that a host, a network kind or a layer does not have."""


def unknown_choice(kind: str, got: object, choices: Iterable[object]) -> UnknownChoiceError:
    """The error for `got` where one of `choices` was expected, with the closest choice as a suggestion.

    Args:
        kind: what is being chosen, as the user would call it ("search space", "encoder layers").
        got: what the user gave.
        choices: everything that is allowed, in the order to be shown.
    """
    allowed = list(choices)
    if not allowed:
        return UnknownChoiceError(f"unknown {kind} {got!r}: there is none to choose from")
    closest = _closest(got, allowed)
    hint = "" if closest is None else f" Did you mean {closest!r}?"
    listed = ", ".join(str(choice) for choice in allowed[:_MAX_LISTED])
    if len(allowed) > _MAX_LISTED:
        listed += f", ... ({len(allowed)} in all)"
    return UnknownChoiceError(f"unknown {kind} {got!r}: expected one of {listed}.{hint}")


def _closest(got: object, choices: Sequence[object]) -> object | None:
    """The nearest number, or the most similar text; None when nothing is similar."""
    if isinstance(got, int | float):
        numbers = [choice for choice in choices if isinstance(choice, int | float)]
        return min(numbers, key=lambda number: abs(number - got), default=None)
    by_text = {str(choice).casefold(): choice for choice in choices}
    matches = difflib.get_close_matches(str(got).casefold(), by_text, n=1, cutoff=0.5)
    return by_text[matches[0]] if matches else None
