"""Options of commands that are derived from dataclasses of settings, beside those that a command writes itself."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.errors import NasExtError
from nas_core.options import Option, flag_of

__all__ = ["flagged", "flags_named", "parameters_of", "with_options"]


def parameters_of(options: Mapping[str, Sequence[tuple[str, Option]]]) -> list[inspect.Parameter]:
    """Parameters of a command, all of them None where they are not given.

    Args:
        options: name -> who takes the option, each with its own help and default.
    """
    return [_parameter(name, takers) for name, takers in options.items()]


def with_options(
    command: Callable[..., None], further: Mapping[str, Sequence[inspect.Parameter]], doc: str
) -> Callable[..., None]:
    """The command with further options.

    Args:
        further: name of an argument of the command -> the options that come in it, a mapping of those that were given.
        doc: what the command's help says.
    """
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.name not in further]

    @functools.wraps(command)
    def whole(**values: Any) -> None:
        given = {
            name: {one.name: value for one in parameters if (value := values.pop(one.name)) not in (None, [], ())}
            for name, parameters in further.items()
        }
        command(**values, **given)

    every = [*own, *(parameter for parameters in further.values() for parameter in parameters)]
    together = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in every]
    del whole.__wrapped__  # its annotations would be read instead
    whole.__signature__ = signature.replace(parameters=together)  # type: ignore[attr-defined]
    whole.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
    whole.__doc__ = doc
    return whole


@contextmanager
def flags_named(names: Sequence[str]) -> Iterator[None]:
    """Errors of settings name fields; who typed a command reads options instead."""
    try:
        yield
    except NasExtError as error:
        raise type(error)(str(error), command_line=flagged(error.command_line, names)) from None


def flagged(text: str, names: Sequence[str]) -> str:
    """A text in which fields of settings stand as options of a command line."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<![-\w])({known})(?![\w-])", lambda match: flag_of(match[1]), text) if known else text


def _parameter(name: str, takers: Sequence[tuple[str, Option]]) -> inspect.Parameter:
    options = [option for _, option in takers]
    first = options[0]
    same = all((option.kind, option.many) == (first.kind, first.many) for option in options)
    kind = first.kind if same and first.kind in (bool, int, float, Path) else str  # read by the one who takes it
    many = any(option.many or option.grouped for option in options)
    shown: dict[str, Any] = {"metavar": "KEY=VALUE"} if first.grouped else {}
    annotation = Annotated[list[kind] | None if many else kind | None, typer.Option(help=_help(takers), **shown)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _help(takers: Sequence[tuple[str, Option]]) -> str:
    """Who takes the option, and what it is to each; a taker without a name is the command itself."""
    by_text: dict[str, list[str]] = {}
    for taker, option in takers:
        by_text.setdefault(option.described, []).append(taker)
    told = {text: f"{', '.join(names)}: " if any(names) else "" for text, names in by_text.items()}
    return " ".join(f"{named}{text.rstrip('.')}." for text, named in told.items())
