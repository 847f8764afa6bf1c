"""Options of commands that are derived from dataclasses of settings, after those that a command writes itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from nas_core.options import Option, options_of


def parameters_of(config_class: type[Any]) -> list[inspect.Parameter]:
    """Return parameters of a command for the fields of a dataclass, all of them None where they are not given."""
    return [_parameter(option) for option in options_of(config_class)]


def settings_help(title: str, config_class: type[Any]) -> str:
    """Return a part of a command's help: the settings that ``NAME=VALUE`` gives, a line each."""
    lines = [f"  {option.name}: {option.described}" for option in options_of(config_class)]
    return "\n".join([f"\b\n{title}:", *(lines or ["  none"])])


def with_options(
    command: Callable[..., None], further: Mapping[str, Sequence[inspect.Parameter]], doc: str
) -> Callable[..., None]:
    """Return the command with further options.

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


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = str if option.grouped else option.kind
    many = option.many or option.grouped
    shown: dict[str, Any] = {"metavar": "NAME=VALUE"} if option.grouped else {}
    annotation = Annotated[  # type: ignore[valid-type]
        list[kind] | None if many else kind | None,
        typer.Option(help=f"{option.described.rstrip('.')}.", **shown),
    ]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
